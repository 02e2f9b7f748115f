"""Two-way counts of a small sample brought closer to those of its model.

Sampling clique by clique leaves the counts of attributes that share no clique to chance: an error of about
sqrt(count) a cell, as large as that of the model where rows are few. Here rows exchange their values
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
"""Sweeps over all attributes: the first brings most, a third next to nothing."""

_PAIRS_OF_ROWS = 100
_EXCHANGES = 8
# Of 100 random pairs of rows the best 8 exchange at once: more would get in each other's way.


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
    """One sweep of exchanges of one variable, in place.

    All tables (other, variable) lie one behind the other in flat vectors: a row's cell of each is its
    ``base`` plus its code. What falls is the sum of w (count - expected)^2, w = 1/sqrt(expected + 1); one row
    more in a cell adds ``more`` to it, one less ``less``.
    """
    own, size = columns[variable], tables[0].shape[1]
    starts = np.cumsum([0, *(table.size for table in tables[:-1])])
    base = np.stack([columns[v] * size + start for v, start in zip(others, starts, strict=True)], axis=1)
    expected = np.concatenate([table.ravel() for table in tables])
    weight = (expected + 1) ** -0.5
    excess = np.bincount((base + own[:, None]).ravel(), minlength=expected.size) - expected
    more, less = weight * (1 + 2 * excess), weight * (1 - 2 * excess)
    order = generator.permutation(own.size)
    for start in range(0, own.size - 1, 2 * _PAIRS_OF_ROWS):
        first, second = np.array_split(order[start : start + 2 * _PAIRS_OF_ROWS], 2)
        first = first[: second.size]
        a, b = own[first], own[second]
        one, other = base[first], base[second]
        change = less[one + a[:, None]]
        change += more[one + b[:, None]]
        change += less[other + b[:, None]]
        change += more[other + a[:, None]]
        change[one == other] = 0.0
        total = change.sum(axis=1)
        total[a == b] = 0.0
        most = min(_EXCHANGES, total.size)
        best = np.argpartition(total, most - 1)[:most]
        best = best[total[best] < 0]
        a, b = a[best], b[best]
        own[first[best]], own[second[best]] = b, a
        one, other, a, b = one[best], other[best], a[:, None], b[:, None]
        for cells, step in (((one + b, other + a), 2.0), ((one + a, other + b), -2.0)):
            touched = np.concatenate(cells).ravel()
            np.add.at(more, touched, step * weight[touched])
            np.add.at(less, touched, -step * weight[touched])
