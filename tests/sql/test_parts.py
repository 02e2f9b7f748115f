"""Counters over a source whose rows lie in parts: the same exact counts as in one DuckDB, in few passes."""

from datetime import date
from itertools import combinations

import duckdb
import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from support.hierarchies import Halves, Letters
from support.parts import PartedEngine

import dpsyn_sql
from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.attributes.growth import Growth
from dpsyn_sql.attributes.shape import Shape
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.planning.queries import (
    Beginning,
    ContributionQuery,
    GridQuery,
    KeyQuery,
    MarginalQuery,
    StepQuery,
    TypesQuery,
)
from dpsyn_sql.private.count.counter import SqlCounter
from dpsyn_sql.private.count.discovery import SqlDiscoveryCounter
from dpsyn_sql.private.rows.relations import sliced_source
from dpsyn_sql.source.relation import Column, PrivacyUnit, Relation
from dpsyn_sql.source.slices import Window
from dpsyn_sql.sqltext.fragments import Fragment

QUICK = settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
NOCASE = "SET default_collation = 'nocase'"
SOURCE = Fragment('"memory"."main"."the source"')
KEY, K = 11, 3
UNITS = {"row": PrivacyUnit(), "unit": PrivacyUnit("id", K)}
TABLES = st.tuples(st.integers(0, 60), st.integers(0, 2**32))
PARTS = st.integers(1, 4)
A = Attribute("n", "INTEGER", "categorical", labels=(0, 1, 2), other=True, nullable=True)
B = Attribute("s", "VARCHAR", "categorical", labels=("a", "A", "b"), other=True)
C = Attribute("x", "DOUBLE", "numeric", edges=(0.0, 1.0, 2.0, 3.0), nullable=True)
D = Attribute("d", "DATE", "numeric", edges=tuple(date(2020, 1, day) for day in (1, 3, 6)))
MANY = Attribute("i", "INTEGER", "categorical", labels=tuple(range(400)), other=True)
DOMAIN = Domain((A, B, C, D, MANY))
WAYS = [MarginalQuery(names) for size in (0, 1, 2, 3) for names in combinations("nsxd", size)]
WAYS.append(MarginalQuery(("i", "s")))
TREES = (Halves("n", 2, nullable=True), Letters("s", 2))


@pytest.fixture
def store():
    with duckdb.connect() as made:
        made.execute(f"{NOCASE}; SET threads = 2")
        yield made


def fill(store, rows, seed):
    """Values with all that ties, collides or is missing; units of any number of rows, and rows of none."""
    drawn = iter(range(10))

    def of(number):
        return f"CAST(hash(i, 'draw {next(drawn)} of {seed}') % {number} AS INTEGER)"

    def one(*values):
        return f"[{', '.join(values)}][{of(len(values))} + 1]"

    store.execute(
        f"""
        CREATE OR REPLACE TABLE {SOURCE} AS SELECT
            {one("NULL", "'ann'", "'Ann'", "'bob'", "'bob '", "''")} AS id,
            {one("NULL", "'a'", "'A'", "'aA'", "'b'", "'bb'", "'7'", "'7.5'", "'é'", "'2020-01-01'")} AS s,
            {one("NULL", "-1", "0", "1", "2", "3")} AS n,
            CAST({one("NULL", "'nan'", "'-0.0'", "'0.0'", "'0.5'", "'2.25'", "'1e300'")} AS DOUBLE) AS x,
            DATE '2019-12-30' + {of(10)} AS d,
            {of(401)} AS i,
            CAST('1000000000000000000000000000000' AS HUGEINT) * {of(5)} AS h,
            {one("TRUE", "FALSE", "NULL")} AS t,
            CAST({one("-0.25", "0", "1.5", "12345.6789")} AS DECIMAL(12, 4)) AS e,
            CAST({one("0", "1", "18446744073709551615")} AS UBIGINT) AS u
        FROM range({rows}) AS rows(i)
        """
    )


def engines(store, parts, unit):
    return PartedEngine(store, SOURCE, parts, unit.column, NOCASE), DuckDBEngine(store)


def same(one, other):
    for found, wanted in zip(one, other, strict=True):
        assert found.dtype == np.int64
        np.testing.assert_array_equal(found, wanted)


