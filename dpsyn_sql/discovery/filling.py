"""How the values inside a bin are spread, estimated from the noisy counts of its neighbours; public.

The bins of a column give its mass between edges and nothing inside them. The density inside a bin is taken to
be monotone between the densities at its edges, with the noisy mass of the bin as its own (interpolated
distribution functions of binned data: von Hippel, Hunter and Drown 2017). It has one of three shapes:

- An end bin that holds a tail follows a generalised Pareto distribution, whose reciprocal hazard is linear
  (Pickands 1975). Its slope, the tail index, comes from the bins before it: 0 for an exponential tail,
  positive for a Pareto (Lomax) tail.
- A bin that holds most of a column, where its data begin, follows the generalised Pareto distribution that
  has the noisy masses beyond its next two edges.
- Any other bin follows the power of the distance from its thinner edge that keeps its mass. The density at an
  edge is the geometric mean of the densities beside it, weighted by nearness; beside a much wider bin the
  trend of the narrow one goes on to the edge.

Where neighbours differ by less than their noise, and in peaks and valleys, a bin is even (the rule of slope
limiters such as minmod).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.attributes.attribute import FILL_PIECES, Attribute, Domain, Fill, edge_ticks
from dpsyn_sql.attributes.types import Edge, from_tick
from dpsyn_sql.discovery.labels import with_rest
from dpsyn_sql.fit.arrays import FloatArray
from dpsyn_sql.fit.variances import OneWayCounts

_CLEAR = 2.0
"""Standard errors by which two densities must differ, or a mass exceed zero, to give a bin a shape."""

_TAIL = 0.5
"""An end bin of less than this part of its neighbour's density holds a tail."""

_WIDE = 6.0
"""A bin so many times as wide as the one beside it says little about the density where they meet."""

_STEEP = 0.1
"""A first bin of data whose neighbour has less than this part of its density is shaped by its tail."""

_HEAVIEST = 1.0
"""The largest tail index of an end bin; a Pareto distribution of index 1 has no mean."""

_STEEPEST = 3.0
"""The largest tail index of the first bin of the data."""

_MOST_BINS = 1_024
"""Columns of more bins are filled evenly: a bin matters little, and statements stay short."""

_MOVES = 1e-4
"""A shape is worth its place in statements if it moves the mean of the column by this part of its standard
deviation."""

_TURNS = 1e-3
"""Or if it moves the distribution function of the column by this much."""

_NO_ROWS = 1e-6
"""A mean of noisy counts up to here counts as zero, so that no ratio of masses is beyond the doubles."""

_NARROWEST = 1e-12
"""Bins of less than this part of the whole width count as single values: their places would not differ."""

_MIDDLES = (np.arange(2048) + 0.5) / 2048


@dataclass(frozen=True, slots=True)
class Histogram:
    """Noisy masses of adjacent bins.

    ``widths`` (float64[k], positive, of any unit), ``mass`` (float64[k], rows, none negative), ``sigma``
    (float64[k], rows), ``atoms`` (bool[k]): bins of a single value, which say nothing about a density.
    """

    widths: FloatArray
    mass: FloatArray
    sigma: FloatArray
    atoms: NDArray[np.bool_]

    @property
    def density(self) -> FloatArray:
        """Rows per unit of width."""
        return self.mass / self.widths

    @property
    def flipped(self) -> Histogram:
        """The same bins from right to left."""
        return Histogram(self.widths[::-1], self.mass[::-1], self.sigma[::-1], self.atoms[::-1])


def filled(domain: Domain, counts: Mapping[str, OneWayCounts]) -> Domain:
    """The domain with a fill for every numeric or temporal attribute that has counts and no fill, and with
    the rows of texts that were not found."""
    return Domain(
        tuple(
            _filled(attribute, counts[attribute.name])
            if attribute.name in counts
            and attribute.kind != "categorical"
            and not attribute.fill
            and 1 < attribute.regular <= _MOST_BINS
            else with_rest(attribute, counts[attribute.name])
            if attribute.name in counts
            else attribute
            for attribute in domain.attributes
        )
    )


