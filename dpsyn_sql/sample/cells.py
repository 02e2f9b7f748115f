"""Which cell of a table each row is in, and tables of whole rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.fit.graph import Scope

Codes = NDArray[np.integer[Any]]
FloatArray = NDArray[np.float64]


def cells(columns: Sequence[Codes] | Mapping[int, Codes], scope: Scope, sizes: Sequence[int]) -> Codes:
    """The number of each row's cell of the table over ``scope`` (not empty), in row-major order."""
    found = columns[scope[0]]
    for variable in scope[1:]:
        found = found * sizes[variable] + columns[variable]
    return found


def codes_of(numbers: Codes, scope: Scope, sizes: Sequence[int]) -> dict[int, Codes]:
    """The codes of each variable of ``scope`` in the cells of these numbers."""
    found = dict[int, Codes]()
    for variable in reversed(scope):
        numbers, found[variable] = np.divmod(numbers, sizes[variable])
    return found


def whole(table: FloatArray, rows: int, generator: np.random.Generator) -> NDArray[np.int64]:
    """``rows`` rows, at least 0, as whole numbers per cell (flat): each is within one of its expectation,
    and so is every sum over leading axes.

    Args:
        table: not negative; a table of zeros counts as uniform.
        rows: what the cells sum to.
        generator: of the one jitter.
    """
    flat = table.ravel()
    ends = np.cumsum(flat if flat.any() else np.ones(flat.size))
    ends = np.floor(ends * (rows / ends[-1]) + generator.random()).astype(np.int64)
    ends = np.minimum(ends, rows)
    ends[-1] = rows
    return np.asarray(np.diff(ends, prepend=0), dtype=np.int64)
