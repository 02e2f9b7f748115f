"""What a distinguishing test can say about a privacy claim: trade-off curves and exact bounds.

A test looks at one output and guesses which of two neighbours it came from. A *false alarm* says
"with the unit" for the table without it, a *miss* the opposite. A claim forbids pairs of error rates
below its trade-off curve: in GDP accounts that of mu (Dong, Roth, Su 2022), for pure budgets that of
epsilon (Wasserman, Zhou 2010; Kairouz, Oh, Viswanath 2015). Counted errors give upper bounds of both
rates (Clopper, Pearson 1934); if even these lie below the curve, the claim is false.
"""

from __future__ import annotations

from bisect import bisect_left

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, ndtr, ndtri
from scipy.stats import binom

from dpsyn_sql.accounting.budget import Kind

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
    possible = chances > _NEVER
    most_misses = np.searchsorted(bounds, fewest_misses(kind, claimed, bounds[possible]), side="left") - 1
    return float(np.sum(chances[possible] * binom.cdf(most_misses, runs, miss)))


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
