"""What a release could not keep: the verdict on it, and where it stops."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from dpsyn_sql.accounting.account import describe, left_in_words
from dpsyn_sql.accounting.budget import Budget, exact_number
from dpsyn_sql.accounting.events import GaussianEvent, LaplaceEvent, ThresholdEvent
from dpsyn_sql.discovery.cells import STANDS_OUT
from dpsyn_sql.errors import InternalError, ReleaseStopped
from dpsyn_sql.front.job import TableDesign, TablePlan
from dpsyn_sql.ledger.entries import SqliteEntry
from dpsyn_sql.methods.recipe import Recipe
from dpsyn_sql.planning.asking import Ask
from dpsyn_sql.planning.limits import TIED_PART, Learnt, little_is_kept
from dpsyn_sql.planning.plan import Plan
from dpsyn_sql.private.measure.noise import standard_deviation
from dpsyn_sql.private.measure.planned_events import discovery_events
from dpsyn_sql.private.measure.questions.columns import shown_from
from dpsyn_sql.report.departures import Departure, departures
from dpsyn_sql.report.doubts import Doubts, doubts, none_asked
from dpsyn_sql.report.fitted import FittedRelease
from dpsyn_sql.report.loss_words import facts_of_losses
from dpsyn_sql.report.losses import losses_of
from dpsyn_sql.report.verdict import Terms, judged
from dpsyn_sql.rows.sample.tables import DrawnRows
from dpsyn_sql.source.names import listed

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
    if not design.source.relation.text_decimal:
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


# -- stops -------------------------------------------------------------------------------------------

# Where a release stops after learning: the mark in its ledger, and what its owner is told.


def stopping(table: TablePlan, entry: SqliteEntry) -> Callable[[Learnt], None] | None:
    """What looks at what was learnt, and raises ReleaseStopped; None for a release that never stops.

    One that was measured before, or that went on by its owner's wish, is only finished.
    """
    if not table.may_stop:
        return None

    def tied(columns: int, learnt: Learnt, budget: Budget) -> float:
        return table.method.pairs_needed(learnt.rows, columns, budget, table.terms)

    def review(learnt: Learnt) -> None:
        now = tied(learnt.columns, learnt, table.plan.budget)
        if not little_is_kept(learnt, now):
            return
        left = entry.stop()
        if left is None:
            return
        others = learnt.columns - len(learnt.hidden)
        few = (number for number in range(others, 1, -1) if tied(number, learnt, left) <= TIED_PART * number)
        message = [
            _columns(learnt, table.counted),
            _pairs(now, tied(others, learnt, left), learnt),
            _cure(others, next(few, 0)),
            _rest(table, entry, left),
        ]
        raise ReleaseStopped(" ".join(message), tuple(learnt.hidden))

    return review


def _columns(learnt: Learnt, units: str) -> str:
    least = max(learnt.hidden.values())
    return (
        "The release has stopped after learning what its columns hold, and nothing was written: little of "
        f"the table can be kept. Of {learnt.columns:,} columns {len(learnt.hidden):,} have no value that is "
        f"frequent enough to be found (one needs about {least:,} {units}): {listed(learnt.hidden)}. Each "
        "would be '__other__' in every row, and has its share of the budget of all columns and pairs."
    )


def _pairs(now: float, without: float, learnt: Learnt) -> str:
    """``without``: of the other columns, with what is left of the budget."""
    if math.isinf(now):
        return "With so many columns no pair can be told from noise: all columns would be independent."
    pairs = learnt.columns * (learnt.columns - 1) // 2
    less = "" if math.isinf(without) else f" Of the others about {without:,.0f} have to, with what is left."
    return (
        f"With so many columns pairs are worth their budget only if about {now:,.0f} of {pairs:,} go "
        f"together clearly; else all columns are independent.{less}"
    )


def _cure(others: int, fewer: int) -> str:
    most = f", and name at most about {fewer:,} columns" if 1 < fewer < others else ""
    return (
        "Leave them out with exclude=, or say in the domain file what they hold (type: key for ids and "
        f"names, categories or prefixes for codes){most}; or spend a larger epsilon."
    )


def _rest(table: TablePlan, entry: SqliteEntry, left: Budget) -> str:
    delta = exact_number("delta", table.request.delta)
    asked = Budget(left.kind, entry.budget.amount - left.amount, entry.budget.delta - left.delta)
    if entry.state != "debited":
        return "A later release has taken over what it had left, or a part of it, so it cannot go on."
    return (
        f"Of its debit it has asked for {describe(asked, delta)}. The rest stays debited and pays for the "
        f"next release of the account {entry.account.name!r}: at no further cost "
        f"{left_in_words(left, delta)}. "
        "To keep all columns as they are, call again with "
        f"method={table.method.name!r}: that goes on under this debit, at no further cost."
    )
