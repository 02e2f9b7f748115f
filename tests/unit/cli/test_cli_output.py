"""What commands print: JSON for machines, nothing with --quiet, and no name that a terminal would obey."""

import json
from contextlib import closing
from dataclasses import replace

import duckdb
import pytest
from support.commands import run
from typer.testing import CliRunner

from dpsyn_sql.cli.main import app
from dpsyn_sql.cli.output import ExitCode, json_text
from dpsyn_sql.common.notices import printable
from dpsyn_sql.ledger.sqlite import SqliteLedger

DOMAIN = "columns: {b: {type: categorical, categories: [true, false], other: false}}\n"
QUICK = ("t.parquet", "--domain", "d.yml", "--method", "independent", "--into", "o.csv")
LABEL = "a'b\"; DROP TABLE t; -- {{ 1 }} {% x %} [red]x[/] /*"
HOSTILE = "a'b\"; DROP TABLE t; -- {{ 1 }} {% x %} [red]x[/] /* \n\x1b[31m\x07\u202e"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DPSYN_LEDGER", raising=False)
    (tmp_path / "d.yml").write_text(DOMAIN)
    with duckdb.connect() as con:
        con.execute("COPY (SELECT i % 2 = 0 AS b FROM range(500) AS r(i)) TO 't.parquet'")
    return tmp_path


def read(*arguments, code=0):
    """The one JSON document of a command, which prints nothing else."""
    result = run(*arguments, "--json")
    assert result.exit_code == code and result.stderr == "", result.output
    return json.loads(result.stdout)


def test_every_command_prints_one_json_document(folder):
    assert read("init", "t.parquet")["text"].startswith("#")
    made = read("init", "t.parquet", "--into", "new.yml")
    assert made["file"] == "new.yml" and (folder / "new.yml").read_text() == made["text"]
    planned = read("plan", *QUICK)
    assert planned["output"] == "o.csv" and planned["method"] == "independent" and planned["obstacle"] is None
    assert planned["account"].startswith("'t.parquet#row' (exact Gaussian accounting) has no limit")
    assert planned["explanation"]
    first = read("release", *QUICK, "--certificate", "c.json")
    assert first["output"] == "o.csv" and not first["replayed"] and first["certificate"] == "c.json"
    assert 0 < first["epsilon"] <= 1 and first["delta"] == 1e-9 and first["privacy_unit"] == "row"
    again = read("release", *QUICK)
    assert again["replayed"] and again["id"] == first["id"] and again["rows"] == first["rows"]
    assert any("Nothing was charged" in text for text in again["notes"] + again["warnings"])
    shown = read("ledger", "show")
    (account,), (release,) = shown["accounts"], shown["releases"]
    assert account["name"] == "t.parquet#row" and account["granted"] is None and account["left"] is None
    assert release["id"] == first["id"] and release["cost"]["kind"] == "gdp"
    assert [one["output"] for one in release["written"]] == ["o.csv", "o.csv"]
    granted = read("ledger", "grant", "t.parquet#row", "-e", "2")
    assert granted["account"]["granted"] == {"epsilon": "2", "delta": "2e-9"} and granted["notes"] == []
    assert float(granted["account"]["left"]) > 0
    head = read("ledger", "verify")["head"]
    assert head == read("ledger", "show")["head"]
    assert read("ledger", "backup", "copy") == {
        **{"ledger": ".dpsyn-ledger", "copy": "copy", "head": head},
        "warnings": [],
    }
    (folder / ".dpsyn-ledger").rename(folder / "moved")
    assert read("ledger", "moved", "moved", "--alone") == {
        "ledger": "moved",
        "with_data": False,
        "warnings": [],
    }
    drawn = read("sample", "o.csv", "o", "--rows", "3")
    assert drawn["rows"] == 3 and all(row["b"] in (True, False) for row in drawn["values"])
    cells = read("marginal", "o.csv", "o", "b")["cells"]
    assert {cell["values"]["b"] for cell in cells} == {True, False} and cells[0]["basis"] == "measured"
    audited = read("audit", "--method", "independent", "--runs", "50")
    assert audited["runs"] == 50 and audited["violated"] is False and len(audited["not_covered"]) == 3
    for document in (planned, first, shown, granted, drawn, audited):
        assert document["warnings"] == []


