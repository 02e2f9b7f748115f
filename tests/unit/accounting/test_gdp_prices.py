"""What choices, pure releases and limits cost in a GDP account (docs/privacy.md, "Exact Gaussian accounting"),
against exact trade-offs and a second evaluation of the normal law."""

import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, ndtri
from support.gaussian import cdf, excess, exponential, least_mu, permute_and_flip, trade_off_floats

from dpsyn_sql.accounting.account import price
from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.accounting.events import (
    GaussianEvent,
    LaplaceEvent,
    SelectionEvent,
    ThresholdEvent,
    cost_units,
)
from dpsyn_sql.accounting.gdp import (
    AMOUNT_UNITS,
    choice_cost,
    half_mu_squared,
    pure_cost,
)

EPSILONS = [
    Fraction(1, 10**12),
    *(Fraction(n, 1000) for n in (1, 10, 100, 500, 1000, 2000, 5000, 12000, 30000)),
]
ODDS = [math.exp(epsilon) for epsilon in (-2, -0.5, 0, 0.1, 0.5, 1, 2, 4)]


def mu_of(cost):
    return math.sqrt(2 * cost)


# -- pure epsilon ----------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_a_pure_epsilon_costs_the_mu_of_randomised_response(epsilon):
    """Phi(mu / 2) is the probability of the true answer; one part in 1e30 less would be too little."""
    with localcontext(prec=60):
        told = 1 / (1 + (-Decimal(epsilon.numerator) / epsilon.denominator).exp())
        cost = pure_cost(epsilon)
        half = (2 * Decimal(cost.numerator) / cost.denominator).sqrt() / 2
        assert cdf(half) >= told
        assert cdf(half * (1 - Decimal("1e-30"))) < told


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 6000), st.integers(0, 2**32 - 1))
def test_pure_mechanisms_are_within_their_price(thousandths, seed):
    """Ratios anywhere between e^-epsilon and e^epsilon, on both neighbours."""
    epsilon = Fraction(thousandths, 1000)
    rng = np.random.default_rng(seed)
    q = rng.dirichlet(np.ones(5))
    weights = q * np.exp(rng.uniform(-0.5, 0.5, 5) * float(epsilon))
    assert least_mu(weights / weights.sum(), q) <= mu_of(pure_cost(epsilon)) + 1e-9


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 5 * 10**15), min_size=1, max_size=8))
def test_a_pure_release_costs_no_less_than_its_parts_wherever_they_fall(parts):
    """It is priced as one event, and other releases may ask between its questions: each of these is priced on
    its own in the argument, so the price must be superadditive."""
    whole = price(Budget("pure", sum(parts)), "gdp").amount
    assert sum(pure_cost(Fraction(part, AMOUNT_UNITS)) for part in parts) * AMOUNT_UNITS <= whole


def test_the_price_of_pure_epsilons_is_convex():
    grid = [pure_cost(Fraction(n, 50)) for n in range(1, 1500)]
    slopes = [after - before for before, after in itertools.pairwise([Fraction(0), *grid])]
    assert all(before < after for before, after in itertools.pairwise(slopes))


# -- private choices -------------------------------------------------------------------------------


@pytest.mark.parametrize("eta", [0.01, 0.1, 0.5, 1, 2, 5, 10])
def test_no_mechanism_of_a_bounded_range_needs_more(eta):
    """Likelihood ratios in [e^(t - eta), e^t], for 20,001 t; the largest mu is that of equal errors."""
    low = -np.linspace(0, eta, 20_001)[1:-1] + eta / 2  # logit q lies around -eta / 2
    needed = ndtri(expit(low + eta / 2)) - ndtri(expit(low - eta / 2))
    price_of_it = mu_of(choice_cost(Fraction(eta)))
    assert needed.max() <= price_of_it * (1 + 1e-12)
    assert needed.max() == pytest.approx(price_of_it, rel=1e-6)


