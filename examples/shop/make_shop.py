"""Make shop.duckdb: invented customers, their orders, the lines of these, and a public list of products.

python examples/shop/make_shop.py

A customer has a hidden taste, and an order a hidden theme: orders of one customer resemble each other, and
so do the lines of one order. One customer in five or so has no order.
"""

import sys
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd

CUSTOMERS = 20_000
PER_CATEGORY = 8
REGIONS = ("north", "south", "east", "west")
SEGMENTS = ("private", "business", "school")
CHANNELS = ("web", "shop", "phone")
PRIORITIES = ("normal", "express")
CATEGORIES = ("books", "garden", "kitchen", "office", "toys")
DAYS = 730

TABLES = """
CREATE TABLE products (
    product_id INTEGER PRIMARY KEY,
    category VARCHAR NOT NULL,
    list_price DECIMAL(8, 2) NOT NULL
);
CREATE TABLE customers (
    customer_id INTEGER PRIMARY KEY,
    region VARCHAR NOT NULL,
    segment VARCHAR NOT NULL,
    birth_year INTEGER
);
CREATE TABLE orders (
    order_id INTEGER PRIMARY KEY,
    customer_id INTEGER NOT NULL REFERENCES customers (customer_id),
    order_date DATE NOT NULL,
    channel VARCHAR NOT NULL,
    priority VARCHAR NOT NULL
);
CREATE TABLE items (
    order_id INTEGER REFERENCES orders (order_id),
    line INTEGER,
    product_id INTEGER NOT NULL REFERENCES products (product_id),
    quantity INTEGER NOT NULL,
    price DECIMAL(8, 2) NOT NULL,
    PRIMARY KEY (order_id, line)
);
"""


def chosen(rng: np.random.Generator, shares: np.ndarray) -> np.ndarray:
    """A place for each row of ``shares`` (n, k), drawn by its shares: int64 (n,)."""
    sums = np.cumsum(shares / shares.sum(axis=1, keepdims=True), axis=1)
    return (rng.random(len(shares))[:, None] > sums[:, :-1]).sum(axis=1)


def shop(n: int = CUSTOMERS, seed: int = 1) -> dict[str, pd.DataFrame]:
    """The rows of each table, of so many customers."""
    rng = np.random.default_rng(seed)
    products = _products(rng)
    region = rng.choice(4, n, p=[0.4, 0.3, 0.2, 0.1])
    segment = chosen(rng, np.array([[8, 1, 1], [6, 3, 1], [7, 1, 2], [5, 4, 1]])[region])
    taste = chosen(rng, np.array([[4, 3, 3, 1, 3], [1, 1, 2, 8, 1], [6, 1, 1, 4, 5]])[segment])
    born = np.clip(np.rint(rng.normal(1978 + 6 * (taste == 4) - 8 * (taste == 1), 12)), 1935, 2006)
    number = 1000 + rng.permutation(n)
    customers = pd.DataFrame(
        {
            "customer_id": number,
            "region": np.take(REGIONS, region),
            "segment": np.take(SEGMENTS, segment),
            "birth_year": pd.array(np.where(rng.random(n) < 0.05, np.nan, born), dtype="Int64"),
        }
    )
    owner = np.repeat(np.arange(n), np.minimum(rng.negative_binomial(1.6, 0.4 - 0.12 * (segment == 1)), 16))
    orders, theme = _orders(rng, owner, segment[owner], taste[owner])
    orders.insert(1, "customer_id", number[owner])
    return {
        "products": products,
        "customers": customers,
        "orders": orders,
        "items": _items(rng, orders["order_id"].to_numpy(), segment[owner], theme, products),
    }


def _products(rng: np.random.Generator) -> pd.DataFrame:
    category = np.repeat(np.arange(len(CATEGORIES)), PER_CATEGORY)
    price = np.round(np.array([14, 30, 22, 8, 18])[category] * rng.uniform(0.5, 2, len(category)), 2)
    number = np.arange(1, len(category) + 1)
    return pd.DataFrame(
        {"product_id": number, "category": np.take(CATEGORIES, category), "list_price": price}
    )


def _orders(
    rng: np.random.Generator, owner: np.ndarray, segment: np.ndarray, taste: np.ndarray
) -> tuple[pd.DataFrame, np.ndarray]:
    """The orders without the customer's number, and their themes. A customer orders the same way and in a
    season of hers."""
    n = len(owner)
    theme = np.where(rng.random(n) < 0.7, taste, rng.integers(0, len(CATEGORIES), n))
    habit = chosen(rng, np.array([[7, 2, 1], [5, 1, 4], [3, 6, 1]])[segment])[
        np.searchsorted(owner, owner)  # of the customer's first order
    ]
    channel = np.where(rng.random(n) < 0.75, habit, rng.integers(0, 3, n))
    express = rng.random(n) < np.where(segment == 1, 0.5, 0.15) + 0.1 * (channel == 2)
    season = np.where(theme == 1, 120, np.where(theme == 4, 330, 200))
    day = (365 * rng.integers(0, 2, n) + season + rng.normal(0, np.where(theme % 3 == 1, 35, 120), n)) % DAYS
    date = np.datetime64("2024-01-01") + day.astype(int)
    rows = {"order_id": 50_000 + rng.permutation(n), "order_date": date}
    rows |= {"channel": np.take(CHANNELS, channel), "priority": np.take(PRIORITIES, express.astype(int))}
    return pd.DataFrame(rows), theme


def _items(
    rng: np.random.Generator,
    order: np.ndarray,
    segment: np.ndarray,
    theme: np.ndarray,
    products: pd.DataFrame,
) -> pd.DataFrame:
    """One line or more of each order, most of them of its theme."""
    of = np.repeat(np.arange(len(order)), 1 + np.minimum(rng.poisson(np.where(segment == 2, 2.5, 1.2)), 15))
    n = len(of)
    category = np.where(rng.random(n) < 0.8, theme[of], rng.integers(0, len(CATEGORIES), n))
    place = category * PER_CATEGORY + np.minimum(rng.geometric(0.35, n), PER_CATEGORY) - 1
    quantity = np.minimum(1 + rng.poisson(np.where(segment[of] == 0, 0.3, 3.0)), 20)
    listed = products["list_price"].to_numpy()[place]
    price = np.round(listed * np.where(quantity >= 4, 0.9, 1.0), 2)
    line = np.arange(n) - np.searchsorted(of, of) + 1
    rows = {"order_id": order[of], "line": line, "product_id": place + 1}
    return pd.DataFrame({**rows, "quantity": quantity, "price": price})


def main(folder: Path, customers: int = CUSTOMERS) -> None:
    """Write the database into a folder, in place of one that is there."""
    path = folder / "shop.duckdb"
    path.unlink(missing_ok=True)
    with duckdb.connect(str(path)) as con:
        con.execute(TABLES)
        for name, rows in shop(customers).items():
            con.register("made", rows)
            con.execute(f"INSERT INTO {name} SELECT * FROM made")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent)
