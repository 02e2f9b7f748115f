"""The file of a database: what it may say, and one clear fault for everything else."""

import json
from pathlib import Path

import pytest
import yaml

from dpsyn_sql.attributes.database_file import StatedReference, database_schema, read_database
from dpsyn_sql.errors import DomainError

ROOT = Path(__file__).resolve().parents[3]
SHOP = """
unit: customers.customer_id
public_tables: [products]
tables:
  customers: {key: customer_id, columns: {age: {type: numeric, lower: 0, upper: 99}}}
  orders: {key: order_id, parent: customers, foreign_key: customer_id, most: 16, order: order_date, columns: {}}
  items:
    key: [order_id, line]
    parent: orders
    foreign_key: order_id
    most: 32
    columns:
      product_id: {references: products, by: [category]}
      size: {references: sizes, columns: [size, system]}
      price: {type: numeric, lower: 0, upper: 9}
    never: ["price > 8"]
  notes:
"""


def test_all_that_it_may_say(tmp_path):
    (tmp_path / "shop.yml").write_text(SHOP)
    file = read_database(tmp_path / "shop.yml")
    assert file == read_database(yaml.safe_load(SHOP)) and file == read_database(str(tmp_path / "shop.yml"))
    assert file.unit == "customers.customer_id" and file.public == {"products": ()}
    assert list(file.tables) == ["customers", "orders", "items", "notes"]
    orders, items, notes = (file.tables[name] for name in ("orders", "items", "notes"))
    told = (orders.key, orders.parent, orders.foreign_key, orders.most, orders.order)
    assert told == (("order_id",), "customers", ("customer_id",), 16, "order_date")
    assert items.key == ("order_id", "line") and items.most == 32
    assert items.references == {
        "product_id": StatedReference("products", ("category",)),
        "size": StatedReference("sizes", (), ("size", "system")),
    }
    assert list(items.domain.columns) == ["price"] and items.domain.never == ("price > 8",)
    assert (notes.key, notes.parent, notes.most, notes.order, notes.references) == ((), "", None, "", {})


def test_nothing_is_an_empty_file():
    file = read_database(None)
    assert (file.unit, file.tables, file.public) == ("", {}, {})


def test_public_tables_may_have_keys():
    file = read_database(
        {"tables": {}, "public_tables": {"p": {"key": ["a", "b"]}, "q": None, "r": {"key": "c"}}}
    )
    assert file.public == {"p": ("a", "b"), "q": (), "r": ("c",)}


def test_files_that_it_names_lie_beside_it(tmp_path):
    (tmp_path / "ids.csv").write_text("id\na1\na2\nb1\n")
    column = {"type": "taxonomy", "file": "ids.csv", "id": "id", "prefixes": [1]}
    (tmp_path / "shop.yml").write_text(json.dumps({"tables": {"t": {"columns": {"c": column}}}}))
    domain = read_database(tmp_path / "shop.yml").tables["t"].domain
    assert domain.faults == () and domain.columns["c"].ids == ["a1", "a2", "b1"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[]", "must be a mapping with the key tables:"),
        ("tables: 3", "must be a mapping with the key tables:"),
        ("columns: {}", "columns: stand within a table"),
        ("{tables: {}, unit: 3}", "unit: must be text, not 3"),
        ("{tables: {}, units: a.b}", "units: this key is not known"),
        ("{tables: {3: {}}}", "tables.3: must be text, not 3"),
        ("{tables: {a: 3}}", "tables.a: must be a mapping, not 3"),
        ("{tables: {a: {keys: b}}}", "tables.a.keys: this key is not known"),
        ("{tables: {a: {key: 3}}}", "tables.a.key: must be text, not 3"),
        ("{tables: {a: {key: []}}}", "tables.a.key"),
        ("{tables: {a: {key: [b, 3]}}}", "tables.a.key"),
        ("{tables: {a: {parent: [b]}}}", "tables.a.parent: must be text"),
        ("{tables: {a: {most: 0}}}", "tables.a.most: must be greater than or equal to 1, not 0"),
        ("{tables: {a: {most: 1048577}}}", "tables.a.most: must be less than or equal to 1048576"),
        ("{tables: {a: {most: 1.5}}}", "tables.a.most: must be a whole number, not 1.5"),
        ("{tables: {a: {most: true}}}", "tables.a.most: must be a whole number, not True"),
        ("{tables: {a: {order: 3}}}", "tables.a.order: must be text, not 3"),
        (
            "{tables: {a: {order: no}}}",
            "tables.a.order: must be text, not False: YAML reads the words no, off, yes and on as false and true. "
            "Write the name in quotes: order: 'no'",
        ),
        ("{tables: {a: {key: [b, on]}}}", "false and true. Write the name in quotes: 'yes'"),
        ("{tables: {no: {}}}", "must be text, not False: YAML reads the words"),
        ("{tables: {a: {columns: [b]}}}", "'a': columns: must be a mapping of column names to declarations"),
        (
            "{tables: {a: {columns: {b: {references: 3}}}}}",
            "tables.a.columns.b.references: must be text, not 3",
        ),
        (
            "{tables: {a: {columns: {b: {references: c, type: key}}}}}",
            "tables.a.columns.b.type: this key is not known",
        ),
        (
            "{tables: {a: {columns: {b: {references: c, by: 3}}}}}",
            "tables.a.columns.b.by: must be text, not 3",
        ),
        ("{tables: {}, public_tables: x}", "public_tables: must be a list, not 'x'"),
        ("{tables: {}, public_tables: {p: {keys: a}}}", "public_tables.p.keys: this key is not known"),
    ],
)
def test_each_fault_is_named(text, words):
    with pytest.raises(DomainError) as caught:
        read_database(yaml.safe_load(text))
    assert words in str(caught.value)


def test_all_faults_at_once():
    with pytest.raises(DomainError) as caught:
        read_database(yaml.safe_load("{tables: {a: {most: 0, x: 1}, b: {key: 3}}}"))
    assert len(caught.value.faults) == 3


def test_faults_of_columns_wait_for_the_table():
    domain = read_database({"tables": {"a": {"columns": {"b": {"type": "nothing"}}}}}).tables["a"].domain
    assert domain.columns == {"b": None} and "write type:" in domain.faults[0]


@pytest.mark.parametrize("name", ["there is no such file", "not valid YAML"])
def test_what_is_no_file_is_refused(tmp_path, name):
    if name == "not valid YAML":
        (tmp_path / "f.yml").write_text("a: [")
    with pytest.raises(DomainError, match=name):
        read_database(tmp_path / "f.yml")


def test_the_published_schema_is_current():
    """Write it again with: python -c "import json; from dpsyn_sql.attributes.database_file import database_schema;
    print(json.dumps(database_schema(), indent=2))" > docs/database.schema.json"""
    assert json.loads((ROOT / "docs/database.schema.json").read_text()) == database_schema()
