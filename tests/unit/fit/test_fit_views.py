"""Views against brute force: least squares over the full table, agreement, non-negativity."""

import math
from functools import reduce
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsyn_sql.fit.arrays import MOST_STEPS, shrink_singular_values, widened, without_negative_cells
from dpsyn_sql.fit.views import consistent, settled, shrunk, summed_to

SCOPES = st.lists(
    st.sets(st.integers(0, 4), min_size=1, max_size=4).map(lambda scope: tuple(sorted(scope))),
    min_size=1,
    max_size=6,
    unique=True,
)
SIZES = st.tuples(*[st.integers(1, 4)] * 5)
SEEDS = st.integers(0, 2**31)


def noisy(scopes, sizes, seed, mean=20.0):
    """Independent views, far from agreeing, and the deviations of their noise."""
    rng = np.random.default_rng(seed)
    views = {scope: rng.normal(mean, 30, [sizes[v] for v in scope]) for scope in scopes}
    return views, {scope: float(rng.uniform(1, 5)) for scope in scopes}


def least_squares(views, sigmas, sizes):
    """The views of the full table x that minimises sum |A x - y|^2 / sigma^2."""
    cells = np.indices(sizes).reshape(len(sizes), -1)
    numbers = {
        scope: np.ravel_multi_index([cells[v] for v in scope], table.shape) for scope, table in views.items()
    }
    matrices, values = [], []
    for scope, table in views.items():
        matrix = np.zeros((table.size, cells.shape[1]))
        matrix[numbers[scope], np.arange(cells.shape[1])] = 1
        matrices.append(matrix / sigmas[scope])
        values.append(table.ravel() / sigmas[scope])
    full = np.linalg.lstsq(np.vstack(matrices), np.concatenate(values), rcond=None)[0]
    return {
        scope: np.bincount(numbers[scope], full, table.size).reshape(table.shape)
        for scope, table in views.items()
    }


def disagreement(views):
    """The largest difference between two views in a marginal that both hold, the total included."""
    worst = 0.0
    for first, second in combinations(views, 2):
        both = tuple(sorted(set(first) & set(second)))
        gap = summed_to(views[first], first, both) - summed_to(views[second], second, both)
        worst = max(worst, float(np.abs(gap).max()))
    return worst


@given(SCOPES, SIZES, SEEDS)
def test_consistent_views_are_the_weighted_least_squares_solution(scopes, sizes, seed):
    views, sigmas = noisy(scopes, sizes, seed)
    found, wanted = consistent(views, sigmas), least_squares(views, sigmas, sizes)
    assert disagreement(found) < 1e-9
    for scope in scopes:
        np.testing.assert_allclose(found[scope], wanted[scope], atol=1e-8)


def test_the_weights_are_those_of_the_proposal():
    # a is the sum of 2 cells in one view and of 8 in the other: weights 4/5 and 1/5
    views = {(0, 1): np.array([[10.0, 20], [30, 40]]), (0, 2): np.arange(16.0).reshape(2, 8)}
    found = consistent(views, dict.fromkeys(views, 1.0))
    np.testing.assert_allclose(found[0, 1].sum(axis=1), 0.8 * np.array([30, 70]) + 0.2 * np.array([28, 92]))
    np.testing.assert_allclose(found[0, 1][0, 1] - found[0, 1][0, 0], 10)


@given(SCOPES, SIZES, SEEDS)
def test_shrunken_views_still_agree(scopes, sizes, seed):
    views, sigmas = noisy(scopes, sizes, seed)
    found = shrunk(consistent(views, sigmas), sigmas, 100.0)
    assert disagreement(found) < 1e-7


@given(SCOPES, SIZES, SEEDS, st.sampled_from([None, 0.0, 5.0]), st.floats(-200, 200))
def test_settled_views_agree_are_not_negative_and_have_one_total(scopes, sizes, seed, theta, mean):
    views, sigmas = noisy(scopes, sizes, seed, mean)
    found = settled(views, sigmas, 1000.0, theta)
    assert min(table.min() for table in found.values()) >= 0
    assert all(math.isclose(table.sum(), 1000.0, rel_tol=1e-9) for table in found.values())
    assert disagreement(found) < 1e-6


def test_ripple_settles_sparse_views_as_well_as_the_projection():
    """Cells that Ripple leaves in [-theta, 0) are no reason to mix in uniform tables."""
    random = np.random.default_rng(0)
    full = 10_000 * random.dirichlet(np.full(10**3, 0.02)).reshape(10, 10, 10)
    exact = {(0, 1): full.sum(axis=2), (1, 2): full.sum(axis=0), (0, 2): full.sum(axis=1)}
    views = {scope: table + random.normal(0, 20, table.shape) for scope, table in exact.items()}
    sigmas = dict.fromkeys(views, 20.0)
    apart = [
        sum(np.abs(table - exact[scope]).sum() for scope, table in settled(views, sigmas, 1e4, theta).items())
        for theta in (None, 1.0)
    ]
    assert apart[1] < 1.1 * apart[0]


def test_views_that_hold_already_stay_as_they_are():
    full = np.random.default_rng(0).uniform(1, 9, (2, 3, 4))
    views = {(0, 1): full.sum(axis=2), (1, 2): full.sum(axis=0), (0, 2): full.sum(axis=1)}
    found = settled(views, dict.fromkeys(views, 1.0), float(full.sum()))
    for scope, table in views.items():
        np.testing.assert_allclose(found[scope], table, atol=1e-9)