def test_errors_are_json_too(folder):
    refused = read("release", "missing.parquet", code=2)["error"]
    assert refused["kind"] == "SourceError" and "missing.parquet" in refused["message"]
    (folder / "bad.yml").write_text("columns: {x: {type: boolean}, y: {type: boolean}}\n")
    faulty = read("plan", "t.parquet", "--domain", "bad.yml", "--no-discover", code=2)["error"]
    assert faulty["kind"] == "DomainError" and len(faulty["faults"]) >= 1 and faulty["exit_code"] == 2
    assert read("ledger", "verify", code=2)["error"]["kind"] == "LedgerError"
    for wrong in (
        ["sample", "o.csv"],
        ["release", "--nothing"],
        ["nothing"],
        ["sample", "a", "b", "-n", "x"],
    ):
        unread = read(*wrong, code=2)["error"]
        assert unread["kind"] == "UsageError" and "--help'" in unread["message"], unread
    assert run("release", *QUICK).exit_code == 0
    assert run("ledger", "grant", "t.parquet#row", "-e", "1").exit_code == 0
    over = read("release", *QUICK[:-1], "p.csv", "--version", "2", code=3)["error"]
    assert over["kind"] == "PrivacyBudgetExceeded" and over["exit_code"] == ExitCode.OVER_BUDGET
    assert read("ledger", "verify", "--head", "1" * 64, code=1)["error"]["kind"] == "LedgerDamaged"


def test_a_command_line_that_cannot_be_read_is_one_line_with_a_hint(folder):
    for arguments, said in {
        ("release", "--epsilom", "1"): "Error: No such option: --epsilom",
        ("sample", "o.csv"): "Error: Missing argument 'NAME'. See 'dpsyn sample --help'.",
        ("relase",): "Error: No such command 'relase'. Did you mean 'release'? See 'dpsyn --help'.",
        ("ledger", "shw"): "Error: No such command 'shw'.",
        ("--jsn",): "Error: No such option: --jsn",
    }.items():
        result = CliRunner().invoke(app, list(arguments), prog_name="dpsyn")
        assert result.exit_code == 2 and result.stdout == "", result.output
        (line,) = result.stderr.splitlines()
        assert line.startswith(said) and line.endswith("--help'."), line


def test_quiet_prints_what_was_asked_for_and_nothing_else(folder):
    asked = (*QUICK, "--quiet")
    assert run("release", *asked).output == "" and run("release", *asked).output == ""
    for silent in (
        ("ledger", "verify"),
        ("ledger", "grant", "t.parquet#row", "-e", "2"),
        ("init", "t.parquet", "--into", "new.yml"),
        ("sample", "o.csv", "o", "-n", "2", "--into", "p.csv"),
        ("audit", "--method", "independent", "--runs", "50"),
    ):
        result = run(*silent, "-q")
        assert result.exit_code == 0 and result.output == "", (silent, result.output)
    for product, word in {
        ("plan", *QUICK): "Writes ",
        ("init", "t.parquet"): "columns:",
        ("ledger", "show"): "Release ",
        ("sample", "o.csv", "o", "-n", "2"): "b\n",
        ("marginal", "o.csv", "o", "b"): "estimate",
    }.items():
        result = run(*product, "-q")
        assert word in result.stdout and result.stderr == "", (product, result.output)
    failed = run("release", "missing.parquet", "-q")
    assert failed.exit_code == 2 and failed.stderr.startswith("Error: ")


def test_hidden_characters_are_written_as_escapes():
    assert printable("a\x1b[31m\x07\x9b\u202e\ud800\r b\n[red]{x}") == (
        "a\\x1b[31m\\x07\\x9b\\u202e\\ud800\\r b\n[red]{x}"
    )
    assert printable("a\nb\u2028", lines=False) == "a\\nb\\u2028"
    assert json.loads(json_text({"a": [float("nan"), float("inf"), "\x9b"]})) == {"a": [None, None, "\x9b"]}
    assert json_text({"a": "\x9b\x1b"}).isascii() and "\x1b" not in json_text({"a": "\x9b\x1b"})


