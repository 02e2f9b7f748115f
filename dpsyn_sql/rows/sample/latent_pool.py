"""Correlated normals for a few additions each: a pool of latent vectors that is rotated from pass to pass.

Wallace, *Fast pseudorandom generators for normal and exponential variates* (ACM Transactions on Mathematical
Software 22, 1996): an orthogonal map of independent normals gives independent normals. Here the normals are
vectors, one a row, and the map mixes rows: the covariance of the columns stays what it is, so that no vector
of a later pass needs normals, or a product with the factor, of its own.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.linalg.blas import ssyrk, strmm

Latent = NDArray[np.float32]

STAGES = 3
"""Sums and differences on the way from a pass to the next: each of its rows is made of 2**STAGES rows."""

PASSES = 64
"""Passes of a pool. Values grow by 2**(STAGES/2) from one to the next, which single precision holds so often;
a pool costs as much as twenty passes."""

BALANCED_ROWS = 4
"""Rows of a pool for each column from which it is balanced: with fewer, rows would depend on each other."""


class LatentPool:
    """Latent vectors of one pass after the other, a row each.

    Within a pass they are normal with covariance ``factor @ factor.T``, and independent, except that a
    balanced pool has exactly this covariance as its own in every pass. An orthogonal map cannot change the
    covariance of a pool: without balance many passes would all repeat the error of the first.

    ``values`` (columns, rows) float32 are the vectors times ``scale``, which may be negative: what they are
    compared with is scaled, not they.
    """

    def __init__(self, factor: Latent, rows: int, generator: np.random.Generator) -> None:
        """``factor`` (columns, columns) is lower triangular, ``rows`` even."""
        normals = generator.standard_normal((len(factor), rows), dtype=np.float32)
        if rows >= BALANCED_ROWS * len(factor) > 0:
            factor = _balancing(factor, normals)
        self.values = _multiplied(factor, normals)
        self.scale = np.float32(1.0)
        self._shifts: list[int] = []
        self._room = np.empty((STAGES - 1, rows), dtype=np.float32)

    def rotate(self, generator: np.random.Generator) -> None:
        """Begin the next pass: choose the map that ``column`` applies to each column.

        In each stage row i of the first half and row i of the second become their sum and their difference.
        Differences move on by a random number of rows, so that the next stage joins others. The sign of a
        pass is random, so that means of odd functions of a row do not follow those of the pass before.
        """
        self._shifts = generator.integers(0, self.values.shape[1] // 2, STAGES).tolist()
        self.scale = np.float32(abs(self.scale) * 2.0 ** (STAGES / 2) * generator.choice((-1.0, 1.0)))

    def column(self, place: int) -> Latent:
        """One column (rows,) of this pass, a view; to be asked for once in every pass."""
        own: Latent = self.values[place]
        half, source = own.size // 2, own
        targets = (*self._room, own) if self._shifts else ()
        for shift, target in zip(self._shifts, targets, strict=True):
            first, second = source[:half], source[half:]
            sums, differences = target[:half], target[half:]
            np.add(first, second, out=sums)
            np.subtract(first[shift:], second[shift:], out=differences[: half - shift])
            np.subtract(first[:shift], second[:shift], out=differences[half - shift :])
            source = target
        return own


def _multiplied(factor: Latent, normals: Latent) -> Latent:
    """``factor @ normals``, overwriting the normals: half the work of a full product."""
    if normals.size == 0:
        return normals
    # The transpose of a C-ordered batch is Fortran-ordered, which BLAS can multiply in place.
    lower = np.asfortranarray(factor)
    return np.asarray(strmm(1.0, lower, normals.T, side=1, lower=1, trans_a=1, overwrite_b=1)).T


def _balancing(factor: Latent, normals: Latent) -> Latent:
    """The lower triangular matrix that gives these very normals the covariance ``factor @ factor.T``."""
    found = ssyrk(1.0 / normals.shape[1], normals.T, trans=1, lower=1).astype(np.float64)
    own = np.linalg.cholesky(found)  # reads the lower triangle
    return np.asarray(solve_triangular(own, factor.T, lower=True, trans="T").T, dtype=np.float32)
