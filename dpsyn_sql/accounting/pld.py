"""Privacy loss distributions."""

from __future__ import annotations

import importlib.util
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from dpsyn_sql.accounting.budget import Kind
from dpsyn_sql.accounting.events import (
    GaussianEvent,
    LaplaceEvent,
    PrivacyEvent,
    SelectionEvent,
    ThresholdEvent,
)

# -- likelihood ratios -------------------------------------------------------------------------------

# How much more likely an answer is with a unit than without it, exactly, given the exact values of both.
#
# Cells that are the same in both tables cancel. The sum over the questions of a run, each given the public
# references that this run asked with, is the log-likelihood ratio of its transcript.

_NEGLIGIBLE = -45.0
"""exp of it is below the last place of 1: permute-and-flip never takes such a candidate before the best."""

Asked = GaussianEvent | LaplaceEvent | SelectionEvent


@dataclass(frozen=True, slots=True)
class AnsweredQuestion:
    """One question, its noise, and its answer.

    ``without`` and ``within``: int64, the exact values without the unit and with it in it, of all cells that
    may differ, all distances, or the scores of all candidates. ``answer``: int64, the noisy values of the
    same; for a choice the indices chosen, best first.
    """

    event: Asked
    without: NDArray[np.int64]
    within: NDArray[np.int64]
    answer: NDArray[np.int64]


def log_ratio(kind: Kind, answered: AnsweredQuestion) -> float:
    """log P(answer | with the unit) - log P(answer | without it).

    (2 z - d) d / (2 sigma^2) for each value of a discrete Gaussian whose exact values differ by d, z the
    noise seen without the unit (its norming constant does not depend on an integer shift);
    (|z| - |z - d|) / scale for a discrete Laplace. On a lattice an answer is a sum over all steps that are
    rounded to it.
    """
    event, without, within = answered.event, answered.without, answered.within
    if isinstance(event, SelectionEvent):
        chosen = answered.answer.tolist()
        first, second = (
            choice_log_probability(scores, event.scale, kind, chosen) for scores in (without, within)
        )
        return second - first
    noise, shift = answered.answer - without, within - without
    if isinstance(event, GaussianEvent):
        if event.lattice > 1:
            without_it, with_it = (_log_rounded(event, answered.answer, exact) for exact in (without, within))
            return float((with_it - without_it).sum())
        return int(((2 * noise - shift) * shift).sum()) / (2 * event.sigma**2)
    return int((np.abs(noise) - np.abs(noise - shift)).sum()) / event.scale


