"""Whole releases of databases: where they go, what they leave as it is, options, types, constraints."""

import warnings

import duckdb
import pytest
from support.released_shop import KEYS, SHOP, TABLES, TIES, check_joins, number, released, rows_of

import dpsyn_sql

pytestmark = pytest.mark.slow

PLACES = ["memory", "connection", "file"]


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "w.duckdb"
    with duckdb.connect(str(file)) as con:
        con.execute(SHOP)
    return file


@pytest.fixture
def con():
    with duckdb.connect() as connection:
        connection.execute(SHOP)
        yield connection


def told(con, query):
    return con.execute(query).fetchall()


def described(con, table):
    return [row[:2] for row in told(con, f"DESCRIBE {table}")]


def opened(place, path):
    """The connection, or the path, that is given as con."""
    if place == "file":
        return path
    con = duckdb.connect(":memory:" if place == "memory" else str(path))
    if place == "memory":
        con.execute(SHOP)
    return con


def reader(into, con, path):
    """A connection to what was written, and its schema."""
    if into == "copy":
        return (con if con is not path else duckdb.connect(str(path))), "copy"
    if into == "o.duckdb":
        return duckdb.connect(into), "main"
    out = duckdb.connect()
    for name in (*KEYS, "products"):
        out.execute(f"CREATE TABLE {name} AS FROM '{into}{name}.parquet'")
    return out, "main"


@pytest.mark.parametrize("into", ["copy", "o.duckdb", "folder/"])
@pytest.mark.parametrize("place", PLACES)
def test_tables_join_wherever_they_are_written(tmp_path, monkeypatch, path, place, into):
    monkeypatch.chdir(tmp_path)
    con = opened(place, path)
    result = released(con, into=into)
    assert [len(result[name].to_df()) for name in KEYS] == [result[name].rows for name in KEYS]
    out, schema = reader(into, con, path)
    ties = [*TIES, ("items", "product_id", "products", "product_id")]
    check_joins(out, ties, into=schema, public="products" if into == "copy" else None)
    with duckdb.connect() as source:
        source.execute(SHOP)
        for name, one in result.tables.items():
            assert number(out, f"SELECT count(*) FROM {schema}.{name}") == one.rows > 0
            assert described(out, f"{schema}.{name}") == described(source, name)
        copied = told(out, "FROM products")  # beside the output, or in it
        assert sorted(copied) == sorted(told(source, "FROM products"))
    out.close()
    if place != "file":
        con.close()


def test_constraints_are_stated_and_hold(con):
    released(con, constraints=True)
    found = told(
        con,
        "SELECT table_name, constraint_type, constraint_column_names FROM duckdb_constraints() WHERE schema_name = "
        "'copy' AND constraint_type IN ('PRIMARY KEY', 'FOREIGN KEY') ORDER BY ALL",
    )
    assert ("customers", "PRIMARY KEY", ["customer_id"]) in found
    assert ("items", "PRIMARY KEY", ["order_id", "line"]) in found
    assert {
        ("orders", "FOREIGN KEY", ("customer_id",)),
        ("items", "FOREIGN KEY", ("order_id",)),
        ("items", "FOREIGN KEY", ("product_id",)),
    } <= {(table, kind, tuple(columns)) for table, kind, columns in found}
    with pytest.raises(duckdb.ConstraintException):
        con.execute("INSERT INTO copy.orders VALUES (100000, 999999, NULL)")
    assert sorted(told(con, "FROM copy.products")) == sorted(told(con, "FROM products"))
    rows = {name: rows_of(con, f"copy.{name}") for name in KEYS}
    assert released(con, constraints=True, replace=True).replayed
    assert rows == {name: rows_of(con, f"copy.{name}") for name in KEYS}


def test_not_null_holds_where_the_source_says_so(con):
    released(con, epsilon=0.1)
    for table in KEYS:
        strict = [row[0] for row in told(con, f"DESCRIBE main.{table}") if row[2] == "NO"]
        assert strict
        assert [row[0] for row in told(con, f"DESCRIBE copy.{table}") if row[2] == "NO"] == strict


def state(con):
    return (
        told(con, "SELECT name, value FROM duckdb_settings() ORDER BY ALL"),
        told(
            con,
            "SELECT database_name, schema_name, table_name FROM duckdb_tables() WHERE temporary OR schema_name = 'main' ORDER BY ALL",
        ),
        told(con, "SELECT view_name FROM duckdb_views() WHERE NOT internal ORDER BY ALL"),
        told(con, "SELECT database_name, path FROM duckdb_databases() ORDER BY ALL"),
        told(con, "SELECT current_schema(), current_database()"),
    )


def test_nothing_is_left_on_the_callers_connection(con, monkeypatch):
    con.execute(
        "CREATE TEMP TABLE mine AS SELECT 42 AS n; SET threads = 2; CREATE SCHEMA home; SET search_path = 'home,main'"
    )
    before = state(con)
    released(con)
    assert state(con) == before
    stages = [
        "dpsyn_sql.front.measure.KeptRows.attach",
        "dpsyn_sql.front.measure.SqlCounter.count",
        "dpsyn_sql.front.publish.stage",
        "dpsyn_sql.front.publish.publish",
    ]
    for number_, stage in enumerate(stages):

        def broken(*arguments, **options):
            raise dpsyn_sql.errors.EngineFailure("a step", "OutOfMemory", "SELECT")

        with monkeypatch.context() as patched:
            patched.setattr(stage, broken)
            with pytest.raises(dpsyn_sql.errors.EngineFailure):
                released(con, into=f"broken{number_}", name=f"broken{number_}")
        assert state(con) == before
        assert not told(con, f"FROM duckdb_schemas() WHERE schema_name = 'broken{number_}'")
    assert told(con, "FROM mine") == [(42,)]


