"""Constraints of the tables of a database: in which order they are written, and what their keys promise."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from dpsyn_sql.domain.shape import PublicKey, RandomKey, Shape
from dpsyn_sql.planning.tree import Tree
from dpsyn_sql.rows.decode.output import written_type
from dpsyn_sql.sqltext.fragments import Fragment, ident


def written_order(tree: Tree, names: Collection[str]) -> list[str]:
    """Tables after those that they refer to: where two refer to each other, a parent stands first."""
    order = [name for name in names if name not in {table.name for table in tree}]
    left = [table.name for table in tree]
    while left:
        for owned in (False, True):
            ready = [
                name
                for name in left
                if all(
                    link.table in order or link.table == name or (owned and link.table != tree[name].parent)
                    for link in tree.links(name)
                    if link.table in names
                )
            ]
            if ready:
                break
        order.append(ready[0])
        left.remove(ready[0])
    return order


def not_null(shape: Shape) -> tuple[str, ...]:
    """Columns without NULL: one that names other rows has NULL where there are none."""
    named = {role.name for role in shape.roles if isinstance(role, RandomKey | PublicKey)}
    return tuple(name for name in shape.not_null if name not in named)


@dataclass(frozen=True, slots=True)
class Constraints:
    """The definitions of tables with the constraints of their keys.

    A self-reference has none: DuckDB looks for the rows that one INSERT names before it has written any. Nor
    has a key that is not of the type of what it names, or that a table of the output does not hold.
    """

    tree: Tree
    shapes: Mapping[str, Shape]
    names: Mapping[str, str]

    def definitions(self, name: str, before: Sequence[str]) -> tuple[Fragment, ...]:
        """Columns and constraints of a table; ``before``: the tables that are there by then."""
        return tuple(self._definitions(name, before))

    def _definitions(self, name: str, before: Sequence[str]) -> Iterator[Fragment]:
        shape, kinds = self.shapes.get(name), self._types(name)
        never_null = {*self._key(name), *(not_null(shape) if shape else ())}
        for column, kind in kinds.items():
            yield Fragment(f"{ident(column)} {kind}{' NOT NULL' if column in never_null else ''}")
        if key := self._key(name):
            yield Fragment(f"PRIMARY KEY ({_listed(key)})")
        for link in () if shape is None else self.tree.links(name):
            if link.table in before and link.key == self._key(link.table):
                other = self._types(link.table)
                if all(kinds[own] == other[key] for own, key in zip(link.columns, link.key, strict=True)):
                    # The name alone: DuckDB 1.5 takes no other database's here, whatever it is called.
                    place = ident(self.names[link.table])
                    yield Fragment(
                        f"FOREIGN KEY ({_listed(link.columns)}) REFERENCES {place} ({_listed(link.key)})"
                    )

    def _key(self, name: str) -> tuple[str, ...]:
        """The columns of the key; none if nothing promises that it holds."""
        if name in self.shapes:
            return self.tree.stated_key(name, self.shapes[name])
        return self.tree.public_table(name).key

    def _types(self, name: str) -> dict[str, Fragment]:
        if name in self.shapes:
            shape = self.shapes[name]
            return {column: written_type(shape.types[column]) for column in shape.order}
        return {one.name: Fragment(one.sql_type) for one in self.tree.public_table(name).relation.columns}


def _listed(columns: Sequence[str]) -> Fragment:
    return Fragment(", ".join(map(ident, columns)))
