"""What an account shows: the least sound bound of its releases, at a delta that stays."""

from fractions import Fraction

import pytest
from ledger_steps import key

from dpsyn_sql.accounting.account import price
from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.accounting.gdp import epsilon_from_half_mu_squared
from dpsyn_sql.errors import PrivacyBudgetExceeded
from dpsyn_sql.ledger.sqlite import MemoryLedger

DELTA = Fraction(1, 10**9)
GAUSSIAN, PURE = Budget.of_release(1, DELTA).without_thresholds(), Budget.from_epsilon(1, 0)


@pytest.fixture
def memory():
    ledger = MemoryLedger()
    yield ledger
    ledger.close()


def released(ledger, name, budget, **settings):
    with ledger.open_release(key(name, **settings), budget) as entry:
        entry.close_questions()
        return entry.account_state


def account_of(ledger):
    (account,) = ledger.overview().accounts
    return account


@pytest.mark.parametrize("order", [(GAUSSIAN, PURE), (PURE, GAUSSIAN)])
def test_a_pure_release_beside_another_is_shown_as_at_most_their_sum(memory, order):
    for number, budget in enumerate(order):
        account_state = released(memory, str(number), budget)
    account = account_of(memory)
    assert account.epsilon == account_state.spent_epsilon and "epsilon=1.991 at delta=1e-09" in str(
        account_state
    )
    assert 1.9 < account.epsilon < 2
    curve = epsilon_from_half_mu_squared(account.spent.fraction, DELTA * Fraction(9, 10))
    assert account.spent.amount == GAUSSIAN.amount + price(PURE, "gdp").amount and curve > 7.5


def test_the_limit_counts_by_the_sum_and_says_so(memory):
    """The figure shown is below the grant, and the release is refused all the same."""
    memory.grant("people", 3, "1e-9")
    released(memory, "one", GAUSSIAN)
    told = (
        r"epsilon=1 counts .* as epsilon=7\.808 at delta=1e-09, which is.* counts mu\^2/2.* delta above 0; or"
    )
    with pytest.raises(PrivacyBudgetExceeded, match=told):
        released(memory, "two", PURE)
    assert account_of(memory).epsilon == pytest.approx(1)


def test_small_pure_releases_are_shown_by_the_curve_where_that_is_less(memory):
    small = Budget.from_epsilon("0.001", 0)
    released(memory, "first", Budget("gdp", 1))
    for number in range(40):
        released(memory, str(number), small)
    account = account_of(memory)
    assert account.epsilon < 0.04
    assert account.epsilon == epsilon_from_half_mu_squared(account.spent.fraction, DELTA * Fraction(9, 10))


def window(number, budget):
    edges = [f"2013-{month:02}-01" for month in range(1, number + 3)]
    told = {"column": "day", "most": 1, "index": number, "span": 1, "edges": edges}
    return {"version": str(number), "slice": told, "kind": "table"}


def test_a_panel_counts_each_part_by_its_dearest_slice(memory):
    """A row is in one window: two pure windows are one epsilon, beside the other release."""
    released(memory, "alone", GAUSSIAN)
    for number in range(2):
        released(memory, "windows", PURE, **window(number, PURE))
    assert 1.9 < account_of(memory).epsilon < 2


def test_a_grant_does_not_change_the_delta_of_what_is_shown(memory):
    released(memory, "one", GAUSSIAN, delta="1/1000000000")
    before = account_of(memory)
    for epsilon, delta in ((5, "1e-6"), (6, None), (7, "1e-7")):
        memory.grant("people", epsilon, delta)
        after = account_of(memory)
        assert (after.epsilon, after.delta) == (before.epsilon, before.delta) == (pytest.approx(1), DELTA)
    memory.verify()


@pytest.mark.parametrize(("first", "shown"), [("1e-6", Fraction(1, 10**6)), ("0", DELTA)])
def test_the_delta_is_that_of_the_first_release_or_grant(memory, first, shown):
    released(memory, "one", GAUSSIAN, delta=first)
    assert account_of(memory).delta == shown
    memory.grant("others", 1, "1e-7")
    assert memory._store.one("find_account", name="others")["shown_delta"] == "1/10000000"
