"""Releases of databases that are killed: one debit, answers that stay, and an output that is whole or absent."""

import json
import shutil
from contextlib import closing
from pathlib import Path

import duckdb
import pytest
from support.released_shop import CALL, SHOP, check_joins, rows_of

from dpsyn_sql.ledger.sqlite import SqliteLedger

pytestmark = pytest.mark.slow

KILLED = -9
TABLES = ("customers", "orders", "items")


class Case:
    """A folder with a shop, a ledger with a limit, and one release of it into ``kind`` of output."""

    def __init__(self, children, folder, kind):
        self.children, self.folder, self.kind, self.runs = children, folder, kind, 0
        self.scratch = folder.with_name(f"{folder.name}-scratch")
        for path in (folder, self.scratch):
            path.mkdir()
        with duckdb.connect(str(folder / "w.duckdb")) as con:
            con.execute(SHOP)
        with closing(SqliteLedger(folder / "ledger")) as ledger:
            ledger.grant("shop", 12, 1e-9)

    @property
    def into(self):
        return {
            "schema": "copy",
            "database": str(self.folder / "o.duckdb"),
            "folder": f"{self.folder / 'synthetic'}/",
        }[self.kind]

    def copy(self, name):
        twin = object.__new__(Case)
        twin.__dict__.update(self.__dict__)
        twin.folder, twin.scratch = (self.folder.with_name(f"{name}{end}") for end in ("", "-scratch"))
        shutil.copytree(self.folder, twin.folder)
        twin.scratch.mkdir()
        with closing(SqliteLedger(twin.folder / "ledger")) as ledger:
            ledger.moved(with_data=True)
        return twin

    def run(self, **more):
        """Run in one process; what it told, or None when it was killed."""
        self.runs += 1
        name = str(self.scratch / f"run{self.runs}")
        options = dict(
            epsilon=10, account="shop", name="shop", into=self.into, ledger=str(self.folder / "ledger")
        )
        job = {
            "con": str(self.folder / "w.duckdb"),
            "database": True,
            "options": {**CALL, **options},
            "scratch": str(self.scratch),
            "result": f"{name}.json",
            "log": f"{name}.log",
            **more,
        }
        (status,) = self.children(job)
        assert status in (0, KILLED), Path(job["log"]).read_text()
        return None if status else json.loads(Path(job["result"]).read_text())

    def checked(self):
        """The only release, and the stored noisy bytes, after checking every record and sum."""
        with closing(SqliteLedger(self.folder / "ledger")) as ledger:
            assert ledger.verify()
            shown = ledger.overview()
            stored = b"".join(row["content"] for row in ledger._store.all("all_answers"))
        (account,) = shown.accounts
        assert account.spent.amount == sum(one.cost.amount for one in shown.releases)
        assert len(shown.releases) <= 1
        return (shown.releases[0] if shown.releases else None), stored

    def output(self):
        """The rows of all tables, or None if there is none; nothing in between."""
        if self.kind == "folder":
            files = sorted(path.name for path in Path(self.into).glob("*.parquet"))
            if not files:
                assert not Path(self.into).exists()
                return None
            assert files == sorted(f"{name}.parquet" for name in (*TABLES, "products"))
            with duckdb.connect() as con:
                return {name: con.execute(f"FROM '{self.into}{name}.parquet'").fetchall() for name in TABLES}
        file = self.folder / ("w.duckdb" if self.kind == "schema" else "o.duckdb")
        if not file.exists():
            return None
        schema = "copy" if self.kind == "schema" else "main"
        with duckdb.connect(str(file)) as con:
            found = con.execute(
                "SELECT table_name FROM duckdb_tables() WHERE schema_name = ? AND table_name <> 'products' ORDER BY 1",
                [schema],
            ).fetchall()
            models = con.execute(
                "SELECT count(*) FROM duckdb_tables() WHERE schema_name = 'dpsyn'"
            ).fetchone()
            if not found:
                assert models == (0,)
                return None
            assert found == [(name,) for name in sorted(TABLES)]
            names = con.execute("SELECT name FROM dpsyn_releases() ORDER BY name").fetchall()
            assert names == [(f"shop.{name}",) for name in sorted(TABLES)]
            check_joins(con, into=schema)
            return {name: rows_of(con, f"{schema}.{name}") for name in TABLES}


@pytest.fixture
def case(children, tmp_path):
    return Case(children, tmp_path / "case", "schema")


def killed_and_resumed(case, name, **when):
    case = case.copy(name)
    assert case.run(**when) is None
    before, stored = case.checked()
    written = case.output()
    again = case.run()
    assert "error" not in again, again
    after, now = case.checked()
    assert again["replayed"] == (before is not None) and now.startswith(stored)
    assert after.state == "published"
    if before is not None:
        assert (again["id"], after.cost) == (before.release_id, before.cost)
    rows = case.output()
    assert {name: len(own) for name, own in rows.items()} == again["rows"]
    assert written is None or written == rows
    shutil.rmtree(case.folder)
    return before, stored


DEATHS = [("encode", 1), ("noise", 2), ("select", 2), ("model", 2), ("count", 4), ("sample", 2)]


@pytest.mark.parametrize(("phase", "time"), DEATHS)
def test_killed_between_questions_and_resumed(case, phase, time):
    before, stored = killed_and_resumed(case, f"{phase}{time}", phase=(phase, time))
    assert before.state == ("measured" if phase == "sample" else "debited")
    assert bool(stored) == (phase != "encode")


@pytest.mark.parametrize("kind", ["schema", "database", "folder"])
def test_killed_while_everything_is_written(children, tmp_path, kind):
    """All is measured before, so that each run has the same steps."""
    case = Case(children, tmp_path / "case", kind)
    assert case.run(phase=("sample", 1)) is None
    steps = case.copy("undisturbed").run()["steps"]
    writing = range(steps.index("listing temporary tables"), len(steps))
    assert len(writing) > 20
    states = set()
    for step in sorted({*writing[:: len(writing) // 6], *writing[-9::3], writing[-1]}):
        before, stored = killed_and_resumed(case, f"{kind}{step}", step=step)
        states.add(before.state)
        assert stored
    assert "measured" in states


def test_killed_before_the_debit_costs_nothing(case):
    begun = ["ledger: BEGIN" in label for label in case.copy("undisturbed").run()["steps"]].index(True)
    before, stored = killed_and_resumed(case, "early", step=begun)
    assert before is None and not stored
