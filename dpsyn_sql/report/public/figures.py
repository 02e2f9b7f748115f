"""What is known of each column: shares with errors, and mean and quartiles of numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.domain.attributes import Attribute, edge_ticks, fill_ticks
from dpsyn_sql.domain.types import Edge, from_tick
from dpsyn_sql.report.public.words import code_words

if TYPE_CHECKING:
    from dpsyn_sql.report.result import Release

FloatArray = NDArray[np.float64]
ErrorOf = Literal["estimate", "noise", "none"]


@dataclass(frozen=True, slots=True)
class ColumnFigures:
    """``rows``: float64[codes], estimates of the model. ``errors``: float64[codes], their standard errors in
    rows, NaN where none is known. ``error_of``: whether these are errors of the estimates, of the noisy
    counts, or unknown. ``noise``: the standard error of a noisy count, or NaN."""

    attribute: Attribute
    words: tuple[str, ...]
    rows: FloatArray
    errors: FloatArray
    error_of: ErrorOf
    noise: float

    @property
    def total(self) -> float:
        """Rows of all codes."""
        return float(self.rows.sum())

    @property
    def typical_error(self) -> float:
        """The median standard error of a code in rows; NaN if none is known."""
        known = self.errors[np.isfinite(self.errors)]
        return float(np.median(known)) if known.size else math.nan


def column_figures(release: Release, attribute: Attribute) -> ColumnFigures:
    """The one-way table of a column."""
    found = release.marginal([attribute.name]).iloc[:, 1:]
    rows = found["estimate"].to_numpy(dtype=np.float64)
    noise = found["standard_error"].to_numpy(dtype=np.float64)
    own = found["estimate_error"].to_numpy(dtype=np.float64)
    errors, error_of = (own, "estimate") if np.isfinite(own).any() else (noise, "noise")
    known: ErrorOf = error_of if np.isfinite(errors).any() else "none"  # type: ignore[assignment]
    single = float(noise[0]) if noise.size else math.nan
    return ColumnFigures(attribute, tuple(code_words(attribute)), rows, errors, known, single)


@dataclass(frozen=True, slots=True)
class Group:
    """Codes that are shown as one: their words, rows and standard error (NaN if unknown). ``tick``: where a
    range begins, or where the last one ends."""

    words: str
    rows: float
    error: float
    codes: int = 1
    tick: str = ""


def merged(figures: ColumnFigures, most: int) -> list[Group]:
    """The bins of an ordered column in order, neighbours together so that there are at most ``most``.

    The noise of measured codes is independent; errors of estimates may go together, so they are added.
    """
    count = figures.attribute.regular
    ends = [*range(0, count, max(1, -(-count // most))), count]
    groups = []
    for start, end in pairwise(ends):
        errors = figures.errors[start:end]
        error = float(errors.sum() if figures.error_of == "estimate" else np.sqrt((errors**2).sum()))
        first, last = figures.words[start], figures.words[end - 1]
        words = first if end - start == 1 else f"{_begin(first)} to {_finish(last)}"
        tick = _finish(last) if end == count else _begin(first)
        groups.append(Group(words, float(figures.rows[start:end].sum()), error, end - start, tick))
    return groups


def largest(figures: ColumnFigures, most: int) -> tuple[list[Group], Group | None]:
    """The largest categories, and all others together (of no known error)."""
    order = np.argsort(-figures.rows[: figures.attribute.regular], kind="stable")
    shown = [
        Group(figures.words[code], float(figures.rows[code]), float(figures.errors[code]))
        for code in order[:most]
    ]
    rest = order[most:]
    if rest.size == 0:
        return shown, None
    return shown, Group(f"and {rest.size:,} more", float(figures.rows[rest].sum()), math.nan, rest.size)


def special(figures: ColumnFigures) -> list[Group]:
    """Other values and no value, where a column has such codes."""
    attribute = figures.attribute
    return [
        Group(figures.words[code], float(figures.rows[code]), float(figures.errors[code]))
        for code in (attribute.other_code, attribute.null_code)
        if code is not None
    ]


def _begin(words: str) -> str:
    return words.split(" up to ")[0].split(" to ")[0]


def _finish(words: str) -> str:
    return words.split(" up to ")[-1].split(" to ")[-1]


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
    low, high, mass = (np.array(part) for part in zip(*_pieces(attribute, rows), strict=True))
    step = 1.0 if attribute.type.discrete else 0.0
    reached = np.cumsum(mass) / mass.sum()
    quartiles = []
    for wanted in (0.25, 0.5, 0.75):
        place = min(int(np.searchsorted(reached, wanted)), len(mass) - 1)
        before = float(reached[place - 1]) if place else 0.0
        part = (wanted - before) / max(float(reached[place]) - before, 1e-300)
        tick = float(low[place]) + min(1.0, max(0.0, part)) * float(high[place] - low[place])
        quartiles.append(_value(attribute, min(tick, float(high[place]) - step)))
    mean = float(mass @ ((low + np.maximum(low, high - step)) / 2) / mass.sum())
    shown = None if attribute.type.temporal else _number(attribute, mean)
    return Position(shown, (quartiles[0], quartiles[1], quartiles[2]))


def _pieces(attribute: Attribute, rows: FloatArray) -> Iterator[tuple[float, float, float]]:
    """Ends of even pieces with their rows, ascending; ticks for discrete types, upper ends exclusive."""
    discrete = attribute.type.discrete
    edges: Sequence[float] = (
        [float(tick) for tick in edge_ticks(attribute)]
        if discrete
        else [float(edge) for edge in attribute.edges]  # type: ignore[arg-type]
    )
    fill: Sequence[Sequence[float]] = ()
    if attribute.fill:
        fill = fill_ticks(attribute) if discrete else attribute.fill  # type: ignore[assignment]
    for place, (low, high) in enumerate(pairwise(edges)):
        cuts = [float(cut) for cut in fill[place]] if fill else [low, high]
        if len(cuts) == 1:
            yield cuts[0], cuts[0] + discrete, float(rows[place])
            continue
        for first, last in pairwise(cuts):
            yield first, max(last, first + discrete), float(rows[place]) / (len(cuts) - 1)


def _value(attribute: Attribute, tick: float) -> Edge:
    return from_tick(attribute.type, math.floor(tick)) if attribute.type.discrete else tick


def _number(attribute: Attribute, tick: float) -> float:
    """A mean in the unit of the column: decimals count ticks of their last digit."""
    if attribute.type.family != "decimal":
        return tick
    return tick * float(from_tick(attribute.type, 1))  # type: ignore[arg-type]
