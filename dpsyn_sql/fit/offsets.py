"""The value rule: a sampled latent vector becomes the code with the largest z + offset.

Offsets are set so that each code wins with its own probability; the decision and its measured
alternatives are in docs/decisions/0002-value-rule.md.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

FloatArray = NDArray[np.float64]

_DRAWS = 4096
_ROUNDS = 30
_CLOSE_ENOUGH = 2e-4
_SEED = 20171003
# A constant: the same model always gets the same offsets. What the draws leave inexact
# (about 1/sqrt(_DRAWS), relatively), the sampler's quotas make exact.


def calibrated_offsets(correlation: FloatArray, probabilities: FloatArray) -> FloatArray:
    """Offsets m such that P(argmax_j (z_j + m_j) = j) is ``probabilities[j]``.

    z is normal with the (l, l) positive definite ``correlation``; all probabilities are positive.
    Winning probabilities are means over fixed draws of the exact conditional probability of
    z_j given all other z (Rao-Blackwell), so that codes rarer than one draw have one too. Each
    round moves an offset by the probit difference times the spread of z_j about its rivals.
    """
    size = probabilities.size
    if size == 1:
        return np.zeros(1)
    factor = np.linalg.cholesky(correlation)
    draws = np.random.Generator(np.random.PCG64(_SEED)).standard_normal((_DRAWS, size)) @ factor.T
    precision = np.linalg.inv(correlation)
    spread = 1.0 / np.sqrt(np.diag(precision))
    conditional_mean = draws - (draws @ precision) * spread**2

    towards_mean = correlation @ probabilities
    contrast = np.diag(correlation) - 2.0 * towards_mean + probabilities @ towards_mean
    scale = np.sqrt(np.maximum(contrast, 1e-6))

    wanted = ndtri(probabilities)
    offsets = scale * wanted
    for _ in range(_ROUNDS):
        winning = _winning_probabilities(draws, conditional_mean, spread, offsets)
        if np.max(np.abs(winning - probabilities)) < _CLOSE_ENOUGH:
            break
        present = ndtri(np.clip(winning, 1e-12, 1.0 - 1e-12))
        offsets = offsets + 0.7 * scale * np.clip(wanted - present, -1.0, 1.0)
    return np.asarray(offsets)


def _winning_probabilities(
    draws: FloatArray, conditional_mean: FloatArray, spread: FloatArray, offsets: FloatArray
) -> FloatArray:
    """Probability of each code, exact in its own z, averaged over the draws of the others."""
    scores = draws + offsets
    rows = np.arange(len(scores))
    winner = scores.argmax(axis=1)
    best = scores[rows, winner]
    scores[rows, winner] = -np.inf
    second = scores.max(axis=1)
    ahead = conditional_mean + offsets - best[:, None]
    ahead[rows, winner] = conditional_mean[rows, winner] + offsets[winner] - second
    return np.asarray(ndtr(ahead / spread).mean(axis=0))
