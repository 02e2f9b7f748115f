"""Bivariate normal probabilities: closed forms, scipy, and the inverse in the correlation."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr, ndtri
from scipy.stats import multivariate_normal

from dpsyn_sql.fit.gaussian import (
    LARGEST_CORRELATION,
    bivariate_normal_cdf,
    bivariate_normal_density,
    latent_correlation,
)


def cdf(h, k, r):
    return bivariate_normal_cdf(np.array(h), np.array(k), np.array(r))


def test_orthant_probability_is_the_arcsine_law():
    r = np.linspace(-0.999, 0.999, 101)
    np.testing.assert_allclose(cdf(0.0, 0.0, r), 0.25 + np.arcsin(r) / (2 * np.pi), atol=1e-14)


def test_agrees_with_scipy_at_random_points():
    rng = np.random.default_rng(1)
    points = np.column_stack([rng.normal(0, 1.5, (60, 2)), rng.uniform(-0.98, 0.98, 60)])
    expected = [
        multivariate_normal([0, 0], [[1, r], [r, 1]]).cdf([h, k]) for h, k, r in points
    ]  # adaptive integration
    np.testing.assert_allclose(cdf(*points.T), expected, atol=1e-6)


@pytest.mark.parametrize("h", [-2.0, 0.0, 1.3])
@pytest.mark.parametrize("k", [-1.0, 0.0, 2.0])
def test_limits_of_the_correlation(h, k):
    assert cdf(h, k, 0.0) == pytest.approx(ndtr(h) * ndtr(k), abs=1e-15)
    assert cdf(h, k, 1.0) == pytest.approx(ndtr(min(h, k)), abs=1e-15)
    assert cdf(h, k, -1.0) == pytest.approx(max(0.0, ndtr(h) + ndtr(k) - 1.0), abs=1e-15)


def test_infinite_thresholds():
    np.testing.assert_allclose(cdf([np.inf, np.inf, -np.inf, 0.3], [0.3, np.inf, 0.3, -np.inf], 0.5),
                               [ndtr(0.3), 1.0, 0.0, 0.0])  # fmt: skip


def test_density_is_the_derivative_in_the_correlation():
    h, k, r, step = np.array(0.7), np.array(-0.4), np.array(0.35), 1e-5
    slope = (cdf(h, k, r + step) - cdf(h, k, r - step)) / (2 * step)
    assert bivariate_normal_density(h, k, r) == pytest.approx(slope, rel=1e-7)


@given(p=st.floats(1e-6, 1 - 1e-6), q=st.floats(1e-6, 1 - 1e-6), r=st.floats(-0.99, 0.99))
@settings(max_examples=200)
def test_the_solution_reproduces_the_joint_probability(p, q, r):
    joint = cdf(ndtri(p), ndtri(q), r)
    found = latent_correlation(np.array([p]), np.array([q]), np.atleast_1d(joint))[0]
    assert cdf(ndtri(p), ndtri(q), found) == pytest.approx(float(joint), abs=1e-11)


def test_the_correlation_itself_comes_back():
    r = np.linspace(-0.95, 0.95, 39)
    p, q = np.full(39, 0.3), np.full(39, 0.4)
    np.testing.assert_allclose(latent_correlation(p, q, cdf(ndtri(p), ndtri(q), r)), r, atol=1e-6)


def test_half_margins_in_closed_form():
    joint = np.array([0.1, 0.25, 0.4])
    half = np.full(3, 0.5)
    expected = np.sin(2 * np.pi * (joint - 0.25))
    np.testing.assert_allclose(latent_correlation(half, half, joint), expected, atol=1e-8)


def test_impossible_targets_and_degenerate_margins():
    p = np.array([0.2, 0.2, 0.0, 1.0, 0.5, 0.9])
    q = np.array([0.3, 0.3, 0.3, 0.3, 1.0, 0.9])
    joint = np.array([0.0, 0.25, 0.0, 0.3, 0.5, 0.0])
    found = latent_correlation(p, q, joint)
    # P(A and B) = 0 is reached to 1e-16 before the correlation is -1.
    assert -LARGEST_CORRELATION <= found[0] < -0.98
    assert found[5] == pytest.approx(-LARGEST_CORRELATION, abs=1e-6)
    assert found[1] == pytest.approx(LARGEST_CORRELATION, abs=1e-6)
    assert np.all(found[2:5] == 0.0)


def test_a_whole_large_table_at_once():
    rng = np.random.default_rng(2)
    p, q = rng.uniform(1e-4, 0.3, 227_000), rng.uniform(1e-4, 0.3, 227_000)
    r = rng.uniform(-0.3, 0.9, 227_000)
    joint = bivariate_normal_cdf(ndtri(p), ndtri(q), r)
    found = latent_correlation(p, q, joint)
    assert np.abs(bivariate_normal_cdf(ndtri(p), ndtri(q), found) - joint).max() < 1e-10
