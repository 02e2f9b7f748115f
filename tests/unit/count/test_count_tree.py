"""Tables of a tree: kept rows, weights, numbers, classes and counts, against their definitions."""

from collections import Counter
from pathlib import Path

import duckdb
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from support.tied_tables import (
    COLUMNS,
    DATABASES,
    DOMAINS,
    GROUPS,
    Reference,
    codes_of,
    counter_of,
    dense,
    fill,
    key_of,
    tables,
    tree_of,
)

from dpsyn_sql.attributes.attribute import Domain
from dpsyn_sql.engines.code_slices import FiledTables
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.errors import InternalError
from dpsyn_sql.planning.queries import KeyQuery, MarginalQuery
from dpsyn_sql.planning.tree import Table, Tree
from dpsyn_sql.private.count.counter import SqlCounter
from dpsyn_sql.private.count.discovery import SqlDiscoveryCounter
from dpsyn_sql.private.rows.kept import KeptRows
from dpsyn_sql.private.rows.relations import discovery_relation
from dpsyn_sql.source.relation import WEIGHT, Column, PrivacyUnit, Relation
from dpsyn_sql.sqltext.fragments import Fragment, ident

QUICK = settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def con():
    with duckdb.connect() as connection:
        connection.execute("SET threads = 2; SET default_collation = 'nocase'")
        yield connection


def check(con, data, **settings):
    fill(con, data)
    reference = Reference(con, data, **settings)
    found = tables(DuckDBEngine(con), **settings)
    for (name, kind, attrs), table in found.items():
        np.testing.assert_array_equal(table, reference.table(name, kind, attrs), str((name, kind, attrs)))
    return reference, found


@QUICK
@given(DATABASES)
def test_all_tables_are_those_of_the_definitions(con, data):
    check(con, data)


@pytest.mark.parametrize("seed", range(2))
def test_full_families_are_those_of_the_definitions(con, seed):
    reference, _ = check(con, dense(seed))
    for table in reference.tree.tables[1:]:
        assert {row.n for row in reference.rows[table.name]} >= {2, table.most}
    several = Counter(row.key for row in reference.rows["orders"])
    assert max(several.values()) > 1, "a key is in two units"


def test_tables_without_rows_and_parents_without_children(con):
    empty = {name: [] for name in COLUMNS}
    check(con, empty)
    _, found = check(con, {**empty, "customers": [("a", 0), ("b", 1), ("c", 1)]})
    table = found["customers", "rows", ("a", "number of orders")]
    assert table[:, 0].tolist() == [WEIGHT, 2 * WEIGHT, 0]
    assert table.sum() == 3 * WEIGHT
    assert found["customers", "rows", ("a", "group of orders")].sum() == 3 * WEIGHT
    assert not any(table.any() for name, table in found.items() if name[0] != "customers")


