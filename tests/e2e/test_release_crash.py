"""Whole releases that are killed, interrupted, raced or out of disk.

Always: spent = sum of the entries <= limit, every record sound, the output whole or absent, nothing
in the way of the same call, which goes on under the same debit with the noisy bytes already stored.
"""

import json
import shutil
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import duckdb
import numpy as np
import pytest

import dpsyn_sql
from dpsyn_sql.errors import PublishError, TargetError
from dpsyn_sql.ledger.sqlite import SqliteLedger
from dpsyn_sql.rows.write.staging import stage_rows
from dpsyn_sql.source.files import file_beside

pytestmark = [pytest.mark.slow, pytest.mark.required]

SPEC = {"columns": {"n": {"type": "numeric", "lower": 0, "upper": 9, "bins": 3}}}
ACCOUNT = "people"
KILLED = -9


class Case:
    """A folder with a source, a ledger with a limit, and one release of it."""

    def __init__(self, children, folder, kind, source_rows=300, epsilon="1", query=None, **options):
        self.children, self.folder, self.kind, self.runs = children, folder, kind, 0
        # PrivBayes looks twice, in every run alike: a step means the same in each.
        self.options = {
            "domain": SPEC,
            "epsilon": epsilon,
            "account": ACCOUNT,
            "method": "privbayes",
            **options,
        }
        self.scratch = folder.with_name(f"{folder.name}-scratch")
        for path in (folder, self.scratch):
            path.mkdir()
        self.database, self.source = folder / "w.duckdb", "t"
        table = query or f"SELECT (i % 10)::INTEGER AS n, i % 3 = 0 AS b FROM range({source_rows}) AS r(i)"
        if kind in ("parquet", "csv"):
            self.source, self.into = str(folder / f"t.{kind}"), str(folder / "o.parquet")
            with duckdb.connect() as con:
                con.execute(f"COPY ({table}) TO '{self.source}'")
        else:
            self.into = "o"
            with duckdb.connect(str(self.database)) as con:
                con.execute(f"CREATE TABLE t AS {table}")
        self.options.update(into=self.into, ledger=str(folder / "ledger"))
        with closing(SqliteLedger(folder / "ledger")) as ledger:
            ledger.grant(ACCOUNT, 2, 1e-9)

    def copy(self, name):
        """The same case in a folder of its own."""
        twin = object.__new__(Case)
        twin.__dict__.update(self.__dict__)
        twin.folder = self.folder.with_name(name)
        shutil.copytree(self.folder, twin.folder)
        twin.scratch = twin.folder.with_name(f"{name}-scratch")
        twin.scratch.mkdir()
        old, new = str(self.folder), str(twin.folder)
        twin.database, twin.source = twin.folder / "w.duckdb", self.source.replace(old, new)
        twin.into = self.into.replace(old, new)
        twin.options = {**self.options, "into": twin.into, "ledger": str(twin.folder / "ledger")}
        with closing(SqliteLedger(twin.folder / "ledger")) as ledger:
            ledger.moved(with_data=True)
        return twin

    def job(self, options=(), **more):
        """What a child is told."""
        self.runs += 1
        name = str(self.scratch / f"run{self.runs}")
        return {
            "con": None if self.kind in ("parquet", "csv") else str(self.database),
            "connect": self.kind == "connection",
            "source": self.source,
            "options": {**self.options, **dict(options)},
            "scratch": str(self.scratch),
            "result": f"{name}.json",
            "log": f"{name}.log",
            **more,
        }

    def run(self, options=(), **more):
        """Run in one process; what it told, or None when it was killed."""
        job = self.job(options, **more)
        (status,) = self.children(job)
        assert status in (0, KILLED), Path(job["log"]).read_text()
        return None if status else told(job)

    def checked(self, most=1):
        """The ledger's overview and the stored noisy bytes, after checking every record and sum."""
        with closing(SqliteLedger(self.folder / "ledger")) as ledger:
            ledger.verify()
            shown = ledger.overview()
            contents = [row["content"] for row in ledger._store.all("all_answers")]
        # A choice is one number of eight bytes, which no result reports; a table has several.
        stored = b"".join(content for content in contents if len(content) > 8)
        (people,) = shown.accounts
        for part in ("amount", "delta"):
            spent = getattr(people.spent, part)
            assert spent == sum(getattr(one.cost, part) for one in shown.releases)
            assert spent <= getattr(people.limit, part)
        assert len(shown.releases) <= most
        return shown, stored

    def output(self, *, killed=False):
        """The rows of the output, or None when there is none.

        Nothing else may have been left but the model, which is there with the output and not without; only a
        process that was killed leaves its work folder, for a while, or an output whose model is in it.
        """
        if self.kind in ("parquet", "csv"):
            beside = file_beside(Path(self.into))
            known = {
                Path(self.source).name,
                "o.parquet",
                beside.name,
                "ledger",
                "ledger-journal",
                "ledger-dpsyn-lock",
            }
            others = [path for path in self.folder.iterdir() if path.name not in known]
            assert others == [] or (killed and len(others) == 1 and others[0].name.startswith(".dpsyn-work-"))
            if not Path(self.into).exists():
                assert not beside.exists()
                return None
            assert beside.exists() or (killed and others)
            if beside.exists():
                with duckdb.connect(str(beside), read_only=True) as con:
                    assert con.execute("SELECT name FROM dpsyn_releases()").fetchall() == [("o",)]
            with duckdb.connect() as con:
                return con.execute(f"FROM '{self.into}'").fetchall()
        with duckdb.connect(str(self.database)) as con:
            tables = con.execute(
                "SELECT database_name, table_name FROM duckdb_tables() WHERE schema_name = 'main' ORDER BY 2"
            ).fetchall()
            assert tables in ([("w", "t")], [("w", "o"), ("w", "t")])
            if len(tables) == 1:
                assert not con.execute("FROM duckdb_tables() WHERE schema_name = 'dpsyn'").fetchall()
                assert not con.execute("FROM duckdb_functions() WHERE function_name LIKE 'dpsyn%'").fetchall()
                return None
            assert con.execute("SELECT name FROM dpsyn_releases()").fetchall() == [("o",)]
            return con.execute("FROM o").fetchall()


