"""Targets of pairs beside the tree: margins of the model, as near to the noisy table as its noise allows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsyn_sql.fit.centres import target
from dpsyn_sql.fit.estimate import Observation


@given(st.integers(0, 2**32), st.integers(2, 12), st.integers(2, 12), st.floats(0.1, 300), st.booleans())
def test_targets_have_the_margins_of_the_model(seed, rows, columns, sigma, ordered):
    rng = np.random.default_rng(seed)
    expected = 10_000 * rng.dirichlet(np.full(rows * columns, 0.7)).reshape(rows, columns) + 1e-3
    noisy = Observation(np.rint(expected + rng.normal(0, sigma, expected.shape)), np.asarray(sigma))
    found = target(noisy, expected, [ordered, not ordered])
    assert (found >= 0).all() and np.isfinite(found).all()
    # Raking ends after 20 rounds: tables of nearly empty corners are then up to 0.4 % of the rows away.
    np.testing.assert_allclose(found.sum(axis=1), expected.sum(axis=1), atol=expected.sum() / 100)
    np.testing.assert_allclose(found.sum(axis=0), expected.sum(axis=0), atol=expected.sum() / 100)


@pytest.mark.parametrize("sigma", [10.0, 40.0])
def test_a_target_is_nearer_to_the_truth_than_model_and_noisy_table(sigma):
    rng = np.random.default_rng(3)
    truth = 20_000 * rng.dirichlet(np.full(80, 0.5)).reshape(8, 10)
    expected = np.outer(truth.sum(axis=1), truth.sum(axis=0)) / truth.sum()
    noisy = Observation(truth + rng.normal(0, sigma, truth.shape), np.asarray(sigma))
    error = np.abs(target(noisy, expected, [False, False]) - truth).sum()
    assert error < np.abs(noisy.values - truth).sum()
    assert error < 0.5 * np.abs(expected - truth).sum()


def test_without_noise_the_target_is_the_table_and_with_all_of_it_the_model():
    rng = np.random.default_rng(4)
    expected = np.outer(rng.dirichlet(np.ones(4)), rng.dirichlet(np.ones(5))) * 5_000
    change = rng.normal(0, 20, (4, 5))
    change -= change.mean(axis=0)
    change -= change.mean(axis=1, keepdims=True)
    truth = expected + change
    if truth.min() <= 1:
        truth = expected + change * (expected.min() / (2 * np.abs(change).max()))
    exact = target(Observation(truth, np.asarray(1e-6)), expected, [False, False])
    np.testing.assert_allclose(exact, truth, atol=0.05)
    vague = target(Observation(truth, np.asarray(1e6)), expected, [False, False])
    np.testing.assert_allclose(vague, expected, rtol=0.02)
