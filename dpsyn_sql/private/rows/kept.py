"""The kept rows of tables, in codes and with their weights, as SQL and as private temporary tables.

This runs on the private side of the door. Every source is a tree of tables, and one table is a tree of one:

- A root without a key has single rows. Each is kept, as a projection of the relation, and counts 1: no key,
  no hash, no window, no table of ours.
- Rows that name a unit, in a table without one above it, are rows of persons. They lie below a root of
  persons without columns, where the key of a person stands for its row. At most so many are kept of each.
- In a tree of several tables the kept rows of each are a temporary table. The place of a row there stands for
  it: it is compared for equality only.

Which rows of a unit are kept depends on the rows of this unit alone (docs/privacy.md, "Units of several
rows", "A tree of tables"). With weights they weigh at most WEIGHT in each table.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dpsyn_sql.attributes.attribute import Domain
from dpsyn_sql.common.progress import phase
from dpsyn_sql.errors import InternalError
from dpsyn_sql.planning.families import Families
from dpsyn_sql.planning.row_labels import FamilyClass
from dpsyn_sql.planning.tree import Table, Tree, families_of_tree
from dpsyn_sql.private.rows.codes import (
    Carried,
    digit,
    encode_query,
    key_bytes,
    mixed_radix,
    pack_column,
    unit_bytes,
)
from dpsyn_sql.private.rows.hidden import HiddenCodes, moment
from dpsyn_sql.source.engine import Encoding, SourceEngine
from dpsyn_sql.source.relation import WEIGHT, PrivacyUnit, Relation
from dpsyn_sql.sqltext.fragments import Fragment, code_bytes, code_type, temporary_table
from dpsyn_sql.sqltext.render import render

_STEM = "dpsyn_kept"

_PACKED = 2**31
# Codes of a pack while rows are drawn.

_GROUPS = 1_000
# More classes than one table has, so that those of two tables have draws of their own.


@dataclass(frozen=True, slots=True)
class Bound:
    """The number of rows that are kept of one unit, and the 64-bit key of the draw among them.

    ``column`` is the unit column's name in the source. The privacy claim holds for every key; a
    fresh key favours no fixed rows.
    """

    column: str
    max_rows: int
    key: int

    @classmethod
    def of(cls, unit: PrivacyUnit, key: int | None) -> Bound | None:
        """The bound of a unit of several rows; None where each row is a unit. Its ``key`` never leaves the
        private side, and is fresh unless a test needs to know it.

        Raises:
            InternalError: a unit of no rows.
        """
        if unit.column is None:
            return None
        if unit.max_rows < 1:
            raise InternalError("a unit counts for at least one row")
        return cls(unit.column, unit.max_rows, secrets.randbits(64) if key is None else key)


def rows_of_units(
    relation_sql: Fragment,
    domain: Domain,
    bound: Bound,
    decimal: str = "",
    order: Fragment | None = None,
) -> Fragment:
    """The query that gives the kept rows of units in codes: p0, p1, ... of the attributes, ``parent`` (the
    unit as bytes), ``n`` (its kept rows), ``w`` (the weight of a row), with an ``order`` ``o`` (the moment).

    At most ``bound.max_rows`` rows of a unit are in it, drawn by ``bound.key`` from the unit's own value,
    codes and moments alone; rows without a unit are not. The lot of a row is of the codes of all attributes,
    packed as the domain alone says: what is asked of the rows, and how codes are packed for it, has no say.
    """
    owner = [Carried(unit_bytes(bound.column), Fragment("owner"))]
    packs = list(_wide_packs(domain))
    coded = encode_query(relation_sql, domain, packs, decimal, order=order, carried=owner)
    moments = [] if order is None else [Fragment("o")]
    singles = [
        Fragment(
            f"CAST({digit(domain, i, pack, place)} AS {code_type(domain.attributes[place].size)}) AS p{place}"
        )
        for i, pack in enumerate(packs)
        for place in pack
    ]
    return render(
        "encode/kept",
        coded=coded,
        codes=[*map(pack_column, range(len(packs))), *moments],
        columns=[*singles, *moments],
        up=None,
        parent=Fragment("coded.owner"),
        weight=WEIGHT,
        seed=Fragment("counted.parent"),
        below=False,
        carried=False,
        secret=bound.key,
        most=bound.max_rows,
    )


def _wide_packs(domain: Domain) -> Iterator[list[int]]:
    """All attributes in their order, in as few packs as 32 bits hold: a draw handles rows of few columns."""
    pack, cells = list[int](), 1
    for place, attribute in enumerate(domain.attributes):
        if pack and cells * attribute.size > _PACKED:
            yield pack
            pack, cells = [], 1
        pack.append(place)
        cells *= attribute.size
    if pack:
        yield pack


@dataclass(frozen=True, slots=True)
class _Joined:
    """A table that is joined to the rows of its parent; ``number``: of the child table in the tree."""

    table: Fragment
    number: int


class KeptRows:
    """The kept rows of all tables of a tree, in codes.

    First ``attach`` classes from the lowest tables upwards, then ``encoding``: nothing is read before.
    PRIVATE.

    Args:
        engine: holds the rows of the source; those of several tables in one database.
        tree: the tables, with relations that have the columns of ``domains``. A root without a key has single
            rows, or with a foreign key rows of persons.
        domains: by table the attributes of its own rows.
        orders: by table the attribute that orders the rows of one parent; tables without one may be missing.
        key: of all draws, 0 to 2**64 - 1; fresh unless a test needs to know it.

    Raises:
        InternalError: rows of a table with a key lie in parts, or a kept row would weigh nothing.
    """

    def __init__(
        self,
        engine: SourceEngine,
        tree: Tree,
        domains: Mapping[str, Domain],
        orders: Mapping[str, str],
        key: int | None = None,
    ) -> None:
        self._engine = engine
        self._tree, self._domains, self._orders = tree, domains, orders
        self._key = secrets.randbits(64) if key is None else key
        self._groups: dict[str, tuple[FamilyClass, ...]] = {}
        self._tables: dict[str, Fragment] = {}
        self._classes: dict[str, Fragment] = {}
        self._waiting: list[tuple[str, Encoding]] = []
        self._made: list[Fragment] = []
        self._families: dict[str, Families] = {}
        if tree.root.key:
            self._wait_for_tables()

    @classmethod
    def of_table(
        cls,
        engine: SourceEngine,
        relation_sql: Fragment,
        domain: Domain,
        *,
        decimal: str = "",
        bound: Bound | None = None,
        families: Families | None = None,
        name: str = "",
    ) -> KeptRows:
        """The rows of one table without a key.

        Args:
            engine: holds the rows.
            relation_sql: the text after FROM.
            domain: the attributes; with ``families`` theirs.
            decimal: the decimal mark of a source whose columns are text that is cast; empty: they have types.
            bound: of the rows of persons; None: rows are single.
            families: rows of a person stay together, and have weights.
            name: of the table.

        Raises:
            InternalError: single rows that stay together, or so many that one would weigh nothing.
        """
        if families is not None and not (bound is not None and bound.max_rows <= WEIGHT):
            raise InternalError("rows that stay together are those of a unit, and each weighs something")
        relation = Relation("", "csv" if decimal else "table", relation_sql, (), decimal=decimal)
        owner, most = ((), 1) if bound is None else ((bound.column,), bound.max_rows)
        table = Table(name, relation, (), foreign_key=owner, most=most)
        rows = cls(engine, Tree((table,)), {name: domain}, {}, 0 if bound is None else bound.key)
        if families is not None:
            rows._families[name] = families
        return rows

    def __repr__(self) -> str:
        return f"KeptRows({len(self._tree.tables)} tables)"

    @property
    def single(self) -> bool:
        """Whether each row of the only table is a unit, so that nothing need be kept; public."""
        return not self._tree.root.key and not self._tree.root.foreign_key

    def families(self, name: str) -> Families | None:
        """The families of a table with all classes that are attached so far, None where each row stands
        alone; public."""
        return self._families.get(name)

    def close(self) -> None:
        """Drop all tables; may be called twice."""
        self._waiting = []
        while self._made:
            self._engine.drop(self._made.pop(), step="dropping kept rows")

    # -- the codes of a table ------------------------------------------------------------------------

    def encoding(
        self, name: str, domain: Domain, packs: Sequence[Sequence[int]], *, numbered: bool = False
    ) -> Encoding:
        """What gives the codes of the kept rows of one table; ``domain`` is that of its families, if it has
        some.

        Column ``p<i>`` is the mixed-radix code of the attributes of the domain in ``packs[i]``, the first the
        most significant, in the smallest unsigned type. With families ``w`` is the weight of a row, INTEGER.
        ``numbered``: there are also ``u``, BIGINT, the same for the rows of one family, and ``n``, INTEGER,
        how many these are.

        Raises:
            InternalError: other attributes than those of the table.
            EngineFailure: a statement failed.
        """
        families, table = self._families.get(name), self._tree[name]
        own = self._domains[name] if families is None else families.domain
        if domain.names != own.names or domain.shape() != own.shape():
            raise InternalError("a table was asked for other attributes than it has")
        cells = (math.prod(own.attributes[place].size for place in pack) for pack in packs)
        width = sum(map(code_bytes, cells))
        unit = part = None
        if self._tree.root.key:
            self.keep()
            rows = None
        else:
            unit = next(iter(table.foreign_key), None)
            part = self._engine.part_of(table.relation.sql, unit)
            rows = part or table.relation.sql
        if families is not None:
            query = self._codes(table, families, packs, rows, numbered=numbered)
        elif self.single:
            query = encode_query(rows or table.relation.sql, own, packs, table.relation.text_decimal)
        else:
            query = self._unweighted(table, packs, rows or table.relation.sql)
        return Encoding(temporary_table("dpsyn_codes"), query, unit=unit, part=part, width=width)

    def _unweighted(self, table: Table, packs: Sequence[Sequence[int]], relation_sql: Fragment) -> Fragment:
        """So many rows of a person, each of which counts 1."""
        domain = self._domains[table.name]
        codes = {place: Fragment(f"p{place}") for place in range(len(domain.attributes))}
        return render(
            "encode/codes",
            rows=self._rows_of_persons(table, domain, relation_sql),
            packed=self._packed(domain, packs, codes),
            weighted=False,
            **_NO_FAMILY,
        )

    def _packed(
        self, domain: Domain, packs: Sequence[Sequence[int]], codes: Mapping[int, Fragment]
    ) -> list[Fragment]:
        """The columns of the packs, from the codes of attributes."""
        return [Fragment(f"{mixed_radix(domain, pack, codes)} AS p{i}") for i, pack in enumerate(packs)]

    def _codes(
        self,
        table: Table,
        families: Families,
        packs: Sequence[Sequence[int]],
        relation_sql: Fragment | None,
        *,
        numbered: bool,
    ) -> Fragment:
        """Rows with their weights; of persons, if there is the text after FROM."""
        used = {place for pack in packs for place in pack}
        hidden = HiddenCodes(families, table.most, self._key)
        codes = {place: hidden.code(place) for place in used}
        order = self._order_of(families) if hidden.follows(used) else []
        if relation_sql is None:
            stored = {place for place in used if place < families.drawn + len(families.above)}
            stored |= {*hidden.followed(used), *(int(code[1:]) for code in order if code.startswith("p"))}
            rows = self._rows(table.name, stored, [code for code in order if not code.startswith("p")])
        else:
            written = Domain(families.domain.attributes[: families.written])
            for group in families.groups:
                group.check(written, table.most)
            rows = self._rows_of_persons(table, written, relation_sql, moment(families))
        return render(
            "encode/codes",
            rows=rows,
            repeated=list(hidden.repeated(used)),
            shared=list(hidden.shared(used)),
            classes=list(hidden.drawn(used)),
            before=list(hidden.before(used)),
            order=order,
            packed=self._packed(families.domain, packs, codes),
            weighted=True,
            numbered=numbered,
            number=Fragment("parent" if relation_sql is None else "dense_rank() OVER (ORDER BY parent)"),
        )

    def _order_of(self, families: Families) -> list[Fragment]:
        """Rows of one family that tie in these columns are equal: with rows below them they have keys."""
        keyed = families.below or (self._tree.root.name == families.table and self._tree.root.key)
        return [
            Fragment("o"),
            *(Fragment(f"p{place}") for place in range(families.written)),
            *((Fragment("h"), Fragment("key")) if keyed else ()),
        ]

    # -- rows of persons -----------------------------------------------------------------------------

    def _rows_of_persons(
        self, table: Table, domain: Domain, relation_sql: Fragment, order: Fragment | None = None
    ) -> Fragment:
        bound = Bound(table.foreign_key[0], table.most, self._key)
        return rows_of_units(relation_sql, domain, bound, table.relation.text_decimal, order)

    # -- tables of a tree ----------------------------------------------------------------------------

    def _wait_for_tables(self) -> None:
        if self._engine.in_parts or not self._tree.countable:
            raise InternalError(
                "a tree of tables lies in one database, and each of its rows weighs something"
            )
        self._families = self._of_tables()
        for table in self._tree:
            made = temporary_table(_STEM)
            self._waiting.append(("keeping the rows of a table", Encoding(made, self._kept_query(table))))
            self._tables[table.name] = made

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

    def _kept_query(self, table: Table) -> Fragment:
        families, relation = self._families[table.name], table.relation
        below = table.parent is None or bool(self._tree.children(table.name))
        carried = []
        if table.parent is not None:
            carried.append(Carried(key_bytes(table.foreign_key), Fragment("owner")))
        if below:
            carried.append(Carried(key_bytes(table.key), Fragment("key")))
        order = moment(families)
        coded = encode_query(
            relation.sql,
            families.domain,
            [(place,) for place in range(families.written)],
            relation.text_decimal,
            order=order,
            carried=carried,
        )
        codes = [Fragment(f"p{place}") for place in range(families.written)]
        codes += [] if order is None else [Fragment("o")]
        above, ties = self._above_kept(table), [] if table.parent is None else [Fragment("up.key")]
        return render(
            "encode/kept",
            coded=coded,
            codes=codes,
            columns=codes,
            below=below,
            ties=[*ties, *(Fragment(f"met.{code}") for code in codes)],
            carried=table.parent is not None and self._has_grandchildren(table),
            secret=self._key,
            **above,
        )

    def _above_kept(self, table: Table) -> dict[str, Any]:
        """What the kept row of a table takes from the one above it; the root from its key."""
        if table.parent is None:
            key = Fragment("coded.key")
            return {"up": None, "unit": key, "seed": key, "weight": WEIGHT, "most": None}
        return {
            "up": self._tables[table.parent],
            "parent": Fragment("up.rowid"),
            "unit": Fragment("up.rowid" if self._tree[table.parent].parent is None else "up.unit"),
            "seed": Fragment("up.h"),
            "weight": Fragment("up.w"),
            "most": table.most,
        }

    def _has_grandchildren(self, table: Table) -> bool:
        return any(self._tree.children(child.name) for child in self._tree.children(table.name))

    def attach(self, name: str, groups: Sequence[FamilyClass]) -> None:
        """Draw classes of the rows that each kept row of the parent has in the table ``name``: attributes of
        the parent's rows from now on. Tables below it have theirs before. Classes of the rows of a person are
        attributes of each of these.

        Args:
            name: of a table, not a root with a key.
            groups: over attributes of its own rows, and of those below and above them.

        Raises:
            InternalError: it has classes, or its parent's families do; a class that is not plain.
        """
        table, own = self._tree[name], self._families[name]
        if table.foreign_key and table.parent is None and not own.groups:
            self._families[name] = own.grouped(groups)
            return
        if table.parent is None or name in self._groups or len(groups) >= _GROUPS:
            raise InternalError("classes are those of rows of one parent, and attached once")
        if table.parent in self._groups:
            raise InternalError("classes of a table are attached before those of its parent")
        known = Domain(own.domain.attributes[: own.drawn + len(own.above)])
        for group in groups:
            group.check(known, table.most)
        if groups:
            made = temporary_table(_STEM)
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
            code = group.code(codes, lot, self._key, rows=table.most, number=first + number)
            drawn.append(Fragment(f"{code} AS z{number}"))
        parent = self._tables[table.parent or ""]
        return render("encode/classes", parent=parent, rows=self._rows(table.name, used), classes=drawn)

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
            "encode/table",
            kept=self._tables[name],
            parent=Fragment("own.rowid" if table.parent is None else "own.parent"),
            columns=list(self._columns(families, used, above)),
            order=order,
            numbers=[_Joined(self._tables[child], number) for number, child in children if child in counted],
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
                    attribute = families.domain.attributes[place]
                    counted = attribute.code(f"COALESCE(number{number}.n, 0)").code
                    code = Fragment(f"CAST({counted} AS {code_type(attribute.size)})")
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


_NO_FAMILY: Mapping[str, Any] = dict.fromkeys(("repeated", "shared", "classes", "before", "order"), ()) | {
    "numbered": False
}
# Of the template ``encode/codes``: rows that decide nothing together.
