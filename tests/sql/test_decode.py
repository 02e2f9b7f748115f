"""Decoding gives exactly the column's type, labels by code and uniform positions inside bins."""

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


@pytest.mark.parametrize("sql_type", ["FLOAT", "DOUBLE"])
def test_float_positions_stay_below_the_upper_edge(con, sql_type):
    big = float(np.finfo(np.float32 if sql_type == "FLOAT" else np.float64).max)
    attribute = Attribute("v", sql_type, "numeric", edges=(-big, 0.0, 1.0, big), nullable=True)
    for code, (low, high) in enumerate(zip((-big, 0.0, 1.0), (0.0, 1.0, big), strict=True)):
        assert at_bits(con, attribute, code, 0) == low
        assert low < at_bits(con, attribute, code, 2**64 - 1) < high
    assert at_bits(con, attribute, 3, 5) is None


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
