"""Adaptive histograms on real places, journeys and strings, and tables that hold such columns.

    python benchmarks/hierarchies.py [--parts places lengths strings tables] [--epsilon 0.1 1 10]
        [--splitters privtree basic improved direct] [--delta 1e-9] [--runs 1] [--rows 3000000]

places   "Synthetic Data via Differential Privacy", Figure 5: the sum over levels of the diameter of a cell
         times the rows that differ in it, per row of the source, of journeys (four dimensions) and places
         (two), beside a resample of the source of the same size (its black line).
lengths  Figures 6 and 7: Kolmogorov-Smirnov distance of the lengths of journeys from a busy and a sparse
         origin.
strings  Figures 8 and 9: the share of rows whose string is among the synthetic rows, counted with
         multiplicity, of the strings of at least so many rows.
tables   whole tables by the default method, their columns of codes discovered as they are, or declared as
         strings: total variation of the columns, and of product x country.

The comparison reads the real rows without noise: what this script prints is as private as its input, and is
meant for public data sets. No release is steered by it.
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from harness import DATA, command_line, machine, need, print_table
from numpy.typing import NDArray
from scipy.spatial import KDTree

import dpsyn_sql
from dpsyn_sql.methods import Hierarchical

BOX = {"lat": (40.4, 41.0), "lon": (-74.3, -73.6)}
"""New York City and around; degrees."""
LEVELS = {"journeys": 7, "places": 14}
FREQUENCIES = (100_000, 10_000, 1_000, 100, 10, 1)

Rows = NDArray[np.float64]


# -- places and journeys --------------------------------------------------------------------------


def journeys(con: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    """Table ``journeys``; the declaration of its point."""
    folder = need(DATA / "nyc_green_taxi_2022_01/green_trips.parquet").parent
    con.execute(
        "CREATE TABLE journeys AS SELECT p.lat AS pickup_lat, p.lon AS pickup_lon, q.lat AS dropoff_lat, "
        f"q.lon AS dropoff_lon FROM '{folder}/green_trips.parquet' AS t "
        f"JOIN '{folder}/taxi_zones.parquet' AS p ON p.LocationID = PULocationID AND p.lat IS NOT NULL "
        f"JOIN '{folder}/taxi_zones.parquet' AS q ON q.LocationID = DOLocationID AND q.lat IS NOT NULL"
    )
    columns = {f"{end}_{axis}": list(BOX[axis]) for end in ("pickup", "dropoff") for axis in BOX}
    return {"columns": {"journey": {"type": "point", "columns": columns}}}


def places(con: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    """Table ``places``; the declaration of its point."""
    file = need(DATA / "gowalla_nyc/checkins.parquet")
    con.execute(f"CREATE TABLE places AS SELECT lat, lon FROM '{file}'")
    return {
        "columns": {"place": {"type": "point", "columns": {axis: list(ends) for axis, ends in BOX.items()}}}
    }


def points_of(con: duckdb.DuckDBPyConnection, table: str) -> Rows:
    """All rows as degrees, shape (rows, columns)."""
    found = con.execute(f"FROM {table}").fetchnumpy()
    return np.stack([np.asarray(column, dtype=np.float64) for column in found.values()], axis=1)


def unit_box(points: Rows) -> Rows:
    """Degrees as shares of the box."""
    lows, highs = np.array(list(BOX.values()) * (points.shape[1] // 2)).T
    return (points - lows) / (highs - lows)


def transport(truth: Rows, copy: Rows, levels: int) -> NDArray[np.float64]:
    """For each depth the sum over levels 0..depth of diameter x |rows - rows of the copy|, per row."""
    total, found = 0.0, []
    dims = truth.shape[1]
    for level in range(levels + 1):
        size = 2**level
        signed = [(np.minimum((unit_box(rows) * size).astype(np.int64), size - 1), sign)
                  for rows, sign in ((truth, 1.0), (copy, -1.0))]  # fmt: skip
        cells = np.concatenate([np.ravel_multi_index(tuple(own.T), (size,) * dims) for own, _ in signed])
        signs = np.concatenate([np.full(len(own), sign) for own, sign in signed])
        _, place = np.unique(cells, return_inverse=True)
        total += np.sqrt(dims) / size * np.abs(np.bincount(place, signs)).sum() / len(truth)
        found.append(total)
    return np.array(found)


def kilometres(starts: Rows, ends: Rows) -> NDArray[np.float64]:
    """Distances of points (lat, lon) in degrees; flat, as the city is small."""
    north, east = (ends - starts).T * 111.2
    return np.hypot(north, east * np.cos(np.radians(40.7)))


def smirnov(truth: NDArray[np.float64], copy: NDArray[np.float64]) -> float:
    """Kolmogorov-Smirnov distance of two samples; 1 if the copy is empty."""
    if not len(copy):
        return 1.0
    steps = np.concatenate([truth, copy])
    shares = [np.searchsorted(np.sort(rows), steps, side="right") / len(rows) for rows in (truth, copy)]
    return float(np.abs(shares[0] - shares[1]).max())


def origins(truth: Rows) -> dict[str, Rows]:
    """The busiest origin, and the one that half of the origins are sparser than."""
    centres, rows = np.unique(truth[:, :2], axis=0, return_counts=True)
    order = np.argsort(rows)
    picked = {"busy": order[-1], "sparse": order[len(order) // 2]}
    return {f"{name}, {rows[place]:,} rows": centres[place] for name, place in picked.items()}


def lengths_from(rows: Rows, centre: Rows, centres: Rows) -> NDArray[np.float64]:
    """Lengths of the journeys from an origin, both ends moved to the nearest of the (public) centres, as the
    paper moves its points."""
    tree = KDTree(centres)
    starts, ends = (centres[tree.query(rows[:, side])[1]] for side in (slice(0, 2), slice(2, 4)))
    near = (starts == centre).all(axis=1)
    return kilometres(starts[near], ends[near])


# -- releases -------------------------------------------------------------------------------------


def released(
    con: duckdb.DuckDBPyConnection, table: str, domain: dict[str, Any], folder: str, **options: Any
) -> tuple[Any, str, float]:
    """The release, its file, and its seconds."""
    out = Path(folder) / f"{table}.parquet"
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ledger = Path(folder) / f"{time.time_ns()}.ledger"
        made = dpsyn_sql.release(con, table, into=out, domain=domain, ledger=ledger, replace=True, **options)
    return made, str(out), time.perf_counter() - started


def wanted(options: argparse.Namespace) -> Iterator[tuple[float, str]]:
    """Each epsilon with each splitter."""
    for epsilon in options.epsilon:
        for splitter in options.splitters:
            yield epsilon, splitter


def measure_points(options: argparse.Namespace) -> None:
    """Figures 5, 6 and 7."""
    for name, make in (("journeys", journeys), ("places", places)):
        if name == "places" and "places" not in options.parts:
            continue
        with duckdb.connect() as con, tempfile.TemporaryDirectory() as folder:
            domain = make(con)
            truth = points_of(con, name)
            chance = np.random.default_rng(0)
            again = [truth[chance.integers(0, len(truth), len(truth))] for _ in range(3)]
            shown = [depth for depth in (1, 3, 5, 7, 10, 14) if depth <= LEVELS[name]]
            of_resamples = np.mean([transport(truth, rows, LEVELS[name]) for rows in again], axis=0)
            starts = origins(truth) if name == "journeys" else {}
            centres = np.unique(np.concatenate([truth[:, :2], truth[:, 2:]]), axis=0) if starts else truth[:0]

            def ks_of(rows: Rows, truth: Rows = truth, starts: dict[str, Rows] = starts,
                      centres: Rows = centres) -> list[float]:  # fmt: skip
                return [smirnov(lengths_from(truth, one, centres), lengths_from(rows, one, centres))
                        for one in starts.values()]  # fmt: skip

            lines: list[list[object]] = [
                ["", "resampled", "", "", *(f"{of_resamples[d]:.4f}" for d in shown)]
            ]
            of_again = np.mean([ks_of(rows) for rows in again], axis=0)
            lengths: list[list[object]] = [["", "resampled", *(f"{ks:.3f}" for ks in of_again)]]
            for epsilon, splitter in wanted(options):
                figures, ks_found, seconds, leaves = [], [], [], []
                for _ in range(options.runs):
                    settings = {"epsilon": epsilon, "delta": options.delta, "method": Hierarchical(splitter)}
                    made, file, took = released(con, name, domain, folder, **settings)
                    copy = points_of(con, f"'{file}'")
                    copy = copy[np.isfinite(copy).all(axis=1)]
                    figures.append(transport(truth, copy, LEVELS[name]))
                    ks_found.append(ks_of(copy))
                    seconds.append(took)
                    leaves.append(len(made.model.domain.attributes[0].leaves.rows))
                mean = np.mean(figures, axis=0)
                lines.append([epsilon, splitter, f"{np.mean(seconds):.1f}", f"{np.mean(leaves):,.0f}",
                              *(f"{mean[d]:.4f}" for d in shown)])  # fmt: skip
                lengths.append([epsilon, splitter, *(f"{ks:.3f}" for ks in np.mean(ks_found, axis=0))])
            if "places" in options.parts:
                header = ["epsilon", "splitter", "seconds", "leaves", *(f"depth {d}" for d in shown)]
                print_table(
                    header, lines, f"{name}, {len(truth):,} rows: earth-mover approximation; {machine()}"
                )
            if starts and "lengths" in options.parts:
                print_table(["epsilon", "splitter", *starts], lengths, "lengths of journeys, KS distance")


# -- strings --------------------------------------------------------------------------------------

STRINGS = {
    "words": ("english_word_frequencies/word_frequencies.parquet", "a-z'", 25),
    "names": ("us_baby_names/us_baby_names_totals.parquet", "a-zA-Z", 15),
}


def expand(con: duckdb.DuckDBPyConnection, file: Path, rows: int) -> int:
    """Table ``strings(s)`` of about ``rows`` rows in proportion to the file's counts; how many it has."""
    described = con.execute(f"DESCRIBE FROM '{file}'").fetchall()
    text = next(name for name, kind, *_ in described if kind == "VARCHAR")
    count = next(name for name, kind, *_ in described if kind in ("BIGINT", "INTEGER"))
    con.execute(
        f"CREATE TABLE truth AS SELECT {text} AS s, sum({count}) AS c FROM '{file}' GROUP BY s; "
        f"UPDATE truth SET c = round(c * {rows} / (SELECT sum(c) FROM truth)); DELETE FROM truth WHERE c < 1;"
        "CREATE TABLE strings AS SELECT s FROM truth, range(CAST(c AS BIGINT))"
    )
    return int(con.execute("SELECT count(*) FROM strings").fetchall()[0][0])


