"""The events of a plan, known before anything is read."""

from __future__ import annotations

from collections.abc import Callable

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.accounting.events import GaussianEvent, LaplaceEvent, PrivacyEvent
from dpsyn_sql.measure.questions.contributions import contributions_event
from dpsyn_sql.measure.questions.grid import grid_event
from dpsyn_sql.measure.questions.keys import keys_event
from dpsyn_sql.measure.questions.marginals import marginals_event
from dpsyn_sql.planning.discovery import Ask, things_per_unit
from dpsyn_sql.planning.plan import Plan, ReservedStep

_DISCOVERED: dict[Ask, Callable[[int, Budget], PrivacyEvent]] = {
    "keys": keys_event,
    "prefixes": keys_event,
    "values": keys_event,
    "grid": grid_event,
    "steps": grid_event,
    "parts": grid_event,
    "cells": grid_event,
    "types": grid_event,
    "contributions": lambda _, share: contributions_event(share),
}


def planned_events(plan: Plan) -> list[PrivacyEvent]:
    """All events known before anything is read, in the order of their questions."""
    return [*discovery_events(plan), *known_events(plan)]


def discovery_events(plan: Plan) -> list[PrivacyEvent]:
    """The events that a plan's discovery may reserve.

    What earlier answers make needless is not asked, so not all of these events occur.
    """
    rows = plan.source.unit.max_rows
    return [_DISCOVERED[step.ask](things_per_unit(step.ask, rows), step.budget) for step in plan.discovery]


def known_events(plan: Plan) -> list[GaussianEvent | LaplaceEvent]:
    """The events that a plan's known steps will reserve."""
    rows = plan.source.unit.max_rows
    return [marginals_event(len(step.queries), rows, step.budget) for step in plan.known]


def explained_events(plan: Plan) -> list[GaussianEvent | LaplaceEvent]:
    """One event per step, to explain the plan. A reserved step counts as if it measured ``pairs_assumed``
    whole tables and paid for nothing else."""
    rows, events = plan.source.unit.max_rows, list[GaussianEvent | LaplaceEvent]()
    for step in plan.steps:
        tables = step.pairs_assumed(plan.domain) if isinstance(step, ReservedStep) else len(step.queries)
        events.append(marginals_event(tables, rows, step.budget))
    return events
