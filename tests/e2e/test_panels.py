"""Panels: persons that stay, a table that grows, what it costs, and every call that is refused."""

import sqlite3
from collections import defaultdict
from contextlib import closing
from dataclasses import replace

import duckdb
import numpy as np
import pytest

import dpsyn_sql
from dpsyn_sql import Request, release
from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.errors import DpsynError, InputError, PrivacyBudgetExceeded, TargetError
from dpsyn_sql.ledger.sqlite import SqliteLedger
from dpsyn_sql.source.slices import Window

pytestmark = pytest.mark.filterwarnings("ignore")

MONTHS = ("2025-01-01", "2025-02-01", "2025-03-01", "2025-04-01")
DOMAIN = {
    "columns": {
        "region": {"type": "categorical", "categories": ["n", "s"]},
        "state": {"type": "categorical", "categories": ["x", "y", "z"]},
    }
}


def make(con, persons=900):
    """Regions stay, states mostly; a fifth of the first persons leaves after January, others join."""
    con.execute(
        "CREATE TABLE t AS SELECT 'p' || p AS who, CAST(DATE '2025-01-10' + to_months(m::INTEGER) AS DATE) AS day, "
        "CASE WHEN p % 2 = 0 THEN 'n' ELSE 's' END AS region, "
        "['x', 'y', 'z'][1 + CAST(hash(p) % 3 AS INTEGER)] AS state "
        f"FROM range({persons}) AS a(p), range(3) AS b(m) "
        f"WHERE (m = 0 OR p % 5 > 0) AND (m > 0 OR p < {persons * 9 // 10})"
    )


def asked(period, **options):
    window = Window("day", "month from 2025-01-01", MONTHS, period - 1)
    return Request(
        "t",
        window=window,
        series="panel",
        **{**dict(into="out", unit="who", domain=DOMAIN, epsilon=30.0), **options},
    )


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "w.duckdb"
    with duckdb.connect(str(path)) as con:
        make(con)
    return str(path)


def rows(path, where="TRUE"):
    with duckdb.connect(path) as con:
        return con.execute(f"SELECT * FROM out WHERE {where} ORDER BY ALL").fetchall()


def ledger_of(path):
    return closing(SqliteLedger(f"{path}.dpsyn-ledger"))


def spent(path):
    with sqlite3.connect(f"{path}.dpsyn-ledger") as con:
        return con.execute("SELECT spent_amount FROM account").fetchone()[0]


def refused(path, request, *words, error=InputError):
    before, there = spent(path), rows(path)
    with pytest.raises(error) as caught:
        release(path, request)
    assert all(word in str(caught.value) for word in words), str(caught.value)
    assert spent(path) == before
    assert rows(path) == there


def test_persons_go_on_and_rows_of_earlier_periods_stay(path):
    before = []
    for period in (1, 2, 3):
        made = release(path, asked(period))
        there = rows(path)
        assert set(before) <= set(there)
        assert made.rows == len(there) - len(before)
        before = there
    months = defaultdict(dict)
    for who, day, region, state in before:
        assert str(day) not in months[who]  # one row for each person and period
        months[who][str(day)] = region, state
    assert {day for found in months.values() for day in found} == set(MONTHS[:3])
    first, second = MONTHS[:2]
    january = [found for found in months.values() if first in found]
    february = [found for found in months.values() if second in found]
    stay = [found for found in january if second in found]
    assert len(january) == pytest.approx(810, abs=60)
    assert len(stay) == pytest.approx(648, abs=80)
    assert len(february) - len(stay) == pytest.approx(72, abs=50)
    assert np.mean([found[first] == found[second] for found in stay]) > 0.8
    left = [found for found in january if second not in found]
    assert not any(MONTHS[2] in found for found in left)  # who left does not come back as the same person


