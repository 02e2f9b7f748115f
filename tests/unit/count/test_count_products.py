"""Counts of codes that are read, by adding rows or by products of matrices: equal to brute force and to GROUP
BYs, exact, and chosen by public facts."""

from dataclasses import replace
from itertools import combinations, permutations

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.engines import counting_engine
from dpsyn_sql.engines.code_slices import FiledTables
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.engines.instance import private_instance
from dpsyn_sql.errors import InternalError
from dpsyn_sql.planning.families import families_of
from dpsyn_sql.planning.queries import MarginalQuery
from dpsyn_sql.private.count import passes, planner
from dpsyn_sql.private.count import sums as products
from dpsyn_sql.private.count.counter import SqlCounter
from dpsyn_sql.private.count.planner import byte_packs, plan_counting
from dpsyn_sql.private.count.sums import PairSums
from dpsyn_sql.source.relation import PrivacyUnit
from dpsyn_sql.sqltext.fragments import Fragment


def domain_of(*sizes):
    return Domain(
        tuple(
            Attribute(f"a{i}", "INTEGER", "categorical", labels=tuple(range(size - 1)), nullable=True)
            if size > 1
            else Attribute(f"a{i}", "INTEGER", "categorical", labels=(0,), other=False)
            for i, size in enumerate(sizes)
        )
    )


def asked(domain):
    """The total, every one-way marginal, and every pair in both orders."""
    return [MarginalQuery(attrs) for number in range(3) for attrs in permutations(domain.names, number)]


def brute(codes, places, shape):
    table = np.zeros(shape, dtype=np.int64)
    np.add.at(table, tuple(codes[place] for place in places), 1)
    return table


def packed(domain, packs, codes):
    return [
        np.ravel_multi_index([codes[a] for a in pack], [domain.attributes[a].size for a in pack]).astype(
            np.uint8
        )
        for pack in packs
    ]


tables = st.tuples(
    st.lists(st.integers(1, 5), min_size=1, max_size=7), st.integers(0, 60), st.integers(0, 2**32 - 1)
)


@settings(max_examples=60, deadline=None)
@given(tables, st.integers(1, 9), st.data())
def test_equals_brute_force_however_rows_are_divided(table, exact, data):
    sizes, rows, seed = table
    domain, rng = domain_of(*sizes), np.random.default_rng(seed)
    codes = [rng.integers(0, size, rows) for size in sizes]
    packs = byte_packs(range(len(sizes)), domain)
    sums = PairSums(domain, packs, exact=exact)
    cuts = sorted(data.draw(st.lists(st.integers(0, rows), max_size=3)))
    for start, stop in zip([0, *cuts], [*cuts, rows], strict=True):
        sums.add(packed(domain, packs, [column[start:stop] for column in codes]))
    found = sums.tables(asked(domain), domain)
    for query in asked(domain):
        places = [domain.index(name) for name in query.attrs]
        expected = brute(codes, places, query.shape(domain)) if places else np.array(rows)
        np.testing.assert_array_equal(found[query], expected)
        assert found[query].dtype == np.int64


@settings(max_examples=40, deadline=None)
@given(tables, st.data())
def test_weights_equal_brute_force_however_rows_are_divided(table, data):
    sizes, rows, seed = table
    domain, rng = domain_of(*sizes), np.random.default_rng(seed)
    codes = [rng.integers(0, size, rows) for size in sizes]
    weights = rng.integers(0, 2**20 + 1, rows)
    packs = byte_packs(range(len(sizes)), domain)
    exact = data.draw(st.sampled_from([None, 2**26]))
    sums = PairSums(domain, packs, weighted=True, exact=exact)
    cuts = sorted(data.draw(st.lists(st.integers(0, rows), max_size=3)))
    for start, stop in zip([0, *cuts], [*cuts, rows], strict=True):
        sums.add(packed(domain, packs, [column[start:stop] for column in codes]), weights[start:stop])
    found = sums.tables(asked(domain), domain)
    for query in asked(domain):
        places = [domain.index(name) for name in query.attrs]
        expected = np.zeros(query.shape(domain), dtype=np.int64)
        np.add.at(expected, tuple(codes[place] for place in places), weights if places else weights.sum())
        np.testing.assert_array_equal(found[query], expected)


