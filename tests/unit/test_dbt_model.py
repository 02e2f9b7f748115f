"""What the dbt materialization calls: options, refusals before a charge, and what is told to dbt."""

import json
from contextlib import closing
from types import SimpleNamespace

import duckdb
import pytest

from dpsyn_sql.errors import InputError
from dpsyn_sql.front import dbt as dbt_model
from dpsyn_sql.front.dbt import build, request_of
from dpsyn_sql.ledger.sqlite import SqliteLedger

STATED = {"epsilon": 1.0, "unit": "row"}
DOMAIN = {"columns": {"n": {"type": "numeric", "lower": 0, "upper": 9, "bins": 3}}}


def call(folder, options=STATED, *, into="out", empty=False, source=("w", "main", "t")):
    return {
        "model": "model",
        "project": str(folder),
        "target_path": "target",
        "sources": [{"names": list(source), "path": None}],
        "into": ["w", "main", into],
        "options": options,
        "empty": empty,
        "invocation": "b1",
    }


@pytest.fixture
def con(tmp_path):
    with duckdb.connect(tmp_path / "w.duckdb") as connection:
        connection.execute("CREATE TABLE t AS SELECT CAST(i % 10 AS INTEGER) AS n FROM range(300) AS r(i)")
        yield connection


def outcome(con, *arguments):
    """As dbt sees it, which wraps the cursor of the model."""
    cursor = con.cursor()
    build(SimpleNamespace(_cursor=SimpleNamespace(_cursor=cursor)), *arguments)
    return json.loads(cursor.execute("SELECT getvariable('dpsyn_told')").fetchone()[0])


def charged(folder):
    with closing(SqliteLedger(folder / "w.duckdb.dpsyn-ledger")) as ledger:
        return [one.name for one in ledger.overview().releases]


def test_a_model_is_charged_once_and_its_names_may_hold_anything(con, tmp_path):
    con.execute("""CREATE TABLE "o""dd'; --" AS FROM t""")
    into, name = """out"; DROP TABLE t; --'""", 'it\'s {{ a }} "name" \\ é 😀'
    options = {**STATED, "domain": DOMAIN, "name": name, "delta": "1e-9"}
    asked = json.dumps(call(tmp_path, options, into=into, source=("w", "main", "o\"dd'; --")))
    first, second = outcome(con, asked), outcome(con, asked)
    assert "charged in" in first["told"] and "replayed, nothing charged" in second["told"]
    changed = outcome(con, asked.replace('"epsilon": 1.0', '"epsilon": 2.0'))
    assert "give a new name= or version= under meta.dpsyn;" in changed["error"]
    assert charged(tmp_path) == [name]
    rows = con.execute('FROM "out""; DROP TABLE t; --\'"').fetchall()
    assert rows and con.execute("SELECT count(*) FROM t").fetchone() == (300,)


def test_an_empty_build_charges_nothing_and_tells_public_columns(con, tmp_path):
    con.execute("CREATE TABLE e AS SELECT n, CAST('secret' AS ENUM('secret')) AS \"a\"\"b\" FROM t")
    told = outcome(con, json.dumps(call(tmp_path, empty=True, source=("w", "main", "e"))))
    assert told["columns"] == [['"n"', "INTEGER"], ['"a""b"', "VARCHAR"]]
    assert not list(tmp_path.glob("*ledger*"))


@pytest.mark.parametrize(
    "folder, project",
    [
        ("target", "name: p"),
        ("target/deep", "name: [unread"),
        ("build", "target-path: build"),
        ("kept/here", "clean-targets: [1, kept]"),
    ],
)
def test_a_ledger_that_would_be_deleted_is_refused(con, tmp_path, folder, project):
    (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "dbt_project.yml").write_text(project)
    told = outcome(con, json.dumps(call(tmp_path, {**STATED, "ledger": f"{folder}/kept"})))
    assert "which `dbt clean` deletes" in told["error"]
    assert not list((tmp_path / folder).iterdir())


def test_a_ledger_that_ends_with_the_build_is_refused(con, tmp_path, monkeypatch):
    monkeypatch.setenv("DPSYN_LEDGER", ":memory:")
    told = outcome(con, json.dumps(call(tmp_path)))
    assert "would be forgotten" in told["error"]


def test_a_ledger_in_memory_is_refused(tmp_path):
    with duckdb.connect() as con:
        con.execute("CREATE TABLE t AS SELECT 1 AS n")
        told = outcome(
            con,
            json.dumps({**call(tmp_path, source=("memory", "main", "t")), "into": ["memory", "main", "o"]}),
        )
    assert "every build would pay again" in told["error"]


def test_an_error_of_another_kind_is_told_by_its_name(con, tmp_path, monkeypatch):
    def failing(*_):
        raise RuntimeError("a row: CANARY")

    monkeypatch.setattr(dbt_model, "release", failing)
    told = outcome(con, json.dumps(call(tmp_path)))
    assert "unexpected RuntimeError" in told["error"] and "CANARY" not in str(told)


@pytest.mark.parametrize(
    ("options", "returned", "fragments"),
    [
        ({}, None, ("epsilon is missing", "unit is missing")),
        (
            {**STATED, "new_debit": True, "into": "x", "epsilonn": 1},
            None,
            ("new_debit is not", "into is not", "did you mean 'epsilon'"),
        ),
        (STATED, STATED, ("keep one of them",)),
        ({}, [1], ("are a mapping",)),
    ],
)
def test_wrong_options_are_refused_together(tmp_path, options, returned, fragments):
    with pytest.raises(InputError) as caught:
        request_of(call(tmp_path, options), returned)
    assert all(fragment in str(caught.value) for fragment in fragments)


def test_paths_begin_at_the_project_and_the_model_names_the_release(tmp_path):
    request = request_of(call(tmp_path, {**STATED, "domain": "people.yml"}))
    assert request.domain == tmp_path / "people.yml" and request.name == "model" and request.replace
    assert request_of(call(tmp_path, {**STATED, "name": "kept"})).name == "kept"
    asked = {**STATED, "limits": {"time": 60}, "csv": {"on_error": None}, "workload": "n"}
    settings = request_of(call(tmp_path, asked))
    settings.check()
    assert (settings.limits, settings.csv, settings.workload) == ({"time": 60}, {"on_error": None}, "n")
    numbered = request_of(call(tmp_path, {**STATED, "version": 0, "account": 7}))
    assert (numbered.version, numbered.account) == ("0", "7")
