"""Noise out of one-way tables before anything rests on them, and bins wide enough to be seen.

Post-processing of noisy answers only.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.domain.attributes import Attribute
from dpsyn_sql.fit.reproducible import snapped

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

HAAR_SHIFTS = 32
HAAR_SIGMAS = 2.5
"""Detail coefficients below this many sigmas are noise: least L1 error of ten estimators tried on
four tables."""

_GRID = 2.0**-10
# Rows.

_SHORTEST = 5
# Codes that smoothing needs: fewer have no neighbours to learn from.


def haar_shrinkage(values: FloatArray, sigma: float) -> FloatArray:
    """Translation-invariant Haar wavelet shrinkage with a hard threshold (Coifman and Donoho 1995).

    ``values`` (k,) are noisy counts in order, each of noise ``sigma``. The estimate is the mean over
    shifts of the grid; an orthonormal transform leaves each coefficient with noise sigma. The ends
    are padded by the mean of the outermost four values.
    """
    size = values.size
    shifts = min(HAAR_SHIFTS, size)
    length = 1 << (size + shifts - 2).bit_length() if size > 1 else 1
    padded = np.empty((shifts, length))
    for shift in range(shifts):
        padded[shift, :shift] = values[:4].mean()
        padded[shift, shift : shift + size] = values
        padded[shift, shift + size :] = values[-4:].mean()
    smooth = _inverse_haar(*_haar(padded, HAAR_SIGMAS * sigma))
    return np.asarray(np.mean([smooth[shift, shift : shift + size] for shift in range(shifts)], axis=0))


def _haar(rows: FloatArray, threshold: float) -> tuple[FloatArray, list[FloatArray]]:
    """Orthonormal transform of each row: the coarsest average and the details, small ones set to 0."""
    details = []
    while rows.shape[1] > 1:
        even, odd = rows[:, 0::2], rows[:, 1::2]
        detail = (even - odd) / np.sqrt(2)
        details.append(np.where(np.abs(detail) > threshold, detail, 0.0))
        rows = (even + odd) / np.sqrt(2)
    return rows, details


def _inverse_haar(rows: FloatArray, details: list[FloatArray]) -> FloatArray:
    for detail in reversed(details):
        finer = np.empty((len(rows), 2 * rows.shape[1]))
        finer[:, 0::2] = (rows + detail) / np.sqrt(2)
        finer[:, 1::2] = (rows - detail) / np.sqrt(2)
        rows = finer
    return rows


def denoised(attribute: Attribute, values: FloatArray, sigma: float) -> FloatArray:
    """A one-way table with the neighbours of ordered codes taken into account; ``__other__`` and NULL
    have no neighbours. Unordered tables are returned as they are."""
    if not attribute.ordered or attribute.regular < _SHORTEST:
        return values
    smooth = values.astype(np.float64)
    smooth[: attribute.regular] = snapped(haar_shrinkage(values[: attribute.regular], sigma), _GRID)
    return smooth


def working_bins(attribute: Attribute, values: FloatArray, least: float, most: float) -> IntArray:
    """Of each code its working bin, so that bins are heavy enough to be measured.

    Args:
        attribute: of the one-way table.
        values: noisy counts (rows), one per code.
        least: rows below which a code does not stand alone (a few sigmas).
        most: about how many bins an ordered attribute gets at most.

    Ordered codes are merged with their neighbours (``merged_neighbours``), ``__other__`` and NULL with
    the last of them if they are below ``least``; unordered codes below ``least`` share one bin.
    """
    if not attribute.ordered:
        return merged_rare(values, least)
    regular = merged_neighbours(values[: attribute.regular], least, most)
    apart = values[attribute.regular :] >= least
    return np.concatenate([regular, regular[-1] + np.cumsum(apart) * apart])


def merged_neighbours(values: FloatArray, least: float, most: float) -> IntArray:
    """Bins of neighbours holding ``least`` and a share of 1/``most`` each; heavy codes stay alone."""
    need = max(least, max(float(values.sum()), 1.0) / most if values.size > most else 0.0)
    bins = np.zeros(values.size, dtype=np.int64)
    current, held = 0, 0.0
    for code, value in enumerate(values.tolist()):
        if code and (held >= need or (held > need / 2 and value >= need)):
            current, held = current + 1, 0.0
        bins[code] = current
        held += max(value, 0.0)
    if current and held < need / 2:
        bins[bins == current] = current - 1
    return bins


def merged_rare(values: FloatArray, least: float) -> IntArray:
    """All codes below ``least`` share the last bin; a single one keeps its own."""
    rare = values < least
    if rare.sum() <= 1:
        return np.arange(values.size, dtype=np.int64)
    bins = np.cumsum(~rare) - 1
    bins[rare] = (~rare).sum()
    return np.asarray(bins, dtype=np.int64)
