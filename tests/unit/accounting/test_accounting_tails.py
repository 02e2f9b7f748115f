"""The delta of a threshold against sums over all integers, and the events of discovery."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import opendp.prelude as dp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsyn_sql.accounting.account import event_price
from dpsyn_sql.accounting.events import (
    ThresholdEvent,
    TreeEvent,
    cost_units,
    delta_units,
    event_from_dict,
    event_to_dict,
)
from dpsyn_sql.accounting.gdp import pure_cost
from dpsyn_sql.accounting.pld import epsilon_from_events, is_available
from dpsyn_sql.accounting.tails import threshold_delta_units
from dpsyn_sql.errors import InternalError

dp.enable_features("contrib")


def exact_units(sigma, keys, threshold):
    """Every integer of the tail and of the normaliser, one by one, in decimals."""
    with localcontext() as context:
        context.prec = 60
        double = 2 * Decimal(sigma) ** 2
        reach = int(14 * sigma) + 20

        def mass(z):
            return (-Decimal(z * z) / double).exp()

        whole = 1 + 2 * sum(mass(z) for z in range(1, reach))
        tail = sum(mass(z) for z in range(threshold - 1, threshold + reach)) / whole
        return (1 - (1 - tail) ** keys) * 10**18


@settings(max_examples=60)
@given(st.floats(0.3, 60), st.integers(1, 40), st.floats(1, 9))
def test_the_bound_is_above_the_exact_tail_and_close(sigma, keys, sigmas):
    threshold = 2 + int(max(1, sigma * sigmas))
    exact = exact_units(sigma, keys, threshold)
    found = threshold_delta_units(sigma, keys, threshold - 1)
    if threshold - 1 >= max(1, sigma):
        assert exact <= found <= exact * (1 + Decimal("1e-9")) + 1


@pytest.mark.parametrize("sigma", [100.0, 150.5, 333.0])
def test_blocks_of_wide_noise_stay_above_and_lose_little(sigma):
    for sigmas in (1.2, 3, 6.5):
        exact = exact_units(sigma, 2, int(sigma * sigmas))
        found = threshold_delta_units(sigma, 2, int(sigma * sigmas) - 1)
        assert exact <= found <= exact * Decimal("1.001") + 1


@pytest.mark.parametrize("sigma", [0.01, 0.5, 3.0, 1e4, 1e9])
def test_higher_thresholds_cost_less_and_never_nothing(sigma):
    ladder = [threshold_delta_units(sigma, 3, 1 + int(sigma * sigmas)) for sigmas in range(1, 20)]
    assert ladder == sorted(ladder, reverse=True)
    assert ladder[-1] == 1 and ladder[0] <= 10**18


def test_a_threshold_within_the_noise_is_certain_to_cost_too_much():
    assert threshold_delta_units(10.0, 1, 4) == threshold_delta_units(0.5, 1, 0) == 10**18


@pytest.mark.parametrize(("sigma", "keys"), [(0.0, 1), (float("nan"), 1), (float("inf"), 1), (1.0, 0)])
def test_no_noise_or_no_keys(sigma, keys):
    with pytest.raises(InternalError):
        threshold_delta_units(sigma, keys, 10)


@pytest.mark.parametrize(("sigma", "keys", "threshold"), [(1.0, 1, 5), (5.0, 3, 30), (18.0, 1, 120)])
def test_the_discrete_tail_is_above_the_continuous_one_of_the_library(sigma, keys, threshold):
    """OpenDP's map of a thresholded Gaussian takes the continuous tail, so it is no second opinion."""
    domain = dp.map_domain(dp.atom_domain(T=str), dp.atom_domain(T=dp.i64))
    metric = dp.l02inf_distance(dp.absolute_distance(T=dp.i64))
    _, delta = dp.m.make_gaussian_threshold(domain, metric, sigma, threshold).map((keys, keys, 1))
    assert delta * 1e18 < exact_units(sigma, keys, threshold)


def test_the_price_of_a_threshold_has_both_parts():
    event = ThresholdEvent(5.0, 3, 30)
    assert event.l2_squared == 3
    price = event_price(event, "gdp")
    assert price.amount == cost_units(event, "gdp") == math.ceil(Fraction(3 * 10**15, 2 * (25 - 4)))
    assert price.delta == delta_units(event) == threshold_delta_units(5.0, 3, 29) > 0
    with pytest.raises(InternalError):
        event_price(event, "pure")


def test_a_tree_costs_three_tests_for_each_point():
    event = TreeEvent(6.0, 4)
    assert event_price(event, "pure").amount == 2 * 10**15 and delta_units(event) == 0
    assert event_price(event, "gdp").amount == math.ceil(pure_cost(Fraction(2)) * 10**15)


@settings(max_examples=200)
@given(st.floats(1e-6, 1e9))
def test_the_decay_is_the_least_whole_number_that_is_enough(scale):
    with localcontext() as context:
        context.prec = 60
        wanted = Decimal(scale) * Decimal(2).ln()
    decay = TreeEvent(scale, 1).decay
    assert decay >= max(1, wanted) and decay - 1 < max(1, wanted)


@given(st.floats(1e-3, 1e9), st.integers(1, 10**6), st.integers(1, 10**9))
def test_events_survive_json(scale, sensitivity, threshold):
    for event in (ThresholdEvent(scale, sensitivity, threshold), TreeEvent(scale, sensitivity)):
        assert event_from_dict(event_to_dict(event)) == event


@pytest.mark.skipif(not is_available(), reason="the optional second accountant is not installed")
def test_loss_distributions_of_discovery_are_not_below_what_they_hold():
    delta = Fraction(1, 10**9)
    tree = epsilon_from_events([TreeEvent(6.0, 1)], delta)
    assert tree == pytest.approx(0.5, abs=2e-3)
    alone = epsilon_from_events([ThresholdEvent(20.0, 1, 200)], delta)
    assert epsilon_from_events([ThresholdEvent(20.0, 1, 200), TreeEvent(6.0, 1)], delta) > alone > 0.1
