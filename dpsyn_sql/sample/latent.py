"""Rows of DPCopula: correlated normals of every part, then the quantile of each one's rank.

The ranks of the rows of a part, shifted by a common jitter, are laid over the codes in order (systematic
sampling): every code occurs within one row as often as expected, and the order of the normals stays.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from dpsyn_sql.fit.latent import FittedLatent
from dpsyn_sql.sample.quotas import batch_sizes, code_type
from dpsyn_sql.sample.systematic import LOW_VARIANCE

BATCH_ROWS = 2**16
"""Rows of a batch: a constant, so that a seed means the same rows on every machine. 300 attributes take
150 MB."""

FEWEST_RANKED = 64
"""Rows of a part in a batch below which ranks say too little of where a normal lies: of one row nothing."""

FloatArray = NDArray[np.float64]
Codes = NDArray[np.integer[Any]]


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
        for index, size in enumerate(batch_sizes(rows, BATCH_ROWS)):
            generator = np.random.Generator(np.random.PCG64(np.random.SeedSequence((seed, index))))
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
        members: NDArray[np.int64],
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


def _at(ends: FloatArray, places: FloatArray) -> NDArray[np.int64]:
    found = np.searchsorted(ends, np.minimum(places, np.nextafter(1.0, 0.0)), side="right")
    return np.asarray(found, dtype=np.int64)


def _groups(parts: NDArray[np.int64], order: NDArray[np.int64]) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Each part and its rows; ``parts`` ascend."""
    numbers, starts = np.unique(parts, return_index=True)
    yield from zip(numbers.tolist(), np.split(order, starts[1:]), strict=True)
