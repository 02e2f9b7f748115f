"""Rows from topologically sorted views: the STS of DPSyn (section 3.3).

The first view is random. Then comes, again and again, one of those with the fewest new attributes, until all
attributes are there. Records are made one by one: in each view the record takes, among the cells that agree
with what it has already, one with the largest count, and the count falls by one; ties go at random.

A record's choice depends only on how many records with the same known values came before it. So all records
take one view at once: in each group of records with the same known values, the r-th record gets the r-th cell
of the sequence that takes the largest count left each time. A cell of count c is in that sequence at the
levels c, c - 1, ..., so the sequence is all levels above 0, sorted downwards.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.fit.graph import Scope
from dpsyn_sql.sample.cells import Codes, cells, codes_of

FloatArray = NDArray[np.float64]

PARTS = 8
"""Parts of the rows, each with a first view of its own, as the impact of the first view is random."""

_WHOLE = 1e-6
# Counts so near to a whole number are that number: sums of tables have rounding errors.


def topologically_sorted(scopes: Sequence[Scope], generator: np.random.Generator) -> list[Scope]:
    """A random first view, then one of those with the fewest new attributes, without those that have none."""
    left, order, known = list(scopes), list[Scope](), set[int]()
    while left:
        new = [len(set(scope) - known) for scope in left] if known else [1] * len(left)
        fewest = [place for place, number in enumerate(new) if number == min(new)]
        scope = left[fewest[int(generator.integers(len(fewest)))]]
        order.append(scope)
        known |= set(scope)
        left = [other for other in left if not set(other) <= known]
    return order


def sorted_rows(
    sizes: Sequence[int],
    views: Mapping[Scope, FloatArray],
    rows: int,
    order: Sequence[Scope],
    generator: np.random.Generator,
) -> dict[int, Codes]:
    """Columns of the variables of ``order``, in the order in which the records are made.

    Args:
        sizes: codes of each variable.
        views: tables by ascending scope, not negative. In each group their counts are scaled to its records,
            so that they are used up with the last of them (tables of whole counts that agree: by 1).
        rows: records.
        order: of the views, each with new variables.
        generator: of ties.
    """
    columns: dict[int, Codes] = {}
    for scope in order:
        known = tuple(variable for variable in scope if variable in columns)
        new = tuple(variable for variable in scope if variable not in columns)
        axes = [scope.index(variable) for variable in (*known, *new)]
        table = views[scope].transpose(axes).reshape(math.prod(sizes[v] for v in known), -1)
        groups = cells(columns, known, sizes) if known else np.zeros(rows, np.int64)
        columns |= codes_of(largest_first(groups, table, generator), new, sizes)
    return columns


def largest_first(groups: Codes, table: FloatArray, generator: np.random.Generator) -> NDArray[np.int64]:
    """One outcome per row: the largest count left of its group, which then falls by one.

    Args:
        groups: (n,) row of ``table`` for each record, in the order of the records.
        table: (g, k) counts, not negative; a row of zeros counts as uniform.
        generator: of ties.
    """
    size = np.bincount(groups, minlength=len(table))
    occupied = np.flatnonzero(size)
    counts = table[occupied]
    counts = np.where(counts.any(axis=1, keepdims=True), counts, 1.0)
    counts = counts * (size[occupied] / counts.sum(axis=1))[:, None]
    near = np.rint(counts)
    counts = np.where(np.abs(counts - near) < _WHOLE, near, counts).ravel()
    levels = np.ceil(counts).astype(np.int64)
    lines = np.repeat(np.arange(counts.size), levels)
    taken = np.arange(lines.size) - np.repeat(np.cumsum(levels) - levels, levels)
    group = lines // table.shape[1]
    sequence = np.lexsort((generator.random(lines.size), taken - counts[lines], group))
    length = np.bincount(group, minlength=occupied.size)
    kept = np.arange(lines.size) - np.repeat(np.cumsum(length) - length, length)
    sequence = sequence[kept < np.repeat(size[occupied], length)]
    found = np.empty(groups.size, np.int64)
    found[np.argsort(groups, kind="stable")] = lines[sequence] % table.shape[1]
    return found