def recovered(con: duckdb.DuckDBPyConnection, file: str) -> list[float]:
    """For each frequency the share of the rows of strings at least so frequent that the copy has too."""
    found = con.execute(
        f"WITH copy AS (SELECT s, count(*) AS n FROM '{file}' GROUP BY s) "
        "SELECT c, least(c, coalesce(n, 0)) AS both FROM truth LEFT JOIN copy USING (s)"
    ).fetchnumpy()
    counts, both = np.asarray(found["c"], float), np.asarray(found["both"], float)
    chosen = [counts >= least for least in FREQUENCIES]
    return [float(both[some].sum() / counts[some].sum()) if some.any() else math.nan for some in chosen]


def measure_strings(options: argparse.Namespace) -> None:
    """Figures 8 and 9."""
    for name, (path, alphabet, longest) in STRINGS.items():
        with duckdb.connect() as con, tempfile.TemporaryDirectory() as folder:
            rows = expand(con, need(DATA / path), options.rows)
            domain = {"columns": {"s": {"type": "string", "alphabet": alphabet, "longest": longest}}}
            lines: list[list[object]] = []
            for epsilon, splitter in wanted(options):
                shares, seconds = [], []
                for _ in range(options.runs):
                    settings = {"epsilon": epsilon, "delta": options.delta, "method": Hierarchical(splitter)}
                    _, file, took = released(con, "strings", domain, folder, **settings)
                    shares.append(recovered(con, file))
                    seconds.append(took)
                lines.append([epsilon, splitter, f"{np.mean(seconds):.1f}",
                              *(f"{share:.3f}" for share in np.mean(shares, axis=0))])  # fmt: skip
            header = ["epsilon", "splitter", "seconds", *(f"of {least:,} or more" for least in FREQUENCIES)]
            print_table(
                header, lines, f"{name}, {rows:,} rows: share of rows recovered, by frequency; {machine()}"
            )


