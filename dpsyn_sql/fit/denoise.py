"""Noise out of one-way tables before anything rests on them, and bins wide enough to be seen.

Working bins: attributes in as many bins as stand out of the noise, and codes within bins.

Post-processing of noisy one-way tables only.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.ndimage import gaussian_filter1d

from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.fit.arrays import FloatArray, IntArray, posterior_means, simplex_projection, snapped
from dpsyn_sql.fit.estimate import Observation, total_of
from dpsyn_sql.fit.tails import outside, with_tails

HAAR_SHIFTS = 32
HAAR_SIGMAS = 2.5
"""Detail coefficients below this many sigmas are noise; of k codes, below sqrt(2 ln k) sigmas if that is less
(the universal threshold of Donoho and Johnstone 1994), so that a dozen coarse bins keep their shape."""

BANDWIDTHS = (1, 2, 4, 8, 16, 32, 64)
"""Standard deviations of the Gaussian kernels (codes), as far as three of them fit among the codes.
64 continues the series for columns of more than 100 codes (docs/results_details.md)."""

TEMPERATURE = 8.0
"""Temperature of the weights of estimates, in squared sigmas (Dalalyan and Salmon 2012;
docs/results_details.md)."""

HEAVY = 4.0
"""Unordered codes above this many sigmas stand for themselves; the others learn from each other."""

_GRID = 2.0**-10
# Rows.

_NEAR = 0.5
# Sigmas: half the width of the triangular kernel that estimates the density of coefficients at the threshold.
# A box would let the last bits of a float decide on a coefficient at its edge.

_SHORTEST = 5
# Codes that smoothing needs: fewer have no neighbours to learn from.

_FEWEST = 3
# Small codes that can learn from each other.

_STEP, _BEYOND = 0.25, 2.0
# Sigmas: spacing of the grid of possible counts, and how far above ``HEAVY`` it reaches.

_LOWEST = -40.0
# Sigmas: what lies further below zero tells no more, and its square stays in range.

_LEAST_LIGHT = 1e-3
# Of all rows: with fewer in light codes, their bins do not become finer.

_EM_STEPS, _EM_COUNT = 100, 0.5
# Steps of expectation maximisation, and codes in all that the grid holds beforehand.


def smoothed(values: FloatArray, sigma: float) -> FloatArray:
    """Noisy counts in order, the weighted mean of estimates from none to much smoothing.

    Each estimate weighs exp(-r / ``TEMPERATURE``), r Stein's unbiased estimate of its squared error in
    sigmas^2: |estimate - y|^2 / sigma^2 + 2 x degrees of freedom - k (Leung and Barron 2006). So smoothing
    goes as far as it explains the counts: wide kernels for a gentle slope, Haar wavelets for steps, the
    counts as they are for spikes.
    """
    if sigma <= 0:
        return values
    estimates = list(_estimates(values, sigma))
    risks = np.array([np.sum(((e - values) / sigma) ** 2) + 2 * freedom for e, freedom in estimates])
    weights = np.exp((risks.min() - risks) / TEMPERATURE)
    return np.asarray(weights @ np.array([estimate for estimate, _ in estimates]) / weights.sum())


def _estimates(values: FloatArray, sigma: float) -> Iterator[tuple[FloatArray, float]]:
    """Estimates and their degrees of freedom: the counts, kernel smoothers, and both nothing and those with
    the steps that Haar shrinkage finds in what they leave over."""
    yield values, float(values.size)
    yield haar_shrinkage(values, sigma)
    for bandwidth in BANDWIDTHS:
        if 3 * bandwidth < values.size:
            smooth = gaussian_filter1d(values, bandwidth)
            freedom = _freedom(bandwidth, values.size)
            yield smooth, freedom
            steps, more = haar_shrinkage(values - smooth, sigma)
            yield smooth + steps, freedom + more


@cache
def _freedom(bandwidth: int, size: int) -> float:
    """Trace of ``gaussian_filter1d`` of ``size`` values: at distance i from an end, which it reflects, a
    value has the weights 0 and 2 i + 1 of the kernel."""
    impulse = np.zeros(8 * bandwidth + 3)
    impulse[impulse.size // 2] = 1.0
    weights = gaussian_filter1d(impulse, bandwidth)[impulse.size // 2 :]
    return float(size * weights[0] + 2 * weights[1::2][:size].sum())


def haar_shrinkage(values: FloatArray, sigma: float) -> tuple[FloatArray, float]:
    """Translation-invariant Haar wavelet shrinkage with a hard threshold (Coifman and Donoho 1995).

    ``values`` (k,) are noisy counts in order, each of noise ``sigma`` above 0. The estimate is the mean over
    shifts of the grid; an orthonormal transform leaves each coefficient with noise sigma. The ends are
    padded by the mean of the outermost four values.

    Returns:
        The estimate, and its degrees of freedom: the coefficients kept, and the threshold (in sigmas) times
        the density of coefficients at it, as a little more noise would let those jump from 0.
    """
    size = values.size
    shifts = min(HAAR_SHIFTS, size)
    length = 1 << (size + shifts - 2).bit_length() if size > 1 else 1
    padded = np.empty((shifts, length))
    for shift in range(shifts):
        padded[shift, :shift] = values[:4].mean()
        padded[shift, shift : shift + size] = values
        padded[shift, shift + size :] = values[-4:].mean()
    threshold = min(HAAR_SIGMAS, float(np.sqrt(2 * np.log(max(size, 1)))))
    average, details = _haar(padded)
    freedom = float(shifts)
    for level, detail in enumerate(details):
        beyond = np.abs(detail) - threshold * sigma
        close = np.maximum(1 - np.abs(beyond) / (_NEAR * sigma), 0.0).sum() / _NEAR
        freedom += np.count_nonzero(beyond > 0) + threshold * float(close)
        details[level] = np.where(beyond > 0, detail, 0.0)
    smooth = _inverse_haar(average, details)
    estimate = np.mean([smooth[shift, shift : shift + size] for shift in range(shifts)], axis=0)
    return estimate, freedom / shifts


def shrink_small_counts(values: FloatArray, sigma: float) -> FloatArray:
    """Noisy counts without order: those below ``HEAVY`` sigmas become their empirical Bayes estimates.

    The distribution of small counts is the one on a grid of counts >= 0 that makes the noisy ones most
    likely (Kiefer and Wolfowitz 1956), found by expectation maximisation; each count becomes its posterior
    mean under it (Jiang and Zhang 2009). Dozens of rare codes end near the level that they share, where a
    projection would put half of them at 0 and the others too high. Noise is taken as Gaussian.
    """
    small = values <= HEAVY * sigma
    if sigma <= 0 or small.sum() < _FEWEST:
        return values
    grid = np.arange(0.0, HEAVY + _BEYOND + _STEP / 2, _STEP)
    standard = np.maximum(values[small] / sigma, _LOWEST)
    exponents = -0.5 * (standard[:, None] - grid) ** 2
    likelihood = np.exp(exponents - exponents.max(axis=1, keepdims=True))
    even = np.full(grid.size, 1.0 / grid.size)

    def learnt(posterior: FloatArray) -> FloatArray:
        prior = posterior.sum(axis=0) + _EM_COUNT / grid.size
        return np.asarray(prior / prior.sum())

    estimate = values.astype(np.float64)
    estimate[small] = sigma * posterior_means(likelihood, grid, even, _EM_STEPS, learnt)
    return estimate


def _haar(rows: FloatArray) -> tuple[FloatArray, list[FloatArray]]:
    """Orthonormal transform of each row: the coarsest average and the details."""
    details = []
    while rows.shape[1] > 1:
        even, odd = rows[:, 0::2], rows[:, 1::2]
        details.append((even - odd) / np.sqrt(2))
        rows = (even + odd) / np.sqrt(2)
    return rows, details


def _inverse_haar(rows: FloatArray, details: list[FloatArray]) -> FloatArray:
    for detail in reversed(details):
        finer = np.empty((len(rows), 2 * rows.shape[1]))
        finer[:, 0::2] = (rows + detail) / np.sqrt(2)
        finer[:, 1::2] = (rows - detail) / np.sqrt(2)
        rows = finer
    return rows


def denoised(attribute: Attribute, values: FloatArray, sigma: float) -> FloatArray:
    """A one-way table with what its codes say about each other: ordered ones are ``smoothed`` (``__other__``
    and NULL have no neighbours), those beyond the found range follow a tail (``with_tails``), of unordered
    ones the small are ``shrink_small_counts``."""
    counts = values.astype(np.float64)
    if not attribute.ordered:
        return snapped(shrink_small_counts(counts, sigma), _GRID)
    inside = attribute.found
    if any(attribute.beyond):
        counts = snapped(with_tails(attribute, counts, np.full(counts.size, sigma)), _GRID)
    if inside.stop - inside.start >= _SHORTEST:
        counts[inside] = snapped(smoothed(values[inside].astype(np.float64), sigma), _GRID)
    return counts


def shares_of(attribute: Attribute, smooth: FloatArray, total: float) -> FloatArray:
    """The probabilities of codes from ``denoised`` counts; ``total`` (rows) is above zero.

    A projection to the simplex moves all counts alike. Those of a tail, which have little noise, stay as they
    are, unless they are more than ``total``.
    """
    tail = outside(attribute)
    in_tail = float(smooth[tail].sum())
    if in_tail >= total:
        return simplex_projection(smooth, total) / total
    shares = smooth / total
    shares[~tail] = simplex_projection(smooth[~tail], total - in_tail) / total
    return np.asarray(shares)


def working_bins(
    attribute: Attribute, values: FloatArray, least: float, most: float, *, finer_tails: bool = False
) -> IntArray:
    """Of each code its working bin, so that bins are heavy enough to be measured.

    Args:
        attribute: of the one-way table.
        values: noisy counts (rows), one per code.
        least: rows below which a code does not stand alone (a few sigmas).
        most: about how many bins an ordered attribute gets at most.
        finer_tails: as for ``merged_neighbours``.

    Ordered codes are merged with their neighbours (``merged_neighbours``), ``__other__`` and NULL with
    the last of them if they are below ``least``; unordered codes below ``least`` share one bin.
    """
    if not attribute.ordered:
        return merged_rare(values, least)
    regular = merged_neighbours(values[: attribute.regular], least, most, finer_tails=finer_tails)
    apart = values[attribute.regular :] >= least
    return np.concatenate([regular, regular[-1] + np.cumsum(apart) * apart])


def rows_of_a_bin(attribute: Attribute, table: Observation, least: float, most: int) -> float:
    """The rows that a code needs for a bin of its own: ``least``, and of unordered codes what at most
    ``most`` of them have."""
    if attribute.ordered or attribute.size <= most:
        return least
    return max(least, float(np.nextafter(np.sort(table.values)[-most - 1], math.inf)))


def merged_neighbours(
    values: FloatArray, least: float, most: float, *, finer_tails: bool = False
) -> IntArray:
    """Bins of neighbours holding ``least`` and a share of 1/``most`` each; heavy codes stay alone.

    ``finer_tails``: if the codes below that share hold the part l of all rows, sqrt(l) of it is enough. Else
    the light tail of a column that is nearly always zero would fall into three or four bins.
    """
    need = least
    if values.size > most:
        even = max(float(values.sum()), 1.0) / most
        need = max(least, even * (_tail(values, even) if finer_tails else 1.0))
    bins = np.zeros(values.size, dtype=np.int64)
    current, mass = 0, 0.0
    for code, value in enumerate(values.tolist()):
        if code and (mass >= need or (mass > need / 2 and value >= need)):
            current, mass = current + 1, 0.0
        bins[code] = current
        mass += max(value, 0.0)
    if current and mass < need / 2:
        bins[bins == current] = current - 1
    return bins


def _tail(values: FloatArray, even: float) -> float:
    """sqrt of the part of all rows that codes of less than ``even`` rows hold."""
    counts = np.maximum(values, 0.0)
    light = math.fsum(counts[counts < even]) / max(math.fsum(counts), 1.0)
    return math.sqrt(max(light, _LEAST_LIGHT))


def merged_rare(values: FloatArray, least: float) -> IntArray:
    """All codes below ``least`` share the last bin; a single one keeps its own."""
    rare = values < least
    if rare.sum() <= 1:
        return np.arange(values.size, dtype=np.int64)
    bins = np.cumsum(~rare) - 1
    bins[rare] = (~rare).sum()
    return np.asarray(bins, dtype=np.int64)


def within_bins(probabilities: FloatArray, bins: IntArray) -> FloatArray:
    """Of each code its probability given its bin; uniform in a bin of no mass."""
    mass = np.bincount(bins, weights=probabilities)[bins]
    codes = np.bincount(bins)[bins]
    return np.divide(probabilities, mass, out=1.0 / codes, where=mass > 0)


_MANY_CODES = 1_000
# Above it the noise of empty neighbours would make bins; below it raw counts give better bins.

_TRACE = 1e-9
# The part of the total that is added to each code, so that every code can occur.


@dataclass(frozen=True, slots=True)
class Binned:
    """The attributes of a domain in their working bins, in domain order.

    ``bins[i]`` (int64, one per code) is the bin of each code, ``within[i]`` (float64, one per code) its
    probability given the bin. ``observed[i]`` is the smoothed one-way table over bins with the noise that it
    was measured with, ``shares[i]`` (float64, one per bin) its probabilities.
    """

    domain: Domain
    bins: tuple[IntArray, ...]
    within: tuple[FloatArray, ...]
    observed: tuple[Observation, ...]
    shares: tuple[FloatArray, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """Bins of each attribute."""
        return tuple(table.values.size for table in self.observed)


def binned(
    domain: Domain,
    one_ways: Sequence[Observation],
    least: Sequence[float],
    most: float,
    *,
    finer_tails: bool = False,
) -> Binned:
    """Denoise the one-way tables and choose working bins.

    Args:
        domain: the public domain.
        one_ways: one noisy table per attribute, in domain order.
        least: for each attribute the rows below which a code does not stand alone.
        most: about how many bins an ordered attribute gets at most.
        finer_tails: as for ``merged_neighbours``.
    """
    total = max(total_of(one_ways), 1.0)
    result = Binned(domain, (), (), (), ())
    columns: list[tuple[IntArray, FloatArray, Observation, FloatArray]] = []
    for attribute, table, rows in zip(domain.attributes, one_ways, least, strict=True):
        sigma = float(table.sigma)
        smooth = table.values if table.settled else denoised(attribute, table.values, sigma)
        fine = shares_of(attribute, smooth, total) + _TRACE
        many = attribute.ordered and attribute.size > _MANY_CODES
        counts = snapped(total * fine, _GRID) if many else np.where(outside(attribute), smooth, table.values)
        bins = working_bins(attribute, counts, rows, most, finer_tails=finer_tails)
        noisy = np.maximum(np.bincount(bins, weights=~outside(attribute)), 1.0)
        observed = Observation(
            np.asarray(np.bincount(bins, weights=smooth), dtype=np.float64),
            np.asarray(sigma * np.sqrt(noisy)),
        )
        columns.append((bins, within_bins(fine, bins), observed, np.bincount(bins, fine).astype(np.float64)))
    if columns:
        result = Binned(domain, *map(tuple, zip(*columns, strict=True)))
    return result


# -- shapes of cells -------------------------------------------------------------------------------------

# Where the counts of cells say more than the shape of a smooth part: they are followed; public.
#
# A log-normal part has few parameters. Where noise is small the counts show more: that a column ends at 25
# and 64, or has two peaks. Each step needs evidence, so where noise hides all, the part stays as it is.

END_COST = 6.0
"""Squared deviations that leaving out the cells of one end must explain."""

SPLIT_SIGMAS = 2.5
"""Deviations by which the halves of a stretch must differ from the shape to be followed."""

NONE_SIGMAS = 2.0
"""Deviations of noise below which a half that lost rows has none."""


def reshaped(expected: FloatArray, counts: FloatArray, sigma: float) -> FloatArray:
    """Rows of cells in order (float64[k]), as many in all as expected.

    First the ends where values were expected and none are seen get none. Then rows are divided from the whole
    down to single cells, each stretch where half of its expected rows lie on either side: in proportion to
    the counts where they contradict the shape, else as expected.

    Args:
        expected: rows by the shape, float64[k], none negative.
        counts: noisy counts of the same cells, float64[k] (rows).
        sigma: deviation of their noise (rows), above 0.
    """
    shape = _without_ends(expected, counts, sigma)
    rows, cells = np.zeros_like(shape), np.flatnonzero(shape > 0)
    if cells.size:
        rows[cells] = _divided(shape[cells], counts[cells], sigma, float(shape.sum()))
    return rows


def _without_ends(expected: FloatArray, counts: FloatArray, sigma: float) -> FloatArray:
    """The shape cut where that explains the counts best, with the same sum."""
    gains = (expected**2 - 2 * counts * expected) / sigma**2
    shape = expected.copy()
    for side in (slice(None), slice(None, None, -1)):
        sums = np.cumsum(gains[side])
        last = int(np.argmax(sums))
        if sums[last] > END_COST:
            shape[side][: last + 1] = 0.0
    left = float(shape.sum())
    return shape * (float(expected.sum()) / left) if left > 0 else expected


def _divided(shape: FloatArray, counts: FloatArray, sigma: float, rows: float) -> FloatArray:
    """So many rows over the cells of a stretch, each of which is expected to have some."""
    if shape.size == 1 or rows <= 0:
        return np.full(shape.size, rows / shape.size) if shape.size == 1 else np.zeros(shape.size)
    sums = np.cumsum(shape)
    middle = int(np.argmin(np.abs(sums[:-1] - sums[-1] / 2))) + 1
    share = _share(shape, counts, sigma, middle)
    halves = ((slice(middle), share), (slice(middle, None), 1 - share))
    return np.concatenate([_divided(shape[half], counts[half], sigma, rows * part) for half, part in halves])


def _share(shape: FloatArray, counts: FloatArray, sigma: float, middle: int) -> float:
    """Of the rows of a stretch, the share of the cells before the middle."""
    expected = float(shape[:middle].sum() / shape.sum())
    sizes = np.array([middle, shape.size - middle])
    sums = np.array([counts[:middle].sum(), counts[middle:].sum()])
    weights = np.array([1 - expected, -expected])
    if abs(weights @ sums) <= SPLIT_SIGMAS * sigma * math.sqrt(float(weights**2 @ sizes)):
        return expected
    sums[sums < NONE_SIGMAS * sigma * np.sqrt(sizes)] = 0.0
    return float(sums[0] / sums.sum()) if sums.any() else expected
