"""What a distinguishing test can say about a privacy claim: trade-off curves and exact bounds.

A test looks at one output and guesses which of two neighbours it came from. A *false alarm* says
"with the unit" for the table without it, a *miss* the opposite. A claim forbids pairs of error rates
below its trade-off curve: for zCDP by Gaussian noise the curve of mu = sqrt(2 rho) (Dong, Roth,
Su 2022), for pure budgets that of epsilon (Wasserman, Zhou 2010; Kairouz, Oh, Viswanath
2015). For zCDP by any mechanism: a guess is post-processing, so the Renyi divergence of order a
between the two coins that it is may be a rho at most (Bun, Steinke 2016, Lemma 2.2). Counted errors
give upper bounds of both rates (Clopper, Pearson 1934); if even these lie below the curve, the claim is
false.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, ndtr, ndtri
from scipy.stats import binom

Curve = Literal["gaussian", "zcdp", "pure"]
"""The parameter is mu = sqrt(2 rho) for Gaussian noise, sqrt(2 rho) for any mechanism, epsilon."""

_ORDERS = 1 + np.geomspace(1e-3, 100, 24)
_HALVINGS = 40
_NEVER = 1e-20
_LEAST = 1e-300


def upper_bounds(counts: NDArray[np.int64], runs: int, error: float) -> NDArray[np.float64]:
    """Clopper-Pearson upper bounds of a rate, one-sided, wrong with probability at most ``error``.

    Args:
        counts: int64, each from 0 to ``runs``.
        runs: independent trials, at least 1.
        error: in (0, 1).
    """
    bounds = betaincinv(counts + 1.0, np.maximum(runs - counts, 1.0), 1 - error)
    return np.asarray(np.where(counts >= runs, 1.0, bounds), dtype=np.float64)


def fewest_misses(curve: Curve, parameter: float, false_alarms: NDArray[np.float64]) -> NDArray[np.float64]:
    """The trade-off curve: the least rate of misses that a claim allows at a rate of false alarms.

    Args:
        curve: what ``parameter`` is of.
        parameter: at least 0.
        false_alarms: rates in [0, 1], any shape.
    """
    if curve == "gaussian":
        return np.asarray(ndtr(-ndtri(false_alarms) - parameter), dtype=np.float64)
    if curve == "zcdp":
        return _fewest_by_divergence(parameter, false_alarms)
    few, many = 1 - np.exp(parameter) * false_alarms, np.exp(-parameter) * (1 - false_alarms)
    return np.asarray(np.maximum(np.maximum(few, many), 0.0), dtype=np.float64)


def _fewest_by_divergence(parameter: float, false_alarms: NDArray[np.float64]) -> NDArray[np.float64]:
    """By halving: the divergence falls as the misses rise to 1 - false alarms, where it is 0."""
    low, high = np.zeros_like(false_alarms), 1 - false_alarms
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        forbidden = _parameter_of_coins(false_alarms, middle) > parameter
        low, high = np.where(forbidden, middle, low), np.where(forbidden, high, middle)
    return np.asarray(low, dtype=np.float64)


def _parameter_of_coins(alarms: NDArray[np.float64], misses: NDArray[np.float64]) -> NDArray[np.float64]:
    """sqrt(2 rho) for the largest D_a / a, either way, of orders a > 1; each order is a valid lower bound."""
    alarm, miss = (np.clip(rate, _LEAST, 1.0) for rate in (alarms, misses))
    quiet, hit = (np.clip(1 - rate, _LEAST, 1.0) for rate in (alarms, misses))
    logs = [np.log(rate)[..., None] for rate in (alarm, quiet, hit, miss)]
    rho = np.maximum(_divergences(*logs), _divergences(*logs[2:], *logs[:2])).max(axis=-1)
    return np.asarray(np.sqrt(2 * np.maximum(rho, 0.0)), dtype=np.float64)


def _divergences(
    p: NDArray[np.float64], q: NDArray[np.float64], other_p: NDArray[np.float64], other_q: NDArray[np.float64]
) -> NDArray[np.float64]:
    """D_a / a of the coin (p, q) from (other_p, other_q), all logarithms, for each order in the last axis."""
    a = _ORDERS
    joint = np.logaddexp(a * p + (1 - a) * other_p, a * q + (1 - a) * other_q)
    return np.asarray(joint / (a - 1) / a)


def lower_bound(curve: Curve, false_alarms: int, misses: int, runs: int, error: float) -> float:
    """The smallest parameter whose curve allows the counted errors; at least 0.

    It exceeds the true one with probability at most ``error``, half of it for either rate.

    Args:
        curve: what the parameter is of.
        false_alarms: of ``runs`` outputs without the unit.
        misses: of ``runs`` outputs with it.
        runs: on each side.
        error: in (0, 1).
    """
    alarm, miss = upper_bounds(np.array([false_alarms, misses]), runs, error / 2).tolist()
    if alarm + miss >= 1:
        return 0.0
    if curve == "gaussian":
        return float(-ndtri(alarm) - ndtri(miss))
    if curve == "zcdp":
        return float(_parameter_of_coins(np.array(alarm), np.array(miss)))
    return float(max(np.log((1 - miss) / alarm), np.log((1 - alarm) / miss)))


def power(curve: Curve, claimed: float, false_alarm: float, miss: float, runs: int, error: float) -> float:
    """Probability that ``lower_bound`` exceeds ``claimed`` when the true rates are those given; exact."""
    counts = np.arange(runs + 1)
    bounds = upper_bounds(counts, runs, error / 2)
    chances = binom.pmf(counts, runs, false_alarm)
    seen = chances > _NEVER
    most_misses = np.searchsorted(bounds, fewest_misses(curve, claimed, bounds[seen]), side="left") - 1
    return float(np.sum(chances[seen] * binom.cdf(most_misses, runs, miss)))


def runs_for_power(
    curve: Curve, claimed: float, false_alarm: float, miss: float, wanted: float, error: float, most: int
) -> int | None:
    """The fewest runs per side, to about five per cent, that reach the power ``wanted``.

    Returns:
        Runs, at most ``most``; None if more would be needed.
    """
    sizes = [10]
    while sizes[-1] < most:
        sizes.append(min(most, -(-sizes[-1] * 21 // 200) * 10))
    first = bisect_left(sizes, wanted, key=lambda runs: power(curve, claimed, false_alarm, miss, runs, error))
    return sizes[first] if first < len(sizes) else None
