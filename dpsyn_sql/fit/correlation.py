"""The nearest correlation matrix, and a floor under its eigenvalues."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


def nearest_correlation(
    matrix: FloatArray,
    *,
    tolerance: float = 1e-8,
    rounds: int = 200,
) -> FloatArray:
    """Nearest correlation matrix in the Frobenius norm: alternating projections.

    Higham 2002, algorithm 3.3 with Dykstra's correction: onto the positive semidefinite matrices,
    then onto those of unit diagonal. The iterate of unit diagonal is returned; its smallest
    eigenvalue may be negative by about ``tolerance``.

    Args:
        matrix: (k, k), symmetric.
        tolerance: relative change of the iterate at which to stop.
        rounds: at most this many.
    """
    current = np.array(matrix, dtype=np.float64)
    np.fill_diagonal(current, 1.0)
    correction = np.zeros_like(current)
    for _ in range(rounds):
        corrected = current - correction
        definite = _positive_part(corrected)
        correction = definite - corrected
        previous, current = current, definite
        np.fill_diagonal(current, 1.0)
        if np.linalg.norm(current - previous) <= tolerance * np.linalg.norm(current):
            break
    return current


def _positive_part(matrix: FloatArray) -> FloatArray:
    """Projection onto the positive semidefinite matrices, from the smaller half of the spectrum."""
    values, vectors = np.linalg.eigh(matrix)
    negative = values < 0
    if not negative.any():
        return matrix.copy()
    if 2 * negative.sum() <= values.size:
        part = vectors[:, negative]
        result = matrix - (part * values[negative]) @ part.T
    else:
        part = vectors[:, ~negative]
        result = (part * values[~negative]) @ part.T
    return np.asarray(0.5 * (result + result.T))


def floored(matrix: FloatArray, smallest: float) -> FloatArray:
    """Raise eigenvalues to at least ``smallest`` and scale back to a unit diagonal."""
    values, vectors = np.linalg.eigh(matrix)
    lifted = (vectors * np.maximum(values, smallest)) @ vectors.T
    scale = np.sqrt(np.diag(lifted))
    result = lifted / np.outer(scale, scale)
    np.fill_diagonal(result, 1.0)
    return np.asarray(0.5 * (result + result.T))
