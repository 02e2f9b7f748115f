"""Attributes as if independent of each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.domain.attributes import Domain
from dpsyn_sql.fit.consistency import Margins
from dpsyn_sql.fit.served import checked_names


@dataclass(frozen=True, slots=True)
class ProductModel:
    """Independent attributes: ``margins`` holds the total and per attribute its probabilities."""

    domain: Domain
    margins: Margins

    @property
    def total(self) -> float:
        """Estimated number of (bounded) rows of the source; may be negative."""
        return self.margins.total

    def project(self, attrs: Sequence[str]) -> NDArray[np.float64]:
        """Expected counts: the outer product of the margins; sums to max(0, total).

        Raises:
            InputError: no attribute, one named twice or an unknown one.
        """
        names = checked_names(self.domain, attrs)
        return np.asarray(
            max(0.0, self.total) * reduce(np.multiply.outer, (self.margins.probabilities[n] for n in names))
        )
