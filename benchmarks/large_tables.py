"""Releases of very large Parquet files under a memory limit: what the scripts of two shapes share.

A table is generated in SQL by another process, outside the clock: a mixture of hidden groups, so that
attributes depend on each other. Memory is that of the process that releases.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
from harness import machine, peak_mebibytes, print_table, timed

import dpsyn_sql

GROUPS = 40


@dataclass(frozen=True, slots=True)
class Shape:
    """Attributes of so many codes each; the first ``texts`` of them are words, the others small integers."""

    title: str
    rows: int
    sizes: tuple[int, ...]
    texts: int = 0

    def domain(self) -> dict[str, object]:
        """Every attribute is declared as the list of its values."""
        return {
            "columns": {
                f"a{index}": {
                    "type": "categorical",
                    "categories": [_word(code) if index < self.texts else code for code in range(size)],
                    "other": False,
                }
                for index, size in enumerate(self.sizes)
            }
        }

    def query(self, rows: int) -> str:
        """Within a group a code is a cube of a uniform number, shifted by the group."""
        columns = []
        for index, size in enumerate(self.sizes):
            uniform = f"(hash(xor(i, hash('value {index}'))) >> 40) / 16777216.0"
            code = f"(g * {7 + 2 * index} + CAST(floor({size} * power({uniform}, 3)) AS BIGINT)) % {size}"
            kind = "UTINYINT" if size <= 256 else "USMALLINT"
            value = f"'value ' || ({code})" if index < self.texts else f"CAST({code} AS {kind})"
            columns.append(f"{value} AS a{index}")
        group = (
            f"CAST(floor({GROUPS} * power((hash(xor(i, hash('group'))) >> 40) / 16777216.0, 2)) AS BIGINT)"
        )
        rows_of = f"SELECT range::UBIGINT AS i FROM range({rows})"
        return f"SELECT {', '.join(columns)} FROM (SELECT i, {group} AS g FROM ({rows_of}))"


def _word(code: int) -> str:
    return f"value {code}"


def _generate(shape: Shape, rows: int, path: str) -> None:
    with duckdb.connect() as con:
        con.execute("SET enable_progress_bar = false")
        con.execute(f"COPY ({shape.query(rows)}) TO '{path}' (FORMAT parquet)")


def generate(shape: Shape, rows: int, path: Path) -> None:
    """Write the table to Parquet, from another process."""
    child = multiprocessing.get_context("spawn").Process(target=_generate, args=(shape, rows, str(path)))
    child.start()
    child.join()
    if child.exitcode != 0:
        raise SystemExit("the table could not be generated")


def run(shape: Shape, description: str, elsewhere: Sequence[tuple[str, float]] = ()) -> None:
    """Release a table of this shape from Parquet to Parquet and print seconds by phase."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--rows", type=int, default=shape.rows)
    parser.add_argument("--method", default="adaptive")
    parser.add_argument("--memory", default="4GB")
    parser.add_argument("--output-rows", type=int, help="default: the noisy total")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder) / "source.parquet", Path(folder) / "out.parquet"
        generate(shape, arguments.rows, source)
        with timed() as watch:
            result = dpsyn_sql.release(
                None,
                source,
                into=out,
                method=arguments.method,
                domain=shape.domain(),
                ledger=Path(folder) / "ledger",
                rows=arguments.output_rows,
                limits={"memory": arguments.memory},
            )
    lines: list[list[object]] = []
    for name, value in watch.seconds.items():
        used, million = watch.processor[name], max(1, result.rows) / 1e6
        lines.append([name, value, used, used / million if name in ("sample", "write") else ""])
    lines += [[name, value, "", ""] for name, value in elsewhere]
    print_table(
        ["phase", "seconds", "of all cores", "of all cores, per million rows out"],
        lines,
        f"{shape.title}: {arguments.rows:,} rows in, {result.rows:,} out, {len(shape.sizes)} attributes, "
        f"{sum(shape.sizes)} values, {arguments.method}, peak {peak_mebibytes():.0f} MiB, "
        f"memory_limit {arguments.memory}, load {os.getloadavg()[0]:.1f}; {machine()}",
    )
