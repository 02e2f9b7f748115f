"""Gaussian differential privacy (mu-GDP): its exact trade-off with (epsilon, delta), and what events cost.

Dong, Roth and Su, "Gaussian Differential Privacy" (2022); Balle and Wang (2018), Theorem 8, for

    G_mu(e^epsilon) = Phi(mu / 2 - epsilon / mu) - e^epsilon Phi(-mu / 2 - epsilon / mu),

the least delta of two normal laws of variance 1 that lie mu apart. Amounts are mu^2 / 2: those of adaptively
chosen events add up below a limit fixed beforehand (Smith and Thakurta 2022; docs/privacy.md, "Exact
Gaussian accounting").

Roots are searched from a guess in floats and judged in 70-digit decimals, rounded to the safe side: the same
(epsilon, delta) buys the same amount on every machine.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

from dpsyn_sql.errors import InternalError

AMOUNT_UNITS = 10**15
"""Amounts of mu^2 / 2 and of pure epsilon are integers of 1e-15."""

LATTICE = 16
"""Steps of the noise per row: counts get noise in sixteenths of a row."""

SMOOTHING = 4
"""s^2 in steps of the lattice: what a price takes off the variance of the noise. A discrete Gaussian is a
randomised rounding of a normal law with this much less variance, up to a factor 1 + e in a cell,
e = 2 exp(-8 pi^2) < 1.1e-34 (Peikert 2010, Theorem 3.1, with constants)."""

MOST_CELLS = 2**40
"""Cells of a question. With as many questions fewer than 1.3e24 cells are answered, each within a
factor 1 + e and e^(3.1 e), so all of them cost less than the 1e-9 that is kept for them."""

_KEPT = Fraction(1, 10**9)
"""Off epsilon, and relatively off delta, for the rounding of normal noise to the lattice."""

_PRECISE = Context(prec=70)
_SLACK = Decimal("1e-40")
"""Relative; far above the error of an evaluation, far below anything that matters."""
_TWO_PI = Decimal("6.283185307179586476925286766559005768394338798750211641949889184615632812572418")
_SERIES = 5
"""Up to here a tail is a series, from here on a continued fraction."""
_LAST = Decimal("1e-72")
_MOST_STEPS = 100
_ENOUGH = Decimal("1e-45")
_DIGITS = Context(prec=40, rounding=ROUND_CEILING)
_HALVINGS = 48
_TINY = Fraction(1, 10**12)
_LARGE = 10_000


def trade_off(mu: Decimal, epsilon: Fraction) -> Decimal:
    """G_mu(e^epsilon), rounded up.

    Args:
        mu: above 0.
        epsilon: any number.
    """
    with localcontext(_PRECISE):
        return _trade_off(+mu, _decimal(epsilon)) * (1 + _SLACK)


@lru_cache(maxsize=1000)
def half_mu_squared(epsilon: Fraction, delta: Fraction) -> int:
    """The largest mu^2 / 2, in units of 1e-15 and floored, that implies (epsilon, delta)-DP.

    It fits G_mu(e^(epsilon - 1e-9)) <= delta (1 - 1e-9); what is kept pays for the rounding of normal noise
    to the lattice.

    Args:
        epsilon: greater than 0.
        delta: in (0, 1).

    Returns:
        Units of mu^2 / 2; 0 when even one unit is too much.
    """
    usable = epsilon - _KEPT
    if usable <= 0:
        return 0
    with localcontext(_PRECISE):
        wanted, exact = _wanted(delta), _decimal(usable)

        def misses(mu: Decimal) -> tuple[Decimal, Decimal]:
            delta_of_mu = _trade_off(
                mu, exact
            )  # its derivative in mu is the density at mu / 2 - epsilon / mu
            return (delta_of_mu / wanted).ln(), _density(exact / mu - mu / 2) / delta_of_mu

        guess = _guessed_mu(float(usable), _log(delta))
        mu = _root(misses, Decimal(guess))
        return _largest(int(mu * mu / 2 * AMOUNT_UNITS), lambda units: _is_within(units, exact, wanted))


@lru_cache(maxsize=1000)
def epsilon_from_half_mu_squared(amount: Fraction, delta: Fraction) -> float:
    """The smallest epsilon, a float whose text is rounded up, such that mu^2 / 2 = ``amount`` implies
    (epsilon, delta)-DP; the inverse of ``half_mu_squared``.

    Args:
        amount: at least 0; 0 gives 0.0.
        delta: in (0, 1).
    """
    if amount <= 0:
        return 0.0
    with localcontext(_PRECISE):
        wanted, mu = _wanted(delta), (2 * _decimal(amount)).sqrt()

        def is_enough(epsilon: float) -> bool:
            usable = Decimal(repr(epsilon)) - _decimal(_KEPT)
            return usable >= 0 and _trade_off(mu, usable) * (1 + _SLACK) <= wanted

        def misses(usable: Decimal) -> tuple[Decimal, Decimal]:
            delta_at = _trade_off(mu, usable)
            return (delta_at / wanted).ln(), -usable.exp() * _tail(usable / mu + mu / 2) / delta_at

        if _trade_off(mu, Decimal(0)) <= wanted:
            usable = Decimal(0)
        else:
            usable = _root(misses, Decimal(_guessed_epsilon(float(mu), _log(delta))))
        epsilon = float(max(usable, Decimal(0)) + _decimal(_KEPT))
        while is_enough(epsilon):
            epsilon = math.nextafter(epsilon, 0.0)
        while not is_enough(epsilon):
            epsilon = math.nextafter(epsilon, math.inf)
        return epsilon


@lru_cache(maxsize=1000)
def epsilon_beside_pure(amount: Fraction, pure: Fraction, delta: Fraction) -> float:
    """An epsilon, rounded up, such that events of mu^2 / 2 = ``amount`` and pure events that sum to ``pure``,
    in any order, are (epsilon, delta)-DP together.

    All of them say no more than a normal law that lies mu away, and a coin whose sides have the odds
    e^pure or e^-pure (docs/privacy.md, "Pure releases beside others"). With h = 1 / (1 + e^-pure) the delta
    is h G_mu(e^(epsilon - pure)) + (1 - h) G_mu(e^(epsilon + pure)).

    Args:
        amount: above 0.
        pure: above 0.
        delta: in (0, 1).
    """
    with localcontext(_PRECISE):
        wanted, mu, odds = _wanted(delta), (2 * _decimal(amount)).sqrt(), _decimal(pure)
        heads = 1 / (1 + (-odds).exp())

        def is_enough(epsilon: Decimal) -> bool:
            usable = epsilon - _decimal(_KEPT)
            delta_at = heads * _trade_off(mu, usable - odds) + (1 - heads) * _trade_off(mu, usable + odds)
            return delta_at * (1 + _SLACK) <= wanted

        low, high = Decimal(0), Decimal(epsilon_from_half_mu_squared(amount, delta)) + odds
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (low, middle) if is_enough(middle) else (middle, high)
        return math.nextafter(float(high), math.inf)


def gaussian_cost(l2_squared: int, sigma: float, lattice: int) -> Fraction:
    """mu^2 / 2 of discrete Gaussian noise, exactly: l2_squared / (2 (sigma^2 - 4 / lattice^2)).

    Args:
        l2_squared: squared L2 sensitivity, in rows.
        sigma: scale of the noise, in rows.
        lattice: steps of the noise per row.

    Raises:
        InternalError: so little noise that no price is proved.
    """
    smooth = Fraction(sigma) ** 2 - Fraction(SMOOTHING, lattice**2)
    if smooth <= 0:
        raise InternalError("noise of at most two steps of its lattice has no price in a GDP account")
    return Fraction(l2_squared) / (2 * smooth)


@lru_cache(maxsize=1000)
def pure_cost(epsilon: Fraction) -> Fraction:
    """mu^2 / 2 that pure epsilon-DP implies, rounded up: mu = 2 Phi^-1(1 / (1 + e^-epsilon)).

    The trade-off of pure epsilon is two chords that meet at equal errors 1 / (1 + e^epsilon); that of mu is
    convex and meets them there, so it lies below.

    Args:
        epsilon: at least 0.
    """
    if epsilon <= 0:
        return Fraction(0)
    if epsilon < _TINY:  # Phi^-1 of a logit is concave above 0, with slope sqrt(2 pi) / 4 there
        return Fraction(_TWO_PI) / 8 * (1 + Fraction(_SLACK)) * epsilon**2
    if epsilon > _LARGE:  # Q(x) <= exp(-x^2 / 2) / 2
        return 4 * epsilon
    with localcontext(_PRECISE):
        error = 1 / (1 + _decimal(epsilon).exp())
        centre = (1 - 2 * error) / 2  # of the normal law between 0 and mu / 2

        def misses(half: Decimal) -> tuple[Decimal, Decimal]:
            if half < _SERIES:
                area = _central(half)
                return (area / centre).ln(), _density(half) / area
            area = _tail(half)
            return (area / error).ln(), -_density(half) / area

        log_error = -float(epsilon) - math.log1p(math.exp(-float(epsilon)))
        guess = _bisected(lambda half: log_error - _log_phi(-half))
        half = _root(misses, Decimal(guess))
        return Fraction(_DIGITS.multiply(2 * half * half, 1 + _SLACK))


def choice_cost(eta: Fraction) -> Fraction:
    """mu^2 / 2 of a private choice whose privacy loss has a range of ``eta``, rounded up.

    The likelihood ratios lie in [e^(t - eta), e^t] for some t, and the trade-off has a vertex (q, 1 - p) with
    logit p - logit q = eta. Phi^-1(p) - Phi^-1(q) is largest at q = 1 - p: d logit(Phi(x)) / dx is
    h(x) + h(-x), h the hazard of the normal law, convex (Sampford 1953), so least at 0 and rising with |x|.
    There logit p = eta / 2.
    """
    return pure_cost(eta / 2)


def range_of_choice(amount: Fraction) -> float:
    """The range eta whose ``choice_cost`` is ``amount``, to the nearest float: the same on every machine, as
    the scale of a stored question follows from it.

    Args:
        amount: above 0.
    """
    with localcontext(_PRECISE):
        tail = _tail((_decimal(amount) / 2).sqrt())
        return float(2 * ((1 - tail) / tail).ln())


def _is_within(units: int, epsilon: Decimal, wanted: Decimal) -> bool:
    if units <= 0:
        return True
    return _trade_off((Decimal(2 * units) / AMOUNT_UNITS).sqrt(), epsilon) * (1 + _SLACK) <= wanted


def _largest(near: int, fits: Callable[[int], bool]) -> int:
    """The largest number that fits, from one close to it; what is below a number that fits does too."""
    while not fits(near):
        near -= 1
    while fits(near + 1):
        near += 1
    return near


def _wanted(delta: Fraction) -> Decimal:
    return _decimal(delta * (1 - _KEPT)) * (1 - _SLACK)


def _trade_off(mu: Decimal, epsilon: Decimal) -> Decimal:
    """Phi(-x) - e^epsilon Phi(-x - mu), x = epsilon / mu - mu / 2; call inside the precise context."""
    start = epsilon / mu - mu / 2
    return _tail(start) - epsilon.exp() * _tail(start + mu)


def _tail(x: Decimal) -> Decimal:
    """P[N > x] of a normal law; call inside the precise context."""
    if x <= -_SERIES:
        return 1 - _tail(-x)
    if x < _SERIES:
        return Decimal("0.5") - _central(x)
    # Laplace's continued fraction 1 / (x + 1 / (x + 2 / (x + ...))), backwards. With so many terms its error
    # is below 1e-60 everywhere from 5 on.
    fraction, terms = x, 40 + int(5_000 / float(x) ** 2)
    for term in range(terms, 0, -1):
        fraction = x + term / fraction
    return _density(x) / fraction


def _central(x: Decimal) -> Decimal:
    """P[0 < N < x]: density(x) (x + x^3 / 3 + x^5 / (3 5) + ...), all of one sign."""
    term = total = x
    square, odd = x * x, 1
    while abs(term) > abs(total) * _LAST:
        odd += 2
        term = term * square / odd
        total += term
    return _density(x) * total


def _density(x: Decimal) -> Decimal:
    return (-x * x / 2).exp() / _TWO_PI.sqrt()


def _root(misses: Callable[[Decimal], tuple[Decimal, Decimal]], guess: Decimal) -> Decimal:
    """Newton's method on a positive variable; ``misses`` returns value and derivative."""
    for _ in range(_MOST_STEPS):
        value, slope = misses(guess)
        if abs(value) <= _ENOUGH:
            return guess
        step = value / slope
        guess = guess - step if step < guess / 2 else guess / 2
    raise InternalError("the search for a GDP amount did not converge")


