"""Running totals: what they add up, what they cost, and that no death on the way costs twice."""

import json
import math
import signal
import sqlite3
import warnings
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import duckdb
import numpy as np
import pytest

import dpsyn_sql
from dpsyn_sql import Request
from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.errors import BudgetError, InputError, PrivacyBudgetExceeded, ScheduleError
from dpsyn_sql.ledger.sqlite import SqliteLedger
from dpsyn_sql.planning.running import both_ways
from dpsyn_sql.schedule import preview, run, status
from dpsyn_sql.source.slices import Window

pytestmark = pytest.mark.slow

DOMAIN = {
    "columns": {
        "kind": {"type": "categorical", "categories": ["a", "b"]},
        "n": {"type": "numeric", "lower": 0, "upper": 3},
    }
}
PEOPLE = 40


def make(path, periods):
    """Each person has two rows in each window; what they are follows from the window."""
    with duckdb.connect(str(path)) as con:
        con.execute(
            "CREATE TABLE t AS SELECT p::INTEGER AS person, DATE '2100-01-01' + d::INTEGER AS day, "
            "CASE WHEN (p + d) % 3 = 0 THEN 'a' ELSE 'b' END AS kind, ((p * d + i) % 4)::INTEGER AS n "
            f"FROM range({PEOPLE}) AS a(p), range({periods}) AS b(d), range(2) AS c(i)"
        )


def days(periods):
    with duckdb.connect() as con:
        found = con.execute(
            f"SELECT DATE '2100-01-01' + i::INTEGER FROM range({periods + 1}) AS r(i)"
        ).fetchall()
    return tuple(str(day) for (day,) in found)


def asked(periods, period, windows=None, **options):
    """``windows``: in so many a unit counts."""
    edges = days(periods)
    window = Window("day", "days from 2100-01-01", edges, period - 1, most=windows)
    standard = {
        "name": "so_far",
        "into": f"so_far_{period}",
        "unit": "person",
        "most": 2,
        "weights": False,
    }
    given = {**standard, "domain": DOMAIN, "exclude": ["day"], "method": "independent", **options}
    return Request("t", window=window, version=edges[period - 1], series="total", **given)


def total(path, request):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return dpsyn_sql.release(path, request)


def entries(path):
    """Versions of all entries of the ledger, in the order of their debits."""
    with sqlite3.connect(f"{path}.dpsyn-ledger") as con:
        return [version for (version,) in con.execute("SELECT version FROM entry ORDER BY entry_id")]


def answers(path, version):
    """The stored tables of an entry, flat, one after the other."""
    sql = "SELECT content FROM answer NATURAL JOIN entry WHERE version = ? ORDER BY entry_id, sequence"
    with sqlite3.connect(f"{path}.dpsyn-ledger") as con:
        parts = [np.frombuffer(content, dtype="<i8") for (content,) in con.execute(sql, [version])]
    return np.concatenate(parts)


def spent(path):
    with sqlite3.connect(f"{path}.dpsyn-ledger") as con:
        return con.execute("SELECT spent_amount FROM account").fetchone()[0]


def flat(release):
    return np.concatenate([table.values.ravel() for table in release.measurements])


def ledger_of(path):
    return closing(SqliteLedger(f"{path}.dpsyn-ledger"))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "w.duckdb"


# Periods of the same people: the sum. Many periods, and people that count in few: the tree.
@pytest.mark.parametrize(
    ("periods", "most", "way", "last"),
    [
        (4, None, "sum", 4),
        (24, 1, "tree", 24),
        (170, 2, "tree", 4),
    ],
)
def test_totals_are_the_sums_of_stored_answers_and_cost_the_budget_once(path, periods, most, way, last):
    make(path, periods)
    edges = days(periods)
    running = both_ways(periods, most or periods, 2, "gdp")[0]
    assert running.way == way
    for period in sorted({1, 2, 4, last}):
        made = total(path, asked(periods, period, most))
        nodes = running.nodes(period)
        assert flat(made).tolist() == sum(answers(path, edges[node - 1]) for node in nodes).tolist()
        facts = made.certificate()["public_facts"]["running_total"]
        assert [node["version"] for node in facts["nodes"]] == [edges[node - 1] for node in nodes]
        assert facts["rows"]["until_before"] == edges[period] and facts["way"] == way
        for node in facts["nodes"]:
            (event,) = node["mechanisms"]
            assert event["l2_squared"] == len(made.measurements) * node["rows_per_unit"] ** 2
            first, last = node["windows"]
            assert node["rows_per_unit"] == 2 * min(most or periods, last - first + 1)
        sigmas = [event["sigma"] for node in facts["nodes"] for event in node["mechanisms"]]
        for table in made.measurements:
            # Each answer is rounded to whole rows, a variance of 1/12.
            assert table.sigma == pytest.approx(math.sqrt(sum(one**2 + 1 / 12 for one in sigmas)))
            shown = made.marginal(table.attrs)
            assert shown["noisy"].tolist() == pytest.approx(table.values.ravel().tolist())
            assert shown["standard_error"].tolist() == pytest.approx([table.sigma] * len(shown))
        assert made.epsilon == pytest.approx(1) and made.rho == float(Budget.of_release(1, 1e-9).rho)
    assert entries(path) == list(edges[:last])  # missing periods too, in order
    whole, before = Budget.of_release(1, 1e-9).amount, spent(path)
    assert before <= whole and (last < periods or before > whole * 0.999999)
    again = total(path, asked(periods, 2, most, replace=True))
    assert again.replayed and spent(path) == before and len(entries(path)) == last
    with ledger_of(path) as ledger:
        ledger.verify()


