"""The part of the page about columns: a card with a picture and facts of each."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from dpsyn_sql.domain.attributes import Attribute, edge_ticks
from dpsyn_sql.fit.variances import TWO_SIDED
from dpsyn_sql.report.html.charts import Bar
from dpsyn_sql.report.html.templates import shortened
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
    """What is shown of a column. ``bars``: side by side if they are ``upright``; ``beside``: bars of rows in
    no range, on the scale of ``most``. ``note``: below the picture. ``numbers``: value, rows, error and share
    of each."""

    name: str
    type: str
    sql_type: str
    together: list[str]
    error_of: str
    upright: bool
    bars: list[Bar]
    beside: list[Bar]
    note: str
    facts: list[str]
    origin: str
    numbers: list[tuple[str, str, str, str]]

    @property
    def short_name(self) -> str:
        """In a title."""
        return shortened(self.name, 80)

    @property
    def most(self) -> float:
        """The largest end of an interval."""
        return max(one.high for one in self.bars)


def card_of(figures: ColumnFigures, losses: Mapping[str, Any], share: float | None) -> Card:
    """The card of a column.

    Args:
        figures: of the column.
        losses: its part of ``facts_of_losses``: what it lost, and the verdict.
        share: part of the budget that learning its values took, if any.
    """
    attribute, whole = figures.attribute, figures.total or 1.0
    several = [column.name for column in attribute.columns]
    upright, shown, beyond, rest = _groups(figures)
    bars, beside = [_bar(one, whole) for one in shown], [_bar(one, whole, aside=True) for one in rest]
    cut = " and ".join(f"{percent(one.rows / whole)} are {one.words}" for one in beyond)
    lost, verdict = str(losses.get("lost", "")), f"Verdict: {losses.get('verdict')}. {losses.get('why')}"
    facts = (
        verdict if "why" in losses else "",
        _summary(figures),
        _exactness(figures),
        f"{lost[:1].upper()}{lost[1:]}." if lost else "",
    )
    return Card(
        name=attribute.name,
        type=type_words(attribute),
        sql_type="" if attribute.leaves is not None else attribute.sql_type[:60],
        together=several if several != [attribute.name] else [],
        error_of=figures.error_of,
        upright=upright,
        bars=bars if upright else [*bars, *beside],
        beside=beside if upright else [],
        note=f"A long tail is cut off: of the rows {cut}." if cut else "",
        facts=[text for text in facts if text],
        origin=origin_words(attribute, share),
        numbers=[_numbers(one, whole) for one in (*shown, *rest)],
    )


def _groups(figures: ColumnFigures) -> tuple[bool, Sequence[Group], Sequence[Group], Sequence[Group]]:
    """Whether bars stand upright, those that are ranges or values, those of them that are cut off, and all
    that stand aside."""
    attribute, aside = figures.attribute, special(figures)
    if attribute.kind == "categorical":
        largest_ones, others = largest(figures, _MOST_CATEGORIES)
        return False, largest_ones, [], [*([others] if others else []), *aside]
    if attribute.regular <= _FEW and _single_values(attribute):
        return False, single_codes(figures), [], aside
    found = histogram(figures, _MOST_BARS)
    return True, found.bars, found.beyond, [*found.beyond, *aside]


def _single_values(attribute: Attribute) -> bool:
    """Whether every bin holds one value."""
    return attribute.type.discrete and all(low + 1 >= high for low, high in pairwise(edge_ticks(attribute)))


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


def _numbers(group: Group, whole: float) -> tuple[str, str, str, str]:
    error = f"±{rows_words(TWO_SIDED * group.error)}" if math.isfinite(group.error) else "unknown"
    return group.words, rows_words(group.rows), error, percent(group.rows / whole)
