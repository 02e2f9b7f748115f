"""Elimination against brute force: random graphs, and numbers at the limits of each way to calculate."""

import math

import numpy as np
import pytest
from support.elimination import differences

from dpsyn_sql.fit.arrays import group_cumsum
from dpsyn_sql.fit.belief import _in_logarithms, _in_products, calibrate, room
from dpsyn_sql.fit.elimination import _apart, _Lines, fits, joint, levelled_network, work_of
from dpsyn_sql.fit.graph import junction_tree
from dpsyn_sql.fit.network import Network, Node, node_of
from dpsyn_sql.fit.pairs import all_pairs
from dpsyn_sql.planning.families import BEFORE, ROW, UNIT
from dpsyn_sql.rows.sample.sql_rows import shares
from dpsyn_sql.rows.sample.sql_text import UNIT as UNITS
from dpsyn_sql.rows.sample.systematic import Lines

DENORMAL = 5e-324


@pytest.mark.parametrize("first", range(0, 300, 50))
def test_random_graphs_are_as_brute_force_has_them(first):
    assert [(case, differences(case)) for case in range(first, first + 50) if differences(case)] == []


def test_pairs_of_a_second_tree_depend_on_each_other():
    """Variables of the trees before are independent of it, its own are not."""
    rng = np.random.default_rng(1)
    potentials = {scope: rng.normal(0, 2, (3, 3)) for scope in ((0, 1), (2, 3), (3, 4), (4, 5))}
    beliefs = calibrate(junction_tree((3,) * 6, potentials), potentials)
    every = all_pairs(beliefs, [(0, 2), (0, 5), (1, 4), (2, 4), (2, 5), (3, 5)])
    for pair in ((2, 4), (2, 5), (3, 5)):
        np.testing.assert_allclose(every[pair], all_pairs(beliefs, [pair])[pair], atol=1e-15)
        assert np.abs(every[pair] - np.outer(every[pair].sum(1), every[pair].sum(0))).sum() > 1e-3


@pytest.mark.parametrize("reach", [1.0, 1e-80, 1e-154, 1e-160, 1e-200, 1e-300, 1e-310, DENORMAL])
def test_a_row_follows_what_it_meets_however_seldom_the_model_does(reach):
    """All configurations of the row before are met as often as if they were independent: nothing is far."""
    table = np.array([[[0.3, 0.1], [0.1, 0.5]], [[0.0, reach], [reach, 0.0]]])
    tree = junction_tree((2, 2, 2), [(0, 1, 2)], (UNIT, BEFORE, ROW))
    beliefs = calibrate(tree, {})
    beliefs.tables[0][...] = table / table.sum()
    own = [np.arange(2)] * 3
    *_, node = levelled_network(beliefs, own, [np.ones(2)] * 3, ["unit", "before", "row"]).nodes
    law = np.zeros((2, 2, 2))
    law[node.given[:, 0], node.given[:, 1], node.values[:, 0]] = node.weights
    np.testing.assert_allclose(law[0], [[0.75, 0.25], [1 / 6, 5 / 6]], atol=0.01)
    np.testing.assert_allclose(law[1], [[0, 1], [1, 0]], atol=0.02)


def test_how_often_configurations_are_met_if_all_were_independent():
    reach = np.array([[0.2, 0.3], [0.5 * DENORMAL, 0.5]])[:, :, None]
    wanted = np.multiply.outer(reach.sum(axis=(1, 2)), reach.sum(axis=(0, 2)))[:, :, None]
    np.testing.assert_allclose(_apart(reach, [None]), wanted)
    often = np.array([0.9, 0.1])
    np.testing.assert_allclose(_apart(reach, [often]), np.multiply.outer([0.5, 0.5], [0.9, 0.8])[:, :, None])


@pytest.mark.parametrize("lowest", [-1.0, -700.0, -1000.0, -1e6])
@pytest.mark.parametrize("way", [_in_products, _in_logarithms])
def test_what_given_variables_are_told_has_its_mean_logarithm(lowest, way):
    """Potentials below the logarithm of the smallest number of float64 count as they are."""
    potentials = {(0,): np.array([0.0, lowest]), (0, 1): np.log([[1.0, 3.0], [2.0, 2.0]])}
    tree = junction_tree((2, 2), potentials, (UNIT, ROW), (0,))
    shares_of_given = np.array([0.25, 0.75])
    beliefs = way(tree, potentials, room(tree), dict.fromkeys(tree.given_cliques, shares_of_given))
    assert beliefs.log_partition == pytest.approx(0.75 * lowest + math.log(4.0), rel=1e-12)


@pytest.mark.parametrize("sizes", [[1, 3, 2, 1, 700, 5], [4000], [1] * 600, [513, 512, 511], [2] * 3000])
def test_cumulative_sums_of_groups_know_nothing_of_other_groups(sizes):
    rng = np.random.default_rng(2)
    groups = [rng.random(size) * rng.choice([1e-300, 1e-12, 1.0], size) for size in sizes]
    begins = np.cumsum([0, *sizes[:-1]])
    np.testing.assert_array_equal(
        group_cumsum(np.concatenate(groups), begins), np.concatenate([np.cumsum(group) for group in groups])
    )


def test_late_configurations_have_the_units_that_they_would_have_alone():
    """Differences of one sum over 100,000 configurations are a tenth of a unit of SQL off."""
    number = 100_000
    node = node_of("x", (0,), (1,), np.random.default_rng(3).random((number, 3)) + 0.01)
    sums = np.cumsum(node.weights.reshape(number, 3), axis=1)
    upto = sums / sums[:, 2:]
    phase = (0.5 + np.arange(number) * (5**0.5 - 1) / 2) % 1.0
    units = np.diff(np.floor(phase[:, None] + upto * (UNITS - 1)), axis=1, prepend=0)
    assert shares(node, (number, 3))["weight"].tolist() == units.ravel().tolist()
    ends = Lines(node, (number, 3)).ends.reshape(number, 3)
    np.testing.assert_array_equal(ends, np.arange(number)[:, None] + upto)


@pytest.mark.parametrize("bits", [61, 62, 63])
def test_scopes_are_numbered_up_to_2_to_the_62(bits):
    """Few lines over variables of so many values together: exact, or refused beforehand."""
    sizes, values = (2**20, 2**20, 2 ** (bits - 40)), (2**20 - 1, 2**20 - 2, 2 ** (bits - 40) - 1)
    lines = np.array([[0, 0, 0], values], np.int64)
    node = Node("x", (0, 1, 2), (), np.zeros((2, 0), np.int64), lines, np.array([0.25, 0.75]), np.ones(2))
    network = Network(sizes, (node,), (0, 1, 2))
    assert fits(network, (0,)) == (bits <= 62) and (work_of(network, (0,)) is None) == (bits > 62)
    if bits <= 62:
        factor = _Lines.of_node(node, sizes)
        assert [int(column[1]) for column in factor.columns(sizes).values()] == list(values)
        assert factor.summed_to((2, 0), sizes).weights.tolist() == [0.25, 0.75]
        assert joint(network, (0,))[[0, -1]].tolist() == [0.25, 0.75]
    assert not fits(network, (0, 1, 2))
