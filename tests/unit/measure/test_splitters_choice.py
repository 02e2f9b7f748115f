"""The attribute that nodes are split by: exact laws of whole levels on neighbours."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.accounting.events import SelectionEvent
from dpsyn_sql.accounting.gdp import choice_cost
from dpsyn_sql.private.measure.noise import ExactNoise
from dpsyn_sql.private.measure.questions.choices import selection_event
from dpsyn_sql.private.measure.questions.trees import chosen_parts

NODES, PARTS, SIDES = 3, 2, 3
"""Nodes of a level, attributes, and children of a node by each of them."""


def scores(rows):
    """Rows of the largest child of every node by every attribute; a row is a node and a child by each."""
    found = np.zeros((NODES, PARTS, SIDES), dtype=np.int64)
    for node, *children in rows:
        for part, child in enumerate(children):
            found[node, part, child] += 1
    return found.max(axis=2)


def exponential(values, scale):
    weights = np.exp((values - values.max()) / scale)
    return weights / weights.sum()


def flipped(values, scale):
    """Permute-and-flip of two candidates (McKenna and Sheldon 2020)."""
    accepts = np.exp((values - values.max()) / scale)
    best = 1 - accepts.min() / 2
    return np.array([best, 1 - best]) if accepts[0] == 1 else np.array([1 - best, best])


def joint(values, scale, law):
    """The law of the choices of all nodes."""
    laws = [law(row, scale) for row in values]
    return np.array([math.prod(choice) for choice in itertools.product(*laws)])


rows = st.tuples(st.integers(0, NODES - 1), *[st.integers(0, SIDES - 1)] * PARTS)


@settings(max_examples=300)
@given(st.lists(rows, max_size=30), st.lists(rows, min_size=1, max_size=4), st.floats(0.3, 9))
def test_a_level_costs_at_most_one_choice(table, unit, scale):
    """k rows anywhere in the level, against the price of a choice of sensitivity k."""
    before, after = scores(table), scores([*table, *unit])
    assert (after >= before).all() and (after - before).max(axis=1).sum() <= len(unit)
    event = SelectionEvent(scale, len(unit))
    one, other = (joint(values, scale, exponential) for values in (before, after))
    ratios = np.log(one / other)
    assert ratios.max() - ratios.min() <= float(event.single) + 1e-9
    for first, second in ((one, other), (other, one)):
        for order in (1.5, 2, 8, 64):
            divergence = logsumexp(order * np.log(first) + (1 - order) * np.log(second)) / (order - 1)
            assert divergence <= order * float(event.cost("gdp")) + 1e-9
    one, other = (joint(values, scale, flipped) for values in (before, after))
    assert np.abs(np.log(one / other)).max() <= float(event.cost("pure")) + 1e-9


@given(st.lists(st.fractions(Fraction(1, 50), 3), min_size=2, max_size=5))
def test_choices_of_parts_of_the_range_cost_no_more_than_one_of_the_whole(ranges):
    assert sum(map(choice_cost, ranges)) <= choice_cost(sum(ranges)) * (1 + Fraction(1, 10**12))


@pytest.mark.parametrize("delta", [1e-9, 0])
def test_all_levels_are_within_the_share(delta):
    share = Budget.from_epsilon(1.0, delta)
    event = selection_event(5, 3, share)
    assert event.number == 5 and event.sensitivity == 3
    assert share.fraction * Fraction(999, 1000) < event.cost(share.kind) <= share.fraction


def test_nodes_choose_among_the_attributes_that_refine_them():
    largest = np.array([[9, 1, 9], [0, 5, 0], [3, 3, 3]])
    refines = np.array([[False, True, False], [True, True, False], [True] * 3])
    event = SelectionEvent(0.01, 1)
    for kind in ("gdp", "pure"):
        found = chosen_parts(largest, refines, event, kind, ExactNoise())
        assert found.dtype == np.int64 and found[:2].tolist() == [1, 1] and 0 <= found[2] <= 2


@pytest.mark.parametrize("kind", ["gdp", "pure"])
def test_choices_have_the_probabilities_of_the_proof(kind):
    scale, draws = 2.0, 3_000
    largest = np.tile([4, 6], (draws, 1))
    found = chosen_parts(
        largest, np.ones_like(largest, dtype=np.bool_), SelectionEvent(scale, 1), kind, ExactNoise()
    )
    law = flipped if kind == "pure" else exponential
    expected = law(np.array([4, 6]), scale)[1]
    assert np.mean(found) == pytest.approx(expected, abs=5 * math.sqrt(0.25 / draws))
