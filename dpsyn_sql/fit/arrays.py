"""Arrays, and numbers on a coarse grid: decisions must not hang on the last bits of a float.

A replay asks its questions again, perhaps on another machine, whose sums and exponentials differ in the last
bit. Whatever decides on a question (bins, scores) is put on a grid first. The grid's boundaries are
irrational: sums of noisy integers, their means and halves, never lie on one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.errors import InternalError

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
