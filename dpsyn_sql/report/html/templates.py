"""Pages are jinja2 templates: what they print is text and is escaped, and only a template has markup.

Names and values come from databases and files. They are text, never markup; no control character of theirs
reaches the page, and none of theirs turns the direction of the text around it. What the charts of
``charts.html`` show, and what they must compute, stands here too: one unit is a pixel.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import jinja2
from markupsafe import Markup

from dpsyn_sql.common.notices import printable
from dpsyn_sql.errors import InternalError

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
    room = sum(min(LETTERS, len(items[index].below)) for index in {0, middle, last}) <= _TOGETHER
    indices = sorted({0, middle, last} if room else {0, last})
    return [(index, "start" if index == 0 else "end" if index == last else "middle") for index in indices]


# -- templates ----------------------------------------------------------------------------------------


def template(path: Path, **names: Any) -> Any:
    """The macros of a template, which can import those of ``parts.html`` and ``charts.html``.

    Args:
        path: of the template.
        names: what it may use; functions also as filters.
    """
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader([path.parent, Path(__file__).parent]),
        undefined=jinja2.StrictUndefined,
        extensions=["jinja2.ext.do"],
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_text,
    )
    helpers = {"label": label, "named": named, "named_below": named_below, "px": pixels, "scale_of": scale_of}
    environment.filters |= helpers | names
    environment.globals |= helpers | names
    return environment.get_template(path.name).module


def _text(value: object) -> object:
    return value if isinstance(value, Markup) else "" if value is None else printable(str(value))


def named(value: object, most: int | None = None) -> Markup:
    """A name or a value of somebody else, kept apart from the direction of the text around it.

    Args:
        value: anything.
        most: characters to show; longer text ends with an ellipsis.
    """
    return Markup("<bdi>{}</bdi>").format(shortened(printable(str(value), lines=False), most))


def label(text: str, most: int = LETTERS) -> str:
    """A name in a picture, where ``bdi`` does not exist."""
    return shortened(printable(text, lines=False), most)


def shortened(text: str, most: int | None) -> str:
    """``text``, or its beginning and an ellipsis if it has more than ``most`` characters."""
    return text if most is None or len(text) <= most else f"{text[: most - 1]}…"


def pixels(value: float) -> str:
    """A coordinate or a length in a picture, of at most two decimal places."""
    if not math.isfinite(value):
        raise InternalError("a picture has finite coordinates")
    return f"{value:.2f}".rstrip("0").rstrip(".")
