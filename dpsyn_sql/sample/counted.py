"""Rows of one attribute whose codes have given counts, in random order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.sample.quotas import ONE_WAYS_MET, batch_sizes, code_type, rounded_counts

BATCH_ROWS = 2**18
"""Rows of a batch: a constant, so that a seed means the same rows on every machine."""


@dataclass(frozen=True, slots=True)
class CountedSampler:
    """Draws each code as often as ``rows`` says (float64, one per code, none negative), within rounding; of
    whole numbers exactly, if all rows are drawn."""

    rows: NDArray[np.float64]
    drawn: ClassVar[str] = ONE_WAYS_MET

    def batches(self, rows: int, seed: int) -> Iterator[NDArray[np.integer[Any]]]:
        """Arrays (batch, 1) of codes, unsigned, ``rows`` in all: a shuffled list, dealt batch by batch."""
        weights = self.rows if self.rows.sum() > 0 else np.ones(self.rows.size)
        left, dtype = rounded_counts(weights, rows), code_type(weights.size)
        for index, size in enumerate(batch_sizes(rows, BATCH_ROWS)):
            generator = np.random.Generator(np.random.PCG64(np.random.SeedSequence((seed, index))))
            dealt = generator.multivariate_hypergeometric(left, size, method="marginals")
            left -= dealt
            codes = np.repeat(np.arange(weights.size, dtype=dtype), dealt)
            yield generator.permutation(codes)[:, None]
