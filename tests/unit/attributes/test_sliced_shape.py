"""The column of a slice has the codes that its rows can have, and no others."""

from datetime import date, datetime
from fractions import Fraction

import pytest

from dpsyn_sql.attributes.attribute import Attribute
from dpsyn_sql.attributes.points import Points
from dpsyn_sql.attributes.shape import Shape, Undiscovered
from dpsyn_sql.attributes.sliced import shape_of_slice
from dpsyn_sql.attributes.taxonomy import from_prefixes
from dpsyn_sql.attributes.text import Texts
from dpsyn_sql.attributes.trees import HierarchyColumn
from dpsyn_sql.source.slices import Partition, Sliced, Window
from dpsyn_sql.sqltext.fragments import Fragment

MONTHS = ("2013-01-01", "2013-02-01", "2013-03-01", "2013-04-01")
FEBRUARY = Sliced(Window("day", "month", MONTHS, 1), "day", "DATE")
OTHER = Attribute("other", "DATE", "temporal", edges=(date(2013, 1, 1), date(2014, 1, 1)), nullable=True)


def only(item, sliced):
    shape = shape_of_slice(Shape((item, OTHER), order=(item.name, OTHER.name)), sliced)
    assert shape.order == (item.name, "other")
    assert shape.measured[1] == OTHER
    return shape.measured[0]


def days(*edges, **changes):
    cuts = tuple(date(2013, *edge) if isinstance(edge, tuple) else edge for edge in edges)
    return Attribute("day", "DATE", "temporal", edges=cuts, ordered=True, **changes)


@pytest.mark.parametrize(
    "edges,narrowed",
    [
        (((1, 1), (1, 20), (2, 10), (3, 1), (12, 31)), ((2, 1), (2, 10), (3, 1))),
        (((1, 1), (12, 31)), ((2, 1), (3, 1))),
        (((2, 5), (2, 10), (2, 20)), ((2, 5), (2, 10), (2, 20))),
        (((3, 1), (3, 10), (3, 20)), ((2, 1), (3, 1))),  # outside: all rows would be dated in March
        (((1, 1), (2, 1)), ((2, 1), (3, 1))),
    ],
)
def test_dates_lie_in_the_window(edges, narrowed):
    assert only(days(*edges, nullable=True), FEBRUARY) == days(*narrowed)


def test_moments_lie_in_the_window():
    cuts = (datetime(2013, 1, 1), datetime(2013, 2, 14, 12), datetime(2014, 1, 1))
    found = only(
        Attribute("day", "TIMESTAMP", "temporal", edges=cuts, granularity=3_600_000_000),
        Sliced(Window("day", "month", MONTHS, 1, span=1), "day", "TIMESTAMP"),
    )
    assert found.edges == (datetime(2013, 2, 1), datetime(2013, 2, 14, 12), datetime(2013, 3, 1))
    assert found.granularity == 3_600_000_000


def test_a_column_to_be_learnt_is_looked_for_in_the_window():
    found = only(Undiscovered("day", "DATE", "temporal", least=Fraction(15_750)), FEBRUARY)
    assert found == Undiscovered(
        "day", "DATE", "temporal", nullable=False, least=Fraction(15_750), most=Fraction(15_764)
    )
    assert date.fromordinal(date(1970, 1, 1).toordinal() + 15_764) == date(2013, 2, 28)


def test_what_is_not_the_column_itself_stays():
    item = days((1, 1), (12, 31), source=Fragment("least(day, later)"))
    assert only(item, FEBRUARY) == item
    text = Attribute("day", "VARCHAR", "categorical", labels=("2013-01-05",), other=True)
    assert only(text, FEBRUARY) == text


def partition(value):
    return Sliced(Partition("site", value), "site", "text", value)


@pytest.mark.parametrize(
    "item,value,expected",
    [
        (("VARCHAR", {"labels": ("n", "s"), "other": True, "nullable": True}), "s", {"labels": ("s",)}),
        (("VARCHAR", {"labels": ("n", "s"), "other": True}), "west", {"labels": ("west",)}),
        (("INTEGER", {"labels": (1, 2), "other": True}), "2", {"labels": (2,)}),
        (("BOOLEAN", {"labels": (False, True), "nullable": True}), "true", {"labels": (True,)}),
    ],
)
def test_a_partition_has_one_label(item, value, expected):
    sql_type, codes = item
    found = only(Attribute("site", sql_type, "categorical", **codes), partition(value))
    assert found == Attribute("site", sql_type, "categorical", **expected)
    assert found.size == 1


