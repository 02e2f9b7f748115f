"""Where drawn rows depart from the noisy answers by more than noise and sampling explain; public.

Rows are scaled to the noisy total N of the model, where each stands for w units. In a cell with x of them,
d = x - answer has the variance sd^2 of the noise, of sampling, and of rounding. Over a table, with
a = sqrt(2 / pi), b = sqrt(1 - 2 / pi), and C the number of all cells that are compared:

    moved      E = (sum |d| - a sum sd) / 2 N: the part of the rows that lie in other cells than counted
    clearness  Z = (sum |d| - a sum sd) / (b sqrt(sum sd^2))
    cell       M = max (|d| - (sqrt(2 ln 2 C) + 1) sd - w ln(2 C) / 3) / N

The last part of M is that of Bernstein's inequality for few rows in a cell.

Answers that disagree with each other by more than their noise blame nobody: of such a release nothing is
gross. Where rows follow from the row before them, noise adds up along a unit: of n rows a unit, and an error
s of a share, a column is gross only beyond GROSS + ALONG n s. docs/decisions/0077 has the limits and what
they were chosen from.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.discovery.one_look import Looked
from dpsyn_sql.fit.arrays import FloatArray
from dpsyn_sql.fit.reconstruct import deviation, interaction, projected
from dpsyn_sql.planning.queries import Map, NoisyMarginal, NoisyResidual
from dpsyn_sql.report.fitted import FittedRelease, total_error
from dpsyn_sql.report.labels import code_words
from dpsyn_sql.rows.sample.tables import DrawnRows

CELL, MOVED, CLEAR = 0.003, 0.01, 6.0
"""A one-way table departs from M or from E on, if E is as clear as that."""

PAIR_CELL, PAIR_MOVED = 0.02, 0.06
"""The same of larger tables, where the method draws the rows that were counted together."""

LOOK_CELL, LOOK_MOVED = 0.02, 0.05
"""The same of counts of discovery: a curve through them smooths what noise hides, and more."""

_LEAST_ROWS = 100
# Fewer rows (of equal weight) are not judged: nobody draws conclusions from them.

GROSS = 0.08
"""E or M from which on a column that is written is wrong, and not written."""

ALONG = 3.0
"""Errors of a share, for each row of a unit, by which rows that follow each other may depart besides: first
rows are that part of all rows, and each step passes on what noise made of them."""

_EVENLY, _FEW = 0.25, 5.0
# The variance of a number of rows that are laid out evenly, in parts of that of independent rows. Up to the
# second number of rows it is no less.

_MEAN, _SPREAD = math.sqrt(2 / math.pi), math.sqrt(1 - 2 / math.pi)
_ROUNDING = 1 / 12
_LEAST_TOTAL = 4.0  # standard errors, as of verdicts: rows in all may be noise
_DISAGREE = 3.0  # deviations beyond the largest that many cells have


@dataclass(frozen=True, slots=True)
class Departure:
    """Of a table of answers over ``attrs``. ``moved``: the part of the rows that are not where they were
    counted. ``cell``: the code or cell that is off most, in words, with its shares in the ``rows`` and as
    ``counted``, and the ``error`` of the latter. ``gross``: no such rows should be written.
    ``cause``: what explains it, in a sentence."""

    attrs: tuple[str, ...]
    moved: float
    cell: str
    rows: float
    counted: float
    error: float
    gross: bool
    cause: str = "Neither noise nor sampling explains it."

    @property
    def text(self) -> str:
        """What is wrong, in a sentence or two."""
        names = " and ".join(map(repr, self.attrs))
        if len(self.attrs) > 1:
            return (
                f"{self.moved:.0%} of the rows have other values of {names} together than was counted. "
                f"{self.cause}"
            )
        return (
            f"{self.moved:.1%} of the rows have another value of {names} than was counted: {self.cell} has "
            f"{self.rows:.1%} of them, and was counted as {self.counted:.1%} ± {100 * self.error:.1f}. "
            f"{self.cause}"
        )


def departures(
    fitted: FittedRelease, drawn: DrawnRows, *, columns: bool = True, pairs: bool
) -> tuple[Departure, ...]:
    """All of a release, the worst first.

    Args:
        fitted: with its answers.
        drawn: rows of its model.
        columns: whether rows of the method follow the one-way tables that it asks for; else none is gross.
        pairs: whether rows of the method follow the larger tables that it asks for.
    """
    total, weight = float(fitted.model.total), float(drawn.weights.sum())
    if weight**2 < _LEAST_ROWS * float(drawn.weights @ drawn.weights):
        return ()
    if weight <= 0 or total <= max(1.0, _LEAST_TOTAL * total_error(fitted.measurements)):
        return ()
    counts = [
        *(_in_units(answer, fitted.weight) for answer in fitted.answers if answer.attrs),
        *map(_of_look, fitted.looks),
    ]
    compared = [answer for answer in counts if drawn.columns.keys() >= set(answer.attrs)]
    cells = sum(answer.values.size for answer in compared)
    bound = math.sqrt(2 * math.log(2 * max(cells, 1)))
    departure_of = dict[tuple[str, ...], Departure]()
    for answer in compared:
        departure = _departure(answer, drawn, fitted.model.domain, total, bound + 1)
        if departure is not None and (len(departure.attrs) == 1 or pairs):
            departure_of[departure.attrs] = max(
                departure, departure_of.get(departure.attrs, departure), key=lambda same: same.moved
            )
    following = frozenset[str]() if fitted.families is None else fitted.families.following
    along = ALONG * drawn.weights.size / weight
    blamed = columns and any(departure.gross for departure in departure_of.values()) and agree(fitted, bound)
    written = fitted.shape.domain.names
    judged = list[Departure]()
    for departure in departure_of.values():
        gross, cause = blamed and departure.gross and departure.attrs[0] in written, ""
        if fitted.shape.never:
            cause = "Conditions of never: or CHECK may be why."
        elif following.intersection(departure.attrs) and departure.moved <= GROSS + along * departure.error:
            cause = "Rows follow from the row before them, and noise adds up along them."
        judged.append(replace(departure, gross=gross and not cause, cause=cause or departure.cause))
    return tuple(sorted(judged, key=lambda departure: -departure.moved))


@dataclass(frozen=True, slots=True)
class _Counts:
    """An answer in units: ``values`` of a table, or of its ``residual``, with noise of deviation ``sigma`` in
    each cell. ``look``: discovery counted it, and the rows are of a curve through it."""

    attrs: tuple[str, ...]
    maps: tuple[Map | None, ...]
    values: FloatArray
    sigma: FloatArray
    residual: bool = False
    look: bool = False

    @property
    def limits(self) -> tuple[float, float]:
        """M and E from which on rows depart from it."""
        if self.look:
            return LOOK_CELL, LOOK_MOVED
        return (CELL, MOVED) if len(self.attrs) == 1 else (PAIR_CELL, PAIR_MOVED)


def _in_units(answer: NoisyMarginal | NoisyResidual, weight: int) -> _Counts:
    maps = answer.maps or (None,) * len(answer.attrs)
    if isinstance(answer, NoisyResidual):
        sigma = np.full(answer.values.shape, deviation(answer) / weight)
        return _Counts(answer.attrs, maps, interaction(answer) / weight, sigma, residual=True)
    sigma = np.full(answer.values.shape, answer.sigma / weight)
    return _Counts(answer.attrs, maps, answer.values / weight, sigma)


def _of_look(look: Looked) -> _Counts:
    sigma = look.sigma * np.sqrt(look.cells)
    return _Counts((look.attr,), (look.groups,), look.values.astype(np.float64), sigma, look=True)


def _departure(
    answer: _Counts, drawn: DrawnRows, domain: Domain, total: float, bound: float
) -> Departure | None:
    """Of the rows from one answer, if it is beyond the limits; ``bound``: deviations that no cell exceeds."""
    scale = total / float(drawn.weights.sum())
    rows = _counted(answer, drawn, answer.values.shape) * scale
    compared = projected(rows) if answer.residual else rows
    expected = np.maximum(rows, 0.0 if answer.residual else answer.values)
    row = drawn.row * scale
    deviations = np.sqrt(answer.sigma**2 + row**2 * _sampled(expected / row, drawn) + _ROUNDING)
    off = np.abs(compared - answer.values)
    beyond = float(off.sum() - _MEAN * deviations.sum())
    clear = beyond / (_SPREAD * float(np.linalg.norm(deviations)))
    moved = beyond / (2 * total) if clear > CLEAR else 0.0
    single = (off - bound * deviations - row * (bound - 1) ** 2 / 6) / total
    cell, alone, (most_cell, most_moved) = float(single.max()), len(answer.attrs) == 1, answer.limits
    if cell <= most_cell and moved <= most_moved:
        return None
    worst = int(np.argmax(single))
    even = total / answer.values.size if answer.residual else 0.0  # what a residual lacks of a table
    return Departure(
        answer.attrs,
        max(moved, cell),
        _words(domain[answer.attrs[0]], answer.maps[0], worst) if alone else "",
        float(rows.flat[worst]) / total,
        max(float(answer.values.flat[worst]) + even, 0.0) / total,
        float(answer.sigma.flat[worst]) / total,
        alone and not answer.look and max(moved, cell) > GROSS,
    )


def _sampled(number: FloatArray, drawn: DrawnRows) -> FloatArray:
    """The variance of numbers of rows, in cells where so many are expected."""
    if not drawn.evenly:
        return number
    return np.asarray(np.maximum(_EVENLY * number, np.minimum(number, _FEW)))


def _counted(answer: _Counts, drawn: DrawnRows, shape: tuple[int, ...]) -> FloatArray:
    """The weight of the rows in each cell."""
    codes = [
        drawn.columns[name].astype(np.int64) if bins is None else np.asarray(bins)[drawn.columns[name]]
        for name, bins in zip(answer.attrs, answer.maps, strict=True)
    ]
    flat = np.ravel_multi_index(codes, shape)
    counts = np.bincount(flat, drawn.weights, minlength=math.prod(shape)).reshape(shape)
    return np.asarray(counts, np.float64)


def _words(attribute: Attribute, bins: Map | None, position: int) -> str:
    """The code, or the bin of codes, at a place."""
    words = code_words(attribute)
    codes = [position] if bins is None else [code for code, group in enumerate(bins) if group == position]
    return words[codes[0]] if len(codes) == 1 else f"{words[codes[0]]} to {words[codes[-1]]}"


def agree(fitted: FittedRelease, bound: float) -> bool:
    """Whether the answers are what their noise can give: no count is far below zero, all tables have the same
    total, and those with an attribute say the same of it. ``bound``: deviations that no cell exceeds."""
    most, total = bound + _DISAGREE, float(fitted.model.total)
    error_of_total = total_error(fitted.measurements)
    single = dict[str, list[tuple[FloatArray, float]]]()
    for table in fitted.measurements:
        if table.fitted:
            continue
        error_of_sum = math.hypot(table.sigma * math.sqrt(table.values.size), error_of_total)
        negative = float(table.values.min(initial=0)) < -most * table.sigma
        if negative or abs(float(table.values.sum()) - total) > most * error_of_sum:
            return False
        if table.composed:
            continue
        for axis, name in enumerate(table.attrs):
            if not table.maps or table.maps[axis] is None:
                summed_axes = tuple(index for index in range(table.values.ndim) if index != axis)
                summed = table.values.sum(axis=summed_axes).astype(np.float64)
                error = table.sigma * math.sqrt(table.values.size / summed.size)
                single.setdefault(name, []).append((summed, error))
    return all(_same(tables, most) for tables in single.values())


def _same(tables: Sequence[tuple[FloatArray, float]], most: float) -> bool:
    """Whether each table is as far from the one of least noise as their noise can be."""
    best, least = min(tables, key=lambda table: table[1])
    return all(
        float(np.abs(values - best).max()) <= most * math.hypot(error, least) for values, error in tables
    )
