"""A billion rows of 15 attributes, three of them words, from many Parquet files: counting, noise and fit.

    python benchmarks/billion.py [--rows 1000000000] [--pieces 20] [--method adaptive] [--memory 4GB]
                                 [--output-rows 1000000] [--folder DIR] [--spark]

The table is generated in pieces, outside the clock; a folder that holds such pieces already is used as it is.
Few rows are drawn, because drawing a billion takes hours. ``--spark`` runs the same release by Spark on this
machine (extra ``spark``, Java); its processor seconds are those of Python, Java and the workers together.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
from pathlib import Path

import duckdb
from harness import apart, command_line, machine, peak_mebibytes, print_table, timed
from hundred_million import SIZES
from large_tables import Shape

import dpsyn_sql

SHAPE = Shape("A billion rows", 1_000_000_000, SIZES, texts=3)


def _piece(first: int, last: int, path: str) -> None:
    """Rows ``first`` to ``last`` of the table, in a file that appears when it is complete."""
    query = SHAPE.query(last - first).replace(f"range({last - first})", f"range({first}, {last})")
    with duckdb.connect() as con:
        con.execute("SET enable_progress_bar = false")
        con.execute(f"COPY ({query}) TO '{path}.part' (FORMAT parquet)")
    Path(f"{path}.part").rename(path)


def generate(rows: int, pieces: int, folder: Path) -> None:
    """The pieces that are not there yet, one process after the other."""
    context = multiprocessing.get_context("spawn")
    for piece in range(pieces):
        path = folder / f"part-{piece:02d}.parquet"
        if not path.exists():
            ends = [rows * end // pieces for end in (piece, piece + 1)]
            child = context.Process(target=_piece, args=(*ends, str(path)))
            child.start()
            child.join()
            if child.exitcode != 0:
                raise SystemExit("the table could not be generated")


def by_duckdb(folder: Path, scratch: Path, method: str, memory: str, rows: int) -> None:
    """The release by one DuckDB; prints its phases."""
    with timed() as watch:
        result = dpsyn_sql.release(
            None,
            f"{folder}/*.parquet",
            into=scratch / "out.parquet",
            method=method,
            domain=SHAPE.domain(),
            ledger=scratch / "ledger",
            rows=rows,
            limits={"memory": memory},
        )
    print_table(
        ["phase", "seconds", "of all cores"],
        [[name, value, watch.processor[name]] for name, value in watch.seconds.items()],
        f"one DuckDB, {result.rows:,} rows out, {method}, peak {peak_mebibytes():.0f} MiB, "
        f"memory_limit {memory}, load {os.getloadavg()[0]:.1f}; {machine()}",
    )


def by_spark(folder: Path, scratch: Path, method: str, memory: str, rows: int) -> None:
    """The release by Spark on all cores of this machine; prints its phases."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[*]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.memory", "2g").config("spark.local.dir", str(scratch / "local"))
    spark = builder.config("spark.sql.warehouse.dir", str(scratch / "warehouse")).getOrCreate()
    spark.sql(f"CREATE TABLE billion USING parquet LOCATION '{folder}'")
    with timed() as watch:
        result = dpsyn_sql.release(
            spark,
            "billion",
            into="billion_synthetic",
            method=method,
            domain=SHAPE.domain(),
            ledger=scratch / "spark_ledger",
            rows=rows,
        )
    used = processor_seconds(os.getpid())
    spark.stop()
    print_table(
        ["phase", "seconds"],
        [[name, value] for name, value in watch.seconds.items()],
        f"Spark local[*], {result.rows:,} rows out, {method}, {used:.0f} processor seconds "
        f"of Python, Java and workers, load {os.getloadavg()[0]:.1f}; {machine()}",
    )


def processor_seconds(process: int) -> float:
    """Of a process and all that it started, as Linux tells them; what has ended counts in its parent."""
    used = 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has ended meanwhile
            continue
        if folder.name == str(process):
            used += sum(map(int, fields[11:15]))
        elif int(fields[1]) == process:
            used += round(processor_seconds(int(folder.name)) * os.sysconf("SC_CLK_TCK"))
    return used / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Generate, release, print."""
    parser = command_line(__doc__)
    parser.add_argument("--rows", type=int, default=SHAPE.rows)
    parser.add_argument("--pieces", type=int, default=20)
    parser.add_argument("--method", default="adaptive")
    parser.add_argument("--memory", default="4GB")
    parser.add_argument("--output-rows", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--spark", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.folder or Path(scratch) / "pieces"
        folder.mkdir(exist_ok=True)
        generate(arguments.rows, arguments.pieces, folder)
        print(f"{arguments.rows:,} rows x {len(SIZES)} attributes in {arguments.pieces} files\n", flush=True)
        run = by_spark if arguments.spark else by_duckdb
        apart(run, folder, Path(scratch), arguments.method, arguments.memory, arguments.output_rows)


if __name__ == "__main__":
    main()
