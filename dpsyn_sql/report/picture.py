"""Where the rows of a release lie along one or two columns of a point, and a picture of it.

matplotlib is loaded here and nowhere else (the extra ``plot``). Nothing is read but the model, so a picture
is as public as the release.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.attributes.leaf_values import by_level
from dpsyn_sql.attributes.leaves import node_array
from dpsyn_sql.attributes.points import Points
from dpsyn_sql.attributes.trees import Leaves
from dpsyn_sql.attributes.types import SqlType, from_tick
from dpsyn_sql.errors import InputError
from dpsyn_sql.fit.network import MarginalModel
from dpsyn_sql.source.names import listed

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_FINEST = 9
"""Halvings of a column in a picture of columns that are not the whole point: 512 cells."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Rows by box. ``lows``, ``highs``: float64[boxes, columns], the ends of each box as ``Points.boxes``
    gives them (ticks of discrete types, upper ends made exclusive); ``rows``: float64[boxes].

    ``exact``: the boxes are the leaves themselves, else cells of a grid that sum over the other columns.
    ``outside`` and ``missing``: rows outside the box, and without a value.
    """

    points: Points
    positions: tuple[int, ...]
    lows: NDArray[np.float64]
    highs: NDArray[np.float64]
    rows: NDArray[np.float64]
    exact: bool
    outside: float
    missing: float


def spread_over(model: MarginalModel, names: Sequence[str]) -> Spread:
    """Rows along the columns ``names`` of a point, or along all columns of the one point that is named.

    Raises:
        InputError: they are no one or two columns of one point.
    """
    attribute, leaves, part, points, positions = _found(model.domain, names)
    by_code = model.project((attribute.name,))
    rows = _rows_of_leaves(leaves, by_code[: attribute.regular])
    missing = float(by_code[-1]) if attribute.nullable else 0.0
    outside = float(by_code[attribute.regular :].sum()) - missing
    exact = len(positions) == len(points.columns) and len(leaves.hierarchies) == 1
    if exact:
        lows, highs = _leaves(leaves, part, points)
        lows, highs = lows[:, list(positions)], highs[:, list(positions)]
    else:
        lows, highs, rows = _grid(leaves, part, points, positions, rows)
    return Spread(points, positions, lows, highs, rows, exact, outside, missing)


def _found(domain: Domain, names: Sequence[str]) -> tuple[Attribute, Leaves, int, Points, tuple[int, ...]]:
    """The attribute and its leaves, which of its hierarchies, and the positions of the columns in it."""
    candidates: list[str] = []
    for attribute in domain.attributes:
        if attribute.leaves is None:
            continue
        for part, points in enumerate(attribute.leaves.hierarchies):
            if not isinstance(points, Points):
                continue
            columns = [column.name for column in points.columns]
            candidates += [points.name, *columns]
            if list(names) == [points.name] and len(columns) <= 2:
                return attribute, attribute.leaves, part, points, tuple(range(len(columns)))
            if 1 <= len(names) <= 2 and len(set(names)) == len(names) and set(names) <= set(columns):
                positions = tuple(columns.index(name) for name in names)
                return attribute, attribute.leaves, part, points, positions
    drawable = listed(tuple(dict.fromkeys(candidates)))
    there = f"this release has {drawable}" if candidates else "this release has no point"
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
    for level, indices in by_level(leaves.levels[part]).items():
        for column, (low, high) in enumerate(points.boxes(nodes[indices], level)):
            lows[indices, column] = low
            highs[indices, column] = high + points.axes[column].kind.discrete
    return lows, highs


def _grid(
    leaves: Leaves, part: int, points: Points, positions: tuple[int, ...], rows: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Rows by cell of a grid over some columns: a leaf's rows evenly over the cells that it covers."""
    finest = min(_FINEST, max(leaves.levels[part]))
    size, dims = 2**finest, len(positions)
    change = np.zeros((size + 1,) * dims)
    nodes = node_array(points, leaves.nodes[part])
    for level, indices in by_level(leaves.levels[part]).items():
        cells = points.cells(nodes[indices], level)
        first = [cells[axis] << (finest - level) if level < finest else cells[axis] >> (level - finest)
                 for axis in positions]  # fmt: skip
        wide = 1 << max(0, finest - level)
        each = rows[indices] / wide**dims
        for corner in np.ndindex((2,) * dims):
            at = tuple(start + wide * side for start, side in zip(first, corner, strict=True))
            np.add.at(change, at, each * (-1) ** sum(corner))
    density = change
    for axis in range(dims):
        density = np.cumsum(density, axis=axis)
    inner = density[(slice(size),) * dims]
    occupied = np.stack(np.nonzero(inner > 1e-9 * max(1.0, float(rows.sum()))), axis=1)
    ends = [points.axes[position].bounds(occupied[:, i], finest) for i, position in enumerate(positions)]
    lows = np.stack([low for low, _ in ends], axis=1).astype(np.float64)
    highs = np.stack(
        [
            high + points.axes[position].kind.discrete
            for position, (_, high) in zip(positions, ends, strict=True)
        ],
        axis=1,
    ).astype(np.float64)
    return lows, highs, inner[tuple(occupied.T)]


