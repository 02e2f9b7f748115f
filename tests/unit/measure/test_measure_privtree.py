"""PrivTree with whole numbers: every output of small trees, its exact probability on neighbours."""

import itertools
import math
from collections import Counter
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from dpsyn_sql.accounting.events import TreeEvent
from dpsyn_sql.measure import privtree
from dpsyn_sql.measure.noise import OpenDPNoise
from dpsyn_sql.measure.privtree import grow
from dpsyn_sql.planning.queries import TreeRoot


def forest(*depths):
    return tuple(TreeRoot(Fraction(1000 * place), Fraction(1), depth) for place, depth in enumerate(depths))


def points(counts):
    cells = np.flatnonzero(counts)
    return cells, np.asarray(counts, dtype=np.int64)[cells]


def passes(value, scale):
    """P[value + Z > 0] for discrete Laplace Z, exact up to floats."""
    ratio = math.exp(-1 / scale)
    if value <= 0:
        return ratio ** (1 - value) / (1 + ratio)
    return 1 - ratio**value / (1 + ratio)


class Scripted:
    """Decides each level's tests as told and keeps the logarithm of the probability of that."""

    def __init__(self, decisions):
        self.decisions, self.log = iter(decisions), 0.0

    def laplace(self, values, scale):
        decided = np.array(list(itertools.islice(self.decisions, len(values))))
        assert len(decided) == len(values)
        for value, split in zip(values.tolist(), decided.tolist(), strict=True):
            self.log += math.log(passes(value if split else 1 - value, scale))
        return np.where(decided, 1, 0)


def scripts(depths):
    """All outputs of trees of these depths: for each the decisions in the order they are asked for."""

    def shapes(depth):
        if depth == 0:
            return [None]
        below = shapes(depth - 1)
        return ["leaf", *itertools.product(below, below)]

    for trees in itertools.product(*map(shapes, depths)):
        decisions, level = [], [tree for tree in trees if tree is not None]
        while level:
            decisions += [tree != "leaf" for tree in level]
            level = [child for tree in level if tree != "leaf" for child in tree if child is not None]
        yield decisions


def distribution(depths, counts, event):
    """Log-probability of every output of the real code, by its split nodes."""
    found = {}
    for decisions in scripts(depths):
        noise = Scripted(decisions)
        nodes = grow(forest(*depths), *points(counts), event, noise)
        found[tuple(map(tuple, nodes.tolist()))] = noise.log
    assert sum(map(math.exp, found.values())) == pytest.approx(1)
    return found


def loss(first, second):
    assert first.keys() == second.keys()
    return max(abs(first[output] - second[output]) for output in first)


def test_all_outputs_are_found():
    assert [len(distribution((depth,), [0] * 2**depth, TreeEvent(2.0, 1))) for depth in range(1, 5)] == [
        2,
        5,
        26,
        677,
    ]


@pytest.mark.slow
@pytest.mark.parametrize("scale", [0.4, 1.0, 2.5, 6.0])
@settings(max_examples=30)
@given(data=st.data())
def test_one_point_more_costs_at_most_what_is_charged(scale, data):
    event = TreeEvent(scale, 1)
    depths = data.draw(st.sampled_from([(1,), (2,), (3,), (2, 1), (1, 2, 1)]))
    size = sum(2**depth for depth in depths)
    counts = data.draw(st.lists(st.integers(0, 4 * event.decay), min_size=size, max_size=size))
    before = distribution(depths, counts, event)
    for cell in range(size):
        counts[cell] += 1
        cost = loss(before, distribution(depths, counts, event))
        assert cost <= float(event.cost("pure")) * (1 + 1e-9)
        counts[cell] -= 1


@pytest.mark.slow
def test_deep_trees_come_close_to_the_bound_and_stay_below():
    """One path of depth 4 on which every level is as near to its threshold as the decay allows."""
    event = TreeEvent(2.5, 1)
    several = [distribution((4,), [count, *[0] * 15], event) for count in range(5 * event.decay)]
    worst = max(loss(before, after) for before, after in pairwise(several))
    assert 0.75 * float(event.cost("pure")) < worst <= float(event.cost("pure"))


