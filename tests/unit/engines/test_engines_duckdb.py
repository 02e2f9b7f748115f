"""The engine: exact integers, no engine text, transactions, the guard after the last question."""

import signal
import stat
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import duckdb
import numpy as np
import pytest

from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.engines.instance import attach, database_alias, detach, lock, private_instance
from dpsyn_sql.errors import EngineFailure, InternalError
from dpsyn_sql.source.engine import Encoding, Tally
from dpsyn_sql.sqltext.fragments import Fragment, temporary_table


@pytest.fixture
def engine():
    engine = DuckDBEngine(duckdb.connect())
    yield engine
    engine.close()


def test_fetch_gives_plain_integer_arrays(engine):
    got = engine.fetch("SELECT count(*) AS n, 3::UTINYINT AS u FROM range(5)", step="counting")
    assert got["n"].dtype == np.int64 and got["n"].tolist() == [5] and got["u"].dtype == np.uint8
    assert not isinstance(got["n"], np.ma.MaskedArray)


def test_fetch_keeps_every_bit_of_large_integers(engine):
    got = engine.fetch(f"SELECT {2**62 + 1}::BIGINT AS n", step="counting")
    assert got["n"].tolist() == [2**62 + 1]


@pytest.mark.parametrize("sql", ["SELECT sum(1) AS s", "SELECT 1::HUGEINT AS h"])
def test_fetch_refuses_what_numpy_would_round(engine, sql):
    with pytest.raises(InternalError, match="BIGINT"):
        engine.fetch(sql, step="counting")


def test_fetch_refuses_two_columns_of_one_name(engine):
    with pytest.raises(InternalError, match="one name"):
        engine.fetch("SELECT 1 AS a, 2 AS a", step="counting")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT error('secret value') AS e",
        "SELECT CAST('secret value' AS INTEGER) AS e",
        "SELECT * FROM secret_table",
        "SELEC secret",
    ],
)
def test_failures_carry_no_engine_text(engine, sql):
    for run in (engine.execute, engine.fetch):
        with pytest.raises(EngineFailure) as caught:
            run(sql, step="counting")
        error = caught.value
        assert error.__context__ is None and error.__cause__ is None
        assert "secret" not in str(error) and error.statement == sql and error.step == "counting"
        assert error.kind.endswith("Exception")


def test_load_appends_by_name_and_leaves_nothing_behind(engine):
    engine.execute('CREATE TABLE t (a UTINYINT, "b""c" VARCHAR, d DOUBLE)', step="making")
    columns = {
        'b"c': np.array(["x", None], dtype=object),
        "d": np.array([0.5, np.nan]),
        "a": np.array([7, 255]),
    }
    engine.load("t", columns, step="loading")
    engine.load("t", {"a": np.array([1], dtype=np.uint8)}, step="loading")
    got = engine.fetch("SELECT a FROM t ORDER BY rowid", step="reading")
    assert got["a"].tolist() == [7, 255, 1]
    assert (
        engine.fetch("SELECT count(*) AS n FROM duckdb_views() WHERE NOT internal", step="reading")["n"][0]
        == 0
    )


def test_a_failed_load_leaves_nothing_behind(engine):
    engine.execute("CREATE TABLE t (a UTINYINT)", step="making")
    with pytest.raises(EngineFailure) as caught:
        engine.load("t", {"a": np.array([256])}, step="loading")
    assert caught.value.__context__ is None
    assert (
        engine.fetch("SELECT count(*) AS n FROM duckdb_views() WHERE NOT internal", step="reading")["n"][0]
        == 0
    )


def test_load_wants_equal_lengths(engine):
    with pytest.raises(InternalError):
        engine.load("t", {"a": np.zeros(1), "b": np.zeros(2)}, step="loading")
    with pytest.raises(InternalError):
        engine.load("t", {}, step="loading")


def count(engine):
    return engine.fetch("SELECT count(*) AS n FROM t", step="reading")["n"][0]


