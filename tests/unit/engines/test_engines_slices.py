"""Counts slice by slice are those of the whole table, wherever the codes are; a source that changes is noticed."""

import itertools
import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import duckdb
import numpy as np
import pytest

import dpsyn_sql
from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.engines import code_slices, counting_engine
from dpsyn_sql.engines.catalog import DuckDBCatalog
from dpsyn_sql.engines.open_source import open_source
from dpsyn_sql.errors import EngineFailure, InputError, ReleaseUnfinished, SourceError
from dpsyn_sql.planning.queries import MarginalQuery
from dpsyn_sql.private.count.counter import SqlCounter
from dpsyn_sql.source.relation import PrivacyUnit

SIZES = (3, 7, 2, 300)
DOMAIN = Domain(
    tuple(
        Attribute(f"a{place}", "INTEGER", "categorical", labels=tuple(range(size)))
        for place, size in enumerate(SIZES)
    )
)
PAIRS = [MarginalQuery(pair) for pair in itertools.combinations(DOMAIN.names, 2)]
NO_UNIT = PrivacyUnit()
TRIPLE = MarginalQuery(DOMAIN.names[:3])
ROWS = "SELECT i // 2 AS who, {} FROM range({}, {}) AS n(i)".format(
    ", ".join(
        f"CAST(hash(i * 31 + {place}) % {size} AS INTEGER) AS a{place}" for place, size in enumerate(SIZES)
    ),
    "{}",
    "{}",
)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Slices of 64 rows."""
    for module in (code_slices, counting_engine):
        monkeypatch.setattr(module, "ROW_GROUP", 64)
    monkeypatch.setattr(code_slices, "SLICE_BYTES", 1)


def parquet(folder, counts):
    begin = 0
    with duckdb.connect() as con:
        for place, count in enumerate(counts):
            path = folder / f"part-{place}.parquet"
            con.execute(f"COPY ({ROWS.format(begin, begin + count)}) TO '{path}' (FORMAT parquet)")
            begin += count
    return begin


def expected(rows, query, kept=None):
    with duckdb.connect() as con:
        kept = kept or ROWS.format(0, rows)
        columns = con.execute(f"SELECT {', '.join(query.attrs)} FROM ({kept})").fetchnumpy()
    table = np.zeros([SIZES[DOMAIN.index(name)] for name in query.attrs], np.int64)
    np.add.at(table, tuple(columns[name] for name in query.attrs), 1)
    return table


def check(session, rows, further, unit=NO_UNIT, kept=None):
    later = further
    counter = SqlCounter(
        session.engine,
        session.relation.sql,
        DOMAIN,
        PAIRS,
        unit=unit,
        further=later,
        decimal=session.relation.text_decimal,
    )
    ran = []
    session.engine.trace = ran.append
    for query, table in zip(PAIRS, counter.count(PAIRS), strict=True):
        np.testing.assert_array_equal(table, expected(rows, query, kept))
    if further:
        for _ in range(2):
            np.testing.assert_array_equal(next(counter.count([TRIPLE])), expected(rows, TRIPLE, kept))
    counter.close()
    session.engine.trace = None
    left = session.engine.fetch(
        "SELECT count(*) AS n FROM (SELECT table_name FROM duckdb_tables() WHERE temporary "
        "UNION ALL SELECT view_name FROM duckdb_views() WHERE temporary AND NOT internal)",
        step="looking what is left",
    )
    assert left["n"].tolist() == [0]
    return ran


COUNTS = pytest.mark.parametrize("counts", [(0,), (1,), (64,), (65,), (0, 300, 1, 64, 129)], ids=str)
FURTHER = pytest.mark.parametrize("further", [False, True], ids=["once", "again"])


@COUNTS
@FURTHER
def test_files_are_read_in_ranges(tmp_path, counts, further):
    rows = parquet(tmp_path, counts)
    with open_source(None, f"{tmp_path}/*.parquet") as session:
        ran = check(session, rows, further)
    slices = sum(max(1, -(-count // 64)) for count in counts)
    assert sum("file_row_number >= " in sql for sql in ran) == slices  # each row is read once


@FURTHER
@pytest.mark.parametrize("share", [10**9, 1], ids=["file", "memory"])
def test_codes_that_do_not_fit_go_to_a_file(tmp_path, monkeypatch, further, share):
    monkeypatch.setattr(code_slices, "_KEPT_SHARE", share)
    rows = parquet(tmp_path, (300,))
    with open_source(None, f"{tmp_path}/*.parquet", memory_limit="1GB") as session:
        folder = session.engine.folder
        ran = check(session, rows, further)
        assert any("dpsyn_filed" in sql for sql in ran) == (further and share > 1)
        assert folder.exists()
    assert not folder.exists()


@FURTHER
@pytest.mark.parametrize("rows", [0, 1, 64, 500])
@pytest.mark.parametrize("kind", ["table", "view", "file", "hole"])
def test_tables_and_views_are_cut_too(tmp_path, further, rows, kind):
    kept = (
        f"SELECT * FROM ({ROWS.format(0, rows)}) WHERE who % 5 <> 0"
        if kind == "hole"
        else ROWS.format(0, rows)
    )
    path = tmp_path / "t.duckdb"
    with duckdb.connect(path if kind == "file" else ":memory:") as con:
        con.execute(f"CREATE TABLE t AS {ROWS.format(0, rows)}; CREATE VIEW v AS SELECT * FROM t")
        if kind == "hole":
            con.execute("DELETE FROM t WHERE who % 5 = 0")
        if kind != "file":
            with open_source(con, "v" if kind == "view" else "t") as session:
                check(session, rows, further, kept=kept)
            return
    with open_source(path, "t") as session:
        check(session, rows, further, kept=kept)


def test_rows_of_a_unit_stay_together(tmp_path):
    """All rows of a unit are bounded before anything is cut."""
    rows = parquet(tmp_path, (100, 101))
    with open_source(None, f"{tmp_path}/*.parquet") as session:
        check(session, rows, True, unit=PrivacyUnit("who", 2))
        check(session, rows, False, unit=PrivacyUnit("who", 2))


def test_names_that_a_slice_needs_are_read_whole(tmp_path):
    with duckdb.connect() as con:
        con.execute(f"CREATE TABLE t AS SELECT 7 AS rowid, * FROM ({ROWS.format(0, 130)})")
        with open_source(con, "t") as session:
            check(session, 130, True)
        con.execute(
            f"COPY (SELECT 7 AS file_row_number, * FROM t) TO '{tmp_path}/x.parquet' (FORMAT parquet)"
        )
    with open_source(None, f"{tmp_path}/x.parquet") as session:
        check(session, 130, True)


def test_tables_of_other_databases_are_read_whole(monkeypatch):
    """The rowid of SQLite can be negative or as large as any integer, and MySQL has none."""
    with duckdb.connect() as con:
        con.execute(f"CREATE TABLE t AS {ROWS.format(0, 130)}")
        known = DuckDBCatalog.databases.func
        other = property(lambda self: {name: row | {"type": "sqlite"} for name, row in known(self).items()})
        monkeypatch.setattr(DuckDBCatalog, "databases", other)
        with open_source(con, "t") as session:
            ran = check(session, 130, True)
    assert not any('"t"' in sql and "rowid" in sql for sql in ran)


def test_a_callers_table_is_one_state_in_all_slices():
    """A row that is written anew between two slices would count twice."""
    with duckdb.connect() as con:
        con.execute(f"CREATE TABLE t AS {ROWS.format(0, 500)}")
        with open_source(con, "t") as session:
            counter = SqlCounter(session.engine, session.relation.sql, DOMAIN, PAIRS)
            fetch, written = session.engine.fetch, []

            def writing(sql, *, step):
                found = fetch(sql, step=step)
                if "GROUP BY" in sql and not written:
                    written.append(con.execute("DELETE FROM t WHERE a0 = 0"))
                    con.execute(f"INSERT INTO t SELECT * FROM ({ROWS.format(0, 500)}) WHERE a0 = 0")
                return found

            session.engine.fetch = writing
            tables = [*counter.count(PAIRS)]
            assert written
            for query, table in zip(PAIRS, tables, strict=True):
                np.testing.assert_array_equal(table, expected(500, query))


REPLACED = (
    "ALTER TABLE t RENAME TO kept; CREATE VIEW t AS FROM kept UNION ALL FROM kept",
    "CREATE OR REPLACE TABLE t AS SELECT *, 1 AS more FROM t",
)
SOURCES = {"table": "t", "query": "SELECT * FROM t", "view": "seen"}


@pytest.mark.parametrize("change", REPLACED, ids=["a view of its name", "another table"])
@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_a_callers_table_that_is_replaced_is_noticed(change, source):
    """A view can give a row twice, and was never checked."""
    with duckdb.connect() as con:
        con.execute(f"CREATE TABLE t AS {ROWS.format(0, 500)}; CREATE VIEW seen AS FROM t")
        with open_source(con, source) as session:
            counter = SqlCounter(session.engine, session.relation.sql, DOMAIN, PAIRS)
            execute, done = session.engine.execute, []

            def replacing(sql, *, step):
                if "BEGIN" in sql and not done:
                    done.append(con.cursor().execute(change))
                execute(sql, step=step)

            session.engine.execute = replacing
            with pytest.raises(SourceError, match=r"altered or replaced while they were counted.*\bt\b"):
                counter.count(PAIRS)
            assert done
            counter.close()


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_a_table_that_is_replaced_within_a_pass_is_read_as_it_was(source):
    """The transaction of the pass began before."""
    with duckdb.connect() as con:
        con.execute(f"CREATE TABLE t AS {ROWS.format(0, 500)}; CREATE VIEW seen AS FROM t")
        with open_source(con, source) as session:
            counter = SqlCounter(session.engine, session.relation.sql, DOMAIN, PAIRS)
            execute, done = session.engine.execute, []

            def replacing(sql, *, step):
                if "dpsyn_slice" in sql and not done:
                    done.append(con.cursor().execute(REPLACED[0]))
                execute(sql, step=step)

            session.engine.execute = replacing
            tables = [*counter.count(PAIRS)]
            assert done
            for query, table in zip(PAIRS, tables, strict=True):
                np.testing.assert_array_equal(table, expected(500, query))
            counter.close()


@FURTHER
def test_a_file_that_changes_while_it_is_read_is_noticed(tmp_path, further):
    rows = parquet(tmp_path, (300,))
    path = tmp_path / "part-0.parquet"
    with open_source(None, path) as session:
        later = further
        counter = SqlCounter(session.engine, session.relation.sql, DOMAIN, PAIRS, further=later)
        fetch = session.engine.fetch

        def touching(sql, *, step):
            if "GROUP BY" in sql:
                os.utime(path, ns=(1, 1))
            return fetch(sql, step=step)

        session.engine.fetch = touching
        with pytest.raises(SourceError, match="changed while they were counted"):
            counter.count(PAIRS)
        counter.close()
    assert rows == 300


@pytest.mark.parametrize("how", ["renamed", "written"])
def test_files_that_are_put_back_before_a_pass_ends_are_noticed(tmp_path, how):
    """The first file is read under the second name as well: its rows would count twice."""
    parquet(tmp_path, (300, 300))
    first, second = tmp_path / "part-0.parquet", tmp_path / "part-1.parquet"
    was, content = second.stat(), second.read_bytes()

    def swap():
        first.rename(tmp_path / "x")
        second.rename(first)
        (tmp_path / "x").rename(second)

    def overwrite():
        second.write_bytes(first.read_bytes() if second.read_bytes() == content else content)
        os.utime(second, ns=(was.st_atime_ns, was.st_mtime_ns))

    change = swap if how == "renamed" else overwrite
    with open_source(None, f"{tmp_path}/*.parquet") as session:
        counter = SqlCounter(session.engine, session.relation.sql, DOMAIN, PAIRS)
        execute, unchanged, done = session.engine.execute, session.engine.unchanged, []

        def changing(sql, *, step):
            if "part-1" in sql and not done:
                done.append(change())
            execute(sql, step=step)

        def checking():
            change()
            unchanged()

        session.engine.execute, session.engine.unchanged = changing, checking
        with pytest.raises(SourceError, match="changed while they were counted"):
            counter.count(PAIRS)
        assert done and second.read_bytes() == content
        counter.close()


WRITING = "import duckdb, sys; duckdb.connect(sys.argv[1]).execute('UPDATE t SET a0 = 1')"


def test_a_database_whose_lock_is_gone_is_watched(tmp_path):
    """A lock of POSIX is gone once the process opens and closes the file again, as ``load`` does."""
    path = tmp_path / "t.duckdb"
    with duckdb.connect(path) as con:
        con.execute(f"CREATE TABLE t AS {ROWS.format(0, 300)}")
    with open_source(path, "t") as session:
        counter = SqlCounter(session.engine, session.relation.sql, DOMAIN, PAIRS)
        fetch, done = session.engine.fetch, []

        def losing(sql, *, step):
            if "GROUP BY" in sql and not done:
                path.open("rb").close()
                ran = subprocess.run([sys.executable, "-c", WRITING, path], check=False)
                done.append(ran.returncode)
            return fetch(sql, step=step)

        session.engine.fetch = losing
        if sys.platform == "linux":
            with pytest.raises(SourceError, match=r"changed while they were counted.*t\.duckdb"):
                counter.count(PAIRS)
            assert done == [0]
        counter.close()


def test_a_log_that_is_worked_in_before_anything_is_read_is_no_change(tmp_path):
    path = tmp_path / "t.duckdb"
    script = f"import duckdb, os; con = duckdb.connect({str(path)!r}); con.execute({{!r}}); os._exit(0)"
    statement = f"SET checkpoint_threshold = '1GB'; CREATE TABLE t AS {ROWS.format(0, 300)}"
    subprocess.run([sys.executable, "-c", script.format(statement)], check=True)
    assert Path(f"{path}.wal").exists()
    with open_source(path, "t") as session:
        assert session.probe_writing()
        check(session, 300, False)


def test_the_files_of_all_views_are_watched(tmp_path):
    parquet(tmp_path, (300, 300))
    first, second = tmp_path / "part-0.parquet", tmp_path / "part-1.parquet"
    with duckdb.connect(tmp_path / "v.duckdb") as con:
        con.execute(f"CREATE VIEW v AS SELECT * FROM '{first}'; CREATE VIEW w AS SELECT * FROM '{second}'")
    for names in (["v", "w"], ["w", "v"]):
        with open_source(tmp_path / "v.duckdb", names) as session:
            session.engine.unchanged()
            os.utime(first)
            with pytest.raises(SourceError, match="part-0"):
                session.engine.unchanged()


def test_no_statement_has_the_number_of_rows_of_a_file(tmp_path):
    """A statement that fails goes with its error, to wherever that is kept.

    Names of temporary tables have random digits: only a whole number counts.
    """
    parquet(tmp_path, (317,))
    with open_source(None, f"{tmp_path}/*.parquet") as session:
        assert not any(re.search(r"\b317\b", sql) for sql in check(session, 317, True))


def test_codes_of_a_file_that_changed_are_not_left(tmp_path):
    parquet(tmp_path, (300,))
    path = tmp_path / "x.csv"
    with duckdb.connect() as con:
        con.execute(f"COPY (FROM '{tmp_path}/part-0.parquet') TO '{path}'")
    with open_source(None, path) as session:
        make = session.engine.make

        def touching(table, query, step):
            make(table, query, step)
            os.utime(path, ns=(1, 1))

        session.engine.make = touching
        counter = SqlCounter(session.engine, session.relation.sql, DOMAIN, PAIRS, decimal=".")
        with pytest.raises(SourceError):
            counter.count(PAIRS)
        counter.close()
        left = session.engine.fetch("FROM duckdb_tables() WHERE temporary", step="looking what is left")
        assert left["table_name"].tolist() == []


def test_a_release_of_a_changed_file_can_go_on(tmp_path, monkeypatch):
    """Nothing of the changed file is used; what is charged stays, and the same call goes on."""
    parquet(tmp_path, (300,))
    path, ledger = tmp_path / "part-0.parquet", tmp_path / "ledger"
    columns = {
        f"a{k}": {"type": "categorical", "categories": list(range(size))} for k, size in enumerate(SIZES)
    }
    options = {
        "into": tmp_path / "o.parquet",
        "domain": {"columns": {"who": {"type": "numeric", "edges": [0, 100, 200]}, **columns}},
        "ledger": ledger,
        "epsilon": 5.0,
    }
    fetch = counting_engine.CountingEngine.part_sums

    def touching(self, *given, **named):
        os.utime(path, ns=(1, 1))
        return fetch(self, *given, **named)

    with monkeypatch.context() as patch:
        patch.setattr(counting_engine.CountingEngine, "part_sums", touching)
        with pytest.raises(ReleaseUnfinished, match="stays charged"):
            dpsyn_sql.release(None, path, **options)
    assert not (tmp_path / "o.parquet").exists()
    made = dpsyn_sql.release(None, path, **options)
    assert made.replayed and (tmp_path / "o.parquet").exists()


def filed(tmp_path, monkeypatch, memory="1GB"):
    monkeypatch.setattr(code_slices, "_KEPT_SHARE", 10**9)
    session = open_source(None, f"{tmp_path}/*.parquet", memory_limit=memory)
    later = True
    return session, SqlCounter(session.engine, session.relation.sql, DOMAIN, PAIRS, further=later)


def test_too_little_room_is_known_before_anything_is_read(tmp_path, monkeypatch):
    parquet(tmp_path, (300,))
    session, counter = filed(tmp_path, monkeypatch)
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(code_slices.shutil, "disk_usage", lambda path: usage._replace(free=10))
    ran = []
    with session:
        session.engine.trace = ran.append
        with pytest.raises(SourceError, match="a file of up to 1 GiB"):
            counter.count(PAIRS)
        counter.close()
    assert not any("file_row_number >= " in sql for sql in ran)


FULL = textwrap.dedent(
    """
    import resource, signal, sys
    sys.path.insert(0, {tests!r})
    import test_engines_slices as own
    from pathlib import Path
    import pytest
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(own.code_slices, "SLICE_BYTES", 2**20)
        session, counter = own.filed(Path({folder!r}), patch)
        folder = session.engine.folder
        with session:
            resource.setrlimit(resource.RLIMIT_FSIZE, (2**18, 2**18))
            try:
                counter.count(own.PAIRS)
            except own.SourceError as error:
                print(error)
            counter.close()
        print("left", folder.exists())
    """
)


@pytest.mark.skipif(sys.platform != "linux", reason="a limit for files is set as Linux has it")
def test_a_disk_that_is_full_in_the_middle_leaves_nothing(tmp_path):
    parquet(tmp_path, (400_000,))
    script = FULL.format(tests=str(Path(__file__).parent), folder=str(tmp_path))
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert "There is no room in" in found.stdout and "left False" in found.stdout, found.stderr[-2000:]


def test_other_failures_are_not_called_a_full_disk(tmp_path, monkeypatch):
    parquet(tmp_path, (300,))
    session, counter = filed(tmp_path, monkeypatch)
    with session:
        make = session.engine.make

        def broken(table, query, step, *, filed=False):
            if filed:
                raise EngineFailure(step, "InternalException", query)
            make(table, query, step)

        session.engine.make = broken
        with pytest.raises(EngineFailure):
            counter.count(PAIRS)
        counter.close()


@pytest.mark.parametrize("plain", [False, True], ids=["encrypted", "plain"])
def test_a_file_of_codes_is_encrypted_unless_it_is_said_to_be_plain(tmp_path, monkeypatch, plain):
    parquet(tmp_path, (300,))
    session, counter = filed(tmp_path, monkeypatch)
    with session:
        session.choose_scratch("plain" if plain else "encrypted")
        counter.count(PAIRS)
        (file,) = session.engine.folder.glob("dpsyn_filed.duckdb")
        copy = shutil.copy(file, tmp_path / "copy.duckdb")
        with duckdb.connect() as con:
            if plain:
                con.execute(f"ATTACH '{copy}' AS copy (READ_ONLY)")
            else:
                with pytest.raises(duckdb.Error):
                    con.execute(f"ATTACH '{copy}' AS copy (READ_ONLY)")
        counter.close()


def test_a_callers_connection_has_no_files_of_ours():
    with duckdb.connect() as con:
        con.execute(f"CREATE TABLE t AS {ROWS.format(0, 9)}")
        with pytest.raises(InputError, match="limits={'scratch': 'plain'} is for files"):
            dpsyn_sql.release(con, "t", limits={"scratch": "plain"}, ledger=":memory:")
        with pytest.raises(
            InputError, match="limits={'scratch': 'paper'} is not known; use one of encrypted, plain"
        ):
            dpsyn_sql.plan(con, "t", limits={"scratch": "paper"})


def test_a_connection_with_little_memory_is_counted_in_smaller_slices():
    with duckdb.connect(config={"memory_limit": "100MB"}) as con:
        con.execute(f"CREATE TABLE t AS {ROWS.format(0, 300)}")
        with open_source(con, "t") as session:
            assert 2**26 < session.engine.memory < 2**27
            check(session, 300, True)
