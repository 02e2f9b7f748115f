"""Pure releases beside others (docs/privacy.md, "Pure releases beside others") against exact composition of
integer mechanisms, adaptive courses, and a second evaluation of the normal law."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.gaussian import composed, excess, gaussian_laws, laplace_laws, trade_off, trade_off_floats

from dpsyn_sql.accounting.account import account_epsilon, price
from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.accounting.events import GaussianEvent, LaplaceEvent
from dpsyn_sql.accounting.gdp import epsilon_beside_pure, epsilon_from_half_mu_squared

KEPT = Decimal("1e-9")
DELTA = Fraction(1, 10**9)


def both(amount, pure, a):
    """H_a of a normal law and a coin against another normal law and the other coin, in floats."""
    mu, heads = math.sqrt(2 * amount), 1 / (1 + math.exp(-pure))
    return heads * trade_off_floats(mu, a * math.exp(-pure)) + (1 - heads) * trade_off_floats(
        mu, a * math.exp(pure)
    )


@pytest.mark.parametrize("delta", [Fraction(1, 10), Fraction(1, 10**3), Fraction(1, 10**6)])
@pytest.mark.parametrize(("sigma", "scale", "releases"), [(4.0, 1.0, 1), (6.0, 2.0, 2), (12.0, 0.5, 1)])
def test_integer_mechanisms_composed_exactly_are_within_the_bound(sigma, scale, releases, delta):
    amount = GaussianEvent(sigma, 1).cost("gdp")
    pure = releases * LaplaceEvent(scale, 1).cost("pure")
    epsilon = epsilon_beside_pure(amount, pure, delta)
    p, q = composed(gaussian_laws(sigma), *[laplace_laws(scale)] * releases)
    for laws in ((p, q), (q, p)):
        assert excess(*laws, math.exp(epsilon)) <= float(delta)
    tight = epsilon_beside_pure(Fraction(1, 2 * int(sigma) ** 2), pure, delta) * 0.9 if releases == 1 else 0
    assert excess(p, q, math.exp(tight)) > float(delta)  # a tenth less would be too little


COIN, SMALL_COIN = 0.7, 0.35


@cache
def laws_of(kind):
    if kind == "normal":
        return gaussian_laws(2.5)
    odds = 1 / (1 + math.exp(-(COIN if kind == "coin" else SMALL_COIN)))
    return np.array([odds, 1 - odds]), np.array([1 - odds, odds])


def left_after(kind, left):
    amount, pure = left
    if kind == "normal":
        return amount - float(GaussianEvent(2.5, 1).cost("gdp")), pure
    return amount, pure - (COIN if kind == "coin" else SMALL_COIN)


def exact(a, left, choose, history=()):
    """H_a of all answers, where ``choose`` decides by the history what is asked within what is left."""
    allowed = [kind for kind in ("normal", "coin", "small") if min(left_after(kind, left)) >= -1e-12]
    if not allowed:
        return max(0.0, 1.0 - a)
    kind = choose(history, allowed)
    p, q = laws_of(kind)
    rest = left_after(kind, left)
    found = 0.0
    for number, (here, there) in enumerate(zip(p, q, strict=True)):
        if here > 1e-13:
            found += here * exact(a * there / here, rest, choose, (*history, number * 2 // len(p)))
        # what is left out makes the sum smaller by at most 1e-13 an answer
    return found


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([0.2, 1.0, 2.0, 4.0, 9.0]))
def test_whatever_answers_decide_the_answers_together_are_within_the_bound(seed, a):
    known = {}

    def choose(history, allowed):
        rng = np.random.default_rng([seed, *history])
        return known.setdefault((history, tuple(allowed)), allowed[rng.integers(len(allowed))])

    limits = 2 * float(GaussianEvent(2.5, 1).cost("gdp")), 2 * SMALL_COIN
    assert exact(a, limits, choose) <= both(*limits, a) + 1e-10


@settings(max_examples=40, deadline=None)
@given(st.floats(-4, 0.5), st.floats(-3, 1), st.sampled_from(["1e-3", "9e-10", "1e-12"]))
def test_the_epsilon_is_enough_and_a_hair_less_is_not(log_amount, log_pure, delta):
    """By the Taylor series of the normal law, with 1e-9 kept off epsilon and, relatively, off delta."""
    amount, pure = (Fraction(f"{10.0**log:.6g}") for log in (log_amount, log_pure))
    found = Decimal(epsilon_beside_pure(amount, pure, Fraction(delta)))
    with localcontext(prec=60):
        mu = (2 * Decimal(amount.numerator) / amount.denominator).sqrt()
        odds = Decimal(pure.numerator) / pure.denominator
        heads = 1 / (1 + (-odds).exp())
        wanted = Decimal(delta) * (1 - KEPT)

        def needed(epsilon):
            kept = epsilon - KEPT
            return heads * trade_off(mu, kept - odds) + (1 - heads) * trade_off(mu, kept + odds)

        assert needed(found) <= wanted
        lower = found * (1 - Decimal("1e-9"))
        assert lower <= KEPT or needed(lower) > wanted


@given(st.floats(-5, 1), st.floats(-4, 1))
def test_the_bound_is_never_above_the_sum_nor_below_its_parts(log_amount, log_pure):
    amount, pure = Fraction(10.0**log_amount), Fraction(10.0**log_pure)
    alone = epsilon_from_half_mu_squared(amount, DELTA)
    found = epsilon_beside_pure(amount, pure, DELTA)
    assert alone <= found * (1 + 1e-9) and found <= (alone + float(pure)) * (1 + 1e-12)


def test_an_account_has_the_least_of_its_bounds():
    gaussian, pure = Budget.of_release(1, DELTA), Budget.from_epsilon(1, 0)
    spent = Budget("gdp", gaussian.amount + price(pure, "gdp").amount)
    curve = account_epsilon(spent, spent.amount, 0, DELTA)
    assert curve > 7.5
    assert 1.9 < account_epsilon(spent, gaussian.amount, pure.amount, DELTA) < 2
    assert account_epsilon(price(pure, "gdp"), 0, pure.amount, DELTA) == 1
    many = Budget("gdp", 400 * price(Budget.from_epsilon("0.01", 0), "gdp").amount)
    assert account_epsilon(many, 0, 4 * 10**15, DELTA) == account_epsilon(many, many.amount, 0, DELTA) < 4
    assert account_epsilon(Budget("pure", 3 * 10**15), 0, 3 * 10**15, DELTA) == 3