# -- marginals -----------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", UNITS.values(), ids=UNITS)
@given(table=TABLES, parts=PARTS)
@QUICK
def test_every_marginal_in_one_pass(store, unit, table, parts):
    fill(store, *table)
    parted, whole = engines(store, parts, unit)
    counters = [SqlCounter(engine, SOURCE, DOMAIN, WAYS, unit=unit, key=KEY) for engine in (parted, whole)]
    same(*(counter.count(WAYS) for counter in counters))
    for counter in counters:
        counter.close()
    assert (parted.passes, parted.kept) == (1, [])


@given(table=TABLES, parts=PARTS)
@QUICK
def test_every_one_way_marginal_straight_from_the_source_in_one_pass(store, table, parts):
    fill(store, *table)
    queries = [MarginalQuery((name,)) for name in DOMAIN.names]
    parted, whole = engines(store, parts, UNITS["row"])
    counters = [SqlCounter(engine, SOURCE, DOMAIN, queries) for engine in (parted, whole)]
    assert counters[0].plan.strategy == "scan"
    same(*(counter.count(queries) for counter in counters))
    assert (parted.passes, parted.kept) == (1, [])


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS.values(), ids=UNITS)
@given(table=TABLES, parts=PARTS)
@QUICK
def test_marginals_asked_one_after_another_read_codes_that_were_kept_once(store, unit, table, parts):
    fill(store, *table)
    parted, whole = engines(store, parts, unit)
    counters = [
        SqlCounter(engine, SOURCE, DOMAIN, WAYS, unit=unit, key=KEY, most=0) for engine in (parted, whole)
    ]
    for query in WAYS:
        same(*(counter.count([query]) for counter in counters))
    assert (parted.passes, len(parted.kept), parted.holds) == (1, 1, 1)
    for counter in counters:
        counter.close()
    assert parted.holds == 0


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS.values(), ids=UNITS)
@given(table=TABLES, parts=PARTS)
@QUICK
def test_further_marginals_and_bins_are_counted_on_the_codes_that_were_kept(store, unit, table, parts):
    fill(store, *table)
    planned = [MarginalQuery(("n", "s")), MarginalQuery(("x", "d")), MarginalQuery(("i",))]
    asked = [
        MarginalQuery(("d", "n", "s")),
        MarginalQuery(("i", "x"), (tuple(k % 5 for k in range(401)), None)),
    ]
    parted, whole = engines(store, parts, unit)
    counters = [
        SqlCounter(engine, SOURCE, DOMAIN, planned, unit=unit, key=KEY, further=True)
        for engine in (parted, whole)
    ]
    for queries in (planned, asked, planned, asked[:1]):
        same(*(counter.count(queries) for counter in counters))
    assert (parted.passes, len(parted.kept), parted.holds) == (1, 1, 1)
    for counter in counters:
        counter.close()
    assert parted.holds == 0


def test_a_cache_asks_for_all_in_one_pass(store):
    fill(store, 60, 5)
    parted, whole = engines(store, 3, UNITS["unit"])
    counters = [
        SqlCounter(engine, SOURCE, DOMAIN, WAYS, unit=UNITS["unit"], key=KEY) for engine in (parted, whole)
    ]
    for query in WAYS:
        same(*(counter.count([query]) for counter in counters))
    assert (parted.passes, parted.kept) == (1, [])


@pytest.mark.slow
@given(table=TABLES, parts=PARTS, most=st.integers(1, 2), index=st.integers(0, 2))
@QUICK
def test_a_unit_counts_in_its_first_windows(store, table, parts, most, index):
    fill(store, *table)
    unit = UNITS["unit"]
    described = store.execute(f"DESCRIBE FROM {SOURCE}").fetchall()
    relation = Relation("t", "table", SOURCE, tuple(Column(name, kind) for name, kind, *_ in described))
    edges = ("2019-12-30", "2020-01-01", "2020-01-04", "2020-01-09")
    sql = sliced_source(relation, unit, Window("d", "days", edges, index, most=most), Shape(())).relation.sql
    parted, whole = engines(store, parts, unit)
    same(
        *(SqlCounter(engine, sql, DOMAIN, WAYS, unit=unit, key=KEY).count(WAYS) for engine in (parted, whole))
    )
    assert parted.passes == 1


