"""Every kind of column by the law of codes and values; and a kind of somebody else, in one file."""

from datetime import date, datetime, timedelta
from decimal import Decimal

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.toy_roman import LAST, roman

import dpsyn_sql
from dpsyn_sql.attributes.attribute import Attribute
from dpsyn_sql.attributes.file import read_domain
from dpsyn_sql.attributes.kinds import KINDS
from dpsyn_sql.errors import DomainError, InternalError
from dpsyn_sql.source.relation import Column
from dpsyn_sql.sqltext.fragments import Fragment

QUICK = settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
TEXTS = st.lists(st.text("ab'\"*é ", max_size=4), min_size=1, max_size=6, unique=True)
SPANS = st.lists(st.integers(-(10**6), 10**6), min_size=2, max_size=9, unique=True).map(sorted)


@pytest.fixture(autouse=True)
def roman_numerals(monkeypatch):
    """The line of the registry."""
    monkeypatch.setitem(KINDS, "roman", "support.toy_roman")


def made(entry, sql_type="VARCHAR"):
    """The attribute of one declared column."""
    domain = read_domain({"columns": {"v": entry}})
    return domain.to_shape([Column("v", sql_type)], discover=False).measured[0]


def labels(texts, *, other, nullable):
    return Attribute("v", "VARCHAR", "categorical", tuple(texts), other=other, nullable=nullable)


ATTRIBUTES = st.one_of(
    st.builds(labels, TEXTS, other=st.booleans(), nullable=st.booleans()),
    st.builds(
        lambda edges, nullable: Attribute("v", "BIGINT", "numeric", edges=tuple(edges), nullable=nullable),
        SPANS,
        st.booleans(),
    ),
    st.builds(
        lambda edges: Attribute("v", "DOUBLE", "numeric", edges=tuple(edge / 7 for edge in edges)), SPANS
    ),
    st.builds(
        lambda edges: Attribute(
            "v", "DECIMAL(12,2)", "numeric", edges=tuple(Decimal(edge) / 100 for edge in edges), nullable=True
        ),
        SPANS,
    ),
    st.builds(
        lambda days: Attribute(
            "v", "DATE", "temporal", edges=tuple(date.fromordinal(730_000 + day // 8) for day in days)
        ),
        SPANS.filter(lambda days: len({day // 8 for day in days}) == len(days)),
    ),
    st.builds(
        lambda seconds: Attribute(
            "v",
            "TIMESTAMP",
            "temporal",
            edges=tuple(datetime(2000, 1, 1) + timedelta(seconds=n) for n in seconds),
            nullable=True,
        ),
        st.lists(st.integers(0, 10**9), min_size=2, max_size=9, unique=True).map(sorted),
    ),
    st.builds(lambda bins: made({"type": "roman", "bins": bins, "nullable": True}), st.integers(1, 500)),
)


@QUICK
@given(ATTRIBUTES, st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=4))
def test_a_written_value_has_the_code_that_it_is_written_for(attribute, draws):
    con = duckdb.connect()
    value = attribute.value("c", Fragment("b")).values["v"]
    again = attribute.code("v")
    assert not again.joins and len(again.named) == 1
    codes = f"unnest(range({attribute.size}))"
    con.execute(
        f"CREATE TABLE drawn AS SELECT {codes} AS c, b FROM (SELECT unnest(?::UBIGINT[]) AS b)", [draws]
    )
    query = f"SELECT c, {again.code} AS again FROM (SELECT c, {value} AS v FROM drawn)"
    assert all(code == back for code, back in con.execute(query).fetchall())


def test_a_kind_without_codes_is_refused():
    for form in ("key", "no such kind"):
        with pytest.raises(InternalError, match="has no codes"):
            Attribute("v", "VARCHAR", "categorical", ("a",), form=form).code("v")


def test_a_roman_numeral_is_a_kind_of_column():
    attribute, con = made({"type": "roman", "bins": 10, "nullable": True}), duckdb.connect()
    con.execute(
        "CREATE TABLE t AS SELECT unnest(?::VARCHAR[]) AS v", [[roman(n) for n in range(1, LAST + 1)]]
    )
    codes = [code for (code,) in con.execute(f"SELECT {attribute.code('v').code} FROM t").fetchall()]
    assert codes == sorted(codes) and set(codes) == set(range(10))
    outside = [("IIII",), ("",), ("x",), (None,)]
    con.execute("CREATE TABLE u (v VARCHAR)")
    con.executemany("INSERT INTO u VALUES (?)", outside)
    assert con.execute(f"SELECT {attribute.code('v').code} FROM u").fetchall() == [(10,), (10,), (10,), (11,)]
    with pytest.raises(DomainError, match="Roman numerals are text"):
        made({"type": "roman", "bins": 3}, "BIGINT")


@pytest.mark.filterwarnings("ignore:The source is a database in memory")
def test_a_table_with_roman_numerals_is_released(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    con = duckdb.connect()
    reigns = [(roman(1 + 37 * n % 2000), n % 2) for n in range(3000)]
    years, kings = zip(*reigns, strict=True)
    read = "unnest(?::VARCHAR[]) AS year, unnest(?::INTEGER[]) AS king"
    con.execute(f"CREATE TABLE kings AS SELECT {read}", [list(years), list(kings)])
    domain = {
        "columns": {
            "year": {"type": "roman", "bins": 4},
            "king": {"type": "categorical", "categories": [0, 1], "other": False},
        }
    }
    dpsyn_sql.release(con, "kings", unit="row", domain=domain, epsilon=5.0, seed=1)
    years = [year for (year,) in con.execute("SELECT year FROM kings_synthetic").fetchall()]
    numerals = {roman(number) for number in range(1, LAST + 1)}
    assert len(set(years)) > 100 and sum(year in numerals for year in years) > 0.95 * len(years)
    early = {roman(number) for number in range(1, 2000)}
    assert sum(year in early for year in years) > 0.9 * len(years)