def _filled(attribute: Attribute, counts: OneWayCounts) -> Attribute:
    """The attribute with a fill, or unchanged if every bin is even."""
    histogram = histogram_of(attribute, counts)
    shapes = shapes_of(histogram)
    worth = _worth(histogram, shapes)
    cuts = [shares(shape) if shape and worthy else None for shape, worthy in zip(shapes, worth, strict=True)]
    if all(bin_cuts is None for bin_cuts in cuts):
        return attribute
    return replace(attribute, fill=fill_of(attribute, cuts))


def histogram_of(attribute: Attribute, counts: OneWayCounts) -> Histogram:
    """The bins of an attribute, their whole width 1, and their noisy rows."""
    number = attribute.regular
    mass = np.where(counts.counts[:number] > _NO_ROWS, counts.counts[:number], 0.0)
    if attribute.type.family == "float":
        edges = np.array([edge for edge in attribute.edges if isinstance(edge, float)])
        halves = np.diff(edges / 2)  # a difference of doubles may overflow
        stored = edges.astype(np.float32) if attribute.type.text == "FLOAT" else edges
        widths, atoms = halves / halves.sum(), np.nextafter(stored[:-1], stored[1:]) >= stored[1:]
    else:
        ticks = edge_ticks(attribute)
        span = ticks[-1] - ticks[0]
        widths = np.array([(high - low) / span for low, high in pairwise(ticks)])
        atoms = np.array([_grid(attribute, low, high)[1] <= 1 for low, high in pairwise(ticks)])
    return Histogram(
        np.maximum(widths, _NARROWEST), mass, counts.sigma[:number], atoms | (widths < _NARROWEST)
    )


def shapes_of(bins: Histogram) -> list[Quantiles | None]:
    """The shape of every bin; None for an even one."""
    number = len(bins.mass)
    clear = bins.mass > _CLEAR * bins.sigma
    before = np.concatenate([[False], np.logical_or.accumulate(clear)[:-1]])
    after = np.concatenate([np.logical_or.accumulate(clear[::-1])[::-1][1:], [False]])
    shapes: list[Quantiles | None] = []
    for index in range(number):
        mirror = number - 1 - index
        shape = None
        if bins.mass[index] <= 0 or bins.atoms[index]:
            shapes.append(None)
            continue
        if number > 2 and mirror == 0:
            shape = tail_of(bins)
        elif number > 2 and index == 0:
            shape = mirrored(tail_of(bins.flipped))
        if shape is None and clear[index] and not before[index]:
            shape = _head(bins, index)
        if shape is None and clear[index] and not after[index]:
            shape = mirrored(_head(bins.flipped, mirror))
        shapes.append(shape or _between(bins, index))
    return shapes


def _between(bins: Histogram, index: int) -> Quantiles | None:
    """The power between the densities at the edges of a bin that keeps its mass."""
    density = float(bins.density[index])
    left, right = (_at_edge(bins, index, index + step) for step in (-1, 1))
    if left is None and right is None:
        return None
    left = max(0.0, 2 * density - right) if left is None and right is not None else left
    right = max(0.0, 2 * density - left) if right is None and left is not None else right
    if left is None or right is None or not min(left, right) < density < max(left, right):
        return None
    return power(left / density, right / density)


def _at_edge(bins: Histogram, bin_: int, neighbour: int) -> float | None:
    """The density where a bin meets one beside it; its own if the two differ by no more than noise. None
    without a neighbour that has a density."""
    if not 0 <= neighbour < len(bins.mass) or bins.atoms[neighbour]:
        return None
    width, neighbour_width = (float(bins.widths[index]) for index in (bin_, neighbour))
    density, neighbour_density = (float(bins.density[index]) for index in (bin_, neighbour))
    if abs(density - neighbour_density) < _CLEAR * _noise(bins, bin_, neighbour):
        return density
    if neighbour_density <= 0 or density <= 0:
        return 0.0
    narrow, wide = (bin_, neighbour) if width <= neighbour_width else (neighbour, bin_)
    if bins.widths[wide] > _WIDE * bins.widths[narrow]:
        carried_on = float(bins.density[narrow]) * _trend(bins, narrow, 2 * narrow - wide)
        return min(max(carried_on, min(density, neighbour_density)), max(density, neighbour_density))
    near = neighbour_width / (width + neighbour_width)
    return math.exp(near * math.log(density) + (1 - near) * math.log(neighbour_density))


