"""How good a release is by the number of rows and epsilon: the table of docs/howto/choose_epsilon.md.

    python benchmarks/table_sizes.py [--rows 1000 5000 48842 500000] [--epsilon 0.1 0.3 1 3 10] [--releases 3]

Tables of one kind and several sizes: rows of UCI Adult with its declared domain, drawn without
replacement, and with replacement where more are wanted than there are. Mean total variation distance of
the WRITTEN table from the rows it was made of, over all one-way and all two-way marginals of 14 columns:
of 100 rows, so many are in a wrong cell. Beside it the share of pairs that were measured, and the two-
way distance of a table that has every column right and no two columns together (each column shuffled).
This compares with private data: only for public tables.
"""

from __future__ import annotations

import statistics
import warnings
from collections.abc import Callable

import duckdb
import numpy as np
from adaptive import Table, raw_adult, written
from comparison import chosen, mean_distances, variations
from harness import command_line, machine, print_table

DELTA = 1e-9


def of_rows(rows: int) -> Table:
    """Adult with so many rows, the same ones every time."""
    whole = raw_adult(declared=True)

    def load(con: duckdb.DuckDBPyConnection) -> None:
        whole.load(con)
        there = con.sql("SELECT count(*) FROM source").fetchall()[0][0]
        taken = np.random.default_rng(1).choice(there, rows, replace=rows > there)
        con.register("taken", {"row": taken})
        con.execute(
            "CREATE TABLE drawn AS SELECT s.* FROM taken "
            "JOIN (SELECT *, row_number() OVER () - 1 AS place FROM source) s ON s.place = taken.row"
        )
        con.execute("ALTER TABLE drawn DROP COLUMN place")
        con.unregister("taken")
        con.execute("DROP TABLE source")
        con.execute("ALTER TABLE drawn RENAME TO source")

    return Table(load, whole.domain, whole.scored)


def released(rows: int, epsilon: float) -> tuple[float, float, float, float]:
    """One-way and two-way distance, the share of pairs that were measured, and the two-way distance of
    shuffled columns; all in percent."""
    made = written(of_rows(rows), "auto", epsilon, DELTA)
    one = statistics.mean(variations(made.source, made.copy, made.sizes, chosen(len(made.sizes), 1)))
    rng = np.random.default_rng(2)
    shuffled = np.stack([rng.permutation(column) for column in made.source.T], axis=1)
    pairs = made.release.certificate()["losses"]["pairs"]
    figures = (
        one,
        mean_distances(made.source, made.copy, made.sizes)[0],
        pairs["measured"] / sum(pairs.values()),
        mean_distances(made.source, shuffled, made.sizes)[0],
    )
    return tuple(100 * figure for figure in figures)  # type: ignore[return-value]


def range_of(values: list[float], show: Callable[[float], str]) -> str:
    """The mean, and the smallest and largest value."""
    return f"{show(statistics.mean(values))} ({show(min(values))} to {show(max(values))})"


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000, 5_000, 48_842, 500_000])
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.1, 0.3, 1.0, 3.0, 10.0])
    parser.add_argument("--releases", type=int, default=3)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    lines: list[list[object]] = []
    for rows in arguments.rows:
        for epsilon in arguments.epsilon:
            figures = [released(rows, epsilon) for _ in range(arguments.releases)]
            one, two, measured, shuffled = (list(column) for column in zip(*figures, strict=True))
            cells = [range_of(column, lambda value: f"{value:.2g}") for column in (one, two)]
            lines.append(
                [
                    f"{rows:,}",
                    f"{epsilon:g}",
                    *cells,
                    f"{statistics.mean(measured):.0f}",
                    f"{shuffled[0]:.2g}",
                ]
            )
            print(lines[-1], flush=True)
    print_table(
        ["rows", "epsilon", "one column", "two columns", "pairs measured", "two columns, shuffled"],
        lines,
        f"Percent; mean (least to largest) of {arguments.releases} releases at delta {DELTA}. {machine()}",
    )


if __name__ == "__main__":
    main()
