"""Two accountants and a third formula, on a grid of plans."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm
from support.gaussian import composed, excess, exponential, laplace_laws

from dpsyn_sql.accounting.events import GaussianEvent, LaplaceEvent, SelectionEvent
from dpsyn_sql.accounting.gdp import epsilon_from_half_mu_squared
from dpsyn_sql.accounting.pld import epsilon_from_events

pytest.importorskip("dp_accounting", reason="the optional second accountant is not installed")

DELTA = Fraction(9, 10**10)
SIGMAS = (3.0, 5.0, 12.5, 40.0, 150.0)
TABLES = (1, 2, 5, 14, 40, 91, 351, 1000)
PAIRS = (None, (20.0, 3), (60.0, 14), (100.0, 1), (200.0, 91))
PLANS = [
    [GaussianEvent(sigma, tables), *([] if extra is None else [GaussianEvent(*extra)])]
    for sigma, tables, extra in itertools.product(SIGMAS, TABLES, PAIRS)
]


def amount_of(events):
    return sum((event.cost("gdp") for event in events), Fraction(0))


def balle_wang(mu, delta):
    """Balle and Wang (2018), Theorem 8: the exact epsilon of continuous Gaussians of total shift mu."""

    def above(epsilon):
        upper = norm.cdf(mu / 2 - epsilon / mu)
        return upper - math.exp(epsilon + norm.logcdf(-mu / 2 - epsilon / mu)) - delta

    return 0.0 if above(0.0) <= 0 else brentq(above, 0.0, mu**2 + 20 * mu + 1)


def lattice_delta(sigma, tables, epsilon):
    """Exact delta of ``tables`` discrete Gaussians of sensitivity 1: for sigma >= 1.5 their sum is the discrete
    Gaussian of scale sigma sqrt(tables) to 1e-15, and the loss is (2 sum + tables) / (2 sigma^2)."""
    scale = np.longdouble(sigma) * np.sqrt(np.longdouble(tables))
    width = int(14 * scale)
    total = np.arange(-width, width + 1).astype(np.longdouble)
    weight = np.exp(-(total**2) / (2 * scale**2))
    loss = (2 * total + tables) / (2 * np.longdouble(sigma) ** 2)
    above = loss > epsilon
    return float((weight[above] * -np.expm1(epsilon - loss[above])).sum() / weight.sum())


@pytest.mark.parametrize("sigma", [2.5, 3.7354, 30.0])
@pytest.mark.parametrize("tables", [14, 105, 1000, 5000])
@pytest.mark.parametrize("delta", [Fraction(9, 10**14), Fraction(9, 10**13), DELTA])
def test_rounding_never_makes_a_claim_too_small(sigma, tables, delta):
    """Fourier transforms round to about 1e-13, either way: more than a tiny delta."""
    if tables / (2 * sigma**2) > 200:
        pytest.skip("an epsilon that nobody asks for")
    found = epsilon_from_events([GaussianEvent(sigma, tables)], delta)
    if found is None:
        assert tables >= 1000 or delta < Fraction(1, 10**11)
    else:
        assert lattice_delta(sigma, tables, found) <= float(delta)


@pytest.mark.parametrize(
    "block", [0, *(pytest.param(block, marks=pytest.mark.slow) for block in range(1, 8))]
)
def test_pld_is_not_above_the_accounts_own_bound_and_agrees_with_balle_wang(block):
    for events in PLANS[block::8]:
        amount = amount_of(events)
        found = epsilon_from_events(events, DELTA)
        if found is None:
            assert sum(event.l2_squared for event in events) > 250
            continue
        # The distribution is rounded up on a grid, the account's curve is exact.
        assert found <= epsilon_from_half_mu_squared(amount, DELTA) + 5e-3
        shift = math.sqrt(sum(event.l2_squared / event.sigma**2 for event in events))
        if min(event.sigma for event in events) >= 5 and shift < 3.1:
            assert found == pytest.approx(balle_wang(shift, float(DELTA)), abs=5e-3, rel=5e-3)


def test_plans_with_selections_are_above_a_brute_force_lower_bound():
    """One choice among three whose scores move against each other, and a Laplace count."""
    delta = Fraction(1, 1000)
    events = [SelectionEvent(4.0, 1), LaplaceEvent(2.0, 1)]
    choices = exponential([1, 0, 0], 4.0), exponential([0, 1, 1], 4.0)
    laws = composed(choices, laplace_laws(2.0))
    lower = brentq(lambda epsilon: excess(*laws, math.exp(epsilon)) - float(delta), 0, 5)
    assert lower > 0.5
    assert epsilon_from_events(events, delta) >= lower - 1e-3
    assert epsilon_from_half_mu_squared(amount_of(events), delta) >= lower - 1e-9


def test_several_choices_at_once_are_as_many_choices():
    delta = Fraction(1, 1000)
    one, several = SelectionEvent(40.0, 1), SelectionEvent(40.0, 1, 6)
    assert epsilon_from_events([several], delta) == pytest.approx(epsilon_from_events([one] * 6, delta))
    assert several.cost("pure") == 6 * one.cost("pure") and several.cost("gdp") == 6 * one.cost("gdp")


def test_nothing_asked_nothing_claimed():
    assert epsilon_from_events([], DELTA) is None


WIDE = [GaussianEvent(1e4, 1, 16), GaussianEvent(2e5, 1), LaplaceEvent(2e5, 1)]


@pytest.mark.parametrize("events", [[GaussianEvent(0.13, 3, 16)], [GaussianEvent(0.03, 1)]])
def test_a_loss_beyond_every_grid_has_no_bound_by_distributions(events):
    """Of narrow noise the package finds an infinite epsilon, or refuses it."""
    assert epsilon_from_events(events, DELTA) is None


@pytest.mark.parametrize("wide", WIDE)
def test_noise_too_wide_to_list_has_no_bound_by_distributions(wide):
    """They would take minutes and gigabytes; beside it the narrow noise alone has one."""
    narrow = GaussianEvent(20.0, 1)
    assert epsilon_from_events([narrow], DELTA) > 0
    assert epsilon_from_events([wide], DELTA) is None and epsilon_from_events([narrow, wide], DELTA) is None
