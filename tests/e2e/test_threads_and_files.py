"""One database in several threads, and a database file that is renamed or replaced while it is open."""

import shutil
import threading
import warnings

import duckdb
import pytest

import dpsyn_sql
from dpsyn_sql.engines import connections
from dpsyn_sql.engines.connections import instance_of
from dpsyn_sql.engines.identities import still_open
from dpsyn_sql.ledger.locations import existing_memory_ledger
from dpsyn_sql.ledger.sqlite import SqliteLedger

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

THREADS = 8
TABLE = "CREATE TABLE t AS SELECT i % 2 = 0 AS a, i % 3 = 0 AS b FROM range(500) AS r(i)"


def released(con, into, **options):
    return dpsyn_sql.release(con, "t", into=into, method="independent", **options)


def together(work):
    """``work(number)`` in threads that begin together; the errors."""
    start, errors = threading.Barrier(THREADS), []

    def one(number):
        start.wait()
        try:
            work(number)
        except dpsyn_sql.DpsynError as error:
            errors.append(str(error))

    threads = [threading.Thread(target=one, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


@pytest.mark.slow
def test_each_of_many_threads_writes_its_output(tmp_path):
    file = tmp_path / "w.duckdb"
    with duckdb.connect(str(file)) as con:
        con.execute(TABLE)
        cursors = [con.cursor() for _ in range(THREADS)]
        assert together(lambda n: released(cursors[n], f"o{n}", version=str(n), rows=7, epsilon=0.01)) == []
        for number in range(THREADS):
            assert con.execute(f"SELECT count(*) FROM o{number}").fetchall() == [(7,)]
        assert con.execute("SELECT count(*) FROM dpsyn.releases").fetchall() == [(THREADS,)]
    ledger = SqliteLedger(f"{file}.dpsyn-ledger")
    assert {one.state for one in ledger.overview().releases} == {"published"}
    assert len(ledger.overview().releases) == THREADS
    ledger.close()


def test_cursors_of_a_database_in_memory_share_one_ledger():
    with duckdb.connect() as con:
        con.execute(TABLE)
        assert instance_of(con) is None
        for number in range(2):
            released(con.cursor(), f"o{number}", version=str(number), epsilon=1)
        ledger = existing_memory_ledger(instance_of(con))
        assert ledger is not None
        assert [one.version for one in ledger.overview().releases] == ["0", "1"]
        assert released(con, "o1", version="1", epsilon=1).replayed
        (account,) = ledger.overview().accounts
        assert account.epsilon > 1.2
        with duckdb.connect() as other:
            other.execute(TABLE)
            released(other, "o", epsilon=1)
            assert existing_memory_ledger(instance_of(other)) is not ledger
        assert len(ledger.overview().releases) == 2


def test_threads_that_begin_at_once_have_one_ledger_in_memory(monkeypatch):
    looks, find = [], connections._marked_name

    def found(engine):
        looks.append(connections._marking.locked())
        return find(engine)

    monkeypatch.setattr(connections, "_marked_name", found)
    with duckdb.connect() as con:
        cursors = [con.cursor() for _ in range(THREADS)]
        names = [None] * THREADS

        def work(number):
            names[number] = instance_of(cursors[number], marked=True)

        assert together(work) == [] and len(set(names)) == 1 and names[0]
    assert looks == [True] * THREADS


@pytest.mark.skipif(not hasattr(duckdb, "ResourceInUseException"), reason="this DuckDB lets threads wait")
def test_a_connection_that_another_thread_uses_is_refused_in_one_sentence(tmp_path):
    running, over = threading.Event(), threading.Event()

    def block():
        running.set()
        over.wait()
        return True

    file = tmp_path / "w.duckdb"
    with duckdb.connect(str(file)) as con:
        con.execute(TABLE)
        con.create_function("block", block, [], "BOOLEAN", side_effects=True)
        thread = threading.Thread(target=lambda: con.execute("SELECT block()").fetchall())
        thread.start()
        running.wait()
        try:
            with pytest.raises(
                dpsyn_sql.errors.SourceError, match=r"in use by another thread.*con\.cursor\(\)\. Noth"
            ):
                released(con, "o")
        finally:
            over.set()
            thread.join()
        assert not file.with_name("w.duckdb.dpsyn-ledger").exists()
        assert not released(con, "o").replayed


# -- the file -----------------------------------------------------------------------------------


def renamed(folder):
    for ending in ("", ".dpsyn-ledger", ".wal"):
        if (folder / f"a.duckdb{ending}").exists():
            (folder / f"a.duckdb{ending}").rename(folder / f"b.duckdb{ending}")


def replaced(folder):
    shutil.copy(folder / "a.duckdb", folder / "new")
    renamed(folder)
    (folder / "new").rename(folder / "a.duckdb")


def deleted(folder):
    shutil.copy(folder / "a.duckdb", folder / "b.duckdb")
    (folder / "a.duckdb").unlink()
    (folder / "a.duckdb.dpsyn-ledger").rename(folder / "b.duckdb.dpsyn-ledger")


@pytest.fixture
def spent(tmp_path):
    """A database whose limit of epsilon 1 is spent."""
    con = duckdb.connect(str(tmp_path / "a.duckdb"))
    con.execute(TABLE)
    ledger = SqliteLedger(tmp_path / "a.duckdb.dpsyn-ledger")
    ledger.grant("main.t#row", "1")
    ledger.close()
    released(con, "o1", epsilon=1)
    con.execute("CHECKPOINT")
    yield con
    con.close()


@pytest.mark.parametrize("happens", [renamed, replaced, deleted])
@pytest.mark.parametrize("source", ["t", "SELECT a FROM t"])
def test_a_database_that_is_no_longer_at_its_path_is_refused_before_the_debit(
    tmp_path, spent, happens, source
):
    happens(tmp_path)
    with pytest.raises(dpsyn_sql.errors.SourceError, match="not the file that the database has open"):
        dpsyn_sql.release(spent, source, into="o2", epsilon=1, version="2", method="independent")
    with pytest.raises(dpsyn_sql.errors.SourceError, match="not the file that the database has open"):
        dpsyn_sql.release(spent, source=["t"], unit="t", into="s", epsilon=1)
    assert not (tmp_path / "a.duckdb.dpsyn-ledger").exists()
    spent.close()
    with (
        duckdb.connect(str(tmp_path / "b.duckdb")) as con,
        pytest.raises(dpsyn_sql.errors.LedgerError, match="dpsyn ledger moved"),
    ):
        released(con, "o2", epsilon=1, version="2")
    ledger = SqliteLedger(tmp_path / "b.duckdb.dpsyn-ledger")
    ledger.moved(with_data=True)
    ledger.close()
    with (
        duckdb.connect(str(tmp_path / "b.duckdb")) as con,
        pytest.raises(dpsyn_sql.errors.PrivacyBudgetExceeded),
    ):
        released(con, "o2", epsilon=1, version="2")


@pytest.mark.parametrize("attached", [False, True])
def test_links_to_a_database_file_are_the_file(tmp_path, attached):
    with duckdb.connect(str(tmp_path / "a.duckdb")) as con:
        con.execute(TABLE)
    (tmp_path / "link.duckdb").symlink_to(tmp_path / "a.duckdb")
    link = str(tmp_path / "link.duckdb")
    with duckdb.connect() if attached else duckdb.connect(link) as con, warnings.catch_warnings():
        if attached:
            con.execute(f"ATTACH '{link}' AS w (READ_ONLY)")
            con.execute("USE w")
        assert dpsyn_sql.plan(con, "t", epsilon=1, into=str(tmp_path / "o.csv"), method="independent")
        assert still_open(link) and still_open(str(tmp_path / "a.duckdb"))
    assert not still_open(str(tmp_path / "a.duckdb"))
