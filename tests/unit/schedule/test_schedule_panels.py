"""Panels in a schedule: the request of each period, what it may cost, and what is in the way."""

from datetime import datetime

import pytest
from support.schedules import faults_of

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.front.request import Request
from dpsyn_sql.ledger.overview import ReleaseOverview
from dpsyn_sql.schedule.previews import participation
from dpsyn_sql.schedule.records import Records, gone
from dpsyn_sql.source.slices import Window

GOOD = """ledger: l
accounts: {people: {limit: {epsilon: 4}}}
sources:
  activity: {database: w.duckdb, table: activity, window: month}
releases:
  year:
    source: activity
    output: year
    cadence: month
    start: 2026-01-01
    end: 2026-04-01
    unit: person
    epsilon: 3
    panel: true
"""
EDGES = ("2026-01-01", "2026-02-01", "2026-03-01", "2026-04-01")
LABELS = ("2026-01", "2026-02", "2026-03")
NOW = datetime(2026, 6, 1)


def test_each_period_is_a_request_of_the_whole_calendar(read, tmp_path):
    schedule = read(GOOD)
    items = schedule.items(datetime(2026, 1, 1))
    second = items[1]
    request = schedule.request(second)
    assert request == Request(
        "activity",
        into="year",
        unit="person",
        epsilon=3,
        name="year",
        version="2026-02",
        account="people",
        ledger=tmp_path / "l",
        window=Window("month", "month from 2026-01-01", EDGES, 1, labels=LABELS),
        series="panel",
    )
    request.check()
    panel = request.panel()
    assert (panel.period, panel.periods, panel.label) == (2, 3, "2026-02")


def test_a_period_costs_its_part(read):
    schedule = read(GOOD)
    whole = Budget.of_release(3, "1e-9")
    for item in schedule.items(NOW):
        assert item.releases.cost("gdp", item.period).amount == whole.amount // 3
    assert len(read(GOOD.replace("{epsilon: 4}", "{epsilon: 2}")).releases) == 1
    (found,) = faults_of(read, GOOD.replace("{epsilon: 4}", "{epsilon: 1}"))
    assert found.startswith("2:") and "below one release of 'year'" in found


def entry(label, charged):
    return ReleaseOverview("id", "people", "year", label, "published", charged, charged, "", "", None, ())


def test_what_is_spent_and_to_come_is_told_of_all_periods_together(read):
    (one,) = read(GOOD).releases
    whole = "panel of 3 periods, a person can be in all of them: epsilon=3 in all, each may spend 1/3 of the budget"
    assert participation(one, Records()) == f"{whole}; paid: 0, to come: 3"
    part = one.cost("gdp", one.first)
    two = Records(releases=tuple(entry(label, part) for label in LABELS[:2]))
    assert participation(one, two) == f"{whole}; paid: 2 (together epsilon=2.417), to come: 1"
    all_of_it = Records(releases=tuple(entry(label, part) for label in LABELS))
    assert participation(one, all_of_it) == f"{whole}; paid: 3 (together epsilon=3), to come: 0"


def test_all_periods_are_gone_with_their_table(read, tmp_path):
    import duckdb

    schedule = read(GOOD)
    items = list(schedule.items(NOW))
    with duckdb.connect(tmp_path / "w.duckdb") as con:
        con.execute("CREATE TABLE activity (a INT)")
    assert gone(schedule, items) == items
    with duckdb.connect(tmp_path / "w.duckdb") as con:
        con.execute("CREATE TABLE year (a INT)")
    assert gone(schedule, items) == []


