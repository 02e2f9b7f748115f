"""The file itself: kinds of file, versions, permissions, concurrent openers."""

import errno
import os
import sqlite3
import threading
from contextlib import closing

import pytest
from ledger_steps import debit, key, run

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.errors import DpsynError, InternalError, LedgerError
from dpsyn_sql.ledger import store
from dpsyn_sql.ledger.sqlite import SqliteLedger


def test_it_is_durable_and_waits(path):
    with closing(SqliteLedger(path)) as ledger:
        connection = ledger._store._connection
        pragmas = {
            name: connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout", "user_version")
        }
    assert pragmas == {
        **{"journal_mode": "delete", "synchronous": 3, "foreign_keys": 1},
        **{"busy_timeout": 30_000, "user_version": store.SCHEMA_VERSION},
    }


@pytest.mark.parametrize("kind", ["text", "sqlite", "sqlite with a version"])
def test_another_file_is_left_alone(path, kind):
    if kind == "text":
        path.write_text("a,b\n" * 1000)
    else:
        with closing(sqlite3.connect(path)) as con:
            con.execute("CREATE TABLE t (a)")
            con.execute(f"PRAGMA user_version = {1 if 'version' in kind else 0}")
    before = path.read_bytes()
    with pytest.raises(LedgerError, match="not a ledger"):
        SqliteLedger(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("content", ["nothing", "the first page of a new database"])
def test_an_empty_file_is_never_taken_for_a_new_ledger(path, content):
    path.touch()
    if content != "nothing":
        with closing(sqlite3.connect(path)) as con:
            con.execute("PRAGMA journal_mode = WAL")
    before = path.read_bytes()
    for create in (True, False):
        with pytest.raises(LedgerError, match=r"is empty.*Restore it.*Only if no release was ever charged"):
            SqliteLedger(path, create=create)
    assert path.read_bytes() == before and list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("suffix", ["-wal", "-journal"])
def test_what_belongs_to_a_lost_ledger_is_not_mixed_into_a_new_one(path, suffix):
    beside = path.with_name(path.name + suffix)
    beside.write_bytes(b"what was spent")
    for create in (True, False):
        with pytest.raises(LedgerError, match=f"is missing, but .*{suffix}, .*exists"):
            SqliteLedger(path, create=create)
    assert list(path.parent.iterdir()) == [beside]


def no_hard_links(*arguments):
    raise PermissionError(errno.EPERM, "not here")


@pytest.mark.parametrize("link", [os.link, no_hard_links])
def test_a_new_ledger_leaves_only_itself(tmp_path, monkeypatch, link):
    """Through a symbolic link too; on a file system that has hard links, and on one that lacks them."""
    monkeypatch.setattr(os, "link", link)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "ledger").symlink_to(tmp_path / "elsewhere" / "real")
    with closing(SqliteLedger(tmp_path / "ledger")) as ledger:
        head = ledger.verify()
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["elsewhere", "ledger", "real"]
    with closing(SqliteLedger(tmp_path / "elsewhere" / "real")) as ledger:
        assert ledger.verify(head) == head


@pytest.mark.parametrize("link", [os.link, no_hard_links])
def test_a_file_that_came_to_stand_there_meanwhile_is_not_overwritten(path, monkeypatch, link):
    """Somebody restores a backup while a new ledger is being made."""
    with closing(SqliteLedger(path.with_name("other"))) as ledger:
        head = ledger.verify()
    build = store._build

    def slowly(temporary):
        build(temporary)
        path.with_name("other").rename(path)

    monkeypatch.setattr(store, "_build", slowly)
    monkeypatch.setattr(os, "link", link)
    with closing(SqliteLedger(path)) as ledger:
        assert ledger.verify() == head


def test_looking_does_not_make_a_ledger(path):
    with pytest.raises(LedgerError, match="There is no ledger"):
        SqliteLedger(path, create=False)
    assert not path.exists()


@pytest.mark.parametrize("where", ["missing/ledger", "."])
def test_a_place_that_cannot_be_a_file(tmp_path, where):
    with pytest.raises(LedgerError, match="folder") as error:
        SqliteLedger(tmp_path / where)
    assert error.value.__context__ is None and error.value.__cause__ is None


def test_a_writer_that_never_ends_is_named(path, monkeypatch):
    monkeypatch.setattr(store, "BUSY_SECONDS", 0.05)
    with closing(SqliteLedger(path)) as ledger, closing(sqlite3.connect(path)) as other:
        other.isolation_level = None
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerError, match="another process"):
            debit(ledger, key(), Budget("gdp", 1))
        other.execute("ROLLBACK")
        with ledger.open_release(key(), Budget("gdp", 1)) as entry:
            run(entry, questions=0)


def test_an_interrupt_within_a_step_leaves_nothing_of_it(path, monkeypatch):
    with closing(SqliteLedger(path)) as ledger:
        before = ledger.verify()

        def interrupted(*arguments, **values):
            raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr("dpsyn_sql.ledger.entries.append", interrupted)
            with pytest.raises(KeyboardInterrupt):
                debit(ledger, key(), Budget("gdp", 1))
        assert ledger.verify() == before
        with ledger.open_release(key(), Budget("gdp", 1)) as entry:
            assert not entry.replayed


def test_many_openers_of_a_new_file_make_one_ledger(path):
    heads, failures = set(), []

    def open_it():
        try:
            with closing(SqliteLedger(path)) as ledger:
                heads.add(ledger.verify())
        except DpsynError as error:
            failures.append(error)

    threads = [threading.Thread(target=open_it) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == [] and len(heads) == 1


def test_another_thread_needs_its_own_ledger(path):
    errors = []
    with closing(SqliteLedger(path)) as ledger:

        def look():
            try:
                ledger.overview()
            except InternalError as error:
                errors.append(error)

        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
    assert len(errors) == 1


def files_of(path):
    return {one.name: one.read_bytes() for one in path.parent.iterdir()}


def marked(path, version):
    """A file that says it is a ledger of a schema."""
    with closing(sqlite3.connect(path)) as con, con:
        con.execute(f"PRAGMA application_id = {store.APPLICATION_ID}")
        con.execute(f"PRAGMA user_version = {version}")
        con.execute(
            "CREATE TABLE IF NOT EXISTS account (account_id INTEGER PRIMARY KEY, name TEXT, kind TEXT)"
        )
    return path


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_ledger_of_the_first_version_is_refused_and_left_alone(path, version, read_only):
    before = files_of(marked(path, version))
    with pytest.raises(
        LedgerError, match=r"dpsyn_sql 0\.1.* Keep the file.* another ledger=.*[Nn]othing was read"
    ):
        SqliteLedger(path, read_only=read_only)
    assert files_of(path) == before


@pytest.mark.parametrize("read_only", [False, True])
def test_a_ledger_of_a_later_version_is_refused_and_left_alone(full, read_only):
    before = files_of(marked(full, store.SCHEMA_VERSION + 1))
    with pytest.raises(LedgerError, match=r"newer version of dpsyn_sql \(schema 11,") as error:
        SqliteLedger(full, read_only=read_only)
    assert error.value.__context__ is None
    assert files_of(full) == before
