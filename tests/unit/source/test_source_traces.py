"""Windows over one unit's rows: what passes, what is refused, and brute force over units and their order."""

import contextlib
from collections import Counter

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsyn_sql.engines.catalog import DuckDBCatalog
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.engines.open_source import open_source
from dpsyn_sql.errors import SourceError
from dpsyn_sql.source import traces
from dpsyn_sql.source.query_check import check_query, check_view
from dpsyn_sql.source.query_words import TYPES_BESIDE_WINDOWS

PUBLIC = frozenset({("memory", "main", "pub")})
NEXT = "lead(x) OVER (PARTITION BY u ORDER BY ts)"

ADMITTED = [
    f"SELECT u, ts, {NEXT} AS n FROM t",
    f"SELECT *, {NEXT} AS n FROM t",
    f"SELECT U, {NEXT.replace('BY u', 'BY U')} - x AS step FROM t WHERE x > 0",
    f"SELECT * EXCLUDE (ts), {NEXT} AS n FROM t QUALIFY n IS NOT NULL",
    "SELECT u, x, row_number() OVER (PARTITION BY u ORDER BY ts DESC) AS r FROM t QUALIFY r <= 2",
    "SELECT u, row_number() OVER (PARTITION BY u) AS r, x FROM t",
    "SELECT u, b, lag(b, 1, '-') OVER (PARTITION BY u ORDER BY b) AS was FROM t",
    f"WITH w AS (SELECT u, x, {NEXT} AS n FROM t) SELECT u, n - x AS d FROM w WHERE n IS NOT NULL ORDER BY u",
    f"SELECT u, lag(n, 1) OVER (PARTITION BY u ORDER BY n) AS m FROM (SELECT u, {NEXT} AS n FROM t)",
    "SELECT u, count(*) OVER (PARTITION BY u) AS c, rank() OVER (PARTITION BY u ORDER BY ts) AS r FROM t",
    "SELECT u, dense_rank() OVER (PARTITION BY u ORDER BY b, x) AS r FROM t",
    "SELECT u, ts, count(b) OVER (PARTITION BY u ORDER BY ts ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS c FROM t",
    "SELECT u, count(*) OVER (PARTITION BY u ORDER BY ts RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS c FROM t",
    "SELECT u, first_value(b) OVER (PARTITION BY u ORDER BY ts) AS c, x FROM t",
    "SELECT u, last_value(b) OVER (PARTITION BY u ORDER BY ts ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED "
    "FOLLOWING) AS c, x FROM t",
    "SELECT u, nth_value(x, 2) OVER (PARTITION BY u ORDER BY b) AS c, ntile(2) OVER (PARTITION BY u ORDER BY ts) "
    "AS h, b FROM t",
    f"SELECT u, {NEXT} AS n FROM (SELECT u, ts, x FROM t JOIN pub ON k >= x)",
    f"SELECT u, {NEXT} AS n FROM (SELECT u, 1 AS ts, x FROM t UNION ALL SELECT u, 2, x FROM t)",
    f"SELECT u, CASE WHEN {NEXT} > x THEN b END AS up FROM t AS z",
    f"SELECT u, lower({NEXT.replace('lead(x)', 'lead(b)')}) AS n, b FROM (FROM t)",
]

