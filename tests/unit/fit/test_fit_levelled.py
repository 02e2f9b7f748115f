"""Trees with levels and their networks: rows given their unit, against the joint distribution."""

from itertools import combinations, product

import numpy as np
import pytest
from support.elimination import logs_of, shares_of
from support.networks import marginal_of

from dpsyn_sql.errors import InternalError
from dpsyn_sql.fit.belief import calibrate
from dpsyn_sql.fit.elimination import levelled_network, perfect_elimination
from dpsyn_sql.fit.graph import Triangulation, junction_tree
from dpsyn_sql.planning.families import BEFORE, MOMENT, ROW, UNIT


def random_tree(seed, levels, edges=7):
    """Potentials of random pairs of small variables, and the calibrated tree."""
    rng = np.random.default_rng(seed)
    sizes = tuple(int(size) for size in rng.integers(2, 4, len(levels)))
    every = list(combinations(range(len(levels)), 2))
    scopes = [every[index] for index in rng.choice(len(every), edges, replace=False)]
    potentials = {scope: rng.normal(0, 1, [sizes[v] for v in scope]) for scope in scopes}
    return calibrate(junction_tree(sizes, scopes, levels), potentials), potentials


LEVELS = [
    (UNIT, UNIT, ROW, ROW, ROW, UNIT),
    (ROW, UNIT, BEFORE, ROW, UNIT, ROW),
    (UNIT, BEFORE, ROW, MOMENT, ROW, BEFORE),
    (ROW, MOMENT, ROW, UNIT, UNIT, MOMENT),
]


@pytest.mark.parametrize("levels", LEVELS)
@pytest.mark.parametrize("seed", range(4))
def test_network_is_units_times_moments_given_units_times_rows_given_both_and_evidence(
    levels, seed, monkeypatch
):
    monkeypatch.setattr("dpsyn_sql.fit.elimination.FAR", 0.0)  # rows follow whatever they meet
    beliefs, potentials = random_tree(seed, levels)
    sizes = beliefs.tree.sizes
    joint = shares_of(logs_of(sizes, potentials))[0].astype(float)
    own = [np.arange(size) for size in sizes]
    network = levelled_network(beliefs, own, [np.ones(size) for size in sizes], [f"x{v}" for v in range(6)])
    assert list(network.levels) == sorted(network.levels)
    assert set(network.evidence) == {v for v in range(6) if levels[v] == BEFORE}
    lower = {level: [v for v in range(6) if levels[v] < level] for level in (MOMENT, BEFORE, ROW)}
    of = {level: marginal_of(joint, variables) for level, variables in lower.items()}
    for values in product(*(range(size) for size in sizes)):
        found = {UNIT: 1.0, MOMENT: 1.0, ROW: 1.0}
        for node, level in zip(network.nodes, network.levels, strict=True):
            line = (node.given == [values[v] for v in node.parents]).all(axis=1)
            line &= (node.values == [values[v] for v in node.variables]).all(axis=1)
            found[level] *= node.weights[line].sum()
        known = {level: of[level][tuple(values[v] for v in lower[level])] for level in lower}
        assert found[UNIT] == pytest.approx(known[MOMENT], rel=1e-9)
        assert found[MOMENT] == pytest.approx(known[BEFORE] / known[MOMENT], rel=1e-9)
        assert found[ROW] == pytest.approx(joint[values] / known[ROW], rel=1e-9)


def test_elimination_of_levels_needs_a_fill_edge_that_a_plain_tree_lacks():
    sizes, scopes, levels = (2, 2, 2), [(0, 2), (1, 2)], (0, 0, 1)
    assert sorted(Triangulation(sizes, scopes).cliques) == [(0, 2), (1, 2)]
    assert Triangulation(sizes, scopes, levels).cliques == [(0, 1, 2)]
    plain = calibrate(junction_tree(sizes, scopes), {})
    object.__setattr__(plain.tree, "levels", levels)
    with pytest.raises(InternalError, match="order of elimination"):
        perfect_elimination(plain.tree)
    own = [np.arange(2)] * 3
    with pytest.raises(InternalError, match="has no levels"):
        levelled_network(calibrate(junction_tree(sizes, scopes), {}), own, own, ["x0", "x1", "x2"])


@pytest.mark.parametrize("seed", range(30))
def test_grown_is_the_triangulation_of_the_larger_graph(seed):
    rng = np.random.default_rng(seed)
    number = 10
    levels = tuple(int(level) for level in rng.integers(0, 4, number))
    sizes = tuple(int(size) for size in rng.integers(2, 6, number))
    every = list(combinations(range(number), 2))
    scopes = [every[index] for index in rng.choice(len(every), 9, replace=False)]
    graph = Triangulation(sizes, scopes[:4], levels)
    for scope in scopes[4:]:
        graph = graph.grown(scope)
        assert graph.holds(scope)
    whole = Triangulation(sizes, scopes, levels)
    assert perfect_elimination(junction_tree(sizes, scopes, levels))
    assert sorted(map(sorted, whole.cliques)) == sorted(map(sorted, graph.cliques))


def test_one_level_is_the_same_as_none():
    rng = np.random.default_rng(2)
    every = list(combinations(range(12), 2))
    scopes = [every[index] for index in rng.choice(len(every), 20, replace=False)]
    sizes = tuple(int(size) for size in rng.integers(2, 6, 12))
    assert Triangulation(sizes, scopes).cliques == Triangulation(sizes, scopes, (1,) * 12).cliques
