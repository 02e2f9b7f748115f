"""Marginals from views and the graphical model of the strongest, against closed forms and hand-made cases."""

from functools import reduce
from itertools import combinations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpsyn_sql.errors import InputError
from dpsyn_sql.fit.belief import marginals
from dpsyn_sql.fit.reconstruct import (
    MOST_PROGRAM_CELLS,
    RECONSTRUCTIONS,
    graphical_views,
    known_parts,
    reconstructed,
)
from dpsyn_sql.fit.views import settled, summed_to
from dpsyn_sql.planning.limits import Deadline

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


FOUR_SIZES = (4, 3, 5, 2)


def dependent(sizes=FOUR_SIZES):
    joint = np.random.default_rng(1).gamma(0.3, size=sizes)
    return joint * (1e5 / joint.sum())


@pytest.mark.parametrize("scopes", [list(combinations(range(4), 2)), [(0, 1, 2), (1, 2, 3)]])
def test_a_tree_with_room_meets_every_view(scopes):
    views = views_of(dependent(), *scopes)
    beliefs = graphical_views(FOUR_SIZES, views, dict.fromkeys(views, 1.0), 1e5, 1e4)
    for scope, table in marginals(beliefs, scopes).items():
        np.testing.assert_allclose(1e5 * table, views[scope], atol=60)


def test_under_the_limit_the_strongest_pairs_stay():
    joint = np.ones((4, 4, 4))
    joint += 60 * np.eye(4)[:, :, None] + 5 * np.eye(4)[None, :, :]
    views = views_of(joint, *[(0, 1), (1, 2), (0, 2)])
    beliefs = graphical_views((4,) * 3, views, dict.fromkeys(views, 0.1), joint.sum(), 32)
    assert set(beliefs.tree.cliques) == {(0, 1), (1, 2)}
    one = graphical_views((4,) * 3, views, dict.fromkeys(views, 0.1), joint.sum(), 20)
    assert set(one.tree.cliques) == {(0, 1), (2,)}


def test_what_does_not_stand_out_of_its_noise_stays_out():
    views = views_of(dependent(), *combinations(range(4), 2))
    beliefs = graphical_views(FOUR_SIZES, views, dict.fromkeys(views, 1e6), 1e5, 1e4)
    assert all(len(clique) == 1 for clique in beliefs.tree.cliques)


@pytest.mark.parametrize("total", [0.0, -5.0, 10.0])
def test_without_rows_the_model_is_uniform(total):
    views = {(0, 1): np.zeros((4, 3))}
    beliefs = graphical_views(FOUR_SIZES, views, {(0, 1): 1.0}, total, 1e4)
    for (variable,), table in marginals(beliefs, [(v,) for v in range(4)]).items():
        np.testing.assert_allclose(table, 1 / FOUR_SIZES[variable])


def test_attributes_of_one_value_and_of_no_view_are_in_the_tree():
    views = {(0, 1): np.array([[1.0, 3.0]]), (1,): np.array([1.0, 3.0])}
    beliefs = graphical_views((1, 2, 3), views, dict.fromkeys(views, 0.01), 4.0, 100)
    found = marginals(beliefs, [(0,), (1,), (2,)])
    np.testing.assert_allclose(found[1,], [0.25, 0.75], atol=0.01)
    np.testing.assert_allclose(found[2,], 1 / 3)


def test_a_deadline_ends_the_fit_early_and_says_so():
    times = iter(np.arange(0.0, 1e4, 0.4))
    deadline = Deadline(1.0, clock=lambda: float(next(times)))
    views = views_of(dependent(), *combinations(range(4), 2))
    with deadline.running():
        beliefs = graphical_views(FOUR_SIZES, views, dict.fromkeys(views, 1.0), 1e5, 1e4, deadline)
    beliefs.checked()
    assert deadline.cuts
