"""The events of a plan, known before anything is read."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import chain
from typing import cast

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.accounting.events import GaussianEvent, LaplaceEvent, PrivacyEvent
from dpsyn_sql.planning.asking import Ask, Asked, Look, Reserve, counted_per_unit
from dpsyn_sql.planning.explain import Noise
from dpsyn_sql.planning.plan import Plan
from dpsyn_sql.planning.queries import MarginalQuery
from dpsyn_sql.private.measure.counting import PrivateSide
from dpsyn_sql.private.measure.noise import ROUNDING, mean_error, standard_deviation
from dpsyn_sql.private.measure.questions import parts_of_question
from dpsyn_sql.private.measure.questions.columns import contributions_event, grid_event, keys_event
from dpsyn_sql.private.measure.questions.tables import marginals_event
from dpsyn_sql.private.measure.questions.trees import leaves_event, tree_events

_DISCOVERED: dict[Ask, Callable[[int, Budget], PrivacyEvent]] = {
    "keys": keys_event,
    "again": keys_event,
    "prefixes": keys_event,
    "values": keys_event,
    "rows": grid_event,
    "mixed": grid_event,
    "grid": grid_event,
    "steps": grid_event,
    "parts": grid_event,
    "cells": grid_event,
    "types": grid_event,
    "contributions": lambda _, share: contributions_event(share),
}


def planned_events(plan: Plan) -> list[PrivacyEvent]:
    """All events known before anything is read, in the order of their questions."""
    return [*chain.from_iterable(discovery_events(plan)), *chain.from_iterable(asked_events(plan))]


def discovery_events(plan: Plan) -> list[tuple[PrivacyEvent, ...]]:
    """The events that each step of a plan's discovery may reserve, the one of its counts first.

    What earlier answers make needless is not asked, so not all of these events occur.
    """
    return [_of_discovery(step, plan.source.unit.in_discovery.max_rows) for step in plan.discovery]


def _of_discovery(step: Look, rows: int) -> tuple[PrivacyEvent, ...]:
    if step.ask in ("leaves", "total"):
        return (leaves_event(rows, step.budget),)
    if step.tree is not None:
        return tree_events(step.tree, rows, step.budget)
    return (_DISCOVERED[step.ask](counted_per_unit(step.ask, rows), step.budget),)


def asked_events(plan: Plan) -> list[tuple[PrivacyEvent, ...]]:
    """The events of each question that the method asks before its first look, as the door prices them."""
    side = PrivateSide.public(plan.domain, plan.source.unit.sensitivity)
    return [parts_of_question(asked.question, asked.budget, side).events for asked in plan.asked]


def explained_noise(plan: Plan) -> list[Noise]:
    """The noise of each step in a cell, to explain the plan. A reserved step counts as if it measured
    ``pairs_assumed`` whole tables and paid for nothing else; a residual stands for the one-way table that it
    makes with the rows in all, in whole rows."""
    unit, found, of_total = plan.source.unit, list[Noise](), 0.0
    events = iter(asked_events(plan))
    for step in plan.steps:
        if isinstance(step, Reserve):
            event = marginals_event(step.pairs_assumed(plan.domain), unit.sensitivity, step.budget)
        else:
            (event,) = cast("tuple[GaussianEvent | LaplaceEvent]", next(events))
        noise = Noise(standard_deviation(event), mean_error(event))
        if isinstance(step, Asked) and step.residuals:
            (size,) = step.queries[0].shape(plan.domain)
            deviation = math.hypot(noise.deviation * math.sqrt(1 - 1 / size), of_total) / size
            deviation = math.sqrt(deviation**2 + ROUNDING)
            noise = Noise(deviation, deviation * math.sqrt(2 / math.pi))
        elif isinstance(step, Asked) and step.queries == (MarginalQuery(()),):
            of_total = noise.deviation
        thing = "units" if unit.together else "rows"
        found.append(Noise(noise.deviation / unit.weight, noise.mean / unit.weight, thing))
    return found
