"""How much more likely an answer is with a unit than without it, exactly, given the exact values of both.

Cells that are the same in both tables cancel. The sum over the questions of a run, each given the public
references that this run asked with, is the log-likelihood ratio of its transcript.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from dpsyn_sql.accounting.budget import Kind
from dpsyn_sql.accounting.events import GaussianEvent, LaplaceEvent, SelectionEvent

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
    taken = (np.abs(steps) < half) | ~odd[:, None]
    return np.asarray(logsumexp(-(noise**2) / (2 * event.sigma**2), axis=1, b=taken), dtype=np.float64)


def choice_log_probability(scores: NDArray[np.int64], scale: float, kind: Kind, chosen: list[int]) -> float:
    """The logarithm of the probability that these candidates are chosen in this order.

    One mechanism after the other, each without what was chosen before: the exponential mechanism with
    weights exp(score / scale), or permute-and-flip in pure accounts.
    """
    left = np.asarray(scores, dtype=np.float64) / scale
    found = 0.0
    for index in chosen:
        if kind != "pure":
            found += float(left[index] - logsumexp(left))
        else:
            found += _log_permute_and_flip(left - left.max(), index)
        left[index] = -np.inf
    return found


def _log_permute_and_flip(log_accept: NDArray[np.float64], index: int) -> float:
    """Candidate i with acceptance a_i = exp((score - best) / scale) comes at a uniform time u of its own
    and is taken if it accepts and nobody before it did: a_i times the integral over u of the product of
    1 - a_j u, j other than i. Gauss and Legendre are exact for this polynomial."""
    others = np.delete(log_accept, index)
    accept = np.exp(others[others > _NEGLIGIBLE])
    places, weights = _legendre(len(accept) // 2 + 1)
    integral = float(weights @ np.prod(1 - np.outer(places, accept), axis=1))
    return float(log_accept[index]) + math.log(integral)


@lru_cache(maxsize=1000)
def _legendre(number: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Nodes and weights on [0, 1], exact up to degree 2 ``number`` - 1."""
    places, weights = np.polynomial.legendre.leggauss(number)
    return (places + 1) / 2, weights / 2
