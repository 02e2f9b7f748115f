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
"""Butterflies of a rotation: each row of the next pass is made of 2**STAGES rows, with equal weights."""

PASSES = 64
"""Passes of a pool. Values grow by 2**(STAGES/2) from pass to pass, which float32 holds this often; a pool
costs as much as twenty passes."""

LEAST_ROWS_A_COLUMN = 4
"""Rows of a pool for each of its columns, at least: with fewer, the rows of a balanced pool would depend on
each other."""


class LatentPool:
    """Latent vectors (columns, size), pass after pass; ``size`` is even.

    Within a pass they are normal with covariance ``factor @ factor.T``, and independent but for one thing: a
    *balanced* pool has exactly this empirical covariance, in every pass. Otherwise the error of the first
    pass would stay, and many passes would say no more about the covariance than one.

    ``values`` are ``signed_scale`` times the vectors: what is compared with them is scaled, not they.
    """

    def __init__(self, factor: Latent, size: int, generator: np.random.Generator, *, balanced: bool) -> None:
        normals = generator.standard_normal((len(factor), size), dtype=np.float32)
        self.values = multiplied(balancing(factor, normals) if balanced else factor, normals)
        self.signed_scale = np.float32(1.0)
        self._shifts: list[int] = []
        self._room = np.empty((2, size), dtype=np.float32)

    def rotate(self, generator: np.random.Generator) -> None:
        """Begin the next pass: choose the map that ``column`` applies to each column, once.

        In each stage row i and row i + size/2 become their sum and difference, and the differences are
        shifted by a random number of rows, so that the next stage joins others. A random sign of the whole
        pass takes the correlation with the pass before out of odd functions of a row.
        """
        half = self.values.shape[1] // 2
        self._shifts = generator.integers(0, half, STAGES).tolist()
        self.signed_scale = np.float32(abs(self.signed_scale) * 2.0 ** (STAGES / 2))
        if generator.random() < 0.5:
            self.signed_scale = -self.signed_scale

    def column(self, place: int) -> Latent:
        """One column (size,) of this pass, a view; to be asked for once in a pass."""
        own = self.values[place]
        half = own.size // 2
        source = own
        for shift, target in zip(self._shifts, (*self._room, own), strict=False):
            upper, lower = source[:half], source[half:]
            sums, differences = target[:half], target[half:]
            np.add(upper, lower, out=sums)
            np.subtract(upper[shift:], lower[shift:], out=differences[: half - shift])
            np.subtract(upper[:shift], lower[:shift], out=differences[half - shift :])
            source = target
        return own


def multiplied(factor: Latent, normals: Latent) -> Latent:
    """``factor @ normals``, overwriting the normals: half the work of a full product."""
    if normals.size == 0:
        return normals
    # The transpose of a C-ordered batch is Fortran-ordered, which BLAS can multiply in place.
    lower = np.asfortranarray(factor)
    return np.asarray(strmm(1.0, lower, normals.T, side=1, lower=1, trans_a=1, overwrite_b=1)).T


def balancing(factor: Latent, normals: Latent) -> Latent:
    """The lower triangular matrix that gives these very normals the covariance ``factor @ factor.T``."""
    if normals.size == 0:
        return factor
    found = ssyrk(1.0 / normals.shape[1], normals.T, trans=1, lower=1).astype(np.float64)
    own = np.linalg.cholesky(found)  # reads the lower triangle
    return np.asarray(solve_triangular(own, factor.T, lower=True, trans="T").T, dtype=np.float32)