def _trend(bins: Histogram, index: int, before: int) -> float:
    """The factor from the middle of a bin to its edge if the density goes on as from the bin before it;
    1 where that is not clear."""
    if (
        not 0 <= before < len(bins.mass)
        or bins.atoms[before]
        or min(bins.mass[index], bins.mass[before]) <= 0
    ):
        return 1.0
    density, earlier = float(bins.density[index]), float(bins.density[before])
    if abs(density - earlier) < _CLEAR * _noise(bins, index, before):
        return 1.0
    width = float(bins.widths[index])
    return math.exp(math.log(density / earlier) * width / (width + float(bins.widths[before])))


def _noise(bins: Histogram, left: int, right: int) -> float:
    """Standard error of the difference of two densities."""
    return float(np.hypot(bins.sigma[left] / bins.widths[left], bins.sigma[right] / bins.widths[right]))


def tail_of(bins: Histogram, clear: float = _CLEAR, lightest: float = 0.0) -> Quantiles | None:
    """The generalised Pareto tail in the last bin, if it is thinner than the bin before it.

    ``clear``: standard errors of a mass that tells a slope. ``lightest``: the least index, above -1, which is
    that of an even tail.

    The mean hazard between two edges is the difference of the logarithms of the masses beyond them, over the
    distance. Its reciprocal is sigma + xi x at distance x: a line through the last two stretches of clear
    mass gives the scale sigma at the edge and the index xi of the tail.
    """
    if bins.density[-1] >= _TAIL * bins.density[-2]:
        return None
    edges = np.concatenate([[0.0], np.cumsum(bins.widths)])
    last = len(bins.mass) - 1
    stretches = list[tuple[float, float]]()
    high = last
    for low in range(last - 1, -1, -1):
        inside, beyond = float(bins.mass[low:high].sum()), float(bins.mass[high:].sum())
        if beyond > 0 and inside > clear * float(np.hypot.reduce(bins.sigma[low:high])):
            span = float(edges[high] - edges[low])
            stretches.append(
                (float(edges[last] - (edges[high] + edges[low]) / 2), span / math.log1p(inside / beyond))
            )
            high = low
        if len(stretches) == 2:
            break
    if not stretches:
        return None
    (away, inverse), index = stretches[0], 0.0
    if len(stretches) == 2:
        further, earlier = stretches[1]
        index = min(max(lightest, (inverse - earlier) / (further - away)), _HEAVIEST)
    return pareto((inverse + index * away) / float(bins.widths[-1]), index)


def _head(bins: Histogram, start: int) -> Quantiles | None:
    """The generalised Pareto distribution from the lower edge of a steep bin on that has the noisy masses
    beyond its upper edge and beyond the next edge with clear masses on both sides."""
    mass, sigma = bins.mass[start:], bins.sigma[start:]
    if len(mass) < 2 or bins.density[start + 1] >= _STEEP * bins.density[start]:
        return None
    beyond = np.cumsum(mass[::-1])[::-1]
    noise = np.sqrt(np.cumsum(sigma[::-1] ** 2)[::-1])
    if beyond[1] <= _CLEAR * noise[1]:
        return None
    width, first = float(bins.widths[start]), math.log(beyond[0] / beyond[1])
    index = 0.0
    for second in range(2, len(mass)):
        apart = beyond[1] - beyond[second] > _CLEAR * float(np.hypot.reduce(sigma[1:second]))
        if apart and beyond[second] > _CLEAR * noise[second]:
            times = float(bins.widths[start : start + second].sum()) / width
            index = _index(first, times, math.log(beyond[0] / beyond[second]))
            break
    return pareto(_scale(index, first), index)


