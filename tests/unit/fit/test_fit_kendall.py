"""Kendall's tau from tables: scipy on rows, brute force, and the latent correlation that it leads back to."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kendalltau

from dpsyn_sql.fit.gaussian import (
    concordance,
    concordance_variance,
    correlation_of,
    discretised,
    untied,
)


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
