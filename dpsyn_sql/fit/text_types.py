"""From noisy numbers of units per class of text to the type of a column: post-processing, public in and out.

The type is the most specific one that holds nearly all values. A column whose values look like codes, or of
which a part that matters is other text, stays text: numbers in a column of text lose nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.domain.text_types import (
    BOOLEAN,
    CLASSES,
    CODE,
    DATE,
    DECIMALS,
    EMPTY,
    INTEGER,
    LONG,
    MISSING,
    NUMBER,
    TIME,
    TIMESTAMP,
    WHOLE,
    ZONED,
    decimal_type,
)

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

_ABSENT = (EMPTY, MISSING)

_GROUPS = (
    (INTEGER, LONG, WHOLE, *DECIMALS, NUMBER),
    (DATE, TIMESTAMP),
    (ZONED,),
    (TIME,),
    (BOOLEAN,),
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


def type_from_classes(noisy: NDArray[np.int64], sigma: float) -> FoundType:
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
    if not best or counts[CODE] or best < (1 - ODD) * values:
        return FoundType("VARCHAR", 0.0, sure)
    group = _GROUPS[sums.index(best)]
    return FoundType(_type_of(group, counts), 1 - best / values, sure)


def _sum(counts: Mapping[str, float], names: Sequence[str]) -> float:
    return float(sum(counts[name] for name in names))


def _type_of(group: Sequence[str], counts: Mapping[str, float]) -> str:
    if BOOLEAN in group:
        return "BOOLEAN"
    if TIME in group:
        return "TIME"
    if ZONED in group:
        return "TIMESTAMP WITH TIME ZONE"
    few = FINER * _sum(counts, group)
    if DATE in group:
        return "TIMESTAMP" if counts[TIMESTAMP] > few else "DATE"
    if counts[NUMBER] > few:
        return "DOUBLE"
    for digits in range(len(DECIMALS), 0, -1):
        if _sum(counts, (*DECIMALS[digits - 1 :], NUMBER)) > few:
            return "DOUBLE" if counts[LONG] > few else decimal_type(digits)
    return "HUGEINT" if counts[LONG] > few else "BIGINT"