# -- the picture --------------------------------------------------------------------------------------

ENDINGS = (".svg", ".png", ".pdf")
_MOST_OUTLINED = 20_000
_COLOURS = "YlGnBu"
_LATITUDE, _LONGITUDE = ("lat",), ("lon", "lng")


def picture(model: MarginalModel, names: Sequence[str], title: str) -> Figure:
    """Leaves and density along one or two columns of a point.

    Raises:
        InputError: ``names`` are no one or two columns of one point, or matplotlib is missing.
    """
    spread = spread_over(model, [names] if isinstance(names, str) else list(names))
    figures = _loaded("matplotlib.figure")
    figure: Figure = figures.Figure(figsize=(7.2, 6.4), layout="constrained")
    axes = figure.add_subplot()
    (_draw_map if len(spread.positions) == 2 else _draw_line)(figure, axes, spread)
    axes.set_title(title, loc="left", fontsize=10)
    return figure


def write_picture(figure: Figure, path: str | Path) -> None:
    """Write a picture as its ending says; it holds no date.

    Raises:
        InputError: another ending than .svg, .png or .pdf, or the file cannot be written.
    """
    file = Path(path)
    check_ending(file)
    dates = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(file.suffix.lower())
    try:
        figure.savefig(file, dpi=160, metadata=dates)
        written = True
    except OSError:
        written = False
    if not written:
        raise InputError(f"{file} cannot be written: give a file in a folder that exists and that you own")


def check_ending(path: Path) -> None:
    """
    Raises:
        InputError: no ending of a picture.
    """
    if path.suffix.lower() not in ENDINGS:
        raise InputError(f"{path} has no ending of a picture: use {', '.join(ENDINGS)}")


