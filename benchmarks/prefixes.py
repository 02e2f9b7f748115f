"""Columns of codes that are discovered: the share of ``__other__`` with and without ``prefixes:``.

    python benchmarks/prefixes.py [--epsilon 1] [--runs 3]

Each release is of the one column, which has its full share of the budget (a twentieth) for discovery. Figures
are means over the runs; shares are of the rows that are written.
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path

import duckdb
import numpy as np
from harness import DATA, machine, print_table

import dpsyn_sql

COLUMNS = {
    ("diabetes_130/diabetic_data.parquet", "diag_1"): ([], [3, 1]),
    ("diabetes_130/diabetic_data.parquet", "diag_2"): ([], [3, 1]),
    ("online_retail/online_retail.parquet", "StockCode"): ([], [3, 1], [4, 2, 1]),
}


def measured(source: Path, column: str, prefixes: Sequence[int], epsilon: float) -> tuple[float, ...]:
    """Shares of ``__other__`` and of beginnings alone; numbers of whole values and of beginnings."""
    with duckdb.connect() as con, tempfile.TemporaryDirectory() as folder:
        con.execute(f"CREATE VIEW codes AS SELECT {column} FROM '{source}'")
        release = dpsyn_sql.release(
            con,
            "codes",
            into=Path(folder) / "out.parquet",
            epsilon=epsilon,
            domain={"columns": {column: {"type": "discover", "prefixes": list(prefixes)}}},
            ledger=Path(folder) / "ledger",
        )
        found = release.model.domain[column]
        stems = [label for length in found.prefixes for label, _ in found.stems(length)]
        shares = con.execute(
            f"SELECT avg(({column} = '__other__')::INT), avg((list_contains(?, {column}))::INT) "
            f"FROM (SELECT coalesce({column}, '') AS {column} FROM '{folder}/out.parquet')",
            [stems],
        ).fetchone()
    return (*shares, found.regular - len(stems), len(stems))


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    lines: list[list[object]] = []
    for (source, column), variants in COLUMNS.items():
        if not (DATA / source).exists():
            continue
        for prefixes in variants:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                runs = [
                    measured(DATA / source, column, prefixes, arguments.epsilon)
                    for _ in range(arguments.runs)
                ]
            other, short, whole, stems = np.mean(runs, axis=0)
            told = str(prefixes) if prefixes else "none"
            lines.append([column, told, f"{other:.2%}", f"{short:.2%}", round(whole), round(stems)])
    head = ["column", "prefixes", "`__other__`", "beginning alone", "whole values", "beginnings"]
    print_table(head, lines, machine())


if __name__ == "__main__":
    main()
