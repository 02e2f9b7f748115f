"""Source SQL: the text of each template, and what it does on a database."""

import duckdb
import pytest

from dpsyn_sql.sqltext.fragments import Fragment, ident, literal, qualified
from dpsyn_sql.sqltext.render import render


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
