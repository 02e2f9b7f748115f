"""Rows above a table as evidence: the others given them, against the joint distribution."""

from itertools import combinations, product

import numpy as np
import pytest
from support.elimination import logs_of
from support.networks import marginal_of

from dpsyn_sql.fit.belief import calibrate, marginals
from dpsyn_sql.fit.elimination import levelled_network, perfect_elimination
from dpsyn_sql.fit.estimate import Likelihood, Observation, fit_potentials
from dpsyn_sql.fit.given import Given
from dpsyn_sql.fit.graph import junction_tree
from dpsyn_sql.planning.families import BEFORE, MOMENT, ROW, UNIT

LEVELS = [
    (UNIT, UNIT, ROW, ROW, ROW, UNIT),
    (ROW, UNIT, BEFORE, ROW, UNIT, UNIT),
    (UNIT, BEFORE, ROW, MOMENT, UNIT, ROW),
    (ROW, ROW, ROW, UNIT, UNIT, UNIT),
]


def case(seed, levels, edges=8):
    """A tree of random pairs, their potentials, a distribution of the given variables, and the joint
    distribution that follows."""
    rng = np.random.default_rng(seed)
    sizes = tuple(int(size) for size in rng.integers(2, 4, len(levels)))
    every = list(combinations(range(len(levels)), 2))
    scopes = [every[index] for index in rng.choice(len(every), edges, replace=False)]
    potentials = {scope: rng.normal(0, 1, [sizes[v] for v in scope]) for scope in scopes}
    above = [v for v, level in enumerate(levels) if level == UNIT]
    own = tuple(v for v in range(len(levels)) if v not in above)
    shares = rng.dirichlet(np.ones(int(np.prod([sizes[v] for v in above])))).reshape(
        [sizes[v] if v in above else 1 for v in range(len(sizes))]
    )
    weights = np.exp(logs_of(sizes, potentials).astype(float))
    whole = weights.sum(axis=own, keepdims=True)
    joint = shares * weights / whole
    tree = junction_tree(sizes, scopes, levels, above)
    known = {index: marginal_of(joint, tree.cliques[index]) for index in tree.given_cliques}
    return tree, potentials, known, joint, float((shares * np.log(whole)).sum())


@pytest.mark.parametrize("levels", LEVELS)
@pytest.mark.parametrize("seed", range(6))
def test_trees_hang_from_cliques_of_given_variables_and_keep_running_intersection(levels, seed):
    tree, *_ = case(seed, levels)
    above = {v for v, level in enumerate(levels) if level == UNIT}
    held = {v for index in tree.given_cliques for v in tree.cliques[index]}
    assert held == above and all(set(tree.cliques[index]) <= above for index in tree.given_cliques)
    assert perfect_elimination(tree)
    for v in range(len(levels)):
        holding = {index for index, clique in enumerate(tree.cliques) if v in clique}
        tops = [i for i in holding if tree.parents[i] not in holding]
        assert len(tops) == 1
    for index, parent in enumerate(tree.parents):
        assert index not in tree.given_cliques or parent == -1 or parent in tree.given_cliques


@pytest.mark.parametrize("levels", LEVELS[:1])
def test_network_draws_rows_given_the_evidence_alone(levels):
    tree, potentials, known, joint, _ = case(3, levels)
    beliefs = calibrate(tree, potentials, given_tables=known)
    own = [np.arange(size) for size in tree.sizes]
    names = [f"x{v}" for v in range(len(levels))]
    network = levelled_network(beliefs, own, [np.ones(size) for size in tree.sizes], names, given_units=True)
    above = [v for v, level in enumerate(levels) if level == UNIT]
    assert set(network.evidence) == set(above)
    whole = marginal_of(joint, above)
    for values in product(*(range(size) for size in tree.sizes)):
        found = 1.0
        for node in network.nodes:
            assert not set(node.variables) & set(above)
            line = (node.given == [values[v] for v in node.parents]).all(axis=1)
            line &= (node.values == [values[v] for v in node.variables]).all(axis=1)
            found *= node.weights[line].sum()
        assert found == pytest.approx(joint[values] / whole[tuple(values[v] for v in above)], rel=1e-9)


def test_gradient_is_that_of_the_objective():
    tree, potentials, known, _, _ = case(5, LEVELS[0])
    rng = np.random.default_rng(1)
    observed = {
        scope: Observation(100 * rng.random(table.shape), np.asarray(2.0))
        for scope, table in potentials.items()
        if any(LEVELS[0][v] != UNIT for v in scope)
    }
    likelihood = Likelihood(tree, observed, 1000.0, {}, given_tables=known)
    flat = rng.normal(0, 0.3, likelihood.flat({}).size)
    _, gradient = likelihood(flat)
    for place in range(0, flat.size, 5):
        step = np.zeros(flat.size)
        step[place] = 1e-5
        rise = (likelihood(flat + step)[0] - likelihood(flat - step)[0]) / 2e-5
        assert gradient[place] == pytest.approx(rise, rel=1e-4, abs=1e-8)


def test_two_attributes_above_that_say_the_same_count_once():
    """x follows a; b is a copy of a. Fitted from both pairs, x given (a, b) is what it is given a."""
    sizes, levels = (2, 2, 2), (UNIT, UNIT, ROW)
    joint = np.zeros(sizes)
    joint[0, 0], joint[1, 1] = [0.4, 0.1], [0.1, 0.4]
    tree = junction_tree(sizes, [(0, 2), (1, 2)], levels, [0, 1])
    known = {
        index: np.maximum(marginal_of(joint, tree.cliques[index]), 1e-12) for index in tree.given_cliques
    }
    observed = {
        pair: Observation(1e4 * marginal_of(joint, pair), np.asarray(1.0)) for pair in ((0, 2), (1, 2))
    }
    fit = fit_potentials(Likelihood(tree, observed, 1e4, {}, given_tables=known), {}, 100, 0.01)
    np.testing.assert_allclose(marginals(fit.beliefs, [(0, 1, 2)])[0, 1, 2], joint, atol=1e-3)
    assert fit.misfit < 0.5


def given_rows():
    return Given(
        {"a": np.array([0, 1, 1, 0]), "b": np.array([2, 0, 1, 1])},
        np.array([2, 0, 1, 4]),
        np.array([1.0, 1.0, 0.5, 0.25]),
        np.array([0, 2, 2, 0]),
    )


def test_tables_of_given_rows_weigh_them_and_leave_out_the_childless():
    given = given_rows()
    assert given.total == 1.75
    np.testing.assert_array_equal(given.table(["a"], [np.arange(2)]), [1.25, 0.5])
    merged = given.table(["b", "a"], [np.array([0, 1, 1]), np.arange(2)])
    np.testing.assert_array_equal(merged, [[0, 0], [1.25, 0.5]])
    weights = np.repeat([0.5, 0.5, 0.0625], [2, 1, 4])
    assert given.grain == pytest.approx((weights**2).sum() / weights.sum())


def test_shares_of_given_rows_are_above_zero_and_agree():
    given = given_rows()
    pair = given.shares(["a", "b"], [np.arange(2), np.arange(3)])
    assert (pair > 0).all()
    np.testing.assert_allclose(pair.sum(axis=1), given.shares(["a"], [np.arange(2)]), rtol=1e-12)
    none = Given(given.columns, 0 * given.rows, given.weights, given.ranks)
    assert none.total == 0 and none.grain == 1
    np.testing.assert_allclose(none.shares(["b"], [np.arange(3)]), 1 / 3)
