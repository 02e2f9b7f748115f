"""UCI Adult end to end, from Parquet to table: seconds per phase and peak memory.

    python benchmarks/adult.py [--method copula] [--runs 5]

The copula paper reports 6 min 47 s for its 14 attributes (194 binary) on 10 cores.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import duckdb
from harness import DATA, REPOSITORY, Stopwatch, machine, need, peak_mebibytes, print_table, repeat, timed

import dpsyn_sql

PAPER_SECONDS = 6 * 60 + 47


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--method", default="copula")
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    source = need(DATA / "uci_adult" / "adult_all.parquet")

    def run() -> Stopwatch:
        with tempfile.TemporaryDirectory() as folder, timed() as watch:
            con = duckdb.connect(str(Path(folder) / "out.duckdb"))
            dpsyn_sql.release(
                con,
                source,
                into="adult_synthetic",
                method=arguments.method,
                domain=REPOSITORY / "examples" / "adult.domain.yml",
                exclude=["split", "education_num"],
                ledger=Path(folder) / "ledger",
            )
            con.close()
        return watch

    seconds = repeat(arguments.runs, run)
    rows = [[name, value] for name, value in seconds.items()]
    print_table(
        ["phase", "seconds (median)"],
        [*rows, ["the copula paper, 10 cores", float(PAPER_SECONDS)]],
        f"14 attributes, {arguments.method}, {arguments.runs} runs, peak {peak_mebibytes():.0f} MiB; "
        f"{machine()}",
    )


if __name__ == "__main__":
    main()
