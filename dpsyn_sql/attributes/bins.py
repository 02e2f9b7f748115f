"""Columns of bins: the code of a value is the bin that it falls into, the value of a code lies inside its
bin.

Values are compared and clipped before anything is computed from them (``x - lower`` overflows at the ends of
BIGINT). Bins of one value are found by clipping, short ranges by a constant list, everything else by a
balanced tree of comparisons, or by a join where the cells are so many that planning the tree takes longest.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import Field

from dpsyn_sql.attributes.attribute import (
    FILL_PIECES,
    Attribute,
    Coded,
    Valued,
    edge_ticks,
    named_value,
    or_missing,
)
from dpsyn_sql.attributes.cuts import Cuts, binned_attribute, has_unit_bins, limits_of
from dpsyn_sql.attributes.fields import BinCount, Granularity, Moment, Number
from dpsyn_sql.attributes.positions import (
    Pieces,
    Positions,
    float_pieces,
    float_positions,
    month_positions,
    tick_pieces,
    tick_positions,
)
from dpsyn_sql.attributes.shape import Undiscovered
from dpsyn_sql.attributes.spec import ListedSpec, Terms, TypedColumn
from dpsyn_sql.attributes.types import (
    LOOKUP,
    SqlType,
    clipped,
    edge_text,
    from_tick,
    from_ticks,
    listed_number,
    listed_value,
    supported_type,
    tick_literal,
)
from dpsyn_sql.sqltext.fragments import Fragment, by_cuts, epoch, last_start, value_at

_FEW_CUTS = 3  # a tree of so few comparisons is as fast as a list
_COMPARED = 512  # bins; a tree of more comparisons is slower than a join, to plan and to run
_NARROW = 2**24  # widths up to here are drawn from 40 bits without leaving UBIGINT


# -- declarations ------------------------------------------------------------------------------------


class BinsSpec(ListedSpec):
    """A declaration of bounds or of edges."""

    type: str
    lower: Any = None
    upper: Any = None
    bins: BinCount | None = None
    edges: Any = None
    granularity: Granularity | None = None

    @property
    def cuts(self) -> Cuts:
        """Its bounds and edges."""
        return Cuts(self.lower, self.upper, self.bins, tuple(self.edges or ()))

    def checked(self, folder: Path) -> Self:
        if self.edges is not None and (self.lower, self.upper, self.bins) != (None, None, None):
            raise ValueError("write either edges, or lower, upper and bins")
        if self.edges is None and (self.lower is None or self.upper is None):
            raise ValueError("write lower and upper, or edges")
        return self

    def implied_types(self) -> tuple[SqlType, ...]:
        return (self.cuts.implied_type(),)

    def attribute(self, name: str, columns: Sequence[TypedColumn], terms: Terms) -> Attribute | Undiscovered:
        """Bounds without bins: these are learnt, unless every value gets one."""
        ((column, kind),) = columns
        how: Literal["numeric", "temporal"] = "numeric" if self.type == "numeric" else "temporal"
        nullable = self.nullable and not column.not_null
        declared = binned_attribute(
            column, kind, how, self.cuts, nullable=nullable, granularity=self.granularity
        )
        if not terms.discover or self.bins is not None or self.edges or has_unit_bins(declared):
            return declared
        low, high = limits_of(declared)
        return Undiscovered(
            column.name,
            kind.text,
            how,
            nullable,
            granularity=declared.granularity,
            least=low,
            most=high,
            clipped=True,
        )


class NumericSpec(BinsSpec):
    """A numeric column: lower and upper bound (both included), whose bins are learnt or counted, or edges."""

    type: Literal["numeric"]
    lower: Number | None = None
    upper: Number | None = None
    edges: Annotated[list[Number], Field(min_length=2)] | None = None


class TemporalSpec(BinsSpec):
    """A date or time column: lower and upper bound (both included), whose bins are learnt or counted, or
    edges."""

    type: Literal["temporal"]
    lower: Moment | None = None
    upper: Moment | None = None
    edges: Annotated[list[Moment], Field(min_length=2)] | None = None


SPECS = {"numeric": NumericSpec, "temporal": TemporalSpec}


# -- codes -------------------------------------------------------------------------------------------


def code(attribute: Attribute, slot: str, decimal: str, *, joined: bool) -> Coded:
    """As ``Attribute.code``."""
    column, joins = Fragment(slot), tuple[Fragment, ...]()
    if joined and attribute.regular > _COMPARED:
        joins = (last_start(_starts(attribute), attribute.regular - 1, f"l{slot}", slot),)
        inside = f"COALESCE(l{slot}.code + 1, 0)"
    else:
        inside = _bin_of(attribute, column)
    return Coded(named_value(attribute, slot, decimal), or_missing(attribute, column, inside), joins=joins)


def _starts(attribute: Attribute) -> str:
    """The least value of each bin but the first, as a list of the column's type: one literal, because a
    statement of thousands is slow to plan."""
    kind = attribute.type
    edges = (
        attribute.edges
        if kind.family == "float"
        else [from_tick(kind, tick) for tick in edge_ticks(attribute)]
    )
    return f"CAST('[{', '.join(map(edge_text, edges[1:-1]))}]' AS {kind.sql}[])"


def _bin_of(attribute: Attribute, column: Fragment) -> str:
    kind, codes = attribute.type, [str(code) for code in range(attribute.regular)]
    if kind.family == "float":
        cuts = [_float_literal(kind, edge) for edge in attribute.edges[1:-1] if isinstance(edge, float)]
        return by_cuts(column, cuts, codes)
    ticks = edge_ticks(attribute)
    if kind.family in ("integer", "date"):
        steps = clipped(kind, column, ticks)
        if ticks[-1] - ticks[0] == attribute.regular:
            return steps
        if len(ticks) - 2 > _FEW_CUTS and ticks[-1] - ticks[0] <= LOOKUP:
            return value_at([bisect_right(ticks, tick) - 1 for tick in range(ticks[0], ticks[-1])], steps)
    return by_cuts(column, [tick_literal(kind, tick) for tick in ticks[1:-1]], codes)


def _float_literal(kind: SqlType, value: float) -> Fragment:
    return Fragment(f"CAST('{value!r}' AS {kind.sql})")


# -- values ------------------------------------------------------------------------------------------


def value(attribute: Attribute, code: Fragment, bits: Fragment, slot: str) -> Valued:
    """As ``Attribute.value``: even over the pieces of the bin, in whole steps of the granularity."""
    return Valued({attribute.name: _value(attribute, code, bits)})


def _value(attribute: Attribute, code: Fragment, bits: Fragment) -> Fragment:
    kind = attribute.type
    if kind.family == "float":
        return _float_value(attribute, kind, code, bits)
    pieces = tick_pieces(attribute)
    number = _number(pieces, code, bits)
    if attribute.granularity == "month":
        return from_ticks(kind, _month(kind, pieces, number, bits))
    positions = tick_positions(pieces.pieces, _step(attribute))
    if max(positions.counts) == 1:
        return listed_value([tick_literal(kind, tick) for tick in positions.lows], kind, number)
    return from_ticks(kind, _position(positions, number, bits))


def _step(attribute: Attribute) -> int:
    return attribute.granularity if isinstance(attribute.granularity, int) else 1


def drawn_tick(attribute: Attribute, code: Fragment, bits: Fragment) -> Fragment:
    """The tick (BIGINT) of a code that is a bin of whole ticks, other than months; arguments as of
    ``Attribute.value``."""
    pieces = tick_pieces(attribute)
    position = _position(tick_positions(pieces.pieces, _step(attribute)), _number(pieces, code, bits), bits)
    return Fragment(f"CAST({position} AS BIGINT)")


def value_of_tick(attribute: Attribute, code: Fragment, tick: Fragment) -> Fragment:
    """The value of a tick (BIGINT) in the exact type of a binned attribute of a discrete type; NULL for the
    code of NULL."""
    value = from_ticks(attribute.type, tick)
    return Fragment(f"CASE WHEN {code} < {attribute.regular} THEN {value} END")


def _number(pieces: Pieces[int] | Pieces[float], code: Fragment, bits: Fragment) -> Fragment:
    """The number of the piece that a row of a code falls into; NULL or past the last one for other codes."""
    if pieces.single == len(pieces.starts):
        return code
    chosen = f"CAST({bits} & {FILL_PIECES - 1} AS BIGINT)"
    if pieces.single == 0:
        return Fragment(f"(CAST({code} AS BIGINT) * {FILL_PIECES} + {chosen})")
    start = listed_number(pieces.starts, "BIGINT", code)
    return Fragment(f"({start} + CASE WHEN {start} < {pieces.single} THEN 0 ELSE {chosen} END)")


def _float_value(attribute: Attribute, kind: SqlType, code: Fragment, bits: Fragment) -> Fragment:
    """low * (1 - u) + high * u: it cannot overflow as high - low can, and stays below high."""
    pieces = float_pieces(attribute)
    number, doubles = _number(pieces, code, bits), supported_type("DOUBLE", attribute.name)
    # The list is cast as a whole where it is long; each number is read from its text either way.
    spelled = "'{}'" if attribute.fill else "CAST('{}' AS DOUBLE)"
    low, high, top = (
        listed_value([spelled.format(repr(value)) for value in values], doubles, number)
        for values in (
            [piece.low for piece in pieces.pieces],
            [piece.high for piece in pieces.pieces],
            [_previous(kind, piece.high) for piece in pieces.pieces],
        )
    )
    u = f"(CAST({bits} >> 11 AS DOUBLE) * CAST('{2.0**-53!r}' AS DOUBLE))"
    drawn = f"GREATEST({low}, LEAST({low} * (1 - {u}) + {high} * {u}, {top}))"
    if isinstance(attribute.granularity, Decimal):
        last = max(piece.bin[1] for piece in pieces.pieces)
        positions = float_positions(kind, pieces.pieces, last, attribute.granularity)
        drawn = _granular(positions, drawn, low, number, bits)
    # GREATEST and LEAST skip NULL, so NULL is decided by the code.
    return Fragment(f"CAST(CASE WHEN {code} < {attribute.regular} THEN {drawn} END AS {kind.sql})")


def _granular(positions: Positions, drawn: str, low: str, number: Fragment, bits: Fragment) -> str:
    """A whole multiple if the piece has one, otherwise its lower edge; any position if the multiples are
    too close to differ."""
    if not any(positions.counts):
        return drawn
    offset = _position(Positions(positions.lows, [max(1, n) for n in positions.counts], 1), number, bits)
    value = f"CAST({offset} * {positions.step} AS DOUBLE) / CAST('{10.0**positions.scale!r}' AS DOUBLE)"
    edges = [place for place, n in enumerate(positions.counts) if n == 0]
    finer = [place for place, n in enumerate(positions.counts) if n < 0]
    return _cases(number, [(edges, low), (finer, drawn)], value)


def _cases(number: Fragment, cases: Sequence[tuple[Sequence[int], str]], otherwise: str) -> str:
    """A text for each list of pieces, and one for all other pieces."""
    written = [
        f"WHEN {number} IN ({', '.join(map(str, places))}) THEN {text}" for places, text in cases if places
    ]
    return f"CASE {' '.join(written)} ELSE {otherwise} END" if written else otherwise


def _previous(kind: SqlType, edge: float) -> float:
    if kind.text == "FLOAT":
        return float(np.nextafter(np.float32(edge), np.float32(-np.inf)))
    return math.nextafter(edge, -math.inf)


def _month(kind: SqlType, pieces: Pieces[int], number: Fragment, bits: Fragment) -> str:
    """The tick of a first day of a month in the piece; the piece's first tick if it has no such day."""
    months = month_positions(kind, pieces.pieces)
    month = _position(Positions(months.lows, [max(1, n) for n in months.counts], 1), number, bits)
    day = f"(DATE '1970-01-01' + to_months(CAST({month} AS INTEGER)))"
    if kind.family == "date":
        tick = f"CAST(CAST({day} AS DATE) - DATE '1970-01-01' AS BIGINT)"
    else:
        tick = f"{epoch(day)} // {kind.unit}"
    firsts = [place for place, n in enumerate(months.counts) if n == 0]
    return _cases(
        number, [(firsts, listed_number([one.low for one in pieces.pieces], "BIGINT", number))], tick
    )


