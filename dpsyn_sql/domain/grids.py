"""Fixed public grids: the first question about a column of numbers or times without declared bounds.

A grid covers all values of its SQL type and depends on nothing else. Numbers get powers of two
and their negatives, with a cell for zero alone (a frequent point mass); times get blocks of 512 days in the
centuries of most tables, and longer and longer blocks outside. Every cell spans a power of two
(in ticks, days or hours), so that it can be halved down to single ticks later.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np

from dpsyn_sql.domain.attributes import Attribute
from dpsyn_sql.domain.types import Edge, SqlType, from_tick, supported_type
from dpsyn_sql.errors import InternalError

MAX_DEPTH = 20
"""The most halvings of a cell: a million finest cells are enough, and each level adds bias to PrivTree."""

_FLOAT_EXPONENTS = range(-20, 128)
_BLOCK = 512  # days
_CENTURIES = (-264, 241)  # blocks from 1599-12 to 2307-11
_HOUR = 3_600_000_000  # microseconds


@dataclass(frozen=True, slots=True)
class Cell:
    """An interval [low, low + unit 2^depth) of a grid: it can be halved ``depth`` times.

    Ticks for discrete types, exact doubles as fractions otherwise.
    """

    low: Fraction
    unit: Fraction
    depth: int

    @property
    def high(self) -> Fraction:
        """The start of the next cell."""
        return self.low + self.unit * Fraction(1 << self.depth)


def grid_cells(kind: SqlType) -> tuple[Cell, ...]:
    """The cells of a type's grid, ascending and adjacent.

    Raises:
        InternalError: the type has no grid.
    """
    if kind.family == "float":
        return _float_cells(kind)
    if kind.family in ("integer", "decimal"):
        return _number_cells(kind)
    if kind.family in ("date", "timestamp"):
        return _day_cells(kind)
    if kind.family == "time":
        return tuple(_cell(hour * _HOUR, _HOUR) for hour in range(24))
    raise InternalError(f"no grid for type {kind.family}")


def everyday_cell(kind: SqlType, cells: Sequence[Cell]) -> int:
    """The cell of an everyday value: one (in units, not in last digits), noon, or the year 2000."""
    if kind.family in ("date", "timestamp"):
        value = Fraction(10_957 * kind.day)
    elif kind.family == "time":
        value = Fraction(12 * _HOUR)
    else:
        value = Fraction(10**kind.scale)
    return next((index for index, cell in enumerate(cells) if value < cell.high), len(cells) - 1)


def grid_attribute(name: str, sql_type: str, *, nullable: bool) -> Attribute:
    """The grid as an attribute whose codes are its cells (and NULL)."""
    kind = supported_type(sql_type, name)
    cells = grid_cells(kind)
    cuts = [cell.low for cell in cells] + [cells[-1].high]
    edges = tuple(edge_of(kind, cut) for cut in cuts)
    what = binned_kind(kind)
    return Attribute(name, sql_type, what, edges=edges, nullable=nullable, ordered=True, origin="discovered")


def binned_kind(kind: SqlType) -> Literal["numeric", "temporal"]:
    """Whether bins of this type hold numbers or times."""
    return "numeric" if kind.family in ("integer", "decimal", "float") else "temporal"


def edge_of(kind: SqlType, cut: Fraction) -> Edge:
    """A cut as an edge of an attribute of this type."""
    if kind.family != "float":
        return from_tick(kind, int(cut))
    if abs(cut) < Fraction(largest_float(kind)):
        return float(cut)
    return largest_float(kind) if cut > 0 else -largest_float(kind)


def largest_float(kind: SqlType) -> float:
    """The largest finite value of FLOAT or DOUBLE."""
    return float(np.finfo(np.float32 if kind.text == "FLOAT" else np.float64).max)


def _cell(low: int, span: int) -> Cell:
    """A cell of ``span`` ticks that can be halved while the halves are whole ticks."""
    halvings = (span & -span).bit_length() - 1
    depth = min(halvings, MAX_DEPTH)
    return Cell(Fraction(low), Fraction(span >> depth), depth)


def _powers(count: int, block: int) -> list[int]:
    """``count`` blocks as spans of powers of two blocks, descending; sums to count * block."""
    bits = [bit for bit in range(count.bit_length()) if count >> bit & 1]
    return [block << bit for bit in reversed(bits)]


def _number_cells(kind: SqlType) -> tuple[Cell, ...]:
    """..., [-3, -2], [-1], [0], [1], [2, 3], [4, 7], ...; a DECIMAL's ends in shrinking powers of two."""
    above = _rising(1, kind.high)
    below = [Cell(1 - cell.high, cell.unit, cell.depth) for cell in _rising(1, -kind.low)]
    return (*reversed(below), _cell(0, 1), *above)


