"""Rows that meet views by the gradual update of PrivSyn (GUM: Zhang et al., USENIX Security 2021, section 5).

Rows start from the one-way tables. The views come in turn, again and again. In the cells of a view that have
too few rows, rows are added, at most the part alpha of what is there; as many rows leave the cells that have
too many, each of these cells at most at the part beta of what is there. Half of the added rows are copies of
whole rows of their cell, which keeps what the other views say; the other half are rows that left another cell
and change only the attributes of the view, as do all for cells without rows. Alpha falls with the rounds, so
that the changes for one view do not undo those for the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.fit.graph import Scope
from dpsyn_sql.sample.cells import Codes, cells, codes_of
from dpsyn_sql.sample.quotas import by_group, first_of_each

Counts = NDArray[np.int64]

ROUNDS = 20
"""Rounds over all views."""

STEP, FALL = 2, 0.84
"""Alpha is 1 for 2 rounds, then 0.84 for the next 2, and so on."""

COPIED = 0.5
"""The part of the added rows that copy a whole row."""


def updated_gradually(
    columns: Sequence[Codes],
    sizes: Sequence[int],
    wanted: Mapping[Scope, Counts],
    generator: np.random.Generator,
    rounds: int = ROUNDS,
) -> list[Codes]:
    """Columns whose counts are closer to ``wanted``.

    Args:
        columns: (n,) codes of each variable.
        sizes: codes of each.
        wanted: whole counts per cell (flat) by ascending scope, n in all.
        generator: of the rows that leave, and of those that are copied.
        rounds: over all views.
    """
    changed = [column.copy() for column in columns]
    for number in range(rounds):
        alpha = FALL ** (number // STEP)
        for index in generator.permutation(len(wanted)):
            scope, counts = list(wanted.items())[index]
            _update(changed, sizes, scope, counts, alpha, generator)
    return changed


def _update(
    columns: list[Codes],
    sizes: Sequence[int],
    scope: Scope,
    wanted: Counts,
    alpha: float,
    generator: np.random.Generator,
) -> None:
    """Move the counts of one view towards ``wanted``, in place."""
    own = cells(columns, scope, sizes)
    counts = np.bincount(own, minlength=wanted.size)
    missing, surplus = np.maximum(wanted - counts, 0), np.maximum(counts - wanted, 0)
    added = _rounded(np.minimum(missing, np.where(counts > 0, alpha * counts, alpha * wanted)), generator)
    if not added.any():
        return
    leaving = _leaving(surplus, counts, int(added.sum()), generator)
    gone = rows_of(own, leaving, generator)[: added.sum()]
    new = generator.permutation(np.repeat(np.arange(wanted.size), added))[: gone.size]
    copied = (generator.random(new.size) < COPIED) & (counts[new] > 0)
    by_cell, starts = by_group(own, counts.size), np.cumsum(counts) - counts
    source = by_cell[starts[new[copied]] + generator.integers(counts[new[copied]])]
    for column in columns:
        column[gone[copied]] = column[source]
    for variable, codes in codes_of(new[~copied], scope, sizes).items():
        columns[variable][gone[~copied]] = codes


def _leaving(surplus: Counts, counts: Counts, total: int, generator: np.random.Generator) -> Counts:
    """Rows that leave each cell: min(surplus, beta counts), with the beta at which ``total`` leave."""
    lowest, highest = 0.0, 1.0
    for _ in range(30):
        beta = (lowest + highest) / 2
        if np.minimum(surplus, beta * counts).sum() < total:
            lowest = beta
        else:
            highest = beta
    return np.minimum(_rounded(np.minimum(surplus, highest * counts), generator), surplus)


def _rounded(values: NDArray[np.float64], generator: np.random.Generator) -> Counts:
    """Whole numbers next to ``values``, right on average."""
    return np.asarray(np.floor(values + generator.random(values.size)), dtype=np.int64)


def rows_of(own: Codes, leaving: Counts, generator: np.random.Generator) -> Counts:
    """Random rows in random order: ``leaving[c]`` of those whose cell (``own``) is c."""
    rows = generator.permutation(np.flatnonzero(leaving[own]))
    return np.asarray(rows[first_of_each(own[rows], leaving)])
