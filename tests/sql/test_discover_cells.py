"""Cells of trees: the number of a value's cell against exact fractions, up to the ends of every type."""

import math
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction

import duckdb
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpsyn_sql.count.cells import cell_expression
from dpsyn_sql.domain.grids import grid_cells
from dpsyn_sql.domain.types import from_tick, parse_type
from dpsyn_sql.errors import InternalError
from dpsyn_sql.planning.queries import TreeRoot
from dpsyn_sql.sqltext.fragments import Fragment

QUICK = settings(max_examples=15, suppress_health_check=list(HealthCheck))
INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
UNSIGNED = ("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT")
DECIMALS = ("DECIMAL(2,2)", "DECIMAL(9,3)", "DECIMAL(18,0)", "DECIMAL(38,0)", "DECIMAL(38,38)")
TEMPORAL = (
    *("DATE", "TIME", "TIMESTAMP", "TIMESTAMP_MS", "TIMESTAMP_S", "TIMESTAMP_NS"),
    "TIMESTAMP WITH TIME ZONE",
)
DISCRETE = (*INTEGERS, *UNSIGNED, *DECIMALS, *TEMPORAL)
FLOATS = ("FLOAT", "DOUBLE")


@pytest.fixture(scope="module")
def con():
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1; SET TimeZone = 'Asia/Kathmandu'")
        yield connection


def grid_roots(kind):
    return tuple(TreeRoot(cell.low, cell.unit, cell.depth) for cell in grid_cells(kind))


def cells_of(con, kind, roots, texts):
    """What the expression makes of values that are written as texts of the type."""
    expression = cell_expression(kind, roots, Fragment("c"))
    sql = (
        f"SELECT {expression} FROM (SELECT CAST(v AS {kind.text}) AS c, i FROM "
        "(SELECT unnest(?::VARCHAR[]) AS v, unnest(range(?)) AS i)) ORDER BY i"
    )
    found = con.execute(sql, [texts, len(texts)])
    assert [str(column[1]) for column in found.description] == ["BIGINT"]
    return [row[0] for row in found.fetchall()]


def wanted(roots, value):
    """By definition, in fractions; None outside of all roots."""
    offset = 0
    for root in roots:
        steps = math.floor((value - root.low) / root.width)
        if 0 <= steps < 1 << root.depth:
            return offset + steps
        offset += 1 << root.depth
    return None


def text_of(kind, tick):
    value = from_tick(kind, tick)
    return format(value, "f") if isinstance(value, Decimal) else str(value)


