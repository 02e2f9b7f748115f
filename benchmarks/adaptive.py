"""Accuracy and time of a method on Adult discretised, against figures of other synthesizers.

    python benchmarks/adaptive.py [--method adaptive] [--runs 3] [--epsilon 1] [--delta 1e-9]

Mean total variation distance of the WRITTEN table from the source over all two-way and 200 seeded
three-way marginals of original codes. This compares with private data: only for public tables.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path

import duckdb
import numpy as np
from harness import DATA, machine, need, peak_mebibytes, print_table, timed
from numpy.typing import NDArray

import dpsyn_sql

ORDERED = {"age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"}
TRIPLES, TRIPLE_SEED = 200, 0
ELSEWHERE = [
    ["AIM (private-pgm)", 0.0385, 0.0887, 518.0],
    ["SWIFT (google/dpsynth)", 0.0390, 0.0855, 728.0],
    ["MST (private-pgm)", 0.0516, 0.1131, 86.0],
    ["columns shuffled, no privacy", 0.0761, 0.1735, ""],
    ["bootstrap of the rows, no privacy", 0.0146, 0.0348, ""],
]
"""Measured once on 2 cores at epsilon 1, delta 1e-9, by this scorer."""


def domain_of(sizes: Mapping[str, int]) -> dict[str, object]:
    """Public codes; the numeric columns in order."""
    return {
        "columns": {
            name: {
                "type": "categorical",
                "categories": list(range(size)),
                "ordered": name in ORDERED,
                "other": False,
            }
            for name, size in sizes.items()
        }
    }


def distance(
    real: NDArray[np.int64], synthetic: NDArray[np.int64], sizes: Sequence[int], axes: Sequence[int]
) -> float:
    """Total variation distance of one marginal."""
    shape = [sizes[axis] for axis in axes]
    tables = [
        np.bincount(np.ravel_multi_index(rows[:, axes].T, shape), minlength=int(np.prod(shape))) / len(rows)
        for rows in (real, synthetic)
    ]
    return float(np.abs(tables[0] - tables[1]).sum() / 2)


def score(real: NDArray[np.int64], synthetic: NDArray[np.int64], sizes: Sequence[int]) -> tuple[float, float]:
    """Mean distance over all pairs and over seeded triples."""
    pairs = list(combinations(range(len(sizes)), 2))
    triples = list(combinations(range(len(sizes)), 3))
    chosen = np.random.default_rng(TRIPLE_SEED).choice(
        len(triples), min(TRIPLES, len(triples)), replace=False
    )
    groups = (pairs, [triples[index] for index in chosen])
    two, three = (
        statistics.mean(distance(real, synthetic, sizes, list(axes)) for axes in group) for group in groups
    )
    return two, three


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--method", default="adaptive")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--delta", type=float, default=1e-9)
    arguments = parser.parse_args()
    source = need(DATA / "adult_discretised" / "adult.parquet")
    sizes = json.loads(need(DATA / "adult_discretised" / "domain.json").read_text())
    columns = ", ".join(f'"{name}"' for name in sizes)

    def matrix(con: duckdb.DuckDBPyConnection, table: str) -> NDArray[np.int64]:
        found = con.execute(f"SELECT {columns} FROM {table}").fetchnumpy()
        return np.stack([found[name] for name in sizes], axis=1).astype(np.int64)

    rows: list[list[object]] = []
    for run in range(arguments.runs):
        with tempfile.TemporaryDirectory() as folder:
            con = duckdb.connect(str(Path(folder) / "adult.duckdb"))
            con.execute("CREATE TABLE adult AS FROM read_parquet(?)", [str(source)])
            with timed() as watch:
                dpsyn_sql.release(
                    con,
                    "adult",
                    epsilon=arguments.epsilon,
                    delta=arguments.delta,
                    method=arguments.method,
                    domain=domain_of(sizes),
                    ledger=Path(folder) / "ledger",
                )
            two, three = score(matrix(con, "adult"), matrix(con, "adult_synthetic"), list(sizes.values()))
            con.close()
        rows.append([f"{arguments.method}, release {run + 1}", two, three, watch.seconds["total"]])
        shown = {name: round(seconds, 2) for name, seconds in watch.seconds.items()}
        print(shown, flush=True)
    means = [statistics.mean(float(str(row[column])) for row in rows) for column in (1, 2, 3)]
    print_table(
        ["synthesizer", "2-way", "3-way", "seconds"],
        [*rows, ["mean", *means], *(ELSEWHERE if arguments.epsilon == 1 else [])],
        f"epsilon {arguments.epsilon}, delta {arguments.delta}, peak {peak_mebibytes():.0f} MiB; {machine()}",
    )


if __name__ == "__main__":
    main()
