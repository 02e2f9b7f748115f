"""Rows that stay together: codes, weights and the row before, against their definitions."""

import random
from collections import defaultdict
from itertools import pairwise
from types import SimpleNamespace

import duckdb
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.planning.families import PLACES, families_of, numbers_of_rows
from dpsyn_sql.planning.queries import MarginalQuery
from dpsyn_sql.private.count.counter import SqlCounter
from dpsyn_sql.source.relation import WEIGHT, PrivacyUnit
from dpsyn_sql.sqltext.fragments import Fragment

QUICK = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
BORN = Attribute("born", "INTEGER", "numeric", edges=(0, 10, 20, 30))
WARD = Attribute("ward", "VARCHAR", "categorical", labels=("ear", "eye"), other=True)
NUMBER = Attribute("number", "BIGINT", "numeric", edges=(0, 5, 10, 15, 20), nullable=True)
DOMAIN = Domain((BORN, WARD, NUMBER))
UNITS = st.sampled_from(["ann", "Ann", "bob", "", None])
ROWS = st.lists(
    st.tuples(
        UNITS, st.integers(0, 29), st.sampled_from(["ear", "eye", "toe"]), st.none() | st.integers(-3, 25)
    ),
    max_size=24,
)


@pytest.fixture(scope="module")
def con():
    with duckdb.connect() as connection:
        connection.execute("SET threads = 2; SET default_collation = 'nocase'")
        yield connection


def counter(con, rows, *, order, most=3, key=5, queries=None, persons=frozenset({"born"})):
    con.execute("CREATE OR REPLACE TEMP TABLE source (id VARCHAR, born INTEGER, ward VARCHAR, number BIGINT)")
    if rows:
        columns = [list(column) for column in zip(*rows, strict=True)]
        con.execute(
            "INSERT INTO source SELECT unnest(?::VARCHAR[]), unnest(?::INTEGER[]), unnest(?::VARCHAR[]), "
            "unnest(?::BIGINT[])",
            columns,
        )
    unit = PrivacyUnit("id", most, True, "number" if order else None)
    families = families_of(DOMAIN, unit, persons)
    asked = queries or [MarginalQuery((name,)) for name in families.domain.names]
    further = True
    made = SqlCounter(
        DuckDBEngine(con),
        Fragment("source"),
        families.domain,
        asked,
        unit=unit,
        key=key,
        further=further,
        families=families,
    )
    return SimpleNamespace(made=made, families=families, asked=asked)


def tables(con, rows, **settings):
    one = counter(con, rows, **settings)
    try:
        return dict(zip(one.asked, one.made.count(one.asked), strict=True)), one.families
    finally:
        one.made.close()


def own_codes(row):
    _, born, ward, number = row
    bins = 4 if number is None else min(max(number, 0), 19) // 5
    return born // 10, {"ear": 0, "eye": 1, "toe": 2}[ward], bins


def by_hand(rows, families):
    """All rows of a unit are kept: the tables of the definitions."""
    found = {name: np.zeros(families.domain[name].size, np.int64) for name in families.domain.names}
    units = defaultdict(list)
    for row in rows:
        if row[0] is not None:
            units[row[0]].append(row)
    for own in units.values():
        own.sort(key=lambda row: (99 if row[3] is None else min(max(row[3], 0), 19), *own_codes(row)))
        weight, born = WEIGHT // len(own), [own_codes(row)[0] for row in own]
        for place, row in enumerate(own):
            _, ward, number = own_codes(row)
            last = own_codes(own[place - 1]) if place else (None, 3, 4)
            moments = [99 if one[3] is None else min(max(one[3], 0), 19) for one in own]
            passed = moments[place] - moments[place - 1] if place and moments[place] != 99 else None
            codes = {
                "born": min(range(3), key=lambda code: (-born.count(code), code)),
                "columns that differ": int(len(set(born)) > 1),
                "ward": ward,
                "number": number,
                "rows of the unit": len(own) - 1,
                "place of the row": 0
                if len(own) == 1
                else 1
                if place == 0
                else 3
                if place == len(own) - 1
                else 2,
                "since the row before": families.domain["since the row before"].size - 1
                if passed is None
                else passed.bit_length()
                if families.order
                else 0,
                "ward before": last[1],
                "number before": last[2],
            }
            for name in families.domain.names:
                found[name][codes[name]] += weight
    return found


