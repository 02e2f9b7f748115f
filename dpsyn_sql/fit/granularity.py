"""Which steps a column's values are multiples of, from noisy counts; public in and out."""

from __future__ import annotations

import math
from decimal import Decimal

from dpsyn_sql.domain.attributes import Granularity
from dpsyn_sql.domain.types import SqlType
from dpsyn_sql.planning.queries import NoisySteps

EXCEPTIONS = 0.005
"""Share of the values that may be no multiples of a granularity: they are written as ones beside them."""

CLEAR = 2.0
"""Deviations of its noise below which the number of exceptions counts as none."""

MOST_NOISE = 0.05
"""Share of the values that may hide in this noise."""

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
        found = [10**power * factor for power in powers for factor in (1, 5)][1:]
        return tuple(step for step in found if step <= min(kind.high, 2**62 - 1))
    if kind.family == "date":
        return ("month",)
    second = 1_000_000 // kind.unit
    parts = [second // 1000] if second > 1000 else []
    inner = [*parts, second, 60 * second, 300 * second, 900 * second, 3600 * second]
    inner = [step for step in inner if step > 1]
    if kind.family == "time":
        return tuple(inner)
    return (*inner, kind.day, *(() if kind.zoned else ("month",)))


def granularity_found(noisy: NoisySteps) -> Granularity | None:
    """The coarsest step that nearly all values are multiples of; None for the type's own unit."""
    total = float(noisy.values.sum())
    for place in reversed(range(len(noisy.steps))):
        exceptions = float(noisy.values[: place + 1].sum())
        noise = CLEAR * noisy.sigma * math.sqrt(place + 1)
        if noise < MOST_NOISE * total and exceptions < max(EXCEPTIONS * total, noise):
            return noisy.steps[place]
    return None
