"""From noisy tables that contradict each other to margins and pair tables that agree.

Public side: everything here is post-processing of noisy answers. One rule throughout: an estimate
of a marginal is the weighted least-squares average over ALL measured tables that contain it. A
table of noise sigma per cell, summed to a marginal so that c of its cells fall into one, estimates
each cell of that marginal with variance c sigma^2 (the total is the marginal over no attributes).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.domain.attributes import Domain
from dpsyn_sql.errors import InternalError
from dpsyn_sql.fit.arrays import FloatArray, IntArray
from dpsyn_sql.fit.denoise import denoised, shares_of
from dpsyn_sql.planning.queries import NoisyMarginal

_MOST_ATTRIBUTES = 2**31
# Numbers a pair: one number for both attributes.

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


class Measurements:
    """Noisy tables indexed by the attributes they contain (subsets of at most two).

    Tables of one shape are summed together: with all pairs of a thousand attributes there are half a million.
    """

    def __init__(self, tables: Iterable[NoisyMarginal]) -> None:
        self._numbers: dict[str, int] = {}
        self._found: dict[tuple[int, ...], _Sums] = {}
        alike: dict[tuple[int, ...], list[NoisyMarginal]] = {}
        for table in tables:
            alike.setdefault(table.values.shape, []).append(table)
        for group in alike.values():
            values = np.array([table.values for table in group], dtype=np.float64)
            sigmas = np.array([table.sigma for table in group])
            attrs = [[self._number(name) for name in table.attrs] for table in group]
            numbers = np.array(attrs, dtype=np.int64).reshape(len(group), values.ndim - 1)
            for size in range(3):
                for axes in combinations(range(values.ndim - 1), size):
                    self._add(values, sigmas, numbers, axes)

    def _number(self, name: str) -> int:
        return self._numbers.setdefault(name, len(self._numbers))

    def _add(self, values: FloatArray, sigmas: FloatArray, numbers: IntArray, axes: tuple[int, ...]) -> None:
        """Take in the sums of tables (tables, cells ...) to the attributes at ``axes``."""
        others = tuple(axis + 1 for axis in range(values.ndim - 1) if axis not in axes)
        sums = values.sum(axis=others)
        cells = values[0].size / max(sums[0].size, 1)
        weights = 1.0 / np.maximum(cells * sigmas**2, _SMALLEST_VARIANCE)
        if len(axes) < 2:
            keys = numbers[:, axes[0]] if axes else np.zeros(len(values), dtype=np.int64)
            self._sums_of(sums.shape[1:]).add(keys, weights, sums)
            return
        first, second = (numbers[:, axis] for axis in axes)
        for ordered, part in ((first < second, sums), (first > second, sums.swapaxes(1, 2))):
            keys = (np.minimum(first, second) * _MOST_ATTRIBUTES + np.maximum(first, second))[ordered]
            if keys.size:
                self._sums_of(part.shape[1:]).add(keys, weights[ordered], part[ordered])

    def _sums_of(self, shape: tuple[int, ...]) -> _Sums:
        return self._found.setdefault(shape, _Sums(shape))

    def contain(self, attrs: Sequence[str]) -> bool:
        """Whether some table was measured that contains ``attrs`` (none or one)."""
        return self._place(attrs) is not None

    def estimate(self, attrs: Sequence[str]) -> Estimate:
        """Inverse-variance weighted average of the marginal over ``attrs`` (none or one).

        Raises:
            InternalError: no table contains them.
        """
        place = self._place(attrs)
        if place is None:
            raise InternalError("an estimate of attributes that no table contains")
        sums, row = place
        return Estimate(sums.values[row] / sums.weights[row], float(1.0 / sums.weights[row]))

    def pairs(
        self, attrs: IntArray, names: Sequence[str], shape: tuple[int, int]
    ) -> tuple[NDArray[np.bool_], FloatArray, FloatArray]:
        """Of many pairs of ``shape``, given as places in ``names`` (pairs, 2): which some table contains, and
        of these the estimates (found, l1, l2) and the variances of a cell (found,)."""
        numbers = np.array([self._numbers.get(name, -1) for name in names])[attrs]
        found = np.zeros(len(attrs), dtype=np.bool_)
        values, variances = np.zeros((len(attrs), *shape)), np.zeros(len(attrs))
        turned = numbers[:, 0] > numbers[:, 1]
        for part, own in ((~turned, shape), (turned, shape[::-1])):
            if own not in self._found:
                continue
            sums, low, high = self._found[own], numbers.min(axis=1), numbers.max(axis=1)
            rows = sums.rows(np.where(low >= 0, low * _MOST_ATTRIBUTES + high, -1))
            at = np.flatnonzero(part & (rows >= 0))
            weights = sums.weights[rows[at]]
            means = sums.values[rows[at]] / weights[:, None, None]
            found[at], variances[at] = True, 1.0 / weights
            values[at] = means if own is shape else means.swapaxes(1, 2)
        return found, values[found], variances[found]

    def _place(self, attrs: Sequence[str]) -> tuple[_Sums, int] | None:
        key = np.array([self._numbers.get(attrs[0], -1) if attrs else 0])
        for shape, sums in self._found.items():
            if len(shape) == len(attrs) and (row := int(sums.rows(key)[0])) >= 0:
                return sums, row
        return None


class _Sums:
    """Weighted sums of tables of one shape by the attributes they are over, given as one number, the key.

    ``values`` (keys, cells ...) are sums of weight times table, ``weights`` (keys,) those of the weights.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._keys = np.zeros(0, dtype=np.int64)
        self.weights: FloatArray = np.zeros(0)
        self.values: FloatArray = np.zeros((0, *shape))

    def add(self, keys: IntArray, weights: FloatArray, tables: FloatArray) -> None:
        """Take in tables (tables, cells ...)."""
        weighted = tables * weights.reshape(-1, *[1] * (tables.ndim - 1))
        keys, weighted = np.concatenate([self._keys, keys]), np.concatenate([self.values, weighted])
        self._keys, places = np.unique(keys, return_inverse=True)
        all_weights = np.concatenate([self.weights, weights])
        self.weights = np.asarray(np.bincount(places, all_weights, len(self._keys)), dtype=np.float64)
        shape = weighted.shape[1:]
        cells = math.prod(shape)
        flat = (places[:, None] * cells + np.arange(cells)).ravel()
        sums = np.bincount(flat, weighted.ravel(), len(self._keys) * cells)
        self.values = np.asarray(sums, dtype=np.float64).reshape(len(self._keys), *shape)

    def rows(self, keys: IntArray) -> IntArray:
        """Where each key is; -1 where it is not."""
        if not len(self._keys):
            return np.full(len(keys), -1, dtype=np.int64)
        places = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        return np.where(self._keys[places] == keys, places, -1)


def fit_margins(
    domain: Domain, measurements: Measurements, settled: Collection[str] = frozenset()
) -> Margins:
    """The total and one-way probabilities from all tables; never the true number of rows.

    Each averaged one-way table is denoised (neighbours of ordered codes smoothed, ``fit/denoise.py``) and
    projected to the simplex.

    An attribute that no table contains, and every attribute when the total is not positive, gets
    uniform probabilities. The noise is already out of the tables of ``settled`` attributes.
    """
    total = float(measurements.estimate(()).values) if measurements.contain(()) else 0.0
    probabilities = {}
    for attribute in domain.attributes:
        if total > 0 and measurements.contain([attribute.name]):
            counts = measurements.estimate([attribute.name])
            smooth = counts.values
            if attribute.name not in settled:
                smooth = denoised(attribute, smooth, math.sqrt(counts.variance))
            probabilities[attribute.name] = shares_of(attribute, smooth, total)
        else:
            probabilities[attribute.name] = np.full(attribute.size, 1.0 / attribute.size)
    return Margins(total, probabilities)
