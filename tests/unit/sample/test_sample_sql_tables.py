"""Networks, their integer tables and the packing of codes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.domains import domain_of
from support.networks import graphical_model, joint_of

from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.fit import network as networks
from dpsyn_sql.fit.belief import Beliefs
from dpsyn_sql.fit.graph import junction_tree
from dpsyn_sql.fit.network import Network, Node, configurations, node_of, slot_bits_of
from dpsyn_sql.fit.views import Margins
from dpsyn_sql.methods.models.margins import ProductModel
from dpsyn_sql.methods.models.networks import GraphicalModel
from dpsyn_sql.rows.sample.sql_rows import FEWEST, shares
from dpsyn_sql.rows.sample.sql_text import UNIT, layout, packed


@st.composite
def tables(draw):
    rows, size = draw(st.integers(1, 6)), draw(st.integers(2, 9))
    values = st.one_of(st.just(0.0), st.floats(1e-12, 1.0))
    weights = np.array(draw(st.lists(values, min_size=rows * size, max_size=rows * size)))
    weights[0] = 1.0
    return weights.reshape(rows, size)


@settings(max_examples=200)
@given(tables(), st.floats(0.0, 1.0))
def test_shares_are_the_probabilities_to_a_unit_of_all_rows(table, reach):
    node = node_of("x", (0,), (1,), table, np.full(len(table), reach))
    columns = shares(node, table.shape)
    least = FEWEST * 2.0 ** slot_bits_of(node) / UNIT
    for row, weights in enumerate(table):
        own = columns["parent"] == row
        assert own.any() == (weights.sum() > 0)
        if not own.any():
            continue
        found = np.zeros(weights.size)
        found[columns["value"][own]] = columns["weight"][own]
        assert abs(found.sum() - max(reach, least) * UNIT) <= 2
        np.testing.assert_allclose(
            found / found.sum(), weights / weights.sum(), atol=2 / UNIT / max(reach, least)
        )


def test_what_seldom_occurs_is_rounded_to_no_value_more_than_to_others():
    """A value of less than half a unit in every configuration is still drawn as often as it should be."""
    chances = np.array([0.3, 1e-4, 0.7 - 1e-4])
    node = node_of("x", (0,), (1,), np.tile(chances, (10_000, 1)), np.full(10_000, 1e-9))
    columns = shares(node, (10_000, 3))
    found = np.bincount(columns["value"], columns["weight"])
    assert np.abs(found - found.sum() * chances).max() < 0.01 * found.sum() * chances[1]


def root(variable, size, label=None):
    return node_of(label or f"x{variable}", (), (variable,), np.ones(size))


@given(st.lists(st.integers(2, 2**12), min_size=1, max_size=40), st.randoms())
def test_places_do_not_overlap_and_hold_every_value(sizes, random):
    order = list(range(len(sizes)))
    random.shuffle(order)
    nodes, rest = [], order
    while rest:
        own, rest = rest[:3], rest[3:]
        nodes.append(
            Node(
                "x",
                tuple(own),
                (),
                np.zeros((1, 0), int),
                np.zeros((1, len(own)), int),
                np.ones(1),
                np.ones(1),
            )
        )
    used = set()
    places = layout(Network(tuple(sizes), tuple(nodes), ()))
    for size, place in zip(sizes, places, strict=True):
        bits = {(place.word, place.shift + bit) for bit in range(place.bits)}
        assert 2**place.bits >= size and not bits & used and max(bit for _, bit in bits) < 63
        used |= bits
    for node in nodes:
        assert len({places[variable].word for variable in node.variables}) == 1


def test_configurations_are_numbered_apart_and_values_packed():
    sizes = (3, 5, 2, 4)
    last = node_of("x3", (0, 1, 2), (3,), np.ones((3, 5, 2, 4)))
    places = layout(Network(sizes, (root(1, 5), root(0, 3), root(2, 2), last), ()))
    assert configurations(last, sizes) == 30 and slot_bits_of(last) == 2
    assert shares(last, sizes)["parent"].tolist() == np.repeat(np.arange(30), 4).tolist()
    assert packed(last, sizes, places) == "value"
    both = node_of("y", (), (0, 1), np.ones((3, 5)))
    assert shares(both, sizes)["value"].tolist() == list(range(15))
    text = packed(both, sizes[:2], layout(Network(sizes[:2], (both,), ())))
    assert text == "((value // 5) % 3 << 0) | ((value) % 5 << 2)"


def test_a_twin_that_nothing_depends_on_is_not_drawn(monkeypatch):
    monkeypatch.setattr(networks, "MOST_JOINED", 0)
    network = graphical_model([(0, 1), (1, 2), (2, 3), (0, 5), (0, 4)], twin=True).network()
    drawn = any(5 in node.variables for node in network.nodes)
    needed = any(5 in node.parents for node in network.nodes)
    assert drawn == needed


def test_a_bin_of_very_many_codes_does_not_give_its_slots_to_all(monkeypatch):
    fitted, rng = graphical_model([(0, 1), (1, 2), (2, 3), (3, 4)]), np.random.default_rng(1)
    bins = rng.permutation(np.array([0, 1, 2, *[3] * 5000]))
    within = np.where(bins == 3, rng.random(bins.size) * (rng.random(bins.size) < 0.9), 1.0)
    within /= np.bincount(bins, within)[bins]
    skewed = GraphicalModel(
        fitted.domain, 1.0, fitted.beliefs, (bins, *fitted.bins[1:]), (within, *fitted.within[1:])
    )
    monkeypatch.setattr(networks, "MOST_JOINED", 0)
    found = {}
    for most in (2**20, 0):
        monkeypatch.setattr(networks, "MOST_EMPTY", most)
        network = skewed.network()
        own = [node for node in network.nodes if node.label in ("x0|block", "x0|code")]
        found[most] = len(own), sum(configurations(n, network.sizes) << slot_bits_of(n) for n in own)
        chance = np.eye(4)
        for node in own:
            table = np.zeros((network.sizes[node.parents[0]], network.sizes[node.variables[0]]))
            table[node.given[:, 0], node.values[:, 0]] = node.weights
            chance = chance @ table
        expected = np.where(np.arange(4)[:, None] == bins, within, 0)
        np.testing.assert_allclose(chance, expected, atol=1e-12)
    assert found[2**20] == (1, 4 * 2**13)
    assert found[0][0] == 2 and found[0][1] < 2 * bins.size


def test_a_configuration_that_only_one_side_holds_possible_still_draws():
    tree = junction_tree((2, 2, 2), [(0, 1), (1, 2)])
    tables = {
        (0, 1): np.array([[0.5, 0.0], [0.25, 0.25]]),
        (1, 2): np.array([[0.3, 0.7], [0.0, 0.0]]),
    }
    beliefs = Beliefs(tree, tuple(tables[clique] for clique in tree.cliques), 0.0)
    domain = domain_of((2,) * 3)
    ones = (np.ones(2),) * 3
    network = GraphicalModel(domain, 1.0, beliefs, (np.arange(2),) * 3, ones).network()
    assert joint_of(network).sum() == pytest.approx(1.0)


def test_independent_attributes_have_no_parents_and_constants_no_node():
    domain = Domain(
        (
            Attribute("a", "INTEGER", "categorical", (1, 2)),
            Attribute("b", "INTEGER", "categorical", (7,)),
        )
    )
    margins = Margins(10.0, {"a": np.array([0.25, 0.75]), "b": np.array([1.0])})
    network = ProductModel(domain, margins).network()
    assert [node.label for node in network.nodes] == ["a"] and network.nodes[0].parents == ()
