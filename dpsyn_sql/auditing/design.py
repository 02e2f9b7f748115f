"""What is fixed before looking: the curve, the threshold of the test, the runs, and their power."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from dpsyn_sql.accounting.budget import Budget, Kind
from dpsyn_sql.accounting.events import GaussianEvent, LaplaceEvent, SelectionEvent
from dpsyn_sql.accounting.likelihood import AnsweredQuestion, log_ratio
from dpsyn_sql.accounting.tradeoff import power, runs_for_power
from dpsyn_sql.errors import InputError

ERROR = 1e-3
"""Probability that the lower bound is above the true parameter."""

POWER = 0.99
"""Probability that noise of half the scale is caught, at the number of runs that is chosen."""

MOST_RUNS = 100_000

HALF = 0.5
_SIMULATIONS = 200_000
_SIMULATED = 20_000_000
_CHOICES = 400_000
_MOST_DRAWN = 4_000
_THRESHOLDS = np.linspace(0.02, 0.98, 25)

Option = tuple[float, float, float]
"""Threshold, and the rates of false alarms and misses with noise of half the scale."""

Ratios = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Log-likelihood ratios without the unit and with it, float64[draws] each."""


@dataclass(frozen=True, slots=True)
class Design:
    """``claim``: mu or epsilon; ``runs`` a side; ``power``: the probability that these runs catch noise of
    half the scale."""

    claim: float
    runs: int
    threshold: float
    power: float


def designed(budget: Budget, rehearsed: Sequence[AnsweredQuestion], runs: int | None) -> Design:
    """The threshold that catches noise of half the scale with fewest runs, or best with ``runs``.

    It rests on theory and on which questions a rehearsal asked; its answers are not part of the test.

    Args:
        budget: of the plan; the claim is that of all of it, whatever a run spends.
        rehearsed: one run.
        runs: on each side; None for what has the power ``POWER``.

    Raises:
        InputError: more runs would be needed than are allowed.
    """
    kind = budget.kind
    claim = float(budget.fraction) if kind == "pure" else math.sqrt(2 * budget.fraction)
    if all(isinstance(one.event, GaussianEvent) for one in rehearsed) and budget.gaussian:
        options = [_middle(claim)]
    else:
        options = simulated(kind, rehearsed)
    if runs is None:
        runs = _fewest(kind, claim, options)
    chances = [power(kind, claim, *option[1:], runs, ERROR) for option in options]
    best = int(np.argmax(chances))
    return Design(claim, runs, options[best][0], chances[best])


def _fewest(kind: Kind, claim: float, options: Sequence[Option]) -> int:
    needed = [runs_for_power(kind, claim, *option[1:], POWER, ERROR, MOST_RUNS) for option in options]
    found = [size for size in needed if size is not None]
    if not found:
        raise InputError(
            f"no audit of at most {MOST_RUNS} runs per side has power {POWER} at this epsilon: "
            "audit another epsilon (the same code scales its noise), or give runs="
        )
    return min(found)


def _middle(claim: float) -> Option:
    """The ratio is normal with mean -mu^2/2 or mu^2/2 and, at half the scale, standard deviation mu/2."""
    rate = float(ndtr(-claim / 2 / HALF))
    return 0.0, rate, rate


def simulated(kind: Kind, asked: Sequence[AnsweredQuestion]) -> list[Option]:
    """Thresholds on a grid of quantiles, by simulation of the theory at half the scale."""
    rng = np.random.default_rng(1)  # of a design, not of noise: the same audit has the same design
    differ = sum(int(np.count_nonzero(one.within - one.without)) for one in asked)
    size = max(1_000, min(_SIMULATIONS, _SIMULATED // max(1, differ)))
    without, within = np.zeros(size), np.zeros(size)
    for one in asked:
        parts = _ratios(kind, one, size, rng)
        without, within = without + parts[0], within + parts[1]
    # Ratios take few values; a hair below one of them, rounding cannot decide.
    thresholds = np.unique(np.quantile(within, _THRESHOLDS, method="lower").round(6)) - 1e-5
    return [(float(t), float((without >= t).mean()), float((within < t).mean())) for t in thresholds]


def _ratios(kind: Kind, one: AnsweredQuestion, size: int, rng: np.random.Generator) -> Ratios:
    event, shift = one.event, one.within - one.without
    shift = shift[shift != 0]
    if isinstance(event, SelectionEvent):
        return _ratios_of_choices(kind, one, event, size, rng)
    if isinstance(event, LaplaceEvent):
        noise = discrete_laplace(rng, event.scale * HALF, (size, len(shift)))
        return (
            (np.abs(noise) - np.abs(noise - shift)).sum(axis=1) / event.scale,
            (np.abs(noise + shift) - np.abs(noise)).sum(axis=1) / event.scale,
        )
    mu = math.sqrt(int((shift**2).sum())) / event.sigma
    draws = mu * HALF * rng.standard_normal((2, size))
    return draws[0] - mu**2 / 2, draws[1] + mu**2 / 2


def _ratios_of_choices(
    kind: Kind, one: AnsweredQuestion, event: SelectionEvent, size: int, rng: np.random.Generator
) -> Ratios:
    """Fewer choices are drawn, since each takes long, and used again."""
    few = max(100, min(_MOST_DRAWN, _CHOICES // (event.number * len(one.without))))
    sides = []
    for scores in (one.without, one.within):
        drawn = (chosen(rng, scores, event.scale * HALF, kind, event.number) for _ in range(few))
        found = [log_ratio(kind, AnsweredQuestion(event, one.without, one.within, order)) for order in drawn]
        sides.append(rng.choice(np.array(found), size))
    return sides[0], sides[1]


def chosen(
    rng: np.random.Generator, scores: NDArray[np.int64], scale: float, kind: Kind, number: int
) -> NDArray[np.int64]:
    """A private choice: Gumbel noise (Durfee, Rogers 2019), or permute-and-flip peeled, by exponential
    noise (Ding and others 2021)."""
    exact = scores / scale
    if kind != "pure":
        return np.asarray(np.argsort(-(exact + rng.gumbel(size=len(exact))))[:number], dtype=np.int64)
    found = []
    for _ in range(number):
        found.append(int(np.argmax(exact + rng.exponential(size=len(exact)))))
        exact[found[-1]] = -np.inf
    return np.array(found, dtype=np.int64)


def discrete_laplace(rng: np.random.Generator, scale: float, shape: tuple[int, int]) -> NDArray[np.int64]:
    """Probabilities proportional to exp(-|z| / scale): a difference of two geometric variables."""
    stop = -math.expm1(-1 / scale)
    return rng.geometric(stop, shape) - rng.geometric(stop, shape)