def test_a_grant_for_the_budget_pays_for_the_calendar_and_for_nothing_else(path):
    make(path, 3)
    with ledger_of(path) as ledger:
        ledger.grant("main.t#person", 1)
    total(path, asked(3, 3))
    with pytest.raises(PrivacyBudgetExceeded):
        total(path, asked(3, 3, name="other", into="other", epsilon=0.01))


def test_delta_0_and_rows_as_units(path):
    make(path, 5)
    for epsilon, name in ((1, "first"), (60, "second")):
        made = total(
            path,
            asked(
                *(5, 5),
                windows=1,
                most=1,
                delta=0,
                epsilon=epsilon,
                unit="row",
                exclude=["day", "person"],
                name=name,
                into=name,
                method="copula",
            ),
        )
        assert made.delta == 0 and made.epsilon == pytest.approx(epsilon)
        assert {event["event"] for event in made.certificate()["mechanisms"]} == {"laplace"}
    assert abs(made.model.total - 5 * 2 * PEOPLE) < 10
    assert spent(path) <= 61 * 10**15


def test_the_plan_prints_both_ways_and_costs_nothing(path):
    make(path, 4)
    text = dpsyn_sql.plan(path, asked(4, 2, method="auto")).verbose()
    assert "Method      copula" in text
    for words in (
        "Total       period 2 of 4; a unit counts in at most 4 windows, with at most 2 rows in each",
        "sum: 6.32 times the noise of one release on average, at most 8 (chosen",
        "tree: ",
        "epsilon and delta are for the totals of all periods together",
        "The guarantee is for all rows of a unit in the calendar",
    ):
        assert words in text
    assert not Path(f"{path}.dpsyn-ledger").exists()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"method": "adaptive"}, "'copula' or 'independent'"),
        ({"domain": {"columns": {"kind": {"type": "categorical", "categories": ["a"]}}}}, "'n'.*dpsyn init"),
        ({"name": None}, "name= is missing"),
        ({"version": "2100-01-02"}, "must be the label of the window, '2100-01-01'"),
        ({"window": None}, "window of the period"),
        ({"most": 2**30, "weights": False}, "more than can be counted"),
    ],
)
def test_what_makes_no_total_is_refused_before_anything_is_charged(path, changes, said):
    make(path, 4)
    with pytest.raises(InputError, match=said):
        total(path, replace(asked(4, 1), **changes))
    assert not Path(f"{path}.dpsyn-ledger").exists()


def test_a_budget_too_small_for_a_node_is_refused(path):
    make(path, 4)
    with pytest.raises(BudgetError):
        total(path, asked(4, 1, epsilon=1e-15, delta=0))
    with pytest.raises(InputError, match="series='sum' is not known"):
        dpsyn_sql.release(path, replace(asked(4, 1), series="sum"))
    assert not Path(f"{path}.dpsyn-ledger").exists()


SCHEDULE = """ledger: ledger
accounts:
  people: {limit: {epsilon: 1}}
sources:
  t: {database: w.duckdb, table: t, window: day, domain: d.yml}
releases:
  so_far: {source: t, output: "so_far_{period}", cadence: day, start: 2100-01-01, end: 2100-01-05, cumulative: true,
    unit: person, most: 2, weights: false, exclude: [day], method: independent, epsilon: 1}
"""


