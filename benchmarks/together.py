"""Rows of one person that go together: what a release keeps of them, and what it costs.

    python benchmarks/together.py [--lines shop lines invoices gowalla flights speed] [--epsilon 1 10]
        [--seeds 6] [--ways counted together] [--most N] [--quick]

    shop      an invented shop of 5,000 and 50,000 customers (``family_tables.py``)
    lines     lines of invoices of Online Retail by customer
    invoices  its invoices by customer, in the order of their days
    gowalla   check-ins in New York City by user
    flights   flights from New York by aircraft
    speed     a release of a million customers with ten million purchases, from Parquet to Parquet

"Together" is a release whose rows have weights, "counted" the same with ``weights=False``. The floor is
another sample of the same law for the shop, and of real tables one half of the persons beside the other.
``excess``: chance that two rows of a person have one code, less that of rows of two persons, mean over the
columns that are not a person's; real rows beside synthetic ones. Distances are total variation: of the
number of rows of a person; of this number x a person's column, mean over these; of pairs of
columns, mean over all; of the month and the month of the row before, and of the time between them (octaves),
where rows are in the order of their days. Columns are coded as ``evaluate`` codes
them. All figures but the releases' are of exact counts. Medians over the seeds.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
from family_tables import FamilyTable, flights, gowalla, retail_invoices, retail_lines, shop
from harness import apart, command_line, machine, peak_mebibytes, print_table, timed

import dpsyn_sql

DELTA = 1e-9
FIGURES = (
    "excess",
    "excess real",
    "rows a person",
    "rows x attribute",
    "two-way",
    "month x previous",
    "time between",
)

Figures = dict[str, float]

LINES: Mapping[str, Mapping[str, Callable[[], FamilyTable]]] = {
    "shop": {"shop, 5,000": lambda: shop(5_000), "shop, 50,000": lambda: shop(50_000)},
    "lines": {"retail, lines": retail_lines},
    "invoices": {"retail, invoices": retail_invoices},
    "gowalla": {"gowalla": gowalla},
    "flights": {"flights by aircraft": flights},
}


def judged(con: duckdb.DuckDBPyConnection, table: FamilyTable, real: str, synthetic: str) -> Figures:
    """All figures of one table beside another."""
    queries = [f"SELECT {table.judged} FROM {name}" for name in (real, synthetic)]
    frames = dpsyn_sql.evaluate(con, *queries, unit=table.unit, order=table.order).tables
    siblings = frames["relative_columns"].set_index("column")
    rows = siblings.drop(index=[*table.shared, *([table.order] if table.order else [])])
    of_persons = siblings.loc[[*table.shared], "rows_tv"]
    link = frames["links"].iloc[0]
    steps = [np.nan, np.nan]
    if table.order is not None:
        steps = [frames["sequences"].set_index("column").loc["month", "steps_tv"], link["wait_tv"]]
    marginals = frames["marginals"].set_index(["ways", "compared"])
    figures = (
        rows["excess_synthetic"].mean(),
        rows["excess_real"].mean(),
        link["tv"],
        of_persons.mean() if len(of_persons) else np.nan,
        marginals.loc[(2, "synthetic"), "tv_mean"],
        *steps,
    )
    return dict(zip(FIGURES, map(float, figures), strict=True))


def table_of(line: str, name: str) -> FamilyTable:
    """By its name."""
    return LINES[line][name]()


def floor_of(line: str, name: str, seed: int) -> Figures:
    """Two samples of one law; of real persons two halves. A function of a process of its own."""
    table = table_of(line, name)
    with duckdb.connect() as con:
        table.load(con)
        if line == "shop":
            customers = int(name.rpartition(" ")[2].replace(",", ""))
            shop(customers, 1_000 + seed).load(con, "other")
            return judged(con, table, "source", "other")
        half = f"hash({table.unit}, {seed}) % 2"
        for place, part in enumerate(("one", "other")):
            con.execute(f"CREATE TABLE {part} AS FROM source WHERE {half} = {place}")
        return judged(con, table, "one", "other")


def reached(line: str, name: str, way: str, epsilon: float, most: int | None = None) -> Figures:
    """One release, judged. A function of a process of its own."""
    warnings.simplefilter("ignore")
    table = table_of(line, name)
    table = table if most is None else replace(table, most=most)
    with tempfile.TemporaryDirectory() as folder, duckdb.connect(str(Path(folder) / "a.duckdb")) as con:
        table.load(con)
        with timed() as watch:
            dpsyn_sql.release(
                con,
                "source",
                into="copy",
                epsilon=epsilon,
                delta=DELTA,
                domain=table.domain(together=way == "together"),
                unit=table.unit,
                most=table.most,
                ledger=Path(folder) / "ledger",
                **weighed(table, way),
            )
        return {**judged(con, table, "source", "copy"), "seconds": watch.seconds["total"]}


def weighed(table: FamilyTable, way: str) -> dict[str, object]:
    """The options that decide how a row counts."""
    if way == "counted":
        return {"weights": False}
    return {} if table.order is None else {"order": table.order}


def line_of(label: str, epsilon: float, runs: Sequence[Figures]) -> list[object]:
    """Medians; nothing where a figure does not exist."""
    shown: list[object] = [label, "" if np.isnan(epsilon) else f"{epsilon:g}"]
    for name in (*FIGURES, "seconds"):
        value = statistics.median(run.get(name, np.nan) for run in runs)
        shown.append("" if np.isnan(value) else f"{value:.1f}" if name == "seconds" else f"{value:.3f}")
    print(*shown, sep="; ", flush=True)
    return shown


def table_lines(arguments: argparse.Namespace) -> list[list[object]]:
    """All tables, ways and epsilons."""
    found = []
    for line in (name for name in LINES if name in arguments.lines):
        for name in LINES[line]:
            missing = table_of(line, name).missing
            if missing is not None:
                print(f"{name} is left out: {missing} is missing (DPSYN_BENCHMARK_DATA)", flush=True)
                continue
            if arguments.quick and name.endswith("50,000"):
                continue
            runs = [apart(floor_of, line, name, seed) for seed in range(arguments.seeds)]
            found.append(line_of(f"{name}: floor", np.nan, runs))
            for epsilon in arguments.epsilon:
                for way in arguments.ways:
                    runs = [
                        apart(reached, line, name, way, epsilon, arguments.most)
                        for _ in range(arguments.seeds)
                    ]
                    found.append(line_of(f"{name}: {way}", epsilon, runs))
    return found


# -- speed -------------------------------------------------------------------------------------------


def generated(customers: int, path: str) -> None:
    """The purchases as Parquet. A function of a process of its own."""
    with duckdb.connect() as con:
        con.execute("SET enable_progress_bar = false")
        con.execute(f"COPY ({shop(customers, busy=3.85).query}) TO '{path}' (FORMAT parquet)")


def fast(customers: int, way: str) -> list[object]:
    """Rows in and out, seconds and MiB of one release. A function of a process of its own."""
    warnings.simplefilter("ignore")
    table = shop(customers)
    with tempfile.TemporaryDirectory() as folder:
        source, copy = (Path(folder) / f"{name}.parquet" for name in ("source", "copy"))
        apart(generated, customers, str(source))
        with timed() as watch:
            made = dpsyn_sql.release(
                None,
                source,
                into=copy,
                epsilon=1.0,
                delta=DELTA,
                domain=table.domain(together=way == "together"),
                unit=table.unit,
                most=table.most,
                ledger=Path(folder) / "ledger",
                limits={"memory": "3GB"},
                **weighed(table, way),
            )
        with duckdb.connect() as con:
            rows = con.execute("SELECT count(*) FROM read_parquet($1)", [str(source)]).fetchone()
    phases = ", ".join(f"{name} {value:.1f}" for name, value in watch.seconds.items() if name != "total")
    print(f"{way}: {phases}", flush=True)
    return [way, rows[0] if rows else 0, made.rows, watch.seconds["total"], peak_mebibytes()]


def speed_lines(arguments: argparse.Namespace) -> None:
    """One table."""
    customers = 50_000 if arguments.quick else 1_000_000
    rows = [apart(fast, customers, way) for way in arguments.ways]
    caption = f"{customers:,} customers, epsilon 1, load {os.getloadavg()[0]:.1f}; aim: 60 s, 4 GB"
    print_table(["way", "rows in", "rows out", "seconds", "peak MiB"], rows, caption)


def main() -> None:
    """Print two tables."""
    parser = command_line(__doc__)
    parser.add_argument("--lines", nargs="+", choices=[*LINES, "speed"], default=[*LINES, "speed"])
    parser.add_argument("--epsilon", nargs="+", type=float, default=[1.0, 10.0])
    parser.add_argument("--ways", nargs="+", choices=["counted", "together"], default=["counted", "together"])
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--most", type=int, help="rows of a person that count; default: of each table")
    parser.add_argument("--quick", action="store_true", help="small tables, one seed")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.seeds = 1
    rows = table_lines(arguments)
    if rows:
        header = ["table", "epsilon", *FIGURES, "seconds"]
        print_table(header, rows, f"Medians of {arguments.seeds} seeds, delta {DELTA:g}; {machine()}")
    if "speed" in arguments.lines:
        speed_lines(arguments)


if __name__ == "__main__":
    main()
