"""The file of a schedule: every fault at once, each with its line; periods from the calendar alone."""

import json
from datetime import datetime
from pathlib import Path

import pytest
from support.schedules import faults_of

from dpsyn_sql.accounting.account import granted_budget
from dpsyn_sql.errors import ScheduleError
from dpsyn_sql.schedule.calendar import Calendar
from dpsyn_sql.schedule.document import json_schema
from dpsyn_sql.schedule.reading import read_schedule
from dpsyn_sql.source.slices import Partition, Window

ROOT = Path(__file__).resolve().parents[3]

GOOD = """ledger: l
accounts:
  people: {limit: {epsilon: 4}, per: {year: {epsilon: 2}}}
sources:
  events: {database: w.duckdb, table: t, window: at}
releases:
  monthly:
    source: events
    output: out/{release}-{period}.parquet
    cadence: month
    start: 2013-01-01
"""


def test_the_published_schema_is_current():
    """Write it again with: python -c "import json; from dpsyn_sql.schedule.document import json_schema;
    print(json.dumps(json_schema(), indent=2))" > docs/schedule.schema.json"""
    assert json.loads((ROOT / "docs/schedule.schema.json").read_text()) == json_schema()


def test_faults_of_all_entries_are_told_at_once_with_their_lines(read):
    text = """ledger: l
colour: red
accounts:
  people: {limit: {epsilon: 4}, per: {week: {epsilon: 1}}}
sources:
  events: {database: w.duckdb, table: t, window: at, domain: missing.yml}
  places: {path: "p{period}.csv"}
  other: {path: other.csv, window: at}
releases:
  monthly:
    source: events
    output: out.parquet
    cadence: month
    start: 2013-02-30
    epsilon: 0
    delta: 2
    cumulative: true
    outptu: x
  shops:
    source: other
    output: "{partition}.parquet"
    partition_by: shop
    partitions: [a, b, a, "c/d"]
  weekly:
    source: other
    output: w.parquet
    cadence: week
    start: 2013-01-01
  monthly: {source: other, output: x.csv, cadence: once}
"""
    found = faults_of(read, text)
    lines = [int(fault.partition(":")[0]) for fault in found]
    assert lines == sorted(lines)
    wanted = {
        2: "unknown key 'colour'",
        4: "unknown key 'week'",
        6: "no domain file",
        7: "account",
        23: "declared twice",
        26: "needs {period}",
        28: "not a Monday",
        29: "occurs twice, first in line 10",
    }
    for line, words in wanted.items():
        told = [fault for fault in found if fault.startswith(f"{line}:")]
        assert any(words in fault for fault in told), (line, words, found)


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("start: 2013-01-01", "start: 2013-02-30", 11, "must be a date that exists"),
        ("start: 2013-01-01", "start: 2013-01-02", 11, "not the first day of a month"),
        ("start: 2013-01-01", "start: 2013-01-01\n    end: 2012-01-01", 12, "is not after start"),
        ("cadence: month", "cadence: fortnight", 10, "must be 'hour'"),
        ("-{period}.parquet", ".parquet", 9, "needs {period}"),
        ("-{period}.parquet", "-{period}-{colour}.parquet", 9, "{colour} is not known here"),
        ("-{period}.parquet", "-{period}{.parquet", 9, "{ is not known here"),
        ("out/{release}-{period}.parquet", "out/{period}.txt", 9, "must end in .parquet"),
        ("source: events", "source: evnts", 8, "did you mean 'events'"),
        ("{epsilon: 2}", "{epsilon: 0.5}", 3, "below one release"),
        ("{epsilon: 4}", "{epsilon: 0.5}", 3, "below one release"),
        ("{epsilon: 4}", "{epsilon: 4, delta: 0}", 3, "the account is pure"),
        (", window: at", "", 8, "which rows belong to a period"),
        ("table: t", "table: t, path: x.csv", 5, "write one of path:"),
        ("database: w.duckdb, table", "table", 5, "database: is missing"),
        ("  monthly:\n", '  "a{b}":\n', 7, "must not have braces"),
        ("  monthly:\n", '  "a/b":\n', 7, "must not have / "),
        ("cadence: month", "cadence: month\n    windows_per_unit: 2", 11, "must be 1 with single rows"),
        ("cadence: month", "cadence: month\n    new_debit: true", 11, "never pays twice"),
        ("ledger: l", "ledger: &a [*a]", 1, "contains itself"),
        (
            "table: t",
            "table: t, csv: {delimeter: x}",
            5,
            "csv: has the unknown key 'delimeter' (did you mean",
        ),
        ("table: t", "table: t, csv: {delimiter: xx}", 5, "csv: {'delimiter': 'xx'}: give one character"),
        ("table: t", "table: t, csv: tab", 5, "csv: 'tab': give a mapping"),
        (
            "cadence: month",
            "cadence: month\n    limits: {time: 0}",
            11,
            "limits: {'time': 0}: give a positive",
        ),
        ("cadence: month", "cadence: month\n    limits: {memry: 1GB}", 11, "did you mean 'memory'?"),
        ("cadence: month", "cadence: month\n    workload: {a: target, b: target}", 11, "name one column"),
        (
            "cadence: month",
            "cadence: month\n    workload: no",
            11,
            "Write the name in quotes: workload: 'no'",
        ),
    ],
)
def test_one_fault(read, old, new, line, words):
    assert old in GOOD
    found = faults_of(read, GOOD.replace(old, new))
    assert any(fault.startswith(f"{line}:") and words in fault for fault in found), found


