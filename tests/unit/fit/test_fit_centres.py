"""Sums, centres and targets: constrained least squares written out, and what pair tables make likely."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsyn_sql.fit import centres as module
from dpsyn_sql.fit.belief import calibrate, marginals
from dpsyn_sql.fit.centres import (
    agreeing,
    centres,
    denoised_pair,
    log_ratios,
    one_way_sums,
    target,
    with_sums,
)
from dpsyn_sql.fit.estimate import Observation
from dpsyn_sql.fit.graph import junction_tree

BIN_OF = np.array([0, 0, 1, 1, 1, 2])
LINKS = {(0, 3): np.where(BIN_OF[:, None] == np.arange(3), 0.0, -1e3)}
SIZES = {0: 6, 1: 4, 2: 3, 3: 3}
SCOPES = [(0,), (1,), (2,), (0, 1), (1, 3), (2, 3), (0, 1, 2)]


def noisy_tables(seed, scopes=SCOPES):
    """Tables of noise, each cell with its own standard deviation in tables of one variable."""
    rng = np.random.default_rng(seed)
    found = {}
    for scope in scopes:
        shape = tuple(SIZES[v] for v in scope)
        sigma = rng.uniform(1, 9, shape if len(scope) == 1 else ())
        found[scope] = Observation(rng.normal(50, 30, shape), sigma)
    return found


def sums(values, axis):
    return values.sum(axis=tuple(a for a in range(values.ndim) if a != axis))


def least_squares(tables, variable, total):
    """The counts of one variable that sum to ``total`` and are nearest to all sums, by their variances."""
    size = SIZES[variable]
    rows, seen, weights = [], [], []
    for scope, table in tables.items():
        for axis, v in enumerate(scope):
            twin = variable == 0 and v == 3
            if v != variable and not twin:
                continue
            rows.append((np.arange(3)[:, None] == BIN_OF).astype(float) if twin else np.eye(size))
            seen.append(sums(table.values, axis))
            weights.append(1 / sums(np.broadcast_to(table.sigma, table.values.shape) ** 2, axis))
    a, y, w = np.concatenate(rows), np.concatenate(seen), np.concatenate(weights)
    ones = np.ones((size, 1))
    system = np.block([[a.T * w @ a, ones], [ones.T, np.zeros((1, 1))]])
    return np.linalg.solve(system, np.append(a.T * w @ y, total))[:size]


@given(st.integers(0, 2**32 - 1))
def test_sums_are_those_of_least_squares(seed):
    tables = noisy_tables(seed)
    found = one_way_sums(tables, LINKS, 300.0)
    for variable in (0, 1, 2):
        np.testing.assert_allclose(found[variable], least_squares(tables, variable, 300.0), atol=1e-7)
    np.testing.assert_allclose(found[3], np.bincount(BIN_OF, found[0]), atol=1e-9)


@given(st.integers(0, 2**32 - 1))
def test_filled_tables_get_the_sums_of_others_and_tell_none(seed):
    """Their margins are those of a model: taken for measured ones, they would pull all sums towards it."""
    tables = noisy_tables(seed)
    filled = {scope: replace(table, filled=len(scope) > 1) for scope, table in tables.items()}
    told = {scope: table for scope, table in tables.items() if len(scope) == 1}
    wanted = one_way_sums(told, LINKS, 300.0)
    found = one_way_sums(filled, LINKS, 300.0)
    assert found.keys() == wanted.keys()
    for variable in wanted:
        np.testing.assert_allclose(found[variable], wanted[variable], atol=1e-9)
        if variable < 2:
            assert np.abs(found[variable] - one_way_sums(tables, LINKS, 300.0)[variable]).max() > 1e-3
    for scope, table in agreeing(filled, LINKS, 300.0).items():
        assert table.filled == (len(scope) > 1)
        for axis, variable in enumerate(scope):
            np.testing.assert_allclose(sums(table.values, axis), wanted[variable], atol=1e-7)


def test_a_twin_without_a_table_has_the_sums_of_its_variable():
    found = one_way_sums(noisy_tables(1, [(0,), (0, 1)]), LINKS, 10.0)
    np.testing.assert_allclose(found[3], np.bincount(BIN_OF, found[0]))
    assert found.keys() == {0, 1, 3}


def test_tables_agree_and_keep_what_is_not_in_their_sums():
    tables = noisy_tables(2)
    found = agreeing(tables, LINKS, 300.0)
    wanted = one_way_sums(tables, LINKS, 300.0)
    for scope, table in found.items():
        assert table.sigma is tables[scope].sigma
        for axis, variable in enumerate(scope):
            np.testing.assert_allclose(sums(table.values, axis), wanted[variable])
    change = found[0, 1].values - tables[0, 1].values
    np.testing.assert_allclose(
        change - change.mean(0) - change.mean(1)[:, None] + change.mean(), 0, atol=1e-9
    )


def test_tables_that_agree_stay():
    once = agreeing(noisy_tables(3), LINKS, 300.0)
    for scope, table in agreeing(once, LINKS, 300.0).items():
        np.testing.assert_allclose(table.values, once[scope].values)


@pytest.mark.parametrize("shape", [(4,), (3, 5), (2, 3, 4)])
def test_shifts_are_the_smallest(shape):
    """Of all changes with these sums: it has no part that leaves every sum as it is."""
    rng = np.random.default_rng(4)
    values, other = rng.normal(0, 9, shape), rng.gamma(2, 5, shape)
    moved = with_sums(values, [sums(other, axis) for axis in range(other.ndim)], other.sum())
    neutral = rng.normal(0, 1, shape)
    neutral = with_sums(neutral, [np.zeros(size) for size in shape], 0.0)
    for axis in range(other.ndim):
        np.testing.assert_allclose(sums(moved, axis), sums(other, axis))
        np.testing.assert_allclose(sums(neutral, axis), 0, atol=1e-9)
    assert abs(((moved - values) * neutral).sum()) < 1e-9


def test_exact_tables_have_finite_sums():
    exact = {(0,): Observation(np.full(6, 5.0), np.zeros(6))}
    np.testing.assert_allclose(one_way_sums(exact, {}, 30.0)[0], 5.0)


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
