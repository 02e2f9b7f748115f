"""Rows of copulas. Of the Gaussian copula: normals, Cholesky factor, offsets, argmax, quotas. Algorithm 4 of
the Gaussian-copula release, in batches of bounded memory, in float32.

Of DPCopula: correlated normals of every part, then the quantile of each one's rank. The ranks of the rows of
a part, shifted by a common jitter, are laid over the codes in order (systematic sampling): every code occurs
within one row as often as expected, and the order of the normals stays.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import strmm
from scipy.special import ndtr

from dpsyn_sql.fit.arrays import Codes, FloatArray, IntArray
from dpsyn_sql.fit.copula import FittedCopula, commonest_first
from dpsyn_sql.fit.latent import FittedLatent
from dpsyn_sql.rows.sample.quotas import (
    CANDIDATES,
    ONE_WAYS_MET,
    Quotas,
    batch_sizes,
    code_type,
    generator_of,
    listed,
    meet_quotas,
    streams,
)
from dpsyn_sql.rows.sample.systematic import LOW_VARIANCE

BATCH_ROWS = 32768
"""Rows of a batch: a constant, so that a seed means the same rows on every machine. 674 latent
columns make batches of 88 MB."""


@dataclass(frozen=True, slots=True)
class CopulaSampler:
    """Draws rows of a fitted copula; one-way counts are met within rounding."""

    fitted: FittedCopula
    drawn: ClassVar[str] = ONE_WAYS_MET

    def batches(self, rows: int, seed: int) -> Iterator[Codes]:
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

    probabilities: tuple[FloatArray, ...]
    drawn: ClassVar[str] = ONE_WAYS_MET

    def batches(self, rows: int, seed: int) -> Iterator[Codes]:
        """Arrays (batch, attributes) of codes in domain order, unsigned, ``rows`` in all."""
        quotas = [Quotas(own) for own in self.probabilities]
        orders = [commonest_first(own) for own in self.probabilities]
        dtype = code_type(max((own.size for own in self.probabilities), default=1))
        for size, generator in streams(rows, BATCH_ROWS, seed):
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
            own, drawn = generator_of(seed, index), pending
            pending = ahead.submit(own.standard_normal, (columns, size), dtype=np.float32)
            if drawn is not None:
                yield drawn.result()
        if pending is not None:
            yield pending.result()


def _correlated(normals: NDArray[np.float32], factor: NDArray[np.float32]) -> NDArray[np.float32]:
    """``factor @ normals``, overwriting the normals: half the work of a full product."""
    if normals.size == 0:
        return normals
    # The transpose of a C-ordered batch is Fortran-ordered, which BLAS can multiply in place.
    return np.asarray(strmm(1.0, factor, normals.T, side=1, lower=1, trans_a=1, overwrite_b=1)).T


LATENT_BATCH_ROWS = 2**16
"""Rows of a batch: a constant, so that a seed means the same rows on every machine. 300 attributes take
150 MB."""

FEWEST_RANKED = 64
"""Rows of a part in a batch below which ranks say too little of where a normal lies: of one row nothing."""


@dataclass(frozen=True, slots=True)
class LatentSampler:
    """Draws rows of a fitted copula in parts."""

    fitted: FittedLatent
    drawn: ClassVar[str] = LOW_VARIANCE

    def batches(self, rows: int, seed: int) -> Iterator[Codes]:
        """Arrays (batch, attributes) of codes in domain order, unsigned, ``rows`` in all.

        Deterministic in ``seed`` (not negative) on one kind of machine; rows <= 0 yields nothing.
        """
        fitted = self.fitted
        factors = np.linalg.cholesky(fitted.correlations) if fitted.latent else fitted.correlations
        parts = _ends(fitted.parts.ravel())
        dtype = code_type(max((bins.size for bins in fitted.ordered.bins), default=1))
        for size, generator in streams(rows, LATENT_BATCH_ROWS, seed):
            codes = np.empty((size, len(fitted.ordered.bins)), dtype=dtype)
            order = generator.permutation(size)
            own = _at(parts, (np.arange(size) + generator.random()) / size)
            for axis, attribute in enumerate(fitted.split):
                codes[order, attribute] = np.unravel_index(own, fitted.parts.shape)[axis]
            for part, members in _groups(own, order):
                self._fill(codes, members, part, factors[part], generator)
            yield codes

    def _fill(
        self,
        codes: Codes,
        members: IntArray,
        part: int,
        factor: FloatArray,
        generator: np.random.Generator,
    ) -> None:
        """The latent attributes of the rows ``members``, all of one part."""
        fitted = self.fitted
        normals = generator.standard_normal((members.size, len(fitted.latent))) @ factor.T
        for column, (attribute, margin) in enumerate(zip(fitted.latent, fitted.margins, strict=True)):
            ordered = fitted.ordered
            own = margin[part][ordered.bins[attribute]] * ordered.within[attribute]
            place = _places(normals[:, column], generator)
            codes[members, attribute] = _at(_ends(own), place)


def _places(normals: FloatArray, generator: np.random.Generator) -> FloatArray:
    """Where in [0, 1) each row lies: its rank among the rows, or for a few rows its probability."""
    if normals.size < FEWEST_RANKED:
        return np.asarray(ndtr(normals))
    places = np.empty(normals.size)
    places[np.argsort(normals, kind="stable")] = np.arange(normals.size)
    return np.asarray((places + generator.random()) / normals.size)


def _ends(probabilities: FloatArray) -> FloatArray:
    """The upper end of each code in [0, 1]; what is impossible is never reached."""
    ends = np.cumsum(probabilities)
    last = int(np.flatnonzero(probabilities > 0)[-1])
    ends = ends / ends[-1]
    ends[last:] = 1.0
    return np.asarray(ends)


def _at(ends: FloatArray, places: FloatArray) -> IntArray:
    found = np.searchsorted(ends, np.minimum(places, np.nextafter(1.0, 0.0)), side="right")
    return np.asarray(found, dtype=np.int64)


def _groups(parts: IntArray, order: IntArray) -> Iterator[tuple[int, IntArray]]:
    """Each part and its rows; ``parts`` ascend."""
    numbers, starts = np.unique(parts, return_index=True)
    yield from zip(numbers.tolist(), np.split(order, starts[1:]), strict=True)
