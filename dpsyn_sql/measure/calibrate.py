"""From a share of the budget to the scale of the noise, never on the unsafe side.

Two accountants must agree before a scale is used: our exact fractions and OpenDP's own
privacy map, which rounds up. The scale grows by single steps of a float until both say
that the share is enough.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.accounting.events import (
    GaussianEvent,
    LaplaceEvent,
    PrivacyEvent,
    SelectionEvent,
    ThresholdEvent,
    TreeEvent,
    cost_units,
)
from dpsyn_sql.errors import BudgetError, InternalError
from dpsyn_sql.measure.noise import gaussian_mechanism, laplace_mechanism, selection_mechanism
from dpsyn_sql.plan.discovery import Ask, things_per_unit
from dpsyn_sql.plan.plan import Plan, ReservedStep

_MOST_STEPS = 64


@lru_cache(maxsize=1000)
def marginals_event(tables: int, rows_per_unit: int, share: Budget) -> GaussianEvent | LaplaceEvent:
    """The event of measuring ``tables`` full marginals, or as many L1 distances, within ``share``.

    One row adds 1 to one cell of every table, or changes every distance by at most 1: L1 sensitivity
    m, L2 sensitivity sqrt(m); k rows of a unit change at most k times that. Gaussian noise for zCDP,
    Laplace for pure budgets.

    Raises:
        BudgetError: the share is nothing.
    """
    if share.amount == 0:
        raise BudgetError("a step of the plan was given no budget; raise epsilon or ask fewer marginals")
    if share.kind == "zcdp":
        return _gaussian(tables * rows_per_unit**2, share)
    return _laplace(tables * rows_per_unit, share)


def known_events(plan: Plan) -> list[GaussianEvent | LaplaceEvent]:
    """The events that a plan's known steps will reserve, known before anything is read."""
    rows = plan.source.unit.max_rows
    return [marginals_event(len(step.queries), rows, step.budget) for step in plan.known]


def explained_events(plan: Plan) -> list[GaussianEvent | LaplaceEvent]:
    """One per step, to explain the plan: a reserved step as if it measured ``pairs_assumed`` tables whole
    and paid for nothing else."""
    rows, events = plan.source.unit.max_rows, list[GaussianEvent | LaplaceEvent]()
    for step in plan.steps:
        tables = step.pairs_assumed(plan.domain) if isinstance(step, ReservedStep) else len(step.queries)
        events.append(marginals_event(tables, rows, step.budget))
    return events


def planned_events(plan: Plan) -> list[PrivacyEvent]:
    """All events known before anything is read, in the order of their questions."""
    return [*discovery_events(plan), *known_events(plan)]


def _gaussian(l2_squared: int, share: Budget) -> GaussianEvent:
    l2 = math.sqrt(l2_squared)
    while Fraction(l2) ** 2 < l2_squared:
        l2 = math.nextafter(l2, math.inf)

    def fits(sigma: float) -> bool:
        cost = cost_units(GaussianEvent(sigma, l2_squared), share.kind)
        return cost <= share.amount and Fraction(gaussian_mechanism(sigma).map(l2)) <= share.fraction

    sigma = math.sqrt(l2_squared / (2 * float(share.fraction)))
    return GaussianEvent(_grown_until(fits, sigma), l2_squared)


def _laplace(l1: int, share: Budget) -> LaplaceEvent:
    def fits(scale: float) -> bool:
        cost = cost_units(LaplaceEvent(scale, l1), share.kind)
        return cost <= share.amount and Fraction(laplace_mechanism(scale).map(l1)) <= share.fraction

    return LaplaceEvent(_grown_until(fits, l1 / float(share.fraction)), l1)


@lru_cache(maxsize=1000)
def selection_event(number: int, rows_per_unit: int, share: Budget) -> SelectionEvent:
    """The event of a private choice of ``number`` candidates within ``share``.

    A score is an L1 distance of integer counts to a public table: one row changes it by at most
    1, k rows by at most k.

    Raises:
        BudgetError: the share is nothing.
    """
    if share.amount == 0:
        raise BudgetError("a private choice was given no budget; raise epsilon")
    price = float(share.fraction) / number
    epsilon = math.sqrt(8 * price) if share.kind == "zcdp" else price

    def fits(scale: float) -> bool:
        event = SelectionEvent(scale, rows_per_unit, number)
        map_cost = Fraction(selection_mechanism(scale, share.kind, number).map(rows_per_unit))
        return cost_units(event, share.kind) <= share.amount and map_cost <= share.fraction

    return SelectionEvent(_grown_until(fits, 2 * rows_per_unit / epsilon), rows_per_unit, number)


