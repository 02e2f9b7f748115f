"""Scheduled releases from the file to the outputs: what is due, what it costs, what is refused."""

import json
from contextlib import closing
from datetime import datetime, timedelta

import duckdb
import pytest
from typer.testing import CliRunner

from dpsyn_sql.cli.main import app
from dpsyn_sql.errors import InputError, ScheduleError, ScheduleLocked
from dpsyn_sql.ledger.sqlite import SqliteLedger
from dpsyn_sql.schedule import preview, run, status
from dpsyn_sql.schedule.running import alone

pytestmark = pytest.mark.slow

DOMAIN = "columns: {n: {type: numeric, lower: 0, upper: 9, bins: 2}, at: {type: temporal, lower: 2100-01-01, upper: 2103-01-01, bins: 2}, who: {type: numeric, lower: 0, upper: 9, bins: 2}, c: {type: categorical, categories: [a, 'b''x'], other: true}}"
HEAD = """ledger: ledger
accounts:
  people: {limit: {epsilon: 20}}
sources:
  t: {path: t.parquet, window: at, domain: d.yml}
releases:
"""
MONTHLY = '  {name}: {{source: t, output: "{name}-{{period}}.csv", cadence: month, start: 2100-01-01, method: independent}}\n'
MARCH = datetime(2100, 3, 1)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.delenv("DPSYN_LEDGER", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "d.yml").write_text(DOMAIN)
    with duckdb.connect() as con:
        con.execute(
            "COPY (SELECT (i % 10)::INTEGER AS n, TIMESTAMP '2100-01-01' + INTERVAL (i) HOUR AS at, "
            "(i % 10)::INTEGER AS who, CASE WHEN i % 4 = 0 THEN 'b''x' ELSE 'a' END AS c "
            "FROM range(20000) AS r(i)) TO 't.parquet'"
        )
    return tmp_path


def schedule(folder, *releases, head=HEAD):
    (folder / "dpsyn.yml").write_text(head + "".join(releases))


def results(done):
    return [(str(one.item), one.result) for one in done.outcomes]


def ledger(folder):
    with closing(SqliteLedger(folder / "ledger", read_only=True)) as opened:
        return opened.overview()


def test_each_period_is_released_once_when_it_is_due(folder):
    schedule(folder, MONTHLY.format(name="m"))
    assert {one.state for one in status(now=datetime(2100, 1, 31, 23))} == {"waiting"}
    assert not (folder / "ledger").exists()
    assert results(run(now=MARCH)) == [("m:2100-01", "published"), ("m:2100-02", "published")]
    assert run(now=MARCH).outcomes == ()
    spent = ledger(folder).accounts[0].spent
    assert spent.amount == sum(one.cost.amount for one in ledger(folder).releases)
    assert results(run(now=datetime(2100, 4, 1))) == [("m:2100-03", "published")]
    found = [(one.item.period.label, one.state) for one in status(now=datetime(2100, 4, 1))]
    assert found == [(f"2100-0{n}", "published") for n in (1, 2, 3)] + [
        ("2100-04", "waiting"),
        ("2100-05", "waiting"),
    ]
    january = (folder / "m-2100-01.csv").read_text().count("\n") - 1
    assert 500 < january < 1000  # 744 hours and noise: not the whole table


def test_late_rows_have_time_to_come(folder):
    schedule(folder, MONTHLY.format(name="m").replace("method:", "wait: 3 days, method:"))
    assert run(now=datetime(2100, 2, 3, 23)).outcomes == ()
    assert results(run(now=datetime(2100, 2, 4))) == [("m:2100-01", "published")]


def test_a_yearly_limit_stops_a_series_until_the_next_year(folder):
    head = HEAD.replace("20}}", "20}, per: {year: {epsilon: 1.5}}}")
    yearly = MONTHLY.format(name="m").replace("month", "quarter").replace("2100-01-01", "2100-04-01")
    schedule(folder, yearly, head=head)
    now = datetime(2101, 8, 1)
    foreseen = [one.state for one in status(now=now)]
    assert foreseen[:5] == ["due", "due", "refused by budget", "due", "due"]
    done = run(now=now)
    assert results(done) == [
        ("m:2100-Q2", "published"),
        ("m:2100-Q3", "published"),
        ("m:2100-Q4", "refused by budget"),
        ("m:2101-Q1", "published"),
        ("m:2101-Q2", "published"),
    ]
    assert done.exit_code == 3 and "year from 2100-01-01" in done.outcomes[2].message
    assert [one.state for one in status(now=now)][:3] == ["published", "published", "refused by budget"]


