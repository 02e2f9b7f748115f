"""One-way sums on which noisy tables agree.

Every table tells the counts of the codes of its variables, with independent noise. Their best linear unbiased
estimate is the inverse-variance mean; tables of a coarse twin correct the sums over the codes of each of
its bins, and what is missing to the number of rows goes to the codes by their variance. A ridge alone
weights tables by 1 / sigma: too much for wide tables, whose sums are the noisiest.

Post-processing of noisy answers only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.fit.estimate import Observation
from dpsyn_sql.fit.graph import Scope

FloatArray = NDArray[np.float64]

_SMALLEST_VARIANCE = 1e-12
# Exact tables (tests only) would otherwise get an infinite weight.


def agreeing(
    observed: Mapping[Scope, Observation], links: Mapping[Scope, FloatArray], total: float
) -> dict[Scope, Observation]:
    """Noisy tables (rows), each shifted by least squares to the one-way sums that all of them make best.

    Args:
        observed: noisy tables by scope.
        links: of (variable, coarse twin) a table (codes, bins), largest where a code is in a bin.
        total: rows.
    """
    sums = one_way_sums(observed, links, total)
    return {
        scope: replace(table, values=with_sums(table.values, [sums[v] for v in scope], total))
        for scope, table in observed.items()
    }


def one_way_sums(
    observed: Mapping[Scope, Observation], links: Mapping[Scope, FloatArray], total: float
) -> dict[int, FloatArray]:
    """Rows (codes,) of each variable with a table, and of each twin of one; they sum to ``total``.

    ``links`` as for ``agreeing``. Filled tables tell nothing of sums.
    """
    observed = {scope: table for scope, table in observed.items() if not table.filled}
    precision, weighted = dict[int, FloatArray](), dict[int, FloatArray]()
    for scope, table in observed.items():
        variance = np.broadcast_to(table.sigma, table.values.shape) ** 2
        for axis, variable in enumerate(scope):
            own, none = 1 / np.maximum(_over_others(variance, axis), _SMALLEST_VARIANCE), np.zeros(1)
            precision[variable] = precision.get(variable, none) + own
            weighted[variable] = weighted.get(variable, none) + own * _over_others(table.values, axis)
    twins = {twin for _, twin in links}
    found = {variable: weighted[variable] / precision[variable] for variable in precision}
    spread = {variable: 1 / precision[variable] for variable in precision}  # covariances with the total
    for (variable, twin), link in links.items():
        if variable not in found:
            continue
        bin_of = link.argmax(axis=1)
        if twin in found:
            within = np.bincount(bin_of, spread[variable], link.shape[1])
            gap = found[twin] - np.bincount(bin_of, found[variable], link.shape[1])
            gain = spread[variable] / (within + 1 / precision[twin])[bin_of]
            found[variable] = found[variable] + gain * gap[bin_of]
            spread[variable] = spread[variable] - gain * within[bin_of]
    for variable in found.keys() - twins:
        missing = total - found[variable].sum()
        found[variable] = found[variable] + spread[variable] / spread[variable].sum() * missing
    for (variable, twin), link in links.items():
        if variable in found:
            sums = np.bincount(link.argmax(axis=1), found[variable], link.shape[1])
            found[twin] = sums.astype(np.float64)
    return found


def with_sums(values: FloatArray, sums: list[FloatArray], total: float) -> FloatArray:
    """A table (rows) shifted by least squares to these sums (codes,) of each axis, all ``total`` rows."""
    mean = (total - values.sum()) / values.size
    moved = values + mean
    for axis, wanted in enumerate(sums):
        shift = (wanted - _over_others(values, axis)) * values.shape[axis] / values.size - mean
        moved = moved + shift.reshape([-1 if other == axis else 1 for other in range(values.ndim)])
    return np.asarray(moved)


def _over_others(values: FloatArray, axis: int) -> FloatArray:
    """Sums (codes,) over all axes but one."""
    return np.asarray(values.sum(axis=tuple(other for other in range(values.ndim) if other != axis)))
