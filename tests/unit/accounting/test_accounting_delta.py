"""The two shares of delta, for conversion and for thresholds, are together at most delta, whatever it is."""

from fractions import Fraction

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from dpsyn_sql.accounting import budget as module
from dpsyn_sql.accounting.budget import Budget, delta_shares, exact_number, stated_delta
from dpsyn_sql.accounting.events import delta_units
from dpsyn_sql.accounting.gdp import epsilon_from_half_mu_squared
from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.errors import BudgetError, InternalError
from dpsyn_sql.methods.independent import Independent
from dpsyn_sql.private.measure.questions.columns import keys_event
from dpsyn_sql.report.certificate import claim
from dpsyn_sql.source.relation import PrivacyUnit, Relation, Source

SOURCE = Source(Relation("people", "table", "people", ()), PrivacyUnit("person", 2))
DOMAIN = Domain((Attribute("a", "BOOLEAN", "categorical", labels=(False, True)),))
UNIT = Fraction(1, 10**18)
EPSILONS = st.one_of(st.fractions(Fraction(1, 10**6), 20), st.floats(1e-6, 1000))
DELTAS = st.one_of(
    st.builds(lambda digits, power: Fraction(digits, 10**power), st.integers(1, 999), st.integers(9, 25)),
    st.fractions(Fraction(1, 10**20), Fraction(1, 10**6)),
    st.floats(1e-20, 1e-6),
)


def bought(epsilon, delta):
    try:
        return Budget.from_epsilon(epsilon, delta)
    except BudgetError:
        assume(False)


@settings(deadline=None)
@given(EPSILONS, DELTAS)
@example(1, Fraction(1, 10**9))
@example(10, Fraction(1, 10**6))
@example(1, Fraction(99, 10**19))
def test_what_thresholds_leave_of_delta_pays_for_the_conversion(epsilon, delta):
    """Without a word of how delta is divided: amount and threshold delta imply (epsilon, delta) as they are."""
    budget, exact = bought(epsilon, delta), exact_number("delta", delta)
    left = exact - budget.delta * UNIT
    assert exact * Fraction(9, 10) <= left
    assert epsilon_from_half_mu_squared(budget.fraction, left) <= float(exact_number("epsilon", epsilon)) * (
        1 + 1e-12
    )


@settings(deadline=None)
@given(DELTAS)
def test_the_shares_are_at_most_delta_and_lose_less_than_a_unit(delta):
    exact = exact_number("delta", delta)
    conversion, thresholds = delta_shares(exact)
    assert conversion == exact * Fraction(9, 10)
    assert exact - UNIT < conversion + thresholds * UNIT <= exact


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(EPSILONS, DELTAS, st.integers(1, 5), st.lists(st.integers(0, 9), min_size=1, max_size=4).filter(any))
@example(1, Fraction(1, 10**9), 1, [1])
def test_a_certificate_states_no_less_than_what_was_charged(epsilon, delta, keys, weights):
    budget = bought(epsilon, delta)
    assume(budget.amount < 10**17)
    shares = [share for share in budget.split(weights) if share.amount and share.delta]
    events = [keys_event(keys, share) for share in shares]
    stated = claim(Independent().plan(SOURCE, DOMAIN, budget), events, delta).delta
    charged = sum(map(delta_units, events)) * UNIT
    assert exact_number("delta", stated) >= exact_number("delta", delta) * Fraction(9, 10) + charged
    assert stated <= float(exact_number("delta", delta)) * (1 + 1e-15)


@pytest.mark.parametrize("delta", [Fraction(1, 3 * 10**9), Fraction(10**29 + 1, 10**38), Fraction(1, 10**9)])
def test_the_text_of_a_stated_delta_is_not_below_it(delta):
    assert delta <= Fraction(repr(stated_delta(delta, 0))) <= delta * (1 + Fraction(1, 10**15))


def test_more_than_delta_is_never_stated():
    assert stated_delta(Fraction(1, 10**9), 10**8) == 1e-9
    with pytest.raises(InternalError, match="delta"):
        stated_delta(Fraction(1, 10**9), 10**8 + 1)


def test_shares_of_more_than_delta_are_an_error(monkeypatch):
    monkeypatch.setattr(module, "THRESHOLD_SHARE", Fraction(2, 10))
    with pytest.raises(InternalError, match="delta"):
        Budget.from_epsilon(1, 1e-9)
