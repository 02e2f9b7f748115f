"""From noisy answers about a column to its attribute: pure post-processing, public in and out.

Numbers and times: pieces of estimated counts (``discovery/cells.py``) become codes, the lightest neighbours
together, and what is known inside of a code becomes its fill. Categories are in ``discovery/labels.py``.

*Granularity*: which steps a column's values are multiples of. *Type*, of a column of text, from noisy numbers
of units per class of text. The type is the most specific one that holds nearly all values. A column whose
values look like codes, or of which a part that matters is other text, stays text: numbers in a column of text
lose nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

import numpy as np

from dpsyn_sql.attributes import types as text_types
from dpsyn_sql.attributes.attribute import FILL_PIECES, Attribute, Granularity, Recoding
from dpsyn_sql.attributes.grids import EQUAL_BINS, Cuts, after, binned, equal_cuts, rounded
from dpsyn_sql.attributes.shape import Undiscovered
from dpsyn_sql.attributes.types import CLASSES, SqlType
from dpsyn_sql.discovery.cells import Piece
from dpsyn_sql.discovery.octaves import octaves_beyond, with_octaves
from dpsyn_sql.fit.arrays import FloatArray, IntArray
from dpsyn_sql.planning.queries import NoisySteps

ATOM_WEIGHT = 2.0
"""How much heavier an atom counts when neighbours are merged: a value of its own is lost in a longer bin."""

GAP_WEIGHT = 2.0
"""The same for neighbours with a gap between them, which pieces of the fill may have to cross."""


def attribute_of_nothing(column: Undiscovered, cuts: Cuts) -> Attribute:
    """Of a column of which nothing stands out from the noise: every row is NULL. Where NULL is not allowed,
    it is the value between the outer ``cuts`` that is nearest to zero (of dates to 1970)."""
    value = min(max(cuts[0], Fraction(0)), cuts[-2])
    ends = after(column.type, value)
    attribute = binned(column, [value, ends], column.granularity, ((value,),))
    return replace(attribute, recoding=Recoding((0,), (1,))) if column.nullable else attribute


def attribute_of_hidden(column: Undiscovered, cuts: Cuts, granularity: Granularity | None) -> Attribute:
    """Of a column of which nothing stands out: equal bins between the bounds if both are stated, whose counts
    the method asks for; else as ``attribute_of_nothing``."""
    if column.least is None or column.most is None:
        return attribute_of_nothing(column, cuts)
    number = min(EQUAL_BINS, max(1, column.max_codes - column.nullable))
    bins = pairwise(equal_cuts(column.type, column.least, column.most, number))
    return coded(column, [[Piece(low, high, 1.0)] for low, high in bins], granularity)[0]


def within_equal_bins(column: Undiscovered, pieces: Sequence[Piece]) -> list[Piece]:
    """Pieces that end where equal bins between the bounds do, if both are stated: noise makes long ones, and
    what lies in them has more budget in one-way tables."""
    if column.least is None or column.most is None:
        return list(pieces)
    equal, shorter = equal_cuts(column.type, column.least, column.most, EQUAL_BINS), list[Piece]()
    for piece in pieces:
        ends = [piece.low, *(cut for cut in equal if piece.low < cut < piece.high), piece.high]
        width = piece.high - piece.low
        for low, high in pairwise(ends):
            part = float((high - low) / width)
            shorter.append(Piece(low, high, piece.mass * part, piece.variance * part))
    return shorter


def attribute_of_pieces(
    column: Undiscovered, pieces: Sequence[Piece], granularity: Granularity | None
) -> Attribute:
    """Codes and their fill from pieces, ascending and at least one.

    As long as there are more codes than ``column.max_codes`` allows, the two neighbours that are lightest
    together become one. No code stands for a gap: values there belong to the nearer code, and are not
    written. Octaves beyond the pieces have codes too.
    """
    below, above = octaves_beyond(column, pieces[0].low, pieces[-1].high)
    few = replace(column, max_codes=column.max_codes - len(below) - len(above))
    attribute, _ = coded(few, [[piece] for piece in pieces], granularity)
    return with_octaves(attribute, below, above)


def coded(
    column: Undiscovered, units: Sequence[Sequence[Piece]], granularity: Granularity | None
) -> tuple[Attribute, FloatArray]:
    """As ``attribute_of_pieces``, where the pieces of one part always have one code; and the mass of each
    bin (float64[bins])."""
    kind = column.type
    groups = _merged(kind, units, max(1, column.max_codes - column.nullable))
    inner = [_between(kind, left[-1].high, right[0].low) for left, right in pairwise(groups)]
    cuts = [groups[0][0].low, *inner, groups[-1][-1].high]
    fill = tuple(_fill(kind, group) for group in groups)
    mass = np.array([sum(piece.mass for piece in group) for group in groups])
    return binned(column, cuts, granularity, fill), mass


def _merged(kind: SqlType, units: Sequence[Sequence[Piece]], room: int) -> list[list[Piece]]:
    groups = [list(unit) for unit in units]
    weights = [
        sum(piece.mass * (ATOM_WEIGHT if _single(kind, piece) else 1.0) for piece in unit) for unit in units
    ]
    while len(groups) > room:
        together = np.array(weights[:-1]) + np.array(weights[1:])
        gaps = np.array([left[-1].high < right[0].low for left, right in pairwise(groups)])
        index = int(np.argmin(together * np.where(gaps, GAP_WEIGHT, 1.0)))
        groups[index] += groups.pop(index + 1)
        weights[index] += weights.pop(index + 1)
    return groups


def _single(kind: SqlType, piece: Piece) -> bool:
    """Whether a piece holds one value."""
    return after(kind, piece.low) == piece.high


def _between(kind: SqlType, end: Fraction, start: Fraction) -> Fraction:
    """Where values between two codes change from the lower to the upper."""
    return end if end == start else max(end, rounded(kind, (end + start) / 2))


def _fill(kind: SqlType, group: Sequence[Piece]) -> Cuts:
    """The values of a code: one, evenly over one piece, or ``FILL_PIECES`` pieces of equal probability."""
    if len(group) == 1:
        (piece,) = group
        return (piece.low,) if _single(kind, piece) else (piece.low, piece.high)
    ends = np.cumsum([piece.mass for piece in group])
    cuts = [group[0].low]
    for part in range(1, FILL_PIECES):
        wanted = float(ends[-1]) * part / FILL_PIECES
        index = int(np.searchsorted(ends, wanted))
        piece = group[index]
        inside = 1 - (float(ends[index]) - wanted) / piece.mass
        cut = piece.low if _single(kind, piece) else _inside(kind, piece, inside)
        cuts.append(max(cuts[-1], cut))
    return (*cuts, group[-1].high)


def _inside(kind: SqlType, piece: Piece, share: float) -> Fraction:
    cut = rounded(kind, piece.low + (piece.high - piece.low) * Fraction(min(1.0, max(0.0, share))))
    return min(piece.high, max(piece.low, cut))


# -- granularity ----------------------------------------------------------------------------------------

EXCEPTIONS = 0.005
"""Share of the values that may be no multiples of a granularity: they are written as ones beside them."""

_COARSEST = 6  # powers of ten above one


def steps_of(kind: SqlType) -> tuple[Granularity, ...]:
    """The steps that are asked for: each divides the next, and every value is a multiple of the type's own
    unit, which is not among them. Numbers: 5, 10, 50, ... units; times: seconds to months."""
    if kind.family == "float":
        exact = [Decimal(10) ** power for power in (-6, -5, -4)]
        fives = [Decimal(10) ** power * factor for power in range(-3, 4) for factor in (1, 5)]
        return (*exact, *fives)
    if kind.family in ("integer", "decimal"):
        powers = range(kind.scale + _COARSEST)
        multiples = [10**power * factor for power in powers for factor in (1, 5)][1:]
        return tuple(step for step in multiples if step <= min(kind.high, 2**62 - 1))
    if kind.family == "date":
        return ("month",)
    second = 1_000_000 // kind.unit
    milliseconds = [second // 1000] if second > 1000 else []
    inner = [*milliseconds, second, 60 * second, 300 * second, 900 * second, 3600 * second]
    inner = [step for step in inner if step > 1]
    if kind.family == "time":
        return tuple(inner)
    return (*inner, kind.day, *(() if kind.zoned else ("month",)))


REFUTED = 4.0
"""Deviations of values that are no multiples of a step, and twice ``EXCEPTIONS`` of all, that refute it."""

_NEXT = 10.0
_PARTS_OF_ONE = ("0.001", "0.01", "0.05", "0.25", "0.5")
_UNLIKELY = 3.0
_LIKELY_FLOATS = {
    Decimal(text): cost for text, cost in (("1", 0), ("0.01", 1), ("0.1", 1), ("0.5", 2), ("0.25", 2.5))
}
# Costs of granularities; of the others _UNLIKELY.


def likely_steps(kind: SqlType) -> tuple[Granularity, ...]:
    """The steps that are asked for: few, so that their noise is small. Each divides the next."""
    if kind.family == "float":
        return (*map(Decimal, _PARTS_OF_ONE), *(Decimal(10) ** power for power in range(4)))
    if kind.family in ("integer", "decimal"):
        unit = 10**kind.scale
        fractions = [Fraction(part) * unit for part in _PARTS_OF_ONE]
        steps = [int(step) for step in fractions if step.denominator == 1]
        steps += [unit * 10**power for power in range(4)]
        return tuple(step for step in steps if 1 < step <= min(kind.high, 2**62 - 1))
    if kind.family == "date":
        return ("month",)
    second = 1_000_000 // kind.unit
    inner = tuple(step for step in (second, 60 * second) if step > 1)
    return inner if kind.family == "time" else (*inner, kind.day)


def likely_granularity(kind: SqlType, noisy: NoisySteps) -> Granularity | None:
    """The most probable step of the values.

    Multiples of a step are in each residue of the next step alike, and no value is a multiple of a finer one
    alone; tenths are not asked for, and show by how many of them are halves and whole numbers. The number of
    values is that which fits best, and the prior holds where noise hides the steps: whole numbers and
    hundredths are common. Values that are clearly no multiples refute a step.
    """
    counts, sigma = noisy.values.astype(np.float64), max(noisy.sigma, 1.0)
    choices: list[Granularity | None] = [None, *noisy.steps]
    if kind.family == "float":
        choices.append(Decimal("0.1"))
    elif kind.scale > 1:
        choices.append(10 ** (kind.scale - 1))
    most = max(REFUTED * sigma, EXCEPTIONS * 2 * float(np.maximum(counts, 0.0).sum()))
    scores = list[float]()
    for step in choices:
        expected = _residues(kind, step, noisy.steps)
        refuted = step is not None and bool((counts[expected == 0] > most).any())
        expected = expected * (1.0 if step is None else 1 - EXCEPTIONS)
        rows = max(float(expected @ counts) / float(expected @ expected), 0.0)
        score = float((((counts - rows * expected) / sigma) ** 2).sum()) / 2 + _cost(kind, step)
        scores.append(math.inf if refuted else score)
    return choices[int(np.argmin(scores))]


def _residues(kind: SqlType, step: Granularity | None, steps: Sequence[Granularity]) -> FloatArray:
    """Of the multiples of a step, the share of which each step is the last that fits; first those of none."""
    if kind.temporal:  # nine in ten are no multiples of the next one
        number = 0 if step is None else steps.index(step) + 1
        return np.array([_NEXT ** (number - at) if at >= number else 0.0 for at in range(len(steps) + 1)])
    if step is None and kind.family == "float":
        return np.array([1.0, *(0.0 for _ in steps)])
    unit = Fraction(1 if step is None else step)
    fit = [1.0, *(1 / (Fraction(asked_step) / unit).numerator for asked_step in steps)]
    return np.append(-np.diff(fit), fit[-1])


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


# -- types ----------------------------------------------------------------------------------------------

STANDS_OUT = 4.5
"""Standard deviations that the noisy count of a class must exceed to be believed: of the 19 classes of a
column an empty one does so by luck in one column of 15,000 (Gaussian noise)."""

LIKELY = 2.5
"""Deviations that suffice for the largest count where none stands out: the likeliest type is better than text
there, whose values would not be found either."""

ODD = 0.05
"""Share of the values up to which a column of numbers or times may hold others, which become NULL."""

FINER = 0.005
"""Share of the numbers up to which those with more digits than the type has are rounded."""

_ABSENT = (text_types.EMPTY, text_types.MISSING)

_GROUPS = (
    (text_types.INTEGER, text_types.LONG, text_types.WHOLE, *text_types.DECIMALS, text_types.NUMBER),
    (text_types.DATE, text_types.TIMESTAMP),
    (text_types.ZONED,),
    (text_types.TIME,),
    (text_types.BOOLEAN,),
)
"""Classes that one type can hold together."""


@dataclass(frozen=True, slots=True)
class FoundType:
    """The type of a column of text.

    ``odd``: the noisy share, 0 to 1, of values that are read as NULL because they are no values of the type;
    0 if it is hidden by the noise. Marks for missing are not among them. ``sure``: some class stood out.
    """

    sql_type: str
    odd: float
    sure: bool


def type_from_classes(noisy: IntArray, sigma: float) -> FoundType:
    """The type that noisy counts of ``CLASSES`` (int64, noise of deviation ``sigma``) show.

    Only counts of more than ``STANDS_OUT`` deviations are believed, or else the largest one of more than
    ``LIKELY``. Without any the column stays text.
    """
    most = int(noisy.max())
    sure = most > STANDS_OUT * sigma
    least = STANDS_OUT * sigma if sure else max(LIKELY * sigma, most - 1)
    believed = {name: float(count) for name, count in zip(CLASSES, noisy, strict=True) if count > least}
    counts = {name: believed.get(name, 0.0) for name in CLASSES if name not in _ABSENT}
    sums = [_sum(counts, group) for group in _GROUPS]
    best = max(sums)
    values = sum(counts.values())
    if not best or counts[text_types.CODE] or best < (1 - ODD) * values:
        return FoundType("VARCHAR", 0.0, sure)
    group = _GROUPS[sums.index(best)]
    return FoundType(_type_of(group, counts), 1 - best / values, sure)


def _sum(counts: Mapping[str, float], names: Sequence[str]) -> float:
    return float(sum(counts[name] for name in names))


def _type_of(group: Sequence[str], counts: Mapping[str, float]) -> str:
    if text_types.BOOLEAN in group:
        return "BOOLEAN"
    if text_types.TIME in group:
        return "TIME"
    if text_types.ZONED in group:
        return "TIMESTAMP WITH TIME ZONE"
    few = FINER * _sum(counts, group)
    if text_types.DATE in group:
        return "TIMESTAMP" if counts[text_types.TIMESTAMP] > few else "DATE"
    if counts[text_types.NUMBER] > few:
        return "DOUBLE"
    for digits in range(len(text_types.DECIMALS), 0, -1):
        if _sum(counts, (*text_types.DECIMALS[digits - 1 :], text_types.NUMBER)) > few:
            return "DOUBLE" if counts[text_types.LONG] > few else text_types.decimal_type(digits)
    return "HUGEINT" if counts[text_types.LONG] > few else "BIGINT"