def with_release(text):
    return GOOD + text


def test_two_releases_of_one_output(read):
    twice = GOOD.split("releases:\n")[1].replace("monthly", "again").replace("{release}", "monthly")
    found = faults_of(read, with_release(twice))
    assert len(found) == 1 and "'monthly' has the same output" in found[0]


@pytest.mark.parametrize(
    ("output", "same"),
    [
        ("out/monthly-2013-01.parquet", True),
        ("out/../out/monthly-2013-12.parquet", True),
        ("out/monthly-2013.parquet", False),
        ("out/monthly-all.parquet", False),
    ],
)
@pytest.mark.parametrize("first", [True, False])
def test_an_output_that_a_calendar_will_write(read, output, same, first):
    """Labels are compared by their look: an endless calendar has no list of outputs."""
    head, monthly = GOOD.split("releases:\n")
    once = f"  once:\n    source: events\n    output: {output}\n    cadence: once\n"
    text = f"{head}releases:\n{once + monthly if first else monthly + once}"
    if same:
        (found,) = faults_of(read, text)
        assert f"'{'once' if first else 'monthly'}' has the same output" in found
    else:
        read(text)


@pytest.mark.parametrize(
    "source",
    [
        "{path: out/monthly-2013-01.parquet, account: people}",
        '{path: "out/*.parquet", account: people}',
        "{path: out/../out, account: people}",
    ],
)
def test_the_output_of_another_release_is_no_source(read, source):
    more = "\n  fed:\n    source: fed\n    output: fed.parquet\n    cadence: once\n"
    found = faults_of(read, GOOD.replace("releases:", f"  fed: {source}\nreleases:") + more)
    assert "its source is the output of 'monthly'. Nothing is gained" in found[0]


@pytest.mark.parametrize("source", ["table: OUT", "query: select * from w.main.out", 'query: from "out"'])
def test_a_release_that_feeds_itself_or_a_circle(read, source):
    text = f"""
sources:
  a: {{database: w.duckdb, {source}}}
releases:
  one: {{source: a, output: out, cadence: once}}
"""
    assert "it feeds itself" in faults_of(read, text)[0]


def test_two_that_feed_each_other(read):
    text = """
sources:
  a: {database: w.duckdb, table: y}
  b: {database: w.duckdb, table: x}
releases:
  one: {source: a, output: x, cadence: once}
  two: {source: b, output: y, cadence: once}
"""
    found = faults_of(read, text)
    assert len(found) == 2 and all("the two feed each other" in fault for fault in found)


def test_listed_windows_may_have_gaps_but_no_overlap(read):
    def listed(*windows):
        lines = [f"      - {{label: {name}, from: {one}, to: {two}}}" for name, one, two in windows]
        return GOOD.replace("cadence: month\n    start: 2013-01-01", "\n".join(["windows:", *lines]))

    good = read(listed(("late", "2013-03-01", "2013-04-01"), ("early", "2013-01-01", "2013-02-01")))
    (one,) = good.releases
    periods = list(one.series.periods(datetime(2013, 1, 1)))
    assert [(period.label, period.index) for period in periods] == [("early", 0), ("late", 2)]
    assert one.slice(periods[1]).edges == ("2013-01-01", "2013-02-01", "2013-03-01", "2013-04-01")
    found = faults_of(read, listed(("a", "2013-01-01", "2013-03-01"), ("b", "2013-02-01", "2013-04-01")))
    assert found[0].startswith("12:") and "'a' and 'b' overlap" in found[0]


