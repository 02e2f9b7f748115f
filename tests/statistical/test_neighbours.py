"""The sensitivity argument, on the counts themselves: one row more changes one cell of each table by one."""

import csv
from itertools import combinations

import duckdb
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.shapes import domain_of

import dpsyn_sql
from dpsyn_sql.engines.open_source import open_source
from dpsyn_sql.methods import METHODS
from dpsyn_sql.planning.queries import MarginalQuery
from dpsyn_sql.private.count.counter import SqlCounter
from dpsyn_sql.private.measure.noise import ExactNoise

pytestmark = [pytest.mark.slow, pytest.mark.required]

SPEC = {
    "columns": {
        "n": {"type": "numeric", "lower": -5, "upper": 20, "bins": 4},
        "x": {"type": "numeric", "lower": 0.0, "upper": 1.0, "bins": 3, "nullable": True},
        "s": {"type": "categorical", "categories": ["a", "b"], "nullable": True},
        "d": {"type": "temporal", "lower": "2001-01-01", "upper": "2002-12-31", "bins": 2},
    }
}
ROWS = st.tuples(
    st.one_of(st.none(), st.integers(-(2**31), 2**31 - 1)),
    st.one_of(st.none(), st.floats()),
    st.one_of(st.none(), st.sampled_from(["a", "b", "", "A", "zzz", "'"])),
    st.one_of(st.none(), st.dates().map(str)),
)


PUBLIC_ANSWER = 1000
"""Every noisy answer, whatever the counts: then both tables are asked the same adaptive questions."""


def exact_counts(monkeypatch, rows, method):
    """What stands behind the door: the vectors that the noise source is given."""
    seen = []

    def spy(self, values, scale):
        seen.append(values.copy())
        return np.full_like(values, PUBLIC_ANSWER)

    def chosen(self, scores, scale, kind, number):
        seen.append(scores.copy())
        return np.arange(number)

    monkeypatch.setattr(ExactNoise, "gaussian", spy)
    monkeypatch.setattr(ExactNoise, "select", chosen)
    with duckdb.connect() as con:
        con.execute("CREATE TABLE t(n INTEGER, x DOUBLE, s VARCHAR, d DATE)")
        if rows:
            con.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", rows)
        result = dpsyn_sql.release(con, "t", domain=SPEC, method=method, rows=1)
    return seen, result


@pytest.mark.parametrize("method", sorted(METHODS))
@settings(max_examples=3)
@given(rows=st.lists(ROWS, max_size=6), extra=ROWS, place=st.integers(0, 6))
def test_one_row_changes_one_cell_of_each_table_and_each_distance_by_one(method, rows, extra, place):
    with pytest.MonkeyPatch.context() as monkeypatch:
        without, result = exact_counts(monkeypatch, rows, method)
        with_it, _ = exact_counts(monkeypatch, [*rows[:place], extra, *rows[place:]], method)
    mechanisms = result.certificate()["mechanisms"]
    assert len(without) == len(with_it) == len(mechanisms)
    residuals = 0
    for before, after, mechanism in zip(without, with_it, mechanisms, strict=True):
        lattice = mechanism.get("lattice", 1)  # counts are asked in steps of it
        if mechanism["event"] == "gaussian" and lattice == 1:
            assert np.sum((after - before) ** 2) == mechanism["l2_squared"], "residuals"
            residuals += 1
            continue
        assert lattice == (1 if mechanism["event"] == "selection" else 16)
        assert not (before % lattice).any() and not (after % lattice).any()
        before, after = before // lattice, after // lattice
        change = after - before
        assert np.abs(change).max() <= 1
        assert mechanism["event"] == "selection" or np.sum(change**2) <= mechanism["l2_squared"]
        if "marginals" in mechanism:  # not a question of an adaptive step: those may be distances
            assert change.min() >= 0 and change.max() == 1
            assert change.sum() == mechanism["marginals"] == mechanism["l2_squared"]
            assert np.count_nonzero(before) <= before.sum() == len(rows) * mechanism["marginals"]
    assert bool(residuals) == (method == "adaptive")


# -- every type of column, from a table and from text -------------------------------------------

TYPES = {
    "big": ("BIGINT", {"type": "numeric", "lower": -(2**63), "upper": 2**63 - 1, "bins": 3}),
    "money": ("DECIMAL(7, 2)", {"type": "numeric", "lower": "-1.00", "upper": "99999.99", "bins": 4}),
    "ratio": ("FLOAT", {"type": "numeric", "lower": 0.0, "upper": 0.1, "bins": 3, "nullable": True}),
    "moment": ("TIMESTAMP", {"type": "temporal", "lower": "1999-12-31", "upper": "2000-01-02", "bins": 2}),
    "yes": ("BOOLEAN", {"type": "categorical", "categories": [True, False], "nullable": True}),
    "small": ("TINYINT", {"type": "categorical", "categories": [-128, 0, 7]}),
    "word": ("VARCHAR", {"type": "categorical", "categories": [f"v{i}" for i in range(300)]}),
}
EVERY_TYPE = {"columns": {name: {**spec, "sql_type": sql} for name, (sql, spec) in TYPES.items()}}
QUERIES = [MarginalQuery(attrs) for size in (0, 1, 2) for attrs in combinations(TYPES, size)]
TYPED = st.tuples(
    *(
        st.one_of(st.none(), values)
        for values in (
            st.one_of(st.integers(-(2**63), 2**63 - 1), st.sampled_from([-(2**63), 2**63 - 1])),
            st.decimals(-99999, 99999, places=2),
            st.floats(width=32),
            st.datetimes().map(str),
            st.booleans(),
            st.integers(-128, 127),
            st.sampled_from(["v0", "V0", "v299", "v300", "", "NULL", "__other__"]),
        )
    )
)
TEXT = st.tuples(
    *[
        st.sampled_from(
            [None, "", " ", "0", " 7", "-128", "1e400", "nan", "true", "v1", "2000-01-01", '"', ","]
        )
    ]
    * len(TYPES)
)


def counted(source, con):
    with open_source(con, source) as session:
        domain = domain_of(EVERY_TYPE, session.relation)
        counter = SqlCounter(
            session.engine, session.relation.sql, domain, QUERIES, session.relation.text_decimal
        )
        try:
            return [*counter.count(QUERIES)]
        finally:
            counter.close()


def check_one_cell_a_table(before, after, rows):
    for without, with_it in zip(before, after, strict=True):
        change = with_it - without
        assert change.min() >= 0 and change.sum() == 1
        assert without.sum() == rows


@settings(max_examples=12)
@given(rows=st.lists(TYPED, max_size=4), extra=TYPED)
def test_a_row_of_any_types_changes_one_cell_of_each_table(rows, extra):
    with duckdb.connect() as con:
        con.execute(f"CREATE TABLE t ({', '.join(f'{name} {sql}' for name, (sql, _) in TYPES.items())})")
        insert = f"INSERT INTO t VALUES ({', '.join('?' * len(TYPES))})"
        if rows:
            con.executemany(insert, rows)
        before = counted("t", con)
        con.execute(insert, extra)
        check_one_cell_a_table(before, counted("t", con), len(rows))


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(TEXT, max_size=4), extra=TEXT)
def test_a_line_of_any_text_changes_one_cell_of_each_table(tmp_path, rows, extra):
    path = tmp_path / "t.csv"
    found = []
    for lines in (rows, [*rows, extra]):
        with path.open("w", newline="") as file:
            csv.writer(file, quoting=csv.QUOTE_ALL).writerows([list(TYPES), *lines])
        found.append(counted(path, None))
    check_one_cell_a_table(*found, len(rows))