OTHER_PARTITION = "without PARTITION BY u"
LOST = "does not reach the result"
REFUSED = [
    (OTHER_PARTITION, "SELECT u, lead(x) OVER (PARTITION BY ts ORDER BY u) AS n FROM t"),
    (OTHER_PARTITION, "SELECT u, lead(x) OVER (ORDER BY u) AS n FROM t"),
    (OTHER_PARTITION, "SELECT u, lead(x) OVER () AS n FROM t"),
    (OTHER_PARTITION, "SELECT u, lead(x) OVER (PARTITION BY u, ts) AS n FROM t"),
    (OTHER_PARTITION, "SELECT u, lead(x) OVER (PARTITION BY t.u) AS n FROM t"),
    (OTHER_PARTITION, "SELECT u, lead(x) OVER (PARTITION BY lower(u)) AS n FROM t"),
    (OTHER_PARTITION, f"SELECT u, {NEXT} AS n, rank() OVER (ORDER BY x) AS r FROM t"),
    (OTHER_PARTITION, "SELECT u, n FROM (SELECT u, x AS n, count(*) OVER () AS c FROM t)"),
    (LOST, "SELECT b AS u, lead(x) OVER (PARTITION BY u) AS n FROM t"),
    (LOST, "SELECT coalesce(u, 'none') AS u, lead(x) OVER (PARTITION BY u) AS n FROM t"),
    (LOST, "SELECT CAST(u AS VARCHAR) AS u, lead(x) OVER (PARTITION BY u) AS n FROM t"),
    (LOST, f"SELECT n AS u FROM (SELECT u, {NEXT} AS n FROM t)"),
    (LOST, f"SELECT b AS u, n FROM (SELECT u, b, {NEXT} AS n FROM t)"),
    (LOST, f"SELECT x AS n FROM (SELECT *, {NEXT} AS n FROM t)"),
    (LOST, f"SELECT * REPLACE (b AS u), {NEXT} AS n FROM t"),
    (LOST, f"SELECT * RENAME (u AS v, b AS u), {NEXT} AS n FROM t"),
    (LOST, f"SELECT * EXCLUDE (u), b AS u, {NEXT} AS n FROM t"),
    (LOST, f"SELECT u, n FROM (SELECT u, {NEXT} AS n FROM t) AS q(n, u)"),
    (LOST, f"WITH q(n, u) AS (SELECT u, {NEXT} AS n FROM t) SELECT u, n FROM q"),
    (LOST, f"SELECT u, {NEXT} AS n FROM t UNION ALL SELECT b, x FROM t"),
    (LOST, f"SELECT b AS u, x AS n FROM t UNION ALL SELECT u, {NEXT} FROM t"),
    (LOST, f"SELECT u, n FROM (SELECT u, {NEXT} AS n FROM t) JOIN pub ON k = n"),
    (LOST, f"SELECT u, {NEXT} AS n FROM t JOIN pub ON k = x"),
    (LOST, f"SELECT u, {NEXT} FROM t"),
    (LOST, f"SELECT u, u, {NEXT} AS n FROM t"),
    (LOST, f"SELECT u, n FROM (SELECT s.u, {NEXT} AS n FROM t)"),
    ("sum OVER", "SELECT u, sum(x) OVER (PARTITION BY u) AS s FROM t"),
    ("avg OVER", "SELECT u, avg(x) OVER (PARTITION BY u) AS s FROM t"),
    ("max OVER", "SELECT u, max(b) OVER (PARTITION BY u) AS s FROM t"),
    ("OVER a window", "SELECT u, list(x) OVER (PARTITION BY u) AS s FROM t"),
    ("OVER a window", "SELECT u, count(x) FILTER (WHERE x > 1) OVER (PARTITION BY u) AS s FROM t"),
    ("OVER a window", "SELECT u, lag(x IGNORE NULLS) OVER (PARTITION BY u) AS s FROM t"),
    ("OVER a window", "SELECT u, lead(x, 1 ORDER BY ts) OVER (PARTITION BY u) AS n FROM t"),
    ("DISTINCT", "SELECT u, count(DISTINCT x) OVER (PARTITION BY u) AS s FROM t"),
    ("EXCLUDE", "SELECT u, count(*) OVER (PARTITION BY u ORDER BY ts ROWS BETWEEN 1 PRECEDING AND CURRENT ROW "
     "EXCLUDE TIES) AS s FROM t"),
    ("WINDOW clause", "SELECT u, lead(x) OVER w AS n FROM t WINDOW w AS (PARTITION BY u)"),
    ("subquery", "SELECT u, lead(x) OVER (PARTITION BY u ORDER BY (SELECT max(k) FROM pub)) AS n FROM t"),
    ("an aggregate", "SELECT u, lead(max(x)) OVER (PARTITION BY u) AS n FROM t"),
    ("an aggregate", "SELECT u, count(*) AS n FROM t"),
    ("random", "SELECT u, lead(random()) OVER (PARTITION BY u) AS n FROM t"),
    ("rowid", "SELECT u, lead(x) OVER (PARTITION BY u ORDER BY rowid) AS n FROM t"),
    ("window function in QUALIFY", "SELECT u FROM t QUALIFY count(*) OVER (PARTITION BY u) > 1"),
    ("QUALIFY", "SELECT u FROM t QUALIFY x > 1"),
    ("a window function", f"SELECT u, list_transform([x], lambda e: {NEXT}) AS n FROM t"),
    ("a window function", f"SELECT u, list_transform([b], lambda u: {NEXT}) AS n FROM t"),
    ("a window function", f"SELECT u, [{NEXT} FOR u IN [b]] AS n FROM t"),
    ("a window function", "SELECT u FROM t ORDER BY count(*) OVER (PARTITION BY u)"),
    ("a window function", "SELECT u FROM t JOIN pub ON k = rank() OVER (PARTITION BY u)"),
    ("GROUP BY", f"SELECT u, {NEXT} AS n FROM t GROUP BY ALL"),
    ("DISTINCT", f"SELECT DISTINCT u, {NEXT} AS n FROM t"),
    ("LIMIT", f"SELECT u FROM (SELECT u, {NEXT} AS n FROM t LIMIT 2)"),
]  # fmt: skip

