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
from dpsyn_sql.accounting.events import GaussianEvent, LaplaceEvent, ThresholdEvent, cost_units
from dpsyn_sql.accounting.gdp import LATTICE, SMOOTHING
from dpsyn_sql.errors import BudgetError, InternalError
from dpsyn_sql.private.measure.noise import gaussian_mechanism, laplace_mechanism

_MOST_STEPS = 64
ROUNDING = 1 / 12
"""Variance of rounding to whole rows."""


def counts_event(l1: int, l2_squared: int, share: Budget) -> GaussianEvent | LaplaceEvent:
    """Noise within ``share`` for whole numbers of these sensitivities: Laplace for pure budgets, Gaussian for
    all others."""
    if share.gaussian:
        return gaussian_event(l2_squared, share)
    return laplace_event(l1, share)


def gaussian_event(l2_squared: int, share: Budget, lattice: int = LATTICE) -> GaussianEvent:
    """The least discrete Gaussian noise within ``share`` that both accountants accept.

    OpenDP's is rho, which mu^2 / 2 is at least.
    """
    l2 = math.sqrt(l2_squared)
    while Fraction(l2) ** 2 < l2_squared:
        l2 = math.nextafter(l2, math.inf)

    def fits(sigma: float) -> bool:
        cost = cost_units(GaussianEvent(sigma, l2_squared, lattice), share.kind)
        rho = Fraction(gaussian_mechanism(lattice * sigma).map(lattice * l2))
        return cost <= share.amount and rho <= share.fraction

    sigma = math.sqrt(l2_squared / (2 * float(share.fraction)) + SMOOTHING / lattice**2)
    return GaussianEvent(grown_until(fits, sigma), l2_squared, lattice)


def laplace_event(l1: int, share: Budget) -> LaplaceEvent:
    """The least discrete Laplace noise within ``share`` that both accountants accept."""

    def fits(scale: float) -> bool:
        cost = cost_units(LaplaceEvent(scale, l1), share.kind)
        return cost <= share.amount and Fraction(laplace_mechanism(scale).map(l1)) <= share.fraction

    return LaplaceEvent(grown_until(fits, l1 / float(share.fraction)), l1)


def refuse_no_discovery(share: Budget) -> None:
    """A question of discovery has to be paid for.

    Raises:
        BudgetError: the share is nothing.
    """
    if share.amount == 0:
        raise BudgetError("discovery has no budget: raise epsilon, or declare the domain")


def grown_until(fits: Callable[[float], bool], scale: float) -> float:
    """The first scale from ``scale`` upwards that fits.

    Raises:
        InternalError: none does within a few steps.
    """
    step = 1.0
    for _ in range(_MOST_STEPS):
        if fits(scale):
            return scale
        scale, step = scale + step * math.ulp(scale), step * 2
    raise InternalError("no noise scale was found that both accountants accept")


_LEAST_DEVIATION = 2.0**-20
# Rows: of noise that is 0 but once in 2^40 cells. Nobody needs to know it better, and its square divides.


def standard_deviation(event: GaussianEvent | LaplaceEvent | ThresholdEvent) -> float:
    """Standard deviation of the noise in one cell, in rows; told as no less than ``_LEAST_DEVIATION``.

    The discrete Gaussian's is below its scale sigma, and equal to many digits for sigma >= 2 steps of its
    lattice; rounding steps to whole rows adds a variance of 1/12. The discrete Laplace's is
    sqrt(2 q) / (1 - q) with q = exp(-1/scale).
    """
    if isinstance(event, GaussianEvent | ThresholdEvent):
        return math.sqrt(event.sigma**2 + ROUNDING) if event.lattice > 1 else event.sigma
    decay = math.exp(-1 / event.scale)
    return max(math.sqrt(2 * decay) / -math.expm1(-1 / event.scale), _LEAST_DEVIATION)


def mean_error(event: GaussianEvent | LaplaceEvent) -> float:
    """Mean absolute noise in one cell, in rows.

    Gaussian: sqrt(2 / pi) standard deviations, for sigma < 2 the sum over the integers; the discrete
    Laplace's is 2 q / (1 - q^2) with q = exp(-1/scale).
    """
    if isinstance(event, LaplaceEvent):
        return 1 / math.sinh(1 / event.scale) if event.scale > 0.002 else 0.0
    if event.sigma >= 2:
        return standard_deviation(event) * math.sqrt(2 / math.pi)
    if event.lattice > 1:
        return sum(math.erfc((k - 0.5) / (math.sqrt(2) * event.sigma)) for k in range(1, 41))
    weights = [(k, math.exp(-(k**2) / (2 * event.sigma**2))) for k in range(1, 41)]
    return sum(2 * k * weight for k, weight in weights) / (1 + sum(2 * weight for _, weight in weights))
