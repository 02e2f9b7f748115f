"""How many privacy units of the output have one row, two rows, ...: from a noisy histogram.

Post-processing, pure and without chance.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.fit.consistency import simplex_projection


def unit_sizes(noisy: NDArray[np.int64], rows: int) -> NDArray[np.int64]:
    """Numbers of units by rows per unit that have ``rows`` rows together.

    The noisy histogram is projected to the simplex of its own total, which takes the noise out of its
    long tail; scaled so that the rows come out right; and rounded, what rounding leaves over going to
    the sizes that lost most. Where it says nothing (no positive total), each row is a unit.

    Args:
        noisy: int64 (most,); entry i is the noisy number of units with i+1 rows.
        rows: of the output.

    Returns:
        int64 (most,), not negative; the sum of (i+1) * entry i is ``rows``.
    """
    sizes = np.arange(1, noisy.size + 1, dtype=np.int64)
    projected = simplex_projection(noisy.astype(np.float64), float(noisy.sum()))
    in_rows = float(projected @ sizes)
    if in_rows <= 0:
        projected, in_rows = (sizes == 1).astype(np.float64), 1.0
    exact = projected * (rows / in_rows)
    counts = np.floor(exact).astype(np.int64)
    left = rows - int(counts @ sizes)
    for index in np.argsort(counts - exact, kind="stable"):
        if left <= 0 or counts[index] == exact[index]:
            break
        if sizes[index] <= left:
            counts[index] += 1
            left -= int(sizes[index])
    while left > 0:
        last = min(left, noisy.size)
        counts[last - 1] += 1
        left -= last
    return counts
