"""What a release could not keep, by its noisy answers, and the verdict on it."""

from __future__ import annotations

import math
from typing import Any

from dpsyn_sql.accounting.events import GaussianEvent, LaplaceEvent, ThresholdEvent
from dpsyn_sql.discovery.cells import STANDS_OUT
from dpsyn_sql.errors import InternalError
from dpsyn_sql.front.job import TableDesign
from dpsyn_sql.methods.recipe import Recipe
from dpsyn_sql.planning.discovery import Ask
from dpsyn_sql.planning.plan import Plan
from dpsyn_sql.private.measure.calibrate import standard_deviation
from dpsyn_sql.private.measure.planned_events import discovery_events
from dpsyn_sql.private.measure.questions.columns import shown_from
from dpsyn_sql.report.departures import Departure, departures
from dpsyn_sql.report.doubts import Doubts, doubts, none_asked
from dpsyn_sql.report.fitted import FittedRelease
from dpsyn_sql.report.loss_words import facts_of_losses
from dpsyn_sql.report.losses import losses_of
from dpsyn_sql.report.verdict import Terms, judged
from dpsyn_sql.rows.write.staging import DrawnRows

_SHOW: tuple[Ask, ...] = ("keys", "again")
"""The questions that show values of text."""

_HIDE: tuple[Ask, ...] = ("grid", "leaves", "mixed")
"""The questions whose noise hides values."""


def departed(method: Recipe, fitted: FittedRelease, drawn: DrawnRows) -> tuple[Departure, ...]:
    """Where drawn rows depart from the noisy answers, the worst first.

    Raises:
        InternalError: a column is not what was counted.
    """
    found = departures(fitted, drawn, columns=method.keeps_columns, pairs=method.keeps_pairs)
    gross = next((one for one in found if one.gross), None)
    if gross is not None:
        raise InternalError(
            f"The rows are not those that were counted. {gross.text} Nothing was written. The debit stands, "
            "and the answers are stored: the same call costs nothing more, also with a version of dpsyn_sql "
            "in which this is mended. Please report it."
        )
    return found


def _stated_of_text(design: TableDesign, fitted: FittedRelease) -> frozenset[str]:
    """The columns of a text file whose types are not learnt."""
    if not design.source.relation.read_as_text:
        return frozenset()
    return frozenset(fitted.shape.domain.names).difference(fitted.types)


def lost_of(
    design: TableDesign, fitted: FittedRelease, found: tuple[Departure, ...], replaced: float = 0.0
) -> tuple[dict[str, Any], Doubts]:
    """The losses and verdicts for the certificate, and the doubts that follow from them; ``found``: where the
    rows depart from the answers; ``replaced``: the part of the rows that conditions gave other codes."""
    needed = _rows_needed(fitted.plan)
    losses = losses_of(fitted, needed, design.shape)
    weighted = design.terms.workload.weighted
    terms = Terms(
        epsilon=float(design.request.epsilon),
        hidden={
            column.name: needed[column.name] / STANDS_OUT
            for column in losses.columns
            if column.attribute.kind == "numeric"
            and column.name in needed
            and not any(column.attribute.beyond)
        },
        named={name for members, weight in weighted if weight > 1 for name in members},
        units=design.counted,
        chosen=none_asked(fitted.plan) is not None,
        departures=found,
        beyond=fitted.beyond,
        seen=design.method.visible(fitted.plan),
        clear=design.method.clear(fitted.model),
        texts=_stated_of_text(design, fitted),
    )
    verdicts = judged(fitted, losses, terms)
    told = doubts(fitted, verdicts, larger=terms.larger, replaced=replaced)
    return facts_of_losses(losses, verdicts, told.warnings), told


def _rows_needed(plan: Plan) -> dict[str, float]:
    """For discovered columns the rows that a value must have to be found."""
    needed: dict[str, float] = {}
    for step, (event, *_) in zip(plan.discovery, discovery_events(plan), strict=True):
        if step.attr is not None and step.ask in _SHOW and isinstance(event, ThresholdEvent):
            needed[step.attr] = min(shown_from(event), needed.get(step.attr, math.inf))
        elif step.attr is not None and isinstance(event, GaussianEvent | LaplaceEvent) and step.ask in _HIDE:
            needed[step.attr] = STANDS_OUT * standard_deviation(event)
    return needed