def test_a_partition_of_numbers_or_dates_has_one_bin():
    numbers = Attribute("site", "INTEGER", "numeric", edges=(0, 10, 20), nullable=True, ordered=True)
    assert only(numbers, partition("-3")).edges == (-3, -2)
    dates = Attribute("site", "DATE", "temporal", edges=(date(2013, 1, 1), date(2014, 1, 1)))
    assert only(dates, partition("2013-05-06")).edges == (date(2013, 5, 6), date(2013, 5, 7))


def test_a_partition_need_not_be_learnt():
    found = only(Undiscovered("site", "VARCHAR", "categorical"), partition("north"))
    assert found == Attribute("site", "VARCHAR", "categorical", labels=("north",))
    number = only(Undiscovered("site", "INTEGER", "numeric"), partition("7"))
    assert number == Attribute("site", "INTEGER", "numeric", edges=(7, 8), ordered=True)
    enum = Undiscovered("site", "ENUM('north', 'south')", "categorical")
    assert only(enum, partition("north")) == enum


DAY = HierarchyColumn("day", "DATE")


def tree(hierarchy):
    return Undiscovered(hierarchy.name, "VARCHAR", "categorical", hierarchy.nullable, hierarchy=hierarchy)


FIRST, LAST = 15_737, 15_764  # of February


@pytest.mark.parametrize(
    ("low", "high", "depth", "within"),
    [
        (15_750, 20_000, 12, (15_750, LAST, 4)),
        (FIRST - 400, FIRST + 400, 9, (FIRST, LAST, 5)),
        (FIRST - 400, FIRST + 1, 9, (FIRST, FIRST + 1, 1)),
        (0, 100, 7, (FIRST, LAST, 5)),  # outside
    ],
)
def test_the_box_of_dates_is_that_of_the_window(low, high, depth, within):
    least, most, levels = within
    found = only(tree(Points("day", (DAY,), (low,), (high,), depth, nullable=True)), FEBRUARY)
    assert found == tree(Points("day", (DAY,), (least,), (most,), levels))


def test_a_box_of_one_date_is_a_bin_and_a_place_keeps_its_other_columns():
    one_day = tree(Points("day", (DAY,), (FIRST - 400,), (FIRST,), 9, nullable=True))
    assert only(one_day, FEBRUARY) == days((2, 1), (2, 2))
    columns = (HierarchyColumn("lat", "DOUBLE"), DAY)
    place = Points("where", columns, (40.0, 15_000), (41.0, 16_000), 10, nullable=True)
    assert only(tree(place), FEBRUARY) == tree(
        Points("where", columns, (40.0, FIRST), (41.0, LAST), 10, nullable=True)
    )


def test_trees_over_other_columns_or_expressions_stay_whole():
    other = tree(Points("n", (HierarchyColumn("n", "DATE"),), (0,), (9,), 4))
    assert only(other, FEBRUARY) == other
    computed = tree(Points("day", (HierarchyColumn("day", "DATE", Fragment("day + 1")),), (0,), (9,), 4))
    assert only(computed, FEBRUARY) == computed


@pytest.mark.parametrize(
    ("hierarchy", "value", "expected"),
    [
        (
            Texts(HierarchyColumn("c", "VARCHAR"), "ab", (1, 2), 2),
            "ab",
            Attribute("c", "VARCHAR", "categorical", labels=("ab",)),
        ),
        (
            from_prefixes(HierarchyColumn("c", "INTEGER"), ["10", "11", "2"], [1]),
            "11",
            Attribute("c", "INTEGER", "numeric", edges=(11, 12), ordered=True),
        ),
        (
            from_prefixes(HierarchyColumn("c", "VARCHAR"), ["a1", "a2", "b"], [1]),
            "zz",
            Attribute("c", "VARCHAR", "categorical", labels=("zz",)),
        ),
        (
            Points("c", (HierarchyColumn("c", "INTEGER"),), (0,), (9,), 4),
            "7",
            Attribute("c", "INTEGER", "numeric", edges=(7, 8), ordered=True),
        ),
    ],
)
def test_a_partition_of_a_tree_has_its_one_value(hierarchy, value, expected):
    sliced = Sliced(Partition("c", value), "c", "text", value)
    assert only(tree(hierarchy), sliced) == expected
