"""Counting SQL: the text of each template, and the counts against a brute force in Python."""

import re
from collections import Counter as Tally
from itertools import combinations, product

import duckdb
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.planning.queries import MarginalQuery
from dpsyn_sql.private.count import passes
from dpsyn_sql.private.count.counter import SqlCounter
from dpsyn_sql.sqltext.fragments import Fragment, qualified

TABLE = qualified("temp", "main", "codes")
QUICK = settings(max_examples=20, suppress_health_check=list(HealthCheck))

# Names of columns that could be mistaken for the names our statements use, or for SQL.
SEX = Attribute("k1", "VARCHAR", "categorical", labels=("f", "m"), other=True, nullable=True)
AGE = Attribute("c0", "INTEGER", "numeric", edges=(0, 10, 20, 30))
OK = Attribute('p0"; DROP', "BOOLEAN", "categorical", labels=(False, True), nullable=True)
CITY = Attribute("n", "VARCHAR", "categorical", labels=("a'b", "{{ x }}", "ü"), other=True)
DOMAIN = Domain((SEX, AGE, OK, CITY))


def brute_codes(row):
    """Codes of a row by the definition of the domain, in Python."""
    sex, age, ok, city = row
    return (
        SEX.null_code if sex is None else SEX.labels.index(sex) if sex in SEX.labels else SEX.other_code,
        0 if age is None else min(max(age // 10, 0), 2),
        OK.null_code if ok is None else int(ok),
        CITY.labels.index(city) if city in CITY.labels else CITY.other_code,
    )


def brute(rows, attrs):
    positions = [DOMAIN.index(name) for name in attrs]
    tally = Tally(tuple(brute_codes(row)[position] for position in positions) for row in rows)
    expected = np.zeros(DOMAIN.shape(attrs), dtype=np.int64)
    for cell in product(*(range(size) for size in expected.shape)):
        expected[cell] = tally[cell]
    return expected


@pytest.fixture
def con():
    with duckdb.connect() as connection:
        connection.execute("SET threads = 2")
        yield connection


def table_of(con, rows, *, text=False):
    """A table of raw rows; everything is VARCHAR, as in a CSV file, if ``text``."""
    columns = ", ".join(
        '"{}" {}'.format(attribute.name.replace('"', '""'), "VARCHAR" if text else attribute.sql_type)
        for attribute in DOMAIN.attributes
    )
    con.execute(f"CREATE OR REPLACE TABLE source ({columns})")
    if rows:
        con.executemany("INSERT INTO source VALUES (?, ?, ?, ?)", [list(row) for row in rows])
    return Fragment("source")


def queries_of(k):
    return [MarginalQuery(attrs) for attrs in combinations(DOMAIN.names, k)]


row = st.tuples(
    st.sampled_from(["f", "m", "x", "", None]),
    st.one_of(st.none(), st.integers(-(2**31), 2**31 - 1), st.integers(-2, 32)),
    st.sampled_from([True, False, None]),
    st.sampled_from(["a'b", "{{ x }}", "ü", "elsewhere", None]),
)
tables = st.lists(row, max_size=60)


@pytest.mark.parametrize("k", [2, *(pytest.param(k, marks=pytest.mark.slow) for k in (1, 3, 4))])
@given(rows=tables)
@QUICK
def test_counts_equal_a_brute_force(k, rows):
    with duckdb.connect() as con:
        relation = table_of(con, rows)
        queries = [*queries_of(k), MarginalQuery(())]
        counter = SqlCounter(DuckDBEngine(con), relation, DOMAIN, queries)
        for query, counts in zip(queries, counter.count(queries), strict=True):
            np.testing.assert_array_equal(counts, brute(rows, query.attrs))
            assert counts.dtype == np.int64


@pytest.mark.parametrize("k", [1, 2])
def test_text_sources_are_read_as_their_types(con, k):
    rows = [("f", 5, True, "ü"), ("q", 25, False, "a'b"), (None, None, None, None)]
    unreadable = ("m", "twenty", "maybe", "ü")
    as_text = [tuple(None if value is None else str(value) for value in row) for row in rows]
    queries = queries_of(k)
    relation = table_of(con, [*as_text, unreadable], text=True)
    counter = SqlCounter(DuckDBEngine(con), relation, DOMAIN, queries, decimal=".")
    expected_rows = [*rows, ("m", None, None, "ü")]
    for query, counts in zip(queries, counter.count(queries), strict=True):
        np.testing.assert_array_equal(counts, brute(expected_rows, query.attrs))


def test_more_attributes_than_one_scan_holds(con):
    names = [f"a{index}" for index in range(130)]
    columns = ", ".join(f"i % {2 + index % 3} AS {name}" for index, name in enumerate(names))
    con.execute(f"CREATE TABLE wide AS SELECT {columns} FROM range(500) AS numbers(i)")
    domain = Domain(
        tuple(Attribute(name, "BIGINT", "categorical", labels=(0, 1, 2, 3), other=True) for name in names)
    )
    queries = [MarginalQuery((name,)) for name in names]
    ran = []
    engine = DuckDBEngine(con, trace=ran.append)
    counts = SqlCounter(engine, Fragment("wide"), domain, queries).count(queries)
    assert len(ran) == 3
    for index, found in enumerate(counts):
        expected = np.bincount(np.arange(500) % (2 + index % 3), minlength=5)
        np.testing.assert_array_equal(found, expected)


def test_many_packed_attributes(con):
    codes = np.random.default_rng(7).integers(0, 2, (3000, 30))
    con.register("bits_frame", {f"b{index}": codes[:, index] for index in range(30)})
    con.execute("CREATE TABLE bits AS FROM bits_frame")
    domain = Domain(
        tuple(Attribute(f"b{index}", "BIGINT", "categorical", labels=(0, 1)) for index in range(30))
    )
    queries = [MarginalQuery(attrs) for attrs in combinations(domain.names, 2)]
    counter = SqlCounter(DuckDBEngine(con), Fragment("bits"), domain, queries)
    assert counter.plan.strategy == "packed"
    for query, found in zip(queries, counter.count(queries), strict=True):
        one, other = (codes[:, domain.index(name)] for name in query.attrs)
        np.testing.assert_array_equal(found, np.bincount(2 * one + other, minlength=4).reshape(2, 2))


def test_private_counting_text_needs_nothing_of_one_database_only(con):
    """Portable subset: listed GROUP BY columns, count(*) as BIGINT, no GROUPING()."""
    texts = [
        passes.marginal(TABLE, [0, 2]).query,
        *(tally.query for _, tally in passes.scans(Fragment("source"), DOMAIN, [0, 1, 2, 3], decimal="")),
    ]
    for text in texts:
        assert "CAST(count(*) AS BIGINT) AS n" in text
        assert not re.search(r"GROUP BY ALL|GROUPING\(|DISTINCT|LIMIT|DOUBLE", text, flags=re.IGNORECASE)
