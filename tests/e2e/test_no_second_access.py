"""A trace of all statements: catalog only before the debit, nothing of the source after the last answer."""

from contextlib import contextmanager

import duckdb
import pytest

import dpsyn_sql
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.engines.source_session import SourceSession
from dpsyn_sql.errors import InternalError
from dpsyn_sql.ledger.sqlite import MemoryLedger

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
            texts.add(dpsyn_sql.plan(con, "the_source", domain=SPEC).verbose())
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

    def broken(self, queries, labels=()):
        raise dpsyn_sql.errors.EngineFailure("counting", "OutOfMemory", "SELECT")

    monkeypatch.setattr("dpsyn_sql.private.count.counter.SqlCounter.count", broken)
    with pytest.raises(dpsyn_sql.errors.EngineFailure):
        dpsyn_sql.release(con, "the_source", domain=SPEC, ledger=ledger)
    assert [entry.state for entry in ledger.overview().releases] == ["debited"]
    assert con.execute("SELECT count(*) FROM duckdb_tables()").fetchone()[0] == 1


class Recorder:
    """A driver's connection that notes every statement, whoever runs it."""

    def __init__(self, connection, statements):
        self._connection, self._statements = connection, statements

    def execute(self, sql, *arguments):
        self._statements.append(str(sql))
        return self._connection.execute(sql, *arguments)

    def __getattr__(self, name):
        if name in ("sql", "query", "executemany", "table", "from_query", "begin", "commit"):
            raise AssertionError(f"another way to run a statement: {name}")
        return getattr(self._connection, name)


@pytest.fixture
def driver(monkeypatch):
    """All statements that reach the driver, and the engines that ran them."""
    statements, engines = [], []
    begin = DuckDBEngine.__init__

    def recorded(self, connection, **options):
        begin(self, Recorder(connection, statements), **options)
        engines.append(self)

    monkeypatch.setattr(DuckDBEngine, "__init__", recorded)
    return statements, engines


NAMES = ("the_source", "the_view")
SOURCES = {
    "table": "the_source",
    "view": "the_view",
    "query": "SELECT secret_column FROM the_source WHERE secret_column < 7",
}


def database(path):
    with duckdb.connect(str(path)) as con:
        make(con)
        con.execute("CREATE VIEW the_view AS SELECT secret_column FROM the_source")


def files(folder):
    with duckdb.connect() as con:
        make(con)
        for kind in ("parquet", "csv"):
            for number in range(2):
                con.execute(f"COPY the_source TO '{folder}/the_source{number}.{kind}'")


def late_statements(statements):
    """What ran after the last answer was stored."""
    return statements[statements.index("-- closed") + 1 :]


def names_the_source(statement):
    """Our own unique word; a target's name may hold it, the source's name does not hold the target's."""
    bare = statement.lower().replace("the_source_synthetic", "").replace("the_view_synthetic", "")
    return any(name in bare for name in NAMES)


@pytest.mark.parametrize("what", SOURCES)
@pytest.mark.parametrize(
    "method", ["independent", pytest.param("copula", marks=[pytest.mark.slow, pytest.mark.required])]
)
def test_a_database_file_is_detached_before_anything_is_sampled(driver, monkeypatch, tmp_path, what, method):
    statements, engines = driver
    path = tmp_path / "w.duckdb"
    database(path)
    attached = []
    original = SourceSession.release_source

    def looked_at(session):
        original(session)
        found = session.engine.fetch("SELECT database_name FROM duckdb_databases()", step="looking")
        attached.append(sorted(found["database_name"].tolist()))

    monkeypatch.setattr(SourceSession, "release_source", looked_at)
    dpsyn_sql.release(
        path, SOURCES[what], domain=SPEC, method=method, into="o", ledger=TracedLedger(statements)
    )
    late = late_statements(statements)
    assert attached == [["memory", "system", "temp"]]
    assert [sql for sql in late if names_the_source(sql)] == []
    detached = next(n for n, sql in enumerate(late) if sql.rstrip().splitlines()[-1].startswith("DETACH"))
    assert detached < next(n for n, sql in enumerate(late) if "dpsyn_staged" in sql)
    assert any("READ_ONLY" in sql for sql in statements)
    assert all(engine._closed for engine in engines)


@pytest.mark.parametrize("source", ["the_source0.parquet", "the_source*.csv", "query", "the_source*.parquet"])
def test_files_are_out_of_reach_after_the_last_answer(driver, tmp_path, source):
    statements, engines = driver
    folder = tmp_path / "data"
    folder.mkdir()
    files(folder)
    given = str(folder / source)
    if source == "query":
        given = f"SELECT secret_column FROM '{folder}/the_source0.parquet'"
    dpsyn_sql.release(None, given, domain=SPEC, into=tmp_path / "o.parquet", ledger=TracedLedger(statements))
    assert any(names_the_source(sql) and "GROUP BY" in sql for sql in statements)
    late = late_statements(statements)
    assert late and [sql for sql in late if names_the_source(sql)] == []
    assert all(engine._closed for engine in engines)
    assert any("lock_configuration" in sql for sql in statements)


