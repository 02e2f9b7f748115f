"""Whole releases that are killed, interrupted, raced or out of disk.

Always: spent = sum of the entries <= limit, every record sound, the output whole or absent, nothing
in the way of the same call, which goes on under the same debit with the noisy bytes already stored.
"""

import json
import shutil
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import duckdb
import pytest

from dpsyn_sql.ledger.sqlite import SqliteLedger

CHILD = Path(__file__).with_name("release_child.py")
SPEC = {"columns": {"n": {"type": "numeric", "lower": 0, "upper": 9}}}
ACCOUNT = "people"
KILLED = -9


@pytest.fixture(scope="module")
def children():
    """Runs a list of jobs at the same time; returns their exit statuses."""
    with subprocess.Popen(
        [sys.executable, str(CHILD)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:

        def run(*jobs):
            process.stdin.write(json.dumps(jobs) + "\n")
            process.stdin.flush()
            return json.loads(process.stdout.readline())

        yield run
        process.stdin.close()


class Case:
    """A folder with a source, a ledger with a limit, and one release of it."""

    def __init__(self, children, folder, kind, rows=300, epsilon="1", **options):
        self.children, self.folder, self.kind, self.runs = children, folder, kind, 0
        self.options = {"domain": SPEC, "epsilon": epsilon, "account": ACCOUNT, **options}
        self.scratch = folder.with_name(f"{folder.name}-scratch")
        for path in (folder, self.scratch):
            path.mkdir()
        self.database, self.source = folder / "w.duckdb", "t"
        table = f"SELECT (i % 10)::INTEGER AS n, i % 3 = 0 AS b FROM range({rows}) AS r(i)"
        if kind == "parquet":
            self.source, self.into = str(folder / "t.parquet"), str(folder / "o.parquet")
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
        return twin

    def job(self, options=(), **more):
        """What a child is told."""
        self.runs += 1
        name = str(self.scratch / f"run{self.runs}")
        return {
            "con": None if self.kind == "parquet" else str(self.database),
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
            stored = b"".join(row["content"] for row in ledger._store.all("all_answers"))
        (people,) = shown.accounts
        for part in ("amount", "delta"):
            spent = getattr(people.spent, part)
            assert spent == sum(getattr(one.cost, part) for one in shown.releases)
            assert spent <= getattr(people.limit, part)
        assert len(shown.releases) <= most
        return shown, stored

    def output(self, *, killed=False):
        """The rows of the output, or None when there is none.

        Nothing else may have been left; only a killed process leaves its work folder, for a while.
        """
        if self.kind == "parquet":
            known = {"t.parquet", "o.parquet", "ledger", "ledger-wal", "ledger-shm"}
            others = [path for path in self.folder.iterdir() if path.name not in known]
            assert others == [] or (killed and len(others) == 1 and others[0].name.startswith(".dpsyn-work-"))
            if not Path(self.into).exists():
                return None
            with duckdb.connect() as con:
                return con.execute(f"FROM '{self.into}'").fetchall()
        with duckdb.connect(str(self.database)) as con:
            tables = con.execute(
                "SELECT database_name, table_name FROM duckdb_tables() ORDER BY 2"
            ).fetchall()
            assert tables in ([("w", "t")], [("w", "o"), ("w", "t")])
            return con.execute("FROM o").fetchall() if len(tables) == 2 else None


def told(job):
    return json.loads(Path(job["result"]).read_text())


@pytest.fixture(params=["database", "connection", "parquet"])
def case(request, children, tmp_path):
    return Case(children, tmp_path / "case", request.param)


def killed_and_resumed(case, step):
    """Kill at one step, look, and run the same call again."""
    case = case.copy(f"{case.kind}{step}")
    assert case.run(step=step) is None
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


INTERESTING = (
    "reading the catalog",
    "counting marginals on the codes",
    "dropping the encoded table",
    "listing temporary tables",
    "loading sampled rows",
    "writing the synthetic table",
    "committing",
    "writing the synthetic file",
    "linking the file",
    "removing a folder",
)


def steps_of(case):
    """The labels of all steps of an undisturbed run, in a copy."""
    return case.copy("undisturbed").run()["steps"]


def test_killed_at_the_steps_that_matter(case):
    """After the debit, between answers, around the publication."""
    labels = steps_of(case)
    commits = [number for number, label in enumerate(labels) if label == "ledger: COMMIT"]
    chosen = {labels.index(label) for label in INTERESTING if label in labels}
    last = [commits[0], commits[0] + 1, commits[-2] + 1, commits[-1]]
    seen = set()
    for step in sorted({*chosen, *last}):
        before, stored = killed_and_resumed(case, step)
        seen.add((tuple(one.state for one in before.releases), len(stored) > 0))
    assert {((), False), (("debited",), False), (("measured",), True)} <= seen


@pytest.mark.slow
def test_killed_at_every_step(case):
    seen = set()
    for step in range(len(steps_of(case))):
        before, stored = killed_and_resumed(case, step)
        seen.add((tuple(one.state for one in before.releases), len(stored)))
    assert len(seen) >= 5
