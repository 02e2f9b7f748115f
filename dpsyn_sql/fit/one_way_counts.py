"""What all noisy tables together say about the codes of each attribute; public.

A table of noise sigma per cell, summed to one attribute so that c of its cells fall into a code, estimates
the count of each code with variance c sigma^2. Several tables are averaged with inverse-variance weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.domain.attributes import Domain
from dpsyn_sql.planning.queries import NoisyMarginal

FloatArray = NDArray[np.float64]

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
            held = alone if len(table.attrs) == 1 else larger
            for axis, name in enumerate(table.attrs):
                if name in sizes and _by_codes(table, axis, sizes[name]):
                    held.setdefault(name, []).append(table)
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
        others = tuple(other for other in range(len(table.attrs)) if other != axis)
        weight = 1.0 / max(table.sigma**2 * table.values.size / size, _SMALLEST_VARIANCE)
        weighted += weight * table.values.astype(np.float64).sum(axis=others)
        weights += weight
    return OneWayCounts(weighted / weights, np.full(size, weights**-0.5))