TYPES = ["BIT", "bitstring", '"bit"', "BIT[]", "VARIANT", "mine", "mine[]", "JSON"]


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("query", [
    f"SELECT u, {NEXT} AS n, CAST(x AS {{kind}}) AS shown FROM t",
    f"SELECT u, n, TRY_CAST(n AS {{kind}}) AS shown FROM (SELECT u, {NEXT} AS n FROM t)",
    "SELECT u, lead(CAST(x AS {kind})) OVER (PARTITION BY u ORDER BY ts) AS n FROM t",
])  # fmt: skip
def test_a_cast_that_tells_tied_rows_apart_is_refused_beside_a_window(catalog, query, kind):
    with pytest.raises(SourceError, match="beside a window function"):
        check_query(query.format(kind=kind), catalog, PUBLIC, unit="u")
    plain = (
        query.format(kind=kind)
        .replace(NEXT, "x")
        .replace("lead(", "(")
        .replace(" OVER (PARTITION BY u ORDER BY ts)", "")
    )
    check_query(plain, catalog, PUBLIC, unit="u")


def test_no_type_beside_a_window_shows_which_nan_a_double_is():
    """Every type that a cast may name there; two NaNs are one in every order, and have one text."""
    con = duckdb.connect()
    bits = "0" + 11 * "1" + "1"
    two = [f"('{bits}{end:051b}'::BIT::DOUBLE)" for end in (1, 2)]
    told = []
    for kind in TYPES_BESIDE_WINDOWS:
        for value in ("{}", "[{}]", "{{'x': {}}}"):
            shown = []
            for one in two:
                with contextlib.suppress(duckdb.Error):
                    text = f"SELECT CAST(CAST({value.format(one)} AS {kind}) AS VARCHAR)"
                    shown.append(con.execute(text).fetchone())
            assert len(set(shown)) <= 1
            told += shown
    for kind in (one for one in TYPES_BESIDE_WINDOWS if " " not in one):  # nobody can give it to another type
        with pytest.raises(duckdb.CatalogException):
            con.execute(f'CREATE TYPE "{kind}" AS BIT')
    assert told
    shown = con.execute(f"SELECT {two[0]}::BIT::VARCHAR, {two[1]}::BIT::VARCHAR").fetchone()
    assert len(set(shown)) == 2


@pytest.mark.parametrize("value", ["1::INTEGER", "[1::INTEGER]"])
def test_a_variant_is_refused_beside_a_window(value):
    con = duckdb.connect()
    con.execute(f"CREATE TABLE v AS SELECT 'ann' AS u, {{'x': ({value})::VARIANT}} AS f")
    query = "SELECT u, row_number() OVER (PARTITION BY u) AS n FROM v"
    con.execute(f"CREATE VIEW of_v AS {query}")
    for source in (query, "of_v"):
        with pytest.raises(SourceError, match="is a VARIANT"):
            open_source(con, source, unit="u")
    open_source(con, "SELECT u FROM v", unit="u").close()


UNITS = ["ann", "Ann", "bob", "'", None]
ROWS = st.lists(
    st.tuples(
        st.sampled_from(UNITS),
        st.sampled_from([1, 1, 2, None]),
        st.sampled_from([0.0, -0.0, 1.5, None, float("nan")]),
        st.sampled_from(["a", "A", "NULL", None]),
    ),
    max_size=12,
)


