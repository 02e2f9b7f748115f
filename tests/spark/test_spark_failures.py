"""A task that is run again counts once, whatever ended its first attempt; nothing it said or kept stays."""

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from itertools import combinations
from pathlib import Path

import duckdb
import numpy as np
import pytest
from cluster_child import TOY, TOY_SPEC
from support import spark_faults as faults
from support.spark import LOUD, counted, exact_counts, files_under, missing, table_of

import dpsyn_sql
from dpsyn_sql.auditing.testing import RecordingLedger, ReplayedNoise
from dpsyn_sql.engines.open_source import open_source
from dpsyn_sql.engines.spark import tasks
from dpsyn_sql.planning.queries import MarginalQuery
from dpsyn_sql.private.measure.noise import ExactNoise
from dpsyn_sql.source.frames import Frame
from dpsyn_sql.source.relation import PrivacyUnit

pytestmark = pytest.mark.slow

CHILD = Path(__file__).with_name("cluster_child.py")
ROWS = (
    "SELECT (i % 7)::INTEGER AS a, (i % 11)::INTEGER AS b, (i % 400)::VARCHAR AS who FROM range(4000) AS r(i)"
)
SPEC = {
    "columns": {
        "a": {"type": "numeric", "lower": 0, "upper": 6},
        "b": {"type": "numeric", "lower": 0, "upper": 10},
    }
}
BOUNDS = {"all": {}, "bounded": {"unit": PrivacyUnit("who", 3), "key": 5}}


@pytest.fixture(scope="module")
def con():
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE t AS {ROWS}")
        yield connection


@pytest.fixture(scope="module")
def domain(con):
    return dpsyn_sql.plan(con, "t", domain=SPEC, exclude=("who",)).plan.domain


@pytest.fixture(scope="module")
def expected(con, domain):
    """The counts that nothing went wrong with, by DuckDB."""

    def of(bound):
        with open_source(con, "t") as session:
            return counted(session, domain, queries(domain), **BOUNDS[bound])

    return of


def queries(domain):
    return [MarginalQuery(some) for k in (1, 2) for some in combinations(domain.names, k)]


@pytest.fixture(scope="module")
def table(spark, db, con, tmp_path_factory):
    faults.by_value()
    name = f"{db}.t"
    table_of(spark, name, con, "FROM t", tmp_path_factory.mktemp("t") / "t")
    return name


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("how", [faults.raising, faults.killing_worker], ids=["raising", "killed worker"])
def test_a_task_that_is_run_again_counts_once(spark, table, domain, expected, tmp_path, how, bound):
    flag = tmp_path / "flag"
    whole = spark.table(table)
    frame = whole.mapInArrow(faults.going_wrong_once(how, str(flag)), whole.schema)
    with open_source(None, Frame(frame, "t"), trust_query=True) as session:
        found = counted(session, domain, queries(domain), **BOUNDS[bound])
    assert flag.exists()  # it did go wrong
    for one, two in zip(expected(bound), found, strict=True):
        np.testing.assert_array_equal(one, two)


def test_a_task_that_always_fails_is_our_error_without_its_text(spark, table, domain, capfd):
    def failing(batches):
        next(batches)
        raise ValueError("canary-of-a-task")

    whole = spark.table(table)
    with (
        open_source(None, Frame(whole.mapInArrow(failing, whole.schema), "t"), trust_query=True) as session,
        pytest.raises(dpsyn_sql.errors.EngineFailure) as caught,
    ):
        counted(session, domain, queries(domain))
    assert "canary" not in str(caught.value) + repr(vars(caught.value))
    assert caught.value.__cause__ is None and caught.value.__context__ is None
    assert "canary" not in "".join(capfd.readouterr())


WHOLE = {
    "rows": {"exclude": ("who",)},
    "units": {"unit": "who", "most": 2, "weights": False},
}


