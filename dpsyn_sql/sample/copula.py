"""Rows of a Gaussian copula: normals, Cholesky factor, offsets, argmax, quotas.

Algorithm 4 of the Gaussian-copula release, in batches of bounded memory, in float32.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import strmm

from dpsyn_sql.fit.copula import FittedCopula, commonest_first
from dpsyn_sql.sample.quotas import (
    CANDIDATES,
    ONE_WAYS_MET,
    Quotas,
    batch_sizes,
    code_type,
    listed,
    meet_quotas,
)

BATCH_ROWS = 32768
"""Rows of a batch: a constant, so that a seed means the same rows on every machine. 674 latent
columns make batches of 88 MB."""


@dataclass(frozen=True, slots=True)
class CopulaSampler:
    """Draws rows of a fitted copula; one-way counts are met within rounding."""

    fitted: FittedCopula
    drawn: ClassVar[str] = ONE_WAYS_MET

    def batches(self, rows: int, seed: int) -> Iterator[NDArray[np.integer[Any]]]:
        """Arrays (batch, attributes) of codes in domain order, unsigned, ``rows`` in all.

        Deterministic in ``seed`` (not negative) on one kind of machine; rows <= 0 yields nothing.
        """
        fitted = self.fitted
        factor = np.asfortranarray(fitted.factor)
        quotas = [None if block.of_two else Quotas(block.probabilities) for block in fitted.blocks]
        dtype = code_type(max((own.size for own in fitted.margins.probabilities.values()), default=1))
        sizes, before = batch_sizes(rows, BATCH_ROWS), 0
        for size, normals in zip(sizes, _normals(sizes, len(factor), seed), strict=True):
            latent = _correlated(normals, factor)
            latent += fitted.offsets[:, None]
            codes = np.empty((len(fitted.blocks), size), dtype=dtype)
            for own, block, quota in zip(codes, fitted.blocks, quotas, strict=True):
                if block.start == block.stop:
                    own[:] = block.codes[0]
                    continue
                if quota is None:
                    wins = _second_wins(latent[block.start], block.probabilities[1], before)
                    own[:] = np.where(wins, *block.codes[::-1].astype(dtype))
                    continue
                scores = np.ascontiguousarray(latent[block.start : block.stop].T)
                winners = scores.argmax(axis=1)
                meet_quotas(listed(scores), winners, quota.next(size))
                own[:] = block.codes[winners]
            before += size
            yield codes.T


def _second_wins(latent: NDArray[np.float32], probability: float, before: int) -> NDArray[np.bool_]:
    """Of two codes, in which rows the second wins: as often as it should in all rows so far, within one.

    The rows nearest to 0 change sides, chosen among the first few for each that has to (``meet_quotas``).
    """
    wanted = math.ceil(probability * (before + latent.size) - 0.5) - math.ceil(probability * before - 0.5)
    wins = latent > 0
    surplus = int(np.count_nonzero(wins)) - wanted
    if surplus:
        rows = np.flatnonzero(wins if surplus > 0 else ~wins)[: CANDIDATES * abs(surplus)]
        nearest = np.argpartition(np.abs(latent[rows]), abs(surplus) - 1)[: abs(surplus)]
        wins[rows[nearest]] = surplus < 0
    return np.asarray(wins)


@dataclass(frozen=True, slots=True)
class OneNormalSampler:
    """Draws rows whose attributes all follow one latent normal (``FixedCopula``); one-way counts are met.

    ``probabilities`` (float64, one per code) of each attribute in domain order.
    """

    probabilities: tuple[NDArray[np.float64], ...]
    drawn: ClassVar[str] = ONE_WAYS_MET

    def batches(self, rows: int, seed: int) -> Iterator[NDArray[np.integer[Any]]]:
        """Arrays (batch, attributes) of codes in domain order, unsigned, ``rows`` in all."""
        quotas = [Quotas(own) for own in self.probabilities]
        orders = [commonest_first(own) for own in self.probabilities]
        dtype = code_type(max((own.size for own in self.probabilities), default=1))
        for index, size in enumerate(batch_sizes(rows, BATCH_ROWS)):
            generator = np.random.Generator(np.random.PCG64(np.random.SeedSequence((seed, index))))
            # Only the ranks of the normals matter: the order of the rows.
            place = generator.permutation(size)
            codes = np.empty((size, len(quotas)), dtype=dtype)
            for column, (quota, order) in enumerate(zip(quotas, orders, strict=True)):
                codes[place, column] = np.repeat(order, quota.next(size)[order])
            yield codes


def _normals(sizes: Sequence[int], columns: int, seed: int) -> Iterator[NDArray[np.float32]]:
    """Independent normals (columns, size) per batch, drawn one batch ahead on a second core."""
    with ThreadPoolExecutor(max_workers=1) as ahead:
        pending = None
        for index, size in enumerate(sizes):
            drawn, pending = pending, ahead.submit(_draw, size, columns, (seed, index))
            if drawn is not None:
                yield drawn.result()
        if pending is not None:
            yield pending.result()


def _draw(rows: int, columns: int, seed: tuple[int, int]) -> NDArray[np.float32]:
    """Each batch has its own stream, so that the order in which they are drawn does not matter."""
    generator = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed)))
    return generator.standard_normal((columns, rows), dtype=np.float32)


def _correlated(normals: NDArray[np.float32], factor: NDArray[np.float32]) -> NDArray[np.float32]:
    """``factor @ normals``, overwriting the normals: half the work of a full product."""
    if normals.size == 0:
        return normals
    # The transpose of a C-ordered batch is Fortran-ordered, which BLAS can multiply in place.
    return np.asarray(strmm(1.0, factor, normals.T, side=1, lower=1, trans_a=1, overwrite_b=1)).T
