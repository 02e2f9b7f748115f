"""Units of several rows: one unit changes only its own rows, and the draw among them is fair.

The draw is also tested on lots that look right and are wrong.
"""

import random
import re
from collections import Counter as Tally

import duckdb
import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.planning.queries import MarginalQuery
from dpsyn_sql.private.count.counter import SqlCounter
from dpsyn_sql.source.relation import PrivacyUnit
from dpsyn_sql.sqltext.fragments import Fragment

pytestmark = [pytest.mark.slow, pytest.mark.required]

QUICK = settings(max_examples=60, suppress_health_check=list(HealthCheck))
A = Attribute("a", "INTEGER", "numeric", edges=tuple(range(5)))
B = Attribute("b", "INTEGER", "numeric", edges=tuple(range(3)))
DOMAIN = Domain((A, B))
QUERIES = [MarginalQuery(("a", "b")), MarginalQuery(("a",)), MarginalQuery(("b",)), MarginalQuery(())]
KEYS = st.integers(0, 2**64 - 1)
UNITS = st.sampled_from(["ann", "Ann", "bob", "bob ", "", None])
FULL = [(unit, place % 4, place % 2) for unit in ("ann", "bob") for place in range(8)]
"""Two units with more rows than count."""
ROWS = st.lists(st.tuples(UNITS, st.integers(0, 3), st.integers(0, 1)), max_size=40)


class Faulty(DuckDBEngine):
    """Runs another statement where ours would encode; what it does to the text is ``fault``."""

    fault = staticmethod(lambda sql: sql)

    def execute(self, sql, *, step):
        super().execute(self.fault(sql) if step == "encoding the source" else sql, step=step)


@pytest.fixture(scope="module")
def con():
    with duckdb.connect() as connection:
        connection.execute("SET threads = 2; SET default_collation = 'nocase'")
        yield connection


def counts(con, rows, key, max_rows, fault=None):
    con.execute("CREATE OR REPLACE TEMP TABLE source (id VARCHAR, a INTEGER, b INTEGER)")
    if rows:
        columns = [list(column) for column in zip(*rows, strict=True)]
        con.execute(
            "INSERT INTO source SELECT unnest(?::VARCHAR[]), unnest(?::INTEGER[]), unnest(?::INTEGER[])",
            columns,
        )
    engine = Faulty(con)
    if fault is not None:
        engine.fault = fault
    unit = PrivacyUnit("id", max_rows)
    counter = SqlCounter(engine, Fragment("source"), DOMAIN, QUERIES, unit=unit, key=key)
    try:
        return [*counter.count(QUERIES)]
    finally:
        counter.close()


@example(FULL, "ann", 3, 2, random.Random(1))
@given(rows=ROWS, gone=UNITS, key=KEYS, max_rows=st.integers(1, 4), order=st.randoms(use_true_random=False))
@QUICK
def test_one_unit_changes_only_its_own_rows(con, rows, gone, key, max_rows, order):
    """The table with a unit and, its rows stored in another order, the table without it.

    The joint table of all attributes shows every row that is kept. If a row of another unit changed, a
    cell would fall, or more would be gone than the unit itself has.
    """
    without = [row for row in rows if row[0] != gone]
    order.shuffle(without)
    own = Tally((a, b) for unit, a, b in rows if unit == gone)
    before = counts(con, without, key, max_rows)
    after = counts(con, rows, key, max_rows)
    change = [with_it - without_it for with_it, without_it in zip(after, before, strict=True)]
    joint = change[0]
    kept = min(max_rows, own.total()) if gone is not None else 0
    assert joint.min() >= 0
    assert joint.sum() == kept
    assert all(joint[cell] <= own[cell] for cell in np.ndindex(joint.shape))
    for table in change:
        assert np.abs(table).sum() <= max_rows  # L1 of one table
        assert (table**2).sum() <= max_rows**2  # L2 of one table
    together = np.concatenate([table.ravel() for table in change])
    assert np.abs(together).sum() <= max_rows * len(QUERIES)
    assert (together**2).sum() <= max_rows**2 * len(QUERIES)


