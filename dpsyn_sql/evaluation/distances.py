"""PRIVATE: distances of marginals and errors of counts, from counts of cells.

Everything here is arithmetic on arrays: ``counts`` are cells of one marginal, int64[cells], each standing for
``weight`` cells with the same counts. Cells without rows in any table add nothing and need not be there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

BEST = (0.95, 0.99, 1.0)
"""Shares of the queries, best first, of which mean and maximum are told: Table 2 of the copula paper."""


@dataclass(frozen=True, slots=True)
class Distance:
    """Of two marginals: total variation, the sum of squared differences of shares, and the greatest
    difference of a share; NaN where it is not known."""

    tv: float
    sse: float
    max: float


def shares(counts: Counts, rows: int) -> Floats:
    """Of all rows."""
    return counts / max(rows, 1)


def distance(first: Floats, second: Floats, weight: Counts | int = 1) -> Distance:
    """The distance of two marginals in shares of their rows."""
    apart = np.abs(first - second)
    if not apart.size:
        return Distance(0.0, 0.0, 0.0)
    return Distance(float((apart * weight).sum() / 2), float((apart**2 * weight).sum()), float(apart.max()))


def resampled(probabilities: Floats, rows: int, weight: Counts | int = 1) -> Distance:
    """What is expected of ``rows`` independent draws from the marginal itself, in closed form.

    The mean absolute deviation of a binomial is 2 v (1-p) P[X = v] with v = floor(np) + 1 (de Moivre). The
    expected maximum has no closed form.
    """
    above = np.floor(rows * probabilities) + 1
    apart = 2 * above * (1 - probabilities) * stats.binom.pmf(above, rows, probabilities) / rows
    squares = probabilities * (1 - probabilities) / rows
    return Distance(float((apart * weight).sum() / 2), float((squares * weight).sum()), float("nan"))


def best_errors(errors: Sequence[Floats], weights: Sequence[Counts], zeros: int) -> list[tuple[float, float]]:
    """(mean, maximum) of the best 95, 99 and 100 % of queries.

    Args:
        errors: absolute errors of queries.
        weights: how many queries each of them stands for.
        zeros: so many further queries without an error.
    """
    flat = np.concatenate([np.zeros(1), *errors])
    many = np.concatenate([np.array([zeros], dtype=np.int64), *weights])
    order = np.argsort(flat, kind="stable")
    flat, upto = flat[order], np.cumsum(many[order])
    found = []
    for share in BEST:
        wanted = max(1, int(np.ceil(share * int(upto[-1]))))
        taken = np.diff(np.minimum(upto, wanted), prepend=0)
        found.append((float(flat @ taken / wanted), float(flat[taken > 0].max(initial=0.0))))
    return found


def cramers_v(table: Counts) -> tuple[float, float]:
    """Cramer's V of a table of two columns, and its root mean square if the columns were independent.

    V is never negative, so it is above 0 for independent columns too: E[chi2] = (r-1)(c-1) n/(n-1).
    """
    table = table[table.any(axis=1)][:, table.any(axis=0)]
    rows, columns = table.shape
    least, total = min(rows, columns) - 1, int(table.sum())
    if least < 1 or total < 2:
        return float("nan"), float("nan")
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / total
    squared = float(((table - expected) ** 2 / expected).sum()) / (total * least)
    chance = (rows - 1) * (columns - 1) / ((total - 1) * least)
    return float(np.sqrt(squared)), float(np.sqrt(chance))


def rank_correlation(table: Counts) -> float:
    """Spearman's correlation of rows whose ordered values are the places of a table, ties at middle ranks."""
    total = int(table.sum())
    if total == 0:
        return float("nan")
    first, second = (_centred(table.sum(axis=axis)) for axis in (1, 0))
    spread = np.sqrt((table.sum(axis=1) @ first**2) * (table.sum(axis=0) @ second**2))
    return float(first @ table @ second / spread) if spread > 0 else float("nan")


def _centred(counts: Counts) -> Floats:
    """Middle ranks of the values less their mean, as shares of the rows."""
    total = counts.sum()
    ranks: Floats = np.cumsum(counts) - (counts - 1) / 2 - (total + 1) / 2
    return ranks / float(total)


def correlation_ratio(rows: Counts, sums: Floats, squares: Floats) -> float:
    """The correlation ratio (eta) of a number by categories: the root of the share of its variance that lies
    between them. ``rows``, ``sums``, ``squares``: of each category."""
    kept = rows > 0
    rows, sums, squares = rows[kept], sums[kept], squares[kept]
    if not rows.size:
        return float("nan")
    total = int(rows.sum())
    mean = sums.sum() / total
    all_of_it = squares.sum() - total * mean**2
    between = float((rows * (sums / rows - mean) ** 2).sum())
    if all_of_it <= 1e-12 * max(squares.sum(), 1e-300):
        return float("nan")
    return float(np.sqrt(min(1.0, between / all_of_it)))