def test_a_series_that_is_renamed_has_no_second_yearly_limit(folder):
    head = HEAD.replace("20}}", "20}, per: {year: {epsilon: 1.5}}}")
    schedule(folder, MONTHLY.format(name="m"), head=head)
    run(now=datetime(2100, 4, 1))
    spent = len(ledger(folder).releases)
    schedule(folder, MONTHLY.format(name="renamed"), head=head)
    assert {one.state for one in status(now=MARCH)} == {"refused by budget", "waiting"}
    assert {result for _, result in results(run(now=MARCH))} == {"refused by budget"}
    assert len(ledger(folder).releases) == spent


def test_the_lifetime_limit_stops_all_later_periods(folder):
    schedule(folder, MONTHLY.format(name="m"), head=HEAD.replace("20", "1.5"))
    now = datetime(2100, 6, 1)
    shown = preview(now=now)
    done = run(now=now)
    assert [one.result for one in done.outcomes] == ["published"] * 2 + ["refused by budget"] * 3
    assert [bool(one.problem) for one in shown] == [False] * 2 + [True] * 3
    assert [round(one.epsilon, 6) for one in shown] == [1] * 5  # what is refused is not free
    told = done.outcomes[2].message
    assert "raise the limit (limit: of accounts.people)" in told and "ledger grant" not in told
    assert done.exit_code == 3 and "not tried" in done.outcomes[-1].message
    assert len(ledger(folder).releases) == 2


def test_a_limit_is_set_in_the_ledger_and_never_lowered_below_what_is_spent(folder):
    schedule(folder, MONTHLY.format(name="m"))
    run(now=MARCH)
    assert ledger(folder).accounts[0].granted[0] == "20"
    schedule(folder, MONTHLY.format(name="m"), head=HEAD.replace("20", "1"))
    with pytest.raises(ScheduleError, match=r"dpsyn.yml:3: .* never lowered below what is spent"):
        run(now=datetime(2100, 5, 1))
    assert ledger(folder).accounts[0].granted[0] == "20"
    schedule(folder, MONTHLY.format(name="m"), head=HEAD.replace("20", "5"))
    run(now=MARCH)
    assert ledger(folder).accounts[0].granted[0] == "5"


def test_a_failure_does_not_stop_other_releases(folder):
    head = HEAD.replace("releases:", '  gone: {path: "gone-{period}.parquet", account: people}\nreleases:')
    head = head.replace("  t: {", "  t: {account: people, ")
    gone = MONTHLY.format(name="gone").replace("source: t", "source: gone")
    schedule(folder, gone, MONTHLY.format(name="m"), head=head)
    done = run(now=MARCH)
    assert done.exit_code == 1
    assert sorted(results(done)) == [
        ("gone:2100-01", "failed"),
        ("gone:2100-02", "failed"),
        ("m:2100-01", "published"),
        ("m:2100-02", "published"),
    ]
    assert len(ledger(folder).releases) == 2


def test_a_person_in_at_most_two_windows_pays_two(folder):
    bounded = "unit: who, most: 3, weights: false, windows_per_unit: 2, method:"
    schedule(folder, MONTHLY.format(name="m").replace("method:", bounded))
    now = datetime(2100, 6, 1)
    assert [round(one.epsilon, 6) for one in preview(now=now)] == [1, 1, 0, 0, 0]
    assert [round(one.charged, 6) for one in run(now=now).outcomes] == [1, 1, 0, 0, 0]
    overview = ledger(folder)
    assert overview.accounts[0].spent.amount == 2 * overview.releases[0].cost.amount
    with pytest.raises(InputError, match="m:2100-06 comes first"):
        run(now=datetime(2100, 9, 1), select=["m:2100-07"])


@pytest.mark.parametrize(
    "changed",
    [
        ("windows_per_unit: 1", "windows_per_unit: 2"),
        ("epsilon: 1", "epsilon: 2"),
    ],
)
def test_a_preview_says_what_a_changed_panel_costs(folder, changed):
    bounded = "unit: who, most: 3, weights: false, windows_per_unit: 1, epsilon: 1, method:"
    schedule(folder, text := MONTHLY.format(name="m").replace("method:", bounded))
    run(now=MARCH)
    schedule(folder, text.replace(*changed))
    now = datetime(2100, 7, 1)
    told = [round(one.epsilon, 6) for one in preview(now=now)]
    assert told == [round(one.charged, 6) for one in run(now=now).outcomes]
    assert told[0] >= 1 and told[-1] == 0


