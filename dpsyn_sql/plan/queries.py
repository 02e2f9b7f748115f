"""Questions that may be asked of the source and their noisy answers (both public)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.domain.attributes import Domain

Map = tuple[int, ...]
"""Of each code of an attribute the bin it falls into; every bin 0..max has a code."""


@dataclass(frozen=True, slots=True)
class MarginalQuery:
    """The full contingency table over ``attrs``, empty cells included.

    ``maps``, if given, has one public map per attribute, or None for its original codes: the table is
    then over the bins of the maps, each the sum of its codes.
    """

    attrs: tuple[str, ...]
    maps: tuple[Map | None, ...] = ()

    @property
    def original(self) -> MarginalQuery:
        """The same marginal over original codes."""
        return MarginalQuery(self.attrs) if self.maps else self

    def shape(self, domain: Domain) -> tuple[int, ...]:
        """Sizes of the axes of the table."""
        sizes = domain.shape(self.attrs)
        if not self.maps:
            return sizes
        return tuple(
            size if bins is None else max(bins) + 1 for size, bins in zip(sizes, self.maps, strict=True)
        )


@dataclass(frozen=True, slots=True)
class NoisyMarginal:
    """A measured marginal: ``values`` int64 of the marginal's shape, noise of standard
    deviation ``sigma`` (rows) in every cell, independent between cells. ``maps`` as in its query."""

    attrs: tuple[str, ...]
    values: NDArray[np.int64]
    sigma: float
    maps: tuple[Map | None, ...] = ()
