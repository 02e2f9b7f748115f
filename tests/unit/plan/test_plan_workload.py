"""Weights of a workload: how they are read, and what they do to shares and choices."""

import math
from decimal import Decimal
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import minimize

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.domain.attributes import Attribute, Domain
from dpsyn_sql.domain.shape import Key, Shape, Undiscovered
from dpsyn_sql.errors import InputError
from dpsyn_sql.fit.selection import NoiseLaw, selected
from dpsyn_sql.fit.settings import Settings
from dpsyn_sql.methods import METHODS, method_named, weighted
from dpsyn_sql.methods.auto import MOST_ATTRIBUTES
from dpsyn_sql.plan.workload import UNWEIGHTED, read_workload
from dpsyn_sql.source.relation import Relation, Source

SOURCE = Source(Relation("people", "table", "people", ()))
BUDGET = Budget("zcdp", 10**13)


def attribute(name, size=4):
    return Attribute(name, "INTEGER", "categorical", tuple(range(size)))


SHAPE = Shape(
    (attribute("a"), attribute("b"), Undiscovered("C", "VARCHAR", "categorical"), attribute("d")),
    (Key("id", "INTEGER"),),
)


def read(spec):
    return read_workload(spec).fitted(SHAPE)


def test_a_name_weighs_all_pairs_with_it_a_set_all_pairs_within_and_the_largest_applies():
    found = read({"a": 5, ("d", "C", "b"): "0.5", ("b", "a"): Decimal("0.1"), ("b", "d"): 3})
    assert found.pairs(("a", "b", "C", "d")) == {
        ("a", "b"): 5,
        ("a", "C"): 5,
        ("a", "d"): 5,
        ("b", "C"): Fraction(1, 2),
        ("b", "d"): 3,
        ("C", "d"): Fraction(1, 2),
    }


def test_mean_weights_are_those_of_the_pairs_with_an_attribute():
    names, found = ("a", "b", "C", "d"), read({"a": 5, ("b", "d"): 2})
    weights = dict.fromkeys(combinations(names, 2), Fraction(1)) | found.pairs(names)
    for name, mean in found.means(names).items():
        assert mean == sum(weight for pair, weight in weights.items() if name in pair) / 3
    assert read({"a": 5}).means(("a",)) == {"a": 1}
    assert UNWEIGHTED.means(names) == dict.fromkeys(names, 1)


def test_names_are_matched_as_the_database_does_and_put_in_the_order_of_the_columns():
    assert read({("c", "A"): 2, ("a", "C"): 3}) == read({("A", "C"): 3.0})
    assert read({"c": 2}).facts() == [{"attributes": ["C"], "weight": "2"}]
    assert read({("d", "a"): 2, "b": 0.1}).in_words() == "(a, d) x 2; b x 0.1"
    assert read(None) == read({}) == UNWEIGHTED


@pytest.mark.parametrize("weight", [0, -1, math.nan, math.inf, "much", None, True, 1e-9, 1e9])
def test_weights_that_are_none_are_refused(weight):
    with pytest.raises(InputError, match="workload has the weight"):
        read_workload({"a": weight})


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ([("a", 1)], "give a mapping"),
        ("a=5", "give a mapping"),
        ({(): 1}, "has the key"),
        ({("a", 1): 1}, "has the key"),
        ({frozenset("ab"): 1}, "has the key"),
        ({"incme": 5}, "no column of the release; there are 'a', 'b', 'C', 'd'"),
        ({("a", "bb"): 5}, "did you mean"),
        ({"ID": 5}, r"not measured \(Key\)"),
        ({("a", "A"): 5}, "twice"),
    ],
)
def test_what_cannot_be_weighed_is_refused(spec, message):
    with pytest.raises(InputError, match=message):
        read(spec)


