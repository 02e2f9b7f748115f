"""Each wrong call for a database is one clear error of our own; nothing is written, nothing is charged."""

import duckdb
import pytest
from support.released_shop import CALL, SHOP, TABLES, planned, released

from dpsyn_sql.errors import BudgetError, DomainError, InputError, SourceError, TargetError
from dpsyn_sql.ledger.sqlite import MemoryLedger

ODD = """
    CREATE TABLE floats (id DOUBLE, customer_id BIGINT);
    CREATE TABLE notes (customer_id VARCHAR, text VARCHAR);
    CREATE TABLE left_side (id INTEGER PRIMARY KEY, other INTEGER, customer_id BIGINT REFERENCES customers (customer_id));
    CREATE TABLE right_side (id INTEGER PRIMARY KEY, other INTEGER);
    CREATE TABLE staff (id INTEGER PRIMARY KEY, boss INTEGER REFERENCES staff (id));
    CREATE TABLE keyless AS FROM products;
    CREATE TABLE repeated AS FROM products UNION ALL FROM products;
    CREATE TABLE nothing AS FROM products LIMIT 0;
    CREATE TABLE large AS SELECT i AS product_id FROM range(1001) AS r(i);
    CREATE TABLE nested (customer_id BIGINT REFERENCES customers (customer_id), list INTEGER[]);
    CREATE TABLE deep (customer_id BIGINT REFERENCES customers (customer_id), id INTEGER PRIMARY KEY);
    CREATE TABLE deeper (deep_id INTEGER REFERENCES deep (id), id INTEGER PRIMARY KEY);
    CREATE TABLE wide AS SELECT i AS order_id, 'free ' || i AS text, 1 AS line FROM range(5) AS r(i);
    CREATE VIEW mixed AS SELECT customer_id, count(*) AS n FROM orders GROUP BY customer_id;
    CREATE SCHEMA there; CREATE TABLE there.orders AS SELECT 1 AS mine;
    CREATE SCHEMA viewed; CREATE VIEW viewed.orders AS SELECT 1 AS mine;
    CREATE SCHEMA other; CREATE TABLE other.orders AS FROM orders
"""


def with_words(**tables):
    return {"tables": {**TABLES, **tables}}


def of_two(name, **words):
    """Customers and one more table."""
    return dict(
        source=["customers", name],
        public_tables=[],
        domain={"tables": {"customers": TABLES["customers"], name: words}},
    )


BELOW = {"parent": "customers", "foreign_key": "customer_id"}
ITEMS = TABLES["items"]