def _scale(index: float, logarithm: float) -> float:
    """Scale of the distribution whose mass beyond 1 is exp(-logarithm)."""
    return 1 / logarithm if index == 0 else index / math.expm1(index * logarithm)


def _index(first: float, times: float, second: float) -> float:
    """The tail index, 0 to ``_STEEPEST``, with masses exp(-first) beyond 1 and exp(-second) beyond ``times``.

    By bisection: the mass beyond ``times`` grows with the index.
    """
    low, high = 0.0, _STEEPEST
    for _ in range(50):
        index = (low + high) / 2
        heavier = math.log1p(index * times / _scale(index, first)) / index < second
        low, high = (low, index) if heavier else (index, high)
    return 0.0 if low == 0.0 else high


def _worth(bins: Histogram, shapes: Sequence[Quantiles | None]) -> list[bool]:
    """Whether each shape changes the column by more than nothing."""
    edges = np.concatenate([[0.0], np.cumsum(bins.widths)])
    part = bins.mass / max(float(bins.mass.sum()), 1e-300)
    middles = (edges[:-1] + edges[1:]) / 2
    mean = float(part @ middles)
    deviation = math.sqrt(float(part @ ((middles - mean) ** 2 + bins.widths**2 / 12)))
    worth = []
    for shape, width, share in zip(shapes, bins.widths, part, strict=True):
        apart = np.zeros(1) if shape is None else shape(_MIDDLES) - _MIDDLES
        moved = abs(float(apart.mean())) * float(width * share)
        worth.append(moved > _MOVES * deviation or float(np.abs(apart).max() * share) > _TURNS)
    return worth


def shares(shape: Quantiles) -> FloatArray:
    """The cuts of eight pieces of equal probability of a shape on [0, 1] (float64[9], ascending).

    The piece of the thin end is made shorter so that evenly filled pieces have the mean of the shape: rows
    spread evenly over the whole of a long tail would lie too far out.
    """
    cuts = np.clip(shape(np.arange(FILL_PIECES + 1) / FILL_PIECES), 0.0, 1.0)
    inner = FILL_PIECES * float(shape(_MIDDLES).mean()) - float(cuts[1:-1].sum())
    if cuts[1] - cuts[0] <= cuts[-1] - cuts[-2]:
        cuts[-1] = min(max(2 * inner - cuts[0], cuts[-2]), 1.0)
    else:
        cuts[0] = min(max(2 * inner - cuts[-1], 0.0), cuts[1])
    return np.maximum.accumulate(cuts)


# -- cuts in the units of a column ----------------------------------------------------------------------


def fill_of(attribute: Attribute, cuts: Sequence[FloatArray | None]) -> Fill:
    """Places in every bin (float64[9] in [0, 1]) as values of the column; bins without are even over their
    edges."""
    if attribute.type.family == "float":
        edges = [edge for edge in attribute.edges if isinstance(edge, float)]
        single = attribute.type.text == "FLOAT"
        return tuple(
            bin_ if bin_cuts is None else _float_cuts(bin_, bin_cuts, single=single)
            for bin_, bin_cuts in zip(pairwise(edges), cuts, strict=True)
        )
    bins = zip(pairwise(edge_ticks(attribute)), pairwise(attribute.edges), cuts, strict=True)
    return tuple(
        edges_of_bin if bin_cuts is None else _tick_cuts(attribute, ticks, bin_cuts)
        for ticks, edges_of_bin, bin_cuts in bins
    )