def settings_of(con):
    shown = [
        "SELECT name, value FROM duckdb_settings() ORDER BY name",
        "SELECT current_database(), current_schema(), current_setting('search_path')",
        "SELECT database_name, path, readonly FROM duckdb_databases() ORDER BY 1",
        "SELECT database_name, schema_name, table_name FROM duckdb_tables() ORDER BY ALL",
        "SELECT schema_name, view_name FROM duckdb_views() WHERE NOT internal ORDER BY ALL",
        "SELECT function_name FROM duckdb_functions() WHERE NOT internal ORDER BY ALL",
        "SELECT name, type FROM duckdb_variables() ORDER BY ALL",
        "SELECT statement FROM duckdb_prepared_statements() ORDER BY ALL",
    ]
    return [con.execute(sql).fetchall() for sql in shown]


@pytest.mark.parametrize("ending", ["done", "failed", "interrupted"])
@pytest.mark.parametrize("what", SOURCES)
def test_a_callers_connection_is_as_before_however_it_ends(driver, monkeypatch, tmp_path, what, ending):
    """Settings, search path, attached databases, temporary tables and an open transaction."""
    statements, _ = driver
    path = tmp_path / "w.duckdb"
    database(path)
    con = duckdb.connect(str(path))
    con.execute("CREATE SCHEMA other")
    con.execute("SET search_path = 'other,main'")
    con.execute("SET threads = 1")
    con.execute("SET VARIABLE mine = 7")
    con.execute("PREPARE hers AS SELECT 1")
    con.execute("CREATE TEMP TABLE hers AS SELECT 1 AS a")
    con.execute("BEGIN")
    con.execute("CREATE TABLE uncommitted AS SELECT 1 AS a")
    before = settings_of(con)
    if ending != "done":
        error = (
            KeyboardInterrupt() if ending == "interrupted" else dpsyn_sql.errors.EngineFailure("x", "y", "z")
        )

        def broken(*_, **__):
            raise error

        monkeypatch.setattr("dpsyn_sql.private.count.passes.add_to", broken)  # in the middle of a pass
        monkeypatch.setattr("dpsyn_sql.private.count.counter.SqlCounter._scan", broken)
    try:
        dpsyn_sql.release(
            con, SOURCES[what], domain=SPEC, into=tmp_path / "o.csv", ledger=TracedLedger(statements)
        )
        assert ending == "done"
    except (KeyboardInterrupt, dpsyn_sql.errors.EngineFailure):
        assert ending != "done"
    assert settings_of(con) == before
    con.execute("ROLLBACK")
    assert con.execute("FROM hers").fetchall() == [(1,)]
    assert con.execute(
        "SELECT count(*) FROM duckdb_tables() WHERE table_name = 'uncommitted'"
    ).fetchone() == (0,)
    con.close()
    if ending == "done":
        assert [sql for sql in late_statements(statements) if names_the_source(sql)] == []


@pytest.mark.parametrize("what", SOURCES)
def test_the_databases_own_log_agrees(tmp_path, what):
    """Every statement on a caller's database as DuckDB noted it, through whatever cursor it came."""
    con = duckdb.connect(str(tmp_path / "w.duckdb"))
    make(con)
    con.execute("CREATE VIEW the_view AS SELECT secret_column FROM the_source")
    con.execute("CALL enable_logging('QueryLog')")

    def logged():
        return [
            row[0]
            for row in con.execute("SELECT message FROM duckdb_logs WHERE type = 'QueryLog'").fetchall()
        ]

    class Ledger(MemoryLedger):
        @contextmanager
        def open_release(self, key, budget, **options):
            with super().open_release(key, budget, **options) as entry:
                close = entry.close_questions

                def closing():
                    close()
                    con.execute("SELECT 'the questions are closed'").fetchall()

                entry.close_questions = closing
                con.execute("SELECT 'the debit is made'").fetchall()
                yield entry

    dpsyn_sql.release(con, SOURCES[what], domain=SPEC, into="o", ledger=Ledger())
    statements = logged()
    debit = next(n for n, sql in enumerate(statements) if "the debit is made" in sql)
    closed = next(n for n, sql in enumerate(statements) if "the questions are closed" in sql)
    reads = [n for n, sql in enumerate(statements) if names_the_source(sql) and "GROUP BY" in sql]
    assert reads and all(debit < n < closed for n in reads)
    assert any("CREATE TABLE" in sql for sql in statements[closed:])
    assert [sql for sql in statements[closed:] if names_the_source(sql)] == []
    con.close()


def test_a_trace_would_show_a_second_look(driver, monkeypatch):
    """The planted fault: a statement after the last question that names the source is refused, and seen."""
    statements, _ = driver
    con = duckdb.connect()
    make(con)
    original = SourceSession.release_source

    def looks_again(session):
        session.engine.fetch(f"SELECT count(*) FROM {session.relation.sql}", step="looking again")
        original(session)

    monkeypatch.setattr(SourceSession, "release_source", looks_again)
    dpsyn_sql.release(con, "the_source", domain=SPEC, ledger=TracedLedger(statements))
    assert [sql for sql in late_statements(statements) if names_the_source(sql)] != []

    def looks_after(session):
        original(session)
        session.engine.fetch(f"SELECT count(*) FROM {session.relation.sql}", step="looking again")

    monkeypatch.setattr(SourceSession, "release_source", looks_after)
    with pytest.raises(InternalError, match="names the source"):
        dpsyn_sql.release(con, "the_source", domain=SPEC, ledger=TracedLedger(statements), into="again")
