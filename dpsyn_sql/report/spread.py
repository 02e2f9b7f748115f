"""Where the rows of a release lie along one or two columns of a point: of its model alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.domain.attributes import Attribute, Domain
from dpsyn_sql.domain.hierarchies.base import Leaves
from dpsyn_sql.domain.hierarchies.leaves import by_level, node_array
from dpsyn_sql.domain.hierarchies.points import Points
from dpsyn_sql.errors import InputError
from dpsyn_sql.fit.model import MarginalModel
from dpsyn_sql.source.names import listed

_FINEST = 9
"""Halvings of a column in a picture of columns that are not the whole point: 512 cells."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Rows by box. ``lows``, ``highs``: float64[boxes, columns], the ends of each box as ``Points.boxes``
    gives them (ticks of discrete types, upper ends made exclusive); ``rows``: float64[boxes].

    ``whole``: the boxes are the leaves themselves, else cells of a grid that sum over the other columns.
    ``outside`` and ``missing``: rows outside the box, and without a value.
    """

    points: Points
    places: tuple[int, ...]
    lows: NDArray[np.float64]
    highs: NDArray[np.float64]
    rows: NDArray[np.float64]
    whole: bool
    outside: float
    missing: float


def spread_over(model: MarginalModel, names: Sequence[str]) -> Spread:
    """Rows along the columns ``names`` of a point, or along all columns of the one point that is named.

    Raises:
        InputError: they are no one or two columns of one point.
    """
    attribute, leaves, part, points, places = _found(model.domain, names)
    by_code = model.project((attribute.name,))
    rows = _rows_of_leaves(leaves, by_code[: attribute.regular])
    missing = float(by_code[-1]) if attribute.nullable else 0.0
    outside = float(by_code[attribute.regular :].sum()) - missing
    whole = len(places) == len(points.columns) and len(leaves.hierarchies) == 1
    if whole:
        lows, highs = _leaves(leaves, part, points)
        lows, highs = lows[:, list(places)], highs[:, list(places)]
    else:
        lows, highs, rows = _grid(leaves, part, points, places, rows)
    return Spread(points, places, lows, highs, rows, whole, outside, missing)


def _found(domain: Domain, names: Sequence[str]) -> tuple[Attribute, Leaves, int, Points, tuple[int, ...]]:
    """The attribute and its leaves, which of its hierarchies, and the places of the columns in it."""
    candidates: list[str] = []
    for attribute in domain.attributes:
        if attribute.leaves is None:
            continue
        for part, points in enumerate(attribute.leaves.hierarchies):
            if not isinstance(points, Points):
                continue
            own = [column.name for column in points.columns]
            candidates += [points.name, *own]
            if list(names) == [points.name] and len(own) <= 2:
                return attribute, attribute.leaves, part, points, tuple(range(len(own)))
            if 1 <= len(names) <= 2 and len(set(names)) == len(names) and set(names) <= set(own):
                places = tuple(own.index(name) for name in names)
                return attribute, attribute.leaves, part, points, places
    known = listed(tuple(dict.fromkeys(candidates)))
    there = f"this release has {known}" if candidates else "this release has no point"
    raise InputError(
        f"{listed(tuple(names)) if names else 'nothing'} cannot be drawn: give a point of at most two "
        f"columns, or one or two columns of one point; {there}"
    )


def _rows_of_leaves(leaves: Leaves, by_code: NDArray[np.float64]) -> NDArray[np.float64]:
    """Each code's rows over its leaves, as rows are written (``Leaves.rows``)."""
    codes, rows = np.array(leaves.codes, dtype=np.int64), np.array(leaves.rows, dtype=np.float64)
    sums, number = np.bincount(codes, rows), np.bincount(codes)
    empty = sums[codes] <= 0
    share = np.where(empty, 1 / number[codes], rows / np.where(empty, 1, sums[codes]))
    return by_code[codes] * share


def _leaves(leaves: Leaves, part: int, points: Points) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    count, width = len(leaves.codes), len(points.columns)
    lows, highs = np.empty((count, width)), np.empty((count, width))
    nodes = node_array(points, leaves.nodes[part])
    for level, places in by_level(leaves.levels[part]).items():
        for column, (low, high) in enumerate(points.boxes(nodes[places], level)):
            lows[places, column] = low
            highs[places, column] = high + points.axes[column].kind.discrete
    return lows, highs


def _grid(
    leaves: Leaves, part: int, points: Points, places: tuple[int, ...], rows: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Rows by cell of a grid over some columns: a leaf's rows evenly over the cells that it covers."""
    finest = min(_FINEST, max(leaves.levels[part]))
    size, dims = 2**finest, len(places)
    change = np.zeros((size + 1,) * dims)
    nodes = node_array(points, leaves.nodes[part])
    for level, found in by_level(leaves.levels[part]).items():
        cells = points.cells(nodes[found], level)
        first = [cells[place] << (finest - level) if level < finest else cells[place] >> (level - finest)
                 for place in places]  # fmt: skip
        wide = 1 << max(0, finest - level)
        each = rows[found] / wide**dims
        for corner in np.ndindex((2,) * dims):
            at = tuple(start + wide * side for start, side in zip(first, corner, strict=True))
            np.add.at(change, at, each * (-1) ** sum(corner))
    density = change
    for axis in range(dims):
        density = np.cumsum(density, axis=axis)
    inner = density[(slice(size),) * dims]
    kept = np.stack(np.nonzero(inner > 1e-9 * max(1.0, float(rows.sum()))), axis=1)
    ends = [points.axes[place].bounds(kept[:, i], finest) for i, place in enumerate(places)]
    lows = np.stack([low for low, _ in ends], axis=1).astype(np.float64)
    highs = np.stack(
        [high + points.axes[place].kind.discrete for place, (_, high) in zip(places, ends, strict=True)],
        axis=1,
    ).astype(np.float64)
    return lows, highs, inner[tuple(kept.T)]
