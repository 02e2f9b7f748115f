"""PRIVATE side: what is known of the row before in a family, as SQL over its kept rows in their order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dpsyn_sql.domain.attributes import edge_ticks
from dpsyn_sql.domain.types import MAX_TICK, tick_expression, tick_literal
from dpsyn_sql.planning.families import PLACES, Families
from dpsyn_sql.private.encode.codes import encode_expression
from dpsyn_sql.sqltext.dialect import Dialect
from dpsyn_sql.sqltext.fragments import Fragment

_LAST = MAX_TICK
# The moment of a row without one, after all others: such rows come last.


def moment(families: Families, dialect: Dialect) -> Fragment | None:
    """The tick of a row's moment in neutral names, clipped to the bins before it is computed; rows without
    one come last. None without an order."""
    if not families.order:
        return None
    order = families.domain[families.order]
    column = Fragment(f"c{families.domain.index(order.name)}")
    ticks = edge_ticks(order)
    low, high = (max(-MAX_TICK + 1, min(tick, MAX_TICK - 1)) for tick in (ticks[0], ticks[-1] - 1))
    inside = f"LEAST(GREATEST({column}, {tick_literal(order.type, low)}), {tick_literal(order.type, high)})"
    tick = tick_expression(order.type, Fragment(inside), dialect)
    return Fragment(f"CASE WHEN {column} IS NULL THEN {_LAST} ELSE {tick} END")


@dataclass(frozen=True, slots=True)
class RowBefore:
    """The attributes of a family that follow from the order of its rows.

    A template has the columns ``o`` (the moment), ``n`` (rows of the family), p<i>, and the window
    ``unit_order`` over the rows of a family.
    """

    families: Families
    dialect: Dialect

    def code(self, place: int) -> Fragment:
        """The code of such an attribute, from ``columns``."""
        families, attribute = self.families, self.families.domain.attributes[place]
        if attribute.name == families.place:
            return Fragment(_place_of())
        if attribute.name == families.since:
            passed = encode_expression(attribute, Fragment("(o - bo)"), dialect=self.dialect)
            return Fragment(
                f"CASE WHEN bo IS NULL OR o = {_LAST} THEN {attribute.null_code} ELSE {passed} END"
            )
        return Fragment(f"COALESCE(b{self._followed(place)}, {attribute.null_code})")

    def columns(self, used: set[int]) -> Iterator[Fragment]:
        """What is known of the row before, NULL in a first row; nothing without an order."""
        if not self.families.order:
            return
        yield Fragment("lag(o) OVER unit_order AS bo")
        yield Fragment("row_number() OVER unit_order AS place")
        for followed in self.followed(used):
            yield Fragment(f"lag(p{followed}) OVER unit_order AS b{followed}")

    def followed(self, used: set[int]) -> list[int]:
        """The attributes of the row before that are used."""
        hidden = {name for name, _ in self.families.previous}
        names = self.families.domain.names
        return [self._followed(place) for place in sorted(used) if names[place] in hidden]

    def _followed(self, place: int) -> int:
        name = self.families.domain.names[place]
        return self.families.domain.index(dict(self.families.previous)[name])


def _place_of() -> str:
    only, first, middle, last = range(len(PLACES))
    ends = f"WHEN place = 1 THEN {first} WHEN place = n THEN {last}"
    return f"CASE WHEN n = 1 THEN {only} {ends} ELSE {middle} END"
