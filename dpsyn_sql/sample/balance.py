"""Bring the counts of a sample closer to those of its model.

Sampling clique by clique leaves the counts of attributes that share no clique to chance: an error of about
sqrt(count) per cell, as large as that of the model if there are few rows. And a graphical model cannot meet
every view (``sample/views.py``). Here rows exchange their values of one attribute wherever this brings the
counts of all tables with that attribute closer to what the model expects. One-way counts do not change.
The idea is that of the gradual update of PrivSyn (Zhang et al. 2021), with exchanges for copies.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.fit.graph import Scope
from dpsyn_sql.sample.cells import Codes, cells

FloatArray = NDArray[np.floating[Any]]

PASSES = 4
"""Sweeps over all attributes (docs/results_details.md)."""

_STEPS, _PAIRS_OF_ROWS, _EXCHANGED = 40, (50, 400), 10
# A sweep takes 40 steps of 50 to 400 random pairs of rows with different codes. In a step the best pair of 10
# exchanges, all at once: more would disturb each other, the more the fewer rows there are.


def balanced(
    columns: Sequence[Codes],
    sizes: Sequence[int],
    expected: Mapping[Scope, FloatArray],
    generator: np.random.Generator,
    passes: int = PASSES,
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
    variable: int, sizes: Sequence[int], expected: Mapping[Scope, FloatArray]
) -> list[tuple[Scope, FloatArray]]:
    """The tables that hold a variable: the others of more than one code, and counts (..., codes of it)."""
    found = list[tuple[Scope, FloatArray]]()
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
    tables: Sequence[tuple[Scope, FloatArray]],
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