# -- discovery -----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS.values(), ids=UNITS)
@given(table=TABLES, parts=PARTS, least=st.integers(1, 4))
@QUICK
def test_discovery(store, unit, table, parts, least):
    fill(store, *table)
    parted, whole = (
        SqlDiscoveryCounter(engine, SOURCE, unit=unit, key=KEY) for engine in engines(store, parts, unit)
    )
    nothing = Attribute("s", "VARCHAR", "categorical", other=True, nullable=True)
    kinds = {"s": "VARCHAR", "n": "INTEGER", "x": "DOUBLE", "d": "DATE"}
    kinds |= {"h": "HUGEINT", "t": "BOOLEAN", "e": "DECIMAL(12,4)", "u": "UBIGINT"}
    queries = [KeyQuery(name, kind) for name, kind in kinds.items()]
    queries.append(KeyQuery("s", "VARCHAR", beginning=Beginning(1, nothing)))
    for query in queries:
        found, wanted = list(parted.keys(query, least)), list(whole.keys(query, least))
        assert [keys for keys, _ in found] == [keys for keys, _ in wanted]
        assert [list(map(type, keys)) for keys, _ in found] == [list(map(type, keys)) for keys, _ in wanted]
        same([units for _, units in found], [units for _, units in wanted])
    for ask, query in (
        ("cells", GridQuery(C)),
        ("cells", GridQuery(D)),
        ("steps", StepQuery("n", "INTEGER", (2, 4))),
        ("types", TypesQuery("s")),
    ):
        same([getattr(parted, ask)(query)], [getattr(whole, ask)(query)])
    if unit.column is not None:
        same([parted.contributions(ContributionQuery(K))], [whole.contributions(ContributionQuery(K))])


def test_a_key_that_is_rare_in_every_part_is_found(store):
    """Whether enough units have a key is a question about all parts."""
    store.execute(f"CREATE TABLE {SOURCE} AS SELECT 'rare' AS s FROM range(3) AS rows(i)")
    parted, _ = engines(store, 3, UNITS["row"])
    ((keys, units),) = SqlDiscoveryCounter(parted, SOURCE).keys(KeyQuery("s", "VARCHAR"), 3)
    assert (keys, units.tolist()) == (["rare"], [3])


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS.values(), ids=UNITS)
@given(table=TABLES, parts=PARTS, seed=st.integers(0, 1000))
@example(table=(0, 0), parts=1, seed=61)  # the last nodes have no children, others have
@QUICK
def test_trees_read_the_source_once(store, unit, table, parts, seed):
    fill(store, *table)
    engine, one = engines(store, parts, unit)
    parted, whole = (SqlDiscoveryCounter(made, SOURCE, unit=unit, key=KEY) for made in (engine, one))
    rng, growth = np.random.default_rng(seed), Growth(TREES, 4, 10_000)
    for _ in range(3):
        nodes = growth.nodes
        refined = growth.split(rng.random(len(nodes)) < 0.8)
        same([parted.nodes(TREES, nodes)], [whole.nodes(TREES, nodes)])
        if refined.any():
            same([parted.largest(TREES, nodes, refined)], [whole.largest(TREES, nodes, refined)])
        by = [rng.choice(np.flatnonzero(may)) if may.any() else -1 for may in refined]
        if not growth.by(np.array(by, dtype=np.int64)):
            break
    same([parted.outside(TREES)], [whole.outside(TREES)])
    assert engine.passes == 1
    for counter in (parted, whole):
        counter.close()


def test_what_lies_in_parts_is_explained_as_it_is_counted(tmp_path, monkeypatch):
    """Products of indicators need codes that one database keeps."""
    names = [f"a{i}" for i in range(80)]
    con = duckdb.connect(str(tmp_path / "w.duckdb"))
    con.execute(f"CREATE TABLE wide ({', '.join(f'{name} BOOLEAN' for name in names)})")
    binary = {"type": "categorical", "categories": [False, True], "other": False}
    ways = {}
    for in_parts in (False, True):
        monkeypatch.setattr(DuckDBEngine, "in_parts", property(lambda _, known=in_parts: known))
        told = dpsyn_sql.plan(
            con,
            "wide",
            into="o",
            method="copula",
            ledger=tmp_path / "l",
            domain={"columns": dict.fromkeys(names, binary)},
        )
        ways[in_parts] = told.counting.strategy
    assert ways[False] == "products"
    assert ways[True] == "packed"
    con.close()
