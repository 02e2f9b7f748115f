"""By which column of which table the rows of a query belong to a unit, whatever the query calls it."""

import duckdb
import pytest

from dpsyn_sql.engines.open_source import open_source
from dpsyn_sql.errors import SourceError
from dpsyn_sql.source.names import LedgerNames

ORDERS = ":memory:main.orders"
OLD = ":memory:main.old"
HOME = LedgerNames.of(None)


@pytest.fixture(scope="module")
def con():
    with duckdb.connect() as con:
        con.execute("CREATE TABLE orders (id INTEGER, customer_id INTEGER, b VARCHAR, d DOUBLE)")
        con.execute("CREATE TABLE old (client INTEGER, id INTEGER)")
        con.execute("CREATE TABLE regions (b VARCHAR, region VARCHAR, id INTEGER)")
        con.execute("CREATE VIEW plain AS SELECT * FROM orders")
        con.execute("CREATE VIEW renamed (customer_id, nr) AS SELECT id, customer_id FROM plain")
        yield con


def owners(con, query, *columns, **options):
    with open_source(con, query, unit=columns[0], public_tables=["regions"], **options) as session:
        return session.owners(columns, HOME)


@pytest.mark.parametrize(
    ("query", "unit", "owner"),
    [
        ("orders", "ID", "id"),
        ("plain", "id", "id"),
        ("plain", "customer_id", "customer_id"),
        ("renamed", "customer_id", "id"),
        ("renamed", "nr", "customer_id"),
        ("SELECT id AS customer_id, b FROM orders", "customer_id", "id"),
        ("SELECT o.id AS customer_id, customer_id AS id FROM plain AS o", "customer_id", "id"),
        ("SELECT main.orders.customer_id AS id FROM main.orders", "id", "customer_id"),
        ("FROM plain", "Customer_Id", "customer_id"),
        ("SELECT * EXCLUDE (id) RENAME (customer_id AS id) FROM orders", "id", "customer_id"),
        ("SELECT * REPLACE (id AS customer_id) FROM orders", "customer_id", "id"),
        ("SELECT u AS id FROM (SELECT b, customer_id FROM orders) AS t (x, u)", "id", "customer_id"),
        ("WITH c (a, u) AS (SELECT id, customer_id FROM plain) SELECT u AS id FROM c", "id", "customer_id"),
        ("WITH orders AS (SELECT id AS customer_id FROM orders) SELECT * FROM orders", "customer_id", "id"),
        ("SELECT (id)::VARCHAR AS customer_id FROM orders", "customer_id", "id"),
        ("SELECT id AS customer_id, customer_id::VARCHAR FROM orders", "customer_id", "id"),
        ("SELECT customer_id AS id, id AS x FROM orders ORDER BY b", "id", "customer_id"),
        ("SELECT o.id AS u, r.region FROM orders AS o LEFT JOIN regions AS r USING (b)", "u", "id"),
        ("SELECT region, b, orders.id FROM regions JOIN orders USING (b)", "id", "id"),
        ("SELECT *, lead(b) OVER (PARTITION BY id ORDER BY b) AS next FROM orders", "id", "id"),
        ("SELECT id AS u, b FROM orders UNION ALL SELECT id, b FROM plain WHERE d > 1", "u", "id"),
        ("FROM (SELECT id, b FROM orders) UNION ALL BY NAME FROM (SELECT b, id FROM orders)", "id", "id"),
    ],
)  # fmt: skip
def test_a_column_is_followed_to_its_table(con, query, unit, owner):
    assert owners(con, query, unit) == {ORDERS: (owner,)}


@pytest.mark.parametrize(
    ("query", "unit"),
    [
        ("SELECT customer_id // 2 AS customer_id FROM orders", "customer_id"),
        ("SELECT d::VARCHAR AS customer_id FROM orders", "customer_id"),
        ("SELECT d::VARCHAR AS customer_id FROM (SELECT customer_id::DOUBLE AS d FROM orders)", "customer_id"),
        ("SELECT coalesce(customer_id, id) AS customer_id FROM orders", "customer_id"),
        ("SELECT 'customer_id' AS customer_id, b FROM orders", "customer_id"),
        ("SELECT b, r.region AS customer_id FROM orders JOIN regions AS r USING (b)", "customer_id"),
        ("SELECT id_1 AS customer_id FROM (SELECT customer_id AS id, id FROM orders)", "customer_id"),
    ],
)  # fmt: skip
def test_anything_else_is_like_no_column(con, query, unit):
    (found,) = owners(con, query, unit)[ORDERS]
    assert found not in ("id", "customer_id", "b", "d")
    assert owners(con, query, unit)[ORDERS] == (found,)


def test_two_expressions_are_two_owners(con):
    halves = [owners(con, f"SELECT id // {by} AS u FROM orders", "u")[ORDERS] for by in (2, 3)]
    assert halves[0] != halves[1]


