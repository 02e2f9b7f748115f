"""From a database and a request to the tree of tables: each case is accepted as it should, or is one clear error."""

import duckdb
import pytest

from dpsyn_sql.attributes.roles import ForeignKey, Key, PartOfKey, PublicKey, RandomKey
from dpsyn_sql.errors import DomainError, InputError, SourceError
from dpsyn_sql.front.plan import plan
from dpsyn_sql.front.request import Request
from dpsyn_sql.front.tree import opened_tree
from dpsyn_sql.planning.tree import Reference

CUSTOMERS = "CREATE TABLE customers (id INT PRIMARY KEY, region VARCHAR);"
ORDERS = "CREATE TABLE orders (oid INT PRIMARY KEY, cid INT REFERENCES customers (id), month INT);"
ITEMS = "CREATE TABLE items (oid INT REFERENCES orders (oid), line INT, price INT, PRIMARY KEY (oid, line));"
SHOP = CUSTOMERS + ORDERS + ITEMS
PRODUCTS = """
    CREATE TABLE products (pid INT PRIMARY KEY, kind VARCHAR);
    INSERT INTO products VALUES (1, 'a'), (2, 'b'), (3, 'a'), (4, NULL);
"""
VISITS = """
    CREATE TABLE people (region VARCHAR, id INT, PRIMARY KEY (region, id));
    CREATE TABLE visits (region VARCHAR, id INT, "when" INT, nr INT, PRIMARY KEY (region, id, "when", nr),
        FOREIGN KEY (region, id) REFERENCES people (region, id));
    CREATE TABLE notes (region VARCHAR, id INT, "when" INT, nr INT,
        FOREIGN KEY (region, id, "when", nr) REFERENCES visits (region, id, "when", nr));
"""
YEAR = {"type": "numeric", "lower": 2010, "upper": 2017}
BOTH = ("customers", "orders")


def tree_of(sql, tables=BOTH, *, unit="customers.id", stated=None, public=(), **options):
    """The tree of a database in memory, and the rows of its relations.

    ``stated``: the ``tables:`` of its file. ``public``: names of public tables, or their keys by their names.
    """
    with duckdb.connect() as con:
        con.execute(sql)
        keys = {"public_tables": public} if isinstance(public, dict) else {}
        domain = {"tables": stated or {}, **keys}
        request = Request(unit=unit, source=tables, public_tables=tuple(public), domain=domain, **options)
        with opened_tree(con, request) as (_, session, tree):
            rows = {
                one.name: session.engine.fetch(f"FROM {one.relation.sql}", step="test") for one in tree.tree
            }
            return tree, rows


def refused(words, sql, *args, error=InputError, **options):
    with pytest.raises(error) as caught:
        tree_of(sql, *args, **options)
    for word in (words,) if isinstance(words, str) else words:
        assert word in str(caught.value)


def roles(tree, table):
    return {role.name: role for role in tree.shapes[table].roles}


def measured(tree, table):
    return [item.name for item in tree.shapes[table].measured]


# -- what is accepted -------------------------------------------------------------------------------------


def test_a_chain_by_its_constraints():
    tree, _ = tree_of(SHOP, ["items", "customers", "orders"], most={"items": 32})
    told = [(one.name, one.key, one.parent, one.foreign_key, one.most) for one in tree.tree]
    assert told == [
        ("customers", ("id",), None, (), 1),
        ("orders", ("oid",), "customers", ("cid",), 16),
        ("items", ("oid", "line"), "orders", ("oid",), 32),
    ]
    assert tree.tree.rows_per_unit("items") == 16 * 32
    assert roles(tree, "customers") == {"id": Key("id", "INTEGER", "key of the table")}
    assert roles(tree, "orders")["cid"] == ForeignKey("cid", "INTEGER", "customers", "id")
    assert roles(tree, "items") == {
        "oid": ForeignKey("oid", "INTEGER", "orders", "oid"),
        "line": PartOfKey("line", "INTEGER"),
    }
    assert measured(tree, "items") == ["price"]
    assert tree.shapes["items"].order == ("oid", "line", "price")
    assert tree.lookups == {"customers": {}, "orders": {}, "items": {}}


def test_the_unit_can_be_a_table_and_names_may_be_spelled_otherwise():
    for unit in ("customers", "CUSTOMERS.ID", "main.customers.id", 'customers."id"'):
        tree, _ = tree_of(SHOP, ["main.customers", "ORDERS"], unit=unit)
        assert [table.name for table in tree.tree] == ["customers", "orders"]


def test_links_of_the_file_where_the_catalog_has_none():
    sql = "CREATE TABLE customers (id BIGINT, a INT); CREATE TABLE orders (cid INT, b INT);"
    stated = {"orders": {"parent": "customers", "foreign_key": "cid", "most": 4}}
    tree, _ = tree_of(sql, stated=stated)
    assert tree.tree["orders"].foreign_key == ("cid",) and tree.tree["orders"].key == ()
    assert tree.tree["orders"].most == 4
    assert tree_of(sql, stated=stated, most={"orders": 5})[0].tree["orders"].most == 5


