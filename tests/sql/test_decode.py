"""Decoding gives exactly the column's type, labels by code and uniform positions inside bins."""

from datetime import date
from decimal import Decimal
from itertools import pairwise

import numpy as np
import pytest
from support.shapes import decode_statement

from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.sqltext.fragments import Fragment


def stage(con, codes):
    codes = np.atleast_2d(np.asarray(codes).T).T
    rows = len(codes)
    columns = ", ".join(f"a{i} UINTEGER" for i in range(codes.shape[1]))
    con.execute(f'CREATE OR REPLACE TEMP TABLE staged ("row" BIGINT, {columns})')
    lists = ", ".join("unnest(?::UINTEGER[])" for _ in range(codes.shape[1]))
    con.execute(
        f"INSERT INTO staged SELECT unnest(range({rows})), {lists}",
        [codes[:, i].tolist() for i in range(codes.shape[1])],
    )


def decoded(con, *attributes, seed=1):
    return con.execute(decode_statement(Domain(attributes), Fragment("staged"), seed)).fetchall()


def column(con, attribute, codes, seed=1):
    stage(con, codes)
    return [row[0] for row in decoded(con, attribute, seed=seed)]


def at_bits(con, attribute, code, bits):
    """The value at chosen random bits: the ends of the range that a hash would hardly ever hit."""
    expression = attribute.value("code", Fragment("bits")).values[attribute.name]
    query = f"SELECT {expression} FROM (SELECT {code} AS code, CAST('{bits}' AS UBIGINT) AS bits)"
    return con.execute(query).fetchone()[0]


def test_labels_other_and_null_by_type(con):
    text = Attribute("v", "VARCHAR", "categorical", ("it's", ""), other=True, nullable=True)
    assert column(con, text, [0, 1, 2, 3]) == ["it's", "", "__other__", None]
    whole = Attribute("v", "BIGINT", "categorical", (7, -(2**63)), other=True, nullable=True)
    assert column(con, whole, [0, 1, 2, 3]) == [7, -(2**63), None, None]
    enum = Attribute("v", "ENUM('a', 'it''s')", "categorical", ("it's",), other=True, nullable=True)
    assert column(con, enum, [0, 1, 2]) == ["it's", None, None]
    boolean = Attribute("v", "BOOLEAN", "categorical", (True, False), nullable=True)
    assert column(con, boolean, [0, 1, 2]) == [True, False, None]


@pytest.mark.parametrize(
    ("sql_type", "edges"),
    [
        ("BIGINT", (-(2**63), -(2**63) + 1, 0, 5, 2**63)),
        ("HUGEINT", (-(2**127), 2**127)),
        ("HUGEINT", (-(2**127), -5, 0, 2**127)),
        ("UHUGEINT", (0, 2**128)),
        ("UHUGEINT", (0, 1, 2**127, 2**128)),
        ("UBIGINT", (0, 2**64)),
        ("TINYINT", (-128, -100, 128)),
        ("INTEGER", (0, 2**24, 2**25 + 7)),
        ("INTEGER", (-(2**31), 2**31)),
    ],
)
def test_integer_positions_are_exact_at_both_ends(con, sql_type, edges):
    attribute = Attribute("v", sql_type, "numeric", edges=edges, nullable=True)
    for code, (low, high) in enumerate(pairwise(edges)):
        width = high - low
        for bits in (0, 1, 2**63, 2**64 - 2**40, 2**64 - 1):
            value = at_bits(con, attribute, code, bits)
            assert low <= value < high
            # Narrow bins use the upper 40 bits only.
            narrow = low + (((bits >> 24) * width) >> 40)
            assert value in (low + ((bits * width) >> 64), narrow)
    assert at_bits(con, attribute, len(edges) - 1, 5) is None


def test_decimal_positions_keep_the_scale(con):
    limit = Decimal("9" * 38 + "e-2")
    lowest = Decimal("-" + "9" * 38 + "e-2")  # a unary minus would round to 28 digits
    edges = (lowest, Decimal("-0.01"), Decimal("0.00"), Decimal((0, (1, *[0] * 38), -2)))
    attribute = Attribute("v", "DECIMAL(38,2)", "numeric", edges=edges)
    assert at_bits(con, attribute, 0, 0) == lowest
    assert at_bits(con, attribute, 0, 2**64 - 1) < Decimal("-0.01")
    assert at_bits(con, attribute, 1, 2**64 - 1) == Decimal("-0.01")
    assert at_bits(con, attribute, 2, 0) == 0
    assert at_bits(con, attribute, 2, 2**64 - 1) <= limit
    small = Attribute("v", "DECIMAL(4,3)", "numeric", edges=(Decimal("0.000"), Decimal("10.000")))
    drawn = column(con, small, [0] * 2000)
    assert min(drawn) >= 0 and max(drawn) <= Decimal("9.999")
    assert len({value.as_tuple().digits[-1] for value in drawn}) == 10


@pytest.mark.parametrize("sql_type", ["FLOAT", "DOUBLE"])
def test_float_positions_stay_below_the_upper_edge(con, sql_type):
    big = float(np.finfo(np.float32 if sql_type == "FLOAT" else np.float64).max)
    attribute = Attribute("v", sql_type, "numeric", edges=(-big, 0.0, 1.0, big), nullable=True)
    for code, (low, high) in enumerate(zip((-big, 0.0, 1.0), (0.0, 1.0, big), strict=True)):
        assert at_bits(con, attribute, code, 0) == low
        assert low < at_bits(con, attribute, code, 2**64 - 1) < high
    assert at_bits(con, attribute, 3, 5) is None


def test_last_day_that_python_knows(con):
    attribute = Attribute("v", "DATE", "temporal", edges=(date.min, date(9999, 12, 1), date.max))
    assert at_bits(con, attribute, 1, 2**64 - 1) == date(9999, 12, 31)
    assert at_bits(con, attribute, 0, 0) == date(1, 1, 1)


def test_positions_are_uniform_and_independent(con):
    rows = 20_000
    wide = tuple(Attribute(name, "INTEGER", "numeric", edges=(0, 10, 14)) for name in ("x", "y"))
    stage(con, np.zeros((rows, 2), dtype=int))
    values = np.array(decoded(con, *wide), dtype=int)
    cells = np.zeros((10, 10))
    np.add.at(cells, (values[:, 0], values[:, 1]), 1)
    statistic = ((cells - rows / 100) ** 2 / (rows / 100)).sum()
    assert 50 < statistic < 160  # chi-square of 99 degrees; both limits are beyond 1e-4
    assert (np.array(decoded(con, *wide, seed=2)) != values).mean() > 0.8
    assert np.array_equal(np.array(decoded(con, *wide)), values)


def test_rows_come_in_order_whatever_the_table_order(con):
    attribute = Attribute("v", "INTEGER", "numeric", edges=tuple(range(101)))
    codes = np.random.default_rng(3).integers(0, 100, 5000)
    stage(con, codes)
    con.execute('CREATE OR REPLACE TEMP TABLE staged AS FROM staged ORDER BY hash("row")')
    assert [row[0] for row in decoded(con, attribute)] == codes.tolist()