def _rising(low: int, last: int) -> list[Cell]:
    """Cells [2^i, 2^(i+1)) from ``low`` = 1 to ``last`` included."""
    cells = []
    while 2 * low - 1 <= last:
        cells.append(_cell(low, low))
        low *= 2
    for span in _powers(last - low + 1, 1) if low <= last else ():
        cells.append(_cell(low, span))
        low += span
    return cells


def _day_cells(kind: SqlType) -> tuple[Cell, ...]:
    """Blocks of 512 days in the middle, doubling outwards; the ends in shrinking powers of two."""
    day = kind.day
    # Whole days within the type; a last part of a day (TIMESTAMP_NS) belongs to the end cell.
    first, last = -(-kind.low // day), (kind.high + 1) // day
    start, stop = (_BLOCK * block for block in _CENTURIES)
    start, stop = max(start, first), min(stop, last)
    middle = list(range(start, stop, _BLOCK))
    cells = [
        piece
        for low in middle
        for piece in _whole_days(low, min(low + _BLOCK, stop) - low, day, descending=True)
    ]
    return (*_outer(start, first, day, -1), *cells, *_outer(stop, last, day, 1))


def _whole_days(low: int, days: int, day: int, *, descending: bool) -> list[Cell]:
    spans = _powers(days, 1)
    cells = []
    for span in spans if descending else reversed(spans):
        cells.append(_cell(low * day, span * day))
        low += span
    return cells


def _outer(start: int, end: int, day: int, sign: int) -> list[Cell]:
    """From ``start`` outwards to ``end``, in days: blocks that double, then the rest in powers of two."""
    cells: list[Cell] = []
    here, span = start, _BLOCK
    while (end - here) * sign >= span:
        low = here if sign > 0 else here - span
        cells.append(_cell(low * day, span * day))
        here, span = here + sign * span, span * 2
    left = (end - here) * sign
    low = here if sign > 0 else end
    rest = _whole_days(low, left, day, descending=sign > 0) if left > 0 else []
    return [*cells, *rest] if sign > 0 else [*rest, *reversed(cells)]


def _float_cells(kind: SqlType) -> tuple[Cell, ...]:
    """..., [-2, -1), [-1, -1/2), ..., [0], ..., [1/2, 1), [1, 2), ...; tiny and huge values in end cells."""
    smallest = _smallest(kind)
    tiny = Fraction(2) ** _FLOAT_EXPONENTS[0]
    highest = Fraction(2) ** 128 if kind.text == "FLOAT" else Fraction(2) ** 1024
    top = Fraction(2) ** _FLOAT_EXPONENTS[-1]
    rising = [_float_cell(Fraction(2) ** exponent) for exponent in _FLOAT_EXPONENTS[:-1]]
    above = [Cell(smallest, tiny - smallest, 0), *rising, Cell(top, highest - top, 0)]
    below = [Cell(-cell.high, cell.unit, cell.depth) for cell in reversed(rising)]
    return (
        Cell(-highest, highest - top, 0),
        *below,
        Cell(-tiny, tiny, 0),
        Cell(Fraction(0), smallest, 0),
        *above,
    )


def _float_cell(low: Fraction) -> Cell:
    return Cell(low, low / 2**MAX_DEPTH, MAX_DEPTH)


def _smallest(kind: SqlType) -> Fraction:
    """The least positive number: [0, it) holds nothing but zero."""
    if kind.text == "FLOAT":
        return Fraction(float(np.finfo(np.float32).smallest_subnormal))
    return Fraction(math.ulp(0.0))
