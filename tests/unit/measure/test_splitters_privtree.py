"""PrivTree in whole numbers: which decay and which clamp keep the bound."""

import math

import numpy as np
import pytest
from support.small_trees import level_sums, worst_loss

from dpsyn_sql.accounting.events import TreeEvent
from dpsyn_sql.private.measure.splitters import PrivTree


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