def test_transactions_commit_and_roll_back(engine):
    engine.execute("CREATE TABLE t (a INTEGER)", step="making")
    with engine.transaction():
        engine.execute("INSERT INTO t VALUES (1)", step="writing")
    assert count(engine) == 1
    for error in (EngineFailure, KeyboardInterrupt):
        with pytest.raises(error), engine.transaction():
            engine.execute("INSERT INTO t VALUES (2)", step="writing")
            if error is KeyboardInterrupt:
                raise KeyboardInterrupt
            engine.execute("SELECT error('x')", step="failing")
        assert count(engine) == 1


def test_a_failing_commit_is_reported_without_the_engines_text(engine):
    engine.execute("CREATE TABLE t (a INTEGER PRIMARY KEY)", step="making")
    with pytest.raises(EngineFailure) as caught, engine.transaction():
        engine.execute("COMMIT", step="taking it away")
    assert caught.value.step == "committing" and caught.value.__context__ is None


def test_the_guard_refuses_before_running(engine):
    engine.execute('CREATE TABLE "The ""Source" (a INTEGER)', step="making")
    seen = []
    engine.trace = seen.append
    engine.forbid(['"memory"."main"."The ""Source"'])
    with pytest.raises(InternalError, match="after the last question"):
        engine.fetch('SELECT a FROM "memory"."main"."the ""source"', step="peeking")
    with pytest.raises(InternalError):
        engine.load('"memory"."main"."The ""Source"', {"a": np.zeros(1)}, step="peeking")
    assert seen == []
    engine.execute('CREATE TABLE "memory"."main"."The ""Source_synthetic" (a INTEGER)', step="writing")
    assert len(seen) == 1


def test_the_guard_takes_no_comment_for_a_file_name(engine):
    engine.forbid(["'people.csv'"])
    engine.fetch("SELECT 'people.csv' AS v FROM -- what follows is no file\n(SELECT 1)", step="a label")
    texts = ["'people.csv'", "-- a file\n'people.csv'", "read_csv('people.csv')", "e'people.csv'"]
    texts += ["/* a file */ 'people.csv'", "$$'people.csv'$$", "sniff_csv('people.csv')"]
    for opened in (f"FROM {text}" for text in texts):
        with pytest.raises(InternalError, match="after the last question"):
            engine.fetch(f"SELECT * {opened}", step="peeking")


def test_a_closed_engine_refuses_and_closes_twice(engine):
    engine.close()
    engine.close()
    with pytest.raises(InternalError, match="closed"):
        engine.execute("SELECT 1", step="late")


# Long enough to be interrupted, short enough to end by itself should every interrupt get lost.
LONG = "SELECT sum(a.range * b.range)::DOUBLE AS s FROM range(100000) a, range(6000) b"


@contextmanager
def repeatedly(act):
    """Do ``act`` every 0.1 s until the block ends: one that comes before the query runs is lost."""
    done = threading.Event()

    def again():
        while not done.wait(0.1):
            act()

    thread = threading.Thread(target=again)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def test_an_interrupt_of_another_thread_is_a_failure():
    connection = duckdb.connect()
    engine = DuckDBEngine(connection)
    with pytest.raises(EngineFailure) as caught, repeatedly(connection.interrupt):
        engine.execute(LONG, step="long")
    assert caught.value.kind == "InterruptException"


