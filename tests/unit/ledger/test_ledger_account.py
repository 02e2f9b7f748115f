"""Arithmetic of accounts: prices, limits, what is left, what is reported."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsyn_sql.accounting import account
from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.accounting.gdp import epsilon_from_half_mu_squared
from dpsyn_sql.errors import AccountError, BudgetError

DELTA = Fraction(1, 10**9)


def test_the_price_of_a_pure_release_is_rounded_up():
    assert account.price(Budget("pure", 1), "gdp") == Budget("gdp", 1)


def test_a_price_in_its_own_kind_is_itself():
    assert account.price(Budget("gdp", 5, 6), "gdp") == Budget("gdp", 5, 6)
    assert account.price(Budget("pure", 5), "pure") == Budget("pure", 5)


def test_mu_cannot_be_charged_to_a_pure_account():
    with pytest.raises(AccountError, match="delta=0"):
        account.price(Budget("gdp", 5), "pure")


@pytest.mark.parametrize(
    "spent, cost, fits",
    [
        ((90, 5), (10, 5), True),
        ((90, 5), (11, 5), False),
        ((90, 5), (10, 6), False),
        ((100, 10), (0, 0), True),
    ],
)
def test_amounts_and_deltas_must_both_fit(spent, cost, fits):
    balance = account.Balance(Budget("gdp", *spent), Budget("gdp", 100, 10))
    assert balance.admits(Budget("gdp", *cost)) is fits


def test_without_a_limit_only_what_can_be_counted_fits():
    balance = account.Balance(Budget("gdp", account.LARGEST_AMOUNT - 1))
    assert balance.admits(Budget("gdp", 1)) and not balance.admits(Budget("gdp", 2))
    assert balance.remaining is None


def test_a_grant_below_what_is_spent_is_refused():
    with pytest.raises(BudgetError, match="below what is spent"):
        account.grant_limit(Budget("gdp", 10**14), 1, 1e-9)
    with pytest.raises(BudgetError, match="below what is spent"):
        account.grant_limit(Budget("gdp", 0, 10**9), 1, 1e-9)


def test_a_grant_beyond_counting_is_refused():
    with pytest.raises(BudgetError, match="1000"):
        account.grant_limit(Budget("pure", 0), 10_000, 0)


@settings(max_examples=30)
@given(st.integers(1, 10**16), st.sampled_from([Fraction(1, 10**6), DELTA, Fraction(1, 10**12)]))
def test_the_affordable_epsilon_fits_and_is_nearly_the_largest(amount, delta):
    left = Budget("gdp", amount, 10**18)
    epsilon = account.affordable_epsilon(left, delta)
    if epsilon:
        assert Budget.from_epsilon(epsilon, delta).amount <= amount
    if epsilon > 1e-5:  # 0.2 % more would not fit
        assert Budget.from_epsilon(float(epsilon) * 1.002, delta).amount > amount


@pytest.mark.parametrize("epsilon", ["1", "0.3", "5", "0.01"])
def test_a_fresh_grant_affords_itself(epsilon):
    assert account.affordable_epsilon(Budget.from_epsilon(epsilon, DELTA), DELTA) == Fraction(epsilon)


def test_a_release_that_discovers_nothing_needs_no_threshold_delta():
    assert account.affordable_epsilon(Budget("gdp", 10**13, 0), DELTA) > 0.7


def test_a_pure_account_affords_what_is_left():
    assert str(account.affordable_epsilon(Budget("pure", 299_999_999_999_999), DELTA)) == "0.2999"


@given(st.fractions(min_value=Fraction(1, 10**12), max_value=10**6, max_denominator=10**30))
def test_a_bound_is_rounded_up_to_twelve_digits(bound):
    told = account.rounded_up(bound)
    assert bound <= Fraction(repr(told)) <= bound * (1 + Fraction(1, 10**11))
    assert len(Decimal(repr(told)).normalize().as_tuple().digits) <= 12


@pytest.mark.parametrize(
    ("bound", "told"),
    [(0.1, "0.100000000001"), (Fraction(1, 10), "0.1"), (Fraction(1, 3), "0.333333333334"), (0, "0.0")],
)
def test_a_bound_that_has_twelve_digits_is_told_as_it_is(bound, told):
    """The float 0.1 is above a tenth."""
    assert repr(account.rounded_up(bound)) == told


@given(st.integers(1, 10**17))
def test_reported_epsilon_is_never_below_the_truth(units):
    assert Fraction(account.reported_epsilon(Budget("pure", units), DELTA)) >= Fraction(units, 10**15)
    reported = account.reported_epsilon(Budget("gdp", units), DELTA)
    assert reported == epsilon_from_half_mu_squared(Fraction(units, 10**15), DELTA * Fraction(9, 10))


def test_the_reported_delta_is_the_accounts_unless_thresholds_took_more_than_their_tenth():
    assert account.reported_delta(Budget("gdp", 1), DELTA) == DELTA
    assert account.reported_delta(Budget("gdp", 1, 10**8), DELTA) == DELTA
    assert account.reported_delta(Budget("gdp", 1, 3 * 10**8), DELTA) == DELTA * Fraction(12, 10)
    assert account.reported_delta(Budget("pure", 1), DELTA) == 0


@pytest.mark.parametrize(
    ("epsilon", "told"),
    [
        (0.999999999999981, "1"),
        (1.0001, "1.001"),
        (0.00012345, "0.0001235"),
        (123.44, "123.5"),
        (2, "2"),
        (0, "0"),
    ],
)
def test_people_see_four_digits_rounded_up(epsilon, told):
    assert account.shown(epsilon) == told


@given(st.fractions(min_value=Fraction(1, 10**12), max_value=9000))
def test_what_people_see_is_not_below_the_exact_figure(epsilon):
    assert epsilon <= Fraction(account.shown(epsilon)) <= epsilon * (1 + Fraction(1, 999))


def test_a_budget_is_told_as_the_epsilon_that_it_is():
    assert account.describe(Budget.of_release(1, "1e-9"), DELTA) == "epsilon=1 at delta=1e-09"
    assert account.describe(Budget.of_release("0.3", 0), DELTA) == "epsilon=0.3"
    assert account.describe(Budget("gdp", 0, 3 * 10**8), DELTA) == "epsilon=0 at delta=1.2e-09"
