"""Lines of a node for rows of many configurations and ranks at once."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dpsyn_sql.errors import InternalError
from dpsyn_sql.fit.arrays import Codes, FloatArray, IntArray
from dpsyn_sql.fit.network import Node
from dpsyn_sql.rows.sample.systematic import evenly

_MOST_DENSE = 2**22
# Configurations of parents that are looked up by their number.

Columns = dict[int, Codes]
"""Of each variable the values (n,) of rows."""


class Lines:
    """The lines of a node by configuration of its parents."""

    def __init__(self, node: Node, sizes: tuple[int, ...]) -> None:
        self.node, self.shape = node, [sizes[parent] for parent in node.parents]
        numbers = np.zeros(node.weights.size, np.int64)
        if self.shape:
            numbers = np.ravel_multi_index(tuple(node.given.T), self.shape).astype(np.int64)
        self.known, begins, owners = np.unique(numbers, return_index=True, return_inverse=True)
        owners = owners.ravel()
        sums = np.cumsum(node.weights)
        before = (sums - node.weights)[begins]
        whole = np.append(before[1:], sums[-1]) - before
        self.ends: FloatArray = owners + (sums - before[owners]) / whole[owners]
        self.last = np.append(begins[1:], numbers.size) - 1
        self.values = [np.ascontiguousarray(column) for column in node.values.T]
        cells = int(np.prod(self.shape, dtype=np.float64)) if self.shape else 1
        self.dense = None
        if cells <= _MOST_DENSE:
            self.dense = np.full(cells, -1, np.int32)
            self.dense[self.known] = np.arange(self.known.size)

    def groups(self, columns: Mapping[int, Codes], rows: int) -> IntArray:
        """The configuration (n,) of each row's parents.

        Raises:
            InternalError: the node has no line for one.
        """
        if not self.shape:
            return np.zeros(rows, np.int64)
        asked = np.zeros(rows, np.int64)
        for parent, size in zip(self.node.parents, self.shape, strict=True):
            asked *= size
            if parent in columns:
                asked += columns[parent]
        if self.dense is not None:
            found = self.dense[asked].astype(np.int64)
            missing = bool((found < 0).any())
        else:
            found = np.minimum(np.searchsorted(self.known, asked), self.known.size - 1)
            missing = bool((self.known[found] != asked).any())
        if missing:
            raise InternalError(f"the network has no line of {self.node.label!r} for parents that it draws")
        return found

    def draw(
        self, columns: Columns, ranks: IntArray | None, rows: int, generator: np.random.Generator
    ) -> None:
        """Add the variables of the node to ``columns``: systematic among the rows of one configuration and
        rank (None: all have one)."""
        groups = self.groups(columns, rows)
        keys = groups if ranks is None else groups * (int(ranks.max(initial=0)) + 1) + ranks
        order, places = evenly(keys, generator)
        groups = groups[order]
        lines = np.searchsorted(self.ends, groups + places, side="right")
        drawn = np.empty(rows, np.int64)
        drawn[order] = np.minimum(lines, self.last[groups])
        for variable, values in zip(self.node.variables, self.values, strict=True):
            columns[variable] = values[drawn]
