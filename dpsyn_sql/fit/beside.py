"""What a measured pair table makes of the table that a model expects, without changing the model.

Post-processing of noisy answers only.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.fit.centres import denoised_pair
from dpsyn_sql.fit.consistency import raked
from dpsyn_sql.fit.estimate import Observation

FloatArray = NDArray[np.float64]

_STEPS = 60
_FARTHEST = 30.0
# Bisection of a log-ratio in [-30, 30].

_LEAST_ROWS = 1e-6


def target(table: Observation, expected: FloatArray, ordered: Sequence[bool]) -> FloatArray:
    """Rows (l1, l2) between those ``expected`` by a model and those of a noisy table, with the sums of rows
    and columns of the model.

    Each cell is m e^theta with m e^theta + sigma (theta - c) = y: the penalised likelihood of
    ``fit/estimate.py`` for one table alone, c the centre that the table makes likely (``fit/centres.py``).

    Args:
        table: noisy counts y of standard deviation sigma.
        expected: m, not negative.
        ordered: of each axis, whether neighbouring codes are alike.
    """
    means = np.maximum(expected, _LEAST_ROWS)
    sigma = np.broadcast_to(table.sigma, means.shape)
    centre = np.log(np.maximum(denoised_pair(table, means, ordered), _LEAST_ROWS**2) / means)
    low, high = np.full_like(means, -_FARTHEST), np.full_like(means, _FARTHEST)
    for _ in range(_STEPS):
        theta = (low + high) / 2
        above = means * np.exp(theta) + sigma * (theta - centre) > table.values
        low, high = np.where(above, low, theta), np.where(above, theta, high)
    found, total = means * np.exp((low + high) / 2), float(expected.sum())
    return total * raked(found / found.sum(), expected.sum(axis=1) / total, expected.sum(axis=0) / total)
