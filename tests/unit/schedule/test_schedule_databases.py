"""Databases of tables in a schedule: which keys they take, their requests, and what is in their way."""

from datetime import datetime
from pathlib import Path

import pytest
from support.schedules import faults_of

from dpsyn_sql.front.request import Request
from dpsyn_sql.schedule.previews import participation
from dpsyn_sql.schedule.records import Records, gone

GOOD = """accounts: {people: {limit: {epsilon: 4}}}
sources:
  shop: {database: shop.duckdb, tables: [customers, orders], public_tables: [products]}
releases:
  all:
    source: shop
    output: all_synthetic
    cadence: once
    unit: customers.customer_id
    most: {orders: 8}
    epsilon: 2
"""
MONTHLY = """ledger: l
sources:
  shop: {database: "dumps/{period}.duckdb", tables: [customers, orders], account: people}
releases:
  all: {source: shop, output: "{release}_{period}/", cadence: month, start: 2026-01-01, end: 2026-03-01}
"""
NOW = datetime(2026, 6, 1)


def test_an_entry_is_the_request_of_a_database(read, tmp_path):
    schedule = read(GOOD)
    (item,) = schedule.items(NOW)
    assert schedule.request(item) == Request(
        unit="customers.customer_id",
        source=("customers", "orders"),
        public_tables=("products",),
        into="all_synthetic",
        epsilon=2,
        most={"orders": 8},
        name="all",
        version="once",
        account="people",
        ledger=tmp_path / "shop.duckdb.dpsyn-ledger",
    )
    assert item.releases.con(item.period) == tmp_path / "shop.duckdb"
    assert participation(item.releases, Records()) == ""


def test_a_period_can_be_a_database_of_its_own(read, tmp_path):
    schedule = read(MONTHLY)
    items = schedule.items(NOW)
    assert [item.releases.con(item.period).name for item in items] == ["2026-01.duckdb", "2026-02.duckdb"]
    assert schedule.request(items[1]).into == tmp_path / "all_2026-02"
    assert participation(items[0].releases, Records()).startswith(
        "2 windows, a person can be in all of them: 2 x "
    )


def test_an_output_stands_if_all_its_tables_do(read, tmp_path):
    import duckdb

    schedule = read(GOOD)
    (item,) = schedule.items(NOW)
    with duckdb.connect(tmp_path / "shop.duckdb") as con:
        con.execute("CREATE SCHEMA all_synthetic; CREATE TABLE all_synthetic.customers (a INT)")
    assert gone(schedule, [item]) == [item]
    with duckdb.connect(tmp_path / "shop.duckdb") as con:
        con.execute('CREATE TABLE all_synthetic."ORDERS" (a INT)')
    assert gone(schedule, [item]) == []
    monthly = read(MONTHLY)
    first, second = monthly.items(NOW)
    Path(tmp_path / "all_2026-02").mkdir()
    assert gone(monthly, [first, second]) == [first]


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("unit: customers.customer_id", "unit: row", 9, "unit: 'row' means single rows, which is for one"),
        ("epsilon: 2", "epsilon: 2\n    method: dpsyn", 12, "method: is for one table"),
        ("epsilon: 2", "epsilon: 2\n    weights: false", 12, "weights: is for one table"),
        ("epsilon: 2", "epsilon: 2\n    order: day", 12, "order: is for one table"),
        ("epsilon: 2", "epsilon: 2\n    workload: {a: 2}", 12, "workload: is for one table"),
        ("{orders: 8}", "8", 10, "most: 8 does not say of which table"),
        ("tables: [customers, orders]", "table: orders", 10, "by the names of tables is for several"),
        ("tables: [customers, orders]", "tables: [customers], table: t", 3, "write one of path:"),
        ("tables: [customers, orders]", "tables: [customers], window: at", 3, "window: has no meaning"),
        (
            "tables: [customers, orders]",
            "tables: [customers], trust_query: true",
            3,
            "trust_query: is for one",
        ),
        ("database: shop.duckdb, ", "", 3, "database: is missing, the DuckDB file that has the tables"),
        ("{orders: 8}", "{orders: 0}", 10, "most: "),
        ("{orders: 8}", "{orders: many}", 10, "must be a valid integer"),
        ("all_synthetic", "shop.all_synthetic.x", 7, "is no name of a schema"),
        ("all_synthetic", "all.parquet", 7, "a schema, a DuckDB file, or a folder"),
        ("shop.duckdb,", "'{colour}.duckdb',", 3, "{colour} is not known here"),
        ("shop.duckdb,", "'{period}.duckdb',", 8, "{period} in database: of the source needs periods"),
        ("once", "month\n    start: 2026-01-01", 6, "Write {period} in its database:"),
        ("epsilon: 2", "epsilon: 9", 1, "below one release"),
    ],
)
def test_one_fault(read, old, new, line, words):
    assert old in GOOD
    found = faults_of(read, GOOD.replace(old, new))
    assert any(fault.startswith(f"{line}:") and words in fault for fault in found), found


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("account: people", "window: at", "write account:. Each file would have an account of its own"),
        ("cadence: month", "cumulative: true, cadence: month", "cumulative: needs window:"),
        ("cadence: month", "windows_per_unit: 2, cadence: month", "windows_per_unit: needs window:"),
        ("ledger: l\n", "", "has no default. Write ledger:"),
        (
            "cadence: month, start: 2026-01-01, end: 2026-03-01",
            "partition_by: region, partitions: [a, b]",
            "partition_by: has no meaning with tables:",
        ),
        ("{release}_{period}/", "all/", "needs {period}"),
    ],
)
def test_one_fault_of_databases_by_period(read, old, new, words):
    assert old in MONTHLY
    found = faults_of(read, MONTHLY.replace(old, new))
    assert any(words in fault for fault in found), found


