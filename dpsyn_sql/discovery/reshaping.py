"""Where the counts of cells say more than the shape of a smooth part: they are followed; public.

A log-normal part has few parameters. Where noise is small the counts show more: that a column ends at 25 and
64, or has two peaks. Each step needs evidence, so where noise hides all, the part stays as it is.
"""

from __future__ import annotations

import math

import numpy as np

from dpsyn_sql.fit.arrays import FloatArray

END_COST = 6.0
"""Squared deviations that leaving out the cells of one end must explain."""

SPLIT_SIGMAS = 2.5
"""Deviations by which the halves of a stretch must differ from the shape to be followed."""

NONE_SIGMAS = 2.0
"""Deviations of noise below which a half that lost rows has none."""


def reshaped(expected: FloatArray, counts: FloatArray, sigma: float) -> FloatArray:
    """Rows of cells in order (float64[k]), as many in all as expected.

    First the ends where values were expected and none are seen get none. Then rows are divided from the whole
    down to single cells, each stretch where half of its expected rows lie on either side: in proportion to
    the counts where they contradict the shape, else as expected.

    Args:
        expected: rows by the shape, float64[k], none negative.
        counts: noisy counts of the same cells, float64[k] (rows).
        sigma: deviation of their noise (rows), above 0.
    """
    shape = _without_ends(expected, counts, sigma)
    found, cells = np.zeros_like(shape), np.flatnonzero(shape > 0)
    if cells.size:
        found[cells] = _divided(shape[cells], counts[cells], sigma, float(shape.sum()))
    return found


def _without_ends(expected: FloatArray, counts: FloatArray, sigma: float) -> FloatArray:
    """The shape cut where that explains the counts best, with the same sum."""
    gains = (expected**2 - 2 * counts * expected) / sigma**2
    shape = expected.copy()
    for side in (slice(None), slice(None, None, -1)):
        sums = np.cumsum(gains[side])
        last = int(np.argmax(sums))
        if sums[last] > END_COST:
            shape[side][: last + 1] = 0.0
    left = float(shape.sum())
    return shape * (float(expected.sum()) / left) if left > 0 else expected


def _divided(shape: FloatArray, counts: FloatArray, sigma: float, rows: float) -> FloatArray:
    """So many rows over the cells of a stretch, each of which is expected to have some."""
    if shape.size == 1 or rows <= 0:
        return np.full(shape.size, rows / shape.size) if shape.size == 1 else np.zeros(shape.size)
    sums = np.cumsum(shape)
    middle = int(np.argmin(np.abs(sums[:-1] - sums[-1] / 2))) + 1
    share = _share(shape, counts, sigma, middle)
    halves = ((slice(middle), share), (slice(middle, None), 1 - share))
    return np.concatenate([_divided(shape[half], counts[half], sigma, rows * part) for half, part in halves])


def _share(shape: FloatArray, counts: FloatArray, sigma: float, middle: int) -> float:
    """Of the rows of a stretch, the share of the cells before the middle."""
    expected = float(shape[:middle].sum() / shape.sum())
    sizes = np.array([middle, shape.size - middle])
    seen = np.array([counts[:middle].sum(), counts[middle:].sum()])
    weights = np.array([1 - expected, -expected])
    if abs(weights @ seen) <= SPLIT_SIGMAS * sigma * math.sqrt(float(weights**2 @ sizes)):
        return expected
    seen[seen < NONE_SIGMAS * sigma * np.sqrt(sizes)] = 0.0
    return float(seen[0] / seen.sum()) if seen.any() else expected
