"""Which codes of drawn rows are compared with the answers."""

from types import SimpleNamespace

import duckdb
import numpy as np
import pytest

from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.rows.sample import tables
from dpsyn_sql.rows.sample.tables import staged_codes, table_codes
from dpsyn_sql.sqltext.fragments import Fragment


@pytest.fixture
def staged():
    """Ten thousand staged rows; a third of them was changed, and has other numbers."""
    con = duckdb.connect()
    con.execute(
        "CREATE TABLE staged AS SELECT CASE WHEN i % 3 = 0 THEN i + 2::BIGINT ** 34 ELSE i END::BIGINT AS row, "
        "(i % 3)::UTINYINT AS a0 FROM range(10000) AS t(i)"
    )
    yield DuckDBEngine(con)
    con.close()


def test_rows_that_were_changed_are_chosen_as_often_as_others(staged, monkeypatch):
    whole = staged_codes(staged, Fragment("staged"), ["a"], 10_000, 1, laid_out=True)
    assert whole.evenly and np.bincount(whole.columns["a"]).tolist() == [3334, 3333, 3333]
    monkeypatch.setattr(tables, "MOST_ROWS", 4_000)
    part = staged_codes(staged, Fragment("staged"), ["a"], 10_000, 1, laid_out=True)
    counts = np.bincount(part.columns["a"])
    assert not part.evenly and part.weights.size == pytest.approx(4_000, abs=250)
    assert counts / counts.sum() == pytest.approx([1 / 3] * 3, abs=0.04)


def test_what_a_row_keeps_of_the_rows_above_is_its_own_code():
    """Of a person who was absent in the period before nothing is known above."""
    families = SimpleNamespace(
        domain=SimpleNamespace(names=("x", "y")), drawn=2, size="", table="", previous=(), place=""
    )
    codes = np.array([[0, 3], [1, 2]], np.uint8)
    rows = SimpleNamespace(
        families=families, codes=codes, above=object(), parent=np.array([1, 2]), total=2, weights=np.ones(2)
    )
    above = {"x": np.array([1, 0, -1]), "x before": np.array([1, 0, 2])}
    found = table_codes(rows, 1, above).columns
    assert {name: one.tolist() for name, one in found.items()} == {
        "x": [0, 1],
        "y": [3, 2],
        "x before": [0, 2],
    }