@pytest.mark.parametrize(
    ("output", "source"),
    [
        ("made", "{database: shop.duckdb, table: made.orders}"),
        ("made", "{database: shop.duckdb, query: select * from shop.MADE.orders}"),
        ("made", "{database: shop.duckdb, tables: [made.customers, made.orders]}"),
        ("made.duckdb", "{database: made.duckdb, table: orders}"),
        ("out/", "{path: out/orders.parquet}"),
        ("out/", '{path: "out/*.parquet"}'),
    ],
)
def test_what_a_database_was_released_to_is_no_source(read, output, source):
    more = "  fed: {source: fed, output: fed.parquet, cadence: once}\n"
    if "tables:" in source:
        more = "  fed: {source: fed, output: fed/, cadence: once}\n"
    text = GOOD.replace("all_synthetic", output).replace("releases:", f"  fed: {source}\nreleases:")
    found = faults_of(
        read, "ledger: l\n" + text.replace("accounts: {people: {limit: {epsilon: 4}}}", "") + more
    )
    assert any("its source is the output of 'all'" in fault for fault in found), found


def test_other_schemas_and_files_are_sources(read):
    more = "  fed: {source: fed, output: fed.parquet, cadence: once}\n"
    for source in (
        "{database: shop.duckdb, table: orders}",
        "{database: other.duckdb, table: all_synthetic.x}",
    ):
        text = "ledger: l\n" + GOOD.replace("releases:", f"  fed: {source}\nreleases:") + more
        assert len(read(text.replace("accounts: {people: {limit: {epsilon: 4}}}", "")).releases) == 2


def test_two_outputs_of_one_schema_and_two_units_of_one_account(read):
    again = "  again: {source: shop, output: ALL_SYNTHETIC, cadence: once, unit: customers.customer_id}\n"
    (found,) = faults_of(read, GOOD + again)
    assert "'all' has the same output" in found
    single = "  one: {source: one, output: one, cadence: once, unit: PLACE}\n"
    head, tail = GOOD.split("releases:")
    text = f"{head}  one: {{database: shop.duckdb, table: orders}}\nreleases:{tail}{single}"
    assert len(read(text.replace("PLACE", "customer_id")).releases) == 2
    (found,) = faults_of(read, text.replace("PLACE", "row"))
    assert "protects 'customer_id' for 'all'; 'row' needs another account" in found
