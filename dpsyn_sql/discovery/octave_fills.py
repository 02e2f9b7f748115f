"""How values are spread inside the octaves beyond a found range: along the tail, not evenly; public.

An octave is filled as the end bin of a column is (``discovery/filling.py``): along the generalised Pareto
distribution that goes on from the bins before it. Where rows do not fall there, the density follows a power
of the distance from zero, with the slope that the rows beside the octave show.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from dpsyn_sql.discovery.filling import (
    Histogram,
    Quantiles,
    fill_of,
    histogram_of,
    mirrored,
    shares,
    tail_of,
)
from dpsyn_sql.domain.attributes import Attribute, Domain
from dpsyn_sql.fit.arrays import FloatArray
from dpsyn_sql.fit.tails import outside, places_of
from dpsyn_sql.fit.variances import OneWayCounts

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
    known = replace(counts, sigma=np.where(outside(attribute), 0.0, counts.sigma))
    bins, places = histogram_of(attribute, known), places_of(attribute)
    upper = _shapes(bins, places, above + _even(attribute, number - above - 1))
    lower = _shapes(bins.flipped, -places[::-1], below + _even(attribute, below))
    lower = [mirrored(one) for one in lower][::-1] if below else []
    upper = upper if above else []
    shapes = (*lower, *[None] * (number - len(lower) - len(upper)), *upper)
    cuts = [None if one is None else shares(one) for one in shapes]
    made = zip(attribute.fill, fill_of(attribute, cuts), cuts, strict=True)
    return replace(attribute, fill=tuple(old if cut is None else new for old, new, cut in made))


def _even(attribute: Attribute, place: int) -> bool:
    """Whether an end of the found range is evenly filled, so that nothing is known of its inside."""
    return len(attribute.fill[place]) == 2 and attribute.found.stop - attribute.found.start > 2


def _shapes(bins: Histogram, edges: FloatArray, number: int) -> list[Quantiles | None]:
    """Of each of the last ``number`` bins; None for one that is even, of one value at most, or without
    rows."""
    shapes = list[Quantiles | None]()
    for place in range(len(bins.mass) - number, len(bins.mass)):
        if bins.mass[place] <= 0 or bins.atoms[place]:
            shapes.append(None)
            continue
        mass = bins.mass[: place + 1].copy()
        mass[-1] = bins.mass[place:].sum()
        shape = None
        if place > 1:
            upto = slice(place + 1)
            own = Histogram(bins.widths[upto], mass, bins.sigma[upto], bins.atoms[upto])
            shape = tail_of(own, _CLEAR, _LIGHTEST)
        if shape is None and edges[place] > 0:
            shape = power_law(float(edges[place + 1] / edges[place]), _index(bins.mass, edges, place))
        shapes.append(shape)
    return shapes


def _index(mass: FloatArray, edges: FloatArray, place: int) -> float:
    """By which power rows fall beside a bin: between the bins on its sides that have rows and begin above
    zero."""
    beside = [one for one in (place - 1, place, place + 1) if 0 <= one < len(mass)]
    beside = [one for one in beside if mass[one] > 0 and edges[one] > 0]
    places, logs = list[float](), list[float]()
    for one in beside:
        low, high = math.log(edges[one]), math.log(edges[one + 1])
        places.append((low + high) / 2)
        logs.append(math.log(mass[one] / (high - low)))
    if len(beside) < 2:
        return 1.0
    return min(max((logs[0] - logs[-1]) / (places[-1] - places[0]), _RISING), _FALLING)


def power_law(ratio: float, index: float) -> Quantiles:
    """Density proportional to x^(-index - 1) from 1 to ``ratio``, as positions in [0, 1]."""
    if abs(index) < 1e-6:
        return lambda p: (ratio**p - 1) / (ratio - 1)
    whole = 1 - ratio**-index
    return lambda p: ((1 - p * whole) ** (-1 / index) - 1) / (ratio - 1)
