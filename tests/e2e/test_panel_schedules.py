"""Panels of a schedule: the same persons month after month, each month paid once, whatever stands in its way."""

import json
import signal
from collections import defaultdict
from contextlib import closing
from datetime import datetime
from pathlib import Path

import duckdb
import numpy as np
import pytest
from typer.testing import CliRunner

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.cli.main import app
from dpsyn_sql.errors import InputError, ScheduleError
from dpsyn_sql.ledger.sqlite import SqliteLedger
from dpsyn_sql.schedule import preview, run, status

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::UserWarning")]

PERSONS = 2_000
LABELS = ["2100-01", "2100-02", "2100-03", "2100-04"]
FEBRUARY, MARCH, APRIL, MAY = (datetime(2100, month, 1) for month in (2, 3, 4, 5))
DOMAIN = "columns: {region: {type: categorical, categories: [n, s]}, state: {type: categorical, categories: [x, y, z]}}"
SCHEDULE = """ledger: ledger
accounts:
  people: {limit: {epsilon: 13}}
sources:
  activity: {database: work.duckdb, table: activity, window: day, domain: d.yml}
releases:
  year:
    source: activity
    output: made
    cadence: month
    start: 2100-01-01
    end: 2100-05-01
    unit: person
    epsilon: 12
    panel: true
"""
PART = Budget.of_release(12, 1e-9).amount // 4


def make(folder, persons=PERSONS):
    """Regions and states stay; a fifth of the first persons leaves after January, a tenth joins then."""
    (folder / "dpsyn.yml").write_text(SCHEDULE)
    (folder / "d.yml").write_text(DOMAIN)
    with duckdb.connect(str(folder / "work.duckdb")) as con:
        con.execute(
            "CREATE TABLE activity AS SELECT 'P' || p AS person, "
            "CAST(DATE '2100-01-10' + to_months(m::INTEGER) AS DATE) AS day, "
            "['n', 's'][1 + (p % 2)::INTEGER] AS region, ['x', 'y', 'z'][1 + (hash(p) % 3)::INTEGER] AS state "
            f"FROM range({persons}) AS a(p), range(4) AS b(m) "
            f"WHERE (m = 0 OR p % 5 > 0) AND (m > 0 OR p < {persons * 9 // 10})"
        )


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.delenv("DPSYN_LEDGER", raising=False)
    monkeypatch.chdir(tmp_path)
    make(tmp_path)
    return tmp_path


def sql(statement, folder=Path()):
    with duckdb.connect(str(folder / "work.duckdb")) as con:
        return con.execute(statement).fetchall()


def rows(folder=Path()):
    return sql("FROM made ORDER BY ALL", folder)


def spent(folder=Path()):
    """In parts of the budget, by what the ledger says of its one account."""
    with closing(SqliteLedger(folder / "ledger", read_only=True)) as opened:
        (account,) = opened.overview().accounts
    return account.spent.amount / PART


def results(done):
    return [(one.item.period.label, one.result) for one in done.outcomes]


def published(*months):
    return [(LABELS[month - 1], "published") for month in months]


def check_persons(there, months):
    """One row for each person and month; persons go on as they are."""
    found = defaultdict(dict)
    for person, day, *values in there:
        assert str(day) not in found[person]
        found[person][str(day)] = values
    assert {day for one in found.values() for day in one} == {f"{label}-01" for label in LABELS[:months]}
    both = [one for one in found.values() if {"2100-01-01", "2100-02-01"} <= set(one)]
    assert len(both) == pytest.approx(PERSONS * 0.72, rel=0.1)
    assert np.mean([one["2100-01-01"] == one["2100-02-01"] for one in both]) > 0.7


