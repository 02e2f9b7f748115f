"""Rows of given tables moved towards other tables: by exchanges, by gradual update, by min-cost flow.

*Exchanges.* Sampling clique by clique leaves the counts of attributes that share no clique to chance: an
error of about sqrt(count) per cell, as large as that of the model if there are few rows. And a graphical
model cannot meet every view (``rows/sample/views.py``). Here rows exchange their values of one attribute
wherever this brings the counts of all tables with that attribute closer to what the model expects. One-way
counts do not change. The idea is that of the gradual update of PrivSyn (Zhang et al. 2021), with exchanges
for copies.

*Gradual update* (GUM of PrivSyn: Zhang et al., USENIX Security 2021, section 5). Rows start from the one-way
tables. The views come in turn, again and again. In the cells of a view that have too few rows, rows are
added, at most the part alpha of what is there; as many rows leave the cells that have too many, each of these
cells at most at the part beta of what is there. Half of the added rows are copies of whole rows of their
cell, which keeps what the other views say; the other half are rows that left another cell and change only the
attributes of the view, as do all for cells without rows. Alpha falls with the rounds, so that the changes for
one view do not undo those for the others.

*Min-cost flow* (MCF of DPSyn, section 3.3): the least changes. Rows start at random. For each view in turn,
rows flow from the cells that they are in to those that the view wants, at cost 0 if a row stays and 1 if it
moves. A plan of least cost needs no solver: with M and T the counts that are and that are wanted, a cell
keeps at most min(M, T) rows, so that at least sum max(M - T, 0) rows move; as many rows in all are missing
elsewhere, and moving exactly these, each to any cell that lacks one, is a flow. The views undo a part of each
other's work, so this is repeated until changes are small.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.fit.arrays import Codes, FloatArray, IntArray
from dpsyn_sql.fit.graph import Scope
from dpsyn_sql.rows.sample.systematic import by_group, cells, codes_of, first_of_each

Floats = NDArray[np.floating[Any]]

EXCHANGE_PASSES = 4
"""Sweeps over all attributes (docs/results_details.md)."""

_STEPS, _PAIRS_OF_ROWS, _EXCHANGED = 40, (50, 400), 10
# A sweep takes 40 steps of 50 to 400 random pairs of rows with different codes. In a step the best pair of 10
# exchanges, all at once: more would disturb each other, the more the fewer rows there are.


def balanced(
    columns: Sequence[Codes],
    sizes: Sequence[int],
    expected: Mapping[Scope, Floats],
    generator: np.random.Generator,
    passes: int = EXCHANGE_PASSES,
    share: float = 1.0,
) -> list[Codes]:
    """Columns with the same one-way counts whose counts of several attributes are closer to ``expected``.

    Args:
        columns: (n,) codes of each variable.
        sizes: codes of each.
        expected: counts by ascending scope, of two or more variables; others change nothing.
        generator: of the pairs of rows.
        passes: sweeps over all variables.
        share: of the rows that a sweep visits, 0 to 1.
    """
    changed = [column.copy() for column in columns]
    around = [_around(variable, sizes, expected) for variable in range(len(sizes))]
    for _ in range(passes):
        for variable, tables in enumerate(around):
            if tables:
                _exchanged(changed, variable, sizes, tables, generator, share)
    return changed


def _around(
    variable: int, sizes: Sequence[int], expected: Mapping[Scope, Floats]
) -> list[tuple[Scope, Floats]]:
    """The tables that hold a variable: the others of more than one code, and counts (..., codes of it)."""
    found = list[tuple[Scope, Floats]]()
    if sizes[variable] > 1:
        for scope, table in expected.items():
            others = tuple(other for other in scope if other != variable and sizes[other] > 1)
            if variable in scope and others:
                shape = [sizes[known] for known in (*others, variable)]
                found.append((others, np.moveaxis(table, scope.index(variable), -1).reshape(shape)))
    return sorted(found, key=lambda pair: pair[0])


def _exchanged(
    columns: list[Codes],
    variable: int,
    sizes: Sequence[int],
    tables: Sequence[tuple[Scope, Floats]],
    generator: np.random.Generator,
    share: float,
) -> None:
    """One sweep of exchanges of one variable, in place: every row (or ``share`` of them) meets one other, and
    those of the same code pass.

    All tables (others, variable) lie one behind the other in flat vectors: a row's cell of each is its
    ``base`` plus its code. What falls is the sum of w (count - expected)^2, w = 1/sqrt(expected + 1); one row
    more in a cell adds ``more`` to it, one less ``less``.
    """
    order = generator.permutation(columns[variable].size)
    own, size = columns[variable][order].astype(np.int32), sizes[variable]
    base, cells_before = np.empty((len(tables), own.size), np.int32), 0
    for place, (others, table) in enumerate(tables):
        base[place] = cells(columns, others, sizes)[order] * size + cells_before
        cells_before += table.size
    expected = np.concatenate([table.ravel() for _, table in tables])
    weight = (expected + 1) ** -0.5
    excess = np.bincount((base + own).ravel(), minlength=expected.size) - expected
    more, less = (weight * (1 + sign * 2 * excess) for sign in (1, -1))
    more, less, step = (part.astype(np.float32) for part in (more, less, 2 * weight))
    half = own.size // 2  # a row of the first half meets one of the second
    met = np.flatnonzero(own[:half] != own[half : 2 * half])
    met = met[: math.ceil(met.size * share)]
    together = int(np.clip(met.size // _STEPS, *_PAIRS_OF_ROWS))
    for begin in range(0, met.size, together):
        first = met[begin : begin + together]
        second = first + half
        a, b = own[first], own[second]
        one, other = base.take(first, axis=1), base.take(second, axis=1)
        places = np.stack((one + a, other + b, one + b, other + a))
        change = less.take(places[:2], mode="clip")  # without the check of every index, which costs as much
        change += more.take(places[2:], mode="clip")
        change = change[0] + change[1]
        change *= one != other
        total = change.sum(axis=0)
        most = -(-total.size // _EXCHANGED)
        best = np.argpartition(total, most - 1)[:most]
        best = best[total[best] < 0]
        own[first[best]], own[second[best]] = b[best], a[best]
        lost, won = places[:2].take(best, axis=2).ravel(), places[2:].take(best, axis=2).ravel()
        np.add.at(more, won, step[won])
        np.subtract.at(less, won, step[won])
        np.subtract.at(more, lost, step[lost])
        np.add.at(less, lost, step[lost])
    columns[variable][order] = own


GRADUAL_ROUNDS = 20
"""Rounds over all views."""

STEP, FALL = 2, 0.84
"""Alpha is 1 for 2 rounds, then 0.84 for the next 2, and so on."""

COPIED = 0.5
"""The part of the added rows that copy a whole row."""


def updated_gradually(
    columns: Sequence[Codes],
    sizes: Sequence[int],
    wanted: Mapping[Scope, IntArray],
    generator: np.random.Generator,
    rounds: int = GRADUAL_ROUNDS,
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
    wanted: IntArray,
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


def _leaving(surplus: IntArray, counts: IntArray, total: int, generator: np.random.Generator) -> IntArray:
    """Rows that leave each cell: min(surplus, beta counts), with the beta at which ``total`` leave."""
    lowest, highest = 0.0, 1.0
    for _ in range(30):
        beta = (lowest + highest) / 2
        if np.minimum(surplus, beta * counts).sum() < total:
            lowest = beta
        else:
            highest = beta
    return np.minimum(_rounded(np.minimum(surplus, highest * counts), generator), surplus)


def _rounded(values: FloatArray, generator: np.random.Generator) -> IntArray:
    """Whole numbers next to ``values``, right on average."""
    return np.asarray(np.floor(values + generator.random(values.size)), dtype=np.int64)


def rows_of(own: Codes, leaving: IntArray, generator: np.random.Generator) -> IntArray:
    """Random rows in random order: ``leaving[c]`` of those whose cell (``own``) is c."""
    rows = generator.permutation(np.flatnonzero(leaving[own]))
    return np.asarray(rows[first_of_each(own[rows], leaving)])


FLOW_ROUNDS = 30
"""Rounds over all views, at most."""

SMALL = 0.03
"""A round ends the work if it changes this part less than the round before did."""


def moved_least(
    columns: Sequence[Codes],
    sizes: Sequence[int],
    wanted: Mapping[Scope, IntArray],
    generator: np.random.Generator,
    rounds: int = FLOW_ROUNDS,
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
    columns: list[Codes], sizes: Sequence[int], scope: Scope, wanted: IntArray, generator: np.random.Generator
) -> int:
    """Meet one view by the least number of moves, in place; returns it."""
    own = cells(columns, scope, sizes)
    counts = np.bincount(own, minlength=wanted.size)
    rows = rows_of(own, np.maximum(counts - wanted, 0), generator)
    targets = generator.permutation(np.repeat(np.arange(wanted.size), np.maximum(wanted - counts, 0)))
    for variable, codes in codes_of(targets, scope, sizes).items():
        columns[variable][rows] = codes
    return rows.size