def told(job):
    return json.loads(Path(job["result"]).read_text())


@pytest.fixture(params=["database", "connection", "parquet"])
def case(request, children, tmp_path):
    return Case(children, tmp_path / "case", request.param)


def killed_and_resumed(case, step, **when):
    """Kill at one step, look, and run the same call again."""
    case = case.copy(f"{case.kind}{step}")
    assert case.run(**(when or {"step": step})) is None or when
    before, stored = case.checked()
    written = case.output(killed=True)
    if written is not None:
        assert before.releases[0].state != "debited"
    again = case.run()
    assert "error" not in again, again["text"]
    assert again["replayed"] == bool(before.releases)
    noisy = bytes.fromhex(again["noisy"])
    assert noisy.startswith(stored)
    after, _ = case.checked()
    assert [one.state for one in after.releases] == ["published"]
    if before.releases:
        assert (after.releases[0].release_id, after.accounts[0].spent) == (
            before.releases[0].release_id,
            before.accounts[0].spent,
        )
    rows = case.output()
    assert len(rows) == again["rows"] and (written is None or written == rows)
    shutil.rmtree(case.folder)
    return before, stored


_UNDISTURBED = {}


def undisturbed(case):
    """What a run that nobody kills tells: the labels of its steps, and what lay on disk before each."""
    if case.kind not in _UNDISTURBED:
        twin = case.copy("undisturbed")
        _UNDISTURBED[case.kind] = twin.run(watched=[str(twin.folder), str(twin.scratch)])
    return _UNDISTURBED[case.kind]


def steps_of(case):
    return undisturbed(case)["steps"]


def test_killed_before_every_change_of_a_file(case):
    """A death leaves the files as they are: at two steps between which none changes it is the same death."""
    files = undisturbed(case)["files"]
    changes = [step for step, (now, then) in enumerate(pairwise([*files, None])) if now != then]
    assert len(changes) > 10
    seen = set()
    for step in changes:
        before, stored = killed_and_resumed(case, step)
        seen.add((tuple(one.state for one in before.releases), len(stored)))
    states = {((), False), (("debited",), False), (("debited",), True), (("measured",), True)}
    assert {(names, size > 0) for names, size in seen} >= states
    assert len(seen) >= 5  # between two answers too


def test_killed_at_any_moment(children, tmp_path):
    """Not only between steps: also while the database or the ledger is writing."""
    for kind in ("database", "connection", "parquet"):
        case = Case(children, tmp_path / kind, kind, source_rows=20_000)
        for number, delay in enumerate(np.random.default_rng().uniform(0.0, 0.6, size=3)):
            killed_and_resumed(case, number, delay=delay)


def measured_then_killed(case):
    """All answers are stored, nothing is written; the noisy bytes."""
    assert case.run(step=steps_of(case).index("listing temporary tables")) is None
    shown, stored = case.checked()
    assert [one.state for one in shown.releases] == ["measured"] and case.output() is None
    return stored


def replaced_source(case, rows):
    """Other rows under the same columns."""
    query = f"SELECT 7::INTEGER AS n, true AS b FROM range({rows})"
    if case.kind == "parquet":
        with duckdb.connect() as con:
            con.execute(f"COPY ({query}) TO '{case.source}'")
    else:
        with duckdb.connect(str(case.database)) as con:
            con.execute(f"CREATE OR REPLACE TABLE t AS {query}")


def test_what_was_measured_is_finished_from_the_transcript_whatever_the_rows_are_now(case):
    stored = measured_then_killed(case)
    replaced_source(case, 5000)
    again = case.run()
    assert bytes.fromhex(again["noisy"]) == stored
    assert not {"encoding the source", "counting marginals on the codes"} & set(again["steps"])
    (only,) = case.checked()[0].releases
    assert only.state == "published" and len(case.output()) == again["rows"]


