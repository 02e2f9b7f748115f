"""Which cells lie beyond the range that discovery found: what ends them, and how many there are."""

from fractions import Fraction
from itertools import pairwise

import pytest

from dpsyn_sql.attributes.attribute import Attribute
from dpsyn_sql.attributes.grids import after
from dpsyn_sql.attributes.shape import Undiscovered
from dpsyn_sql.discovery.attributes import attribute_of_pieces
from dpsyn_sql.discovery.cells import Piece
from dpsyn_sql.discovery.octaves import STEPS, octaves_beyond
from dpsyn_sql.report.certificate import attribute_facts
from dpsyn_sql.report.stored_facts import attribute_of_facts


def column(sql_type="BIGINT", kind="numeric", **more) -> Undiscovered:
    return Undiscovered("x", sql_type, kind, **more)


def found(cells, column) -> Attribute:
    """The attribute of pieces (low, high, rows)."""
    pieces = [Piece(Fraction(low), Fraction(high), float(rows)) for low, high, rows in cells]
    return attribute_of_pieces(column, pieces, None)


def beyond(low, high, column):
    return tuple(
        [float(cut) for cut in side] for side in octaves_beyond(column, Fraction(low), Fraction(high))
    )


def test_cells_widen_with_the_distance_from_zero():
    below, above = beyond(0, 1_000, column())
    assert below == [] and above[:5] == [1_250, 1_500, 2_000, 3_000, 4_000]
    assert len(above) == len(STEPS) and above[-1] == 1_024_000
    below, above = beyond(-80, 1_000, column())
    assert below[-3:] == [-160, -120, -100] and below[0] == -81_920 and len(above) == len(STEPS)


@pytest.mark.parametrize("kind", ["DATE", "TIMESTAMP", "TIME"])
def test_times_have_none(kind):
    assert beyond(10_000, 12_000, column(kind, "temporal")) == ([], [])


def test_stated_bounds_end_them():
    """One-sided bounds and CHECK constraints are the bounds of a column to be learnt."""
    assert beyond(0, 90, column(most=Fraction(120))) == ([], [112, 121])
    assert beyond(0, 121, column(most=Fraction(120))) == ([], [])
    assert beyond(-10, 50, column(least=Fraction(-10), most=Fraction(60))) == ([], [61])
    assert beyond(-10, 50, column(least=Fraction(-11)))[0] == [-11]
    assert beyond(0, 90, column("DOUBLE", most=Fraction(100)))[1][-1] == pytest.approx(100)


@pytest.mark.parametrize(
    ("sql_type", "high", "end"),
    [("TINYINT", 100, 128), ("UTINYINT", 100, 256), ("DECIMAL(4,2)", 9_000, 10_000)],
)
def test_the_type_ends_them(sql_type, high, end):
    assert beyond(0, high, column(sql_type))[1][-1] == end


def test_the_largest_double_ends_them():
    high = 1.5e308
    _, above = octaves_beyond(column("DOUBLE"), Fraction(0), Fraction(high))
    assert len(above) == 1
    made = found([(0, 1, 5), (1, high, 9)], column("DOUBLE"))
    assert made.edges[-1] == pytest.approx(1.797e308, rel=1e-3)


@pytest.mark.parametrize("sql_type", ["BIGINT", "DECIMAL(10,2)", "DOUBLE"])
def test_beside_zero_alone_they_begin_at_the_least_values(sql_type):
    asked = column(sql_type)
    end = after(asked.type, Fraction(0))
    below, above = octaves_beyond(asked, Fraction(0), end)
    unit = 10**asked.type.scale
    assert below == () and above[-1] == 2**20 * unit and above[0] > end
    assert all(high == 2 * low for low, high in pairwise(above) if low >= unit)


def test_negative_values_alone_have_none_above():
    assert beyond(-90, -10, column())[1] == [] and beyond(-90, -10, column())[0]


@pytest.mark.parametrize("codes", [1, 2, 5, 10, 30, 100])
@pytest.mark.parametrize("nullable", [True, False])
@pytest.mark.parametrize("sql_type", ["INTEGER", "DOUBLE"])
def test_no_column_gets_more_codes_than_it_may(codes, nullable, sql_type):
    asked = column(sql_type, max_codes=codes, nullable=nullable)
    cells = [(place, place + 1, 100 + place) for place in range(-60, 60)]
    for made in (found(cells, asked), found([(0, after(asked.type, Fraction(0)), 5)], asked)):
        assert made.size <= max(codes, 1 + nullable)
        assert sum(made.beyond) < made.regular and len(made.fill) == made.regular


def test_the_found_range_is_between_them():
    made = found([(-4, -2, 10), (0, 1, 50), (1, 6, 20)], column())
    inside = made.found
    assert (made.edges[inside.start], made.edges[inside.stop]) == (-4, 6)
    assert made.beyond == (inside.start, made.regular - inside.stop) and min(made.beyond) > 0
    assert made.fill[0] == made.edges[:2] and made.fill[-1] == made.edges[-2:]
    assert attribute_of_facts(attribute_facts(made)) == made
