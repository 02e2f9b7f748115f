"""Rows that belong to nobody, and keys that are there twice: which rows count, by hand."""

from collections import Counter
from datetime import date

import pytest
from laws.adapter import counts, kept_rows
from laws.trees import (
    BOUNDED,
    PERSONS,
    SINGLE,
    TREE,
    WEIGHT,
    Case,
    Forest,
    Question,
    Row,
    TableCase,
    WindowCase,
    dense,
    key_of,
)

from dpsyn_sql.attributes.attribute import Attribute

NUMBERS = (Attribute("number", "BIGINT", "categorical", labels=tuple(range(10))),)


def table(name, rows, parent=None, most=9, *, keyed=True):
    """A table of (key, owner) rows, numbered in turn; without keys of (owner,) rows."""
    numbered = tuple(
        Row(row[: int(keyed)], row[int(keyed) :], (number,), None) for number, row in enumerate(rows)
    )
    return TableCase(name, NUMBERS, numbered, parent, most, int(keyed), int(parent is not None))


def weights(con, case):
    """By table, the weight of each number that counts, as counts and kept rows say it."""
    questions = [Question(one.name, "rows", ("number",)) for one in case.tables]
    counted = {
        question.table: {number: weight for number, weight in enumerate(found.tolist()) if weight}
        for question, found in zip(questions, counts(con, case, questions), strict=True)
    }
    for name, rows in kept_rows(con, case).items():
        summed = Counter()
        for row in rows:
            summed[row.number] += row.weight
        assert summed == counted[name]
    return counted


def tree(*tables):
    return Case(TREE, tables, 7)


def test_rows_without_a_key_or_a_parent_are_dropped_with_all_below_them(con):
    case = tree(
        table("customers", [("ann",), (None,)]),
        table("orders", [("1", None), ("2", "nobody"), (None, "ann"), ("4", "ann")], "customers"),
        table("items", [("1",), ("2",), (None,), ("4",), ("nobody",)], "orders", keyed=False),
    )
    assert weights(con, case) == {"customers": {0: WEIGHT}, "orders": {3: WEIGHT}, "items": {3: WEIGHT}}


def test_a_parent_that_is_not_kept_has_no_rows(con):
    """One order of two is kept, and items of that one alone."""
    case = tree(
        table("customers", [("ann",)]),
        table("orders", [("1", "ann"), ("2", "ann")], "customers", most=1),
        table("items", [("1",), ("2",)], "orders", keyed=False),
    )
    counted = weights(con, case)
    (order,), (item,) = counted["orders"], counted["items"]
    assert order == item
    assert counted["orders"][order] == counted["items"][item] == WEIGHT


