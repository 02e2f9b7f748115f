"""Nodes of running totals, counted by SQL: how far one unit can move them, and that they add up to the rows."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.attributes.shape import Shape
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.planning.queries import MarginalQuery
from dpsyn_sql.planning.running import WAYS, Running
from dpsyn_sql.private.count.counter import SqlCounter
from dpsyn_sql.private.rows.relations import sliced_source
from dpsyn_sql.source.relation import Column, PrivacyUnit, Relation
from dpsyn_sql.source.slices import Window
from dpsyn_sql.sqltext.fragments import Fragment

DOMAIN = Domain((Attribute("a", "INTEGER", "numeric", edges=(0, 1, 2, 3)),))
QUERY = (MarginalQuery(("a",)),)
PERIODS = 5
EDGES = tuple(f"2020-01-{day:02}" for day in range(1, PERIODS + 2))
COLUMNS = (Column("id", "INTEGER"), Column("day", "DATE"), Column("a", "INTEGER"))
RELATION = Relation("t", "table", Fragment("t"), COLUMNS)
ROWS = st.lists(
    st.tuples(st.sampled_from([1, 2, 3, None]), st.integers(0, PERIODS), st.integers(0, 2)), max_size=25
)
OWN = st.lists(st.tuples(st.integers(0, PERIODS - 1), st.integers(0, 2)), min_size=1, max_size=14)


def counts(con, rows, running):
    """The exact table of each period's node; day 0 lies before the calendar."""
    con.execute("CREATE OR REPLACE TEMP TABLE t (id INTEGER, day DATE, a INTEGER)")
    for row in rows:
        con.execute("INSERT INTO t SELECT ?, DATE '2019-12-31' + ?::INTEGER, ?", row)
    engine = DuckDBEngine(con)
    found = {}
    for period in range(1, running.periods + 1):
        span = running.span(period)
        window = Window("day", "days", EDGES, period - span, span, running.windows)
        unit = PrivacyUnit("id", running.level(period).rows)
        source = sliced_source(RELATION, unit, window, Shape(()))
        counter = SqlCounter(engine, source.relation.sql, DOMAIN, QUERY, unit=unit, key=5)
        found[period] = next(counter.count(QUERY))
        counter.close()
    return found


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(rows=ROWS, own=OWN, windows=st.integers(1, PERIODS), most=st.integers(1, 2))
def test_one_unit_moves_no_more_nodes_and_no_node_further_than_is_charged(con, way, rows, own, windows, most):
    running = Running(way, PERIODS, windows, most, "gdp")
    without = counts(con, rows, running)
    with_it = counts(con, [*rows, *((9, day + 1, a) for day, a in own)], running)
    moved = {period: int(np.abs(with_it[period] - without[period]).sum()) for period in without}
    for level in running.levels:
        of_level = [moved[period] for period in moved if running.span(period) == level.span]
        assert max(of_level, default=0) <= level.rows
        assert sum(map(bool, of_level)) <= level.charged
    assert any(moved.values())  # each window is in a node, that of its period


@pytest.mark.parametrize("way", WAYS)
def test_nodes_add_up_to_the_rows_so_far(con, way):
    chance = np.random.default_rng(3)
    rows = [
        (unit, day, int(chance.integers(3)))
        for unit in range(20)
        for day in range(PERIODS + 1)
        if chance.random() < 0.7
    ]
    running = Running(way, PERIODS, PERIODS, 1, "gdp")
    found = counts(con, rows, running)
    for period in range(1, PERIODS + 1):
        so_far = [a for _, day, a in rows if 1 <= day <= period]
        total = sum(found[node] for node in running.nodes(period))
        assert total.tolist() == np.bincount(so_far, minlength=3).tolist()
