"""The values of a piece of a bin: their number, the first, and the step between them.

A bin is one piece, or as many pieces of equal probability as its fill says. Values are whole multiples of
a granularity, counted from its natural origin (zero, 1970-01-01, midnight). A piece without a multiple gives
the nearest one inside its bin, and if there is none, the lower edge of the piece. No value is outside its
bin.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Generic, TypeVar

import numpy as np

from dpsyn_sql.attributes.attribute import FILL_PIECES, Attribute, edge_ticks, fill_ticks
from dpsyn_sql.attributes.types import SqlType, from_tick
from dpsyn_sql.errors import InternalError

_EXACT = 2**53  # integers up to here are doubles, and so is the nearest double of such a decimal
_MOST_DIGITS = 22  # powers of ten up to here are doubles
_MIDDLE_OF_MONTH = 15

_N = TypeVar("_N", bound=float)


@dataclass(frozen=True, slots=True)
class Piece(Generic[_N]):
    """The values low <= v < high, or low alone if it equals high; ``bin`` holds the edges of its bin."""

    low: _N
    high: _N
    bin: tuple[_N, _N]


@dataclass(frozen=True, slots=True)
class Pieces(Generic[_N]):
    """The pieces of all bins. Those of bin i begin at number ``starts[i]``.

    Bins of one piece come first, with the numbers below ``single``, then bins of ``FILL_PIECES`` pieces. Both
    keep the order of the bins.
    """

    pieces: tuple[Piece[_N], ...]
    starts: tuple[int, ...]
    single: int


@dataclass(frozen=True, slots=True)
class Positions:
    """Value j of piece i is ``lows[i] + j * step`` for j in 0..counts[i]-1, over 10**scale.

    ``counts`` of months and of floats may be 0 (the lower edge alone) or -1 (too many multiples).
    """

    lows: Sequence[int]
    counts: Sequence[int]
    step: int
    scale: int = 0


def tick_pieces(attribute: Attribute) -> Pieces[int]:
    """The pieces of a discrete attribute, in ticks."""
    return _pieces(edge_ticks(attribute), fill_ticks(attribute))


def float_pieces(attribute: Attribute) -> Pieces[float]:
    """The pieces of a FLOAT or DOUBLE attribute."""
    edges = [edge for edge in attribute.edges if isinstance(edge, float)]
    fill = [[cut for cut in cuts if isinstance(cut, float)] for cuts in attribute.fill]
    return _pieces(edges, fill)


def _pieces(edges: Sequence[_N], fill: Sequence[Sequence[_N]]) -> Pieces[_N]:
    bins = list(pairwise(edges))
    cuts = fill or bins
    single: list[Piece[_N]] = []
    several: list[Piece[_N]] = []
    alone = sum(len(bin_cuts) <= 2 for bin_cuts in cuts)
    starts = []
    for bin_cuts, bin_ in zip(cuts, bins, strict=True):
        if len(bin_cuts) <= 2:
            starts.append(len(single))
            single.append(Piece(bin_cuts[0], bin_cuts[-1], bin_))
        else:
            starts.append(alone + len(several))
            several += [Piece(low, high, bin_) for low, high in pairwise(bin_cuts)]
    if several and len(several) != FILL_PIECES * (len(cuts) - alone):
        raise InternalError("a bin has another number of pieces")
    return Pieces((*single, *several), tuple(starts), alone)


def tick_positions(pieces: Sequence[Piece[int]], step: int) -> Positions:
    """Multiples of ``step`` ticks inside each piece; every piece has a value."""
    lows, counts = [], []
    for piece in pieces:
        first, count = _multiples(piece.low, piece.high, step)
        if piece.low == piece.high or count == 0:
            near = None if piece.low == piece.high else _near(piece, piece.bin, step)
            first, count = piece.low if near is None else near, 1
        lows.append(first)
        counts.append(count)
    return Positions(lows, counts, step)


def _multiples(low: int, high: int, step: int) -> tuple[int, int]:
    """The first multiple of ``step`` from ``low`` on, and how many there are below ``high``."""
    first = -(-low // step) * step
    return first, max(0, -((first - high) // step))


def _near(piece: Piece[int], bin_: tuple[int, int], step: int) -> int | None:
    """The multiple of ``step`` nearest to a piece that has none, if its bin has one; the lower one of two."""
    below, above = piece.low // step * step, -(-piece.high // step) * step
    inside = [multiple for multiple in (below, above) if bin_[0] <= multiple < bin_[1]]
    return min(
        inside, key=lambda multiple: max(piece.low - multiple, multiple - piece.high + 1), default=None
    )


def month_positions(kind: SqlType, pieces: Sequence[Piece[int]]) -> Positions:
    """First days of months inside each piece, as months since 1970-01; 0 of them for a piece of zero width
    and where the bin has none."""
    lows, counts = [], []
    for piece in pieces:
        if piece.low == piece.high:
            first, count = 0, 0
        else:
            first, count = _months(kind, piece.low, piece.high)
            around, several = _months(kind, *piece.bin)
            if count == 0 and several:
                first, count = _near_month(kind, piece, first, around, several), 1
        lows.append(first)
        counts.append(count)
    return Positions(lows, counts, 1)


def _months(kind: SqlType, low: int, high: int) -> tuple[int, int]:
    """The first month that begins in low <= t < high, and how many do."""
    number, exact = _month_of(kind, low)
    first = number + (not exact)
    last, _ = _month_of(kind, high - 1)
    return first, max(0, last - first + 1)


def _near_month(kind: SqlType, piece: Piece[int], after: int, around: int, several: int) -> int:
    """Of the months around a piece that holds the start of none, the one nearest in days that begins in the
    bin."""
    inside = [month for month in (after - 1, after) if around <= month < around + several]
    if len(inside) < 2:
        return inside[0]
    middle = from_tick(kind, (piece.low + piece.high) // 2)
    return after if isinstance(middle, date) and middle.day > _MIDDLE_OF_MONTH else after - 1


def _month_of(kind: SqlType, tick: int) -> tuple[int, bool]:
    """The month of a tick, and whether the tick is its start."""
    moment = from_tick(kind, tick)
    if not isinstance(moment, date):
        raise InternalError(f"{kind.text} has no months")
    midnight = not isinstance(moment, datetime) or moment.time() == datetime.min.time()
    return (moment.year - 1970) * 12 + moment.month - 1, moment.day == 1 and midnight


def float_positions(
    kind: SqlType, pieces: Sequence[Piece[float]], top: float, granularity: Decimal
) -> Positions:
    """Multiples k * step / 10**scale inside each piece, after rounding to the type; steps that the type can
    hardly tell apart count as too many.

    ``top``: the upper edge of the last bin, which holds it.
    """
    digits = -int(granularity.as_tuple().exponent)
    scale = max(0, digits)
    step = int(granularity.scaleb(scale))
    lows, counts = [], []
    for piece in pieces:
        first, count = _decimal_multiples(kind, piece.low, piece.high, top, step, scale)
        if piece.low == piece.high:
            count = 0
        elif count == 0:
            around, several = _decimal_multiples(kind, *piece.bin, top, step, scale)
            if several > 0:
                # Rounding aside, the first multiple from the piece on is above it, the one before it below.
                inside = [number for number in (first - 1, first) if around <= number < around + several]
                apart = [_distance(piece, _value(kind, number * step, scale)) for number in inside]
                first, count = inside[apart.index(min(apart))], 1
        lows.append(first)
        counts.append(count)
    return Positions(lows, counts, step, scale)


def _distance(piece: Piece[float], value: float) -> float:
    return max(piece.low - value, value - piece.high)


def _decimal_multiples(
    kind: SqlType, low: float, high: float, top: float, step: int, scale: int
) -> tuple[int, int]:
    """The first multiple from ``low`` on, and how many there are below ``high`` (at most ``top`` if it is
    that); -1: too many."""
    first, last = (
        _nearest(kind, Fraction(edge) * 10**scale / step, step, scale, edge, up=up)
        for edge, up in ((low, True), (high, False))
    )
    if high < top and _value(kind, last * step, scale) >= high:
        last -= 1
    fits = max(abs(first), abs(last)) * step < _EXACT and scale <= _MOST_DIGITS
    fits = fits and step / 10**scale >= 2 * max(_spacing(kind, low), _spacing(kind, high))
    return (first, max(0, last - first + 1)) if fits else (0, -1)


def _nearest(kind: SqlType, exact: Fraction, step: int, scale: int, edge: float, *, up: bool) -> int:
    """The first multiple from an edge, upwards or downwards; rounding may bring one more inside."""
    number = math.ceil(exact) if up else math.floor(exact)
    neighbour = number - 1 if up else number + 1
    if abs(neighbour) * step >= _EXACT:
        return number
    value = _value(kind, neighbour * step, scale)
    return neighbour if (value >= edge if up else value <= edge) else number


def _spacing(kind: SqlType, edge: float) -> float:
    """From one value of the type to the next, near an edge."""
    return float(np.spacing(np.float32(abs(edge)))) if kind.text == "FLOAT" else math.ulp(edge)


def _value(kind: SqlType, units: int, scale: int) -> float:
    if abs(units) >= _EXACT:
        return math.inf if units > 0 else -math.inf
    value = units / 10**scale
    return float(np.float32(value)) if kind.text == "FLOAT" else value
