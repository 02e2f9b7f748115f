"""Numbers over many orders of magnitude: octaves, and how their bins are filled."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np

from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.attributes.grids import Cuts, after, edge_of, grid_cuts, rounded
from dpsyn_sql.attributes.shape import Undiscovered
from dpsyn_sql.attributes.types import SqlType
from dpsyn_sql.discovery.filling import Histogram, Quantiles, fill_of, histogram_of, mirrored, shares, tail_of
from dpsyn_sql.fit.arrays import FloatArray
from dpsyn_sql.fit.tails import outside, places_of
from dpsyn_sql.fit.variances import OneWayCounts

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


# -- fills -------------------------------------------------------------------------------------------

# How values are spread inside the octaves beyond a found range: along the tail, not evenly; public.
#
# An octave is filled as the end bin of a column is (``discovery/filling.py``): along the generalised Pareto
# distribution that goes on from the bins before it. Where rows do not fall there, the density follows a power
# of the distance from zero, with the slope that the rows beside the octave show.

_CLEAR, _LIGHTEST = 6.0, -0.95
"""Standard errors of a mass that tells how steep a tail is, and its least index: nearly even."""

_RISING, _FALLING = -3.0, 12.0
"""Indices of the power laws; -1 is even."""


def spread_along_tails(domain: Domain, counts: Mapping[str, OneWayCounts]) -> Domain:
    """The domain whose attributes fill the octaves beyond their found range along the tail.

    ``counts``: estimated there (``fit/tails.py``).
    """
    return Domain(
        tuple(
            _spread(attribute, counts[attribute.name])
            if any(attribute.beyond) and attribute.name in counts
            else attribute
            for attribute in domain.attributes
        )
    )


def _spread(attribute: Attribute, counts: OneWayCounts) -> Attribute:
    number, (below, above) = attribute.regular, attribute.beyond
    within_range = replace(counts, sigma=np.where(outside(attribute), 0.0, counts.sigma))
    bins, edges = histogram_of(attribute, within_range), places_of(attribute)
    upper = _shapes(bins, edges, above + _even(attribute, number - above - 1))
    lower = _shapes(bins.flipped, -edges[::-1], below + _even(attribute, below))
    lower = [mirrored(shape) for shape in lower][::-1] if below else []
    upper = upper if above else []
    shapes = (*lower, *[None] * (number - len(lower) - len(upper)), *upper)
    cuts = [None if shape is None else shares(shape) for shape in shapes]
    fills = zip(attribute.fill, fill_of(attribute, cuts), cuts, strict=True)
    return replace(attribute, fill=tuple(old if cut is None else new for old, new, cut in fills))


def _even(attribute: Attribute, bin_: int) -> bool:
    """Whether an end of the found range is evenly filled, so that nothing is known of its inside."""
    return len(attribute.fill[bin_]) == 2 and attribute.found.stop - attribute.found.start > 2


def _shapes(bins: Histogram, edges: FloatArray, number: int) -> list[Quantiles | None]:
    """Of each of the last ``number`` bins; None for one that is even, of one value at most, or without
    rows."""
    shapes = list[Quantiles | None]()
    for index in range(len(bins.mass) - number, len(bins.mass)):
        if bins.mass[index] <= 0 or bins.atoms[index]:
            shapes.append(None)
            continue
        mass = bins.mass[: index + 1].copy()
        mass[-1] = bins.mass[index:].sum()
        shape = None
        if index > 1:
            upto = slice(index + 1)
            upto_bins = Histogram(bins.widths[upto], mass, bins.sigma[upto], bins.atoms[upto])
            shape = tail_of(upto_bins, _CLEAR, _LIGHTEST)
        if shape is None and edges[index] > 0:
            shape = power_law(float(edges[index + 1] / edges[index]), _index(bins.mass, edges, index))
        shapes.append(shape)
    return shapes


def _index(mass: FloatArray, edges: FloatArray, middle_bin: int) -> float:
    """By which power rows fall beside a bin: between the bins on its sides that have rows and begin above
    zero."""
    neighbours = [bin_ for bin_ in (middle_bin - 1, middle_bin, middle_bin + 1) if 0 <= bin_ < len(mass)]
    neighbours = [bin_ for bin_ in neighbours if mass[bin_] > 0 and edges[bin_] > 0]
    middles, logs = list[float](), list[float]()
    for bin_ in neighbours:
        low, high = math.log(edges[bin_]), math.log(edges[bin_ + 1])
        middles.append((low + high) / 2)
        logs.append(math.log(mass[bin_] / (high - low)))
    if len(neighbours) < 2:
        return 1.0
    return min(max((logs[0] - logs[-1]) / (middles[-1] - middles[0]), _RISING), _FALLING)


def power_law(ratio: float, index: float) -> Quantiles:
    """Density proportional to x^(-index - 1) from 1 to ``ratio``, as positions in [0, 1]."""
    if abs(index) < 1e-6:
        return lambda p: (ratio**p - 1) / (ratio - 1)
    mass = 1 - ratio**-index
    return lambda p: ((1 - p * mass) ** (-1 / index) - 1) / (ratio - 1)
