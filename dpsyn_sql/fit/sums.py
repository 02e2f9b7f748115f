"""Sums over axes of tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from dpsyn_sql.fit.arrays import FloatArray

_RUN = 16
# Cells: longer runs are added no faster.


def summed(table: FloatArray, axes: Sequence[int]) -> FloatArray:
    """``table.sum(axes)`` on one thread and in one order, faster than numpy's.

    Runs of neighbouring axes are summed together by einsum. BLAS is not used: its threads hinder each other
    on tables of this size, and the order of its sums depends on their number.
    """
    if not axes:
        return table
    steps, shape = _steps(table.shape, tuple(axes))
    for step in steps:
        table = np.einsum("akb->ab", table.reshape(step))
    return table.reshape(shape)


@lru_cache(maxsize=2**16)
def _steps(
    shape: tuple[int, ...], axes: tuple[int, ...]
) -> tuple[tuple[tuple[int, int, int], ...], tuple[int, ...]]:
    """Shapes whose middle axis is to be summed, one after the other, and that of the result.

    Remembered, as is what else depends on shapes alone: a model of many attributes has small tables, and
    thinking about a sum takes longer than the sum.
    """
    blocks, steps = _blocks(shape, set(axes)), list[tuple[int, int, int]]()
    while any(dropped for dropped, _ in blocks):
        index = _cheapest(blocks)
        before = math.prod(size for _, size in blocks[:index])
        after = math.prod(size for _, size in blocks[index + 1 :])
        steps.append((before, blocks[index][1], after))
        del blocks[index]
    return tuple(steps), tuple(size for axis, size in enumerate(shape) if axis not in axes)


def _cheapest(blocks: Sequence[tuple[bool, int]]) -> int:
    """The block to sum first: the longest of those with a run of cells behind each entry, which are added
    at a third of the price of neighbours; else the one with most behind it."""
    prices, after = dict[int, tuple[int, int]](), 1
    for index in reversed(range(len(blocks))):
        dropped, size = blocks[index]
        if dropped:
            prices[index] = (min(after, _RUN), size)
        after *= size
    return max(prices, key=prices.__getitem__)


def _blocks(shape: Sequence[int], axes: set[int]) -> list[tuple[bool, int]]:
    """Runs of neighbouring axes that are all dropped or all kept, with their number of cells."""
    blocks: list[tuple[bool, int]] = []
    for axis, size in enumerate(shape):
        if blocks and blocks[-1][0] == (axis in axes):
            blocks[-1] = (blocks[-1][0], blocks[-1][1] * size)
        else:
            blocks.append((axis in axes, size))
    return blocks