def test_a_key_of_the_root_that_is_there_twice_is_one_unit_of_the_least_codes(con):
    case = tree(
        table("customers", [("ann",), ("bob",), ("ann",), ("Ann",)]),
        table("visits", [("ann",), ("ann",), ("ann",)], "customers", keyed=False),
    )
    assert weights(con, case) == {
        "customers": {0: WEIGHT, 1: WEIGHT, 3: WEIGHT},
        "visits": dict.fromkeys(range(3), WEIGHT // 3),
    }


def test_a_key_that_a_unit_has_twice_is_kept_below_the_least_key_of_a_parent(con):
    """The first order is there twice, under other codes and below another customer's order, which is a copy."""
    case = tree(
        table("customers", [("ann",)]),
        table("orders", [("2", "ann"), ("1", "ann")], "customers"),
        table("items", [("x", "2"), ("x", "1"), ("x", "1"), ("y", "2")], "orders"),
        table("returns", [("x",), ("x",), ("y",)], "items", keyed=False),
    )
    counted = weights(con, case)
    assert counted["items"] == {1: WEIGHT // 2, 3: WEIGHT // 2}
    assert counted["returns"] == {0: WEIGHT // 4, 1: WEIGHT // 4, 2: WEIGHT // 2}


def test_a_key_in_two_units_has_a_copy_in_each(con):
    case = tree(
        table("customers", [("ann",), ("bob",)]),
        table("orders", [("1", "ann"), ("1", "bob")], "customers"),
        table("items", [("1",), ("1",)], "orders", keyed=False),
    )
    assert weights(con, case)["items"] == {0: WEIGHT, 1: WEIGHT}
    pairs = counts(con, case, [Question("items", "pairs", ("number", "number"))])[0]
    assert pairs[:2, :2].tolist() == [[0, WEIGHT], [WEIGHT, 0]]


def test_exact_copies_of_a_row_without_rows_below_count_each(con):
    rows = table("visits", [("ann",), ("ann",)], "customers", keyed=False)
    copied = TableCase("visits", NUMBERS, rows.rows[:1] * 2, "customers", 9, 0, 1)
    assert weights(con, tree(table("customers", [("ann",)]), copied))["visits"] == {0: 2 * (WEIGHT // 2)}


def one_table(shape, rows, window=None, most=9):
    """Of (person, day) rows."""
    numbered = tuple(
        Row((), () if shape == SINGLE else (person,), (number,), day)
        for number, (person, day) in enumerate(rows)
    )
    columns = int(shape != SINGLE)
    return Case(shape, (TableCase("visits", NUMBERS, numbered, most=most, owner_columns=columns),), 7, window)


@pytest.mark.parametrize("shape", [BOUNDED, PERSONS])
def test_rows_without_a_person_do_not_count_and_empty_text_is_a_person(con, shape):
    case = one_table(shape, [("ann", None), (None, None), ("Ann", None), ("", None), ("ann", None)])
    share = WEIGHT if shape == PERSONS else 1
    assert weights(con, case)["visits"] == {
        0: max(1, share // 2),
        2: share,
        3: share,
        4: max(1, share // 2),
    }


@pytest.mark.parametrize("shape", [SINGLE, BOUNDED, PERSONS])
def test_rows_outside_of_the_window_do_not_count(con, shape):
    """The start is inside, the end is not, and a row without a day is in no window."""
    days = [date(2013, 1, 31), date(2013, 2, 1), date(2013, 2, 28), date(2013, 3, 1), None]
    case = one_table(shape, [(f"p{number}", day) for number, day in enumerate(days)], WindowCase(1, None))
    assert weights(con, case)["visits"] == dict.fromkeys([1, 2], WEIGHT if shape == PERSONS else 1)


@pytest.mark.parametrize("shape", [BOUNDED, PERSONS])
@pytest.mark.parametrize("most", [1, 2])
def test_a_person_counts_in_her_first_windows(con, shape, most):
    months = [("ann", 1), ("ann", 2), ("ann", 3), ("bob", 2), ("bob", 3), ("eve", 3), ("Ann", 3)]
    rows = [(person, date(2013, month, 5)) for person, month in months]
    counted = [
        set(weights(con, one_table(shape, rows, WindowCase(index, most)))["visits"]) for index in range(3)
    ]
    assert counted == [{0}, {1, 3} if most == 2 else {3}, {4, 5, 6} if most == 2 else {5, 6}]


def test_full_trees_hold_all_that_is_hard(con):
    """Or the laws would say little: more rows than are kept, keys of nobody, NULLs, keys that are there twice."""
    case = dense(TREE)
    forest, met = Forest(case, kept_rows(con, case)), set()
    for name in ("t1", "t2", "t3"):
        parents = {key_of(row.key) for row in case[case[name].parent].rows}
        owners = [key_of(row.owner) for row in case[name].rows]
        met |= {"without a parent" for owner in owners if owner is None}
        met |= {"of nobody" for owner in owners if owner is not None and owner not in parents}
        met |= {"without a key" for row in case[name].rows if row.key and key_of(row.key) is None}
        for family in forest.families(case[name]):
            total = family.candidates.total()
            full = "full" if name != "t1" else "full, with rows below"
            met.add(full if total > family.most else "empty" if not total else "all of a family")
    met |= {
        "a root twice" for _, times in Counter(key_of(row.key) for row in case.root.rows).items() if times > 1
    }
    shared = Counter(key for key, _ in {(forest.key(row), forest.unit(row)) for row in forest.rows["t1"]})
    met |= {"a key in two units" for _, times in shared.items() if times > 1}
    copies = [len(one.rows) > len(one.by_number) for one in case.tables]
    met |= {"copies" for several in copies if several}
    assert met == {
        "a key in two units",
        "a root twice",
        "all of a family",
        "copies",
        "empty",
        "full",
        "full, with rows below",
        "of nobody",
        "without a key",
        "without a parent",
    }
