"""PRIVATE: exact tables of pairs of rows of one family, as products of matrices.

A family has a row in the matrix of an attribute: how many of its rows have each code. The product of two such
matrices, with the weights of the families between them, has all ordered pairs of rows of one family; pairs of
a row with itself are taken out again:

    codes, families in turn -> matrix of each attribute (families, bins) -> sums += A' v B - rows with both

Products are made in float64 and are exact nevertheless: a family adds at most twice WEIGHT to a sum, and few
families are multiplied at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.domain.attributes import Domain
from dpsyn_sql.errors import InternalError
from dpsyn_sql.planning.queries import Map, MarginalQuery
from dpsyn_sql.private.count.marginalise import whole, whole_codes
from dpsyn_sql.sqltext.fragments import Fragment

Pack = tuple[int, ...]
IntArray = NDArray[np.int64]

_FAMILY, _ROWS, _WEIGHT = (Fragment(name) for name in ("u", "n", "w"))
# The family of a row, how many rows it has, and the weight of a row.

_PIECE = 4_096
# Families that are multiplied at once: their matrices fit into the cache of a processor.


@dataclass(frozen=True, slots=True)
class _Side:
    """An attribute of a table of pairs: column ``column`` of the codes, whose codes have the ``bins``."""

    column: Fragment
    bins: IntArray
    size: int

    @classmethod
    def of(cls, domain: Domain, packs: Sequence[Pack], name: str, bins: Map | None) -> _Side:
        attribute = domain.index(name)
        (held,) = (pack for pack in range(len(packs)) if attribute in packs[pack])
        sizes = [domain.attributes[position].size for position in packs[held]]
        digits = np.indices(sizes)[packs[held].index(attribute)].reshape(-1)
        found = digits if bins is None else np.array(bins)[digits]
        size = domain.attributes[attribute].size if bins is None else max(bins) + 1
        return cls(Fragment(f"p{held}"), found.astype(np.int64), size)


class SiblingSums:
    """Adds up tables of pairs over chunks of codes, whose families follow one another.

    Args:
        domain: the public domain.
        packs: positions of attributes; the first of a pack is the most significant digit of its codes.
        queries: two attributes each, which may be the same, of few bins; they were checked.
    """

    def __init__(self, domain: Domain, packs: Sequence[Pack], queries: Sequence[MarginalQuery]) -> None:
        self._pairs = [tuple(zip(query.attrs, query.maps or (None, None), strict=True)) for query in queries]
        self._sides = {side: _Side.of(domain, packs, *side) for pair in self._pairs for side in pair}
        self._cells = {one.column: len(one.bins) for one in self._sides.values()}
        self._sums = [np.zeros(query.shape(domain), dtype=np.int64) for query in queries]
        self.columns = [_FAMILY, _ROWS, _WEIGHT, *self._cells]
        """What chunks have."""
        self._open = np.zeros((len(self.columns), 0), dtype=np.int64)

    def add(self, codes: Mapping[str, NDArray[Any]]) -> None:
        """Count the rows that follow. The last family waits: the next chunk may have rows of it.

        Raises:
            InternalError: a code is wrong, or the rows of a family do not follow one another.
        """
        rows = np.concatenate([self._open, self._weighing(codes)], axis=1)
        rows = rows[:, np.argsort(rows[0], kind="stable")]  # in a chunk rows may have any order
        starts = _starts(rows)
        for start, stop in pairwise([*starts[:-1:_PIECE], *starts[-1:]]):
            self._add(rows[:, start:stop])
        self._open = rows[:, starts[-1] :] if len(starts) else rows

    def tables(self) -> list[IntArray]:
        """For each query an int64 array of its full shape; nothing is added afterwards.

        Raises:
            InternalError: the rows of a family do not follow one another.
        """
        if self._open.size:
            self._add(self._open)
        return self._sums

    def _weighing(self, codes: Mapping[str, NDArray[Any]]) -> IntArray:
        """The rows whose pairs weigh something, a row per column."""
        family, number, weight = (whole(codes[column]) for column in self.columns[:3])
        packed = [whole_codes(codes[column], cells) for column, cells in self._cells.items()]
        weighs = (number > 1) & (weight >= number - 1)
        return np.stack([family, number, weight, *packed])[:, weighs]

    def _add(self, rows: IntArray) -> None:
        """Count whole families."""
        starts = _starts(rows)
        sizes = np.diff(starts, append=rows.shape[1])
        if not np.array_equal(np.repeat(sizes, sizes), rows[1]):
            raise InternalError("the rows of a family do not follow one another")
        weights = rows[2] // (rows[1] - 1)
        family = np.repeat(np.arange(len(sizes)), sizes)
        codes = {side: one.bins[rows[self.columns.index(one.column)]] for side, one in self._sides.items()}
        counts, weighted = dict[Any, NDArray[np.float64]](), dict[Any, NDArray[np.float64]]()
        for side, one in self._sides.items():
            cells = family * one.size + codes[side]
            counts[side] = _summed(cells, (len(sizes), one.size)).astype(np.float64)
            weighted[side] = counts[side] * weights[starts, None]
        for (first, second), sums in zip(self._pairs, self._sums, strict=True):
            themselves = codes[first] * self._sides[second].size + codes[second]
            pairs = counts[first].T @ weighted[second] - _summed(themselves, sums.shape, weights)
            sums += pairs.astype(np.int64)


def _starts(rows: IntArray) -> IntArray:
    """Where a family begins."""
    return np.flatnonzero(np.diff(rows[0], prepend=rows[0, :1] - 1))


def _summed(cells: IntArray, shape: tuple[int, ...], weights: IntArray | None = None) -> NDArray[Any]:
    """Rows by cell, or their weights, which are whole."""
    return np.bincount(cells, weights, minlength=shape[0] * shape[1]).reshape(shape)