def test_a_key_in_two_units_has_a_copy_in_each(con):
    data = {
        "customers": [("a", 0), ("b", 1)],
        "orders": [(1, "a", 0, 0), (1, "b", 1, 0)],
        "cards": [],
        "items": [(1, "1", 2), (1, "2", 0)],
        "returns": [],
    }
    _, found = check(con, data)
    assert found["items", "rows", ("q",)].tolist() == [WEIGHT, 0, WEIGHT]
    assert found["items", "pairs", ("q", "q")].tolist() == [[0, 0, WEIGHT], [0, 0, 0], [WEIGHT, 0, 0]]
    assert found["items", "rows", ("q", "orders.b")].tolist() == [
        [WEIGHT // 2] * 2 + [0],
        [0] * 3,
        [WEIGHT // 2] * 2 + [0],
    ]


def test_a_row_that_is_there_twice_is_kept_once_if_rows_hang_on_it(con):
    data = {
        "customers": [("a", 2), ("a", 1)],
        "orders": [(1, "a", 2, 0), (1, "a", 1, 0), (2, "a", 0, 0)],
        "cards": [("a", 0), ("a", 0)],
        "items": [(1, "1", 2), (1, "1", 2)],
        "returns": [],
    }
    _, found = check(con, data)
    assert found["customers", "rows", ("a",)].tolist() == [0, WEIGHT, 0]
    assert found["orders", "rows", ("b",)].tolist() == [WEIGHT // 2, WEIGHT // 2, 0]
    assert found["cards", "rows", ("kind",)].tolist() == [2 * (WEIGHT // 2), 0, 0]
    assert found["items", "rows", ("q",)].tolist() == [0, 0, WEIGHT // 2]


def plain(con, most, children):
    """A parent of many children, in two tables."""
    con.execute("CREATE OR REPLACE TEMP TABLE p AS SELECT 1 AS id, 0 AS a")
    con.execute(
        f"CREATE OR REPLACE TEMP TABLE q AS SELECT 1 AS id, i AS own, i % 3 AS b FROM range({children}) AS r(i)"
    )
    columns = {"p": {"id": "INTEGER", "a": "INTEGER"}, "q": {"id": "INTEGER", "own": "BIGINT", "b": "BIGINT"}}
    tree = tree_of(columns, Tree((Table("p", None, ("id",)), Table("q", None, (), "p", ("id",), most))))
    domains = {
        "p": Domain(DOMAINS["customers"].attributes),
        "q": Domain((DOMAINS["items"]["q"].__class__("b", "BIGINT", "categorical", labels=(0, 1, 2)),)),
    }
    return codes_of(DuckDBEngine(con), tree, (), domains, {})


@pytest.mark.parametrize("most", [1, 7, 99_999, WEIGHT])
def test_many_children_of_one_parent(con, most):
    codes = plain(con, most, 100_000)
    asked = [MarginalQuery(("b",))]
    counter = counter_of(DuckDBEngine(con), codes, "q", asked)
    (table,), (pairs,) = counter.count(asked), counter.siblings([MarginalQuery(("b", "b"))])
    kept = min(most, 100_000)
    assert table.sum() == kept * (WEIGHT // kept)
    assert pairs.sum() == kept * (kept - 1) * (WEIGHT // kept // max(1, kept - 1))
    counter.close()
    codes.close()


def test_keys_of_several_columns_are_told_apart(con):
    """'a' and 'bc' are not 'ab' and 'c', nor with the signs that stand between lengths and texts."""
    keys = [
        ("a", "bc"),
        ("ab", "c"),
        ("1:a", ""),
        ("1", ":a"),
        ("é", ""),
        ("", "é"),
        ("A", "bc"),
        (None, "c"),
    ]
    columns = {
        "p": {"x": "VARCHAR", "y": "VARCHAR", "a": "BIGINT"},
        "q": {"u": "VARCHAR", "v": "VARCHAR", "b": "BIGINT"},
    }
    tree = tree_of(columns, Tree((Table("p", None, ("x", "y")), Table("q", None, (), "p", ("u", "v"), 2))))
    size = len(keys)
    attribute = type(DOMAINS["cards"]["kind"])
    domains = {
        name: Domain((attribute(column, "BIGINT", "categorical", labels=tuple(range(size))),))
        for name, column in (("p", "a"), ("q", "b"))
    }
    rows = [(*key, place) for place, key in enumerate(keys)]
    data = {"p": rows, "q": rows[::-1]}
    fill(con, data, columns)
    reference = Reference(con, data, tree, (), domains, {}, columns)
    found = tables(DuckDBEngine(con), tree=tree, groups=(), domains=domains, orders={})
    table = found["q", "rows", ("b", "p.a")]
    np.testing.assert_array_equal(table, reference.table("q", "rows", ("b", "p.a")))
    np.testing.assert_array_equal(table, np.diag([WEIGHT] * (size - 1) + [0]))
    assert len({key_of(key) for key in keys}) == size


def test_what_does_not_fit_in_memory_lies_in_a_file(con, tmp_path: Path):
    data = dense(5)
    fill(con, data)
    expected = tables(DuckDBEngine(con))
    engine = DuckDBEngine(con)
    engine._filed = FiledTables(engine, tmp_path)
    for name, table in tables(engine).items():
        np.testing.assert_array_equal(table, expected[name])


def test_further_marginals_and_bins_are_weighed(con):
    data = dense(6)
    fill(con, data)
    reference, engine = Reference(con, data), DuckDBEngine(con)
    codes = codes_of(engine)
    families = codes.families("orders")
    counter = SqlCounter(
        engine,
        Fragment("nothing"),
        families.domain,
        [MarginalQuery((name,)) for name in families.domain.names],
        further=True,
        rows=codes,
        table="orders",
    )
    wanted = ("b", "customers.a", "b before")
    (table,) = counter.count([MarginalQuery(wanted)])
    np.testing.assert_array_equal(table, reference.table("orders", "rows", wanted))
    (binned,) = counter.count([MarginalQuery(("b", "customers.a"), ((0, 1, 1), None))])
    whole = reference.table("orders", "rows", ("b", "customers.a"))
    np.testing.assert_array_equal(binned, [whole[0], whole[1] + whole[2]])
    counter.close()
    codes.close()


def test_all_that_was_kept_is_dropped(con):
    fill(con, dense(7))
    before = con.execute("SELECT count(*) FROM duckdb_tables()").fetchone()
    codes = codes_of(DuckDBEngine(con))
    assert con.execute("SELECT count(*) FROM duckdb_tables()").fetchone() == before  # nothing was asked yet
    codes.encoding("items", codes.families("items").domain, [(0,)])
    assert con.execute("SELECT count(*) FROM duckdb_tables()").fetchone() > before
    codes.close()
    codes.close()
    assert con.execute("SELECT count(*) FROM duckdb_tables()").fetchone() == before
    assert "u1" not in repr(codes)


def test_classes_are_attached_from_below_and_once(con):
    fill(con, dense(8))
    engine = DuckDBEngine(con)
    codes = codes_of(engine)
    groups = dict(GROUPS)
    with pytest.raises(InternalError, match="attached once"):
        codes.attach("orders", groups["orders"])
    with pytest.raises(InternalError, match="one parent"):
        codes.attach("customers", ())
    codes.close()
    codes = codes_of(engine, groups=[("orders", ())])
    with pytest.raises(InternalError, match="before those of its parent"):
        codes.attach("items", groups["items"])
    with pytest.raises((InternalError, KeyError)):
        codes.attach("cards", groups["items"])
    codes.close()


def test_attributes_of_another_time_are_refused(con):
    """Families as they were before classes were attached."""
    fill(con, dense(9))
    codes = codes_of(DuckDBEngine(con), groups=())
    early = codes.families("customers")
    codes.attach("cards", dict(GROUPS)["cards"])
    with pytest.raises(InternalError, match="other attributes"):
        codes.encoding("customers", early.domain, [(0,)])
    codes.close()


def test_a_tree_whose_rows_would_weigh_nothing_is_refused(con):
    tables = tree_of().tables
    wide = Tree(
        (*tables[:3], Table("items", tables[3].relation, ("oid", "line"), "orders", ("oid",), WEIGHT))
    )
    with pytest.raises(InternalError, match="weighs something"):
        KeptRows(DuckDBEngine(con), wide, DOMAINS, {})


@QUICK
@given(DATABASES)
def test_discovery_sees_each_row_with_its_units(con, data):
    fill(con, data)
    tree = tree_of()
    units = {"customers": [(key_of(row[:1]), row) for row in data["customers"] if row[0] is not None]}
    for table in tree.tables[1:]:
        above, own = list(COLUMNS[table.parent]), list(COLUMNS[table.name])
        known = {
            (unit, key_of([row[above.index(name)] for name in tree[table.parent].key]))
            for unit, row in units[table.parent]
        }
        units[table.name] = [
            (unit, row)
            for row in data[table.name]
            for unit, key in sorted(known - {(unit, None) for unit, _ in known})
            if key == key_of([row[own.index(name)] for name in table.foreign_key])
        ]
    for table in tree:
        relation, column = discovery_relation(tree, table.name)
        assert relation.columns[-1] == Column(column, "BLOB", not_null=True)
        found = con.execute(
            f"SELECT {ident(column)}, * EXCLUDE ({ident(column)}) FROM {relation.sql}"
        ).fetchall()
        assert Counter((unit, tuple(row)) for unit, *row in found) == Counter(units[table.name])


def test_a_unit_counts_once_for_each_thing_that_is_discovered(con):
    """However many rows it has."""
    data = dense(1, units=20)
    fill(con, data)
    relation, column = discovery_relation(tree_of(), "returns")
    counter = SqlDiscoveryCounter(DuckDBEngine(con), relation.sql, unit=PrivacyUnit(column, 1), key=3)
    counts = [n for _, part in counter.keys(KeyQuery("why", "BIGINT")) for n in part]
    units = con.execute(f"SELECT count(DISTINCT {ident(column)}) FROM {relation.sql}").fetchone()[0]
    assert 5 < sum(counts) == units


def test_the_name_of_the_units_column_is_free():
    columns = (
        Column("its_unit", "BIGINT"),
        Column("Its_Unit1", "BIGINT"),
        Column("gone", "BIGINT", refused="is gone"),
    )
    tree = Tree((Table("t", Relation("t", "table", ident("t"), columns), ("its_unit",)),))
    relation, name = discovery_relation(tree, "t")
    assert name == "its_unit2"
    assert '"gone"' not in relation.sql
