"""How much more two rows of a family agree than two rows of different families, from noisy tables of pairs.

Shares are of families of two rows or more, each of which weighs the same. Noise is independent in every cell.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_CLEAR = 10.0
# Deviations of noise that the number of families must have: shares of a total that may be none say nothing.

_LEAST_SHARE = 1e-3
# Of a bin: the noise of rarer ones would drown all others.

_SMALL = 3.0
# Groups of fewer deviations of the noise of their sum are taken together.


@dataclass(frozen=True, slots=True)
class Excess:
    """A difference of probabilities of agreement, without bias, and its standard deviation where there is no
    such difference: that of the noise, and that of the families, which are a sample too."""

    share: float
    deviation: float


def excess(table: NDArray[np.float64], sigma: float) -> Excess | None:
    """P(two rows of a family agree) less that of rows of different families; None if the noise hides how many
    families there are.

    To first order in the noise; what the squared noise adds to the squares of shares is taken off. The
    deviation of families is that of two rows each: more rows make it smaller.

    Args:
        table: (bins, bins), noisy numbers of families.
        sigma: of the noise in a cell, in families.
    """
    bins, total = len(table), float(table.sum())
    if total < _CLEAR * sigma * bins:
        return None
    margin = (table.sum(axis=0) + table.sum(axis=1)) / 2
    # The diagonal counts twice in a margin: its variance is (bins + 1) / 2 times that of a cell.
    extra = bins * (bins + 1) / 2 * sigma**2
    agree, strangers = float(np.trace(table)) / total, (float((margin**2).sum()) - extra) / total**2
    slopes = np.eye(bins) - agree - (margin[:, None] + margin[None, :]) / total + 2 * strangers
    noise = sigma**2 / total**2 * float((slopes**2).sum())
    squared = bins * (bins + 1) ** 2 / 2 * sigma**4 / total**4  # of the squares of the noise of margins
    shares = np.maximum(margin / total, 0)
    drawn = float((shares**2).sum() - 2 * (shares**3).sum() + (shares**2).sum() ** 2) / total
    return Excess(agree - strangers, math.sqrt(noise + squared + max(drawn, 0.0)))


def explained(table: NDArray[np.float64], sigma: float) -> Excess | None:
    """The part of the excess that a code which all rows of a family share explains; None as for ``excess``.

    Rows that are independent given the code s agree with probability sum over s of P(s) P(a | s)^2, summed
    over a. Codes that the noise nearly hides are taken together, so that they explain less.

    Args:
        table: (codes, bins), noisy numbers of families by their code, and by the bin of a row.
        sigma: of the noise in a cell, in families.
    """
    bins, total = table.shape[1], float(table.sum())
    if total < _CLEAR * sigma * math.sqrt(table.size):
        return None
    sums = table.sum(axis=1)
    clear = sums >= _SMALL * sigma * bins
    rest = table[~clear].sum(axis=0, keepdims=True)
    joined, merged = table[clear], int((~clear).sum())
    variances = np.full(len(joined), sigma**2)
    if merged and float(rest.sum()) >= _SMALL * sigma * bins * math.sqrt(merged):
        joined, variances = np.vstack([joined, rest]), np.append(variances, merged * sigma**2)
    sums = joined.sum(axis=1)
    if not len(joined):
        return Excess(0.0, 0.0)
    laws = joined / sums[:, None]
    squares = (laws**2).sum(axis=1)
    bias = variances / sums * (bins - 2 + bins * squares)
    seen = float(sums.sum())
    margin = joined.sum(axis=0)
    strangers = (float((margin**2).sum()) - float(variances.sum()) * bins) / seen**2
    share = float((sums * squares - bias).sum()) / seen - strangers
    slopes = 2 * laws - squares[:, None] - 2 * margin[None, :] / seen + strangers
    noise = float((variances[:, None] * slopes**2).sum()) / seen**2
    squared = 2 * bins * float(((variances / sums) ** 2).sum()) / seen**2
    return Excess(share, math.sqrt(noise + squared))


def carried(table: NDArray[np.float64], within: NDArray[np.float64]) -> float:
    """The excess that an attribute has because it follows from another one of the same row, whose rows agree.

    Args:
        table: (bins, bins), noisy numbers of families by the other attribute of two rows.
        within: (bins, own bins), noisy numbers of families by both attributes of one row.
    """
    total, rows = float(table.sum()), np.maximum(within, 0.0)
    if total <= 0 or float(rows.sum()) <= 0:
        return 0.0
    margin = (table.sum(axis=0) + table.sum(axis=1)) / 2 / total
    follows = rows / np.maximum(rows.sum(axis=1, keepdims=True), 1e-300)
    covariance = table / total - margin[:, None] * margin[None, :]
    return float(np.sum(covariance * (follows @ follows.T)))


LEAST_RV = 0.1
"""Attributes hang together from this RV coefficient on (Robert and Escoufier 1976): 1 if one class of the
family is all that their rows share, 0 if they share nothing."""


def hanging_together(
    tables: Mapping[tuple[int, int], NDArray[np.float64]], number: int, sigma: float
) -> list[list[int]]:
    """The attributes in sets, ascending: those of different sets tell nothing of each other across the rows
    of a family.

    With R_ab the noisy table of pairs of rows beyond independence, over the roots of its margins, one class
    of the family makes R_ab = X_a X_b'. The RV coefficient |R_ab|^2 / (|R_aa| |R_bb|) says how alike X_a and
    X_b are. What noise adds to |R|^2 is taken off.

    Args:
        tables: for positions a <= b the noisy numbers of families.
        number: of attributes.
        sigma: of the noise in a cell, in families.
    """
    squares = {places: _beyond_independence(table, sigma) for places, table in tables.items()}
    leader = list(range(number))
    for (a, b), (square, deviation) in squares.items():
        own = math.sqrt(max(squares[a, a][0], 0.0) * max(squares[b, b][0], 0.0))
        if a < b and square > max(LEAST_RV * own, _SMALL * deviation):
            old, new = max(leader[a], leader[b]), min(leader[a], leader[b])
            leader = [new if one == old else one for one in leader]
    return [[place for place in range(number) if leader[place] == first] for first in sorted(set(leader))]


def _beyond_independence(table: NDArray[np.float64], sigma: float) -> tuple[float, float]:
    """|R|^2 without what noise adds to it, and the deviation of that."""
    total = max(float(table.sum()), 1.0)
    rows, columns = (np.maximum(table.sum(axis=axis) / total, _LEAST_SHARE) for axis in (1, 0))
    expected = rows[:, None] * columns[None, :]
    noise = (sigma / total) ** 2 / expected
    square = float(((table / total - expected) ** 2 / expected).sum() - noise.sum())
    return square, math.sqrt(2 * float((noise**2).sum()))
