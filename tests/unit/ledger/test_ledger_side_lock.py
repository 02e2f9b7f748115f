"""The lock beside the ledger: what is committed rests on it alone, whatever becomes of SQLite's locks."""

import os
import sqlite3
from contextlib import closing

import pytest
from ledger_steps import debit, key

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.errors import LedgerError
from dpsyn_sql.ledger import creation as side_lock
from dpsyn_sql.ledger import store
from dpsyn_sql.ledger.creation import alone, lock_of
from dpsyn_sql.ledger.sqlite import SqliteLedger

SMALL = Budget("gdp", 10)


class Child:
    """``work(path)`` in a forked process each time it is told to; what it says, or the class of its error."""

    def __init__(self, open_it, work):
        self.told, tells = os.pipe()
        hears, self.tells = os.pipe()
        self.process = os.fork()
        if self.process:
            os.close(tells)
            os.close(hears)
            return
        try:
            os.close(self.told)
            os.close(self.tells)
            opened = open_it()
            os.write(tells, b"opened\n")
            while os.read(hears, 1):
                try:
                    said = str(work(opened))
                except LedgerError as error:
                    said = str(error)
                os.write(tells, f"{said}\n".encode())
        finally:
            os._exit(0)

    def hear(self):
        return os.read(self.told, 10_000).decode().strip()

    def ask(self):
        os.write(self.tells, b"x")
        return self.hear()

    def end(self):
        os.close(self.tells)
        os.waitpid(self.process, 0)
        os.close(self.told)


def released(ledger):
    return debit(ledger, key(version="child"), SMALL).replayed


@pytest.mark.parametrize("work", [released, SqliteLedger.overview])
def test_a_transaction_is_alone_even_when_the_locks_of_sqlite_are_gone(path, monkeypatch, work):
    """Neither a debit nor a look goes into the middle of another one: a look would undo what it finds half-written."""
    monkeypatch.setattr(store, "BUSY_SECONDS", 0.05)
    SqliteLedger(path).close()
    child = Child(lambda: SqliteLedger(path), work)
    assert child.hear() == "opened"
    with closing(SqliteLedger(path)) as ledger:
        kept = ledger._store
        kept._connection.execute("PRAGMA cache_size = 1")  # what does not fit is written before the COMMIT
        with kept.writing():
            debit(ledger, key(version="parent", much="x" * 100_000), SMALL)
            path.read_bytes()  # drops every lock that SQLite has on the file
            assert "another process has been using it" in child.ask()
        assert "another process" not in child.ask()
        child.end()
        ledger.verify()
        versions = {one.version for one in ledger.overview().releases}
    assert versions == ({"parent", "child"} if work is released else {"parent"})


def test_the_lock_is_there_only_while_it_is_held(path):
    with closing(SqliteLedger(path)) as ledger:
        with ledger._store.reading():
            assert lock_of(path).exists()
        assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_a_lock_that_somebody_takes_away_is_not_taken_away_twice(path):
    with alone(path, 0.0):
        lock_of(path).unlink()
        with alone(path, 0.0):
            pass
        lock_of(path).touch()
    assert lock_of(path).exists()


def test_a_child_that_was_forked_meanwhile_does_not_keep_the_lock(path):
    """The process that held it dies; its own child lives on."""
    hears, tells = os.pipe()
    process = os.fork()
    if process == 0:
        with alone(path, 0.0):
            if os.fork() == 0:
                os.close(tells)
                os.read(hears, 1)
            os._exit(0)
    os.waitpid(process, 0)
    with alone(path, 5.0):  # the child of the child may still be on its way to closing it
        pass
    os.close(tells)
    os.close(hears)


