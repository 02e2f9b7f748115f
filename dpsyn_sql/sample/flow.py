"""Rows that meet views by the least changes: the min-cost flow of DPSyn (section 3.3, MCF).

Rows start at random. For each view in turn, rows flow from the cells that they are in to those that the view
wants, at cost 0 if a row stays and 1 if it moves. A plan of least cost needs no solver: with M and T
the counts that are and that are wanted, a cell keeps at most min(M, T) rows, so that at least
sum max(M - T, 0) rows move; as many rows in all are missing elsewhere, and moving exactly these, each to any
cell that lacks one, is a flow. The views undo a part of each other's work, so this is repeated until changes
are small.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.fit.graph import Scope
from dpsyn_sql.sample.cells import Codes, cells, codes_of
from dpsyn_sql.sample.gradual import rows_of

Counts = NDArray[np.int64]

ROUNDS = 30
"""Rounds over all views, at most."""

SMALL = 0.03
"""A round ends the work if it changes this part less than the round before did."""


def moved_least(
    columns: Sequence[Codes],
    sizes: Sequence[int],
    wanted: Mapping[Scope, Counts],
    generator: np.random.Generator,
    rounds: int = ROUNDS,
) -> list[Codes]:
    """Columns whose counts are closer to ``wanted``; those of the last view are equal to it.

    Args:
        columns: (n,) codes of each variable.
        sizes: codes of each.
        wanted: whole counts per cell (flat) by ascending scope, n in all.
        generator: of the rows that move, where several could.
        rounds: over all views, at most.
    """
    changed, before = [column.copy() for column in columns], 0
    for number in range(rounds):
        moves = sum(_moved(changed, sizes, scope, counts, generator) for scope, counts in wanted.items())
        if moves == 0 or (number and moves > (1 - SMALL) * before):
            break
        before = moves
    return changed


def _moved(
    columns: list[Codes], sizes: Sequence[int], scope: Scope, wanted: Counts, generator: np.random.Generator
) -> int:
    """Meet one view by the least number of moves, in place; returns it."""
    own = cells(columns, scope, sizes)
    counts = np.bincount(own, minlength=wanted.size)
    rows = rows_of(own, np.maximum(counts - wanted, 0), generator)
    targets = generator.permutation(np.repeat(np.arange(wanted.size), np.maximum(wanted - counts, 0)))
    for variable, codes in codes_of(targets, scope, sizes).items():
        columns[variable][rows] = codes
    return rows.size
