"""Tables of pairs of rows of one unit: brute force agrees, and a unit changes them by at most its weight."""

from collections import defaultdict
from itertools import pairwise, permutations

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.parts import PartedEngine

from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.errors import InternalError
from dpsyn_sql.planning.families import families_of
from dpsyn_sql.planning.queries import MarginalQuery
from dpsyn_sql.private.count.counter import SqlCounter
from dpsyn_sql.private.count.sums import SiblingSums
from dpsyn_sql.source.relation import WEIGHT, PrivacyUnit
from dpsyn_sql.sqltext.fragments import Fragment

SIZES = (2, 3, 7)
NAMES = ("x0", "x1", "x2")
DOMAIN = Domain(
    tuple(
        Attribute(name, "INTEGER", "categorical", labels=tuple(range(size)))
        for name, size in zip(NAMES, SIZES, strict=True)
    )
)
HALVES = (0, 1, 0, 1, 2, 2, 0)
ASKED = [
    MarginalQuery(("x0", "x0")),
    MarginalQuery(("x1", "x2")),
    MarginalQuery(("x2", "x1")),
    MarginalQuery(("x2", "x2"), (HALVES, HALVES)),
    MarginalQuery(("x2", "x2"), (HALVES, None)),
    MarginalQuery(("x0", "x2"), (None, HALVES)),
]
MOST = 8


def counter_over(engine, most=MOST, siblings=True):
    unit = PrivacyUnit("who", most, together=True)
    families = families_of(DOMAIN, unit, ())
    planned = [MarginalQuery((name,)) for name in families.domain.names]
    return SqlCounter(
        engine,
        Fragment("visits"),
        families.domain,
        planned,
        unit=unit,
        key=5,
        families=families,
        siblings=siblings,
    )


def filled(con, rows):
    con.execute("CREATE TABLE visits (who VARCHAR, x0 INTEGER, x1 INTEGER, x2 INTEGER)")
    con.executemany("INSERT INTO visits VALUES (?, ?, ?, ?)", rows)


def tables(rows, most=MOST, asked=ASKED):
    """Of one database, which hands on codes; where rows lie in parts, statements count the same."""
    with duckdb.connect() as con:
        filled(con, rows)
        counter = counter_over(DuckDBEngine(con), most)
        found = counter.siblings(asked)
        counter.close()
        parts = PartedEngine(con, "visits", 3, unit="who")
        for table, other in zip(found, counter_over(parts, most).siblings(asked), strict=True):
            np.testing.assert_array_equal(table, other)
    return found


def by_hand(rows, query):
    """One pair after the other, each with its weight."""
    families = defaultdict(list)
    for who, *codes in rows:
        families[who].append(codes)
    maps = [
        range(SIZES[NAMES.index(name)]) if bins is None else bins
        for name, bins in zip(query.attrs, query.maps or (None, None), strict=True)
    ]
    places = [NAMES.index(name) for name in query.attrs]
    total = np.zeros(query.shape(DOMAIN), dtype=np.int64)
    for family in families.values():
        n = len(family)
        for pair in permutations(family, 2):
            cell = tuple(bins[row[at]] for row, at, bins in zip(pair, places, maps, strict=True))
            total[cell] += WEIGHT // (n * (n - 1))
    return total


def some_rows(seed, units=9, most=MOST):
    random = np.random.default_rng(seed)
    return [
        [f"u{who}", *map(int, random.integers(0, SIZES))]
        for who in range(units)
        for _ in range(random.integers(1, most + 1))
    ]


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 12))
def test_pairs_are_those_of_brute_force(seed, units):
    rows = some_rows(seed, units)
    for query, table in zip(ASKED, tables(rows), strict=True):
        np.testing.assert_array_equal(table, by_hand(rows, query))
        assert table.dtype == np.int64


