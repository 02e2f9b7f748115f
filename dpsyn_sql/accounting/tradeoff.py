"""Trade-offs of Gaussian noise, and tails of noise."""

from __future__ import annotations

import math
from bisect import bisect_left
from decimal import Context, Decimal, localcontext
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, ndtr, ndtri
from scipy.stats import binom

from dpsyn_sql.accounting.budget import DELTA_UNITS, Kind
from dpsyn_sql.errors import InternalError

# -- tails -------------------------------------------------------------------------------------------

# Tails of the discrete Gaussian, never on the unsafe side: what a threshold of discovery costs.
#
# Evaluated in decimals of 60 digits, so that every machine charges the same.

_PRECISE = Context(prec=60)
_SLACK = Decimal("1e-40")
"""Relative; far above the error of a 60-digit evaluation, far below anything that matters."""
_BLOCKS = 2_000
_TWO_PI_BELOW = Decimal("6.283185307179586476925286766559005768394338798750")


@lru_cache(maxsize=10_000)
def threshold_delta_units(sigma: float, keys: int, steps: int) -> int:
    """Upper bound of 1 - (1 - P[Z >= steps])^keys in units of 1e-18, at most 10^18.

    Z is discrete Gaussian of scale ``sigma``: the probability that one of ``keys`` values held by one
    unit alone, each counted once, reaches a threshold that is ``steps`` above one unit.

    Raises:
        InternalError: a scale or a number of keys that is not above 0.
    """
    if not (math.isfinite(sigma) and sigma > 0 and keys > 0):
        raise InternalError("a threshold needs noise and at least one key")
    if steps < max(1.0, sigma):  # more likely than any budget allows
        return DELTA_UNITS
    with localcontext(_PRECISE):
        one = _tail(Decimal(sigma), steps)
        any_of_them = 1 - (1 - one) ** keys + _SLACK
        return min(DELTA_UNITS, math.ceil(any_of_them * DELTA_UNITS))


def _tail(sigma: Decimal, start: int) -> Decimal:
    """Upper bound of P[Z >= start] for start >= sigma; call inside the precise context."""
    above = _sum_from(sigma, start) * (1 + _SLACK)
    return min(Decimal(1), above / _normaliser(sigma))


def _normaliser(sigma: Decimal) -> Decimal:
    """Lower bound of the sum of exp(-z^2 / 2 sigma^2) over all integers z.

    By Poisson's summation formula the sum is at least sqrt(2 pi) sigma; below sigma = 2 its first
    terms alone are more.
    """
    smooth = _TWO_PI_BELOW.sqrt() * sigma
    terms = (2 * (-(z * z) / (2 * sigma * sigma)).exp() for z in range(1, 30))
    return max(smooth, 1 + sum(terms, Decimal(0))) * (1 - _SLACK)


def _sum_from(sigma: Decimal, start: int) -> Decimal:
    """Upper bound of the sum of f(z) = exp(-z^2 / 2 sigma^2) over z >= start.

    f is convex from sigma on, so between two points of a block it lies below their chord. After the
    last block, with its start at m, the terms fall faster than a geometric series of ratio
    exp(-(2m + 1) / 2 sigma^2).
    """
    width = max(1, int(sigma / 100))
    double = 2 * sigma * sigma
    height = (-Decimal(start) * start / double).exp()
    ratio = (-Decimal(2 * start * width + width * width) / double).exp()
    flattening = (-Decimal(width * width) / (sigma * sigma)).exp()
    total = Decimal(0)
    for _ in range(_BLOCKS):
        after = height * ratio
        total += width * height - (width - 1) * (height - after) / 2
        height, ratio, start = after, ratio * flattening, start + width
    return total + height / (1 - (-Decimal(2 * start + 1) / double).exp())


# -- trade-offs --------------------------------------------------------------------------------------

# What a distinguishing test can say about a privacy claim: trade-off curves and exact bounds.
#
# A test looks at one output and guesses which of two neighbours it came from. A *false alarm* says "with the
# unit" for the table without it, a *miss* the opposite. A claim forbids pairs of error rates below its
# trade-off curve: in GDP accounts that of mu (Dong, Roth, Su 2022), for pure budgets that of epsilon
# (Wasserman, Zhou 2010; Kairouz, Oh, Viswanath 2015). Counted errors give upper bounds of both rates
# (Clopper, Pearson 1934); if even these lie below the curve, the claim is false.

_NEVER = 1e-20


def upper_bounds(counts: NDArray[np.int64], runs: int, error: float) -> NDArray[np.float64]:
    """Clopper-Pearson upper bounds of a rate, one-sided, wrong with probability at most ``error``.

    Args:
        counts: int64, each from 0 to ``runs``.
        runs: independent trials, at least 1.
        error: in (0, 1).
    """
    bounds = betaincinv(counts + 1.0, np.maximum(runs - counts, 1.0), 1 - error)
    return np.asarray(np.where(counts >= runs, 1.0, bounds), dtype=np.float64)


def fewest_misses(kind: Kind, parameter: float, false_alarms: NDArray[np.float64]) -> NDArray[np.float64]:
    """The trade-off curve: the least rate of misses that a claim allows at a rate of false alarms.

    Args:
        kind: of the account; what ``parameter`` is of.
        parameter: at least 0.
        false_alarms: rates in [0, 1], any shape.
    """
    if kind == "gdp":
        return np.asarray(ndtr(-ndtri(false_alarms) - parameter), dtype=np.float64)
    few, many = 1 - np.exp(parameter) * false_alarms, np.exp(-parameter) * (1 - false_alarms)
    return np.asarray(np.maximum(np.maximum(few, many), 0.0), dtype=np.float64)


def lower_bound(kind: Kind, false_alarms: int, misses: int, runs: int, error: float) -> float:
    """The smallest parameter whose curve allows the counted errors; at least 0.

    It exceeds the true one with probability at most ``error``, half of it for either rate.

    Args:
        kind: of the account; what the parameter is of.
        false_alarms: of ``runs`` outputs without the unit.
        misses: of ``runs`` outputs with it.
        runs: on each side.
        error: in (0, 1).
    """
    alarm, miss = upper_bounds(np.array([false_alarms, misses]), runs, error / 2).tolist()
    if alarm + miss >= 1:
        return 0.0
    if kind == "gdp":
        return float(-ndtri(alarm) - ndtri(miss))
    return float(max(np.log((1 - miss) / alarm), np.log((1 - alarm) / miss)))


def power(kind: Kind, claimed: float, false_alarm: float, miss: float, runs: int, error: float) -> float:
    """Probability that ``lower_bound`` exceeds ``claimed`` when the true rates are those given; exact."""
    counts = np.arange(runs + 1)
    bounds = upper_bounds(counts, runs, error / 2)
    chances = binom.pmf(counts, runs, false_alarm)
    seen = chances > _NEVER
    most_misses = np.searchsorted(bounds, fewest_misses(kind, claimed, bounds[seen]), side="left") - 1
    return float(np.sum(chances[seen] * binom.cdf(most_misses, runs, miss)))


def runs_for_power(
    kind: Kind, claimed: float, false_alarm: float, miss: float, wanted: float, error: float, most: int
) -> int | None:
    """The fewest runs per side, to about five per cent, that reach the power ``wanted``.

    Returns:
        Runs, at most ``most``; None if more would be needed.
    """
    sizes = [10]
    while sizes[-1] < most:
        sizes.append(min(most, -(-sizes[-1] * 21 // 200) * 10))
    first = bisect_left(sizes, wanted, key=lambda runs: power(kind, claimed, false_alarm, miss, runs, error))
    return sizes[first] if first < len(sizes) else None