def _position(positions: Positions, code: Fragment, bits: Fragment) -> str:
    """low + step * floor(bits * count / 2**64) in integers that hold every intermediate result."""
    lows, counts, step = positions.lows, positions.counts, positions.step
    highest = max(low + count * step for low, count in zip(lows, counts, strict=True))
    widest = max(counts) * step
    if max(counts) <= _NARROW and min(lows) > -(2**62) and highest < 2**62:
        count = listed_number(counts, "UBIGINT", code)
        offset = f"CAST((({bits} >> 24) * {count}) >> 40 AS BIGINT)"
        return f"({listed_number(lows, 'BIGINT', code)} + {offset}{f' * {step}' if step > 1 else ''})"
    offset = _wide_offset(counts, code, bits)
    if step > 1:
        offset = f"({offset} * CAST('{step}' AS UHUGEINT))"
    if min(lows) >= 0:
        return f"({listed_number(lows, 'UHUGEINT', code)} + {offset})"
    low = listed_number(lows, "HUGEINT", code)
    if widest < 2**127:
        return f"({low} + CAST({offset} AS HUGEINT))"
    # The offset may exceed HUGEINT. Its halves do not, and no partial sum exceeds the value.
    return f"({low} + CAST({offset} >> 1 AS HUGEINT) + CAST({offset} - ({offset} >> 1) AS HUGEINT))"


def _wide_offset(widths: Sequence[int], code: Fragment, bits: Fragment) -> str:
    """bits * width / 2**64 with width = quotient * 2**64 + rest, each product below 2**128."""
    wide = f"CAST({bits} AS UHUGEINT)"
    rest = listed_number([width % 2**64 for width in widths], "UHUGEINT", code)
    offset = f"(({wide} * {rest}) >> 64)"
    if max(widths) >= 2**64:
        quotient = listed_number([width // 2**64 for width in widths], "UHUGEINT", code)
        offset = f"({wide} * {quotient} + {offset})"
    return offset