@settings(max_examples=40)
@given(
    st.lists(st.integers(0, 9), min_size=8, max_size=8),
    st.sets(st.integers(0, 7), min_size=1, max_size=3),
)
def test_a_unit_of_several_points_costs_at_most_what_is_charged(counts, cells):
    event = TreeEvent(3.0, 3)
    more = [count + (cell in cells) for cell, count in enumerate(counts)]
    cost = loss(distribution((3,), counts, event), distribution((3,), more, event))
    assert cost <= float(event.cost("pure")) * len(cells) / 3 * (1 + 1e-9)


@pytest.mark.slow
def test_real_noise_gives_the_exact_distribution():
    event, counts, draws = TreeEvent(2.0, 1), [5, 0, 1, 2], 4_000
    exact = distribution((2,), counts, event)
    seen = Counter(
        tuple(map(tuple, grow(forest(2), *points(counts), event, OpenDPNoise()).tolist()))
        for _ in range(draws)
    )
    assert set(seen) <= set(exact)
    expected = [draws * math.exp(exact[output]) for output in exact]
    assert chisquare([seen[output] for output in exact], expected).pvalue > 1e-7


class Coin:
    """Splits by a function of the place in the order of tests, so that a shorter walk sees the same."""

    def __init__(self, pattern):
        self.pattern = itertools.cycle(pattern)

    def laplace(self, values, scale):
        return np.array(list(itertools.islice(self.pattern, len(values))), dtype=np.int64)


@given(st.lists(st.integers(0, 1), min_size=1, max_size=60), st.integers(1, 40))
def test_a_walk_that_stops_early_shows_the_first_tests_of_the_whole(pattern, most):
    counts = points([1] * (64 + 32))
    whole = grow(forest(6, 5), *counts, TreeEvent(1.0, 1), Coin(pattern))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(privtree, "MOST_TESTS", most)
        short = grow(forest(6, 5), *counts, TreeEvent(1.0, 1), Coin(pattern))
    assert short.tolist() == whole[: len(short)].tolist()
    assert len(short) == sum(
        itertools.islice(itertools.cycle(pattern), min(most, number_of_tests(whole, (6, 5))))
    )


def number_of_tests(split, depths):
    return len(depths) + sum(2 for root, level, _ in split.tolist() if level + 1 < depths[root])


class Exactly:
    def laplace(self, values, scale):
        return values


@settings(max_examples=60)
@given(st.data())
def test_nodes_are_those_of_a_walk_by_definition(data):
    depths = data.draw(st.lists(st.integers(0, 5), min_size=1, max_size=3))
    size = sum(2**depth for depth in depths)
    counts = data.draw(st.lists(st.integers(0, 9), min_size=size, max_size=size))
    event = TreeEvent(data.draw(st.floats(0.5, 4)), 1)
    starts = [sum(2**depth for depth in depths[:root]) for root in range(len(depths))]
    wanted, level = [], [(root, 0, 0) for root in range(len(depths))]
    while level:
        below = []
        for root, deep, index in level:
            span = 2 ** (depths[root] - deep) if deep <= depths[root] else 0
            held = sum(counts[starts[root] + index * span : starts[root] + (index + 1) * span])
            if deep < depths[root] and max(held - deep * event.decay, -event.decay) > 0:
                wanted.append([root, deep, index])
                below += [(root, deep + 1, 2 * index), (root, deep + 1, 2 * index + 1)]
        level = below
    found = grow(forest(*depths), *points(counts), event, Exactly())
    assert found.tolist() == wanted and found.shape == (len(wanted), 3)


def test_no_roots_and_no_points():
    empty = np.array([], dtype=np.int64)
    assert grow((), empty, empty, TreeEvent(1.0, 1), Exactly()).shape == (0, 3)
    assert grow(forest(3), empty, empty, TreeEvent(1.0, 1), Exactly()).shape == (0, 3)


class Counted(OpenDPNoise):
    """How many noisy values were asked for."""

    values = 0

    def laplace(self, values, scale):
        self.values += len(values)
        return super().laplace(values, scale)


def test_sparse_points_in_deep_trees_cost_noise_by_the_point_and_not_by_the_cell():
    cells = np.sort(np.random.default_rng(3).integers(0, 2**30, 200_000))
    noise = Counted()
    found = grow(forest(30, 30), cells, np.full(len(cells), 5), TreeEvent(30.0, 1), noise)
    assert len(found) > 100
    assert 0 < noise.values < len(cells)
