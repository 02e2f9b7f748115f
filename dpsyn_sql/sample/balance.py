"""Bring the two-way counts of a small sample closer to those of its model.

Sampling clique by clique leaves the counts of attributes that share no clique to chance: an error of about
sqrt(count) per cell, as large as that of the model if there are few rows. Here rows exchange their values
of one attribute wherever this brings the two-way counts of that attribute closer to what the model expects.
One-way counts do not change. The idea is that of the gradual update of PrivSyn (Zhang et al. 2021), with
exchanges for copies, and with all pairs of the model for the measured ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.fit.graph import Scope

Codes = NDArray[np.int64]
FloatArray = NDArray[np.float64]

PASSES = 2
"""Sweeps over all attributes; more gain almost nothing (docs/results.md)."""

_PAIRS_OF_ROWS = 200
_EXCHANGES = 8
# Of 200 random pairs of rows the best 8 exchange at once: more exchanges would disturb each other.


def balanced(
    columns: Sequence[Codes],
    sizes: Sequence[int],
    expected: Mapping[Scope, FloatArray],
    generator: np.random.Generator,
) -> list[Codes]:
    """Columns with the same one-way counts whose two-way counts are closer to ``expected``.

    Args:
        columns: (n,) codes of each variable.
        sizes: codes of each.
        expected: counts by pairs (u, v), u < v, of all variables of more than one code.
        generator: of the pairs of rows.
    """
    changed = [column.copy() for column in columns]
    free = [variable for variable, size in enumerate(sizes) if size > 1]
    for _ in range(PASSES):
        for variable in free:
            others = [other for other in free if other != variable]
            if not others:
                continue
            tables = [
                expected[other, variable] if other < variable else expected[variable, other].T
                for other in others
            ]
            _exchanged(changed, variable, others, tables, generator)
    return changed


def _exchanged(
    columns: list[Codes],
    variable: int,
    others: Sequence[int],
    tables: Sequence[FloatArray],
    generator: np.random.Generator,
) -> None:
    """One sweep of exchanges of one variable, in place: every row meets one other.

    All tables (other, variable) lie one behind the other in flat vectors: a row's cell of each is its
    ``base`` plus its code. What falls is the sum of w (count - expected)^2, w = 1/sqrt(expected + 1); one row
    more in a cell adds ``more`` to it, one less ``less``.
    """
    order = generator.permutation(columns[variable].size)
    own, size = columns[variable][order].astype(np.int32), tables[0].shape[1]
    base, cells_before = np.empty((len(others), own.size), np.int32), 0
    for place, (known, table) in enumerate(zip(others, tables, strict=True)):
        base[place] = columns[known][order] * size + cells_before
        cells_before += table.size
    expected = np.concatenate([table.ravel() for table in tables])
    weight = (expected + 1) ** -0.5
    excess = np.bincount((base + own).ravel(), minlength=expected.size) - expected
    more, less = (weight * (1 + sign * 2 * excess) for sign in (1, -1))
    more, less, step = (part.astype(np.float32) for part in (more, less, 2 * weight))
    half = own.size // 2  # a row of the first half meets one of the second
    for begin in range(0, half, _PAIRS_OF_ROWS):
        end = min(half, begin + _PAIRS_OF_ROWS)
        a, b = own[begin:end], own[half + begin : half + end]
        one, other = base[:, begin:end], base[:, half + begin : half + end]
        cells = (one + a, other + b, one + b, other + a)
        change = less.take(cells[0], mode="clip")  # without the check of every index, which costs as much
        change += less.take(cells[1], mode="clip")
        change += more.take(cells[2], mode="clip")
        change += more.take(cells[3], mode="clip")
        change[one == other] = 0.0
        total = change.sum(axis=0)
        total[a == b] = 0.0
        most = min(_EXCHANGES, total.size)
        best = np.argpartition(total, most - 1)[:most]
        best = best[total[best] < 0]
        lost, won = (np.concatenate([rows[:, best] for rows in part]) for part in (cells[:2], cells[2:]))
        a[best], b[best] = b[best], a[best]
        np.add.at(more, won, step[won])
        np.subtract.at(less, won, step[won])
        np.subtract.at(more, lost, step[lost])
        np.add.at(less, lost, step[lost])
    columns[variable][order] = own
