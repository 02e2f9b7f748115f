"""Correlated normals: closed forms, scipy, brute force, the conditions of the nearest correlation matrix."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr, ndtri
from scipy.stats import kendalltau, multivariate_normal

from dpsyn_sql.fit.gaussian import (
    LARGEST_CORRELATION,
    bivariate_normal_cdf,
    bivariate_normal_density,
    concordance,
    concordance_variance,
    correlation_of,
    discretised,
    floored,
    latent_correlation,
    nearest_correlation,
    untied,
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


def tau_b(table):
    """Kendall's tau-b of a table of counts; 0 if a column has one value only."""
    joint = np.asarray(table, np.float64) / np.sum(table)
    divisor = float(untied(joint.sum(axis=1), joint.sum(axis=0)))
    return float(concordance(joint)) / divisor if divisor > 0 else 0.0


def table_of(x, y, shape):
    found = np.zeros(shape)
    np.add.at(found, (x, y), 1)
    return found


def centred(table):
    table = table - table.mean(axis=-1, keepdims=True)
    return table - table.mean(axis=-2, keepdims=True)


@settings(max_examples=60)
@given(st.integers(2, 6), st.integers(2, 9), st.integers(2, 80), st.integers(0, 2**32 - 1))
def test_tau_of_a_table_is_tau_of_its_rows(a, b, rows, seed):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, a, rows)
    y = np.clip(x + rng.integers(-2, 3, rows), 0, b - 1)
    of_rows = kendalltau(x, y).statistic
    assert tau_b(table_of(x, y, (a, b))) == pytest.approx(0.0 if np.isnan(of_rows) else of_rows, abs=1e-12)


def test_negative_cells_count_like_others():
    joint = np.random.default_rng(1).normal(0.05, 0.1, (3, 4))
    expected = sum(
        joint[i, j] * joint[k, m] * np.sign(i - k) * np.sign(j - m)
        for i in range(3)
        for j in range(4)
        for k in range(3)
        for m in range(4)
    )
    assert concordance(joint) == pytest.approx(expected, abs=1e-15)


def test_the_latent_correlation_comes_back_whatever_the_margins():
    rng = np.random.default_rng(2)
    number = 400
    first, second = rng.dirichlet(np.full(2, 0.7), number), rng.dirichlet(np.full(9, 0.7), number)
    wanted = rng.uniform(-0.95, 0.95, number)
    tau = concordance(discretised(first, second, wanted))
    usable = untied(first, second) > 1e-3
    assert usable.sum() > 300
    np.testing.assert_allclose(correlation_of(first, second, tau)[usable], wanted[usable], atol=1e-5)


def test_generated_rows_give_their_correlation_back_and_the_formula_for_columns_without_ties_does_not():
    rng, rows = np.random.default_rng(3), 200_000
    x = rng.standard_normal(rows)
    y = 0.6 * x + 0.8 * rng.standard_normal(rows)
    table = table_of(np.digitize(x, [0.8]), np.digitize(y, [-1.0, 0.0, 1.5]), (2, 4)) / rows
    margins = table.sum(axis=1)[None], table.sum(axis=0)[None]
    assert correlation_of(*margins, concordance(table)[None])[0] == pytest.approx(0.6, abs=0.01)
    assert np.sin(np.pi / 2 * tau_b(table)) < 0.57
    assert np.sin(np.pi / 2 * concordance(table)) < 0.4


@pytest.mark.parametrize("wanted", [-5.0, 5.0])
def test_what_no_correlation_reaches_gives_the_largest(wanted):
    even = np.full((1, 3), 1 / 3)
    assert correlation_of(even, even, np.array([wanted]))[0] == pytest.approx(np.sign(wanted), abs=2e-4)


def test_a_column_of_one_value_says_nothing():
    one = np.array([[0.0, 1.0, 0.0]])
    assert correlation_of(one, np.full((1, 3), 1 / 3), np.array([0.2]))[0] == 0.0
    assert tau_b(np.array([[3, 4, 5]])) == 0.0


def test_noise_does_not_weaken_the_concordance_and_its_variance_is_known():
    joint = discretised(np.full((1, 5), 0.2), np.array([[0.5, 0.3, 0.1, 0.1]]), np.array([0.5]))[0]
    sigma, draws = 0.02, 40_000
    noise = np.random.default_rng(4).normal(0, sigma, (draws, 5, 4))
    seen = concordance(joint + centred(noise))
    variance = float(concordance_variance(joint, np.array(sigma)))
    assert seen.mean() == pytest.approx(float(concordance(joint)), abs=5 * np.sqrt(variance / draws))
    assert seen.var() == pytest.approx(variance, rel=0.05)


def test_the_example_of_the_paper():
    """Higham 2002, section 4: the tridiagonal matrix of order 3."""
    matrix = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 1.0], [0.0, 1.0, 1.0]])
    expected = np.array([[1.0, 0.7607, 0.1573], [0.7607, 1.0, 0.7607], [0.1573, 0.7607, 1.0]])
    np.testing.assert_allclose(nearest_correlation(matrix), expected, atol=5e-5)


def test_the_tridiagonal_example_of_order_4():
    """Higham 2002, section 4, equation 4.1: distance 2.1339 for the (2, -1) matrix."""
    matrix = 2 * np.eye(4) - np.eye(4, k=1) - np.eye(4, k=-1)
    nearest = nearest_correlation_full(matrix)
    assert np.linalg.norm(matrix - nearest) == pytest.approx(2.1339, abs=5e-4)


def nearest_correlation_full(matrix):
    return nearest_correlation(matrix, tolerance=1e-12, rounds=5000)


def random_symmetric(size, seed):
    raw = np.random.default_rng(seed).uniform(-1, 1, (size, size))
    matrix = (raw + raw.T) / 2
    np.fill_diagonal(matrix, 1.0)
    return matrix


@pytest.mark.parametrize("seed", range(5))
def test_optimality(seed):
    """X is nearest iff A - X = diag(d) - Z with Z positive semidefinite and Z X = 0."""
    matrix = random_symmetric(12, seed)
    nearest = nearest_correlation_full(matrix)
    values, vectors = np.linalg.eigh(nearest)
    null = vectors[:, values < 1e-6]
    assert values[0] > -1e-8 and null.shape[1] > 0
    # Stationarity: some d makes Z = diag(d) - (A - X) vanish on the range of X.
    difference = matrix - nearest
    range_ = vectors[:, values >= 1e-6]
    rows = [np.diag(unit) @ range_ for unit in np.eye(12)]
    system = np.column_stack([row.ravel() for row in rows])
    d, *_ = np.linalg.lstsq(system, (difference @ range_).ravel(), rcond=None)
    z = np.diag(d) - difference
    assert np.abs(z @ range_).max() < 1e-5
    assert np.linalg.eigvalsh(z)[0] > -1e-5


def test_a_correlation_matrix_stays():
    good = floored(random_symmetric(9, 4), 0.01)
    np.testing.assert_allclose(nearest_correlation(good), good, atol=1e-12)


def test_floor():
    matrix = np.ones((5, 5))
    result = floored(matrix, 1e-4)
    assert np.linalg.eigvalsh(result)[0] > 0.9e-4
    np.testing.assert_array_equal(np.diag(result), 1.0)
    np.linalg.cholesky(result)


def test_no_columns():
    empty = np.empty((0, 0))
    assert floored(nearest_correlation(empty), 1e-4).shape == (0, 0)
