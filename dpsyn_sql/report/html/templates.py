"""Pages are jinja2 templates: what they print is text and is escaped, and only a template has markup.

Names and values come from databases and files. They are text, never markup; no control character of theirs
reaches the page, and none of theirs turns the direction of the text around it.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from dpsyn_sql.common.notices import printable
from dpsyn_sql.errors import InternalError
from dpsyn_sql.report.html.charts import LETTERS, named_below, scale_of


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
    own = {"label": label, "named": named, "named_below": named_below, "px": pixels, "scale_of": scale_of}
    environment.filters |= own | names
    environment.globals |= own | names
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
