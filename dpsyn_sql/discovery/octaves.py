"""The octaves beyond the range of a column that discovery found; public.

Discovery has little of the budget, so its noise hides where a column ends. The one-way tables that follow
have more: some octaves beyond the found range stay codes, and a tail is fitted to their counts
(``fit/tails.py``).
Stated bounds, CHECK constraints and the type end them. Times have none.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

from dpsyn_sql.domain.attributes import Attribute
from dpsyn_sql.domain.grids import Cuts, after, edge_of, grid_cuts, rounded
from dpsyn_sql.domain.shape import Undiscovered
from dpsyn_sql.domain.types import SqlType

STEPS = (*(Fraction(part, 4) for part in (5, 6, 8, 12)), *(Fraction(2**power) for power in range(2, 11)))
"""Cuts beyond the end of the found range, times its distance from zero: first parts of octaves, as many
columns end there."""

PART, PART_FROM_ZERO = 7, 3
"""One in so many codes of a column, at most, is an octave on one side; if nothing but zero was found."""

_FROM, _UP_TO = -4, 20
# Powers of two of the octaves if nothing but zero was found.


def octaves_beyond(column: Undiscovered, low: Fraction, high: Fraction) -> tuple[Cuts, Cuts]:
    """The further cuts below and above the found range [low, high), ascending.

    Above, each cell is as wide as its distance from zero, if a value above zero was found, or zero is the
    largest one; below likewise, if a value below zero was found.
    """
    kind = column.type
    if kind.temporal:
        return (), ()
    ends = grid_cuts(kind, column.least, column.most)
    room = max(1, column.max_codes - column.nullable)
    steps = STEPS[: room // PART]
    below = [low * step for step in steps] if low < 0 else []
    if high > after(kind, Fraction(0)):
        above = [high * step for step in steps]
    elif high > 0:
        unit = Fraction(10**kind.scale)
        above = [unit * Fraction(2) ** power for power in range(_FROM, _UP_TO + 1)]
        above = [cut for cut in above if cut > high and (kind.family == "float" or cut.denominator == 1)]
        above = above[: room // PART_FROM_ZERO]
    else:
        above = []
    return _within(kind, below, ends[0], low), _within(kind, above, high, ends[-1])


def _within(kind: SqlType, cuts: list[Fraction], low: Fraction, high: Fraction) -> Cuts:
    """The cuts inside (low, high), as the type can hold them; and its other end if there are some beyond it.

    Of ``low`` and ``high`` one is an end of the grid, the other of the found range.
    """
    inside = {rounded(kind, cut) for cut in cuts if low < cut < high}
    if len(cuts) > sum(low < cut < high for cut in cuts) and low < high:
        inside.add(low if cuts[0] < 0 else high)
    return tuple(sorted(inside - {low if cuts and cuts[0] > 0 else high}))


def with_octaves(attribute: Attribute, below: Cuts, above: Cuts) -> Attribute:
    """An attribute of learnt bins with further ones, evenly filled as yet."""
    lower, upper = (tuple(edge_of(attribute.type, cut) for cut in cuts) for cuts in (below, above))
    edges = (*lower, *attribute.edges, *upper)
    cells = tuple(pairwise(edges))
    fill = (*cells[: len(lower)], *attribute.fill, *cells[len(cells) - len(upper) :])
    return replace(attribute, edges=edges, fill=fill, beyond=(len(lower), len(upper)))
