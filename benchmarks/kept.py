"""What stays beside an output: bytes of the file with the model, and of its tables.

    python benchmarks/kept.py [--epsilon 1]

Sets with a domain file of their own in ``benchmarks/domains``, written to Parquet.
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from pathlib import Path

import duckdb
from harness import DATA, REPOSITORY, machine, print_table

import dpsyn_sql

SETS = {
    "adult_all": "uci_adult/adult_all.parquet",
    "adult_train": "uci_adult/adult_train.parquet",
    "diabetes_130": "diabetes_130/diabetic_data.parquet",
    "german_credit": "german_credit/german_symbolic.parquet",
    "green_taxi": "nyc_green_taxi_2022_01/green_trips.parquet",
}
LARGE = ("shares", "model_cells", "measured_cells")


def taken(path: Path) -> dict[str, int]:
    """Bytes of the blocks of each table of a model's file, and of all of it."""
    with duckdb.connect(str(path), read_only=True) as con:
        block = con.execute("SELECT block_size FROM pragma_database_size()").fetchone()[0]
        tables = con.execute("SELECT table_name FROM duckdb_tables() WHERE schema_name = 'dpsyn'").fetchall()
        found = {}
        for (table,) in tables:
            blocks = con.execute(
                "SELECT count(DISTINCT block) FILTER (block >= 0) FROM ("
                "SELECT unnest([block_id] || additional_block_ids) AS block "
                f"FROM pragma_storage_info('dpsyn.{table}'))"
            ).fetchone()[0]
            found[table] = blocks * block
    return {**found, "all": path.stat().st_size}


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epsilon", type=float, default=1.0)
    arguments = parser.parse_args()
    lines: list[list[object]] = []
    for name, source in SETS.items():
        if not (DATA / source).exists():
            continue
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            output = Path(folder) / "out.parquet"
            dpsyn_sql.release(
                None,
                DATA / source,
                into=output,
                epsilon=arguments.epsilon,
                domain=REPOSITORY / "benchmarks" / "domains" / f"{name}.yml",
                ledger=Path(folder) / "ledger",
            )
            found = taken(output.with_name(output.name + ".dpsyn.duckdb"))
            rows = output.stat().st_size
        others = sum(size for table, size in found.items() if table not in (*LARGE, "all"))
        lines.append([name, rows, found["all"], *(found[table] for table in LARGE), others])
    print_table(["set", "output", "model's file", *LARGE, "other tables"], lines, machine())


if __name__ == "__main__":
    main()