CASES = {
    "no unit": (dict(unit=None), InputError, "unit= is missing"),
    "unit of no table": (dict(unit="clients.id"), InputError, "names no table of the release"),
    "unit of no column": (dict(unit="customers.nobody"), InputError, "nobody"),
    "unit is no key": (dict(unit="customers.region"), InputError, "is not the key of customers"),
    "unit of a public table": (dict(unit="products.product_id"), InputError, "a public table"),
    "unit at the bottom": (dict(unit="items"), InputError, "reaches no unit"),
    "unit as a number": (dict(unit=3), InputError, "unit=3"),
    "no tables": (dict(source=[], domain=None), InputError, "No table is named"),
    "missing table": (dict(source=["customers", "ordres"]), SourceError, "ordres"),
    "tables as text": (dict(source="customers", unit="customer_id"), InputError, "give a list of tables"),
    "key of a table as text": (dict(source="customers", domain=None), InputError, "is not a column of the source"),
    "weights": (dict(weights=False), InputError, "weights= is for one table"),
    "most without a table": (dict(most=16), InputError, "does not say of which table"),
    "order beside the file": (dict(order="day"), InputError, "It stands in the file of the tables"),
    "table named twice": (dict(source=["customers", "orders", "ORDERS"]), InputError, "named twice"),
    "public and private": (dict(public_tables=["products", "orders"]), InputError, "either private or public"),
    "query as a table": (dict(source=["customers", "SELECT 1"]), InputError, "Make a view"),
    "two tables of one name": (dict(source=["customers", "orders", "other.orders"]), InputError, "same name"),
    "view that mixes rows": (of_two("mixed", **BELOW), SourceError, "mixed: The query uses GROUP BY"),
    "public table not named": (dict(public_tables=[]), InputError, "public_tables="),
    "public table missing": (dict(public_tables=["produce"]), SourceError, "produce"),
    "public table without key": (
        dict(public_tables=["keyless"], domain=with_words(items={"columns": {"product_id": {"references": "keyless"}}})),
        InputError,
        "keyless has no key",
    ),
    "public keys repeat": (
        dict(
            public_tables=["repeated"],
            domain={
                "public_tables": {"repeated": {"key": "product_id"}},
                **with_words(items={"columns": {"product_id": {"references": "repeated"}}}),
            },
        ),
        InputError,
        "does not tell its rows apart",
    ),
    "public table is empty": (
        dict(
            public_tables=["nothing"],
            domain={
                "public_tables": {"nothing": {"key": "product_id"}},
                **with_words(items={"columns": {"product_id": {"references": "nothing"}}}),
            },
        ),
        InputError,
        "has no rows",
    ),
    "public groups are too many": (
        dict(
            public_tables=["large"],
            domain={
                "public_tables": {"large": {"key": "product_id"}},
                **with_words(items={"columns": {"product_id": {"references": "large"}}}),
            },
        ),
        InputError,
        "1,001 groups",
    ),
    "by names no column": (
        dict(domain=with_words(items={"columns": {"product_id": {"references": "products", "by": "colour"}}})),
        InputError,
        "colour",
    ),
    "by of a private table": (
        of_two(
            "left_side", **BELOW, columns={"other": {"references": "customers", "by": "region"}}
        ),
        InputError,
        "by: names columns of customers",
    ),
    "no way to the units": (of_two("right_side"), InputError, "right_side reaches no unit"),
    "names itself alone": (of_two("staff"), InputError, "names itself alone"),
    "tables go round": (
        dict(
            source=["customers", "left_side", "right_side"],
            public_tables=[],
            domain={
                "tables": {
                    "customers": TABLES["customers"],
                    "left_side": {**BELOW, "columns": {"other": {"references": "right_side"}}},
                    "right_side": {"parent": "left_side", "foreign_key": "other"},
                }
            },
        ),
        InputError,
        "go round",
    ),
    "parent of the root": (dict(domain=with_words(customers={"parent": "orders", "foreign_key": "region"})), InputError, "customers holds the units"),
    "parent that is missing": (dict(domain=with_words(orders={"parent": "clients"})), InputError, "clients"),
    "key of floats": (
        {**of_two("floats", key="id"), "unit": "floats.id", "exclude": ["customers.region"]}
        | {"domain": {"tables": {"floats": {"key": "id"}, "customers": {"parent": "floats", "foreign_key": "customer_id"}}}},
        InputError,
        "cannot be a key",
    ),
    "keys of other types": (of_two("notes", **BELOW), InputError, "they must be of one type"),
    "most of the root": (dict(most={"customers": 2}), InputError, "rows are the units"),
    "most of no table": (dict(most={"ordres": 2}), InputError, "ordres"),
    "most of zero": (dict(most={"orders": 0}), InputError, "most="),
    "most as a fraction": (dict(most={"orders": 1.5}), InputError, "most="),
    "most as a list": (dict(most=[3]), InputError, "most="),
    "rows that weigh nothing": (dict(most={"orders": 2**12, "items": 2**12}), InputError, "would count nothing"),
    "excluded key": (dict(exclude=["orders.order_id"]), InputError, "ties orders"),
    "excluded column without table": (dict(exclude=["channel"]), InputError, "exclude= names 'channel'"),
    "excluded column that is missing": (dict(exclude=["orders.note"]), InputError, "no such column"),
    "exclude as text": (dict(exclude="orders.channel"), InputError, "list"),
    "domain of a key": (
        dict(domain=with_words(orders={"columns": {"order_id": {"type": "numeric", "lower": 0, "upper": 9}}})),
        InputError,
        "order_id",
    ),
    "domain of a missing column": (
        dict(domain=with_words(orders={"columns": {"note": {"type": "categorical", "categories": ["a"]}}})),
        DomainError,
        "note",
    ),
    "domain without tables": (dict(domain={"columns": {}}), DomainError, "tables:"),
    "domain with unknown words": (dict(domain=with_words(orders={"mots": 3})), DomainError, "mots"),
    "missing domain file": (dict(domain="missing.yml"), InputError, "missing.yml"),
    "no domain and no discovery": (dict(domain=None, discover=False), DomainError, "region"),
    "nested column": (of_two("nested"), DomainError, "list"),
    "order of the root": (dict(domain=with_words(customers={"order": "region"})), InputError, "no order:"),
    "order by text": (
        dict(domain=with_words(orders={**TABLES["orders"], "order": "channel"})),
        InputError,
        "must be a date",
    ),
    "order by no column": (dict(domain=with_words(orders={"order": "day"})), InputError, "day"),
    "per_unit": (
        dict(domain=with_words(customers={"columns": {"region": {"type": "categorical", "categories": ["n", "s"], "per_unit": True}}})),
        DomainError,
        "per_unit",
    ),
    "never of no column": (dict(domain=with_words(orders={**TABLES["orders"], "never": ["nobody = 1"]})), DomainError, "nobody"),
    "epsilon zero": (dict(epsilon=0), BudgetError, "epsilon"),
    "epsilon as a word": (dict(epsilon="much"), BudgetError, "epsilon"),
    "delta of one": (dict(delta=1), BudgetError, "delta"),
    "rows below zero": (dict(rows=-1), InputError, "rows"),
    "rows as a fraction": (dict(rows=1.5), InputError, "rows"),
    "seed too large": (dict(seed=2**64), InputError, "seed"),
    "constraints as a word": (dict(constraints="yes"), InputError, "constraints"),
    "empty into": (dict(into=""), InputError, "into"),
    "into the source": (dict(into="main"), TargetError, "schema of a table of the release"),
    "into tables that are there": (dict(into="there"), TargetError, "replace=True"),
    "into views that are there": (dict(into="viewed", replace=True), TargetError, "is a view"),
    "into a missing database": (dict(into="nowhere.copy"), TargetError, "nowhere"),
    "into a missing folder": (dict(into="missing/o.duckdb"), TargetError, "missing"),
    "memory limit of a connection": (dict(limits={"memory": "1GB"}), InputError, "limits="),
    "time limit of zero": (dict(limits={"time": 0}), InputError, "limits="),
    "unknown option": (dict(method="copula"), (InputError, TypeError), "method"),
}  # fmt: skip


