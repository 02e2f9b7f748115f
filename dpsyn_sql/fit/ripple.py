"""Ripple: negative cells become zero, and their neighbours pay for it (PriView, section 4.4).

Neighbours of a cell differ from it in the value of one attribute; a table of l1 x l2 x ... cells has
h = (l1 - 1) + (l2 - 1) + ... of them. So a deficit is taken from similar cells, where a projection takes it
from all cells.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

MOST_STEPS = 50
"""Steps, at most: a deficit among many others takes thousands to reach the few cells that can pay."""


def ripple(table: FloatArray, theta: float, most: int = MOST_STEPS) -> FloatArray:
    """The table without cells below -``theta``; its sum stays what it was.

    Every cell c < -theta becomes 0, and each of its h neighbours loses |c| / h. Others may then fall below
    -theta, so this repeats until none is, or ``most`` times. All cells of a step change at once. After the
    last step what is left is taken from all positive cells, in proportion. A table whose sum is not positive
    has no cells to pay: it stays as it is.

    Args:
        table: counts (rows), any shape.
        theta: rows, not negative.
        most: steps.
    """
    return np.asarray(rippled(np.asarray(table)[None], np.array([theta]), most)[0])


def rippled(tables: FloatArray, thetas: FloatArray, most: int = MOST_STEPS) -> FloatArray:
    """``ripple`` of many tables of one shape (tables, cells ...), each with its threshold."""
    found = np.array(tables, np.float64)
    axes, neighbours = tuple(range(1, found.ndim)), sum(size - 1 for size in found.shape[1:])
    if neighbours == 0 or found.size == 0:
        return found
    able = found.sum(axis=axes, keepdims=True) > 0
    lowest = np.where(able, -np.reshape(thetas, able.shape), -np.inf)
    for _ in range(most):
        deficit = np.where(found < lowest, -found, 0.0)
        if not deficit.any():
            return found
        found += deficit
        for axis in axes:
            found -= (deficit.sum(axis=axis, keepdims=True) - deficit) / neighbours
    deficit = np.where(found < lowest, -found, 0.0)
    rich = np.maximum(found, 0.0)
    owed, paying = (part.sum(axis=axes, keepdims=True) for part in (deficit, rich))
    share = np.divide(owed, paying, out=np.zeros_like(owed), where=owed > 0)
    return np.asarray(found + deficit - rich * share)