# -- whole tables ---------------------------------------------------------------------------------

CODES = "0-9A-Za-z"
TABLES: dict[str, tuple[str, dict[str, dict[str, Any]], tuple[str, str] | None]] = {
    "online_retail": (
        "online_retail/online_retail.parquet",
        {
            "StockCode": {"type": "string", "alphabet": f"{CODES} ", "longest": 12},
            "Description": {
                "type": "string",
                "alphabet": f"{CODES} ,.'&/()+*!?-",
                "longest": 35,
                "nullable": True,
            },
        },
        ("substr(StockCode, 1, 2)", "Country"),
    ),
    "diabetes_130": (
        "diabetes_130/diabetic_data.parquet",
        {"diag_1": {"type": "string", "alphabet": "0-9.VE", "longest": 6, "nullable": True}},
        None,
    ),
    "flights": (
        "nycflights13/flights.parquet",
        {"tailnum": {"type": "string", "alphabet": "0-9A-Z", "longest": 6, "nullable": True}},
        None,
    ),
}


def variation(con: duckdb.DuckDBPyConnection, truth: str, copy: str, columns: str) -> float:
    """Total variation distance of the values of ``columns``."""
    found = con.execute(
        f"WITH a AS (SELECT row({columns}) AS v, count(*) AS n FROM {truth} GROUP BY v), "
        f"b AS (SELECT row({columns}) AS v, count(*) AS m FROM {copy} GROUP BY v) "
        "SELECT 0.5 * sum(abs(coalesce(n, 0) / (SELECT sum(n) FROM a) "
        "- coalesce(m, 0) / (SELECT sum(m) FROM b))) "
        "FROM a FULL JOIN b ON a.v IS NOT DISTINCT FROM b.v"
    ).fetchall()  # fmt: skip
    return float(found[0][0])


