"""What a million rows cost on Spark and in one DuckDB: processor seconds, Java and workers included.

    python benchmarks/when_spark_pays.py [--rows 10000000] [--folder DIR]

The table is that of ``billion.py``. What does not grow with the rows (noise, fit, Java) stands apart:
each way runs on all rows and on a tenth of them, each time in a process of its own. Seconds on the clock say
little, since a cluster has other numbers of cores.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from billion import SHAPE, generate, processor_seconds
from harness import apart, command_line, machine, print_table

import dpsyn_sql

METHODS = ("copula", "adaptive")
SHARE = 10


@contextmanager
def session(scratch: Path) -> Iterator[Any]:
    """Spark on all cores of this machine."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[*]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.memory", "2g").config("spark.local.dir", str(scratch / "local"))
    spark = builder.config("spark.sql.warehouse.dir", str(scratch / "warehouse")).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    try:
        yield spark
    finally:
        spark.stop()


def handing_over(folder: Path, scratch: Path, _: str) -> float:
    """Hand all rows from Java to Python, and nothing else."""

    def looked_at(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        yield pa.RecordBatch.from_pydict({"rows": [sum(batch.num_rows for batch in batches)]})

    with session(scratch) as spark:
        frame = spark.read.parquet(str(folder))
        frame.limit(1000).mapInArrow(looked_at, "rows LONG").collect()
        before = processor_seconds(os.getpid())
        frame.mapInArrow(looked_at, "rows LONG").collect()
        return processor_seconds(os.getpid()) - before


def by_spark(folder: Path, scratch: Path, method: str) -> float:
    """A release of the table by Spark."""
    with session(scratch) as spark:
        spark.sql(f"CREATE TABLE source USING parquet LOCATION '{folder}'")
        return _released(spark, "source", "made", scratch, method)


def by_duckdb(folder: Path, scratch: Path, method: str) -> float:
    """A release of the same files by one DuckDB."""
    return _released(None, f"{folder}/*.parquet", scratch / "made.parquet", scratch, method)


def _released(con: Any, source: str, into: str | Path, scratch: Path, method: str) -> float:
    before = processor_seconds(os.getpid())
    given: dict[str, Any] = {"domain": SHAPE.domain(), "rows": 100_000, "method": method}
    dpsyn_sql.release(con, source, into=into, ledger=scratch / "ledger", **given)
    return processor_seconds(os.getpid()) - before


def per_million(run: Callable[..., float], rows: int, folder: Path, method: str) -> tuple[float, float]:
    """Processor seconds for each million rows, and those of any table."""
    found = []
    for part, size in (("part", rows // SHARE), ("all", rows)):
        with tempfile.TemporaryDirectory() as scratch:
            found.append((size / 1e6, apart(run, folder / part, Path(scratch), method)))
    (few, less), (many, more) = found
    slope = (more - less) / (many - few)
    return slope, less - slope * few


def main() -> None:
    """Generate, run each way, print."""
    parser = command_line(__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--folder", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.folder or Path(scratch)
        for part, size in (("part", arguments.rows // SHARE), ("all", arguments.rows)):
            (folder / part).mkdir(parents=True, exist_ok=True)
            generate(size, 2, folder / part)
        lines: list[list[object]] = []
        handed, _ = per_million(handing_over, arguments.rows, folder, "")
        lines.append(["hand rows from Java to Python", "", "", handed, "", ""])
        for method in METHODS:
            one = per_million(by_duckdb, arguments.rows, folder, method)
            many = per_million(by_spark, arguments.rows, folder, method)
            lines.append([f"release, {method}", *one, *many, many[0] / one[0]])
        header = ["work", "DuckDB, a million rows", "DuckDB, any table", "Spark, a million rows"]
        caption = f"Processor seconds, {arguments.rows:,} rows, load {os.getloadavg()[0]:.1f}; {machine()}"
        print_table([*header, "Spark, any table", "ratio of a million"], lines, caption)


if __name__ == "__main__":
    main()
