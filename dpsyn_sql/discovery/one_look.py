"""A column of a small table from one question: noisy counts on one public grid; public.

The grid has a cell for each small whole number, so that the answer is both the range of the column and its
one-way table: nothing is asked about the column again. Numbers become a mixture of values and smooth parts
(``discovery/mixtures.py``), dates and times a smoothed histogram.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import groupby, pairwise

import numpy as np
from scipy.special import ndtri

from dpsyn_sql.discovery.attributes import EXCEPTIONS, attribute_of_nothing, coded
from dpsyn_sql.discovery.cells import Piece
from dpsyn_sql.discovery.mixtures import Cellular, Mixture, mixture_of
from dpsyn_sql.discovery.reshaping import reshaped
from dpsyn_sql.discovery.smooth_parts import REACH
from dpsyn_sql.domain.attributes import Attribute, Granularity, edge_ticks
from dpsyn_sql.domain.grids import Cuts, after, rounded
from dpsyn_sql.domain.shape import Undiscovered
from dpsyn_sql.domain.types import SqlType
from dpsyn_sql.fit.arrays import FloatArray, IntArray
from dpsyn_sql.fit.denoise import smoothed
from dpsyn_sql.planning.queries import NoisyMarginal, NoisySteps

NULL_SIGMAS = 2.0
"""Deviations of noise above which dates without a value are believed."""

INTERVAL_COST = 16.0
"""Squared deviations that a further stretch of dates must explain."""

FIRST_COST, SHORT_COST = 25.0, 45.0
"""The same of the first stretch, and what is added to it over the number of cells: Laplace noise makes high
single cells. Without rows one in a hundred columns has such a stretch by luck."""

LEAST_ROWS = 2.0
"""Deviations of the noisy number of rows below which there may be none: nothing of a column is believed."""

MOST_CODES = 32
"""Codes of a column: what is known inside of a code is in its fill, and pairs of few codes are quick."""

_CLEAR = 3.0
# Deviations of noise by which rows of other values are known to be few.

_MOST_INTERVALS = 3
_SHARES = np.unique(
    np.concatenate([np.linspace(0, 1, 65), [0.002, 0.005, 0.99, 0.995, 0.998, 0.9995, 0.9999]])
)
_LEAST_MASS = 1e-6  # of all rows; a piece of less is not written

MOST_REACH, _BEYOND = 4.0, 0.2
"""Widths at which a smooth part ends at most; and rows beyond, in deviations of noise of a cell."""

_NEXT = 10.0
_UNLIKELY = 3.0
_LIKELY_FLOATS = {Decimal(1): 0.0, Decimal("0.01"): 1.0, Decimal("0.1"): 1.0}
# Costs of granularities; of the others _UNLIKELY.


def attribute_of_one_look(
    column: Undiscovered, cuts: Cuts, noisy: NoisyMarginal, steps: NoisySteps | None, rows: float
) -> tuple[Attribute, NoisyMarginal]:
    """The attribute of a column of numbers or times, and its one-way table with the noise taken out.

    Args:
        column: not yet discovered, of a stated or found type.
        cuts: of ``mixed_cuts``.
        noisy: the counts of its cells, then of NULL.
        steps: which steps its values are multiples of; None if the owner states a granularity.
        rows: noisy number of units; 0 or less if there may be none: nothing is found then.
    """
    total = max(rows, 1.0)
    counts = noisy.values.astype(np.float64)
    if not column.nullable:
        counts[-1] = 0.0
    granularity = column.granularity if steps is None else likely_granularity(column.type, steps)
    sigma = max(noisy.sigma, 1e-3)  # exact answers (tests only)
    if rows <= 0:
        pieces, null = list[Piece](), total
    elif column.type.temporal:
        pieces, null = _of_times(cuts, counts, sigma, total)
    else:
        step = _step(column.type, granularity)
        cells = _cellular(column.type, cuts, step)
        mixture = mixture_of(cells, counts, sigma, total).reaching(_limit(total / sigma))
        ratios = _ratios(cells, mixture, counts[:-1], sigma)
        pieces, null = _of_numbers(column.type, cuts, step, mixture, ratios)
    if not column.nullable or not pieces:
        null = 0.0 if pieces else total
    if pieces:
        few = replace(column, max_codes=min(column.max_codes, MOST_CODES))
        attribute, mass = coded(few, _by_cell(cuts, pieces), granularity)
    else:
        attribute, mass = attribute_of_nothing(column, cuts), np.array([0.0 if column.nullable else 1.0])
    found = np.append(mass, null) if column.nullable else mass
    found = found * (total / max(float(found.sum()), 1e-9))
    rows_of_codes = np.rint(found).astype(np.int64)
    table = NoisyMarginal((column.name,), rows_of_codes, noisy.sigma, composed=True, fitted=True)
    return attribute, table


def other_part(
    column: Undiscovered, cuts: Cuts, attribute: Attribute, noisy: NoisyMarginal, total: NoisyMarginal
) -> float:
    """The part of the units that may have another value than the first one that was found, or than NULL if
    none was; up to three deviations of noise. 1 if the value is one of several of its cell.

    Args:
        column: as for ``attribute_of_one_look``.
        cuts: of the grid.
        attribute: with the value as its first edge.
        noisy: the counts of the cells, then of NULL.
        total: noisy number of units.
    """
    known = float(noisy.values[-1]) if column.nullable else 0.0
    if attribute.recoding is None or 0 not in attribute.recoding.codes:
        value = Fraction(edge_ticks(attribute)[0] if column.type.discrete else attribute.edges[0])  # type: ignore[arg-type]
        place = bisect_right(cuts, value) - 1
        if not 0 <= place < len(cuts) - 1 or after(column.type, cuts[place]) != cuts[place + 1]:
            return 1.0
        known += float(noisy.values[place])
    rows = max(float(total.values), 1.0)
    error = _CLEAR * math.hypot(total.sigma, math.sqrt(2) * noisy.sigma)
    return min(1.0, max(0.0, rows - known + error) / rows)


def _limit(strength: float) -> float:
    """The widths at which smooth parts end: where rows beyond would be a part of the noise of one cell. A
    tail that was cut earlier would miss rows that one-way tables see, and most of the variance."""
    return float(np.clip(ndtri(1 - _BEYOND / max(strength, 1.0)), REACH, MOST_REACH))


def _by_cell(cuts: Cuts, pieces: Sequence[Piece]) -> list[list[Piece]]:
    """The pieces of each cell together: only of whole cells the rows are known."""
    cells = _cells_of(cuts, [piece.low for piece in pieces]).tolist()
    together = groupby(zip(cells, pieces, strict=True), key=lambda one: one[0])
    return [[piece for _, piece in part] for _, part in together]


def _cells_of(cuts: Cuts, values: Sequence[Fraction]) -> IntArray:
    """The cell of each value (int64[n])."""
    places = np.searchsorted([float(cut) for cut in cuts], [float(value) for value in values], "right")
    return np.clip(places - 1, 0, len(cuts) - 2)


# -- granularity ----------------------------------------------------------------------------------------


def likely_steps(kind: SqlType) -> tuple[Granularity, ...]:
    """The steps that are asked for: few, so that their noise is small. Each divides the next."""
    if kind.family == "float":
        return tuple(Decimal(10) ** power for power in range(-3, 4))
    if kind.family in ("integer", "decimal"):
        powers = range(1, kind.scale + 4)
        return tuple(10**power for power in powers if 10**power <= min(kind.high, 2**62 - 1))
    if kind.family == "date":
        return ("month",)
    second = 1_000_000 // kind.unit
    inner = tuple(step for step in (second, 60 * second) if step > 1)
    return inner if kind.family == "time" else (*inner, kind.day)


def likely_granularity(kind: SqlType, noisy: NoisySteps) -> Granularity | None:
    """The most probable step of the values.

    Of the multiples of a step ten times as fine as the next, nine in ten are no multiples of the next; no
    value is a multiple of a finer one alone. The number of values is that which fits best, and the prior
    holds where noise hides the steps: whole numbers and hundredths are common.
    """
    counts, sigma = noisy.values.astype(np.float64), max(noisy.sigma, 1.0)
    choices: list[Granularity | None] = [None, *noisy.steps]
    scores = list[float]()
    for place, step in enumerate(choices):
        expected = np.zeros(counts.size)
        expected[place:] = _NEXT ** -np.arange(counts.size - place)
        if place:
            expected[place:] *= 1 - EXCEPTIONS
        rows = max(float(expected @ counts) / float(expected @ expected), 0.0)
        scores.append(float((((counts - rows * expected) / sigma) ** 2).sum()) / 2 + _cost(kind, step))
    return choices[int(np.argmin(scores))]


def _cost(kind: SqlType, step: Granularity | None) -> float:
    """Minus the logarithm of how common a granularity is, up to a constant."""
    if kind.family == "float":
        return _UNLIKELY if step is None else _LIKELY_FLOATS.get(Decimal(step), _UNLIKELY)
    if step is None:
        return _UNLIKELY if kind.family == "timestamp" else 0.0
    if kind.family in ("date", "time"):
        return _UNLIKELY
    if kind.family == "timestamp":
        return 0.0 if step != kind.day else 1.0
    return 1.0 if step == 10**kind.scale else _UNLIKELY


# -- numbers --------------------------------------------------------------------------------------------


@lru_cache(maxsize=8)
def _cellular(kind: SqlType, cuts: Cuts, step: Fraction) -> Cellular:
    """The cells in units of the values, for multiples of a step (ticks; 0 for none)."""
    unit = Fraction(10**kind.scale)
    bounds = np.array([float(_before(cut, step) / unit) for cut in cuts])
    bounds[0], bounds[-1] = -np.inf, np.inf
    single = [
        after(kind, low) == high and low % unit == 0 and (not step or low % step == 0)
        for low, high in pairwise(cuts)
    ]
    values = np.array([float(cut / unit) for cut in cuts[:-1]])
    return Cellular(bounds, np.array(single), values, float(step / unit))


def _step(kind: SqlType, granularity: Granularity | None) -> Fraction:
    """In ticks, or for FLOAT and DOUBLE in units; 0 for none."""
    if granularity is None or granularity == "month":
        return Fraction(0 if kind.family == "float" else 1)
    return Fraction(granularity)


def _before(cut: Fraction, step: Fraction) -> Fraction:
    """Half a step before the first multiple that is not below a cut."""
    return (math.ceil(cut / step) - Fraction(1, 2)) * step if step else cut


def _ratios(cells: Cellular, mixture: Mixture, counts: FloatArray, sigma: float) -> FloatArray:
    """Of each cell, how many times the rows of the smooth parts the counts show there (float64[k])."""
    expected, others = np.zeros(counts.size), counts.copy()
    for place, rows in mixture.values.items():
        if place < counts.size:
            others[place] -= rows
    for part, rows in mixture.smooth:
        expected += rows * cells.shares(part)[:-1]
    found = reshaped(expected, others, sigma)
    return np.divide(found, expected, out=np.ones_like(expected), where=expected > 0)


def _of_numbers(
    kind: SqlType, cuts: Cuts, step: Fraction, mixture: Mixture, ratios: FloatArray
) -> tuple[list[Piece], float]:
    """The pieces of a mixture, ascending, and the rows of NULL. Smooth parts have in each cell ``ratios``
    times their rows."""
    unit, null_cell = Fraction(10**kind.scale), len(cuts) - 1
    held = mixture.values
    null = held.pop(null_cell, 0.0)
    atoms = {cuts[place]: rows for place, rows in held.items()}
    ends = {end for value in atoms for end in (value, value + step if step else after(kind, value))}
    for part in mixture.parts:
        own = _ends_of(kind, part.quantiles(_SHARES), unit, step)
        ends |= own | {end for end in _ends_of_cells(cuts, step) if min(own) < end < max(own)}
    inside = sorted({min(max(end, cuts[0]), cuts[-1]) for end in ends})
    bounds = np.array([float(_before(end, step) / unit) for end in inside])
    if mixture.parts:
        bounds[0], bounds[-1] = -np.inf, np.inf
    masses = np.zeros(max(0, len(inside) - 1))
    for part, rows in mixture.smooth:
        masses += rows * np.diff(part.cdf(bounds))
    masses *= ratios[_cells_of(cuts, inside[:-1])]
    least, pieces = _LEAST_MASS * float(mixture.rows.sum()), list[Piece]()
    for (low, high), mass in zip(pairwise(inside), masses.tolist(), strict=True):
        rows = mass + atoms.get(low, 0.0)
        if rows > least:
            start = rounded(kind, low)
            single = bool(step) and high - low <= step
            pieces.append(Piece(start, after(kind, start) if single else rounded(kind, high), rows))
    return pieces, null


@lru_cache(maxsize=8)
def _ends_of_cells(cuts: Cuts, step: Fraction) -> tuple[Fraction, ...]:
    """The cuts, each moved to the first multiple of the step that is not below it."""
    return tuple(math.ceil(cut / step) * step for cut in cuts) if step else cuts


def _ends_of(kind: SqlType, values: FloatArray, unit: Fraction, step: Fraction) -> set[Fraction]:
    """Values of a column as cuts between multiples of its step, and the end of the last one."""
    if not step:
        return {rounded(kind, Fraction(value)) for value in values.tolist()}
    places = [math.floor(Fraction(value) * unit / step + Fraction(1, 2)) for value in values.tolist()]
    return {place * step for place in (*places, places[-1] + 1)}


# -- dates and times ------------------------------------------------------------------------------------


def _of_times(cuts: Cuts, counts: FloatArray, sigma: float, total: float) -> tuple[list[Piece], float]:
    """The cells of the stretches that hold values, smoothed, and the rows of NULL."""
    null = float(counts[-1]) if counts[-1] > NULL_SIGMAS * sigma else 0.0
    left = counts[:-1].copy()
    rows = np.zeros(left.size)
    for place in range(_MOST_INTERVALS):
        start, stop, gain = _likeliest_interval(left, sigma)
        if gain <= (INTERVAL_COST if place else FIRST_COST + SHORT_COST / (stop - start)):
            break
        rows[start:stop] = np.maximum(smoothed(left[start:stop], sigma), 0.0)
        left[start:stop] = 0.0
        if rows.sum() >= total - null - 2 * sigma * math.sqrt(np.count_nonzero(rows)):
            break
    pieces = [
        Piece(low, high, mass)
        for (low, high), mass in zip(pairwise(cuts), rows.tolist(), strict=True)
        if mass > 0
    ]
    return pieces, min(null, total)


def _likeliest_interval(counts: FloatArray, sigma: float) -> tuple[int, int, float]:
    """The run of cells whose even distribution explains most of the counts: first, end, squared
    deviations."""
    sums = np.concatenate([[0.0], np.cumsum(counts)])
    best = (0, counts.size, -math.inf)
    for length in range(1, counts.size + 1):
        gains = np.maximum(sums[length:] - sums[:-length], 0.0) ** 2 / (length * sigma**2)
        start = int(np.argmax(gains))
        if gains[start] > best[2]:
            best = (start, start + length, float(gains[start]))
    return best
