"""A DuckDB file as SOURCE: which options there are, and what is told."""

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
    """What the functions of the package are called with."""
    calls = []

    def told(con, request):
        calls.append((con, request))
        raise InputError("far enough")

    for name in ("release", "plan"):
        monkeypatch.setattr(dpsyn_sql, name, told, raising=False)
    return calls


@pytest.mark.parametrize("command", ["release", "plan"])
@pytest.mark.parametrize("source", ["shop.duckdb", "shop.dat"])
def test_the_options_are_those_of_a_database(folder, asked, command, source):
    options = (
        "--unit customers.customer_id --table customers --table orders --public-table products -o copy -e 0.5 "
        "--delta 0 --most orders=8 --most a=b=9 --domain d.yml --units 7 --exclude orders.note --constraints "
        "--no-discover --version 2 --account staff --replace"
    )
    result = run(command, source, *options.split())
    assert result.exit_code == 2 and "far enough" in result.output
    ((con, request),) = asked
    assert con.name == source
    assert request == Request(
        unit="customers.customer_id",
        source=["customers", "orders"],
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
    (folder / "r.yml").write_text("unit: customers.customer_id\nmost: {orders: 4, items: 2}\nepsilon: 3\n")
    run("release", "shop.duckdb", "--request", "r.yml", "--most", "orders=8", "-e", "2")
    ((_, request),) = asked
    assert request.most == {"orders": 8, "items": 2} and request.epsilon == "2"
    assert request.unit == "customers.customer_id"


def test_a_table_of_a_database_is_one_table(folder, asked):
    """Also one whose name ends like a file."""
    run("release", "s.db", "--database", "shop.duckdb", "--unit", "n")
    run("plan", "customers", "-d", "shop.duckdb")
    assert [request.source for _, request in asked] == ["s.db", "customers"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ("shop.duckdb", "--method", "dpsyn"),
            "--method is not an option here: shop.duckdb is a DuckDB file",
        ),
        (("shop.duckdb", "--unit", "n"), "--unit is not an option here"),
        (("shop.duckdb", "--set", "degree=2"), "--set is not for a database"),
        (("shop.duckdb", "--most", "orders"), "write orders=16, each table only once"),
        (("shop.duckdb", "--most", "orders=x"), "write orders=16, each table only once"),
        (("shop.duckdb", "--most", "o=1", "--most", "o=2"), "write orders=16, each table only once"),
        (("none.duckdb",), "There is no file none.duckdb"),
        (("t.parquet", "--unit", "a.b"), "--unit is not an option here: t.parquet is one table"),
        (
            ("customers", "-d", "shop.duckdb", "--table", "a"),
            "--table is not an option here: customers is one",
        ),
    ],
)
@pytest.mark.parametrize("command", ["release", "plan"])
def test_options_of_the_other_kind_are_refused(folder, asked, command, arguments, words):
    result = run(command, *arguments)
    assert (result.exit_code, asked) == (2, []) and words in result.output, result.output


def test_every_option_is_explained_by_both_kinds_of_requests():
    text = " ".join(run("release", "--help").output.split())
    assert (
        "Of a database: the key of the table whose rows are protected, such as customers.customer_id." in text
    )
    assert "Of a database: schema, DuckDB file" in text and "Of a database: YAML file" in text
    assert "Of a database: privacy" not in text  # the same words for both
