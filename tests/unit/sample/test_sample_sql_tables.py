"""Networks, their integer tables and the packing of codes."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsyn_sql.domain.attributes import Attribute, Domain
from dpsyn_sql.fit.adaptive import GraphicalModel
from dpsyn_sql.fit.belief import Beliefs, calibrate
from dpsyn_sql.fit.consistency import Margins
from dpsyn_sql.fit.graph import junction_tree
from dpsyn_sql.fit.independent import ProductModel
from dpsyn_sql.sample.sql_network import Network, Node, network_of
from dpsyn_sql.sample.sql_tables import (
    UNIT,
    alias_columns,
    cumulative_columns,
    layout,
    parent_numbers,
    slot_bits_of,
)


@st.composite
def nodes(draw):
    rows, size = draw(st.integers(1, 6)), draw(st.integers(2, 9))
    values = st.one_of(st.just(0.0), st.floats(1e-12, 1.0))
    weights = np.array(draw(st.lists(values, min_size=rows * size, max_size=rows * size)))
    weights = weights.reshape(rows, size)
    weights[weights.sum(axis=1) == 0, 0] = 1
    return Node("x", 1, (0,), np.arange(rows) * 3 + 1, weights)


@settings(max_examples=200, deadline=None)
@given(nodes())
def test_alias_tables_hold_exactly_the_masses_of_the_cumulative_ones(node):
    slots, shape = 2 ** slot_bits_of(node), (int(node.configurations.max()) + 1, node.weights.shape[1])
    numbers = node.configurations
    cumulative, aliases = cumulative_columns(node, numbers), alias_columns(node, numbers)
    exact, drawn = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    np.add.at(exact, (cumulative["parent"], cumulative["value"]), cumulative["high"] - cumulative["low"])
    parent = aliases["parent"]
    assert np.array_equal(aliases["slot"], np.tile(np.arange(slots), numbers.size))
    np.add.at(drawn, (parent, aliases["value"]), aliases["cut"])
    np.add.at(drawn, (parent, aliases["alias"]), UNIT - aliases["cut"])
    assert np.array_equal(drawn, exact * slots)
    assert np.all((aliases["cut"] >= 0) & (aliases["cut"] <= UNIT))
    wanted = node.weights / node.weights.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(exact[node.configurations] / UNIT, wanted, atol=2 / UNIT)
    # Stretches lie side by side from 0 to one unit.
    for configuration in node.configurations:
        own = cumulative["parent"] == configuration
        low, high = cumulative["low"][own], cumulative["high"][own]
        assert low[0] == 0 and high[-1] == UNIT and np.array_equal(low[1:], high[:-1])


@settings(deadline=None)
@given(st.lists(st.integers(1, 2**20), min_size=1, max_size=60), st.randoms())
def test_places_do_not_overlap_and_hold_every_value(sizes, random):
    order = [variable for variable, size in enumerate(sizes) if size > 1]
    random.shuffle(order)
    nodes = [Node(f"x{v}", v, (), np.zeros(1, np.int64), np.ones((1, sizes[v]))) for v in order[:40]]
    used = set()
    for size, place in zip(sizes, layout(Network(tuple(sizes), tuple(nodes), ())), strict=True):
        if place is not None:
            bits = {(place.word, place.shift + bit) for bit in range(place.bits)}
            assert 2**place.bits >= size and not bits & used and max(bit for _, bit in bits) < 63
            used |= bits


def test_configurations_are_numbered_apart():
    sizes = (3, 1, 5, 2, 4)
    nodes = [Node(f"x{v}", v, (), np.zeros(1, np.int64), np.ones((1, sizes[v]))) for v in (2, 0, 3)]
    last = Node("x4", 4, (0, 1, 2, 3), np.arange(30), np.ones((30, 4)))
    numbers = parent_numbers(last, sizes, layout(Network(sizes, (*nodes, last), ())))
    assert len(set(numbers)) == 30 and numbers.max() < 2**6
    # x2 was drawn first and has the lowest three bits, then x0, then x3.
    assert numbers[17] == 3 | 1 << 3 | 1 << 5  # 17 = (1 * 5 + 3) * 2 + 1


def model(scopes, seed=3, twin=False):
    """Five attributes of 6 codes in 4 bins; with a twin of x0 (two bins) that x4 depends on."""
    rng = np.random.default_rng(seed)
    sizes = (4,) * 5 + ((2,) if twin else ())
    potentials = {scope: rng.normal(0, 1.5, [sizes[v] for v in scope]) for scope in scopes}
    if twin:
        link = np.where(np.array([0, 0, 1, 1])[:, None] == np.arange(2), 0.0, -1000.0)
        potentials |= {(0, 5): link, (4, 5): rng.normal(0, 1, (4, 2))}
    domain = Domain(tuple(Attribute(f"x{i}", "INTEGER", "categorical", tuple(range(6))) for i in range(5)))
    bins, within = np.array([0, 1, 1, 2, 3, 3]), np.array([1, 0.3, 0.7, 1, 0.0, 1])
    beliefs = calibrate(junction_tree(sizes, potentials), potentials)
    return GraphicalModel(domain, 1000.0, beliefs, (bins,) * 5, (within,) * 5)


def joint(network, variables):
    """Brute force over all values of all variables."""
    table = np.zeros([network.sizes[v] for v in variables])
    for values in product(*(range(size) for size in network.sizes)):
        probability = 1.0
        for node in network.nodes:
            code = 0
            for parent in node.parents:
                code = code * network.sizes[parent] + values[parent]
            row = np.flatnonzero(node.configurations == code)
            if row.size == 0:
                probability = 0.0
                break
            weights = node.weights[row[0]]
            probability *= weights[values[node.variable]] / weights.sum()
        table[tuple(values[v] for v in variables)] += probability
    return table


@pytest.mark.parametrize(
    "scopes", [[(0, 1), (1, 2), (2, 3), (3, 4)], [(0, 1, 2), (2, 3), (3, 4)]], ids=["chain", "clique"]
)
def test_the_network_is_the_model(scopes):
    fitted = model(scopes)
    bins_only = GraphicalModel(fitted.domain, 1.0, fitted.beliefs, (np.arange(4),) * 5, (np.ones(4),) * 5)
    network = network_of(bins_only)
    assert network.codes == (0, 1, 2, 3, 4)
    for i, j in ((0, 1), (0, 4), (1, 3), (4, 2)):
        expected = bins_only.project([f"x{i}", f"x{j}"])
        found = joint(network, (i, j)) if i < j else joint(network, (j, i)).T
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_parents_come_first_and_codes_follow_bins():
    network = network_of(model([(0, 1), (1, 2), (2, 3), (3, 4)], twin=True))
    seen = set()
    for node in network.nodes:
        assert set(node.parents) <= seen and node.variable not in seen
        seen.add(node.variable)
    assert set(network.codes) <= seen
    assert len({node.label for node in network.nodes}) == len(network.nodes)


def test_a_twin_that_nothing_depends_on_is_not_drawn():
    network = network_of(model([(0, 1), (1, 2), (2, 3), (0, 5), (0, 4)], twin=True))
    twins = [node for node in network.nodes if node.label == "5|twin"]
    needed = any(5 in node.parents for node in network.nodes)
    assert bool(twins) == needed


def test_a_configuration_that_only_one_side_holds_possible_still_draws():
    tree = junction_tree((2, 2, 2), [(0, 1), (1, 2)])
    tables = {
        (0, 1): np.array([[0.5, 0.0], [0.25, 0.25]]),
        (1, 2): np.array([[0.3, 0.7], [0.0, 0.0]]),
    }
    beliefs = Beliefs(tree, tuple(tables[clique] for clique in tree.cliques), 0.0)
    domain = Domain(tuple(Attribute(f"x{i}", "INTEGER", "categorical", (0, 1)) for i in range(3)))
    ones = (np.ones(2),) * 3
    network = network_of(GraphicalModel(domain, 1.0, beliefs, (np.arange(2),) * 3, ones))
    assert joint(network, (0, 1, 2)).sum() == pytest.approx(1.0)


def test_independent_attributes_have_no_parents_and_constants_no_node():
    domain = Domain(
        (
            Attribute("a", "INTEGER", "categorical", (1, 2)),
            Attribute("b", "INTEGER", "categorical", (7,)),
        )
    )
    margins = Margins(10.0, {"a": np.array([0.25, 0.75]), "b": np.array([1.0])})
    network = network_of(ProductModel(domain, margins))
    assert [node.label for node in network.nodes] == ["a"] and network.nodes[0].parents == ()
