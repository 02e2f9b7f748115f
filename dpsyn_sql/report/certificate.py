"""The certificate of a release: all that a reader needs to judge the privacy claim.

It holds public facts only. Its one timestamp is that of the debit; it has no durations.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from dpsyn_sql.accounting.budget import CONVERSION_SHARE, DELTA_UNITS, Budget, Number, exact_number
from dpsyn_sql.accounting.events import PrivacyEvent, event_to_dict, total_units
from dpsyn_sql.accounting.zcdp import epsilon_from_rho
from dpsyn_sql.domain.attributes import Attribute
from dpsyn_sql.plan.plan import Plan
from dpsyn_sql.source.relation import Relation

_VERSIONED = ("dpsyn_sql", "duckdb", "numpy", "scipy", "opendp")

NOT_PROMISED = (
    "Rows, not persons, are protected when the privacy unit is 'row': a person with several rows is "
    "protected less.",
    "The operator, who can read the source anyway, also sees run time, progress, resources, and success "
    "or failure; readers of the release do not.",
    "Declared domains, exclusions and trust statements are the owner's public words; they are not checked "
    "against the source.",
)


def reported_epsilon(budget: Budget, delta: Number) -> float:
    """Epsilon of the budget reserved before the run, at ``delta`` (0 for a pure budget).

    The share of delta kept for thresholds stays reserved, as in the budget itself.
    """
    if budget.kind == "pure":
        return math.nextafter(float(budget.fraction), math.inf)
    return epsilon_from_rho(budget.rho, exact_number("delta", delta) * CONVERSION_SHARE)


def certificate(
    plan: Plan,
    events: Sequence[PrivacyEvent],
    *,
    release_id: str,
    debited_at: str,
    epsilon: float,
    delta: float,
    excluded: Sequence[str],
    rows: int,
    seed: int,
) -> dict[str, Any]:
    """A JSON-ready certificate."""
    unit = plan.source.unit
    return {
        "release": release_id,
        "debited_at": debited_at,
        "guarantee": {
            "epsilon": epsilon,
            "delta": delta,
            "rho": float(plan.budget.rho),
            "definition": "pure differential privacy" if plan.budget.kind == "pure" else "(epsilon, delta)",
            "neighbours": "add or remove one privacy unit; the number of rows is private",
            "privacy_unit": "row" if unit.column is None else unit.column,
            "rows_per_unit": unit.max_rows,
        },
        "mechanisms": _mechanisms(plan, events),
        "budget": {
            "kind": plan.budget.kind,
            "reserved_units_of_1e-15": plan.budget.amount,
            "used_units_of_1e-15": total_units(events, plan.budget.kind),
            "threshold_delta": plan.budget.delta / DELTA_UNITS,
        },
        "source": {"name": _public_name(plan.source.relation), "kind": plan.source.relation.kind},
        "public_facts": {
            "statements": list(plan.source.relation.statements),
            "excluded": list(excluded),
            "domain": [attribute_facts(attribute) for attribute in plan.domain.attributes],
        },
        "method": plan.method,
        "sampling": {"rows": rows, "seed": seed},
        "not_promised": list(NOT_PROMISED),
        "versions": {name: metadata.version(name) for name in _VERSIONED},
    }


def _public_name(relation: Relation) -> str:
    """A file without its folders: readers of a release need not know the owner's machine."""
    return Path(relation.name).name if relation.kind in ("parquet", "csv") else relation.name


def _mechanisms(plan: Plan, events: Sequence[PrivacyEvent]) -> list[dict[str, Any]]:
    """Static methods ask one question a step, in order."""
    return [
        {"step": step.name, "marginals": len(step.queries), **event_to_dict(event)}
        for step, event in zip(plan.steps, events, strict=True)
    ]


def attribute_facts(attribute: Attribute) -> dict[str, Any]:
    """What is public about one attribute, JSON-ready."""
    facts: dict[str, Any] = {
        "name": attribute.name,
        "type": attribute.sql_type,
        "kind": attribute.kind,
        "origin": attribute.origin,
        "codes": attribute.size,
        "nullable": attribute.nullable,
    }
    if attribute.kind == "categorical":
        return facts | {"labels": list(attribute.labels), "other": attribute.other}
    return facts | {"edges": [_plain(edge) for edge in attribute.edges]}


def _plain(edge: object) -> int | float | str:
    return edge if isinstance(edge, int | float) else str(edge)
