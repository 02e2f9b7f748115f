"""A table of the shape of the copula paper's largest: 5,240,260 rows, 27 attributes, 674 values.

    python benchmarks/dss_shape.py [--rows 5240260] [--memory 4GB]

The rows are generated here (a mixture of 40 hidden groups, so that attributes depend on each
other). The paper needed 2 h 30 min on 10 cores for its table, which is not public.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import duckdb
import numpy as np
from harness import machine, peak_mebibytes, print_table, timed

import dpsyn_sql

PAPER_SECONDS = 2.5 * 3600
ROWS = 5_240_260
SIZES = (2, 2, 2, 3, 3, 4, 5, 6, 8, 9, 10, 12, 13, 15, 16, 20, 22, 25, 28, 30, 35, 40, 48, 55, 70, 81, 110)
GROUPS = 40


def generate(path: Path, rows: int) -> None:
    """Write the table to Parquet, a chunk at a time, with small integer values."""
    assert len(SIZES) == 27 and sum(SIZES) == 674
    rng = np.random.default_rng(20180000)
    weights = rng.dirichlet(np.full(GROUPS, 0.5))
    tables = [np.cumsum(rng.dirichlet(np.full(size, 0.3), GROUPS), axis=1) for size in SIZES]
    con = duckdb.connect()
    columns = ", ".join(f"a{index} UTINYINT" for index in range(len(SIZES)))
    con.execute(f"CREATE TABLE t ({columns})")
    for begin in range(0, rows, 500_000):
        count = min(500_000, rows - begin)
        group = rng.choice(GROUPS, count, p=weights)
        frame = {}
        for index, table in enumerate(tables):
            draws = rng.random(count, dtype=np.float32)[:, None]
            frame[f"a{index}"] = np.minimum((table[group] < draws).sum(axis=1), SIZES[index] - 1).astype(
                np.uint8
            )
        con.register("chunk", frame)
        con.execute("INSERT INTO t FROM chunk")
        con.unregister("chunk")
    con.execute(f"COPY t TO '{path}' (FORMAT parquet)")
    con.close()


def domain() -> dict[str, object]:
    """Every attribute is declared as the list of its values."""
    return {
        "columns": {
            f"a{index}": {"type": "categorical", "categories": list(range(size)), "other": False}
            for index, size in enumerate(SIZES)
        }
    }


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--method", default="copula")
    parser.add_argument("--memory", default="4GB")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder) / "dss.parquet", Path(folder) / "out.duckdb"
        generate(source, arguments.rows)
        with timed() as watch:
            con = duckdb.connect(str(out), config={"memory_limit": arguments.memory})
            result = dpsyn_sql.release(
                con,
                source,
                into="dss_synthetic",
                method=arguments.method,
                domain=domain(),
                ledger=Path(folder) / "ledger",
            )
            con.close()
    rows = [[name, value] for name, value in watch.seconds.items()]
    print_table(
        ["phase", "seconds"],
        [*rows, ["the copula paper, 10 cores", PAPER_SECONDS]],
        f"{arguments.rows} rows in, {result.rows} out, 27 attributes, 674 values, {arguments.method}, "
        f"peak {peak_mebibytes():.0f} MiB (generator included), memory_limit {arguments.memory}; {machine()}",
    )


if __name__ == "__main__":
    main()
