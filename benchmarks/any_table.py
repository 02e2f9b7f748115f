"""Real inputs, with discovered and with declared domains: how close is the copy, column by column?

    python benchmarks/any_table.py [--tables flights green_taxi] [--method copula adaptive]
        [--domains discovered bounds declared] [--epsilon 1] [--columns]

Domains are ``discovered`` (no domain file), ``bounds`` (what an owner knows at once: the ends of numbers and
times, and which columns are keys), or ``declared`` (the whole file).

The comparison reads the real rows without noise: what this script prints is as private as its input, and is
meant for public data sets. No release is steered by it.

Printed per input and run: wall time of the release; share of the budget spent on discovery; rows of the
source that have a privacy unit, and rows written; one-way total variation distance (categories as they are,
the 500 commonest apart; numbers and times on 50 bins of equal width over the true range); 1-Wasserstein
distance in units of the true range; the largest difference in the share of NULL; columns that are missing;
whether the copy fits into the owner's CREATE TABLE.

A second table has the errors of the values of numbers and times: mean, standard deviation, and percentiles
(1st, 5th, 25th, 50th, 75th, 95th, 99th; the worst of them for each column), the median column and the worst.
``ValueErrors`` in ``values.py`` says what each error is relative to. The truth is what a release can know: of
each privacy unit at most as many rows as count, and values beyond the ends that the owner declared are those
ends (the taxi meters report 224,000 miles, which no noisy count can tell from nothing). The copy stays as it
is.
"""

from __future__ import annotations

import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import duckdb
from comparison import Distance, columns_of, distance
from harness import DATA, command_line, machine, need, peak_mebibytes, print_table
from real_tables import REAL_TABLES, RealTable
from values import PERCENTILES, VALUE_HEADER, ValueErrors, is_number, percent, value_cells, value_errors

import dpsyn_sql
from dpsyn_sql.accounting.events import cost_units, event_from_dict
from dpsyn_sql.errors import DpsynError

NOT_COMPARED = ("key",)
"""A key's values are fresh in every copy."""


DOMAINS: dict[str, Callable[[RealTable], Any]] = {
    "discovered": lambda table: None,
    "bounds": RealTable.bounds,
    "declared": lambda table: table.domain,
}


@dataclass(frozen=True)
class Run:
    """One release, compared; ``failed`` says why there is none."""

    table: RealTable
    method: str
    domains: str
    seconds: float = 0.0
    discovery: float = 0.0
    rows: tuple[int, int] = (0, 0)
    distances: tuple[Distance, ...] = ()
    values: tuple[ValueErrors, ...] = ()
    missing: tuple[str, ...] = ()
    loads: str = ""
    failed: str = ""


def run(table: RealTable, method: str, domains: str, epsilon: float, seed: int) -> Run:
    """Load the owner's table, release it, compare, load the copy."""
    with tempfile.TemporaryDirectory() as folder:
        con = duckdb.connect(str(Path(folder) / "warehouse.duckdb"))
        table.load(con, need(DATA / table.path).parent.parent)
        begun = time.perf_counter()
        failed = ""
        try:
            release = dpsyn_sql.release(
                con,
                table.name,
                into="copy",
                method=method,
                epsilon=epsilon,
                seed=seed,
                ledger=Path(folder) / "ledger",
                domain=DOMAINS[domains](table),
                **table.protects,
            )
        except DpsynError as error:
            failed = f"{type(error).__name__}: {error}".split("\n")[0][:160]
        seconds = time.perf_counter() - begun
        if failed:
            con.close()
            return Run(table, method, domains, seconds, failed=failed)
        source = f"(FROM {table.name} WHERE {table.rows_that_count})"
        row = con.execute(f"SELECT count(*) FROM {source}").fetchone()
        found = Run(
            table,
            method,
            domains,
            seconds,
            discovery_share(release.certificate()),
            (0 if row is None else row[0], release.rows),
            tuple(compared(con, table, source)),
            tuple(values_compared(con, table)),
            tuple(name for name in columns_of(con, table.name) if name not in columns_of(con, "copy")),
            fits(con, table),
        )
        con.close()
    return found


