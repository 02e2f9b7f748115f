"""Source SQL: the text of each template, and what it does on a database."""

import duckdb
import pytest

from dpsyn_sql.sqltext.fragments import Fragment, comma, ident, literal, qualified
from dpsyn_sql.sqltext.render import render


def body(template, **values):
    """The statement without its header comment."""
    lines = render(template, **values).splitlines()
    return "\n".join(line for line in lines if not line.startswith("--")).strip()


GOLDEN = [
    (
        "source/attach",
        {"path": literal("it's.duckdb"), "name": ident('a"b'), "read_only": 1},
        "ATTACH 'it''s.duckdb' AS \"a\"\"b\" (TYPE duckdb, READ_ONLY)",
    ),
    (
        "source/attach",
        {"path": literal("x.duckdb"), "name": ident("x"), "read_only": 0},
        "ATTACH 'x.duckdb' AS \"x\" (TYPE duckdb)",
    ),
    ("source/detach", {"name": ident("x")}, 'DETACH "x"'),
    ("source/use", {"name": ident("x")}, 'USE "x"'),
    (
        "source/set_search_path",
        {"search_path": literal('a."b,c"')},
        "SET search_path = 'a.\"b,c\"'",
    ),
    (
        "source/set_option",
        {"name": ident("threads"), "value": literal(2)},
        'SET "threads" = 2',
    ),
    (
        "source/drop_temporary",
        {"view": 0, "name": qualified("temp", "main", "x")},
        'DROP TABLE IF EXISTS "temp"."main"."x"',
    ),
    (
        "source/drop_temporary",
        {"view": 1, "name": qualified("temp", "main", "x")},
        'DROP VIEW IF EXISTS "temp"."main"."x"',
    ),
    ("source/describe", {"relation": Fragment('"t"')}, 'DESCRIBE SELECT *\nFROM "t"'),
    ("source/describe_query", {"query": Fragment("SELECT 1")}, "DESCRIBE\nSELECT 1"),
    (
        "source/columns",
        {"catalog": literal("m"), "schema": literal("s"), "name": literal("it's {{ x }}")},
        "SELECT\n    column_name AS name,\n    data_type AS sql_type,\n    NOT is_nullable AS not_null\n"
        "FROM duckdb_columns()\nWHERE database_name = 'm'\n    AND schema_name = 's'\n"
        "    AND table_name = 'it''s {{ x }}'\nORDER BY column_index",
    ),
    (
        "source/syntax",
        {"query": literal("SELECT 'x'")},
        "SELECT\n    json_serialize_sql('SELECT ''x''') AS tree",
    ),
    (
        "source/parquet_names",
        {"path": literal("x")},
        "SELECT\n    name,\n    coalesce(num_children, 0) AS children\nFROM parquet_schema('x')",
    ),
    (
        "source/read_parquet",
        {"paths": comma([literal("a"), literal("b")])},
        "read_parquet(\n    [\n    'a',\n    'b'\n    ],\n    union_by_name = FALSE,\n"
        "    hive_partitioning = FALSE,\n    filename = FALSE\n)",
    ),
    (
        "source/read_csv",
        {
            "paths": literal("a"),
            "columns": Fragment("'x': 'VARCHAR'"),
            "delimiter": literal(";"),
            "compression": literal("gzip"),
            "strict": 0,
        },
        "read_csv(\n    [\n    'a'\n    ],\n    auto_detect = FALSE,\n    header = TRUE,\n    skip = 0,\n"
        "    columns = {\n    'x': 'VARCHAR'\n    },\n    delim = ';',\n    quote = '\"',\n    escape = '\"',\n"
        "    comment = '',\n    nullstr = '',\n    allow_quoted_nulls = TRUE,\n    null_padding = TRUE,\n"
        "    ignore_errors = TRUE,\n    store_rejects = FALSE,\n    strict_mode = FALSE,\n"
        "    parallel = FALSE,\n    compression = 'gzip',\n    encoding = 'utf-8',\n"
        "    normalize_names = FALSE,\n    union_by_name = FALSE,\n    hive_partitioning = FALSE,\n"
        "    filename = FALSE\n)",
    ),
]


@pytest.mark.parametrize(("template", "values", "text"), GOLDEN, ids=lambda value: str(value)[:30])
def test_texts(template, values, text):
    assert body(template, **values) == text


