"""The shop of examples/shop, smaller, and where its keys lead."""

import importlib.util
import shutil
from pathlib import Path

import duckdb

SHOP = Path(__file__).resolve().parents[2] / "examples" / "shop"
TABLES = ("customers", "orders", "items")


def make_shop(folder, customers=300):
    """``shop.duckdb`` and ``shop.domain.yml`` in a folder."""
    spec = importlib.util.spec_from_file_location("make_shop", SHOP / "make_shop.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.main(Path(folder), customers)
    shutil.copy(SHOP / "shop.domain.yml", folder)


def dangling(con, home, products="products"):
    """How many rows of the tables of a schema name no row."""
    (found,) = con.execute(f"""
        SELECT
            (SELECT count(*) FROM {home}.orders ANTI JOIN {home}.customers USING (customer_id))
            + (SELECT count(*) FROM {home}.items ANTI JOIN {home}.orders USING (order_id))
            + (SELECT count(*) FROM {home}.items ANTI JOIN {products} USING (product_id))
    """).fetchone()
    return found


def counts(path, home="main"):
    """The rows of each table of a database file."""
    with duckdb.connect(path, read_only=True) as con:
        return {name: con.execute(f'SELECT count(*) FROM "{home}"."{name}"').fetchone()[0] for name in TABLES}
