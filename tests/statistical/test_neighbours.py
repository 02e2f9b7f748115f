"""The sensitivity argument, on the counts themselves: one row more changes one cell of each table by one."""

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpsyn_sql
from dpsyn_sql.measure.noise import OpenDPNoise
from dpsyn_sql.methods import METHODS

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

    monkeypatch.setattr(OpenDPNoise, "gaussian", spy)
    with duckdb.connect() as con:
        con.execute("CREATE TABLE t(n INTEGER, x DOUBLE, s VARCHAR, d DATE)")
        if rows:
            con.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", rows)
        result = dpsyn_sql.release(con, "t", domain=SPEC, method=method, rows=1)
    return seen, result


@pytest.mark.parametrize("method", sorted(METHODS))
@settings(max_examples=12, deadline=None)
@given(rows=st.lists(ROWS, max_size=6), extra=ROWS, place=st.integers(0, 6))
def test_one_row_changes_one_cell_of_each_table_and_each_distance_by_one(method, rows, extra, place):
    with pytest.MonkeyPatch.context() as monkeypatch:
        without, result = exact_counts(monkeypatch, rows, method)
        with_it, _ = exact_counts(monkeypatch, [*rows[:place], extra, *rows[place:]], method)
    mechanisms = result.certificate()["mechanisms"]
    assert len(without) == len(with_it) == len(mechanisms)
    for before, after, mechanism in zip(without, with_it, mechanisms, strict=True):
        change = after - before
        assert np.abs(change).max() <= 1 and np.sum(change**2) <= mechanism["l2_squared"]
        if "marginals" in mechanism:  # not a question of an adaptive step: those may be distances
            assert change.min() >= 0 and change.max() == 1
            assert change.sum() == mechanism["marginals"] == mechanism["l2_squared"]
            assert np.count_nonzero(before) <= before.sum() == len(rows) * mechanism["marginals"]
