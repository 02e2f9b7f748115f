"""From noisy tables that contradict each other to margins and pair tables that agree.

Public side: everything here is post-processing of noisy answers. One rule throughout: an estimate
of a marginal is the weighted least-squares average over ALL measured tables that contain it. A
table of noise sigma per cell, summed to a marginal so that c of its cells fall into one, estimates
each cell of that marginal with variance c sigma^2 (the total is the marginal over no attributes).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.domain.attributes import Domain
from dpsyn_sql.fit.denoise import denoised
from dpsyn_sql.fit.shrinkage import shrink_singular_values
from dpsyn_sql.planning.queries import NoisyMarginal

FloatArray = NDArray[np.float64]

RAKING_ROUNDS = 20
"""Rounds of proportional fitting that restore the margins after a projection, at most."""

_RAKED = 1e-12
# Both margins fit to this probability: further rounds change nothing that is seen.

INDEPENDENT_TRACE = 1e-9
"""Weight of independence in a pair table before it is fitted to its margins."""

_SMALLEST_VARIANCE = 1e-6
# Exact tables (sigma 0, tests only) would otherwise get an infinite weight.


@dataclass(frozen=True, slots=True)
class Estimate:
    """An averaged marginal: ``values`` (rows, of the marginal's shape) and the variance of a cell."""

    values: FloatArray
    variance: float


@dataclass(frozen=True, slots=True)
class Margins:
    """The total (rows, may be negative) and per attribute the probabilities of its codes."""

    total: float
    probabilities: dict[str, FloatArray]


@dataclass(frozen=True, slots=True)
class PairTable:
    """Joint probabilities of two attributes and the noise (rows per cell) of what they rest on."""

    probabilities: FloatArray
    sigma: float


class Measurements:
    """Noisy tables indexed by the attributes they contain (subsets of at most two)."""

    def __init__(self, tables: Iterable[NoisyMarginal]) -> None:
        self._containing: dict[frozenset[str], list[NoisyMarginal]] = {}
        for table in tables:
            for size in range(3):
                for subset in combinations(table.attrs, size):
                    self._containing.setdefault(frozenset(subset), []).append(table)

    def contain(self, attrs: Sequence[str]) -> bool:
        """Whether some table was measured that contains all of ``attrs`` (at most two)."""
        return frozenset(attrs) in self._containing

    def estimate(self, attrs: Sequence[str]) -> Estimate:
        """Inverse-variance weighted average of the marginal over ``attrs`` (at most two)."""
        tables = self._containing[frozenset(attrs)]
        sums = [_summed(table, attrs) for table in tables]
        cells = [table.values.size / max(values.size, 1) for table, values in zip(tables, sums, strict=True)]
        variances = [
            max(count * table.sigma**2, _SMALLEST_VARIANCE)
            for table, count in zip(tables, cells, strict=True)
        ]
        weights = 1.0 / np.array(variances)
        values = sum(weight * part for weight, part in zip(weights, sums, strict=True)) / weights.sum()
        return Estimate(np.asarray(values, dtype=np.float64), float(1.0 / weights.sum()))


def _summed(table: NoisyMarginal, attrs: Sequence[str]) -> FloatArray:
    """The marginal over ``attrs`` (in that order) of a table that contains them."""
    others = tuple(axis for axis, name in enumerate(table.attrs) if name not in attrs)
    values = table.values.astype(np.float64).sum(axis=others)
    kept = [name for name in table.attrs if name in attrs]
    return np.asarray(np.transpose(values, [kept.index(name) for name in attrs]), dtype=np.float64)


def simplex_projection(values: FloatArray, total: float) -> FloatArray:
    """Nearest table (Euclidean) with cells >= 0 that sum to ``total``; zeros if ``total`` <= 0.

    ``values`` may have any shape. Duchi et al. 2008, figure 1: sort, find the one threshold.
    """
    return np.asarray(simplex_projections(np.asarray(values)[None], total)[0])


def simplex_projections(values: FloatArray, total: float) -> FloatArray:
    """``simplex_projection`` of many tables of one shape (tables, cells ...)."""
    if total <= 0 or np.size(values) == 0:
        return np.zeros_like(values, dtype=np.float64)
    # Measured from the largest cell, so that huge values keep their small differences.
    flat = np.asarray(values, dtype=np.float64).reshape(len(values), -1)
    flat = flat - flat.max(axis=1, keepdims=True)
    descending = np.sort(flat, axis=1)[:, ::-1]
    excess = (np.cumsum(descending, axis=1) - total) / np.arange(1, flat.shape[1] + 1)
    last = flat.shape[1] - 1 - np.argmax((descending > excess)[:, ::-1], axis=1)
    projected = np.maximum(flat - np.take_along_axis(excess, last[:, None], axis=1), 0.0)
    return np.asarray(projected * (total / projected.sum(axis=1, keepdims=True))).reshape(np.shape(values))


def fit_margins(domain: Domain, measurements: Measurements) -> Margins:
    """The total and one-way probabilities from all tables; never the true number of rows.

    Each averaged one-way table is denoised (neighbours of ordered codes smoothed, ``fit/denoise.py``) and
    projected to the simplex.

    An attribute that no table contains, and every attribute when the total is not positive, gets
    uniform probabilities.
    """
    total = float(measurements.estimate(()).values) if measurements.contain(()) else 0.0
    probabilities = {}
    for attribute in domain.attributes:
        if total > 0 and measurements.contain([attribute.name]):
            counts = measurements.estimate([attribute.name])
            smooth = denoised(attribute, counts.values, math.sqrt(counts.variance))
            probabilities[attribute.name] = simplex_projection(smooth, total) / total
        else:
            probabilities[attribute.name] = np.full(attribute.size, 1.0 / attribute.size)
    return Margins(total, probabilities)


def fit_pair(measurements: Measurements, margins: Margins, attrs: tuple[str, str]) -> PairTable:
    """Joint probabilities of two attributes, consistent with the margins, denoised (``fit_joint``).

    A pair that no table contains is independent.
    """
    first, second = (margins.probabilities[name] for name in attrs)
    if margins.total <= 0 or not measurements.contain(attrs):
        return PairTable(np.outer(first, second), 0.0)
    estimate = measurements.estimate(attrs)
    sigma = float(np.sqrt(estimate.variance))
    return PairTable(fit_joint(estimate.values, sigma, first, second, margins.total), sigma)


def fit_joint(
    values: FloatArray, sigma: float, first: FloatArray, second: FloatArray, total: float
) -> FloatArray:
    """Joint probabilities (l1, l2) from a noisy table, consistent with the margins, denoised; total > 0.

    In order: (1) the table is shifted to the margins by least squares (every cell of a row or column moves
    equally); (2) what it says beyond independence is shrunk for its known noise (``shrink_singular_values``);
    (3) projection to the simplex; (4) proportional fitting back to the margins.
    """
    independent = np.outer(first, second)
    signal = shrink_singular_values(_double_centred(values - total * independent), sigma)
    joint = simplex_projection(total * independent + signal, total) / total
    return raked(joint, first, second)


def _double_centred(table: FloatArray) -> FloatArray:
    """Remove row and column means: the least-squares shift to margins of zero."""
    return np.asarray(
        table - table.mean(axis=1, keepdims=True) - table.mean(axis=0, keepdims=True) + table.mean()
    )


def raked(joint: FloatArray, first: FloatArray, second: FloatArray) -> FloatArray:
    """Proportional fitting of a joint table (l1, l2) to its margins (Deming, Stephan 1940).

    A trace of independence is mixed in first: without it the cells that a projection left positive
    may be unable to carry the margins.
    """
    joint = (1.0 - INDEPENDENT_TRACE) * joint + INDEPENDENT_TRACE * np.outer(first, second)
    rows = joint.sum(axis=1)
    for _ in range(RAKING_ROUNDS):
        joint = joint * _ratio(first, rows)[:, None]
        joint = joint * _ratio(second, joint.sum(axis=0))[None, :]
        rows = joint.sum(axis=1)
        if np.abs(rows - first).max() < _RAKED:
            break
    return np.asarray(joint / joint.sum())


def _ratio(wanted: FloatArray, present: FloatArray) -> FloatArray:
    return np.divide(wanted, present, out=np.zeros_like(wanted), where=present > 0)
