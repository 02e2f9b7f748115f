"""Arrays of numbers, and sums along their axes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.errors import InternalError

# -- types -------------------------------------------------------------------------------------------

# Arrays, and numbers on a coarse grid: decisions must not hang on the last bits of a float.
#
# A replay asks its questions again, perhaps on another machine, whose sums and exponentials differ in the
# last bit. Whatever decides on a question (bins, scores) is put on a grid first. The grid's boundaries are
# irrational: sums of noisy integers, their means and halves, never lie on one.

Codes = NDArray[np.integer[Any]]
FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_OFFSET = (np.sqrt(5) - 1) / 2


def snapped(values: FloatArray, step: float) -> FloatArray:
    """Multiples of ``step`` (a power of two), each less than a step from its value."""
    return np.asarray(np.floor(values / step + _OFFSET) * step)


_TINY = float(np.finfo(np.float64).tiny)


def quotient(values: FloatArray, divisors: FloatArray) -> FloatArray:
    """``values`` / ``divisors``; 0 where one is 0, or too small for a quotient in float64."""
    return np.divide(values, divisors, out=np.zeros_like(values), where=divisors >= _TINY)


@contextmanager
def sound(subject: str) -> Iterator[None]:
    """Arithmetic in which an overflow, a division by zero or a NaN is an error with a name: numpy's warning
    passes, and what is left of the numbers makes wrong rows.

    Raises:
        InternalError: one of these has happened in ``subject``.
    """
    try:
        with np.errstate(over="raise", divide="raise", invalid="raise"):
            yield
            return
    except FloatingPointError as error:
        kind = str(error)
    raise InternalError(f"{subject} has left the numbers of float64: {kind}")


# -- sums --------------------------------------------------------------------------------------------

# Sums over axes of tables, and within groups of neighbours.

_LONG_GROUP = 512
# Values: groups that are longer are added one by one, others place by place.


def group_cumsum(values: FloatArray, begins: IntArray) -> FloatArray:
    """Cumulative sums (n,) within groups of neighbours, which start at ``begins`` (ascending, the first 0).

    Differences of one sum over all groups would have no digits left for small values of late groups.
    """
    sums, sizes = values.astype(np.float64), np.diff(begins, append=values.size)
    for group in np.flatnonzero(sizes > _LONG_GROUP):
        part = slice(begins[group], begins[group] + sizes[group])
        sums[part] = np.cumsum(sums[part])
    short = begins[sizes <= _LONG_GROUP]
    sizes = sizes[sizes <= _LONG_GROUP]
    for place in range(1, int(sizes.max(initial=0))):
        short, sizes = short[sizes > place], sizes[sizes > place]
        sums[short + place] += sums[short + place - 1]
    return sums


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
