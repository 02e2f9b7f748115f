"""The plain Laplace histogram: noise on every cell of the joint domain of a few attributes.

Adding or removing a row changes one cell by 1, so each cell gets Laplace noise of scale 1 / epsilon: pure
epsilon. Negative cells become 0. The joint domain has to fit in memory, and its noise adds up in marginals.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from comparison import shares
from numpy.typing import NDArray

from baselines.lap import made_shares, noisy

MOST_CELLS = 2**24


def histogram(
    rows: NDArray[np.int64], sizes: Sequence[int], epsilon: float, rng: np.random.Generator
) -> NDArray[np.float64]:
    """The joint table as shares, an axis for each attribute.

    Raises:
        ValueError: the joint domain has more than ``MOST_CELLS`` cells.
    """
    cells = math.prod(sizes)
    if cells > MOST_CELLS:
        raise ValueError(f"{cells:,} cells are more than {MOST_CELLS:,}: give fewer attributes")
    table = shares(rows, sizes, range(len(sizes)))
    return made_shares(noisy(table, len(rows), 1 / epsilon, rng)).reshape(sizes)
