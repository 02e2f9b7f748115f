"""Outputs of several tables: every refusal comes before anything is written, and the writer cannot name the source."""

from pathlib import Path

import duckdb
import pytest
from support.staged_databases import relation_of

from dpsyn_sql.engines.open_source import open_source
from dpsyn_sql.engines.open_target import open_target
from dpsyn_sql.errors import InternalError, TargetError
from dpsyn_sql.planning.tree import PublicTable
from dpsyn_sql.source.names import LedgerNames

TABLES = ("customers", "orders")
GOODS = PublicTable("goods", relation_of("goods", {"id": "INTEGER"}), ("id",))
MADE = (
    "CREATE TABLE customers (id INTEGER PRIMARY KEY); CREATE TABLE orders (id INTEGER); CREATE SCHEMA s;"
    "CREATE TABLE s.customers (id INTEGER PRIMARY KEY);"
    "CREATE TABLE s.orders (id INTEGER, c INTEGER, FOREIGN KEY (c) REFERENCES s.customers (id));"
)


@pytest.fixture
def con():
    connection = duckdb.connect()
    connection.execute(MADE)
    yield connection
    connection.close()


@pytest.fixture
def shop(tmp_path):
    path = tmp_path / "shop.duckdb"
    with duckdb.connect(str(path)) as con:
        con.execute(MADE)
    return path


def target_of(con, into, public=(), **options):
    with open_source(con, "customers") as session:
        return open_target(con, into, session, TABLES, public, **options)


def refused(con, into, word, **options):
    with pytest.raises(TargetError, match=word) as caught:
        target_of(con, into, **options)
    assert caught.value.__context__ is None and caught.value.__cause__ is None


@pytest.mark.parametrize(
    ("into", "home"),
    [
        (None, ("memory", "memory_synthetic")),
        ("copy", ("memory", "copy")),
        ("memory.copy", ("memory", "copy")),
        ('"a.b"', ("memory", "a.b")),
        ("MEMORY.copy", ("memory", "copy")),
    ],
)
def test_a_schema_of_a_connection(con, into, home):
    target = target_of(con, into, (GOODS,))
    assert (target.kind, target.home, target.label) == ("schema", home, home[1])
    assert target.copies == () and not (target.existing or target.replace or target.only_same)
    assert target.names == {"customers": "customers", "orders": "orders"}
    assert target.output.name(LedgerNames()).endswith('."*"')


def test_public_tables_are_copied_where_the_output_would_not_join_without(con, tmp_path):
    con.execute("ATTACH ':memory:' AS other")
    assert target_of(con, "copy", (GOODS,), constraints=True).copies == (GOODS,)
    assert target_of(con, "other.copy", (GOODS,)).copies == (GOODS,)
    for path in (tmp_path / "o.duckdb", tmp_path / "o"):
        assert target_of(con, path, (GOODS,)).names["goods"] == "goods"


@pytest.mark.parametrize(
    ("into", "word", "options"),
    [
        ("main", "schema of a table of the release", {}),
        ("MAIN", "schema of a table of the release", {"replace": True}),
        ("s", r"tables of these names: 'customers', 'orders'", {}),
        ("dpsyn", "keeps the models", {}),
        ("temp", "is a database", {}),
        ("temp.main", "temporary or internal", {}),
        ("nowhere.x", "no database nowhere", {}),
        ("a.b.c", "no database", {}),
        ("", "name of a schema", {}),
        ("a\x00b", "NUL", {}),
        ("./x.parquet", "is one file", {}),
        ("no/such/folder", "does not exist", {}),
        (Path("no/such.duckdb"), "does not exist", {}),
    ],
)
def test_refused(con, into, word, options):
    before = con.execute("FROM duckdb_tables()").fetchall()
    refused(con, into, word, **options)
    assert con.execute("FROM duckdb_tables()").fetchall() == before


def test_replaced_tables_are_dropped_before_those_that_they_refer_to(con):
    target = target_of(con, "s", replace=True)
    assert target.dropped == ("orders", "customers") and target.replace and not target.only_same
    con.execute("CREATE TABLE s.mine (c INTEGER, FOREIGN KEY (c) REFERENCES s.customers (id))")
    refused(con, "s", r"that the release does not write.*'mine'", replace=True)
    con.execute("DROP TABLE s.mine; DROP TABLE s.orders; CREATE VIEW s.orders AS SELECT 1 AS id")
    refused(con, "s", "is a view", replace=True)


def test_the_same_release_may_write_its_tables_again(con):
    target = target_of(con, "s", written=lambda output: output.table == ("memory", "s", "*"))
    assert target.only_same and target.existing == {"customers", "orders"} and target.dropped == ()


def test_two_tables_of_one_name(con):
    with open_source(con, "customers") as session, pytest.raises(TargetError, match="each name"):
        open_target(con, "copy", session, ("customers", "s.Customers"))


def test_a_schema_of_a_database_file(shop):
    assert target_of(shop, None).home == ("shop", "shop_synthetic")
    refused(shop, "s", "tables of these names")
    refused(shop, shop, "open database")
    with open_source(shop, "customers") as session:
        target = open_target(shop, "copy", session, TABLES)
        with pytest.raises(InternalError, match="released"):
            target.open()
        session.release_source()
        engine = target.open()
        with pytest.raises(InternalError, match="after the last question"):
            engine.fetch(f"FROM {session.relation.sql}", step="peeking")
        engine.close()
    with duckdb.connect(str(shop), read_only=True) as con:
        refused(con, None, "read-only")


def test_files_without_a_database(tmp_path):
    with duckdb.connect() as con:
        con.execute(f"COPY (SELECT 1 AS a) TO '{tmp_path}/customers.parquet'")
    source = tmp_path / "customers.parquet"
    with open_source(None, source) as session:
        for into, word in (
            ("copy", "needs a database"),
            (None, "in no database"),
            (tmp_path, "has the source"),
        ):
            with pytest.raises(TargetError, match=word):
                open_target(None, into, session, TABLES)
        assert open_target(None, tmp_path / "new", session, TABLES).kind == "folder"


def test_what_stands_at_a_path(con, tmp_path):
    folder, file = tmp_path / "made", tmp_path / "made.db"
    folder.mkdir()
    (folder / "mine.parquet").touch()
    assert not target_of(con, folder).replace
    (folder / "orders.parquet").touch()
    refused(con, folder, "'orders.parquet' exists")
    assert target_of(con, folder, replace=True).existing == {"orders"}
    assert target_of(con, f"{folder}", written=lambda output: True).only_same
    (tmp_path / "made.dpsyn.duckdb").touch()
    (folder / "orders.parquet").unlink()
    refused(con, folder, "models of a release, exists without", written=lambda output: True)
    with duckdb.connect(str(file)) as made:
        made.execute("CREATE TABLE orders (id INTEGER)")
    refused(con, file, "exists")
    assert target_of(con, file, replace=True).path == file
    with duckdb.connect(str(file)) as made:
        made.execute("CREATE TABLE mine (id INTEGER)")
    refused(con, file, r"more than the tables of this release: 'main\.mine'", replace=True)
    con.execute(f"ATTACH '{file}' AS opened")
    refused(con, file, "open database", replace=True)
    (tmp_path / "left.db.wal").touch()
    refused(con, tmp_path / "left.db", "was not closed")
    (tmp_path / "text.db").write_text("no database")
    refused(con, tmp_path / "text.db", "cannot be opened", replace=True)
