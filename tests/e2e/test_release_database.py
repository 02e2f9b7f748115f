"""Whole releases of databases: every way in which tables are tied, and rows that no tie explains."""

import pytest
from support.released_shop import (
    SHOP,
    TABLES,
    TIES,
    WORDS,
    check_joins,
    number,
    planned,
    released,
)

import dpsyn_sql

pytestmark = pytest.mark.slow

SURE = {"epsilon": 1000}
"""So little noise that counts are near those of the source."""
NEAR = {"rel": 0.2}
"""How near: in one of twenty releases a number of rows that no parent has gets some rows, each for several. What
is counted wrongly would be half or twice."""

TIED = {
    "customers": {"key": "customer_id", **TABLES["customers"]},
    "orders": {"key": "order_id", "parent": "customers", "foreign_key": "customer_id", **TABLES["orders"]},
    "items": {"parent": "orders", "foreign_key": "order_id", "most": 4, "columns": {}},
}
"""What the file says of tables without constraints."""


def loose(con, customers, orders, items):
    """Tables without any constraint."""
    for name, query in (("customers", customers), ("orders", orders), ("items", items)):
        con.execute(f"CREATE TABLE {name} AS {query}")
    return released(con, public_tables=[], domain={"tables": TIED}, **SURE)


CUSTOMERS = "SELECT i AS customer_id, ['n', 's'][1 + i % 2] AS region FROM range(200) AS r(i)"
ORDERS = "SELECT i AS order_id, i % 200 AS customer_id, ['web', 'shop'][1 + i // 200] AS channel FROM range(400) AS r(i)"
ITEMS = "SELECT i % 400 AS order_id, (i // 400)::INTEGER AS thing FROM range(800) AS r(i)"


@pytest.mark.parametrize("lost", ["NULL::BIGINT", "customer_id + 1000", "-customer_id - 1"])
def test_rows_that_belong_to_nobody_are_left_out_with_all_below_them(con, lost):
    orders = f"SELECT * REPLACE (CASE WHEN order_id % 2 = 0 THEN {lost} ELSE customer_id END AS customer_id) FROM ({ORDERS})"
    result = loose(con, CUSTOMERS, orders, ITEMS)
    check_joins(con, keys={"customers": "customer_id", "orders": "order_id"})
    assert [one.rows for one in result.tables.values()] == pytest.approx([200, 200, 400], **NEAR)


def test_rows_without_a_key_of_their_own_are_left_out_where_rows_hang_on_keys(con):
    orders = f"SELECT * REPLACE (CASE WHEN order_id % 4 = 0 THEN order_id END AS order_id) FROM ({ORDERS})"
    result = loose(con, CUSTOMERS, orders, ITEMS)
    assert [one.rows for one in result.tables.values()] == pytest.approx([200, 100, 200], **NEAR)


def test_of_rows_of_one_unit_with_one_key_one_counts(con):
    twice = f"FROM ({ORDERS}) UNION ALL FROM ({ORDERS}) UNION ALL FROM ({ORDERS})"
    result = loose(con, f"FROM ({CUSTOMERS}) UNION ALL FROM ({CUSTOMERS})", twice, ITEMS)
    assert [one.rows for one in result.tables.values()] == pytest.approx([200, 400, 800], **NEAR)
    check_joins(con, keys={"customers": "customer_id", "orders": "order_id"})


def test_each_of_two_units_has_its_copy_of_a_row_with_all_below_it(con):
    both = (
        f"FROM ({ORDERS}) UNION ALL SELECT * REPLACE ((customer_id + 1) % 200 AS customer_id) FROM ({ORDERS})"
    )
    result = loose(con, CUSTOMERS, both, ITEMS)
    assert [one.rows for one in result.tables.values()] == pytest.approx([200, 800, 1600], **NEAR)
    check_joins(con, keys={"customers": "customer_id", "orders": "order_id"})


