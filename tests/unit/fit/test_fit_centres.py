"""Centres of potentials: what pair tables make likely."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsyn_sql.fit import centres as module
from dpsyn_sql.fit.belief import calibrate, marginals
from dpsyn_sql.fit.centres import centres, denoised_pair, log_ratios
from dpsyn_sql.fit.estimate import Observation
from dpsyn_sql.fit.graph import junction_tree


def table(values, sigma):
    return Observation(np.asarray(values, dtype=np.float64), np.asarray(float(sigma)))


def band(size, rows):
    """A pair whose codes are never more than one apart."""
    away = np.abs(np.arange(size)[:, None] - np.arange(size))
    cells = np.where(away == 0, 2.0, np.where(away == 1, 1.0, 0.0))
    return rows * cells / cells.sum()


def independent(values):
    return np.outer(values.sum(axis=1), values.sum(axis=0)) / values.sum()


@pytest.mark.parametrize("ordered", [(True, True), (True, False), (False, False)])
def test_pure_noise_hardly_moves_a_table(ordered):
    expected = np.full((24, 24), 40.0)
    noisy = table(expected + np.random.default_rng(1).normal(0, 40, expected.shape), 40)
    found = denoised_pair(noisy, expected, ordered)
    assert np.abs(found - expected).sum() < 0.4 * np.abs(noisy.values - expected).sum()


@given(st.integers(0, 2**32 - 1), st.integers(2, 12), st.integers(2, 12), st.booleans(), st.booleans())
def test_sums_of_rows_and_columns_stay(seed, rows, columns, first, second):
    rng = np.random.default_rng(seed)
    expected = 5_000 * np.outer(rng.dirichlet(np.ones(rows)), rng.dirichlet(np.ones(columns))) + 1
    noisy = table(expected + rng.normal(0, 20, expected.shape), 20)
    found = denoised_pair(noisy, expected, (first, second))
    assert found.min() >= 0
    np.testing.assert_allclose(found.sum(axis=1), expected.sum(axis=1), rtol=1e-6)
    np.testing.assert_allclose(found.sum(axis=0), expected.sum(axis=0), rtol=1e-6)


def test_hardly_any_noise_leaves_empty_cells_empty_and_others_close():
    true = band(20, 20_000)
    found = denoised_pair(table(true, 0.5), independent(true), (True, True))
    assert found[true == 0].sum() < 0.001 * true.sum()
    assert np.abs(found - true).sum() / true.sum() < 0.1


@pytest.mark.parametrize("sigma", [3, 30])
def test_cells_that_cannot_be_are_seen_by_their_neighbours(sigma):
    # At 30 a cell of independence holds 31 rows: no cell stands out alone, but blocks do.
    true = band(24, 18_000)
    noisy = table(true + np.random.default_rng(2).normal(0, sigma, true.shape), sigma)
    alone = denoised_pair(noisy, independent(true), (False, False))[true == 0].sum()
    together = denoised_pair(noisy, independent(true), (True, True))[true == 0].sum()
    assert together < 0.2 * independent(true)[true == 0].sum()
    assert together <= alone


def test_the_more_noise_the_less_a_count_says():
    counts, expected = np.full(50, 0.0), np.full(50, 100.0)
    found = [log_ratios(counts, expected, np.full(50, sigma))[0] for sigma in (5.0, 50.0, 500.0, 5_000.0)]
    assert found == sorted(found) and found[0] < -3 and abs(found[-1]) < 0.5


def test_a_table_without_rows_or_noise_has_finite_ratios():
    assert np.isfinite(log_ratios(np.zeros(3), np.zeros(3), np.zeros(3))).all()
    assert np.isfinite(log_ratios(np.array([-1e9, 1e9]), np.array([1e-300, 1e9]), np.ones(2))).all()


def test_centres_say_what_the_rest_of_the_model_does_not():
    """Three variables in a row: the ends depend on each other through the middle alone, and get no potential."""
    rng, sizes = np.random.default_rng(4), (6, 6, 6)
    link = 1.2 * np.exp(-0.5 * (np.arange(6)[:, None] - np.arange(6)) ** 2)
    potentials = {(0, 1): link, (1, 2): link, (0, 2): np.zeros((6, 6))}
    beliefs = calibrate(junction_tree(sizes, potentials), potentials)
    model = marginals(beliefs, potentials)
    noisy = {scope: table(1e5 * cells + rng.normal(0, 20, (6, 6)), 20) for scope, cells in model.items()}
    found = centres(potentials, beliefs, noisy, 1e5, [True] * 3)
    assert found.keys() == potentials.keys()
    assert np.abs(found[0, 2]).max() < 0.2
    correlation = np.corrcoef(found[0, 1].ravel(), link.ravel())[0, 1]
    assert correlation > 0.95


@pytest.mark.parametrize("shape", [(24, 20), (16, 2), (3, 30), (2, 2), (10, 9)])
def test_blocks_of_filled_tables_have_the_noise_of_projected_cells(monkeypatch, shape):
    """Beside the covariance of the projection written out: b' (P x P) b for the indicator b of a block."""
    seen, sigma = [], 3.0
    inner = module.log_ratios

    def noted(counts, expected, deviations):
        seen.append(deviations)
        return inner(counts, expected, deviations)

    monkeypatch.setattr(module, "log_ratios", noted)
    expected = np.full(shape, 50.0)
    denoised_pair(replace(table(expected, sigma), filled=True), expected, (True, True))
    blocks = [block for block in (8, 4, 2, 1) if block == 1 or any(size > block for size in shape)]
    assert len(seen) == len(blocks)
    for block, found in zip(blocks, seen, strict=True):
        axes = []
        for size in shape:
            indicators = np.equal.outer(np.arange(-(-size // block)), np.arange(size) // block).astype(float)
            spread = np.diag(indicators @ (np.eye(size) - 1 / size) @ indicators.T)
            # A block of all codes is no difference between codes: it counts as much as all of them apart.
            axes.append(np.where(indicators.sum(axis=1) < size, spread, size - 1))
        wanted = sigma * np.sqrt(np.multiply.outer(*axes).ravel())
        np.testing.assert_allclose(found, wanted, rtol=1e-9)
