"""Seconds and memory of a release of a database: a million customers with ten million grandchildren.

    python benchmarks/database_speed.py [--customers 1000000] [--epsilon 1] [--memory 3GB] [--evaluate]

The invented shop of ``database_tables.py``, busy: from a DuckDB file into another. The release runs in a
process of its own, so that peak memory is its own. ``--evaluate`` also compares the two databases.
"""

from __future__ import annotations

import os
import tempfile
import warnings
from pathlib import Path

import duckdb
from database_tables import shop
from harness import apart, command_line, machine, peak_mebibytes, print_table, timed

import dpsyn_sql

BUSY = 5.0
"""With it a customer has about ten items."""
DELTA = 1e-9


def generated(customers: int, path: str) -> list[int]:
    """The real database; rows of each table. A function of a process of its own."""
    database = shop(customers, busy=BUSY)
    with duckdb.connect(path) as con:
        database.load(con)
        return [rows_of(con, name) for name in database.names]


def rows_of(con: duckdb.DuckDBPyConnection, name: str) -> int:
    """Of a table."""
    found = con.execute(f"SELECT count(*) FROM {name}").fetchone()
    return int(found[0]) if found else 0


def released(customers: int, folder: str, epsilon: float, memory: str) -> list[list[object]]:
    """A line per phase: its seconds and processor seconds. A function of a process of its own."""
    warnings.simplefilter("ignore")
    database, place = shop(customers, busy=BUSY), Path(folder)
    with timed() as watch:
        dpsyn_sql.release(
            place / "real.duckdb",
            unit=database.unit,
            source=database.names,
            into=place / "made.duckdb",
            epsilon=epsilon,
            delta=DELTA,
            most=database.most,
            domain=database.file,
            ledger=place / "ledger",
            limits={"memory": memory},
        )
    peak = peak_mebibytes()
    lines: list[list[object]] = [
        [name, seconds, watch.processor[name], ""] for name, seconds in watch.seconds.items()
    ]
    lines[-1][-1] = peak
    return lines


def compared(customers: int, folder: str, memory: str) -> list[object]:
    """The line of ``evaluate``. A function of a process of its own."""
    database, place = shop(customers, busy=BUSY), Path(folder)
    with timed() as watch:
        dpsyn_sql.evaluate(
            place / "real.duckdb",
            database.names,
            place / "made.duckdb",
            domain=database.file,
            limits={"memory": memory},
        )
    seconds, processor = watch.seconds["total"], watch.processor["total"]
    return ["evaluate", seconds, processor, peak_mebibytes()]


def main() -> None:
    """Print one table."""
    parser = command_line(__doc__)
    parser.add_argument("--customers", type=int, default=1_000_000)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--memory", default="3GB", help="of the database of the release")
    parser.add_argument("--evaluate", action="store_true", help="compare the databases too")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = apart(generated, arguments.customers, str(Path(folder) / "real.duckdb"))
        told = (arguments.customers, folder, arguments.epsilon, arguments.memory)
        lines = apart(released, *told)
        if arguments.evaluate:
            lines.append(apart(compared, arguments.customers, folder, arguments.memory))
        with duckdb.connect(str(Path(folder) / "made.duckdb"), read_only=True) as con:
            made = [rows_of(con, name) for name in shop(1).names]
    caption = f"Rows in {rows}, out {made}; load {os.getloadavg()[0]:.1f}; aim: 60 s, 4 GB; {machine()}"
    print_table(["phase", "seconds", "of processors", "peak MiB"], lines, caption)


if __name__ == "__main__":
    main()
