"""From a share of the budget to the scale of the noise, never on the unsafe side.

Two accountants must agree before a scale is used: our exact fractions and OpenDP's own
privacy map, which rounds up. The scale grows by single steps of a float until both say
that the share is enough.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.accounting.events import (
    GaussianEvent,
    LaplaceEvent,
    SelectionEvent,
    cost_units,
)
from dpsyn_sql.errors import BudgetError, InternalError
from dpsyn_sql.measure.noise import gaussian_mechanism, laplace_mechanism, selection_mechanism
from dpsyn_sql.plan.plan import Plan

_MOST_STEPS = 64


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


def planned_events(plan: Plan) -> list[GaussianEvent | LaplaceEvent]:
    """The events that a plan's known steps will reserve, known before anything is read."""
    rows = plan.source.unit.max_rows
    return [marginals_event(len(step.queries), rows, step.budget) for step in plan.known]


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


def selection_event(rows_per_unit: int, share: Budget) -> SelectionEvent:
    """The event of one private choice within ``share``.

    A score is an L1 distance of integer counts to a public table: one row changes it by at most
    1, k rows by at most k.

    Raises:
        BudgetError: the share is nothing.
    """
    if share.amount == 0:
        raise BudgetError("a private choice was given no budget; raise epsilon")
    price = float(share.fraction)
    epsilon = math.sqrt(8 * price) if share.kind == "zcdp" else price

    def fits(scale: float) -> bool:
        event = SelectionEvent(scale, rows_per_unit)
        map_cost = Fraction(selection_mechanism(scale, share.kind).map(rows_per_unit))
        return cost_units(event, share.kind) <= share.amount and map_cost <= share.fraction

    return SelectionEvent(_grown_until(fits, 2 * rows_per_unit / epsilon), rows_per_unit)


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
