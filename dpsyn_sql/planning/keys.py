"""How the keys of a tree's tables are written: a role for each of their columns, and what they name (public).

The key of a parent's row is copied into the rows below it. A key that holds all of the owning foreign key has
numbers within the parent in its other parts; any other key is fresh.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dpsyn_sql.domain.shape import ForeignKey, Key, PartOfKey, PublicKey, RandomKey, Role
from dpsyn_sql.errors import InternalError
from dpsyn_sql.planning.tree import PublicTable, Reference, Table, Tree


@dataclass(frozen=True, slots=True)
class Link:
    """Columns that name a row of ``table`` by the columns ``key`` of it."""

    columns: tuple[str, ...]
    table: str
    key: tuple[str, ...]


def roles_of(tree: Tree, name: str, types: Mapping[str, str]) -> tuple[Role, ...]:
    """The roles of all columns in the keys of a table.

    Args:
        tree: of all tables.
        name: of the table.
        types: SQL types of its columns, as the catalog of the source spells them.

    Raises:
        InternalError: one column belongs to the owning foreign key and to a reference, or to two references.
    """
    table, found = tree[name], dict[str, Role]()
    for link in links_of(tree, name):
        for column, key in zip(link.columns, link.key, strict=True):
            if column in found:
                raise InternalError(f"column {column!r} of table {name!r} names two rows")
            found[column] = _named(table, link, column, key, types[column])
    within = table.parent is not None and set(table.foreign_key) <= set(table.key)
    for column in table.key:
        if column not in found:
            kind = types[column]
            found[column] = PartOfKey(column, kind) if within else Key(column, kind, "key of the table")
    return tuple(found.values())


def _named(table: Table, link: Link, column: str, key: str, kind: str) -> Role:
    if link.columns == table.foreign_key:
        return ForeignKey(column, kind, link.table, key)
    reference = next(one for one in table.references if one.columns == link.columns)
    if reference.kind == "public":
        return PublicKey(column, kind, key, link.columns[0])
    return RandomKey(column, kind, link.table, key, link.columns[0], reference.kind == "self")


def links_of(tree: Tree, name: str) -> Iterator[Link]:
    """What a table's columns name: the parent's row first, then the references."""
    table = tree[name]
    if table.parent is not None:
        yield Link(table.foreign_key, table.parent, tree[table.parent].key)
    for reference in table.references:
        yield Link(reference.columns, reference.table, _key(tree, reference))


def _key(tree: Tree, reference: Reference) -> tuple[str, ...]:
    if reference.kind == "public":
        return public_table(tree, reference.table).key
    return tree[reference.table].key


def public_table(tree: Tree, name: str) -> PublicTable:
    """The public table of a name."""
    return next(one for one in tree.public if one.name == name)


def is_unique(tree: Tree, name: str) -> bool:
    """Whether the written key of a table has other values in each row: a part of it is fresh, or numbered
    within the parent, or the parent has one such row."""
    table = tree[name]
    named = {column for link in links_of(tree, name) for column in link.columns}
    own = set(table.key) - named
    alone = table.parent is not None and set(table.foreign_key) <= set(table.key) and table.most == 1
    return bool(own) or alone
