"""Fixed public grids: the first question about the range of a column of numbers or times.

A grid covers all values of its SQL type, or those within public bounds, and depends on nothing else. Numbers
get powers of two and their negatives, with a cell for zero alone (a frequent point mass); times get blocks of
512 days in the centuries of most tables, and longer and longer blocks outside. Cuts are ticks for discrete
types, and exact doubles as fractions otherwise; cell i is [cuts[i], cuts[i + 1]).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from datetime import date
from fractions import Fraction
from functools import lru_cache
from typing import Literal

import numpy as np

from dpsyn_sql.attributes.attribute import Attribute, Granularity
from dpsyn_sql.attributes.shape import Undiscovered
from dpsyn_sql.attributes.types import Edge, SqlType, from_tick, supported_type
from dpsyn_sql.errors import InternalError

Cuts = tuple[Fraction, ...]

_FLOAT_EXPONENTS = (-960, -480, -240, -120, -60, -30, *range(-20, 128), 256, 512)
_BLOCK = 512  # days
_CENTURIES = (-264, 241)  # blocks from 1599-12 to 2307-11
_HOUR = 3_600_000_000  # microseconds


def grid_cuts(kind: SqlType, least: Fraction | None = None, most: Fraction | None = None) -> Cuts:
    """The cuts of a type's grid, ascending, within the bounds ``least`` and ``most`` (both included).

    Raises:
        InternalError: the type has no grid, or there is nothing between the bounds.
    """
    cuts: Iterable[int | Fraction]
    if kind.family == "float":
        cuts = _float_cuts(kind)
    elif kind.family in ("integer", "decimal"):
        below, above = _rising(-kind.low), _rising(kind.high)
        cuts = {kind.low, *(1 - cut for cut in below), *above, kind.high + 1}
    elif kind.family in ("date", "timestamp"):
        cuts = _day_cuts(kind)
    elif kind.family == "time":
        cuts = range(0, 25 * _HOUR, _HOUR)
    else:
        raise InternalError(f"no grid for type {kind.family}")
    return _within(kind, sorted(Fraction(cut) for cut in cuts), least, most)


_SMALL = (-5, 20)
# Whole numbers with cells of their own.

_FINE, _FINE_UP_TO, _COARSE, _LAST = 8, 31, 4, 45
# Cells an octave up to 2^31 (columns of years, heights and prices are narrow), and beyond it up to 2^45;
# below zero there are fewer values.

_SMALLEST_OCTAVE = -10
# Below 2^-10 all is one cell.

EQUAL_BINS = 16
"""Parts between stated bounds that are told apart: octaves alone have two cells from 1830 to 2010."""

_MONTHS = (1900, 2100)


def mixed_cuts(kind: SqlType, least: Fraction | None = None, most: Fraction | None = None) -> Cuts:
    """The cuts of the one grid that a column of a small table is counted on, within bounds.

    Numbers: every small whole number is a cell of its own, whatever the type; between and beyond them parts
    of octaves, and between two bounds equal parts too. Dates and moments: months of two centuries. Times of a
    day: hours.

    Raises:
        InternalError: as ``grid_cuts``.
    """
    if kind.family == "time":
        return grid_cuts(kind, least, most)
    ends = grid_cuts(kind)
    if kind.temporal:
        months = {Fraction(_first_of_month(year, month) * kind.day) for year, month in _all_months()}
        inside = {cut for cut in months if ends[0] < cut < ends[-1]}
        first, last = min(inside), max(inside)
        beyond = {cut for cut in ends if cut < first or cut > last}
        return _within(kind, sorted(inside | beyond), least, most)
    unit = Fraction(10**kind.scale)
    single = {Fraction(value) * unit for value in range(_SMALL[0], _SMALL[1] + 1)}
    above, below = _parts_of_octaves(_FINE), _parts_of_octaves(_COARSE)
    octaves = {rounded(kind, Fraction(power) * unit) for power in [*above, *(-power for power in below)]}
    low, high = Fraction(_SMALL[0]) * unit, Fraction(_SMALL[1] + 1) * unit
    outside_small = {cut for cut in octaves if kind.scale or kind.family == "float" or not low < cut < high}
    cuts = single | {after(kind, cut) for cut in single} | outside_small | {ends[0], ends[-1]}
    cuts |= {cut for cut in ends if abs(cut) > 2**_LAST * unit}
    if least is not None and most is not None:
        cuts |= set(equal_cuts(kind, least, most, EQUAL_BINS))
    return _within(kind, sorted(cut for cut in cuts if ends[0] <= cut <= ends[-1]), least, most)


_SOME, _MORE, _MOST = 60.0, 200.0, 500.0
# Rows, in deviations of the noise of a cell, from which more values are alone in a cell. A smooth part over
# many cells stands out less and its tail is seen less well: small tables would lose smooth columns.

YEARS = (1900, 2100)

_NINES = tuple(10**digits - 1 for digits in range(1, 8))
NONE_CODES = (*_NINES[1:], *(-nines for nines in _NINES), -98, -97, -8, -7, 997, 998, 9998)
"""Numbers that stand for no value in many tables."""

_TERMS = (24, 30, 36, 48, 60, 72, 84, 90, 96, 100, 120, 144, 150, 180, 200, 240, 300, 360, 365, 500, 1000)
_MULTIPLES = ((5, 30), (10, 20), (12, 10), (25, 10), (50, 20), (100, 20))  # steps, and how many of each
_ROUND = (10, 12, 15, 18, 20, 24, 25, 30, 35, 36, 40, 45, 50, 60, 70, 75, 80, 90)  # times a power of ten
_DECADES, _RECENT = range(1900, 1990, 10), range(1990, 2036)


def special_numbers(strength: float) -> set[int]:
    """Whole numbers that many rows often share, as many as a table of ``strength`` (rows over the noise of a
    cell) can tell apart; public."""
    numbers = {*range(_SMALL[0], _SMALL[1] + 1), *_RECENT}
    if strength < _SOME:
        return numbers | {-99, -9, 99, 999, 9999}
    numbers |= {*NONE_CODES, *_TERMS}
    if strength < _MORE:
        return numbers
    numbers |= {*range(65 if strength < _MOST else 129), *range(YEARS[0], YEARS[1] + 1)}
    numbers |= {step * part for step, number in _MULTIPLES for part in range(1, number + 1)}
    return numbers | {number * 10**power for number in _ROUND for power in range(1, 6)}


@lru_cache(maxsize=64)
def special_cuts(
    kind: SqlType, least: Fraction | None, most: Fraction | None, strength: float
) -> tuple[Cuts, tuple[int, ...]]:
    """The cuts of ``mixed_cuts`` and of ``special_numbers``, each of which is alone in a cell; and of each
    cell the first one that is counted with it.

    What lies before, between and after special numbers of one cell of ``mixed_cuts`` is counted together: in
    several counts it would stand out less. Every value lies in one cell, and every cell has one count.

    Raises:
        InternalError: as ``grid_cuts``.
    """
    base = mixed_cuts(kind, least, most)
    if kind.temporal:
        return base, tuple(range(len(base) - 1))
    unit = Fraction(10**kind.scale)
    if strength < _MORE:
        decades = {year * unit for year in _DECADES}
        base = tuple(sorted({*base, *(cut for cut in decades if base[0] < cut < base[-1])}))
    alone = {number * unit for number in special_numbers(strength)}
    alone = {value for value in alone if base[0] <= value and after(kind, value) <= base[-1]}
    cuts = tuple(sorted({*base, *alone, *(after(kind, value) for value in alone)}))
    firsts, owners = dict[int, int](), list[int]()
    for cell, low in enumerate(cuts[:-1]):
        wide = bisect_right(base, low)
        owners.append(cell if low in alone else firsts.setdefault(wide, cell))
    return cuts, tuple(owners)


def equal_cuts(kind: SqlType, least: Fraction, most: Fraction, number: int) -> Cuts:
    """The cuts of ``number`` equal parts between two bounds (both included), or of fewer where the type has
    fewer values; ascending, with both ends."""
    end = after(kind, most)
    inner = {rounded(kind, least + (end - least) * Fraction(part, number)) for part in range(1, number)}
    return (least, *sorted(cut for cut in inner if least < cut < end), end)


def _parts_of_octaves(number: int) -> list[float]:
    """2^-10 to 2^45, ``number`` parts an octave from 1 to 2^31, beyond them fewer."""
    low = [2.0 ** (part / _COARSE) for part in range(_SMALLEST_OCTAVE * _COARSE, 0)]
    fine = [2.0 ** (part / number) for part in range(_FINE_UP_TO * number)]
    wide = [2.0 ** (part / _COARSE) for part in range(_FINE_UP_TO * _COARSE, _LAST * _COARSE + 1)]
    return [*low, *fine, *wide]


def _all_months() -> list[tuple[int, int]]:
    first, last = _MONTHS
    return [(year, month) for year in range(first, last) for month in range(1, 13)] + [(last, 1)]


def _first_of_month(year: int, month: int) -> int:
    return (date(year, month, 1) - date(1970, 1, 1)).days


def _within(kind: SqlType, cuts: Sequence[Fraction], least: Fraction | None, most: Fraction | None) -> Cuts:
    low = cuts[0] if least is None else max(cuts[0], least)
    high = cuts[-1] if most is None else min(cuts[-1], after(kind, most))
    if low >= high:
        raise InternalError("a grid needs a lower bound below its upper one")
    return (low, *(cut for cut in cuts if low < cut < high), high)


def after(kind: SqlType, value: Fraction) -> Fraction:
    """The least value of a type above one of its values: the end of a cell that holds nothing else. Above the
    largest double of its type, a number that no value has (``edge_of``)."""
    if kind.family != "float":
        return Fraction(math.floor(value) + 1)
    if value >= Fraction(largest_float(kind)):
        return Fraction(largest_float(kind)) + 1
    if kind.text == "FLOAT":
        return Fraction(float(np.nextafter(np.float32(float(value)), np.float32(np.inf))))
    return Fraction(math.nextafter(float(value), math.inf))


def rounded(kind: SqlType, cut: Fraction) -> Fraction:
    """A cut as the type can hold it: a whole tick (not above it), or the nearest finite double."""
    if kind.family != "float":
        return Fraction(math.floor(cut))
    edge = _finite(kind, cut)
    return Fraction(float(np.float32(edge)) if kind.text == "FLOAT" else edge)


def everyday_cell(kind: SqlType, cuts: Cuts) -> int:
    """The cell of an everyday value: one (in units, not in last digits), noon, or the year 2000."""
    if kind.family in ("date", "timestamp"):
        value = Fraction(10_957 * kind.day)
    elif kind.family == "time":
        value = Fraction(12 * _HOUR)
    else:
        value = Fraction(10**kind.scale)
    return next((index for index, end in enumerate(cuts[1:]) if value < end), len(cuts) - 2)


def grid_attribute(name: str, sql_type: str, cuts: Cuts) -> Attribute:
    """A grid as an attribute whose codes are its cells, and NULL, where NaN goes too."""
    return binned(Undiscovered(name, sql_type, supported_type(sql_type, name).binned), cuts)


def binned(
    column: Undiscovered,
    cuts: Sequence[Fraction],
    granularity: Granularity | None = None,
    fill: Sequence[Cuts] = (),
    origin: Literal["declared", "discovered"] = "discovered",
) -> Attribute:
    """A column as an attribute with these cuts, whose bins are filled so; see ``Attribute``."""
    return Attribute(
        column.name,
        column.sql_type,
        column.type.binned,
        edges=_edges(column.type, cuts),
        nullable=column.nullable,
        ordered=True,
        origin=origin,
        granularity=granularity,
        source=column.source,
        fill=tuple(_edges(column.type, fill_cuts) for fill_cuts in fill),
    )


def _edges(kind: SqlType, cuts: Sequence[Fraction]) -> tuple[Edge, ...]:
    return tuple(edge_of(kind, cut) for cut in cuts)


def edge_of(kind: SqlType, cut: Fraction) -> Edge:
    """A cut as an edge of an attribute of this type; the largest double for what is above it."""
    if kind.family != "float":
        return from_tick(kind, int(cut))
    return _finite(kind, cut)


def _finite(kind: SqlType, cut: Fraction) -> float:
    largest = largest_float(kind)
    return float(max(Fraction(-largest), min(cut, Fraction(largest))))


def largest_float(kind: SqlType) -> float:
    """The largest finite value of FLOAT or DOUBLE."""
    return float(np.finfo(np.float32 if kind.text == "FLOAT" else np.float64).max)


def _rising(last: int) -> list[int]:
    """0, 1, 2, 4, ... up to ``last`` + 1."""
    return [0] + [1 << power for power in range((last + 1).bit_length()) if 1 << power <= last + 1]


def _day_cuts(kind: SqlType) -> set[int]:
    """Blocks of 512 days in the middle, doubling outwards."""
    day = kind.day
    # Whole days within the type; a last part of a day (TIMESTAMP_NS) belongs to the end cell.
    first, last = -(-kind.low // day), (kind.high + 1) // day
    start, stop = (_BLOCK * block for block in _CENTURIES)
    days = set(range(start, stop + 1, _BLOCK))
    span = _BLOCK
    while start > first or stop < last:
        start, stop, span = start - span, stop + span, 2 * span
        days |= {start, stop}
    return {first * day, last * day} | {cut * day for cut in days if first < cut < last}


def _float_cuts(kind: SqlType) -> set[Fraction]:
    """..., -2, -1, -1/2, ..., 0, the least positive number, ..., 1/2, 1, 2, ...; few cells for tiny and huge
    values."""
    smallest, largest = _smallest(kind), Fraction(largest_float(kind))
    powers = (Fraction(2) ** exponent for exponent in _FLOAT_EXPONENTS)
    rising = {cut for cut in powers if smallest < cut < largest}
    end = after(kind, largest)
    return {-largest, *(-cut for cut in rising), Fraction(0), smallest, *rising, end}


def _smallest(kind: SqlType) -> Fraction:
    """The least positive number: [0, it) holds nothing but zero."""
    if kind.text == "FLOAT":
        return Fraction(float(np.finfo(np.float32).smallest_subnormal))
    return Fraction(math.ulp(0.0))
