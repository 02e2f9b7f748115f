"""PRIVATE: the scores of PrivBayes of an exact table (parents' values, child's values), in whole steps.

Claim: docs/privacy.md, "Scores of families". Each is a whole number that one row more or less changes by at
most ``STEPS[score](bits)``, whatever the table is. The scores of the paper (Zhang, Cormode, Procopiuc,
Srivastava and Xiao, TODS 2017) times the number of rows:

- ``I``: mutual information, in 1/256 bits.
- ``F``: minus half the L1 distance to the nearest distribution of most mutual information, in half rows.
- ``R``: half the L1 distance to independence, in half rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]

MOST_BITS = 40
"""Of a number of rows 2^bits up to which ``I`` is mutual information."""

_PER_BIT = 256
# Steps of ``I`` in a bit: sums of 2^47 rows times 41.5 bits stay below 2^61.

_MOST_ROWS = 2**47
# In all cells of a table.

_MOST_EXACT = 2**30
# Rows whose square, twice, is below 2^62.


def scored(table: Integers, child: int, score: str, bits: int) -> int:
    """The score of a table, whose axis ``child`` is the child's, the others its parents'.

    Args:
        table: int64, exact counts.
        child: the axis; of two values for ``F``.
        score: ``I``, ``F`` or ``R``.
        bits: of ``I``, 1 to ``MOST_BITS``.
    """
    kept = np.minimum(table, _MOST_ROWS // table.size)
    joint = np.moveaxis(kept, child, -1).reshape(-1, table.shape[child])
    if score == "I":
        return _information(joint, _starts(bits))
    return _to_dependence(joint) if score == "F" else _to_independence(joint)


def most_slope(bits: int) -> int:
    """By how many steps ``I`` grows with a row at 2^bits rows."""
    return math.floor(_PER_BIT * (bits + 1 / math.log(2)))


STEPS: Final[Mapping[str, Callable[[int], int]]] = {"I": most_slope, "F": lambda bits: 2, "R": lambda bits: 4}
"""Of each score the most that one row changes it by; ``bits`` matter to ``I`` alone."""


@lru_cache(maxsize=8)
def _starts(bits: int) -> Integers:
    """The numbers of rows, ascending, from which one row more adds 1, 2, ... steps to 256 m log2 m.

    Public. Their number is the sensitivity; that they are good approximations matters to accuracy alone.
    """
    steps = np.arange(1, most_slope(bits) + 1)
    few = np.arange(1, 2**12)
    slopes = np.r_[0.0, (few + 1) * np.log2(few + 1) - few * np.log2(few)]
    wanted = (steps - 0.5) / _PER_BIT
    many = np.ceil(2 ** (wanted - 1 / math.log(2)) - 0.5)  # a slope is log2(m + 1/2) + 1/ln 2 there
    found = np.where(wanted <= slopes[-1], np.searchsorted(slopes, wanted), many)
    starts = np.maximum.accumulate(np.maximum(found, 0).astype(np.int64))
    starts.flags.writeable = False
    return starts


def _information(joint: Integers, starts: Integers) -> int:
    """The sum over cells of Phi, less those over both margins, plus that of all rows."""
    before = np.r_[0, np.cumsum(starts)]

    def grown(counts: Integers) -> int:
        """The sum of Phi(m) = sum over starts t of max(0, m - t)."""
        passed = np.searchsorted(starts, counts)
        return int((passed * counts - before[passed]).sum())

    margins = grown(joint.sum(axis=0)) + grown(joint.sum(axis=1))
    return grown(joint.ravel()) + grown(joint.sum(keepdims=True).ravel()) - margins


def _to_independence(joint: Integers) -> int:
    """floor(sum |n c - r s| / n)."""
    rows = int(joint.sum())
    if rows == 0:
        return 0
    exact = joint if rows < _MOST_EXACT else joint.astype(object)
    apart = np.abs(rows * exact - np.multiply.outer(exact.sum(axis=1), exact.sum(axis=0)))
    return int(apart.sum()) // rows


def _to_dependence(joint: Integers) -> int:
    """Minus the least (n - 2 c(A, 0))+ + (n - 2 c(B, 1))+ over divisions of the parents' values into A and B.

    As in the dynamic program of the paper, values are given to A or B one after another; of the sums
    reached, those stay that no others reach in both places.
    """
    rows = int(joint.sum())
    reached = np.zeros((1, 2), dtype=np.int64)
    for first, second in joint[joint.any(axis=1)]:
        both = np.concatenate([reached + np.array([first, 0]), reached + np.array([0, second])])
        reached = _undominated(np.minimum(both, (rows + 1) // 2))
    return -int(np.maximum(rows - 2 * reached, 0).sum(axis=1).min())


def _undominated(sums: Integers) -> Integers:
    """The sums that no other reaches in both places."""
    order = np.lexsort((-sums[:, 1], -sums[:, 0]))
    ordered = sums[order]
    best = np.maximum.accumulate(ordered[:, 1])
    kept = np.append(True, ordered[1:, 1] > best[:-1])
    return np.asarray(ordered[kept])
