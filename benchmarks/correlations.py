"""Correlation matrices of the written rows beside the source's: whole releases, with and without a domain.

    python benchmarks/correlations.py [--epsilon 1 10] [--releases 3] [--tables credit houses flights]

Spearman's and Pearson's matrix of all columns of numbers and times: the mean and the largest absolute
difference over the pairs (and which pair), and how much of the correlation is left: the slope of the copy's
entries on the source's (1: all of it; noise in empty cells makes it smaller). Rows where one column of a pair
is NULL are left out. The rows are read without noise: for public data only.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
from believable import CREDIT_BOUNDS, CREDIT_EDGES, load
from believable_tables import GENERATED
from comparison import columns_of
from harness import DATA, command_line, machine, print_table
from numpy.typing import NDArray
from real_tables import REAL_TABLES
from values import TIMES, is_number

import dpsyn_sql

MATRICES = {
    "credit": ("discovered", "bounds", "declared"),
    "houses": ("discovered",),
    "connections": ("discovered",),
    "flights": ("discovered", "bounds", "declared"),
    "gowalla": ("discovered", "bounds", "declared"),
}


@dataclass(frozen=True)
class Pairs:
    """Names of the pairs, and the entries of both matrices in their order."""

    names: list[str]
    source: NDArray[np.float64]
    copy: NDArray[np.float64]

    @property
    def cells(self) -> list[object]:
        """Mean difference, largest difference, what is left of the correlation."""
        apart = np.abs(self.source - self.copy)
        worst = int(apart.argmax())
        slope = float(self.source @ self.copy / (self.source @ self.source))
        pair = f"{self.source[worst]:.2f} as {self.copy[worst]:.2f} ({self.names[worst]})"
        return [f"{apart.mean():.4f}", pair, f"{slope:.3f}"]


def matrix(
    con: duckdb.DuckDBPyConnection, relation: str, names: Mapping[str, str], method: str
) -> pd.DataFrame:
    """Pearson's or Spearman's matrix; 0 where a column is constant."""
    columns = ", ".join(
        f'epoch("{name}") AS "{name}"' if kind.startswith(TIMES) else f'CAST("{name}" AS DOUBLE) AS "{name}"'
        for name, kind in names.items()
    )
    frame = con.execute(f"SELECT {columns} FROM {relation}").df()
    if method == "spearman":
        # the whole column ranked once: ranks of pairs without NULL differ little, and cost much
        frame = frame.rank()
    return frame.corr().fillna(0.0)


def domain_of(table: str, domains: str) -> object:
    """None, ends alone, or all that is declared."""
    if domains == "discovered":
        return None
    if table == "credit":
        return {"columns": CREDIT_EDGES if domains == "declared" else CREDIT_BOUNDS}
    real = REAL_TABLES[table]
    return real.domain if domains == "declared" else real.bounds()


def compared(table: str, domains: str, epsilon: float) -> dict[str, Pairs]:
    """Both matrices of one release."""
    with duckdb.connect() as con, tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        load(con, table)
        real = REAL_TABLES.get(table)
        dpsyn_sql.release(
            con,
            table,
            into="copy",
            method="adaptive",
            epsilon=epsilon,
            domain=domain_of(table, domains),
            ledger=Path(folder) / "ledger",
            **({} if real is None else real.protects),
        )
        kinds = {} if real is None else real.kinds()
        unit = "id" if real is None else real.unit
        names = {
            name: kind
            for name, kind in columns_of(con, table).items()
            if is_number(kind) and name != unit and kinds.get(name) not in ("key", "categorical", "constant")
        }
        source = table if real is None else real.rows_within_bound
        found = {}
        for method in ("spearman", "pearson"):
            true, made = (matrix(con, side, names, method) for side in (source, "copy"))
            places = np.triu_indices(len(names), 1)
            listed = [*names]
            found[method] = Pairs(
                [f"{listed[i]}, {listed[j]}" for i, j in zip(*places, strict=True)],
                true.to_numpy()[places],
                made.to_numpy()[places],
            )
    return found


def median_of(runs: list[Pairs]) -> Pairs:
    """The entries of the copies are medians."""
    return Pairs(runs[0].names, runs[0].source, np.median([run.copy for run in runs], axis=0))


def main() -> None:
    """Print one table."""
    parser = command_line(__doc__)
    parser.add_argument("--tables", nargs="*", choices=[*MATRICES], default=[*MATRICES])
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0, 10.0])
    parser.add_argument("--releases", type=int, default=3)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    rows: list[list[object]] = []
    for table in arguments.tables:
        if table not in GENERATED and not (DATA / REAL_TABLES[table].path).exists():
            continue
        for domains in MATRICES[table]:
            for epsilon in arguments.epsilon:
                runs = [compared(table, domains, epsilon) for _ in range(arguments.releases)]
                for method in ("spearman", "pearson"):
                    pairs = median_of([run[method] for run in runs])
                    rows.append([table, domains, f"{epsilon:g}", method, *pairs.cells])
    header = ["table", "domains", "epsilon", "matrix", "mean difference", "worst pair", "slope"]
    print_table(header, rows, f"Median entries of {arguments.releases} releases, adaptive; {machine()}")


if __name__ == "__main__":
    main()
