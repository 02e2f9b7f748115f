"""The releases of ``same.py``: small generated tables, and the only place of it that calls the public API.

A case makes its tables by SQL that gives the same rows every time, then asks for one release or several.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import duckdb

import dpsyn_sql
from dpsyn_sql.ledger.sqlite import MemoryLedger
from dpsyn_sql.planning.plan import Plan
from dpsyn_sql.source.slices import Partition, Window


@dataclass(frozen=True)
class Case:
    """``tables``: SQL; ``calls``: the options of each release, in turn, of one ledger."""

    tables: str
    calls: tuple[Mapping[str, Any], ...]
    ledger: MemoryLedger = field(default_factory=MemoryLedger, compare=False)

    def changed(self, **options: object) -> Case:
        """The same with other options in every call, and a ledger of its own."""
        return replace(self, calls=tuple({**call, **options} for call in self.calls), ledger=MemoryLedger())


def plans_of(con: duckdb.DuckDBPyConnection, case: Case, options: Mapping[str, Any]) -> list[Plan]:
    """What a call plans: a plan for each table."""
    return [table.plan for table in dpsyn_sql.plan(con, **options, ledger=case.ledger).tables]


def release(con: duckdb.DuckDBPyConnection, case: Case, options: Mapping[str, Any]) -> list[str]:
    """Make the release of a call; the tables that it wrote."""
    made = dpsyn_sql.release(con, **options, ledger=case.ledger)
    if isinstance(options["source"], list):
        return [f'"{options["into"]}"."{name}"' for name in made.tables]
    return [f'"{options["into"]}"']


def some(*labels: str) -> dict[str, object]:
    return {"type": "categorical", "categories": [*labels], "other": False}


def number(lower: int, upper: int, bins: int, **more: object) -> dict[str, object]:
    return {"type": "numeric", "lower": lower, "upper": upper, "bins": bins, **more}


def dates(year: int) -> dict[str, object]:
    return {"type": "temporal", "lower": f"{year}-01-01", "upper": f"{year}-12-31", "bins": 12}


def lot(key: str, stream: int, size: int) -> str:
    """SQL: a number from 0 to below ``size`` that a key draws."""
    return f"(hash({key} * 131 + {stream}) % {size})::INTEGER"


# -- one row of a person ---------------------------------------------------------------------------

PEOPLE = f"""
    CREATE TABLE people AS
    SELECT
        18 + least({lot("i", 1, 60)}, {lot("i", 2, 60)}) AS age,
        ['north', 'south', 'west'][1 + {lot("i", 3, 3)}] AS region,
        ['none', 'school', 'college'][1 + least({lot("i", 3, 3)}, {lot("i", 4, 3)})] AS education,
        CASE WHEN {lot("i", 5, 9)} > 0
            THEN 1000 * least({lot("i", 2, 60)}, 5 + {lot("i", 6, 50)}) END AS income,
        CASE WHEN {lot("i", 7, 5)} > 0 THEN ['no', 'yes'][1 + ({lot("i", 2, 60)} > 20)::INTEGER] END AS owns,
        DATE '2024-01-01' + {lot("i", 8, 366)} AS joined
    FROM range(4000) AS numbers(i)
