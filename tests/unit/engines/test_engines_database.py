"""All tables of a release of several are opened together: their names, what is forbidden, and their links."""

import duckdb
import pytest

from dpsyn_sql.engines.open_source import open_source
from dpsyn_sql.errors import InputError, InternalError, SourceError
from dpsyn_sql.planning.tree import Link
from dpsyn_sql.source.names import LedgerNames

SQL = """
    CREATE TABLE products (pid INT PRIMARY KEY, kind VARCHAR);
    CREATE TABLE customers (id INT PRIMARY KEY, code INT UNIQUE, boss INT REFERENCES customers (id));
    CREATE TABLE orders (oid INT, part INT, cid INT REFERENCES customers (id), PRIMARY KEY (oid, part));
    CREATE TABLE items (p INT, o INT, pid INT REFERENCES products, FOREIGN KEY (o, p) REFERENCES orders);
    CREATE VIEW late AS SELECT oid, kind FROM orders JOIN products ON oid = pid;
"""


@pytest.fixture
def con():
    with duckdb.connect() as made:
        made.execute(SQL)
        yield made


def test_keys_and_links_are_those_of_the_constraints(con):
    with open_source(con, ["main.Customers", "orders", "items"], public_tables=["products"]) as session:
        assert list(session.relations) == ["customers", "orders", "items"] and list(session.public) == [
            "products"
        ]
        assert {name: facts.primary for name, facts in session.facts.items()} == {
            "customers": ("id",),
            "orders": ("oid", "part"),
            "items": (),
            "products": ("pid",),
        }
        assert {name: facts.links for name, facts in session.facts.items()} == {
            "customers": (Link(("boss",), "customers", ("id",)),),
            "orders": (Link(("cid",), "customers", ("id",)),),
            "items": (Link(("pid",), "products", ("pid",)), Link(("o", "p"), "orders", ("oid", "part"))),
            "products": (),
        }
        assert session.facts["customers"].unique == (("code",),)


def test_names_mean_what_was_given(con):
    with open_source(con, ["main.customers", "orders"]) as session:
        for text in ("customers", "CUSTOMERS", "main.customers", "Main.Customers"):
            assert session.named(text) == "customers"
        assert session.named("items") is None and session.named("main.orders") is None


def test_everything_of_a_source_covers_all_private_tables(con):
    with open_source(con, ["customers", "late"], public_tables=["products"]) as session:
        home = LedgerNames()
        assert session.private_sources(home) == (":memory:main.customers", ":memory:main.orders")
        assert session.resolved_name(home) == ":memory:main.customers, :memory:main.late"
        assert session.resolved_names(home) == {
            "customers": ":memory:main.customers",
            "late": ":memory:main.late",
        }
        assert session.definition(home) is not None and session.kind == "database"
        assert '"memory"."main"."orders"' in session.forbidden
        assert not any("products" in name for name in session.forbidden)
        session.release_source()
        for table in ("customers", "orders", "late"):
            with pytest.raises(InternalError):
                session.engine.execute(f'FROM "memory"."main"."{table}"', step="test")
        session.engine.execute('FROM "memory"."main"."products"', step="test")


def test_a_definition_is_that_of_the_views(con):
    with open_source(con, ["customers", "orders"]) as session:
        assert session.definition(LedgerNames()) is None
    with open_source(con, ["customers", "late"], public_tables=["products"]) as session:
        first = session.definition(LedgerNames())
    con.execute(
        "CREATE OR REPLACE VIEW late AS SELECT oid + 1 AS oid, kind FROM orders JOIN products ON oid = pid"
    )
    with open_source(con, ["customers", "late"], public_tables=["products"]) as session:
        assert session.definition(LedgerNames()) != first


def test_a_whole_schema(con):
    con.execute("CREATE SCHEMA other; CREATE TABLE other.more (a INT); CREATE TEMPORARY TABLE mine (a INT)")
    with open_source(con, None, public_tables=["main.products"]) as session:
        assert set(session.relations) == {"customers", "orders", "items"} and set(session.public) == {
            "products"
        }
    con.execute("USE memory.other")
    with open_source(con, None) as session:
        assert set(session.relations) == {"more"}


def test_a_database_file_is_opened_for_reading_and_let_go(tmp_path):
    path = tmp_path / "s.duckdb"
    with duckdb.connect(path) as made:
        made.execute(SQL.split("CREATE TABLE items")[0])
    with open_source(path, ["customers", "orders"], memory_limit="1GB") as session:
        assert session.database == path and session.memory_limit == "1GB"
        assert session.probe_writing()
        assert session.private_sources(LedgerNames.of(tmp_path / "l")) == (
            "s.duckdb:main.customers",
            "s.duckdb:main.orders",
        )
        session.release_source()
        with pytest.raises(InternalError):
            session.engine.execute('FROM "s"."main"."orders"', step="test")


def test_tables_of_two_databases_are_refused(tmp_path, con):
    con.execute(f"ATTACH '{tmp_path / 's.duckdb'}' AS s; CREATE TABLE s.a (x INT)")
    with pytest.raises(InputError, match="several databases"):
        open_source(con, ["customers", "s.a"])
    with pytest.raises(InputError, match="several databases"):
        open_source(con, ["customers", "orders"], public_tables=["s.a"])


@pytest.mark.parametrize(
    ("tables", "public", "limit", "words"),
    [
        ([], [], None, "No table is named"),
        (["customers", "nothing"], [], None, "no table, view or file 'nothing'"),
        (["customers", "mine"], [], None, "temporary table"),
        (["customers", "customers"], [], None, "named twice"),
        (["customers"], ["customers"], None, "named twice"),
        (["customers"], ["late"], None, "names views"),
        (["customers", "orders"], ["mine"], None, "temporary table"),
        (["customers", ""], [], None, "give names of tables and views"),
        (["customers", "FROM orders"], [], None, "give names of tables and views"),
        (["customers", "sums"], [], None, "may mix rows"),
        (["customers", "orders"], [], "1GB", "limits= with 'memory' would change the settings"),
    ],
)
def test_each_wrong_call_is_one_error(con, tables, public, limit, words):
    con.execute(
        "CREATE TEMPORARY TABLE mine (a INT); CREATE VIEW sums AS SELECT cid, count(*) AS n FROM orders GROUP BY 1"
    )
    with pytest.raises((InputError, SourceError), match=words.replace("(", "\\(")):
        open_source(con, tables, public_tables=public, memory_limit=limit)
