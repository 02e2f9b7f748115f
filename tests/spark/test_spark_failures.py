"""A task that is run again counts once, whatever ended its first attempt; nothing it said or kept stays."""

import json
import os
import subprocess
import sys
from itertools import combinations
from pathlib import Path

import duckdb
import numpy as np
import pytest
from support import spark_faults as faults
from support.spark import LOUD, counted, missing, table_of

import dpsyn_sql
from dpsyn_sql.engines.frames import open_any_source
from dpsyn_sql.planning.queries import MarginalQuery
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
        with open_any_source(con, "t") as session:
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
    with open_any_source(None, Frame(frame, "t"), trust_query=True) as session:
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
        open_any_source(
            None, Frame(whole.mapInArrow(failing, whole.schema), "t"), trust_query=True
        ) as session,
        pytest.raises(dpsyn_sql.EngineFailure) as caught,
    ):
        counted(session, domain, queries(domain))
    assert "canary" not in str(caught.value) + repr(vars(caught.value))
    assert caught.value.__cause__ is None and caught.value.__context__ is None
    assert "canary" not in "".join(capfd.readouterr())


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


def test_the_second_attempt_was_made_and_no_file_is_kept(cluster):
    assert cluster["second attempt"] == ["speculation.second"]
    assert cluster["kept"] == []
