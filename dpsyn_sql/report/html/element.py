"""Elements of a page. All text is escaped here, and nothing outside of two lists can be made.

Names and values come from databases and files. They are text, never markup; no control character of theirs
reaches the page, and none of theirs turns the direction of the text around it.
"""

from __future__ import annotations

import math

from markupsafe import Markup, escape

from dpsyn_sql.common.notices import printable
from dpsyn_sql.errors import InternalError


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


TAGS = _words(
    "a article bdi body caption code dd desc details div dl dt em figcaption figure footer g h1 h2 h3 head "
    "header html li line main meta nav ol p rect section small span strong style summary svg table "
    "tbody td text th thead title tr ul"
)
"""All elements that a page may have: none loads anything or runs a script."""

ATTRIBUTES = _words(
    "aria-hidden aria-label aria-labelledby charset class colspan content fill-opacity height href "
    "http-equiv id lang name open role rx scope tabindex text-anchor transform viewBox width x x1 x2 y "
    "y1 y2"
)
"""All attributes that an element may have; ``href`` leads to a place on the same page only."""

_EMPTY = frozenset({"line", "meta", "rect"})


Html = Markup
"""Markup that ``element`` or a template made. Any other text is escaped before it becomes part of a page."""


def element(tag: str, *children: str | None, **attributes: str | float | bool | None) -> Html:
    """An element with its children: text, which is escaped, or ``Html``; None is nothing.

    Names of attributes are written with underscores (``class_``, ``aria_label``); None or False leaves one
    out, True gives one without a value.
    """
    if tag not in TAGS:
        raise InternalError(f"a page has no element {tag}")
    opening = "".join(
        _attribute(name.rstrip("_").replace("_", "-"), value) for name, value in attributes.items()
    )
    if tag in _EMPTY and not children:
        return Html(f"<{tag}{opening}></{tag}>" if tag != "meta" else f"<{tag}{opening}>")
    return Html(f"<{tag}{opening}>{joined(*children)}</{tag}>")


def joined(*children: str | None) -> Html:
    """Children without an element around them."""
    return Html("".join(_escaped(child) for child in children if child is not None))


def named(text: str, most: int | None = None) -> Html:
    """A name or a value of somebody else, kept apart from the direction of the text around it.

    Args:
        text: anything.
        most: characters to show; longer text ends with an ellipsis.
    """
    return element("bdi", shortened(printable(text, lines=False), most))


def shortened(text: str, most: int | None) -> str:
    """``text``, or its beginning and an ellipsis if it has more than ``most`` characters."""
    return text if most is None or len(text) <= most else f"{text[: most - 1]}…"


def _escaped(child: str) -> str:
    return child if isinstance(child, Html) else escape(printable(child))


def _attribute(name: str, value: str | float | bool | None) -> str:
    if value is None or value is False:
        return ""
    if name not in ATTRIBUTES:
        raise InternalError(f"a page has no attribute {name}")
    if value is True:
        return f" {name}"
    text = _number(value) if isinstance(value, int | float) else printable(value, lines=False)
    if name == "href" and not text.startswith("#"):
        raise InternalError("a link of a page leads to the page itself")
    return f' {name}="{escape(text)}"'


def _number(value: float) -> str:
    """At most two decimal places."""
    if not math.isfinite(value):
        raise InternalError("a picture has finite coordinates")
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
