"""How much a release will be able to tell from noise, by the number of rows: public facts alone.

Columns share what is spent on one-way tables, and pairs what is left. A column can be told from noise if the
table has ``COLUMN_STRENGTH`` times as many rows as the noise of a cell; a pair is worth its table at
``PAIR_STRENGTH`` (docs/decisions/0045).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from dpsyn_sql.accounting.budget import MOST_ADVISED, Budget, NoiseLaw
from dpsyn_sql.planning.limits import TIED_PART

ROWS = (1_000, 10_000, 100_000)

COLUMN_STRENGTH, PAIR_STRENGTH = 100.0, 60.0

_FACTORS = (1.5, 2, 3, 5, 7, 10, 15, 20, 30, 50, 100)

OneWayPart = Callable[[float, int, Budget], Fraction]
"""The part of a budget that a method spends on one-way tables, of rows and columns."""


def _nothing(rows: float, budget: Budget) -> Fraction:
    return Fraction(0)


def _none(rows: float, columns: int, budget: Budget) -> float:
    return 0.0


def _no_text(rows: float, budget: Budget) -> int:
    return 0


@dataclass(frozen=True, slots=True)
class Spends:
    """How a release spends, by the number of units of one row.

    ``part``: as ``OneWayPart``, of what learning leaves. ``learning``: the part of the budget that finds what
    columns hold. ``tied``: how many pairs have to go together for any to be measured, of so many columns.
    ``text``: how many ``counted`` (rows, or units) a value of text needs to be found; 0 if there is no such
    column.
    """

    part: OneWayPart
    learning: Callable[[float, Budget], Fraction] = _nothing
    tied: Callable[[float, int, Budget], float] = _none
    text: Callable[[float, Budget], int] = _no_text
    counted: str = "rows"


@dataclass(frozen=True, slots=True)
class Foresight:
    """Of a table of ``rows`` and ``columns``: which of them, and how many of its ``pairs`` at most, can be
    told from noise at one epsilon. ``fewer``: how many columns could be if no others were named. ``tied``:
    how many pairs have to go together for any to be measured; ``likely``: whether they are few; ``paired``:
    how many columns there may be for that. ``text``: as ``Spends.text``."""

    rows: int
    columns: bool
    fewer: int
    pairs: int
    tied: int = 0
    likely: bool = True
    paired: int = 0
    text: int = 0


def foreseen(rows: int, columns: int, budget: Budget, spends: Spends, unit_rows: int = 1) -> Foresight:
    """What a budget can tell of a table, of whose rows a unit may have ``unit_rows``: noise is so many times
    larger."""
    units = rows / unit_rows
    spent, part = float(budget.fraction) * float(1 - spends.learning(units, budget)), spends.part

    def told(number: int) -> bool:
        for_pairs = spent * float(part(units, number, budget))
        return _tables(units / COLUMN_STRENGTH, for_pairs, gaussian=budget.gaussian) >= number

    def few(number: int) -> bool:
        return spends.tied(units, number, budget) <= TIED_PART * number

    most = min(columns, _tables(units / COLUMN_STRENGTH, spent, gaussian=budget.gaussian))
    fewer = next((number for number in range(most, 0, -1) if told(number)), 0)
    left = spent * (1 - float(part(units, columns, budget)))
    pairs = _tables(units / PAIR_STRENGTH, left, gaussian=budget.gaussian)
    pairs, tied = min(pairs, columns * (columns - 1) // 2), spends.tied(units, columns, budget)
    return Foresight(
        rows,
        fewer == columns,
        fewer,
        pairs if tied <= pairs else 0,
        math.ceil(tied) if tied <= pairs else 0,
        few(columns),
        next((number for number in range(columns, 1, -1) if few(number)), 0),
        spends.text(units, budget),
    )


def _tables(noise: float, spent: float, *, gaussian: bool) -> int:
    """How many tables can be measured together with at most so much noise in a cell (rows)."""
    law = NoiseLaw.of(spent, gaussian=gaussian)
    return math.floor(math.pow(noise / law.deviation, 1 / law.power))


def foresight_lines(
    columns: int, epsilon: float, bought: Callable[[float], Budget], spends: Spends, unit_rows: int = 1
) -> Iterator[str]:
    """For several numbers of rows what can be told, and the epsilon, or the fewer columns, that would do.

    ``bought``: the budget that an epsilon buys.
    """
    larger = [epsilon * factor for factor in _FACTORS if epsilon * factor <= MOST_ADVISED]
    for rows in ROWS:
        now, cures = foreseen(rows, columns, bought(epsilon), spends, unit_rows), list[str]()
        fast = replace(spends, text=_no_text)  # what is asked of larger budgets needs no threshold
        better = [(at, foreseen(rows, columns, bought(at), fast, unit_rows)) for at in larger]
        if not now.columns:
            cures += [f"epsilon {at:.3g}" for at, foresight in better if foresight.columns][:1]
            cures += [f"{now.fewer} column{'s' if now.fewer > 1 else ''}"] if now.fewer else []
        elif not now.pairs or not now.likely:
            cures += [
                f"epsilon {at:.3g}" for at, foresight in better if foresight.pairs and foresight.likely
            ][:1]
            cures += [f"{now.paired} columns"] if 1 < now.paired < columns else []
        possible = columns * (columns - 1) // 2
        summary = "all columns" if now.columns else "no column"
        if now.text:
            summary += f" (of text, values of fewer than {now.text:,} {spends.counted} may be lost)"
        if possible:
            least = f", if {now.tied:,} or more go together" if now.tied > 1 and now.pairs else ""
            summary += f", {'up to ' if now.pairs else ''}{now.pairs:,} of {possible:,} pairs{least}"
        would = f" ({' or '.join(cures)} would do)" if cures else ""
        yield f"of {rows:,} rows: {summary}{would}"
