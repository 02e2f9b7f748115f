"""Counts kept between questions: the same as counted anew, one pass, gone at the end."""

import duckdb
import numpy as np
import pytest

from dpsyn_sql.count.cached import CachedCounter
from dpsyn_sql.count.counter import SqlCounter
from dpsyn_sql.domain.attributes import Attribute, Domain
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.errors import InternalError
from dpsyn_sql.planning.plan import Further
from dpsyn_sql.planning.queries import MarginalQuery
from dpsyn_sql.sqltext.fragments import Fragment

DOMAIN = Domain(
    tuple(
        Attribute(name, "INTEGER", "categorical", labels=tuple(range(size)), other=True)
        for name, size in [("a", 2), ("b", 3), ("c", 40)]
    )
)
AB, BC, A, B, TOTAL = (MarginalQuery(tuple(attrs)) for attrs in ["ab", "bc", "a", "b", ""])
PLANNED = [A, B, AB, BC, AB, TOTAL]


@pytest.fixture
def con():
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE source AS SELECT i % 2 AS a, i % 3 AS b, i % 41 AS c FROM range(876) AS n(i)"
        )
        yield connection


@pytest.fixture
def ran():
    return []


@pytest.fixture
def counter(con, ran):
    return SqlCounter(DuckDBEngine(con, trace=ran.append), Fragment("source"), DOMAIN, PLANNED)


def test_nothing_runs_before_the_first_question(counter, ran):
    CachedCounter(counter, PLANNED).close()
    assert ran == []


def test_all_is_counted_at_the_first_question_and_the_codes_are_dropped(counter, con, ran):
    kept = CachedCounter(counter, PLANNED)
    (first,) = kept.count([A])
    statements = len(ran)
    assert con.execute("SELECT count(*) FROM duckdb_tables() WHERE temporary").fetchone() == (0,)
    answers = kept.count([BC, A, AB, A, TOTAL])
    assert len(ran) == statements
    np.testing.assert_array_equal(answers[1], first)
    con.execute("INSERT INTO source VALUES (0, 0, 0)")
    np.testing.assert_array_equal(kept.count([A])[0], first)


@pytest.mark.parametrize("most", [10**6, 1])
def test_the_counts_are_those_of_the_counter_kept_or_not(counter, con, most):
    kept = CachedCounter(counter, PLANNED, most)
    plain = SqlCounter(DuckDBEngine(con), Fragment("source"), DOMAIN, PLANNED)
    for queries in ([A, B], [BC, AB], [AB, AB, TOTAL]):
        for one, other in zip(kept.count(queries), plain.count(queries), strict=True):
            assert one.dtype == np.int64
            np.testing.assert_array_equal(one, other)
    plain.close()
    kept.close()
    assert con.execute("SELECT count(*) FROM duckdb_tables() WHERE temporary").fetchone() == (0,)


def test_more_cells_than_allowed_are_counted_question_by_question(counter, ran):
    kept = CachedCounter(counter, PLANNED, counter.plan.cells - 1)
    kept.count([A])
    before = len(ran)
    kept.count([A])
    assert len(ran) > before
    kept.close()


def test_what_is_kept_cannot_be_changed_and_goes_at_the_end(counter):
    kept = CachedCounter(counter, PLANNED)
    (table,) = kept.count([AB])
    with pytest.raises(ValueError, match="read-only"):
        table += 1
    kept.close()
    assert kept._kept == {}


def test_only_announced_marginals_are_counted(counter, ran):
    with pytest.raises(InternalError, match="not planned"):
        CachedCounter(counter, PLANNED).count([MarginalQuery(("c",))])
    assert ran == []


def test_repr_shows_no_count(counter):
    kept = CachedCounter(counter, PLANNED)
    kept.count([AB])
    assert repr(kept) == "CachedCounter(SqlCounter(packed))"


def test_further_marginals_are_counted_when_asked_for_and_kept_from_then_on(con, ran):
    triple = MarginalQuery(("c", "a", "b"))
    further = Further(3, 1_000, 1_000)
    engine = DuckDBEngine(con, trace=ran.append)
    kept = CachedCounter(
        SqlCounter(engine, Fragment("source"), DOMAIN, PLANNED, further=further), PLANNED, further=True
    )
    kept.count(PLANNED)
    (first,) = kept.count([triple])
    np.testing.assert_array_equal(first.sum(axis=0), kept.count([AB])[0])
    assert not first.flags.writeable
    statements = len(ran)
    con.execute("INSERT INTO source VALUES (0, 0, 0)")
    for table in kept.count([triple, AB, triple])[::2]:
        np.testing.assert_array_equal(table, first)
    assert len(ran) == statements
    kept.close()
    assert con.execute("SELECT count(*) FROM duckdb_tables() WHERE temporary").fetchone() == (0,)


def test_a_resumed_release_may_ask_for_further_marginals_first(con):
    triple = MarginalQuery(("a", "b", "c"))
    counter = SqlCounter(DuckDBEngine(con), Fragment("source"), DOMAIN, PLANNED, further=Further(3, 999, 999))
    kept = CachedCounter(counter, PLANNED, further=True)
    (table,) = kept.count([triple])
    np.testing.assert_array_equal(kept.count([AB])[0], table.sum(axis=2))
    kept.close()
