"""PRIVATE: exact sums in numpy: of the result of a GROUP BY, of rows of codes, of pairs of rows.

Cells that a GROUP BY found, with their counts, and rows of codes, which count 1 or their weights, add up to
dense arrays of int64; marginals are summed out of these.

Many pairs of small attributes are counted as products of matrices. Every code of an attribute but the first
has an indicator: 1 in the rows with this code, 0 in the others. The product of the matrix of indicators
(rows, k) with itself is the number of rows with both codes, for all pairs at once. Its diagonal counts single
codes; the first code of each attribute gets what is left:

    encoded table -> codes, so many rows at a time -> indicators -> sums += indicators' indicators
                  -> tables: sums, differences to one-way counts and to the number of rows

Products are made in float32, for which processors have the fastest instructions, and are exact nevertheless:
a sum of zeros and ones over at most 2^24 rows, and every part of it, is an integer that float32 holds. Rows
that have weights, whole numbers, are added in float64: indicators times weights, up to a weight of 2^53. Sums
move to int64 before a sum could exceed that.

Tables of pairs of rows of one family are products of matrices too. A family has a row in the matrix of an
attribute: how many of its rows have each code. The product of two such matrices, with the weights of the
families between them, has all ordered pairs of rows of one family; pairs of a row with itself are taken out
again:

    codes, families in turn -> matrix of each attribute (families, bins) -> sums += A' v B - rows with both

Products are made in float64 and are exact nevertheless: a family adds at most twice WEIGHT to a sum, and few
families are multiplied at once.
"""

from __future__ import annotations

import math
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby, pairwise
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import ssyrk
from threadpoolctl import threadpool_limits

from dpsyn_sql.attributes.attribute import Domain
from dpsyn_sql.errors import InternalError
from dpsyn_sql.planning.queries import Map, MarginalQuery
from dpsyn_sql.sqltext.fragments import Fragment

# -- from cells to marginals ---------------------------------------------------------------------------


Pack = tuple[int, ...]

Axes = tuple[tuple[int, ...], ...]
"""For each axis of packs the places of the kept attributes, ascending."""


def scatter(codes: Sequence[NDArray[Any]], counts: NDArray[Any], shape: Sequence[int]) -> NDArray[np.int64]:
    """A dense int64 array of ``shape``; absent cells are zero.

    Args:
        codes: for each axis the codes of the cells that occur.
        counts: the rows of each of these cells.
        shape: sizes of the axes.

    Raises:
        InternalError: a code is missing, not an integer, or outside its axis.
    """
    dense = np.zeros(tuple(shape), dtype=np.int64)
    add_to(dense, codes, counts)
    return dense


def add_to(dense: NDArray[np.int64], codes: Sequence[NDArray[Any]], counts: NDArray[Any]) -> None:
    """The same, added to a contiguous array; errors as ``scatter``."""
    add_rows(
        dense, [narrow(axis, size) for axis, size in zip(codes, dense.shape, strict=True)], whole(counts)
    )


def add_rows(
    dense: NDArray[np.int64], codes: Sequence[NDArray[Any]], weights: NDArray[np.int64] | int = 1
) -> None:
    """Add rows to a contiguous array, given for each axis their codes, which ``narrow`` checked.

    ``weights``: what each row counts, or all of them. Cells are numbers of the smallest type, which halves
    the time of int64.
    """
    kind = np.min_scalar_type(dense.size - 1)
    flat, stride = np.zeros(len(codes[0]), dtype=kind), 1
    for axis, size in zip(reversed(codes), reversed(dense.shape), strict=True):
        if size > 1:
            flat += axis.astype(kind, copy=False) * kind.type(stride)
        stride *= size
    np.add.at(dense.reshape(-1), flat, weights)


def narrow(values: NDArray[Any], size: int) -> NDArray[Any]:
    """The same in the smallest unsigned type that holds them; errors as ``whole_codes``."""
    return whole_codes(values, size).astype(np.min_scalar_type(size - 1))


def marginals(
    dense: NDArray[np.int64], packs: Sequence[Sequence[int]], wanted: Iterable[Axes]
) -> Iterator[tuple[Axes, NDArray[np.int64]]]:
    """Sum the attributes that are not kept out of a GROUP BY over packs.

    Packs are reduced one after the other; marginals that keep the same attributes of the first
    packs share that work, and only one chain of intermediate arrays lives at a time.

    Args:
        dense: one axis per pack, the pack's first attribute most significant.
        packs: for each axis the sizes of its attributes.
        wanted: for each marginal and each axis the places of the attributes it keeps.

    Yields:
        Each distinct wanted marginal, with one axis per kept attribute, in pack order. It may
        share memory with ``dense``.
    """
    yield from _reduce(dense, packs, sorted(set(wanted)), 0)