def test_a_reference_to_public_rows_has_their_groups_and_names_each_of_them(con):
    con.execute(SHOP)
    con.execute(
        "UPDATE items SET product_id = CASE WHEN order_id % 4 = 0 THEN NULL ELSE 100 + 3 * (hash(line) % 3) END"
    )
    made = released(con, **SURE)
    check_joins(con, [*TIES, ("items", "product_id", "products", "product_id")], public="products")
    labels, counts = (
        made.marginal(["items.product_id"])[name].tolist() for name in ("items.product_id", "noisy")
    )
    assert labels == ["a", "b", "c", None] and counts == pytest.approx([150, 0, 0, 50], abs=15)
    assert dpsyn_sql.load(con, "copy").marginal(["items.product_id"])["items.product_id"].tolist() == labels
    (name,) = [
        one for (one,) in con.execute("SELECT name FROM dpsyn_releases()").fetchall() if "items" in one
    ]
    stored = con.execute(f"SELECT product_id FROM dpsyn_marginal('{name}', ['product_id'])").fetchall()
    assert stored == [(label,) for label in labels]
    found = con.execute(
        "SELECT category, count(*), count(DISTINCT i.product_id) FROM copy.items AS i LEFT JOIN products "
        "USING (product_id) GROUP BY category"
    ).fetchall()
    rows = {category: number for category, number, _ in found}
    assert (rows["a"], rows[None]) == pytest.approx((600, 200), **NEAR)
    assert ("a", rows["a"], 3) in found
    assert not con.execute(
        "FROM duckdb_tables() WHERE schema_name = 'copy' AND table_name = 'products'"
    ).fetchall()


def test_a_reference_without_by_is_to_the_row_itself(con):
    con.execute(SHOP)
    con.execute("UPDATE items SET product_id = 105")
    released(con, domain={"tables": {**TABLES, "items": {"most": 4}}}, **SURE)
    ((most, rows),) = con.execute("SELECT mode(product_id), count(*) FROM copy.items").fetchall()
    assert most == 105 and number(con, "SELECT count(*) FROM copy.items WHERE product_id = 105") > 0.9 * rows


BRIDGE = """
    CREATE TABLE likes (
        customer_id BIGINT REFERENCES customers (customer_id),
        product_id SMALLINT REFERENCES products (product_id),
        stars TINYINT,
        PRIMARY KEY (customer_id, product_id)
    );
    INSERT INTO likes SELECT 10 * (i % 200), 100 + i // 200, 1 + i % 2 FROM range(600) AS r(i)
"""


def test_a_bridge_between_units_and_public_rows(con):
    con.execute(f"{SHOP}; {BRIDGE}")
    tables = {
        "customers": TABLES["customers"],
        "likes": {
            "columns": {
                "product_id": {"references": "products", "by": "category"},
                "stars": {"type": "numeric", "lower": 1, "upper": 2, "bins": 2},
            }
        },
    }
    result = released(con, source=["customers", "likes"], domain={"tables": tables}, **SURE)
    ties = [
        ("likes", "customer_id", "customers", "customer_id"),
        ("likes", "product_id", "products", "product_id"),
    ]
    assert result["likes"].rows == pytest.approx(600, **NEAR)
    check_joins(con, ties, {"customers": "customer_id"}, public="products")  # a pair can be there twice


def test_a_payee_is_some_unit_and_the_plan_says_that_it_is_not_protected(con):
    con.execute(SHOP)
    con.execute(
        "CREATE TABLE transfers AS SELECT order_id AS transfer_id, customer_id AS payer, "
        "CASE WHEN order_id % 4 > 0 THEN 0::BIGINT END AS payee FROM orders"
    )
    transfers = {
        "key": "transfer_id",
        "parent": "customers",
        "foreign_key": "payer",
        "columns": {"payee": {"references": "customers"}},
    }
    options = dict(
        source=["customers", "transfers"],
        domain={"tables": {"customers": TABLES["customers"], "transfers": transfers}},
        public_tables=[],
        **SURE,
    )
    assert "whom transfers.payee names is not protected by that" in str(planned(con, **options))
    result = released(con, **options)
    assert result.facts["not_protected"] == ["whom payee of transfers names in customers"]
    ties = [("transfers", name, "customers", "customer_id") for name in ("payer", "payee")]
    check_joins(con, ties, {"customers": "customer_id", "transfers": "transfer_id"})
    ((named, without),) = con.execute(
        "SELECT count(DISTINCT payee), count(*) FILTER (payee IS NULL) / count(*) FROM copy.transfers"
    ).fetchall()
    assert named > 50 and without == pytest.approx(0.25, abs=0.05)
    with pytest.raises(dpsyn_sql.errors.InputError, match="belongs to units in several ways") as refused:
        del transfers["parent"], transfers["foreign_key"]
        transfers["columns"] = {name: {"references": "customers"} for name in ("payer", "payee")}
        released(con, **options)
    assert "payer -> customers" in str(refused.value)