def drawn_roots(data, low, high):
    """Some disjoint roots of whole ticks between low and high, cells of any width."""
    roots, start = [], low
    for _ in range(data.draw(st.integers(1, 3))):
        start += data.draw(st.integers(0, max(0, (high - start) // 4)))
        room = min(high + 1 - start, 2**127)
        if room < 1:
            break
        depth = data.draw(st.integers(0, min(24, room.bit_length() - 1)))
        most = room >> depth
        width = data.draw(st.sampled_from([1, most, max(1, most // 3)]))
        roots.append(TreeRoot(Fraction(start), Fraction(width), depth))
        start += width << depth
    return tuple(roots)


def some_of(data, roots):
    """A few, not adjacent ones too: a statement over a whole grid takes the database a second."""
    places = data.draw(st.sets(st.integers(0, len(roots) - 1), min_size=1, max_size=4))
    return tuple(roots[place] for place in sorted(places))


@pytest.mark.parametrize("sql_type", DISCRETE)
@QUICK
@given(data=st.data())
def test_ticks_fall_into_their_cells(con, sql_type, data):
    kind = parse_type(sql_type)
    if data.draw(st.booleans()):
        low = data.draw(st.sampled_from([kind.low, max(kind.low, -1000)]))
        roots = drawn_roots(data, low, kind.high)
    else:
        roots = some_of(data, grid_roots(kind))
    ticks = [kind.low, kind.high, 0, *data.draw(st.lists(st.integers(kind.low, kind.high), max_size=4))]
    for root in data.draw(st.lists(st.sampled_from(roots), max_size=4)) if roots else ():
        low, end = int(root.low), int(root.low + root.width * (1 << root.depth))
        ticks += [low - 1, low, low + int(root.width), end - 1, end]
    ticks = [tick for tick in ticks if kind.low <= tick <= kind.high]
    found = cells_of(con, kind, roots, [text_of(kind, tick) for tick in ticks])
    assert found == [wanted(roots, Fraction(tick)) for tick in ticks]


@pytest.mark.parametrize("sql_type", FLOATS)
@QUICK
@given(data=st.data())
def test_numbers_fall_into_the_cells_of_the_grid(con, sql_type, data):
    kind = parse_type(sql_type)
    width = 32 if sql_type == "FLOAT" else 64
    special = [0.0, -0.0, math.ulp(0.0) if width == 64 else 1e-45, 1.0, -1.0, 2.0, -2.0, 0.5]
    numbers = special + data.draw(
        st.lists(st.floats(width=width, allow_nan=False, allow_infinity=False), max_size=8)
    )
    if width == 32:
        numbers = [float(np.float32(number)) for number in numbers]
    whole = grid_roots(kind)
    numbers = [number for number in numbers if wanted(whole, Fraction(number)) is not None]
    assert len(numbers) >= len(special)
    roots = some_of(data, whole)
    found = cells_of(con, kind, roots, [repr(number) for number in numbers])
    assert found == [wanted(roots, Fraction(number)) for number in numbers]


@pytest.mark.parametrize("sql_type", ["TINYINT", "DECIMAL(38,38)", "TIME", "UHUGEINT"])
def test_a_whole_grid_has_a_cell_for_every_value(con, sql_type):
    kind = parse_type(sql_type)
    roots, ticks = grid_roots(kind), [kind.low, kind.high, 0, 1, kind.high // 3]
    found = cells_of(con, kind, roots, [text_of(kind, tick) for tick in ticks])
    assert found == [wanted(roots, Fraction(tick)) for tick in ticks] and None not in found


@pytest.mark.parametrize("sql_type", [*DISCRETE, *FLOATS])
def test_null_and_what_is_no_number_is_in_no_cell(con, sql_type):
    kind = parse_type(sql_type)
    texts = [None]
    if kind.family == "float":
        texts += ["NaN", "inf", "-inf"]
    if kind.family in ("date", "timestamp"):
        texts += ["infinity", "-infinity"]
    if sql_type in ("DATE", "TIMESTAMP", "TIMESTAMP_MS", "TIMESTAMP_S"):
        texts += ["0044-03-15 (BC)", "12345-01-01"]
    if sql_type == "TIME":
        texts.append("24:00:00")
    roots = grid_roots(kind)
    few = (roots[0], *roots[len(roots) // 2 :: len(roots)], roots[-1])
    assert cells_of(con, kind, few, texts) == [None] * len(texts)


def test_nanoseconds_belong_to_their_microsecond(con):
    kind = parse_type("TIMESTAMP_NS")
    roots = (TreeRoot(Fraction(-4), Fraction(1), 3), TreeRoot(Fraction(4), Fraction(2), 1))
    texts = [
        "1969-12-31 23:59:59.999999999",
        "1970-01-01 00:00:00.000003999",
        "1970-01-01 00:00:00.000007999",
    ]
    assert cells_of(con, kind, roots, texts) == [3, 7, 9]
    assert cells_of(con, kind, roots, ["1970-01-01 00:00:00.000008", "1969-12-31 23:59:59.999995999"]) == [
        None,
        None,
    ]


def test_a_wide_root_of_numbers_never_overflows(con):
    kind = parse_type("DOUBLE")
    roots = (TreeRoot(Fraction(-(2**1021)), Fraction(2**1002), 20),)
    largest = math.nextafter(2.0**1021, 0)
    texts = [repr(number) for number in (-(2.0**1021), 0.0, 1.0, largest, 2.0**1021, 1.7e308, -1.7e308)]
    found = cells_of(con, kind, roots, texts)
    assert found == [0, 2**19, 2**19, 2**20 - 1, None, None, None]


def test_values_are_clipped_in_every_branch_whatever_the_optimiser_does(con):
    """Both ends of BIGINT in one column, with roots whose distances overflow it."""
    kind = parse_type("BIGINT")
    roots = (TreeRoot(Fraction(-(2**63)), Fraction(2**44), 20),)
    texts = [str(-(2**63)), str(2**63 - 1), "0", "-1"]
    assert cells_of(con, kind, roots, texts) == [0, 2**20 - 1, 2**19, 2**19 - 1]


def root(low, width, depth):
    return TreeRoot(Fraction(low), Fraction(width), depth)


@pytest.mark.parametrize(
    ("sql_type", "roots"),
    [
        ("INTEGER", (root(5, 1, 2), root(8, 1, 1))),
        ("INTEGER", (root(5, 1, 2), root(0, 1, 1))),
        ("INTEGER", (TreeRoot(Fraction(1, 2), Fraction(1), 1),)),
        ("INTEGER", (root(0, 0, 1),)),
        ("INTEGER", (root(0, 1, -1),)),
        ("TINYINT", (root(100, 1, 5),)),
        ("UTINYINT", (root(-1, 1, 2),)),
        ("HUGEINT", (root(-(2**127), 2**108, 20),)),
        ("DOUBLE", (root(-(2**1023), 2**1004, 20),)),
        ("DOUBLE", tuple(root(place, Fraction(1, 2**61), 61) for place in range(2))),
        ("VARCHAR", (root(0, 1, 1),)),
    ],
)
def test_trees_that_make_no_sense(sql_type, roots):
    with pytest.raises(InternalError):
        cell_expression(parse_type(sql_type), roots, Fragment("c"))


def test_days_and_hours_of_real_moments(con):
    for sql_type, moment in (
        ("DATE", date(2013, 1, 31)),
        ("TIMESTAMP", datetime(2013, 1, 31, 5, 15)),
        ("TIMESTAMP WITH TIME ZONE", datetime(2013, 1, 31, 5, 15, tzinfo=UTC)),
        ("TIME", time(5, 15)),
    ):
        kind = parse_type(sql_type)
        if sql_type == "TIME":
            hour = 3_600_000_000
            assert cells_of(con, kind, (root(0, hour, 4),), [str(moment)]) == [5]
            continue
        days = (date(2013, 1, 31) - date(1970, 1, 1)) // timedelta(days=1)
        assert cells_of(con, kind, (root(0, kind.day, 15),), [str(moment)]) == [days]


def test_no_roots_no_cells(con):
    assert cells_of(con, parse_type("INTEGER"), (), ["1", None]) == [None, None]
