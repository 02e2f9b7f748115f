"""Exact values of the attribute that orders rows, in ticks: in numpy, and as SQL text.

Exact values, in ticks, never go back. A value that has its bin for itself lies in it as any value does. One
after another value lies in what is left of its own bin, and there where the bin of the time since the row
before says, if that is a part of it. Of several rows of a unit in one bin each leaves room for those to come:
what is left for the first of m is the first 2/(m+1), so that they are spread over the bin and do not gather
at its end.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from dpsyn_sql.attributes.attribute import FILL_PIECES, Attribute, edge_ticks, fill_ticks
from dpsyn_sql.attributes.bins import drawn_tick
from dpsyn_sql.attributes.positions import tick_pieces, tick_positions
from dpsyn_sql.attributes.shape import Shape, Undiscovered
from dpsyn_sql.errors import InputError, said
from dpsyn_sql.fit.arrays import IntArray
from dpsyn_sql.source.names import fold, listed
from dpsyn_sql.sqltext.fragments import Fragment

MOST_TICK = 2**61
"""Ticks below it can be added in int64."""

NONE_BEFORE = -(2**62)
"""The tick before a first row."""


def ordering(shape: Shape, order: str) -> str:
    """The attribute that orders the rows of a unit.

    Raises:
        InputError: it is no measured column, or its values have no bins of whole numbers, dates or times.
    """
    found = [item for item in shape.measured if fold(item.name) == fold(order)]
    if not found:
        names = [item.name for item in shape.measured if _orders(item)]
        raise InputError(
            f"order={said(order)} is not a measured column of the source. "
            + (f"Rows can be ordered by {listed(names)}." if names else "No column can order rows.")
        )
    if not _orders(found[0]):
        raise InputError(
            f"order={said(order)} cannot order rows: it must be a date, a timestamp or a whole number, with "
            "bounds or bins within 2^61 of zero in the domain file. Declare it as temporal or numeric "
            "(dpsyn init writes a form)."
        )
    if found[0].name in shape.per_unit:
        raise InputError(
            f"order={said(order)} is declared per_unit: true, so it orders no rows of a unit. "
            "Take away one of the two."
        )
    if isinstance(found[0], Attribute):
        check_ticks(found[0])
    return found[0].name


def _orders(item: Attribute | Undiscovered) -> bool:
    kind = item.type
    if isinstance(item, Undiscovered):
        bounded = all(end is not None and abs(end) < MOST_TICK for end in (item.least, item.most))
        small = kind.high - kind.low < 2**33 or kind.temporal or bounded
        if item.hierarchy is not None or not item.typed or not small:
            return False
    return item.kind != "categorical" and kind.discrete and kind.family != "time" and kind.scale == 0


def check_ticks(attribute: Attribute) -> None:
    """Whether rows can be ordered by an attribute; to be asked before the debit.

    Raises:
        InputError: it has no bins of whole ticks in int64: floats, text, HUGEINT beyond 2^61.
    """
    if attribute.kind == "categorical" or not attribute.type.discrete:
        raise InputError(
            f"Rows cannot be ordered by column {attribute.name!r}: it takes bins of whole numbers, decimals, "
            "dates, times or timestamps."
        )
    edges = edge_ticks(attribute)
    if max(abs(edges[0]), abs(edges[-1])) > MOST_TICK:
        raise InputError(f"Rows cannot be ordered by column {attribute.name!r}: its values are too large.")


@dataclass(frozen=True, slots=True)
class Ticks:
    """Draws values of the attribute ``order``; ``since``: its difference to the row before, in bins of ticks
    of ``order``'s type, with NULL as its last code. All arrays below are int64 (n,)."""

    order: Attribute
    since: Attribute | None = None

    @property
    def step(self) -> int:
        """Values are whole multiples of so many ticks."""
        return self.order.granularity if isinstance(self.order.granularity, int) else 1

    def alone(self, codes: IntArray, generator: np.random.Generator) -> IntArray:
        """Values of codes that are bins, of rows that have their bins for themselves."""
        pieces = tick_pieces(self.order)
        positions = tick_positions(pieces.pieces, self.step)
        number = np.array(pieces.starts, np.int64)[codes]
        chosen = generator.integers(0, FILL_PIECES, codes.size)
        number = number + np.where(number < pieces.single, 0, chosen)
        counts = np.array(positions.counts, np.int64)[number]
        return np.asarray(
            np.array(positions.lows, np.int64)[number] + self.step * generator.integers(0, counts)
        )

    def draw(
        self,
        codes: IntArray,
        before: IntArray,
        since: IntArray | None,
        left: IntArray,
        generator: np.random.Generator,
    ) -> IntArray:
        """Values of codes that are bins, none below that of the value ``before`` (``NONE_BEFORE`` without
        one). ``since``: codes. ``left``: rows of the unit from this one on that are in its bin, 1 or more."""
        start, high = np.array(supports(self.order), np.int64)[codes].T
        floor = np.maximum(before, start)
        first, number = multiples(floor, high, self.step)
        number = first_part(number, left)
        values, undrawn = np.empty(codes.size, np.int64), np.ones(codes.size, np.bool_)
        if since is not None and self.since is not None:
            spans = np.array(edge_ticks(self.since), np.int64)
            known = np.minimum(since, spans.size - 2)
            most = np.minimum(first + self.step * number, before + spans[known + 1])
            least, fitting = multiples(np.maximum(start, before + spans[known]), most, self.step)
            inside = (fitting > 0) & (since < spans.size - 1) & (before > NONE_BEFORE)
            values[inside] = least[inside] + self.step * generator.integers(0, fitting[inside])
            undrawn = ~inside
        alone = undrawn & (before < start) & ((left == 1) | (number == 0))
        values[alone] = self.alone(codes[alone], generator)
        rest = undrawn & ~alone
        drawn = first[rest] + self.step * generator.integers(0, np.maximum(number[rest], 1))
        values[rest] = np.where(number[rest] > 0, drawn, floor[rest])
        return values

    def expression(self, first: str, bits: str, bits_alone: str, since: str) -> Fragment:
        """As ``draw``, as SQL: the tick of a row from its code ``own``, the rows left ``in_bin``, and the
        ``tick`` of the row before, which NULL keeps.

        Args:
            first: whether the row is the first one of its unit.
            bits: 64 random bits of the row.
            bits_alone: others, of values of rows that have their bins for themselves.
            since: the code of the time since the row before; empty without one.
        """
        start, high = (chosen(ends, "own") for ends in zip(*supports(self.order), strict=True))
        alone = drawn_tick(self.order, Fragment("own"), Fragment(bits_alone))
        floor = f"(CASE WHEN {first} THEN {start} ELSE greatest({start}, tick) END)"
        lowest, number = self._multiples(floor, high)
        rest = f"({number}) % (in_bin + 1)"
        places = f"(2 * (({number}) // (in_bin + 1)) + (2 * ({rest}) + in_bin) // (in_bin + 1))"
        end = f"({lowest} + {self.step} * {places})"
        drawn = (
            f"CASE WHEN ({first} OR tick < {start}) AND (in_bin = 1 OR {number} = 0) "
            f"THEN {alone} ELSE coalesce({self._between(floor, end, bits)}, {floor}) END"
        )
        if self.since is not None:
            spans = edge_ticks(self.since)
            least = f"greatest({start}, tick + {chosen(spans[:-1], since)})"
            most = f"least({end}, tick + {chosen(spans[1:], since)})"
            unknown = f"{first} OR {since} >= {len(spans) - 1}"
            inside = f"coalesce({self._between(least, most, bits)}, {drawn})"
            drawn = f"CASE WHEN {unknown} THEN {drawn} ELSE {inside} END"
        return Fragment(f"CAST(CASE WHEN own >= {self.order.regular} THEN tick ELSE {drawn} END AS BIGINT)")

    def _multiples(self, low: str, high: str) -> tuple[str, str]:
        """As ``multiples``."""
        step = self.step
        first = f"({low})" if step == 1 else f"({low} + ((-({low})) % {step} + {step}) % {step})"
        return first, f"greatest((({high}) - {first} + {step - 1}) // {step}, 0)"

    def _between(self, low: str, high: str, bits: str) -> str:
        """A multiple from ``low`` on and below ``high``; NULL if there is none."""
        first, number = self._multiples(low, high)
        return f"CASE WHEN {number} > 0 THEN {first} + {number_below(number, bits)} * {self.step} END"


