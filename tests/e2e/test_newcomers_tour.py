"""A newcomer's first hour: the README and the page of releases as they stand, every command once, and wrong
calls that end in one clear line."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import duckdb
import pytest
from support import pages
from support.commands import search_path
from typer.testing import CliRunner

from dpsyn_sql.cli.main import app

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
DOMAIN = "examples/adult.domain.yml"


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """What a newcomer has after cloning, as far as the README uses it."""
    (tmp_path / "examples").mkdir()
    for name in ("adult.parquet", "adult.domain.yml"):
        shutil.copy(ROOT / "examples" / name, tmp_path / "examples" / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DPSYN_LEDGER", raising=False)
    return tmp_path


def main_job():
    """What the README's first line does after the installation."""
    (job,) = re.findall(
        r"^pip install \. && (dpsyn .+)$", (ROOT / "README.md").read_text(), flags=re.MULTILINE
    )
    return job


PAGES = {"README.md": 2, "docs/releases.md": 4}
"""Pages of a checkout, and how many of their blocks run."""


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("page", PAGES)
def test_a_page_runs_as_it_stands_and_a_second_run_of_the_first_costs_nothing(page, checkout, monkeypatch):
    monkeypatch.setenv("PATH", search_path(checkout))
    spent = []
    for _ in range(2 if page == "README.md" else 1):
        if page == "README.md":
            subprocess.run(["bash", "-c", main_job()], cwd=checkout, check=True, capture_output=True)
        assert pages.run(ROOT / page, checkout) == PAGES[page]
        ledgers = sorted(str(path) for path in checkout.rglob("*ledger") if path.is_file())
        shown = [json.loads(run("ledger", "show", ledger, "--json").output) for ledger in ledgers]
        for one in shown:
            for release in one["releases"]:
                del release["written"]  # the second run writes the rows again
        spent.append([(one["accounts"], one["releases"]) for one in shown])
    assert spent[0] == spent[-1]
    assert sum(len(releases) for _, releases in spent[0]) == {"README.md": 2, "docs/releases.md": 3}[page]


def test_each_command_once(checkout):
    source, options = (
        "examples/adult.parquet",
        ("--domain", DOMAIN, "--method", "independent", "--into", "o.csv"),
    )
    told = [
        ("init", source),
        ("plan", source, *options),
        ("release", source, *options),
        ("plan", source, *options),
        ("ledger", "show", source),
        ("ledger", "grant", source, "adult.parquet#row", "-e", "2"),
        ("ledger", "verify", source),
        ("sample", "o.csv", "o", "--rows", "3"),
        ("marginal", "o.csv", "o", "sex"),
        ("audit", "--method", "independent", "--runs", "50"),
    ]
    said = []
    for command in told:
        result = run(*command)
        assert result.exit_code == 0, (command, result.output)
        said.append(result.output)
    assert "columns:" in said[0] and "a new debit" in said[1] and "Wrote o.csv" in said[2]
    assert "a replay of the answers of" in said[3] and "adult.parquet#row" in said[4]
    assert "still fits" in said[5] and "is intact" in said[6]
    assert said[7].startswith("age,workclass") and "standard_error" in said[8] and "Verdict" in said[9]


WRONG = {
    "a table that is not there": (("release", "peple", "-d", "w.duckdb"), "w.main.people"),
    "a file that is not there": (("release", "people.parquet"), "no file 'people.parquet'"),
    "an ending that is no table": (("release", "notes.txt"), ".parquet, .csv or .csv.gz"),
    "no epsilon": (("release", "people", "-d", "w.duckdb", "-e", "0"), "greater than 0"),
    "an epsilon in words": (("release", "people", "-d", "w.duckdb", "-e", "one"), "not a finite number"),
    "a large delta": (("release", "people", "-d", "w.duckdb", "--delta", "0.1"), "1e-6"),
    "a method that is not there": (("release", "people", "-d", "w.duckdb", "-m", "gan"), "adaptive"),
    "a column that is not there": (("release", "people", "-d", "w.duckdb", "--exclude", "agee"), "age"),
    "a unit that is not there": (("release", "people", "-d", "w.duckdb", "--privacy-unit", "id"), "age"),
    "a domain that is not there": (("release", "people", "-d", "w.duckdb", "--domain", "d.yml"), "d.yml"),
    "an output that is there": (("release", "people", "-d", "w.duckdb", "--into", "taken.csv"), "--replace"),
    "an output that is the source": (
        ("release", "people", "-d", "w.duckdb", "--into", "people"),
        "is the source",
    ),
    "an output in no folder": (
        ("release", "people", "-d", "w.duckdb", "--into", "no/o.csv"),
        "does not exist",
    ),
    "a window": (
        ("release", "SELECT max(age) OVER () AS a FROM people", "-d", "w.duckdb", "--into", "o"),
        "a window",
    ),
    "rows twice": (
        ("release", "SELECT a.age FROM people a, people b", "-d", "w.duckdb", "--into", "o"),
        "join of two",
    ),
    "a database that is none": (("release", "people", "-d", "notes.txt"), "DuckDB"),
    "a ledger that is none": (("ledger", "show", "notes.txt"), "ledger"),
    "a source without a ledger": (("ledger", "verify", "w.duckdb"), "There is no ledger"),
    "a certificate over a file": (
        ("release", "people", "-d", "w.duckdb", "--certificate", "notes.txt"),
        ".json",
    ),
    "a weight without a column": (("release", "people", "-d", "w.duckdb", "--workload", "5"), "--workload"),
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    with duckdb.connect(str(tmp_path / "w.duckdb")) as con:
        con.execute(
            "CREATE TABLE people AS SELECT (i % 50)::INTEGER AS age, i % 2 = 0 AS b FROM range(500) AS r(i)"
        )
    (tmp_path / "taken.csv").write_text("mine\n")
    (tmp_path / "notes.txt").write_text("notes\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DPSYN_LEDGER", raising=False)
    return tmp_path


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_call_is_one_clear_line_and_leaves_nothing(folder, case):
    command, words = WRONG[case]
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    result = run(*command)
    errors = re.findall("^Error: ", result.output, flags=re.MULTILINE)
    assert result.exit_code == 2 and len(errors) == 1 and words in result.output, result.output
    assert "Traceback" not in result.output and result.exception.__class__ is SystemExit
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
