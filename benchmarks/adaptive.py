"""Accuracy and time of whole releases, by table and method, against figures of other synthesizers.

    python benchmarks/adaptive.py [--tables adult] [--methods adaptive copula] [--runs 3]
        [--epsilon 0.1 1 10] [--delta 1e-9]

    adult        Adult discretised: 48,842 rows, 14 attributes of codes
    declared     UCI Adult as it was published, with the domain file of ``domains/``
    discovered   the same without a domain: learnt from the rows for a tenth of the budget
    wide         50,000 rows of 100 attributes, a mixture of hidden groups, made here

Mean total variation distance of the WRITTEN table from the source over all two-way and 200 seeded
three-way marginals: of codes, or of categories and 20 equal bins over the declared range of a number
(``comparison.py``). This compares with private data: only for public tables.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
from comparison import codes_of, mean_distances
from harness import DATA, Stopwatch, command_line, machine, medians, need, peak_mebibytes, print_table, timed
from measured_once import MEASURED_ONCE
from numpy.typing import NDArray
from real_tables import REAL_TABLES

import dpsyn_sql

Codes = NDArray[np.int64]

ORDERED = {"age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"}
NOT_SCORED = {"split", "education_num"}
"""Of raw Adult: the file a row is from, and the twin of ``education``; 14 columns are left."""

WIDE_ROWS, WIDE_ATTRIBUTES, WIDE_GROUPS = 50_000, 100, 40


@dataclass(frozen=True)
class Table:
    """``load`` makes the table ``source``; ``domain`` is what is declared about it (None: discovered).

    ``scored``: of each column the number of its codes, the range that is cut into bins, or None for
    categories.
    """

    load: Callable[[duckdb.DuckDBPyConnection], None]
    domain: Mapping[str, object] | None
    scored: Mapping[str, int | tuple[float, float] | None]


def codes_declared(sizes: Mapping[str, int], ordered: set[str]) -> dict[str, object]:
    """Every attribute is declared as the list of its codes."""
    return {
        "columns": {
            name: {
                "type": "categorical",
                "categories": list(range(size)),
                "ordered": name in ordered,
                "other": False,
            }
            for name, size in sizes.items()
        }
    }


def adult() -> Table:
    """The form that other synthesizers were measured on."""
    sizes = json.loads(need(DATA / "adult_discretised" / "domain.json").read_text())
    file = need(DATA / "adult_discretised" / "adult.parquet")
    return Table(
        lambda con: con.execute(f"CREATE TABLE source AS FROM '{file}'"),
        codes_declared(sizes, ORDERED),
        sizes,
    )


def raw_adult(*, declared: bool) -> Table:
    """The published file; numbers are scored on the range that the domain file declares."""
    table = REAL_TABLES["adult_all"]
    need(DATA / table.path)
    document = table.declared()
    scored: dict[str, int | tuple[float, float] | None] = {}
    for name, entry in document["columns"].items():
        edges = entry.get("edges") or [entry.get("lower"), entry.get("upper")]
        scored[name] = (edges[0], edges[-1]) if entry.get("type") == "numeric" else None
    for name in NOT_SCORED:
        del scored[name]

    def load(con: duckdb.DuckDBPyConnection) -> None:
        table.load(con, DATA)
        con.execute(f"ALTER TABLE {table.name} RENAME TO source")

    return Table(load, document if declared else None, scored)


def wide() -> Table:
    """Attributes of 2 to 20 codes that depend on each other through a hidden group."""
    rng = np.random.default_rng(1)
    sizes = {f"a{index}": 2 + 7 * index % 19 for index in range(WIDE_ATTRIBUTES)}
    group = rng.choice(WIDE_GROUPS, WIDE_ROWS, p=rng.dirichlet(np.full(WIDE_GROUPS, 0.5)))
    frame = {}
    for name, size in sizes.items():
        bounds = np.cumsum(rng.dirichlet(np.full(size, 0.3), WIDE_GROUPS), axis=1)
        drawn = (bounds[group] < rng.random(WIDE_ROWS)[:, None]).sum(axis=1)
        frame[name] = np.minimum(drawn, size - 1).astype(np.uint8)

    def load(con: duckdb.DuckDBPyConnection) -> None:
        con.register("frame", frame)
        con.execute("CREATE TABLE source AS FROM frame")
        con.unregister("frame")

    return Table(load, codes_declared(sizes, set()), sizes)


TABLES: dict[str, Callable[[], Table]] = {
    "adult": adult,
    "declared": lambda: raw_adult(declared=True),
    "discovered": lambda: raw_adult(declared=False),
    "wide": wide,
}


@dataclass(frozen=True)
class Written:
    """Codes of the source and of the written table, and what the release took (peak memory in MiB)."""

    source: Codes
    copy: Codes
    sizes: list[int]
    watch: Stopwatch
    peak: float
    release: dpsyn_sql.Release


def written(table: Table, method: object, epsilon: float, delta: float, workload: object = None) -> Written:
    """One whole release of a table into its database."""
    with tempfile.TemporaryDirectory() as folder, duckdb.connect(str(Path(folder) / "a.duckdb")) as con:
        table.load(con)
        with timed() as watch:
            release = dpsyn_sql.release(
                con,
                "source",
                epsilon=epsilon,
                delta=delta,
                method=method,
                domain=table.domain,
                workload=workload,
                ledger=Path(folder) / "ledger",
            )
        peak = peak_mebibytes()
        codes, sizes = codes_of(con, ("source", "source_synthetic"), table.scored)
    return Written(codes[0], codes[1], sizes, watch, peak, release)


def released(
    table: Table, method: object, epsilon: float, delta: float
) -> tuple[tuple[float, float], Stopwatch, float]:
    """Distances, times and peak memory so far (MiB) of one whole release of a table into its database."""
    made = written(table, method, epsilon, delta)
    return mean_distances(made.source, made.copy, made.sizes), made.watch, made.peak


def line(name: str, table: Table, method: str, arguments: argparse.Namespace, epsilon: float) -> list[object]:
    """Means over the runs; times are medians."""
    runs = [released(table, method, epsilon, arguments.delta) for _ in range(arguments.runs)]
    two, three = (statistics.mean(scores[place] for scores, _, _ in runs) for place in (0, 1))
    spread = max(scores[0] for scores, _, _ in runs) - min(scores[0] for scores, _, _ in runs)
    seconds = medians([watch for _, watch, _ in runs])
    times: list[object] = [seconds.get(phase, 0.0) for phase in ("total", "fit", "sample")]
    print(f"epsilon {epsilon}, {name}, {method}: done", flush=True)
    label = method if name == "adult" else f"{method}, {name}"
    return [label, f"{two:.4f}", f"{three:.4f}", f"{spread:.4f}", *times, f"{runs[0][2]:.0f}"]


def main() -> None:
    """Print one table for each epsilon."""
    parser = command_line(__doc__)
    parser.add_argument("--tables", nargs="+", choices=[*TABLES], default=["adult"])
    parser.add_argument("--methods", nargs="+", default=["adaptive", "copula", "independent"])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.1, 1.0, 10.0])
    parser.add_argument("--delta", type=float, default=1e-9)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    tables = {name: TABLES[name]() for name in arguments.tables}
    for epsilon in arguments.epsilon:
        rows = [
            line(name, table, method, arguments, epsilon)
            for name, table in tables.items()
            for method in arguments.methods
        ]
        if "adult" in tables and epsilon == 1:
            rows += [[name, *figures] for name, figures in MEASURED_ONCE.items()]
        print_table(
            ["synthesizer", "2-way", "3-way", "2-way, range", "seconds", "of it fit", "sample", "MiB"],
            rows,
            f"epsilon {epsilon}, delta {arguments.delta}, mean of {arguments.runs} releases, MiB: peak "
            f"of the process when the first is done; {machine()}",
        )


if __name__ == "__main__":
    main()