def measure_tables(options: argparse.Namespace) -> None:
    """Columns of codes in whole tables."""
    lines: list[list[object]] = []
    for name, (path, declared, pair) in TABLES.items():
        for kind in ("discovered", "strings"):
            with duckdb.connect() as con, tempfile.TemporaryDirectory() as folder:
                con.execute(f"CREATE TABLE {name} AS FROM '{need(DATA / path)}'")
                domain = {"columns": declared if kind == "strings" else {}}
                figures, seconds = [], []
                for _ in range(options.runs):
                    _, file, took = released(
                        con, name, domain, folder, epsilon=1.0, delta=options.delta or 1e-9
                    )
                    found = [variation(con, name, f"'{file}'", f'"{column}"') for column in declared]
                    figures.append(
                        found + ([variation(con, name, f"'{file}'", ", ".join(pair))] if pair else [])
                    )
                    seconds.append(took)
                means = np.mean(figures, axis=0)
                of_columns = ", ".join(
                    f"{column} {mean:.3f}" for column, mean in zip(declared, means, strict=False)
                )
                lines.append(
                    [name, kind, f"{np.mean(seconds):.1f}", of_columns, f"{means[-1]:.3f}" if pair else ""]
                )
    header = [
        "table",
        "columns of codes",
        "seconds",
        "total variation",
        "two characters of product x country",
    ]
    print_table(header, lines, f"whole tables, default method, epsilon 1; {machine()}")


def main() -> None:
    """Print the tables that are asked for."""
    parser = command_line(__doc__)
    every = ("places", "lengths", "strings", "tables")
    parser.add_argument("--parts", nargs="+", choices=every, default=every)
    parser.add_argument("--epsilon", nargs="+", type=float, default=[0.1, 1.0, 10.0])
    parser.add_argument("--splitters", nargs="+", default=["privtree", "basic", "improved", "direct"])
    parser.add_argument("--delta", type=float, default=1e-9)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--rows", type=int, default=3_000_000, help="rows of the tables of strings")
    options = parser.parse_args()
    if {"places", "lengths"} & set(options.parts):
        measure_points(options)
    if "strings" in options.parts:
        measure_strings(options)
    if "tables" in options.parts:
        measure_tables(options)


if __name__ == "__main__":
    main()
