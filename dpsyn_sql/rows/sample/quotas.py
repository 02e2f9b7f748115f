"""Low-variance sampling: every code is drawn as often as the model says, within rounding.

Drawing independently would add an error of sqrt(rows p (1-p)) to each one-way count, as large as the privacy
noise. Instead each batch gets a quota per code, and the few rows too many of a code move to codes that lack
some: those rows whose latent score loses least by it.

Rows of independent attributes, and of one attribute with given counts, are the right number of each code,
shuffled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.fit.arrays import Codes, FloatArray, IntArray
from dpsyn_sql.fit.projections import simplex_projection

ONE_WAYS_MET = "with one-way counts met"
"""How a sampler that keeps quotas draws rows, as certificates have it."""


def rounded_counts(probabilities: FloatArray, rows: int) -> IntArray:
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

    def next(self, rows: int) -> IntArray:
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


def meet_quotas(scores: Scores, winners: Codes, quota: IntArray) -> None:
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


def by_group(groups: Codes, number: int) -> IntArray:
    """Places by group (below ``number``), ascending within each."""
    # numpy sorts 16-bit integers by radix, several times faster than wider ones.
    return np.argsort(groups.astype(np.uint16) if number <= 2**16 else groups, kind="stable")


def first_of_each(groups: Codes, limits: IntArray) -> NDArray[np.bool_]:
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


def streams(rows: int, largest: int, seed: int) -> Iterator[tuple[int, np.random.Generator]]:
    """``batch_sizes``, each with a stream of random numbers of its own."""
    for index, size in enumerate(batch_sizes(rows, largest)):
        yield size, generator_of(seed, index)


def generator_of(seed: int, index: int) -> np.random.Generator:
    """The stream of a batch: the order in which batches are drawn does not matter."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence((seed, index))))


def code_type(largest_size: int) -> type[np.uint8] | type[np.uint16] | type[np.uint32]:
    """The smallest unsigned type for codes of an attribute with so many codes."""
    if largest_size <= 2**8:
        return np.uint8
    return np.uint16 if largest_size <= 2**16 else np.uint32


BATCH_ROWS = 2**18
"""Rows of a batch: a constant, so that a seed means the same rows on every machine."""


@dataclass(frozen=True, slots=True)
class ProductSampler:
    """Draws rows of independent attributes; one-way counts are met within rounding.

    ``probabilities`` (float64, one per code) of each attribute in domain order.
    """

    probabilities: tuple[FloatArray, ...]
    drawn: ClassVar[str] = ONE_WAYS_MET

    def batches(self, rows: int, seed: int) -> Iterator[Codes]:
        """Arrays (batch, attributes) of codes in domain order, unsigned, ``rows`` in all."""
        quotas = [Quotas(own) for own in self.probabilities]
        dtype = code_type(max((own.size for own in self.probabilities), default=1))
        for size, generator in streams(rows, BATCH_ROWS, seed):
            codes = np.empty((size, len(quotas)), dtype=dtype)
            for column, quota in enumerate(quotas):
                counts = quota.next(size)
                codes[:, column] = generator.permutation(
                    np.repeat(np.arange(counts.size, dtype=dtype), counts)
                )
            yield codes


@dataclass(frozen=True, slots=True)
class CountedSampler:
    """Draws each code as often as ``rows`` says (float64, one per code, none negative), within rounding; of
    whole numbers exactly, if all rows are drawn."""

    rows: FloatArray
    drawn: ClassVar[str] = ONE_WAYS_MET

    def batches(self, rows: int, seed: int) -> Iterator[Codes]:
        """Arrays (batch, 1) of codes, unsigned, ``rows`` in all: a shuffled list, dealt batch by batch."""
        weights = self.rows if self.rows.sum() > 0 else np.ones(self.rows.size)
        left, dtype = rounded_counts(weights, rows), code_type(weights.size)
        for size, generator in streams(rows, BATCH_ROWS, seed):
            dealt = generator.multivariate_hypergeometric(left, size, method="marginals")
            left -= dealt
            codes = np.repeat(np.arange(weights.size, dtype=dtype), dealt)
            yield generator.permutation(codes)[:, None]


def unit_sizes(noisy: IntArray, rows: int) -> IntArray:
    """Numbers of units by rows per unit that have ``rows`` rows together.

    The noisy histogram is projected to the simplex of its own total, which takes the noise out of its
    long tail; scaled so that the rows come out right; and rounded, what rounding leaves over going to
    the sizes that lost most. Where it says nothing (no positive total), each row is a unit.

    Args:
        noisy: int64 (most,); entry i is the noisy number of units with i+1 rows.
        rows: of the output.

    Returns:
        int64 (most,), not negative; the sum of (i+1) * entry i is ``rows``.
    """
    sizes = np.arange(1, noisy.size + 1, dtype=np.int64)
    projected = simplex_projection(noisy.astype(np.float64), float(noisy.sum()))
    in_rows = float(projected @ sizes)
    if in_rows <= 0:
        projected, in_rows = (sizes == 1).astype(np.float64), 1.0
    exact = projected * (rows / in_rows)
    counts = np.floor(exact).astype(np.int64)
    left = rows - int(counts @ sizes)
    for index in np.argsort(counts - exact, kind="stable"):
        if left <= 0 or counts[index] == exact[index]:
            break
        if sizes[index] <= left:
            counts[index] += 1
            left -= int(sizes[index])
    while left > 0:
        last = min(left, noisy.size)
        counts[last - 1] += 1
        left -= last
    return counts