def discovery_share(certificate: dict[str, Any]) -> float:
    """Part of the reserved budget that went into learning domains, and rows per unit."""
    spent = 0
    kind = certificate["budget"]["kind"]
    for mechanism in certificate["mechanisms"]:
        if str(mechanism["step"]).startswith("discover"):
            event = {key: value for key, value in mechanism.items() if key not in ("step", "column")}
            spent += cost_units(event_from_dict(event), kind)
    return spent / int(certificate["budget"]["reserved_units_of_1e-15"])


def columns_compared(con: duckdb.DuckDBPyConnection, table: RealTable) -> Iterator[tuple[str, str, bool]]:
    """Every column that both tables have and whose values mean something: name, type, is it categorical."""
    kinds, written = table.kinds(), columns_of(con, "copy")
    for name, kind in columns_of(con, table.name).items():
        if name in written and name != table.unit and kinds.get(name) not in NOT_COMPARED:
            yield name, kind, kinds.get(name) == "categorical"


def compared(con: duckdb.DuckDBPyConnection, table: RealTable, source: str) -> list[Distance]:
    """Distances of every column."""
    return [
        distance(con, source, "copy", name, categorical=categorical)
        for name, _, categorical in columns_compared(con, table)
    ]


def values_compared(con: duckdb.DuckDBPyConnection, table: RealTable) -> list[ValueErrors]:
    """Errors of the values of every column of numbers or times, beside what a release can know."""
    ends = table.ends()
    found = [
        value_errors(con, table.rows_within_bound, "copy", name, ends.get(name))
        for name, kind, categorical in columns_compared(con, table)
        if not categorical and is_number(kind)
    ]
    return [errors for errors in found if errors is not None]


def fits(con: duckdb.DuckDBPyConnection, table: RealTable) -> str:
    """``yes``, or what the database says; the rows are synthetic, so it may be repeated."""
    table.create(con, "second")
    wanted, written = columns_of(con, "second"), columns_of(con, "copy")
    for name in written:
        if written[name] != wanted[name]:
            return f"no: {name} is {written[name]}, not {wanted[name]}"
    try:
        con.execute("INSERT INTO second BY NAME FROM copy")
    except duckdb.Error as error:
        return "no: " + str(error).split("\n")[0].replace("|", "/")[:100]
    return "yes" if con.execute("SELECT count(*) FROM second").fetchone() != (0,) else "empty"


def summary_of(found: Run) -> list[object]:
    """One row of figures."""
    head: list[object] = [found.table.name, found.domains, found.method, found.seconds]
    if found.failed:
        return [*head, found.failed, *[""] * 8]
    variations = {item.column: item.variation for item in found.distances}
    transports = {item.column: item.transport for item in found.distances if item.transport is not None}
    nulls = {item.column: abs(item.nulls) for item in found.distances}
    return [
        *head,
        f"{100 * found.discovery:.1f} %",
        f"{found.rows[0]:,} / {found.rows[1]:,}",
        *_median_and_worst(variations),
        *_median_and_worst(transports),
        _median_and_worst(nulls)[1],
        ", ".join(found.missing),
        found.loads,
    ]


def _median_and_worst(figures: dict[str, float]) -> tuple[object, object]:
    if not figures:
        return "", ""
    worst = max(figures, key=figures.__getitem__)
    return statistics.median(figures.values()), f"{figures[worst]:.3g} ({worst})"


HEADER = [
    "input",
    "domains",
    "method",
    "seconds",
    "discovery",
    "rows in / out",
    "variation, median",
    "worst",
    "Wasserstein, median",
    "worst",
    "NULL, worst",
    "missing",
    "fits",
]