@pytest.mark.parametrize("root", [True, False])
def test_a_manager_is_an_earlier_row(con, root):
    con.execute("CREATE TABLE firms AS SELECT i AS firm_id, 'n' AS region FROM range(100) AS r(i)")
    con.execute(
        "CREATE TABLE staff AS SELECT i AS staff_id, i % 100 AS firm_id, "
        "CASE WHEN i % 5 > 0 THEN i - 1 END AS manager_id, ['web', 'shop'][1 + i % 2] AS channel FROM range(300) AS r(i)"
    )
    con.execute(
        "CREATE TABLE shifts AS SELECT i % 300 AS staff_id, ['n', 's'][1 + i % 2] AS region FROM range(600) AS r(i)"
    )
    staff = {
        "key": "staff_id",
        "columns": {"manager_id": {"references": "staff"}, "channel": WORDS["channel"]},
    }
    tables = {"staff": staff}
    if root:
        staff["columns"]["firm_id"] = {"type": "numeric", "lower": 0, "upper": 99, "bins": 2}
        tables["shifts"] = {
            "parent": "staff",
            "foreign_key": "staff_id",
            "columns": {"region": WORDS["region"]},
        }
        unit, ties = "staff.staff_id", [("shifts", "staff_id", "staff", "staff_id")]
    else:
        staff |= {"parent": "firms", "foreign_key": "firm_id"}
        tables["firms"] = {"key": "firm_id", "columns": {"region": WORDS["region"]}}
        unit, ties = "firms.firm_id", [("staff", "firm_id", "firms", "firm_id")]
    made = released(con, unit=unit, source=[*tables], public_tables=[], domain={"tables": tables}, **SURE)
    labels = made.marginal(["staff.manager_id"])["staff.manager_id"]
    assert labels.tolist() == ["a row of staff", None]
    check_joins(con, [*ties, ("staff", "manager_id", "staff", "staff_id")], {"staff": "staff_id"})
    later = "SELECT count(*) FROM copy.staff AS s JOIN copy.staff AS m ON s.manager_id = m.staff_id WHERE m.rowid >= s.rowid"
    assert number(con, later) == 0
    share = number(con, "SELECT count(manager_id) / count(*) FROM copy.staff")
    assert share == pytest.approx(0.8, abs=0.05)


def test_of_two_ways_to_the_units_the_owner_names_one(con, tmp_path):
    con.execute(SHOP)
    con.execute(
        "CREATE TABLE addresses (address_id INTEGER PRIMARY KEY, customer_id BIGINT REFERENCES customers (customer_id));"
        "INSERT INTO addresses SELECT i, 10 * (i % 200) FROM range(300) AS r(i);"
        "CREATE TABLE parcels (parcel_id INTEGER PRIMARY KEY, customer_id BIGINT REFERENCES customers (customer_id),"
        "address_id INTEGER REFERENCES addresses (address_id));"
        "INSERT INTO parcels SELECT i, 10 * (i % 200), i % 300 FROM range(400) AS r(i)"
    )
    options = dict(source=["customers", "addresses", "parcels"], public_tables=[])
    tables = {"customers": TABLES["customers"], "parcels": {}}
    with pytest.raises(dpsyn_sql.errors.InputError, match="several ways"):
        released(con, domain={"tables": tables}, **options)
    keys = {"customers": "customer_id", "addresses": "address_id", "parcels": "parcel_id"}
    ties = [
        ("addresses", "customer_id", "customers", "customer_id"),
        ("parcels", "customer_id", "customers", "customer_id"),
        ("parcels", "address_id", "addresses", "address_id"),
    ]
    for parent in ("customers", "addresses"):
        tables["parcels"] = {"parent": parent}
        own = {"ledger": tmp_path / parent, "into": f"by_{parent}"}
        released(con, domain={"tables": tables}, **own, **options, **SURE)
        check_joins(con, ties, keys, f"by_{parent}")


