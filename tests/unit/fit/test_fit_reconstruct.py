"""Marginals from views, against closed forms and hand-made cases."""

from functools import reduce

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpsyn_sql.errors import InputError
from dpsyn_sql.fit.reconstruct import MOST_PROGRAM_CELLS, RECONSTRUCTIONS, known_parts, reconstructed
from dpsyn_sql.fit.views import settled, summed_to

SIZES = (2, 3, 4, 2)
SEEDS = st.integers(0, 2**31)
HOW = pytest.mark.parametrize("how", RECONSTRUCTIONS)


def joint(seed, sizes=SIZES):
    table = np.random.default_rng(seed).gamma(0.7, size=sizes) + 1e-3
    return table / table.sum()


def views_of(table, *scopes):
    full = tuple(range(table.ndim))
    return {scope: summed_to(table, full, scope) for scope in scopes}


@HOW
@given(seed=SEEDS)
@example(seed=1121)  # its least norm takes more than a hundred projections
@settings(max_examples=15, deadline=None)
def test_views_that_are_marginals_of_a_table_are_kept(how, seed):
    views = views_of(joint(seed), (0, 1), (1, 2), (0, 2), (2, 3))
    scope = (0, 1, 2)
    found = reconstructed(views, scope, SIZES, how)
    assert found.min() >= 0 and found.sum() == pytest.approx(1)
    for pair in ((0, 1), (1, 2), (0, 2)):
        np.testing.assert_allclose(summed_to(found, scope, pair), views[pair], atol=1e-6)


@HOW
def test_a_marginal_within_a_view_is_that_of_the_view(how):
    views = views_of(joint(0), (0, 1, 2), (2, 3))
    for scope in ((0,), (0, 2), (0, 1, 2)):
        np.testing.assert_allclose(
            reconstructed(views, scope, SIZES, how), summed_to(views[0, 1, 2], (0, 1, 2), scope)
        )


@given(SEEDS)
def test_maximum_entropy_of_views_that_share_nothing_is_independence(seed):
    views = views_of(joint(seed), (0, 1), (2,), (3,))
    found = reconstructed(views, (0, 1, 2, 3), SIZES, "maximum_entropy")
    np.testing.assert_allclose(found, reduce(np.multiply.outer, views.values()), atol=1e-9)


@given(SEEDS)
def test_maximum_entropy_of_a_chain_is_conditional_independence(seed):
    views = views_of(joint(seed), (0, 1), (1, 2))
    middle = views[0, 1].sum(axis=0)
    wanted = views[0, 1][:, :, None] * views[1, 2][None] / middle[None, :, None]
    found = reconstructed(views, (0, 1, 2), SIZES, "maximum_entropy")
    np.testing.assert_allclose(found, wanted, atol=1e-8)


def test_the_least_norm_is_that_of_least_squares_and_keeps_cells_from_being_negative():
    views = {(0,): np.array([0.5, 0.5]), (1,): np.array([0.4, 0.6])}
    found = reconstructed(views, (0, 1), (2, 2), "least_norm")
    np.testing.assert_allclose(found, [[0.2, 0.3], [0.2, 0.3]], atol=1e-8)  # the pseudo-inverse
    views = {(0,): np.array([0.9, 0.1]), (1,): np.array([0.9, 0.1])}  # without the limit a cell is -0.05
    found = reconstructed(views, (0, 1), (2, 2), "least_norm")
    np.testing.assert_allclose(found, [[0.8, 0.1], [0.1, 0.0]], atol=1e-6)


def test_linear_programming_states_the_smallest_departure():
    """a = b, b = c, a != c: a cell of each pair can be a sixth off, no less."""
    same, other = np.diag([0.5, 0.5]), np.array([[0, 0.5], [0.5, 0]])
    views = {(0, 1): same, (1, 2): same, (0, 2): other}
    found = reconstructed(views, (0, 1, 2), (2, 2, 2), "linear_programming")
    departure = max(float(np.abs(summed_to(found, (0, 1, 2), s) - part).max()) for s, part in views.items())
    assert departure == pytest.approx(1 / 6, abs=1e-7)


@HOW
@given(seed=SEEDS)
@settings(max_examples=10, deadline=None)
def test_views_that_contradict_each_other_give_a_distribution(how, seed):
    rng = np.random.default_rng(seed)
    scopes = ((0, 1), (1, 2), (0, 2))
    raw = {scope: rng.normal(1, 5, [SIZES[index] for index in scope]) for scope in scopes}
    views = {scope: t / 100 for scope, t in settled(raw, dict.fromkeys(scopes, 1.0), 100.0).items()}
    found = reconstructed(views, (0, 1, 2), SIZES, how)
    assert found.min() >= 0 and found.sum() == pytest.approx(1) and np.isfinite(found).all()


def test_only_the_largest_parts_count():
    views = views_of(joint(1), (0, 1), (1, 2), (0, 3), (2,))
    assert list(known_parts(views, (0, 1, 3))) == [(0, 1), (0, 3)]
    assert list(known_parts(views, (2, 3))) == [(2,), (3,)]


@HOW
def test_too_many_cells_are_refused_with_the_limit(how):
    sizes = (128, 128, 128)
    views = {(index,): np.full(128, 1 / 128) for index in range(3)}
    with pytest.raises(InputError, match=r"2,097,152 cells is too large .* allowed are .*; ask for fewer"):
        reconstructed(views, (0, 1, 2), sizes, how)


def test_the_largest_program_is_solved():
    size = int(MOST_PROGRAM_CELLS**0.5)
    views = {(index,): np.full(size, 1 / size) for index in range(2)}
    found = reconstructed(views, (0, 1), (size, size), "linear_programming")
    np.testing.assert_allclose(found.sum(axis=0), 1 / size, atol=1e-9)