def keys_event(keys_per_unit: int, share: Budget) -> ThresholdEvent:
    """The event of asking which values a column has, within ``share``: noise, and the least threshold.

    A unit counts for at most k values, one each: L2 sensitivity sqrt(k). The delta is by our own exact
    tail: OpenDP's map of a threshold takes that of the continuous Gaussian, which is smaller.

    Raises:
        BudgetError: the share has no threshold delta (pure budgets never have), or no amount.
    """
    if share.kind == "pure" or share.delta == 0:
        raise BudgetError(
            "the values of a column cannot be discovered without delta for its threshold (delta=0, or too "
            "small to be shared by all columns): whether a rare value is shown would give away who has it. "
            "Declare its categories in the domain, or release with a larger delta"
        )
    _refuse_nothing(share)
    sigma = _gaussian(keys_per_unit, share).sigma
    low = high = 2 + math.ceil(sigma)
    while ThresholdEvent(sigma, keys_per_unit, high).delta_units > share.delta:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        fits = ThresholdEvent(sigma, keys_per_unit, middle).delta_units <= share.delta
        low, high = (low, middle) if fits else (middle, high)
    return ThresholdEvent(sigma, keys_per_unit, high)


def grid_event(codes_per_unit: int, share: Budget) -> GaussianEvent | LaplaceEvent:
    """The event of counting distinct units per code of a grid within ``share``.

    A unit counts for at most k codes, one each: L1 sensitivity k, L2 sensitivity sqrt(k).

    Raises:
        BudgetError: the share is nothing.
    """
    _refuse_nothing(share)
    return _gaussian(codes_per_unit, share) if share.kind == "zcdp" else _laplace(codes_per_unit, share)


def contributions_event(share: Budget) -> GaussianEvent | LaplaceEvent:
    """The event of counting units by their number of rows within ``share``: one cell a unit.

    Raises:
        BudgetError: the share is nothing.
    """
    return grid_event(1, share)


def discovery_events(plan: Plan) -> list[PrivacyEvent]:
    """The events that a plan's discovery may reserve, known before anything is read.

    A tree is asked for only where the grid showed something, so not all of them need be.
    """
    return [_discovery_event(step.ask, plan.source.unit.max_rows, step.budget) for step in plan.discovery]


def _discovery_event(ask: Ask, rows_per_unit: int, share: Budget) -> PrivacyEvent:
    things = things_per_unit(ask, rows_per_unit)
    if ask == "keys":
        return keys_event(things, share)
    if ask == "grid":
        return grid_event(things, share)
    return tree_event(things, share) if ask == "tree" else contributions_event(share)


def tree_event(points_per_unit: int, share: Budget) -> TreeEvent:
    """The event of growing trees over the points of units, at most k each, within ``share``.

    Raises:
        BudgetError: the share is nothing.
    """
    _refuse_nothing(share)
    amount = float(share.fraction)
    epsilon = math.sqrt(2 * amount) if share.kind == "zcdp" else amount

    def fits(scale: float) -> bool:
        # Three tests of sensitivity 1 are the worst case of a path, for each of the points.
        tests = Fraction(laplace_mechanism(scale).map(1)) * 3 * points_per_unit
        second = tests if share.kind == "pure" else tests**2 / 2
        return (
            cost_units(TreeEvent(scale, points_per_unit), share.kind) <= share.amount
            and second <= share.fraction
        )

    return TreeEvent(_grown_until(fits, 3 * points_per_unit / epsilon), points_per_unit)


def _refuse_nothing(share: Budget) -> None:
    if share.amount == 0:
        raise BudgetError("discovery was given no budget; raise epsilon, or declare the domain")


def _grown_until(fits: Callable[[float], bool], scale: float) -> float:
    step = 1.0
    for _ in range(_MOST_STEPS):
        if fits(scale):
            return scale
        scale, step = scale + step * math.ulp(scale), step * 2
    raise InternalError("no noise scale was found that both accountants accept")


def standard_deviation(event: GaussianEvent | LaplaceEvent) -> float:
    """Standard deviation of the noise in one cell, in rows.

    The discrete Gaussian's is below its scale sigma, and equal to many digits for sigma >= 2;
    the discrete Laplace's is sqrt(2 q) / (1 - q) with q = exp(-1/scale).
    """
    if isinstance(event, GaussianEvent):
        return event.sigma
    decay = math.exp(-1 / event.scale)
    return math.sqrt(2 * decay) / -math.expm1(-1 / event.scale)


def mean_error(event: GaussianEvent | LaplaceEvent) -> float:
    """Mean absolute noise in one cell, in rows.

    Gaussian: sigma sqrt(2 / pi), for sigma < 2 the sum over the integers; the discrete Laplace's is
    2 q / (1 - q^2) with q = exp(-1/scale).
    """
    if isinstance(event, LaplaceEvent):
        return 1 / math.sinh(1 / event.scale) if event.scale > 0.002 else 0.0
    if event.sigma >= 2:
        return event.sigma * math.sqrt(2 / math.pi)
    weights = [(k, math.exp(-(k**2) / (2 * event.sigma**2))) for k in range(1, 41)]
    return sum(2 * k * weight for k, weight in weights) / (1 + sum(2 * weight for _, weight in weights))