def test_k_identical_rows_of_one_unit_reach_the_bound(con):
    """The sensitivities are exact: k rows in one cell of each table."""
    base = [("bob", 1, 1), ("ann", 2, 0)]
    unit = [("eve", 3, 1)] * 9
    for max_rows in (1, 3, 9):
        before, after = counts(con, base, 1, max_rows), counts(con, base + unit, 1, max_rows)
        together = np.concatenate([(y - x).ravel() for x, y in zip(before, after, strict=True)])
        assert np.abs(together).sum() == max_rows * len(QUERIES)
        assert (together**2).sum() == max_rows**2 * len(QUERIES)


def ordered_by(expression):
    """The statement with another lot: what a row's place in its unit is decided by."""
    return lambda sql: re.sub(r"hash\(xor\(\n.*?\)\) AS lot", f"{expression} AS lot", sql, flags=re.DOTALL)


# -- the draw is fair ---------------------------------------------------------------------------

LOWEST_P = 1e-4  # keys are fixed, so these tests always give the same answer


@pytest.mark.parametrize(
    "keys",
    [
        pytest.param([random.Random(seed).getrandbits(64) for seed in range(150)], id="random"),
        pytest.param(range(150), id="small", marks=pytest.mark.slow),
        pytest.param([(1 << i) ^ (1 << j) for i in range(64) for j in range(i)][:150], id="two bits"),
    ],
)
def test_over_keys_every_row_of_a_unit_is_as_likely(con, keys):
    """A unit with the rows x, y, z, z: the identical rows have two lots."""
    rows = [("ann", 0, 0), ("ann", 3, 0), ("ann", 3, 1), ("ann", 3, 1)]
    found = sum(counts(con, rows, key, 1)[0] for key in keys)
    observed = [found[0, 0], found[3, 0], found[3, 1]]
    assert sum(observed) == len(keys)
    assert chisquare(observed, np.array([1, 1, 2]) / 4 * len(keys)).pvalue > LOWEST_P


def first_and_last(con, key, fault=None, units=6000):
    """Under one key: how many units draw each of their three rows first, and how many last; p-value.

    All units hold the same three rows, so nothing but the unit tells their draws apart.
    """
    values = (0, 1, 3)
    rows = [(f"u{unit}", value, 1) for unit in range(units) for value in values]
    one, two = (counts(con, rows, key, max_rows, fault)[1][list(values)] for max_rows in (1, 2))
    assert one.sum() == units
    assert two.sum() == 2 * units
    return min(chisquare(one).pvalue, chisquare(units - two).pvalue)


@pytest.mark.parametrize("key", [0, 1, 2**64 - 1, 0xDEADBEEFCAFEF00D])
def test_under_one_key_every_row_of_a_unit_is_as_likely(con, key):
    assert first_and_last(con, key) > LOWEST_P


@pytest.mark.parametrize(
    "lot",
    [
        "hash(xor(hash(p0, copy), 1::UBIGINT))",  # without the unit: one order of codes for all units
        "hash(seed, p0)",  # the last argument is only xored in
        "hash(copy)",  # identical rows apart, the order of codes decides
    ],
)
def test_unfair_lots_are_caught(con, lot):
    assert first_and_last(con, 1, ordered_by(lot)) < 1e-9


def test_a_frequent_row_of_a_unit_is_drawn_as_often_as_it_occurs(con):
    """Without numbers for identical rows each code would have one lot: a half instead of a tenth."""
    rows = [(f"u{unit}", int(copy == 0), 1) for unit in range(3000) for copy in range(10)]
    expected = np.array([0.9, 0.1]) * 3000
    assert chisquare(counts(con, rows, 8, 1)[1][:2], expected).pvalue > LOWEST_P
    unnumbered = ordered_by("hash(xor(hash(p0), hash(seed)))")
    assert chisquare(counts(con, rows, 8, 1, unnumbered)[1][:2], expected).pvalue < 1e-9
