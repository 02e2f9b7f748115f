"""What private discovery will ask, at what share of the budget; from public facts only."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.domain.shape import Shape, Undiscovered, UnitId
from dpsyn_sql.errors import BudgetError, InputError
from dpsyn_sql.source.relation import PrivacyUnit

DISCOVERY_SHARE = Fraction(1, 10)
"""Share of the budget for all columns without a public domain together, at most."""

COLUMN_SHARE: Mapping[str, Fraction] = {
    "categorical": Fraction(1, 20),
    "numeric": Fraction(1, 20),
    "temporal": Fraction(1, 20),
}
"""Share of one of them, by its kind, as far as there is room."""

CONTRIBUTIONS_SHARE = Fraction(1, 50)
"""Share of the budget for the number of rows per unit. A unit is in one cell, so a small share is enough."""

MOST_COUNTED = 10_000
"""Rows per unit up to which units are counted by their rows: one cell each."""

Ask = Literal["types", "keys", "prefixes", "values", "grid", "steps", "parts", "cells", "contributions"]

_PARTS: Mapping[Ask, int] = {"values": 5, "grid": 4, "steps": 1, "parts": 4, "cells": 6}
# Parts of a numeric or temporal column's share. The grid only has to show which powers of two occur, the
# parts where in them values lie (postal codes, years and a city's longitudes fill a small part of one), the
# cells how they are spread there.

WHOLE_PARTS = 4
"""Parts of a text column's share for whole values; each length of its prefixes has one. A beginning has the
rows of many values, and stands the larger noise."""

TYPES_PART = Fraction(1, 5)
"""Part of the share of a column of text without a stated type that finds the type. A class holds many units,
so a small part is enough; a wrong type loses the column, and a fifth makes other noise only 12 % larger."""


def things_per_unit(ask: Ask, rows_per_unit: int) -> int:
    """How many keys, or codes of a grid, a unit of up to k rows counts for.

    Signal over noise of a unit with d different ones is proportional to min(m, d) / sqrt(m) for Gaussian
    noise: m = sqrt(k) is within k^(1/4) of the best whatever d is. There are few steps, so d is small: one.
    """
    return 1 if ask in ("steps", "contributions") else math.isqrt(rows_per_unit - 1) + 1


@dataclass(frozen=True, slots=True)
class DiscoveryStep:
    """One question of discovery: ``attr`` is the column, None for rows per unit. ``length``: of the prefixes
    that are asked for, 0 for every other question."""

    ask: Ask
    attr: str | None
    budget: Budget
    length: int = 0


def planned_discovery(
    shape: Shape, unit: PrivacyUnit, budget: Budget
) -> tuple[tuple[DiscoveryStep, ...], Budget]:
    """The steps of discovery, and what is left of ``budget`` for the method (without threshold delta).

    Columns get equal shares, and equal parts of the threshold delta. A column of text whose type is to be
    found may turn out to be text: after the question of its type stands what would be asked then, and the
    same share pays if it is not.

    Raises:
        BudgetError: categories must be learnt, and there is no delta for their threshold.
        InputError: units of more rows than can be counted.
    """
    keys = [column for column in shape.undiscovered if column.kind == "categorical"]
    if keys and not budget.delta:
        names = ", ".join(repr(column.name) for column in keys)
        raise BudgetError(
            f"delta=0 does not allow the threshold that finds the values of {names}: declare their "
            "categories in the domain file (or sql_type, for numbers of a CSV file), leave them out "
            "with exclude=, or give a delta such as 1e-9"
        )
    counts = _counts_rows(shape, unit)
    if counts and unit.max_rows > MOST_COUNTED:
        raise InputError(
            f"max_rows_per_unit={unit.max_rows} is too large: rows per unit are measured up to "
            f"{MOST_COUNTED}. Give a smaller number, or leave out the column with exclude=[{unit.column!r}]"
        )
    wanted = sum((COLUMN_SHARE[column.kind] for column in shape.undiscovered), Fraction(0))
    discovery = min(DISCOVERY_SHARE, wanted)
    contributions = CONTRIBUTIONS_SHARE if counts else Fraction(0)
    columns, rows, rest = budget.without_thresholds().split(
        (discovery, contributions, 1 - discovery - contributions)
    )
    whole = Budget(columns.kind, columns.amount, budget.delta)
    shares = whole.split([1] * len(shape.undiscovered)) if shape.undiscovered else ()
    steps = [
        step
        for column, share in zip(shape.undiscovered, shares, strict=True)
        for step in column_steps(column, share)
    ]
    if counts:
        steps.append(DiscoveryStep("contributions", None, rows))
    return tuple(steps), rest


def column_steps(column: Undiscovered, share: Budget) -> tuple[DiscoveryStep, ...]:
    """How one column's share is divided among the questions about it, by its kind.

    Values that many rows share are looked for if there is delta for a threshold; a granularity only if the
    owner does not state it. The beginnings of text come after the whole values, the longest first, each with
    its part of the share and of the threshold delta. The type of text without a stated type comes first; then
    ask again with the type that was found.

    Raises:
        BudgetError: the share cannot be divided among the questions of every type.
    """
    if not column.typed:
        types, rest = share.without_thresholds().split((TYPES_PART, 1 - TYPES_PART))
        keys = Budget(rest.kind, rest.amount, share.delta)
        if keys.amount < sum(_PARTS.values()):  # before the debit, whatever type is found after it
            raise BudgetError("discovery has no budget: raise epsilon, or declare the domain")
        return DiscoveryStep("types", column.name, types), DiscoveryStep("keys", column.name, keys)
    if column.kind == "categorical":
        whole, *lengths = share.split([WHOLE_PARTS] + [1] * len(column.prefixes))
        of_lengths = zip(column.prefixes, lengths, strict=True)
        prefixes = [DiscoveryStep("prefixes", column.name, own, length) for length, own in of_lengths]
        return DiscoveryStep("keys", column.name, whole), *prefixes
    parts = dict(_PARTS)
    if not share.delta:
        del parts["values"]
    if column.granularity is not None:
        del parts["steps"]
    amounts = share.without_thresholds().split(list(parts.values()))
    thresholds = {"values": share.delta}
    return tuple(
        DiscoveryStep(ask, column.name, Budget(share.kind, own.amount, thresholds.get(ask, 0)))
        for ask, own in zip(parts, amounts, strict=True)
    )


def _counts_rows(shape: Shape, unit: PrivacyUnit) -> bool:
    """Whether the output has a column of units, and a unit may have several rows."""
    return unit.max_rows > 1 and any(isinstance(role, UnitId) for role in shape.roles)
