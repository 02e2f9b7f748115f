"""Counts of a Spark source are DuckDB's: of real tables, of rows chosen by units, of whatever values."""

from itertools import combinations
from pathlib import Path

import duckdb
import numpy as np
import pytest
from support.spark import counted, table_of

import dpsyn_sql
from dpsyn_sql.engines.frames import open_any_source
from dpsyn_sql.planning.queries import MarginalQuery
from dpsyn_sql.source.relation import PrivacyUnit

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT.parent / "shared" / "data"
REAL = {
    "adult": ("uci_adult/adult_all.parquet", "* EXCLUDE (split)", "examples/adult.domain.yml"),
    "shop": ("online_retail/online_retail.parquet", "*", "benchmarks/domains/online_retail.yml"),
}
OUT = {"shop": ("CustomerID",)}
"""Columns that no domain declares: a unit."""
MOST = 20_000
"""Rows of a table: more would only take longer."""


@pytest.fixture(scope="module")
def con():
    with duckdb.connect() as connection:
        yield connection


@pytest.fixture(scope="module")
def real(spark, db, con, tmp_path_factory):
    """A real table in DuckDB and in Spark, and its domain."""
    folder = tmp_path_factory.mktemp("tables")

    def of(name):
        path, columns, spec = REAL[name]
        if not (DATA / path).exists():
            pytest.skip(f"needs {DATA / path}")
        known = con.execute("SELECT 1 FROM duckdb_tables() WHERE table_name = ?", [name]).fetchall()
        if not known:
            con.execute(f"CREATE TABLE {name} AS SELECT {columns} FROM '{DATA / path}' LIMIT {MOST}")
            table_of(spark, f"{db}.{name}", con, f"FROM {name}", folder / name)
        declared = dpsyn_sql.plan(con, name, domain=ROOT / spec, exclude=OUT.get(name, ()))
        return name, f"{db}.{name}", declared.plan.domain

    return of


def both(con, spark, here, there, domain, queries, **how):
    """The counts of DuckDB and of Spark."""
    with open_any_source(con, here) as one, open_any_source(spark, there) as two:
        assert two.engine.in_parts
        return counted(one, domain, queries, **how), counted(two, domain, queries, **how)


@pytest.mark.parametrize("name", REAL)
def test_all_one_way_pair_and_triple_counts_are_those_of_duckdb(spark, con, real, name):
    here, there, domain = real(name)
    queries = [MarginalQuery(some) for k in range(4) for some in combinations(domain.names, k)]
    expected, found = both(con, spark, here, there, domain, queries)
    rows = con.execute(f"SELECT count(*) FROM {here}").fetchone()[0]
    for query, one, two in zip(queries, expected, found, strict=True):
        assert two.dtype == np.int64 and two.sum() == rows
        np.testing.assert_array_equal(one, two, err_msg=str(query.attrs))


@pytest.mark.parametrize("most", [1, 5])
def test_k_rows_of_a_unit_are_those_that_one_duckdb_keeps(spark, con, real, most):
    here, there, domain = real("shop")
    queries = [MarginalQuery(some) for some in combinations(domain.names, 2)]
    unit = PrivacyUnit("CustomerID", most)
    expected, found = both(con, spark, here, there, domain, queries, unit=unit, key=7)
    units = con.execute(
        f"SELECT sum(least(n, {most})) FROM (SELECT count(*) AS n FROM {here}"
        " WHERE CustomerID IS NOT NULL GROUP BY CustomerID)"
    ).fetchone()[0]
    for one, two in zip(expected, found, strict=True):
        assert two.sum() == units
        np.testing.assert_array_equal(one, two)
    _, other = both(con, spark, here, there, domain, queries[:1], unit=unit, key=8)
    assert (other[0] != found[0]).any()  # the key decides: equal counts above are no accident