@pytest.fixture(scope="module")
def con():
    made = duckdb.connect()
    made.execute(
        "CREATE TABLE t (u VARCHAR, ts INTEGER, x DOUBLE, b VARCHAR, s STRUCT(u INTEGER));"
        "CREATE TABLE pub (k INTEGER); INSERT INTO pub VALUES (1), (2);"
        f"CREATE VIEW steps AS SELECT u, {NEXT} AS n FROM t;"
        "CREATE VIEW mixed AS SELECT u, lead(x) OVER (PARTITION BY b) AS n FROM t;"
    )
    yield made
    made.close()


@pytest.fixture(scope="module")
def catalog(con):
    return DuckDBCatalog(DuckDBEngine(con.cursor()))


@pytest.mark.parametrize(("words", "query"), REFUSED)
def test_any_other_window_is_refused_and_named(catalog, words, query):
    with pytest.raises(SourceError, match=words):
        check_query(query, catalog, PUBLIC, unit="u")


@pytest.mark.parametrize("query", ADMITTED)
def test_windows_need_the_unit_that_they_partition_by(catalog, query):
    check_query(query, catalog, PUBLIC, unit="U")
    for unit in (None, "b"):
        with pytest.raises(SourceError, match=r"window|QUALIFY|PARTITION BY b"):
            check_query(query, catalog, PUBLIC, unit=unit)


def test_a_view_is_judged_by_its_definition(catalog):
    check_query("SELECT u, n FROM steps", catalog, unit="u")
    check_view(catalog.find(("steps",)), catalog, unit="u")
    for refused in ("SELECT * FROM mixed", "SELECT n AS u FROM steps"):
        with pytest.raises(SourceError):
            check_query(refused, catalog, unit="u")
    with pytest.raises(SourceError, match="a window function"):
        check_query("FROM steps", catalog)


def fill(con, rows):
    con.execute("DELETE FROM t")
    if rows:
        one = "(?, ?, ?, ?, NULL)"
        values = [value for row in rows for value in row]
        con.execute(f"INSERT INTO t VALUES {', '.join([one] * len(rows))}", values)


def results(con, sql):
    """The rows of a unit, with the place of the rows of the table left out."""
    return Counter(map(repr, con.execute(f"SELECT * FROM (\n{sql}\n) WHERE u IS NOT NULL").fetchall()))


@pytest.fixture(scope="module")
def admitted(catalog):
    return [check_query(query, catalog, PUBLIC, unit="u").sql for query in ADMITTED]


TABLES = {
    "rows": ROWS,
    "collation": st.sampled_from(["", "nocase"]),
    "shuffle": st.randoms(use_true_random=False),
}


@settings(max_examples=5)
@given(**TABLES)
def test_a_units_result_depends_on_its_own_rows_and_not_on_their_place(con, admitted, **tables):
    check_units(con, admitted, **tables)


@pytest.mark.slow
@settings(max_examples=100)
@given(**TABLES)
def test_results_of_units_in_many_tables_depend_on_their_own_rows(con, admitted, **tables):
    check_units(con, admitted, **tables)


def check_units(con, admitted, rows, collation, shuffle):
    con.execute(f"SET default_collation = '{collation}'")
    try:
        fill(con, rows)
        together = [results(con, sql) for sql in admitted]
        moved = shuffle.sample(rows, len(rows))
        fill(con, moved)
        assert [results(con, sql) for sql in admitted] == together
        alone = [Counter() for _ in admitted]
        for unit in {row[0] for row in rows}:
            fill(con, [row for row in moved if row[0] == unit])
            for sql, found in zip(admitted, alone, strict=True):
                found += results(con, sql)
        assert alone == together
    finally:
        con.execute("RESET default_collation")


def test_ties_and_merged_units_do_change_rows_of_others_without_what_the_check_writes(con):
    """So the two tests of the engine's reading below guard something that happens."""

    def found(rows):
        fill(con, rows)
        return results(con, f"SELECT u, x, {NEXT} AS n FROM t")

    tied = [("bob", 1, 1.0, "a"), ("bob", 1, 2.0, "a")]
    assert found(tied) != found(tied[::-1])
    con.execute("SET default_collation = 'nocase'")
    try:
        cased = [("ann", 1, 1.0, "a"), ("Ann", 2, 2.0, "a")]
        assert found(cased) != found(cased[:1]) + found(cased[1:])
    finally:
        con.execute("RESET default_collation")


