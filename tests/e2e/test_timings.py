"""Timings are for the operator: they are on the value that a call returns, and nowhere else. Nor does anything
but the ledger name a time that is finer than a day: two of them tell how long a release took."""

import dataclasses
import json
import re
import struct
from contextlib import closing
from datetime import UTC, datetime

import duckdb
import pytest
from support.released_shop import SHOP, released

import dpsyn_sql
from dpsyn_sql.common.progress import Timing
from dpsyn_sql.ledger.sqlite import SqliteLedger
from dpsyn_sql.report.progress_bar import ReleaseProgress

MARK = Timing("zebra phase", 41, 31415.9265, 27182.8182, "161803 quaggas")
TRACES = [b"zebra", b"quagga", b"31415.9", b"27182.8", struct.pack("<d", MARK.seconds), struct.pack("<d", MARK.processor)]  # fmt: skip
CLOCK = datetime(2026, 11, 27, 13, 37, 42, tzinfo=UTC)
TRACES += [b"13:37:42", b"13:37", str(int(CLOCK.timestamp())).encode()]
PHASES = re.compile(rb"count marginals|fit the model|add noise|processor seconds|discover domains")


class Clock(datetime):
    """The debit has a time that can be found again."""

    @classmethod
    def now(cls, tz=None):
        return CLOCK.astimezone(tz)


@pytest.fixture
def marked(monkeypatch, tmp_path):
    """Every call tells times that can be found again."""
    monkeypatch.setattr(ReleaseProgress, "timings", lambda self: (MARK,))
    monkeypatch.setattr("dpsyn_sql.ledger.entries.datetime", Clock)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def told(release):
    """All that a release says of itself but ``timings``, and what others see of it."""
    yield from (repr(release), str(release), release.summary(), release._repr_html_())
    yield json.dumps(release.certificate(), default=str)
    yield json.dumps(release.facts, default=str)
    yield release.verdict.to_json()
    yield repr(release.notes)


def check_folder(folder):
    files = [path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("l.ledger")]
    assert len(files) >= 3
    with closing(SqliteLedger("l.ledger")) as ledger:  # here it stays
        assert [one.debited_at for one in ledger.overview().releases] == [CLOCK.isoformat()]
    for path in files:
        written = path.read_bytes()
        assert not any(trace in written for trace in TRACES), path
        assert not PHASES.search(written), path


@pytest.mark.parametrize("into", ["o.parquet", "o.csv", "copy"])
def test_nothing_that_is_written_or_shown_has_them(marked, into):
    with duckdb.connect() as con:
        con.execute("COPY (SELECT i % 2 = 0 AS b, i % 7 AS n FROM range(500) AS r(i)) TO 't.parquet'")
    with duckdb.connect("w.duckdb") as con:
        con.execute("CREATE TABLE t AS FROM 't.parquet'")
    source = ("w.duckdb", "t") if into == "copy" else ("t.parquet",)
    release = dpsyn_sql.release(*source, into=into, ledger="l.ledger")
    assert release.timings == (MARK,)
    release.report("page.html")
    release.to_df().to_csv("rows.csv")
    for text in told(release):
        assert not any(trace in text.encode() for trace in TRACES)
    check_folder(marked)
    loaded = dpsyn_sql.load(*(("w.duckdb", "copy") if into == "copy" else (f"{into}.dpsyn.duckdb",)))
    assert loaded.timings == () and "timings" not in loaded.facts
    check_days(loaded.facts, "w.duckdb" if into == "copy" else f"{into}.dpsyn.duckdb")


def check_days(facts, database):
    assert facts["debited_at"] == "2026-11-27"
    with duckdb.connect(database, read_only=True) as con:
        kept = con.execute("SELECT created, certificate ->> 'debited_at' FROM dpsyn_releases()").fetchall()
        assert set(kept) == {("2026-11-27", "2026-11-27")}
        everything = con.execute("SELECT string_agg(r::VARCHAR, ' ') FROM dpsyn.releases AS r").fetchone()[0]
        comments = con.execute("SELECT string_agg(comment, ' ') FROM duckdb_tables()").fetchone()[0]
    assert "13:37" not in everything + (comments or "")


def test_nothing_that_a_database_writes_or_shows_has_them(marked):
    with duckdb.connect("shop.duckdb") as con:
        con.execute(SHOP)
    release = released("shop.duckdb", into="copy.duckdb", ledger="l.ledger")
    assert release.timings == (MARK,)
    assert not any(hasattr(table, "timings") for table in release.tables.values())
    release.report("page.html")
    for text in told(release):
        assert not any(trace in text.encode() for trace in TRACES)
    check_folder(marked)
    assert dpsyn_sql.load("copy.duckdb").timings == ()
    check_days(release.certificate(), "copy.duckdb")


def test_releases_that_differ_in_nothing_else_are_equal(marked):
    with duckdb.connect() as con:
        con.execute("CREATE TABLE t AS SELECT i % 2 = 0 AS b FROM range(500) AS r(i)")
        release = dpsyn_sql.release(con, "t", method="independent", ledger="l.ledger")
        assert dataclasses.replace(release, timings=()) == release


def test_a_database_times_its_tables_together(tmp_path):
    with duckdb.connect(tmp_path / "shop.duckdb") as con:
        con.execute(SHOP)
    first = released(tmp_path / "shop.duckdb", ledger=tmp_path / "l.ledger", into=tmp_path / "copy.duckdb")
    phases = {one.phase: one for one in first.timings}
    assert {"prepare", "count marginals", "build the model", "sample rows", "write"} <= phases.keys()
    assert phases["sample rows"].times >= 3 and phases["build the model"].times == 3
    again = released(tmp_path / "shop.duckdb", ledger=tmp_path / "l.ledger", into=tmp_path / "copy.duckdb")
    assert again.replayed and "add noise" not in {one.phase for one in again.timings}


@pytest.mark.parametrize("method", ["adaptive", "copula", "dpsyn", "privbayes", "dpcopula"])
def test_little_time_belongs_to_no_phase(tmp_path, method):
    with duckdb.connect() as con:
        con.execute(
            "CREATE TABLE t AS SELECT i % 3 AS a, i % 5 AS b, i % 7 AS c, (i * i) % 11 AS d, i % 4 AS e "
            "FROM range(5000) AS r(i)"
        )
        release = dpsyn_sql.release(con, "t", method=method, ledger=tmp_path / "l.ledger")
    whole = sum(one.processor for one in release.timings)
    assert release.timings[-1].phase == "other" and release.timings[-1].processor < 0.4 * whole
