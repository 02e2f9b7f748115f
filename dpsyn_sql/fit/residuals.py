"""Residuals: the part of a table that its margins do not tell; post-processing.

P = (I - J / k_1) x ... x (I - J / k_m), J the matrix of ones, is the projection to what a table (k_1, ...,
k_m) says beyond its margins. A noisy residual, projected, is P x + P z: the noise z that a whole table of the
same deviation would have, seen by P alone. It costs the part prod (1 - 1/k_i) of that table.

Marginals are composed of the total and of residuals. A table is the sum of the residuals of itself and of all
its margins, each spread evenly over the attributes that it lacks. So noisy residuals compose an unbiased
noisy table.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from dpsyn_sql.domain.attributes import Domain
from dpsyn_sql.fit.arrays import FloatArray
from dpsyn_sql.planning.queries import Map, NoisyMarginal, NoisyResidual


def cost_factor(shape: Sequence[int]) -> float:
    """prod (1 - 1/k_i): the cost of a residual relative to a whole table of the same noise, and the variance
    of a cell of the projected noise relative to that of the noise."""
    return math.prod(1 - 1 / size for size in shape)


def projected(table: FloatArray) -> FloatArray:
    """P of a table: its sums along each axis are 0."""
    for axis in range(table.ndim):
        table = table - table.mean(axis=axis, keepdims=True)
    return table


def interaction(residual: NoisyResidual) -> FloatArray:
    """The noisy residual in rows, of the shape of its marginal."""
    return projected(residual.values / residual.values.size)


def noise(residual: NoisyResidual) -> float:
    """Standard deviation (rows) of the noise z in ``interaction`` = P x + P z, in all directions P keeps."""
    return residual.scale / residual.values.size


def deviation(residual: NoisyResidual) -> float:
    """Standard deviation (rows) of a cell of ``interaction``; cells share noise."""
    return noise(residual) * math.sqrt(cost_factor(residual.values.shape))


def filled(table: FloatArray, residual: FloatArray) -> FloatArray:
    """A table (rows) with this residual in place of its own: its margins stay."""
    return table - projected(table) + residual


_Key = tuple[tuple[str, Map | None], ...]

_OF_ROUNDING = 1 / 12
# Variance of rounding to whole rows.


@dataclass(frozen=True, slots=True)
class _Part:
    """A residual in rows, with the variance of its cells; ``share``: how much of the noise of the total is in
    it. All of them are arrays of the residual's shape, or one number."""

    values: FloatArray
    variance: FloatArray
    share: FloatArray

    def pooled(self, other: _Part) -> _Part:
        """Inverse-variance mean of two answers to one question."""
        weight = other.variance / (self.variance + other.variance)
        values = weight * self.values + (1 - weight) * other.values
        return _Part(values, weight * self.variance, self.share)


def shown_tables(
    domain: Domain, answers: Iterable[NoisyMarginal | NoisyResidual], known: Sequence[NoisyMarginal] = ()
) -> tuple[NoisyMarginal, ...]:
    """The tables that a release shows: measured marginals as they are, then one composed of each residual
    whose margins have residuals too, and of the total for each attribute of one code.

    ``known``: the total and one-way tables from before these answers, which margins are taken from too.
    """
    answers = list(answers)
    whole = tuple(table for table in answers if isinstance(table, NoisyMarginal))
    residuals = [table for table in answers if isinstance(table, NoisyResidual)]
    totals = [table for table in (*known, *whole) if not table.attrs]
    if not residuals or not totals:
        return whole
    weights = [table.sigma**-2 for table in totals]
    total = sum(float(t.values) * w for t, w in zip(totals, weights, strict=True)) / sum(weights)
    parts: dict[_Key, _Part] = {
        ((table.attrs[0], None),): _one_way(table) for table in known if len(table.attrs) == 1
    }
    for residual in residuals:
        key = _key(residual)
        part = _Part(interaction(residual), np.asarray(deviation(residual) ** 2), np.asarray(0.0))
        parts[key] = parts[key].pooled(part) if key in parts else part
    sizes = dict(zip(domain.names, domain.shape(), strict=True))
    parts |= _over_bins(parts, sizes, total)
    variance = 1 / sum(weights)
    single = NoisyMarginal(
        (), np.rint([total]).astype(np.int64), math.sqrt(variance + _OF_ROUNDING), (), True
    )
    ones = (replace(single, attrs=(name,)) for name, size in sizes.items() if size == 1)
    found = (_composed(key, parts, total, variance) for key in dict.fromkeys(map(_key, residuals)))
    return (*whole, *ones, *(table for table in found if table is not None))


def _one_way(table: NoisyMarginal) -> _Part:
    """The residual of a one-way table."""
    values = table.values.astype(np.float64)
    variance = np.asarray(table.sigma**2 * cost_factor(values.shape))
    return _Part(projected(values), variance, np.asarray(0.0))


def _key(residual: NoisyResidual) -> _Key:
    return tuple(zip(residual.attrs, residual.maps or (None,) * len(residual.attrs), strict=True))


def _over_bins(parts: Mapping[_Key, _Part], sizes: Mapping[str, int], total: float) -> dict[_Key, _Part]:
    """The residuals of single attributes over the bins of larger tables: sums over codes."""
    found = dict[_Key, _Part]()
    for name, bins in {one for key in parts for one in key if len(key) > 1}:
        own = parts.get(((name, None),))
        if own is None or bins is None or ((name, bins),) in parts:
            continue
        codes = np.bincount(bins).astype(np.float64)
        even = codes / sizes[name] - 1 / codes.size  # of the total, beyond an even share of each bin
        single = own.variance / (1 - 1 / sizes[name])  # of the noise before its projection
        found[((name, bins),)] = _Part(
            np.bincount(bins, own.values) + total * even, single * (codes - codes**2 / sizes[name]), even
        )
    return found


def _composed(key: _Key, parts: Mapping[_Key, _Part], total: float, of_total: float) -> NoisyMarginal | None:
    """The table of a residual; None if a margin has none. ``of_total``: variance of the total."""
    shape = parts[key].values.shape
    values = np.full(shape, total / math.prod(shape))
    variance, share = np.zeros(shape), np.full(shape, 1 / math.prod(shape))
    for number in range(1, len(key) + 1):
        for axes in combinations(range(len(key)), number):
            part = parts.get(tuple(key[axis] for axis in axes))
            if part is None:
                return None
            others = math.prod(shape) / math.prod(part.values.shape)
            values += _spread(part.values, axes, shape) / others
            variance += _spread(part.variance, axes, shape) / others**2
            share += _spread(part.share, axes, shape) / others
    largest = float(np.max(variance + share**2 * of_total))
    attrs, maps = tuple(name for name, _ in key), tuple(bins for _, bins in key)
    return NoisyMarginal(
        attrs,
        np.rint(values).astype(np.int64),
        math.sqrt(largest + _OF_ROUNDING),
        maps if any(bins is not None for bins in maps) else (),
        composed=True,
    )


def _spread(values: FloatArray, axes: Sequence[int], shape: Sequence[int]) -> FloatArray:
    """An array over some axes of ``shape``, or a number, to be added to one over all."""
    if values.ndim == 0:
        return values
    return values.reshape([shape[axis] if axis in axes else 1 for axis in range(len(shape))])
