"""Denoising a table whose noise level is known: optimal shrinkage of singular values.

With all d(d-1)/2 pairs measured at one budget, most cells of a large pair table hold less than
their noise. But what two attributes say about each other is nearly of low rank (ordered bins vary
smoothly, categories fall into groups), while noise spreads over all singular values up to a known
edge. Values within the edge are dropped, the others shrunk.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def shrink_singular_values(residual: NDArray[np.float64], sigma: float) -> NDArray[np.float64]:
    """The signal in a doubly centred (l1, l2) table with noise ``sigma`` (rows) in every cell.

    Gavish, Donoho 2017 (Optimal shrinkage of singular values), equation 7, the shrinker for
    Frobenius loss: with y a singular value in units of sigma sqrt(n), n >= m the sides of the
    table and beta = m/n, it becomes sqrt((y^2 - beta - 1)^2 - 4 beta)/y above 1 + sqrt(beta) and 0
    below. Double centring takes one from either side. sigma = 0 changes nothing.
    """
    return np.asarray(shrink_many(residual[None], np.array([sigma]))[0])


def shrink_many(residuals: NDArray[np.float64], sigmas: NDArray[np.float64]) -> NDArray[np.float64]:
    """The same of many doubly centred tables (tables, l1, l2), each with its own noise (tables,)."""
    shape = residuals.shape[1:]
    if min(shape) < 2 or not (sigmas > 0).any():
        return residuals
    sides, noise = sorted(size - 1 for size in shape), np.where(sigmas > 0, sigmas, 1.0)[:, None]
    if sides[0] == 1:  # one free side leaves one singular value: the norm
        norm = np.linalg.norm(residuals, axis=(1, 2))[:, None]
        kept = _shrunk(norm, noise, sides) / np.where(norm > 0, norm, 1.0)
        shrunk = residuals * kept[:, :, None]
    else:
        left, singular, right = np.linalg.svd(residuals, full_matrices=False)
        shrunk = (left * _shrunk(singular, noise, sides)[:, None, :]) @ right
    return np.where((sigmas > 0)[:, None, None], shrunk, residuals)


def shrink_contrasts(residuals: NDArray[np.float64], sigmas: NDArray[np.float64]) -> NDArray[np.float64]:
    """The same of many tables (tables, l1 - 1, l2 - 1) in orthonormal contrasts along both axes, each with
    its noise above 0."""
    if residuals.size == 0:
        return residuals
    left, singular, right = np.linalg.svd(residuals, full_matrices=False)
    kept = _shrunk(singular, sigmas[:, None], sorted(residuals.shape[1:]))
    return np.asarray((left * kept[:, None, :]) @ right)


def _shrunk(
    singular: NDArray[np.float64], sigma: NDArray[np.float64], sides: list[int]
) -> NDArray[np.float64]:
    """Singular values of a table with these free sides, ascending."""
    unit, beta = sigma * np.sqrt(sides[1]), sides[0] / sides[1]
    least = 1.0 + np.sqrt(beta)
    y = np.maximum(singular / unit, least)
    shrunk = unit * np.sqrt(np.maximum((y**2 - beta - 1.0) ** 2 - 4.0 * beta, 0.0)) / y
    return np.where(y > least, shrunk, 0.0)
