"""Databases of customers, what they order and the lines of it: an invented shop from a seed, and real ones.

The shop: a customer has a region, a segment and an age, and a hidden taste; an order has a channel, a month
and a priority, and a hidden theme, which is the customer's taste in half of the orders. The number of orders
follows the segment, that of items the channel; there are customers without orders and orders without items.
The channel follows the taste in half of the orders and the age in the others. Half of the items of an order
follow its theme in their category, the others the customer's segment; price follows category, quantity the
order's priority.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
from harness import DATA

TASTES = 6


@dataclass(frozen=True)
class Database:
    """Tables by the ``queries`` that make them, the root first. ``file``: what a domain file says of them.

    ``judged``: further columns of a table that are compared. ``missing``: a file of real rows that is not
    there.
    """

    queries: Mapping[str, str]
    file: Mapping[str, Any]
    most: Mapping[str, int]
    judged: Mapping[str, str]
    missing: Path | None = None

    @property
    def names(self) -> list[str]:
        """Of the private tables, the root first."""
        return list(self.queries)

    @property
    def unit(self) -> str:
        """The privacy unit."""
        return str(self.file["unit"])

    @property
    def orders(self) -> list[str]:
        """Columns that order rows: they are not judged."""
        return [told["order"] for told in self.file["tables"].values() if "order" in told]

    def seen(self, name: str) -> str:
        """What is judged of a table, to put after SELECT: numbers in the bins that the domain declares."""
        found = ["*"]
        bins = {column: _bin_of(column, told) for column, told in self.columns(name).items()}
        replaced = ", ".join(f"{sql} AS {column}" for column, sql in bins.items() if sql)
        if replaced:
            found[0] = f"* REPLACE ({replaced})"
        return ", ".join(found + ([self.judged[name]] if name in self.judged else []))

    def columns(self, name: str) -> dict[str, dict[str, Any]]:
        """What the file says of the columns of a table that are no keys."""
        return dict(self.file["tables"][name]["columns"])

    def keys(self, name: str) -> list[str]:
        """The columns of the key of a table that are not of its foreign key; none without a key."""
        told = self.file["tables"][name]
        key = told.get("key", [])
        key = [key] if isinstance(key, str) else key
        return [column for column in key if column != told.get("foreign_key")]

    def key(self, name: str) -> str:
        """That of a table with rows below."""
        return str(self.file["tables"][name]["key"])

    def foreign_key(self, name: str) -> str:
        """What names the row above."""
        return str(self.file["tables"][name]["foreign_key"])

    def unit_of(self, name: str) -> str:
        """The column of a table with rows below that names its unit."""
        return self.key(name) if name == self.names[0] else self.foreign_key(name)

    def rows_per_unit(self, name: str) -> int:
        """How many rows of a unit count at most."""
        names = self.names[1 : self.names.index(name) + 1]
        return math.prod(self.most[step] for step in names)

    def load(self, con: duckdb.DuckDBPyConnection, schema: str = "main") -> None:
        """Make all tables."""
        con.execute("SET enable_progress_bar = false")
        con.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
        for name, query in self.queries.items():
            con.execute(f"CREATE OR REPLACE TABLE {schema}.{name} AS {query}")


def _bin_of(column: str, told: Mapping[str, Any]) -> str:
    """The number of the bin of a value; nothing if a value is a bin."""
    if told["type"] == "numeric" and "edges" in told:
        return f"len(list_filter({told['edges']}, lambda edge: edge <= {column}))"
    if told["type"] == "numeric" and "bins" in told:
        width = (told["upper"] - told["lower"] + 1) // told["bins"]
        return f"(({column} - {told['lower']}) // {width})::INTEGER"
    return ""


def _codes(size: int) -> dict[str, object]:
    return {"type": "categorical", "categories": list(range(size)), "other": False}


def _numbers(lower: int, upper: int, bins: int | None = None) -> dict[str, object]:
    found: dict[str, object] = {"type": "numeric", "lower": lower, "upper": upper, "nullable": False}
    return found if bins is None else {**found, "bins": bins}


def _edges(*edges: float) -> dict[str, object]:
    return {"type": "numeric", "edges": [*edges], "nullable": False}


def _words(*words: object, other: bool = True) -> dict[str, object]:
    return {"type": "categorical", "categories": [*words], "other": other}


# -- an invented shop --------------------------------------------------------------------------------


def _customers(customers: int, seed: int) -> str:
    """With the hidden taste."""

    def chance(what: str) -> str:
        return f"((hash(range, '{what}', {seed}) >> 11) / 9007199254740992.0)"

    return f"""
        SELECT *,
            (18 + CASE WHEN {chance("young")} < 0.6 THEN 18 * segment + floor(18 * {chance("age")})
                 ELSE floor(72 * {chance("age")}) END)::INTEGER AS age
        FROM (
            SELECT *, ((floor(4 * {chance("segment")} ** 2) + (region = 0)::INTEGER) % 4)::INTEGER AS segment
            FROM (
                SELECT range, range + 1 AS customer_id,
                    floor({TASTES} * {chance("taste")})::INTEGER AS taste,
                    floor(5 * {chance("region")} ** 1.5)::INTEGER AS region
                FROM range({customers})))"""


def _orders(customers: int, seed: int, busy: float) -> str:
    """With the hidden theme; all columns of the customer beside it."""

    def chance(what: str) -> str:
        return f"((hash(order_id, '{what}', {seed}) >> 11) / 9007199254740992.0)"

    number = f"((hash(range, 'orders', {seed}) >> 11) / 9007199254740992.0)"
    return f"""
        SELECT *,
            ((channel + (CASE WHEN {chance("urgent")} < 0.3 THEN 1 ELSE 0 END)) % 3)::INTEGER AS priority,
            CASE WHEN {chance("own theme")} < 0.5 THEN taste
                 ELSE floor({TASTES} * {chance("theme")})::INTEGER END AS theme
        FROM (
            SELECT *,
                (CASE WHEN {chance("by taste")} < 0.5 THEN taste % 3
                     ELSE least(2, (age - 18) // 30 + ({chance("channel")} < 0.3)::INTEGER)
                     END)::INTEGER AS channel,
                (1 + floor(12 * {chance("month")} ** (1 + 0.5 * region)))::INTEGER AS month
            FROM (
                SELECT *, (range + 1) * 100 + unnest(range(
                    least(10, floor(0.6 + {busy} * (0.8 + 1.3 * segment) * -ln(1 - {number})))::INTEGER))
                    AS order_id
                FROM ({_customers(customers, seed)})))"""


def _items(customers: int, seed: int, busy: float) -> str:
    def chance(what: str, key: str = "order_id * 10 + line") -> str:
        return f"((hash({key}, '{what}', {seed}) >> 11) / 9007199254740992.0)"

    return f"""
        SELECT order_id, line, category,
            least(119, 8 * category + floor(-15 * ln(1 - {chance("price")})))::INTEGER AS price,
            (1 + floor(6 * {chance("quantity")} ** (1 + priority)))::INTEGER AS quantity
        FROM (
            SELECT *,
                (CASE WHEN {chance("by theme")} < 0.5
                     THEN (3 * theme + ({chance("near")} < 0.2)::INTEGER) % 10
                     ELSE (floor(10 * {chance("category")} ** 2)::INTEGER + segment) % 10
                     END)::INTEGER AS category
            FROM (
                SELECT *, 1 + unnest(range(least(5,
                    floor(0.7 + (1 + channel) * -ln(1 - {chance("items", "order_id")})))::INTEGER)) AS line
                FROM ({_orders(customers, seed, busy)})))"""


def shop(customers: int, seed: int = 1, busy: float = 1.0) -> Database:
    """``busy`` times the usual number of orders."""
    file = {
        "unit": "customers.customer_id",
        "tables": {
            "customers": {
                "key": "customer_id",
                "columns": {"region": _codes(5), "segment": _codes(4), "age": _numbers(18, 89, 12)},
            },
            "orders": {
                "key": "order_id",
                "parent": "customers",
                "foreign_key": "customer_id",
                "columns": {"channel": _codes(3), "month": _numbers(1, 12), "priority": _codes(3)},
            },
            "items": {
                "key": ["order_id", "line"],
                "parent": "orders",
                "foreign_key": "order_id",
                "columns": {
                    "category": _codes(10),
                    "price": _numbers(0, 119, 12),
                    "quantity": _numbers(1, 6),
                },
            },
        },
    }
    queries = {
        "customers": f"SELECT customer_id, region, segment, age FROM ({_customers(customers, seed)})",
        "orders": "SELECT order_id, customer_id, channel, month, priority "
        f"FROM ({_orders(customers, seed, busy)})",
        "items": _items(customers, seed, busy),
    }
    return Database(queries, file, {"orders": 10, "items": 5}, {})


# -- real ones ---------------------------------------------------------------------------------------

_COUNTRIES = ("United Kingdom", "Germany", "France", "EIRE")


def retail() -> Database:
    """Customers of a web shop, their invoices in the order of their days, and lines; months are judged."""
    path = DATA / "online_retail" / "online_retail.parquet"
    rows = f"'{path}' WHERE CustomerID IS NOT NULL"
    months = [f"{2010 + (month + 11) // 12}-{(month + 11) % 12 + 1:02}-01" for month in range(14)]
    file = {
        "unit": "customers.customer",
        "tables": {
            "customers": {"key": "customer", "columns": {"country": _words(*_COUNTRIES)}},
            "invoices": {
                "key": "invoice",
                "parent": "customers",
                "foreign_key": "customer",
                "order": "day",
                "columns": {
                    "day": {"type": "temporal", "edges": months, "nullable": False},
                    "weekday": _numbers(1, 7),
                    "hour": _numbers(6, 20),
                    "cancelled": _words(False, True, other=False),
                },
            },
            "lines": {
                "parent": "invoices",
                "foreign_key": "invoice",
                "columns": {
                    "codes": _words("20", "21", "22", "23", "84", "85"),
                    "quantity": _edges(-100, 0, 1, 2, 3, 4, 6, 8, 10, 12, 13, 24, 25, 48, 100, 1000),
                    "price": _edges(0, 0.4, 0.5, 0.8, 0.9, 1.3, 1.7, 2.2, 3, 4, 5, 8, 10, 20, 100),
                },
            },
        },
    }
    queries = {
        "customers": f"SELECT CustomerID AS customer, min(Country) AS country FROM {rows} GROUP BY ALL",
        "invoices": "SELECT InvoiceNo AS invoice, min(CustomerID) AS customer, "
        "min(InvoiceDate)::DATE AS day, isodow(min(InvoiceDate)) AS weekday, "
        "hour(min(InvoiceDate)) AS hour, "
        f"InvoiceNo[1] = 'C' AS cancelled FROM {rows} GROUP BY InvoiceNo",
        "lines": "SELECT InvoiceNo AS invoice, StockCode[1:2] AS codes, "
        "greatest(-100, least(999, Quantity)) AS quantity, least(99.0, UnitPrice::DOUBLE) AS price "
        f"FROM {rows}",
    }
    judged = {"invoices": "12 * year(day) + month(day) AS month"}
    missing = None if path.exists() else path
    return Database(queries, file, {"invoices": 16, "lines": 32}, judged, missing)


def chinook() -> Database:
    """Customers of a music shop, invoices in the order of their days, and lines of public tracks."""
    folder = DATA / "chinook"

    def rows(name: str) -> str:
        return f"'{folder / f'{name}.parquet'}'"

    genres = ("Rock", "Latin", "Metal", "Alternative & Punk", "TV Shows", "Jazz", "Blues", "Drama")
    file = {
        "unit": "customers.customer",
        "tables": {
            "customers": {
                "key": "customer",
                "columns": {
                    "country": _words("USA", "Canada", "France", "Brazil", "Germany", "United Kingdom"),
                    "agent": _words(3, 4, 5, other=False),
                },
            },
            "invoices": {
                "key": "invoice",
                "parent": "customers",
                "foreign_key": "customer",
                "columns": {
                    "year": _numbers(2009, 2025),
                    "month": _numbers(1, 12),
                    "total": _edges(0, 1, 2, 3, 5, 8, 10, 20, 30),
                },
            },
            "lines": {
                "key": "line",
                "parent": "invoices",
                "foreign_key": "invoice",
                "columns": {"genre": _words(*genres), "price": _edges(0, 1, 2)},
            },
        },
    }
    queries = {
        "customers": "SELECT CustomerId AS customer, Country AS country, SupportRepId AS agent "
        f"FROM {rows('Customer')}",
        "invoices": "SELECT InvoiceId AS invoice, CustomerId AS customer, year(InvoiceDate) AS year, "
        f"month(InvoiceDate) AS month, Total::DOUBLE AS total FROM {rows('Invoice')}",
        "lines": "SELECT InvoiceLineId AS line, InvoiceId AS invoice, g.Name AS genre, "
        f"l.UnitPrice::DOUBLE AS price FROM {rows('InvoiceLine')} AS l "
        f"JOIN {rows('Track')} AS t USING (TrackId) JOIN {rows('Genre')} AS g USING (GenreId)",
    }
    needed = folder / "InvoiceLine.parquet"
    missing = None if needed.exists() else needed
    return Database(queries, file, {"invoices": 8, "lines": 16}, {}, missing)
