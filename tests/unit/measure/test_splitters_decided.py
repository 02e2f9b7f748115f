"""Splitters that store decisions: every output of small trees, its exact probability on neighbours."""

import math
from collections import Counter
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare
from support.small_trees import Decided, distribution, loss, outcomes, walk

from dpsyn_sql.accounting.events import ImprovedEvent, TreeEvent
from dpsyn_sql.private.measure import splitters
from dpsyn_sql.private.measure.noise import ExactNoise
from dpsyn_sql.private.measure.splitters import Improved, PrivTree

SHAPES = [(2, 1), (2, 2), (2, 3), (3, 1), (3, 2), (4, 1), (9, 1)]
"""Branching and depth of trees of at most a thousand outputs."""
KINDS = ("privtree", "uniform", "clamped")
"""PrivTree, and the improved adaptive histogram by its discounts."""


def splitter_of(kind, scale, rows, threshold, branching=2):
    if kind == "privtree":
        return PrivTree(TreeEvent(scale, rows, branching), threshold)
    return Improved(ImprovedEvent(scale, rows), threshold, kind)


def taken_off(splitter):
    """What a level takes off a count."""
    event = splitter.event
    return event.decay if isinstance(splitter, PrivTree) else event.discount(splitter.threshold)


def of(splitter, counts, depth, branching, **limits):
    """The probability of every output."""
    if getattr(splitter, "discount", "") == "proportional":
        return proportional(splitter, depth, branching, counts)
    least = 1 if isinstance(splitter, PrivTree) else 0
    return distribution(splitter, depth, branching, counts, least, **limits)


def price(splitter):
    return float(splitter.event.cost("pure")) * (1 + 1e-9)


def test_all_outputs_are_found():
    splitter = splitter_of("privtree", 2.0, 1, 0)
    assert [len(of(splitter, [0] * 2**depth, depth, 2)) for depth in range(1, 5)] == [2, 5, 26, 677]


@settings(max_examples=120, deadline=None)
@given(
    st.sampled_from(KINDS),
    st.sampled_from(SHAPES),
    st.sampled_from([0.4, 1.0, 2.5, 6.0]),
    st.integers(0, 7),
    st.sampled_from([2**20, 12, 6, 3]),
    st.integers(0, 7),
    st.data(),
)
def test_one_row_more_costs_at_most_what_is_charged(kind, shape, scale, threshold, most, ends, data):
    """With a cap on the nodes of a level, and with nodes that the hierarchy does not refine."""
    branching, depth = shape
    splitter = splitter_of(kind, scale, 1, threshold, branching)
    limits = {"most": most, "ended": lambda level, node: (level + node) % 7 == ends}
    size = branching**depth
    counts = data.draw(st.lists(st.integers(0, 4 * taken_off(splitter)), min_size=size, max_size=size))
    before = of(splitter, counts, depth, branching, **limits)
    counts[data.draw(st.integers(0, size - 1))] += 1
    assert loss(before, of(splitter, counts, depth, branching, **limits)) <= price(splitter)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(KINDS),
    st.lists(st.integers(0, 25), min_size=8, max_size=8),
    st.lists(st.integers(0, 7), min_size=1, max_size=3),
)
def test_a_unit_of_several_rows_costs_at_most_what_is_charged(kind, counts, cells):
    splitter = splitter_of(kind, 3.0, 3, 0 if kind == "privtree" else 3)
    more = [count + cells.count(cell) for cell, count in enumerate(counts)]
    cost = loss(of(splitter, counts, 3, 2), of(splitter, more, 3, 2))
    assert cost <= price(splitter) * len(cells) / 3


def drawn_by(choose):
    """``noise.drawn_rows`` with every possible draw, each with its probability."""

    def draw(rows, number):
        if not rows:
            return [()] if number == 0 else []
        first, *others = rows
        return [(k, *more) for k in range(min(first, number) + 1) for more in draw(others, number - k)]

    def drawn(counts, groups, number):
        found = []
        for group, wanted in enumerate(number.tolist()):
            rows = counts[groups == group].tolist()
            ways = comb(sum(rows), wanted)
            options = draw(rows, wanted)
            found += choose([(way, math.prod(map(comb, rows, way)) / ways) for way in options])
        return np.array(found, dtype=np.int64)

    return drawn


def proportional(splitter, depth, branching, counts):
    def program(choose):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(splitters, "drawn_rows", drawn_by(choose))
            return walk(splitter, depth, branching, counts, Decided(choose, 0))

    return outcomes(program)


@pytest.mark.parametrize("scale", [0.7, 2.0])
@pytest.mark.parametrize(("branching", "depth", "threshold"), [(2, 2, 0), (2, 3, 0), (2, 3, 1), (3, 2, 0)])
def test_rows_drawn_at_random_cost_at_most_what_is_charged(scale, branching, depth, threshold):
    """All draws and all decisions."""
    rng = np.random.default_rng(branching * depth)
    splitter = splitter_of("proportional", scale, 1, threshold)
    for _ in range(2):
        counts = rng.integers(0, 3, branching**depth).tolist()
        before = of(splitter, counts, depth, branching)
        counts[rng.integers(len(counts))] += 1
        assert loss(before, of(splitter, counts, depth, branching)) <= price(splitter)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*KINDS, "proportional"])
def test_real_noise_gives_the_exact_distribution(kind):
    splitter = splitter_of(kind, 2.0, 1, 0 if kind == "privtree" else 1)
    counts, draws = [7, 0, 4, 2], 8_000  # the rarest output 7 times: fewer would be no chi-square
    exact = of(splitter, counts, 2, 2)
    seen = Counter(walk(splitter, 2, 2, counts, ExactNoise()) for _ in range(draws))
    assert set(seen) <= set(exact)
    expected = [draws * chance for chance in exact.values()]
    assert chisquare([seen[output] for output in exact], expected).pvalue > 1e-7