def _guessed_mu(epsilon: float, log_delta: float) -> float:
    return _bisected(lambda mu: _log_trade_off(mu, epsilon) - log_delta)


def _guessed_epsilon(mu: float, log_delta: float) -> float:
    return _bisected(lambda epsilon: log_delta - _log_trade_off(mu, epsilon))


def _bisected(rises_through_zero: Callable[[float], float]) -> float:
    low, high = -60.0, 20.0  # logarithms
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if rises_through_zero(math.exp(middle)) > 0 else (middle, high)
    return math.exp(low)


def _log_phi(x: float) -> float:
    """Logarithm of Phi in floats, for a guess."""
    if x > -30:
        return math.log(math.erfc(-x / math.sqrt(2)) / 2)
    return -x * x / 2 - math.log(-x * math.sqrt(2 * math.pi)) + math.log1p(-1 / x**2)


def _log_trade_off(mu: float, epsilon: float) -> float:
    """In floats, for a guess: rough where both parts are nearly equal."""
    first = _log_phi(mu / 2 - epsilon / mu)
    remainder = -math.expm1(min(0.0, epsilon + _log_phi(-mu / 2 - epsilon / mu) - first))
    return first + math.log(remainder) if remainder > 0 else -math.inf


def _log(value: Fraction) -> float:
    return math.log(value.numerator) - math.log(value.denominator)


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)
