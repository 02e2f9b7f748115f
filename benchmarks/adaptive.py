"""Accuracy and time of a method on Adult discretised, against figures of other synthesizers.

    python benchmarks/adaptive.py [--methods adaptive copula] [--runs 3] [--epsilon 0.1 1 10] [--delta 1e-9]

Mean total variation distance of the WRITTEN table from the source over all two-way and 200 seeded
three-way marginals of original codes. This compares with private data: only for public tables.
"""

from __future__ import annotations

import argparse
import json
import statistics

import duckdb
from coded import released
from harness import DATA, machine, medians, need, peak_mebibytes, print_table

ORDERED = {"age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"}
ELSEWHERE = [
    ["AIM (private-pgm)", 0.0385, 0.0887, 518.0],
    ["SWIFT (google/dpsynth)", 0.0390, 0.0855, 728.0],
    ["prototype of this method, in numpy", 0.0302, 0.0731, 1.7],
    ["MST (private-pgm)", 0.0516, 0.1131, 86.0],
    ["columns shuffled, no privacy", 0.0761, 0.1735, ""],
    ["bootstrap of the rows, no privacy", 0.0146, 0.0348, ""],
]
"""Measured once on 2 cores at epsilon 1, delta 1e-9, by this scorer."""


def main() -> None:
    """Print one table for each epsilon."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--methods", nargs="+", default=["adaptive", "copula", "independent"])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.1, 1.0, 10.0])
    parser.add_argument("--delta", type=float, default=1e-9)
    arguments = parser.parse_args()
    source = need(DATA / "adult_discretised" / "adult.parquet")
    sizes = json.loads(need(DATA / "adult_discretised" / "domain.json").read_text())

    def load(con: duckdb.DuckDBPyConnection) -> None:
        con.execute("CREATE TABLE coded AS FROM read_parquet(?)", [str(source)])

    for epsilon in arguments.epsilon:
        rows: list[list[object]] = []
        for method in arguments.methods:
            runs = [
                released(load, sizes, ORDERED, method, epsilon, arguments.delta)
                for _ in range(arguments.runs)
            ]
            two, three = (statistics.mean(scores[place] for scores, _ in runs) for place in (0, 1))
            spread = max(scores[0] for scores, _ in runs) - min(scores[0] for scores, _ in runs)
            seconds = medians([watch for _, watch in runs])
            cells: list[object] = [seconds.get(name, 0.0) for name in ("total", "fit", "sample")]
            rows.append([method, f"{two:.4f}", f"{three:.4f}", f"{spread:.4f}", *cells])
            print(f"epsilon {epsilon}, {method}: done", flush=True)
        elsewhere = [[name, two, three, "", seconds, "", ""] for name, two, three, seconds in ELSEWHERE]
        print_table(
            ["synthesizer", "2-way", "3-way", "2-way, range", "seconds", "of it fit", "sample"],
            [*rows, *(elsewhere if epsilon == 1 else [])],
            f"epsilon {epsilon}, delta {arguments.delta}, mean of {arguments.runs} releases, "
            f"peak {peak_mebibytes():.0f} MiB; {machine()}",
        )


if __name__ == "__main__":
    main()
