"""Grids cover their types, cell by cell, and every cell can be halved down to whole ticks."""

from datetime import date
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from dpsyn_sql.domain.attributes import edge_ticks
from dpsyn_sql.domain.grids import grid_attribute, grid_cells, largest_float
from dpsyn_sql.domain.types import parse_type, to_tick

DISCRETE = [
    "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT",
    "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT",
    "DECIMAL(1,0)", "DECIMAL(10,3)", "DECIMAL(38,10)",
    "DATE", "TIMESTAMP", "TIMESTAMP_MS", "TIMESTAMP_S", "TIMESTAMP_NS", "TIMESTAMP WITH TIME ZONE",
]  # fmt: skip


@pytest.mark.parametrize("name", [*DISCRETE, "FLOAT", "DOUBLE"])
def test_cells_are_adjacent_and_halve_into_whole_units(name):
    cells = grid_cells(parse_type(name))
    for low, high in pairwise(cells):
        assert low.high == high.low
    assert all(cell.unit > 0 and 0 <= cell.depth <= 20 for cell in cells)
    assert 8 <= len(cells) <= 1200


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete_grids_cover_the_type_exactly(name):
    kind = parse_type(name)
    cells = grid_cells(kind)
    assert all(cell.low.denominator == cell.unit.denominator == 1 for cell in cells)
    if kind.family in ("integer", "decimal"):
        assert (cells[0].low, cells[-1].high) == (kind.low, kind.high + 1)
        assert Fraction(0) in {cell.low for cell in cells if cell.high - cell.low == 1}
    else:  # a part of a day at the end belongs to the end cell
        assert 0 <= cells[0].low - kind.low < kind.day
        assert 0 <= kind.high + 1 - cells[-1].high < kind.day
    attribute = grid_attribute("x", name, nullable=True)
    assert attribute.size == len(cells) + 1
    assert edge_ticks(attribute) == (*tuple(int(cell.low) for cell in cells), int(cells[-1].high))


@pytest.mark.parametrize(("name", "kind"), [("FLOAT", np.float32), ("DOUBLE", np.float64)])
def test_edges_of_floats_are_exact_values_of_the_type(name, kind):
    attribute = grid_attribute("x", name, nullable=False)
    assert list(attribute.edges) == sorted(set(attribute.edges))
    assert all(float(kind(edge)) == edge for edge in attribute.edges)
    assert attribute.edges[-1] == -attribute.edges[0] == largest_float(parse_type(name))
    zero = attribute.edges.index(0.0)
    assert attribute.edges[zero + 1] == float(np.nextafter(kind(0), kind(1)))


def test_small_numbers_have_small_cells():
    cells = grid_cells(parse_type("TINYINT"))
    spans = [(int(cell.low), int(cell.high)) for cell in cells]
    assert spans[-8:] == [(0, 1), (1, 2), (2, 4), (4, 8), (8, 16), (16, 32), (32, 64), (64, 128)]
    assert spans[:2] == [(-128, -127), (-127, -63)]


@pytest.mark.parametrize("day", [date(1600, 1, 1), date(1970, 1, 1), date(2013, 7, 1), date(2299, 12, 31)])
def test_days_of_our_centuries_lie_in_blocks_of_512(day):
    kind = parse_type("DATE")
    tick = to_tick(kind, day)
    (cell,) = [cell for cell in grid_cells(kind) if cell.low <= tick < cell.high]
    assert cell.high - cell.low == 512 and cell.unit == 1


def test_the_last_days_of_the_calendar_stand_in_small_cells():
    cells = grid_cells(parse_type("DATE"))
    assert cells[-1].high - cells[-1].low < 512 and cells[0].high - cells[0].low < 512
