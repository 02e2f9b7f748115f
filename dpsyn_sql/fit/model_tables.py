"""The stored tables of a model, from which SQL answers marginals: joint tables over working bins.

A marginal is the sum of the smallest table that holds its attributes, divided among the codes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.fit.graph import Scope, cells_of

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Table = tuple[Scope, FloatArray]

MOST_CELLS = 2**22
"""The most stored cells of tables that no larger table holds, smaller ones first. 4 million take 16 MB."""


@dataclass(frozen=True, slots=True)
class ModelTables:
    """Joint probabilities: ``tables`` are (positions of attributes, array over their bins; of shape (1,)
    if each has one bin, because arrays have at most 64 axes).

    ``bins[i]`` (int64, one per code of attribute i) is the bin of each code, ``within[i]`` its share of
    the bin.
    """

    bins: tuple[IntArray, ...]
    within: tuple[FloatArray, ...]
    tables: tuple[Table, ...]


def tables_of_codes(sizes: Sequence[int], tables: Iterable[Table]) -> ModelTables:
    """Tables over the codes themselves: each code is its own bin."""
    return ModelTables(
        tuple(np.arange(size) for size in sizes), tuple(np.ones(size) for size in sizes), tuple(tables)
    )


def affordable(
    scopes: Iterable[Scope], sizes: Sequence[int], room: int | None = None
) -> tuple[list[Scope], int]:
    """The smallest of ``scopes`` whose cells fit in ``room`` (default: ``MOST_CELLS``) together, and the room
    left (below 0 if one did not fit)."""
    room = MOST_CELLS if room is None else room
    kept = list[Scope]()
    for scope in sorted(scopes, key=lambda scope: cells_of([scope], sizes)):
        room -= cells_of([scope], sizes)
        if room < 0:
            break
        kept.append(scope)
    return kept, room


def largest(scopes: Iterable[Scope]) -> list[Scope]:
    """The tables without those whose attributes another table holds too."""
    kept, longer = list[Scope](), list[set[int]]()
    for _, group in groupby(sorted(dict.fromkeys(scopes), key=len, reverse=True), key=len):
        alone = [scope for scope in group if not any(other.issuperset(scope) for other in longer)]
        kept += alone
        longer += map(set, alone)
    return kept
