"""Tables larger than the memory that the database may use."""

import duckdb
import pytest

import dpsyn_sql


@pytest.mark.slow
def test_tables_may_be_larger_than_the_memory_limit(tmp_path):
    """About 130 MB of distinct numbers and text in each table, and 100 MB for the database."""
    with duckdb.connect() as con:
        for name, seed in (("real", 1), ("made", 2)):
            columns = [f"hash(i, {seed}, {place}) / 1e19 AS n{place}" for place in range(8)]
            columns += [f"'label ' || hash(i, {seed}, {place}) % 200000 AS t{place}" for place in (8, 9)]
            con.execute(
                f"COPY (SELECT {', '.join(columns)} FROM range(1500000) AS t(i)) TO '{tmp_path / name}.parquet'"
            )
    real, made = tmp_path / "real.parquet", tmp_path / "made.parquet"
    found = dpsyn_sql.evaluate(None, real, made, memory_limit="100MB")
    assert found.rows == (1_500_000, 1_500_000)
    assert found.tables["columns"].tv.max() < 0.01 and found.tables["columns"].ks.max() < 0.01
    numbers = found.tables["marginals"].set_index(["ways", "compared"])
    assert numbers.loc[2, "synthetic"].tv_worst < 0.02
