"""Does the adaptive method fall behind simpler ones anywhere? Two tables its constants were not chosen on.

    python benchmarks/sweep.py [--tables green_taxi weather] [--methods adaptive copula independent]
        [--epsilon 0.05 0.1 0.3 1 3 10 20] [--runs 2]

Mean total variation distance of the WRITTEN table from the source over all two-way and 200 seeded
three-way marginals of original codes. This compares with private data: only for public tables.
"""

from __future__ import annotations

import argparse
import statistics
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import duckdb
from adaptive import Table, codes_declared, released
from harness import DATA, machine, need, peak_mebibytes, print_table


@dataclass(frozen=True)
class Column:
    """A column of codes: SQL whose value is one of 0..size-1."""

    name: str
    code: str
    size: int
    ordered: bool = True


def cut(name: str, value: str, edges: Sequence[float], nullable: bool = False) -> Column:
    """Which of the intervals between ``edges`` holds ``value``; below and above are their own; NULL last."""
    code = " + ".join(f"CAST({value} >= {edge} AS INTEGER)" for edge in edges)
    return Column(name, f"coalesce({code}, {len(edges) + 1})", len(edges) + 1 + nullable)


def even(name: str, value: str, low: float, step: float, count: int) -> Column:
    """``count`` intervals of one width from ``low``; NULL last."""
    bin_ = f"CAST(floor(({value} - {low}) / {step}) AS INTEGER)"
    return Column(name, f"coalesce(greatest(0, least({count - 1}, {bin_})), {count})", count + 1)


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
}


def main() -> None:
    """Print a table of all methods and epsilons for each input."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tables", nargs="+", choices=[*TABLES], default=[*TABLES])
    parser.add_argument("--methods", nargs="+", default=["adaptive", "copula", "independent"])
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.05, 0.1, 0.3, 1, 3, 10, 20])
    parser.add_argument("--delta", type=float, default=1e-9)
    parser.add_argument("--runs", type=int, default=2)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in arguments.tables:
        path, columns = TABLES[name]
        source = need(DATA / path)
        codes = ", ".join(f'{column.code} AS "{column.name}"' for column in columns)

        def load(con: duckdb.DuckDBPyConnection, codes: str = codes, source: str = str(source)) -> None:
            con.execute(f"CREATE TABLE source AS SELECT {codes} FROM read_parquet(?)", [source])

        sizes = {column.name: column.size for column in columns}
        ordered = {column.name for column in columns if column.ordered}
        table = Table(load, codes_declared(sizes, ordered), sizes)
        rows: list[list[object]] = []
        for epsilon in arguments.epsilon:
            cells: list[object] = [f"{epsilon:g}"]
            for method in arguments.methods:
                scores = [released(table, method, epsilon, arguments.delta)[0] for _ in range(arguments.runs)]
                two, three = (statistics.mean(score[place] for score in scores) for place in (0, 1))
                cells.append(f"{two:.4f} / {three:.4f}")
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
