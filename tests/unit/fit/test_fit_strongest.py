"""The graphical model of the strongest views."""

from itertools import combinations

import numpy as np
import pytest

from dpsyn_sql.fit.belief import marginals
from dpsyn_sql.fit.reconstruct import graphical_views
from dpsyn_sql.planning.deadline import Deadline

SIZES = (4, 3, 5, 2)


def tables(joint, scopes):
    return {
        scope: joint.sum(axis=tuple(a for a in range(joint.ndim) if a not in scope)).astype(float)
        for scope in scopes
    }


def dependent(sizes=SIZES):
    joint = np.random.default_rng(1).gamma(0.3, size=sizes)
    return joint * (1e5 / joint.sum())


@pytest.mark.parametrize("scopes", [list(combinations(range(4), 2)), [(0, 1, 2), (1, 2, 3)]])
def test_a_tree_with_room_meets_every_view(scopes):
    views = tables(dependent(), scopes)
    beliefs = graphical_views(SIZES, views, dict.fromkeys(views, 1.0), 1e5, 1e4)
    for scope, table in marginals(beliefs, scopes).items():
        np.testing.assert_allclose(1e5 * table, views[scope], atol=60)


def test_under_the_limit_the_strongest_pairs_stay():
    joint = np.ones((4, 4, 4))
    joint += 60 * np.eye(4)[:, :, None] + 5 * np.eye(4)[None, :, :]
    views = tables(joint, [(0, 1), (1, 2), (0, 2)])
    beliefs = graphical_views((4,) * 3, views, dict.fromkeys(views, 0.1), joint.sum(), 32)
    assert set(beliefs.tree.cliques) == {(0, 1), (1, 2)}
    one = graphical_views((4,) * 3, views, dict.fromkeys(views, 0.1), joint.sum(), 20)
    assert set(one.tree.cliques) == {(0, 1), (2,)}


def test_what_does_not_stand_out_of_its_noise_stays_out():
    views = tables(dependent(), combinations(range(4), 2))
    beliefs = graphical_views(SIZES, views, dict.fromkeys(views, 1e6), 1e5, 1e4)
    assert all(len(clique) == 1 for clique in beliefs.tree.cliques)


@pytest.mark.parametrize("total", [0.0, -5.0, 10.0])
def test_without_rows_the_model_is_uniform(total):
    views = {(0, 1): np.zeros((4, 3))}
    beliefs = graphical_views(SIZES, views, {(0, 1): 1.0}, total, 1e4)
    for (variable,), table in marginals(beliefs, [(v,) for v in range(4)]).items():
        np.testing.assert_allclose(table, 1 / SIZES[variable])


def test_attributes_of_one_value_and_of_no_view_are_in_the_tree():
    views = {(0, 1): np.array([[1.0, 3.0]]), (1,): np.array([1.0, 3.0])}
    beliefs = graphical_views((1, 2, 3), views, dict.fromkeys(views, 0.01), 4.0, 100)
    found = marginals(beliefs, [(0,), (1,), (2,)])
    np.testing.assert_allclose(found[1,], [0.25, 0.75], atol=0.01)
    np.testing.assert_allclose(found[2,], 1 / 3)


def test_a_deadline_ends_the_fit_early_and_says_so():
    times = iter(np.arange(0.0, 1e4, 0.4))
    deadline = Deadline(1.0, clock=lambda: float(next(times)))
    views = tables(dependent(), combinations(range(4), 2))
    with deadline.running():
        beliefs = graphical_views(SIZES, views, dict.fromkeys(views, 1.0), 1e5, 1e4, deadline)
    assert beliefs.proper
    assert deadline.cuts