def test_a_schedule_makes_a_total_of_each_period_within_the_limit_for_all(path, tmp_path, monkeypatch):
    monkeypatch.delenv("DPSYN_LEDGER", raising=False)
    make(path, 4)
    (tmp_path / "d.yml").write_text(json.dumps(DOMAIN))
    file = tmp_path / "dpsyn.yml"
    file.write_text(SCHEDULE)
    end = datetime(2100, 1, 5)
    planned = preview(file, now=end)
    assert [bool(one.problem) for one in planned] == [False] * 4
    bound = "running totals of 4 windows, a person can be in all of them: epsilon=1 in all. sum: "
    assert planned[0].bound.startswith(bound) and "(chosen: less on average); tree: " in planned[0].bound
    with pytest.raises(InputError, match="so_far:2100-01-01 comes first"):
        run(file, select=["so_far:2100-01-02"], now=end)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first = run(file, now=datetime(2100, 1, 2))
        done = run(file, now=end)
    assert [one.result for one in (*first.outcomes, *done.outcomes)] == ["published"] * 4
    charged = [one.charged for one in (*first.outcomes, *done.outcomes)]
    assert charged == pytest.approx([one.epsilon for one in planned])
    with duckdb.connect(str(path), read_only=True) as con:
        assert (
            len(
                con.execute(
                    "SELECT 1 FROM information_schema.tables WHERE table_name LIKE 'so_far%'"
                ).fetchall()
            )
            == 4
        )
    assert run(file, now=end).outcomes == ()
    with closing(SqliteLedger(tmp_path / "ledger")) as opened:
        spent = opened.overview().accounts[0].spent.amount
    assert 0.999999 < spent / Budget.of_release(1, 1e-9).amount <= 1


def test_a_total_that_its_budget_refuses_stops_the_later_ones_which_would_measure_it(
    path, tmp_path, monkeypatch
):
    monkeypatch.delenv("DPSYN_LEDGER", raising=False)
    make(path, 4)
    (tmp_path / "d.yml").write_text(json.dumps(DOMAIN))
    file, end = tmp_path / "dpsyn.yml", datetime(2100, 1, 5)
    limited = SCHEDULE.replace("{epsilon: 1}}", "{epsilon: 1}, per: {month: {epsilon: 0.75}}}")
    calendar = "2100-01-01, end: 2100-01-05"
    file.write_text(limited.replace(calendar, "2099-12-30, end: 2100-01-03"))
    assert [one.state for one in status(file, now=end)] == ["due"] * 4  # two parts in each month
    file.write_text(limited.replace(calendar, "2099-12-29, end: 2100-01-02"))
    assert [one.state for one in status(file, now=end)] == ["due"] * 2 + ["refused by budget"] * 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        done = run(file, now=end)
    assert [one.result for one in done.outcomes] == ["published"] * 2 + ["refused by budget"] * 2
    assert not done.outcomes[-1].tried  # although the next month has room


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (", end: 2100-01-05", "", "needs end:"),
        (", window: day", "", "needs window:"),
        ("cadence: day, start: 2100-01-01, end: 2100-01-05", "cadence: once", "no meaning with once"),
        (
            "cadence: day, start: 2100-01-01, end: 2100-01-05",
            "windows: [{label: a, from: 2100-01-01, to: 2100-01-02}, {label: b, from: 2100-01-03, to: 2100-01-04}]",
            "without gaps",
        ),
    ],
)
def test_a_schedule_without_a_whole_calendar_has_no_totals(tmp_path, monkeypatch, old, new, said):
    monkeypatch.delenv("DPSYN_LEDGER", raising=False)
    (tmp_path / "d.yml").write_text(json.dumps(DOMAIN))
    (tmp_path / "dpsyn.yml").write_text(SCHEDULE.replace(old, new))
    with pytest.raises(ScheduleError, match=said):
        preview(tmp_path / "dpsyn.yml", now=datetime(2100, 1, 5))


def third_period(path):
    """Three nodes are measured by one call."""
    return total(path, asked(4, 3, windows=2))


def test_a_killed_total_continues_by_the_same_call_and_each_node_is_debited_once(children, tmp_path):
    """It dies at a change of the ledger or the database, here or there."""

    def job(death):
        make(tmp_path / f"{death}.duckdb", 4)
        scratch = tmp_path / f"scratch{death}"
        scratch.mkdir()
        places = {"scratch": str(scratch), "result": f"{scratch}.json", "log": f"{scratch}.log"}
        call = [__name__, "third_period", str(tmp_path / f"{death}.duckdb")]
        return {"call": call, "step": death, **places}

    (status,) = children(job(None))
    steps = len(json.loads((tmp_path / "scratchNone.json").read_text())["steps"])
    deaths = range(steps // 8, steps, steps // 8)
    assert status == 0 and children(*map(job, deaths)) == [-signal.SIGKILL] * len(deaths)
    edges = days(4)
    for death in (None, *deaths):
        path = tmp_path / f"{death}.duckdb"
        made = third_period(path)
        assert entries(path) == list(edges[:3])
        assert flat(made).tolist() == sum(answers(path, version) for version in edges[:3]).tolist()
        assert spent(path) == Budget.of_release(1, 1e-9).amount // 2 * 2  # two of the windows are charged
        with ledger_of(path) as ledger:
            ledger.verify()
