"""Triangulation, calibration, marginals and the fit, against brute force over the whole domain."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import check_grad
from support.elimination import logs_of, shares_of
from support.networks import marginal_of

from dpsyn_sql.errors import InternalError
from dpsyn_sql.fit.belief import calibrate, home_of, marginals
from dpsyn_sql.fit.estimate import Likelihood, Observation, fit_potentials, pooled
from dpsyn_sql.fit.graph import Triangulation, cells_of, junction_tree
from dpsyn_sql.fit.pairs import all_pairs

GRAPHS = {
    "tree": ((2, 3, 4, 2, 3), [(0, 1), (1, 2), (1, 3), (3, 4)]),
    "cyclic": ((2, 3, 4, 2, 3), [(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)]),
    "two cycles": ((2, 3, 2, 2, 3, 2, 2), [(0, 1), (1, 2), (0, 2), (2, 3), (3, 4), (4, 5), (3, 5), (5, 6)]),
    "disconnected": ((2, 3, 4, 2, 3), [(0, 1), (2, 3)]),
    "one attribute": ((4,), [(0,)]),
    "no edges": ((2, 3, 2), [(0,), (1,), (2,)]),
    "full": ((2, 3, 2, 2), [(0, 1, 2, 3)]),
    "of one code": ((2, 1, 3), [(0, 1), (1, 2)]),
    "long chain": ((2, 3, 2, 3, 2, 3, 2), [(i, i + 1) for i in range(6)]),
    "band": ((2, 3, 2, 2, 3, 2), [(i, i + 1, i + 2) for i in range(4)]),
}


@pytest.fixture(params=GRAPHS, ids=str)
def graph(request):
    sizes, scopes = GRAPHS[request.param]
    rng = np.random.default_rng(len(request.param))
    return sizes, {scope: rng.normal(0, 2, [sizes[v] for v in scope]) for scope in scopes}


def test_elimination_leaves_chordal_graphs_without_fill():
    for name in ("tree", "band", "full", "long chain"):
        sizes, scopes = GRAPHS[name]
        assert sorted(Triangulation(sizes, scopes).cliques) == sorted(scopes)
    assert all(len(clique) == 3 for clique in Triangulation(*GRAPHS["cyclic"]).cliques)


def eliminated(sizes, scopes):
    """Greedy elimination on sets: no fill edges first, then the least table, then the lower number."""
    around = {v: {w for scope in scopes if v in scope for w in scope} - {v} for v in range(len(sizes))}
    cliques = []

    def price(v):
        fills = any(not around[v] <= around[w] | {w} for w in around[v])
        return fills, math.prod(max(sizes[w], 2) for w in around[v] | {v}), v

    while around:
        variable = min(around, key=price)
        neighbours = around.pop(variable)
        cliques.append(neighbours | {variable})
        for other in neighbours:
            around[other] |= neighbours - {other}
            around[other] -= {variable}
    return sorted(tuple(sorted(c)) for c in cliques if not any(c < d for d in cliques))


@given(st.data())
def test_a_triangulation_grows_to_what_it_would_be_from_the_start(data):
    last = data.draw(st.integers(1, 11), label="last variable")
    variables = st.integers(0, last)
    edge = st.tuples(variables, variables).map(lambda pair: tuple(sorted(set(pair))))
    sizes = [data.draw(st.sampled_from([1, 2, 3, 5, 7])) for _ in range(last + 1)]
    scopes = data.draw(st.lists(edge, max_size=20), label="scopes")
    grown = Triangulation(sizes, scopes)
    for more in data.draw(st.lists(edge, max_size=4), label="added"):
        scopes = [*scopes, more]
        grown = grown.grown(more)
        assert sorted(grown.cliques) == eliminated(sizes, scopes)
        assert grown.holds(more) and grown.cells == cells_of(grown.cliques, sizes)


@pytest.mark.parametrize("widest", [1, 5, 1_024])
@pytest.mark.parametrize("seed", range(12))
def test_pairs_of_any_tree_in_blocks_of_any_width(seed, widest, monkeypatch):
    monkeypatch.setattr("dpsyn_sql.fit.pairs._WIDEST", widest)
    rng = np.random.default_rng(seed)
    sizes = tuple(rng.integers(1, 4, 8).tolist())
    scopes = {tuple(sorted(rng.choice(8, rng.integers(2, 4), replace=False).tolist())) for _ in range(6)}
    potentials = {scope: rng.normal(0, 2, [sizes[v] for v in scope]) for scope in scopes}
    joint = shares_of(logs_of(sizes, potentials))[0].astype(float)
    beliefs = calibrate(junction_tree(sizes, potentials), potentials)
    pairs = [pair for pair in combinations(range(8), 2) if rng.random() < 0.6]
    found = all_pairs(beliefs, pairs)
    assert found.keys() == set(pairs)
    for pair, table in found.items():
        np.testing.assert_allclose(table, marginal_of(joint, pair), atol=1e-12)


def test_a_scope_that_no_clique_holds_is_an_error():
    with pytest.raises(InternalError):
        home_of(junction_tree((2, 2, 2), [(0, 1), (1, 2)]), (0, 2))


def observations(sizes, scopes, rng, sigma=3.0):
    return {
        scope: Observation(
            rng.normal(0, sigma, [sizes[v] for v in scope]) + 200 / np.prod([sizes[v] for v in scope]),
            np.asarray(sigma if len(scope) > 1 else np.full(sizes[scope[0]], sigma)),
        )
        for scope in scopes
    }


def test_the_gradient_against_finite_differences(graph):
    sizes, potentials = graph
    rng = np.random.default_rng(3)
    base = {scope: table / 4 for scope, table in list(potentials.items())[:1]} | {
        (0,): rng.normal(0, 1, sizes[0])
    }
    likelihood = Likelihood(
        junction_tree(sizes, potentials), observations(sizes, potentials, rng), 200.0, base
    )
    point = rng.normal(0, 0.5, likelihood.flat({}).size)
    assert check_grad(lambda x: likelihood(x)[0], lambda x: likelihood(x)[1], point) < 1e-5


def test_vectors_and_tables_of_potentials_are_inverses(graph):
    sizes, potentials = graph
    likelihood = Likelihood(
        junction_tree(sizes, potentials),
        observations(sizes, potentials, np.random.default_rng(4)),
        200.0,
        {},
    )
    back = likelihood.potentials(likelihood.flat(potentials))
    assert all(np.array_equal(back[scope], table) for scope, table in potentials.items())


def test_the_fit_meets_tables_without_noise_and_a_warm_start_stays(graph):
    sizes, potentials = graph
    joint = shares_of(logs_of(sizes, {scope: table / 4 for scope, table in potentials.items()}))[0].astype(
        float
    )
    observed = {scope: Observation(1e4 * marginal_of(joint, scope), np.asarray(1e-4)) for scope in potentials}
    likelihood = Likelihood(junction_tree(sizes, potentials), observed, 1e4, {})
    fit = fit_potentials(likelihood, {}, 300)
    likelihood(likelihood.flat({}))  # takes room of its own
    for scope in potentials:
        np.testing.assert_allclose(
            marginals(fit.beliefs, [scope])[scope], marginal_of(joint, scope), atol=1e-3
        )
    again = fit_potentials(likelihood, fit.potentials, 3)
    first, second = (likelihood(likelihood.flat(found.potentials))[0] for found in (fit, again))
    assert second <= first + 1e-12


def test_a_fit_ends_when_what_it_misses_is_far_below_the_noise(graph):
    sizes, potentials = graph
    observed = observations(sizes, potentials, np.random.default_rng(6))
    likelihood = Likelihood(junction_tree(sizes, potentials), observed, 200.0, {})
    taken = {}
    for tolerance in (0.0, 1e-2, 1e9):
        steps = []
        fit = fit_potentials(likelihood, {}, 300, tolerance, advance=steps.append)
        taken[tolerance] = len(steps)
        _, gradient = likelihood(likelihood.flat(fit.potentials))
        missed = likelihood.potentials(200 * gradient)
        worst = max(
            np.abs(missed[scope]).sum() / np.broadcast_to(one.sigma, one.values.shape).sum()
            for scope, one in observed.items()
        )
        assert likelihood.misfit(gradient) == pytest.approx(worst)
        assert fit.misfit == pytest.approx(worst, rel=1e-6, abs=1e-9)
        assert fit.misfit <= max(tolerance, 1e-3)
    assert taken[1e9] == 1 < taken[1e-2] <= taken[0.0]


def test_pairs_and_the_triple_that_holds_them_are_met_together():
    """As in the round of triples: the potentials repeat each other."""
    rng = np.random.default_rng(7)
    sizes, joint = (3, 4, 2), rng.dirichlet(np.full(24, 0.4)).reshape(3, 4, 2)
    scopes = [(0,), (1,), (2,), (0, 1), (1, 2), (0, 2), (0, 1, 2)]
    observed = {scope: Observation(1e4 * marginal_of(joint, scope), np.asarray(1e-3)) for scope in scopes}
    likelihood = Likelihood(junction_tree(sizes, scopes), observed, 1e4, {})
    beliefs = fit_potentials(likelihood, {}, 300).beliefs
    np.testing.assert_allclose(marginals(beliefs, [(0, 1, 2)])[0, 1, 2], joint, atol=1e-3)


def test_pooling_weighs_by_inverse_variance():
    both = pooled(
        Observation(np.array([0.0]), np.asarray(1.0)), Observation(np.array([10.0]), np.asarray(3.0))
    )
    assert both.values == pytest.approx([1.0]) and both.sigma == pytest.approx(np.sqrt(0.9))
    assert Observation(np.zeros((2, 3)), np.asarray(2.0)).variance_of_total == 24