def test_each_month_is_added_when_it_is_due_and_missed_months_are_caught_up(folder):
    shown = preview(now=FEBRUARY)
    assert [one.item.period.label for one in shown] == LABELS[:1] and not (folder / "ledger").exists()
    whole = "panel of 4 periods, a person can be in all of them: epsilon=12 in all, each may spend 1/4 of the budget"
    assert shown[0].bound == f"{whole}; paid: 0, to come: 4"
    done = run(now=FEBRUARY)
    assert results(done) == published(1) and spent() == 1
    assert done.outcomes[0].charged == pytest.approx(shown[0].epsilon)
    assert done.outcomes[0].message.endswith("charged; period 1 of 4")
    january = rows()
    caught_up = preview(now=APRIL)
    assert "day from 2100-01-01 until before 2100-03-01" in caught_up[0].reads
    assert results(run(now=APRIL)) == published(2, 3) and spent() == 3
    april = rows()
    assert set(january) < set(april)
    assert run(now=APRIL).outcomes == () and spent() == 3 and rows() == april
    states = status(now=APRIL)
    assert [one.state for one in states] == ["published"] * 3 + ["waiting"]
    (told,) = {one.panel for one in states}
    assert told.startswith(f"{whole}; paid: 3 (together epsilon=") and told.endswith("), to come: 1")
    assert float(told.split("epsilon=")[2].split(")")[0]) < 12
    assert results(run(now=MAY)) == published(4) and spent() == 4
    assert set(april) < set(rows())
    check_persons(rows(), 4)
    assert status(now=datetime(2101, 1, 1))[0].panel == f"{whole}; paid: 4 (together epsilon=12), to come: 0"
    assert run(now=datetime(2101, 1, 1)).outcomes == ()
    assert sql("SELECT name FROM dpsyn.releases ORDER BY name") == [(f"made.{label}",) for label in LABELS]


def catch_up(folder):
    """What a run does that is killed on the way."""
    run(Path(folder, "dpsyn.yml"), now=APRIL)


def test_a_killed_run_goes_on_and_no_month_is_charged_twice(children, folder):
    """It dies at a change of the ledger or of the database, here or there: also between debit and publication."""

    def job(death):
        place = folder / str(death)
        (place / "scratch").mkdir(parents=True)
        make(place)
        run(place / "dpsyn.yml", now=FEBRUARY)
        told = {"scratch": f"{place}/scratch", "result": f"{place}/result", "log": f"{place}/log"}
        return {"call": [__name__, "catch_up", str(place)], "step": death, **told}

    (ended,) = children(job(None))
    steps = json.loads((folder / "None" / "result").read_text())["steps"]
    writing = [place for place, step in enumerate(steps) if step == "writing the rows of a period"]
    deaths = sorted({len(steps) // 5, len(steps) // 2, 4 * len(steps) // 5, writing[0], writing[-1] + 1})
    assert ended == 0 and children(*map(job, deaths)) == [-signal.SIGKILL] * len(deaths)
    for death in deaths:
        place = folder / str(death)
        before = rows(place)
        done = run(place / "dpsyn.yml", now=APRIL)
        assert {result for _, result in results(done)} == {"published"} and len(done.outcomes) in (1, 2)
        assert spent(place) == 3
        assert set(before) <= set(rows(place))
        check_persons(rows(place), 3)
        with closing(SqliteLedger(place / "ledger")) as opened:
            opened.verify()
        assert run(place / "dpsyn.yml", now=APRIL).outcomes == ()


def test_a_month_whose_month_before_failed_is_not_tried(folder):
    run(now=FEBRUARY)
    sql("ALTER TABLE made RENAME TO hidden")
    done = run(now=APRIL)
    assert results(done) == [("2100-02", "failed"), ("2100-03", "skipped")] and done.exit_code == 1
    assert "changed or removed" in done.outcomes[0].message
    assert done.outcomes[1].message == "not tried: year:2100-02 comes first and failed"
    assert spent() == 1
    with pytest.raises(InputError, match=r"year:2100-02 comes first\. Rows of a period of a panel follow"):
        run(now=APRIL, select=["year:2100-03"])
    sql("ALTER TABLE hidden RENAME TO made")
    assert results(run(now=APRIL)) == published(2, 3)


def test_a_table_that_is_gone_is_written_again_when_selected_and_for_free(folder):
    run(now=APRIL)
    there = rows()
    sql("DROP TABLE made")
    assert [one.state for one in status(now=APRIL)] == ["published, output gone"] * 3 + ["waiting"]
    assert run(now=APRIL).outcomes == ()
    assert results(run(now=APRIL, select=["year:2100-02"])) == published(1, 2)
    done = run(now=APRIL, select=["year:2100-03"])  # the table stands, but has no rows of March
    assert results(done) == published(1, 2, 3) and {one.charged for one in done.outcomes} == {0}
    assert rows() == there and spent() == 3


def test_a_table_that_was_changed_is_refused_and_nothing_is_charged(folder):
    run(now=FEBRUARY)
    sql("UPDATE made SET state = CASE state WHEN 'x' THEN 'y' ELSE 'x' END")
    (outcome,) = run(now=MARCH).outcomes
    assert outcome.result == "failed" and "dpsyn run --select NAME:PERIOD" in outcome.message
    assert spent() == 1


def test_another_output_gets_all_months_again_when_selected(folder):
    run(now=FEBRUARY)
    there = rows()
    (folder / "dpsyn.yml").write_text(SCHEDULE.replace("output: made", "output: other"))
    assert results(run(now=MARCH)) == [("2100-02", "failed")]
    assert results(run(now=MARCH, select=["year:2100-01"])) == published(1)
    assert sql("FROM other ORDER BY ALL") == there and spent() == 1
    assert results(run(now=MARCH)) == published(2) and rows() == there


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("epsilon: 12", "epsilon: 11"),
        ("end: 2100-05-01", "end: 2100-06-01"),
        ("window: day, domain: d.yml", "window: day"),
    ],
)
def test_other_settings_in_a_later_month_are_refused_and_a_dry_run_says_so(folder, old, new):
    run(now=FEBRUARY)
    (folder / "dpsyn.yml").write_text(SCHEDULE.replace(old, new))
    (shown,) = preview(now=MARCH)
    (outcome,) = run(now=MARCH).outcomes
    assert outcome.result == "failed" and "All periods of a panel have the same" in outcome.message
    assert shown.problem and spent() == 1
    (folder / "dpsyn.yml").write_text(SCHEDULE)
    assert results(run(now=MARCH)) == published(2)


