import math
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsyn_sql.accounting.budget import Budget, exact_number
from dpsyn_sql.accounting.events import (
    GaussianEvent,
    LaplaceEvent,
    cost_units,
    event_from_dict,
    event_to_dict,
    total_units,
)
from dpsyn_sql.errors import BudgetError, InternalError


def test_delta_as_text_number_or_decimal_is_the_same_budget():
    budgets = {Budget.from_epsilon(1, delta) for delta in (1e-9, "1e-9", Decimal("1e-9"), Fraction(1, 10**9))}
    assert len(budgets) == 1


def test_pure_budget_is_epsilon_itself():
    assert Budget.from_epsilon("0.3", 0) == Budget("pure", 3 * 10**14)


@pytest.mark.parametrize(
    "epsilon", [0, -1, float("nan"), float("inf"), "many", None, True, 1e-30, "1e999999"]
)
def test_bad_epsilon(epsilon):
    with pytest.raises(BudgetError, match="epsilon"):
        Budget.from_epsilon(epsilon, 1e-9)


@pytest.mark.parametrize("delta", [-1e-9, 1.1e-6, 0.5, float("nan"), "x"])
def test_bad_delta(delta):
    with pytest.raises(BudgetError, match="delta"):
        Budget.from_epsilon(1, delta)


def test_the_largest_delta_is_allowed():
    assert Budget.from_epsilon(1, "1e-6").amount > 0


@given(st.integers(0, 10**18), st.lists(st.fractions(0, 10), min_size=1, max_size=30).filter(any))
def test_shares_sum_to_the_budget_and_none_is_too_large(amount, weights):
    whole = Budget("gdp", amount, amount // 7)
    shares = whole.split(weights)
    assert sum(share.amount for share in shares) == whole.amount
    assert sum(share.delta for share in shares) == whole.delta
    for share, weight in zip(shares, weights, strict=True):
        assert abs(share.amount - amount * weight / sum(weights)) <= len(weights)
        if not weight:
            assert share.amount == 0


@pytest.mark.parametrize("weights", [[], [0, 0], [1, -1]])
def test_weights_that_make_no_sense(weights):
    with pytest.raises(InternalError):
        Budget("gdp", 100).split(weights)


def test_float_reads_as_its_decimal_text():
    assert exact_number("x", 0.1) == Fraction(1, 10)


def test_cost_of_one_count_with_gaussian_noise():
    """Sensitivity 1, sigma 10 on whole counts: 1 / (2 (100 - 4))."""
    assert cost_units(GaussianEvent(10.0, 1), "gdp") == math.ceil(Fraction(10**15, 192))


def test_cost_of_laplace_is_its_epsilon():
    event = LaplaceEvent(4.0, 2)
    assert cost_units(event, "pure") == 5 * 10**14


def test_costs_round_up_and_add_up():
    third = LaplaceEvent(3.0, 1)
    assert cost_units(third, "pure") == 333_333_333_333_334
    assert total_units([third, third], "pure") == 666_666_666_666_668


def test_gaussian_noise_has_no_pure_cost():
    with pytest.raises(InternalError):
        GaussianEvent(1.0, 1).cost("pure")


@given(st.floats(1e-3, 1e9), st.integers(1, 10**6))
def test_events_survive_json(scale, sensitivity):
    for event in (GaussianEvent(scale, sensitivity), LaplaceEvent(scale, sensitivity)):
        assert event_from_dict(event_to_dict(event)) == event