def test_an_order_left_open_is_found_in_the_engines_own_reading(catalog, monkeypatch):
    monkeypatch.setattr(traces, "WHOLE_ROW", ())
    with pytest.raises(SourceError, match="with ties in its order"):
        check_query(f"SELECT u, {NEXT} AS n FROM t", catalog, unit="u")


def test_a_partition_other_than_by_bytes_is_found_in_the_engines_own_reading(catalog, monkeypatch):
    whole = traces.settle

    def loose(window, tokens, stem):
        whole(window, tokens, stem)
        tokens[f"{stem}_unit_u"] = '"u"'

    monkeypatch.setattr(traces, "settle", loose)
    with pytest.raises(SourceError, match="whose partitions are not those of u"):
        check_query(f"SELECT u, {NEXT} AS n FROM t", catalog, unit="u")


def test_a_macro_of_that_name_is_no_window_function(con):
    own = duckdb.connect()
    own.execute("CREATE TABLE t (u VARCHAR, x INTEGER); CREATE MACRO lead(v) AS (SELECT max(x) FROM t)")
    with pytest.raises(SourceError):
        open_source(own, "SELECT u, lead(x) OVER (PARTITION BY u) AS n FROM t", unit="u").close()
    own.close()


NAMED = "lead(x) OVER (PARTITION BY a_1 ORDER BY ts) AS n"


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT ts AS a, x AS a, a_1, {NAMED} FROM t",
        f"SELECT x AS a, * EXCLUDE (x), {NAMED} FROM (SELECT a, a_1, x, ts FROM t)",
        f"SELECT a_1, n FROM (SELECT ts AS a, x AS a, a_1, {NAMED} FROM t)",
        f"WITH w AS (SELECT ts AS a, x AS a, a_1, {NAMED} FROM t) SELECT a_1, n FROM w",
        f"SELECT n AS a, n AS a, a_1 FROM (SELECT a_1, {NAMED} FROM t)",
    ],
)
def test_a_name_that_the_database_makes_is_no_unit(query):
    """Of two columns named a the second becomes a_1, and the column a_1 something else."""
    own = duckdb.connect()
    own.execute(
        "CREATE TABLE t (a_1 VARCHAR, a INTEGER, x VARCHAR, ts INTEGER); INSERT INTO t VALUES ('ann', 1, 'bob', 2)"
    )
    assert own.execute(f"SELECT a_1 FROM ({query})").fetchone() != ("ann",)
    known = DuckDBCatalog(DuckDBEngine(own.cursor()))
    with pytest.raises(SourceError, match=LOST):
        check_query(query, known, unit="a_1")
    first = check_query(f"SELECT a_1, x AS a, ts AS a, {NAMED} FROM t", known, unit="a_1")
    assert own.execute(f"SELECT a_1 FROM ({first.sql})").fetchone() == ("ann",)
    own.close()


def test_a_column_that_the_whole_row_leaves_out_breaks_no_ties(tmp_path):
    """Which of two equal rows comes first can follow from their places, and filename tells them apart."""
    own = duckdb.connect()
    for name in ("one", "two"):
        own.execute(f"COPY (SELECT 'ann' AS u, 1 AS x) TO '{tmp_path}/{name}.parquet'")
    files = f"'{tmp_path}/*.parquet'"
    for query in (
        f"SELECT u, lead(filename) OVER (PARTITION BY u) AS n FROM {files}",
        f"SELECT u, filename AS f, row_number() OVER (PARTITION BY u) AS n FROM {files}",
        f'SELECT u, row_number() OVER (PARTITION BY u) AS n FROM {files} AS q QUALIFY "q"."FileName" > \'b\'',
    ):
        with pytest.raises(SourceError, match="with ties in its order"):
            open_source(own, query, unit="u").close()
    named = f"SELECT u, lead(f) OVER (PARTITION BY u) AS n FROM (SELECT *, filename AS f FROM {files})"
    open_source(own, named, unit="u").close()
    own.close()


def test_a_source_of_steps_opens_with_its_columns(con):
    with open_source(con, f"SELECT u, {NEXT} AS n FROM t", unit="u") as session:
        assert [column.name for column in session.relation.columns] == ["u", "n"]
        assert "dpsyn_" not in session.relation.sql
    with pytest.raises(SourceError, match="a window function"):
        open_source(con, f"SELECT u, {NEXT} AS n FROM t")
