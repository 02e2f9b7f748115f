"""Every kind of column by the law of codes and values; and a kind of somebody else, in one file."""

from datetime import date, datetime, time, timedelta
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


def integers(values, *, nullable):
    return Attribute("v", "INTEGER", "categorical", tuple(values), other=True, nullable=nullable)


EDGES = {
    "BIGINT": int,
    "DECIMAL(12,2)": lambda n: Decimal(n) / 100,
    "DOUBLE": lambda n: n / 7,
    "FLOAT": lambda n: n / 4,
    "DATE": lambda n: date.fromordinal(730_000 + n // 8),
    "TIME": lambda n: time(*divmod(n // 10**5 % 1440, 60)),
    "TIMESTAMP": lambda n: datetime(2000, 1, 1) + timedelta(seconds=n),
}


def bins(sql_type, cuts, *, nullable):
    edges = tuple(sorted({EDGES[sql_type](cut) for cut in cuts}))
    edges = edges if len(edges) > 1 else tuple(map(EDGES[sql_type], (0, 10**5)))
    kind = "temporal" if sql_type in ("DATE", "TIME", "TIMESTAMP") else "numeric"
    return Attribute("v", sql_type, kind, edges=edges, nullable=nullable)


ATTRIBUTES = st.one_of(
    st.builds(labels, TEXTS, other=st.booleans(), nullable=st.booleans()),
    st.builds(integers, SPANS, nullable=st.booleans()),
    st.builds(bins, st.sampled_from(sorted(EDGES)), SPANS, nullable=st.booleans()),
    st.builds(lambda bins: made({"type": "roman", "bins": bins, "nullable": True}), st.integers(1, 500)),
)


def codes_of(con, attribute, query):
    """The codes of the values ``v`` of a query."""
    coded = attribute.code("v")
    assert not coded.joins and len(coded.named) == 1
    return [code for (code,) in con.execute(f"SELECT {coded.code} FROM ({query}) ORDER BY place").fetchall()]


@QUICK
@given(ATTRIBUTES, st.lists(st.integers(0, 2**64 - 1), max_size=3))
def test_a_written_value_has_the_code_that_it_is_written_for(attribute, draws):
    """Also at the ends of a bin. Only ``__other__`` of a column that is not text is written as NULL, or as a
    label."""
    con, draws = duckdb.connect(), [0, 2**64 - 1, *draws]
    value = attribute.value("c", Fragment("b")).values["v"]
    drawn = f"(SELECT unnest(range({attribute.size})) AS c), (SELECT unnest({draws}::UBIGINT[]) AS b)"
    query = f"SELECT {value} AS v, row_number() OVER (ORDER BY c, b) AS place FROM {drawn}"
    back = codes_of(con, attribute, query)
    wanted = [code for code in range(attribute.size) for _ in draws]
    invented = attribute.other_code if attribute.sql_type == "INTEGER" else None
    assert all(code in (again, invented) for code, again in zip(wanted, back, strict=True))


@QUICK
@given(ATTRIBUTES)
def test_codes_ascend_with_values_and_a_missing_value_has_its_own(attribute):
    con, cuts = duckdb.connect(), [str(cut) for cut in attribute.edges]
    missing = ["NULL", *(["CAST('NaN' AS DOUBLE)"] if attribute.type.family == "float" else [])]
    queries = (f"SELECT CAST({text} AS {attribute.sql_type}) AS v, 0 AS place" for text in missing)
    nulls = [code for query in queries for code in codes_of(con, attribute, query)]
    last = attribute.size - 1
    assert set(nulls) == {last if attribute.nullable or attribute.other else 0}
    listed = f"SELECT CAST(unnest({cuts}) AS {attribute.sql_type}) AS v, unnest(range({len(cuts)})) AS place"
    if cuts:
        assert codes_of(con, attribute, listed) == [*range(len(cuts) - 1), len(cuts) - 2]


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
