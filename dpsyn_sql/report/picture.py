"""A picture of where a release's rows lie: its leaves and their density, from the model alone.

matplotlib is loaded here and nowhere else (the extra ``plot``). Nothing is read but the model, so a picture
is as public as the release.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Sequence
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpsyn_sql.domain.types import SqlType, from_tick
from dpsyn_sql.errors import InputError
from dpsyn_sql.fit.model import MarginalModel
from dpsyn_sql.report.spread import Spread, spread_over

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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
    (_draw_map if len(spread.places) == 2 else _draw_line)(figure, axes, spread)
    axes.set_title(title, loc="left", fontsize=10)
    return figure


def write_picture(figure: Figure, path: str | Path) -> None:
    """Write a picture as its ending says; it holds no date.

    Raises:
        InputError: another ending than .svg, .png or .pdf, or the file cannot be written.
    """
    place = Path(path)
    check_ending(place)
    dates = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(place.suffix.lower())
    try:
        figure.savefig(place, dpi=160, metadata=dates)
        written = True
    except OSError:
        written = False
    if not written:
        raise InputError(f"{place} cannot be written: give a file in a folder that exists and that you own")


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
    outlined = spread.whole and len(left) <= _MOST_OUTLINED
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
    names = [spread.points.columns[place].name for place in spread.places]
    rest = f"{len(spread.rows):,} leaves" if spread.whole else "all leaves summed"
    for what, rows in (("outside of the box", spread.outside), ("without a value", spread.missing)):
        rest += f"; {rows:,.0f} rows {what}" if rows >= 0.5 else ""
    axes.set_xlabel(f"{names[across]}\n{rest}")
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
    names = [spread.points.columns[place].name.lower() for place in spread.places]
    return all(any(part in name for part in parts) for name, parts in zip(names, wanted, strict=True))


def _kind(spread: Spread, column: int) -> SqlType:
    return spread.points.axes[spread.places[column]].kind


def _limits(spread: Spread, column: int) -> tuple[float, float]:
    axis = spread.points.axes[spread.places[column]]
    low, high = _values(axis.kind, np.array([axis.low, axis.high + axis.kind.discrete], dtype=np.float64))
    return float(low), float(high)


def _values(kind: SqlType, ends: Any) -> Any:
    """Ends of boxes as a picture takes them: numbers, days for dates and moments, hours for times."""
    if not kind.discrete:
        return ends
    found = [from_tick(kind, int(end)) for end in ends]
    if kind.family == "time":
        return np.array([one.hour + one.minute / 60 + one.second / 3600 for one in found])  # type: ignore[union-attr]
    if found and isinstance(found[0], date | datetime):
        return np.array(_loaded("matplotlib.dates").date2num(found), dtype=np.float64)
    return np.array([float(one) for one in found])  # type: ignore[arg-type]
