"""Codes of the rows of units with what the rows of one unit decide together, as SQL.

This runs on the private side of the door. Each hidden attribute of a row is a function of the kept rows of
its unit alone (docs/privacy.md, "Weights"). A row of a unit of n rows has the weight
WEIGHT // n, so that a unit adds at most WEIGHT to any table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dpsyn_sql.domain.attributes import Attribute, Domain, edge_ticks
from dpsyn_sql.domain.types import MAX_TICK, tick_expression, tick_literal
from dpsyn_sql.planning.families import PLACES, Families
from dpsyn_sql.private.encode.codes import Bound, encode_expression, encode_query, mixed_radix
from dpsyn_sql.private.encode.family_classes import class_expression
from dpsyn_sql.source.relation import WEIGHT
from dpsyn_sql.sqltext.dialect import DUCKDB, Dialect
from dpsyn_sql.sqltext.fragments import Fragment
from dpsyn_sql.sqltext.render import render

_LAST = MAX_TICK
# The moment of a row without one, after all others: such rows come last.

_MOMENT = Fragment("o")


def encode_families(
    relation_sql: Fragment,
    families: Families,
    packs: Sequence[Sequence[int]],
    bound: Bound,
    csv: bool = False,
    dialect: Dialect = DUCKDB,
    *,
    numbered: bool = False,
) -> Fragment:
    """The query that gives the codes and the weight of all kept rows.

    Column ``p<i>`` is as in ``encode_query``, over the attributes of ``families.domain``. ``w`` is the weight
    of a row, BIGINT. ``numbered``: there are also ``u``, a number that all rows of a unit share, and ``n``,
    how many they are.

    A class of the unit is drawn by ``bound.key`` too.

    The rows that are kept are those of ``encode_query``; with an order, rows are equal only if their moments
    are equal too.
    """
    rows = range(families.written)
    order = None if not families.order else _moment(families.domain[families.order], families, dialect)
    singles = [(place,) for place in rows]
    kept = encode_query(
        relation_sql, families.domain, singles, csv, bound, dialect, families=True, order=order
    )
    used = {place for pack in packs for place in pack}
    for group in families.groups:
        group.check(Domain(families.domain.attributes[: families.written]), bound.max_rows)
    columns = _Columns(families, dialect, bound.key)
    codes = {place: columns.code(place) for place in sorted(used)}
    return render(
        "encode/families",
        kept=kept,
        codes=[Fragment(f"p{place}") for place in rows],
        ordered=order is not None,
        shared=list(columns.shared(used)),
        classes=list(columns.drawn(used)),
        before=list(columns.before(used)),
        packed=[
            Fragment(f"{mixed_radix(families.domain, pack, codes, dialect)} AS p{i}")
            for i, pack in enumerate(packs)
        ],
        weight=WEIGHT,
        numbered=numbered,
    )


def _moment(order: Attribute, families: Families, dialect: Dialect) -> Fragment:
    """The tick of a row's moment, clipped to the bins before it is computed; rows without one come last."""
    column = Fragment(f"c{families.domain.index(order.name)}")
    ticks = edge_ticks(order)
    low, high = (max(-MAX_TICK + 1, min(tick, MAX_TICK - 1)) for tick in (ticks[0], ticks[-1] - 1))
    inside = f"LEAST(GREATEST({column}, {tick_literal(order.type, low)}), {tick_literal(order.type, high)})"
    tick = tick_expression(order.type, Fragment(inside), dialect)
    return Fragment(f"CASE WHEN {column} IS NULL THEN {_LAST} ELSE {tick} END")


@dataclass(frozen=True, slots=True)
class _Columns:
    """The expressions of the attributes of a family."""

    families: Families
    dialect: Dialect
    key: int

    def code(self, place: int) -> Fragment:
        """The code of an attribute, from the columns of the template."""
        families, attribute = self.families, self.families.domain.attributes[place]
        name = attribute.name
        if place < families.written:
            return Fragment(f"{'m' if name in families.persons else 'p'}{place}")
        if name == families.size:
            return encode_expression(attribute, Fragment("n"), dialect=self.dialect)
        if name in self._groups:
            return Fragment(f"z{self._groups[name]}")
        if name == families.place:
            return Fragment(_place_of())
        if name == families.since:
            passed = encode_expression(attribute, Fragment("(o - bo)"), dialect=self.dialect)
            return Fragment(
                f"CASE WHEN bo IS NULL OR o = {_LAST} THEN {attribute.null_code} ELSE {passed} END"
            )
        return Fragment(f"COALESCE(b{self._followed(place)}, {attribute.null_code})")

    def shared(self, used: set[int]) -> Iterator[Fragment]:
        """Aggregates over all rows of a unit: the least code where all rows have one."""
        for place in sorted(used):
            if place < self.families.written and self.families.domain.names[place] in self.families.persons:
                yield Fragment(f"min(p{place}) OVER unit_rows AS m{place}")

    @property
    def _groups(self) -> dict[str, int]:
        return {group.attribute.name: number for number, group in enumerate(self.families.groups)}

    def drawn(self, used: set[int]) -> Iterator[Fragment]:
        """The classes of a unit that are wanted."""
        index = self.families.domain.index
        for number, group in enumerate(self.families.groups):
            if index(group.attribute.name) in used:
                codes = {name: Fragment(f"CAST(p{index(name)} AS BIGINT)") for name in group.costs.attributes}
                drawn = class_expression(group, codes, Fragment("unit"), self.key, self.dialect, number)
                yield Fragment(f"{drawn} AS z{number}")

    def before(self, used: set[int]) -> Iterator[Fragment]:
        """What is known of the row before, NULL in a first row."""
        if not self.families.order:
            return
        yield Fragment(f"lag({_MOMENT}) OVER unit_order AS bo")
        yield Fragment("row_number() OVER unit_order AS place")
        names = self.families.domain.names
        hidden = {name for name, _ in self.families.previous}
        for place in sorted(used):
            if names[place] in hidden:
                followed = self._followed(place)
                yield Fragment(f"lag(p{followed}) OVER unit_order AS b{followed}")

    def _followed(self, place: int) -> int:
        name = self.families.domain.names[place]
        return self.families.domain.index(dict(self.families.previous)[name])


def _place_of() -> str:
    only, first, middle, last = range(len(PLACES))
    ends = f"WHEN place = 1 THEN {first} WHEN place = n THEN {last}"
    return f"CASE WHEN n = 1 THEN {only} {ends} ELSE {middle} END"
