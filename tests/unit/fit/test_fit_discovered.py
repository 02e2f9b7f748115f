"""Bounds, bins and categories from noisy answers, against what was put in."""

from fractions import Fraction

import numpy as np
import pytest

from dpsyn_sql.domain.attributes import edge_ticks
from dpsyn_sql.domain.grids import grid_cells
from dpsyn_sql.domain.shape import Undiscovered
from dpsyn_sql.domain.types import parse_type
from dpsyn_sql.errors import InternalError
from dpsyn_sql.fit.discovered import (
    attribute_from_keys,
    attribute_from_tree,
    bounds_from_grid,
    tree_query,
)
from dpsyn_sql.planning.queries import NoisyKeys, NoisyTree, TreeQuery, TreeRoot

AGE = Undiscovered("age", "INTEGER", "numeric")


def counts_of(column, heavy, amount=1000):
    cells = grid_cells(parse_type(column.sql_type))
    noisy = np.zeros(len(cells) + column.nullable, dtype=np.int64)
    for index, cell in enumerate(cells):
        if any(cell.low <= value < cell.high for value in heavy):
            noisy[index] = amount
    return noisy


def test_cells_that_stand_out_become_roots():
    bounds = bounds_from_grid(AGE, counts_of(AGE, [17, 40, 90]), 10)
    assert [(cell.low, cell.high) for cell in bounds.cells] == [(16, 32), (32, 64), (64, 128)]
    query = tree_query(AGE, bounds)
    assert query.roots == (
        TreeRoot(Fraction(16), Fraction(1), 4),
        TreeRoot(Fraction(32), Fraction(1), 5),
        TreeRoot(Fraction(64), Fraction(1), 6),
    )
    attribute = attribute_from_tree(AGE, bounds, NoisyTree(query, ()))
    assert edge_ticks(attribute) == (16, 32, 64, 128)
    assert attribute.nullable and attribute.ordered and attribute.origin == "discovered"


def test_splits_become_cuts():
    bounds = bounds_from_grid(AGE, counts_of(AGE, [40]), 10)
    query = tree_query(AGE, bounds)
    split = ((0, 0, 0), (0, 1, 1), (0, 2, 3), (0, 3, 6), (0, 4, 12))
    attribute = attribute_from_tree(AGE, bounds, NoisyTree(query, split))
    assert edge_ticks(attribute) == (32, 48, 56, 57, 58, 60, 64)


def test_a_point_mass_has_a_bin_of_its_own_and_gaps_are_one_bin():
    gain = Undiscovered("gain", "INTEGER", "numeric")
    bounds = bounds_from_grid(gain, counts_of(gain, [0, 5000, 99999]), 10)
    attribute = attribute_from_tree(gain, bounds, None)
    assert edge_ticks(attribute) == (0, 1, 4096, 8192, 65536, 131072)


def test_nothing_stands_out():
    noisy = counts_of(AGE, [])
    noisy[60] = 44
    bounds = bounds_from_grid(AGE, noisy, 10)
    assert len(bounds.cells) == 1 and bounds.cells[0] == grid_cells(parse_type("INTEGER"))[60]
    assert attribute_from_tree(AGE, bounds, None).size == 2


@pytest.mark.parametrize(
    ("name", "near", "far"),
    [
        ("INTEGER", 40, -(2**30)),
        ("DECIMAL(10,2)", 4_000, 2**33),
        ("DOUBLE", 5, 2**99),
        ("DATE", 9_000, -600_000),
    ],
)
def test_where_nothing_stands_out_everyday_values_are_likelier(name, near, far):
    column = Undiscovered("x", name, "numeric")
    noisy = counts_of(column, [near], 30) + counts_of(column, [far], 35)
    (cell,) = bounds_from_grid(column, noisy, 10).cells
    assert cell.low <= near < cell.high
    noisy += counts_of(column, [far], 30)
    assert any(cell.low <= far < cell.high for cell in bounds_from_grid(column, noisy, 10).cells)


def test_cells_side_by_side_outweigh_a_lucky_one_far_away():
    amount = Undiscovered("amount", "BIGINT", "numeric", nullable=False)
    noisy = counts_of(amount, [600, 1500, 3000, 5000], amount=300)
    noisy[3] = -400
    noisy[10] = 430  # about -2^53: larger than any cell of the values
    bounds = bounds_from_grid(amount, noisy, 114)
    assert [int(cell.low) for cell in bounds.cells] == [512, 1024, 2048, 4096]


