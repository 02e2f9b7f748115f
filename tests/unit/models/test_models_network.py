"""Any network as a model: what it answers, keeps and draws, against brute force."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.domains import domain_of
from support.networks import joint_of, marginal_of

from dpsyn_sql.errors import InputError, InternalError
from dpsyn_sql.fit import elimination
from dpsyn_sql.fit.belief import calibrate
from dpsyn_sql.fit.elimination import _Bound, _eliminated, fits, joint
from dpsyn_sql.fit.graph import junction_tree
from dpsyn_sql.fit.network import Network, joined, node_of
from dpsyn_sql.methods.models.networks import GraphicalModel, NetworkModel
from dpsyn_sql.rows.sample.walk import network_rows


@st.composite
def networks(draw):
    """Up to six variables of which some are hidden, each with up to three earlier ones as parents; zeros."""
    sizes = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=6)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    nodes = []
    for variable, size in enumerate(sizes):
        parents = rng.permutation(variable)[: rng.integers(0, 4)]
        table = rng.random([*(sizes[p] for p in parents), size])
        table *= rng.random(table.shape) < 0.7
        table[..., rng.integers(size)] += 0.1
        if size > 1:
            nodes.append(node_of(f"x{variable}", [int(p) for p in parents], (variable,), table))
    codes = rng.permutation(len(sizes))[: max(1, len(sizes) - int(rng.integers(0, 3)))]
    made = joined(nodes, sizes) if draw(st.booleans()) else tuple(nodes)
    return Network(sizes, made, tuple(int(v) for v in codes))


def model_of(network, total=1000.0):
    return NetworkModel(domain_of([network.sizes[v] for v in network.codes]), total, network)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(networks())
def test_kept_tables_are_marginals_and_hold_every_pair(network):
    kept, whole = model_of(network).tables(), joint_of(network)
    for scope, table in kept.tables:
        np.testing.assert_allclose(table, marginal_of(whole, [network.codes[p] for p in scope]), atol=1e-12)
    inside = {pair for scope, _ in kept.tables for pair in combinations(scope, 2)}
    assert inside == set(combinations(range(len(network.codes)), 2))
    assert {p for scope, _ in kept.tables for p in scope} == set(range(len(network.codes)))
    assert len({scope for scope, _ in kept.tables}) == len(kept.tables)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(networks(), st.integers(1, 60))
def test_no_step_takes_more_lines_than_was_known_before(network, limit):
    made, original = list[int](), elimination._Lines

    class Counting(original):
        def __init__(self, scope, numbers, weights):
            original.__init__(self, scope, numbers, weights)
            made.append(weights.size)

    model = model_of(network)
    names = list(model.domain.names)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(elimination, "MOST_LINES", limit)
        patch.setattr(elimination, "_Lines", Counting)
        for attrs in (names[:1], names[-2:], names):
            if model.supports(attrs):
                model.project(attrs)
            else:
                with pytest.raises(InputError, match="more than"):
                    model.project(attrs)
    assert max(made, default=0) <= limit


@settings(max_examples=60)
@given(networks(), st.integers(1, 3000), st.integers(0, 2**64 - 1))
def test_each_node_has_the_counts_that_its_parents_expect_within_a_row(network, rows, seed):
    every = Network(network.sizes, network.nodes, tuple(range(len(network.sizes))))
    codes = np.concatenate(list(network_rows(every).batches(rows, seed))).astype(np.int64)
    assert codes.shape == (rows, len(every.sizes))
    for node in network.nodes:
        given, values = codes[:, list(node.parents)], codes[:, list(node.variables)]
        total = 0
        for line, weight in enumerate(node.weights):
            of = (given == node.given[line]).all(axis=1)
            count = (values[of] == node.values[line]).all(axis=1).sum()
            assert abs(count - of.sum() * weight) < 1 + 1e-6
            total += count
        assert total == rows  # nothing that has no line
    again = np.concatenate(list(network_rows(every).batches(rows, seed)))
    np.testing.assert_array_equal(codes, again)


def test_two_children_of_one_parent_do_not_move_together_and_batches_add_up():
    nodes = (
        node_of("a", (), (0,), np.ones(2)),
        node_of("b", (0,), (1,), np.ones((2, 4))),
        node_of("c", (0,), (2,), np.ones((2, 4))),
    )
    sampler = model_of(Network((2, 4, 4), nodes, (0, 1, 2))).sampler()
    codes = np.concatenate(list(sampler.batches(300_000, 2**64 - 1))).astype(np.int64)
    assert len(codes) == 300_000 and list(sampler.batches(0, 1)) == []
    found = np.bincount(codes[:, 1] * 4 + codes[:, 2], minlength=16) / len(codes)
    assert np.abs(found - 1 / 16).sum() < 0.02


def test_bins_and_their_codes_are_summed_line_by_line():
    """As arrays they would have 20 x 1000 x 1000 cells on the way."""
    rng, sizes = np.random.default_rng(1), (20, 20)
    beliefs = calibrate(junction_tree(sizes, [(0, 1)]), {(0, 1): rng.normal(0, 1, sizes)})
    bins = tuple(rng.permutation(np.arange(1000) % 20) for _ in sizes)
    within = tuple(np.full(1000, 1 / 50) for _ in sizes)
    model = GraphicalModel(domain_of((1000, 1000)), 500.0, beliefs, bins, within)
    same = NetworkModel(model.domain, 500.0, model.network())
    np.testing.assert_allclose(same.project(["x1", "x0"]), model.project(["x1", "x0"]), atol=1e-9)


def test_what_would_take_too_large_a_table_is_refused_at_once():
    sizes = (60,) * 12
    nodes = tuple(node_of(f"x{i}", (), (i,), np.ones(60)) for i in range(11))
    both = (*nodes[:11], node_of("x11", (9, 10), (11,), np.ones((60,) * 3)))
    model = model_of(Network(sizes, both, tuple(range(12))))
    assert model.supports(["x0", "x1", "x2"]) and not model.supports([f"x{i}" for i in range(12)])
    (bound,) = (b for b in _eliminated(model.network(), (11,), _Bound.of_node) if b.scope)
    assert bound.most == 60**3 and fits(model.network(), (11,))
    assert joint(model.network(), (11,)).sum() == pytest.approx(1)


def test_single_columns_and_pairs_of_a_wide_network_are_counted_in_rows_that_are_always_the_same(monkeypatch):
    rng, sizes = np.random.default_rng(2), (2,) * 40
    nodes = [node_of("x0", (), (0,), np.ones(2))]
    for i in range(1, 40):
        parents = sorted(rng.permutation(i)[:4].tolist())
        nodes.append(node_of(f"x{i}", parents, (i,), rng.random([2] * (len(parents) + 1))))
    model = model_of(Network(sizes, tuple(nodes), tuple(range(40))))
    exact = [model.project(pair) for pair in (["x39"], ["x38", "x39"])]
    monkeypatch.setattr(elimination, "MOST_LINES", 2**5)
    assert not fits(model.fitted, (39,)) and not model.supports(["x37", "x38", "x39"])
    for pair, wanted in zip((["x39"], ["x38", "x39"]), exact, strict=True):
        found = model.project(pair)
        assert model.supports(pair) and found.sum() == pytest.approx(1000.0)
        np.testing.assert_allclose(found, wanted, atol=8)
        np.testing.assert_array_equal(found, model.project(pair))
    assert {place for scope, _ in model.tables().tables for place in scope} == set(range(40))


def test_a_network_of_another_domain_or_without_an_attribute_is_refused():
    node = node_of("a", (), (0,), np.ones(2))
    for network in (Network((2,), (node,), (0, 0)), Network((2, 3), (node,), (0, 1))):
        with pytest.raises(InternalError):
            NetworkModel(domain_of((2, 3)), 1.0, network)


def test_parents_that_a_network_forgot_are_not_drawn_from_others():
    nodes = (
        node_of("a", (), (0,), np.ones(2)),
        node_of("b", (0,), (1,), np.array([[0.5, 0.5], [0.0, 0.0]])),
    )
    with pytest.raises(InternalError, match="no line of 'b'"):
        list(network_rows(Network((2, 2), nodes, (0, 1))).batches(10, 1))
