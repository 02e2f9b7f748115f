"""Exact Gaussian accounting against alternating series in many more digits, closed forms, and brute force."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from support.gaussian import trade_off as defined

from dpsyn_sql.accounting.account import (
    USUAL_DELTA,
    affordable_epsilon,
    grant_limit,
    left_in_words,
    reported_epsilon,
)
from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.accounting.events import (
    GaussianEvent,
    ThresholdEvent,
    event_from_dict,
    event_to_dict,
)
from dpsyn_sql.accounting.gdp import (
    AMOUNT_UNITS,
    choice_cost,
    epsilon_from_half_mu_squared,
    gaussian_cost,
    half_mu_squared,
    pure_cost,
    range_of_choice,
    trade_off,
)
from dpsyn_sql.errors import BudgetError, InternalError

UNIT = Fraction(1, AMOUNT_UNITS)
KEPT = Fraction(1, 10**9)
CONVERTING = Fraction(9, 10**10)
EPSILONS = ("1e-6", "1e-4", "0.01", "0.1", "1", "3.7", "10", "100", "1000")
DELTAS = ("1e-6", "1e-9", "1e-12", "1e-15")


def mu_of(units):
    with localcontext() as context:
        context.prec = 200
        return (2 * Decimal(units) / AMOUNT_UNITS).sqrt()


@settings(max_examples=12, deadline=None)
@given(st.floats(-7, 1.4), st.floats(-3, 9))
@example(-7.0, 0.0)
@example(1.4, 8.0)
@example(0.0, -3.0)
def test_the_trade_off_is_the_definition_rounded_up(log10_mu, depth):
    """From the centre of the normal law to nine deviations out, on both sides of the series' end."""
    mu = Decimal(10.0**log10_mu)
    epsilon = Fraction(mu) * (Fraction(depth) + Fraction(mu) / 2)
    slow, found = Fraction(defined(mu, epsilon)), Fraction(trade_off(mu, epsilon))
    assert slow <= found <= slow * (1 + Fraction(1, 10**35))


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("epsilon", ["1e-6", "0.01", "1", "30"])
def test_the_amount_is_within_and_the_next_is_not(epsilon, delta):
    exact, wanted = Fraction(epsilon), Fraction(delta)
    units = half_mu_squared(exact, wanted)
    allowed = wanted * (1 - KEPT)
    assert units > 0
    assert Fraction(defined(mu_of(units), exact - KEPT)) <= allowed
    assert Fraction(defined(mu_of(units + 1), exact - KEPT)) > allowed


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_an_epsilon_is_never_reported_above_what_was_bought(epsilon, delta):
    budget = Budget.from_epsilon(epsilon, delta)
    reported = reported_epsilon(budget, Fraction(delta))
    assert budget.kind == "gdp" and budget.amount > 0
    assert 0.9 * float(epsilon) < reported <= float(epsilon)


@settings(max_examples=60, deadline=None)
@given(st.floats(1e-6, 1000), st.floats(-20, -6))
def test_epsilon_is_the_inverse_and_never_below(epsilon, log10_delta):
    delta = Fraction(10.0**log10_delta)
    units = half_mu_squared(Fraction(repr(epsilon)), delta)
    assume(units)
    found = epsilon_from_half_mu_squared(units * UNIT, delta)
    assert found <= epsilon
    allowed = delta * (1 - KEPT)
    assert Fraction(trade_off(mu_of(units), Fraction(repr(found)) - KEPT)) <= allowed
    lower = Fraction(repr(found)) * (1 - Fraction(1, 10**12)) - KEPT
    assert lower <= 0 or Fraction(trade_off(mu_of(units), lower)) > allowed
    assert half_mu_squared(Fraction(repr(found)), delta) >= units


def test_more_epsilon_or_delta_buys_more():
    epsilons, deltas = [Fraction(text) for text in EPSILONS], [Fraction(text) for text in DELTAS]
    bought = [[half_mu_squared(epsilon, delta) for delta in deltas] for epsilon in epsilons]
    assert all(row == sorted(row, reverse=True) and len(set(row)) == 4 for row in bought)
    assert all(list(column) == sorted(column) for column in zip(*bought, strict=True))


def test_less_than_what_is_kept_for_the_lattice_buys_nothing():
    assert half_mu_squared(KEPT, CONVERTING) == 0
    assert epsilon_from_half_mu_squared(Fraction(0), CONVERTING) == 0.0
    assert epsilon_from_half_mu_squared(UNIT, Fraction(1, 2)) == 1e-9
    with pytest.raises(BudgetError, match="too small"):
        Budget.from_epsilon("1e-9", "1e-9")


