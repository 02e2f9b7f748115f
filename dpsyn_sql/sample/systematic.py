"""Systematic sampling: every conditional count close to its expectation.

Independent draws would add an error as large as the privacy noise. Here the rows of one parent
configuration have their own random order. The numbers 1 to n, shifted by a common jitter, are laid over the
cumulative distribution, and each outcome gets the rows whose numbers lie in its part (systematic sampling):
each count is within one row of its expectation, and unbiased.

Every node, and the codes of every attribute, get a new order. In a shared order two children of one parent
would move together, which the model does not say.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.sample.quotas import batch_sizes

BATCH_ROWS = 2**18
"""Rows of a batch: a constant, so that a seed means the same rows on every machine."""

LOW_VARIANCE = "with low variance"
"""How rows are drawn here, in the words of certificates."""

_AT_A_TIME = 2
# Batches that are drawn side by side, in memory together.

Codes = NDArray[np.int64]
FloatArray = NDArray[np.float64]
Batch = NDArray[np.integer[Any]]


def side_by_side(rows: int, seed: int, drawn: Callable[[int, np.random.Generator], Batch]) -> Iterator[Batch]:
    """Batches of ``drawn(rows, generator)`` in order, ``rows`` in total.

    Each has its own stream, so that the order in which they are drawn does not matter.
    """

    def batch(size: int, index: int) -> Batch:
        return drawn(size, np.random.Generator(np.random.PCG64(np.random.SeedSequence((seed, index)))))

    pending = deque[Future[Batch]]()
    with ThreadPoolExecutor(max_workers=_AT_A_TIME) as pool:
        for index, size in enumerate(batch_sizes(rows, BATCH_ROWS)):
            pending.append(pool.submit(batch, size, index))
            if len(pending) == _AT_A_TIME:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()


def systematic(
    groups: NDArray[np.integer[Any]], owners: Codes, upper: FloatArray, generator: np.random.Generator
) -> Codes:
    """One line of its group's distribution per row: systematic sampling, in a random order of the rows.

    Args:
        groups: (n,) group of each row; each has lines.
        owners: (l,) group of each line, ascending.
        upper: (l,) cumulative probability at the end of each line within its group.
        generator: of the order of rows within a group and the jitter.
    """
    counts = np.bincount(groups, minlength=int(owners[-1]) + 1)
    size = counts[owners]
    ends = np.floor(upper * size + generator.random(counts.size)[owners]).astype(np.int64)
    ends = np.minimum(ends, size)
    last = np.append(owners[1:] != owners[:-1], True)
    ends[last] = size[last]
    ends += (np.cumsum(counts) - counts)[owners]
    drawn = np.empty(groups.size, dtype=np.int64)
    drawn[_grouped(groups, generator)] = np.repeat(np.arange(owners.size), np.diff(ends, prepend=0))
    return drawn


def stratified(groups: Codes, weights: FloatArray, generator: np.random.Generator) -> Codes:
    """One outcome per row from the distribution of its group, by ``systematic``.

    Args:
        groups: (n,) row of ``weights`` for each row.
        weights: (g, k) not negative; the probabilities of the outcomes are proportional to them.
        generator: of the order of rows within a group and the jitter.
    """
    outcomes = weights.shape[1]
    occupied = np.flatnonzero(np.bincount(groups, minlength=len(weights)))
    upper = np.cumsum(weights[occupied], axis=1)
    upper /= np.maximum(upper[:, -1:], np.finfo(np.float64).tiny)
    lines = systematic(groups, np.repeat(occupied, outcomes), upper.ravel(), generator)
    return np.asarray(lines % outcomes)


def _grouped(groups: NDArray[np.integer[Any]], generator: np.random.Generator) -> Codes:
    """Rows by group, in a random order within each."""
    order = generator.permutation(groups.size)
    # numpy sorts 16-bit integers by radix, several times faster than wider ones: least significant first.
    width = int(groups.max()).bit_length() if groups.size else 0
    for shift in range(0, width, 16):
        order = order[np.argsort((groups[order] >> shift).astype(np.uint16), kind="stable")]
    return np.asarray(order)
