"""A cluster of two executors on this machine: ``python cluster_child.py FOLDER`` prints what it counted, as JSON.

A process of its own, since one process has one master. The counts are those of a table of 4,000 rows whose first
attempts go wrong: an executor is killed, a task is overtaken by a second attempt of itself.
"""

import json
import sys
from itertools import combinations
from pathlib import Path

import duckdb
import numpy as np
import pytest
from support import spark_faults as faults
from support.spark import QUICK, cluster_in, counted, exact_counts, files_under, session_in, table_of

import dpsyn_sql
from dpsyn_sql.auditing.testing import RecordingLedger, ReplayedNoise
from dpsyn_sql.engines.open_source import open_source
from dpsyn_sql.engines.spark import tasks
from dpsyn_sql.planning.queries import MarginalQuery
from dpsyn_sql.private.measure.noise import ExactNoise
from dpsyn_sql.source.frames import Frame
from dpsyn_sql.source.relation import PrivacyUnit

ROWS = (
    "SELECT (i % 7)::INTEGER AS a, (i % 11)::INTEGER AS b, (i % 400)::VARCHAR AS who FROM range(4000) AS r(i)"
)
SPEC = {
    "columns": {
        "a": {"type": "numeric", "lower": 0, "upper": 6},
        "b": {"type": "numeric", "lower": 0, "upper": 10},
    }
}
TOY = """
    SELECT
        (i // 2)::VARCHAR AS who, (i % 41)::INTEGER AS n, [2, 3, 5, 7, 9][i % 5 + 1]::INTEGER AS c,
        ['a', 'b', 'it''s', 'zz', NULL][i % 7 % 5 + 1] AS s, (i * i % 3)::INTEGER AS d
    FROM range(3000) r(i)
"""
TOY_SPEC = {
    "columns": {
        "n": {"type": "numeric", "edges": [0, 1, 7, 9, 40]},
        "c": {"type": "categorical", "categories": [2, 3, 5, 9]},
        "s": {"type": "categorical", "categories": ["a", "b", "it's"], "nullable": True},
        "d": {"type": "categorical", "categories": [0, 1, 2]},
    }
}
BOUND = {"unit": PrivacyUnit("who", 3), "key": 5}
CONF = {
    "spark.executor.extraJavaOptions": QUICK,
    "spark.executor.memory": "512m",
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.multiplier": "1",
    "spark.speculation.quantile": "0.1",
    "spark.speculation.minTaskRuntime": "100ms",
}


KEPT = "spark.hadoop.fs.viewfs.mounttable.tests.link./kept"
"""A name that both workers share for a folder."""


def whole_release(spark, con, folder):
    """Which passes lost an executor, the number of questions, and whether each was counted as DuckDB counts it."""
    con.execute(f"CREATE TABLE toy AS {TOY}")
    table_of(spark, "toy", con, "FROM toy", folder / "toy", files=4)
    (folder / "broken").mkdir()
    given = {"epsilon": 20.0, "seed": 1, "method": "adaptive", "domain": TOY_SPEC, "exclude": ("who",)}
    first = exact_counts(con, "toy", "toy_synthetic", ExactNoise(), ledger=RecordingLedger(), **given)
    with pytest.MonkeyPatch.context() as patch:
        broken = faults.in_each_pass(faults.killing_executor, folder / "broken", tasks.task_of, passes=3)
        patch.setattr(tasks, "task_of", broken)
        noise = ReplayedNoise(first)
        again = exact_counts(spark, "toy", "toy_synthetic", noise, ledger=RecordingLedger(), **given)
    same = [np.array_equal(one.exact, two.exact) for one, two in zip(first, again, strict=True)]
    return sorted(path.name for path in (folder / "broken").iterdir()), len(first), all(same)


def main(folder):
    told = {}
    (folder / "kept").mkdir()
    conf = CONF | {KEPT: (folder / "kept").as_uri()}
    with duckdb.connect() as con, session_in(folder / "spark", cluster_in, **conf) as spark:
        faults.by_value()
        spark.sparkContext.setCheckpointDir("viewfs://tests/kept")
        con.execute(f"CREATE TABLE t AS {ROWS}")
        table_of(spark, "t", con, "FROM t", folder / "t", files=4)
        domain = dpsyn_sql.plan(con, "t", domain=SPEC, exclude=("who",)).plan.domain
        queries = [MarginalQuery(some) for k in (1, 2) for some in combinations(domain.names, k)]
        steps = {
            "killed executor": (lambda flag: faults.going_wrong_once(faults.killing_executor, flag), BOUND),
            "speculation": (faults.slow_once, {}),
        }
        for name, (step, bound) in steps.items():
            flag = folder / name
            whole = spark.table("t")
            frame = whole.mapInArrow(step(str(flag)), whole.schema)
            with open_source(None, Frame(frame, "t"), trust_query=True) as session:
                tables = counted(session, domain, queries, **bound)
            told[name] = [flag.exists(), [one.tolist() for one in tables]]
        told["whole release"] = whole_release(spark, con, folder)
        told["second attempt"] = [path.name for path in folder.glob("speculation.*")]
        told["kept"] = files_under(folder / "kept")
    print(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
