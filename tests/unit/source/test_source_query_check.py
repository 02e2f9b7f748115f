"""The check of queries: its words, what the database's own parser adds, and what the owner answers for.

What is refused and what passes is listed in tests/e2e/hostile_queries.py.
"""

from collections import Counter

import duckdb
import pytest

from dpsyn_sql.engines.catalog import DuckDBCatalog
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.errors import SourceError
from dpsyn_sql.source import query_check
from dpsyn_sql.source.expression_check import check_expression
from dpsyn_sql.source.query_check import check_query
from dpsyn_sql.source.query_words import ENGINE_CLASSES, ENGINE_CLAUSES, ROWWISE_MACROS, ZONED_FUNCTIONS

SETUP = """
CREATE TABLE t (a INTEGER, b VARCHAR, d DATE);
INSERT INTO t VALUES (1, 'x', DATE '2020-01-02'), (2, 'y', NULL), (NULL, NULL, NULL), (2, 'y', NULL);
CREATE TABLE u (a INTEGER, c VARCHAR);
INSERT INTO u VALUES (1, 'one'), (2, 'two');
CREATE TABLE pub (k INTEGER, label VARCHAR);
INSERT INTO pub VALUES (1, 'eins'), (2, 'zwei'), (2, 'deux');
CREATE VIEW mixed AS SELECT sum(a) AS s FROM t;
CREATE MACRO total() AS (SELECT sum(a) FROM t);
CREATE MACRO harmless(v) AS v + 1;
CREATE MACRO lower(v) AS (SELECT max(b) FROM t);
"""


@pytest.fixture(scope="module")
def con():
    connection = duckdb.connect()
    connection.execute(SETUP)
    yield connection
    connection.close()


@pytest.fixture(scope="module")
def catalog(con):
    return DuckDBCatalog(DuckDBEngine(con.cursor()))


PUBLIC = frozenset({("memory", "main", "pub")})


@pytest.mark.parametrize(
    ("query", "word"),
    [
        ("SELECT sum(a) FROM t", "aggregate"),
        ("SELECT total() FROM t", "total"),
        ("SELECT a FROM t; SELECT 1", "several statements"),
        ("SELECT k FROM pub", "public_tables"),
    ],
)
def test_refusals_name_the_construct_and_the_way_on(catalog, query, word):
    with pytest.raises(SourceError, match=word) as caught:
        check_query(query, catalog, PUBLIC)
    if word not in ("several statements", "public_tables"):
        assert "trust_query=True" in str(caught.value)


def test_names_are_written_in_full_and_recorded(catalog):
    checked = check_query("SELECT a, label FROM T JOIN pub ON k = a", catalog, PUBLIC)
    assert '"memory"."main"."t"' in checked.sql and '"memory"."main"."pub"' in checked.sql
    assert checked.relations == (("memory", "main", "t"), ("memory", "main", "pub"))
    assert checked.public == (("memory", "main", "pub"),)
    assert checked.multiplies


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("SELECT sum(a) OVER () FROM t", {"WINDOW"}),
        ("SELECT (SELECT 1)", {"SUBQUERY"}),
        ("SELECT a FROM t WHERE EXISTS (FROM t)", {"SUBQUERY"}),
        ("SELECT $x", {"PARAMETER"}),
        ("SELECT list_transform([1], lambda x: (SELECT 1))", {"SUBQUERY"}),
        ("SELECT list_transform([1], lambda x: lag(x) OVER ())", {"WINDOW_IN_A_LAMBDA"}),
        ("SELECT [x FOR x IN [1] IF lag(x) OVER ()]", {"WINDOW_IN_A_LAMBDA"}),
        ("SELECT b -> 'x' FROM t", {"ARROW"}),
        ("SELECT grouping(a) FROM t", {"GROUPING_FUNCTION"}),
        ("SELECT #1 FROM t", {"POSITIONAL_REFERENCE"}),
    ],
)
def test_the_databases_own_parser_is_asked_too(catalog, text, kinds):
    assert catalog.syntax(text).classes & kinds == kinds
    assert not kinds & ENGINE_CLASSES