def test_weights_leave_float64_before_it_rounds():
    """2^53 is the last integer that every smaller one reaches exactly."""
    domain = domain_of(2)
    sums = PairSums(domain, [(0,)], weighted=True)
    sums._single[...] = sums._held = sums.total = products.EXACT_WEIGHT - 1
    for weight in (1, 1, 2**20):
        sums.add([np.ones(1, dtype=np.uint8)], np.array([weight]))
    (table,) = sums.tables([MarginalQuery(("a0",))], domain).values()
    np.testing.assert_array_equal(table, [0, products.EXACT_WEIGHT + 1 + 2**20])


@pytest.mark.parametrize("bad", [None, [-1], [0.5], np.ma.masked_array([0], mask=[True])])
def test_weights_that_cannot_be_are_refused(bad):
    with pytest.raises(InternalError):
        weights = bad if bad is None or np.ma.is_masked(bad) else np.array(bad)
        PairSums(domain_of(2), [(0,)], weighted=True).add([np.zeros(1, dtype=np.uint8)], weights)


def test_packs_hold_every_attribute_once_and_fit_a_byte():
    domain = domain_of(2, 2, 2, 2, 2, 2, 2, 2, 2, 300, 5, 5, 5, 5)
    packs = byte_packs(range(14), domain)
    assert packs == ((0, 1, 2, 3, 4, 5, 6, 7), (8,), (9,), (10, 11, 12), (13,))


def test_sums_leave_float32_before_it_rounds():
    """2^24 is the last integer that every smaller one reaches exactly: one more row would be lost."""
    domain = domain_of(2)
    sums = PairSums(domain, [(0,)])
    sums._single[...] = products.EXACT_ROWS - 1
    sums._held = sums.total = products.EXACT_ROWS - 1
    for _ in range(3):
        sums.add([np.ones(1, dtype=np.uint8)])
    (table,) = sums.tables([MarginalQuery(("a0",))], domain).values()
    np.testing.assert_array_equal(table, [0, products.EXACT_ROWS + 2])
    assert np.float32(products.EXACT_ROWS) + np.float32(1) == np.float32(products.EXACT_ROWS)


def test_more_rows_than_are_exact_are_refused_at_once():
    with pytest.raises(InternalError, match="at once"):
        PairSums(domain_of(2), [(0,)], exact=4)._add([np.zeros(5, dtype=np.uint8)])


@pytest.mark.parametrize("bad", [[4], [-1], [0.5], np.ma.masked_array([0], mask=[True])])
def test_codes_that_cannot_be_are_refused(bad):
    with pytest.raises(InternalError):
        PairSums(domain_of(2, 2), [(0, 1)]).add(
            [np.ma.asarray(bad) if np.ma.is_masked(bad) else np.array(bad)]
        )


@pytest.fixture(params=["read", "products"])
def everywhere(monkeypatch, request):
    """All pairs are counted from codes that are read in chunks of 16 rows; the name of this way."""
    monkeypatch.setattr(planner, "_FEWEST_PAIRS", 1)
    monkeypatch.setattr(products, "multiply", lambda *_, weighted=False: request.param == "products")
    monkeypatch.setattr(counting_engine, "ROW_GROUP", 16)
    monkeypatch.setattr(passes, "_HELD_CELLS", 200)
    return request.param


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from([1, 2, 3, 5, 16, 17, 255, 256, 257, 300]), min_size=1, max_size=3),
    st.integers(0, 60),
    st.integers(0, 2**32 - 1),
    st.booleans(),
    st.data(),
)
def test_rows_are_added_to_the_cells_of_their_codes(sizes, rows, seed, weighted, data):
    """Arrays around the sizes where the type of a cell's number changes; the last cell has a row."""
    rng = np.random.default_rng(seed)
    codes = [np.append(rng.integers(0, size, rows), size - 1) for size in sizes]
    weights = np.append(rng.integers(0, 2**20 + 1, rows), 2**20) if weighted else np.ones(rows + 1, np.int64)
    found, expected = np.zeros(sizes, dtype=np.int64), np.zeros(sizes, dtype=np.int64)
    np.add.at(expected, tuple(codes), weights)
    cut = data.draw(st.integers(0, rows))
    for part in (slice(cut), slice(cut, None)):
        checked = [products.narrow(column[part], size) for column, size in zip(codes, sizes, strict=True)]
        products.add_rows(found, checked, weights[part] if weighted else 1)
    np.testing.assert_array_equal(found, expected)


