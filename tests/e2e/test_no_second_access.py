"""A trace of all statements: catalog only before the debit, nothing of the source after the last answer."""

from contextlib import contextmanager

import duckdb
import pytest

import dpsyn_sql
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.ledger.memory import MemoryLedger

SPEC = {"columns": {"secret_column": {"type": "numeric", "lower": 0, "upper": 9}}}


class TracedLedger(MemoryLedger):
    """Marks the debit and the end of the questions in the same trace as the statements."""

    def __init__(self, trace):
        super().__init__()
        self.trace = trace

    @contextmanager
    def open_release(self, key, budget, **options):
        with super().open_release(key, budget, **options) as entry:
            self.trace.append("-- debit")
            close = entry.close_questions

            class Marked:
                def __getattr__(inner, name):
                    return getattr(entry, name)

                def close_questions(inner):
                    close()
                    self.trace.append("-- closed")

            yield Marked()


@pytest.fixture
def trace(monkeypatch):
    statements = []
    for name in ("execute", "fetch"):
        original = getattr(DuckDBEngine, name)

        def traced(self, sql, *, step, _original=original):
            statements.append(str(sql))
            return _original(self, sql, step=step)

        monkeypatch.setattr(DuckDBEngine, name, traced)
    return statements


def make(con, rows=100):
    con.execute(
        f"CREATE TABLE the_source AS SELECT (i % 10)::INTEGER AS secret_column FROM range({rows}) AS r(i)"
    )


@pytest.mark.parametrize("method", ["independent", "copula"])
@pytest.mark.parametrize("place", ["connection", "file"])
def test_rows_are_read_between_debit_and_closing_only(trace, tmp_path, method, place):
    ledger = TracedLedger(trace)
    if place == "connection":
        con = duckdb.connect()
        make(con)
        dpsyn_sql.release(con, "the_source", domain=SPEC, method=method, ledger=ledger)
    else:
        with duckdb.connect() as con:
            make(con)
            con.execute(f"COPY the_source TO '{tmp_path}/the_source.parquet'")
        dpsyn_sql.release(
            None,
            tmp_path / "the_source.parquet",
            domain=SPEC,
            method=method,
            ledger=ledger,
            into=tmp_path / "o.csv",
        )
    debit, closed = trace.index("-- debit"), trace.index("-- closed")
    reads = [n for n, sql in enumerate(trace) if "the_source" in sql and "the_source_synthetic" not in sql]
    counting = [n for n in reads if "GROUP BY" in trace[n] or "CREATE TEMP TABLE" in trace[n]]
    assert counting and all(debit < n < closed for n in counting)
    late = [trace[n] for n in reads if n > closed and "DETACH" not in trace[n]]
    assert late == []


def test_plans_of_neighbouring_and_of_very_different_tables_are_equal():
    texts = set()
    for rows in (0, 100, 101, 50_000):
        with duckdb.connect() as con:
            make(con, rows)
            texts.add(str(dpsyn_sql.plan(con, "the_source", domain=SPEC)))
    assert len(texts) == 1


def test_plan_reads_nothing_and_charges_nothing(trace):
    con = duckdb.connect()
    make(con)
    dpsyn_sql.plan(con, "the_source", domain=SPEC)
    assert [sql for sql in trace if "GROUP BY" in sql or "CREATE" in sql] == []


def test_a_failure_in_the_private_part_keeps_the_debit_and_writes_nothing(monkeypatch):
    con = duckdb.connect()
    make(con)
    ledger = MemoryLedger()

    def broken(self, queries):
        raise dpsyn_sql.EngineFailure("counting", "OutOfMemory", "SELECT")

    monkeypatch.setattr("dpsyn_sql.count.counter.SqlCounter.count", broken)
    with pytest.raises(dpsyn_sql.EngineFailure):
        dpsyn_sql.release(con, "the_source", domain=SPEC, ledger=ledger)
    assert [entry.state for entry in ledger.overview().releases] == ["debited"]
    assert con.execute("SELECT count(*) FROM duckdb_tables()").fetchone()[0] == 1