def test_a_folder_that_is_missing_is_a_fault_before_anything_is_charged(folder):
    schedule(folder, MONTHLY.format(name="m"), MONTHLY.format(name="n").replace('output: "', 'output: "out/'))
    for call in (run, preview):
        with pytest.raises(ScheduleError) as caught:
            call(now=MARCH)
        (fault,) = caught.value.faults
        assert fault.startswith(str(folder / "dpsyn.yml") + ":8: ") or fault.startswith("dpsyn.yml:8: ")
        assert fault.endswith(f"releases.n: output: there is no folder {str(folder / 'out')!r}: create it")
    assert not (folder / "ledger").exists()
    (folder / "out").mkdir()
    assert {result for _, result in results(run(now=MARCH))} == {"published"}
    (folder / "out").rename(folder / "elsewhere")
    assert run(now=MARCH).outcomes == ()
    assert "published, output gone" in {one.state for one in status(now=MARCH)}


def test_a_bound_on_the_windows_of_rows_promises_nothing_for_a_person(folder):
    schedule(folder, MONTHLY.format(name="m").replace("method:", "windows_per_unit: 1, method:"))
    (told,) = {one.bound for one in preview(now=MARCH)}
    assert told == "a row is in one window: epsilon=1.0 in all, for a row and not for a person's rows"


def test_only_new_partitions_are_released_and_values_are_no_sql(folder):
    parts = '  p: {{source: t, output: "{{release}}-{{partition}}.csv", partition_by: c, partitions: {}, method: independent}}\n'
    schedule(folder, parts.format("""["b'x"]"""))
    assert results(run()) == [("p:b'x", "published")]
    assert 4500 < (folder / "p-b'x.csv").read_text().count("\n") < 5500
    schedule(folder, parts.format("""["b'x", a, "'; DROP TABLE t; --"]"""))
    assert results(run()) == [("p:a", "published"), ("p:'; DROP TABLE t; --", "published")]
    overview = ledger(folder)
    assert overview.accounts[0].spent == overview.releases[0].cost  # a row is in one partition


NAMES = ["a'b", 'a"b;--', "{{ 7 * 7 }}", "{period}", "'; DROP TABLE keep; --"]
HOSTILE = """ledger: ledger
accounts:
  people: {limit: {epsilon: 20}}
sources:
  t:
    database: w.duckdb
    query: |
      SELECT * /* "; DROP TABLE keep */ FROM "t;""{{ x }}" -- '; DROP TABLE keep
      WHERE "a""b;--" <> '; DROP TABLE keep; --'
    domain: d.json
releases:
  'x"y; DROP TABLE keep':
    source: t
    output: '"{release};""--_{partition}"'
    partition_by: 'a"b;--'
    partitions: PARTS
    method: independent
"""


def test_hostile_names_and_values_reach_tables_as_they_are(folder):
    """Names of columns, a query, names of outputs and values of partitions: none is read as SQL or a template."""
    columns = ", ".join(f"i % 3 AS {quoted(name)}" for name in NAMES if name != 'a"b;--')
    values = ", ".join("'" + name.replace("'", "''") + "'" for name in NAMES)
    with duckdb.connect("w.duckdb") as con:
        con.execute("CREATE TABLE keep AS SELECT 1 AS one")
        con.execute(
            f'CREATE TABLE "t;""{{{{ x }}}}" AS SELECT {columns}, [{values}][1 + i % 5] AS "a""b;--" '
            "FROM range(5000) AS r(i)"
        )
    domain = {name: {"type": "numeric", "lower": 0, "upper": 2} for name in NAMES}
    domain['a"b;--'] = {"type": "categorical", "categories": NAMES}
    (folder / "d.json").write_text(json.dumps({"columns": domain}))
    parts = ["a'b", 'a"b;--', "'; DROP TABLE keep; --"]
    (folder / "dpsyn.yml").write_text(HOSTILE.replace("PARTS", json.dumps(parts)))
    assert len(preview()) == 3
    done = run()
    assert [one.result for one in done.outcomes] == ["published"] * 3, [one.message for one in done.outcomes]
    assert run().outcomes == () and {one.state for one in status()} == {"published"}
    with duckdb.connect("w.duckdb") as con:
        assert con.execute("SELECT one FROM keep").fetchone() == (1,)
        for part in parts:
            table = quoted(f'x"y; DROP TABLE keep;"--_{part}')
            (rows, found) = con.execute(f'SELECT count(*), mode("a""b;--") FROM {table}').fetchone()
            assert found == part and rows > 800
            assert [one[0] for one in con.execute(f"DESCRIBE {table}").fetchall()][:4] == [
                name for name in NAMES if name != 'a"b;--'
            ]


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


