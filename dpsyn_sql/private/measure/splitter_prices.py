"""From a share of the budget to a splitter: its noise, decay or discount, and threshold. Public."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import TypeVar

from scipy.special import ndtri

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.accounting.events import (
    GaussianEvent,
    ImprovedEvent,
    LaplaceEvent,
    TreeEvent,
    cost_units,
    log_above,
)
from dpsyn_sql.accounting.gdp import range_of_choice
from dpsyn_sql.errors import BudgetError, InputError
from dpsyn_sql.planning.queries import TreeQuery
from dpsyn_sql.private.measure.calibrate import (
    counts_event,
    grown_until,
    refuse_no_discovery,
    standard_deviation,
)
from dpsyn_sql.private.measure.noise import MOST_ROWS, laplace_mechanism
from dpsyn_sql.private.measure.splitters import Basic, Direct, Improved, PrivTree, Splitter

_Event = TypeVar("_Event", TreeEvent, ImprovedEvent)

_MOST_TAKEN = 2**61


def splitter_of(question: TreeQuery, rows_per_unit: int, share: Budget) -> Splitter:
    """The splitter that a question asks for, within ``share``.

    Thresholds that a question leaves open: 0 rows for privtree; for direct the noise of a count, at least 2;
    for basic and improved such that of the children of an empty node less than one is split on average, so
    that noise alone makes no large tree.

    Raises:
        BudgetError: the share is nothing, or so small that what its noise takes off counts is no BIGINT.
        InputError: the threshold is out of range.
    """
    refuse_no_discovery(share)
    branching = max(hierarchy.branching for hierarchy in question.hierarchies)
    threshold = question.threshold
    least = 1 if question.splitter == "direct" else 0
    if threshold is not None and not least <= threshold <= MOST_ROWS:
        raise InputError(
            f"threshold={threshold} is out of range: it is a number of rows, {least} to {MOST_ROWS}"
        )
    if question.splitter == "privtree":
        tests = _pure_event(lambda scale: TreeEvent(scale, rows_per_unit, branching), share)
        _refuse_overflow(question.depth * tests.decay)
        return PrivTree(tests, threshold or 0)
    if question.splitter == "improved":
        event = _pure_event(lambda scale: ImprovedEvent(scale, rows_per_unit), share)
        least = _discounting_threshold(event, branching, threshold)
        _refuse_overflow(question.depth * event.discount(least))
        return Improved(event, least, question.discount)
    if question.splitter == "direct":
        noise = levels_event(question.depth + 1, rows_per_unit, share)
        return Direct(noise, max(2, math.ceil(standard_deviation(noise))) if threshold is None else threshold)
    noise = levels_event(question.depth, rows_per_unit, share)
    return Basic(noise, usual_threshold(noise, branching) if threshold is None else threshold)


def _refuse_overflow(taken: int) -> None:
    """What all levels take off a count has to be far from the end of a BIGINT: an error in the middle of a
    tree would depend on its answers.

    Raises:
        BudgetError: it is not.
    """
    if taken > _MOST_TAKEN:
        raise BudgetError(
            "the share of the budget for a tree is so small that its noise is wider than any table: raise "
            "epsilon, or lower depth, threshold or the rows per unit"
        )


def _discounting_threshold(event: ImprovedEvent, branching: int, threshold: int | None) -> int:
    """The threshold of the improved adaptive histogram: at least scale ln branching rows.

    Raises:
        InputError: it is lower, so that noise alone splits without end.
    """
    least = max(1, math.ceil(Fraction(event.scale) * log_above(branching)))
    if threshold is not None and threshold < least:
        raise InputError(
            f"threshold={threshold} is too low for the improved splitter: a node has up to {branching} "
            f"children, more than e^(threshold / scale) for noise of scale {event.scale:.4g}. So noise alone "
            f"would split empty nodes without end. Set threshold={least} or more, or raise epsilon"
        )
    return least if threshold is None else threshold


def levels_event(levels: int, rows_per_unit: int, share: Budget) -> GaussianEvent | LaplaceEvent:
    """The event of one noisy count of every node on each of ``levels`` levels, within ``share``."""
    return counts_event(levels * rows_per_unit, levels * rows_per_unit**2, share)


def usual_threshold(event: GaussianEvent | LaplaceEvent, branching: int) -> int:
    """Three standard deviations of the noise of a count, or the count that noise alone reaches with a
    probability of about 1 / (2 branching), if that is more; in rows, at least 1."""
    noise = standard_deviation(event)
    if isinstance(event, LaplaceEvent):
        reach = event.scale * math.log(branching)
    else:
        reach = noise * float(ndtri(1 - 1 / (2 * branching)))
    return max(1, math.ceil(max(reach, 3 * noise)))


def _pure_event(of: Callable[[float], _Event], share: Budget) -> _Event:
    """The event of least noise within ``share`` that both accountants accept.

    ``of`` gives the event of a scale; it is epsilon-DP, with epsilon a multiple of 1 / scale.
    """
    unit = of(1.0).cost("pure")
    epsilon = range_of_choice(share.fraction) / 2 if share.kind == "gdp" else float(share.fraction)

    def fits(scale: float) -> bool:
        second = Fraction(laplace_mechanism(scale).map(1)) * unit
        paid = second if share.kind == "pure" else second**2 / 2
        return cost_units(of(scale), share.kind) <= share.amount and paid <= share.fraction

    return of(grown_until(fits, float(unit) / epsilon))
