"""Rows of independent attributes: the right number of each code, shuffled."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.sample.quotas import ONE_WAYS_MET, Quotas, batch_sizes, code_type

BATCH_ROWS = 2**18
"""Rows of a batch: a constant, so that a seed means the same rows on every machine."""


@dataclass(frozen=True, slots=True)
class ProductSampler:
    """Draws rows of independent attributes; one-way counts are met within rounding.

    ``probabilities`` (float64, one per code) of each attribute in domain order.
    """

    probabilities: tuple[NDArray[np.float64], ...]
    drawn: ClassVar[str] = ONE_WAYS_MET

    def batches(self, rows: int, seed: int) -> Iterator[NDArray[np.integer[Any]]]:
        """Arrays (batch, attributes) of codes in domain order, unsigned, ``rows`` in all."""
        quotas = [Quotas(own) for own in self.probabilities]
        dtype = code_type(max((own.size for own in self.probabilities), default=1))
        for index, size in enumerate(batch_sizes(rows, BATCH_ROWS)):
            generator = np.random.Generator(np.random.PCG64(np.random.SeedSequence((seed, index))))
            codes = np.empty((size, len(quotas)), dtype=dtype)
            for column, quota in enumerate(quotas):
                counts = quota.next(size)
                codes[:, column] = generator.permutation(
                    np.repeat(np.arange(counts.size, dtype=dtype), counts)
                )
            yield codes
