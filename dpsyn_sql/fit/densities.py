"""Monotone densities on [0, 1], by their quantile functions: numpy in, numpy out."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

Quantiles = Callable[[FloatArray], FloatArray]
"""From probabilities (float64[m] in [0, 1]) to positions (float64[m] in [0, 1])."""

_EVEN = 50.0
"""Scale, in widths of the bin, from which on a tail is even in it to a hundredth."""

_STEEPEST = 1e7
"""The largest exponent: nearly all mass is at one edge."""

_PLACES = np.concatenate([[0.0], np.geomspace(1e-9, 1.0, 3000)])


def power(left: float, right: float) -> Quantiles:
    """Density from ``left`` at 0 to ``right`` at 1, relative to its mean 1, which is between the two.

    f(x) = right + (left - right) (1 - x)^p for a falling one, with p = (left - right) / (1 - right) - 1, so
    that its integral is 1: linear for p = 1. A rising one is its mirror image.
    """
    if left < right:
        return _flipped(power(right, left))
    exponent = min((left - right) / (1 - right) - 1, _STEEPEST)
    with np.errstate(divide="ignore"):
        above = -np.expm1((exponent + 1) * np.log1p(-_PLACES)) / (exponent + 1)
    masses = right * _PLACES + (left - right) * above
    masses /= masses[-1]
    return lambda probabilities: np.interp(probabilities, masses, _PLACES)


def pareto(scale: float, index: float) -> Quantiles:
    """Generalised Pareto density, proportional to (1 + index x / scale)^(-1/index - 1), cut off at 1.

    Exponential for index 0. Quantiles by inversion (Hosking and Wallis 1987, eq. 2).
    """
    if scale > _EVEN:
        return lambda probabilities: probabilities
    if index == 0:
        exponential = -np.expm1(-1 / scale)
        with np.errstate(divide="ignore"):
            return _cut_off(lambda p: -scale * np.log1p(-p * exponential))
    whole = -np.expm1(-np.log1p(index / scale) / index)
    return _cut_off(lambda p: scale * np.expm1(-index * np.log1p(-p * whole)) / index)


def _cut_off(quantiles: Quantiles) -> Quantiles:
    def inside(probabilities: FloatArray) -> FloatArray:
        with np.errstate(divide="ignore", over="ignore"):
            return np.minimum(1.0, quantiles(probabilities))

    return inside


def mirrored(quantiles: Quantiles | None) -> Quantiles | None:
    """The mirror image of a density; None of None."""
    return None if quantiles is None else _flipped(quantiles)


def _flipped(quantiles: Quantiles) -> Quantiles:
    return lambda probabilities: 1 - quantiles(1 - probabilities)
