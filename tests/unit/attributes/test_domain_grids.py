"""Grids cover their types, cell by cell, within bounds if there are any."""

from datetime import date
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from dpsyn_sql.attributes.attribute import edge_ticks
from dpsyn_sql.attributes.grids import after, grid_attribute, grid_cuts, largest_float, rounded
from dpsyn_sql.attributes.types import parse_type, to_tick
from dpsyn_sql.errors import InternalError

DISCRETE = [
    "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT",
    "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT",
    "DECIMAL(1,0)", "DECIMAL(10,3)", "DECIMAL(38,10)",
    "DATE", "TIME", "TIMESTAMP", "TIMESTAMP_MS", "TIMESTAMP_S", "TIMESTAMP_NS", "TIMESTAMP WITH TIME ZONE",
]  # fmt: skip


@pytest.mark.parametrize("name", [*DISCRETE, "FLOAT", "DOUBLE"])
def test_cuts_ascend(name):
    cuts = grid_cuts(parse_type(name))
    assert all(low < high for low, high in pairwise(cuts))
    assert 8 <= len(cuts) <= 1200


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete_grids_cover_the_type_exactly(name):
    kind = parse_type(name)
    cuts = grid_cuts(kind)
    assert all(cut.denominator == 1 for cut in cuts)
    if kind.family in ("integer", "decimal"):
        assert (cuts[0], cuts[-1]) == (kind.low, kind.high + 1)
        assert {Fraction(0), Fraction(1)} <= set(cuts)
    else:  # a part of a day at the end belongs to the end cell
        assert 0 <= cuts[0] - kind.low < kind.day
        assert 0 <= kind.high + 1 - cuts[-1] < kind.day
    attribute = grid_attribute("x", name, cuts)
    assert attribute.size == len(cuts) and attribute.nullable
    assert edge_ticks(attribute) == tuple(map(int, cuts))


@pytest.mark.parametrize(("name", "kind"), [("FLOAT", np.float32), ("DOUBLE", np.float64)])
def test_edges_of_floats_are_exact_values_of_the_type(name, kind):
    attribute = grid_attribute("x", name, grid_cuts(parse_type(name)))
    assert list(attribute.edges) == sorted(set(attribute.edges))
    assert all(float(kind(edge)) == edge for edge in attribute.edges)
    assert attribute.edges[-1] == -attribute.edges[0] == largest_float(parse_type(name))
    zero = attribute.edges.index(0.0)
    assert attribute.edges[zero + 1] == float(np.nextafter(kind(0), kind(1)))


def test_small_numbers_have_small_cells():
    spans = list(pairwise(map(int, grid_cuts(parse_type("TINYINT")))))
    assert spans[-8:] == [(0, 1), (1, 2), (2, 4), (4, 8), (8, 16), (16, 32), (32, 64), (64, 128)]
    assert spans[:2] == [(-128, -127), (-127, -63)]


@pytest.mark.parametrize("day", [date(1600, 1, 1), date(1970, 1, 1), date(2013, 7, 1), date(2299, 12, 31)])
def test_days_of_our_centuries_lie_in_blocks_of_512(day):
    kind = parse_type("DATE")
    tick = to_tick(kind, day)
    (cell,) = [(low, high) for low, high in pairwise(grid_cuts(kind)) if low <= tick < high]
    assert cell[1] - cell[0] == 512


@pytest.mark.parametrize(
    ("name", "least", "most", "cuts"),
    [
        ("INTEGER", 0, 20, [0, 1, 2, 4, 8, 16, 21]),
        ("INTEGER", 1900, 2100, [1900, 2048, 2101]),
        ("INTEGER", None, -(2**31) + 1, [-(2**31), 1 - 2**31, 2 - 2**31]),
        ("UTINYINT", 200, None, [200, 256]),
        (
            "TIME",
            3_600_000_000 * 22 + 5,
            None,
            [3_600_000_000 * 22 + 5, 3_600_000_000 * 23, 3_600_000_000 * 24],
        ),
    ],
)
def test_cells_outside_of_bounds_are_left_out(name, least, most, cuts):
    bounds = [None if bound is None else Fraction(bound) for bound in (least, most)]
    assert list(grid_cuts(parse_type(name), *bounds)) == cuts


def test_bounds_of_doubles_are_included():
    cuts = grid_cuts(parse_type("DOUBLE"), Fraction(0), Fraction(3, 4))
    assert cuts[0] == 0 and cuts[-2] == Fraction(1, 2)
    assert cuts[-1] == after(parse_type("DOUBLE"), Fraction(3, 4)) > Fraction(3, 4)


def test_bounds_that_leave_nothing_are_refused():
    with pytest.raises(InternalError):
        grid_cuts(parse_type("INTEGER"), Fraction(5), Fraction(4))


def test_the_value_after_another():
    assert after(parse_type("DATE"), Fraction(7)) == 8
    single = after(parse_type("FLOAT"), Fraction(1))
    assert single == Fraction(float(np.nextafter(np.float32(1), np.float32(2))))
    assert rounded(parse_type("INTEGER"), Fraction(-7, 2)) == -4
    assert rounded(parse_type("FLOAT"), Fraction(1, 10)) == Fraction(float(np.float32(0.1)))


@pytest.mark.parametrize("name", ["FLOAT", "DOUBLE"])
def test_the_largest_value_has_a_cell_and_nothing_is_rounded_beyond_it(name):
    kind = parse_type(name)
    largest = Fraction(largest_float(kind))
    end = after(kind, largest)
    assert end > largest and grid_cuts(kind)[-1] == grid_cuts(kind, most=largest)[-1] == end
    assert rounded(kind, end) == largest and rounded(kind, -end) == -largest
    assert grid_attribute("x", name, (largest, end)).edges == (float(largest), float(largest))