def _log_rounded(
    event: GaussianEvent, answer: NDArray[np.int64], exact: NDArray[np.int64]
) -> NDArray[np.float64]:
    """The logarithm of the probability of each answer in whole rows, up to the norming constant.

    Answers are noisy steps rounded to the nearest row, of two the even one: half a row above and below goes
    to even answers only.
    """
    half, odd = event.lattice / 2, answer % 2 == 1
    steps = np.arange(-(event.lattice // 2), event.lattice // 2 + 1)
    noise = (answer - exact)[:, None] + steps / event.lattice
    rounds_to_answer = (np.abs(steps) < half) | ~odd[:, None]
    return np.asarray(
        logsumexp(-(noise**2) / (2 * event.sigma**2), axis=1, b=rounds_to_answer), dtype=np.float64
    )


def choice_log_probability(scores: NDArray[np.int64], scale: float, kind: Kind, chosen: list[int]) -> float:
    """The logarithm of the probability that these candidates are chosen in this order.

    One mechanism after the other, each without what was chosen before: the exponential mechanism with
    weights exp(score / scale), or permute-and-flip in pure accounts.
    """
    left = np.asarray(scores, dtype=np.float64) / scale
    log_probability = 0.0
    for index in chosen:
        if kind != "pure":
            log_probability += float(left[index] - logsumexp(left))
        else:
            log_probability += _log_permute_and_flip(left - left.max(), index)
        left[index] = -np.inf
    return log_probability


def _log_permute_and_flip(log_accept: NDArray[np.float64], index: int) -> float:
    """Candidate i with acceptance a_i = exp((score - best) / scale) comes at a uniform time u of its own
    and is taken if it accepts and nobody before it did: a_i times the integral over u of the product of
    1 - a_j u, j other than i. Gauss and Legendre are exact for this polynomial."""
    rivals = np.delete(log_accept, index)
    accept = np.exp(rivals[rivals > _NEGLIGIBLE])
    nodes, weights = _legendre(len(accept) // 2 + 1)
    integral = float(weights @ np.prod(1 - np.outer(nodes, accept), axis=1))
    return float(log_accept[index]) + math.log(integral)


@lru_cache(maxsize=1000)
def _legendre(number: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Nodes and weights on [0, 1], exact up to degree 2 ``number`` - 1."""
    nodes, weights = np.polynomial.legendre.leggauss(number)
    return (nodes + 1) / 2, weights / 2


# -- distributions -----------------------------------------------------------------------------------

# A second accountant: privacy loss distributions of the discrete mechanisms, pessimistic.
#
# Uses the optional package dp-accounting (Google), which follows Koskela, Jalko and Honkela (2020) and
# Doroshenko et al. (2022). It treats a private choice as plain epsilon-DP, which can cost more than the
# account charges, so neither figure is always the smaller one. Its rounding is estimated, not bounded: what
# is claimed is the account's own bound, and this one stands beside it.

_INTERVAL = 1e-4
"""Grid of the privacy loss (nats), so much coarser for a mean loss above 1: the loss has a deviation of
sqrt(2 mean), and a finer grid makes a large epsilon take minutes. Rounding to it is upwards."""

_ROUNDING = 2.0**-51
_MOST_ROUNDING = 0.1
"""Composition by Fourier transforms rounds either way, in units of 1, not of the small tail. With t
compositions on n points the root mean square error of a probability is about t c, c that of a transform
(log2 n times the norm of a single distribution, a few tenths, in units of the last place); that of delta, a
sum over n points, is below t c sqrt(n). It comes off delta first; above a tenth of it there is no answer."""


_MOST_SCALE = 2.0**17
"""Of noise, in steps of its lattice. Google's package lists every output within 12 scales or so: above this
a release of tiny epsilon would take minutes and gigabytes for a bound that is a few per cent less."""

_LEAST_SIGMA = 0.05
"""In rows: the package refuses noise that is less than a 23rd of what one row changes."""


def is_available() -> bool:
    """Whether dp-accounting is installed."""
    return importlib.util.find_spec("dp_accounting") is not None


def epsilon_from_events(events: Sequence[PrivacyEvent], delta: Fraction) -> float | None:
    """Pessimistic epsilon at ``delta`` of all events together, for units of one row.

    One row shifts one cell of each of m tables by one: the events' noise vectors are m independent
    mechanisms of sensitivity 1 (in steps of the noise's lattice, so many as a row has), so their privacy loss
    is the m-fold composition. For units of
    several rows the shifts can fall into cells in many ways; no distribution is claimed then.

    Args:
        events: of one release; sensitivities as for one row a unit.
        delta: in (0, 1); the deltas of thresholds are beside it and add to it.

    Returns:
        Epsilon, or None without dp-accounting, without events, where its rounding is too coarse for delta or
        the loss too large for its grid, or where noise is too wide or too narrow to list.
    """
    if not events or not all(map(_is_listed, events)) or not is_available():
        return None
    return _epsilon(tuple(Counter(events).items()), delta)


@lru_cache(maxsize=1000)
def _epsilon(counted: tuple[tuple[PrivacyEvent, int], ...], delta: Fraction) -> float | None:
    """Remembered: releases of one plan ask the same again, and it takes as long as a small release."""
    mean = sum(_mean_loss(event) * count for event, count in counted)
    interval = _INTERVAL * max(1.0, mean)
    distributions = [_distribution(event, count, interval) for event, count in counted]
    composed = reduce(lambda left, right: left.compose(right), distributions)
    error = _ROUNDING * _compositions(counted) * math.sqrt(composed._pmf_remove.size)
    if error > _MOST_ROUNDING * float(delta):
        return None
    epsilon = float(composed.get_epsilon_for_delta(float(delta) - error))
    return epsilon if math.isfinite(epsilon) else None


def _mean_loss(event: PrivacyEvent) -> float:
    """At most about so much; it decides only how fine the grid is."""
    if isinstance(event, GaussianEvent | ThresholdEvent):
        return event.l2_squared / (2 * event.sigma**2)
    return float(event.cost("gdp"))


def _is_listed(event: PrivacyEvent) -> bool:
    """Whether the outputs of an event can be listed; those of a private choice need not be."""
    if isinstance(event, GaussianEvent | ThresholdEvent):
        return event.sigma >= _LEAST_SIGMA and event.sigma * event.lattice <= _MOST_SCALE
    return not isinstance(event, LaplaceEvent) or event.scale <= _MOST_SCALE


def _compositions(counted: Sequence[tuple[PrivacyEvent, int]]) -> int:
    """How many distributions are composed."""
    times = len(counted)
    for event, count in counted:
        if isinstance(event, GaussianEvent | ThresholdEvent):
            times += event.l2_squared * count
        elif isinstance(event, LaplaceEvent):
            times += event.l1 * count
        else:
            times += count * (event.number if isinstance(event, SelectionEvent) else 1)
    return times


def _distribution(event: PrivacyEvent, count: int, interval: float) -> Any:
    from dp_accounting.pld import common
    from dp_accounting.pld import privacy_loss_distribution as pld

    settings = {"value_discretization_interval": interval, "use_connect_dots": True}
    if isinstance(event, GaussianEvent | ThresholdEvent):
        single = pld.from_discrete_gaussian_mechanism(
            event.sigma * event.lattice, sensitivity=event.lattice, **settings
        )
        return single.self_compose(event.l2_squared * count)
    if isinstance(event, LaplaceEvent):
        parameter = _rounded_up(1 / Fraction(event.scale))
        single = pld.from_discrete_laplace_mechanism(parameter, sensitivity=1, **settings)
        return single.self_compose(event.l1 * count)
    exact, times = (
        (event.single, event.number) if isinstance(event, SelectionEvent) else (event.cost("pure"), 1)
    )
    parameters = common.DifferentialPrivacyParameters(_rounded_up(exact), 0.0)
    single = pld.from_privacy_parameters(parameters, value_discretization_interval=interval)
    return single.self_compose(times * count)


def _rounded_up(exact: Fraction) -> float:
    epsilon = float(exact)
    return epsilon if epsilon >= exact else math.nextafter(epsilon, math.inf)
