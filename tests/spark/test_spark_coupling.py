"""The privacy proof, run through Spark: what was answered on a table, its neighbour may answer the same.

``tests/conformance/test_coupling.py`` does this for every method in DuckDB. Here are two releases a case: of
rows, and of units whose rows are chosen in tasks.
"""

import pickle
import secrets
import shutil
import warnings
from functools import partial
from importlib import import_module

import duckdb
import pytest
from conformance.test_coupling import (
    BOUNDING_KEY,
    SPEC,
    UNITS,
    K,
    Labelling,
    Run,
    check_coupled,
    without_random_names,
)
from support.spark import table_of

import dpsyn_sql
from dpsyn_sql.auditing.testing import RecordingLedger, RecordingNoise
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.engines.spark.engine import SparkEngine
from dpsyn_sql.methods import METHODS
from dpsyn_sql.private.measure.noise import ExactNoise

pytestmark = pytest.mark.slow

MEASURE = import_module("dpsyn_sql.front.measure")
ROWS = [
    ("ann", 1, 0.5, "a", "2001-05-05"),
    ("Ann", -(2**31), float("nan"), "__other__", "0001-01-01"),
    ("bob", 22, None, None, None),
    ("bob", 9, float("inf"), "'", "2002-12-31"),
    (None, 3, 0.1, "b", "2002-05-05"),
]
EVE = ("eve", 3, -0.0, "", "2001-05-05")
COLUMNS = "(who VARCHAR, n INTEGER, x DOUBLE, s VARCHAR, d DATE)"


def asked_of(engine_method, name, trace):
    """A method of the seam that notes what it is asked."""

    def noting(self, first, *rest, **how):
        trace.append((name, without_random_names(repr((first, rest, sorted(how.items()))))))
        return engine_method(self, first, *rest, **how)

    return noting


@pytest.fixture
def on_table(spark, db, tmp_path):
    """One release of rows through Spark, as the conformance suite makes them in DuckDB."""

    def run(table, noise, **options):
        name, folder = f"{db}.t", tmp_path / "t"  # the same for both: a table is known by its place
        shutil.rmtree(folder, ignore_errors=True)
        with duckdb.connect() as con:
            con.execute(f"CREATE TABLE t {COLUMNS}")
            con.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?)", table)
            table_of(spark, name, con, "FROM t", folder, files=2)
        try:
            return released(spark, name, f"{db}.o", noise, **options)
        finally:
            for one in (name, f"{db}.o", f"{db}.o_dpsyn"):
                spark.sql(f"DROP TABLE IF EXISTS {one}")

    return run


def released(spark, name, into, noise, **options):
    trace, ledger, recorder = [], RecordingLedger(), RecordingNoise(noise)
    guarded = DuckDBEngine._guarded

    def traced(self, run, sql, step):
        trace.append((step, without_random_names(sql)))
        return guarded(self, run, sql, step)

    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        patch.setitem(METHODS, "labelling", Labelling())
        patch.setattr(MEASURE, "ExactNoise", lambda: recorder)
        patch.setattr(secrets, "randbits", lambda bits: BOUNDING_KEY)
        patch.setattr(DuckDBEngine, "_guarded", traced)
        for method in ("sums", "gather", "keep"):
            patch.setattr(SparkEngine, method, asked_of(getattr(SparkEngine, method), method, trace))
        result = dpsyn_sql.release(spark, name, into=into, domain=SPEC, ledger=ledger, **options)
    calls = [(call.mechanism, call.scale, call.exact.shape, call.answer.tolist()) for call in recorder.calls]
    output = spark.table(into)
    public = {
        "statements": trace,
        "questions": ledger.questions,
        "events": ledger.events,
        "mechanisms": calls,
        "debit": (ledger.keys, ledger.budgets),
        "measurements": [(m.attrs, m.sigma, m.values.tolist()) for m in result.measurements],
        "model": pickle.dumps(result.model),
        "certificate": without_random_names(repr(result.certificate())),
        "told": (repr(result), result.notes, [str(warning.message) for warning in warned]),
        "output": (output.schema.simpleString(), sorted(map(repr, output.collect()))),
    }
    return Run(public, recorder.calls, ledger.events, ledger.questions, ledger.budgets[0])


CASES = {
    "adaptive-row": ("adaptive", "row", [EVE]),
    "copula-unit": ("copula", "unit", [EVE] * (K + 2)),
    "labelling-unit": ("labelling", "unit", [EVE] * (K + 2)),
}


@pytest.mark.parametrize("case", CASES)
def test_neighbours_answer_alike_through_spark(on_table, case):
    method, unit, added = CASES[case]
    run = partial(on_table, method=method, rows=30, **UNITS[unit])
    share = check_coupled(run, ROWS, [*ROWS[:2], *added, *ROWS[2:]], ExactNoise(), K if unit == "unit" else 1)
    assert 0 < share <= 1
    if method == "copula":  # each of its tables changes by all k rows: nothing of the debit is to spare
        assert share > 1 - 1e-9
