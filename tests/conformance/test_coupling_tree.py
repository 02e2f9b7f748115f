"""A unit more or less in a tree of tables: every table of every leg changes by what the unit adds, at most WEIGHT."""

import random

import duckdb
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.tied_tables import DATABASES, Reference, dense, fill, key_of, tables, without

from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.source.relation import WEIGHT

QUICK = settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def con():
    with duckdb.connect() as connection:
        connection.execute("SET threads = 2; SET default_collation = 'nocase'")
        yield connection


def counted(con, data):
    fill(con, data)
    return tables(DuckDBEngine(con))


def check(con, data, unit, seed):
    """The neighbour lacks the unit, and its rows lie in another order."""
    less = {name: random.Random(seed).sample(rows, len(rows)) for name, rows in without(data, unit).items()}
    more, fewer = counted(con, data), counted(con, less)
    largest = 0
    for name, table in more.items():
        change = table - fewer[name]
        assert change.min() >= 0, name
        assert change.sum() <= WEIGHT, name
        largest = max(largest, int(change.sum()))
    return largest


@QUICK
@given(DATABASES, st.integers(0, 2**32))
def test_a_unit_changes_every_table_by_its_weight_at_most(con, data, seed):
    units = sorted({key_of(row[:1]) for row in data["customers"]} - {None})
    if units:
        assert check(con, data, units[seed % len(units)], seed) == WEIGHT


@pytest.mark.parametrize("place", range(4))
def test_a_unit_of_full_families_that_shares_keys_with_others(con, place):
    """Orders of one key are in two units: each unit has its own copies of all below."""
    data = dense(place)
    fill(con, data)
    units = {}
    for row in Reference(con, data).rows["items"]:
        units.setdefault((row.parent.key, row.key), set()).add(row.unit)
    shared = sorted(set().union(*(own for own in units.values() if len(own) > 1)))
    assert len(shared) > 1
    for unit in shared[:2]:
        assert check(con, data, unit, place) == WEIGHT


def test_a_unit_of_very_many_rows_changes_tables_by_its_weight_at_most(con):
    data = dense(9, units=3)
    data["orders"] += [(1_000 + i, "u1", i % 3, i % 9) for i in range(300)]
    data["items"] += [(1_000 + i % 300, str(i // 300), i % 3) for i in range(3_000)]
    data["cards"] += [("u1", i % 3) for i in range(5_000)]
    assert check(con, data, b"u1", 1) == WEIGHT
    np.testing.assert_equal(check(con, data, b"u2", 2), WEIGHT)
