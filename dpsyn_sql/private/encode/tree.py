"""Codes of the rows of a tree of tables, as private temporary tables and as SQL over them.

This runs on the private side of the door. Which rows of a unit are kept depends on the rows that belong to
this unit alone (docs/privacy.md, "A tree of tables"). The kept rows of a unit weigh at most WEIGHT in each
table. The place of a kept row in its temporary table stands for it: it is compared for equality only.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count

from dpsyn_sql.common.progress import phase
from dpsyn_sql.domain.attributes import Domain
from dpsyn_sql.errors import InternalError
from dpsyn_sql.planning.families import Families
from dpsyn_sql.planning.family_classes import FamilyClass
from dpsyn_sql.planning.tree import Table, Tree, families_of_tree
from dpsyn_sql.private.encode.codes import Carried, encode_expression, encode_query, key_bytes, mixed_radix
from dpsyn_sql.private.encode.family_classes import class_expression
from dpsyn_sql.private.encode.row_before import RowBefore, moment
from dpsyn_sql.source.engine import SourceEngine
from dpsyn_sql.source.names import fold
from dpsyn_sql.source.parts import Encoding
from dpsyn_sql.source.relation import WEIGHT, Column, Relation
from dpsyn_sql.sqltext.dialect import DUCKDB, Dialect
from dpsyn_sql.sqltext.fragments import Fragment, ident
from dpsyn_sql.sqltext.render import render

_STEM = "dpsyn_kept"

_GROUPS = 1_000
# More classes than one table has, so that those of two tables have draws of their own.


@dataclass(frozen=True, slots=True)
class _Joined:
    """A table that is joined to the rows of its parent; ``number``: of the child table in the tree."""

    table: Fragment
    number: int


class TreeCodes:
    """The kept rows of all tables of a tree, in codes (an ``Encoder`` of ``SqlCounter``).

    First ``attach`` classes from the lowest tables upwards, then ``query``: nothing is read before. PRIVATE.

    Args:
        engine: holds the rows of the source, in one database.
        tree: the tables, with relations that have the columns of ``domains``.
        domains: by table the attributes of its own rows.
        orders: by table the attribute that orders the rows of one parent; tables without one may be missing.
        key: of all draws, 0 to 2**64 - 1; fresh unless a test needs to know it.

    Raises:
        InternalError: rows lie in parts, or a kept row would weigh nothing.
    """

    def __init__(
        self,
        engine: SourceEngine,
        tree: Tree,
        domains: Mapping[str, Domain],
        orders: Mapping[str, str],
        key: int | None = None,
    ) -> None:
        if engine.in_parts or not tree.countable:
            raise InternalError(
                "a tree of tables lies in one database, and each of its rows weighs something"
            )
        self._engine, self._dialect = engine, engine.dialect
        self._tree, self._domains, self._orders = tree, domains, orders
        self._key = secrets.randbits(64) if key is None else key
        self._groups: dict[str, tuple[FamilyClass, ...]] = {}
        self._kept: dict[str, Fragment] = {}
        self._classes: dict[str, Fragment] = {}
        self._waiting: list[tuple[str, Encoding]] = []
        self._made: list[Fragment] = []
        self._families = self._of_tables()
        for table in tree:
            made = self._dialect.temporary(_STEM)
            self._waiting.append(("keeping the rows of a table", Encoding(made, self._kept_query(table))))
            self._kept[table.name] = made

    def __repr__(self) -> str:
        return f"TreeCodes({len(self._tree.tables)} tables)"

    def families(self, name: str) -> Families:
        """The families of a table with all classes that are attached so far; public."""
        return self._families[name]

    def _of_tables(self) -> dict[str, Families]:
        return families_of_tree(self._tree, self._domains, self._orders, self._groups)

    def keep(self) -> None:
        """Make the tables of kept rows and of classes that are still missing, in the order of their need.

        Raises:
            EngineFailure: a statement failed.
        """
        if not self._waiting:
            return
        with phase("encode"):
            while self._waiting:
                step, encoding = self._waiting.pop(0)
                self._made.append(encoding.table)
                self._engine.keep(encoding, step=step)

    def close(self) -> None:
        """Drop all tables; may be called twice."""
        self._waiting = []
        while self._made:
            self._engine.drop(self._made.pop(), step="dropping kept rows")

    def _kept_query(self, table: Table) -> Fragment:
        families, relation = self._families[table.name], table.relation
        inner = table.parent is None or bool(self._tree.children(table.name))
        carried = []
        if table.parent is not None:
            carried.append(Carried(key_bytes(table.foreign_key, self._dialect), Fragment("owner")))
        if inner:
            carried.append(Carried(key_bytes(table.key, self._dialect), Fragment("key")))
        own = range(families.written)
        order = moment(families, self._dialect)
        coded = encode_query(
            relation.sql,
            families.domain,
            [(place,) for place in own],
            relation.read_as_text,
            dialect=self._dialect,
            order=order,
            carried=carried,
        )
        codes = [Fragment(f"p{place}") for place in own] + ([] if order is None else [Fragment("o")])
        values = {"coded": coded, "codes": codes, "secret": self._key}
        if table.parent is None:
            return render("encode/tree_root", dialect=self._dialect, weight=WEIGHT, **values)
        values |= {"parent": self._kept[table.parent], "most": table.most}
        if not inner:
            return render("encode/tree_leaves", dialect=self._dialect, **values)
        above = self._tree[table.parent].parent is None
        unit = Fragment("up.rowid" if above else "up.unit")
        deep = any(self._tree.children(child.name) for child in self._tree.children(table.name))
        return render("encode/tree_rows", dialect=self._dialect, unit=unit, carried=deep, **values)

    def attach(self, name: str, groups: Sequence[FamilyClass]) -> None:
        """Draw classes of the rows that each kept row of the parent has in the table ``name``: attributes of
        the parent's rows from now on. Tables below it have theirs before.

        Args:
            name: of a table, not the root.
            groups: over attributes of its own rows, and of those below and above them.

        Raises:
            InternalError: it has classes, or its parent's families do; a class that is not plain.
        """
        table, own = self._tree[name], self._families[name]
        if table.parent is None or name in self._groups or len(groups) >= _GROUPS:
            raise InternalError("classes are those of rows of one parent, and attached once")
        if table.parent in self._groups:
            raise InternalError("classes of a table are attached before those of its parent")
        known = Domain(own.domain.attributes[: own.drawn + len(own.above)])
        for group in groups:
            group.check(known, table.most)
        if groups:
            made = self._dialect.temporary(_STEM)
            encoding = Encoding(made, self._classes_query(table, groups))
            self._waiting.append(("drawing classes of families", encoding))
            self._classes[name] = made
        self._groups[name] = tuple(groups)
        self._families = self._of_tables()

    def _classes_query(self, table: Table, groups: Sequence[FamilyClass]) -> Fragment:
        families = self._families[table.name]
        index = families.domain.index
        used = {index(name) for group in groups for name in group.costs.attributes}
        first = self._number(table.name) * _GROUPS
        drawn = []
        for number, group in enumerate(groups):
            codes = {
                name: Fragment(f"CAST(child.p{index(name)} AS BIGINT)") for name in group.costs.attributes
            }
            lot = Fragment("up.h")
            code = class_expression(
                group, codes, lot, self._key, self._dialect, rows=table.most, number=first + number
            )
            drawn.append(Fragment(f"{code} AS z{number}"))
        parent = self._kept[table.parent or ""]
        return render("encode/tree_classes", parent=parent, rows=self._rows(table.name, used), classes=drawn)

    def query(
        self, families: Families, packs: Sequence[Sequence[int]], *, numbered: bool = False
    ) -> Fragment:
        """The query that gives the codes and the weight of the kept rows of one table.

        Column ``p<i>`` is the mixed-radix code of the attributes of ``families.domain`` in ``packs[i]``, the
        first the most significant, in the smallest unsigned type. ``w`` is the weight of a row, INTEGER: that
        of its parent's row // n. ``numbered``: there are also ``u``, BIGINT, the same for the rows of one
        parent, and ``n``, INTEGER, how many these are.

        Raises:
            InternalError: other attributes than those of ``self.families``.
            EngineFailure: a statement failed.
        """
        own = self._families[families.table]
        if families.domain.names != own.domain.names or families.domain.shape() != own.domain.shape():
            raise InternalError("a table of a tree was asked for other attributes than it has")
        self.keep()
        used = {place for pack in packs for place in pack}
        hidden = {place for place in used if place >= own.drawn + len(own.above)}
        before = RowBefore(own, self._dialect)
        codes = {place: before.code(place) if place in hidden else Fragment(f"p{place}") for place in used}
        order = self._order_of(own) if hidden else []
        held = used - hidden | set(before.followed(used))
        held |= {int(code[1:]) for code in order if code.startswith("p")}
        return render(
            "encode/tree_codes",
            rows=self._rows(own.table, held, [code for code in order if not code.startswith("p")]),
            before=list(before.columns(used)) if hidden else [],
            order=order,
            packed=[
                Fragment(f"{mixed_radix(own.domain, pack, codes, self._dialect)} AS p{i}")
                for i, pack in enumerate(packs)
            ],
            numbered=numbered,
        )

    def _order_of(self, families: Families) -> list[Fragment]:
        """Rows of one parent that tie in these columns are equal: with rows below them they have keys."""
        keyed = families.below or self._tree[families.table].parent is None
        return [
            Fragment("o"),
            *(Fragment(f"p{place}") for place in range(families.written)),
            *((Fragment("h"), Fragment("key")) if keyed else ()),
        ]

    def _rows(self, name: str, used: set[int], order: Sequence[Fragment] = ()) -> Fragment:
        """The rows of a table with the codes of attributes that need no row before, as p<place>."""
        families, table = self._families[name], self._tree[name]
        below = [
            families.below[place - families.written] for place in used if self._is_below(families, place)
        ]
        above = {place: self._above(families, place) for place in used if place >= families.drawn}
        children = sorted({(self._number(one.table), one.table) for one in below})
        counted = {one.table for one in below if one.group is None}
        classed = {one.table for one in below if one.group is not None}
        parent = self._rows(table.parent, set(above.values())) if table.parent and above else None
        return render(
            "encode/tree_table",
            kept=self._kept[name],
            unit=Fragment("own.rowid" if table.parent is None else "own.parent"),
            columns=list(self._columns(families, used, above)),
            order=order,
            numbers=[_Joined(self._kept[child], number) for number, child in children if child in counted],
            classes=[_Joined(self._classes[child], number) for number, child in children if child in classed],
            above=parent,
        )

    def _columns(self, families: Families, used: set[int], above: Mapping[int, int]) -> Iterator[Fragment]:
        for place in sorted(used):
            code = Fragment(f"up.p{above[place]}" if place in above else f"own.p{place}")
            if self._is_below(families, place):
                one = families.below[place - families.written]
                number = self._number(one.table)
                if one.group is None:
                    rows = Fragment(f"COALESCE(number{number}.n, 0)")
                    attribute = families.domain.attributes[place]
                    found = encode_expression(attribute, rows, dialect=self._dialect)
                    code = Fragment(f"CAST({found} AS {self._dialect.code_type(attribute.size)})")
                else:
                    code = Fragment(f"classes{number}.z{self._groups[one.table].index(one.group)}")
            yield Fragment(f"{code} AS p{place}")

    @staticmethod
    def _is_below(families: Families, place: int) -> bool:
        return families.written <= place < families.drawn

    def _above(self, families: Families, place: int) -> int:
        """The place, in the families of the parent, of what stands above a row."""
        one = families.above[place - families.drawn]
        parent = self._families[self._tree[families.table].parent or ""]
        if one.table == parent.table:
            return parent.domain.index(one.attribute)
        higher = [(other.table, other.attribute) for other in parent.above]
        return parent.drawn + higher.index((one.table, one.attribute))

    def _number(self, name: str) -> int:
        return next(number for number, table in enumerate(self._tree) if table.name == name)


# -- for discovery -----------------------------------------------------------------------------------


_OWN = "own"


def discovery_relation(tree: Tree, name: str, dialect: Dialect = DUCKDB) -> tuple[Relation, str]:
    """The rows of a table with the unit that each belongs to, and the name of the unit's column, which holds
    bytes and is never NULL.

    A row of two units is there once for each, a row of nobody is not. Nothing is bounded: what counts over it
    counts with ``PrivacyUnit(column, max_rows=1)``.
    """
    table = tree[name]
    relation = table.relation
    taken = {fold(column.name) for column in relation.columns}
    unit = next(text for number in count() if (text := f"its_unit{number or ''}") not in taken)
    sql = render(
        "encode/tree_joined",
        relation=relation.sql,
        columns=[ident(column.name) for column in relation.columns if not column.refused],
        unit=ident(unit),
        owner=key_bytes(table.foreign_key if table.parent else table.key, dialect, of=_OWN),
        units=None if table.parent is None else units_of_rows(tree, tree[table.parent], dialect),
    )
    columns = (*relation.columns, Column(unit, "BLOB", not_null=True))
    return replace(relation, sql=sql, columns=columns), unit


def units_of_rows(tree: Tree, table: Table, dialect: Dialect) -> Fragment:
    """The query of the units of an inner table's rows, by the keys of these rows."""
    return render(
        "encode/tree_units",
        relation=table.relation.sql,
        key=key_bytes(table.key, dialect, of=_OWN),
        owner=key_bytes(table.foreign_key, dialect, of=_OWN) if table.parent else Fragment(""),
        units=None if table.parent is None else units_of_rows(tree, tree[table.parent], dialect),
    )