def test_listed_windows_without_gaps_and_queries_are_panels(read):
    windows = "windows: [{label: b, from: 2026-02-01, to: 2026-02-15}, {label: a, from: 2026-01-01, to: 2026-02-01}]"
    text = GOOD.replace(
        "cadence: month\n    start: 2026-01-01\n    end: 2026-04-01\n    unit", f"{windows}\n    unit"
    )
    schedule = read(text.replace("table: activity", "query: SELECT * FROM activity"))
    requests = [schedule.request(item) for item in schedule.items(NOW)]
    assert [(one.window.labels, one.version, one.panel().period) for one in requests] == [
        (("a", "b"), "a", 1),
        (("a", "b"), "b", 2),
    ]
    assert len(read(GOOD.replace("panel: true", "panel: false").replace(" year\n", " y{period}\n")).releases)


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("epsilon: 3", "epsilon: 3\n    rows: 0", 14, "rows: has no meaning with panel:"),
        ("epsilon: 3", "epsilon: 3\n    seed: 0", 14, "seed: has no meaning with panel:"),
        ("epsilon: 3", "epsilon: 3\n    replace: true", 14, "replace: has no meaning with panel:"),
        ("epsilon: 3", "epsilon: 3\n    cumulative: true", 14, "cumulative: has no meaning with panel:"),
        ("epsilon: 3", "epsilon: 3\n    order: at", 14, "order: has no meaning with panel:"),
        ("epsilon: 3", "epsilon: 3\n    new_debit: true", 14, "a schedule never pays twice"),
        ("epsilon: 3", "epsilon: 3\n    windows_per_unit: 2", 14, "windows_per_unit: leave it out"),
        ("epsilon: 3", "epsilon: 3\n    most: 2", 14, "one row in each period"),
        ("unit: person\n    ", "", 13, "write unit: with the column"),
        ("unit: person", "unit: Row", 12, "write unit: with the column"),
        ("    end: 2026-04-01\n", "", 13, "panel: needs end:, where the last period ends"),
        (", window: month", "", 14, "panel: needs window: in the source"),
        ("output: year", "output: year.parquet", 8, "write the name of a table, no path"),
        ("output: year", 'output: "year_{period}"', 8, "one table that grows: leave out {period}"),
        ("output: year", "output: activity", 7, "it feeds itself"),
        (
            "cadence: month\n    start: 2026-01-01\n    end: 2026-04-01",
            "cadence: once",
            12,
            "panel: has no meaning with once",
        ),
        (
            "cadence: month\n    start: 2026-01-01\n    end: 2026-04-01",
            "windows: [{label: a, from: 2026-01-01, to: 2026-02-01}, {label: b, from: 2026-03-01, to: 2026-04-01}]",
            12,
            "panel: needs windows: without gaps",
        ),
        ("panel: true", "panel: [a, b]", 14, "panel: must be a valid boolean"),
        ("panel: true", "panels: true", 14, "did you mean panel?"),
    ],
)
def test_one_fault(read, old, new, line, words):
    assert old in GOOD
    found = faults_of(read, GOOD.replace(old, new))
    told = [fault for fault in found if fault.startswith(f"{line}:") and words in fault]
    assert len(told) == 1, found
    assert len(found) == 1, found


@pytest.mark.parametrize(
    "source",
    [
        "{path: activity.parquet, window: month}",
        '{path: "activity-{period}.parquet", account: people}',
        "{query: SELECT * FROM 'activity.parquet', window: month}",
        '{database: "{period}.duckdb", tables: [a, b], account: people}',
    ],
    ids=["file", "files", "query", "tables"],
)
@pytest.mark.parametrize("output", ["year", "year.parquet"])
def test_a_panel_is_of_a_table_in_a_database(read, source, output):
    text = GOOD.replace("{database: w.duckdb, table: activity, window: month}", source)
    if "tables" in source:
        text, output = text.replace("    unit: person\n", ""), output.partition(".")[0]
    (found,) = faults_of(read, text.replace("output: year", f"output: {output}"))
    assert found.startswith("7:") and "panel: is a table that grows in the database of its source" in found


def test_all_faults_of_a_panel_are_told_at_once(read):
    text = GOOD.replace("epsilon: 3", "epsilon: 3\n    rows: 10\n    seed: 3\n    windows_per_unit: 2")
    assert len(faults_of(read, text)) == 3
