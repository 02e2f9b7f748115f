"""Charts as small SVG files: one or several panels, one legend, the same look everywhere (matplotlib).

What a paper printed is black and dashed with diamonds, baselines are grey and dotted, and what was measured
here has a colour.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

Points = Sequence[tuple[float, float]]
Source = Literal["ours", "paper", "baseline"]

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#7a5195", "#8c6d31")
"""Told apart by colour-blind readers too; with more lines they begin again, dashed."""

PAPER, BASELINE = "#000000", "#777777"
DASHES: Mapping[Source, tuple[Any, ...]] = {
    "paper": ("--", (0, (1, 1)), "-."),
    "baseline": (":", "-.", (0, (1, 4))),
}
MARKERS: Mapping[Source, tuple[str, ...]] = {"paper": ("D", "s", "^"), "baseline": ("x", "+", "1")}

WIDE, HIGH, NARROWEST = 4.3, 2.8, 6.5
"""Inches of one panel, and of the narrowest figure."""

LEGEND_LINE, LETTERS = 0.2, 13
"""Inches of a line of the legend, and letters of it in an inch."""

SPREAD = 4.0
"""An axis is logarithmic if its values are above 0 and the largest is more than so many times the least."""

SETTINGS = {
    "svg.fonttype": "none",
    "svg.hashsalt": "dpsyn_sql",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Arial", "sans-serif"],
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.grid": True,
    "grid.color": "#e3e3e3",
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


@dataclass(frozen=True)
class Line:
    """Points in any order; those that are not finite are left out."""

    name: str
    points: Points
    source: Source = "ours"


@dataclass(frozen=True)
class Panel:
    """One chart. ``levels`` are lines across it; ``ticks`` name places of the horizontal axis."""

    title: str
    across: str
    up: str
    lines: Sequence[Line]
    levels: Mapping[str, tuple[float, Source]] = field(default_factory=dict)
    ticks: Mapping[float, str] = field(default_factory=dict)


def write_chart(path: Path, title: str, across: str, up: str, lines: Mapping[str, Points]) -> None:
    """One panel with a line for each series."""
    write_panels(path, "", [Panel(title, across, up, [Line(name, points) for name, points in lines.items()])])


def write_panels(path: Path, title: str, panels: Sequence[Panel], columns: int = 3) -> None:
    """All panels in rows of ``columns``, with one legend for all of them below."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    across = min(columns, len(panels))
    down, wide = math.ceil(len(panels) / across), max(WIDE * across, NARROWEST)
    with mpl.rc_context(SETTINGS):
        figure = Figure(figsize=(wide, HIGH * down), layout="constrained")
        looks: dict[str, dict[str, object]] = {}
        for place, panel in enumerate(panels):
            _draw(figure.add_subplot(down, across, place + 1), panel, looks)
        if title:
            figure.suptitle(title, fontsize=11)
        handles = {
            label: handle
            for axes in figure.axes
            for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
        }
        if handles:
            longest = max(map(len, handles))
            beside = min(len(handles), max(1, int(LETTERS * wide / (longest + 8))))
            figure.set_figheight(HIGH * down + LEGEND_LINE * math.ceil(len(handles) / beside))
            figure.legend(
                handles.values(),
                handles.keys(),
                loc="outside lower center",
                ncols=beside,
                frameon=False,
            )
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, format="svg", metadata={"Date": None})
    path.write_text("\n".join(line.rstrip() for line in path.read_text().splitlines()) + "\n")


def _look(name: str, source: Source, looks: dict[str, dict[str, object]]) -> dict[str, object]:
    """How a series looks: the same in every panel."""
    if name not in looks:
        number = sum(look["zorder"] == _ORDER[source] for look in looks.values())
        if source == "ours":
            colour, dash, marker = COLOURS[number % len(COLOURS)], "-", "o"
            dash = "--" if number >= len(COLOURS) else dash
        else:
            colour = PAPER if source == "paper" else BASELINE
            dash = DASHES[source][number % len(DASHES[source])]
            marker = MARKERS[source][number % len(MARKERS[source])]
        looks[name] = {"color": colour, "linestyle": dash, "marker": marker, "zorder": _ORDER[source]}
    return looks[name]


_ORDER: Mapping[Source, float] = {"baseline": 2.0, "paper": 3.0, "ours": 4.0}


def _draw(axes: Any, panel: Panel, looks: dict[str, dict[str, object]]) -> None:
    axes.set_title(panel.title)
    axes.set_xlabel(panel.across)
    axes.set_ylabel(panel.up)
    places, heights = [], []
    for line in panel.lines:
        points = sorted(point for point in line.points if all(map(math.isfinite, point)))
        if not points:
            continue
        axes.plot(
            *zip(*points, strict=True),
            label=line.name,
            markersize=4,
            linewidth=1.6,
            **_look(line.name, line.source, looks),
        )
        places += [x for x, _ in points]
        heights += [y for _, y in points]
    for name, (value, source) in panel.levels.items():
        look = {**_look(name, source, looks), "marker": ""}
        axes.axhline(value, label=name, linewidth=1.3, **look)
        heights.append(value)
    _scale(axes.xaxis, axes.set_xscale, places, dict(panel.ticks))
    _scale(axes.yaxis, axes.set_yscale, heights, {})


def _scale(axis: Any, set_scale: Any, values: Sequence[float], ticks: Mapping[float, str]) -> None:
    """Logarithmic where the values allow it; ticks at the values themselves if they are few."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter

    spread = bool(values) and min(values) > 0 and max(values) > SPREAD * min(values)
    if ticks:
        axis.set_major_locator(FixedLocator([*ticks]))
        axis.set_major_formatter(FuncFormatter(lambda value, _: ticks.get(value, "")))
        return
    if not spread:
        return
    set_scale("log")
    known = sorted({*values})
    if axis.axis_name == "x" and len(known) <= 12:
        apart = known[:1]
        for value in known[1:]:
            if math.log(value / apart[-1]) > math.log(known[-1] / known[0]) / 12:
                apart.append(value)
        axis.set_major_locator(FixedLocator(apart))
        axis.set_minor_locator(FixedLocator([]))
    elif max(values) < 100 * min(values):  # a power of ten alone says too little
        axis.set_minor_formatter(FuncFormatter(lambda value, _: f"{value:g}" if _leading(value) else ""))
    else:
        axis.set_minor_formatter(NullFormatter())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _leading(value: float) -> bool:
    """Whether the first digit of a minor tick is 2 or 5."""
    return round(value / 10 ** math.floor(math.log10(value))) in (2, 5)