def test_no_table_agrees_with_three_contradictory_pairs():
    """a = b, b = c, a != c: consistent views can be non-negative without being those of a table."""
    same, other = np.diag([50.0, 50.0]), np.array([[0, 50.0], [50, 0]])
    views = {(0, 1): same, (1, 2): same, (0, 2): other}
    found = settled(views, dict.fromkeys(views, 1.0), 100.0)
    for scope, table in views.items():
        np.testing.assert_allclose(found[scope], table, atol=1e-9)


def one_after_the_other(views, sigmas):
    """The update of DPSyn, section 3.2: shared sets in topological order, each averaged by 1/(C sigma^2)."""
    found = {scope: table.copy() for scope, table in views.items()}
    shared = {()} | {tuple(sorted(set(a) & set(b))) for a, b in combinations(views, 2)}
    while more := {tuple(sorted(set(a) & set(b))) for a, b in combinations(shared, 2)} - shared:
        shared |= more
    for scope in sorted(shared, key=len):
        owners = [owner for owner in found if set(scope) <= set(owner)]
        sums = [summed_to(found[owner], owner, scope) for owner in owners]
        cells = [found[owner].size / part.size for owner, part in zip(owners, sums, strict=True)]
        weights = [1 / (c * sigmas[owner] ** 2) for c, owner in zip(cells, owners, strict=True)]
        mean = np.average(sums, axis=0, weights=weights)
        for owner, part, count in zip(owners, sums, cells, strict=True):
            found[owner] += widened((mean - part) / count, scope, owner)
    return found


@given(SCOPES, SIZES, SEEDS)
def test_all_interactions_at_once_are_the_sets_one_after_the_other(scopes, sizes, seed):
    views, sigmas = noisy(scopes, sizes, seed)
    found, wanted = consistent(views, sigmas), one_after_the_other(views, sigmas)
    for scope in scopes:
        np.testing.assert_allclose(found[scope], wanted[scope], atol=1e-9)


def interaction(table):
    for axis in range(table.ndim):
        table = table - table.mean(axis=axis, keepdims=True)
    return table


@given(SIZES, SEEDS)
def test_what_a_view_says_beyond_independence_is_shrunk_by_its_noise(sizes, seed):
    views, sigmas = noisy([(0, 1, 2), (1, 2, 3)], sizes, seed, mean=100.0)
    views = consistent(views, sigmas)
    total = float(views[0, 1, 2].sum())
    found = shrunk(views, sigmas, total)
    own = {v: summed_to(views[s], s, (v,)) for s in views for v in s}
    own = {v: np.maximum(t, 0) + 1e-6 * np.maximum(t, 0).sum() / t.size for v, t in own.items()}
    for scope, owners in {(0, 1): [(0, 1, 2)], (1, 2): list(views), (0, 1, 2): [(0, 1, 2)]}.items():
        before, after = (interaction(summed_to(part[owners[0]], owners[0], scope)) for part in (views, found))
        margins = [own[v] / own[v].sum() for v in scope]
        product = interaction(total * reduce(np.multiply.outer, margins))
        sizes_of = [views[o].size * sigmas[o] ** 2 / before.size for o in owners]
        sigma = sum(1 / v for v in sizes_of) ** -0.5
        rest = before - product
        if len(scope) == 2:
            wanted = product + shrink_singular_values(rest[None], np.array([sigma]))[0]
        else:
            noise = sigma**2 * math.prod(size - 1 for size in before.shape)
            wanted = product + rest * max(0.0, 1 - noise / max((rest**2).sum(), 1e-300))
        np.testing.assert_allclose(after, wanted, atol=1e-6)


def ripple(table, theta, most=MOST_STEPS):
    return without_negative_cells(table[None], np.array([theta]), most)[0]


@pytest.mark.parametrize("theta", [0.0, 5.0])
def test_many_tables_ripple_as_each_by_itself(theta):
    tables = np.random.default_rng(0).normal([[[3]], [[-3]], [[0]]], 20, (3, 4, 5))
    thetas = theta * np.arange(3.0)
    for one, own, together in zip(tables, thetas, without_negative_cells(tables, thetas), strict=True):
        np.testing.assert_allclose(ripple(one, own), together)


@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=4),
    SEEDS,
    st.sampled_from([0.0, 1.0, 10.0]),
    st.floats(-3, 3),
    st.sampled_from([0, 1, 200]),
)
def test_ripple_keeps_the_total_and_leaves_no_deficit(shape, seed, theta, mean, most):
    table = np.random.default_rng(seed).normal(mean, 20, shape)
    found = ripple(table, theta, most)
    assert math.isclose(found.sum(), table.sum(), abs_tol=1e-7)
    assert np.minimum(found, 0).sum() >= np.minimum(table, 0).sum() - 1e-7
    if sum(size - 1 for size in shape) and table.sum() > 1e-6:
        assert found.min() >= -theta


def test_ripple_ends_where_one_cell_pays_for_all():
    table = np.full([2] * 8, -1.0)
    table[(0,) * 8] = 255.001
    found = ripple(table, 0.0)
    assert found.min() >= 0
    assert math.isclose(found.sum(), 0.001, rel_tol=1e-6)


def test_ripple_takes_a_deficit_from_the_neighbours():
    table = np.array([[-6.0, 10, 10], [10, 10, 10]])
    np.testing.assert_allclose(ripple(table, 1.0), [[0, 8, 8], [8, 10, 10]])
    np.testing.assert_allclose(ripple(table, 7.0), table)


@pytest.mark.parametrize("table", [np.full((2, 2), -5.0), np.array([-1e300, 1.0]), np.zeros((0,))])
def test_ripple_ends_on_tables_that_cannot_pay(table):
    ripple(table, 0.0)