def test_a_source_that_vanished_after_the_last_answer_is_a_clear_error_that_costs_nothing(case):
    """The names and types of its columns are still needed; any rows will do, or none."""
    stored = measured_then_killed(case)
    if case.kind == "parquet":
        Path(case.source).unlink()
    else:
        with duckdb.connect(str(case.database)) as con:
            con.execute("DROP TABLE t")
    assert case.run()["error"] == "SourceError"
    assert case.checked()[1] == stored
    replaced_source(case, 0)
    assert bytes.fromhex(case.run()["noisy"]) == stored
    case.checked()


def test_interrupted_while_the_database_counts(children, tmp_path):
    """Ctrl-C: it stays a KeyboardInterrupt, the debit stays, nothing is written, a retry goes on."""
    case = Case(children, tmp_path / "case", "connection", source_rows=6_000_000, rows=100)
    outcome = case.run(signal="SIGINT", during="counting marginals on the codes")
    assert outcome.get("error") == "KeyboardInterrupt" and outcome["alone"], outcome.get("text", outcome)
    shown, stored = case.checked()
    assert [one.state in ("debited", "measured") for one in shown.releases] == [True]
    assert case.output() is None and not list(case.scratch.glob("dpsyn-*"))
    again = case.run()
    assert again["replayed"] and bytes.fromhex(again["noisy"]).startswith(stored)
    assert case.checked()[0].accounts[0].spent == shown.accounts[0].spent
    assert len(case.output()) == again["rows"]


def raced(case, *options):
    """The same case in four processes at once; what each told."""
    jobs = [case.job(one) for one in options]
    assert case.children(*jobs) == [0] * len(jobs)
    return [told(job) for job in jobs]


def test_four_writers_of_one_release_share_one_debit_and_one_transcript(children, tmp_path):
    case = Case(children, tmp_path / "case", "parquet")
    outcomes = raced(case, *[{}] * 4)
    done = [one for one in outcomes if "error" not in one]
    others = [one for one in outcomes if "error" in one]
    assert done and len({one["noisy"] for one in done}) == 1
    assert {one["error"] for one in others} <= {"TargetError", "PublishError"}, others
    _, stored = case.checked(most=1)
    assert bytes.fromhex(done[0]["noisy"]) == stored
    assert len(case.output()) == done[0]["rows"]
    assert case.run()["noisy"] == done[0]["noisy"]


def test_four_writers_into_one_database_file_never_spend_twice(children, tmp_path):
    """One process may write a file: the others get an error of ours, and finish later."""
    case = Case(children, tmp_path / "case", "database", epsilon="0.5")
    options = [{"into": f"o{number}", "name": f"r{number}"} for number in range(4)]
    outcomes = raced(case, *options)
    refused = {one["error"] for one in outcomes if "error" in one}
    assert refused <= {"SourceError", "TargetError", "PublishError", "EngineFailure"}, outcomes
    case.checked(most=4)
    for one, before in zip(options, outcomes, strict=True):
        after = case.run(one)
        assert "error" not in after, after["text"]
        assert "noisy" not in before or before["noisy"] == after["noisy"]
    shown, _ = case.checked(most=4)
    assert [release.state for release in shown.releases] == ["published"] * 4


def test_a_full_disk_under_the_output_writes_nothing(case):
    options = {"rows": 1_000_000}
    outcome = case.run(options, file_size=400_000)
    assert outcome["error"] in ("EngineFailure", "PublishError") and outcome["alone"], outcome["text"]
    shown, _ = case.checked()
    assert [one.state for one in shown.releases] == ["measured"]
    assert case.output() is None
    resumed_after_a_full_disk(case)


def resumed_after_a_full_disk(case):
    before, stored = case.checked()
    again = case.run()
    assert "error" not in again, again["text"]
    assert again["replayed"] == bool(before.releases)
    assert bytes.fromhex(again["noisy"]).startswith(stored)
    assert len(case.output()) == again["rows"]
    case.checked()


def test_what_somebody_else_put_there_meanwhile_is_kept_also_by_a_retry(tmp_path, monkeypatch):
    """Announcing an output is no claim to a table that turned out to be there before it."""
    con = duckdb.connect(str(tmp_path / "w.duckdb"))
    con.execute("CREATE TABLE t AS SELECT true AS b FROM range(100)")

    def slow(*arguments, **options):
        con.execute("CREATE TABLE o AS SELECT 42 AS hers")
        return stage_rows(*arguments, **options)

    monkeypatch.setattr("dpsyn_sql.rows.write.families.stage_rows", slow)
    with pytest.raises(PublishError, match="has appeared"):
        dpsyn_sql.release(con, "t", into="o")
    monkeypatch.undo()
    with pytest.raises(TargetError, match="replace=True"):
        dpsyn_sql.release(con, "t", into="o")
    assert con.execute("FROM o").fetchall() == [(42,)]
    con.execute("DROP TABLE o")
    again = dpsyn_sql.release(con, "t", into="o")
    assert again.replayed and "Nothing was charged" in again.notes[0]
    with closing(SqliteLedger(tmp_path / "w.duckdb.dpsyn-ledger")) as ledger:
        ledger.verify()
        assert len(ledger.overview().releases) == 1
    con.close()
