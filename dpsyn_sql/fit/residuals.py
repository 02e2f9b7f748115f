"""Residuals: the part of a table that its margins do not tell; post-processing.

P = (I - J / k_1) x ... x (I - J / k_m), J the matrix of ones, is the projection to what a table
(k_1, ..., k_m) says beyond its margins. A noisy residual, projected, is P x + P z: the noise z that a whole
table of the same deviation would have, seen by P alone. It costs the part prod (1 - 1/k_i) of that table.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.planning.queries import NoisyResidual

FloatArray = NDArray[np.float64]


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