def test_a_reader_that_may_not_write_goes_on_without_it(path, monkeypatch):
    def refused(*arguments):
        raise PermissionError(13, "not here")

    with closing(SqliteLedger(path)) as ledger:
        head = ledger.verify()
    monkeypatch.setattr(side_lock, "_opened", refused)
    with closing(SqliteLedger(path, read_only=True)) as ledger:
        assert ledger.verify() == head
    with pytest.raises(LedgerError, match="not writable"):
        SqliteLedger(path)


def test_a_system_without_locks_is_named(path, monkeypatch):
    def unsupported(*arguments):
        raise OSError(95, "not here")

    monkeypatch.setattr(side_lock.fcntl, "flock", unsupported)
    with pytest.raises(LedgerError, match="its file system has no locks: choose a ledger= on another disk"):
        SqliteLedger(path)
    assert not path.exists()


def half_written(path):
    """The files of a ledger as a process leaves them that is killed while it writes."""
    copy = path.with_name("copy")
    with closing(sqlite3.connect(path, isolation_level=None)) as con:
        con.execute("PRAGMA cache_size = 1")
        con.execute("BEGIN IMMEDIATE")
        con.execute("CREATE TABLE junk (a)")
        con.executemany("INSERT INTO junk VALUES (randomblob(3000))", [()] * 200)
        for ending in ("", "-journal"):
            copy.with_name(f"copy{ending}").write_bytes(path.with_name(f"{path.name}{ending}").read_bytes())
        con.execute("ROLLBACK")
    return copy


@pytest.mark.parametrize("read_only", [False, True])
def test_what_a_killed_process_left_half_written_is_undone(path, read_only):
    with closing(SqliteLedger(path)) as ledger:
        head = ledger.verify()
    copy = half_written(path)
    with closing(SqliteLedger(copy, read_only=read_only)) as ledger:
        assert ledger.verify() == head
    assert sorted(one.name for one in path.parent.iterdir()) == ["copy", path.name]


def test_a_reader_without_the_lock_undoes_nothing(path, monkeypatch):
    """What is half-written may belong to a process that is at work."""

    def refused(*arguments):
        raise PermissionError(13, "not here")

    SqliteLedger(path).close()
    copy = half_written(path)
    before = {one.name: one.read_bytes() for one in path.parent.iterdir()}
    monkeypatch.setattr(side_lock, "_opened", refused)
    with pytest.raises(LedgerError, match="half-written step cannot be undone from here"):
        SqliteLedger(copy, read_only=True)
    assert {one.name: one.read_bytes() for one in path.parent.iterdir()} == before


@pytest.mark.parametrize("how", ["moved", "replaced"])
def test_a_ledger_that_is_moved_or_replaced_while_it_is_open_takes_no_debit(path, how):
    with closing(SqliteLedger(path)) as ledger:
        other = path.with_name("other")
        other.write_bytes(path.read_bytes())
        path.rename(path.with_name("elsewhere")) if how == "moved" else other.rename(path)
        with pytest.raises(LedgerError, match="moved, deleted or replaced while it was open"):
            debit(ledger, key(), SMALL)


def test_a_ledger_in_another_mode_is_switched(path):
    with closing(SqliteLedger(path)) as ledger:
        debit(ledger, key(), SMALL)
        head = ledger.verify()
    with closing(sqlite3.connect(path)) as con:
        con.execute("PRAGMA journal_mode = WAL")
    with closing(SqliteLedger(path)) as ledger:
        assert ledger.verify() == head
        debit(ledger, key(version="2"), SMALL)
        assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_another_program_that_reads_without_an_end_is_named(path, monkeypatch):
    monkeypatch.setattr(store, "BUSY_SECONDS", 0.05)
    with (
        closing(SqliteLedger(path)) as ledger,
        closing(sqlite3.connect(path, isolation_level=None)) as reader,
    ):
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM record").fetchall()
        with pytest.raises(LedgerError, match=r"another process has been using it.*Its content is unchanged"):
            debit(ledger, key(), SMALL)
        reader.execute("COMMIT")
        assert not debit(ledger, key(), SMALL).replayed
