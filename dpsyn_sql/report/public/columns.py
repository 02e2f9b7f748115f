"""The part of the page about columns: shares with errors, mean and quartiles, a card with a picture."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.attributes.attribute import Attribute, edge_ticks
from dpsyn_sql.attributes.types import Edge, SqlType, from_tick
from dpsyn_sql.fit.network import MarginalModel
from dpsyn_sql.fit.variances import TWO_SIDED, Variances, largest_variance
from dpsyn_sql.planning.queries import NoisyMarginal
from dpsyn_sql.report.fitted import marginal_figures
from dpsyn_sql.report.html.templates import Bar, shortened
from dpsyn_sql.report.labels import (
    code_words,
    edge_words,
    origin_words,
    percent,
    range_words,
    rounded_up,
    rows_words,
    type_words,
    value_words,
)
from dpsyn_sql.report.losses import ends_of, even_pieces

FloatArray = NDArray[np.float64]
ErrorOf = Literal["estimate", "noise", "none"]

_TAIL = 0.01
"""Of each end of a column so many rows may lie beyond the picture, if they would take most of it."""

_SECONDS = (1, 5, 15, 60, 300, 900, 3600, 3 * 3600, 6 * 3600, 24 * 3600)
"""Widths of a bar of times, up to a day; longer ones are whole days."""


@dataclass(frozen=True, slots=True)
class ColumnFigures:
    """``rows``: float64[codes], estimates of the model. ``errors``: float64[codes], their standard errors in
    rows, NaN where none is known. ``error_of``: whether these are errors of the estimates, of the noisy
    counts, or unknown."""

    attribute: Attribute
    words: tuple[str, ...]
    rows: FloatArray
    errors: FloatArray
    error_of: ErrorOf

    @property
    def total(self) -> float:
        """Rows of all codes."""
        return float(self.rows.sum())

    @property
    def typical_error(self) -> float:
        """The median standard error of a code in rows; NaN if none is known."""
        finite = self.errors[np.isfinite(self.errors)]
        return float(np.median(finite)) if finite.size else math.nan

    def group(self, code: int) -> Group:
        """A code by itself."""
        return Group(self.words[code], float(self.rows[code]), float(self.errors[code]))


def column_figures(
    model: MarginalModel, measured: Sequence[NoisyMarginal], variances: Variances, attribute: Attribute
) -> ColumnFigures:
    """The one-way table of a column."""
    figures = marginal_figures(model, measured, [attribute.name], variances)
    rows, noise, estimate_errors = (
        np.asarray(figures[name], dtype=np.float64)
        for name in ("estimate", "standard_error", "estimate_error")
    )
    errors, error_of = (
        (estimate_errors, "estimate") if np.isfinite(estimate_errors).any() else (noise, "noise")
    )
    if rows.sum() >= 1:  # no count is further off than 0 or all rows
        errors = np.minimum(errors, np.sqrt(largest_variance(rows, float(rows.sum()))))
    errors_of: ErrorOf = error_of if np.isfinite(errors).any() else "none"  # type: ignore[assignment]
    return ColumnFigures(attribute, tuple(code_words(attribute)), rows, errors, errors_of)


@dataclass(frozen=True, slots=True)
class Group:
    """Rows that are shown as one: their words, number and standard error (NaN if unknown). ``tick``: where a
    range begins, or where the last one ends."""

    words: str
    rows: float
    error: float
    tick: str = ""


@dataclass(frozen=True, slots=True)
class Histogram:
    """``bars``: ranges of equal width, ascending. ``beyond``: what lies below the first and above the last,
    where a long tail is cut off."""

    bars: list[Group]
    beyond: list[Group]


def histogram(figures: ColumnFigures, most: int) -> Histogram:
    """The rows of a column of bins over at most ``most`` ranges of equal width: those of each bin where they
    are written, evenly over the pieces of its fill.

    Bins often hold equal numbers of rows: drawn side by side they would all look alike. A range has the
    errors of all bins that reach into it: how the rows of a bin lie in it is not known. The noise of measured
    codes is independent; errors of estimates may go together, so they are added.
    """
    attribute = figures.attribute
    kind, rows = attribute.type, figures.rows[: attribute.regular]
    code, low, high, part = (np.array(piece) for piece in zip(*even_pieces(attribute), strict=True))
    high = np.maximum(high, np.nextafter(low, np.inf))
    start, end = _shown(low, high, part * np.maximum(rows, 0.0)[code])
    readable = 0 if kind.discrete else 1e-6 * max(abs(start), abs(end))
    width = _bar_width(kind, max(readable, (end - start) / most))
    if kind.family != "date":
        start = max(width * math.floor(start / width), kind.low if kind.temporal else -math.inf)
    number = max(1, math.ceil((end - start) / width))
    cuts = start + width * np.arange(number + 1)
    with np.errstate(over="ignore"):  # a piece may be as narrow as one double
        before = part * np.clip((cuts[:, None] - low) / (high - low), 0, 1)  # of each piece, by cut
    shares = np.zeros((number + 2, attribute.regular))
    cumulated = np.vstack([np.zeros(len(low)), before, part])
    np.add.at(shares.T, code, np.diff(cumulated, axis=0).T)
    rows_in_range, errors = shares @ rows, figures.errors[: attribute.regular]
    edges, ends = np.array(ends_of(attribute)), np.array([-np.inf, *cuts, np.inf])
    touched = (edges[:-1] < ends[1:, None]) & (edges[1:] > ends[:-1, None])
    error_of_code = np.where(touched, errors, 0.0)
    error = (
        error_of_code.sum(axis=1)
        if figures.error_of == "estimate"
        else np.sqrt((error_of_code**2).sum(axis=1))
    )
    names = [_edge_words(kind, cut) for cut in cuts]
    bars = [
        Group(
            range_words(kind, cuts[index], cuts[index + 1]),
            float(rows_in_range[index + 1]),
            float(error[index + 1]),
            names[index] if index < number - 1 or (kind.discrete and width == 1) else names[-1],
        )
        for index in range(number)
    ]
    outside = ((0, f"below {names[0]}"), (-1, f"{names[-1]} and above"))
    beyond = [
        Group(words, float(rows_in_range[index]), float(error[index]))
        for index, words in outside
        if shares[index].sum() > 1e-9
    ]
    return Histogram(bars, beyond)


def _shown(low: FloatArray, high: FloatArray, mass: FloatArray) -> tuple[float, float]:
    """Which values a picture shows: all, without a tail of few rows that would take most of it."""
    start, end = float(low.min()), float(high.max())
    if not mass.sum() > 0:
        return start, end
    reached = np.cumsum(mass) / mass.sum()
    inner = float(low[np.searchsorted(reached, _TAIL)])
    outer = float(high[min(int(np.searchsorted(reached, 1 - _TAIL)), len(high) - 1)])
    return (
        inner if inner - start > outer - inner else start,
        outer if end - outer > outer - inner else end,
    )


def _bar_width(kind: SqlType, least: float) -> float:
    """A width from ``least`` on that is easy to read, in ticks for a discrete type."""
    if kind.temporal:
        day = kind.day
        short = (max(1, seconds * day // _SECONDS[-1]) for seconds in _SECONDS)
        return next((ticks for ticks in short if ticks >= least), math.ceil(least / day) * day)
    power = 10.0 ** math.floor(math.log10(max(least, 1e-300)))
    width = next(power * step for step in (1, 2, 5, 10) if power * step >= least * (1 - 1e-9))
    return max(1.0, width) if kind.discrete else width


def _edge_words(kind: SqlType, cut: float) -> str:
    return edge_words(from_tick(kind, int(cut)) if kind.discrete else float(cut))


def largest(figures: ColumnFigures, most: int) -> tuple[list[Group], Group | None]:
    """The largest categories, and all others together (of no known error)."""
    order = np.argsort(-figures.rows[: figures.attribute.regular], kind="stable")
    shown = [figures.group(int(code)) for code in order[:most]]
    smaller = order[most:]
    if smaller.size == 0:
        return shown, None
    return shown, Group(f"and {smaller.size:,} more", float(figures.rows[smaller].sum()), math.nan)


def single_codes(figures: ColumnFigures) -> list[Group]:
    """Every bin by itself, in order."""
    return [figures.group(code) for code in range(figures.attribute.regular)]


def special(figures: ColumnFigures) -> list[Group]:
    """Other values and no value, where a column has such codes."""
    attribute = figures.attribute
    codes = (attribute.other_code, attribute.null_code)
    return [figures.group(code) for code in codes if code is not None]


# -- mean and quartiles ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Position:
    """Of a numeric or temporal column: quartiles, and the mean of numbers (None for times)."""

    mean: float | None
    quartiles: tuple[Edge, Edge, Edge]


def position(figures: ColumnFigures) -> Position | None:
    """Mean and quartiles of the values that synthetic rows have; None for other columns and without rows."""
    attribute = figures.attribute
    rows = np.maximum(figures.rows[: attribute.regular], 0.0)
    if attribute.kind == "categorical" or not rows.sum() > 0:
        return None
    code, low, high, part = (np.array(piece) for piece in zip(*even_pieces(attribute), strict=True))
    mass = part * rows[code]
    step = 1.0 if attribute.type.discrete else 0.0
    reached = np.cumsum(mass) / mass.sum()
    quartiles = []
    for wanted in (0.25, 0.5, 0.75):
        index = min(int(np.searchsorted(reached, wanted)), len(mass) - 1)
        before = float(reached[index - 1]) if index else 0.0
        within = (wanted - before) / max(float(reached[index]) - before, 1e-300)
        tick = float(low[index]) + min(1.0, max(0.0, within)) * float(high[index] - low[index])
        quartiles.append(_value(attribute, min(tick, float(high[index]) - step)))
    mean = float(mass @ ((low + np.maximum(low, high - step)) / 2) / mass.sum())
    shown = None if attribute.type.temporal else _number(attribute, mean)
    return Position(shown, (quartiles[0], quartiles[1], quartiles[2]))


def _value(attribute: Attribute, tick: float) -> Edge:
    return from_tick(attribute.type, math.floor(tick)) if attribute.type.discrete else tick


def _number(attribute: Attribute, tick: float) -> float:
    """A mean in the unit of the column: decimals count ticks of their last digit."""
    if attribute.type.family != "decimal":
        return tick
    return tick * float(from_tick(attribute.type, 1))  # type: ignore[arg-type]


# -- cards --------------------------------------------------------------------------------------------

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
        return max(bar.high for bar in self.bars)


def card_of(figures: ColumnFigures, losses: Mapping[str, Any], share: float | None) -> Card:
    """The card of a column.

    Args:
        figures: of the column.
        losses: its part of ``facts_of_losses``: what it lost, and the verdict.
        share: part of the budget that learning its values took, if any.
    """
    attribute, total = figures.attribute, figures.total or 1.0
    several = [column.name for column in attribute.columns]
    upright, shown, beyond, special_groups = _groups(figures)
    bars, aside = (
        [_bar(group, total) for group in shown],
        [_bar(group, total, aside=True) for group in special_groups],
    )
    cut = " and ".join(f"{percent(group.rows / total)} are {group.words}" for group in beyond)
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
        bars=bars if upright else [*bars, *aside],
        beside=aside if upright else [],
        note=f"A long tail is cut off: of the rows {cut}." if cut else "",
        facts=[text for text in facts if text],
        origin=origin_words(attribute, share),
        numbers=[_numbers(group, total) for group in (*shown, *special_groups)],
    )


def _groups(figures: ColumnFigures) -> tuple[bool, Sequence[Group], Sequence[Group], Sequence[Group]]:
    """Whether bars stand upright, those that are ranges or values, those of them that are cut off, and all
    that stand aside."""
    attribute, aside = figures.attribute, special(figures)
    if attribute.kind == "categorical":
        largest_ones, smaller = largest(figures, _MOST_CATEGORIES)
        return False, largest_ones, [], [*([smaller] if smaller else []), *aside]
    if attribute.regular <= _FEW and _single_values(attribute):
        return False, single_codes(figures), [], aside
    ranges = histogram(figures, _MOST_BARS)
    return True, ranges.bars, ranges.beyond, [*ranges.beyond, *aside]


def _single_values(attribute: Attribute) -> bool:
    """Whether every bin holds one value."""
    return attribute.type.discrete and all(low + 1 >= high for low, high in pairwise(edge_ticks(attribute)))


def _bar(group: Group, total: float, *, aside: bool = False) -> Bar:
    share = group.rows / total
    half = TWO_SIDED * group.error / total if math.isfinite(group.error) else 0.0
    return Bar(group.words, share, max(0.0, share - half), share + half, percent(share), aside, group.tick)


def _summary(figures: ColumnFigures) -> str:
    """Mean and quartiles."""
    summary = position(figures)
    if summary is None:
        return ""
    low, middle, high = map(value_words, summary.quartiles)
    mean = "" if summary.mean is None else f"Mean {value_words(summary.mean)}. "
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


def _numbers(group: Group, total: float) -> tuple[str, str, str, str]:
    error = f"±{rows_words(TWO_SIDED * group.error)}" if math.isfinite(group.error) else "unknown"
    return group.words, rows_words(group.rows), error, percent(group.rows / total)