def test_the_slope_of_the_normal_quantile_in_logits_falls_away_from_one_half():
    """Phi (1 - Phi) / phi, the derivative of Phi^-1 by the logit, in 50 digits."""
    with localcontext(prec=60):
        xs = [Decimal(n) / 20 for n in range(0, 160)]
        slopes = [cdf(x) * (1 - cdf(x)) * (x * x / 2).exp() for x in xs]
    assert all(before > after for before, after in itertools.pairwise(slopes))


def peeled(scores, scale):
    """Two choices, one after the other without the first: the law of ordered pairs."""
    first = exponential(scores, scale)
    pairs = []
    for index, chance in enumerate(first):
        rest = exponential(np.delete(scores, index), scale)
        pairs += (chance * rest).tolist()
    return np.array(pairs)


CHANGES = list(itertools.product((-1, 0, 1), repeat=3))


@pytest.mark.parametrize("scores", [(0, 0, 0), (3, 1, 0), (5, 5, -9)])
@pytest.mark.parametrize("scale", [0.7, 2.0, 9.0])
def test_choices_are_within_their_price(scores, scale):
    """Every change of three scores by at most the sensitivity, one choice and two in order."""
    for number, law in ((1, exponential), (2, peeled)):
        mu = mu_of(SelectionEvent(scale, 1, number).cost("gdp"))
        for change in CHANGES:
            p, q = law(np.add(scores, change), scale), law(scores, scale)
            assert least_mu(p, q) <= mu + 1e-9
            for a in ODDS:
                assert excess(p, q, a) <= trade_off_floats(mu, a) + 1e-12


@pytest.mark.parametrize("scale", [0.5, 2.0, 20.0])
def test_a_choice_uses_its_whole_price_which_is_more_than_rho(scale):
    """Two candidates that pass each other have equal errors: a price of e^2 / 8 would not hold."""
    needed = least_mu(exponential((1, 0), scale), exponential((0, 1), scale)) ** 2 / 2
    event = SelectionEvent(scale, 1)
    assert needed == pytest.approx(float(event.cost("gdp")), rel=1e-9)
    assert needed > 1.2 * float(event.single) ** 2 / 8


def test_the_choice_of_a_pure_release_is_none_of_a_bounded_range():
    """Permute-and-flip breaks the price of an exponential mechanism of the same scale; a pure release is
    priced by its epsilon, which holds."""
    event = SelectionEvent(0.5, 1)
    p, q = permute_and_flip((1, 0), 0.5), permute_and_flip((0, 1), 0.5)
    needed = least_mu(p, q) ** 2 / 2
    assert needed > event.cost("gdp")
    assert needed <= pure_cost(event.cost("pure"))
    assert cost_units(event, "pure") == math.ceil(event.single * AMOUNT_UNITS)
    assert price(Budget("pure", cost_units(event, "pure")), "gdp").fraction >= pure_cost(event.single)


# -- limits ----------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 40), st.floats(3, 10), st.sampled_from(["1e-9", "1e-6", "1e-12"]))
def test_releases_of_one_size_fit_a_grant_of_their_sum(number, log_ratio, delta):
    """From an epsilon of a thousand deltas on, the limit is superadditive in epsilon at one delta."""
    epsilon = min(Fraction(f"{10.0**log_ratio:.4g}") * Fraction(delta), Fraction(20))
    single = half_mu_squared(epsilon, Fraction(delta))
    assert number * single <= half_mu_squared(number * epsilon, Fraction(delta))


# -- events ----------------------------------------------------------------------------------------


def test_prices_are_those_of_the_table():
    sixteenth = GaussianEvent(3.0, 5, 16)
    assert sixteenth.cost("gdp") == Fraction(5) / (2 * (9 - Fraction(4, 256)))
    assert GaussianEvent(3.0, 5).cost("gdp") == Fraction(5, 2 * (9 - 4))
    assert ThresholdEvent(3.0, 5, 40, 16).cost("gdp") == sixteenth.cost("gdp")
    assert LaplaceEvent(7.0, 3).cost("gdp") == pure_cost(Fraction(3, 7))
    assert SelectionEvent(7.0, 2, 6).cost("gdp") == 6 * choice_cost(Fraction(4, 7))
    assert choice_cost(Fraction(4, 7)) == pure_cost(Fraction(2, 7))
