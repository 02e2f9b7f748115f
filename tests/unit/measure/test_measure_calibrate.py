"""The noise is enough by two accountants, and not more than a hair above enough."""

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.accounting.events import GaussianEvent, LaplaceEvent
from dpsyn_sql.errors import BudgetError
from dpsyn_sql.measure.calibrate import standard_deviation
from dpsyn_sql.measure.noise import gaussian_mechanism, laplace_mechanism
from dpsyn_sql.measure.questions.marginals import marginals_event


@settings(max_examples=60)
@given(st.integers(1, 10**17), st.integers(1, 5000), st.integers(1, 50))
def test_gaussian_scale_fits_its_share_by_both_accountants(amount, tables, rows):
    share = Budget("zcdp", amount)
    event = marginals_event(tables, rows, share)
    assert isinstance(event, GaussianEvent)
    assert event.l2_squared == tables * rows**2
    assert event.cost("zcdp") <= share.fraction
    upper = math.nextafter(math.sqrt(event.l2_squared), math.inf)
    assert Fraction(gaussian_mechanism(event.sigma).map(math.sqrt(event.l2_squared))) <= share.fraction
    assert gaussian_mechanism(event.sigma).map(upper) <= float(share.fraction) * (1 + 1e-12)
    assert event.sigma == pytest.approx(math.sqrt(tables * rows**2 / (2 * float(share.fraction))), rel=1e-12)


@settings(max_examples=60)
@given(st.integers(10**3, 10**17), st.integers(1, 5000), st.integers(1, 50))
def test_laplace_scale_fits_its_share_by_both_accountants(amount, tables, rows):
    share = Budget("pure", amount)
    event = marginals_event(tables, rows, share)
    assert isinstance(event, LaplaceEvent)
    assert event.l1 == tables * rows
    assert event.cost("pure") <= share.fraction
    assert Fraction(laplace_mechanism(event.scale).map(event.l1)) <= share.fraction
    assert event.scale == pytest.approx(tables * rows / float(share.fraction), rel=1e-12)


def test_no_budget_no_noise_scale():
    with pytest.raises(BudgetError):
        marginals_event(1, 1, Budget("zcdp", 0))


def test_standard_deviation_of_discrete_laplace_by_its_pmf():
    scale = 1.7
    mass = {z: math.exp(-abs(z) / scale) for z in range(-400, 401)}
    variance = sum(z * z * p for z, p in mass.items()) / sum(mass.values())
    assert standard_deviation(LaplaceEvent(scale, 1)) == pytest.approx(math.sqrt(variance), rel=1e-12)


@pytest.mark.parametrize("sigma", [2.0, 11.3])
def test_standard_deviation_of_discrete_gaussian_by_its_pmf(sigma):
    mass = {z: math.exp(-(z**2) / (2 * sigma**2)) for z in range(-400, 401)}
    variance = sum(z * z * p for z, p in mass.items()) / sum(mass.values())
    assert standard_deviation(GaussianEvent(sigma, 1)) == pytest.approx(math.sqrt(variance), rel=1e-6)
