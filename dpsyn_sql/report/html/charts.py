"""What the charts of ``charts.html`` show, and what they must compute: one unit is a pixel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

LETTERS, _TOGETHER = 16, 36
"""Of a name in a picture, and of three names below it."""


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

    @property
    def below(self) -> str:
        """What the axis of upright bars says."""
        return self.tick or self.label


@dataclass(frozen=True, slots=True)
class Cell:
    """Of a heat map: strength 0 to 1, and how it is known. A full square is measured, a small one is
    modelled, an empty frame is independent, and a blank is not computed."""

    strength: float
    kind: Literal["measured", "modelled", "independent", "unknown"]
    words: str


def scale_of(items: Sequence[Bar], room: float, most: float = 0.0) -> float:
    """Pixels per unit, so that ``room`` holds the largest end of an interval, and ``most``; 0 if nothing can
    be drawn to scale."""
    most = max(most, *(item.high for item in items), 0.0)
    scale = room / most if most > 0 else 0.0
    return scale if math.isfinite(scale) and math.isfinite(most) else 0.0


def named_below(items: Sequence[Bar]) -> list[tuple[int, str]]:
    """Which upright bars have a name below them, and its anchor: the first, the last, and the middle one if
    there is room for three names."""
    if not items:
        return []
    last, middle = len(items) - 1, len(items) // 2
    room = sum(min(LETTERS, len(items[place].below)) for place in {0, middle, last}) <= _TOGETHER
    places = sorted({0, middle, last} if room else {0, last})
    return [(place, "start" if place == 0 else "end" if place == last else "middle") for place in places]
