"""From the result of one GROUP BY to dense marginals, in exact int64 arithmetic. PRIVATE."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.errors import InternalError

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
    flat = np.zeros(len(counts), dtype=np.int64)
    for axis, size in zip(codes, dense.shape, strict=True):
        flat *= size
        flat += whole_codes(axis, size)
    np.add.at(dense.reshape(-1), flat, whole(counts))


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