def _loaded(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        pass
    raise InputError("A picture needs the package matplotlib: pip install 'dpsyn_sql[plot]'")


def _draw_map(figure: Figure, axes: Axes, spread: Spread) -> None:
    """Rectangles in the colour of their density, by powers of ten."""
    across, up = _upright(spread)
    edges = [
        [_values(_kind(spread, column), ends[:, column]) for ends in (spread.lows, spread.highs)]
        for column in (across, up)
    ]
    (left, right), (bottom, top) = edges
    area = (right - left) * (top - bottom)
    density = np.where(spread.rows > 0, spread.rows / area, np.nan)
    corners = np.stack([left, bottom, right, bottom, right, top, left, top], axis=1).reshape(-1, 4, 2)
    collections, colours = _loaded("matplotlib.collections"), _loaded("matplotlib.colors")
    outlined = spread.exact and len(left) <= _MOST_OUTLINED
    boxes = collections.PolyCollection(
        corners,
        array=density,
        cmap=_COLOURS,
        edgecolors="#00000030" if outlined else "face",
        linewidths=0.15 if outlined else 0.1,
    )
    if np.isfinite(density).any():
        most = float(np.nanmax(density))
        boxes.set_norm(colours.LogNorm(max(float(np.nanmin(density)), most / 1e5), most))
    axes.add_collection(boxes)
    axes.set_xlim(*_limits(spread, across))
    axes.set_ylim(*_limits(spread, up))
    if (across, up) != (0, 1) or _is_map(spread):
        axes.set_aspect(1 / max(0.05, math.cos(math.radians(float(np.mean(axes.get_ylim()))))))
    _name(axes, spread, across, up)
    figure.colorbar(boxes, ax=axes, label="rows per unit of area (of the model)", shrink=0.8)


def _draw_line(figure: Figure, axes: Axes, spread: Spread) -> None:
    """Steps: rows per unit of the column."""
    kind = _kind(spread, 0)
    lows, highs = _values(kind, spread.lows[:, 0]), _values(kind, spread.highs[:, 0])
    order = np.argsort(lows)
    axes.bar(
        lows[order],
        (spread.rows / (highs - lows))[order],
        (highs - lows)[order],
        align="edge",
        color="#41b6c4",
        edgecolor="#00000030",
        linewidth=0.15,
    )
    axes.set_xlim(*_limits(spread, 0))
    axes.set_ylabel("rows per unit (of the model)")
    _name(axes, spread, 0, None)


def _name(axes: Axes, spread: Spread, across: int, up: int | None) -> None:
    names = [spread.points.columns[position].name for position in spread.positions]
    caption = f"{len(spread.rows):,} leaves" if spread.exact else "all leaves summed"
    for where, rows in (("outside of the box", spread.outside), ("without a value", spread.missing)):
        caption += f"; {rows:,.0f} rows {where}" if rows >= 0.5 else ""
    axes.set_xlabel(f"{names[across]}\n{caption}")
    for column, axis in ((across, axes.xaxis), (up, axes.yaxis)):
        if column is not None and _kind(spread, column).family in ("date", "timestamp"):
            axis.axis_date()
    if up is not None:
        axes.set_ylabel(names[up])


def _upright(spread: Spread) -> tuple[int, int]:
    """Which column goes across and which up: of a latitude and a longitude north is up, else as given."""
    return (1, 0) if _names_begin(spread, (_LATITUDE, _LONGITUDE)) else (0, 1)


def _is_map(spread: Spread) -> bool:
    return _names_begin(spread, (_LONGITUDE, _LATITUDE))


def _names_begin(spread: Spread, wanted: tuple[tuple[str, ...], tuple[str, ...]]) -> bool:
    names = [spread.points.columns[position].name.lower() for position in spread.positions]
    return all(
        any(part in name for part in beginnings) for name, beginnings in zip(names, wanted, strict=True)
    )


def _kind(spread: Spread, column: int) -> SqlType:
    return spread.points.axes[spread.positions[column]].kind


def _limits(spread: Spread, column: int) -> tuple[float, float]:
    axis = spread.points.axes[spread.positions[column]]
    low, high = _values(axis.kind, np.array([axis.low, axis.high + axis.kind.discrete], dtype=np.float64))
    return float(low), float(high)


def _values(kind: SqlType, ends: Any) -> Any:
    """Ends of boxes as a picture takes them: numbers, days for dates and moments, hours for times."""
    if not kind.discrete:
        return ends
    values = [from_tick(kind, int(end)) for end in ends]
    if kind.family == "time":
        return np.array([value.hour + value.minute / 60 + value.second / 3600 for value in values])  # type: ignore[union-attr]
    if values and isinstance(values[0], date | datetime):
        return np.array(_loaded("matplotlib.dates").date2num(values), dtype=np.float64)
    return np.array([float(value) for value in values])  # type: ignore[arg-type]