def test_the_functions_of_an_allowed_query_are_what_the_database_sees(catalog):
    syntax = catalog.syntax("SELECT lower(b), a + 1, random() FROM t WHERE b LIKE 'x'")
    assert {"lower", "+", "random", "~~"} <= syntax.functions
    assert catalog.rowwise("+") and catalog.rowwise("UPPER")
    for refused in ("lower", "random", "sum", "now", "no_such_function", "harmless", "total", "today"):
        assert not catalog.rowwise(refused)
    assert all(catalog.rowwise(name) for name in ZONED_FUNCTIONS | (ROWWISE_MACROS - {"if"}))


@pytest.mark.parametrize(
    ("argument", "function", "allowed"),
    [
        ("'sum'", "list_sum", True),
        ("'Any_Value'", "list_any_value", True),
        ("'histogram'", "list_histogram", False),
        ("'reservoir_quantile', 0.5", "list_reservoir_quantile", False),
        ("b", "list_aggregate without a name", False),
        ("'su' || 'm'", "list_aggregate without a name", False),
    ],
)
def test_an_aggregate_of_a_list_is_judged_by_its_name(catalog, argument, function, allowed):
    assert function in catalog.syntax(f"SELECT list_aggregate([a], {argument}) FROM t").functions
    assert catalog.rowwise(function) == allowed


# The printer of the parser writes these texts without their quotes, so that what follows would run.
PRINTED_RAW = [
    "SELECT ts_or_ds_add(d, 1, 'day AS x FROM memory.main.t LIMIT 1 --') FROM t",
    "SELECT ts_or_ds_add(d, 1, 'day AS x FROM memory.main.u --') FROM t",
    "SELECT datetime_sub(d, 1, 'day AS x FROM memory.main.t GROUP BY ALL --') FROM t",
    "SELECT object_insert(b, 'z := 1) AS x FROM memory.main.t UNION ALL SELECT b FROM memory.main.t --', 1) FROM t",
    "SELECT a FROM t WHERE dynamic_identifier('t.rowid') < 2",
    "SELECT time_bucket(INTERVAL 1 DAY, d, 'current_date') AS x FROM t",
]


@pytest.mark.parametrize("query", PRINTED_RAW)
@pytest.mark.parametrize("root", [True, False])
def test_a_quoted_text_never_runs(catalog, monkeypatch, query, root):
    """Neither check needs the other: with the first one away, the database's reading decides."""
    if not root:
        monkeypatch.setattr(query_check, "refused_construct", lambda node: None)
    if root or "UNION ALL" not in query:
        with pytest.raises(SourceError):
            check_query(query, catalog, PUBLIC)
    else:
        assert check_query(query, catalog, PUBLIC).multiplies


@pytest.mark.parametrize(
    ("text", "clause"),
    [
        ("SELECT a FROM t LIMIT 1", "LIMIT_MODIFIER"),
        ("SELECT DISTINCT a FROM t", "DISTINCT_MODIFIER"),
        ("SELECT a FROM t GROUP BY a", "GROUP_EXPRESSIONS"),
        ("SELECT a FROM t GROUP BY ALL", "GROUP BY ALL"),
        ("SELECT a FROM t HAVING true", "HAVING"),
        ("SELECT a FROM t QUALIFY true", "QUALIFY"),
        ("SELECT a FROM t USING SAMPLE 1", "SAMPLE"),
        ("SELECT a FROM t TABLESAMPLE 1%", "SAMPLE"),
        ("SELECT a FROM t UNION SELECT a FROM u", "UNION"),
        ("SELECT a FROM t EXCEPT ALL SELECT a FROM u", "EXCEPT ALL"),
        ("SELECT a FROM t RIGHT JOIN pub ON k = a", "RIGHT REGULAR"),
        ("SELECT a FROM t POSITIONAL JOIN pub", "INNER POSITIONAL"),
        ("SELECT a FROM t NATURAL JOIN pub", "INNER NATURAL"),
        ("SELECT a FROM t, range(3)", "TABLE_FUNCTION range"),
        ("WITH RECURSIVE r AS (SELECT 1 UNION ALL FROM r) FROM r", "RECURSIVE_CTE_NODE"),
    ],
)
def test_the_databases_own_parser_tells_clauses(catalog, text, clause):
    assert clause in catalog.syntax(text).clauses - ENGINE_CLAUSES