def test_a_transaction_of_the_caller_goes_on(con):
    con.execute("BEGIN; CREATE TABLE mine AS SELECT 42 AS n")
    rows = released(con)["customers"].rows
    con.execute("ROLLBACK")
    assert not told(con, "FROM duckdb_tables() WHERE table_name = 'mine'")
    assert number(con, "SELECT count(*) FROM copy.customers") == rows


SECRET = "Anna Secret"


def test_an_error_of_the_engine_is_not_passed_on(path, monkeypatch):
    """A value of a row in an error of the engine stays behind."""
    with duckdb.connect(str(path)) as con:
        con.execute(
            f"CREATE VIEW told AS SELECT order_id, customer_id, CAST('{SECRET}' || order_id AS INTEGER) AS n FROM orders"
        )
    orders = {
        "key": "order_id",
        "parent": "customers",
        "foreign_key": "customer_id",
        "columns": {"n": {"type": "numeric", "lower": 0, "upper": 9}},
    }
    options = dict(
        source=["customers", "told"],
        public_tables=[],
        domain={"tables": {"customers": TABLES["customers"], "told": orders}},
    )
    with pytest.raises((dpsyn_sql.errors.InputError, dpsyn_sql.errors.EngineFailure)) as failed:
        released(path, **options)
    error = failed.value
    while error is not None:
        assert "Anna" not in str(error)
        error = error.__cause__ or error.__context__


def test_units_of_the_root_are_written(con):
    for units in (0, 1, 500):
        result = released(con, rows=units, into=f"of{units}", name="shop", seed=2)
        assert result["customers"].rows == units
        check_joins(con, into=f"of{units}")
    assert number(con, "SELECT count(*) FROM of500.orders") > number(con, "SELECT count(*) FROM of1.orders")


def test_columns_that_are_left_out_are_not_written(con):
    result = released(
        con,
        exclude=["orders.channel", "ITEMS.product_id"],
        public_tables=[],
        domain={"tables": {name: {} for name in KEYS}},
    )
    assert [name for name, _ in described(con, "copy.orders")] == ["order_id", "customer_id"]
    assert [name for name, _ in described(con, "copy.items")] == ["order_id", "line"]
    assert "orders.channel" in str(result["orders"].certificate()["public_facts"]["excluded"])
    check_joins(con)


@pytest.mark.parametrize(
    "options",
    [{"delta": 0}, {"epsilon": 0.01}, {"epsilon": 1000}, {"delta": "1e-30"}, {"limits": {"time": 0.5}}],
)
def test_budgets_of_any_size(con, options):
    result = released(con, **options)
    guarantee = result.certificate()["guarantee"]
    assert guarantee["epsilon"] == pytest.approx(float(options.get("epsilon", 1)))
    assert guarantee["delta"] == pytest.approx(float(options.get("delta", 1e-9)))
    assert ("pure" in guarantee["definition"]) == (options.get("delta") == 0)
    events = {one["event"] for one in result.certificate()["mechanisms"]}
    assert all("laplace" in one for one in events) == (options.get("delta") == 0)
    check_joins(con)


def test_everything_can_be_discovered(con):
    con.execute(
        "ALTER TABLE orders ADD COLUMN note VARCHAR; ALTER TABLE orders ADD COLUMN price DECIMAL(8, 2)"
    )
    con.execute(
        "UPDATE orders SET note = CASE WHEN order_id % 5 = 0 THEN 'a' || order_id ELSE 'often' END, price = order_id % 7"
    )
    result = released(con, domain=None, epsilon=20)
    check_joins(con)
    assert number(con, "SELECT mode(note) FROM copy.orders") == "often"
    assert not number(
        con, "SELECT count(*) FROM copy.orders WHERE note IN (SELECT note FROM orders WHERE note <> 'often')"
    )
    assert result["orders"].rows == pytest.approx(400, abs=120)  # ten more or less by noise


def test_memory_is_limited_where_the_database_is_a_file(path):
    released(path, limits={"memory": "600MB"})
    with duckdb.connect(str(path)) as con:
        check_joins(con)


def test_warnings_and_notes_name_their_table(con):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = dpsyn_sql.release(
            con,
            unit="customers.customer_id",
            source=["customers", "orders"],
            domain={"tables": {name: TABLES[name] for name in ("customers", "orders")}},
            epsilon="0.01",
            into="copy",
        )
    own = [str(one.message) for one in caught if str(one.message).startswith(("customers: ", "orders: "))]
    assert own and set(own) <= set(result.notes)


def test_an_order_holds_within_each_parent(con):
    con.execute("ALTER TABLE orders ADD COLUMN day DATE")
    con.execute("UPDATE orders SET day = DATE '2024-01-01' + (hash(order_id) % 300)::INTEGER")
    words = {**TABLES["orders"], "order": "day"}
    words["columns"] = {
        **words["columns"],
        "day": {"type": "temporal", "lower": "2024-01-01", "upper": "2024-12-31", "bins": 12},
    }
    released(con, domain={"tables": {**TABLES, "orders": words}}, epsilon=20)
    check_joins(con)
    back = "SELECT count(*) FROM (SELECT day - lag(day) OVER (PARTITION BY customer_id ORDER BY rowid) AS step FROM copy.orders) WHERE step < 0"
    assert number(con, back) == 0