def test_composite_keys_are_copied_from_the_rows_above(con):
    con.execute(
        "CREATE TABLE people (country VARCHAR, no INTEGER, region VARCHAR, PRIMARY KEY (country, no));"
        "INSERT INTO people SELECT ['d', 'f'][1 + i % 2], i, 'n' FROM range(100) AS r(i);"
        "CREATE TABLE bills (country VARCHAR, no INTEGER, bill INTEGER, PRIMARY KEY (country, no, bill),"
        "FOREIGN KEY (country, no) REFERENCES people (country, no));"
        "INSERT INTO bills SELECT ['d', 'f'][1 + i % 2], i % 100, i // 100 FROM range(200) AS r(i);"
        "CREATE TABLE parts (country VARCHAR, no INTEGER, bill INTEGER, part INTEGER, PRIMARY KEY (country, no, bill, part),"
        "FOREIGN KEY (country, no, bill) REFERENCES bills (country, no, bill));"
        "INSERT INTO parts SELECT ['d', 'f'][1 + i % 2], i % 100, i // 100 % 2, i // 200 FROM range(400) AS r(i)"
    )
    tables = {"people": {"columns": {"region": WORDS["region"]}}, "bills": {}, "parts": {}}
    result = released(
        con,
        unit="people",
        source=[*tables],
        public_tables=[],
        domain={"tables": tables},
        constraints=True,
        **SURE,
    )
    assert [one.rows for one in result.tables.values()] == pytest.approx([100, 200, 400], **NEAR)
    keys = {"people": "country, no", "bills": "country, no, bill", "parts": "country, no, bill, part"}
    ties = [
        ("bills", keys["people"], "people", keys["people"]),
        ("parts", keys["bills"], "bills", keys["bills"]),
    ]
    check_joins(con, ties, keys)


def test_views_are_tables_too(con):
    con.execute(SHOP)
    con.execute("CREATE VIEW buyers AS SELECT customer_id AS buyer, region FROM customers WHERE region = 'n'")
    con.execute(
        "CREATE VIEW visits AS SELECT order_id AS visit, customer_id AS buyer, upper(channel) AS channel FROM orders"
    )
    tables = {
        "buyers": {"key": "buyer", "columns": {"region": WORDS["region"]}},
        "visits": {
            "key": "visit",
            "parent": "buyers",
            "foreign_key": "buyer",
            "columns": {"channel": {"type": "categorical", "categories": ["WEB", "SHOP"]}},
        },
    }
    result = released(
        con, unit="buyers", source=[*tables], public_tables=[], domain={"tables": tables}, **SURE
    )
    real = [
        number(con, f"SELECT count(*) FROM {name}")
        for name in ("buyers", "visits SEMI JOIN buyers USING (buyer)")
    ]
    assert [one.rows for one in result.tables.values()] == pytest.approx(real, **NEAR)
    # The region that no buyer has gets a row by noise now and then; without the view it would have half of them.
    assert number(con, "SELECT avg((region = 'n')::INT) FROM copy.buyers") > 0.9
    check_joins(con, [("visits", "buyer", "buyers", "buyer")], {"buyers": "buyer", "visits": "visit"})


def test_of_more_rows_than_most_as_many_are_kept(con):
    con.execute(SHOP)
    result = released(con, most={"ORDERS": 1, "items": 1}, **SURE)
    assert [one.rows for one in result.tables.values()] == pytest.approx([200, 200, 200], **NEAR)
    for table, key in (("orders", "customer_id"), ("items", "order_id")):
        assert number(con, f"SELECT max(n) FROM (SELECT count(*) AS n FROM copy.{table} GROUP BY {key})") == 1
    con.execute("CREATE TABLE many AS SELECT 0::BIGINT AS customer_id, 'web' AS channel FROM range(10_000)")
    words = {"parent": "customers", "foreign_key": "customer_id", "columns": {"channel": WORDS["channel"]}}
    result = released(
        con,
        source=["customers", "many"],
        domain={"tables": {"customers": TABLES["customers"], "many": words}},
        public_tables=[],
        into="of_one",
        most={"many": 8},
        **SURE,
    )
    assert result["many"].rows == pytest.approx(8, abs=60)  # not 10,000


