"""How much more two rows of a family agree than two rows of different families, from noisy tables of pairs.

Shares are of families of two rows or more, each of which weighs the same. Noise is independent in every cell.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_CLEAR = 10.0
# Deviations of noise that the number of families must have: shares of a total that may be none say nothing.

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
