"""The check of queries: a hostile list, a friendly list, and brute force over both neighbours."""

from collections import Counter

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
CREATE VIEW plain AS SELECT a + 1 AS a1, b FROM t WHERE a IS NOT NULL;
CREATE VIEW renamed (x, y) AS SELECT a, b FROM t;
CREATE VIEW nested AS SELECT x FROM renamed UNION ALL SELECT a1 FROM plain;
CREATE VIEW mixed AS SELECT sum(a) AS s FROM t;
CREATE VIEW hidden AS SELECT s FROM mixed;
CREATE VIEW ranked AS SELECT row_number() OVER (ORDER BY a) AS r FROM t;
CREATE MACRO total() AS (SELECT sum(a) FROM t);
CREATE MACRO harmless(v) AS v + 1;
CREATE MACRO lower(v) AS (SELECT max(b) FROM t);
CREATE MACRO every() AS TABLE SELECT * FROM t;
CREATE SEQUENCE seq;
"""

HOSTILE = [
    "SELECT sum(a) FROM t",
    "SELECT count(*) FROM t",
    "SELECT a, count(*) FROM t GROUP BY a",
    "SELECT a FROM t GROUP BY ALL",
    "SELECT a FROM t GROUP BY a HAVING count(*) > 1",
    "SELECT max(a) FILTER (WHERE b = 'x') FROM t",
    "SELECT list(a) FROM t",
    "SELECT histogram(a) FROM t",
    "SELECT string_agg(b, ',') FROM t",
    "SELECT quantile_cont(a, 0.5) FROM t",
    "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY a) FROM t",
    "SELECT arg_max(a, b) FROM t",
    "SELECT any_value(a) FROM t",
    "SELECT geomean(a) FROM t",
    "SELECT row_number() OVER () FROM t",
    "SELECT sum(a) OVER (PARTITION BY b) FROM t",
    "SELECT lag(a) OVER (ORDER BY a) FROM t",
    "SELECT a FROM t QUALIFY row_number() OVER (ORDER BY a) = 1",
    "SELECT sum(a) OVER w FROM t WINDOW w AS (ORDER BY a)",
    "SELECT DISTINCT a FROM t",
    "SELECT DISTINCT ON (b) a FROM t",
    "SELECT a FROM t LIMIT 1",
    "SELECT a FROM t LIMIT 50%",
    "SELECT a FROM t OFFSET 1",
    "SELECT a FROM t FETCH FIRST 2 ROWS ONLY",
    "SELECT a FROM (SELECT a FROM t ORDER BY a LIMIT 1)",
    "SELECT a FROM t TABLESAMPLE 50%",
    "SELECT a FROM t USING SAMPLE 1",
    "SELECT a FROM t USING SAMPLE reservoir(1 ROWS)",
    "SELECT a FROM t UNION SELECT a FROM u",
    "SELECT a FROM t UNION BY NAME SELECT a FROM u",
    "SELECT a FROM t INTERSECT SELECT a FROM u",
    "SELECT a FROM t INTERSECT ALL SELECT a FROM u",
    "SELECT a FROM t EXCEPT SELECT a FROM u",
    "SELECT a FROM t EXCEPT ALL SELECT a FROM u",
    "FROM t PIVOT (count(*) FOR b IN ('x', 'y'))",
    "SELECT * FROM (FROM t PIVOT (count(*) FOR b IN ('x')))",
    "FROM t UNPIVOT (v FOR n IN (a))",
    "SELECT (SELECT max(a) FROM t) FROM t",
    "SELECT a - (SELECT avg(a) FROM t) AS z FROM t",
    "SELECT a FROM t WHERE a IN (SELECT a FROM u)",
    "SELECT a FROM t WHERE a = ANY (SELECT a FROM t)",
    "SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a)",
    "SELECT a FROM t WHERE NOT EXISTS (FROM u)",
    "SELECT t.a FROM t JOIN u ON t.a = u.a",
    "SELECT t.a FROM t, u",
    "SELECT x.a FROM t AS x, t AS y",
    "SELECT x.a FROM t AS x JOIN t AS y USING (a)",
    "WITH c AS (SELECT a FROM t) SELECT x.a FROM c AS x CROSS JOIN c AS y",
    "SELECT a FROM t SEMI JOIN u USING (a)",
    "SELECT a FROM t ANTI JOIN u USING (a)",
    "SELECT k FROM pub SEMI JOIN t ON k = a",
    "SELECT k FROM pub ANTI JOIN t ON k = a",
    "SELECT k FROM pub LEFT JOIN t ON k = a",
    "SELECT a FROM t RIGHT JOIN pub ON k = a",
    "SELECT a FROM t FULL JOIN pub ON k = a",
    "SELECT a FROM t POSITIONAL JOIN pub",
    "SELECT a FROM t ASOF JOIN pub ON t.a >= pub.k",
    "SELECT * FROM t NATURAL JOIN pub",
    "SELECT * FROM pub LEFT JOIN (pub AS q JOIN t ON q.k = t.a) ON q.k = pub.k",
    "SELECT a FROM t, LATERAL (SELECT count(*) FROM pub WHERE k = a)",
    "SELECT unnest([1, 2]) FROM t",
    "SELECT v FROM t, unnest([1, 2]) AS q(v)",
    "SELECT x FROM range(10) AS r(x)",
    "SELECT * FROM generate_series(1, 3)",
    "SELECT * FROM query('SELECT sum(a) FROM t')",
    "SELECT * FROM query_table('t')",
    "SELECT * FROM every()",
    "SELECT * FROM duckdb_tables()",
    "SELECT * FROM pragma_storage_info('t')",
    "SELECT * FROM glob('*')",
    "SELECT * FROM read_text('/etc/hostname')",
    "SELECT * FROM read_csv('x.csv', header = true)",
    "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 3) SELECT n FROM r, t",
    "SELECT random() FROM t",
    "SELECT a + random() AS r FROM t",
    "SELECT a FROM t WHERE random() < 0.5",
    "SELECT a FROM t ORDER BY random()",
    "SELECT uuid() FROM t",
    "SELECT gen_random_uuid() FROM t",
    "SELECT now(), a FROM t",
    "SELECT current_date, a FROM t",
    "SELECT current_timestamp FROM t",
    'SELECT "current_date" FROM t',
    "SELECT today() FROM t",
    "SELECT age(d::TIMESTAMP) FROM t",
    "SELECT get_current_timestamp() FROM t",
    "SELECT current_localtimestamp() FROM t",
    "SELECT nextval('seq') FROM t",
    "SELECT stats(a) FROM t",
    "SELECT vector_type(a) FROM t",
    "SELECT rowid, a FROM t",
    "SELECT t.rowid FROM t",
    "SELECT a FROM t WHERE ROWID = 0",
    'SELECT a FROM t ORDER BY "RowId"',
    "SELECT file_row_number FROM t",
    "SELECT total() FROM t",
    "SELECT harmless(a) FROM t",
    "SELECT lower(b) FROM t",
    "SELECT b.lower() FROM t",
    "SELECT main.harmless(a) FROM t",
    "SELECT COLUMNS(*) FROM t",
    "SELECT max(COLUMNS(*)) FROM t",
    "SELECT getvariable('x') FROM t",
    "SELECT getenv('HOME') FROM t",
    "SELECT current_setting('threads') FROM t",
    "SELECT error('x') FROM t",
    "SELECT CASE WHEN a = 1 THEN error(b) END FROM t",
    "SELECT ? FROM t",
    "SELECT $name FROM t",
    "SELECT a FROM t; SELECT a FROM t",
    "SELECT a FROM t; DROP TABLE t",
    "SELECT a FROM t; COPY t TO 'x.csv'",
    "WITH c AS (DELETE FROM t RETURNING a) SELECT a FROM c",
    "WITH c AS (INSERT INTO t VALUES (1, 'x', NULL) RETURNING a) SELECT a FROM c",
    "FROM t INSERT INTO u SELECT a",
    "SELECT a INTO z FROM t",
    "SELECT a FROM t FOR UPDATE",
    "SELECT a FROM t AT (VERSION => 1)",
    "SELECT a FROM missing",
    "SELECT a FROM other.t",
    "SELECT a FROM information_schema.tables",
    "SELECT FROM",
    "SELECT a FROM t WHERE (",
    "SELECT 'unclosed FROM t",
    "FROM (SUMMARIZE t)",
    "FROM (DESCRIBE t)",
    "FROM (SHOW TABLES)",
    "SELECT 1 AS a",
    "SELECT k FROM pub",
    "FROM (VALUES (1), (2)) AS v(x)",
    "SELECT s FROM mixed",
    "SELECT * FROM hidden",
    "FROM ranked",
    "SELECT p.a1 FROM plain AS p, renamed AS r",
    "SELECT p.a1 FROM plain AS p JOIN t ON p.a1 = t.a",
    "SELECT grouping(a) FROM t",
    "SELECT #1 FROM t",
    "SELECT a FROM t ORDER BY (SELECT max(a) FROM t)",
    "SELECT a FROM t JOIN pub ON k = (SELECT max(a) FROM t)",
    "SELECT * REPLACE (sum(a) OVER () AS a) FROM t",
]

FRIENDLY = [
    "SELECT * FROM t",
    "FROM t",
    "from T",
    "FROM t SELECT a, b WHERE a > 1",
    "SELECT a AS x, b FROM main.t",
    "SELECT t.a, t.b FROM memory.main.t",
    'SELECT q."a" FROM "t" AS q',
    "SELECT * EXCLUDE (d) FROM t",
    "SELECT * REPLACE (a + 1 AS a) FROM t",
    "SELECT a + 1 AS x, a - 1, a * 2, a / 2, a // 2, a % 2, -a FROM t",
    "SELECT CASE WHEN a > 1 THEN 'high' WHEN a IS NULL THEN NULL ELSE 'low' END AS c FROM t",
    "SELECT coalesce(a, 0) AS a, nullif(b, 'x') AS b, ifnull(a, 3) AS c FROM t",
    "SELECT upper(b), length(b), substring(b, 1, 1), trim(b), b || '!', concat(a, b) FROM t",
    "SELECT CAST(a AS VARCHAR) AS s, a::DOUBLE AS f, TRY_CAST(b AS INTEGER) AS i FROM t",
    "SELECT extract(year FROM d) AS y, date_trunc('month', d) AS m, d + INTERVAL 3 DAY AS e FROM t",
    "SELECT strftime(d, '%Y-%m') AS ym, year(d), date_diff('day', d, DATE '2021-01-01') AS n FROM t",
    "SELECT hour(d::TIMESTAMPTZ) AS h, (d::TIMESTAMPTZ + INTERVAL 1 DAY)::VARCHAR AS e FROM t",
    "SELECT a FROM t WHERE a BETWEEN 1 AND 2 AND b IN ('x', 'y') OR NOT (a = 3)",
    "SELECT a FROM t WHERE b LIKE 'x%' OR b ILIKE 'Y' OR b ~ '^z' OR b SIMILAR TO 'q'",
    "SELECT a FROM t WHERE a IS DISTINCT FROM 1 AND a IS NOT DISTINCT FROM 2",
    "SELECT a FROM t ORDER BY a DESC NULLS LAST, b",
    "SELECT a FROM t ORDER BY ALL",
    "WITH c AS (SELECT a, b FROM t WHERE a > 0) SELECT a + 1 AS z FROM c",
    "WITH t AS (SELECT a FROM t) SELECT a FROM t",
    "WITH c(x) AS MATERIALIZED (SELECT a FROM t), e AS (SELECT x FROM c) SELECT x FROM e",
    "SELECT z FROM (SELECT a AS z FROM t) AS s WHERE z > 1",
    "SELECT z FROM (SELECT z FROM (SELECT a AS z FROM t))",
    "SELECT a FROM t UNION ALL SELECT a FROM u",
    "SELECT a FROM t UNION ALL SELECT a FROM t",
    "SELECT a, b FROM t UNION ALL BY NAME SELECT c, a FROM u",
    "SELECT a FROM t UNION ALL SELECT 7",
    "SELECT a, label FROM t JOIN pub ON k = a",
    "SELECT a, label FROM pub JOIN t ON k = a",
    "SELECT a, label FROM t LEFT JOIN pub ON k = a",
    "SELECT a, label FROM t, pub WHERE k = a",
    "SELECT a, k FROM t CROSS JOIN pub",
    "SELECT a FROM t SEMI JOIN pub ON k = a",
    "SELECT a FROM t ANTI JOIN pub ON k = a",
    "SELECT a, p.label, q.label AS l FROM t JOIN pub AS p ON p.k = a LEFT JOIN pub AS q ON q.k = p.k",
    "SELECT a, n FROM t JOIN (VALUES (1, 'one'), (2, 'two')) AS v(k, n) ON v.k = a",
    "SELECT * FROM (t JOIN pub ON k = a)",
    "SELECT * FROM plain",
    "SELECT plain.a1 FROM plain",
    "SELECT x, y FROM renamed AS r",
    "SELECT p FROM renamed AS r(p, q)",
    "FROM nested",
    "SELECT greatest(a, 1), least(a, 2), abs(a), round(a / 3, 1), floor(a / 2), sqrt(abs(a)) FROM t",
    "SELECT a FROM t -- a comment; DROP TABLE t",
    "SELECT a /* LIMIT 1 */ FROM t;",
    "SELECT regexp_replace(b, 'x', 'y'), replace(b, 'x', 'z'), left(b, 1), md5(b) FROM t",
    "SELECT 'LIMIT 1; DROP' AS s FROM t",
    "SELECT if(a > 1, 'x', 'y') AS c FROM t",
    "SELECT a FROM t WHERE a NOT IN (1, 2) AND b IS NOT NULL AND NOT b IS NULL OR a <> 3",
    "SELECT a >= 1 AND a <= 2 AS c, a < 1 OR a > 2 AS e, b = 'x' AS f FROM t",
]


def catalog_of(con):
    return DuckDBCatalog(DuckDBEngine(con.cursor()))


@pytest.fixture(scope="module")
def con():
    connection = duckdb.connect()
    connection.execute(SETUP)
    yield connection
    connection.close()


@pytest.fixture(scope="module")
def catalog(con):
    return catalog_of(con)


PUBLIC = frozenset({("memory", "main", "pub")})


@pytest.mark.parametrize("query", HOSTILE)
def test_what_can_mix_rows_is_refused(catalog, query):
    with pytest.raises(SourceError) as caught:
        check_query(query, catalog, PUBLIC)
    assert caught.value.__context__ is None and caught.value.__cause__ is None


@pytest.mark.parametrize("query", FRIENDLY)
def test_what_is_row_wise_passes_runs_and_means_the_same(con, catalog, query):
    checked = check_query(query, catalog, PUBLIC)
    cursor = con.cursor()
    expected = cursor.execute(query.rstrip(";")).fetchall()
    names = [column[0] for column in cursor.description]
    got = cursor.execute(f"SELECT * FROM (\n{checked.sql}\n)").fetchall()
    assert Counter(map(repr, got)) == Counter(map(repr, expected))
    assert [column[0] for column in cursor.description] == names


@pytest.mark.parametrize(
    ("query", "word"),
    [
        ("SELECT sum(a) OVER () FROM t", "window"),
        ("SELECT sum(a) FROM t", "aggregate"),
        ("SELECT DISTINCT a FROM t", "DISTINCT"),
        ("SELECT a FROM t LIMIT 1", "LIMIT"),
        ("SELECT a FROM t UNION SELECT a FROM u", "UNION"),
        ("SELECT a FROM t WHERE a IN (SELECT a FROM u)", "subquery"),
        ("SELECT a FROM t, u", "two private tables"),
        ("SELECT rowid FROM t", "rowid"),
        ("SELECT total() FROM t", "total"),
        ("SELECT random() FROM t", "random"),
        ("SELECT a FROM t USING SAMPLE 1", "SAMPLE"),
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


@pytest.mark.parametrize("query", ["SELECT a FROM t", "SELECT a FROM t SEMI JOIN pub ON k = a", "FROM plain"])
def test_rows_that_cannot_multiply_need_no_statement(catalog, query):
    assert not check_query(query, catalog, PUBLIC).multiplies


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


def test_a_python_variable_never_stands_in_for_a_table(con, catalog):
    frame = {"a": [1]}  # noqa: F841 - DuckDB would find it by this name
    with pytest.raises(SourceError, match="not a table or view"):
        check_query("SELECT * FROM frame", catalog)


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


# Brute force: with one row more, an allowed query's result only gains rows, and at most as many as
# the row can make: one for each branch of UNION ALL, or one for each match in the public tables
# (here up to 2 in each of 2 tables).
NEIGHBOUR_QUERIES = [query for query in FRIENDLY if "nested" not in query]
BRANCHES = 2
MATCHES = 4


@pytest.fixture(scope="module")
def checked():
    """A database and the checked texts, which hang on no row."""
    with duckdb.connect() as con:
        con.execute(SETUP)
        catalog = catalog_of(con)
        yield con, {query: check_query(query, catalog, PUBLIC).sql for query in NEIGHBOUR_QUERIES}


@settings(max_examples=12)
@given(
    rows=st.lists(
        st.tuples(st.one_of(st.none(), st.integers(0, 3)), st.sampled_from(["x", "y", None])), max_size=5
    ),
    extra=st.tuples(st.one_of(st.none(), st.integers(0, 3)), st.sampled_from(["x", "y", None])),
)
def test_one_row_changes_nothing_but_its_own_rows(checked, rows, extra):
    con, texts = checked
    con.execute("DELETE FROM t")
    for row in rows:
        con.execute("INSERT INTO t VALUES (?, ?, NULL)", row)
    before = {query: results(con, sql) for query, sql in texts.items()}
    con.execute("INSERT INTO t VALUES (?, ?, NULL)", extra)
    for query, sql in texts.items():
        after = results(con, sql)
        gained, lost = after - before[query], before[query] - after
        assert not lost, query
        limit = BRANCHES if "UNION ALL" in query else MATCHES if "pub" in query or "VALUES" in query else 1
        assert gained.total() <= limit, query


def results(con, sql):
    return Counter(map(repr, con.execute(f"FROM (\n{sql}\n)").fetchall()))


@pytest.mark.parametrize(
    "text",
    [
        "ts_or_ds_add(d, 1, 'day, (SELECT 1) --')",
        "ts_or_ds_add(d, 1, 'day FROM memory.main.t --')",
        "object_insert(b, 'z := 1) FROM memory.main.t --', 1)",
        "object_insert(b, 'z := 1), (2 --', 1)",
        "datetime(d)",
    ],
)
def test_an_owners_expression_stays_one_expression(catalog, text):
    assert check_expression("ts_or_ds_add(d, 1, 'day')", ["d", "b"], catalog).fault == ""
    assert check_expression(text, ["d", "b"], catalog).fault
