"""Whole numbers that add up: taking rows off groups of counts in turns, and centring noisy counts on a total.

"Synthetic Data via Differential Privacy", Figures 4 and 14, in closed form: one pass instead of one row a
step. Figure 14 also cuts counts at the total before it adds up, which makes two counts above it equal; Figure
4 does not, and its result exceeds no total either.
"""

from __future__ import annotations

import numpy as np

from dpsyn_sql.fit.arrays import IntArray


def centred(noisy: IntArray, groups: IntArray, totals: IntArray) -> IntArray:
    """Counts of 0 or more that sum to the total of their group.

    Negative counts become 0. Then one row at a time is added to, or taken off, each count of a group in turn
    until the sum is right; a count of 0 stays 0 while rows are taken off.

    Args:
        noisy: int64[n].
        groups: int64[n], the group of each count: 0, 0, 1, ..., never descending, none left out.
        totals: int64[groups], 0 or more.

    Returns:
        int64[n].
    """
    counts = np.maximum(noisy, 0)
    missing = totals - group_sums(counts, groups)
    counts = take_rows_in_turns(counts, groups, np.maximum(-missing, 0))
    rounds, rest = np.divmod(np.maximum(missing, 0), group_sums(np.ones_like(groups), groups))
    return np.asarray(counts + rounds[groups] + (_turns(groups) < rest[groups]), dtype=np.int64)


def take_rows_in_turns(counts: IntArray, groups: IntArray, number: IntArray) -> IntArray:
    """What is left of the counts of each group after ``number`` rows are taken off it, one at a time from
    each count in turn that is above 0; nothing of a group that has no more rows.

    The turn begins at a place that follows from the group's number alone.

    Args:
        counts: int64[n], 0 or more.
        groups: as for ``centred``.
        number: int64[groups], 0 or more.

    Returns:
        int64[n].
    """
    # Rows are taken in the order (round, turn). Full rounds: the most that take no more than the number.
    low, high = np.zeros_like(number), number.copy()
    while (low < high).any():
        middle = high - (high - low) // 2
        fits = group_sums(np.minimum(counts, middle[groups]), groups) <= number
        low, high = np.where(fits, middle, low), np.where(fits, high, middle - 1)
    left = counts - np.minimum(counts, low[groups])
    rest = number - group_sums(counts - left, groups)
    # The last round takes a row of each of the first ``rest`` counts in turn that have one left.
    order = np.lexsort((_turns(groups), groups))
    has = np.asarray(left > 0, dtype=np.int64)
    before = np.cumsum(has[order]) - has[order]
    before -= before[_firsts(groups)][groups]
    taken = np.empty_like(left)
    taken[order] = has[order] & (before < rest[groups])
    return left - taken


def _firsts(groups: IntArray) -> IntArray:
    """Where each group begins."""
    return np.flatnonzero(np.diff(groups, prepend=-1))


def group_sums(values: IntArray, groups: IntArray) -> IntArray:
    """The sum of each group; ``groups`` as for ``centred``."""
    return np.asarray(np.add.reduceat(values, _firsts(groups)), dtype=np.int64) if len(groups) else values


def _turns(groups: IntArray) -> IntArray:
    """The turn of each count in its group: 0, 1, ... from a place that is spread over the groups, so that
    the first counts are not always favoured."""
    firsts = _firsts(groups)
    sizes = np.diff(firsts, append=len(groups))
    starts = _mixed(len(firsts)) % sizes
    places = np.arange(len(groups)) - firsts[groups]
    return np.asarray((places - starts[groups]) % sizes[groups], dtype=np.int64)


def _mixed(number: int) -> IntArray:
    """Whole numbers from 0 that look random: the finaliser of SplitMix64 on 0, 1, ... (Steele, Lea, Flood
    2014)."""
    mixed = np.arange(1, number + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray((mixed ^ (mixed >> np.uint64(31))) >> np.uint64(1), dtype=np.int64)
