"""How far the counts of pairs are from a model, beyond sampling: their dispersion; post-processing.

The L1 distance D of a table of counts to what a model expects has three parts: the sampling error of the
counts, A = sum E|count - m| at dispersion 0; noise of the margins that the model was made from, B; and
dependence that the model has not, which multiplies the sampling variance by 1 + k. Parts of a distance add as
deviations do, so (1 + k) A^2 + B^2 = D^2.

Noisy distances are drawn to each other first (empirical Bayes), since the noise of one alone may be far
larger than A.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.fit.graph import Scope

FloatArray = NDArray[np.float64]

_LEAST_SAMPLING = 1e-6
# Rows; a table without rows has no sampling error.


@dataclass(frozen=True, slots=True)
class Distance:
    """A noisy L1 distance of a pair table to a model: ``rows``. ``sampling``: what of it is expected of
    sampling,
    ``margins``: of noise in the one-way tables (rows)."""

    rows: float
    sampling: float
    margins: float


@dataclass(frozen=True, slots=True)
class Dispersions:
    """k of each pair, 0 or more; ``other``: of a pair without a distance, as a typical one has it.

    ``within``: of pairs with a coarse twin what the twin does not tell (``within_twin``)."""

    pairs: Mapping[Scope, float]
    other: float
    within: Mapping[Scope, float] = field(default_factory=dict)


def within_twin(fine: float, coarse: float, sampling: float, twin_sampling: float) -> float:
    """k of a pair once its coarse twin is known: (k A^2 - k' A'^2) / A^2, since parts of a distance add as
    deviations do. ``fine``, ``coarse``: k and k'; the rest is A and A'."""
    left = fine - coarse * (twin_sampling / max(sampling, _LEAST_SAMPLING)) ** 2
    return max(0.0, left)


def sampling_distance(expected: FloatArray) -> float:
    """sum E|count - m| over the cells of a table (rows m): sqrt(2 m / pi) of a Gaussian, and 2 m where almost
    every count is 0."""
    return float(np.minimum(2 * expected, np.sqrt(2 * expected / math.pi)).sum())


def dispersions(found: Mapping[Scope, Distance], deviation: float) -> Dispersions:
    """Of the pairs that noisy distances are about.

    Args:
        found: by pair; one at least.
        deviation: of the noise of all distances (rows).
    """
    sampling = np.maximum([one.sampling for one in found.values()], _LEAST_SAMPLING)
    margins = np.array([one.margins for one in found.values()]) / sampling
    ratios = np.array([one.rows for one in found.values()]) / sampling
    mean, posterior, uncertain = shrunk(ratios, deviation / sampling)
    own = np.maximum(posterior, 0) ** 2 + uncertain - margins**2 - 1
    other = float(np.mean(mean**2 + np.var(posterior) - margins**2)) - 1
    return Dispersions(dict(zip(found, np.maximum(own, 0).tolist(), strict=True)), max(0.0, other))


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
    kept = spread * weights
    return mean, mean + kept * (values - mean), kept * deviations**2 + (1 - kept) ** 2 / weights.sum()