def test_a_row_is_no_sibling_of_itself():
    """Two rows that differ: no pair agrees."""
    found = tables([["a", 0, 0, 0], ["a", 1, 2, 6]])
    assert found[0].tolist() == [[0, WEIGHT // 2], [WEIGHT // 2, 0]]
    assert np.trace(tables([["a", 0, 0, 1]])[0]) == 0


@pytest.mark.parametrize("rows", [1, 2, 3, 7, 30, 1_500])
def test_a_unit_adds_its_weight_at_most_and_nothing_to_that_of_others(rows):
    random = np.random.default_rng(rows)
    others = some_rows(1, units=6)
    own = [["new", *map(int, random.integers(0, SIZES))] for _ in range(rows)]
    before, after = tables(others, 2_000), tables([*own, *others], 2_000)
    alone = tables(own, 2_000)
    for without, within, unit in zip(before, after, alone, strict=True):
        change = within - without
        np.testing.assert_array_equal(change, unit)
        assert change.min() >= 0
        pairs = rows * (rows - 1)
        assert change.sum() == pairs * (WEIGHT // max(1, pairs)) <= WEIGHT


def test_equal_rows_reach_the_sensitivity():
    assert tables([["a", 0, 0, 0]] * 2)[0].tolist() == [[WEIGHT, 0], [0, 0]]


def test_only_kept_rows_are_paired():
    """More rows than are kept: all pairs of those that are, and no more than the weight."""
    rows = [["a", 0, 1, place % 7] for place in range(50)]
    found = tables(rows, 3)
    assert found[0].tolist() == [[6 * (WEIGHT // 6), 0], [0, 0]]
    kept = tables(rows, 3, [MarginalQuery(("x0", "x2"))])[0]
    assert kept.sum() == 6 * (WEIGHT // 6)


def test_rows_in_parts_are_paired_as_in_one_database():
    rows = some_rows(4, units=20)
    with duckdb.connect() as store:
        filled(store, rows)
        engine = PartedEngine(store, "visits", 3, unit="who")
        found = counter_over(engine).siblings(ASKED)
    for query, table in zip(ASKED, found, strict=True):
        np.testing.assert_array_equal(table, by_hand(rows, query))


def codes_of_rows(rows):
    """Columns of codes as the counter reads them, in the order of the rows."""
    units = sorted({row[0] for row in rows})
    sizes = [sum(row[0] == unit for row in rows) for unit in units]
    numbers = np.array([units.index(row[0]) for row in rows])
    n = np.array(sizes)[numbers]
    codes = np.array([row[1:] for row in rows])
    packed = codes[:, 0] * SIZES[1] + codes[:, 1]
    return {"u": numbers, "n": n, "w": WEIGHT // n, "p0": packed, "p1": codes[:, 2]}


def summed(columns, cuts):
    sums = SiblingSums(DOMAIN, [(0, 1), (2,)], ASKED)
    assert set(sums.columns) == set(columns)
    edges = [0, *cuts, len(columns["u"])]
    for start, stop in pairwise(edges):
        sums.add({name: column[start:stop] for name, column in columns.items()})
    return sums.tables()


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32), st.lists(st.integers(0, 40), max_size=5))
def test_a_chunk_may_end_in_a_family_and_have_its_rows_in_any_order(seed, cuts):
    rows = sorted(some_rows(seed))
    cuts = sorted(min(cut, len(rows)) for cut in cuts)
    columns, shuffle = codes_of_rows(rows), np.random.default_rng(seed)
    edges = [0, *cuts, len(rows)]
    inside = [shuffle.permutation(np.arange(*ends)) for ends in pairwise(edges)]
    moved = {name: column[np.concatenate(inside)] for name, column in columns.items()}
    for query, table in zip(ASKED, summed(moved, cuts), strict=True):
        np.testing.assert_array_equal(table, by_hand(rows, query))


def test_families_that_are_torn_and_wrong_codes_are_refused():
    columns = codes_of_rows([["a", 0, 1, 2], ["b", 1, 1, 1], ["a", 1, 2, 3], ["b", 0, 0, 0]])
    with pytest.raises(InternalError, match="do not follow one another"):
        summed(columns, [2])
    with pytest.raises(InternalError, match="outside"):
        summed(columns | {"p1": columns["p1"] + 4}, [])


@pytest.mark.parametrize("setting", ["true", "false"])
def test_families_of_several_chunks_follow_one_another(setting):
    """Their rows are far apart in the source, and more than a database hands on at once."""
    units, rows = 100_000, 3
    with duckdb.connect() as con:
        con.execute(f"SET threads = 2; SET preserve_insertion_order = {setting}")
        con.execute(
            "CREATE TABLE visits AS SELECT CAST(i % 100000 AS VARCHAR) AS who, CAST(i % 2 AS INTEGER) AS x0, "
            f"CAST(i // 100000 AS INTEGER) AS x1, 0 AS x2 FROM range({units * rows}) AS r(i)"
        )
        pairs = [MarginalQuery(("x0", "x0")), MarginalQuery(("x1", "x1"))]
        own, different = counter_over(DuckDBEngine(con)).siblings(pairs)
    weight = units * (WEIGHT // (rows * (rows - 1)))
    assert own.tolist() == [[3 * weight, 0], [0, 3 * weight]]
    assert different.tolist() == [[0, weight, weight], [weight, 0, weight], [weight, weight, 0]]


def test_a_unit_of_many_rows_counts_nothing_and_costs_nothing():
    """Its pairs are more than the weight. Pairs of 200,000 rows would not end."""
    with duckdb.connect() as con:
        con.execute(
            "CREATE TABLE visits AS SELECT 'a' AS who, CAST(i % 2 AS INTEGER) AS x0, "
            "CAST(i % 3 AS INTEGER) AS x1, CAST(i % 7 AS INTEGER) AS x2 FROM range(200000) AS r(i)"
        )
        (table,) = counter_over(DuckDBEngine(con), 10**6).siblings([MarginalQuery(("x0", "x0"))])
    assert table.tolist() == [[0, 0], [0, 0]]


def test_what_was_not_announced_is_refused():
    with duckdb.connect() as con:
        filled(con, some_rows(5))
        with pytest.raises(InternalError, match="not planned"):
            counter_over(DuckDBEngine(con), siblings=False).siblings(ASKED)


def test_the_statements_of_no_rows_are_those_of_a_row():
    told = []
    for who in (None, "ann"):
        with duckdb.connect() as con:
            filled(con, [(who, 0, 1, 2)])
            steps = []
            engine = DuckDBEngine(con, trace=lambda sql, seen=steps: seen.append(sql.split("\n", 1)[0]))
            counter = counter_over(engine)
            assert not any(table.any() for table in counter.siblings(ASKED))
            counter.close()
            told.append(steps)
    assert told[0] == told[1]
    assert len(told[0]) > 3
