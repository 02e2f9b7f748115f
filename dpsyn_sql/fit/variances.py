"""The error of a model's estimates, from variance components of each marginal; public.

The error of a cell of a pair of attributes i and j, estimated at m rows, has three sources, told apart by
what the noisy answers say of each (the notation: m_i and m_j rows in the row and the column of the cell, of
N):

- *The one-way tables.* Noise of variance s_i^2 in m_i moves the cell by the part p(j | i) of it, and that in
  m_j likewise: s_i^2 p(j | i)^2 + s_j^2 p(i | j)^2. Codes with fewer rows than noise have no p(j | i) of
  their own: it is drawn to m_j / N with the weight of s_i rows.
- *What the model does not see of the pair.* Given its margins, a table of independent attributes still varies
  by m (1 - m_i / N) (1 - m_j / N) (Agresti 2013, "Categorical Data Analysis", 3.5). Dependence that the model
  has not adds k m: overdispersion, as in a quasi-Poisson model (McCullagh and Nelder 1989, section 6.2).
- *A noisy table of the pair*, which sees it with variance s^2 in a cell. Both together leave the variance of
  a posterior: 1 / (1 / (own variance) + 1 / s^2).

A count is not below 0, and not above the rows in all or those of one of its codes: no error is so large that
its 95 % interval reaches beyond both.

Models and noisy tables are over bins. A code with the share w of its cell has w^2 of the variance of the
cell, and (1 - w) of its own sampling error beyond it. Codes are taken to differ within a cell as cells differ
from each other, by k w m, of which (1 - w) is beyond the cell: codes of a bin of unlike places are no copies.
Of a code without rows noise hides some: m counts with the rows that a code of s_i noise has left to expect.

This is in the place of a number for each cell, as survey offices publish variance functions in the place of
standard errors (Wolter 2007, "Introduction to Variance Estimation", chapter 7).

*One-way counts*: what all noisy tables together say about the codes of each attribute. A table of noise sigma
per cell, summed to one attribute so that c of its cells fall into a code, estimates the count of each code
with variance c sigma^2. Several tables are averaged with inverse-variance weights.

*Dispersion*: how far the counts of pairs are from a model, beyond sampling. The L1 distance D of a table of
counts to what a model expects has three parts: the sampling error of the counts, A = sum E|count - m| at
dispersion 0; noise of the margins that the model was made from, B; and dependence that the model has not,
which multiplies the sampling variance by 1 + k. Parts of a distance add as deviations do, so (1 + k) A^2 +
B^2 = D^2.

Noisy distances are drawn to each other first (empirical Bayes), since the noise of one alone may be far
larger than A.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from dpsyn_sql.attributes.attribute import Domain
from dpsyn_sql.fit.arrays import FloatArray
from dpsyn_sql.fit.graph import Scope
from dpsyn_sql.planning.queries import Map, NoisyMarginal

HIDDEN = 0.8
"""A code that is estimated at m rows with noise s has (sqrt(m^2 + (HIDDEN s)^2) - m) / 2 rows more, on
average: 0.4 s at m = 0, as the mean of a Gaussian above 0, and little from m = 2 s on."""

TWO_SIDED = 1.96
"""Standard errors of normal noise that 95 of 100 releases stay within."""

MARGIN = 2.0
"""A count of a pair is not above those of its codes, which are known up to so many standard errors."""

SMALLEST_SHARE = 1e-12
"""Of a cell in which a code has no part, so that nothing is divided by 0."""


@dataclass(frozen=True, slots=True)
class Components:
    """Of a marginal. ``dispersion``: k, 0 or more; it counts for pairs alone. ``precision``: 1 / s^2
    (1 / rows^2) of a cell, 0 where the marginal was not measured; above 0 for one attribute."""

    dispersion: float
    precision: float


@dataclass(frozen=True, slots=True)
class Variances:
    """Of the estimates of a model.

    ``within[i]`` (float64, one per code of attribute i): its share of its working bin. ``components``: by the
    positions of attributes, ascending. A marginal that is not there has no error that is known, and so have
    all of three attributes and more.
    """

    within: Sequence[FloatArray] = ()
    components: Mapping[Scope, Components] = field(default_factory=dict)

    def of(self, positions: Sequence[int], estimate: FloatArray) -> FloatArray | None:
        """Variances (rows^2) of estimated counts (rows, none below 0), of the same shape; None if not known.

        Axes are in the order of ``positions``.
        """
        by_scope = self.components
        components = by_scope.get(tuple(sorted(positions)))
        singles = [by_scope.get((position,)) for position in positions]
        if components is None or None in singles or len(positions) > 2:
            return None
        errors = [1 / math.sqrt(single.precision) for single in singles if single is not None]
        if len(positions) == 1:
            return np.minimum(errors[0] ** 2, largest_variance(estimate, float(estimate.sum())))
        first, second = (self.within[position] for position in positions)
        return pair_variance(components, estimate, np.multiply.outer(first, second), errors[0], errors[1])


NO_VARIANCES = Variances()
"""Of a model of which nothing is known."""


def pair_variance(
    components: Components, estimate: FloatArray, within: FloatArray, first: float, second: float
) -> FloatArray:
    """Variances (rows^2) of the cells of a pair.

    Args:
        components: of the pair.
        estimate: rows (l1, l2), none below 0.
        within: the share of each code pair in its cell over bins, same shape.
        first: standard error (rows) of the codes of the first attribute.
        second: of the second.
    """
    total = max(float(estimate.sum()), np.finfo(np.float64).tiny)
    within = np.maximum(within, SMALLEST_SHARE)
    rows, columns = estimate.sum(axis=1, keepdims=True), estimate.sum(axis=0, keepdims=True)
    given_row = (estimate + first * columns / total) / (rows + first)
    given_column = (estimate + second * rows / total) / (columns + second)
    margins = (first * given_row) ** 2 + (second * given_column) ** 2
    expected = estimate + _hidden(rows, first) * given_row + _hidden(columns, second) * given_column
    free = (1 - rows / total) * (1 - columns / total)
    unseen = (free + components.dispersion) * expected
    visible = unseen * within**2 / (within + unseen * components.precision)
    # Never below 0: rounding can make free so.
    beyond = (free + components.dispersion * within) * expected * (1 - within)
    most = np.minimum(np.minimum(rows + MARGIN * first, columns + MARGIN * second), total)
    return np.asarray(np.clip(beyond + visible + margins, 0, largest_variance(estimate, most)))


def largest_variance(estimate: FloatArray, most: FloatArray | float) -> FloatArray:
    """The largest variance (rows^2) of an estimate, same shape, of a count from 0 to ``most`` rows: its 95 %
    interval then reaches to the further of both. Infinite of a table without rows: nothing is known of it."""
    farthest = np.maximum(estimate, most - estimate) / TWO_SIDED
    return np.asarray(farthest**2 if estimate.sum() > 0 else np.full(estimate.shape, np.inf))


def _hidden(rows: FloatArray, error: float) -> FloatArray:
    return np.asarray((np.sqrt(rows**2 + (HIDDEN * error) ** 2) - rows) / 2)


def one_way_components(domain: Domain, answers: Sequence[NoisyMarginal]) -> dict[Scope, Components]:
    """Of every attribute whose codes some noisy table tells apart."""
    counts = one_way_counts(domain, answers)
    return {
        (domain.index(name),): Components(0.0, float(np.max(table.sigma)) ** -2)
        for name, table in counts.items()
        if float(np.max(table.sigma)) > 0
    }


_SMALLEST_VARIANCE = 1e-6
# Exact tables (sigma 0, tests only) would otherwise get an infinite weight.


@dataclass(frozen=True, slots=True)
class OneWayCounts:
    """Unbiased noisy counts of the codes of an attribute.

    ``counts`` (float64[size], rows, may be negative) have standard errors ``sigma`` (float64[size], rows).
    """

    counts: FloatArray
    sigma: FloatArray


def one_way_counts(domain: Domain, measurements: Sequence[NoisyMarginal]) -> dict[str, OneWayCounts]:
    """The counts of every attribute that some table holds by its codes, not by wider bins.

    Tables over the attribute alone are averaged; where there is none, the sums of larger tables are.
    """
    sizes = dict(zip(domain.names, domain.shape(), strict=True))
    alone, larger = (dict[str, list[NoisyMarginal]]() for _ in range(2))
    for table in measurements:
        if len(table.attrs) == 1 or not table.composed:
            group = alone if len(table.attrs) == 1 else larger
            for axis, name in enumerate(table.attrs):
                if name in sizes and _by_codes(table, axis, sizes[name]):
                    group.setdefault(name, []).append(table)
    holding = larger | alone
    return {name: _averaged(holding[name], name, size) for name, size in sizes.items() if name in holding}


def _by_codes(table: NoisyMarginal, axis: int, size: int) -> bool:
    """Whether the table tells the codes of an attribute apart, in their order."""
    bins = table.maps[axis] if table.maps else None
    return bins is None or bins == tuple(range(size))


def _averaged(tables: Sequence[NoisyMarginal], name: str, size: int) -> OneWayCounts:
    """Inverse-variance mean of the sums of ``tables``."""
    weighted, weights = np.zeros(size), 0.0
    for table in tables:
        axis = table.attrs.index(name)
        other_axes = tuple(other_axis for other_axis in range(len(table.attrs)) if other_axis != axis)
        weight = 1.0 / max(table.sigma**2 * table.values.size / size, _SMALLEST_VARIANCE)
        weighted += weight * table.values.astype(np.float64).sum(axis=other_axes)
        weights += weight
    return OneWayCounts(weighted / weights, np.full(size, weights**-0.5))


@dataclass(frozen=True, slots=True)
class _Table:
    """Noisy counts (rows) of a pair over the bins of ``maps``, with the variance of a cell."""

    values: FloatArray
    variance: float
    maps: tuple[Map | None, ...]


def followed_pairs(domain: Domain, answers: Sequence[NoisyMarginal]) -> dict[Scope, Components]:
    """Of each pair within a measured table.

    Its dispersion is that of its noisy counts around independence: what the model would not see without the
    table.
    """
    components = dict[Scope, Components]()
    for pair, tables in _pair_tables(domain, answers).items():
        precision = sum(1 / table.variance for table in tables)
        best = min(tables, key=lambda table: table.variance * table.values.size)
        rows, columns = (np.maximum(best.values.sum(axis=axis), 0) for axis in (1, 0))
        expected = np.multiply.outer(rows, columns) / max(float(best.values.sum()), 1.0)
        components[pair] = Components(max(0.0, _dispersion(best, expected)), precision)
    return components


def _dispersion(table: _Table, expected: FloatArray) -> float:
    """k of the counts around what is expected (rows), beyond the noise; negative by chance."""
    squares = float(((table.values - expected) ** 2).sum()) - table.variance * expected.size
    return squares / max(float(expected.sum()), 1.0) - 1


def _pair_tables(domain: Domain, answers: Sequence[NoisyMarginal]) -> Mapping[Scope, list[_Table]]:
    """The tables of every pair, alone or summed from larger ones; of several binnings that of the first."""
    by_pair = dict[Scope, list[_Table]]()
    for answer in answers:
        for pair, table in _pairs_of(domain, answer):
            of_pair = by_pair.setdefault(pair, [])
            if not of_pair or of_pair[0].maps == table.maps:
                of_pair.append(table)
    return by_pair


def _pairs_of(domain: Domain, answer: NoisyMarginal) -> Iterator[tuple[Scope, _Table]]:
    maps, positions = (
        answer.maps or (None,) * len(answer.attrs),
        [domain.index(name) for name in answer.attrs],
    )
    for axes in combinations(range(len(positions)), 2):
        first, second = sorted(axes, key=positions.__getitem__)
        other_axes = tuple(axis for axis in range(len(positions)) if axis not in axes)
        values = answer.values.sum(axis=other_axes).astype(np.float64)
        values = values if first < second else values.T
        variance = max(answer.sigma, 1e-6) ** 2 * answer.values.size / values.size
        yield (positions[first], positions[second]), _Table(values, variance, (maps[first], maps[second]))


_LEAST_SAMPLING = 1e-6
# Rows; a table without rows has no sampling error.


@dataclass(frozen=True, slots=True)
class Distance:
    """A noisy L1 distance of a pair table to a model: ``rows``. ``sampling``: what of it is expected of
    sampling, ``margins``: of noise in the one-way tables (rows)."""

    rows: float
    sampling: float
    margins: float


@dataclass(frozen=True, slots=True)
class Dispersions:
    """k of each pair, 0 or more; ``typical``: of a pair without a distance, as a typical one has it.

    ``within``: of pairs with a coarse twin what the twin does not tell (``within_twin``). ``clear``: of pairs
    whose distance is clear of noise the rows that their dependence moves."""

    pairs: Mapping[Scope, float]
    typical: float
    within: Mapping[Scope, float] = field(default_factory=dict)
    clear: Mapping[Scope, float] = field(default_factory=dict)


def within_twin(fine: float, coarse: float, sampling: float, twin_sampling: float) -> float:
    """k of a pair once its coarse twin is known: (k A^2 - k' A'^2) / A^2, since parts of a distance add as
    deviations do. ``fine``, ``coarse``: k and k'; the rest is A and A'."""
    left = fine - coarse * (twin_sampling / max(sampling, _LEAST_SAMPLING)) ** 2
    return max(0.0, left)


def sampling_distances(expected: FloatArray) -> FloatArray:
    """(n,) sum E|count - m| over the cells of each of n tables (rows m): sqrt(2 m / pi) of a Gaussian, and
    2 m where almost every count is 0."""
    distances = np.minimum(2 * expected, np.sqrt(2 * expected / math.pi))
    return np.asarray(distances.reshape(len(expected), -1).sum(axis=1))


def dispersions(distances: Mapping[Scope, Distance], deviation: float) -> Dispersions:
    """Of the pairs that noisy distances are about.

    Args:
        distances: by pair; one at least.
        deviation: of the noise of all distances (rows).
    """
    sampling = np.maximum([distance.sampling for distance in distances.values()], _LEAST_SAMPLING)
    margins = np.array([distance.margins for distance in distances.values()]) / sampling
    ratios = np.array([distance.rows for distance in distances.values()]) / sampling
    mean, posterior, uncertain = shrunk(ratios, deviation / sampling)
    of_pairs = np.maximum(posterior, 0) ** 2 + uncertain - margins**2 - 1
    typical = float(np.mean(mean**2 + np.var(posterior) - margins**2)) - 1
    return Dispersions(dict(zip(distances, np.maximum(of_pairs, 0).tolist(), strict=True)), max(0.0, typical))


def shrunk(values: FloatArray, deviations: FloatArray) -> tuple[float, FloatArray, FloatArray]:
    """The mean of what noisy values estimate, and the posterior mean and variance of each.

    The spread of what they estimate is that of DerSimonian and Laird (1986).

    Args:
        values: (n,).
        deviations: (n,), of the noise of each, above 0.
    """
    weights = deviations**-2.0
    mean = float((weights * values).sum() / weights.sum())
    spare = weights.sum() - (weights**2).sum() / weights.sum()
    surplus = float((weights * (values - mean) ** 2).sum()) - (values.size - 1)
    spread = max(0.0, surplus / spare) if spare > 0 else 0.0
    weights = 1 / (deviations**2 + spread)
    mean = float((weights * values).sum() / weights.sum())
    trust = spread * weights
    return mean, mean + trust * (values - mean), trust * deviations**2 + (1 - trust) ** 2 / weights.sum()