def test_the_databases_own_parser_tells_columns_that_no_table_has(catalog):
    for column in ("rowid", "t.rowid", '"ROWID"', "filename, file_row_number"):
        assert "POSITION_OF_A_ROW_AMONG_THE_OTHERS" in catalog.syntax(f"SELECT {column} FROM t").classes
    assert "TIME_OF_THE_QUERY" in catalog.syntax('SELECT "current_date" FROM t').classes
    assert catalog.syntax("SELECT t.current_date, a AS rowid_of_mine FROM t").classes == {"COLUMN_REF"}


def test_the_databases_own_parser_tells_what_meets_in_a_join(catalog):
    text = (
        "WITH c AS MATERIALIZED (FROM t) SELECT 1 FROM (FROM c, pub) LEFT JOIN x.y.z ON true UNION ALL FROM c"
    )
    t, pub, z = ("t",), ("pub",), ("x", "y", "z")
    syntax = catalog.syntax(text)
    assert syntax.tables == {t, pub, z}
    assert {(join.left, join.right, join.kind) for join in syntax.joins} == {
        (frozenset({t}), frozenset({pub}), "INNER CROSS"),
        (frozenset({t, pub}), frozenset({z}), "LEFT REGULAR"),
        (frozenset({t, pub, z}), frozenset({t}), "UNION"),
    }


TRUSTED = [
    "SELECT b, sum(a) AS s FROM t GROUP BY b",
    "SELECT DISTINCT a FROM t",
    "SELECT a, row_number() OVER (ORDER BY a) AS r FROM t",
    "WITH t AS (SELECT a FROM t LIMIT 2) SELECT a FROM t",
    "SELECT s FROM mixed",
    "SELECT a FROM t WHERE a IN (SELECT a FROM u)",
    "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 3) SELECT n FROM r, u",
]


@pytest.mark.parametrize("query", TRUSTED)
def test_the_owner_may_answer_for_a_query(con, catalog, query):
    checked = check_query(query, catalog, trusted=True)
    expected = con.cursor().execute(query).fetchall()
    assert results(con.cursor(), checked.sql) == Counter(map(repr, expected))
    assert '"memory"."main".' in checked.sql and checked.relations


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a FROM t; DROP TABLE t",
        "WITH c AS (DELETE FROM t RETURNING a) SELECT a FROM c",
        "SELECT a INTO z FROM t",
        "SELECT a FROM missing",
        "SELECT a FROM t WHERE (",
        "",
        "  ",
        "DROP TABLE t",
        "COPY t TO 'x.csv'",
    ],
)
def test_trust_covers_one_select_over_known_tables_only(catalog, query):
    with pytest.raises(SourceError):
        check_query(query, catalog, trusted=True)


def results(con, sql):
    return Counter(map(repr, con.execute(f"FROM (\n{sql}\n)").fetchall()))


@pytest.mark.parametrize(
    "text",
    [
        "ts_or_ds_add(d, 1, 'day, (SELECT 1) --')",
        "ts_or_ds_add(d, 1, 'day FROM memory.main.t --')",
        "object_insert(b, 'z := 1) FROM memory.main.t --', 1)",
        "object_insert(b, 'z := 1), (2 --', 1)",
        "dynamic_identifier('rowid')",
        "datetime(d)",
    ],
)
def test_an_owners_expression_stays_one_expression(catalog, text):
    assert check_expression("ts_or_ds_add(d, 1, 'day')", ["d", "b"], catalog).fault == ""
    assert check_expression(text, ["d", "b"], catalog).fault