@given(rows=ROWS, seed=st.integers(0, 99))
@QUICK
def test_all_rows_of_units_are_counted_by_their_weights(con, rows, seed):
    random.Random(seed).shuffle(rows)
    found, families = tables(con, rows, order=True, most=24)
    wanted = by_hand(rows, families)
    for (name,), table in ((query.attrs, table) for query, table in found.items()):
        assert table.tolist() == wanted[name].tolist(), name


@given(rows=ROWS, own=ROWS, seed=st.integers(0, 99), order=st.booleans(), key=st.integers(0, 2**64 - 1))
@QUICK
def test_a_unit_adds_at_most_its_weight_and_changes_no_other(con, rows, own, seed, order, key):
    own = [("zoe", *row[1:]) for row in own]
    both = [*rows, *own]
    random.Random(seed).shuffle(both)
    pairs = [
        MarginalQuery(("ward", "number")),
        MarginalQuery(("born", "rows of the unit")),
        MarginalQuery(("born", "columns that differ")),
        *([MarginalQuery(("number", "number before"))] if order else []),
        MarginalQuery(()),
    ]
    before, _ = tables(con, rows, order=order, key=key, queries=pairs)
    after, _ = tables(con, both, order=order, key=key, queries=pairs)
    for query, table in after.items():
        change = table - before[query]
        assert (change >= 0).all()
        assert change.sum() <= WEIGHT
        assert change.sum() == (WEIGHT // min(3, len(own)) * min(3, len(own)) if own else 0)


def test_a_unit_has_its_most_frequent_codes_and_says_which_columns_differ(con):
    rows = {
        "same": [(5, "eye", 1), (5, "eye", 9)],
        "a tie": [(25, "eye", 1), (5, "eye", 9)],
        "a typing error": [(5, "eye", 1), (25, "eye", 9), (25, "eye", 9)],
        "another": [(5, "eye", 1), (5, "eye", 1), (5, "ear", 1), (5, "toe", 1)],
        "both": [(5, "toe", 1), (25, "toe", 1), (25, "ear", 1)],
    }
    query = MarginalQuery(("born", "ward", "columns that differ"))
    listed = [(name, *row) for name, own in rows.items() for row in own]
    one = counter(con, listed, order=False, most=4, queries=[query], persons={"born", "ward"})
    try:
        (table,) = one.made.count([query])
    finally:
        one.made.close()
    assert one.families.domain["columns that differ"].labels == ("none", "born", "ward", "several of them")
    wanted = {(0, 1, 0): 1, (0, 1, 1): 1, (2, 1, 1): 1, (0, 1, 2): 1, (2, 2, 3): 1}
    found = {tuple(map(int, cell)): round(table[tuple(cell)] / WEIGHT) for cell in np.argwhere(table)}
    assert found == wanted


def test_a_unit_of_one_row_uses_all_of_the_weight(con):
    found, _ = tables(con, [("ann", 3, "ear", 4)], order=False)
    assert all(table.max() == WEIGHT == table.sum() for table in found.values())


@given(rows=ROWS)
@QUICK
def test_bins_of_later_marginals_have_the_same_weights(con, rows):
    query = MarginalQuery(("ward", "number", "born"), ((0, 0, 1), None, (0, 1, 1)))
    one = counter(con, rows, order=True)
    try:
        plain = MarginalQuery(("ward", "number", "born"))
        coarse, fine = one.made.count([query, plain])
        summed = np.add.reduceat(np.add.reduceat(fine, [0, 2], axis=0), [0, 1], axis=2)
        assert coarse.tolist() == summed.tolist()
    finally:
        one.made.close()


@pytest.mark.parametrize("most", [2, 16, 64, 65, 100, 1000, 10_000])
def test_every_number_of_rows_has_a_bin(most):
    edges = numbers_of_rows("n", most).edges
    assert edges[0] == 1
    assert edges[-1] == most + 1
    assert all(low < high for low, high in pairwise(edges))
    assert list(edges[:16]) == list(range(1, 17))[: most + 1]


def test_places_are_four():
    assert PLACES == ("only", "first", "middle", "last")
