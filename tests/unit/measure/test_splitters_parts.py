"""Trees over several attributes, behind the door: decisions and choices together, exactly, on neighbours."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import logsumexp, ndtr
from support.hierarchies import Halves
from support.small_trees import Decided, outcomes

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.accounting.events import cost_units
from dpsyn_sql.planning.queries import TreeQuery
from dpsyn_sql.private.measure.counting import PrivateSide
from dpsyn_sql.private.measure.questions.trees import tree_question_parts

SIDES = (Halves("x", 2), Halves("y", 1))
ROWS = list(itertools.product(range(4), range(2)))
"""All keys: 4 of x, 2 of y."""


class Rows:
    """A counter of rows in memory, ``n`` by key."""

    def __init__(self, rows):
        self.rows = rows

    def _within(self, levels, ids):
        """The rows of the node, by key."""
        return {
            key: n
            for key, n in self.rows.items()
            if all(
                side.node_of(k, level) == node
                for side, k, level, node in zip(SIDES, key, levels, ids, strict=True)
            )
        }

    def _each(self, nodes):
        columns = zip(*(array.tolist() for array in (*nodes.levels, *nodes.ids)), strict=True)
        return [
            (node[: len(SIDES)], self._within(node[: len(SIDES)], node[len(SIDES) :])) for node in columns
        ]

    def nodes(self, hierarchies, nodes):
        return np.array([sum(held.values()) for _, held in self._each(nodes)], dtype=np.int64)

    def largest(self, hierarchies, nodes, refined):
        found = np.zeros(refined.shape, dtype=np.int64)
        for place, (levels, held) in enumerate(self._each(nodes)):
            for part, side in enumerate(SIDES):
                children = [0, 0]
                for key, n in held.items():
                    if refined[place, part]:
                        children[side.node_of(key[part], levels[part] + 1) % 2] += n
                found[place, part] = max(children)
        return found


class Law(Decided):
    """Tests of ``Decided``, and private choices of two, each with its probability."""

    def select(self, scores, scale, kind, number):
        assert len(scores) == 2 and number == 1
        ahead = float(scores[0] - scores[1]) / scale
        if kind == "pure":  # permute-and-flip
            first = 1 - math.exp(-ahead) / 2 if ahead > 0 else math.exp(ahead) / 2
        else:
            first = 1 / (1 + math.exp(-ahead))
        return np.array([self.choose([(0, first), (1, 1 - first)])])


def law(rows, splitter, budget, depth, most, rows_per_unit=1):
    """The question, and the probability of every stored answer."""
    least = {"privtree": 1, "improved": 0}[splitter]
    question = TreeQuery(SIDES, splitter, depth, most=most)

    def asked(noise):
        return tree_question_parts(question, budget, PrivateSide(rows_per_unit, noise, None, Rows(rows)))

    found = outcomes(lambda choose: tuple(array.tobytes() for array in asked(Law(choose, least)).noisy()))
    return asked(None), found


def amounts(parts, kind):
    """What a question costs, as a fraction."""
    return Fraction(sum(cost_units(event, kind) for event in (parts.event, *parts.further)), 10**15)


def trade_off(mu, epsilon):
    """The least delta of two normal laws of variance 1 that lie mu apart."""
    return ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu)


@pytest.mark.parametrize("kind", ["pure", "gdp"])
@pytest.mark.parametrize("splitter", ["privtree", "improved"])
@pytest.mark.parametrize(
    ("most", "units"),
    [pytest.param(8, 1, marks=pytest.mark.slow), (3, 1), pytest.param(8, 2, marks=pytest.mark.slow)],
)
def test_a_whole_tree_costs_at_most_what_is_charged(kind, splitter, most, units):
    """Every output and its probability, on tables that differ by one unit."""
    rng = np.random.default_rng(most + units)
    budget = Budget.from_epsilon(2, 0) if kind == "pure" else Budget.from_epsilon(9, "1e-6")
    for largest in (3, 9, 25):
        table = dict(zip(ROWS, rng.integers(0, largest, len(ROWS)).tolist(), strict=True))
        more = dict(table)
        for place in rng.integers(0, len(ROWS), units).tolist():
            more[ROWS[place]] += 1
        parts, before = law(table, splitter, budget, 3, most, units)
        _, after = law(more, splitter, budget, 3, most, units)
        price = amounts(parts, kind)
        assert len(parts.further) == 1 and before.keys() == after.keys() and price <= budget.fraction
        one, other = (np.array([answers[key] for key in before]) for answers in (before, after))
        for first, second in ((one, other), (other, one)):
            check(kind, float(price), first, second)


def check(kind, price, first, second):
    """That two laws are as close as an amount says."""
    if kind == "pure":
        assert np.log(first / second).max() <= price + 1e-9
    elif kind == "gdp":
        for order in (1.5, 2, 8, 32):
            divergence = logsumexp(order * np.log(first) + (1 - order) * np.log(second)) / (order - 1)
            assert divergence <= order * price + 1e-9
    else:
        for epsilon in (0, 0.25, 1, 2):
            delta = np.maximum(first - math.exp(epsilon) * second, 0).sum()
            assert delta <= trade_off(math.sqrt(2 * price), epsilon) + 1e-9
