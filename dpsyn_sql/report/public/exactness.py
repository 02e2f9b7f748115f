"""How far a count may be from the truth, of 100 releases in 95."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.fit.variances import TWO_SIDED

FloatArray = NDArray[np.float64]

_NEAREST = 9
"""The error at a number of rows is the median of those of so many cells near it."""

_KEPT = 0.95


@dataclass(frozen=True, slots=True)
class Exactness:
    """Of the counts of one table. ``count``: rows of the counts that ``within`` is said of; NaN: of all.
    ``within``: rows that they are within of the truth in 95 of 100 releases. ``smallest``: the number of rows
    of which the 95 % interval is half, infinite if it is never; smaller groups say little."""

    count: float
    within: float
    smallest: float


def of_all_counts(error: float, total: float) -> Exactness:
    """Of counts with one standard error (rows) in a table of ``total`` rows: none is further off than that,
    and no group is larger. Below one row nothing is known of the total."""
    most, smallest = total if total >= 1 else math.inf, 2 * TWO_SIDED * error
    return Exactness(math.nan, min(TWO_SIDED * error, most), smallest if smallest <= most else math.inf)


def of_estimates(rows: FloatArray, errors: FloatArray, count: float) -> Exactness:
    """Of estimates whose errors grow with their rows.

    Args:
        rows: of each cell, none below 0, any shape, at least one cell.
        errors: standard errors (rows), same shape.
        count: rows of the counts to speak of; the nearest ones that there are count.

    Returns:
        ``smallest`` is by the smallest cell above which 95 % of the cells have an interval of at most half
        of their rows. Smaller counts have no larger errors than that cell.
    """
    order = np.argsort(-rows, axis=None, kind="stable")
    rows, errors = rows.ravel()[order], errors.ravel()[order]
    near = _near(rows, count)
    trusted = (rows > 0) & (rows >= 2 * TWO_SIDED * errors)
    kept = np.flatnonzero(trusted & (np.cumsum(trusted) >= _KEPT * np.arange(1, rows.size + 1)))
    smallest = math.inf
    if kept.size:
        last = int(kept[-1])
        smallest = min(float(rows[last]), 2 * TWO_SIDED * float(np.median(errors[_near(rows, rows[last])])))
    return Exactness(float(np.median(rows[near])), TWO_SIDED * float(np.median(errors[near])), smallest)


def _near(rows: FloatArray, count: float) -> NDArray[np.intp]:
    """The places of the cells nearest to a count by ratio."""
    away = np.abs(np.log((rows + 1) / (count + 1)))
    return np.argsort(away, kind="stable")[:_NEAREST]


def count_to_report(total: float) -> float:
    """The count that errors are said of: 500, or a quarter of a small table."""
    return 500.0 if total >= 1000 else max(1.0, total / 4)
