"""Arrays, and numbers on a coarse grid: decisions must not hang on the last bits of a float.

A replay asks its questions again, perhaps on another machine, whose sums and exponentials differ in the last
bit. Whatever decides on a question (bins, scores) is put on a grid first. The grid's boundaries are
irrational: sums of noisy integers, their means and halves, never lie on one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.integer[Any]]
FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_OFFSET = (np.sqrt(5) - 1) / 2


def snapped(values: FloatArray, step: float) -> FloatArray:
    """Multiples of ``step`` (a power of two), each less than a step from its value."""
    return np.asarray(np.floor(values / step + _OFFSET) * step)
