"""Time and peak memory of evaluating a synthetic table of many rows beside the real one.

    python benchmarks/evaluation.py [--rows 5000000] [--memory 2GB]

Two Parquet files of 27 generated columns (12 of text, 13 of numbers, a date and a time stamp) are
compared in a process of their own: all that ``evaluate()`` does without a target.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import duckdb
from harness import apart, machine, peak_mebibytes, print_table, timed

import dpsyn_sql

LABELS = (2, 3, 5, 7, 9, 12, 16, 24, 42, 100, 1000, 50_000)
WHOLE = (2, 10, 25, 100, 100, 1000, 100_000)
REAL = 6


def make(path: Path, rows: int, seed: int) -> None:
    """A table whose columns depend on two hidden numbers of each row; the synthetic one does so less."""

    def noise(place: int) -> str:
        return f"(hash(i, {place}, {seed}) % 1000003) / 1000003.0"

    columns = []
    place = 0
    for labels in LABELS:
        place += 1
        columns.append(f"'label ' || CAST(floor({labels} * u * {noise(place)}) AS INTEGER) AS text{place}")
    for values in WHOLE:
        place += 1
        level = f"CAST(floor({values} * (0.7 * v + 0.3 * {noise(place)})) AS INTEGER)"
        columns.append(f"CASE WHEN {noise(place + 100)} > 0.03 THEN {level} END AS whole{place}")
    for number in range(REAL):
        place += 1
        columns.append(f"{number + 1} * ln(1 + u + v) + {noise(place)} AS real{place}")
    columns.append("DATE '2000-01-01' + CAST(floor(9000 * v) AS INTEGER) AS day")
    columns.append("TIMESTAMP '2000-01-01' + INTERVAL 1 MINUTE * CAST(floor(4e6 * u) AS INTEGER) AS moment")
    with duckdb.connect() as con:
        con.execute("SET preserve_insertion_order = false")
        hidden = f"SELECT i, {noise(0)} AS u, sqrt({noise(99)}) AS v FROM range({rows}) AS t(i)"
        query = f"WITH hidden AS ({hidden}) SELECT {', '.join(columns)} FROM hidden"
        con.execute(f"COPY ({query}) TO '{path}' (FORMAT parquet)")


def measured(
    real: Path, synthetic: Path, memory: str | None
) -> tuple[dict[str, float], dict[str, float], float]:
    """Seconds and processor seconds by phase, and peak mebibytes."""
    settings = {} if memory is None else {"memory_limit": memory}
    with timed() as watch, duckdb.connect(config=settings) as con:
        dpsyn_sql.evaluate(con, real, synthetic)
    return dict(watch.seconds), dict(watch.processor), peak_mebibytes()


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--memory", default="2GB")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        real, synthetic = Path(folder) / "real.parquet", Path(folder) / "synthetic.parquet"
        make(real, arguments.rows, 1)
        make(synthetic, arguments.rows, 2)
        seconds, processor, peak = apart(measured, real, synthetic, arguments.memory)
    columns = len(LABELS) + len(WHOLE) + REAL + 2
    print(f"{arguments.rows:,} rows x {columns} columns, twice; memory_limit {arguments.memory}")
    print(f"{machine()}\n")
    print_table(
        ["phase", "seconds", "processor seconds"],
        [[name, seconds[name], processor.get(name, float("nan"))] for name in seconds],
        f"peak memory of the process: {peak:.0f} MiB",
    )


if __name__ == "__main__":
    main()
