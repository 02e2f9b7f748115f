"""Weights of a workload: how they are read, and what they do to shares and choices."""

import math
from decimal import Decimal
from fractions import Fraction
from itertools import combinations

import pytest

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.attributes.attribute import Attribute
from dpsyn_sql.attributes.roles import Key
from dpsyn_sql.attributes.shape import Shape, Undiscovered
from dpsyn_sql.errors import InputError
from dpsyn_sql.planning.workload import TARGET_WEIGHT, UNWEIGHTED, read_workload

BUDGET = Budget("gdp", 10**13)


def attribute(name, size=4):
    return Attribute(name, "INTEGER", "categorical", tuple(range(size)))


SHAPE = Shape(
    (attribute("a"), attribute("b"), Undiscovered("C", "VARCHAR", "categorical"), attribute("d")),
    (Key("id", "INTEGER"),),
)


def read(spec):
    return read_workload(spec).matched(SHAPE)


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


def test_a_target_is_a_weight_of_its_pairs_and_the_larger_weight_applies():
    names = ("a", "b", "C", "d")
    found = read_workload({"a": 2, ("c", "d"): 50, "c": "target"}).matched(SHAPE)
    assert found.target == "C"
    assert found.pairs(names) == {
        ("a", "b"): 2,
        ("a", "C"): TARGET_WEIGHT,
        ("a", "d"): 2,
        ("b", "C"): TARGET_WEIGHT,
        ("C", "d"): 50,
    }
    assert read_workload("a") == read_workload({"a": "target"}) == read_workload({("a",): "target"})
    alone = read_workload("a").matched(SHAPE)
    assert alone.pairs(names) == read({"a": TARGET_WEIGHT}).pairs(names)
    assert alone.means(names) == read({"a": TARGET_WEIGHT}).means(names)
    assert [line.split()[0] for line in found.lines()] == ["Workload", "Target"]
    assert list(UNWEIGHTED.lines()) == []


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("", "give the column that others are to predict"),
        (["a"], "give the column that others are to predict"),
        (5, "give the column that others are to predict"),
        ({"a": "target", "b": "target"}, "workload has the target 'a', 'b': name one column"),
        ({("a", "b"): "target"}, "workload has the target 'a', 'b': name one column"),
        ({"": "target"}, "workload has the target '': name one column"),
        ("bb", "workload names 'bb', which is not a column of the release; did you mean 'b'"),
        ("ID", r"workload names 'ID', which is not measured \(Key\)"),
    ],
)
def test_what_is_no_target_is_refused(target, message):
    with pytest.raises(InputError, match=message):
        read_workload(target).matched(SHAPE)


@pytest.mark.parametrize("weight", [0, -1, math.nan, math.inf, "much", None, True, 1e-9, 1e9])
def test_weights_that_are_none_are_refused(weight):
    with pytest.raises(InputError, match="workload has the weight"):
        read_workload({"a": weight})


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ([("a", 1)], "or a mapping of attributes to weights"),
        ("a=5", "workload names 'a=5', which is not a column"),
        ({(): 1}, "has the key"),
        ({("a", 1): 1}, "has the key"),
        ({frozenset("ab"): 1}, "has the key"),
        ({"incme": 5}, "not a column of the release; its columns are 'a', 'b', 'C', 'd'"),
        ({("a", "bb"): 5}, "did you mean"),
        ({"ID": 5}, r"not measured \(Key\)"),
        ({("a", "A"): 5}, "twice"),
    ],
)
def test_what_cannot_be_weighed_is_refused(spec, message):
    with pytest.raises(InputError, match=message):
        read(spec)
