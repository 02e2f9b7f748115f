"""The tree of tables in the plan's words."""

from dpsyn_sql.attributes.shape import Shape
from dpsyn_sql.planning.explain import explain_tree
from dpsyn_sql.planning.tree import PublicTable, Reference, Table, Tree
from dpsyn_sql.source.relation import Column, Relation
from dpsyn_sql.sqltext.fragments import Fragment


def relation(name):
    return Relation(name, "table", Fragment(name), ())


def test_the_tree_says_what_belongs_to_what_and_whom_it_protects():
    payee, product = (
        Reference(("payee",), "customers", "other"),
        Reference(("pid",), "products", "public", ("kind",)),
    )
    boss = Reference(("boss",), "customers", "self")
    tree = Tree(
        (
            Table("customers", relation("c"), ("id",), references=(boss,)),
            Table("orders", relation("o"), ("oid",), "customers", ("cid",), 16, "day", (payee,)),
            Table(
                "years", relation("y"), ("cid", "y"), "customers", ("cid",), 9, measured_key=frozenset({"y"})
            ),
            Table("cards", relation("k"), (), "customers", ("cid",), 1),
            Table("items", relation("i"), (), "orders", ("oid",), 32, references=(product,)),
        ),
        (PublicTable("products", relation("p"), ("pid",)),),
    )
    shapes = {table.name: Shape((), order=("a", "b")) for table in tree}
    assert list(explain_tree(tree, shapes)) == [
        "Tables      customers: the units, by (id); 2 columns",
        "              boss -> an earlier row of customers, at random; that there is one is measured",
        "              orders: at most 16 rows of each row of customers by (cid), ordered by day; 2 columns",
        "                payee -> a row of customers, at random; that there is one is measured",
        "                items: at most 32 rows of each row of orders by (oid); 2 columns",
        "                  pid -> products (public), by kind",
        "              years: at most 9 rows of each row of customers by (cid); 2 columns",
        "                key (cid, y): y measured; no key of the copy, where measured values repeat, or are missing",
        "              cards: at most one row of each row of customers by (cid); 2 columns",
        "Public      products: the owner states that it holds no private data; kept as it is",
        "Protects    one row of customers (id) with all rows that belong to it:",
        "              at most 16 of orders, each with at most 32 of items",
        "              at most 9 of years",
        "              at most 1 of cards",
        "            further rows are left out by lot; each unit counts the same, however many rows it has",
        "            rows without a key, and rows that belong to no row, are left out",
        "            whom customers.boss names is not protected by that: such a row belongs to its own unit alone",
        "            a row of orders without cid is left out, even if its payee names a row of customers",
        "            whom orders.payee names is not protected by that: such a row belongs to whom cid names alone",
    ]


def test_rows_that_always_have_an_owner_are_not_told_to_be_left_out():
    payee, columns = Reference(("payee",), "customers", "other"), (Column("cid", "INTEGER", not_null=True),)
    orders = Relation("o", "table", Fragment("o"), columns)
    tree = Tree(
        (
            Table("customers", relation("c"), ("id",)),
            Table("orders", orders, ("oid",), "customers", ("cid",), 16, references=(payee,)),
        )
    )
    told = list(explain_tree(tree, {table.name: Shape(()) for table in tree}))
    assert any("whom orders.payee names" in line for line in told)
    assert not any("without cid" in line for line in told)