def test_ctrl_c_passes_as_keyboard_interrupt():
    """In a process of its own, so that a signal at the wrong moment cannot stop the test run."""
    script = f"""
import signal
import duckdb
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs the tests may ignore it
engine = DuckDBEngine(duckdb.connect())
try:
    print("ready", flush=True)  # from here on a slow process may get the signal at any moment
    engine.execute({LONG!r}, step="long")
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        try:
            text, _ = process.communicate(timeout=60)
        finally:
            process.kill()
    assert text == "interrupted\n"


def test_a_private_instance_hides_its_spill_and_removes_it():
    engine = private_instance("300MB")
    folder = engine._scratch.path
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    got = engine.fetch(
        "SELECT name, value FROM duckdb_settings() WHERE name IN ('temp_directory', 'temp_file_encryption')",
        step="reading",
    )
    settings = dict(zip(got["name"], got["value"], strict=True))
    assert settings == {"temp_directory": str(folder), "temp_file_encryption": "true"}
    engine.close()
    assert not folder.exists()


def test_a_locked_instance_reads_only_what_is_allowed(tmp_path):
    with duckdb.connect() as con:
        for name in ("a", "b"):
            con.execute(f"COPY (SELECT 1 AS x) TO '{tmp_path}/{name}.parquet'")
    engine = private_instance()
    lock(engine, [str(tmp_path / "a.parquet")])
    assert engine.fetch(f"SELECT x FROM read_parquet('{tmp_path}/a.parquet')", step="reading")[
        "x"
    ].tolist() == [1]
    for refused in (
        f"SELECT x FROM read_parquet('{tmp_path}/b.parquet')",
        "SET threads = 1",
        "SET enable_external_access = true",
        f"ATTACH '{tmp_path}/new.duckdb' AS new",
    ):
        with pytest.raises(EngineFailure):
            engine.execute(refused, step="trying")
    engine.close()


def test_attach_and_detach_leave_no_stray_file(tmp_path):
    path = tmp_path / "memory.v1.duckdb"
    duckdb.connect(str(path)).close()
    engine = private_instance()
    assert database_alias(path) == "memory_db"
    attach(engine, path, read_only=False)
    detach(engine, path)
    engine.close()
    assert [item.name for item in tmp_path.iterdir()] == [path.name]


def fill(monkeypatch, engine):
    """Let temporary tables not fit, which depends on the line of DuckDB."""
    execute = engine.execute

    def full(sql, *, step):
        if sql.startswith("CREATE TEMP TABLE") or "\nCREATE TEMP TABLE" in sql:
            raise EngineFailure(step, "OutOfMemoryException", sql)
        execute(sql, step=step)

    monkeypatch.setattr(engine, "execute", full)


def test_rows_that_do_not_fit_as_a_temporary_table_are_kept_in_an_encrypted_file(monkeypatch):
    engine = private_instance()
    folder = engine._scratch.path
    try:
        lock(engine, ())
        fill(monkeypatch, engine)
        table = temporary_table("dpsyn_codes")
        query = Fragment("SELECT CAST(hash(range) % 250 AS UTINYINT) AS c, 7919 AS d FROM range(400000)")
        engine.keep(Encoding(table, query), step="keeping")
        (filed,) = folder.glob("dpsyn_filed.duckdb")
        counted = Fragment(f"SELECT c, CAST(count(*) AS BIGINT) AS n FROM {table} GROUP BY c")
        (found,) = engine.sums([Tally(counted, ("c",))], step="counting")
        assert found["n"].sum() == 400_000
        assert len(found["n"]) == 250
        with duckdb.connect() as other, pytest.raises(duckdb.Error):
            other.execute(f"ATTACH '{filed}' (READ_ONLY)")
        engine.drop(table, step="dropping")
        with pytest.raises(EngineFailure):
            engine.fetch(counted, step="counting")
        engine.drop_temporary()
        assert not list(folder.glob("dpsyn_filed*"))
    finally:
        engine.close()
    assert not folder.exists()


def test_a_table_in_a_file_has_the_name_it_was_asked_by(monkeypatch):
    engine = private_instance()
    try:
        lock(engine, ())
        fill(monkeypatch, engine)
        table = temporary_table("dpsyn_codes")
        tally = Tally(Fragment("SELECT range % 3 AS k, CAST(1 AS BIGINT) AS n FROM range(9)"), ("k",))
        engine.gather(table, tally, step="gathering")
        found = engine.fetch(f"SELECT k FROM {table} ORDER BY k", step="reading")
        assert found["k"].tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
        engine.drop(table, step="dropping")
        engine.gather(table, tally, step="gathering once more")
        engine.drop_temporary()
        engine.gather(table, tally, step="after everything was dropped")
        engine.drop(table, step="dropping")
        engine.drop(table, step="dropping twice")
    finally:
        engine.close()