def test_who_stays_keeps_what_is_of_one_value_per_person(path):
    """The year of birth to the year, NULL too; what follows from it goes with it, new persons have one as well."""
    with duckdb.connect(path) as con:
        con.execute(
            "CREATE TABLE born AS SELECT who, day, CASE WHEN hash(who) % 10 = 0 THEN NULL ELSE "
            "(1940 + hash(who, 7) % 60)::INTEGER END AS born, born % 100 AS short, "
            "CASE WHEN born < 1970 THEN 'x' WHEN born IS NULL THEN 'z' ELSE 'y' END AS state FROM t"
        )
    years = {"type": "numeric", "lower": 1940, "upper": 1999, "bins": 6, "nullable": True, "per_unit": True}
    domain = {
        "columns": {
            "born": years,
            "short": {"derived": "born % 100"},
            "state": {
                "type": "categorical",
                "categories": ["x", "y", "z"],
                "other": False,
                "nullable": False,
            },
        }
    }
    for period in (1, 2, 3):
        release(path, replace(asked(period, domain=domain), source="born"))
    told = str(dpsyn_sql.plan(path, replace(asked(2, domain=domain), source="born")))
    assert "a person who stays keeps its born" in told
    with duckdb.connect(path) as con:
        persons, constant, several = con.execute(
            "SELECT count(*), sum((n = 1)::INTEGER), sum((k > 1)::INTEGER) FROM (SELECT count(*) AS k, "
            "count(DISTINCT coalesce(born, 0)) AS n FROM out GROUP BY who)"
        ).fetchone()
        assert constant == persons and several > 500
        follows, derived, known, years = con.execute(
            "SELECT avg((state = CASE WHEN born < 1970 THEN 'x' WHEN born IS NULL THEN 'z' ELSE 'y' END)::INTEGER), "
            "bool_and(short IS NOT DISTINCT FROM born % 100), avg((born IS NULL)::INTEGER), count(DISTINCT born) "
            f"FROM out WHERE day = '{MONTHS[2]}'"
        ).fetchone()
    assert follows > 0.95 and derived and 0.05 < known < 0.15 and years > 40


def test_no_row_meets_a_condition_of_what_its_person_keeps(path):
    """Years of one bin, of whom one is kept: without a look at it, one person in ten is hired as a child. Few
    persons leave for it."""
    with duckdb.connect(path) as con:
        con.execute(
            "CREATE TABLE born AS SELECT who, day, (1940 + hash(who, 7) % 60)::INTEGER AS born, "
            "(born + 20 + (month(day) + hash(who, 9) % 9) % 10)::INTEGER AS hired, "
            "hired - born AS age FROM t"
        )
    years = {"type": "numeric", "lower": 1940, "upper": 1999, "bins": 6, "per_unit": True}
    hired = {"type": "numeric", "lower": 1960, "upper": 2030, "bins": 7}
    age = {"derived": "hired - born"}
    domain = {"columns": {"born": years, "hired": hired, "age": age}, "never": ["age < 20"]}
    for period in (1, 2, 3):
        release(path, replace(asked(period, domain=domain), source="born"))
    with duckdb.connect(path) as con:
        for month in MONTHS[:3]:
            number, children = con.execute(
                f"SELECT count(*), count(*) FILTER (hired < born + 20) FROM out WHERE day = '{month}'"
            ).fetchone()
            assert number > 650 and children == 0
        births = con.execute("SELECT max(n) FROM (SELECT count(DISTINCT born) AS n FROM out GROUP BY who)")
        assert births.fetchone()[0] == 1


def test_all_periods_cost_the_budget_and_no_more(path):
    whole = Budget.of_release(30.0, 1e-9)
    for period in (1, 2, 3):
        made = release(path, asked(period))
        assert spent(path) == period * (whole.amount // 3)
        assert made.epsilon <= 30.0
        events = made.certificate()["mechanisms"]
        assert events[0]["step"] == "who stays, leaves and joins" or period == 1
    assert spent(path) <= whole.amount
    with ledger_of(path) as ledger:
        (account,) = ledger.overview().accounts
        assert account.spent.amount == 3 * (whole.amount // 3)
        assert account.epsilon <= 30.0
    with pytest.raises(InputError, match="index=3"):  # there is no fourth window in the calendar
        asked(4)


def test_the_same_call_again_is_free_and_writes_nothing_new(path):
    for period in (1, 2):
        release(path, asked(period))
    there, cost = rows(path), spent(path)
    for period in (2, 1):
        again = release(path, asked(period))
        assert again.replayed
        assert again.rows == len([row for row in there if str(row[1]) == MONTHS[period - 1]])
    assert rows(path) == there and spent(path) == cost


def test_a_table_that_was_dropped_is_made_again_by_the_same_calls(path):
    for period in (1, 2, 3):
        release(path, asked(period))
    there, cost = rows(path), spent(path)
    with duckdb.connect(path) as con:
        con.execute("DROP TABLE out")
    for period in (1, 2, 3):
        release(path, asked(period))
    assert rows(path) == there and spent(path) == cost


def test_a_period_out_of_order_is_refused(path):
    release(path, asked(1))
    refused(path, asked(3), "2025-02-01", "comes first")


@pytest.mark.parametrize(
    "options",
    [
        {"epsilon": 20.0},
        {"delta": 1e-8},
        {
            "domain": {
                "columns": {**DOMAIN["columns"], "state": {"type": "categorical", "categories": ["x", "y"]}}
            }
        },
        {"exclude": ["region"]},
        {"window": Window("day", "month from 2025-01-01", (*MONTHS, "2025-05-01"), 1)},
        {"window": Window("day", "another calendar", MONTHS, 1)},
        {"into": "elsewhere"},
        {"window": Window("day", "month from 2025-01-01", MONTHS, 1, labels=("a", "b", "c"))},
    ],
    ids=["epsilon", "delta", "domain", "columns", "horizon", "calendar", "output", "labels"],
)
def test_other_settings_in_a_later_period_are_refused(path, options):
    release(path, asked(1))
    refused(
        path,
        replace(asked(2), **options),
        "All periods of a panel have the same",
        "Nothing was read or charged",
    )


def test_a_period_with_other_settings_is_refused(path):
    release(path, asked(1))
    release(path, asked(2))
    refused(path, asked(2, epsilon=5.0), error=DpsynError)
    refused(path, asked(1, epsilon=5.0), error=DpsynError)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE out SET state = CASE state WHEN 'x' THEN 'y' ELSE 'x' END WHERE who = (SELECT min(who) FROM out)",
        "DELETE FROM out WHERE who = (SELECT min(who) FROM out)",
        "INSERT INTO out (FROM out LIMIT 1)",
        "ALTER TABLE out RENAME COLUMN day TO days",
        "DROP TABLE out",
    ],
    ids=["updated", "deleted", "inserted", "renamed", "dropped"],
)
def test_an_output_that_was_changed_is_refused(path, change):
    release(path, asked(1))
    with duckdb.connect(path) as con:
        con.execute(change)
    cost = spent(path)
    with pytest.raises(InputError, match="changed or removed"):
        release(path, asked(2))
    assert spent(path) == cost


