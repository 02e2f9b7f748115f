"""Charts in SVG, drawn in one unit a pixel; each has a title and a description in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from dpsyn_sql.common.notices import printable
from dpsyn_sql.report.html.element import Html, element, joined, shortened

_WIDTH = 340
_LABEL, _FIGURE, _ROW = 128, 54, 20
_LETTERS, _TOGETHER = 16, 36
_HEIGHT, _FOOT = 120, 20
_CELL, _SIDE = 18, 150


@dataclass(frozen=True, slots=True)
class Bar:
    """One value with the ends of its interval, all in the same unit; ``low`` and ``high`` are equal to
    ``value`` where no error is known. ``figure``: the value in words. ``aside``: drawn in another colour, of
    bars that go across. ``tick``: what the axis of upright bars says in place of the label."""

    label: str
    value: float
    low: float
    high: float
    figure: str
    aside: bool = False
    tick: str = ""


@dataclass(frozen=True, slots=True)
class Cell:
    """Of a heat map: strength 0 to 1, and how it is known. A full square is measured, a small one is
    modelled, an empty frame is independent, and a blank is not computed."""

    strength: float
    kind: Literal["measured", "modelled", "independent", "unknown"]
    words: str


def bars(title: str, description: str, items: Sequence[Bar], most: float = 0.0) -> Html:
    """Bars that go across, one a line, from 0 to the largest end of an interval, or to ``most`` if that is
    more."""
    most = max(most, *(item.high for item in items), 0.0)
    scale = _scale(_WIDTH - _LABEL - _FIGURE, most)
    lines = []
    for place, item in enumerate(items):
        y, start = place * _ROW, float(_LABEL)
        lines += [
            element("text", _label(item.label, _LETTERS), x=_LABEL - 6, y=y + 14, text_anchor="end"),
            element(
                "rect",
                x=start,
                y=y + 4,
                width=max(0.0, item.value) * scale,
                height=_ROW - 8,
                class_="other" if item.aside else "bar",
            ),
            *_whisker(start + item.low * scale, start + item.high * scale, y + _ROW / 2, item),
            element("text", item.figure, x=_WIDTH, y=y + 14, text_anchor="end", class_="soft"),
        ]
    return picture(title, description, _WIDTH, max(1, len(items)) * _ROW, *lines)


def columns(title: str, description: str, items: Sequence[Bar]) -> Html:
    """Bars that go up, side by side, for values in order; the first, middle and last are named below."""
    most = max((item.high for item in items), default=0.0)
    scale = _scale(_HEIGHT - 8, most)
    step = _WIDTH / max(1, len(items))
    gap = min(1.0, step / 8)
    parts = []
    for place, item in enumerate(items):
        height, middle = max(0.0, item.value) * scale, (place + 0.5) * step
        parts.append(
            element(
                "rect",
                element("title", f"{item.label}: {item.figure}"),
                x=place * step + gap,
                y=_HEIGHT - height,
                width=step - 2 * gap,
                height=height,
                class_="bar",
            )
        )
        if item.high > item.low:
            low, high = (_HEIGHT - max(0.0, end) * scale for end in (item.low, item.high))
            parts.append(element("line", x1=middle, x2=middle, y1=high, y2=low, class_="error"))
    parts.append(element("line", x1=0, x2=_WIDTH, y1=_HEIGHT, y2=_HEIGHT, class_="axis"))
    for place in _named_below(items):
        anchor = "start" if place == 0 else "end" if place == len(items) - 1 else "middle"
        x = {"start": 0.0, "middle": (place + 0.5) * step, "end": float(_WIDTH)}[anchor]
        parts.append(
            element(
                "text",
                _label(_tick(items[place]), _LETTERS),
                x=x,
                y=_HEIGHT + 15,
                text_anchor=anchor,
                class_="soft",
            )
        )
    return picture(title, description, _WIDTH, _HEIGHT + _FOOT, *parts)


def _scale(room: float, most: float) -> float:
    """Pixels per unit; 0 if nothing can be drawn to scale."""
    scale = room / most if most > 0 else 0.0
    return scale if math.isfinite(scale) and math.isfinite(most) else 0.0


def _tick(item: Bar) -> str:
    return item.tick or item.label


def _named_below(items: Sequence[Bar]) -> list[int]:
    """The first and the last, and the middle one if there is room for three names."""
    if not items:
        return []
    ends, middle = {0, len(items) - 1}, len(items) // 2
    room = sum(min(_LETTERS, len(_tick(items[place]))) for place in {*ends, middle}) <= _TOGETHER
    return sorted({*ends, middle} if room else ends)


def heat_map(title: str, description: str, names: Sequence[str], cells: Sequence[Sequence[Cell]]) -> Html:
    """The lower half of a square matrix: ``cells[i]`` has the pairs of name i with those before it. It is as
    wide as it must be; put it into what scrolls."""
    size = len(names)
    width, height = _SIDE + max(1, size) * _CELL, size * _CELL + _FOOT
    parts = []
    for row, name in enumerate(names):
        y = row * _CELL
        parts.append(
            element(
                "text", f"{row + 1} ", _label(name, _LETTERS + 2), x=_SIDE - 6, y=y + 13, text_anchor="end"
            )
        )
        parts.append(
            element(
                "text",
                str(row + 1),
                x=_SIDE + (row + 0.5) * _CELL,
                y=size * _CELL + 13,
                text_anchor="middle",
                class_="soft",
            )
        )
        parts += [_square(_SIDE + place * _CELL, y, cell) for place, cell in enumerate(cells[row])]
    return picture(title, description, width, height, *parts)


def _square(x: float, y: float, cell: Cell) -> Html:
    inset = {"measured": 1, "modelled": 5, "independent": 6, "unknown": 8}[cell.kind]
    strength = min(1.0, max(0.0, cell.strength))
    filled = cell.kind in ("measured", "modelled")
    return joined(
        element("rect", x=x, y=y, width=_CELL - 1, height=_CELL - 1, class_="grid") if filled else None,
        element(
            "rect",
            element("title", cell.words),
            x=x + inset,
            y=y + inset,
            width=_CELL - 1 - 2 * inset,
            height=_CELL - 1 - 2 * inset,
            class_="bar" if filled else "grid",
            fill_opacity=0.06 + 0.94 * strength if filled else None,
        ),
    )


def picture(title: str, description: str, width: float, height: float, *children: Html) -> Html:
    """A drawing of its own size that shrinks to the place it is put in."""
    return element(
        "svg",
        element("title", title),
        element("desc", description),
        *children,
        viewBox=f"0 0 {width:g} {height:g}",
        width=float(width),
        height=float(height),
        role="img",
        aria_label=f"{title}. {description}",
    )


def _whisker(low: float, high: float, y: float, item: Bar) -> list[Html]:
    if not item.high > item.low:
        return []
    low = max(float(_LABEL), low)
    return [
        element("line", x1=low, x2=high, y1=y, y2=y, class_="error"),
        *(element("line", x1=end, x2=end, y1=y - 3, y2=y + 3, class_="error") for end in (low, high)),
    ]


def _label(text: str, most: int) -> Html:
    """A name in a picture, where ``bdi`` does not exist."""
    return joined(shortened(printable(text, lines=False), most))
