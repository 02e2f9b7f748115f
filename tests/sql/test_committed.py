"""A transaction that another one crosses is tried again, all of it; what is said afterwards is true."""

import threading

import duckdb
import pytest

from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.errors import PublishError
from dpsyn_sql.rows.write import outputs
from dpsyn_sql.rows.write.outputs import NewTable, committed, write_tables
from dpsyn_sql.sqltext.fragments import Fragment

NEW = NewTable(Fragment("main.o"), Fragment("SELECT 1 AS a"))


@pytest.fixture
def con():
    with duckdb.connect() as opened:
        yield opened


@pytest.fixture
def engine(con):
    return DuckDBEngine(con.cursor())


def test_it_is_tried_again_until_the_other_transaction_has_ended(con, engine, monkeypatch):
    """The other one makes the same schema and then gives it up; nothing of the first try is left."""
    con.execute("BEGIN")
    con.execute("CREATE SCHEMA s")
    pauses = []

    def pause(seconds):
        pauses.append(seconds)
        if len(pauses) == 2:
            con.execute("ROLLBACK")

    monkeypatch.setattr(outputs.time, "sleep", pause)
    new = NewTable(Fragment("s.o"), Fragment("SELECT 1 AS a"))
    write_tables(engine, "memory", [NEW, new], [], schema=Fragment("s"))
    assert len(pauses) == 2
    assert con.execute("SELECT * FROM s.o, main.o").fetchall() == [(1, 1)]


def test_a_transaction_that_is_crossed_each_time_says_so_and_leaves_nothing(con, engine, monkeypatch):
    monkeypatch.setattr(outputs.time, "sleep", lambda seconds: None)
    con.execute("BEGIN")
    con.execute("CREATE TABLE main.o (a INTEGER)")
    with pytest.raises(
        PublishError, match=r"other transactions of the database.*Commit or close them"
    ) as error:
        write_tables(engine, "memory", [NEW], [])
    assert "appeared" not in str(error.value)
    con.execute("ROLLBACK")
    assert con.execute("SELECT count(*) FROM duckdb_tables()").fetchall() == [(0,)]


@pytest.mark.parametrize("made", ["TABLE main.o (a INTEGER)", "VIEW main.o AS SELECT 7 AS a"])
def test_what_has_appeared_is_called_so_only_if_it_is_there(con, engine, made):
    con.execute(f"CREATE {made}")
    with pytest.raises(PublishError, match=r"something of the name main\.o has appeared"):
        write_tables(engine, "memory", [NEW], [])
    gone = NewTable(Fragment("gone.o"), Fragment("SELECT 1 AS a"))
    with pytest.raises(PublishError, match="its schema was removed meanwhile") as error:
        write_tables(engine, "memory", [gone], [])
    assert "appeared" not in str(error.value)


def test_releases_of_one_process_write_one_after_another(con):
    """Each makes the same functions, so two of their transactions are never open at once."""
    inside, most, start = [], [], threading.Barrier(4)

    def work(cursor):
        start.wait()
        assert committed(DuckDBEngine(cursor), write) is None

    def write():
        inside.append(1)
        most.append(len(inside) if outputs._one_writer.locked() else 99)
        inside.pop()

    threads = [threading.Thread(target=work, args=(con.cursor(),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 4
