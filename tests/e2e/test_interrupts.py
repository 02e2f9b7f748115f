"""Ctrl-C at every phase: what was charged and how to go on is said, and it is true."""

import os
import signal
import subprocess
import sys

import duckdb
import pytest
from support.ledgers import overview
from test_release_crash import Case, steps_of, told

import dpsyn_sql
from dpsyn_sql.ledger.entries import SqliteEntry
from dpsyn_sql.ledger.sqlite import SqliteLedger

BEFORE = "Interrupted before anything was charged."
CHARGING = "Interrupted while the ledger was being charged. The ledger says whether the release 'o' was charged; if so, the same call continues from here at no further cost."
STAYS = "The release 'o' stays charged; the same call continues from here at no further cost."
WHERE = {
    "while the source was being measured": ["debited"],
    "after everything was measured, before the output was written": ["measured"],
    "while the output was being written": ["measured"],
    "after {into} was written": ["measured", "published"],
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["connection", "parquet"])
def test_an_interrupt_says_what_was_charged_and_how_to_go_on(children, tmp_path, kind):
    case = Case(children, tmp_path / "case", kind)
    labels, seen = steps_of(case), set()
    # The last time of each step; what is raised while SQLite traces a statement is lost.
    steps = {place for place, label in enumerate(labels) if label not in labels[place + 1 :]}
    steps = {0, *(place for place in steps if not labels[place].startswith("ledger"))}
    jobs = {}
    for step in sorted(steps):
        twin = case.copy(f"step{step}")
        jobs[step] = (twin, twin.job(step=step, signal="SIGINT"))
    assert children(*(job for _, job in jobs.values())) == [0] * len(jobs)
    for step, (twin, job) in jobs.items():
        outcome = told(job)
        assert outcome["error"] == "KeyboardInterrupt" and outcome["alone"], outcome["text"]
        (note,) = outcome["notes"]
        states = [release.state for release in twin.checked()[0].releases]
        if note == BEFORE:
            assert states == []
        else:
            shown = "w.main.o" if kind == "connection" else twin.into
            stays = STAYS.replace("'o'", "'w.duckdb:main.o'" if kind == "connection" else "'o.parquet'")
            (where,) = [w for w in WHERE if note == f"Interrupted {w.format(into=shown)}. {stays}"]
            assert len(states) == 1 and states[0] in WHERE[where], (labels[step], note)
            seen.add(where)
            if where.startswith("after {into}"):
                assert twin.output() is not None
        seen.add(note)
    assert seen >= {BEFORE, *list(WHERE)[:3]}


@pytest.mark.parametrize(
    "owner, name, note",
    [
        (SqliteLedger, "_open", CHARGING),
        (SqliteEntry, "published", f"Interrupted after main_db.main.o was written. {STAYS}"),
    ],
)
def test_an_interrupt_of_the_ledger_itself(tmp_path, monkeypatch, owner, name, note):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(owner, name, interrupted)
    with duckdb.connect(str(tmp_path / "main_db.duckdb")) as con:
        con.execute("CREATE TABLE t AS SELECT i % 2 = 0 AS b FROM range(5000) AS r(i)")
        with pytest.raises(KeyboardInterrupt) as caught:
            dpsyn_sql.release(con, "t", into="o", name="o", method="independent")
    assert caught.value.__notes__ == [note]


def test_an_interrupted_replay_says_that_nothing_was_charged(tmp_path, monkeypatch):
    with duckdb.connect() as con:
        con.execute("CREATE TABLE t AS SELECT i % 2 = 0 AS b FROM range(5000) AS r(i)")
        with pytest.warns(UserWarning, match="in memory"):
            dpsyn_sql.release(con, "t", method="independent")

        def interrupted(*_, **__):
            raise KeyboardInterrupt

        monkeypatch.setattr("dpsyn_sql.rows.write.families.stage_rows", interrupted)
        with pytest.raises(KeyboardInterrupt) as caught:
            dpsyn_sql.release(con, "t", method="independent")
    (note,) = caught.value.__notes__
    assert note == (
        "Interrupted after everything was measured, before the output was written. Nothing was charged this time: "
        "the release ':memory:main.t_synthetic' stays charged; the same call on the same connection continues from "
        "here at no further cost."
    )


HOOKS = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
wanted = {wanted!r}
def stop(owner, name):
    original = getattr(owner, name)
    def stopped(*arguments, **options):
        if options.get("step") == wanted or wanted == name:
            os.kill(os.getpid(), signal.SIGINT)
        return original(*arguments, **options)
    setattr(owner, name, stopped)
from pathlib import Path
from dpsyn_sql.cli.start import main
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
for name in ("execute", "fetch", "load"):
    stop(DuckDBEngine, name)
stop(Path, "write_text")
main()
"""

GOES_ON = "The release 't_synthetic.parquet' stays charged; the same command continues from here at no further cost."


@pytest.mark.slow
@pytest.mark.parametrize(
    "wanted, message",
    [
        ("counting one-way marginals", f"Interrupted while the source was being measured. {GOES_ON}"),
        (
            "write_text",
            "Interrupted after t_synthetic.parquet was written; the same command again costs nothing.",
        ),
    ],
)
def test_the_command_ends_with_one_message(tmp_path, wanted, message):
    with duckdb.connect() as con:
        con.execute(
            "COPY (SELECT i % 2 = 0 AS b FROM range(5000) AS r(i)) TO ? (FORMAT parquet)",
            [str(tmp_path / "t.parquet")],
        )
    (tmp_path / "d.yml").write_text(
        "columns: {b: {type: categorical, categories: [true, false], other: false}}\n"
    )
    ask = ["release", "t.parquet", "--method", "independent", "--certificate", "c.json", "--domain", "d.yml"]
    environment = {name: value for name, value in os.environ.items() if name != "DPSYN_LEDGER"}
    done = subprocess.run(
        [sys.executable, "-c", HOOKS.format(wanted=wanted), *ask],
        cwd=tmp_path, capture_output=True, text=True, check=False, env=environment,
    )  # fmt: skip
    assert done.returncode == 128 + signal.SIGINT, done.stderr
    assert done.stdout == "" and done.stderr.splitlines()[-1] == message.format(
        into=tmp_path / "t_synthetic.parquet"
    )
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert len(overview(tmp_path / ".dpsyn-ledger").releases) == 1
