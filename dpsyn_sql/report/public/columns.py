"""The part of the page about columns: a picture and facts of each."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from dpsyn_sql.report.html.charts import Bar, bars
from dpsyn_sql.report.html.charts import columns as upright
from dpsyn_sql.report.html.element import Html, element, joined, named
from dpsyn_sql.report.html.page import folded, paragraph, table
from dpsyn_sql.report.public.accuracy import TWO_SIDED
from dpsyn_sql.report.public.figures import (
    ColumnFigures,
    Group,
    largest,
    merged,
    position,
    special,
)
from dpsyn_sql.report.public.lost import lost_words
from dpsyn_sql.report.public.spending import Spending
from dpsyn_sql.report.public.words import (
    origin_words,
    percent,
    rounded_up,
    rows_words,
    type_words,
    value_words,
)

MOST_CATEGORIES = 20
_MOST_BINS = 40
_FEW = 12
"""Up to so many ranges of an ordered column have a line each."""


def column_cards(
    figures: Sequence[ColumnFigures], facts: Mapping[str, Any], spending: Spending | None
) -> Html:
    """A card for each column."""
    lost = {str(one["name"]): one for one in _losses(facts)}
    shares = {} if spending is None else spending.columns
    cards = (
        _card(
            one,
            lost_words(lost.get(one.attribute.name, {}), one.attribute),
            shares.get(one.attribute.name),
        )
        for one in figures
    )
    return element("div", *cards, class_="cards")


def _losses(facts: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    found: Sequence[Mapping[str, Any]] = (facts.get("losses") or {}).get("columns", ())
    return found


def _card(figures: ColumnFigures, lost: str, share: float | None) -> Html:
    attribute = figures.attribute
    shown, rest, picture = _picture(figures)
    several = [column.name for column in attribute.columns]
    together = several if several != [attribute.name] else []
    return element(
        "article",
        element("h3", named(attribute.name, 80)),
        paragraph(
            f"{type_words(attribute)} ",
            element("span", f"({attribute.sql_type[:60]})", class_="soft")
            if attribute.leaves is None
            else None,
        ),
        paragraph("Columns: ", *_listed(together)) if together else None,
        picture,
        _summary(figures),
        _exactness(figures),
        paragraph(lost) if lost else None,
        paragraph(origin_words(attribute, share), class_="soft"),
        folded("The same in numbers", _numbers(figures, shown, rest)),
        class_="card",
    )


def _listed(names: Sequence[str]) -> list[Html]:
    return [joined(", " if place else "", named(name, 60)) for place, name in enumerate(names)]


def _picture(figures: ColumnFigures) -> tuple[list[Group], Group | None, Html]:
    """What is shown, what is left out, and the picture."""
    attribute = figures.attribute
    aside = special(figures)
    if attribute.kind == "categorical":
        shown, rest = largest(figures, MOST_CATEGORIES)
        drawn = bars(*_titles(figures), _bars(figures, shown, rest, aside))
        return [*shown, *aside], rest, element("figure", drawn)
    if attribute.regular <= _FEW:
        shown = merged(figures, _FEW)
        return (
            [*shown, *aside],
            None,
            element("figure", bars(*_titles(figures), _bars(figures, shown, None, aside))),
        )
    shown = merged(figures, _MOST_BINS)
    made = _bars(figures, shown, None, ())
    drawn = upright(*_titles(figures), made)
    note = "Each bar is one range of values, from small to large; ranges can be of unequal width."
    title = f"{figures.attribute.name[:80]}: rows in no range"
    most = max(one.high for one in made)
    beside = bars(title, "On the same scale.", _bars(figures, (), None, aside), most) if aside else None
    return [*shown, *aside], None, element("figure", drawn, element("figcaption", note), beside)


def _titles(figures: ColumnFigures) -> tuple[str, str]:
    known = "with 95 % intervals" if figures.error_of != "none" else "without intervals"
    name = figures.attribute.name if len(figures.attribute.name) <= 80 else figures.attribute.name[:79] + "…"
    return f"Shares of rows by {name}", f"Estimates of the model in per cent of all rows, {known}."


def _bars(
    figures: ColumnFigures, shown: Sequence[Group], rest: Group | None, aside: Sequence[Group]
) -> list[Bar]:
    whole = figures.total or 1.0
    made = [_bar(one, whole) for one in shown]
    made += [_bar(one, whole, aside=True) for one in ([rest] if rest else [])]
    return made + [_bar(one, whole, aside=True) for one in aside]


def _bar(group: Group, whole: float, *, aside: bool = False) -> Bar:
    share = group.rows / whole
    half = TWO_SIDED * group.error / whole if math.isfinite(group.error) else 0.0
    return Bar(group.words, share, max(0.0, share - half), share + half, percent(share), aside, group.tick)


def _summary(figures: ColumnFigures) -> Html | None:
    """Mean and quartiles."""
    found = position(figures)
    if found is None:
        return None
    low, middle, high = map(value_words, found.quartiles)
    mean = "" if found.mean is None else f"Mean {value_words(found.mean)}. "
    if low == high:
        return paragraph(f"{mean}Half of the rows or more have the value {low}.")
    return paragraph(f"{mean}Half of the rows are between {low} and {high}; the middle one is {middle}.")


def _exactness(figures: ColumnFigures) -> Html:
    error = figures.typical_error
    if not math.isfinite(error):
        return paragraph("No error is known: these figures come from the model alone.")
    rows = TWO_SIDED * error
    part = f" ({percent(rows / figures.total)} of all rows)" if figures.total > 0 else ""
    if figures.error_of == "estimate":
        return paragraph(f"Right to about ±{rows_words(rounded_up(rows))} rows{part}.")
    return paragraph(f"Noise in a count: ±{rows_words(rounded_up(rows))} rows{part}.")


def _numbers(figures: ColumnFigures, shown: Sequence[Group], rest: Group | None) -> Html:
    whole = figures.total or 1.0
    rows = [
        (
            named(one.words, 120),
            rows_words(one.rows),
            f"±{rows_words(TWO_SIDED * one.error)}" if math.isfinite(one.error) else "unknown",
            percent(one.rows / whole),
        )
        for one in [*shown, *([rest] if rest else [])]
    ]
    title = figures.attribute.name if len(figures.attribute.name) <= 80 else figures.attribute.name[:79] + "…"
    return table(
        f"Rows by {title}: estimate, 95 % interval, share", ["value", "rows", "±", "share"], rows, numbers=3
    )
