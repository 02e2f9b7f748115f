"""Tails of the discrete Gaussian, never on the unsafe side: what a threshold of discovery costs.

Evaluated in decimals of 60 digits, so that every machine charges the same.
"""

from __future__ import annotations

import math
from decimal import Context, Decimal, localcontext
from functools import lru_cache

from dpsyn_sql.accounting.budget import DELTA_UNITS
from dpsyn_sql.errors import InternalError

_PRECISE = Context(prec=60)
_SLACK = Decimal("1e-40")
"""Relative; far above the error of a 60-digit evaluation, far below anything that matters."""
_BLOCKS = 2_000
_NEGLIGIBLE = Decimal("1e-50")
# Of the sum so far: what lies beyond such a term is far below ``_SLACK``.
_TWO_PI_BELOW = Decimal("6.283185307179586476925286766559005768394338798750")


@lru_cache(maxsize=10_000)
def threshold_delta_units(sigma: float, keys: int, steps: int) -> int:
    """Upper bound of 1 - (1 - P[Z >= steps])^keys in units of 1e-18, at most 10^18.

    Z is discrete Gaussian of scale ``sigma``: the probability that one of ``keys`` values held by one
    unit alone, each counted once, reaches a threshold that is ``steps`` above one unit.

    Raises:
        InternalError: a scale or a number of keys that is not above 0.
    """
    if not (math.isfinite(sigma) and sigma > 0 and keys > 0):
        raise InternalError("a threshold needs noise and at least one key")
    if steps < max(1.0, sigma):  # more likely than any budget allows
        return DELTA_UNITS
    with localcontext(_PRECISE):
        of_one_key = _tail(Decimal(sigma), steps)
        any_of_them = 1 - (1 - of_one_key) ** keys + _SLACK
        return min(DELTA_UNITS, math.ceil(any_of_them * DELTA_UNITS))


def _tail(sigma: Decimal, start: int) -> Decimal:
    """Upper bound of P[Z >= start] for start >= sigma; call inside the precise context."""
    above = _sum_from(sigma, start) * (1 + _SLACK)
    return min(Decimal(1), above / _normaliser(sigma))


def _normaliser(sigma: Decimal) -> Decimal:
    """Lower bound of the sum of exp(-z^2 / 2 sigma^2) over all integers z.

    By Poisson's summation formula the sum is at least sqrt(2 pi) sigma; below sigma = 2 its first
    terms alone are more.
    """
    smooth = _TWO_PI_BELOW.sqrt() * sigma
    terms = (2 * (-(z * z) / (2 * sigma * sigma)).exp() for z in range(1, 30))
    return max(smooth, 1 + sum(terms, Decimal(0))) * (1 - _SLACK)


def _sum_from(sigma: Decimal, start: int) -> Decimal:
    """Upper bound of the sum of f(z) = exp(-z^2 / 2 sigma^2) over z >= start.

    f is convex from sigma on, so between two points of a block it lies below their chord. After the
    last block, with its start at m, the terms fall faster than a geometric series of ratio
    exp(-(2m + 1) / 2 sigma^2): a bound wherever the blocks end.
    """
    width = max(1, int(sigma / 100))
    double = 2 * sigma * sigma
    height = (-Decimal(start) * start / double).exp()
    ratio = (-Decimal(2 * start * width + width * width) / double).exp()
    flattening = (-Decimal(width * width) / (sigma * sigma)).exp()
    total = Decimal(0)
    for _ in range(_BLOCKS):
        if height < total * _NEGLIGIBLE:
            break
        after = height * ratio
        total += width * height - (width - 1) * (height - after) / 2
        height, ratio, start = after, ratio * flattening, start + width
    return total + height / (1 - (-Decimal(2 * start + 1) / double).exp())