def test_a_composite_key_in_another_order():
    sql = """
        CREATE TABLE people (country VARCHAR, number INT, a INT, PRIMARY KEY (number, country));
        CREATE TABLE visits (c VARCHAR, n INT, b INT, FOREIGN KEY (n, c) REFERENCES people (number, country));
    """
    tree, _ = tree_of(sql, ["people", "visits"], unit="people")
    assert tree.tree["visits"].foreign_key == ("n", "c") and tree.tree.root.key == ("number", "country")
    assert roles(tree, "visits") == {
        "c": ForeignKey("c", "VARCHAR", "people", "country"),
        "n": ForeignKey("n", "INTEGER", "people", "number"),
    }


def test_parts_of_a_key_that_have_a_domain_are_measured():
    stated = {
        "people": {"columns": {"region": {"type": "categorical", "categories": ["n", "s"]}}},
        "visits": {"order": "when", "columns": {"when": YEAR}},
    }
    three = ["people", "visits", "notes"]
    tree, _ = tree_of(VISITS, three, unit="people", stated=stated, discover=False)
    assert [(one.key, set(one.measured_key)) for one in tree.tree] == [
        (("region", "id"), {"region"}),
        (("region", "id", "when", "nr"), {"when"}),
        ((), set()),
    ]
    assert measured(tree, "people") == ["region"] and measured(tree, "visits") == ["when"]
    assert roles(tree, "people") == {"id": Key("id", "INTEGER", "key of the table")}
    assert roles(tree, "visits")["nr"] == PartOfKey("nr", "INTEGER") and "when" not in roles(tree, "visits")
    assert roles(tree, "notes")["when"] == ForeignKey("when", "INTEGER", "visits", "when")
    assert tree.shapes["visits"].order == ("region", "id", "when", "nr") and tree.orders == {"visits": "when"}
    for table in tree.tree.tables[:2]:
        assert tree.tree.stated_key(table.name, tree.shapes[table.name]) == table.key


def test_rows_without_a_key_are_left_out_so_a_measured_part_of_it_has_no_null():
    sql = """
        CREATE TABLE people (id INT); CREATE TABLE visits (id INT, "when" INT, nr INT);
        CREATE TABLE notes (id INT, "when" INT, nr INT)
    """
    key, when = ["id", "when", "nr"], {**YEAR, "nullable": True}
    stated = {
        "people": {"key": "id"},
        "visits": {"key": key, "parent": "people", "foreign_key": "id", "columns": {"when": when}},
        "notes": {"parent": "visits", "foreign_key": key},
    }
    for tables, nullable in ((["people", "visits", "notes"], False), (["people", "visits"], True)):
        tree, _ = tree_of(sql, tables, unit="people.id", stated=stated, discover=False)
        (one,) = tree.shapes["visits"].measured
        assert one.nullable is nullable and ("when" in tree.shapes["visits"].not_null) is not nullable
        known = tree.tree.stated_key("visits", tree.shapes["visits"])
        assert known == (() if nullable else tuple(key))  # a PRIMARY KEY has no NULL


def test_a_key_with_a_reference_that_may_be_null_is_none_of_the_copy():
    sql = CUSTOMERS + PRODUCTS + "CREATE TABLE likes (cid INT REFERENCES customers (id), nr INT, pid INT {});"
    stated = {"likes": {"key": ["nr", "pid"], "columns": {"pid": {"references": "products"}}}}
    for strict, key in (("", ()), ("NOT NULL", ("nr", "pid"))):
        tree, _ = tree_of(sql.format(strict), ["customers", "likes"], stated=stated, public=["products"])
        assert tree.tree.stated_key("likes", tree.shapes["likes"]) == key


def test_a_key_that_is_measured_whole_is_none_of_the_copy():
    for entry in (YEAR, {"type": "discover"}, {"type": "constant", "value": 2020}):
        stated = {"visits": {"columns": {"when": entry, "nr": YEAR}}}
        tree, _ = tree_of(VISITS, ["people", "visits"], unit="people", stated=stated)
        assert set(roles(tree, "visits")) - {"when"} == {"region", "id"}
        assert tree.tree.stated_key("visits", tree.shapes["visits"]) == ()
    one = {"visits": {"columns": {"nr": {"type": "key"}}}}
    assert "nr" in roles(tree_of(VISITS, ["people", "visits"], unit="people", stated=one)[0], "visits")


def test_several_children_and_a_table_with_one_row_per_parent():
    sql = (
        CUSTOMERS + ORDERS + "CREATE TABLE cards (id INT PRIMARY KEY REFERENCES customers (id), limits INT);"
    )
    tree, _ = tree_of(sql, ["customers", "orders", "cards"], most={"cards": 7})
    assert tree.tree["cards"].most == 1
    assert [one.name for one in tree.tree.children("customers")] == ["orders", "cards"]


