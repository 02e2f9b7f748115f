"""A small memory limit of the database."""

import duckdb
import pytest

import dpsyn_sql


@pytest.mark.slow
def test_a_small_memory_limit_is_enough(tmp_path):
    """Two tables of half a million rows and ten columns, with their codes, in 200 MB."""
    with duckdb.connect() as con:
        for name, seed in (("real", 1), ("made", 2)):
            columns = [f"hash(i, {seed}, {place}) / 1e19 AS n{place}" for place in range(8)]
            columns += [f"'label ' || hash(i, {seed}, {place}) % 20000 AS t{place}" for place in (8, 9)]
            con.execute(
                f"COPY (SELECT {', '.join(columns)} FROM range(500000) AS t(i)) TO '{tmp_path / name}.parquet'"
            )
    real, made = tmp_path / "real.parquet", tmp_path / "made.parquet"
    found = dpsyn_sql.evaluate(None, real, made, limits={"memory": "656MiB"})
    assert found.rows == (500_000, 500_000)
    assert found.tables["columns"].tv.max() < 0.01 and found.tables["columns"].ks.max() < 0.01
    numbers = found.tables["marginals"].set_index(["ways", "compared"])
    assert numbers.loc[2, "synthetic"].tv_worst < 0.02