@pytest.fixture
def con():
    connection = duckdb.connect()
    connection.execute("CREATE TYPE mood AS ENUM ('sad', 'it''s'); CREATE SCHEMA s")
    connection.execute(
        "CREATE TABLE s.t (a INTEGER NOT NULL, m mood, x ENUM('p')); CREATE VIEW v AS FROM s.t"
    )
    connection.execute("CREATE TEMP TABLE own (a INTEGER)")
    yield connection
    connection.close()


def run(con, template, **values):
    return con.execute(render(template, **values)).fetchall()


def test_relations_with_views_and_temporary_ones(con):
    found = {row[2]: row for row in run(con, "source/relations")}
    assert found["t"][:2] == ("memory", "s") and found["t"][3:] == ("table", None, False)
    assert found["v"][3] == "view" and found["v"][4].startswith("CREATE VIEW v AS")
    assert found["own"][5] is True
    assert set(found) == {"t", "v", "own"}


def test_columns_enums_schemas_databases_and_session(con):
    place = {"catalog": literal("memory"), "schema": literal("s"), "name": literal("t")}
    assert run(con, "source/columns", **place) == [
        ("a", "INTEGER", True),
        ("m", "ENUM('sad', 'it''s')", False),
        ("x", "ENUM('p')", False),
    ]
    assert run(con, "source/enums") == [(["sad", "it's"],)]
    assert ("memory", "s") in run(con, "source/schemas")
    assert ("memory", None, False, False) in run(con, "source/databases")
    assert run(con, "source/session") == [("memory", "main", "")]
    run(con, "source/set_search_path", search_path=literal("memory.s"))
    assert run(con, "source/session") == [("memory", "s", "memory.s")]


def test_functions_say_what_is_repeatable(con):
    con.execute("CREATE MACRO upper(x) AS x")
    found = {}
    for name, kind, internal, stability, *_ in run(con, "source/functions"):
        found.setdefault(name, set()).add((kind, internal, stability))
    assert found["lower"] == {("scalar", True, "CONSISTENT")}
    assert ("scalar", True, "VOLATILE") in found["random"]
    assert ("macro", False, None) in found["upper"]
    assert {kind for kind, _, _ in found["sum"]} == {"aggregate"}


def test_describing_a_query_keeps_its_own_names(con):
    query = Fragment("SELECT a, a + 1 AS A FROM s.t")
    assert [row[0] for row in run(con, "source/describe_query", query=query)] == ["a", "A"]
    assert run(con, "source/describe", relation=Fragment("s.t"))[0][:2] == ("a", "INTEGER")


def test_files_are_read_as_told(con, tmp_path):
    con.execute(f"COPY (SELECT 1 AS a, {{'x': 1, 'y': [2]}} AS n, 2 AS z) TO '{tmp_path}/t.parquet'")
    path = literal(str(tmp_path / "t.parquet"))
    names = run(con, "source/parquet_names", path=path)
    assert [row[0] for row in names][:3] == [names[0][0], "a", "n"] and names[-1] == ("z", 0)
    assert con.execute(f"SELECT a, z FROM {render('source/read_parquet', paths=path)}").fetchall() == [(1, 2)]
    (tmp_path / "t.csv").write_text('a;b\n1;2020-01-01\n;""\n3\n4;5;6\n"q;\n""";z\n')
    call = render(
        "source/read_csv",
        paths=literal(str(tmp_path / "t.csv")),
        columns=Fragment("'a': 'VARCHAR', 'b': 'VARCHAR'"),
        delimiter=literal(";"),
        compression=literal("none"),
        strict=0,
    )
    assert con.execute(f"FROM {call}").fetchall() == [
        ("1", "2020-01-01"),
        (None, None),
        ("3", None),
        ("4", "5"),
        ('q;\n"', "z"),
    ]


def test_attaching_and_detaching(con, tmp_path):
    path = tmp_path / "it's.duckdb"
    duckdb.connect(str(path)).close()
    run(con, "source/attach", path=literal(str(path)), name=ident('a"b'), read_only=1)
    run(con, "source/use", name=ident('a"b'))
    assert ('a"b', str(path), True, False) in run(con, "source/databases")
    run(con, "source/use", name=ident("memory"))
    run(con, "source/detach", name=ident('a"b'))
    run(con, "source/drop_temporary", view=0, name=qualified("temp", "main", "own"))
    assert "own" not in {row[2] for row in run(con, "source/relations")}
