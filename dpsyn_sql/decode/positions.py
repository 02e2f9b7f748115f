"""The values of a bin: their number, the first, and the step between them.

Values are whole multiples of a granularity, counted from its natural origin (zero, 1970-01-01,
midnight). A bin never gives a value outside its own edges: a bin without a multiple gives its lower edge.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

import numpy as np

from dpsyn_sql.domain.types import SqlType, from_tick
from dpsyn_sql.errors import InternalError

_EXACT = 2**53  # integers up to here are doubles, and so is the nearest double of such a decimal
_MOST_DIGITS = 22  # powers of ten up to here are doubles


@dataclass(frozen=True, slots=True)
class Positions:
    """Value j of bin i is ``lows[i] + j * step`` for j in 0..counts[i]-1, over 10**scale.

    ``counts`` of months and of floats may be 0 (no multiple in the bin) or -1 (too many).
    """

    lows: Sequence[int]
    counts: Sequence[int]
    step: int
    scale: int = 0


def tick_positions(ticks: Sequence[int], step: int) -> Positions:
    """Multiples of ``step`` ticks inside each bin; a bin without one holds its first tick."""
    lows, counts = [], []
    for low, high in pairwise(ticks):
        first = -(-low // step) * step
        count = max(0, -((first - high) // step))
        lows.append(first if count else low)
        counts.append(count or 1)
    return Positions(lows, counts, step)


def month_positions(kind: SqlType, ticks: Sequence[int]) -> Positions:
    """First days of months inside each bin, as months since 1970-01."""
    lows, counts = [], []
    for low, high in pairwise(ticks):
        number, exact = _month_of(kind, low)
        first = number + (not exact)
        last, _ = _month_of(kind, high - 1)
        lows.append(first)
        counts.append(max(0, last - first + 1))
    return Positions(lows, counts, 1)


def _month_of(kind: SqlType, tick: int) -> tuple[int, bool]:
    """The month of a tick, and whether the tick is its start."""
    moment = from_tick(kind, tick)
    if not isinstance(moment, date):
        raise InternalError(f"{kind.text} has no months")
    midnight = not isinstance(moment, datetime) or moment.time() == datetime.min.time()
    return (moment.year - 1970) * 12 + moment.month - 1, moment.day == 1 and midnight


def float_positions(kind: SqlType, edges: Sequence[float], granularity: Decimal) -> Positions:
    """Multiples k * step / 10**scale inside each bin, after rounding to the type; steps that the type can
    hardly tell apart count as too many."""
    digits = -int(granularity.as_tuple().exponent)
    scale = max(0, digits)
    step = int(granularity.scaleb(scale))
    lows, counts = [], []
    for bin_, (low, high) in enumerate(pairwise(edges)):
        first, last = (
            _nearest(kind, Fraction(edge) * 10**scale / step, step, scale, edge, up=up)
            for edge, up in ((low, True), (high, False))
        )
        if bin_ < len(edges) - 2 and _value(kind, last * step, scale) >= high:
            last -= 1
        fits = max(abs(first), abs(last)) * step < _EXACT and scale <= _MOST_DIGITS
        fits = fits and step / 10**scale >= 2 * max(_spacing(kind, low), _spacing(kind, high))
        lows.append(first if fits else 0)
        counts.append(max(0, last - first + 1) if fits else -1)
    return Positions(lows, counts, step, scale)


def _nearest(kind: SqlType, exact: Fraction, step: int, scale: int, edge: float, *, up: bool) -> int:
    """The first multiple from an edge, upwards or downwards; rounding may bring one more inside."""
    number = math.ceil(exact) if up else math.floor(exact)
    beside = number - 1 if up else number + 1
    if abs(beside) * step >= _EXACT:
        return number
    value = _value(kind, beside * step, scale)
    return beside if (value >= edge if up else value <= edge) else number


def _spacing(kind: SqlType, edge: float) -> float:
    """From one value of the type to the next, near an edge."""
    return float(np.spacing(np.float32(abs(edge)))) if kind.text == "FLOAT" else math.ulp(edge)


def _value(kind: SqlType, units: int, scale: int) -> float:
    if abs(units) >= _EXACT:
        return math.inf if units > 0 else -math.inf
    value = units / 10**scale
    return float(np.float32(value)) if kind.text == "FLOAT" else value
