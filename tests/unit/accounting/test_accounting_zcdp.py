"""The conversion against published figures and an independent evaluation in floats."""

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from dpsyn_sql.accounting.zcdp import RHO_UNITS, epsilon_from_rho, rho_from_epsilon


def delta_by_search(rho: float, epsilon: float) -> float:
    """Canonne, Kamath, Steinke (2020), Proposition 7, minimised over alpha by a library."""

    def log_bound(log_excess: float) -> float:
        alpha = 1 + math.exp(log_excess)
        return (alpha - 1) * (alpha * rho - epsilon) - math.log(alpha - 1) + alpha * math.log1p(-1 / alpha)

    return math.exp(min(minimize_scalar(log_bound, bounds=(-20, 20), method="bounded").fun for _ in range(1)))


@pytest.mark.parametrize(
    ("delta", "rho"), [("1e-9", 0.01497305), ("9e-10", 0.0148843)], ids=["whole delta", "nine tenths"]
)
def test_figures_of_the_design(delta, rho):
    assert rho_from_epsilon(Fraction(1), Fraction(delta)) / RHO_UNITS == pytest.approx(rho, abs=1e-7)


@settings(max_examples=40)
@given(st.floats(0.01, 20), st.floats(-12, -6))
def test_the_rho_is_within_and_the_next_is_not(epsilon, log10_delta):
    delta = 10.0**log10_delta
    units = rho_from_epsilon(Fraction(epsilon), Fraction(delta))
    rho = units / RHO_UNITS
    assert delta_by_search(rho, epsilon) <= delta * (1 + 1e-9)
    assert delta_by_search(rho * (1 + 1e-6), epsilon) > delta


@settings(max_examples=40)
@given(st.floats(1e-6, 5), st.floats(-12, -6))
def test_epsilon_is_the_inverse_and_never_below(rho, log10_delta):
    delta = 10.0**log10_delta
    epsilon = epsilon_from_rho(Fraction(rho), Fraction(delta))
    assert delta_by_search(rho, epsilon) <= delta * (1 + 1e-8)
    assert delta_by_search(rho, epsilon * (1 - 1e-4)) > delta


def test_better_than_the_textbook_bound():
    """Bun and Steinke's rho + 2 sqrt(rho ln 1/delta) is an upper bound of the tight one."""
    for rho in (0.001, 0.1, 1.0):
        assert epsilon_from_rho(Fraction(str(rho)), Fraction(1, 10**9)) < rho + 2 * math.sqrt(
            rho * math.log(1e9)
        )


def test_nothing_spent_is_epsilon_zero():
    assert epsilon_from_rho(Fraction(0), Fraction(1, 10**9)) == 0.0
