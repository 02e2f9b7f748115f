"""Codes of the hidden attributes of a table, as SQL over its kept rows: the row before, and what the rows of
a family decide together (``planning/families.py``).

This runs on the private side of the door. A family is the rows of one row of the table above, such as those
of a person. Each hidden attribute of a row is a function of the kept rows of its unit alone (docs/privacy.md,
"Weights"): total, in whole numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from dpsyn_sql.attributes.attribute import edge_ticks
from dpsyn_sql.attributes.types import MAX_TICK, tick_expression, tick_literal
from dpsyn_sql.planning.families import PLACES, Families
from dpsyn_sql.sqltext.fragments import Fragment

_LAST = MAX_TICK
# The moment of a row without one, after all others: such rows come last.


def moment(families: Families) -> Fragment | None:
    """The tick of a row's moment in neutral names, clipped to the bins before it is computed; rows without
    one come last. None without an order."""
    if not families.order:
        return None
    order = families.domain[families.order]
    column = Fragment(f"c{families.domain.index(order.name)}")
    ticks = edge_ticks(order)
    low, high = (max(-MAX_TICK + 1, min(tick, MAX_TICK - 1)) for tick in (ticks[0], ticks[-1] - 1))
    inside = f"LEAST(GREATEST({column}, {tick_literal(order.type, low)}), {tick_literal(order.type, high)})"
    tick = tick_expression(order.type, Fragment(inside))
    return Fragment(f"CASE WHEN {column} IS NULL THEN {_LAST} ELSE {tick} END")


@dataclass(frozen=True)
class HiddenCodes:
    """The expressions of a table's attributes in the template ``encode/codes``.

    That has the columns ``parent`` (of which row above a row is), ``o`` (the moment), ``n`` (rows of the
    family), p<i>, and the windows ``family_rows`` and ``family_order``.

    Args:
        families: of the table.
        most: the rows of a family at most.
        key: of the draw of classes, secret and of this statement alone.
    """

    families: Families
    most: int
    key: int

    def code(self, place: int) -> Fragment:
        """The code of an attribute, from the columns of the template."""
        families, attribute = self.families, self.families.domain.attributes[place]
        name = attribute.name
        if place in self._shared_places:
            return self._most_frequent(place)
        if place < families.drawn + len(families.above):
            return Fragment(f"p{place}")
        if name == families.size:
            return attribute.code("n").code
        if name == families.differing:
            return self._differing()
        if name in self._classes:
            return Fragment(f"z{self._classes[name]}")
        if name == families.place:
            return _place_of()
        if name == families.since:
            passed = attribute.code("(o - bo)").code
            return Fragment(
                f"CASE WHEN bo IS NULL OR o = {_LAST} THEN {attribute.null_code} ELSE {passed} END"
            )
        return Fragment(f"COALESCE(b{self._followed(place)}, {attribute.null_code})")

    # -- the row before ------------------------------------------------------------------------------

    def follows(self, used: set[int]) -> bool:
        """Whether one of the attributes is known from the order of rows."""
        families = self.families
        names = {families.place, families.since, *(name for name, _ in families.previous)}
        return any(families.domain.names[place] in names for place in used)

    def before(self, used: set[int]) -> Iterator[Fragment]:
        """What is known of the row before, NULL in a first row; nothing if nobody asks."""
        if not self.follows(used):
            return
        yield Fragment("lag(o) OVER family_order AS bo")
        yield Fragment("row_number() OVER family_order AS place")
        for followed in self.followed(used):
            yield Fragment(f"lag(p{followed}) OVER family_order AS b{followed}")

    def followed(self, used: set[int]) -> list[int]:
        """The attributes of the row before that are used."""
        hidden = {name for name, _ in self.families.previous}
        names = self.families.domain.names
        return [self._followed(place) for place in sorted(used) if names[place] in hidden]

    def _followed(self, place: int) -> int:
        name = self.families.domain.names[place]
        return self.families.domain.index(dict(self.families.previous)[name])

    # -- all rows of a family --------------------------------------------------------------------------

    @cached_property
    def _shared_places(self) -> list[int]:
        """The table's attributes that all rows of a unit share."""
        return [self.families.domain.index(name) for name in self.families.shared]

    @cached_property
    def _classes(self) -> dict[str, int]:
        return {group.attribute.name: number for number, group in enumerate(self.families.groups)}

    def _most_frequent(self, place: int) -> Fragment:
        """The code of the largest ``m``: of the most rows, and of these the least."""
        size = self.families.domain.attributes[place].size
        return Fragment(f"({size - 1} - m{place} % {size})")

    def _differing(self) -> Fragment:
        places = self._shared_places
        several = " + ".join(f"d{place}" for place in places)
        if len(places) == 1:
            return Fragment(several)
        which = " + ".join(f"{code} * d{place}" for code, place in enumerate(places, start=1))
        return Fragment(f"(CASE WHEN {several} > 1 THEN {len(places) + 1} ELSE {which} END)")

    def repeated(self, used: set[int]) -> Iterator[Fragment]:
        """How many rows of the unit have a row's code, of attributes that all rows share."""
        for place in self._shared_places:
            if place in used:
                yield Fragment(f"count(*) OVER (PARTITION BY parent, p{place}) AS f{place}")

    def shared(self, used: set[int]) -> Iterator[Fragment]:
        """Aggregates over all rows of a unit: its most frequent code, and whether it has several."""
        for place in self._shared_places:
            if place in used:
                size = self.families.domain.attributes[place].size
                code = f"CAST(p{place} AS BIGINT)"
                yield Fragment(f"max(f{place} * {size} + {size - 1} - {code}) OVER family_rows AS m{place}")
        differing = self.families.differing
        if differing and self.families.domain.index(differing) in used:
            for place in self._shared_places:
                ends = f"min(p{place}) OVER family_rows < max(p{place}) OVER family_rows"
                yield Fragment(f"CASE WHEN {ends} THEN 1 ELSE 0 END AS d{place}")

    def drawn(self, used: set[int]) -> Iterator[Fragment]:
        """The classes of a unit that are wanted."""
        index = self.families.domain.index
        for number, group in enumerate(self.families.groups):
            if index(group.attribute.name) in used:
                codes = {name: Fragment(f"CAST(p{index(name)} AS BIGINT)") for name in group.costs.attributes}
                drawn = group.code(codes, Fragment("parent"), self.key, rows=self.most, number=number)
                yield Fragment(f"{drawn} AS z{number}")


def _place_of() -> Fragment:
    only, first, middle, last = range(len(PLACES))
    ends = f"WHEN place = 1 THEN {first} WHEN place = n THEN {last}"
    return Fragment(f"CASE WHEN n = 1 THEN {only} {ends} ELSE {middle} END")
