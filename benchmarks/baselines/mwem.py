"""MWEM (Hardt, Ligett, McSherry 2012) for marginals over a joint domain of a few attributes.

Each of T rounds has epsilon / T and halves it: the exponential mechanism chooses the marginal whose answer is
most wrong, then Laplace noise is added to it, and multiplicative weights move the table towards all answers
so far. The score of a marginal is its L1 distance in rows less its number of cells (the usual correction, so
that large tables are not chosen for their noise), of sensitivity 1: the probability of a score s is
proportional to exp(s epsilon / (4 T)). The noise of a measured marginal has scale 2 T / epsilon. Pure
epsilon; the number of rows is public here, as in the paper.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from comparison import chosen, shares
from numpy.typing import NDArray

Table = NDArray[np.float64]

MOST_CELLS = 2**20
PASSES = 100
"""Passes over all answers so far in each round."""


def mwem(
    rows: NDArray[np.int64],
    sizes: Sequence[int],
    epsilon: float,
    rng: np.random.Generator,
    *,
    rounds: int = 10,
    ways: int = 2,
) -> Table:
    """The joint table as shares, an axis for each attribute, from ``rounds`` noisy marginals.

    Raises:
        ValueError: the joint domain has more than ``MOST_CELLS`` cells.
    """
    if math.prod(sizes) > MOST_CELLS:
        raise ValueError(f"{math.prod(sizes):,} cells are more than {MOST_CELLS:,}: give fewer attributes")
    number, groups = len(rows), chosen(len(sizes), min(ways, len(sizes)))
    true = [number * shares(rows, sizes, axes) for axes in groups]
    table = np.full(tuple(sizes), number / math.prod(sizes))
    answers: dict[int, Table] = {}
    for _ in range(min(rounds, len(groups))):
        picked = _choice(table, groups, true, answers, epsilon / (2 * rounds), rng)
        answers[picked] = true[picked] + rng.laplace(0, 2 * rounds / epsilon, true[picked].shape)
        for _ in range(PASSES):
            for index, answer in answers.items():
                table = updated(table, groups[index], answer)
    return table / number


def marginal(table: Table, axes: Sequence[int]) -> Table:
    """Sums of a joint table over some axes (in rising order), flat."""
    return table.sum(axis=tuple(axis for axis in range(table.ndim) if axis not in axes)).ravel()


def updated(table: Table, axes: Sequence[int], answer: Table) -> Table:
    """One multiplicative weights update: each weight times exp((answer - estimate) / (2 n)), then the sum
    is n again."""
    number = table.sum()
    kept = [table.shape[axis] if axis in axes else 1 for axis in range(table.ndim)]
    steps = ((answer - marginal(table, axes)) / (2 * number)).reshape(kept)
    weighted = table * np.exp(steps)
    return weighted * (number / weighted.sum())


def _choice(
    table: Table,
    groups: Sequence[Sequence[int]],
    true: Sequence[Table],
    known: dict[int, Table],
    epsilon: float,
    rng: np.random.Generator,
) -> int:
    """The exponential mechanism over marginals not measured yet, by Gumbel noise."""
    scores = np.array(
        [
            -np.inf if index in known else np.abs(answer - marginal(table, axes)).sum() - answer.size
            for index, (axes, answer) in enumerate(zip(groups, true, strict=True))
        ]
    )
    return int(np.argmax(epsilon / 2 * scores + rng.gumbel(size=len(scores))))
