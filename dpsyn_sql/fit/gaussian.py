"""Bivariate normal probabilities and their inverse in the correlation, for whole arrays at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri, owens_t

FloatArray = NDArray[np.float64]

LARGEST_CORRELATION = 0.9999
"""Latent correlations are kept inside this bound: at 1 the density has no derivative, and no
margin of a real table is known well enough to tell the two apart."""

_NEWTON_STEPS = 60
_TOLERANCE = 1e-9


def bivariate_normal_cdf(h: FloatArray, k: FloatArray, r: FloatArray) -> FloatArray:
    """P(X <= h, Y <= k) for standard normals of correlation r; the arrays broadcast.

    Owen 1956, equation 2.1: (Phi(h) + Phi(k))/2 - T(h, a) - T(k, b) - (1/2 if h and k differ in
    sign), with a = (k - r h)/(h s), b = (h - r k)/(k s), s = sqrt(1 - r^2).
    """
    h, k, r = np.broadcast_arrays(*(np.asarray(x, dtype=np.float64) for x in (h, k, r)))
    # Owen's formula divides by h and k; the smallest positive number is the same probability.
    tiny = np.finfo(np.float64).tiny
    h, k = np.where(h == 0.0, tiny, h), np.where(k == 0.0, tiny, k)
    s = np.sqrt((1.0 - r) * (1.0 + r))
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        inner = owens_t(h, (k / h - r) / s) + owens_t(k, (h / k - r) / s)
    value = 0.5 * (ndtr(h) + ndtr(k)) - inner - np.where((h < 0.0) != (k < 0.0), 0.5, 0.0)
    value = np.where(r >= 1.0, ndtr(np.minimum(h, k)), value)
    value = np.where(r <= -1.0, np.maximum(ndtr(h) - ndtr(-k), 0.0), value)
    # Infinite thresholds: an event that is certain or impossible whatever the correlation.
    value = np.where(h == np.inf, ndtr(k), np.where(k == np.inf, ndtr(h), value))
    return np.clip(np.where((h == -np.inf) | (k == -np.inf), 0.0, value), 0.0, 1.0)


def bivariate_normal_density(h: FloatArray, k: FloatArray, r: FloatArray) -> FloatArray:
    """Density at (h, k), which is also d P(X <= h, Y <= k) / d r (Plackett 1954). |r| < 1."""
    complement = (1.0 - r) * (1.0 + r)
    exponent = -(h * h - 2.0 * r * h * k + k * k) / (2.0 * complement)
    return np.asarray(np.exp(exponent) / (2.0 * np.pi * np.sqrt(complement)))


def latent_correlation(first: FloatArray, second: FloatArray, joint: FloatArray) -> FloatArray:
    """The correlation r at which two normals exceed their thresholds together as often as wanted.

    ``first`` and ``second`` are P(A), P(B); ``joint`` is P(A and B); arrays of one shape. Solves
    equation 8 of the Gaussian-copula release by Newton's method inside a shrinking bracket: a step
    that leaves the bracket is replaced by bisection. A joint probability at or beyond its bounds
    gives -/+ ``LARGEST_CORRELATION``; a margin of 0 or 1 tells nothing and gives 0.
    """
    first, second, joint = np.broadcast_arrays(first, second, joint)
    result = np.zeros(joint.shape)
    informative = (first > 0) & (first < 1) & (second > 0) & (second < 1)
    # Equal probabilities to rounding: nothing to solve (most pairs, once noise is taken away).
    informative &= np.abs(joint - first * second) > 1e-15
    result[informative] = _solve(ndtri(first[informative]), ndtri(second[informative]), joint[informative])
    return result


def _solve(h: FloatArray, k: FloatArray, joint: FloatArray) -> FloatArray:
    low, high = np.full(h.shape, -LARGEST_CORRELATION), np.full(h.shape, LARGEST_CORRELATION)
    r = np.zeros(h.shape)
    open_ = np.arange(h.size)
    for _ in range(_NEWTON_STEPS):
        miss = bivariate_normal_cdf(h[open_], k[open_], r[open_]) - joint[open_]
        low[open_] = np.where(miss < 0, r[open_], low[open_])
        high[open_] = np.where(miss > 0, r[open_], high[open_])
        slope = np.maximum(bivariate_normal_density(h[open_], k[open_], r[open_]), 1e-300)
        with np.errstate(over="ignore"):
            step = r[open_] - miss / slope
        inside = (step > low[open_]) & (step < high[open_])
        moved = np.where(inside, step, 0.5 * (low[open_] + high[open_]))
        done = (np.abs(moved - r[open_]) < _TOLERANCE) | (miss == 0.0)
        r[open_] = np.where(miss == 0.0, r[open_], moved)
        open_ = open_[~done]
        if open_.size == 0:
            break
    return r