@pytest.mark.parametrize(
    ("cadence", "start", "labels"),
    [
        ("hour", "2013-12-31T23", ["2013-12-31T23", "2014-01-01T00"]),
        ("day", "2012-02-28", ["2012-02-28", "2012-02-29", "2012-03-01"]),
        ("week", "2012-12-24", ["2012-W52", "2013-W01", "2013-W02"]),
        ("month", "2012-12-01", ["2012-12", "2013-01"]),
        ("quarter", "2012-10-01", ["2012-Q4", "2013-Q1"]),
        ("year", "2012-01-01", ["2012", "2013"]),
    ],
)
def test_labels_and_edges_follow_from_the_calendar(cadence, start, labels):
    calendar = Calendar(cadence, datetime.fromisoformat(start))
    periods = []
    for period in calendar.periods(datetime(2100, 1, 1)):
        periods.append(period)
        if len(periods) == len(labels):
            break
    assert [period.label for period in periods] == labels
    edges = calendar.edges(len(labels) - 1)
    assert [datetime.fromisoformat(edge) for edge in edges] == [
        *(period.begins for period in periods),
        periods[-1].ends,
    ]
    assert calendar.edges(0) == edges[:2]


def test_requests_have_the_options_of_the_file_and_the_label_as_version(read, tmp_path):
    text = GOOD.replace("cadence: month", "cadence: month\n    unit: who\n    windows_per_unit: 3")
    text = text.replace("table: t", "table: t, csv: {on_error: null, decimal: ','}")
    text = text.replace("cadence:", "workload: who\n    limits: {time: 60, memory: 1GB}\n    cadence:")
    schedule = read(text.replace("cadence:", "most: 5\n    weights: false\n    epsilon: 0.25\n    cadence:"))
    _, second, *_ = schedule.items(datetime(2013, 2, 10))
    request = schedule.request(second)
    assert (request.name, request.version, request.account) == ("monthly", "2013-02", "people")
    assert (request.epsilon, request.unit, request.most) == (0.25, "who", 5)
    assert (request.csv, request.workload) == ({"on_error": None, "decimal": ","}, "who")
    assert request.limits == {"time": 60, "memory": "1GB"}
    assert request.into == tmp_path / "out/monthly-2013-02.parquet"
    edges = ("2013-01-01", "2013-02-01", "2013-03-01")
    assert request.window == Window("at", "month from 2013-01-01", edges, 1, 1, 3)


def test_rows_of_a_unit_can_stay_together(read):
    told = "cadence: month\n    unit: who\n    most: 16\n    order: at"
    schedule = read(GOOD.replace("cadence: month", told))
    request = schedule.request(schedule.items(datetime(2013, 1, 1))[0])
    assert (request.weights, request.order, request.most) == (True, "at", 16)
    (found,) = faults_of(read, GOOD.replace("cadence: month", "cadence: month\n    order: at"))
    assert "order: orders the rows of a unit, which stay together: name its column" in found
    one = GOOD.replace("cadence: month", "cadence: month\n    unit: who\n    order: at\n    weights: false")
    (found,) = faults_of(read, one)
    assert (
        found.startswith("12:") and "order: orders the rows of a unit" in found and "weights: false" in found
    )
    total = GOOD.replace(
        "cadence: month",
        "cadence: month\n    end: 2013-03-01\n    cumulative: true\n    unit: who\n    order: at",
    )
    (found,) = faults_of(read, total)
    assert "order: has no meaning with cumulative:" in found


HOSTILE = ["a'b", 'a"b', "a;b--c", "x y", "out.csv", "DROP TABLE t", "ü"]


