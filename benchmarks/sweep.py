"""Does the adaptive method fall behind simpler ones anywhere? Also on tables no constant was chosen on.

    python benchmarks/sweep.py [--tables green_taxi income weather flights german_credit mushroom]
        [--methods adaptive copula independent] [--epsilon 0.05 0.1 0.3 1 3 10 20] [--runs 2]

Mean total variation distance of the WRITTEN table from the source over all two-way and 200 seeded
three-way marginals of original codes, and how far each method is from the last one (with a standard error,
from three runs on). german_credit (1,000 rows), income (6,876) and mushroom (8,124) are small: hardly
anything beside the one-way tables can be seen there at small epsilons. This compares with private data: only
for public tables.
"""

from __future__ import annotations

import math
import statistics
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import duckdb
from adaptive import Table, codes_declared, released
from harness import DATA, command_line, machine, need, peak_mebibytes, print_table


@dataclass(frozen=True)
class Column:
    """A column of codes: SQL whose value is one of 0..size-1; without a size as many as occur."""

    name: str
    code: str
    size: int | None
    ordered: bool = True


def cut(name: str, value: str, edges: Sequence[float], nullable: bool = False) -> Column:
    """Which of the intervals between ``edges`` holds ``value``; below and above are their own; NULL last."""
    code = " + ".join(f"CAST({value} >= {edge} AS INTEGER)" for edge in edges)
    return Column(name, f"coalesce({code}, {len(edges) + 1})", len(edges) + 1 + nullable)


def even(name: str, value: str, low: float, step: float, count: int) -> Column:
    """``count`` intervals of one width from ``low``; NULL last."""
    bin_ = f"CAST(floor(({value} - {low}) / {step}) AS INTEGER)"
    code = f"greatest(0, least({count - 1}, {bin_}))"  # which pass over NULL
    return Column(name, f"CASE WHEN {value} IS NULL THEN {count} ELSE {code} END", count + 1)


def category(name: str) -> Column:
    """The values of a column as they occur, numbered in order."""
    return Column(name, f'dense_rank() OVER (ORDER BY "{name}") - 1', None, ordered=False)


def small_number(name: str) -> Column:
    """A number of few values, numbered in order."""
    return Column(name, category(name).code, None)


ITEMS = """(PIVOT (SELECT tid, split_part(item, '=', 1) AS name, split_part(item, '=', 2) AS value
FROM read_parquet('{path}')) ON name USING first(value))"""
GERMAN_CATEGORIES = """status credit_history purpose savings employment personal_status other_debtors property
installment_plans housing skill_level telephone foreign_worker credit"""
GERMAN_NUMBERS = "investment_as_income_percentage residence_since number_of_credits people_liable_for"
MUSHROOM_NAMES = """Class CapShape CapSurf CapColor Bruises Odor GillAttached GillSpace GillSize GillColor
StalkShape StalkRoot SurfaceAboveRing SurfaceBelowRing ColorAboveRing ColorBelowRing VeilType VeilColor
RingNumber RingType Spore Population Habitat"""
INCOME_NAMES = (
    "income, sex, marital status, age, education, occupation, years in bay area, dual incomes, "
    "number in household, number of children, householder status, type of home, ethnic classification, "
    "language in home"
)
DELAYS = [-30, -20, -10, -5, 0, 5, 10, 20, 40, 60, 120]
MINUTES = "date_diff('minute', lpep_pickup_datetime, lpep_dropoff_datetime)"
TABLES = {
    "green_taxi": (
        "nyc_green_taxi_2022_01/green_trips.parquet",
        [
            Column("day", "dayofmonth(lpep_pickup_datetime) - 1", 31),
            Column("weekday", "dayofweek(lpep_pickup_datetime)", 7),
            Column("hour", "hour(lpep_pickup_datetime)", 24),
            cut("miles", "trip_distance", [0.01, 0.5, 1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10, 15, 20, 30]),
            cut("minutes", MINUTES, [0, 2, 4, 6, 8, 10, 12, 15, 20, 25, 30, 40, 60, 120]),
            Column("pickup", '"PULocationID" - 1', 265, ordered=False),
            Column("dropoff", '"DOLocationID" - 1', 265, ordered=False),
        ],
    ),
    "weather": (
        "nycflights13/weather.parquet",
        [
            Column("origin", "CASE origin WHEN 'EWR' THEN 0 WHEN 'JFK' THEN 1 ELSE 2 END", 3, ordered=False),
            Column("month", "month - 1", 12),
            Column("day", "day - 1", 31),
            Column("hour", "least(hour, 23)", 24),
            even("temperature", "temp", 10, 5, 19),
            even("dew_point", "dewp", -10, 5, 18),
            even("humidity", "humid", 10, 5, 18),
            even("direction", "wind_dir", 0, 10, 37),
            even("wind", "wind_speed", 0, 3, 15),
            even("gust", "wind_gust", 0, 5, 14),
            cut("rain", "precip", [0.001, 0.02, 0.05, 0.1, 0.2, 0.5], nullable=True),
            even("pressure", "pressure", 983, 3, 20),
            even("visibility", "visib", 0, 0.5, 21),
        ],
    ),
    "flights": (
        "nycflights13/flights.parquet",
        [
            Column("month", "month - 1", 12),
            Column("day", "day - 1", 31),
            even("hour", "hour", 0, 1, 25),
            even("departure", "dep_time", 0, 100, 25),
            cut("late_departure", "dep_delay", DELAYS, nullable=True),
            even("arrival", "arr_time", 0, 100, 25),
            cut("late_arrival", "arr_delay", DELAYS, nullable=True),
            category("carrier"),
            category("origin"),
            category("dest"),
            even("minutes", "air_time", 0, 35, 20),
            even("miles", "distance", 0, 250, 20),
        ],
    ),
    "german_credit": (
        "german_credit/german_symbolic.parquet",
        [
            cut("months", "month", [7, 10, 13, 16, 19, 22, 25, 31, 37, 49]),
            even("amount", "credit_amount", 0, 1500, 12),
            even("years", "age", 18, 5, 12),
            *(category(name) for name in GERMAN_CATEGORIES.split()),
            *(small_number(name) for name in GERMAN_NUMBERS.split()),
        ],
    ),
    "mushroom": ("transactions/mushroom.parquet", [category(name) for name in MUSHROOM_NAMES.split()]),
    "income": ("transactions/income.parquet", [category(name) for name in INCOME_NAMES.split(", ")]),
}


