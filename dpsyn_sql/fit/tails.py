"""How many rows lie beyond the range that discovery found, octave by octave; public, from noisy counts.

Discovery stops where its noise hides what is left. One-way tables have less noise, so some octaves more are
codes of them. Far out these counts are noise, and one row there weighs as much in a standard deviation as
thousands in the body: neither the counts as they are nor zeros will do. So a tail is fitted to the counts.

*Models.* In t = log2 of the distance from zero, rows fall from the densest part of the body on, as
exp(-a t) (a Pareto tail of index a / ln 2) or as a Gaussian (a log-normal one). A grid of slopes, centres and
widths has both. Each curve is also tried with an end after none or a few of the further cells (``ENDS``):
percentages end at 100. The level of a curve is fitted, and integrated out with a flat prior.

*Evidence.* Counts have their known noise, and columns are no curves: they scatter around one
(``SCATTERS``). Beyond ``HUBER`` deviations evidence grows as for Laplace noise, which pure accounts have.
Curves are weighed by their posterior probabilities. A cell that most of them reach gets the geometric mean
of their rows: the arithmetic one follows the heaviest tail that is not yet refuted.

*Empirical Bayes.* The estimate of a cell is the mean of curve and count by their variances: a heavy cell
keeps its count, a light one follows the curve, not zero. A tail ends where it has less than ``LEAST_ROWS``
left, or where the rest hardly moves the standard deviation of the column (``MOVES``).

*Without a body* (nothing but zero was found) curves are humps, Gaussians in t anywhere, or there is
nothing.

*Spikes.* A count that no curve explains (999,999 for missing) is kept if its evidence outweighs how rare
such values are, the more so the further out it is (``SPIKE``, ``FURTHER``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.attributes.attribute import Attribute, Domain, edge_ticks
from dpsyn_sql.fit.arrays import FloatArray
from dpsyn_sql.fit.variances import OneWayCounts

SCATTERS, SCATTER_ALONE = (0.1, 0.2, 0.4, 0.8), 0.5
"""Relative deviations of the rows of a cell from the best of all curves, of which the likeliest is taken; and
from the best hump without a body."""

HUBER = 2.5
"""Deviations of noise from which evidence grows linearly."""

ENDS = (0.25, 0.15, 0.1, 0.05, 0.05)
"""How common columns are that end where the found range ends, and one cell further, and so on."""

REACHES = 0.5
"""Probability of a tail that reaches a cell from which on it has rows."""

PARETO = 0.5
"""How common Pareto tails are."""

SPIKE, FURTHER = 0.02, math.log(2) / 2
"""How common spikes are beside the found range, and the logarithm of how much rarer they are in each further
cell."""

LEAST_ROWS = 0.5
"""A tail ends where it has fewer rows left."""

MOVES, JUMPS, SEEN = 0.05, 0.8, 4.0
"""The part of a variance that the end of a tail must have; the part of the variance of all nearer values that
a further cell may add; the deviations of noise above which a count needs neither."""

BODY, PART, FINEST = 6.0, 0.25, 2.0**-6
"""Units of the found range that tell how a tail begins, and the least width of their cells. A unit is an
octave, or less in narrow columns, down to ``FINEST``."""

_SLOPES = np.geomspace(1.1, 12.0, 20)  # per unit, of Pareto tails
_CENTRES = np.linspace(-6.0, 1.0, 15)  # units, of log-normal tails, from where they begin
_WIDTHS = np.geomspace(0.25, 4.0, 21)  # units
_PRIOR = np.concatenate(
    [
        np.full(_SLOPES.size, PARETO / _SLOPES.size),
        np.full(_CENTRES.size * _WIDTHS.size, (1 - PARETO) / (_CENTRES.size * _WIDTHS.size)),
    ]
)
_HUMPS = np.geomspace(0.5, 2.5, 6)  # octaves, widths of what has no body
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)
_TINY = 1e-300
_LARGE = 30.0  # deviations: levels and spikes are about so large, or less
_LAPLACE = math.sqrt(2)  # deviations from which evidence for spikes grows linearly
_ROUNDS = 3


def with_tails(attribute: Attribute, values: FloatArray, sigma: FloatArray) -> FloatArray:
    """Counts with those of the bins beyond the found range estimated, none of them negative.

    Args:
        attribute: of learnt bins.
        values: noisy rows (float64[size]).
        sigma: their standard errors (float64[size]).
    """
    rows = values.astype(np.float64)
    if any(attribute.beyond):
        number = attribute.regular
        edges, sigma = places_of(attribute), np.maximum(sigma, 1e-3)  # exact answers (tests only)
        below, above = attribute.beyond
        counts, errors = rows[:number].copy(), sigma[:number]
        if above:
            rows[number - above : number] = _side(edges, counts, errors, above)
        if below:
            rows[:below] = _side(-edges[::-1], counts[::-1], errors[::-1], below)[::-1]
        clear = counts > SEEN * errors
        rows[: attribute.regular] = _worth(edges, rows[: attribute.regular], attribute.beyond, clear)
    return rows


def _worth(
    edges: FloatArray, rows: FloatArray, beyond: tuple[int, int], clear: NDArray[np.bool_]
) -> FloatArray:
    """Rows without the ends of tails that hardly move the standard deviation, or that would make most of it,
    unless their counts are seen: there may be no such values, and nobody misses them, or everybody sees
    them."""
    first, last = beyond[0], len(rows) - beyond[1]
    pruned, weights = rows.copy(), np.maximum(rows, 0.0)
    middles = edges[:-1] / 2 + edges[1:] / 2
    middles[:first], middles[last:] = edges[1 : first + 1], edges[last:-1]  # rows lie near the body
    total = max(float(weights.sum()), 1.0)
    scale = max(float(np.abs(middles).max()), _TINY)  # squares of doubles may overflow
    away = middles / scale - float(weights @ (middles / scale)) / total
    squares = weights * away**2
    for side in (range(first), range(len(rows) - 1, last - 1, -1)):
        moved = 0.0
        for cell in side:
            moved += float(squares[cell])
            if clear[cell] or moved > MOVES * float(squares.sum()):
                break
            pruned[cell] = 0.0
        nearer = float(squares[first:last].sum())
        for cell in reversed(side if last - first > 1 else ()):  # zero alone has no variance
            if not clear[cell] and squares[cell] > JUMPS * nearer:
                pruned[[outer for outer in side[: side.index(cell) + 1] if not clear[outer]]] = 0.0
                break
            nearer += 0.0 if clear[cell] else float(squares[cell])
    return pruned


def outside(attribute: Attribute) -> NDArray[np.bool_]:
    """Which codes are bins beyond the found range (bool[size])."""
    inside = np.ones(attribute.size, dtype=np.bool_)
    inside[: attribute.regular] = False
    inside[attribute.found] = True
    return ~inside


def places_of(attribute: Attribute) -> FloatArray:
    """The edges of bins as numbers, in any unit."""
    if attribute.type.family == "float":
        return np.array([float(str(edge)) for edge in attribute.edges])
    return np.array([float(tick) for tick in edge_ticks(attribute)])


def _side(edges: FloatArray, counts: FloatArray, sigma: FloatArray, number: int) -> FloatArray:
    """Rows of the last ``number`` bins, of which the cells of the body before them are told."""
    first, start = len(counts) - number, int(np.searchsorted(edges, 0.0, side="right"))
    if start >= first:
        tail = slice(max(start, first), None)
        rows = np.zeros(number)
        with np.errstate(divide="ignore"):
            rows[tail.start - first :] = alone(np.log2(edges[tail]), counts[tail], sigma[tail])
        return rows
    octaves = np.log2(edges[start:]) - np.log2(edges[first])
    counts, sigma, first = counts[start:], sigma[start:], first - start
    octaves = octaves / _unit(octaves, counts, first)
    cells = [first]
    for cell in range(first - 1, -1, -1):
        if octaves[cell] < -BODY:
            break
        if octaves[cells[-1]] - octaves[cell] >= PART:
            cells.append(cell)
    cells = cells[::-1] if len(cells) > 1 else [0, first]
    mass = np.add.reduceat(counts[: cells[-1]], cells[:-1])
    noise = np.sqrt(np.add.reduceat(sigma[: cells[-1]] ** 2, cells[:-1]))
    return beyond(
        np.concatenate([octaves[cells], octaves[first + 1 :]]),
        np.concatenate([mass, counts[first:]]),
        np.concatenate([noise, sigma[first:]]),
        len(mass),
    )


def _unit(octaves: FloatArray, counts: FloatArray, first: int) -> float:
    """In which unit a tail is looked at, in octaves: half the way from the median of the body to its end.
    Heights of people lie within an octave, and their tail within a part of one."""
    reached = np.cumsum(np.maximum(counts[:first], 0.0))
    median = octaves[int(np.searchsorted(reached, reached[-1] / 2))]
    return float(np.clip(-median / 2, FINEST, 1.0))


def beyond(cuts: FloatArray, counts: FloatArray, sigma: FloatArray, body: int) -> FloatArray:
    """Estimated rows of the cells beyond the found range (float64[m - body], none negative).

    Args:
        cuts: log2 of the distance from zero (float64[m + 1], ascending).
        counts: noisy rows of the cells between them (float64[m]).
        sigma: their standard errors (float64[m], above 0).
        body: so many first cells are in the found range, at least one; the tail begins in the densest.
    """
    start = int(np.argmax(counts[:body] / np.diff(cuts)[:body]))
    cuts, counts, sigma, body = cuts[start:], counts[start:], sigma[start:], body - start
    shapes = _tails(tuple(cuts - cuts[0]))
    rare = np.concatenate([np.full(body, np.inf), _rarity(len(counts) - body)])
    fits = [_fitted(shapes, counts, sigma, scatter, rare) for scatter in SCATTERS]
    most = max(float(logs.max()) for _, logs in fits)
    scatter = SCATTERS[int(np.argmax([_PRIOR @ np.exp(logs - most) for _, logs in fits]))]
    ends = [*range(body, min(body + len(ENDS), len(counts))), len(counts)]
    cells = np.arange(len(counts))
    fits = [_fitted(np.where(cells < end, shapes, 0.0), counts, sigma, scatter, rare) for end in ends]
    most = max(float(logs.max()) for _, logs in fits)
    priors = [*ENDS[: len(ends) - 1], 1 - sum(ENDS[: len(ends) - 1])]
    weights = [prior * _PRIOR * np.exp(logs - most) for prior, (_, logs) in zip(priors, fits, strict=True)]
    total_weight = sum(float(weight.sum()) for weight in weights)
    tail = _typical(weights, [rows[:, body:] for rows, _ in fits], total_weight)
    return _shrunk(counts[body:], sigma[body:], np.where(np.cumsum(tail == 0) > 0, 0.0, tail), scatter)


def alone(cuts: FloatArray, counts: FloatArray, sigma: FloatArray) -> FloatArray:
    """Estimated rows (float64[m], none negative) if nothing of the column but zero was found; as
    ``beyond``."""
    shapes, centres = _humps(tuple(cuts))
    rows, logs = _fitted(shapes, counts, sigma, SCATTER_ALONE)
    nothing = -_evidence(counts / sigma, HUBER).sum() - float(np.log(sigma).sum())
    level = rows.sum(axis=1) / shapes.sum(axis=1)
    logs = np.where(level > 0, logs - math.log(_LARGE * float(sigma.mean())), -np.inf)
    logs -= FURTHER * np.maximum(centres - cuts[0], 0.0)
    weights = np.exp(logs - max(float(logs.max()), nothing)) / len(logs)
    hump = np.zeros(len(counts))
    if weights.sum() > math.exp(nothing - max(float(logs.max()), nothing)):
        hump = _typical([weights], [rows], weights.sum())
    return _shrunk(counts, sigma, hump, SCATTER_ALONE)


def _typical(weights: Sequence[FloatArray], rows: Sequence[FloatArray], total_weight: float) -> FloatArray:
    """Of each cell the geometric mean of the rows (models, m) of the curves that reach it, by their weights
    (models,); 0 where they have too little of the whole weight."""
    reaching = sum((weight @ (curve > 0) for weight, curve in zip(weights, rows, strict=True)), np.zeros(1))
    logs = sum(
        (
            weight @ np.log(np.where(curve > 0, np.maximum(curve, _TINY), 1.0))
            for weight, curve in zip(weights, rows, strict=True)
        ),
        np.zeros(1),
    )
    return np.where(reaching >= REACHES * total_weight, np.exp(logs / np.maximum(reaching, _TINY)), 0.0)


def _shrunk(counts: FloatArray, sigma: FloatArray, expected: FloatArray, scatter: float) -> FloatArray:
    """Between curve and count by their variances; spikes keep their count."""
    spread = (scatter * expected) ** 2
    estimate = expected + spread / (spread + sigma**2) * (counts - expected)
    estimate = np.where(expected > 0, np.maximum(estimate, 0.0), 0.0)
    estimate = np.where(estimate[::-1].cumsum()[::-1] < LEAST_ROWS, 0.0, estimate)
    excess = counts - expected
    needed = _rarity(len(counts))
    spikes = (excess > 0) & (_evidence(excess / np.sqrt(sigma**2 + spread), _LAPLACE) > needed)
    return np.where(spikes, np.maximum(counts, 0.0), estimate)


def _rarity(cells: int) -> FloatArray:
    """Minus the logarithm of how common a spike of some size is in each cell."""
    return np.asarray(math.log(_LARGE / SPIKE) + FURTHER * np.arange(cells))


def _evidence(deviations: FloatArray, huber: float) -> FloatArray:
    """Minus the logarithm of the density of noise, up to a constant: a parabola, then its tangents."""
    away = np.abs(deviations)
    return np.asarray(np.where(away < huber, away**2 / 2, huber * away - huber**2 / 2))


def _fitted(
    shapes: FloatArray,
    counts: FloatArray,
    sigma: FloatArray,
    scatter: float,
    rare: FloatArray | float = np.inf,
) -> tuple[FloatArray, FloatArray]:
    """Of each curve (models, m) its rows by weighted least squares, none negative, and the logarithm of its
    evidence (models,). Where a spike explains a count, a curve need not: ``rare`` is what it costs."""
    variance = np.broadcast_to(sigma**2 + (scatter * np.maximum(counts, 0.0)) ** 2, shapes.shape)
    for _ in range(_ROUNDS):
        precision = np.maximum((shapes**2 / variance).sum(axis=1), _TINY)
        level = np.maximum((shapes * counts / variance).sum(axis=1) / precision, 0.0)
        rows = level[:, None] * shapes
        variance = sigma**2 + (scatter * rows) ** 2
    away = (counts - rows) / np.sqrt(variance)
    misfit = np.where(away > 0, np.minimum(_evidence(away, HUBER), rare), _evidence(away, HUBER)).sum(axis=1)
    return rows, -misfit - np.log(variance).sum(axis=1) / 2 - np.log(precision) / 2


@lru_cache(maxsize=64)
def _tails(cuts: tuple[float, ...]) -> FloatArray:
    """The curves of tails from 0 on, 1 there, summed over each cell (models, m)."""
    nodes, halves = _nodes(cuts)
    centres, widths = (grid.ravel()[:, None, None] for grid in np.meshgrid(_CENTRES, _WIDTHS))
    normal = (centres**2 - (nodes - centres) ** 2) / (2 * widths**2)
    exponents = np.concatenate([-_SLOPES[:, None, None] * nodes, normal])
    return np.asarray((np.exp(exponents) * _WEIGHTS).sum(axis=2) * halves)


@lru_cache(maxsize=64)
def _humps(cuts: tuple[float, ...]) -> tuple[FloatArray, FloatArray]:
    """Humps of one row with a centre in each half octave (models, m), whole, and without what is beyond some
    cell if that is less than half; and their centres."""
    nodes, halves = _nodes(cuts)
    grid = np.meshgrid(np.arange(cuts[0], cuts[-1], 0.5), _HUMPS)
    centres, widths = (values.ravel()[:, None, None] for values in grid)
    density = np.exp(-((nodes - centres) ** 2) / (2 * widths**2))
    uncut = (density * _WEIGHTS).sum(axis=2) * halves
    ends = np.arange(1, halves.size + 1)[:, None, None]
    cut = np.where(np.arange(halves.size) < ends, uncut, 0.0).reshape(-1, halves.size)
    far = np.tile(centres.ravel(), halves.size)
    mostly_inside = cut.sum(axis=1) > np.tile(uncut.sum(axis=1), halves.size) / 2
    return cut[mostly_inside] / cut[mostly_inside].sum(axis=1, keepdims=True), far[mostly_inside]


def _nodes(cuts: tuple[float, ...]) -> tuple[FloatArray, FloatArray]:
    """Places of the Gauss-Legendre rule in each cell (m, nodes), and half its width (m,)."""
    edges = np.array(cuts)
    halves = np.diff(edges) / 2
    return (edges[1:] + edges[:-1])[:, None] / 2 + halves[:, None] * _NODES, halves


def with_estimates(domain: Domain, counts: Mapping[str, OneWayCounts]) -> dict[str, OneWayCounts]:
    """Counts of attributes, with those beyond found ranges estimated (``with_tails``)."""
    return {
        name: replace(table, counts=with_tails(domain[name], table.counts, table.sigma))
        if any(domain[name].beyond)
        else table
        for name, table in counts.items()
    }