def test_an_output_that_is_gone_is_written_again_only_when_selected_and_for_free(folder):
    schedule(folder, MONTHLY.format(name="m"))
    run(now=MARCH)
    before = (folder / "m-2100-01.csv").read_text()
    for path in folder.glob("m-2100-01*"):
        path.unlink()
    assert status(now=MARCH)[0].state == "published, output gone"
    assert run(now=MARCH).outcomes == () and run(now=MARCH, select=["m"]).outcomes == ()
    (outcome,) = run(now=MARCH, select=["m:2100-01"]).outcomes
    assert outcome.result == "published" and outcome.charged == 0
    assert (folder / "m-2100-01.csv").read_text() == before
    assert len(ledger(folder).releases) == 2


def test_a_dry_run_and_a_status_change_nothing(folder):
    schedule(folder, MONTHLY.format(name="m"))
    before = sorted(path.name for path in folder.iterdir())
    shown = preview(now=MARCH)
    status(now=MARCH)
    assert [round(one.epsilon, 6) for one in shown] == [1, 1]
    assert "at from 2100-01-01 until before 2100-02-01" in shown[0].reads
    assert sorted(path.name for path in folder.iterdir()) == before


def test_a_dry_run_speaks_in_keys_of_the_file(folder):
    single = "  s: {source: d, output: taken, cadence: once, method: independent, epsilon: 1}\n"
    head = HEAD.replace("  t: {", "  d: {database: d.duckdb, table: t, account: people}\n  t: {")
    schedule(folder, single, head=head)
    with duckdb.connect(folder / "d.duckdb") as con:
        con.execute(
            "CREATE TABLE t AS SELECT i AS n FROM range(99) AS r(i); CREATE TABLE taken AS SELECT 1 AS one"
        )
    (one,) = preview(now=MARCH)
    assert one.problem.endswith("choose another output:, or add replace: true.") and one.epsilon
    assert one.problem in run(now=MARCH).outcomes[0].message


def test_a_clock_that_goes_back_is_refused(folder):
    schedule(folder, MONTHLY.format(name="m"))
    run(now=MARCH)
    for call in (run, preview, status):
        with pytest.raises(ScheduleError, match="Set the clock"):
            call(now=datetime.now() - timedelta(days=400))


def test_wrong_selections_are_told_together(folder):
    schedule(folder, MONTHLY.format(name="m"))
    with pytest.raises(InputError) as error:
        run(now=MARCH, select=["x", "m:2100-13", "m:2100-03"])
    assert all(words in str(error.value) for words in ("no such release", "no such period", "not due before"))
    assert not (folder / "ledger").exists()


def command(*arguments):
    return CliRunner().invoke(app, list(arguments))


def test_exit_codes_and_json(folder):
    schedule(folder, MONTHLY.format(name="m"))
    assert command("run").exit_code == 0 and "Nothing is due" in command("run").output
    found = json.loads(command("status", "--json").output)
    assert [one["state"] for one in found["periods"]] == ["waiting"]
    with alone(folder / "ledger"):
        with pytest.raises(ScheduleLocked):
            run()
        assert command("run").exit_code == 4
        assert command("status").exit_code == 0
    schedule(folder, "  x: {colour: red}\n")
    wrong = command("run", "--json")
    assert wrong.exit_code == 2 and json.loads(wrong.output)["error"]["faults"]
    assert command("run", "nothing.yml").exit_code == 2
    once = "  o: {{source: t, output: o.csv, cadence: once, method: independent, epsilon: {}}}\n"
    schedule(folder, once.format(1))
    done = command("run", "--json")
    assert done.exit_code == 0 and json.loads(done.stdout)["periods"][0]["result"] == "published"
    schedule(
        folder,
        once.format(3).replace("o: {s", "q: {s").replace("o.csv", "q.csv"),
        head=HEAD.replace("20", "3"),
    )
    assert command("run").exit_code == 3
