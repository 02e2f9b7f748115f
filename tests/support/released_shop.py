"""A small shop in DuckDB that is released as a whole, and what must hold of every output."""

import warnings

import dpsyn_sql

PRODUCTS = """
    CREATE TABLE products AS
    SELECT (100 + i)::SMALLINT AS product_id, 'p' || i AS label, ['a', 'b', 'c'][1 + i % 3] AS category
    FROM range(9) AS r(i)
"""
SHOP = f"""
    {PRODUCTS};
    ALTER TABLE products ADD PRIMARY KEY (product_id);
    CREATE TABLE customers (customer_id BIGINT PRIMARY KEY, region VARCHAR NOT NULL);
    INSERT INTO customers SELECT 10 * i, ['n', 's'][1 + (hash(i) % 2)::INTEGER] FROM range(200) AS r(i);
    CREATE TABLE orders (
        order_id INTEGER PRIMARY KEY,
        customer_id BIGINT NOT NULL REFERENCES customers (customer_id),
        channel VARCHAR
    );
    INSERT INTO orders
    SELECT i, 10 * (i % 200), CASE WHEN i % 400 < 200 THEN 'web' WHEN i % 7 > 0 THEN 'shop' END
    FROM range(400) AS r(i);
    CREATE TABLE items (
        order_id INTEGER REFERENCES orders (order_id),
        line SMALLINT,
        product_id SMALLINT REFERENCES products (product_id),
        PRIMARY KEY (order_id, line)
    );
    INSERT INTO items SELECT i % 400, i // 400, 100 + hash(i * 3) % 9 FROM range(800) AS r(i)
"""
WORDS = {
    "region": {"type": "categorical", "categories": ["n", "s"], "other": False},
    "channel": {"type": "categorical", "categories": ["web", "shop"], "other": False},
}
TABLES = {
    "customers": {"columns": {"region": WORDS["region"]}},
    "orders": {"most": 4, "columns": {"channel": WORDS["channel"]}},
    "items": {"most": 4, "columns": {"product_id": {"references": "products", "by": "category"}}},
}
CALL = dict(
    unit="customers.customer_id",
    source=["customers", "orders", "items"],
    public_tables=["products"],
    into="copy",
    domain={"tables": TABLES},
)
TIES = [
    ("orders", "customer_id", "customers", "customer_id"),
    ("items", "order_id", "orders", "order_id"),
]
KEYS = {"customers": "customer_id", "orders": "order_id", "items": "order_id, line"}


def released(con, **options):
    """A release of the shop, or of what the options name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return dpsyn_sql.release(con, **{**CALL, **options})


def planned(con, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return dpsyn_sql.plan(con, **{**CALL, **options})


def number(con, query):
    """The one value of a query."""
    ((found,),) = con.execute(query).fetchall()
    return found


def rows_of(con, table):
    return con.execute(f"FROM {table} ORDER BY rowid").fetchall()


def check_joins(con, ties=TIES, keys=KEYS, into="copy", public=None):
    """Every foreign key names a row, and every key tells rows apart. ``public``: where those tables are that
    are not in the output."""
    for child, columns, parent, named in ties:
        there = f"{into}.{parent}" if parent != public else parent
        own, theirs = (tuple(part.split(", ")) for part in (columns, named))
        joined = " AND ".join(f"c.{one} = p.{other}" for one, other in zip(own, theirs, strict=True))
        some = " AND ".join(f"c.{one} IS NOT NULL" for one in own)
        lost = f"SELECT count(*) FROM {into}.{child} AS c ANTI JOIN {there} AS p ON {joined} WHERE {some}"
        assert number(con, lost) == 0, (child, columns)
    for table, key in keys.items():
        total, apart = con.execute(
            f"SELECT count(*), count(DISTINCT ({key},)) FROM {into}.{table}"
        ).fetchall()[0]
        assert total == apart, (table, key)
        for column in key.split(", "):
            assert number(con, f"SELECT count(*) FROM {into}.{table} WHERE {column} IS NULL") == 0