def test_a_change_of_the_source_in_a_past_period_changes_no_past_row(path):
    release(path, asked(1))
    january = rows(path)
    with duckdb.connect(path) as con:
        con.execute("DELETE FROM t WHERE hash(who) % 2 = 0")
    release(path, asked(2))
    assert set(january) <= set(rows(path))
    again = release(path, asked(1))  # a correction is no release: the stored answers are replayed
    assert again.replayed and set(january) <= set(rows(path))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"window": None}, ["window=", "an end"]),
        ({"window": Window("day", "months", MONTHS, 0, most=2)}, ["most="]),
        ({"unit": "row"}, ["persons"]),
        ({"most": 2}, ["most="]),
        ({"rows": 10}, ["rows="]),
        ({"seed": 0}, ["seed="]),
        ({"replace": True}, ["replace="]),
        ({"new_debit": True}, ["new_debit="]),
        ({"method": "copula"}, ["method=", "adaptive"]),
        ({"into": "out.parquet"}, ["table"]),
        ({"exclude": ["day"]}, ["'day'"]),
        ({"exclude": ["who"]}, ["exclude"]),
        ({"exclude": ["region", "state"]}, ["a column beside"]),
        ({"version": "January"}, ["version="]),
        ({"epsilon": 1e-15}, []),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else None,
)
def test_what_no_panel_can_do_is_refused_before_anything(path, options, words):
    request = replace(asked(1), **options)
    with pytest.raises(DpsynError) as caught:
        release(path, request)
    assert all(word in str(caught.value) for word in words), str(caught.value)
    with duckdb.connect(path) as con:
        assert con.execute("SHOW TABLES").fetchall() == [("t",)]


def test_a_table_that_is_there_is_no_panel(path):
    with duckdb.connect(path) as con:
        con.execute("CREATE TABLE out (x INTEGER)")
    with pytest.raises(TargetError, match="exists"):
        release(path, asked(1))


def test_a_grant_for_part_of_the_year_ends_the_panel(path):
    release(path, asked(1))
    with ledger_of(path) as ledger:
        (account,) = ledger.overview().accounts
        ledger.grant(account.name, account.epsilon + 1, "1e-9")
    refused(path, asked(2), error=PrivacyBudgetExceeded)


def test_a_plan_tells_of_panels(path):
    release(path, asked(1))
    told = str(dpsyn_sql.plan(path, asked(2)))
    assert "period 2 of 3" in told and "persons of 2025-01-01 go on" in told
    assert "for all periods together" in told


def test_a_discovered_domain_stays_that_of_the_first_period(path):
    request = {"domain": None, "epsilon": 60.0}
    release(path, asked(1, **request))
    with duckdb.connect(path) as con:
        con.execute("UPDATE t SET state = 'new' WHERE day >= DATE '2025-02-01' AND state = 'x'")
    release(path, asked(2, **request))
    with duckdb.connect(path) as con:
        states = {state for (state,) in con.execute("SELECT DISTINCT state FROM out").fetchall()}
    assert "new" not in states and {"x", "y", "z"} <= states


