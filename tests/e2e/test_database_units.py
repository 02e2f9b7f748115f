"""Who is protected by an account of several tables: one kind of unit, tied to each table in one way."""

from contextlib import closing

import duckdb
import pytest

import dpsyn_sql
from dpsyn_sql.errors import AccountError, InputError, ReleaseChanged
from dpsyn_sql.ledger.sqlite import SqliteLedger

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

YES_NO = {"type": "categorical", "categories": [0, 1], "other": False}
FILE = {"tables": {"customers": {"columns": {"a": YES_NO}}, "orders": {"columns": {"b": YES_NO}}}}


@pytest.fixture
def con(tmp_path):
    with duckdb.connect(str(tmp_path / "shop.duckdb")) as con:
        con.execute("CREATE TABLE customers (id INTEGER PRIMARY KEY, a INTEGER)")
        con.execute(
            "CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customers (id), b INTEGER)"
        )
        con.execute("CREATE TABLE items (order_id INTEGER REFERENCES orders (id), c INTEGER)")
        con.execute("INSERT INTO customers SELECT i, i % 2 FROM range(200) AS r (i)")
        con.execute("INSERT INTO orders SELECT i, i % 150, i % 2 FROM range(400) AS r (i)")
        con.execute("INSERT INTO items SELECT i % 350, i % 2 FROM range(600) AS r (i)")
        yield con


def released(con, tmp_path, into="made", **options):
    told = {"unit": "customers.id", "tables": ["customers", "orders"], "domain": FILE, "epsilon": 2.0}
    return dpsyn_sql.release_database(con, into=into, ledger=tmp_path / "ledger", **{**told, **options})


def accounts_of(tmp_path):
    with closing(SqliteLedger(tmp_path / "ledger")) as ledger:
        return [(account.name, account.unit) for account in ledger.overview().accounts]


def test_units_of_one_name_in_two_tables_share_no_account(con, tmp_path):
    released(con, tmp_path)
    with pytest.raises(
        AccountError, match="main.orders'.*by \\(customer_id\\).*by \\(id\\).*Nothing was read"
    ):
        released(
            con, tmp_path, "b", unit="orders.id", tables=["orders", "items"], exclude=["orders.customer_id"],
            domain={"tables": {"orders": {"columns": {"b": YES_NO}}, "items": {"columns": {"c": YES_NO}}}},
        )  # fmt: skip
    with pytest.raises(AccountError, match="by \\(customer_id\\).*by \\(id\\)"):
        dpsyn_sql.release(
            con, "orders", privacy_unit="id", domain={"columns": {"b": YES_NO}}, exclude=["customer_id"],
            ledger=tmp_path / "ledger", into="c",
        )  # fmt: skip
    assert len(accounts_of(tmp_path)) == 1


def test_a_table_that_names_the_units_may_be_released_alone_at_the_same_cost(con, tmp_path):
    con.execute("CREATE VIEW people AS SELECT id AS customer_id, a FROM customers")
    released(
        con, tmp_path, unit="people.customer_id", tables=["people", "orders"],
        domain={"tables": {
            "people": {"key": "customer_id", "columns": {"a": YES_NO}},
            "orders": {"parent": "people", "foreign_key": "customer_id", "columns": {"b": YES_NO}},
        }},
    )  # fmt: skip
    dpsyn_sql.release(
        con, "orders", privacy_unit="customer_id", domain={"columns": {"b": YES_NO}}, exclude=["id"],
        ledger=tmp_path / "ledger", into="alone",
    )  # fmt: skip
    assert [unit for _, unit in accounts_of(tmp_path)] == ["customer_id"]


def test_rows_belong_to_the_unit_in_one_way(tmp_path):
    with duckdb.connect(str(tmp_path / "bank.duckdb")) as con:
        con.execute("CREATE TABLE people (id INTEGER PRIMARY KEY, a INTEGER)")
        con.execute(
            "CREATE TABLE transfers (sender INTEGER REFERENCES people (id), "
            "receiver INTEGER REFERENCES people (id), b INTEGER)"
        )
        con.execute("INSERT INTO people SELECT i, i % 2 FROM range(100) AS r (i)")
        con.execute("INSERT INTO transfers SELECT i % 100, (i * 7) % 100, i % 2 FROM range(300) AS r (i)")

        def by(owner, other):
            columns = {"transfers": {"parent": "people", "foreign_key": owner, "columns": {"b": YES_NO}}}
            file = {"tables": {"people": {"columns": {"a": YES_NO}}, **columns}}
            return released(
                con, tmp_path, f"by_{owner}", unit="people.id", tables=["people", "transfers"], domain=file,
                exclude=[f"transfers.{other}"],
            )  # fmt: skip

        by("sender", "receiver")
        with pytest.raises(AccountError, match="by \\(sender\\).*by \\(receiver\\)"):
            by("receiver", "sender")


def test_a_key_called_row_is_refused(con, tmp_path):
    con.execute("CREATE VIEW people AS SELECT id AS row, a FROM customers")
    file = {
        "tables": {"people": {"key": "row"}, "orders": {"parent": "people", "foreign_key": "customer_id"}}
    }
    with pytest.raises(InputError, match="means single rows"):
        released(con, tmp_path, unit="people.row", tables=["people", "orders"], domain=file)


def test_a_constraint_to_a_table_of_another_schema_ties_nothing(con, tmp_path):
    con.execute("CREATE SCHEMA other; CREATE TABLE other.customers (id INTEGER PRIMARY KEY, a INTEGER)")
    with pytest.raises(InputError, match="refers to"):
        released(con, tmp_path, tables=["other.customers", "orders"], domain=None)


def test_other_public_rows_are_other_settings(con, tmp_path):
    """Stored answers are about codes of groups: with other rows they would be read as something else."""
    con.execute("CREATE TABLE goods (good INTEGER PRIMARY KEY, kind VARCHAR)")
    con.execute("INSERT INTO goods VALUES (1, 'a'), (2, 'b')")
    con.execute("ALTER TABLE items ADD COLUMN good INTEGER; UPDATE items SET good = 1 + c")
    file = {"tables": {
        **FILE["tables"],
        "items": {"columns": {"c": YES_NO, "good": {"references": "goods", "by": ["kind"]}}},
    }}  # fmt: skip
    call = {"tables": ["customers", "orders", "items"], "public_tables": ["goods"], "domain": file}
    released(con, tmp_path, **call)
    assert released(con, tmp_path, replace=True, **call).replayed
    con.execute("UPDATE goods SET kind = CASE WHEN kind = 'a' THEN 'b' ELSE 'a' END")
    with pytest.raises(ReleaseChanged):
        released(con, tmp_path, replace=True, **call)


def test_the_clock_has_no_say_in_questions(con, tmp_path):
    """Rows of customers decide what is asked of orders: a call that ran out of time is completed by any other."""
    file = {"tables": {**FILE["tables"], "items": {"columns": {"c": YES_NO}}}}
    call = {"tables": ["customers", "orders", "items"], "domain": file, "epsilon": 20}
    released(con, tmp_path, time_limit=0.001, **call)
    assert released(con, tmp_path, replace=True, **call).replayed