@pytest.fixture(scope="module")
def con(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shop")
    with duckdb.connect(str(folder / "w.duckdb")) as connection:
        connection.execute(f"{SHOP}; {ODD}")
        yield connection


def existing(con, folder):
    tables = con.execute(
        "SELECT schema_name, table_name, estimated_size FROM duckdb_tables() ORDER BY ALL"
    ).fetchall()
    schemas = con.execute("SELECT schema_name FROM duckdb_schemas() ORDER BY ALL").fetchall()
    settings = con.execute("SELECT name, value FROM duckdb_settings() ORDER BY ALL").fetchall()
    return tables, schemas, settings, sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("case", CASES)
def test_refused_without_a_trace(con, tmp_path, monkeypatch, case):
    options, error, message = CASES[case]
    monkeypatch.chdir(tmp_path)
    before, ledger = existing(con, tmp_path), MemoryLedger()
    with pytest.raises(error, match=message) as caught:
        released(con, ledger=ledger, **options)
    assert caught.value.__cause__ is None and caught.value.__context__ is None
    assert existing(con, tmp_path) == before
    assert ledger.overview().releases == ()


@pytest.mark.parametrize("case", CASES)
def test_the_plan_refuses_the_same(con, case):
    options, error, message = CASES[case]
    if issubclass(error if isinstance(error, type) else error[0], TargetError) and "replace" in message:
        return  # the plan shows it
    with pytest.raises(error, match=message):
        planned(con, **options)


@pytest.mark.parametrize("place", [None, 3, "missing/w.duckdb", "notes.csv"])
def test_con_is_a_database(tmp_path, monkeypatch, place):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.csv").write_text("a\n1\n")
    with pytest.raises((InputError, SourceError)):
        released(place)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.csv"]


DATA = {
    "unit": lambda wrong: dict(unit=wrong),
    "a table": lambda wrong: dict(source=["customers", wrong]),
    "a public table": lambda wrong: dict(public_tables=[wrong]),
    "most": lambda wrong: dict(most=wrong),
    "a bound": lambda wrong: dict(most={"orders": wrong}),
    "the file": lambda wrong: dict(domain=wrong),
    "a table of the file": lambda wrong: dict(domain=with_words(orders=wrong)),
    "a key of the file": lambda wrong: dict(domain=with_words(orders={"key": wrong})),
    "a reference": lambda wrong: dict(domain=with_words(items={"columns": {"product_id": {"references": wrong}}})),
    "into": lambda wrong: dict(into=wrong),
    "exclude": lambda wrong: dict(exclude=[wrong]),
    "con": lambda wrong: dict(con=wrong),
    **{
        name: (lambda wrong, name=name: {name: wrong})
        for name in ("epsilon", "delta", "name", "version", "account", "rows", "seed", "replace", "constraints")
    },
}  # fmt: skip


@pytest.mark.parametrize("argument", DATA)
def test_data_in_the_place_of_an_argument_is_not_printed(con, argument):
    secret = con.sql("SELECT 'Anna Secret' AS name").df()
    options = {"con": con, "ledger": MemoryLedger(), **DATA[argument](secret)}
    with pytest.raises((InputError, TypeError)) as caught:
        released(options.pop("con"), **options)
    error = caught.value
    while error is not None:
        assert "Secret" not in str(error)
        error = error.__cause__ or error.__context__


def test_the_call_is_the_one_that_works_without_a_fault(con):
    assert str(planned(con, into="fine")).startswith("Writes      w.fine\n")
    assert set(CALL) == {"unit", "source", "public_tables", "into", "domain"}
    assert ITEMS["columns"]["product_id"]["by"] == "category"