def test_a_public_table_by_group_of_its_rows():
    sql = (
        CUSTOMERS
        + PRODUCTS
        + """
        CREATE TABLE likes (cid INT REFERENCES customers (id), pid INT REFERENCES products (pid), stars INT);
        INSERT INTO customers VALUES (1, 'x');
        INSERT INTO likes VALUES (1, 1, 5), (1, 3, 4), (1, 2, 3), (1, 4, 2), (1, NULL, 1);
    """
    )
    stated = {"likes": {"columns": {"pid": {"references": "products", "by": "kind"}}}}
    tree, rows = tree_of(sql, ["customers", "likes"], stated=stated, public=["products"])
    assert tree.tree["likes"].references == (Reference(("pid",), "products", "public", ("kind",)),)
    assert roles(tree, "likes")["pid"] == PublicKey("pid", "INTEGER", "products", "pid", "pid")
    attribute = tree.shapes["likes"].measured[-1]
    assert (attribute.name, attribute.labels, attribute.nullable) == ("pid", (0, 1, 2), True)
    codes = rows["likes"][attribute.source.strip('"')]
    assert codes.filled(-1).tolist() == [0, 0, 1, 2, -1]
    lookup = tree.lookups["likes"]["pid"]
    assert lookup.texts[0].tolist() == ["1", "3", "2", "4"] and lookup.sizes.tolist() == [2, 1, 1]
    assert lookup.key == ("pid",) and lookup.sql_types == ("INTEGER",)


def test_a_public_row_itself_is_the_group_without_by():
    sql = (
        CUSTOMERS
        + PRODUCTS
        + "CREATE TABLE likes (cid INT REFERENCES customers (id), pid INT REFERENCES products);"
    )
    tree, _ = tree_of(sql, ["customers", "likes"], public=["products"])
    assert tree.lookups["likes"]["pid"].sizes.tolist() == [1] * 4


def test_dangling_references_to_a_public_table_are_null():
    sql = (
        CUSTOMERS
        + PRODUCTS
        + """
        CREATE TABLE likes (cid INT REFERENCES customers (id), pid INT, n INT);
        INSERT INTO customers VALUES (1, 'x');
        INSERT INTO likes VALUES (1, 99, 1), (1, 2, 2);
    """
    )
    stated = {"likes": {"columns": {"pid": {"references": "products"}}}}
    _, rows = tree_of(sql, ["customers", "likes"], stated=stated, public=["products"])
    assert rows["likes"]["code of pid"].filled(-1).tolist() in ([-1, 1], [1, -1])


def test_each_row_comes_once_whatever_the_collation_of_the_columns():
    sql = (
        CUSTOMERS
        + """
        CREATE TABLE codes (code VARCHAR COLLATE NOCASE, kind INT);
        INSERT INTO codes VALUES ('a', 1), ('A', 2), ('b', 3);
        CREATE TABLE uses (cid INT REFERENCES customers (id), code VARCHAR COLLATE NOCASE, n INT);
        INSERT INTO customers VALUES (1, 'x');
        INSERT INTO uses VALUES (1, 'a', 1), (1, 'A', 2), (1, 'B', 3);
    """
    )
    stated = {"uses": {"columns": {"code": {"references": "codes"}}}}
    _, rows = tree_of(sql, ["customers", "uses"], stated=stated, public={"codes": {"key": "code"}})
    found = dict(
        zip(rows["uses"]["n"].tolist(), rows["uses"]["code of code"].filled(-1).tolist(), strict=True)
    )
    assert found == {1: 1, 2: 0, 3: -1}  # by bytes: 'A', 'a', 'b'


def test_a_second_key_to_the_units_names_no_one_and_looks_up_no_one():
    sql = (
        CUSTOMERS
        + """
        CREATE TABLE payments (payer INT, payee INT, amount INT);
        INSERT INTO customers VALUES (1, 'x');
        INSERT INTO payments VALUES (1, 1, 10), (1, 77, 20), (1, NULL, 30);
    """
    )
    stated = {
        "payments": {
            "parent": "customers",
            "foreign_key": "payer",
            "columns": {"payee": {"references": "customers"}},
        }
    }
    tree, rows = tree_of(sql, ["customers", "payments"], stated=stated)
    assert tree.tree["payments"].references == (Reference(("payee",), "customers", "other"),)
    assert roles(tree, "payments")["payee"] == RandomKey(
        "payee", "INTEGER", "customers", "id", "payee", False
    )
    # 77 is nobody: whether it is depends on another unit, so it counts like one that is there
    assert rows["payments"]["code of payee"].filled(-1).tolist() == [1, 1, -1]


def test_a_self_reference_is_whether_there_is_one():
    sql = "CREATE TABLE customers (id INT PRIMARY KEY, boss INT REFERENCES customers (id), a INT);" + ORDERS
    tree, _ = tree_of(sql)
    assert tree.tree.root.references == (Reference(("boss",), "customers", "self"),)
    assert roles(tree, "customers")["boss"] == RandomKey("boss", "INTEGER", "customers", "id", "boss", True)


def test_a_bridge_table_to_a_public_table():
    sql = (
        CUSTOMERS
        + PRODUCTS
        + """
        CREATE TABLE carts (cid INT REFERENCES customers (id), pid INT REFERENCES products (pid),
            PRIMARY KEY (cid, pid));
    """
    )
    tree, _ = tree_of(sql, ["customers", "carts"], public=["products"])
    assert measured(tree, "carts") == ["pid"] and tree.shapes["carts"].order == ("cid", "pid")
    assert type(roles(tree, "carts")["pid"]) is PublicKey


