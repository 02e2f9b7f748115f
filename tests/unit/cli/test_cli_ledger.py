"""``dpsyn ledger`` finds the ledger of a source by the rules of its release."""

import duckdb
import pytest
from typer.testing import CliRunner

from dpsyn_sql.cli.main import app


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DPSYN_LEDGER", raising=False)
    (tmp_path / "data").mkdir()
    with duckdb.connect() as con:
        con.execute("CREATE TABLE t AS SELECT i % 2 = 0 AS b FROM range(500) AS r(i)")
        con.execute("COPY t TO 'data/t.parquet'")
    with duckdb.connect("w.duckdb") as con:
        con.execute("CREATE TABLE t AS FROM 'data/t.parquet'")
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(app, list(arguments))


def released(*arguments):
    result = run("release", *arguments, "--method", "independent")
    assert result.exit_code == 0, result.output


def test_a_ledger_is_found_by_its_source(folder):
    released("data/t.parquet", "--into", "o.csv")
    released("t", "--database", "w.duckdb")
    for place in ("data", "data/t.parquet", "data/*.parquet", "data/.dpsyn-ledger"):
        shown = run("ledger", "show", place)
        assert shown.exit_code == 0 and "Account t.parquet#row" in shown.stdout, shown.output
        assert run("ledger", "verify", place).exit_code == 0
    for place in ("w.duckdb", "w.duckdb.dpsyn-ledger"):
        shown = run("ledger", "show", place)
        assert shown.exit_code == 0 and "main.t#row" in shown.stdout, shown.output
    granted = run("ledger", "grant", "data/t.parquet", "t.parquet#row", "--epsilon", "2")
    assert granted.exit_code == 0 and "granted epsilon=2" in granted.stdout


def test_the_variable_is_the_ledger_of_every_source(folder, monkeypatch):
    none = run("ledger", "show")
    assert none.exit_code == 2 and "DPSYN_LEDGER" in none.output
    monkeypatch.setenv("DPSYN_LEDGER", str(folder / "all"))
    released("data/t.parquet", "--into", "o.csv")
    for place in ([], ["data/t.parquet"], ["w.duckdb"], ["all"]):
        shown = run("ledger", "show", *place)
        where = "all" if place == ["all"] else folder / "all"
        assert shown.exit_code == 0 and f"Ledger {where}, head" in shown.stdout
    assert run("ledger", "verify").exit_code == 0
    account = next(line.split()[1] for line in shown.stdout.splitlines() if line.startswith("Account"))
    assert run("ledger", "grant", account, "-e", "3").exit_code == 0
    assert run("ledger", "grant", "all", account, "-e", "4").exit_code == 0
    assert "granted epsilon=4" in run("ledger", "show").stdout


@pytest.mark.parametrize(
    "place, message",
    [
        ("data", "There is no ledger at"),
        ("data/t.parquet", "the place of the ledger of data/t.parquet"),
        ("w.duckdb", "w.duckdb.dpsyn-ledger, the place of the ledger of w.duckdb"),
        ("data/x.parquet", "There is no file data/x.parquet."),
        ("nothing", "There is no ledger at nothing."),
        ("notes.txt", "not a ledger"),
        ("data/*.csv", "There is no file data/*.csv."),
    ],
)
def test_where_there_is_none_nothing_is_made(folder, place, message):
    (folder / "notes.txt").write_text("notes of mine, which are long enough to be no empty file\n")
    before = sorted(folder.rglob("*"))
    for command in (["show", place], ["verify", place], ["grant", place, "a", "-e", "1"]):
        result = run("ledger", *command)
        assert result.exit_code == 2 and message in result.output, result.output
        assert sorted(folder.rglob("*")) == before


def test_a_grant_goes_to_the_ledger_of_the_source_before_its_first_release(folder):
    made = run("ledger", "grant", "data/t.parquet", "t.parquet#row", "-e", "1", "--new")
    assert made.exit_code == 0, made.output
    assert (folder / "data" / ".dpsyn-ledger").is_file()
    assert "granted epsilon=1" in run("plan", "data/t.parquet", "--into", "o.csv").stdout


def test_a_replay_is_no_second_line(folder):
    for rows in ("200", "300", "300"):
        asked = ("--into", "o.csv", "--name", "x", "--rows", rows, "--replace")
        released("data/t.parquet", *asked)
    released("data/t.parquet", "--into", "p.csv", "--name", "x", "--rows", "7")
    (line,) = [one for one in run("ledger", "show", "data").stdout.splitlines() if one.startswith("Release")]
    assert line.count("o.csv") == 1 and "; 300 rows to " in line and "o.csv (written 3 times)" in line
    assert line.endswith("p.csv") and "; 7 rows to " in line


def test_a_ledger_is_found_by_its_schedule(folder):
    (folder / "dpsyn.yml").write_text(
        "ledger: other.ledger\nsources: {a: {path: a.csv}}\n"
        "releases: {once: {source: a, output: o.csv, cadence: once}}\n"
    )
    assert "no ledger at" in run("ledger", "show", "dpsyn.yml").output
    assert run("ledger", "grant", "dpsyn.yml", "somebody", "--epsilon", "2", "--new").exit_code == 0
    shown = run("ledger", "show", "dpsyn.yml")
    assert shown.exit_code == 0 and "somebody" in shown.output
    assert (folder / "other.ledger").is_file()
    (folder / "dpsyn.yml").write_text("sources: {}\n")
    refused = run("ledger", "show", "dpsyn.yml")
    assert refused.exit_code == 2 and "schedule cannot be used" in refused.output