def test_each_table_of_a_union_has_its_own_column(con):
    both = "SELECT customer_id AS u, id FROM orders UNION ALL SELECT client, id FROM old"
    assert owners(con, both, "u") == {ORDERS: ("customer_id",), OLD: ("client",)}
    assert owners(con, both, "u", "id") == {ORDERS: ("customer_id", "id"), OLD: ("client", "id")}


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id AS u, b FROM orders UNION ALL SELECT customer_id, b FROM orders",
        "SELECT id AS u FROM plain UNION ALL SELECT customer_id FROM renamed",
        "SELECT id AS u, b FROM orders UNION ALL BY NAME SELECT b, customer_id AS u FROM plain",
    ],
)
@pytest.mark.parametrize("trusted", [False, True])
def test_one_table_of_two_owners_is_refused(con, query, trusted):
    if "renamed" in query:  # there id is called customer_id
        assert owners(con, query, "u", trust_query=trusted) == {ORDERS: ("id",)}
        return
    with pytest.raises(SourceError, match="by customer_id and by id.*Nothing was read or charged"):
        owners(con, query, "u", trust_query=trusted)


BY_ID = "SELECT r.id AS u, o.b FROM orders AS o JOIN regions AS r ON o.id = r.id"
BY_CUSTOMER = "SELECT r.id AS u, o.b FROM orders AS o JOIN regions AS r ON o.customer_id = r.id"


@pytest.mark.parametrize(
    "other",
    [
        BY_CUSTOMER,
        "SELECT 7 AS u, b FROM orders",
        "SELECT u, b FROM orders JOIN (VALUES (7)) AS v (u) ON true",
        "SELECT u::VARCHAR, b FROM (SELECT r.id AS u, o.b FROM orders AS o, regions AS r)",
        "SELECT o.id + 0 * r.id, o.b FROM orders AS o JOIN regions AS r ON o.customer_id = r.id",
    ],
)
@pytest.mark.parametrize("first", ["SELECT id AS u, b FROM orders", BY_ID])
def test_a_branch_whose_unit_comes_from_elsewhere_is_another_owner(con, first, other):
    with pytest.raises(SourceError, match="one row would count for two units"):
        owners(con, f"{first} UNION ALL {other}", "u")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (BY_ID, BY_CUSTOMER),
        (
            BY_ID.replace("r.id AS u", "r.id + o.id AS u"),
            BY_CUSTOMER.replace("r.id AS u", "r.id + o.id AS u"),
        ),
        (
            "SELECT id AS u FROM regions JOIN (SELECT id FROM orders) USING (id)",
            "SELECT id AS u FROM regions JOIN (SELECT customer_id AS id FROM orders) USING (id)",
        ),
    ],
)
def test_units_of_a_public_table_are_those_of_one_query(con, one, other):
    assert owners(con, one, "u")[ORDERS] != owners(con, other, "u")[ORDERS]
    assert owners(con, one, "u") == owners(con, one, "u")


def test_a_table_is_told_from_one_of_the_same_name_in_another_schema(con):
    con.execute("CREATE SCHEMA IF NOT EXISTS far")
    con.execute("CREATE OR REPLACE TABLE far.orders (id INTEGER)")
    joined = "SELECT {} AS u FROM main.orders JOIN far.orders ON main.orders.customer_id = far.orders.id"
    for column, own in (("main.orders.id", True), ("far.orders.id", False), ("memory.far.orders.id", False)):
        with open_source(con, joined.format(column), unit="u", public_tables=["far.orders"]) as session:
            assert (session.owners(["u"], HOME) == {ORDERS: ("id",)}) == own


def test_of_a_trusted_query_the_owner_answers_for_the_other_tables(con):
    joined = "SELECT o.customer_id AS u, count(*) FROM plain AS o JOIN old AS c ON c.id = o.id GROUP BY ALL"
    assert owners(con, joined, "u", trust_query=True) == {ORDERS: ("customer_id",)}
    inside = "SELECT o.customer_id AS u, (SELECT max(client) FROM old) AS m FROM orders AS o"
    assert owners(con, inside, "u", trust_query=True) == {ORDERS: ("customer_id",)}
    lost = "WITH RECURSIVE r AS (SELECT id AS u FROM orders UNION ALL SELECT u + 1 FROM r WHERE u < 9) FROM r"
    assert owners(con, lost, "u", trust_query=True) == {ORDERS: ("u",)}


def test_files_are_followed_like_tables(con, tmp_path):
    for name in ("a", "b"):
        con.execute(f"COPY orders TO '{tmp_path}/{name}.parquet'")
    paths = [str(tmp_path / f"{name}.parquet") for name in ("a", "b")]
    assert owners(con, f"SELECT id AS u FROM '{tmp_path}/*.parquet'", "u") == dict.fromkeys(paths, ("id",))
    with open_source(None, str(tmp_path)) as session:
        assert session.owners(("Customer_Id",), HOME) == dict.fromkeys(paths, ("customer_id",))