def test_more_indicators_than_products_hold_are_read(monkeypatch):
    """Attributes of thousands of codes, NULL among them, in three chunks."""
    monkeypatch.setattr(planner, "_FEWEST_PAIRS", 1)
    monkeypatch.setattr(counting_engine, "ROW_GROUP", 16)
    domain, connection = domain_of(*(sizes := (3_000, 2, 1_100, 3))), duckdb.connect()
    codes = [np.random.default_rng(i).integers(0, size, 33) for i, size in enumerate(sizes)]
    columns = ", ".join(f"nullif(f{i}, {size - 1}) AS a{i}" for i, size in enumerate(sizes))
    connection.register("frame", {f"f{i}": column.astype(np.int32) for i, column in enumerate(codes)})
    connection.execute(f"CREATE TABLE source AS SELECT {columns} FROM frame")
    queries = [query for query in asked(domain) if {"a0", "a2"} - set(query.attrs) and query.attrs]
    counter = SqlCounter(DuckDBEngine(connection), Fragment("source"), domain, queries)
    assert counter.plan.strategy == "read"
    for query, table in zip(queries, counter.count(queries), strict=True):
        places = [domain.index(name) for name in query.attrs]
        np.testing.assert_array_equal(table, brute(codes, places, query.shape(domain)))


SIZES = (2, 3, 2, 5, 4, 2, 2, 2, 2, 2, 6)


def source_of(rows, seed=5):
    columns = ", ".join(
        f"nullif(CAST(hash(i * 31 + {k} + {seed}) % {size} AS INTEGER), {size - 1}) AS a{k}"
        for k, size in enumerate(SIZES)
    )
    return f"CREATE TABLE source AS SELECT {columns}, nullif(i % 23, 22) AS who FROM range({rows}) AS n(i)"


def engine_with(rows):
    connection = duckdb.connect()
    connection.execute(source_of(rows))
    return DuckDBEngine(connection)


@pytest.mark.parametrize("rows", [0, 1, 15, 16, 17, 100])
@pytest.mark.parametrize("unit", [PrivacyUnit(), PrivacyUnit("who", 2)], ids=["rows", "units"])
def test_equals_group_by(everywhere, rows, unit):
    domain, engine = domain_of(*SIZES), engine_with(rows)
    queries = asked(domain)
    reading = SqlCounter(engine, Fragment("source"), domain, queries, unit=unit, key=7)
    assert reading.plan.strategy == everywhere
    grouped = SqlCounter(engine, Fragment("source"), domain, queries, unit=unit, key=7)
    # The same packs: the rows of a unit that are kept depend on their codes in these.
    grouped._plan = replace(reading.plan, strategy="packed")
    for one, other in zip(reading.count(queries), grouped.count(queries), strict=True):
        np.testing.assert_array_equal(one, other)
    engine.close()


@pytest.mark.parametrize("rows", [0, 1, 17, 100])
def test_weights_of_families_equal_group_by(everywhere, rows):
    engine, unit = engine_with(rows), PrivacyUnit("who", 3, True)
    families = families_of(domain_of(*SIZES), unit, ["a1"])
    domain = families.domain
    queries = asked(domain)
    reading = SqlCounter(engine, Fragment("source"), domain, queries, unit=unit, key=7, families=families)
    assert reading.plan.strategy == everywhere and reading.plan.weighted
    grouped = SqlCounter(engine, Fragment("source"), domain, queries, unit=unit, key=7, families=families)
    grouped._plan = replace(reading.plan, strategy="packed")
    for one, other in zip(reading.count(queries), grouped.count(queries), strict=True):
        np.testing.assert_array_equal(one, other)
    engine.close()