def test_units_of_whole_numbers_and_conditions(tmp_path):
    path = str(tmp_path / "n.duckdb")
    with duckdb.connect(path) as con:
        con.execute(
            "CREATE TABLE t AS SELECT p::INTEGER AS who, TIMESTAMP '2025-01-03 08:00' + to_months(m::INTEGER) AS day, "
            "['n', 's'][1 + p::INTEGER % 2] AS region, ['x', 'y', 'z'][1 + p::INTEGER % 3] AS state "
            "FROM range(600) AS a(p), range(3) AS b(m)"
        )
    domain = {**DOMAIN, "never": ["region = 'n' AND state = 'z'"]}
    for period in (1, 2, 3):
        release(path, asked(period, domain=domain, epsilon=4.0))  # codes that are noise are written as others
    there = rows(path)
    assert not [row for row in there if row[2] == "n" and row[3] == "z"]
    ids = sorted({row[0] for row in there})
    assert ids == list(range(1, len(ids) + 1))
    assert {str(row[1]) for row in there} == {f"{month} 00:00:00" for month in MONTHS[:3]}


def test_the_rows_of_the_latest_period_are_read_with_those_before(path):
    with duckdb.connect(path) as con:
        release(con, asked(1))
        made = release(con, asked(2))
        frame = made.to_df()
        assert len(frame) == len(con.execute("FROM out").fetchall())
        told = made.certificate()
        assert told["panel"]["period"] == 2 and told["panel"]["follows"] == "2025-01-01"
        assert told["guarantee"]["epsilon"] <= 30.0
        stored = con.execute("SELECT name FROM dpsyn_releases() ORDER BY name").fetchall()
        assert stored == [("out.2025-01-01",), ("out.2025-02-01",)]
        states = con.execute(
            "SELECT sum(estimate) FROM dpsyn_marginal('out.2025-02-01', ['state'])"
        ).fetchone()[0]
        assert states == pytest.approx(made.rows, rel=0.1)


@pytest.mark.parametrize("kept", ["month(day) = 1", "month(day) = 2", "FALSE"])
def test_a_period_may_have_nobody(path, kept):
    with duckdb.connect(path) as con:
        con.execute(f"DELETE FROM t WHERE NOT ({kept})")
    for period in (1, 2, 3):
        release(path, asked(period))
    there = rows(path)
    for month in (1, 2, 3):
        number = len([row for row in there if row[1].month == month])
        assert (number > 600) == (f"= {month}" in kept)
        assert number < 1_000


def test_names_that_hidden_attributes_would_have_are_free(path):
    with duckdb.connect(path) as con:
        con.execute(
            'CREATE TABLE odd AS SELECT who, day, state AS "state before", region AS state, '
            "state = 'x' AS presence, region = 'n' AS \"rows in the period\", state = 'y' AS unit FROM t"
        )
    for period in (1, 2):
        release(path, replace(asked(period, domain=None), source="odd"))
    with duckdb.connect(path) as con:
        assert [name for name, *_ in con.execute("DESCRIBE out").fetchall()] == [
            "who",
            "day",
            "state before",
            "state",
            "presence",
            "rows in the period",
            "unit",
        ]


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_files_have_panels_in_a_database(path, tmp_path, kind):
    file = str(tmp_path / f"t.{kind}")
    with duckdb.connect(path) as con:
        con.execute(f"COPY t TO '{file}'")
        domain = (
            {
                "columns": {
                    **DOMAIN["columns"],
                    "day": {"type": "temporal", "lower": "2025-01-01", "upper": "2025-12-31"},
                }
            }
            if kind == "csv"
            else DOMAIN
        )
        for period in (1, 2):
            release(con, replace(asked(period, domain=domain, ledger=str(tmp_path / "l")), source=file))
        assert con.execute("SELECT count(DISTINCT day) FROM out").fetchone() == (2,)


def test_rows_that_are_drawn_again_have_the_values_that_were_judged(path):
    """Of codes that are noise others are written, by bits of the draw: a row is judged by what is written."""
    unused = [f"u{i}" for i in range(12)]
    regions = {"type": "categorical", "categories": ["n", "s", *unused]}
    domain = {"columns": {**DOMAIN["columns"], "region": regions}, "never": ["region = 'n'"]}
    for period in (1, 2, 3):
        release(path, asked(period, domain=domain, epsilon=2.0))
    assert not [row for row in rows(path) if row[2] == "n"]
