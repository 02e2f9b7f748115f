"""Values inside bins: whole multiples of a stated granularity, never outside the bin; and NOT NULL."""

import math
from datetime import UTC, date, datetime, time
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from test_fill import values

from dpsyn_sql.attributes.attribute import Attribute

SETTINGS = "SET TimeZone = 'Asia/Kolkata'"


BITS = [0, 1, 2**63, 2**64 - 1, *np.random.default_rng(1).integers(0, 2**63, 60).tolist()]


def encoded(con, attribute, found):
    """Codes that the values get; every value must come back into its bin."""
    expression = attribute.code("v").code
    con.execute(f"CREATE OR REPLACE TEMP TABLE v (v {attribute.sql_type})")
    value = "make_timestamptz(epoch_us(?::TIMESTAMP))" if "ZONE" in attribute.sql_type else "?"
    con.executemany(f"INSERT INTO v VALUES ({value})", [(item,) for item in found])
    return {row[0] for row in con.execute(f"SELECT DISTINCT {expression} FROM v").fetchall()}


@pytest.mark.parametrize("sql_type", ["DATE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE", "TIMESTAMP_S"])
def test_first_days_of_months(con, sql_type):
    days = [date(1, 1, 1), date(1969, 12, 2), date(1969, 12, 30), date(1970, 1, 2), date(9999, 12, 31)]
    edges = [day if sql_type == "DATE" else datetime(day.year, day.month, day.day) for day in days]
    if "ZONE" in sql_type:
        edges = [edge.replace(tzinfo=UTC) for edge in edges]
    attribute = Attribute("v", sql_type, "temporal", edges=tuple(edges), granularity="month")
    for code, single in ((0, None), (1, edges[1]), (2, date(1970, 1, 1)), (3, None)):
        found = values(con, attribute, code, BITS)
        if single is not None:
            assert {(v.year, v.month, v.day) for v in found} == {(single.year, single.month, single.day)}
        else:
            assert {v.day for v in found} == {1} and len({v.month for v in found}) > 6
        assert encoded(con, attribute, found) == {code}


@pytest.mark.parametrize("sql_type", ["DOUBLE", "FLOAT"])
def test_floats_on_decimal_steps(con, sql_type):
    edges = (
        (-1e300, -2.5, 0.07, 0.071, 0.075, 0.1, 0.3, 5.0, 1e6)
        if sql_type == "DOUBLE"
        else (0.0, 0.1, 5.0, 1e4)
    )
    edges = tuple(float(np.float32(edge)) if sql_type == "FLOAT" else edge for edge in edges)
    attribute = Attribute("v", sql_type, "numeric", edges=edges, granularity=Decimal("0.01"))
    for code in range(attribute.regular):
        found = values(con, attribute, code, BITS)
        top = math.inf if code == attribute.regular - 1 else edges[code + 1]
        assert all(edges[code] <= value and (value < top) for value in found)
        if edges[code] == -1e300:
            continue  # as many hundredths cannot be told apart: any value
        if edges[code] == 0.071:
            assert set(found) == {0.071}  # no hundredth inside
            continue
        rounded = [round(value, 2) for value in found]
        if sql_type == "FLOAT":
            rounded = [float(np.float32(value)) for value in rounded]
        assert found == rounded
        assert encoded(con, attribute, found) == {code}


@example(cuts=[0.0, 8193.0, 8192.555124961225], step="1e-12", bits=0)
@settings(max_examples=40)
@given(
    cuts=st.lists(st.floats(-1e4, 1e4, allow_nan=False), min_size=2, max_size=6, unique=True),
    step=st.sampled_from(["0.01", "0.1", "0.25", "1", "5", "1e2", "0.007", "1e-12", "1e30"]),
    bits=st.integers(0, 2**64 - 1),
)
def test_floats_never_leave_their_bin(con, cuts, step, bits):
    edges = tuple(sorted({cut + 0.0 for cut in cuts}))
    if len(edges) < 2:
        return
    attribute = Attribute("v", "DOUBLE", "numeric", edges=edges, granularity=Decimal(step))
    for code in range(attribute.regular):
        for value in values(con, attribute, code, [bits, 0, 2**64 - 1]):
            assert edges[code] <= value <= edges[code + 1]
            assert value < edges[code + 1] or code == attribute.regular - 1


def test_other_in_a_column_that_cannot_be_null_is_one_of_its_labels(con):
    for sql_type, labels in (
        ("INTEGER", (7, 8, 9)),
        ("ENUM('x', 'y', 'z')", ("z", "x")),
        ("BOOLEAN", (True,)),
    ):
        attribute = Attribute("v", sql_type, "categorical", labels, other=True)
        assert set(values(con, attribute, attribute.other_code, BITS)) == set(labels)
        for code, label in enumerate(labels):
            assert set(values(con, attribute, code, BITS)) == {label}
    none = Attribute("v", "INTEGER", "categorical", (), other=True)
    assert set(values(con, none, 0, BITS)) == {0}


def test_times_round_trip(con):
    attribute = Attribute(
        "v", "TIME", "temporal", edges=(time(0), time(8), time(23, 59, 59, 999_999), time.max)
    )
    assert attribute.regular == 3
    for code in range(3):
        found = values(con, attribute, code, BITS)
        assert encoded(con, attribute, found) == {code}
    assert set(values(con, attribute, 2, BITS)) == {time.max}
    expression = attribute.code("v").code
    ends = f"SELECT {expression} FROM (VALUES (TIME '24:00:00'), (TIME '00:00:00'), (NULL::TIME)) t(v)"
    assert [row[0] for row in con.execute(ends).fetchall()] == [2, 0, 0]
