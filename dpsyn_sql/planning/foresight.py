"""How much a release will be able to tell from noise, by the number of rows: public facts alone.

Columns share what is spent on one-way tables, and pairs what is left. A column can be told from noise if the
table has ``COLUMN_STRENGTH`` times as many rows as the noise of a cell; a pair is worth its table at
``PAIR_STRENGTH`` (docs/decisions/0045).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from dpsyn_sql.accounting.budget import MOST_ADVISED, Budget

ROWS = (1_000, 10_000, 100_000)

COLUMN_STRENGTH, PAIR_STRENGTH = 100.0, 60.0

_FACTORS = (1.5, 2, 3, 5, 7, 10, 15, 20, 30, 50, 100)

OneWayPart = Callable[[float, int, Budget], Fraction]
"""The part of a budget that a method spends on one-way tables, of rows and columns."""


@dataclass(frozen=True, slots=True)
class Foresight:
    """Of a table of ``rows`` and ``columns``: which of them, and how many of its ``pairs``, can be told from
    noise at one epsilon. ``fewer``: how many columns could be if no others were named."""

    rows: int
    columns: bool
    fewer: int
    pairs: int


def foreseen(rows: int, columns: int, budget: Budget, part: OneWayPart, unit_rows: int = 1) -> Foresight:
    """What a budget can tell of a table, of whose rows a unit may have ``unit_rows``: noise is so many times
    larger."""
    spent, seen = float(budget.fraction), rows / unit_rows

    def told(number: int) -> bool:
        own = spent * float(part(seen, number, budget))
        return _tables(seen / COLUMN_STRENGTH, own, gaussian=budget.gaussian) >= number

    most = min(columns, _tables(seen / COLUMN_STRENGTH, spent, gaussian=budget.gaussian))
    fewer = next((number for number in range(most, 0, -1) if told(number)), 0)
    left = spent * (1 - float(part(seen, columns, budget)))
    pairs = _tables(seen / PAIR_STRENGTH, left, gaussian=budget.gaussian)
    return Foresight(rows, fewer == columns, fewer, min(pairs, columns * (columns - 1) // 2))


def _tables(noise: float, spent: float, *, gaussian: bool) -> int:
    """How many tables can be measured together with at most so much noise in a cell (rows)."""
    return math.floor(2 * spent * noise**2 if gaussian else spent * noise / math.sqrt(2))


def foresight_lines(
    columns: int, epsilon: float, bought: Callable[[float], Budget], part: OneWayPart, unit_rows: int = 1
) -> Iterator[str]:
    """For several numbers of rows what can be told, and the epsilon, or the fewer columns, that would do.

    ``bought``: the budget that an epsilon buys.
    """
    larger = [epsilon * factor for factor in _FACTORS if epsilon * factor <= MOST_ADVISED]
    for rows in ROWS:
        now, cures = foreseen(rows, columns, bought(epsilon), part, unit_rows), list[str]()
        better = [(at, foreseen(rows, columns, bought(at), part, unit_rows)) for at in larger]
        if not now.columns:
            cures += [f"epsilon {at:.3g}" for at, one in better if one.columns][:1]
            cures += [f"{now.fewer} column{'s' if now.fewer > 1 else ''}"] if now.fewer else []
        elif not now.pairs:
            cures += [f"epsilon {at:.3g}" for at, one in better if one.pairs][:1]
        possible = columns * (columns - 1) // 2
        told = "all columns" if now.columns else "no column"
        if possible:
            told += f", {now.pairs:,} of {possible:,} pairs"
        would = f" ({' or '.join(cures)} would do)" if cures else ""
        yield f"of {rows:,} rows: {told}{would}"