def _grid(attribute: Attribute, low: int, high: int) -> tuple[int, int, int]:
    """The first value that a bin can give, their number and the ticks between them."""
    step = attribute.granularity if isinstance(attribute.granularity, int) else 1
    first = -(-low // step) * step
    return first, max(0, -((first - high) // step)), step


def _tick_cuts(attribute: Attribute, ticks: tuple[int, int], cuts: FloatArray) -> tuple[Edge, ...]:
    """Whole numbers of values before each cut. A cut is rounded to the nearest one where pieces are long, and
    down where they are shorter than a value: all that is written of a piece in one value is that value."""
    first, number, step = _grid(attribute, *ticks)
    apart = np.clip((cuts[2:] - cuts[:-2]) / 2 * number, 0.0, 1.0)
    up = [0.0, *(apart / 2), min(1.0, 0.5 * number)]
    before = [min(number, math.floor(float(cut) * number + more)) for cut, more in zip(cuts, up, strict=True)]
    inside = [min(cut, number - 1) for cut in before[:-1]]
    ends = [first + step * cut for cut in (*inside, max(before[-1], inside[-1]))]
    return tuple(from_tick(attribute.type, min(end, ticks[1])) for end in ends)


def _float_cuts(bin_: tuple[float, float], cuts: FloatArray, *, single: bool) -> tuple[float, ...]:
    """Doubles inside a bin, in few digits; the last cut alone may be its upper edge."""
    low, high = bin_
    span = high / 2 - low / 2
    below = float(np.nextafter(np.float32(high), np.float32(low))) if single else math.nextafter(high, low)
    digits = 5 - math.floor(math.log10(span)) if span > 0 else 0
    exact = [low * (1 - float(cut)) + high * float(cut) for cut in cuts]
    rounded = [round(value, digits) for value in exact]
    if single:
        rounded = [float(np.float32(value)) for value in rounded]
    inner = [min(max(value, low), below) for value in rounded[:-1]]
    return (*inner, min(max(rounded[-1], inner[-1]), high))


Quantiles = Callable[[FloatArray], FloatArray]
"""From probabilities (float64[m] in [0, 1]) to positions (float64[m] in [0, 1])."""

_EVEN = 50.0
"""Scale, in widths of the bin, from which on a tail is even in it to a hundredth."""

_LARGEST_POWER = 1e7
"""The largest exponent: nearly all mass is at one edge."""

_PLACES = np.concatenate([[0.0], np.geomspace(1e-9, 1.0, 3000)])


def power(left: float, right: float) -> Quantiles:
    """Density from ``left`` at 0 to ``right`` at 1, relative to its mean 1, which is between the two.

    f(x) = right + (left - right) (1 - x)^p for a falling one, with p = (left - right) / (1 - right) - 1, so
    that its integral is 1: linear for p = 1. A rising one is its mirror image.
    """
    if left < right:
        return _flipped(power(right, left))
    exponent = min((left - right) / (1 - right) - 1, _LARGEST_POWER)
    with np.errstate(divide="ignore"):
        above = -np.expm1((exponent + 1) * np.log1p(-_PLACES)) / (exponent + 1)
    masses = right * _PLACES + (left - right) * above
    masses /= masses[-1]
    return lambda probabilities: np.interp(probabilities, masses, _PLACES)


def pareto(scale: float, index: float) -> Quantiles:
    """Generalised Pareto density, proportional to (1 + index x / scale)^(-1/index - 1), cut off at 1.

    Exponential for index 0; of a negative index it ends at -scale / index. Quantiles by inversion (Hosking
    and Wallis 1987, eq. 2).
    """
    if scale > _EVEN:
        return lambda probabilities: probabilities
    if index == 0:
        exponential = -np.expm1(-1 / scale)
        with np.errstate(divide="ignore"):
            return _cut_off(lambda p: -scale * np.log1p(-p * exponential))
    mass = 1.0 if index <= -scale else -np.expm1(-np.log1p(index / scale) / index)
    return _cut_off(lambda p: scale * np.expm1(-index * np.log1p(-p * mass)) / index)


def _cut_off(quantiles: Quantiles) -> Quantiles:
    def inside(probabilities: FloatArray) -> FloatArray:
        with np.errstate(divide="ignore", over="ignore"):
            return np.minimum(1.0, quantiles(probabilities))

    return inside


def mirrored(quantiles: Quantiles | None) -> Quantiles | None:
    """The mirror image of a density; None of None."""
    return None if quantiles is None else _flipped(quantiles)


def _flipped(quantiles: Quantiles) -> Quantiles:
    return lambda probabilities: 1 - quantiles(1 - probabilities)
