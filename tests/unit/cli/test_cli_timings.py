"""``--timings``: a table on standard error, and nothing else changes."""

import json

import duckdb
import pytest
from support.commands import run

import dpsyn_sql
from dpsyn_sql.cli.output import Output, timed
from dpsyn_sql.common.progress import phase

DOMAIN = "columns: {b: {type: categorical, categories: [true, false], other: false}}\n"
QUICK = ("release", "t.parquet", "--domain", "d.yml", "--method", "independent", "--into", "o.csv")
SCHEDULE = """
ledger: l.ledger
accounts:
  people: {limit: {epsilon: 5}}
sources:
  t: {path: m.parquet, window: at}
releases:
  copy:
    {source: t, output: "copy-{period}.csv", cadence: month, start: 2020-01-01, end: 2020-03-01, method: independent}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DPSYN_LEDGER", raising=False)
    (tmp_path / "d.yml").write_text(DOMAIN)
    with duckdb.connect() as con:
        con.execute("COPY (SELECT i % 2 = 0 AS b FROM range(500) AS r(i)) TO 't.parquet'")
    return tmp_path


def table(stderr):
    """Seconds on the clock by phase; the first two lines are the title and the names of the columns."""
    lines = stderr.splitlines()
    start = lines.index("Where the time went (for you alone):")
    assert lines[start + 1].split() == ["phase", "times", "seconds", "processor", "seconds", "done"]
    columns = lines[start + 1].index("times")
    found = {line[:columns].strip(): line[columns:].split() for line in lines[start + 2 :]}
    return {
        name: float(cells[0] if name in ("other", "total") else cells[1]) for name, cells in found.items()
    }


def test_the_table_is_on_standard_error_and_adds_up(folder):
    result = run(*QUICK, "--timings")
    assert result.exit_code == 0 and "Where the time went" not in result.stdout
    times = table(result.stderr)
    assert {"prepare", "add noise", "count marginals", "sample rows", "write", "other"} <= times.keys()
    assert list(times)[-2:] == ["other", "total"]
    total = times.pop("total")
    assert sum(times.values()) == pytest.approx(total, abs=0.05 * len(times) + 0.05)


def test_a_replay_shows_only_what_ran(folder):
    assert run(*QUICK).exit_code == 0
    times = table(run(*QUICK, "--timings").stderr)
    assert {"sample rows", "write"} <= times.keys()
    assert not {"count marginals", "add noise", "encode the source"} & times.keys()


def test_the_json_document_is_the_same_with_and_without(folder):
    plain = run(*QUICK, "--json")
    told = run(*QUICK, "--json", "--timings")
    again = run(*QUICK, "--json")
    assert told.exit_code == 0 and plain.stderr == again.stderr == ""
    assert table(told.stderr)["total"] > 0
    assert told.stdout == again.stdout and json.loads(told.stdout).keys() == json.loads(plain.stdout).keys()


def test_quiet_still_shows_what_was_asked_for(folder):
    result = run(*QUICK, "--quiet", "--timings")
    assert result.stdout == "" and table(result.stderr)["total"] > 0
    assert run(*QUICK, "--quiet").stderr == ""


def test_a_release_that_is_refused_shows_what_ran(folder):
    assert run(*QUICK).exit_code == 0
    assert run("ledger", "grant", "t.parquet#row", "-e", "1.5").exit_code == 0
    other = ("--into", "p.csv", "-e", "2", "--name", "other")
    result = run(*QUICK, *other, "--timings")
    assert result.exit_code == 3, result.output
    times = table(result.stderr.split("Error: ")[0])
    assert "prepare" in times and "count marginals" not in times


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_what_ran_is_shown_also_if_it_ends_early(capsys, error):
    with pytest.raises(error), timed(Output(as_json=True, quiet=True), wanted=True), phase("count", 9):
        raise error
    printed = capsys.readouterr()
    assert printed.out == "" and "count marginals" in printed.err


def test_nothing_is_printed_unless_it_is_wanted(capsys):
    with timed(Output(as_json=False, quiet=False), wanted=False), phase("count"):
        pass
    assert capsys.readouterr() == ("", "")


def test_a_run_of_a_schedule_shows_all_its_releases_together(folder):
    with duckdb.connect() as con:
        con.execute(
            "COPY (SELECT DATE '2020-01-01' + i::INT % 59 AS at FROM range(900) AS r(i)) TO 'm.parquet'"
        )
    (folder / "dpsyn.yml").write_text(SCHEDULE)
    result = run("run", "--timings", "--json")
    assert result.exit_code == 0, result.output
    assert {"discover domains", "write", "total"} <= table(result.stderr).keys()
    assert len(json.loads(result.stdout)["periods"]) == 2
    (write,) = [line.split() for line in result.stderr.splitlines() if line.startswith("write  ")]
    assert write[1] == "2"
    again = run("run", "--timings")
    assert "Nothing is due." in again.stdout and again.stderr == ""


def test_a_release_in_python_has_the_same_times(folder):
    release = dpsyn_sql.release("t.parquet", domain="d.yml", method="independent", into="o.csv")
    phases = [one.phase for one in release.timings]
    assert phases[0] == "prepare" and phases[-1] == "other" and "count marginals" in phases
    assert all(one.seconds >= 0 and one.processor >= 0 and one.times >= 1 for one in release.timings)
    by_name = {one.phase: one for one in release.timings}
    assert by_name["sample rows"].done == f"{release.rows:,} rows" and by_name["count marginals"].done == ""
    again = dpsyn_sql.release("t.parquet", domain="d.yml", method="independent", into="o.csv")
    assert again.replayed and "count marginals" not in [one.phase for one in again.timings]


def test_two_calls_time_themselves_and_what_is_around_both(folder):
    from dpsyn_sql.common.progress import stopwatch

    with stopwatch() as watch:
        releases = [
            dpsyn_sql.release(
                "t.parquet", domain="d.yml", method="independent", into=f"{name}.csv", name=name
            )
            for name in "ab"
        ]
    around = {one.phase: one for one in watch.timings()}
    for one in around.values():
        inside = [{two.phase: two for two in release.timings} for release in releases]
        seconds = sum(two[one.phase].seconds for two in inside)
        if one.phase == "other":  # with what passes between the calls, which a busy machine makes long
            assert one.seconds > seconds - 0.1
            continue
        assert one.seconds == pytest.approx(seconds, rel=0.2, abs=0.1)
        assert one.times >= sum(two[one.phase].times for two in inside)
