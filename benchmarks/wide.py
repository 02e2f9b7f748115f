"""The Gaussian copula on very wide tables: 1,000 and 2,000 binary attributes, by phase.

    python benchmarks/wide.py [--attributes 1000] [--rows 5240260] [--memory 8GB] [--epsilon 1]
        [--source table.parquet] [--checked 500000]

The largest experiments of the copula paper have 5,240,260 rows of 1,000 and of 2,000 binary attributes. The
table is generated in SQL by another process, outside the clock: a row has eight hidden factors, and each
attribute is one of them, mixed with a number of its own and cut. From Parquet to Parquet. The last line
compares the correlations of all pairs of attributes in the synthetic table with those in the source, over
the first ``--checked`` rows of both.
"""

from __future__ import annotations

import multiprocessing
import os
import tempfile
from pathlib import Path

import duckdb
import numpy as np
from harness import command_line, machine, peak_mebibytes, print_table, timed
from numpy.typing import NDArray

import dpsyn_sql

PAPER_SECONDS = {1_000: 5 * 3600 + 43 * 60, 2_000: 18 * 3600 + 32 * 60}
"""On 10 cores."""

FACTORS = 8


def query(attributes: int, rows: int) -> str:
    """What decides an attribute is its factor, by a third to two thirds, and a number of its own."""
    factors = ", ".join(f"{_uniform('i', f'factor {k}')} AS f{k}" for k in range(FACTORS))
    columns = []
    for index in range(attributes):
        share = 1 / 3 + (index * 7 % 11) / 33
        cut = 0.5 + (index * 5 % 13) / 40
        own = _uniform("i", f"value {index}")
        mixed = f"{share:.4f} * f{index % FACTORS} + {1 - share:.4f} * {own} > {cut:.4f}"
        columns.append(f"CAST({mixed} AS UTINYINT) AS a{index}")
    return (
        f"SELECT {', '.join(columns)} FROM (SELECT i, {factors} FROM "
        f"(SELECT range::UBIGINT AS i FROM range({rows})))"
    )


def _uniform(row: str, purpose: str) -> str:
    return f"(hash(xor({row}, hash('{purpose}'))) >> 40) / 16777216.0"


def generate(attributes: int, rows: int, path: str) -> None:
    """Write the table to Parquet."""
    with duckdb.connect(config={"memory_limit": "3GB"}) as con:
        con.execute("SET enable_progress_bar = false")
        con.execute(f"COPY ({query(attributes, rows)}) TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE 61440)")


def correlations(path: Path, rows: int) -> NDArray[np.float64]:
    """Pearson correlations of all pairs of columns."""
    with duckdb.connect() as con:
        columns = con.execute(f"SELECT * FROM '{path}' LIMIT {rows}").fetchnumpy().values()
    table = np.column_stack([np.asarray(column, dtype=np.uint8) for column in columns])
    sums = np.zeros((table.shape[1],) * 2)
    for start in range(0, len(table), 2**15):
        part = table[start : start + 2**15].astype(np.float32)
        sums += part.T @ part
    mean = np.diag(sums) / len(table)
    spread = np.sqrt(mean * (1 - mean))
    return np.asarray((sums / len(table) - np.outer(mean, mean)) / np.outer(spread, spread))


def main() -> None:
    """Print seconds by phase, memory and the error of the correlations."""
    parser = command_line(__doc__)
    parser.add_argument("--attributes", type=int, default=1_000)
    parser.add_argument("--rows", type=int, default=5_240_260)
    parser.add_argument("--memory", default="8GB")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--source", type=Path, help="where the generated table is kept for the next run")
    parser.add_argument("--checked", type=int, default=500_000, help="rows whose correlations are compared")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        source, out = arguments.source or Path(folder) / "source.parquet", Path(folder) / "out.parquet"
        if not source.exists():
            child = multiprocessing.get_context("spawn").Process(
                target=generate, args=(arguments.attributes, arguments.rows, str(source))
            )
            child.start()
            child.join()
            if child.exitcode != 0:
                raise SystemExit("the table could not be generated")
        columns = {
            f"a{index}": {"type": "categorical", "categories": [0, 1], "other": False}
            for index in range(arguments.attributes)
        }
        with timed() as watch:
            result = dpsyn_sql.release(
                None,
                source,
                into=out,
                method="copula",
                epsilon=arguments.epsilon,
                domain={"columns": columns},
                ledger=Path(folder) / "ledger",
                limits={"memory": arguments.memory},
            )
        peak = peak_mebibytes()
        lines: list[list[object]] = [
            [name, seconds, watch.processor[name]] for name, seconds in watch.seconds.items()
        ]
        if arguments.attributes in PAPER_SECONDS:
            lines.append(["the copula paper, 10 cores", float(PAPER_SECONDS[arguments.attributes]), ""])
        print_table(
            ["phase", "seconds", "of all cores"],
            lines,
            f"{arguments.rows:,} rows in, {result.rows:,} out, {arguments.attributes:,} binary attributes, "
            f"copula, epsilon {arguments.epsilon:g}, peak {peak:.0f} MiB, memory_limit {arguments.memory}, "
            f"output {out.stat().st_size / 1e6:.0f} MB, load {os.getloadavg()[0]:.1f}; {machine()}",
        )
        true, made = correlations(source, arguments.checked), correlations(out, arguments.checked)
        pairs = np.triu_indices(len(true), 1)
        error = np.abs(made - true)[pairs]
        print(
            f"Correlations of {error.size:,} pairs: mean absolute error {error.mean():.4f}, "
            f"largest {error.max():.3f}; in the source {np.abs(true[pairs]).mean():.4f} on average\n"
        )


if __name__ == "__main__":
    main()
