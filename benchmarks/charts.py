"""Line charts as small SVG files: both axes logarithmic where their values allow it, a legend beside."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

Points = Sequence[tuple[float, float]]

WIDTH, HEIGHT = 720, 360
LEFT, RIGHT, TOP, BOTTOM = 70, 250, 34, 46
APART = 28
"""Marks of an axis are at least so far from each other."""

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#555555", "#000000")
"""Told apart by colour-blind readers too; with more lines they begin again, dashed."""


def write_chart(path: Path, title: str, across: str, up: str, lines: Mapping[str, Points]) -> None:
    """One line for each series, with its points marked. Points that are not finite are left out."""
    finite = {
        name: [point for point in points if all(map(math.isfinite, point))] for name, points in lines.items()
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(chart(title, across, up, {k: v for k, v in finite.items() if v}), encoding="utf-8")


def chart(title: str, across: str, up: str, lines: Mapping[str, Points]) -> str:
    """The text of an SVG file."""
    places = _Axis([x for points in lines.values() for x, _ in points], LEFT, WIDTH - RIGHT)
    heights = _Axis([y for points in lines.values() for _, y in points], HEIGHT - BOTTOM, TOP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        'font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        _text(LEFT, 20, title, size=14),
        _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, across, "middle"),
        f'<g transform="rotate(-90 16 {HEIGHT / 2})">{_text(16, HEIGHT / 2, up, "middle")}</g>',
    ]
    for value in heights.ticks():
        y = heights.place(value)
        parts.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#dddddd"/>')
        parts.append(_text(LEFT - 6, y + 4, f"{value:.3g}", "end"))
    for value in places.ticks():
        x = places.place(value)
        parts.append(f'<path d="M{x:.1f} {TOP}V{HEIGHT - BOTTOM}" stroke="#eeeeee"/>')
        parts.append(_text(x, HEIGHT - BOTTOM + 16, f"{value:.3g}", "middle"))
    for number, (name, points) in enumerate(lines.items()):
        colour = COLOURS[number % len(COLOURS)]
        dashes = ' stroke-dasharray="6 4"' if number >= len(COLOURS) else ""
        drawn = [(places.place(x), heights.place(y)) for x, y in sorted(points)]
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in drawn)
        parts.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"{dashes}/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in drawn]
        y = TOP + 10 + 18 * number
        parts.append(
            f'<path d="M{WIDTH - RIGHT + 12} {y - 4}h20" stroke="{colour}" stroke-width="2"{dashes}/>'
        )
        parts.append(_text(WIDTH - RIGHT + 38, y, name))
    return "\n".join([*parts, "</svg>", ""])


class _Axis:
    """Values between two places, by their logarithms if all are above 0 and far apart."""

    def __init__(self, values: Sequence[float], first: float, last: float) -> None:
        self.values, self.first, self.last = values, first, last
        self.logarithmic = bool(values) and min(values) > 0 and max(values) > 4 * min(values)
        scaled = [self._scaled(value) for value in values] or [0.0]
        self.low, self.high = min(scaled), max(scaled)

    def _scaled(self, value: float) -> float:
        return math.log10(value) if self.logarithmic else value

    def place(self, value: float) -> float:
        span = self.high - self.low or 1.0
        return self.first + (self._scaled(value) - self.low) / span * (self.last - self.first)

    def ticks(self) -> list[float]:
        """The values themselves if they are few, otherwise powers of ten, or five values evenly apart."""
        known = sorted(set(self.values))
        if len(known) <= 8:
            apart = known[:1]
            for value in known[1:]:
                if abs(self.place(value) - self.place(apart[-1])) >= APART:
                    apart.append(value)
            return apart
        powers = [10.0**power for power in range(math.ceil(self.low), math.floor(self.high) + 1)]
        if self.logarithmic and len(powers) > 1:
            return powers
        evenly = [self.low + part * (self.high - self.low) / 4 for part in range(5)]
        return [10**value if self.logarithmic else value for value in evenly]


def _text(x: float, y: float, text: str, anchor: str = "start", size: int = 12) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">{escape(text)}</text>'
