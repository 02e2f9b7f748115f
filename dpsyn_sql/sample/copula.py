"""Rows of a Gaussian copula: normals, Cholesky factor, offsets, argmax, quotas.

Algorithm 4 of the Gaussian-copula release, in batches of bounded memory, in float32.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import strmm

from dpsyn_sql.fit.copula import CopulaModel
from dpsyn_sql.sample.quotas import Quotas, batch_sizes, code_type, meet_quotas

BATCH_ROWS = 16384
"""Rows of a batch: a constant, so that a seed means the same rows on every machine. 674 latent
columns make batches of 44 MB."""


@dataclass(frozen=True, slots=True)
class CopulaSampler:
    """Draws rows of a ``CopulaModel``; one-way counts are met within rounding."""

    model: CopulaModel

    def batches(self, rows: int, seed: int) -> Iterator[NDArray[np.integer[Any]]]:
        """Arrays (batch, attributes) of codes in domain order, unsigned, ``rows`` in all.

        Deterministic in ``seed`` (not negative) on one kind of machine; rows <= 0 yields nothing.
        """
        model = self.model
        factor = np.asfortranarray(model.factor)
        quotas = [Quotas(block.probabilities) for block in model.blocks]
        dtype = code_type(max(model.domain.shape(), default=1))
        for index, size in enumerate(batch_sizes(rows, BATCH_ROWS)):
            latent = _latent(factor, size, (seed, index))
            latent += model.offsets
            codes = np.empty((size, len(model.blocks)), dtype=dtype)
            for column, (block, quota) in enumerate(zip(model.blocks, quotas, strict=True)):
                if block.start == block.stop:
                    codes[:, column] = block.codes[0]
                    continue
                scores = latent[:, block.start : block.stop]
                winners = scores.argmax(axis=1)
                meet_quotas(scores, winners, quota.next(size))
                codes[:, column] = block.codes[winners]
            yield codes


def _latent(factor: NDArray[np.float32], rows: int, seed: tuple[int, int]) -> NDArray[np.float32]:
    """Normals of the factor's correlation, shape (rows, k); each batch has its own stream."""
    generator = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed)))
    normals = generator.standard_normal((rows, len(factor)), dtype=np.float32)
    if normals.size == 0:
        return normals
    # Half the work of a full product, in place: the transpose is Fortran-ordered.
    return np.asarray(strmm(1.0, factor, normals.T, lower=1, overwrite_b=1)).T