@pytest.fixture(scope="module")
def toy(spark, db, con, tmp_path_factory):
    faults.by_value()
    con.execute(f"CREATE TABLE toy AS {TOY}")
    table_of(spark, f"{db}.toy", con, "FROM toy", tmp_path_factory.mktemp("toy") / "toy")
    return f"{db}.toy"


@pytest.mark.parametrize("options", WHOLE)
def test_a_whole_release_counts_each_row_once_if_a_worker_dies_in_every_pass(
    spark, toy, con, tmp_path, monkeypatch, private, options
):
    """The answers of a release of DuckDB are replayed through Spark; what is behind them is compared."""
    given = {"epsilon": 20.0, "seed": 1, "method": "adaptive", "domain": TOY_SPEC, **WHOLE[options]}
    given |= {"replace": True}
    first = exact_counts(con, "toy", "toy_synthetic", ExactNoise(), ledger=RecordingLedger(), **given)
    broken = tmp_path / "broken"
    broken.mkdir()
    made = faults.in_each_pass(faults.killing_worker, broken, tasks.task_of)
    monkeypatch.setattr(tasks, "task_of", made)
    into = f"{toy}_synthetic"
    again = exact_counts(spark, toy, into, ReplayedNoise(first), ledger=RecordingLedger(), **given)
    # The codes are kept, counted twice or more, and each count is added up: all of these passes went wrong.
    passes = sorted(int(path.name.partition("-")[2]) for path in broken.iterdir())
    assert passes == list(range(len(passes))) and len(passes) >= 5
    assert len(first) == len(again) > 3
    for one, two in zip(first, again, strict=True):
        np.testing.assert_array_equal(one.exact, two.exact)


def test_a_release_whose_workers_always_die_says_so_and_goes_on_later(
    spark, toy, tmp_path, monkeypatch, private, capfd
):
    """It fails in its second pass, after the codes were kept; the same call then costs nothing more."""
    given = {"epsilon": 1.0, "method": "adaptive", "domain": TOY_SPEC, "exclude": ("who",)}
    given |= {"into": f"{toy}_later", "ledger": tmp_path / "ledger"}
    task_of, passes = tasks.task_of, iter(range(100))

    def made(work):
        task = task_of(work)
        return task if next(passes) == 0 else lambda batches: faults.killing_worker(os.getpid(), "")

    monkeypatch.setattr(tasks, "task_of", made)
    with pytest.raises(dpsyn_sql.errors.EngineFailure, match="counting marginals") as caught:
        dpsyn_sql.release(spark, toy, **given)
    assert caught.value.__cause__ is None and caught.value.__context__ is None
    assert next(passes) > 1 and files_under(private) == []
    assert "it's" not in str(caught.value) + "".join(capfd.readouterr())
    monkeypatch.undo()
    assert dpsyn_sql.release(spark, toy, **given).rows > 0
    with closing(sqlite3.connect(tmp_path / "ledger")) as ledger:
        assert ledger.execute("SELECT count(*) FROM entry").fetchall() == [(1,)]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """What a cluster of two executors counted while they were killed or overtaken."""
    if reason := missing():
        pytest.skip(LOUD + reason)
    folder = tmp_path_factory.mktemp("cluster")
    path = os.pathsep.join([str(CHILD.parents[1]), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, str(CHILD), str(folder)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize(("name", "bound"), [("killed executor", "bounded"), ("speculation", "all")])
def test_a_cluster_counts_the_same_whatever_happens_to_its_tasks(cluster, expected, name, bound):
    happened, found = cluster[name]
    assert happened
    for one, two in zip(expected(bound), found, strict=True):
        np.testing.assert_array_equal(one, two)


def test_a_whole_release_of_a_cluster_counts_each_row_once_if_executors_die(cluster):
    """Of its first three passes: codes are kept, counted, and the counts added up."""
    died, questions, same = cluster["whole release"]
    assert died == ["pass-0", "pass-1", "pass-2"] and questions > 3 and same


def test_the_second_attempt_was_made_and_no_file_is_kept(cluster):
    assert cluster["second attempt"] == ["speculation.second"]
    assert cluster["kept"] == []
