"""Values that a column does not have are not written, and NOT NULL is kept."""

import warnings

import duckdb
import pytest
from support.noise import cut_off

import dpsyn_sql
from dpsyn_sql.ledger.sqlite import MemoryLedger
from dpsyn_sql.methods import METHODS

pytestmark = pytest.mark.slow

ROWS = 20_000
DOMAIN = {
    "columns": {
        "sex": {"type": "categorical", "categories": ["f", "m"], "nullable": True},
        "code": {"type": "categorical", "categories": [1, 2, 9], "nullable": True},
        "age": {"type": "numeric", "lower": 0, "upper": 99, "bins": 10, "nullable": True},
        "city": {"type": "discover"},
    }
}
TABLE = f"""
    CREATE TABLE t AS
    SELECT
        CASE WHEN i % 3 = 0 THEN 'f' ELSE 'm' END AS sex,
        (CASE WHEN i % 2 = 0 THEN 1 ELSE 9 END)::INTEGER AS code,
        (i % 100)::INTEGER AS age,
        (CASE WHEN i % 50 = 0 THEN 'village ' || i WHEN i % 2 = 0 THEN 'Bonn' ELSE 'Ulm' END) AS city
    FROM range({ROWS}) AS r(i)
"""


@pytest.fixture(autouse=True)
def short_noise(monkeypatch):
    """A code without rows is written once in 740 times: never with this noise."""
    cut_off(monkeypatch)


@pytest.fixture
def con():
    with duckdb.connect() as con, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        con.execute(TABLE)
        yield con


def counts(con, column, relation="t_synthetic"):
    return dict(con.execute(f"SELECT {column}, count(*) FROM {relation} GROUP BY 1").fetchall())


@pytest.mark.parametrize("method", sorted(METHODS))
def test_no_method_writes_a_code_without_rows(con, method):
    made = dpsyn_sql.release(con, "t", domain=DOMAIN, method=method, ledger=MemoryLedger(), epsilon=1)
    assert counts(con, "sex").keys() == {"f", "m"}
    assert counts(con, "code").keys() <= {1, 2, 9}
    assert None not in counts(con, "age")
    written = con.execute("SELECT count(*) FROM t_synthetic").fetchone()[0]
    assert made.rows == written == max(0, round(made.model.total))


def test_more_rows_of_the_model_have_none_of_these_codes_either(con):
    made = dpsyn_sql.release(con, "t", domain=DOMAIN, ledger=MemoryLedger(), epsilon=1)
    for drawn in (made.sample(5_000), dpsyn_sql.load(con).sample(5_000, seed=3)):
        assert len(drawn) == 5_000
        assert set(drawn["sex"]) == {"f", "m"} and drawn["age"].notna().all() and drawn["code"].notna().all()


def test_values_that_are_not_found_are_written_as_found_ones_if_the_owner_says_so(con):
    said = {"columns": {**DOMAIN["columns"], "city": {"type": "discover", "nullable": False}}}
    dpsyn_sql.release(con, "t", domain=said, ledger=MemoryLedger(), epsilon=1)
    assert counts(con, "city").keys() == {"Bonn", "Ulm", "__other__"}
    said["columns"]["city"]["other"] = False
    dpsyn_sql.release(con, "t", domain=said, ledger=MemoryLedger(), epsilon=1, into="u")
    found = counts(con, "city", "u")
    assert found.keys() == {"Bonn", "Ulm"}
    assert found["Ulm"] / sum(found.values()) == pytest.approx(0.51, abs=0.02)


def test_bins_hold_all_values_so_other_is_no_word_for_them(con):
    with pytest.raises(dpsyn_sql.errors.DomainError, match="leave out other:"):
        dpsyn_sql.release(
            con, "t", domain={"columns": {"age": {"type": "discover", "other": False}}}, ledger=MemoryLedger()
        )


def test_the_output_keeps_not_null_of_the_source():
    with duckdb.connect() as con, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        con.execute(
            """CREATE TABLE t(id INTEGER PRIMARY KEY, "a ""b" VARCHAR NOT NULL, b INTEGER, d INTEGER NOT NULL)"""
        )
        con.execute("INSERT INTO t SELECT i, 'x', i % 3, i % 5 FROM range(3000) AS r(i)")
        ledger = MemoryLedger()
        for _ in range(2):  # the second one replaces the first
            dpsyn_sql.release(con, "t", epsilon=1, ledger=ledger, replace=True)
            found = con.execute(
                "SELECT column_name FROM duckdb_columns() WHERE table_name = 't_synthetic' AND NOT is_nullable"
            ).fetchall()
            assert [name for (name,) in found] == ["id", 'a "b', "d"]
        with pytest.raises(duckdb.ConstraintException):
            con.execute("INSERT INTO t_synthetic VALUES (NULL, 'x', 1, 1)")
