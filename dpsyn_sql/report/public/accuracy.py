"""How far a count may be from the truth: by the errors of estimates, or by the noise of measured tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.planning.queries import NoisyMarginal

FloatArray = NDArray[np.float64]

TWO_SIDED = 1.96
"""Standard errors of normal noise that 95 of 100 releases stay within."""

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


@dataclass(frozen=True, slots=True)
class TableAccuracy:
    """Of one measured table: ``cells``, the standard error of one of its counts in rows, and whether it is
    over wider groups of values than the columns have codes."""

    attrs: tuple[str, ...]
    cells: int
    error: float
    grouped: bool

    @property
    def exactness(self) -> Exactness:
        """Of its noisy counts."""
        return of_all_counts(self.error)


def of_all_counts(error: float) -> Exactness:
    """Of counts with one standard error (rows)."""
    return Exactness(math.nan, TWO_SIDED * error, 2 * TWO_SIDED * error)


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


def spoken_of(total: float) -> float:
    """The count that errors are said of: 500, or a quarter of a small table."""
    return 500.0 if total >= 1000 else max(1.0, total / 4)


def measured_tables(measured: Sequence[NoisyMarginal]) -> list[TableAccuracy]:
    """Every measured table once, those of few columns and little noise first."""
    best: dict[tuple[frozenset[str], int], TableAccuracy] = {}
    for table in measured:
        if not table.attrs:
            continue
        grouped = any(one is not None for one in table.maps)
        made = TableAccuracy(table.attrs, table.values.size, table.sigma, grouped)
        key = (frozenset(table.attrs), made.cells)
        if key not in best or made.error < best[key].error:
            best[key] = made
    return sorted(best.values(), key=lambda one: (len(one.attrs), one.error, one.attrs))


@dataclass(frozen=True, slots=True)
class Accuracy:
    """A line of the page. ``of``: whether its error is that of estimates or of noisy counts. ``together``:
    whether the columns were counted together. ``grouped``: as in ``TableAccuracy``."""

    attrs: tuple[str, ...]
    of: Literal["estimate", "noise"]
    together: bool
    exactness: Exactness
    grouped: bool = False


def smallest_group(lines: Sequence[Accuracy]) -> float:
    """The smallest group that can be trusted in a typical one of some tables; NaN without tables."""
    return median(one.exactness.smallest for one in lines) if lines else math.nan