@pytest.mark.parametrize("value", HOSTILE)
def test_values_in_names_of_tables_are_quoted_and_never_looked_up_again(read, value):
    text = f"""
sources: {{s: {{database: w.duckdb, table: t}}}}
releases:
  {json.dumps(value, ensure_ascii=False)}:
    {{source: s, output: "o_{{release}}_{{partition}}", partition_by: c, partitions: [{json.dumps(value)}, other]}}
"""
    schedule = read(text)
    first = schedule.items(datetime(2013, 1, 1))[0]
    request = schedule.request(first)
    inside = f"o_{value}_{value}".replace('"', '""')
    assert request.into == f'"{inside}"'
    assert request.window == Partition("c", value, 1) and request.version == value


@pytest.mark.parametrize("value", ["../x", "a\nb", "{period}", "a\\b", "*", "", ".hidden", "-x"])
def test_values_that_would_change_a_path_or_a_line_are_refused(read, value):
    text = f"""
sources: {{s: {{database: w.duckdb, table: t}}}}
releases:
  r: {{source: s, output: "o/{{partition}}.csv", partition_by: c, partitions: [{json.dumps(value)}]}}
"""
    assert "label" in faults_of(read, text)[0]


def test_values_that_yaml_changes_are_refused(read):
    text = GOOD.replace("cadence: month\n    start: 2013-01-01", "partition_by: c\n    partitions: [no, 1]")
    assert any(
        "write it in quotes" in fault for fault in faults_of(read, text.replace("{period}", "{partition}"))
    )


@pytest.mark.parametrize(
    ("changed", "name"),
    [("window: at", "window: no"), ("start: 2013-01-01", "start: 2013-01-01\n    order: no")],
)
def test_a_column_that_is_called_no_is_to_be_quoted(read, changed, name):
    told = faults_of(read, GOOD.replace(changed, name))[0]
    assert told.endswith(
        "must be a valid string, not False: YAML reads the words no, off, yes and on as false and true. "
        f"Write the name in quotes: {name.split()[-2]} 'no'"
    )


def test_numbers_are_those_that_are_written(read):
    """YAML 1.1 takes 010 for 8, 1:30 for 90 and 0x1F for 31."""
    text = GOOD.replace(
        "cadence: month\n    start: 2013-01-01", "partition_by: site\n    partitions: [01, 010, 0x1F, 1]"
    )
    schedule = read(text.replace("{period}", "{partition}").replace("epsilon: 4}", "epsilon: 010}"))
    (one,) = schedule.releases
    assert one.series.values == ("01", "010", "0x1F", "1")
    numbered = GOOD.replace("people:", "202611:").replace("window: at", "window: at, account: 202611")
    assert read(numbered).releases[0].source.account == "202611"
    limit = schedule.accounts["people"].limit
    assert limit.budget == granted_budget("10", "1e-8")
    assert any(
        "'1:30' is not a finite number" in fault for fault in faults_of(read, GOOD + "    epsilon: 1:30\n")
    )


def test_a_link_to_the_file_makes_no_second_ledger(read, tmp_path):
    read(GOOD)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "dpsyn.yml").symlink_to(tmp_path / "dpsyn.yml")
    with pytest.raises(ScheduleError) as error:
        read_schedule(tmp_path / "other" / "dpsyn.yml")
    assert "would be another ledger beside each link" in str(error.value.faults)
    (tmp_path / "same.yml").symlink_to(tmp_path / "dpsyn.yml")
    assert read_schedule(tmp_path / "same.yml").ledger == read_schedule(tmp_path / "dpsyn.yml").ledger
    read(GOOD.replace("ledger: l", f"ledger: {tmp_path}/l"))
    assert read_schedule(tmp_path / "other" / "dpsyn.yml").ledger == tmp_path / "l"


@pytest.mark.parametrize("variable", [":memory:", "spent.db"])
def test_a_ledger_that_the_next_run_does_not_find_is_refused(read, monkeypatch, variable):
    text = GOOD.replace("ledger: l\n", "")
    assert read(text).ledger.name == "w.duckdb.dpsyn-ledger"
    monkeypatch.setenv("DPSYN_LEDGER", variable)
    assert len(faults_of(read, text)) == 1


def test_a_file_that_repeats_itself_without_end_is_refused_at_once(read):
    levels = ["x0: &a0 [z, z, z, z, z, z, z, z, z]"]
    levels += [f"x{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)]
    assert "has more than 200,000 values" in faults_of(read, "\n".join([*levels, GOOD]))[0]