def _reduce(
    array: NDArray[np.int64], packs: Sequence[Sequence[int]], wanted: Sequence[Axes], axis: int
) -> Iterator[tuple[Axes, NDArray[np.int64]]]:
    """Reduce ``axis`` for every distinct choice of kept attributes, then the axes after it."""
    if axis == len(packs):
        for kept in wanted:
            sizes = [pack[place] for pack, places in zip(packs, kept, strict=True) for place in places]
            yield kept, array.reshape(sizes)
        return
    for places, members in groupby(wanted, key=itemgetter(axis)):
        yield from _reduce(_keep(array, axis, packs[axis], places), packs, list(members), axis + 1)


def _keep(
    array: NDArray[np.int64], axis: int, sizes: Sequence[int], places: Sequence[int]
) -> NDArray[np.int64]:
    """Sum out of one axis, a mixed-radix product of ``sizes``, all but the kept places."""
    runs = [
        (kept, math.prod(sizes[place] for place in run))
        for kept, run in groupby(range(len(sizes)), key=lambda place: place in places)
    ]
    lead, trail = array.shape[:axis], array.shape[axis + 1 :]
    split = array.reshape(math.prod(lead), *(size for _, size in runs), math.prod(trail))
    dropped = tuple(number for number, (kept, _) in enumerate(runs, start=1) if not kept)
    kept_cells = math.prod(size for kept, size in runs if kept)
    summed = split.sum(axis=dropped, dtype=np.int64) if dropped else split
    return summed.reshape(*lead, kept_cells, *trail)


def whole_codes(values: NDArray[Any], size: int) -> NDArray[np.int64]:
    """A column of codes below ``size`` as int64.

    Raises:
        InternalError: a code is missing, not an integer, or outside its axis.
    """
    codes = whole(values)
    if len(codes) and not (codes.min() >= 0 and codes.max() < size):
        raise InternalError("the database returned a code outside its domain")
    return codes


def whole(values: NDArray[Any]) -> NDArray[np.int64]:
    """A column of integers as int64.

    Raises:
        InternalError: a value is missing, or not an integer.
    """
    if np.ma.is_masked(values):
        raise InternalError("the database returned a missing code")
    plain = np.ma.getdata(values)
    if len(plain) and not np.issubdtype(plain.dtype, np.integer):
        raise InternalError("the database returned a code that is not an integer")
    return plain.astype(np.int64)


# -- pairs of attributes -------------------------------------------------------------------------------


EXACT_ROWS = 2**24
"""Integers up to this one are exact in float32."""

EXACT_WEIGHT = 2**53
"""Integers up to this one are exact in float64."""

MOST_INDICATORS = 4096
"""Sums in float32 and in int64 then take 200 MB; of weights 256 MB."""

_HELD = 2**24
# Indicators held at once: 64 MB.

_NANOSECONDS_PER_PRODUCT = 0.01
_NANOSECONDS_PER_INDICATOR = 1.5
# Of wall time per row on 2 cores; a product is made for half of all pairs of indicators.

_WEIGHTED = 2.5
# As often as long for rows with weights: numbers of twice the size, and products for all pairs of indicators.


def multiply(nanoseconds: float, packs: Sequence[Pack], domain: Domain, *, weighted: bool = False) -> bool:
    """Whether products of all attributes of ``packs`` take less time than so many nanoseconds a row."""
    indicators = sum(domain.attributes[place].size - 1 for pack in packs for place in pack)
    return indicators <= MOST_INDICATORS and nanoseconds_per_row(indicators, weighted=weighted) < nanoseconds


def nanoseconds_per_row(indicators: int, *, weighted: bool = False) -> float:
    """Of wall time on 2 cores, by the number of indicators."""
    of_rows = _NANOSECONDS_PER_PRODUCT * indicators**2 + _NANOSECONDS_PER_INDICATOR * indicators
    return of_rows * (_WEIGHTED if weighted else 1.0)


