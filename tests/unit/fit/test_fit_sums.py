"""One-way sums on which noisy tables agree, beside constrained least squares written out."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsyn_sql.fit.centres import agreeing, one_way_sums, with_sums
from dpsyn_sql.fit.estimate import Observation

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
