"""PrivTree in whole numbers: every output of small trees, its exact probability on neighbours."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare
from support.small_trees import distribution, level_sums, loss, walk, worst_loss

from dpsyn_sql.accounting.events import TreeEvent
from dpsyn_sql.measure.noise import ExactNoise
from dpsyn_sql.measure.splitters import PrivTree

SHAPES = [(2, 1), (2, 2), (2, 3), (3, 1), (3, 2), (4, 1), (9, 1)]
"""Branching and depth of trees of at most a thousand outputs."""


def of(counts, depth, branching, splitter, **limits):
    return distribution(splitter, depth, branching, counts, 1, **limits)


def price(event):
    return float(event.cost("pure")) * (1 + 1e-9)


def test_all_outputs_are_found():
    sizes = [len(of([0] * 2**depth, depth, 2, PrivTree(TreeEvent(2.0, 1)))) for depth in range(1, 5)]
    assert sizes == [2, 5, 26, 677]


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(SHAPES),
    st.sampled_from([0.4, 1.0, 2.5, 6.0]),
    st.integers(0, 7),
    st.sampled_from([2**20, 12, 6, 3]),
    st.integers(0, 7),
    st.data(),
)
def test_one_row_more_costs_at_most_what_is_charged(shape, scale, threshold, most, ends, data):
    """With a cap on the nodes of a level, and with nodes that the hierarchy does not refine."""
    branching, depth = shape
    event = TreeEvent(scale, 1, branching)
    limits = {"most": most, "ended": lambda level, node: (level + node) % 7 == ends}
    size = branching**depth
    counts = data.draw(st.lists(st.integers(0, 4 * event.decay), min_size=size, max_size=size))
    before = of(counts, depth, branching, PrivTree(event, threshold), **limits)
    counts[data.draw(st.integers(0, size - 1))] += 1
    after = of(counts, depth, branching, PrivTree(event, threshold), **limits)
    assert loss(before, after) <= price(event)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.integers(0, 9), min_size=8, max_size=8),
    st.lists(st.integers(0, 7), min_size=1, max_size=3),
)
def test_a_unit_of_several_rows_costs_at_most_what_is_charged(counts, cells):
    event = TreeEvent(3.0, 3)
    more = [count + cells.count(cell) for cell, count in enumerate(counts)]
    cost = loss(of(counts, 3, 2, PrivTree(event)), of(more, 3, 2, PrivTree(event)))
    assert cost <= price(event) * len(cells) / 3


def values(cells, branching, decay, clamp):
    levels = level_sums(cells, branching)[:-1]
    return [[max(count - level * decay, -clamp) for count in row] for level, row in enumerate(levels)]


def worst_of_a_path(branching, depth, scale, decay, clamp):
    """The largest loss when all rows are in one cell, in units of 1 / scale."""
    losses = []
    for count in range(int(8 * decay) + 9):
        one, other = ([rows, *[0] * (branching**depth - 1)] for rows in (count, count + 1))
        pair = values(one, branching, decay, clamp), values(other, branching, decay, clamp)
        losses.append(worst_loss(*pair, branching, 1, scale))
    return scale * max(losses)


@pytest.mark.parametrize(("branching", "depth"), [(2, 7), (3, 5), (4, 4)])
@pytest.mark.parametrize("scale", [1.0, 6.0, 20.0])
def test_deep_trees_come_close_to_the_bound_and_only_these_constants_keep_it(branching, depth, scale):
    decay = TreeEvent(scale, 1, branching).decay
    bound = (2 * branching - 1) / (branching - 1)

    def worst(decay, clamp):
        return worst_of_a_path(branching, depth, scale, decay, clamp)

    assert 0.75 * bound < worst(decay, decay) <= bound
    assert worst(decay, 2 * decay) > bound  # a lower clamp
    assert worst(decay, 10**6) > depth - 1e-9  # none: every level counts in full
    if scale > 5:
        assert worst(max(1, decay // 4), max(1, decay // 4)) > bound  # too little decay


def test_a_decay_that_is_not_whole_breaks_the_bound():
    """The decay that the paper has for noise that is not whole: lambda ln B."""
    decay = 0.4 * math.log(2)
    losses = []
    for count in range(30):
        pair = (values([rows, *[0] * 127], 2, decay, decay) for rows in (count, count + 1))
        whole = [[[math.floor(value) for value in row] for row in levels] for levels in pair]
        losses.append(worst_loss(*whole, 2, 1, 0.4))
    assert 0.4 * max(losses) > 3.5


@pytest.mark.parametrize("branching", [2, 3, 4, 16, 60, 257])
@pytest.mark.parametrize("scale", [0.1, 1.0, 7.0, 1000.0, 12345.678])
def test_decay_is_the_least_whole_number_that_is_large_enough(branching, scale):
    decay = TreeEvent(scale, 1, branching).decay
    assert decay >= 1 and isinstance(decay, int)
    assert decay >= scale * math.log(branching) or decay == pytest.approx(scale * math.log(branching))
    assert decay == 1 or decay - 1 < scale * math.log(branching)


@pytest.mark.slow
def test_real_noise_gives_the_exact_distribution():
    splitter, counts, draws = PrivTree(TreeEvent(2.0, 1)), [5, 0, 1, 2], 4_000
    exact = of(counts, 2, 2, splitter)
    seen = Counter(walk(splitter, 2, 2, counts, ExactNoise()) for _ in range(draws))
    assert set(seen) <= set(exact)
    expected = [draws * chance for chance in exact.values()]
    assert chisquare([seen[output] for output in exact], expected).pvalue > 1e-7


class Exactly:
    def laplace(self, values, scale):
        self.seen = values.tolist()
        return values


def test_a_node_is_split_above_threshold_and_decay():
    splitter, zero = PrivTree(TreeEvent(3.0, 1, 2), threshold=4), np.zeros(5, dtype=np.int64)
    counts = np.array([0, 4, 5, 7, 8])
    assert splitter.event.decay == 3
    noise = Exactly()
    tests = splitter.tests(noise)
    assert tests.level(counts, zero).tolist() == [0, 0, 1, 1, 1] and noise.seen == [-3, 0, 1, 3, 4]
    assert tests.level(counts, zero).tolist() == [0, 0, 0, 0, 1] and noise.seen == [-3, -3, -2, 0, 1]
    read = splitter.reading().level(np.array([0, 1, 1]), zero[:3])
    assert read.split.tolist() == [False, True, True] and read.counts is None
