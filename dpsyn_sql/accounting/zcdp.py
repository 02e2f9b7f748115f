"""Zero-concentrated differential privacy (rho-zCDP) and its conversion to (epsilon, delta).

Bun and Steinke, "Concentrated Differential Privacy" (2016), for composition and the Gaussian
mechanism; Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy"
(2020), Proposition 7, for the conversion: for every alpha > 1,

    delta = exp((alpha - 1)(alpha rho - epsilon)) / (alpha - 1) * (1 - 1/alpha)^alpha.

Every alpha gives a valid bound, so the best one is searched in floats and the bound at that
alpha is evaluated in 50-digit decimals, rounded to the safe side. No library's optimiser is
involved, so the same (epsilon, delta) buys the same rho on every machine.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

RHO_UNITS = 10**15
"""Amounts of rho (and of pure epsilon) are integers of 1e-15."""

_PRECISE = Context(prec=50)
_SLACK = Decimal("1e-40")
"""Far above the error of a 50-digit evaluation, far below anything that matters."""


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def _log_shape(alpha: Decimal) -> Decimal:
    """The logarithm of (1 - 1/alpha)^alpha / (alpha - 1)."""
    return alpha * (1 - 1 / alpha).ln() - (alpha - 1).ln()


def _alpha_where(rises_through_zero: Callable[[float], float]) -> float:
    """The alpha > 1 at which an increasing function of alpha changes sign."""
    low, high = -60.0, 60.0  # logarithms of alpha - 1
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (low, middle) if rises_through_zero(1 + math.exp(middle)) > 0 else (middle, high)
    return max(1 + math.exp(high), math.nextafter(1, 2))


def _is_within(rho: Fraction, epsilon: Fraction, log_delta: Decimal) -> bool:
    """Whether rho-zCDP implies (epsilon, delta); call inside the precise context."""
    # Derivative in alpha of the logarithm of the bound; the bound is convex.
    rho_float, epsilon_float = float(rho), float(epsilon)
    best = _alpha_where(lambda a: (2 * a - 1) * rho_float - epsilon_float + math.log1p(-1 / a))
    alpha = Decimal(best)
    bound = (alpha - 1) * (alpha * _decimal(rho) - _decimal(epsilon)) + _log_shape(alpha)
    return bound + _SLACK <= log_delta


@lru_cache(maxsize=1000)
def rho_from_epsilon(epsilon: Fraction, delta: Fraction) -> int:
    """The largest rho, in units of 1e-15 and floored, that implies (epsilon, delta)-DP.

    Args:
        epsilon: greater than 0.
        delta: in (0, 1).

    Returns:
        Units of rho; 0 when even one unit is too much.
    """
    with localcontext(_PRECISE):
        log_delta = _decimal(delta).ln() - _SLACK
        low, high = 0, math.ceil(epsilon * RHO_UNITS) + 1  # rho-zCDP never implies less than epsilon = rho
        while high - low > 1:
            middle = (low + high) // 2
            within = _is_within(Fraction(middle, RHO_UNITS), epsilon, log_delta)
            low, high = (middle, high) if within else (low, middle)
    return low


def epsilon_from_rho(rho: Fraction, delta: Fraction) -> float:
    """The smallest epsilon, rounded up, such that rho-zCDP implies (epsilon, delta)-DP.

    Args:
        rho: at least 0; 0 gives 0.0.
        delta: in (0, 1).
    """
    if rho <= 0:
        return 0.0
    rho_float = float(rho)
    log_delta = math.log(delta.numerator) - math.log(delta.denominator)
    # (alpha - 1)^2 times the derivative of epsilon in alpha.
    alpha = Decimal(_alpha_where(lambda a: (a - 1) ** 2 * rho_float + math.log(a) + log_delta))
    with localcontext(_PRECISE):
        epsilon = alpha * _decimal(rho) + (_log_shape(alpha) - _decimal(delta).ln()) / (alpha - 1) + _SLACK
        return max(0.0, math.nextafter(float(epsilon), math.inf))
