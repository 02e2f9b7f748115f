"""Noise on every marginal that is asked, and nothing else: the papers' ``Lap``, "direct".

Adding or removing a row changes m marginals by 1 in one cell each: by m in L1, by the square root of m in L2.

    Laplace    scale m / epsilon                       pure epsilon
    Gaussian   sigma sqrt(m / (2 rho)), rho of (epsilon, delta) as a release takes it

Both expected errors are known in closed form (``squared_error``). No table of rows comes of it, and answers
to overlapping marginals disagree.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from comparison import shares
from numpy.typing import NDArray

from dpsyn_sql.accounting.budget import Budget

Shares = NDArray[np.float64]


def laplace_scale(marginals: int, epsilon: float) -> float:
    """Scale in rows of the noise on each cell."""
    return marginals / epsilon


def gaussian_sigma(marginals: int, epsilon: float, delta: float) -> float:
    """Standard deviation in rows of the noise on each cell, by the budget that a release would have."""
    return math.sqrt(marginals / (2 * float(Budget.of_release(epsilon, delta).rho)))


def noisy(table: Shares, rows: int, scale: float, rng: np.random.Generator, law: str = "laplace") -> Shares:
    """Shares of the rows with noise; may be below 0, and do not sum to 1."""
    return table + getattr(rng, "normal" if law == "gaussian" else "laplace")(0, scale, table.shape) / rows


def made_shares(table: Shares) -> Shares:
    """Cells below 0 set to 0, and the sum to 1: what a reader would make of noisy shares."""
    clipped = np.maximum(table, 0)
    total = clipped.sum()
    return clipped / total if total > 0 else np.full(table.shape, 1 / table.size)


def squared_error(cells: int, rows: int, scale: float, law: str = "laplace") -> float:
    """Expected SSE of one marginal in shares: each cell adds the variance of its noise."""
    variance = scale**2 if law == "gaussian" else 2 * scale**2
    return cells * variance / rows**2


def answered(
    rows: NDArray[np.int64],
    sizes: Sequence[int],
    groups: Sequence[Sequence[int]],
    scale: float,
    rng: np.random.Generator,
    law: str = "laplace",
) -> list[Shares]:
    """The noisy marginal over each group of columns."""
    return [noisy(shares(rows, sizes, axes), len(rows), scale, rng, law) for axes in groups]
