"""The improved adaptive histogram: which discounts are stable."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.small_trees import level_sums, walk, worst_loss

from dpsyn_sql.accounting.events import ImprovedEvent
from dpsyn_sql.private.measure.splitters import Improved

# -- discounts of Appendix A, as functions of a node: rows of its children, what arrived at it, t, level ---


def clamped(rows, arrived, discount, level):
    return [max(0, count - discount * level) for count in rows]


def _one_by_one(rows, arrived, discount, pick):
    rows, left = list(rows), max(0, arrived - discount)
    while sum(rows) > left:
        rows[pick(rows)] -= 1
    return rows


def progressive(rows, arrived, discount, level):
    """One row after the other goes from the largest child."""
    return _one_by_one(rows, arrived, discount, lambda rows: rows.index(max(rows)))


def from_the_smallest(rows, arrived, discount, level):
    return _one_by_one(rows, arrived, discount, lambda rows: rows.index(min(filter(None, rows))))


def fractional(rows, arrived, discount, level):
    """Every child keeps its share, rounded down."""
    left, total = max(0, arrived - discount), max(1, sum(rows))
    return [count * left // total for count in rows]


def undiscounted(rows, arrived, discount, level):
    return list(rows)


def left_over(cells, branching, discount, rule):
    """What is left over at every node of every level."""
    levels = level_sums(cells, branching)
    found = [levels[0]]
    for level, (_, below) in enumerate(pairwise(levels), 1):
        row = []
        for node, arrived in enumerate(found[-1]):
            row += rule(below[node * branching : (node + 1) * branching], arrived, discount, level)
        found.append(row)
    return found


def left_by_the_code(cells, branching, depth, threshold, event, discount):
    """What the tests of a tree see if all nodes are split."""
    seen = []

    class Splits:
        def laplace(self, values, scale):
            seen.append((values + threshold).tolist())
            return np.zeros_like(values)

    walk(Improved(event, threshold, discount), depth, branching, cells, Splits())
    return seen


def changes(first, second):
    """The largest L1 change of a level."""
    return max(
        sum(abs(a - b) for a, b in zip(*rows, strict=True)) for rows in zip(first, second, strict=True)
    )


trees = st.sampled_from([(2, 3), (2, 5), (3, 3), (5, 2)]).flatmap(
    lambda shape: st.tuples(
        st.just(shape),
        st.lists(st.integers(0, 60), min_size=shape[0] ** shape[1], max_size=shape[0] ** shape[1]),
        st.integers(0, shape[0] ** shape[1] - 1),
    )
)


@settings(max_examples=150, deadline=None)
@given(trees, st.sampled_from([0.4, 1.0, 6.0]), st.integers(0, 9), st.sampled_from(["uniform", "clamped"]))
def test_a_row_more_is_a_row_more_on_one_path_or_none(tree, scale, threshold, discount):
    (branching, depth), cells, cell = tree
    event = ImprovedEvent(scale, 1)
    off = event.discount(threshold)
    before = left_by_the_code(cells, branching, depth, threshold, event, discount)
    if discount == "clamped":
        assert before == left_over(cells, branching, off, clamped)[:-1]
    cells[cell] += 1
    after = left_by_the_code(cells, branching, depth, threshold, event, discount)
    path = [0]
    for level, (one, other) in enumerate(zip(before, after, strict=True)):
        changed = [place for place, (a, b) in enumerate(zip(one, other, strict=True)) if a != b]
        assert len(changed) <= 1 and all(other[place] == one[place] + 1 for place in changed)
        if level:
            assert not changed or (path and changed[0] // branching == path[0])
            parents = np.repeat(before[level - 1], branching).tolist()
            assert all(0 <= left <= max(0, above - off) for left, above in zip(one, parents, strict=True))
        path = changed


@settings(max_examples=60, deadline=None)
@given(trees, st.integers(1, 9))
def test_uniform_takes_one_row_after_the_other(tree, threshold):
    """Discounts of a level add up to t, or to all that arrived, and no child loses more than another has."""
    (branching, depth), cells, _ = tree
    event = ImprovedEvent(2.0, 1)
    off = event.discount(threshold)
    found = left_by_the_code(cells, branching, depth, threshold, event, "uniform")
    exact = level_sums(cells, branching)
    for level, (above, below) in enumerate(pairwise(found), 1):
        for node, arrived in enumerate(above):
            part = slice(node * branching, (node + 1) * branching)
            left, rows = below[part], exact[level][part]
            assert sum(left) == max(0, arrived - off)
            taken = [a - b for a, b in zip(rows, left, strict=True)]
            assert all(a == b for a, b in zip(rows, taken, strict=True) if a < max(taken) - 1)


@pytest.mark.parametrize("rule", [progressive, from_the_smallest, fractional])
def test_other_discounts_are_not_stable_and_break_the_bound(rule):
    rng = np.random.default_rng(5)
    event, branching, threshold = ImprovedEvent(6.0, 1), 2, 10
    moved, worst = 0, 0.0
    for _ in range(400):
        cells = (rng.integers(0, 60, 16) * (rng.random(16) < 0.7)).tolist()
        more = list(cells)
        more[rng.integers(16)] += 1
        pair = [left_over(rows, branching, event.discount(threshold), rule) for rows in (cells, more)]
        moved = max(moved, changes(*pair))
        worst = max(worst, worst_loss(*pair, branching, threshold, event.scale))
    assert moved >= 3
    assert worst > float(event.cost("pure"))


def worst_of_a_path(branching, depth, scale, threshold, discount, rule=clamped):
    """The largest loss when all rows are in one cell, in units of 1 / scale."""
    losses = []
    for count in range(int((depth + 1) * discount) + 9):
        one, other = ([rows, *[0] * (branching**depth - 1)] for rows in (count, count + 1))
        pair = [left_over(cells, branching, discount, rule)[:-1] for cells in (one, other)]
        missing = [[[-math.ceil(threshold - left) for left in row] for row in levels] for levels in pair]
        losses.append(worst_loss(*missing, branching, 0, scale))
    return scale * max(losses)


@pytest.mark.parametrize(("scale", "threshold"), [(6.0, 5), (6.0, 7), (20.0, 14)])
def test_only_this_discount_keeps_the_bound(scale, threshold):
    discount = ImprovedEvent(scale, 1).discount(threshold)
    assert 1 < worst_of_a_path(2, 7, scale, threshold, discount) <= 2
    assert worst_of_a_path(2, 7, scale, threshold, discount // 2) > 2
    assert worst_of_a_path(2, 7, scale, threshold, discount, undiscounted) > 7 - 1e-9


def test_a_threshold_and_a_discount_that_are_not_whole_break_the_bound():
    """Threshold + ln 2 / e, as the paper has it for noise that is not whole."""
    assert worst_of_a_path(2, 7, 0.3, 0.25, 0.25 + 0.3 * math.log(2)) > 3


@pytest.mark.parametrize("threshold", [0, 1, 17])
@pytest.mark.parametrize("scale", [0.1, 1.0, 7.0, 12345.678])
def test_discount_is_the_least_whole_number_that_is_large_enough(threshold, scale):
    discount, wanted = ImprovedEvent(scale, 1).discount(threshold), threshold + scale * math.log(2)
    assert isinstance(discount, int) and discount >= 1 and wanted <= discount
    assert discount == 1 or discount - 1 < wanted
