"""Rows of a parent table that are drawn already, as evidence for the rows below them (public).

What the attributes above a table have in common is not asked for again: the rows that carry them are known.
A model of the table takes the joint distribution of these attributes from them, within each clique. Without
it evidence counts twice: two attributes above that say the same would both pull.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpsyn_sql.fit.arrays import Codes, FloatArray, IntArray

_TRACE = 1e-9


@dataclass(frozen=True, eq=False)
class Given:
    """Rows of the parent.

    Args:
        columns: of each attribute above (``Above.name``) its codes (parents,).
        rows: int64 (parents,), how many rows each has in the table.
        weights: float64 (parents,), what the rows of each weigh together, in units: that of the parent's row,
            of a row of the root 1. A row weighs ``weights / rows``.
        ranks: int64 (parents,), how many rows of the table the same unit has in families before.
    """

    columns: Mapping[str, Codes]
    rows: IntArray
    weights: FloatArray
    ranks: IntArray

    @cached_property
    def total(self) -> float:
        """What all rows of the table weigh, in units."""
        return float(self._held.weights.sum())

    @cached_property
    def grain(self) -> float:
        """What one independent row counts, in units: the mean weight of rows, weighted by itself."""
        squares = float((self._held.weights**2 / self._held.rows).sum())
        return squares / self.total if self.total > 0 else 1.0

    @cached_property
    def _held(self) -> Given:
        """The rows of the parent that have rows in the table."""
        held = self.rows > 0
        columns = {name: codes[held] for name, codes in self.columns.items()}
        return Given(columns, self.rows[held], self.weights[held], self.ranks[held])

    def shares(self, names: Sequence[str], bins: Sequence[IntArray]) -> FloatArray:
        """``table`` as probabilities above 0: a trace is even, so that what follows from rows that are not
        given stays known. Those of more attributes sum to those of fewer, but for rounding."""
        table = self.table(names, bins)
        even = np.full(table.shape, 1 / table.size)
        return (1 - _TRACE) * table / self.total + _TRACE * even if self.total > 0 else even

    def table(self, names: Sequence[str], bins: Sequence[IntArray]) -> FloatArray:
        """The joint distribution of attributes above in the rows of the table, in units: float64, an axis for
        each name, over the ``bins`` of their codes."""
        sizes = [int(own.max()) + 1 for own in bins]
        held = self._held
        cells = np.zeros(held.rows.size, np.int64)
        for name, own, size in zip(names, bins, sizes, strict=True):
            cells *= size
            cells += own[held.columns[name]]
        counts = np.bincount(cells, held.weights, minlength=int(np.prod(sizes)))
        return np.asarray(counts.reshape(sizes), dtype=np.float64)