def test_a_delta_far_below_what_floats_hold_still_buys():
    assert 0 < half_mu_squared(Fraction(1), Fraction(1, 10**900)) < half_mu_squared(Fraction(1), CONVERTING)


@given(st.integers(1, 10**6), st.floats(0.13, 1e6))
def test_gaussian_noise_is_priced_by_what_smoothing_leaves_of_its_variance(l2_squared, sigma):
    """As written in steps: l2^2 g^2 / (2 ((g sigma)^2 - 4))."""
    steps = (16 * Fraction(sigma)) ** 2 - 4
    assert GaussianEvent(sigma, l2_squared, 16).cost("gdp") == Fraction(l2_squared * 256) / (2 * steps)


@pytest.mark.parametrize(("sigma", "lattice"), [(2.0, 1), (1.5, 1), (0.125, 16), (0.0, 16)])
def test_noise_of_two_steps_has_no_price(sigma, lattice):
    with pytest.raises(InternalError, match="two steps"):
        gaussian_cost(1, sigma, lattice)
    assert gaussian_cost(1, sigma + 1, lattice) > 0


def test_small_and_large_pure_epsilons_have_their_limits():
    assert float(pure_cost(Fraction(1, 10**9)) * 10**18) == pytest.approx(math.pi / 4, rel=1e-12)
    assert float(pure_cost(Fraction(5000))) == pytest.approx(4 * 5000, rel=0.01)
    assert pure_cost(Fraction(10**7)) == 4 * 10**7
    for epsilon in (101, 1000, 5000):  # the tail at half of mu is below e^-100: bounds of Mills' ratio
        half = math.sqrt(pure_cost(Fraction(epsilon)) / 2)
        log_tail = -(half**2) / 2 - math.log(half * math.sqrt(2 * math.pi))
        assert log_tail == pytest.approx(-epsilon, abs=2 / half**2)
    assert pure_cost(Fraction(0)) == 0


def test_costs_of_pure_events_rise_without_a_jump():
    for border in (1e-12, 10_000.0):
        below, above = (pure_cost(Fraction(border * (1 + side))) for side in (-1e-9, 1e-9))
        assert below < above < below * Fraction(102, 100)


@given(st.floats(1e-12, 60))
def test_the_range_of_a_choice_is_the_inverse_of_its_cost(eta):
    assert range_of_choice(choice_cost(Fraction(eta))) == pytest.approx(eta, rel=1e-14)


def test_a_threshold_on_sixteenths_adds_the_tail_of_the_finer_noise():
    """Every step of the tail and of the normaliser, one by one."""
    sigma, threshold = 2.5, 18
    masses = [math.exp(-(z**2) / (2 * (16 * sigma) ** 2)) for z in range(2000)]
    tail = math.fsum(masses[16 * (threshold - 1) :]) / (2 * math.fsum(masses) - 1)
    found = ThresholdEvent(sigma, 3, threshold, 16).delta_units / 10**18
    assert found == pytest.approx(1 - (1 - tail) ** 3, rel=1e-3) and found >= 1 - (1 - tail) ** 3
    assert ThresholdEvent(sigma, 3, threshold).delta_units / 10**18 > found  # whole units: a heavier tail


def test_whole_counts_name_no_lattice_when_stored():
    assert "lattice" not in event_to_dict(GaussianEvent(5.0, 1))
    for event in (GaussianEvent(5.0, 1, 16), ThresholdEvent(5.0, 1, 30, 16), ThresholdEvent(5.0, 1, 30)):
        assert event_from_dict(event_to_dict(event)) == event
    assert event_from_dict({"event": "gaussian", "sigma": 5.0, "l2_squared": 2}) == GaussianEvent(5.0, 2)


@pytest.mark.parametrize("epsilon", ["1e-6", "0.25", "1", "7", "300"])
def test_what_is_left_is_the_largest_release_that_fits(epsilon):
    left = Budget.from_epsilon(epsilon, USUAL_DELTA)
    found = affordable_epsilon(left, USUAL_DELTA)
    assert float(found) == pytest.approx(float(epsilon), rel=2e-3) and found <= Decimal(epsilon)
    assert Budget.of_release(found, USUAL_DELTA).amount <= left.amount
    assert f"epsilon={found:f}" in left_in_words(left, USUAL_DELTA)


def test_a_grant_below_what_is_spent_says_which_is_enough():
    spent = Budget.from_epsilon(2, "1e-9")
    with pytest.raises(
        BudgetError, match="counts as epsilon=2 at delta=1e-09.* --epsilon 2 --delta 1e-09 is enough"
    ):
        grant_limit(spent, 1, 1e-9)