def test_methods_that_ask_for_everything_alike_refuse_a_workload():
    for name in ("copula", "independent"):
        assert weighted(METHODS[name], UNWEIGHTED) is METHODS[name]
        with pytest.raises(InputError, match=f"method='{name}' has no use for workload="):
            weighted(METHODS[name], read({"a": 5}))
    many = Domain(tuple(attribute(f"x{i}", 2) for i in range(MOST_ATTRIBUTES + 1)))
    auto = weighted(method_named("auto"), read_workload({"x1": 5}))
    assert auto.plan(SOURCE, many, BUDGET).method == "adaptive"


def shares(spec, sizes):
    domain = Domain(tuple(attribute(f"x{i}", size) for i, size in enumerate(sizes)))
    plan = weighted(METHODS["adaptive"], read_workload(spec)).plan(SOURCE, domain, BUDGET)
    whole = sum(step.budget.amount for step in plan.known)
    # Of a step of m tables each has the noise of a share 1/m of it.
    found = {
        q.attrs[0]: step.budget.amount / whole / len(step.queries)
        for step in plan.known
        for q in step.queries
    }
    return plan, [found[name] for name in domain.names]


def test_one_way_shares_grow_with_the_mean_weight():
    plan, found = shares({"x0": 9}, (4, 4, 4, 4, 4))
    assert plan.workload.sets and len(plan.known) == 2 and "mean weight 9" in plan.known[1].name
    # Mean weights 9 and 3; for equal sizes both halves of the rule are m^(2/3).
    assert found[0] / found[1] == pytest.approx(3 ** (2 / 3), rel=1e-9)
    _, plain = shares({}, (4, 90, 4, 4))
    _, even = shares({("x0", "x1", "x2", "x3"): 7}, (4, 90, 4, 4))
    assert even == pytest.approx(plain, rel=1e-9)  # a weight for all is none


def test_the_rule_of_shares_minimises_the_weighted_noise():
    weights, cells = np.array([5.0, 1, 1, 0.2]), np.array([30.0, 30, 400, 8])

    def noise(shares):
        return float(np.sum(weights * cells / np.sqrt(shares)))

    rule = (weights * cells) ** (2 / 3) / np.sum((weights * cells) ** (2 / 3))
    best = minimize(
        lambda x: noise(np.exp(x) / np.exp(x).sum()), np.zeros(4), method="BFGS", options={"gtol": 1e-8}
    )
    assert noise(rule) == pytest.approx(best.fun, rel=1e-9)


def chosen(scores, weights, **changes):
    return selected(scores, {}, weights, (4,) * 8, (), 1e6, NoiseLaw(10.0, 0.5), Settings(**changes))


def test_a_weight_multiplies_the_gain_the_noise_and_the_share():
    taken = chosen({(0, 1): 1e5, (2, 3): 1e5}, {(0, 1): 5.0}, allocation=2 / 3)
    assert taken[0, 1] / taken[2, 3] == pytest.approx(5 ** (2 / 3))
    # The price of the second pair: weighted noise of both at the best shares, less that of the first.
    both = 10 * ((5 * 16) ** (2 / 3) + 16 ** (2 / 3)) ** 1.5 - 10 * 5 * 16
    for score, number in ((0.5 * both * 1.01, 2), (0.5 * both * 0.99, 1)):
        assert len(chosen({(0, 1): 1e5, (2, 3): score}, {(0, 1): 5.0}, allocation=2 / 3)) == number


def test_a_weight_for_all_changes_no_choice_and_a_small_one_can_drop_a_pair():
    rng = np.random.default_rng(1)
    scores = {pair: float(rng.normal(300, 300)) for pair in combinations(range(8), 2)}
    plain = chosen(scores, {})
    even = chosen(scores, dict.fromkeys(scores, 3.0))
    assert plain.keys() == even.keys() and 0 < len(plain) < len(scores)
    ratios = {even[pair] / plain[pair] for pair in plain}
    assert max(ratios) == pytest.approx(min(ratios))
    last = list(plain)[-1]
    assert last not in chosen(scores, {last: 0.001})