def test_kept_and_for_further_marginals(everywhere):
    domain, engine = domain_of(*SIZES), engine_with(100)
    planned, further = asked(domain)[:40], True
    binned = MarginalQuery(("a3", "a10"), ((0, 0, 1, 1, 0), (0, 1, 1, 2, 2, 0)))
    counter = SqlCounter(engine, Fragment("source"), domain, planned, further=further)
    tables = [*counter.count([*planned[:7], planned[3]])]
    whole = SqlCounter(engine, Fragment("source"), domain, asked(domain))
    for query, table in zip([*planned[:7], planned[3]], tables, strict=True):
        np.testing.assert_array_equal(table, next(whole.count([query])))
    (table,) = counter.count([binned])
    (original,) = whole.count([MarginalQuery(("a3", "a10"))])
    expected = np.zeros((2, 3), dtype=np.int64)
    for i, j in np.ndindex(original.shape):
        expected[binned.maps[0][i], binned.maps[1][j]] += original[i, j]
    np.testing.assert_array_equal(table, expected)
    counter.close()
    engine.close()


@pytest.mark.parametrize("rows", [0, 100])
def test_codes_in_a_file_are_read_too(everywhere, rows):
    """Where codes did not fit as a temporary table, statements read a view of a table in a file."""
    domain, memory, engine = domain_of(*SIZES), engine_with(rows), private_instance()
    engine.execute(source_of(rows), step="making the source")
    engine._filed = FiledTables(engine, engine._scratch.path)
    filed = SqlCounter(engine, Fragment("source"), domain, asked(domain))
    assert filed.plan.strategy == everywhere
    kept = SqlCounter(memory, Fragment("source"), domain, asked(domain))
    for one, other in zip(filed.count(asked(domain)), kept.count(asked(domain)), strict=True):
        np.testing.assert_array_equal(one, other)
    filed.close()
    engine.close()
    memory.close()


def test_rows_that_cannot_be_read_by_their_places_are_an_error(everywhere):
    """Places of rows without gaps are DuckDB's promise of a table that loses no row; it is checked."""
    domain, engine = domain_of(*SIZES), engine_with(40)
    counter = SqlCounter(engine, Fragment("source"), domain, asked(domain))
    fetch = engine.fetch

    def losing(sql, *, step):
        found = fetch(sql, step=step)
        return {name: column[1:] for name, column in found.items()} if step == "reading codes" else found

    engine.fetch = losing
    with pytest.raises(InternalError, match="exactly once"):
        counter.count(asked(domain))


def test_public_sizes_choose():
    small, large = domain_of(*[2] * 80), domain_of(*[40] * 80)
    pairs = [MarginalQuery(pair) for pair in combinations(small.names, 2)]
    assert plan_counting(pairs, small).strategy == "products"
    assert plan_counting(pairs, small, in_parts=True).strategy == "packed"
    assert plan_counting([*pairs, MarginalQuery(small.names[:3])], small).strategy == "packed"
    assert plan_counting(pairs, large).strategy == "read"
    assert plan_counting(pairs, large, in_parts=True).strategy != "read"
    assert plan_counting(pairs[:900], small).strategy == "packed"
    assert plan_counting(pairs, small, bounded=True, weighted=True).strategy == "read"
    wide = domain_of(5_000, *[40] * 60)
    beyond = [MarginalQuery(("a0", "a1")), *(MarginalQuery(pair) for pair in combinations(wide.names[1:], 2))]
    assert plan_counting(beyond, wide).strategy == "read"
    text = "\n".join(plan_counting(pairs, large).describe())
    assert "Counting    read (3,160 marginals of one or two attributes)" in text
    assert "3,160 arrays on the codes, the largest with 1,600 cells; about 9.4 s per million rows" in text
    many = domain_of(*[2] * 400)
    all_pairs = [MarginalQuery(pair) for pair in combinations(many.names, 2)]
    weighted = plan_counting(all_pairs, many, bounded=True, weighted=True)
    assert weighted.strategy == "products"
    assert weighted.seconds_per_million_rows > plan_counting(all_pairs, many).seconds_per_million_rows
    bounded = plan_counting(pairs, small, bounded=True)
    text = "\n".join(bounded.describe())
    assert "Counting    products (3,160 marginals of one or two small attributes)" in text
    assert "products of a matrix of 80 indicators; about 0.18 s per million rows" in text
    assert "privacy unit" in text