def test_next_to_a_cell_that_stands_out_less_is_enough():
    noisy = counts_of(AGE, [40])
    for value, count in ((70, 21), (200, 21), (20, 19), (10, 44), (2_000, 44)):
        noisy += counts_of(AGE, [value], count)
    bounds = bounds_from_grid(AGE, noisy, 10)
    assert [(cell.low, cell.high) for cell in bounds.cells] == [(32, 64), (64, 128), (128, 256)]


@pytest.mark.parametrize(
    ("name", "least", "most", "edges"),
    [
        ("INTEGER", 18, 99, (18, 20, 24, 32, 64, 100)),
        ("INTEGER", None, 40, (16, 32, 41)),
        ("DOUBLE", Fraction(37, 2), None, (18.5, 32.0, 64.0, 128.0)),
    ],
)
def test_the_catalogs_bounds_end_the_bins_and_the_search(name, least, most, edges):
    limits = {key: None if v is None else Fraction(v) for key, v in (("least", least), ("most", most))}
    column = Undiscovered("x", name, "numeric", **limits)
    noisy = counts_of(column, [20, 40, 70]) + counts_of(column, [-(2**28)], 10**6)
    if most is not None:
        noisy += counts_of(column, [2**29], 10**6)
    if least is None:
        noisy -= counts_of(column, [-(2**28)], 10**6)
    bounds = bounds_from_grid(column, noisy, 10)
    query = tree_query(column, bounds)
    split = ((0, 0, 0), (0, 1, 0)) if least == 18 else ()
    attribute = attribute_from_tree(column, bounds, NoisyTree(query, split))
    cuts = attribute.edges if name == "DOUBLE" else edge_ticks(attribute)
    assert cuts == edges


def test_null_is_no_cell():
    noisy = counts_of(AGE, [40])
    noisy[-1] = 10**6
    assert len(bounds_from_grid(AGE, noisy, 10).cells) == 1


def test_one_point_needs_no_tree():
    column = Undiscovered("flag", "INTEGER", "numeric")
    bounds = bounds_from_grid(column, counts_of(column, [0, 1]), 10)
    assert tree_query(column, bounds) is None
    assert edge_ticks(attribute_from_tree(column, bounds, None)) == (0, 1, 2)


@pytest.mark.parametrize("most", [2, 3, 5, 9, 100])
def test_never_more_codes_than_planned(most):
    column = Undiscovered("x", "DOUBLE", "numeric", max_codes=most)
    bounds = bounds_from_grid(column, counts_of(column, [0.0, 0.3, 1.5, 1000, 1e9]), 10)
    query = tree_query(column, bounds)
    split = tuple((root, level, 0) for root in range(len(query.roots)) for level in range(10))
    attribute = attribute_from_tree(column, bounds, NoisyTree(query, split))
    assert 2 <= attribute.size <= most
    assert column.stand_in().size == most
    assert list(attribute.edges) == sorted(set(attribute.edges))


def test_a_split_below_the_depth_is_refused():
    query = TreeQuery("age", "INTEGER", (TreeRoot(Fraction(0), Fraction(1), 2),))
    bounds = bounds_from_grid(AGE, counts_of(AGE, [40]), 10)
    with pytest.raises(InternalError, match="below its depth"):
        attribute_from_tree(AGE, bounds, NoisyTree(query, ((0, 2, 0),)))


def test_keys_with_the_largest_counts_are_kept_in_order():
    column = Undiscovered("city", "VARCHAR", "categorical", max_codes=4)
    found = NoisyKeys("city", ("__other__", "a", "b", "c"), np.array([99, 50, 90, 70]), 5.0, 40)
    attribute = attribute_from_keys(column, found)
    assert attribute.labels == ("b", "c") and attribute.other and attribute.size == 4


def test_no_key_passed():
    column = Undiscovered("city", "VARCHAR", "categorical", nullable=False)
    attribute = attribute_from_keys(column, NoisyKeys("city", (), np.zeros(0, np.int64), 5.0, 40))
    assert attribute.labels == () and attribute.size == 1


def test_an_enum_without_a_name_gets_the_released_values_only():
    column = Undiscovered("mood", "ENUM('secret', 'ok')", "categorical")
    attribute = attribute_from_keys(column, NoisyKeys("mood", ("ok",), np.array([50]), 5.0, 40))
    assert attribute.sql_type == "ENUM('ok')"
