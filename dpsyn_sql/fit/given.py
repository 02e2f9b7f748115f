"""Rows of a parent table that are drawn already, as evidence for the rows below them (public).

What the attributes above a table have in common is not asked for again: the rows that carry them are known.
A model of the table takes the joint distribution of these attributes from them, within each clique. Without
it evidence counts twice: two attributes above that say the same would both pull.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dpsyn_sql.fit.arrays import Codes, FloatArray, IntArray

_TRACE = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
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

    @property
    def total(self) -> float:
        """What all rows of the table weigh, in units."""
        return float(self.weights[self.rows > 0].sum())

    @property
    def grain(self) -> float:
        """What one independent row counts, in units: the mean weight of rows, weighted by itself."""
        held = self.rows > 0
        squares = float((self.weights[held] ** 2 / self.rows[held]).sum())
        return squares / self.total if self.total > 0 else 1.0

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
        cells = np.zeros(self.rows.size, np.int64)
        for name, own, size in zip(names, bins, sizes, strict=True):
            cells = cells * size + own[self.columns[name]]
        held = self.rows > 0
        counts = np.bincount(cells[held], self.weights[held], minlength=int(np.prod(sizes)))
        return np.asarray(counts.reshape(sizes), dtype=np.float64)
