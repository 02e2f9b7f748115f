"""A DuckDB file as SOURCE: its tables are the source, with the options of any release."""

import duckdb
import pytest
from support.commands import run

import dpsyn_sql
from dpsyn_sql.errors import InputError
from dpsyn_sql.front.request import Request


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("shop.duckdb", "shop.dat"):
        with duckdb.connect(tmp_path / name) as con:
            con.execute("CREATE TABLE customers (customer_id INT PRIMARY KEY, n INT)")
            con.execute("CREATE SCHEMA s; CREATE TABLE s.db (n INT)")
    return tmp_path


@pytest.fixture
def asked(monkeypatch):
    """What the functions of the package are called with, where the request is in order."""
    calls = []

    def told(con, request):
        request.check()
        calls.append((con, request))
        raise InputError("far enough")

    for name in ("release", "plan"):
        monkeypatch.setattr(dpsyn_sql, name, told, raising=False)
    return calls


@pytest.mark.parametrize("command", ["release", "plan"])
@pytest.mark.parametrize("source", ["shop.duckdb", "shop.dat"])
def test_the_options_are_those_of_a_release(folder, asked, command, source):
    options = (
        "--unit customers.customer_id --table customers --table orders --public-table products -o copy -e 0.5 "
        "--delta 0 --most orders=8 --most a=b=9 --domain d.yml --rows 7 --exclude orders.note --constraints "
        "--no-discover --version 2 --account staff --replace"
    )
    result = run(command, source, *options.split())
    assert result.exit_code == 2 and "far enough" in result.output
    ((con, request),) = asked
    assert con.name == source
    assert request == Request(
        unit="customers.customer_id",
        source=("customers", "orders"),
        public_tables=["products"],
        into="copy",
        epsilon="0.5",
        delta="0",
        most={"orders": 8, "a=b": 9},
        domain=request.domain,
        rows=7,
        exclude=["orders.note"],
        constraints=True,
        discover=False,
        version="2",
        account="staff",
        replace=True,
    )
    assert str(request.domain) == "d.yml"


def test_a_file_of_options_and_options_beside_it(folder, asked):
    tables = "source: [customers, orders, items]\n"
    text = "unit: customers.customer_id\nmost: {orders: 4, items: 2}\nepsilon: 3\n"
    (folder / "r.yml").write_text(tables + text)
    run("release", "shop.duckdb", "--request", "r.yml", "--most", "orders=8", "-e", "2")
    ((_, request),) = asked
    assert request.tables == ("customers", "orders", "items")
    assert request.most == {"orders": 8, "items": 2} and request.epsilon == "2"
    assert request.unit == "customers.customer_id"


def test_tables_of_the_command_come_before_those_of_a_file(folder, asked):
    (folder / "r.yml").write_text("source: [customers, items]\ndomain: d.yml\n")
    run("release", "shop.duckdb", "--request", "r.yml", "--table", "customers", "--table", "orders")
    run("plan", "shop.duckdb", "--domain", "d.yml")
    assert [request.tables for _, request in asked] == [("customers", "orders"), ()]


def test_most_is_one_number_of_one_table(folder, asked):
    run("release", "customers", "-d", "shop.duckdb", "--unit", "n", "--most", "5", "--no-weights")
    run("release", "shop.duckdb", "--table", "customers", "--unit", "customers.n", "--most", "customers=5")
    assert [request.most for _, request in asked] == [5, {"customers": 5}]
    assert [request.weights for _, request in asked] == [False, True]


def test_a_table_of_a_database_is_one_table(folder, asked):
    """Also one whose name ends like a file."""
    run("release", "s.db", "--database", "shop.duckdb", "--unit", "n")
    run("plan", "customers", "-d", "shop.duckdb")
    assert [request.source for _, request in asked] == ["s.db", "customers"]


BOTH = ("shop.duckdb", "--table", "customers", "--table", "orders")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            (*BOTH, "--method", "dpsyn"),
            "--method is for one table, and this release is of tables that keys tie",
        ),
        ((*BOTH, "--no-weights"), "--weights is for one table"),
        ((*BOTH, "--order", "day"), "It stands in the file of the tables (--domain), table by table"),
        ((*BOTH, "--workload", "n"), "--workload is for one table"),
        ((*BOTH, "--most", "16"), "--most 16 does not say of which table"),
        ((*BOTH, "--most", "orders=0"), "is out of range"),
        ((*BOTH, "--set", "degree=2"), "--set is for one table"),
        (("shop.duckdb", "--domain", "d.yml", "--set", "degree=2"), "--set is for one table"),
        (("shop.duckdb", "--unit", "n"), "no table is named: give --table for each table to release"),
        (("shop.dat", "--unit", "n"), "shop.dat is a DuckDB file, and no table is named"),
        ((*BOTH, "--most", "orders"), "write 16 once, or orders=16 for each of several tables"),
        ((*BOTH, "--most", "orders=x"), "write 16 once, or orders=16 for each of several tables"),
        ((*BOTH, "--most", "orders=-1"), "is out of range"),
        ((*BOTH, "--most", "o=1", "--most", "o=2"), "--most o stands twice: give it once"),
        (
            ("t.parquet", "--most", "5", "--most", "6"),
            "write 16 once, or orders=16 for each of several tables",
        ),
        (("none.duckdb",), "There is no file none.duckdb"),
        (("t.parquet", "--unit", "a", "--most", "t=3"), "is for several tables: give one whole number"),
        (("t.parquet", "--constraints"), "--constraints is for several tables"),
        (
            ("customers", "-d", "shop.duckdb", "--table", "a"),
            "--table is not an option here: customers is one",
        ),
        (("t.parquet", "--table", "a"), "--table is not an option here: t.parquet is one table"),
    ],
)
@pytest.mark.parametrize("command", ["release", "plan"])
def test_options_of_the_other_kind_are_refused(folder, asked, command, arguments, words):
    result = run(command, *arguments)
    assert (result.exit_code, asked) == (2, []) and words in result.output, result.output


@pytest.mark.parametrize("command", ["release", "plan"])
def test_a_key_of_another_table_is_no_column_of_one_table(folder, command):
    result = run(command, "customers", "-d", "shop.duckdb", "--unit", "orders.customer_id")
    assert result.exit_code == 2 and "orders.customer_id" in result.output
    assert "is not a column of the source" in result.output, result.output


def test_every_option_is_explained_for_one_table_and_for_several():
    text = " ".join(run("release", "--help").output.split())
    assert "of several tables the key of one of them, such as customers.customer_id." in text
    assert "Of several tables a schema, a DuckDB file, or a folder of Parquet files." in text
    for option in ("--unit", "--most", "--table", "--public-table", "--constraints", "--weights"):
        assert text.count(f" {option} ") >= 1, option
    assert not [
        gone
        for gone in ("--units", "--together", "--privacy-unit", "--window", "--series")
        if f"{gone} " in text
    ]
