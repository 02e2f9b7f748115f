"""The command, as a stranger types it."""

import json

import duckdb
import pytest
from support.commands import run

import dpsyn_sql

DOMAIN = """
columns:
  n: {type: numeric, lower: 0, upper: 9}
  s: {type: categorical, categories: [x, y], other: false}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "d.yml").write_text(DOMAIN)
    with duckdb.connect() as con:
        con.execute(
            "COPY (SELECT (i % 10)::INTEGER AS n, CASE i % 2 WHEN 0 THEN 'x' ELSE 'y' END AS s FROM range(500) AS r(i))"
            " TO 't.parquet'"
        )
    return tmp_path


def test_release_writes_table_and_certificate(folder):
    result = run("release", "t.parquet", "--domain", "d.yml", "--certificate", "c.json", "-e", "2")
    assert result.exit_code == 0, result.output
    assert "t_synthetic.parquet" in result.stdout and "Privacy: epsilon = " in result.stdout
    rows = duckdb.connect().execute("SELECT count(*) FROM 't_synthetic.parquet'").fetchone()[0]
    assert f"{rows} synthetic rows" in result.stdout
    certificate = json.loads((folder / "c.json").read_text())
    assert certificate["guarantee"]["epsilon"] <= 2 and certificate["sampling"]["rows"] == rows
    assert "\r" not in result.output and "\x1b" not in result.output


def test_the_versions_that_are_installed():
    told = run("--version")
    assert told.exit_code == 0
    assert told.stdout == f"dpsyn_sql {dpsyn_sql.__version__}, DuckDB {duckdb.__version__}\n"
    assert "--version" in run("--help").stdout


def test_the_same_command_again_replays_at_no_cost(folder):
    first = run("release", "t.parquet", "--domain", "d.yml")
    again = run("release", "t.parquet", "--domain", "d.yml")
    assert first.exit_code == again.exit_code == 0
    assert "Replayed" in again.output and "Nothing was charged" in again.output
    assert first.stdout.splitlines()[-1] == again.stdout.splitlines()[-1]


def test_other_settings_or_a_strange_file_need_replace(folder):
    assert run("release", "t.parquet", "--domain", "d.yml").exit_code == 0
    changed = run("release", "t.parquet", "--domain", "d.yml", "--epsilon", "3")
    assert changed.exit_code == 2 and "add --replace" in changed.output
    changed = run("release", "t.parquet", "--domain", "d.yml", "--epsilon", "3", "--replace")
    assert changed.exit_code == 2 and "--new-debit" in changed.output
    anew = run("release", "t.parquet", "--domain", "d.yml", "--epsilon", "3", "--replace", "--new-debit")
    assert anew.exit_code == 0
    (folder / "mine.csv").write_text("keep\n")
    taken = run("release", "t.parquet", "--domain", "d.yml", "--into", "mine.csv")
    assert taken.exit_code == 2 and (folder / "mine.csv").read_text() == "keep\n"


def test_a_path_is_no_name_to_give(folder, monkeypatch):
    """A ledger elsewhere calls an output by its whole path."""
    (folder / "ledgers").mkdir()
    monkeypatch.setenv("DPSYN_LEDGER", str(folder / "ledgers" / "all.ledger"))
    asked = ("release", "t.parquet", "--domain", "d.yml")
    assert run(*asked).exit_code == 0
    for more in ((), ("--name", "o")):
        assert run(*asked, *more).exit_code == (2 if more else 0)
    again = run(*asked, "--into", "o.csv")
    assert again.exit_code == 2 and "--name" not in again.stderr
    assert f"give --into '{folder / 't_synthetic.parquet'}'; or copy that file" in again.stderr
    assert run(*asked, "--into", str(folder / "t_synthetic.parquet")).exit_code == 0
    granted = run("ledger", "grant", f"{folder / 't.parquet'}#row", "--epsilon", "1")
    assert granted.exit_code == 0, granted.output
    over = run(*asked, "--into", "o.csv", "--new-debit")
    assert over.exit_code == 3
    assert f"--into '{folder / 't_synthetic.parquet'}' replays it for free" in over.stderr


def test_a_report_of_nothing_names_what_was_given(folder):
    result = run("report", "nofile.parquet")
    assert result.exit_code == 2 and result.stderr == "Error: There is no file 'nofile.parquet'.\n"
    result = run("report", "t.parquet")
    assert "t.parquet.dpsyn.duckdb', the file for the model of 't.parquet'" in result.stderr


def test_ledger_show_grant_verify(folder):
    assert run("release", "t.parquet", "--domain", "d.yml", "--epsilon", "0.5").exit_code == 0
    shown = run("ledger", "show", ".dpsyn-ledger")
    assert shown.exit_code == 0, shown.output
    assert "t.parquet#row" in shown.stdout and "0.5" in shown.stdout and "no limit" in shown.stdout
    assert run("ledger", "grant", ".dpsyn-ledger", "t.parquet#row", "--epsilon", "0.1").exit_code == 2
    granted = run("ledger", "grant", ".dpsyn-ledger", "t.parquet#row", "--epsilon", "1")
    assert granted.exit_code == 0, granted.output
    over = run("release", "t.parquet", "--domain", "d.yml", "--version", "2", "--into", "o.csv")
    assert over.exit_code == 3 and "left" in over.output and "Nothing was read" in over.output
    assert not (folder / "o.csv").exists()
    verified = run("ledger", "verify", ".dpsyn-ledger")
    assert verified.exit_code == 0 and len(verified.stdout.split()[-1]) == 64
    head = verified.stdout.split()[-1]
    assert run("ledger", "verify", ".dpsyn-ledger", "--head", head).exit_code == 0
    assert run("ledger", "verify", ".dpsyn-ledger", "--head", "1" * 64).exit_code == 1
    assert run("ledger", "show", "missing-ledger").exit_code == 2
    assert not (folder / "missing-ledger").exists()


def test_a_grant_to_an_unknown_account_needs_new(folder):
    """A limit under a misspelt name or in a misspelt ledger would protect nothing."""
    missing = run("ledger", "grant", ".dpsyn-ledger", "t.parquet#row", "--epsilon", "1")
    assert missing.exit_code == 2 and "There is no ledger at .dpsyn-ledger" in missing.output
    assert not (folder / ".dpsyn-ledger").exists()
    planned = run("plan", "t.parquet", "--domain", "d.yml").stdout
    assert (
        "Account     't.parquet#row' (exact Gaussian accounting) has no limit; nothing is spent so far"
        in planned
    )
    made = run("ledger", "grant", ".dpsyn-ledger", "t.parquet#row", "--epsilon", "1", "--new")
    assert made.exit_code == 0, made.output
    planned = run("plan", "t.parquet", "--domain", "d.yml").stdout
    assert (
        "Account     't.parquet#row' (exact Gaussian accounting) was granted epsilon=1, delta=1e-9; nothing is"
        in planned
    )
    misspelt = run("ledger", "grant", ".dpsyn-ledger", "t.parquet#rwo", "--epsilon", "2")
    assert misspelt.exit_code == 2 and "no account 't.parquet#rwo': it has 't.parquet#row'" in misspelt.output
    assert "rwo" not in run("ledger", "show", ".dpsyn-ledger").stdout
    assert run("ledger", "grant", ".dpsyn-ledger", "t.parquet#row", "--epsilon", "2").exit_code == 0
    assert run("release", "t.parquet", "--domain", "d.yml", "--epsilon", "0.5").exit_code == 0
    planned = run("plan", "t.parquet", "--domain", "d.yml", "--into", "o.csv").stdout
    assert (
        "granted epsilon=2, delta=2e-9; epsilon=0.5 at delta=1e-09 is spent" in planned
        and "still fits" in planned
    )
    other = run("plan", "t.parquet", "--domain", "d.yml", "--into", "o.csv", "--account", "elsewhere")
    assert other.exit_code == 2 and "belongs to 't.parquet#row'" in other.output


def test_plan_writes_nothing(folder):
    before = sorted(path.name for path in folder.iterdir())
    assert "Counting" not in run("plan", "t.parquet", "--domain", "d.yml").stdout
    result = run("plan", "t.parquet", "--domain", "d.yml", "-v")
    assert result.exit_code == 0
    for word in (
        "Source",
        "row, not one person",
        "epsilon=1 at delta=1e-09, exact Gaussian accounting",
        "Counting",
        "t_synthetic.parquet",
    ):
        assert word in result.stdout
    assert sorted(path.name for path in folder.iterdir()) == before


def test_a_workload_is_read_from_the_command_line(folder):
    ask = ("plan", "t.parquet", "--domain", "d.yml")
    result = run(*ask, "--workload", "n=5", "--workload", 's,"n"=0.5')
    assert result.exit_code == 0 and "Workload    n x 5; (n, s) x 0.5" in result.stdout
    for target in ("n", "n=target"):
        result = run(*ask, "--workload", target)
        assert result.exit_code == 0 and "Target      n: its pairs count 10 times as much" in result.stdout
    for wrong in ("n,s", "=5", "n=", "n=-1", "n=x", "other=5", "other", "n,=5", "n,s=target"):
        result = run(*ask, "--workload", wrong)
        assert result.exit_code == 2 and "workload" in result.output and "Traceback" not in result.output
    assert run(*ask, "--workload", "n=5", "--workload", "n=6").exit_code == 2


def test_settings_of_one_subject_are_read_from_the_command_line_beside_a_file(folder):
    (folder / "t.csv").write_text("a#b\n1,5#x\n")
    (folder / "ask.yml").write_text(
        "source: t.csv\ncsv: {delimiter: '#', decimal: .}\nlimits: {memory: 1GB}\n"
    )
    result = run("plan", "--request", "ask.yml", "--csv", "decimal=,", "--limit", "time=60", "--verbose")
    assert result.exit_code == 0 and "delimiter='#', decimal=',': the owner states" in result.stdout
    assert "1 column of synthetic rows" in run("plan", "t.csv").stdout
    for wrong in ("delimiter", "=;", "delimeter=;", "delimiter=;;", "quote=ab", "encoding=", "on_error=stop"):
        for command in (("plan", "t.csv"), ("init", "t.csv")):
            result = run(*command, "--csv", wrong)
            assert result.exit_code == 2 and "--csv" in result.output and "Traceback" not in result.output
    assert run("plan", "t.csv", "--csv", "quote=", "--csv", "quote='").exit_code == 2


def test_init_makes_a_file_that_plan_understands(folder):
    assert run("init", "t.parquet", "--into", "new.yml").exit_code == 0
    result = run("plan", "t.parquet", "--domain", "new.yml", "--verbose")
    assert result.exit_code == 0
    assert "n: to be discovered" in result.output and "s: to be discovered" in result.output
    result = run("plan", "t.parquet", "--domain", "new.yml", "--no-discover")
    assert result.exit_code == 2 and "no public domain for 'n', 's'" in result.output
    assert run("init", "t.parquet", "--into", "new.yml").exit_code == 2
    assert "n" in run("init", "t.parquet").stdout


def test_a_file_without_a_domain_is_released(folder):
    result = run("release", "t.parquet", "--method", "independent", "--epsilon", "5")
    assert result.exit_code == 0, result.output
    with duckdb.connect() as con:
        assert con.execute("SELECT count(*) FROM 't_synthetic.parquet'").fetchone()[0] > 0


def test_database_option(folder):
    with duckdb.connect("w.duckdb") as con:
        con.execute("CREATE TABLE t AS FROM 't.parquet'")
    result = run("release", "t", "--database", "w.duckdb", "--domain", "d.yml", "--method", "independent")
    assert result.exit_code == 0, result.output
    with duckdb.connect("w.duckdb", read_only=True) as con:
        assert con.execute("SELECT count(*) FROM t_synthetic").fetchone()[0] > 0


@pytest.mark.parametrize(
    "arguments",
    [
        ["release", "missing.parquet"],
        ["release", "t.parquet", "--no-discover"],
        ["release", "t.parquet", "--csv", "on_error=stop"],
        ["release", "t.parquet", "--domain", "d.yml", "--epsilon", "zero"],
        ["release", "t.parquet", "--domain", "d.yml", "--method", "magic"],
        ["plan", "t.parquet", "--domain", "missing.yml"],
        ["init", "missing.csv"],
        ["release", "t.parquet", "--domain", "d.yml", "--certificate", "d.yml"],
    ],
)
def test_errors_are_one_message_without_a_traceback(folder, arguments):
    before = sorted(path.name for path in folder.iterdir())
    result = run(*arguments)
    assert result.exit_code == 2
    assert "Error: " in result.output and "Traceback" not in result.output
    assert sorted(path.name for path in folder.iterdir()) == before


@pytest.mark.parametrize("command", ["release", "plan", "init"])
def test_help_explains(command):
    result = run(command, "--help")
    assert result.exit_code == 0
    assert "SOURCE" in result.stdout and "--trust-query" in result.stdout
