"""The form of a database: what it says is what the constraints say, and the package's own reader takes it."""

import duckdb
import pytest
import yaml

import dpsyn_sql
from dpsyn_sql.attributes.database_file import read_database
from dpsyn_sql.errors import InputError
from dpsyn_sql.front.request import Request
from dpsyn_sql.front.tree import opened_tree

CUSTOMERS = "CREATE TABLE customers (id INT PRIMARY KEY, boss INT REFERENCES customers (id), region VARCHAR);"
ORDERS = "CREATE TABLE orders (oid INT PRIMARY KEY, cid INT REFERENCES customers (id), day DATE);"
PRODUCTS = "CREATE TABLE products (pid INT PRIMARY KEY, kind VARCHAR); INSERT INTO products VALUES (1, 'a');"
ITEMS = """
    CREATE TABLE items (oid INT REFERENCES orders (oid), line INT, pid INT REFERENCES products (pid), n INT,
        PRIMARY KEY (oid, line));
"""


def form_of(sql, **options):
    with duckdb.connect() as con:
        con.execute(sql)
        return dpsyn_sql.init(con, **options)


def filled(text):
    """The form with every comment that begins with a quoted name as a declaration."""
    return "\n".join(
        line.replace("# ", "", 1) if line.strip().startswith('# "') else line for line in text.split("\n")
    )


def test_a_shop_is_ready_to_be_released():
    sql = CUSTOMERS + PRODUCTS + ORDERS + ITEMS
    with duckdb.connect() as con:
        con.execute(sql)
        text = dpsyn_sql.init(con, public_tables=["products"])
        request = Request(domain=yaml.safe_load(text))
        with opened_tree(con, request) as (whole, _, tree):
            assert (whole.unit, whole.tables) == ("customers.id", ("customers", "orders", "items"))
            assert whole.public_tables == ("products",)
            assert [(table.name, table.parent, table.most) for table in tree.tree] == [
                ("customers", None, 1),
                ("orders", "customers", 16),
                ("items", "orders", 16),
            ]


def test_tables_that_nobody_owns_are_proposed_as_public():
    text = form_of(CUSTOMERS + PRODUCTS + ORDERS + ITEMS)
    assert 'unit: "customers.id"' in text and '# public_tables: ["products"]' in text
    assert '      # "pid": {references: "products", by: [FILL]}' in text
    assert '      # "boss": names a row of "customers": one at random is written.' in text
    assert list(read_database(yaml.safe_load(text)).tables) == ["customers", "orders", "items"]


def test_a_unit_is_guessed_only_if_one_table_can_be_it():
    bridge = "CREATE TABLE likes (cid INT REFERENCES customers (id), pid INT REFERENCES products (pid));"
    text = form_of(CUSTOMERS + PRODUCTS + bridge)
    assert '# unit: "customers.id"\n# unit: "products.pid"' in text
    assert '\n    # parent: "customers"\n    # foreign_key: "cid"\n    # parent: "products"' in text
    read = read_database(yaml.safe_load(text))
    assert read.unit == "" and set(read.tables) == {"customers", "likes", "products"}


@pytest.mark.parametrize("top", ["region", "physicians"])
def test_the_top_of_a_tree_is_not_taken_for_the_persons(top):
    """Everything hangs on the regions; the persons stand first among the tables that can be the unit."""
    text = form_of(
        f"CREATE TABLE {top} (rid INT PRIMARY KEY, name VARCHAR);"
        f"CREATE TABLE stays (sid INT PRIMARY KEY, rid INT REFERENCES {top} (rid));"
        f"CREATE TABLE patients (pid INT PRIMARY KEY, rid INT REFERENCES {top} (rid));"
        "CREATE TABLE visits (vid INT PRIMARY KEY, pid INT REFERENCES patients (pid), sid INT REFERENCES stays);"
    )
    units = [line for line in text.split("\n") if line.startswith('# unit: "')]
    assert units == ['# unit: "patients.pid"', f'# unit: "{top}.rid"', '# unit: "stays.sid"']
    assert read_database(yaml.safe_load(text)).unit == ""


def test_two_ways_to_the_unit_are_a_question():
    text = form_of(
        CUSTOMERS + "CREATE TABLE pays (payer INT REFERENCES customers, payee INT REFERENCES customers);"
    )
    assert '    # foreign_key: "payer"\n    # parent: "customers"\n    # foreign_key: "payee"' in text
    assert read_database(yaml.safe_load(text)).tables["pays"].parent == ""


def test_without_constraints_all_is_asked():
    read = read_database(yaml.safe_load(form_of("CREATE TABLE a (x INT); CREATE TABLE b (y INT);")))
    assert read.unit == "" and list(read.tables) == ["a", "b"]
    assert all(table.key == () for table in read.tables.values())


def test_names_cannot_leave_their_line():
    sql = """
        CREATE TABLE "a: b" ("k\n# x" INT PRIMARY KEY, "no: 1" INT);
        CREATE TABLE "c""d" ("up" INT REFERENCES "a: b" ("k\n# x"), "é" VARCHAR);
    """
    with duckdb.connect() as con:
        con.execute(sql)
        text = dpsyn_sql.init(con)
        with opened_tree(con, Request(domain=yaml.safe_load(text))) as (_, _, tree):
            assert [table.name for table in tree.tree] == ["a: b", 'c"d']
            assert tree.tree.root.key == ("k\n# x",)


def test_the_forms_of_columns_are_those_of_a_domain_file():
    text = form_of(CUSTOMERS + ORDERS).replace("FILL", "2020-01-01")
    columns = (
        read_database(
            yaml.safe_load(
                filled(text)
                .replace('"id": of the key', '# "')
                .replace('"boss": n', '# "')
                .replace('"oid": of the key', '# "')
                .replace('"cid": n', '# "')
            )
        )
        .tables["orders"]
        .domain.columns
    )
    assert list(columns) == ["day"] and columns["day"].type == "temporal"


def test_a_file_and_no_tables(tmp_path):
    with duckdb.connect(tmp_path / "s.duckdb") as con:
        con.execute(CUSTOMERS + ORDERS)
    assert 'unit: "customers.id"' in dpsyn_sql.init(tmp_path / "s.duckdb")
    assert 'unit: "customers.id"' in dpsyn_sql.init(str(tmp_path / "s.duckdb"))
    with duckdb.connect() as con, pytest.raises(InputError, match="no private tables"):
        dpsyn_sql.init(con)