def test_two_tables_below_one_and_four_levels(con):
    con.execute(SHOP)
    con.execute(
        "CREATE TABLE calls (customer_id BIGINT REFERENCES customers (customer_id), channel VARCHAR);"
        "INSERT INTO calls SELECT 10 * (i % 50), 'web' FROM range(100) AS r(i);"
        "CREATE TABLE returns (order_id INTEGER, line SMALLINT, region VARCHAR,"
        "FOREIGN KEY (order_id, line) REFERENCES items (order_id, line));"
        "INSERT INTO returns SELECT i % 400, 1, ['n', 's'][1 + i % 2] FROM range(400) AS r(i)"
    )
    tables = {
        **TABLES,
        "calls": {"columns": {"channel": WORDS["channel"]}},
        "returns": {"most": 2, "columns": {"region": WORDS["region"]}},
    }
    result = released(con, source=[*tables], domain={"tables": tables}, **SURE)
    assert [one["parent"] for one in result.facts["tree"]] == [
        None,
        "customers",
        "customers",
        "orders",
        "items",
    ]
    rows = {name: one.rows for name, one in result.tables.items()}
    assert rows == pytest.approx(
        {"customers": 200, "orders": 400, "items": 800, "calls": 100, "returns": 400}, rel=0.2, abs=40
    )
    ties = [
        *TIES,
        ("calls", "customer_id", "customers", "customer_id"),
        ("returns", "order_id, line", "items", "order_id, line"),
    ]
    check_joins(con, ties)
    callers = number(con, "SELECT count(DISTINCT customer_id) FROM copy.calls")
    assert callers == pytest.approx(50, abs=25)  # not all of them


@pytest.mark.parametrize("empty", ["items", "orders", "customers"])
def test_tables_without_rows_that_count(con, empty):
    con.execute(SHOP)
    for table in ("items", "orders", "customers")[: 1 + ("items", "orders", "customers").index(empty)]:
        con.execute(f"DELETE FROM {table}")
    result = released(con, **SURE)
    rows = [one.rows for one in result.tables.values()]
    real = [number(con, f"SELECT count(*) FROM {name}") for name in result.tables]
    assert rows == pytest.approx(real, rel=0.2, abs=60)
    check_joins(con)


def test_tables_of_keys_alone(con):
    """No column is measured but the number of rows; a table of references alone."""
    con.execute(SHOP)
    con.execute(
        "CREATE TABLE bare AS SELECT customer_id FROM customers; CREATE TABLE held AS SELECT customer_id, 100::SMALLINT AS product_id FROM customers;"
    )
    tables = {
        "bare": {"key": "customer_id"},
        "held": {
            "parent": "bare",
            "foreign_key": "customer_id",
            "columns": {"product_id": {"references": "products", "by": "category"}},
        },
    }
    result = released(con, unit="bare.customer_id", source=[*tables], domain={"tables": tables}, **SURE)
    assert [one.rows for one in result.tables.values()] == pytest.approx([200, 200], **NEAR)
    check_joins(
        con,
        [("held", "customer_id", "bare", "customer_id"), ("held", "product_id", "products", "product_id")],
        {"bare": "customer_id"},
        public="products",
    )
    con.execute("CREATE TABLE keys AS SELECT order_id, customer_id FROM orders")
    tables = {
        "bare": {"key": "customer_id"},
        "keys": {"key": "order_id", "parent": "bare", "foreign_key": "customer_id"},
    }
    result = released(
        con,
        unit="bare.customer_id",
        source=[*tables],
        public_tables=[],
        domain={"tables": tables},
        into="keys_alone",
        **SURE,
    )
    assert [one.rows for one in result.tables.values()] == pytest.approx([200, 400], **NEAR)
    check_joins(
        con,
        [("keys", "customer_id", "bare", "customer_id")],
        {"bare": "customer_id", "keys": "order_id"},
        "keys_alone",
    )
