"""A schedule of six releases, three of them running totals, that is killed on the way and run again until it is
done: each release is published once, and what is spent is that of six debits, as if nothing had happened."""

import json
import shutil
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import duckdb
import numpy as np
import pytest

from dpsyn_sql.ledger.sqlite import SqliteLedger

pytestmark = pytest.mark.slow

KILLED = -9
DOMAIN = "columns: {n: {type: numeric, lower: 0, upper: 9, bins: 3}, at: {type: temporal, lower: 2013-01-01, upper: 2013-12-31, bins: 2}}"
SCHEDULE = """ledger: ledger
accounts:
  people: {limit: {epsilon: 20}, per: {year: {epsilon: 10}}}
sources:
  t: {database: w.duckdb, table: t, window: at, domain: d.yml}
releases:
  files: {source: t, output: "{release}-{period}.parquet", cadence: month, start: 2013-01-01, end: 2013-04-01, method: copula}
  tables: {source: t, output: "{release}_{period}", cadence: month, start: 2013-01-01, end: 2013-04-01, method: copula, cumulative: true}
"""
OUTPUTS = 6


@pytest.fixture
def run(children):
    """Runs a schedule in a process of its own; what it told, or None when it was killed."""

    def running(folder, **when):
        scratch, result = folder / "scratch", folder.with_suffix(".json")
        scratch.mkdir(exist_ok=True)
        result.unlink(missing_ok=True)
        places = {"scratch": str(scratch), "result": str(result), "log": str(folder.with_suffix(".log"))}
        (status,) = children({"schedule": str(folder / "dpsyn.yml"), **places, **when})
        assert status in (0, KILLED), Path(places["log"]).read_text()
        return json.loads(result.read_text()) if status == 0 else None

    return running


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "first"
    made.mkdir()
    (made / "dpsyn.yml").write_text(SCHEDULE)
    (made / "d.yml").write_text(DOMAIN)
    with duckdb.connect(str(made / "w.duckdb")) as con:
        con.execute(
            "CREATE TABLE t AS SELECT (i % 10)::INTEGER AS n, "
            "TIMESTAMP '2013-01-01' + INTERVAL (i) HOUR AS at FROM range(2200) AS r(i)"
        )
    return made


def published(folder):
    """Checks the ledger; what is spent, and the releases by name and version."""
    with closing(SqliteLedger(folder / "ledger")) as ledger:
        ledger.verify()
        overview = ledger.overview()
    assert all(one.state == "published" and len(one.published) == 1 for one in overview.releases)
    assert len({(one.name, one.version) for one in overview.releases}) == len(overview.releases)
    (account,) = overview.accounts
    assert account.spent.amount == sum(one.cost.amount for one in overview.releases)
    return account.spent, overview.releases


def outputs(folder):
    with duckdb.connect(str(folder / "w.duckdb")) as con:
        tables = [name for (name,) in con.execute("SELECT table_name FROM duckdb_tables()").fetchall()]
    return sorted(name for name in tables if name.startswith("tables_")), sorted(
        path.name for path in folder.glob("files-*.parquet")
    )


def finished(folder, run):
    """Runs again until it is done; what is spent then."""
    done = run(folder)
    assert done["exit_code"] == 0, done
    spent, releases = published(folder)
    assert len(releases) == OUTPUTS
    tables, files = outputs(folder)
    assert tables == [f"tables_2013-0{month}" for month in (1, 2, 3)]
    assert files == [f"files-2013-0{month}.parquet" for month in (1, 2, 3)]
    assert run(folder)["outcomes"] == []
    assert published(folder)[0] == spent
    return spent


def copied(folder, name):
    return Path(shutil.copytree(folder, folder.with_name(name)))


def test_killed_before_steps_of_every_kind_of_six_releases(folder, run):
    """Each run of a chain dies further on, so that the deaths lie in all phases of new releases and of those
    that go on after a death. Steps do the same in each release: those of the first two are enough."""
    twin = copied(folder, "undisturbed")
    told = run(twin, watched=[str(twin)])
    assert [one["result"] for one in told["outcomes"]] == ["published"] * OUTPUTS
    undisturbed = finished(twin, run)
    changes = [step for step, (now, then) in enumerate(pairwise([*told["files"], None])) if now != then]
    assert len(changes) > 60
    chosen = np.linspace(0, len(changes) // 3, 14).astype(int)
    for chain in (chosen[::2], chosen[1::2]):
        case = copied(folder, f"chain{chain[0]}")
        deaths = sum(run(case, step=changes[number]) is None for number in chain)
        assert deaths > 3
        assert finished(case, run) == undisturbed
        shutil.rmtree(case)