"""
PEOPLE_COLUMNS = {
    "age": number(18, 78, 12),
    "region": some("north", "south", "west"),
    "education": some("none", "school", "college") | {"ordered": True},
    "income": number(0, 60_000, 15, nullable=True),
    "owns": some("no", "yes") | {"nullable": True},
    "joined": dates(2024),
}
ONE_TABLE = Case(PEOPLE, ({"source": "people", "into": "copy", "domain": {"columns": PEOPLE_COLUMNS}},))

# -- several rows of a person ----------------------------------------------------------------------

VISITS = f"""
    CREATE TABLE visits AS
    SELECT
        i % 700 AS person,
        ['a', 'b', 'c'][1 + ({lot("i % 700", 1, 3)} + {lot("i", 2, 5)} // 4) % 3] AS kind,
        {lot("i", 3, 100)} AS price,
        DATE '2024-01-01' + {lot("i", 4, 366)} AS day,
        1940 + {lot("i % 700", 5, 70)} AS born,
        ({lot("i % 700", 6, 4)} + {lot("i", 7, 3)} // 2) % 4 + {lot("i", 8, 1000)} / 1000 AS x,
        {lot("i % 700", 9, 4)} + {lot("i", 10, 1000)} / 1000 AS y
    FROM range(3500) AS numbers(i)
    WHERE {lot("i", 11, 4)} > 0
"""
VISIT_COLUMNS = {
    "kind": some("a", "b", "c"),
    "price": number(0, 99, 10),
    "day": dates(2024),
    "born": number(1940, 2009, 7, per_unit=True),
}
OF_PERSONS = {"source": "visits", "into": "copy", "unit": "person", "most": 3}
VISIT_ALONE = {"source": "visits", "unit": "row"}
KINDS = """
    CREATE TABLE kinds AS
    SELECT chr(97 + i::INTEGER) AS kind, 'k' || i AS label FROM range(3) AS numbers(i)
"""
TOGETHER = Case(
    VISITS,
    (OF_PERSONS | {"order": "day", "domain": {"columns": VISIT_COLUMNS}, "exclude": ["x", "y"]},),
)
PLACE = {"type": "point", "columns": {"y": [0, 4], "x": [0, 4]}, "nullable": False, "depth": 2}
WALKS = {"columns": {"place": PLACE, **{name: VISIT_COLUMNS[name] for name in ("kind", "day", "born")}}}
ROWS_ALONE = {name: {key: value for key, value in entry.items() if key != "per_unit"}
              for name, entry in VISIT_COLUMNS.items()}  # fmt: skip

# -- hierarchies -----------------------------------------------------------------------------------

PLACES = {"columns": {"place": PLACE | {"depth": 6}}}
TRIPS = {
    "columns": {
        "place": PLACE | {"depth": 4},
        "kind": VISIT_COLUMNS["kind"],
        "price": {"type": "dyadic", "lower": 0, "upper": 99},
    }
}

# -- periods ---------------------------------------------------------------------------------------

MONTHS = ("2025-01-01", "2025-02-01", "2025-03-01", "2025-04-01")
MONTHLY = f"""
    CREATE TABLE monthly AS
    SELECT
        'p' || p AS who,
        CAST(DATE '2025-01-10' + to_months(m::INTEGER) AS DATE) AS day,
        ['n', 's'][1 + {lot("p", 1, 2)}] AS region,
        ['x', 'y', 'z'][1 + ({lot("p", 2, 3)} + {lot("(p * 3 + m)", 3, 5)} // 4) % 3] AS state
    FROM range(900) AS persons(p), range(3) AS months(m)
    WHERE (m = 0 OR p % 5 > 0) AND (m > 0 OR p < 810)
"""
OF_MONTH = {
    "source": "monthly",
    "unit": "who",
    "most": 1,
    "domain": {"columns": {"region": some("n", "s"), "state": some("x", "y", "z")}},
}


def month(index: int, most: int | None = None) -> Window:
    return Window("day", "month from 2025-01-01", MONTHS, index, most=most)


def so_far(index: int) -> dict[str, object]:
    return {
        **OF_MONTH,
        "into": f"so_far_{index}",
        "name": "so far",
        "window": month(index),
        "series": "total",
        "version": MONTHS[index],
        "method": "independent",
        "exclude": ["day"],
    }


PANEL = tuple(
    {**OF_MONTH, "into": "copy", "window": month(index), "series": "panel", "epsilon": 10}
    for index in range(3)
)
IN_JANUARY = {**OF_MONTH, "into": "copy", "name": "january", "version": "2025-01", "exclude": ["day"]}
OF_NORTH = {
    "source": "people",
    "into": "copy",
    "exclude": ["region"],
    "window": Partition("region", "north", most=1),
}
NORTHERN = {"columns": {name: entry for name, entry in PEOPLE_COLUMNS.items() if name != "region"}}

# -- a database ------------------------------------------------------------------------------------

SHOP = f"""
    CREATE TABLE products AS
    SELECT (100 + i)::SMALLINT AS product_id, ['a', 'b', 'c'][1 + i % 3] AS category
    FROM range(9) AS numbers(i);
    ALTER TABLE products ADD PRIMARY KEY (product_id);
    CREATE TABLE customers (customer_id BIGINT PRIMARY KEY, region VARCHAR NOT NULL, born INTEGER);
    INSERT INTO customers
    SELECT i, ['n', 's'][1 + {lot("i", 1, 2)}], CASE WHEN i % 11 > 0 THEN 1940 + {lot("i", 2, 70)} END
    FROM range(600) AS numbers(i);
    CREATE TABLE orders (
        order_id INTEGER PRIMARY KEY, customer_id BIGINT NOT NULL REFERENCES customers (customer_id),
        channel VARCHAR, day DATE NOT NULL
    );
    INSERT INTO orders
    SELECT i, {lot("i", 3, 600)},
        CASE WHEN {lot("i", 4, 7)} > 0 THEN ['web', 'shop'][1 + {lot("i", 5, 2)}] END,
        DATE '2024-01-01' + {lot("i", 6, 366)}
    FROM range(1500) AS numbers(i);
    CREATE TABLE items (
        order_id INTEGER REFERENCES orders (order_id), line SMALLINT,
        product_id SMALLINT REFERENCES products (product_id), pieces INTEGER, PRIMARY KEY (order_id, line)
    );
    INSERT INTO items SELECT i % 1500, i // 1500, 100 + {lot("i", 7, 9)}, 1 + {lot("i % 1500", 8, 5)}
    FROM range(3000) AS numbers(i)
"""
SHOP_TABLES: dict[str, dict[str, Any]] = {
    "customers": {"columns": {"region": some("n", "s"), "born": number(1940, 2009, 7, nullable=True)}},
    "orders": {"most": 6, "columns": {"channel": some("web", "shop"), "day": dates(2024)}},
    "items": {
        "most": 4,
        "columns": {
            "product_id": {"references": "products", "by": "category"},
            "pieces": number(1, 6, 5),
        },
    },
}
SHOP_CALL = {
    "unit": "customers.customer_id",
    "source": ["customers", "orders", "items"],
    "public_tables": ["products"],
    "into": "copy",
    "domain": {"tables": SHOP_TABLES},
}
NO_PRODUCTS = {"most": 4, "columns": {"pieces": number(1, 6, 5)}}
IN_ORDER = {"tables": {**SHOP_TABLES, "orders": {**SHOP_TABLES["orders"], "order": "day"}}}


# -- all of them -----------------------------------------------------------------------------------


def cases() -> dict[str, Case]:
    """All of them, by name; ledgers are new."""
    return {**of_one_table(), **of_hierarchies(), **of_persons(), **of_periods(), **of_databases()}


def of_one_table() -> dict[str, Case]:
    """A row is a person: every method, and what a call can ask of it."""
    methods = ("auto", "adaptive", "dpsyn", "privbayes", "copula", "dpcopula", "mixture", "independent")
    words = {name: entry for name, entry in PEOPLE_COLUMNS.items() if entry["type"] == "categorical"}
    return {f"method {name}": ONE_TABLE.changed(method=name) for name in methods} | {
        "delta 0": ONE_TABLE.changed(delta=0),
        "delta 0, dpsyn": ONE_TABLE.changed(delta=0, method="dpsyn"),
        "workload": ONE_TABLE.changed(workload={"income": 5, ("age", "owns"): 2}),
        "target": ONE_TABLE.changed(workload="owns"),
        "target, privbayes": ONE_TABLE.changed(workload="owns", method="privbayes"),
        "no domain": ONE_TABLE.changed(domain=None),
        "no domain of numbers, delta 0": ONE_TABLE.changed(domain={"columns": words}, delta=0),
    }


def of_hierarchies() -> dict[str, Case]:
    """Rows that are places, and places beside other columns."""
    others = ["person", "kind", "price", "day", "born"]

    def places(splitter: str, into: str) -> dict[str, object]:
        method = {"name": "hierarchical", "splitter": splitter}
        return VISIT_ALONE | {"into": into, "method": method, "domain": PLACES, "exclude": others}

    mixed = VISIT_ALONE | {"into": "copy", "domain": TRIPS, "exclude": ["person", "day", "born"]}
    return {
        "hierarchical": Case(VISITS, (places("basic", "copy"), places("privtree", "copy_2"))),
        "hierarchical, direct": Case(VISITS, (places("direct", "copy"), places("improved", "copy_2"))),
        "columns of hierarchies": Case(VISITS, (mixed,)),
    }


def of_persons() -> dict[str, Case]:
    """A person has several rows; and a query that joins a public table."""
    alone = {"domain": {"columns": ROWS_ALONE}, "exclude": ["x", "y"], "weights": False}
    walks = {"order": "day", "method": "traces", "domain": WALKS, "exclude": ["price"]}
    joined = {
        "source": "SELECT v.kind, v.price, k.label FROM visits AS v JOIN kinds AS k ON v.kind = k.kind",
        "public_tables": ["kinds"],
        "trust_query": True,
        "name": "joined",
        "domain": {
            "columns": {
                "kind": VISIT_COLUMNS["kind"],
                "price": VISIT_COLUMNS["price"],
                "label": some("k0", "k1", "k2"),
            }
        },
    }
    return {
        "rows of persons": Case(VISITS, (OF_PERSONS | alone,)),
        "rows of persons, no domain": Case(VISITS, (OF_PERSONS | {"exclude": ["x", "y"], "weights": False},)),
        "together, in order": TOGETHER,
        "together": TOGETHER.changed(order=None),
        "traces": Case(VISITS, (OF_PERSONS | walks,)),
        "public table in a query": Case(f"{VISITS}; {KINDS}", (VISIT_ALONE | {"into": "copy"} | joined,)),
    }


def of_periods() -> dict[str, Case]:
    """Parts of a table, and series of releases."""
    january = {**IN_JANUARY, "window": month(0, most=1)}
    northern = {**OF_NORTH, "domain": NORTHERN, "name": "north", "version": "1"}
    return {
        "slice of a calendar": Case(MONTHLY, (january,)),
        "partition": Case(PEOPLE, (northern,)),
        "panel": Case(MONTHLY, PANEL),
        "running total": Case(MONTHLY, tuple(so_far(index) for index in range(3))),
    }


def of_databases() -> dict[str, Case]:
    """Customers, their orders, the items of these."""
    shop = Case(SHOP, (SHOP_CALL,))
    three = {"tables": {**SHOP_TABLES, "items": NO_PRODUCTS}}
    return {
        "database of three tables": shop.changed(
            public_tables=[], exclude=["items.product_id"], domain=three
        ),
        "database, public table": shop.changed(),
        "database, orders in order": shop.changed(domain=IN_ORDER),
        "database, delta 0": shop.changed(delta=0),
        "database, no domain": shop.changed(domain=None),
    }
