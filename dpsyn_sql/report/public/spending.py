"""What the privacy budget was spent on, from the events of a certificate."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from dpsyn_sql.accounting.budget import Kind
from dpsyn_sql.accounting.events import PrivacyEvent, cost_units, event_from_dict
from dpsyn_sql.errors import InternalError
from dpsyn_sql.report.public.words import step_words

_OURS = ("step", "column", "length", "marginals", "residuals")
"""Facts of a mechanism in a certificate beside its event."""


@dataclass(frozen=True, slots=True)
class Spending:
    """Shares of the budget that was reserved: ``steps`` by what they are about, ``columns`` for learning the
    values of one column, ``unused``."""

    steps: Mapping[str, float]
    columns: Mapping[str, float]
    unused: float


def spending_of(facts: Mapping[str, Any]) -> Spending | None:
    """None if the certificate does not say it in a way that adds up."""
    budget = facts.get("budget") or {}
    reserved, kind = float(budget.get("reserved_units_of_1e-15") or 0), budget.get("kind")
    if reserved <= 0 or kind not in ("gdp", "pure"):
        return None
    steps: dict[str, float] = {}
    columns: dict[str, float] = {}
    for one in facts.get("mechanisms", ()):
        units = _units(one, kind)
        if units is None:
            return None
        share = units / reserved
        step = step_words(str(one.get("step", "")))
        steps[step] = steps.get(step, 0.0) + share
        if one.get("column") is not None:
            columns[str(one["column"])] = columns.get(str(one["column"]), 0.0) + share
    return Spending(steps, columns, max(0.0, 1 - sum(steps.values())))


def _units(facts: Mapping[str, Any], kind: Kind) -> float | None:
    """What an event costs; None if these are no facts of one."""
    own = {key: value for key, value in facts.items() if key not in _OURS}
    with contextlib.suppress(ArithmeticError, InternalError, KeyError, TypeError, ValueError):
        made: PrivacyEvent = event_from_dict(own)
        if all(isinstance(getattr(made, one.name), int | float) for one in fields(made)):
            return float(cost_units(made, kind))
    return None
