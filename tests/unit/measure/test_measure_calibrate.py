"""The noise is enough by two accountants, and not more than a hair above enough."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.accounting.events import GaussianEvent, LaplaceEvent
from dpsyn_sql.errors import BudgetError
from dpsyn_sql.private.measure.noise import (
    gaussian_event,
    gaussian_mechanism,
    laplace_mechanism,
    mean_error,
    standard_deviation,
    whole_rows,
)
from dpsyn_sql.private.measure.questions.tables import marginals_event


@settings(max_examples=60)
@given(st.integers(1, 10**18), st.integers(1, 5000), st.integers(1, 50))
@example(16_452_417_329_242, 1, 1)
@example(765_568_613_260_544_000, 1, 1)
def test_noise_on_sixteenths_fits_its_share_by_both_accountants(amount, tables, rows):
    share = Budget("gdp", amount)
    event = marginals_event(tables, rows, share)
    assert (event.l2_squared, event.lattice) == (tables * rows**2, 16)
    assert event.cost("gdp") <= share.fraction
    upper = 16 * math.nextafter(math.sqrt(event.l2_squared), math.inf)
    assert gaussian_mechanism(16 * event.sigma).map(upper) <= float(share.fraction) * (1 + 1e-12)
    smooth = tables * rows**2 / (2 * float(share.fraction))
    assert event.sigma == pytest.approx(math.sqrt(smooth + 1 / 64), rel=1e-12)
    coarse = gaussian_event(event.l2_squared, share, 1)
    assert coarse.cost("gdp") <= share.fraction and coarse.sigma >= event.sigma * (1 - 1e-12)


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
        marginals_event(1, 1, Budget("gdp", 0))


def test_standard_deviation_of_discrete_laplace_by_its_pmf():
    scale = 1.7
    mass = {z: math.exp(-abs(z) / scale) for z in range(-400, 401)}
    variance = sum(z * z * p for z, p in mass.items()) / sum(mass.values())
    assert standard_deviation(LaplaceEvent(scale, 1)) == pytest.approx(math.sqrt(variance), rel=1e-12)


@pytest.mark.parametrize("scale", [1 / 27, 1e-3, 1e-6])
def test_noise_that_is_never_there_has_a_deviation_to_divide_by(scale):
    assert 1e-5 > standard_deviation(LaplaceEvent(scale, 1)) >= 2**-20


@pytest.mark.parametrize("sigma", [2.0, 11.3])
def test_standard_deviation_of_discrete_gaussian_by_its_pmf(sigma):
    mass = {z: math.exp(-(z**2) / (2 * sigma**2)) for z in range(-400, 401)}
    variance = sum(z * z * p for z, p in mass.items()) / sum(mass.values())
    assert standard_deviation(GaussianEvent(sigma, 1)) == pytest.approx(math.sqrt(variance), rel=1e-6)


@pytest.mark.parametrize("sigma", [0.6, 1.3, 2.0, 11.3])
def test_rounded_sixteenths_have_the_stated_deviation_and_mean_error(sigma):
    """The law of the rounded noise of an even and an odd count, step by step."""
    event = GaussianEvent(sigma, 1, 16)
    steps = np.arange(-16 * 150, 16 * 150 + 1)
    mass = np.exp(-((steps / 16) ** 2) / (2 * sigma**2))
    mass /= mass.sum()
    errors = [whole_rows(steps + 16 * count, 16) - count for count in (4, 5)]
    for error in errors:
        assert error @ mass == pytest.approx(0, abs=1e-12)
    variance, mean = (
        np.mean([part @ mass for part in parts])
        for parts in ([error**2 for error in errors], [np.abs(error) for error in errors])
    )
    assert standard_deviation(event) == pytest.approx(math.sqrt(variance), rel=0.02)
    assert mean_error(event) == pytest.approx(mean, rel=0.03)