class PairSums:
    """Adds up the products of indicators over chunks of codes.

    Args:
        domain: the public domain.
        packs: positions of attributes; the first of a pack is the most significant digit of its codes.
        weighted: rows count their weights, not 1.
        exact: the most that sums hold before they move; ``EXACT_ROWS``, or ``EXACT_WEIGHT``.
    """

    def __init__(
        self,
        domain: Domain,
        packs: Sequence[Pack],
        *,
        weighted: bool = False,
        exact: int | None = None,
    ) -> None:
        self._weighted = weighted
        kind: Any = np.float64 if weighted else np.float32
        self._sizes = {attribute: domain.attributes[attribute].size for pack in packs for attribute in pack}
        ends = list(accumulate((size - 1 for size in self._sizes.values()), initial=0))
        self._starts = dict(zip(self._sizes, ends[:-1], strict=True))
        self._lookups = [
            _indicators([self._sizes[attribute] for attribute in pack]).astype(kind) for pack in packs
        ]
        self._exact = exact or (EXACT_WEIGHT if weighted else EXACT_ROWS)
        self._held = 0
        self.total = 0
        """Rows that were added, or what they weigh."""
        self._single = np.zeros((ends[-1], ends[-1]), dtype=kind, order="F")
        self._sums = np.zeros(self._single.shape, dtype=np.int64)

    def add(self, codes: Sequence[NDArray[Any]], weights: NDArray[Any] | None = None) -> None:
        """Count more rows, given the codes of each pack, and their weights if they have some.

        Raises:
            InternalError: a code is missing, not an integer, or outside its pack; a weight is no whole number
                of 0 or more.
        """
        if (weights is not None) != self._weighted:
            raise InternalError("rows have weights if their sums are those of weights")
        whole_weights = None if weights is None else whole_codes(weights, EXACT_WEIGHT)
        step = max(1, min(self._exact, _HELD // max(1, len(self._sums))))
        # The only large matrices of a release: here a second thread of the library halves the time.
        with threadpool_limits(os.cpu_count(), user_api="blas"):
            for start in range(0, len(codes[0]), step):
                weights = None if whole_weights is None else whole_weights[start : start + step]
                self._add([column[start : start + step] for column in codes], weights)

    def _add(self, codes: Sequence[NDArray[Any]], weights: NDArray[np.int64] | None = None) -> None:
        rows = len(codes[0])
        added = rows if weights is None else sum(weights.tolist())
        if added > self._exact:
            raise InternalError("more rows are multiplied at once than a sum can count")
        if self._held + added > self._exact:
            self._settle()
        indicators = np.empty((len(self._sums), rows), dtype=self._single.dtype)
        place = 0
        for column, lookup in zip(codes, self._lookups, strict=True):
            whole = whole_codes(column, lookup.shape[1])
            for table in lookup:
                np.take(table, whole, out=indicators[place], mode="clip")
                place += 1
        if len(indicators) and weights is not None:
            self._single += (indicators * weights) @ indicators.T
        elif len(indicators):
            self._single = ssyrk(1.0, indicators.T, beta=1.0, c=self._single, trans=1, lower=1, overwrite_c=1)
        self._held += added
        self.total += added

    def _settle(self) -> None:
        """Move the sums to int64."""
        self._sums += self._single.astype(np.int64)
        self._single[...] = 0.0
        self._held = 0

    def tables(
        self, queries: Sequence[MarginalQuery], domain: Domain
    ) -> dict[MarginalQuery, NDArray[np.int64]]:
        """The marginals of at most two attributes, each an int64 array of its full shape."""
        self._settle()
        lower = np.tril(self._sums)
        sums = lower + np.tril(lower, -1).T
        alike: dict[tuple[int, ...], list[MarginalQuery]] = defaultdict(list)
        places = {name: place for place, name in enumerate(domain.names)}
        for query in queries:
            alike[tuple(self._sizes[places[name]] for name in query.attrs)].append(query)
        found: dict[MarginalQuery, NDArray[np.int64]] = {}
        for shape, group in alike.items():
            starts = np.array(
                [[self._starts[places[name]] for name in query.attrs] for query in group], dtype=np.int64
            )
            found.update(zip(group, self._filled(sums, starts, shape), strict=True))
        return found

    def _filled(
        self, sums: NDArray[np.int64], starts: NDArray[np.int64], shape: tuple[int, ...]
    ) -> NDArray[np.int64]:
        """Tables (n, *shape) of attributes whose indicators begin at ``starts`` (n, axes)."""
        tables = np.zeros((len(starts), *shape), dtype=np.int64)
        if not shape:
            tables[...] = self.total
            return tables
        own = [starts[:, axis, None] + np.arange(size - 1) for axis, size in enumerate(shape)]
        if len(shape) == 1:
            tables[:, 1:] = sums[own[0], own[0]]
            tables[:, 0] = self.total - tables.sum(axis=1)
            return tables
        tables[:, 1:, 1:] = sums[own[0][:, :, None], own[1][:, None, :]]
        tables[:, 1:, 0] = sums[own[0], own[0]] - tables[:, 1:, 1:].sum(axis=2)
        tables[:, 0, 1:] = sums[own[1], own[1]] - tables[:, 1:, 1:].sum(axis=1)
        tables[:, 0, 0] = self.total - tables.sum(axis=(1, 2))
        return tables


def _indicators(sizes: Sequence[int]) -> NDArray[np.float32]:
    """For each code of an attribute but its first: 1 at the codes of the pack that have it."""
    cells = math.prod(sizes)
    digits = np.unravel_index(np.arange(cells), sizes)
    told = [digit == code for digit, size in zip(digits, sizes, strict=True) for code in range(1, size)]
    return np.array(told, dtype=np.float32).reshape(len(told), cells)


# -- pairs of rows -------------------------------------------------------------------------------------


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
