"""Questions that may be asked of the source and their noisy answers (both public)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class MarginalQuery:
    """The full contingency table over ``attrs``, empty cells included."""

    attrs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NoisyMarginal:
    """A measured marginal: ``values`` int64 of the marginal's shape, noise of standard
    deviation ``sigma`` (rows) in every cell, independent between cells."""

    attrs: tuple[str, ...]
    values: NDArray[np.int64]
    sigma: float
