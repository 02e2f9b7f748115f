"""Bring the counts of a sample closer to those of its model.

Sampling clique by clique leaves the counts of attributes that share no clique to chance: an error of about
sqrt(count) per cell, as large as that of the model if there are few rows. And a graphical model cannot meet
every view (``sample/views.py``). Here rows exchange their values of one attribute wherever this brings the
counts of all tables with that attribute closer to what the model expects. One-way counts do not change.
The idea is that of the gradual update of PrivSyn (Zhang et al. 2021), with exchanges for copies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.fit.graph import Scope
from dpsyn_sql.sample.cells import Codes, cells

FloatArray = NDArray[np.float64]

PASSES = 2
"""Sweeps over all attributes; pairs of a graphical model gain almost nothing by more (docs/results.md)."""

_PAIRS_OF_ROWS = 200
_EXCHANGES = 8
# Of 200 random pairs of rows the best 8 exchange at once: more exchanges would disturb each other.


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
    """One sweep of exchanges of one variable, in place: every row (or ``share`` of them) meets one other.

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
    met = int(half * share)
    for begin in range(0, met, _PAIRS_OF_ROWS):
        end = min(met, begin + _PAIRS_OF_ROWS)
        a, b = own[begin:end], own[half + begin : half + end]
        one, other = base[:, begin:end], base[:, half + begin : half + end]
        places = (one + a, other + b, one + b, other + a)
        change = less.take(places[0], mode="clip")  # without the check of every index, which costs as much
        change += less.take(places[1], mode="clip")
        change += more.take(places[2], mode="clip")
        change += more.take(places[3], mode="clip")
        change[one == other] = 0.0
        total = change.sum(axis=0)
        total[a == b] = 0.0
        most = min(_EXCHANGES, total.size)
        best = np.argpartition(total, most - 1)[:most]
        best = best[total[best] < 0]
        lost, won = (np.concatenate([rows[:, best] for rows in part]) for part in (places[:2], places[2:]))
        a[best], b[best] = b[best], a[best]
        np.add.at(more, won, step[won])
        np.subtract.at(less, won, step[won])
        np.subtract.at(more, lost, step[lost])
        np.add.at(less, lost, step[lost])
    columns[variable][order] = own
