"""What is planned to be asked about hierarchies, and at what share."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.attributes.attribute import Attribute
from dpsyn_sql.attributes.points import Points
from dpsyn_sql.attributes.roles import UnitId
from dpsyn_sql.attributes.shape import Shape, Undiscovered
from dpsyn_sql.attributes.text import Texts
from dpsyn_sql.attributes.trees import HierarchyColumn
from dpsyn_sql.discovery.designs import (
    HIERARCHIES_SHARE,
    HIERARCHY_SHARE,
    STRUCTURE_PARTS,
    TOTAL_SHARE,
    Growth,
    beginnings_of,
    design,
    left_of,
    looks_at_key,
    usual_depth,
)
from dpsyn_sql.errors import InputError
from dpsyn_sql.source.relation import PrivacyUnit

GDP, PURE = Budget.from_epsilon(1, 1e-9), Budget.from_epsilon(1, 0)
ROW = PrivacyUnit()


def points(number: int, depth: int = 15, name: str = "place") -> Points:
    columns = tuple(HierarchyColumn(f"{name}{axis}", "DOUBLE") for axis in range(number))
    return Points(name, columns, (0.0,) * number, (1.0,) * number, depth)


def texts(longest: int = 8, lengths: tuple[int, ...] | None = None) -> Texts:
    return Texts(HierarchyColumn("name", "VARCHAR"), "ab", lengths or tuple(range(1, longest + 1)), longest)


def column(hierarchy: Points | Texts) -> Undiscovered:
    return Undiscovered(hierarchy.name, "VARCHAR", "categorical", hierarchy=hierarchy)


def plain(name: str = "c") -> Undiscovered:
    return Undiscovered(name, "VARCHAR", "categorical")


def asked(steps):
    return [(step.ask, step.attr) for step in steps]


@pytest.mark.parametrize("budget", [GDP, PURE], ids=["gdp", "pure"])
def test_a_tree_and_its_leaves_share_a_tenth(budget: Budget) -> None:
    steps = design(Shape((column(points(2)),)), ROW, budget)
    rest = left_of(budget, steps)
    assert asked(steps) == [("tree", "place"), ("leaves", "place")]
    assert sum(step.budget.amount for step in steps) + rest.amount == budget.amount
    assert rest.amount / budget.amount == pytest.approx(1 - HIERARCHY_SHARE)
    splitter = "privtree" if budget is PURE else "basic"
    tree = steps[0].tree
    assert tree is not None
    assert (tree.splitter, tree.depth) == (splitter, 15 if budget is PURE else 12)
    part = steps[0].budget.amount / sum(step.budget.amount for step in steps)
    assert part == pytest.approx(float(STRUCTURE_PARTS[splitter]))


def test_many_hierarchies_share_a_quarter_and_take_nothing_from_other_columns() -> None:
    few = design(Shape((plain(),)), ROW, GDP)
    shape = Shape((plain(), *(column(points(2, name=f"p{place}")) for place in range(5))))
    steps = design(shape, ROW, GDP)
    trees = [step for step in steps if step.ask in ("tree", "leaves")]
    assert sum(step.budget.amount for step in trees) / GDP.amount == pytest.approx(HIERARCHIES_SHARE)
    of_plain = [next(step.budget for step in one if step.attr == "c") for one in (steps, few)]
    assert of_plain[0] == of_plain[1]


def test_text_is_asked_for_by_keys_where_there_is_delta() -> None:
    shape = Shape((column(texts()), plain(), column(points(2))))
    steps = design(shape, ROW, GDP)
    keys = [(step.ask, step.length) for step in steps if step.attr == "name"]
    assert keys == [("keys", 0), ("prefixes", 4), ("prefixes", 2), ("prefixes", 1)]
    assert sum(step.budget.delta for step in steps) == GDP.delta
    assert sum(step.budget.delta for step in steps if step.attr == "place") == 0
    pure = design(Shape((column(texts()),)), ROW, PURE)
    assert asked(pure) == [("tree", "name"), ("leaves", "name")]
    assert pure[0].tree is not None
    assert pure[0].tree.depth == 8


def test_lengths_of_beginnings() -> None:
    assert beginnings_of(column(texts(8))) == (4, 2, 1)
    assert beginnings_of(column(texts(3))) == (2, 1)
    assert beginnings_of(column(texts(9, (1, 3, 6)))) == (6, 3, 1)
    assert beginnings_of(Undiscovered("a", "VARCHAR", "categorical", prefixes=(5,))) == (5,)


@pytest.mark.parametrize(("columns", "levels"), [(1, 12), (2, 12), (3, 8), (4, 8), (5, 6), (8, 6)])
def test_levels_that_are_counted_whole_are_few(columns: int, levels: int) -> None:
    deep = points(columns, min(15, 62 // columns))
    assert usual_depth((deep,), "basic") == levels
    assert usual_depth((deep,), "privtree") == deep.depth
    assert usual_depth((points(columns, 3),), "basic") == 3


def test_a_key_spends_everything() -> None:
    shape = Shape((column(points(2)), column(texts())))
    steps = looks_at_key(shape, ROW, GDP, Growth())
    assert asked(steps) == [("total", "place"), ("tree", "place"), ("leaves", "place")]
    assert sum(step.budget.amount for step in steps) == GDP.amount
    assert all(step.tree is not None and len(step.tree.hierarchies) == 2 for step in steps)
    assert steps[0].budget.amount / GDP.amount == pytest.approx(TOTAL_SHARE)
    direct = looks_at_key(Shape((column(points(2)),)), ROW, GDP, Growth("direct", Fraction(1, 2), 5, 9))
    assert asked(direct) == [("total", "place"), ("tree", "place")]
    tree = direct[1].tree
    assert tree is not None
    assert (tree.splitter, tree.depth, tree.threshold) == ("direct", 5, 9)


def test_rows_per_unit_are_counted_too() -> None:
    shape = Shape((column(points(2)),), (UnitId("who", "INTEGER"),))
    steps = looks_at_key(shape, PrivacyUnit("who", 3), GDP, Growth())
    assert asked(steps)[-1] == ("contributions", None)
    assert sum(step.budget.amount for step in steps) == GDP.amount
    with pytest.raises(InputError, match="most=20000"):
        looks_at_key(shape, PrivacyUnit("who", 20_000), GDP, Growth())


@pytest.mark.parametrize("other", [plain("zone"), Attribute("zone", "VARCHAR", "categorical", ("a",))])
def test_other_columns_are_refused(other: Undiscovered | Attribute) -> None:
    with pytest.raises(InputError, match="'zone'.*exclude="):
        looks_at_key(Shape((column(points(2)), other)), ROW, GDP, Growth())
    with pytest.raises(InputError, match="no column at all"):
        looks_at_key(Shape(()), ROW, GDP, Growth())


def test_a_depth_that_there_is_not_is_refused() -> None:
    with pytest.raises(InputError, match="depth=16.*15 levels"):
        looks_at_key(Shape((column(points(2)),)), ROW, GDP, Growth(depth=16))
