"""A whole page and its parts: sections, tables, lists, foldable parts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from dpsyn_sql.report.html.element import Html, element, joined

_ALONE = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
"""The browser loads nothing for the page and runs nothing in it."""


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a page with a heading. ``name`` is its place in links."""

    name: str
    heading: str
    content: Html


def page(
    title: str, opening: Html, sections: Sequence[Section], *, closing: Html | None = None, banner: str = ""
) -> str:
    """A whole document.

    Args:
        title: text.
        opening: what comes before the list of sections.
        sections: in order.
        closing: what comes at the end.
        banner: text across the top of the screen and of every printed page; its beginning is before the
        title.
    """
    links = element(
        "nav",
        element("ul", *(element("li", _link(one.name, one.heading)) for one in sections)),
        aria_label="Sections of this page",
    )
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_ALONE),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="referrer", content="no-referrer"),
        element("title", f"{banner.split(':')[0]}: {title}" if banner else title),
        _style(),
    )
    body = element(
        "body",
        element("a", "Skip to the content", class_="skip", href="#content"),
        element("div", banner, class_="banner", role="note") if banner else None,
        element("header", element("h1", title), opening, links),
        element("main", *map(_section, sections), id="content", tabindex=-1),
        element("footer", closing) if closing else None,
    )
    return f"<!DOCTYPE html>\n{element('html', head, body, lang='en')}\n"


@cache
def _style() -> Html:
    """The style has no text of anybody else, and a page must not escape it."""
    return element("style", Html(Path(__file__).with_name("style.css").read_text(encoding="utf-8")))


def _section(one: Section) -> Html:
    heading = element("h2", one.heading, id=f"{one.name}-heading")
    return element("section", heading, one.content, id=one.name, aria_labelledby=f"{one.name}-heading")


def _link(name: str, text: str) -> Html:
    return element("a", text, href=f"#{name}")


def paragraph(*children: str | None, class_: str | None = None) -> Html:
    """A paragraph."""
    return element("p", *children, class_=class_)


def bullets(items: Iterable[str]) -> Html:
    """A list without order."""
    return element("ul", *(element("li", item) for item in items))


def folded(summary: str, *children: str | None) -> Html:
    """A part that the reader opens with a click or the keyboard."""
    return element("details", element("summary", summary), *children)


def box(*children: str | None, warning: bool = False) -> Html:
    """A part that stands out."""
    return element("div", *children, class_="box warn" if warning else "box")


def facts(pairs: Iterable[tuple[str, str]]) -> Html:
    """Short facts, each with its name."""
    return element(
        "dl",
        *(element("div", element("dt", name), element("dd", value)) for name, value in pairs),
        class_="facts",
    )


def table(
    caption: str, columns: Sequence[str], rows: Iterable[Sequence[str | None]], numbers: int = 0
) -> Html:
    """A table with a caption and headers; the first column names its row.

    Args:
        caption: what the table shows.
        columns: their names.
        rows: cells; None is an empty one.
        numbers: how many columns at the end hold numbers and are flush right.
    """
    words = len(columns) - numbers

    def kind(place: int) -> str | None:
        return "number" if place >= words else None

    head = element(
        "tr", *(element("th", name, scope="col", class_=kind(place)) for place, name in enumerate(columns))
    )
    body = [
        element(
            "tr",
            element("th", row[0], scope="row"),
            *(element("td", cell, class_=kind(place)) for place, cell in enumerate(row[1:], 1)),
        )
        for row in rows
    ]
    whole = element(
        "table", element("caption", caption), element("thead", head), element("tbody", joined(*body))
    )
    return scrolled(whole, caption)


def scrolled(content: Html, label: str) -> Html:
    """What may be wider than the screen: it scrolls by itself, also with the keyboard."""
    return element("div", content, class_="wide", tabindex=0, role="region", aria_label=label)