def test_a_limit_that_is_reached_ends_the_panel(folder):
    (folder / "dpsyn.yml").write_text(SCHEDULE.replace("{limit: {epsilon: 13}}", "{limit: {epsilon: 9}}"))
    foreseen = [one.state for one in status(now=MAY)]
    assert foreseen == ["due", "due", "refused by budget", "refused by budget"]
    done = run(now=MAY)
    assert [result for _, result in results(done)] == ["published"] * 2 + ["refused by budget"] * 2
    assert done.outcomes[3].message == "not tried: year:2100-03 was refused by its budget"
    assert done.exit_code == 3 and spent() == 2
    (folder / "dpsyn.yml").write_text(SCHEDULE)
    assert results(run(now=MAY)) == published(3, 4)


def test_a_yearly_limit_that_refuses_a_month_ends_the_panel_too(folder):
    """A month of the next year follows the one that was refused."""
    text = SCHEDULE.replace("13}}", "13}, per: {quarter: {epsilon: 6}}}")
    (folder / "dpsyn.yml").write_text(text)
    now = MAY
    assert [one.state for one in status(now=now)] == ["due", *["refused by budget"] * 3]
    done = run(now=now)
    assert [result for _, result in results(done)] == ["published"] + ["refused by budget"] * 3
    assert "quarter from 2100-01-01" in done.outcomes[1].message and spent() == 1


def test_what_no_panel_can_be_is_refused_before_anything_is_charged(folder):
    wrong = SCHEDULE.replace("epsilon: 12", "epsilon: 12\n    rows: 10\n    seed: 1\n    replace: true")
    (folder / "dpsyn.yml").write_text(wrong)
    for call in (run, preview, status):
        with pytest.raises(ScheduleError) as caught:
            call(now=MARCH)
        assert len(caught.value.faults) == 3
    assert not (folder / "ledger").exists() and sql("SHOW TABLES") == [("activity",)]
    (folder / "dpsyn.yml").write_text(SCHEDULE.replace("epsilon: 12", "epsilon: 12\n    method: copula"))
    with pytest.raises(ScheduleError, match="The schedule cannot be used") as caught:
        run(now=MARCH)
    (fault,) = caught.value.faults
    assert "makes no panel" in fault and "use adaptive, or leave method: out" in fault
    assert not (folder / "ledger").exists()


def test_the_commands_tell_of_a_panel(folder):
    (folder / "dpsyn.yml").write_text(SCHEDULE.replace("2100-0", "2020-0"))
    sql("UPDATE activity SET day = day - INTERVAL 80 YEAR")
    dry = CliRunner().invoke(app, ["run", "--dry-run"]).output
    assert "year: panel of 4 periods" in dry and "year:2020-01: costs epsilon=5.51" in dry
    done = json.loads(CliRunner().invoke(app, ["run", "--json"]).stdout)
    assert [one["result"] for one in done["periods"]] == ["published"] * 4
    told = CliRunner().invoke(app, ["status"]).output
    assert told.count("panel of 4 periods") == 1 and "paid: 4 (together epsilon=12), to come: 0" in told
    found = json.loads(CliRunner().invoke(app, ["status", "--json"]).stdout)["periods"]
    assert all(one["panel"].startswith("panel of 4 periods") for one in found)
