"""The part of the page about columns: a card with a picture and facts of each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from dpsyn_sql.domain.attributes import Attribute, edge_ticks
from dpsyn_sql.report.html.charts import Bar, bars
from dpsyn_sql.report.html.charts import columns as upright
from dpsyn_sql.report.html.element import Html, named, shortened
from dpsyn_sql.report.html.page import table
from dpsyn_sql.report.public.exactness import TWO_SIDED
from dpsyn_sql.report.public.figures import (
    ColumnFigures,
    Group,
    histogram,
    largest,
    position,
    single_codes,
    special,
)
from dpsyn_sql.report.public.words import (
    origin_words,
    percent,
    rounded_up,
    rows_words,
    type_words,
    value_words,
)

_MOST_CATEGORIES = 20
_MOST_BARS = 40
_FEW = 12
"""Up to so many values of a number have a line each, as categories have."""


@dataclass(frozen=True, slots=True)
class Card:
    """What is shown of a column. ``note``: below its picture. ``beside``: a picture of rows in no range."""

    name: str
    type: str
    sql_type: str
    together: list[str]
    picture: Html
    note: str
    beside: Html | None
    facts: list[str]
    origin: str
    numbers: Html


def card_of(figures: ColumnFigures, lost: str, share: float | None) -> Card:
    """The card of a column.

    Args:
        figures: of the column.
        lost: what it lost, in words.
        share: part of the budget that learning its values took, if any.
    """
    attribute = figures.attribute
    several = [column.name for column in attribute.columns]
    shown, picture, note, beside = _picture(figures)
    facts = (_summary(figures), _exactness(figures), f"{lost[:1].upper()}{lost[1:]}." if lost else "")
    return Card(
        name=attribute.name,
        type=type_words(attribute),
        sql_type="" if attribute.leaves is not None else attribute.sql_type[:60],
        together=several if several != [attribute.name] else [],
        picture=picture,
        note=note,
        beside=beside,
        facts=[text for text in facts if text],
        origin=origin_words(attribute, share),
        numbers=_numbers(figures, shown),
    )


def _picture(figures: ColumnFigures) -> tuple[list[Group], Html, str, Html | None]:
    """What is shown, the picture, a note on it and a picture of what is in no range."""
    attribute, aside = figures.attribute, special(figures)
    if attribute.kind == "categorical" or (attribute.regular <= _FEW and _single_values(attribute)):
        if attribute.kind == "categorical":
            shown, rest = largest(figures, _MOST_CATEGORIES)
            aside = [*([rest] if rest else []), *aside]
        else:
            shown = single_codes(figures)
        return [*shown, *aside], bars(*_titles(figures), _bars(figures, shown, aside)), "", None
    found = histogram(figures, _MOST_BARS)
    aside = [*found.beyond, *aside]
    made = _bars(figures, found.bars, ())
    drawn = upright(*_titles(figures), made)
    title = f"{attribute.name[:80]}: rows that are not in the picture above"
    most = max(one.high for one in made)
    beside = bars(title, "On the same scale.", _bars(figures, (), aside), most) if aside else None
    return [*found.bars, *aside], drawn, _note(figures, found.beyond), beside


def _note(figures: ColumnFigures, beyond: Sequence[Group]) -> str:
    whole = figures.total or 1.0
    cut = " and ".join(f"{percent(one.rows / whole)} are {one.words}" for one in beyond)
    return f"A long tail is cut off: of the rows {cut}." if cut else ""


def _single_values(attribute: Attribute) -> bool:
    """Whether every bin holds one value."""
    return attribute.type.discrete and all(low + 1 >= high for low, high in pairwise(edge_ticks(attribute)))


def _titles(figures: ColumnFigures) -> tuple[str, str]:
    known = "with 95 % intervals" if figures.error_of != "none" else "without intervals"
    name = shortened(figures.attribute.name, 80)
    return f"Shares of rows by {name}", f"Estimates of the model in per cent of all rows, {known}."


def _bars(figures: ColumnFigures, shown: Sequence[Group], aside: Sequence[Group]) -> list[Bar]:
    whole = figures.total or 1.0
    return [_bar(one, whole) for one in shown] + [_bar(one, whole, aside=True) for one in aside]


def _bar(group: Group, whole: float, *, aside: bool = False) -> Bar:
    share = group.rows / whole
    half = TWO_SIDED * group.error / whole if math.isfinite(group.error) else 0.0
    return Bar(group.words, share, max(0.0, share - half), share + half, percent(share), aside, group.tick)


def _summary(figures: ColumnFigures) -> str:
    """Mean and quartiles."""
    found = position(figures)
    if found is None:
        return ""
    low, middle, high = map(value_words, found.quartiles)
    mean = "" if found.mean is None else f"Mean {value_words(found.mean)}. "
    if low == high:
        return f"{mean}Half of the rows or more have the value {low}."
    return f"{mean}Half of the rows are between {low} and {high}; the middle one is {middle}."


def _exactness(figures: ColumnFigures) -> str:
    error = figures.typical_error
    if not math.isfinite(error):
        return "No error is known: these figures come from the model alone."
    rows = TWO_SIDED * error
    part = f" ({percent(rows / figures.total)} of all rows)" if figures.total > 0 else ""
    words = "Right to about" if figures.error_of == "estimate" else "Noise in a count:"
    return f"{words} ±{rows_words(rounded_up(rows))} rows{part}."


def _numbers(figures: ColumnFigures, shown: Sequence[Group]) -> Html:
    whole = figures.total or 1.0
    rows = [
        (
            named(one.words, 120),
            rows_words(one.rows),
            f"±{rows_words(TWO_SIDED * one.error)}" if math.isfinite(one.error) else "unknown",
            percent(one.rows / whole),
        )
        for one in shown
    ]
    title = f"Rows by {shortened(figures.attribute.name, 80)}: estimate, 95 % interval, share"
    return table(title, ["value", "rows", "±", "share"], rows, numbers=3)
