"""Databases of three levels: what a release keeps between its tables, beside independent tables.

    python benchmarks/database.py [--lines shop retail chinook] [--epsilon 1 10] [--seeds 6]
        [--ways database independent] [--peer sdv] [--quick]

    shop     an invented shop of 5,000 and 50,000 customers: customers, orders, items (``database_tables.py``)
    retail   customers, invoices in the order of their days, and lines of Online Retail
    chinook  59 customers of a music shop, invoices, lines

"database" is one release of all tables; "independent" are releases of each table with the unit, tied at
random (``independent_tables.py``). ``--peer sdv``: SDV's HMA without privacy, installed by pip into an
environment of its own, on the first table alone. The floor is another sample of the same law for the shop,
of real tables one half of the units beside the other.

Distances are total variation, mean over pairs of columns of joined rows: A, B, C are the tables from the
root; "B of A" is the number of rows of B of a row of A, "A x number" this number and a column of A. Excess:
how much more often two rows of B of one row of A have one code than rows of two, mean over columns; the
floor's line has the real one. "Month" is the month and that of the row before. Numbers are judged in the
bins that the domain declares. Medians over the seeds, from
exact counts, as ``evaluate`` gives them; keys that break are the sum of all runs.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from database_tables import Database, chinook, retail, shop
from harness import apart, command_line, machine, peak_mebibytes, print_table, timed
from independent_tables import write_independent
from peer_environments import Environment, Unavailable, default_cache, installed, limited

import dpsyn_sql
from dpsyn_sql import evaluate

DELTA = 1e-9
FIGURES = (
    "A x B",
    "B x C",
    "A x C",
    "B x B",
    "C x C",
    "B of A",
    "C of B",
    "A x number",
    "excess B in A",
    "excess C in B",
    "excess C in A",
    "month x previous",
)
EXCESSES = FIGURES[8:11]
COSTS = ("broken keys", "seconds", "MiB")

Figures = dict[str, float]

LINES: Mapping[str, Mapping[str, Callable[[int], Database]]] = {
    "shop": {
        "shop, 5,000": lambda seed: shop(5_000, seed),
        "shop, 50,000": lambda seed: shop(50_000, seed),
    },
    "retail": {"online retail": lambda _: retail()},
    "chinook": {"chinook": lambda _: chinook()},
}
SDV = Environment(("sdv<1.18",))
"""Later versions of HMA refuse three levels of tables."""


def database_of(name: str, seed: int = 1) -> Database:
    """By its name."""
    return next(made[name] for made in LINES.values() if name in made)(seed)


def judged(
    con: duckdb.DuckDBPyConnection, database: Database, synthetic: str, floor: bool = False
) -> Figures:
    """All figures of a schema beside the tables of ``con``; of the halves of the real units if ``floor``."""
    for side in ("main", synthetic):
        con.execute(f"CREATE SCHEMA judged_{side}")
        for name in database.names:
            query = f"SELECT {database.seen(name)} FROM {side}.{name}"
            con.execute(f"CREATE TABLE judged_{side}.{name} AS {query}")
    names = [f"judged_main.{name}" for name in database.names]
    found = evaluate(con, names, f"judged_{synthetic}", domain=database.file)
    for side in ("main", synthetic):
        con.execute(f"DROP SCHEMA judged_{side} CASCADE")
    return figures_of(found.tables, names, database.orders, floor)


def figures_of(tables: Mapping[str, Any], names: Sequence[str], left: Sequence[str], floor: bool) -> Figures:
    """``left``: columns that are not judged."""
    tv, side = ("tv_halves", "real") if floor else ("tv", "synthetic")
    pairs = tables["joined_pairs"]
    pairs = pairs[~pairs["first"].isin(left) & ~pairs["second"].isin(left)]
    means = pairs.groupby(["above", "below"])[tv].mean()
    links = tables["links"].set_index("table")
    alike = tables["relative_columns"]
    alike = alike[~alike["column"].isin(left)].groupby(["table", "of"])[f"excess_{side}"].mean()
    a, b, c = names
    joined = [means.get(pair, np.nan) for pair in ((a, b), (b, c), (a, c), (b, b), (c, c))]
    numbers = [links.loc[b, tv], links.loc[c, tv], links.loc[b, f"columns_{tv}"]]
    excess = [alike.get(pair, np.nan) for pair in ((b, a), (c, b), (c, a))]
    month = np.nan
    if "sequences" in tables:
        month = tables["sequences"].set_index("column").loc["month", f"steps_{tv}"]
    found = dict(zip(FIGURES, map(float, (*joined, *numbers, *excess, month)), strict=True))
    keys = tables["keys"]
    broken = keys["broken_synthetic"] + keys["missing_synthetic"]
    return {**found, "broken keys": np.nan if floor else float(broken.sum())}


def floor_of(name: str, seed: int) -> Figures:
    """Two samples of one law; of real units two halves. A function of a process of its own."""
    database = database_of(name)
    with duckdb.connect() as con:
        database.load(con)
        if not name.startswith("shop"):
            database.load(con, "other")
            return judged(con, database, "other", floor=True)
        database_of(name, 1_000 + seed).load(con, "other")
        found = judged(con, database, "other")
        real = judged(con, database, "other", floor=True)
        return {**found, **{one: real[one] for one in EXCESSES}, "broken keys": np.nan}


def reached(name: str, way: str, epsilon: float, seed: int) -> Figures:
    """One release, judged. A function of a process of its own."""
    warnings.simplefilter("ignore")
    database = database_of(name)
    with tempfile.TemporaryDirectory() as folder, duckdb.connect(str(Path(folder) / "a.duckdb")) as con:
        database.load(con)
        with timed() as watch:
            if way == "independent":
                write_independent(con, database, "made", epsilon, DELTA, Path(folder), seed)
            else:
                dpsyn_sql.release(
                    con,
                    unit=database.unit,
                    source=database.names,
                    into="made",
                    epsilon=epsilon,
                    delta=DELTA,
                    most=database.most,
                    domain=database.file,
                    ledger=Path(folder) / "ledger",
                )
        cost = {"seconds": watch.seconds["total"], "MiB": peak_mebibytes()}
        return {**judged(con, database, "made"), **cost}


# -- SDV -------------------------------------------------------------------------------------------


def metadata_of(database: Database) -> dict[str, object]:
    """As SDV reads it: categories and numbers by the domain; every table has a key of one column."""
    tables, links = {}, []
    for place, name in enumerate(database.names):
        columns = {
            column: {"sdtype": "numerical" if said.get("type") == "numeric" else "categorical"}
            for column, said in database.columns(name).items()
        }
        columns[f"{name}_row"] = {"sdtype": "id"}
        if place:
            above = database.names[place - 1]
            columns[f"{above}_row"] = {"sdtype": "id"}
            links.append(
                {
                    "parent_table_name": above,
                    "child_table_name": name,
                    "parent_primary_key": f"{above}_row",
                    "child_foreign_key": f"{above}_row",
                }
            )
        tables[name] = {"primary_key": f"{name}_row", "columns": columns}
    return {"tables": tables, "relationships": links, "METADATA_SPEC_VERSION": "V1"}


def without_privacy(name: str, cache: Path, limits: tuple[float, float]) -> Figures:
    """SDV's HMA on the real tables, judged.

    Raises:
        Unavailable: it cannot be installed, refuses the tables, or takes longer than the limits (seconds).
    """
    database = database_of(name)
    python = installed("sdv_tables", SDV, cache, limits[0])
    runner = Path(__file__).parent / "runners" / "sdv_tables_runner.py"
    with tempfile.TemporaryDirectory() as place, duckdb.connect() as con:
        folder = Path(place)
        database.load(con)
        for step, table in enumerate(database.names):
            con.execute(f"COPY ({_with_rows(database, step)}) TO '{folder / table}.csv' (HEADER)")
        told = {"tables": database.names, "metadata": metadata_of(database)}
        (folder / "tables.json").write_text(json.dumps(told), encoding="utf-8")
        limited([python, runner, folder], limits[1])
        con.execute("CREATE SCHEMA made")
        for step, table in enumerate(database.names):
            columns = [*database.columns(table)]
            keys = [f"{table}_row AS {column}" for column in database.keys(table)]
            if step:
                keys.append(f"{database.names[step - 1]}_row AS {database.foreign_key(table)}")
            made = f"read_csv('{folder / table}.made.csv')"
            con.execute(f"CREATE TABLE made.{table} AS SELECT {', '.join((*keys, *columns))} FROM {made}")
        seconds = float((folder / "seconds").read_text(encoding="utf-8"))
        return {**judged(con, database, "made"), "seconds": seconds}


def _with_rows(database: Database, step: int) -> str:
    """The columns of a table with numbers in place of keys."""
    name = database.names[step]
    number = "row_number() OVER () AS {0}_row"
    columns = ", ".join(f"own.{column}" for column in database.columns(name))
    if not step:
        return f"SELECT {number.format(name)}, {columns} FROM {name} AS own"
    above = database.names[step - 1]
    numbered = f"(SELECT *, {number.format(above)} FROM {above})"
    tie = f"own.{database.foreign_key(name)} = above.{database.key(above)}"
    return (
        f"SELECT {number.format(name)}, above.{above}_row, {columns} "
        f"FROM {name} AS own JOIN {numbered} AS above ON {tie}"
    )


# -- tables ----------------------------------------------------------------------------------------


def line_of(label: str, epsilon: float, runs: Sequence[Figures]) -> list[object]:
    """Medians; nothing where a figure does not exist."""
    shown: list[object] = [label, "" if np.isnan(epsilon) else f"{epsilon:g}"]
    for name in (*FIGURES, *COSTS):
        values = [run.get(name, np.nan) for run in runs]
        value = sum(values) if name == "broken keys" else statistics.median(values)
        shown.append("" if np.isnan(value) else f"{value:.0f}" if name in COSTS else f"{value:.3f}")
    print(*shown, sep="; ", flush=True)
    return shown


def table_lines(arguments: argparse.Namespace) -> list[list[object]]:
    """All databases, ways and epsilons."""
    found = []
    for name in (name for line in arguments.lines for name in LINES[line]):
        missing = database_of(name).missing
        if missing is not None:
            print(f"{name} is left out: {missing} is missing (DPSYN_BENCHMARK_DATA)", flush=True)
            continue
        if arguments.quick and name.endswith("50,000"):
            continue
        seeds = range(arguments.seeds)
        found.append(line_of(f"{name}: floor", np.nan, [apart(floor_of, name, seed) for seed in seeds]))
        for epsilon in arguments.epsilon:
            for way in arguments.ways:
                runs = [apart(reached, name, way, epsilon, seed) for seed in seeds]
                found.append(line_of(f"{name}: {way}", epsilon, runs))
    return found


def peer_lines(arguments: argparse.Namespace) -> list[list[object]]:
    """SDV's line, or why there is none."""
    name = next(iter(LINES[arguments.lines[0]]))
    try:
        limits = (arguments.install_limit, arguments.limit)
        run = without_privacy(name, arguments.cache, limits)
    except Unavailable as problem:
        print(f"SDV's HMA on {name}: {problem}", flush=True)
        return []
    return [line_of(f"{name}: SDV's HMA, no privacy", np.nan, [run])]


def main() -> None:
    """Print one table."""
    parser = command_line(__doc__)
    parser.add_argument("--lines", nargs="+", choices=[*LINES], default=[*LINES])
    parser.add_argument("--epsilon", nargs="+", type=float, default=[1.0, 10.0])
    ways = ["database", "independent"]
    parser.add_argument("--ways", nargs="*", choices=ways, default=ways)
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--peer", choices=["sdv"])
    parser.add_argument("--cache", type=Path, default=default_cache(), help="environments of peers")
    parser.add_argument("--install-limit", type=float, default=1800, help="seconds")
    parser.add_argument("--limit", type=float, default=3600, help="seconds of a peer's run")
    parser.add_argument("--quick", action="store_true", help="small databases, one seed")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.seeds = 1
    rows = table_lines(arguments)
    if arguments.peer:
        rows += peer_lines(arguments)
    if rows:
        caption = (
            f"Medians of {arguments.seeds} seeds, delta {DELTA:g}, load {os.getloadavg()[0]:.1f}; {machine()}"
        )
        print_table(["database", "epsilon", *FIGURES, *COSTS], rows, caption)


if __name__ == "__main__":
    main()
