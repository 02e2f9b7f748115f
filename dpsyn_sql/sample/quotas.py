"""Low-variance sampling: every code is drawn as often as the model says, within rounding.

Drawing independently would add an error of sqrt(rows p (1-p)) to each one-way count, as large as
the privacy noise. Instead each batch gets a quota per code, and the few rows too many of a code
move to codes that lack some: those rows whose latent score loses least by it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Codes = NDArray[np.integer[Any]]

ONE_WAYS_MET = "with one-way counts met"
"""How a sampler that keeps quotas draws rows, as certificates have it."""


def rounded_counts(probabilities: FloatArray, rows: int) -> NDArray[np.int64]:
    """Integers nearest to ``rows * probabilities`` that sum to ``rows`` (largest remainder)."""
    exact = probabilities * (rows / probabilities.sum())
    counts = np.floor(exact).astype(np.int64)
    missing = rows - int(counts.sum())
    counts[np.argsort(counts - exact, kind="stable")[:missing]] += 1
    return np.asarray(counts, dtype=np.int64)


CANDIDATES = 8
"""Rows looked at for each row that has to change its code."""


class Quotas:
    """How many rows of each code the next batch gets, so that running counts stay on course."""

    def __init__(self, probabilities: FloatArray) -> None:
        self._probabilities = probabilities
        self._given = np.zeros(probabilities.size, dtype=np.int64)

    def next(self, rows: int) -> NDArray[np.int64]:
        """Counts (one per code) that sum to ``rows``."""
        goal = rounded_counts(self._probabilities, int(self._given.sum()) + rows)
        # Rounding can take one row back from a code; then the commonest codes wait for it.
        quota = np.maximum(goal - self._given, 0)
        for code in np.argsort(-quota, kind="stable"):
            surplus = int(quota.sum()) - rows
            if surplus <= 0:
                break
            quota[code] -= min(surplus, int(quota[code]))
        self._given += quota
        return np.asarray(quota, dtype=np.int64)


Scores = Callable[[Codes, Codes], NDArray[np.floating[Any]]]
"""Of rows (places) and codes, broadcast against each other: how well each code suits each row; minus infinity
where it cannot be."""


def listed(scores: NDArray[np.floating[Any]]) -> Scores:
    """The scores (n, l) of all rows and codes."""
    return lambda rows, codes: scores[rows, codes]


def meet_quotas(scores: Scores, winners: Codes, quota: NDArray[np.int64]) -> None:
    """Change ``winners`` (n,) in place until code j occurs ``quota[j]`` times, or no row can be changed.

    ``quota`` sums to n. Rows move from codes above their quota to codes below it, the smallest loss of
    score first, chosen among the first few rows for each one that has to go (rows are in random order).
    Every round brings at least one code to its quota, if scores are finite.
    """
    while True:
        surplus = np.bincount(winners, minlength=quota.size) - quota
        short = np.flatnonzero(surplus < 0)
        if short.size == 0:
            return
        rows = np.flatnonzero((surplus > 0)[winners])
        rows = rows[first_of_each(winners[rows], CANDIDATES * np.maximum(surplus, 0))]
        offered = scores(rows[:, None], short)
        best = offered.argmax(axis=1)
        own = winners[rows]
        loss = scores(rows, own) - offered[np.arange(rows.size), best]
        order = np.argsort(loss, kind="stable")
        order = order[np.isfinite(loss[order])]
        order = order[first_of_each(own[order], np.maximum(surplus, 0))]
        target = short[best[order]]
        accepted = first_of_each(target, np.maximum(-surplus, 0))
        if not accepted.any():
            return
        winners[rows[order[accepted]]] = target[accepted].astype(winners.dtype)


def by_group(groups: Codes, number: int) -> NDArray[np.int64]:
    """Places by group (below ``number``), ascending within each."""
    # numpy sorts 16-bit integers by radix, several times faster than wider ones.
    return np.argsort(groups.astype(np.uint16) if number <= 2**16 else groups, kind="stable")


def first_of_each(groups: Codes, limits: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Mask of the first ``limits[g]`` occurrences of each g in ``groups``."""
    order = by_group(groups, limits.size)
    sorted_groups = groups[order]
    starts = np.searchsorted(sorted_groups, np.arange(limits.size))
    position = np.arange(groups.size) - starts[sorted_groups]
    mask = np.empty(groups.size, dtype=np.bool_)
    mask[order] = position < limits[sorted_groups]
    return mask


def batch_sizes(rows: int, largest: int) -> Sequence[int]:
    """Sizes, as equal as possible and at most ``largest``, that sum to ``rows``."""
    if rows <= 0:
        return ()
    number = -(-rows // largest)
    return [rows // number + (index < rows % number) for index in range(number)]


def code_type(largest_size: int) -> type[np.uint8] | type[np.uint16] | type[np.uint32]:
    """The smallest unsigned type for codes of an attribute with so many codes."""
    if largest_size <= 2**8:
        return np.uint8
    return np.uint16 if largest_size <= 2**16 else np.uint32