def print_columns(runs: list[Run]) -> None:
    """Variation and Wasserstein distance of every column, a pair of columns a run."""
    done = [found for found in runs if not found.failed]
    if not done:
        return
    names = dict.fromkeys(item.column for found in done for item in found.distances)
    tables = [{item.column: item for item in found.distances} for found in done]

    def cell(item: Distance | None) -> str:
        if item is None:
            return ""
        return f"{item.variation:.3g}" + ("" if item.transport is None else f" / {item.transport:.3g}")

    print_table(
        ["column", *(f"{found.domains}, {found.method}" for found in done)],
        [[name, *(cell(table.get(name)) for table in tables)] for name in names],
        "Total variation distance / 1-Wasserstein distance relative to the range.",
    )


def print_values(runs: list[Run]) -> None:
    """Errors of the values of every column of numbers and times, a line a column and run."""
    header = ["column", "domains", "method", "mean", "deviation", *(f"{100 * p:g} %" for p in PERCENTILES)]
    rows: list[list[object]] = [
        [
            item.column,
            found.domains,
            found.method,
            *(percent(figure) for figure in (item.mean, item.deviation, *item.percentiles)),
        ]
        for found in runs
        for item in found.values
    ]
    print_table(header, rows, "Errors of the mean, the standard deviation and the percentiles.")


def print_summary(runs: list[Run]) -> None:
    """Over all inputs: the median column and the worst, per kind of domains and method."""
    groups: dict[tuple[str, str], list[Run]] = {}
    for found in runs:
        groups.setdefault((found.domains, found.method), []).append(found)
    rows: list[list[object]] = []
    values: list[list[object]] = []
    for (domains, method), members in groups.items():
        done = [found for found in members if not found.failed]
        variations = [item.variation for found in done for item in found.distances]
        transports = [
            item.transport for found in done for item in found.distances if item.transport is not None
        ]
        if not variations:
            continue
        errors = [
            replace(item, column=f"{found.table.name}.{item.column}")
            for found in done
            for item in found.values
        ]
        within = [sum(item.mean <= limit for item in errors) for limit in (0.02, 0.1)]
        shares = [f"{count} of {len(errors)}" for count in within]
        values.append([domains, method, *shares, *value_cells(errors)])
        rows.append(
            [
                domains,
                method,
                f"{len(done)} of {len(members)}",
                sum(found.loads == "yes" for found in done),
                statistics.median(variations),
                statistics.mean(variations),
                statistics.mean(transports),
                sum(found.seconds for found in done),
            ]
        )
    header = [
        "domains",
        "method",
        "released",
        "fit",
        "variation, median column",
        "mean column",
        "Wasserstein, mean column",
        "seconds in all",
    ]
    print_table(header, rows)
    print_table(["domains", "method", "mean within 2 %", "within 10 %", *VALUE_HEADER], values)


def main() -> None:
    """A table per input, then a summary."""
    parser = command_line(__doc__)
    parser.add_argument("--tables", nargs="+", choices=[*REAL_TABLES], default=[*REAL_TABLES])
    parser.add_argument("--method", nargs="+", default=["auto"])
    parser.add_argument("--domains", nargs="+", choices=[*DOMAINS], default=["discovered", "declared"])
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=1, help="of the sampling; noise has none")
    parser.add_argument("--columns", action="store_true", help="print every column as well")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    every: list[Run] = []
    for name in arguments.tables:
        runs = [
            run(REAL_TABLES[name], method, domains, arguments.epsilon, arguments.seed)
            for domains in arguments.domains
            for method in arguments.method
        ]
        print_table(HEADER, [summary_of(found) for found in runs])
        print_table(
            ["input", "domains", "method", *VALUE_HEADER],
            [[found.table.name, found.domains, found.method, *value_cells(found.values)] for found in runs],
        )
        if arguments.columns:
            print_columns(runs)
            print_values(runs)
        every += runs
    print_summary(every)
    print(
        f"epsilon {arguments.epsilon:g}, delta 1e-9, peak {peak_mebibytes():.0f} MiB; {machine()}", flush=True
    )


if __name__ == "__main__":
    main()
