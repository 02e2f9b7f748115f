"""Messages on the command line name its own options, never the arguments of Python."""

import contextlib
import inspect
import re
import shutil

import duckdb
import pytest
from support.commands import run

import dpsyn_sql
from dpsyn_sql.accounting.account import FIGURE
from dpsyn_sql.cli.option_names import options, with_option_names
from dpsyn_sql.source.names import listed

ARGUMENTS = sorted({*inspect.signature(dpsyn_sql.release).parameters} - {"con", "window", "series"})
PYTHON = re.compile(
    rf"(?<![\w.-])({'|'.join(ARGUMENTS)}|con)=|\bTrue\b|\bFalse\b|\bNone\b|<\w+>|units of 1e-"
)
DOMAIN = "columns: {n: {type: numeric, lower: 0, upper: 9}}\n"
KNOWN = ("t.parquet", "--domain", "d.yml")


@pytest.fixture
def folder(tmp_path, monkeypatch, tables):
    shutil.copytree(tables, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DPSYN_LEDGER", raising=False)
    return tmp_path


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """What every case begins with, written once and copied."""
    folder = tmp_path_factory.mktemp("tables")
    (folder / "d.yml").write_text(DOMAIN)
    (folder / "taken.csv").write_text("mine\n")
    for name in ("one", "two"):
        (folder / name).mkdir()
    with contextlib.chdir(folder):
        write_tables()
    return folder


def write_tables():
    with duckdb.connect() as con:
        con.execute("CREATE TABLE t AS SELECT (i % 10)::INTEGER AS n FROM range(50) AS r(i)")
        con.execute("COPY t TO 't.parquet'")
        con.execute("COPY t TO 'one/a.parquet'")
        con.execute("COPY (SELECT n, [n] AS l FROM t) TO 'lists.parquet'")
        con.execute("COPY (SELECT n, 'a' AS s FROM t) TO 'texts.parquet'")
    with duckdb.connect("w.duckdb") as con:
        con.execute("CREATE TABLE t AS FROM 't.parquet'; CREATE TABLE o AS FROM t; CREATE VIEW v AS FROM t")
        con.execute("CREATE MACRO twice(a) AS 2 * a")
        con.execute("CREATE TABLE g AS SELECT n, n AS m FROM t")


WRONG = {
    "epsilon": ("plan", *KNOWN, "-e", "zero"),
    "no column to predict": ("plan", *KNOWN, "--workload", ""),
    "a column to predict that is not there": ("plan", *KNOWN, "--workload", "nn"),
    "a target of a method without": ("plan", *KNOWN, "--workload", "n", "-m", "copula"),
    "no file to check": ("check", "none.yml"),
    "no unit to check": ("check", "d.yml", "t.parquet", "--unit", "who"),
    "epsilon of nobody": ("plan", *KNOWN, "-e", "1001"),
    "epsilon of nothing": ("plan", *KNOWN, "-e", "0"),
    "epsilon too small": ("plan", *KNOWN, "-e", "1e-300"),
    "delta": ("plan", *KNOWN, "--delta", "1"),
    "no delta for thresholds": ("plan", "texts.parquet", "--delta", "0"),
    "rows": ("plan", *KNOWN, "--rows", "-1"),
    "seed": ("plan", *KNOWN, "--seed", "-1"),
    "name": ("plan", *KNOWN, "--name", ""),
    "version": ("plan", *KNOWN, "--version", ""),
    "account": ("plan", *KNOWN, "--account", ""),
    "ledger": ("plan", *KNOWN, "--ledger", "no/folder/ledger", "--name", ""),
    "method": ("plan", *KNOWN, "--method", "magic"),
    "on_error": ("plan", *KNOWN, "--csv", "on_error=stop"),
    "memory": ("plan", *KNOWN, "--limit", "memory=lots"),
    "little memory": ("plan", *KNOWN, "--limit", "memory=1MB"),
    "time": ("plan", *KNOWN, "--limit", "time=-1"),
    "time as text": ("plan", *KNOWN, "--limit", "time=soon"),
    "scratch": ("plan", *KNOWN, "--limit", "scratch=paper"),
    "an unknown limit": ("plan", *KNOWN, "--limit", "memry=4GB"),
    "a limit without a value": ("plan", *KNOWN, "--limit", "4GB"),
    "a limit twice": ("plan", *KNOWN, "--limit", "time=1", "--limit", "time=2"),
    "a limit of an evaluation": ("evaluate", "t.parquet", "t.parquet", "--limit", "time=1"),
    "delimiter": ("plan", *KNOWN, "--csv", "delimiter=;;"),
    "encoding": ("init", "t.parquet", "--csv", "encoding=cp1252"),
    "an unknown key of csv": ("check", "d.yml", "t.parquet", "--csv", "delimeter=;"),
    "csv of no csv file": ("plan", *KNOWN, "--csv", "decimal=,"),
    "several targets": ("plan", *KNOWN, "--workload", "n", "--workload", "m=target"),
    "rows of a row": ("plan", *KNOWN, "--most", "2", "--no-weights"),
    "unit": ("plan", *KNOWN, "--unit", "nobody"),
    "empty unit": ("plan", *KNOWN, "--unit", ""),
    "many rows a unit": (
        "plan", "g", "-d", "w.duckdb", "--unit", "m", "--most", "20000", "--no-weights",
    ),
    "exclude": ("plan", *KNOWN, "--exclude", "nothing"),
    "all excluded": ("plan", *KNOWN, "--exclude", "n"),
    "workload": ("plan", *KNOWN, "--workload", "n,m=-1"),
    "workload of nothing": ("plan", *KNOWN, "--workload", "m=5"),
    "workload elsewhere": ("plan", *KNOWN, "--workload", "n=5", "--method", "independent"),
    "discover": ("plan", "t.parquet", "--no-discover"),
    "types": ("plan", "lists.parquet"),
    "no domain": ("plan", "t.parquet", "--domain", "missing.yml"),
    "no file": ("plan", "missing.parquet"),
    "no table": ("plan", "missing"),
    "no table in there": ("plan", "missing", "-d", "w.duckdb"),
    "taken file": ("release", *KNOWN, "--into", "taken.csv"),
    "taken table": ("release", "t", "-d", "w.duckdb", "--into", "o"),
    "into a view": ("plan", "t", "-d", "w.duckdb", "--into", "v"),
    "into the source": ("plan", "t", "-d", "w.duckdb", "--into", "t"),
    "into itself": ("plan", *KNOWN, "--into", "t.parquet"),
    "into the schema": ("plan", "t", "-d", "w.duckdb", "--into", "dpsyn.x"),
    "into no place": ("plan", *KNOWN, "--into", "o.txt"),
    "nowhere": ("plan", "SELECT n FROM t", "-d", "w.duckdb"),
    "query": ("plan", "SELECT DISTINCT n FROM t", "-d", "w.duckdb", "--into", "o.csv"),
    "macro": ("plan", "SELECT twice(n) AS n FROM t", "-d", "w.duckdb", "--into", "o.csv", "--trust-query"),
    "table function": (
        "plan", "SELECT range AS n FROM range(3)", "-d", "w.duckdb", "--into", "o.csv", "--trust-query",
    ),
    "join": ("plan", "SELECT t.n FROM t JOIN o USING (n)", "-d", "w.duckdb", "--into", "o.csv"),
    "nothing private": (
        "plan", "SELECT n FROM o", "-d", "w.duckdb", "--into", "o.csv", "--public-table", "o",
    ),
    "public view": (
        "plan", "SELECT n FROM t", "-d", "w.duckdb", "--into", "o.csv", "--public-table", "v",
    ),
    "public nothing": (
        "plan", "SELECT n FROM t", "-d", "w.duckdb", "--into", "o.csv", "--public-table", "missing",
    ),
    "several ledgers": ("plan", "[ot]*/*.parquet", "--into", "o.csv"),
    "audit": ("audit", "--epsilon", "0"),
    "audit runs": ("audit", "--runs", "0"),
    "audit rows": ("audit", "--most", "0"),
    "init": ("init", "missing"),
    "sample": ("sample", "w.duckdb", "o", "--rows", "3"),
    "sample of nothing": ("sample", "t.parquet", "o", "--rows", "3"),
    "sample of no number": ("sample", "w.duckdb", "o", "--rows", "-1"),
    "sample into no place": ("sample", "w.duckdb", "o", "--rows", "1", "--into", "o.txt"),
    "marginal": ("marginal", "w.duckdb", "o", "n"),
    "ledger of nothing": ("ledger", "show", "missing.parquet"),
    "no ledger": ("ledger", "verify"),
    "grant": ("ledger", "grant", "new", "a", "-e", "zero", "--new"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_no_message_has_a_word_of_python(folder, case):
    if case == "several ledgers":
        for place in (folder, folder / "one"):
            (place / ".dpsyn-ledger").touch()
    result = run(*WRONG[case])
    assert result.exit_code == 2 and result.stderr.startswith("Error: "), result.output
    assert not PYTHON.search(result.output), result.output


def test_refusals_of_the_ledger_and_notes_have_none_either(folder):
    first = run("release", *KNOWN, "--method", "independent")
    assert first.exit_code == 0, first.output
    again = run("release", *KNOWN, "--method", "independent")
    assert "To measure new data pass another --version." in again.stdout
    asked = (*KNOWN, "--method", "independent", "--name", "x")
    assert run("release", *asked, "--into", "x.csv").exit_code == 0
    said = [
        run("release", *asked, "-e", "2", "--into", "y.csv"),
        run("release", *KNOWN, "--account", "other", "--into", "y.csv", "--version", "2"),
        run("release", *KNOWN, "--unit", "n", "--into", "y.csv", "--version", "2"),
    ]
    assert run("ledger", "grant", ".dpsyn-ledger", "t.parquet#row", "-e", "1.5").exit_code == 0
    said.append(run("release", *KNOWN, "--into", "y.csv", "--version", "2"))
    said.append(run("ledger", "grant", ".dpsyn-ledger", "t.parquet#row", "-e", "0.1"))
    assert [result.exit_code for result in said] == [2, 2, 2, 3, 2]
    for result in (first, again, *said):
        assert not PYTHON.search(re.sub(FIGURE, "", result.output)), result.output
    assert "this costs epsilon=2 at delta=1e-09" in said[0].output
    assert "--name" in said[0].output and "add --new-debit; this costs" in said[0].output


@pytest.mark.parametrize("name", ARGUMENTS)
def test_every_argument_of_a_release_has_its_option(name):
    for text in (f"{name}=", f"{name}=True", f"{name}='a'", f"{name}=[...]", f"give {name}=3, or {name}=."):
        assert not PYTHON.search(with_option_names(text)) and options()[name].name in with_option_names(text)


def test_values_are_written_as_options_take_them():
    for python, shell in {
        "add replace=True.": "add --replace.",
        "or discover=False": "or --no-discover",
        "another into=, or": "another --into, or",
        "with exclude=['a b']; or": "with --exclude 'a b'; or",
        "exclude=[...]": "--exclude NAME",
        "workload={'income': 5, ('age', 'sex'): 2}": "--workload income=5 --workload age,sex=2",
        "csv={'delimiter': ';'}: give": "--csv 'delimiter=;': give",
        "give csv={'delimiter': '\\t'}": "give --csv delimiter=tab",
        "csv={'quote': '{'} is": "--csv 'quote={' is",
        "needs limits={'memory': '700MB'}.": "needs --limit memory=700MB.",
        "public_tables= names": "--public-table names",
        "a table needs con=.": "a table needs --database.",
        "epsilon='zero' is not": "--epsilon 'zero' is not",
        "epsilon=0 is out of range": "--epsilon 0 is out of range",
        "costs epsilon=1, or epsilon=2 at delta=1e-9.": "costs epsilon=1, or epsilon=2 at delta=1e-9.",
        "'a rows=3 b' has rows=3": "'a rows=3 b' has --rows 3",
        "year/version=3/x.csv": "year/version=3/x.csv",
    }.items():
        assert with_option_names(python) == shell


def test_the_plan_says_what_the_owner_states_in_words_of_the_command(folder):
    asked = ("plan", "SELECT DISTINCT n FROM t", "-d", "w.duckdb", "--domain", "d.yml", "--into", "o.csv")
    result = run(*asked, "--trust-query")
    assert result.exit_code == 0, result.output
    assert "owner states: --trust-query: the owner states" in result.stdout


@pytest.fixture
def people(folder):
    """A table with a column ``age``, its domain, and one that misspells it; a release of it."""
    with duckdb.connect() as con:
        con.execute(
            "COPY (SELECT (i % 10)::INTEGER AS age, 'a' AS s, i / 2 AS x FROM range(50) r(i)) TO 'p.parquet'"
        )
        con.execute("COPY (FROM 'p.parquet' WHERE age > 1) TO 'q.parquet'")
    age, others = (
        "{type: numeric, lower: 0, upper: 9}",
        "s: {type: categorical, categories: [a]}, x: {type: discover}",
    )
    (folder / "people.yml").write_text(f"columns: {{age: {age}, {others}}}\n")
    (folder / "misspelt.yml").write_text(f"columns: {{agee: {age}, {others}}}\n")
    (folder / "derived.yml").write_text(
        f"columns: {{age: {age}, x: {{derived: agee + 1}}, s: {{type: key}}}}\n"
    )
    done = run("release", "p.parquet", "--domain", "people.yml", "-m", "independent", "-o", "o.csv")
    assert done.exit_code == 0, done.output
    return ("p.parquet", "--domain", "people.yml")


@pytest.mark.parametrize(
    "asked",
    [
        ("plan", "p.parquet", "--domain", "misspelt.yml"),
        ("plan", "p.parquet", "--domain", "derived.yml"),
        ("plan", "KNOWN", "--workload", "agee"),
        ("plan", "KNOWN", "--workload", "agee=5"),
        ("plan", "KNOWN", "--exclude", "agee"),
        ("plan", "KNOWN", "--unit", "agee"),
        ("marginal", "o.csv", "o", "agee"),
        ("evaluate", "p.parquet", "q.parquet", "--places", "agee"),
        ("evaluate", "p.parquet", "q.parquet", "--never", "agee > 3"),
    ],
)
def test_a_misspelt_column_brings_the_right_one_to_mind(people, asked):
    result = run(*(word for one in asked for word in (people if one == "KNOWN" else [one])))
    assert result.exit_code == 2
    assert "did you mean 'age'?" in result.stderr.lower(), result.stderr


def test_an_unknown_unit_is_told_with_the_columns_that_can_be_one(people):
    result = run("plan", *people, "--unit", "customer")
    assert result.exit_code == 2
    assert "A unit can be one of 'age', 's', or 'row'." in result.stderr  # x is a float


def test_lists_of_names_are_never_silently_cut(folder):
    names = [f"c{place}" for place in range(40)]
    assert listed(names[:30]) == ", ".join(map(repr, names[:30]))
    assert listed(names) == ", ".join(map(repr, names[:30])) + ", ..."
    with duckdb.connect("w.duckdb") as con:
        con.execute(f"CREATE TABLE wide ({', '.join(f'{name} BOOLEAN' for name in names)})")
    wide = ("plan", "wide", "-d", "w.duckdb")
    (folder / "derived.yml").write_text("columns: {c0: {derived: missing + 1}}\n")
    for options_ in (
        ("--unit", "customer"),
        ("--exclude", "customer"),
        ("--workload", "customer=5"),
        ("--domain", "derived.yml"),
    ):
        result = run(*wide, *options_)
        assert result.exit_code == 2 and "'c9', 'c10', 'c11'" in result.output, result.output
        assert "'c29', ..." in result.output or "'c30', ..." in result.output or "'c39'" in result.output


def test_a_plan_speaks_of_what_is_in_the_way_in_options(folder):
    text = run("plan", *KNOWN, "--into", "taken.csv").output
    assert "add --replace" in text and "choose another --into" in text and "replace=True" not in text