def test_a_reference_in_the_key_of_a_table_with_children_stays_beside_its_code():
    sql = (
        CUSTOMERS
        + PRODUCTS
        + """
        CREATE TABLE carts (cid INT REFERENCES customers (id), pid INT REFERENCES products (pid),
            PRIMARY KEY (cid, pid));
        CREATE TABLE looks (cid INT, pid INT, a INT, FOREIGN KEY (cid, pid) REFERENCES carts (cid, pid));
        INSERT INTO customers VALUES (1, 'x');
        INSERT INTO carts VALUES (1, 3);
    """
    )
    tree, rows = tree_of(sql, ["customers", "carts", "looks"], public=["products"])
    assert rows["carts"]["pid"].tolist() == [3] and rows["carts"]["code of pid"].tolist() == [2]
    assert tree.tree["carts"].key == ("cid", "pid")
    assert tree.tree["looks"].references == ()


def test_a_key_that_follows_from_the_owning_one_is_no_reference():
    sql = (
        CUSTOMERS
        + """
        CREATE TABLE addresses (cid INT REFERENCES customers (id), no INT, zip INT, PRIMARY KEY (cid, no));
        CREATE TABLE orders (cid INT, no INT, n INT, FOREIGN KEY (cid) REFERENCES customers (id),
            FOREIGN KEY (cid, no) REFERENCES addresses (cid, no));
    """
    )
    tables = ["customers", "addresses", "orders"]
    refused(["orders belongs to units in several ways", "parent: customers"], sql, tables)
    tree, _ = tree_of(sql, tables, stated={"orders": {"parent": "addresses"}})
    assert tree.tree["orders"].parent == "addresses" and tree.tree["orders"].references == ()
    stated = {"orders": {"parent": "customers"}}
    refused(["shares 'cid'", "addresses"], sql, tables, stated=stated)


def test_views_are_tables_of_the_tree():
    sql = SHOP + "CREATE VIEW late AS SELECT oid, cid, month + 1 AS next FROM orders WHERE month > 6;"
    stated = {"late": {"key": "oid", "parent": "customers", "foreign_key": "cid"}}
    tree, _ = tree_of(sql, ["customers", "late"], stated=stated)
    assert measured(tree, "late") == ["next"]
    refused(
        "may mix rows",
        sql + "CREATE VIEW sums AS SELECT cid, sum(month) AS s FROM orders GROUP BY cid;",
        ["customers", "sums"],
        stated={"sums": {"parent": "customers", "foreign_key": "cid"}},
        error=SourceError,
    )


def test_twenty_five_tables():
    children = "".join(f"CREATE TABLE t{i} (cid INT REFERENCES customers (id), a INT);" for i in range(24))
    tree, _ = tree_of(CUSTOMERS + children, ["customers", *(f"t{i}" for i in range(24))])
    assert len(tree.tree.tables) == 25