@pytest.mark.slow
def test_hostile_names_are_shown_as_text_by_every_command(folder):
    column, table = '"' + HOSTILE.replace('"', '""') + '"', '"' + ("t " + HOSTILE).replace('"', '""') + '"'
    with duckdb.connect("w.duckdb") as con:
        con.execute(f"CREATE TABLE {table} AS SELECT i % 2 = 0 AS {column} FROM range(300) AS r(i)")
    options = ("-d", "w.duckdb", "--into", "o", "--name", LABEL, "--version", LABEL, "-m", "independent")
    place = ("w.duckdb", LABEL)
    said = [
        run("plan", table, *options, "--account", LABEL),
        run("release", table, *options, "--account", LABEL),
        run("release", table, *options, "--account", LABEL),
        run("ledger", "show", "w.duckdb"),
        run("ledger", "grant", "w.duckdb", LABEL, "-e", "4"),
        run("sample", *place, "-n", "2", "--into", "s.csv"),
        run("marginal", *place, HOSTILE),
    ]
    assert [result.exit_code for result in said] == [0] * 7, [result.output for result in said]
    wrong = [
        run("ledger", "grant", "w.duckdb", HOSTILE, "-e", "4"),
        run("ledger", "show", HOSTILE),
        run("sample", "w.duckdb", HOSTILE, "-n", "2"),
        run("sample", HOSTILE, "o", "-n", "2"),
        run("sample", *place, "-n", "2", "--into", HOSTILE),
        run("marginal", *place, "[/]"),
        run("release", HOSTILE, "-d", "w.duckdb"),
        run("release", table, "-d", "w.duckdb", "--exclude", HOSTILE + "x"),
        run("release", table, "-d", "w.duckdb", "--certificate", HOSTILE + ".json/x.json"),
        run("--" + HOSTILE),
        run(HOSTILE),
    ]
    assert [result.exit_code for result in wrong] == [2] * 11, [result.output for result in wrong]
    for result in said + wrong:
        assert not {"\x1b", "\x07", "\u202e"} & set(result.output), repr(result.output)
        assert "Traceback" not in result.output
    assert LABEL in said[3].output and "[red]x[/] /* \\n\\x1b[31m" in said[6].output
    for command, name in {
        ("ledger", "show", "w.duckdb"): LABEL,
        ("marginal", *place, HOSTILE): HOSTILE,
        ("sample", *place, "-n", "2"): HOSTILE,
    }.items():
        document = run(*command, "--json")
        assert "\x1b" not in document.stdout and name in set(_texts(json.loads(document.stdout)))
    with closing(SqliteLedger(folder / "w.duckdb.dpsyn-ledger")) as ledger:
        assert len(ledger.overview().releases) == 1


def test_a_ledger_of_somebody_else_cannot_steer_the_terminal(folder, monkeypatch):
    assert run("release", *QUICK).exit_code == 0
    true = SqliteLedger.overview

    def forged(self):
        found = true(self)
        accounts = [replace(account, name=HOSTILE, unit=HOSTILE) for account in found.accounts]
        releases = [replace(one, name=HOSTILE, published=((HOSTILE, 1),)) for one in found.releases]
        return replace(found, accounts=tuple(accounts), releases=tuple(releases))

    monkeypatch.setattr(SqliteLedger, "overview", forged)
    result = run("ledger", "show")
    assert result.exit_code == 0 and "[red]x[/] /* " in result.output
    assert not {"\x1b", "\x07", "\u202e"} & set(result.output)


def test_the_ledger_is_found_in_the_folder(folder):
    with duckdb.connect("w.duckdb") as con:
        con.execute("CREATE TABLE t AS FROM 't.parquet'")
    none = run("ledger", "show")
    assert none.exit_code == 2 and "This folder has none. Name it" in none.output
    assert run("release", "t", "-d", "w.duckdb", "-m", "independent").exit_code == 0
    assert run("ledger", "show").stdout.startswith("Ledger w.duckdb.dpsyn-ledger, head")
    (folder / "x.duckdb.dpsyn-ledger").write_bytes((folder / "w.duckdb.dpsyn-ledger").read_bytes())
    several = run("ledger", "show")
    assert several.exit_code == 2
    assert "This folder has 'w.duckdb.dpsyn-ledger', 'x.duckdb.dpsyn-ledger'." in several.output
    assert run("release", *QUICK).exit_code == 0
    assert run("ledger", "show").stdout.startswith("Ledger .dpsyn-ledger, head")


def _texts(value):
    """All keys and values in a JSON document."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    else:
        yield value