def table_of(name: str) -> Table:
    """A table of codes, made from public data."""
    path, columns = TABLES[name]
    file = str(need(DATA / path))
    rows = (ITEMS if path.startswith("transactions") else "read_parquet('{path}')").format(path=file)
    codes = ", ".join(f'{column.code} AS "{column.name}"' for column in columns)

    def load(con: duckdb.DuckDBPyConnection) -> None:
        con.execute(f"CREATE TABLE source AS SELECT {codes} FROM {rows}")

    with duckdb.connect() as con:
        load(con)
        counted = con.execute("SELECT max(COLUMNS(*)) + 1 FROM source").fetchall()[0]
    sizes = {column.name: column.size or int(count) for column, count in zip(columns, counted, strict=True)}
    return Table(load, codes_declared(sizes, {column.name for column in columns if column.ordered}), sizes)


def behind(scores: Sequence[Sequence[float]], others: Sequence[Sequence[float]]) -> str:
    """By how much the mean two-way / three-way distance is above that of the others (percent)."""
    cells = []
    for place in (0, 1):
        ours, theirs = [score[place] for score in scores], [score[place] for score in others]
        mean = statistics.mean(theirs)
        error = math.hypot(statistics.stdev(ours), statistics.stdev(theirs)) / math.sqrt(len(ours)) / mean
        cells.append(f"{statistics.mean(ours) / mean - 1:+.1%} ± {100 * error:.1f}")
    return " / ".join(cells)


def main() -> None:
    """Print a table of all methods and epsilons for each input."""
    parser = command_line(__doc__)
    parser.add_argument("--tables", nargs="+", choices=[*TABLES], default=[*TABLES])
    parser.add_argument("--methods", nargs="+", default=["adaptive", "copula", "independent"])
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.05, 0.1, 0.3, 1, 3, 10, 20])
    parser.add_argument("--delta", type=float, default=1e-9)
    parser.add_argument("--runs", type=int, default=2)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in arguments.tables:
        table = table_of(name)
        rows: list[list[object]] = []
        for epsilon in arguments.epsilon:
            found = {
                method: [released(table, method, epsilon, arguments.delta)[0] for _ in range(arguments.runs)]
                for method in arguments.methods
            }
            cells: list[object] = [f"{epsilon:g}"]
            for method, scores in found.items():
                two, three = (statistics.mean(score[place] for score in scores) for place in (0, 1))
                compared = arguments.runs > 2 and method != arguments.methods[-1]
                apart = f" ({behind(scores, found[arguments.methods[-1]])})" if compared else ""
                cells.append(f"{two:.4f} / {three:.4f}{apart}")
                print(f"{name}, epsilon {epsilon:g}, {method}: {cells[-1]}", flush=True)
            rows.append(cells)
        print_table(
            [name, *arguments.methods],
            rows,
            f"two-way / three-way, delta {arguments.delta}, mean of {arguments.runs} releases, "
            f"peak {peak_mebibytes():.0f} MiB; {machine()}",
        )


if __name__ == "__main__":
    main()