def test_depth_five_with_small_bounds():
    sql, above = CUSTOMERS, "customers (id)"
    for i in range(5):
        sql += f"CREATE TABLE t{i} (k{i} INT PRIMARY KEY, up INT REFERENCES {above}, a INT);"
        above = f"t{i} (k{i})"
    names = ["customers", *(f"t{i}" for i in range(5))]
    assert tree_of(sql, names)[0].tree.rows_per_unit("t4") == 16**5
    refused(["2,097,152 rows in t4", "16 x 16 x 16 x 16 x 32"], sql, names, most={"t4": 512 // 16})


def test_what_only_rows_can_tell_is_no_error():
    sql = """
        CREATE TABLE customers (id INT, a INT); CREATE TABLE orders (cid INT, b INT);
        INSERT INTO customers VALUES (1, 1), (1, 2), (NULL, 3);
        INSERT INTO orders VALUES (1, 1), (9, 2), (NULL, 3);
    """
    tree, _ = tree_of(sql, stated={"orders": {"parent": "customers", "foreign_key": "cid"}})
    assert [table.name for table in tree.tree] == ["customers", "orders"]


def test_empty_tables_and_tables_of_keys_alone():
    sql = "CREATE TABLE customers (id INT PRIMARY KEY); CREATE TABLE orders (cid INT REFERENCES customers (id));"
    tree, _ = tree_of(sql)
    assert [measured(tree, name) for name in BOTH] == [[], []]
    assert [tree.shapes[name].order for name in BOTH] == [("id",), ("cid",)]


def test_the_domain_of_a_table_is_a_domain_file():
    stated = {
        "customers": {
            "columns": {"region": {"type": "categorical", "categories": ["n", "s"], "other": False}}
        },
        "orders": {
            "columns": {"month": {"type": "numeric", "lower": 1, "upper": 12}, "oid": {"type": "key"}},
            "never": ["month = 13"],
            "order": "MONTH",
        },
    }
    tree, _ = tree_of(SHOP, stated=stated, discover=False)
    assert tree.shapes["customers"].domain.names == ("region",)
    assert tree.orders == {"orders": "month"} and len(tree.shapes["orders"].never) == 1


def test_excluded_columns_are_not_written():
    sql = (
        CUSTOMERS
        + PRODUCTS
        + """
        CREATE TABLE likes (cid INT REFERENCES customers (id), pid INT REFERENCES products (pid), note VARCHAR, n INT);
    """
    )
    tree, _ = tree_of(sql, ["customers", "likes"], exclude=["likes.note", "LIKES.PID"])
    assert tree.shapes["likes"].order == ("cid", "n") and tree.tree["likes"].references == ()


def test_names_with_dots_quotes_and_other_letters():
    sql = """
        CREATE TABLE "a.b" ("k ""1" INT PRIMARY KEY, "straße.nr" INT, "x" INT);
        CREATE TABLE "日本" ("up" INT REFERENCES "a.b" ("k ""1"), "note.x" VARCHAR, "y" INT);
    """
    for unit in ('"a.b"."k ""1"', 'a.b.k "1', '"a.b"'):
        tree, _ = tree_of(sql, ['"a.b"', "日本"], unit=unit, exclude=["日本.note.x", '"a.b"."straße.nr"'])
        assert [table.name for table in tree.tree] == ["a.b", "日本"]
        assert tree.shapes["日本"].order == ("up", "y") and tree.shapes["a.b"].order == ('k "1', "x")


def test_the_call_comes_before_the_file():
    with duckdb.connect() as con:
        con.execute(SHOP + PRODUCTS)
        tables = {"customers": {}, "orders": {"most": 3}, "items": {"most": 5}}
        domain = {"unit": "customers.id", "public_tables": ["products"], "tables": tables}
        with opened_tree(con, Request(domain=domain)) as (request, _, tree):
            assert request.tables == ("customers", "orders", "items") and request.unit == "customers.id"
            assert [table.most for table in tree.tree] == [1, 3, 5]
            assert [table.name for table in tree.tree.public] == ["products"]
        with opened_tree(con, Request(domain=domain, source=BOTH, most={"orders": 9})) as (
            _,
            _,
            tree,
        ):
            assert [(table.name, table.most) for table in tree.tree] == [("customers", 1), ("orders", 9)]


def test_a_database_file_is_read(tmp_path):
    with duckdb.connect(tmp_path / "shop.duckdb") as con:
        con.execute(SHOP)
    request = Request(unit="customers.id", source=BOTH)
    with opened_tree(tmp_path / "shop.duckdb", request) as (_, session, tree):
        assert [table.name for table in tree.tree] == ["customers", "orders"]
        assert len(session.tables) == 2 and session.probe_writing()
        session.release_source()
    with (
        pytest.raises(InputError, match="limits={'memory': 'much'}"),
        opened_tree(
            tmp_path / "shop.duckdb", Request(unit="customers.id", source=BOTH, limits={"memory": "much"})
        ),
    ):
        pass


STAFF = "CREATE TABLE staff (id INT PRIMARY KEY, boss INT REFERENCES staff (id), pay INT);"


@pytest.mark.parametrize(
    "sql, table, options",
    [
        (SHOP, "customers", {}),
        (SHOP, "orders", {"exclude": ["orders.oid"]}),
        (STAFF, "staff", {}),
        (STAFF, "staff", {"exclude": ["staff.boss"]}),
        (ITEMS.replace(" REFERENCES orders (oid)", ""), "items", {"most": {"items": 4}}),
        (ITEMS.replace(" REFERENCES orders (oid)", ""), "items", {"most": 4, "weights": False}),
    ],
)
def test_a_list_of_one_table_is_that_table(sql, table, options):
    """Whether it is named with its schema or not, and in whatever letter case ``most`` names it."""
    column = {"customers": "id", "orders": "cid", "staff": "id", "items": "oid"}[table]
    bare = {name.partition(".")[2] for name in options.get("exclude", ())}
    most = options.get("most", {})
    number = most if isinstance(most, int) else most.get(table)
    with duckdb.connect() as con:
        con.execute(sql)
        alone = plan(con, table, unit=column, **{**options, "exclude": tuple(bare), "most": number})
        for name in (table, f"main.{table}", table.upper()):
            spelled = {name: number} if isinstance(most, dict) and most else most
            listed = {**options, "most": spelled or None}
            assert plan(con, [name], unit=f"{table}.{column}", **listed).verbose() == alone.verbose()
    (only,) = alone.tables
    assert only.source.unit.column == column and not bare.intersection(only.shape.order)
    assert only.source.unit.max_rows == (number or (1 if table in ("customers", "staff") else 16))


@pytest.mark.parametrize(
    "words, options",
    [
        (
            "most= by the names of tables is for several tables: give one whole number for one table",
            {"most": {"oders": 3}},
        ),
        ("most= by the names of tables is for several tables", {"most": {"customers": 3, "orders": 4}}),
        ("most=0 is out of range", {"most": {"customers": 0}}),
        ("most=True is out of range", {"most": {"customers": True}}),
        ("exclude='region': give a list of names", {"exclude": "region"}),
        ("exclude names 'note'", {"exclude": ["note"]}),
        ("exclude names 'mont'", {"exclude": ["customers.mont"]}),
        ("unit='clients.id' is not a column of the source", {"unit": "clients.id"}),
        ("unit='idd' is not a column of the source", {"unit": "customers.idd"}),
        ("There is no table", {"source": ["custmers"]}),
        ("constraints= is for several tables", {"constraints": True}),
        ("source=<list>: give a list of names", {"source": [3]}),
    ],
)
def test_what_is_wrong_with_a_list_of_one_table_is_refused(words, options):
    with duckdb.connect() as con:
        con.execute(SHOP)
        with pytest.raises((InputError, DomainError, SourceError)) as caught:
            plan(con, **{"source": ["customers"], "unit": "customers.id", **options})
    assert words in str(caught.value), str(caught.value)


def test_a_table_with_public_tables_beside_it_is_a_tree_of_one():
    sql = "CREATE TABLE customers (id INT PRIMARY KEY, boss INT REFERENCES customers (id), pid INT, a INT);"
    stated = {"customers": {"columns": {"pid": {"references": "products", "by": "kind"}}}}
    tree, _ = tree_of(sql + PRODUCTS, ["customers"], stated=stated, public=["products"])
    (only,) = tree.tree
    assert (only.name, only.key, only.parent, only.most) == ("customers", ("id",), None, 1)
    assert {one.kind for one in only.references} == {"self", "public"}
    assert tree.shapes["customers"].order == ("id", "boss", "pid", "a")
    assert type(roles(tree, "customers")["pid"]) is PublicKey
    assert type(roles(tree, "customers")["boss"]) is RandomKey


# -- what is refused --------------------------------------------------------------------------------------

LOOSE = "CREATE TABLE loose (a INT);"


@pytest.mark.parametrize(
    "words, sql, options",
    [
        ("unit= is missing", SHOP, {"unit": None}),
        ("names no table of the release", SHOP, {"unit": "clients.id"}),
        (
            ["unit='orders.oid' names no table", "list of tables"],
            SHOP,
            {"unit": "orders.oid", "tables": ["customers", "items"]},
        ),
        ("'idd', which is not a column of customers; did you mean 'id'", SHOP, {"unit": "customers.idd"}),
        (
            ["unit='customers.region' is not the key of customers", "customers.id"],
            SHOP,
            {"unit": "customers.region"},
        ),
        (
            "a public table: units are rows of a private one",
            SHOP + PRODUCTS,
            {"unit": "products.pid", "public": ["products"]},
        ),
        (["No table is named", "['customers', 'orders']", "domain="], SHOP, {"tables": []}),
        ("named twice", SHOP, {"tables": [*BOTH, "Orders"]}),
        ("named twice in the list of tables and public_tables=", SHOP, {"public": ["orders"]}),
        ("give names of tables and views", SHOP, {"tables": [*BOTH, "SELECT 1"]}),
        (["loose reaches no unit", "public_tables="], SHOP + LOOSE, {"tables": [*BOTH, "loose"]}),
        (
            ["items.oid refers to orders", "neither a table to release nor in public_tables="],
            SHOP,
            {"tables": ["customers", "items"]},
        ),
        (
            ["items.oid refers to orders", "exclude=items.oid"],
            CUSTOMERS
            + ORDERS
            + """
            CREATE TABLE items (cid INT REFERENCES customers (id), oid INT REFERENCES orders (oid), a INT);""",
            {"tables": ["customers", "items"]},
        ),
        ("most= names 'oders'", SHOP, {"most": {"oders": 3}}),
        ("most= names customers, whose rows are the units", SHOP, {"most": {"customers": 3}}),
        ("most={'orders': 0}", SHOP, {"most": {"orders": 0}}),
        ("exclude= names 'ordrs.note'", SHOP, {"exclude": ["ordrs.note"]}),
        ("exclude= names 'note'", SHOP, {"exclude": ["note"]}),
        ("orders has no such column", SHOP, {"exclude": ["orders.mont"]}),
        (
            "ties orders to other tables",
            SHOP,
            {"exclude": ["orders.oid"], "tables": ["customers", "orders", "items"]},
        ),
        ("ties customers to other tables", SHOP, {"exclude": ["customers.id"]}),
        ("reaches no unit", SHOP, {"exclude": ["orders.cid"]}),
        ("public_tables= has unknown tables: productz", SHOP, {"public": ["productz"]}),
        ("There is no table", SHOP, {"tables": ["customers", "oders"]}),
        ("names views", SHOP + "CREATE VIEW v AS FROM orders;", {"public": ["v"]}),
    ],
)
def test_names_are_refused(words, sql, options):
    refused(words, sql, error=(InputError, SourceError), **options)


PAYMENTS = (
    CUSTOMERS
    + """
    CREATE TABLE payments (payer INT REFERENCES customers (id), payee INT REFERENCES customers (id), n INT);
"""
)
FREE = "CREATE TABLE customers (id INT, code INT, d DOUBLE, t VARCHAR); CREATE TABLE orders (cid INT, k INT, d DOUBLE);"
LIKES = CUSTOMERS + PRODUCTS + "CREATE TABLE likes (cid INT REFERENCES customers (id), pid INT, n INT);"
UP = {"parent": "customers", "foreign_key": "cid"}


def tables(**stated):
    """Two tables without constraints."""
    return {"stated": {"customers": {}, "orders": UP, **stated}}


def likes(**reference):
    """A reference to a public table, or to another."""
    return {
        "tables": ["customers", "likes"],
        "public": ["products"],
        "stated": {"likes": {"columns": {"pid": {"references": "products", **reference}}}},
    }


@pytest.mark.parametrize(
    "words, sql, options",
    [
        # owners
        (
            ["payments belongs to units in several ways", "'payer -> customers', 'payee -> customers'"],
            PAYMENTS,
            {"tables": ["customers", "payments"]},
        ),
        (
            ["parent: customers", "several foreign keys to it: name foreign_key: too"],
            PAYMENTS,
            {"tables": ["customers", "payments"], "stated": {"payments": {"parent": "customers"}}},
        ),
        ("no foreign key to it", FREE, {"stated": {"orders": {"parent": "customers"}}}),
        ("name parent:", FREE, {"stated": {"orders": {"foreign_key": "cid"}}}),
        ("parent: 'clients', which is no private table", FREE, tables(orders={"parent": "clients"})),
        ("'cidd', which is not a column of orders", FREE, tables(orders={**UP, "foreign_key": "cidd"})),
        (
            "orders cannot be its own parent",
            SHOP,
            {"stated": {"orders": {"parent": "orders", "foreign_key": "month"}}},
        ),
        (
            "orders names itself alone",
            CUSTOMERS + "CREATE TABLE orders (oid INT PRIMARY KEY, before INT REFERENCES orders (oid));",
            {},
        ),
        (
            "customers holds the units, so it has no parent",
            FREE,
            tables(customers={"parent": "orders", "foreign_key": "code"}),
        ),
        (
            ["a reaches no unit", "nor do the tables that it names, 'b'"],
            CUSTOMERS + "CREATE TABLE a (k INT, b INT); CREATE TABLE b (k INT, a INT);",
            {
                "tables": ["customers", "a", "b"],
                "stated": {
                    "a": {"key": "k", "parent": "b", "foreign_key": "b"},
                    "b": {"key": "k", "parent": "a", "foreign_key": "a"},
                },
            },
        ),
        (
            ["a reaches no unit", "nor do the tables that it names, 'b'"],
            CUSTOMERS + "CREATE TABLE a (k INT, b INT); CREATE TABLE b (k INT, a INT);",
            {
                "tables": ["customers", "a", "b"],
                "stated": {
                    "a": {"key": "k", "columns": {"b": {"references": "b"}}},
                    "b": {"key": "k", "columns": {"a": {"references": "a"}}},
                },
            },
        ),
        (
            "The tables go round: customers -> orders -> customers",
            FREE,
            tables(
                customers={"key": "id", "columns": {"code": {"references": "orders"}}},
                orders={**UP, "key": "k"},
            ),
        ),
        (
            ["b reaches no unit", "no foreign key"],
            CUSTOMERS
            + ORDERS
            + "CREATE TABLE b (k INT PRIMARY KEY); CREATE TABLE c (b INT REFERENCES b (k));",
            {"tables": ["customers", "orders", "b", "c"]},
        ),
        # keys
        ("customers has no key, and orders refers to its rows", FREE, {**tables(), "unit": "customers"}),
        (
            "orders has no key, and items refers to its rows",
            FREE + "CREATE TABLE items (k INT, n INT);",
            {
                "tables": ["customers", "orders", "items"],
                "stated": {"orders": UP, "items": {"parent": "orders", "foreign_key": "k"}},
            },
        ),
        (
            "customers.d is of type DOUBLE, which cannot be a key",
            FREE,
            {**tables(orders={**UP, "foreign_key": "d"}), "unit": "customers.d"},
        ),
        (
            ["orders.cid is of type INTEGER", "customers.t", "VARCHAR"],
            FREE,
            {**tables(), "unit": "customers.t"},
        ),
        (
            "unit='customers.code' is not the key of customers, which is id",
            FREE,
            {**tables(customers={"key": "id"}), "unit": "customers.code"},
        ),
        ("key of customers, names 'idd'", FREE, tables(customers={"key": "idd"})),
        (
            "names a row of customers, whose key is (id, code)",
            FREE,
            {**tables(customers={"key": ["id", "code"]}), "unit": "customers"},
        ),
        (
            ["orders: (code) names customers by (code), and its key is (id)", "one key"],
            "CREATE TABLE customers (id INT PRIMARY KEY, code INT UNIQUE); CREATE TABLE orders (code INT "
            "REFERENCES customers (code));",
            {},
        ),
        # references
        (
            "likes.pid refers to products, which is neither",
            LIKES.replace("pid INT, n", "pid INT REFERENCES products, n"),
            {"tables": ["customers", "likes"]},
        ),
        ("references: 'productz', which is no table of the release", LIKES, likes(references="productz")),
        ("'kin', which is not a column of products", LIKES, likes(by="kin")),
        ("columns: without 'pid' itself", LIKES, likes(columns=["n"])),
        ("whose key is (pid)", LIKES, likes(columns=["pid", "n"])),
        (
            "products has no key, and likes refers to its rows",
            LIKES.replace("pid INT PRIMARY KEY", "pid INT"),
            likes(),
        ),
        (
            "is private: its columns would tell of other units",
            FREE,
            tables(orders={**UP, "columns": {"k": {"references": "customers", "by": "code"}}}),
        ),
        (
            [
                "(a) refers to customers and to orders. Say in the file",
                "Rows that name no row of that table are left out",
            ],
            CUSTOMERS
            + ORDERS
            + "CREATE TABLE two (a INT REFERENCES customers (id), FOREIGN KEY (a) REFERENCES orders (oid));",
            {"tables": ["customers", "orders", "two"]},
        ),
        (
            "is left out in part",
            "CREATE TABLE people (a INT, b INT, PRIMARY KEY (a, b)); CREATE TABLE visits (a INT, b INT, n "
            "INT, FOREIGN KEY (a, b) REFERENCES people (a, b));",
            {"tables": ["people", "visits"], "unit": "people", "exclude": ["visits.a"]},
        ),
        (
            "'cid' is left out or has a domain of its own, and ties the table to customers too",
            FREE,
            tables(orders={**UP, "columns": {"cid": {"type": "numeric", "lower": 1, "upper": 2}}}),
        ),
        # public tables
        ("The public table products has no rows", LIKES + "DELETE FROM products;", likes()),
        (
            ["does not tell its rows apart", "1 rows repeat one"],
            LIKES.replace("pid INT PRIMARY KEY", "pid INT") + "INSERT INTO products VALUES (1, 'z');",
            {**likes(), "public": {"products": {"key": "pid"}}},
        ),
        (
            "has rows without a key (pid is NULL)",
            LIKES.replace("pid INT PRIMARY KEY", "pid INT") + "INSERT INTO products VALUES (NULL, 'z');",
            {**likes(), "public": {"products": {"key": "pid"}}},
        ),
        (
            ["1,004 groups by its own key", "by: [category]"],
            LIKES + "INSERT INTO products SELECT i, 'a' FROM range(10, 1010) AS r(i);",
            likes(),
        ),
        # the file
        ("under tables:, which is no table; did you mean 'orders'", SHOP, {"stated": {"ordrs": {}}}),
        (
            "under tables:, and products is public in this release",
            SHOP + PRODUCTS,
            {"stated": {"products": {}}, "public": ["products"]},
        ),
        (
            "is named twice in the list of tables and public_tables=",
            SHOP,
            {"stated": {}, "public": {"orders": None}, "tables": BOTH},
        ),
        # domains: all faults of all tables at once
        (
            [
                "customers: the source has no column 'regin'",
                "orders: column 'oid' is a key of the table that other rows name",
                "orders: per_unit:",
            ],
            SHOP,
            {
                "tables": ["customers", "orders", "items"],
                "stated": {
                    "customers": {"columns": {"regin": {"type": "discover"}}},
                    "orders": {
                        "columns": {
                            "oid": {"type": "numeric", "lower": 1, "upper": 2},
                            "month": {"type": "numeric", "lower": 1, "upper": 12, "per_unit": True},
                        }
                    },
                },
            },
        ),
        ("customers: no public domain for 'region'", SHOP, {"discover": False}),
        ("uses 'oid', which is no column", SHOP, {"stated": {"orders": {"never": ["oid = 3"]}}}),
        ("orders: order='when' is not a measured column", SHOP, {"stated": {"orders": {"order": "when"}}}),
        ("orders: order='cid' is not a measured column", SHOP, {"stated": {"orders": {"order": "cid"}}}),
        (
            ["orders: order='OID' is a part of the key", "Declare it under columns:"],
            SHOP,
            {"stated": {"orders": {"order": "OID"}}},
        ),
        (
            "customers: column 'id' is a key of the table that other rows name",
            SHOP,
            {"stated": {"customers": {"columns": {"id": {"type": "numeric", "lower": 1, "upper": 9}}}}},
        ),
        (
            "visits: column 'when' is a key of the table that other rows name",
            VISITS,
            {
                "tables": ["people", "visits", "notes"],
                "unit": "people",
                "stated": {"visits": {"columns": {"when": {"type": "discover"}, "nr": YEAR}}},
            },
        ),
        ("holds the units: its rows have no order", SHOP, {"stated": {"customers": {"order": "region"}}}),
    ],
)
def test_what_is_no_tree_is_refused(words, sql, options):
    refused(words, sql, error=(InputError, DomainError), **options)


def test_several_databases_are_refused(tmp_path):
    with duckdb.connect() as con:
        con.execute(SHOP)
        con.execute(
            f"ATTACH '{tmp_path / 'other.duckdb'}' AS other; CREATE TABLE other.visits (id INT, n INT)"
        )
        request = Request(unit="customers.id", source=["customers", "other.visits"])
        with (
            pytest.raises(InputError, match="several databases: 'memory', 'other'"),
            opened_tree(con, request),
        ):
            pass


def test_two_schemas_of_one_name_are_refused():
    sql = SHOP + "CREATE SCHEMA old; CREATE TABLE old.orders (cid INT, n INT);"
    refused("have the same name in different schemas", sql, ["customers", "orders", "old.orders"])


@pytest.mark.parametrize("con", [None, 3, "nowhere.duckdb"])
def test_what_is_no_database_is_refused(con):
    with (
        pytest.raises((InputError, SourceError)),
        opened_tree(con, Request(unit="a.b", source=["a", "b"])),
    ):
        pass


def test_no_private_row_is_read():
    """Every statement that opening makes, of which none may name a private table but to describe it."""
    with duckdb.connect() as con:
        con.execute(
            SHOP
            + PRODUCTS
            + "CREATE TABLE likes (cid INT REFERENCES customers (id), pid INT REFERENCES products);"
        )
        request = Request(unit="customers.id", source=["customers", "likes"], public_tables=["products"])
        from dpsyn_sql.engines.duckdb_engine import DuckDBEngine

        seen = []
        execute, fetch = DuckDBEngine.execute, DuckDBEngine.fetch
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                DuckDBEngine,
                "execute",
                lambda self, sql, step: (seen.append(sql), execute(self, sql, step=step))[1],
            )
            patch.setattr(
                DuckDBEngine,
                "fetch",
                lambda self, sql, step: (seen.append(sql), fetch(self, sql, step=step))[1],
            )
            with opened_tree(con, request):
                pass
    assert any('"products"' in sql for sql in seen)
    assert not [sql for sql in seen if '"likes"' in sql or '"customers"' in sql]
