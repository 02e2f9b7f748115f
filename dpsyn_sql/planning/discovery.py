"""What private discovery will ask, at what share of the budget; from public facts only."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.domain.shape import Shape, Undiscovered, UnitId
from dpsyn_sql.errors import BudgetError, InputError
from dpsyn_sql.source.relation import PrivacyUnit

DISCOVERY_SHARE = Fraction(1, 10)
"""Share of the budget for all columns without a public domain together."""

CONTRIBUTIONS_SHARE = Fraction(1, 50)
"""Share of the budget for the number of rows per unit. A unit is in one cell, so a small share is enough."""

MOST_COUNTED = 10_000
"""Rows per unit up to which units are counted by their rows: one cell each."""

_GRID, _TREE = 1, 2
# Parts of a numeric column's share. The grid only has to show which powers of two occur.

Ask = Literal["keys", "grid", "tree", "contributions"]


def things_per_unit(ask: Ask, rows_per_unit: int) -> int:
    """How many keys, codes of a grid, or points of a tree a unit of up to k rows counts for.

    Signal over noise of a unit with d different ones is proportional to min(m, d) / sqrt(m) for Gaussian
    noise: m = sqrt(k) is within k^(1/4) of the best whatever d is. For trees it is min(m, d) / m: one
    point is never worse than more (docs/decisions/0005).
    """
    if ask == "tree":
        return 1
    return math.isqrt(rows_per_unit - 1) + 1 if ask in ("keys", "grid") else 1


@dataclass(frozen=True, slots=True)
class DiscoveryStep:
    """One question of discovery: ``attr`` is the column, None for rows per unit."""

    ask: Ask
    attr: str | None
    budget: Budget


def planned_discovery(
    shape: Shape, unit: PrivacyUnit, budget: Budget
) -> tuple[tuple[DiscoveryStep, ...], Budget]:
    """The steps of discovery, and what is left of ``budget`` for the method (without threshold delta).

    Columns get equal shares. Only columns of keys use threshold delta; without such columns none is
    spent.

    Raises:
        BudgetError: categories must be learnt, and there is no delta for their threshold.
        InputError: units of more rows than can be counted.
    """
    keys = [column for column in shape.undiscovered if column.kind == "categorical"]
    if keys and not budget.delta:
        names = ", ".join(repr(column.name) for column in keys)
        raise BudgetError(
            f"delta=0 does not allow the threshold that finds the values of {names}: declare their "
            "categories in the domain file, leave them out with exclude=, or give a delta such as 1e-9"
        )
    counts = _counts_rows(shape, unit)
    if counts and unit.max_rows > MOST_COUNTED:
        raise InputError(
            f"max_rows_per_unit={unit.max_rows} is too large: rows per unit are measured up to "
            f"{MOST_COUNTED}. Give a smaller number, or leave out the column with exclude=[{unit.column!r}]"
        )
    whole = budget.without_thresholds()
    discovery = DISCOVERY_SHARE if shape.undiscovered else Fraction(0)
    contributions = CONTRIBUTIONS_SHARE if counts else Fraction(0)
    columns, rows, rest = whole.split((discovery, contributions, 1 - discovery - contributions))
    steps = [*_of_columns(shape.undiscovered, columns, Budget(budget.kind, 0, budget.delta), len(keys))]
    if counts:
        steps.append(DiscoveryStep("contributions", None, rows))
    return tuple(steps), rest


def _counts_rows(shape: Shape, unit: PrivacyUnit) -> bool:
    """Whether the output has a column of units, and a unit may have several rows."""
    return unit.max_rows > 1 and any(isinstance(role, UnitId) for role in shape.roles)


def _of_columns(
    columns: tuple[Undiscovered, ...], budget: Budget, thresholds: Budget, keys: int
) -> list[DiscoveryStep]:
    if not columns:
        return []
    deltas = iter(thresholds.split([1] * keys) if keys else ())
    steps = []
    for column, share in zip(columns, budget.split([1] * len(columns)), strict=True):
        if column.kind == "categorical":
            whole = Budget(share.kind, share.amount, next(deltas).delta)
            steps.append(DiscoveryStep("keys", column.name, whole))
        else:
            grid, tree = share.split((_GRID, _TREE))
            steps += [DiscoveryStep("grid", column.name, grid), DiscoveryStep("tree", column.name, tree)]
    return steps
