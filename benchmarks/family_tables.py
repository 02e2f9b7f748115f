"""Tables of persons with several rows: an invented shop from a seed, and real tables by person.

The shop: customers have a region, a segment and an age, and a hidden taste. The number of purchases follows
the segment. Channel and category follow the taste in half of the purchases, and age or segment in the
others; price follows the category, quantity the segment, priority the channel.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import duckdb
from harness import DATA
from real_tables import REAL_TABLES

TASTES, LONGEST = 6, 32


@dataclass(frozen=True)
class FamilyTable:
    """A table by the ``query`` that makes it. ``most``: rows of a person that count. ``shared``: columns that
    all rows of a person share. ``judged``: what is compared, if it is not the columns as they are."""

    query: str
    unit: str
    columns: Mapping[str, Mapping[str, object]]
    most: int
    shared: tuple[str, ...] = ()
    order: str | None = None
    judged: str = "*"
    missing: Path | None = field(default=None)
    """A file of real rows that is not there."""

    def domain(self, *, together: bool) -> dict[str, object]:
        """Declared columns; columns of a person are marked where rows stay together."""
        marked = {
            name: {**entry, "per_unit": True} if together and name in self.shared else dict(entry)
            for name, entry in self.columns.items()
        }
        return {"columns": marked}

    def load(self, con: duckdb.DuckDBPyConnection, name: str = "source") -> None:
        """Make it."""
        con.execute("SET enable_progress_bar = false")
        con.execute(f"CREATE OR REPLACE TABLE {name} AS {self.query}")


def shop_query(customers: int, seed: int, busy: float = 1.0) -> str:
    """``busy`` times the usual number of purchases."""

    def chance(what: str, key: str) -> str:
        return f"((hash({key}, '{what}', {seed}) >> 11) / 9007199254740992.0)"

    def one(what: str) -> str:
        return chance(what, "customer")

    def each(what: str) -> str:
        return chance(what, "customer * 1000 + place")

    return f"""
        WITH first AS (
            SELECT
                range AS customer, floor({TASTES} * {chance("taste", "range")})::INTEGER AS taste,
                floor(5 * {chance("region", "range")} ** 1.5)::INTEGER AS region
            FROM range({customers})),
        second AS (
            SELECT *, ((floor(4 * {one("segment")} ** 2) + (region = 0)::INTEGER) % 4)::INTEGER AS segment
            FROM first),
        persons AS (
            SELECT *,
                (18 + CASE WHEN {one("young")} < 0.6 THEN 18 * segment + floor(18 * {one("age")})
                     ELSE floor(72 * {one("age")}) END)::INTEGER AS age,
                least({LONGEST},
                    1 + floor({busy} * (1 + 1.6 * segment) * -ln(1 - {one("rows")})))::INTEGER AS rows
            FROM second),
        bought AS (SELECT * EXCLUDE rows, unnest(range(rows)) AS place FROM persons),
        themed AS (
            SELECT *,
                CASE WHEN {each("by taste")} < 0.5 THEN taste % 3
                     ELSE least(2, (age - 18) // 30 + ({each("channel")} < 0.3)::INTEGER) END AS channel,
                CASE WHEN {each("taste again")} < 0.5 THEN 3 * taste % 10
                     ELSE (floor(10 * {each("category")} ** 2)::INTEGER + segment) % 10 END AS category
            FROM bought)
        SELECT
            customer, region, segment, age, channel::INTEGER AS channel,
            (1 + floor(12 * {each("month")} ** 0.8))::INTEGER AS month,
            ((channel + (CASE WHEN {each("urgent")} < 0.3 THEN 1 ELSE 0 END)) % 3)::INTEGER AS priority,
            category::INTEGER AS category,
            least(119, 8 * category + floor(-15 * ln(1 - {each("price")})))::INTEGER AS price,
            (1 + floor(6 * {each("quantity")} ** (1 + segment)))::INTEGER AS quantity
        FROM themed"""


def _codes(size: int) -> dict[str, object]:
    return {"type": "categorical", "categories": list(range(size)), "other": False}


def _numbers(lower: int, upper: int, bins: int | None = None) -> dict[str, object]:
    found: dict[str, object] = {"type": "numeric", "lower": lower, "upper": upper, "nullable": False}
    return found if bins is None else {**found, "bins": bins}


def shop(customers: int, seed: int = 1, busy: float = 1.0) -> FamilyTable:
    """The invented shop."""
    columns = {
        "region": _codes(5),
        "segment": _codes(4),
        "age": _numbers(18, 89, 12),
        "channel": _codes(3),
        "month": _numbers(1, 12),
        "priority": _codes(3),
        "category": _codes(10),
        "price": _numbers(0, 119, 12),
        "quantity": _numbers(1, 6),
    }
    query = shop_query(customers, seed, busy)
    return FamilyTable(query, "customer", columns, LONGEST, ("region", "segment", "age"))


def _real(path: str) -> tuple[Path, Path | None]:
    file = DATA / path
    return file, None if file.exists() else file


def _declared(name: str, column: str) -> dict[str, object]:
    return dict(REAL_TABLES[name].declared()["columns"][column])


_RETAIL = "online_retail/online_retail.parquet"
_COUNTRY = {
    "type": "categorical",
    "categories": ["United Kingdom", "Germany", "France", "EIRE"],
    "other": True,
}


def retail_lines() -> FamilyTable:
    """Lines of invoices by customer."""
    file, missing = _real(_RETAIL)
    query = f"""
        SELECT CustomerID AS customer, Country AS country, month(InvoiceDate) AS month,
            isodow(InvoiceDate) AS weekday, hour(InvoiceDate) AS hour, StockCode[1:2] AS codes,
            greatest(-100, least(999, Quantity)) AS quantity, least(99.0, UnitPrice::DOUBLE) AS price
        FROM '{file}' WHERE CustomerID IS NOT NULL"""
    columns = {
        "country": _COUNTRY,
        "month": _numbers(1, 12),
        "weekday": _numbers(1, 7),
        "hour": _numbers(6, 20),
        "codes": {"type": "categorical", "categories": ["20", "21", "22", "23", "84", "85"]},
        "quantity": {
            "type": "numeric",
            "edges": [-100, 0, 1, 2, 3, 4, 6, 8, 10, 12, 13, 24, 25, 48, 100, 1000],
        },
        "price": {
            "type": "numeric",
            "edges": [0, 0.4, 0.5, 0.8, 0.9, 1.3, 1.7, 2.2, 3, 4, 5, 8, 10, 20, 100],
        },
    }
    return FamilyTable(query, "customer", columns, 64, ("country",), missing=missing)


def retail_invoices() -> FamilyTable:
    """Invoices by customer, in the order of their days; months are judged."""
    file, missing = _real(_RETAIL)
    query = f"""
        SELECT any_value(CustomerID) AS customer, any_value(Country) AS country,
            min(InvoiceDate)::DATE AS day, isodow(min(InvoiceDate)) AS weekday,
            hour(min(InvoiceDate)) AS hour,
            InvoiceNo[1] = 'C' AS cancelled, least(200, count(*)) AS lines
        FROM '{file}' WHERE CustomerID IS NOT NULL GROUP BY InvoiceNo"""
    months = [f"{2010 + (month + 11) // 12}-{(month + 11) % 12 + 1:02}-01" for month in range(14)]
    columns = {
        "country": _COUNTRY,
        "day": {"type": "temporal", "edges": months, "nullable": False},
        "weekday": _numbers(1, 7),
        "hour": _numbers(6, 20),
        "cancelled": {"type": "categorical", "categories": [False, True], "other": False},
        "lines": {"type": "numeric", "edges": [1, 2, 3, 5, 9, 17, 33, 65, 201], "nullable": False},
    }
    judged = "* EXCLUDE day, 12 * year(day) + month(day) AS month, day"
    return FamilyTable(query, "customer", columns, 16, ("country",), "day", judged, missing)


def gowalla() -> FamilyTable:
    """Check-ins by user."""
    file, missing = _real("gowalla_nyc/checkins.parquet")
    query = f"""
        SELECT user_id AS person, 12 * (year(ts_utc) - 2009) + month(ts_utc) AS month,
            isodow(ts_utc) AS weekday, hour(ts_utc) AS hour, lat, lon
        FROM '{file}'"""
    columns = {
        "month": _numbers(2, 22),
        "weekday": _numbers(1, 7),
        "hour": _numbers(0, 23, 12),
        **{name: _declared("gowalla", name) for name in ("lat", "lon")},
    }
    return FamilyTable(query, "person", columns, 64, missing=missing)


def flights() -> FamilyTable:
    """Flights by aircraft."""
    file, missing = _real("nycflights13/flights.parquet")
    query = f"""
        SELECT nullif(tailnum, '') AS tailnum, month, carrier, origin, dest, hour, dep_delay, distance
        FROM '{file}'"""
    names = ("month", "carrier", "origin", "dest", "hour", "dep_delay", "distance")
    columns = {name: _declared("flights", name) for name in names}
    return FamilyTable(query, "tailnum", columns, 128, missing=missing)
