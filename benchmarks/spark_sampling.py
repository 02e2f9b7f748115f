"""CPU seconds to draw, decode and write rows of an Adult model: one DuckDB, and tasks of Spark.

    python benchmarks/spark_sampling.py duckdb | spark [--rows 16777216] [--tasks 2]

Each way in a process of its own; Spark's also once without rows, which shows what a session costs.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import tempfile
import time
from pathlib import Path

import duckdb
from harness import machine, print_table

import dpsyn_sql
from dpsyn_sql.attributes.output import output_statement, units_of
from dpsyn_sql.attributes.roles import Key
from dpsyn_sql.attributes.shape import Shape
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.engines.spark.outputs import SparkFolder
from dpsyn_sql.engines.spark.publish import SparkPublisher
from dpsyn_sql.rows.sample.sql_rows import alias_lists, append_network, load_slots
from dpsyn_sql.rows.write.staging import make_room
from dpsyn_sql.rows.write.tasks import part_query, part_rows
from dpsyn_sql.sqltext.fragments import Fragment

ADULT = Path(__file__).resolve().parents[1].parent / "shared" / "data" / "uci_adult"
STAGED, SLOTS = Fragment("temp.main.staged"), Fragment("temp.main.slots")


def fitted(method: str) -> tuple[Shape, object]:
    """A model of Adult, and its columns with a key."""
    files = sorted(ADULT.glob("*.parquet")) or sorted(ADULT.glob("*.csv"))
    with tempfile.TemporaryDirectory() as folder:
        made = dpsyn_sql.release(
            str(files[0]),
            into=f"{folder}/out.parquet",
            epsilon=10.0,
            method=method,
            rows=10,
            ledger=f"{folder}/l.dpsyn-ledger",
        )
    model = made.model
    shape = Shape(model.domain.attributes, (Key("key", "BIGINT"),), ("key", *model.domain.names))
    return shape, model.network()


def in_duckdb(shape: Shape, network: object, rows: int, path: Path) -> None:
    """As ``release`` into a Parquet file."""
    with duckdb.connect(config={"memory_limit": "4GB", "threads": 2}) as con:
        engine = DuckDBEngine(con)
        make_room(engine, shape.domain, STAGED)
        with alias_lists(engine, network) as lists:
            append_network(engine, network, lists, rows, 1, STAGED)
        query = output_statement(shape, STAGED, rows, units_of(None, rows), 1)
        con.execute(f"COPY ({query}) TO '{path}' (FORMAT parquet, COMPRESSION zstd)")


def in_spark(shape: Shape, network: object, rows: int, path: Path, tasks: int) -> None:
    """As ``release`` into a folder of Spark."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(f"local[{tasks}]").config("spark.driver.memory", "2g")
    builder = builder.config("spark.ui.enabled", "false").config(
        "spark.sql.parquet.compression.codec", "zstd"
    )
    spark = builder.getOrCreate()
    with duckdb.connect(config={"memory_limit": "1GB", "threads": 2}) as con:
        engine = DuckDBEngine(con)
        load_slots(engine, network, SLOTS)
        plan = part_rows(shape, rows, 1, network, SLOTS)
        query = part_query(shape, rows, units_of(None, rows), 1)
        output = SparkFolder(spark, path.as_uri())
        publisher = SparkPublisher(spark, output, replace=False, only_same=False)
        model = path.with_name("model.duckdb")
        model.write_bytes(b"model")
        comments = dict.fromkeys(shape.order, "")
        publisher.publish(engine, plan, query, shape, comments, "", "benchmark", model)
        assert spark.read.parquet(path.as_uri()).count() == rows
    gateway = spark.sparkContext._gateway
    spark.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()


def busy() -> float:
    """CPU seconds of this process and of all that it waited for."""
    uses = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in uses)


def main() -> None:
    """Print one line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("way", choices=["duckdb", "spark"])
    parser.add_argument("--rows", type=int, default=2**24)
    parser.add_argument("--tasks", type=int, default=2)
    parser.add_argument("--method", default="adaptive")
    arguments = parser.parse_args()
    shape, network = fitted(arguments.method)
    with tempfile.TemporaryDirectory() as folder:
        begun, before = time.perf_counter(), busy()
        if arguments.way == "duckdb":
            in_duckdb(shape, network, arguments.rows, Path(folder) / "out.parquet")
        else:
            in_spark(shape, network, arguments.rows, Path(folder) / "out", arguments.tasks)
        seconds, cpu = time.perf_counter() - begun, busy() - before
    line = [arguments.way, arguments.rows, len(shape.order), seconds, cpu]
    print_table(["way", "rows", "columns", "seconds", "CPU seconds"], [line], machine())


if __name__ == "__main__":
    main()