def supports(order: Attribute) -> list[tuple[int, int]]:
    """Where the values of each bin lie, from a tick on and below another."""
    bins = fill_ticks(order) or tuple(pairwise(edge_ticks(order)))
    return [(cuts[0], max(cuts[-1], cuts[0] + 1)) for cuts in bins]


def first_part(number: IntArray, left: IntArray) -> IntArray:
    """How many of ``number`` places the first of ``left`` rows may have: 2/(left+1) of them, rounded up."""
    whole, rest = np.divmod(number, left + 1)
    return np.asarray(2 * whole - (-2 * rest) // (left + 1))


def multiples(low: IntArray, high: IntArray, step: int) -> tuple[IntArray, IntArray]:
    """The first multiple of ``step`` from ``low`` on, and how many there are below ``high``, at least 0."""
    first = -(-low // step) * step
    return first, np.maximum(-((first - high) // step), 0)


def number_below(number: str, bits: str) -> str:
    """SQL: a BIGINT below ``number``, of 64 random bits; 0 if that is 0."""
    return f"CAST((CAST({bits} AS UHUGEINT) * CAST({number} AS UHUGEINT)) >> 64 AS BIGINT)"


def chosen(values: Sequence[int] | IntArray, code: str) -> str:
    """SQL: that of some whole numbers which a code says."""
    return f"({array_of(map(str, map(int, values)), 'BIGINT')})[{code} + 1]"


def array_of(values: Iterable[str], kind: str) -> str:
    """SQL: a list of expressions of a type."""
    return f"CAST([{', '.join(values)}] AS {kind}[])"


def whole(expression: str) -> str:
    """SQL: a number as BIGINT."""
    return f"CAST({expression} AS BIGINT)"
