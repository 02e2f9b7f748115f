"""Traces of people: ``method="traces"`` beside the default method, on check-ins in New York (Gowalla).

    python benchmarks/traces.py [--epsilon 1 4] [--seeds 6] [--rows-per-unit 64]

The source: user, time, hour, place (a point); the unit is a user, whose rows stay together, ordered by time.
Each line is the mean over releases of the WRITTEN table against all rows of the source:

    steps      total variation distance of (coarse cell, next coarse cell) of a user, 36 x 36
    density    the same of rows over 24 x 24 cells
    centres    mean distance (km) of a real point to the nearest of ten centres that k-means finds in the rows
    rows, stay, visits a day, gyration, gaps
               the same distance of: rows of a user; days between first and last; rows of a user on a day with
               any; radius of gyration (km); time between rows
    fast       of the distance (km) of a step in less than an hour

Beside them: users drawn anew from the source (what two samples differ by), at most 64 rows of each user (what
the bound alone costs), and each user's rows in random order with places of any rows (places independent).
This compares with private data: only for public tables.
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from harness import DATA, machine, print_table
from numpy.typing import NDArray
from scipy.cluster.vq import kmeans2

import dpsyn_sql

Array = NDArray[Any]
Rows = tuple[Array, Array, Array, Array]
"""User, seconds, latitude, longitude; by user and time."""

LATITUDE, LONGITUDE = (40.48, 40.92), (-74.26, -73.70)
DOMAIN = f"""columns:
  ts_utc: {{type: temporal, lower: 2009-04-01, upper: 2010-10-31}}
  hour: {{type: numeric, lower: 0, upper: 23}}
  place: {{type: point, columns: {{lat: {list(LATITUDE)}, lon: {list(LONGITUDE)}}}}}
"""
SOURCE = "SELECT user_id, ts_utc, hour(ts_utc) AS hour, lat, lon FROM read_parquet('{}')"
DAY = 86_400.0


def rows_of(con: duckdb.DuckDBPyConnection, relation: str) -> Rows:
    """All rows of a relation."""
    query = f"SELECT user_id, epoch(ts_utc) AS t, lat, lon FROM {relation} ORDER BY ALL"
    found = con.execute(query).fetchnumpy()
    user, time, lat, lon = (np.asarray(found[name], np.float64) for name in ("user_id", "t", "lat", "lon"))
    return user.astype(np.int64), time, lat, lon


def cells(rows: Rows, side: int) -> Array:
    """The number of each row's cell in a grid."""
    _, _, lat, lon = rows
    numbers = [
        np.clip(((values - low) / (high - low) * side).astype(np.int64), 0, side - 1)
        for values, (low, high) in ((lat, LATITUDE), (lon, LONGITUDE))
    ]
    return np.asarray(numbers[0] * side + numbers[1])


def kilometres(rows: Rows) -> Array:
    """Points (rows, 2) on a plane."""
    _, _, lat, lon = rows
    return np.stack([(lat - 40.7) * 111.2, (lon + 74.0) * 111.2 * np.cos(np.radians(40.7))], axis=1)


def within(rows: Rows) -> Array:
    """Whether a row has a row of its user before it."""
    return np.append(False, rows[0][1:] == rows[0][:-1])


def steps(rows: Rows) -> Array:
    """Pairs of coarse cells, as shares."""
    own = cells(rows, 6)
    later = within(rows)
    return shares(own[np.flatnonzero(later) - 1] * 36 + own[later], 36 * 36)


def shares(codes: Array, size: int) -> Array:
    return np.bincount(codes, minlength=size) / max(1, codes.size)


def binned(values: Array, edges: list[float]) -> Array:
    return shares(np.searchsorted(edges, values, side="right"), len(edges) + 1)


def by_user(rows: Rows) -> tuple[Array, Array]:
    """The number of each row's user, and rows of users."""
    _, user, number = np.unique(rows[0], return_inverse=True, return_counts=True)
    return user, number


def stay(rows: Rows) -> Array:
    later = within(rows)
    ends = np.append(~later[1:], True)
    return binned((rows[1][ends] - rows[1][~later]) / DAY, [1e-3, 1 / 24, 1, 7, 30, 90])


def daily(rows: Rows) -> Array:
    user, _ = by_user(rows)
    number = np.unique(user * 100_000 + (rows[1] // DAY).astype(np.int64), return_counts=True)[1]
    return shares(np.minimum(number, 12), 13)


def gyration(rows: Rows) -> Array:
    user, number = by_user(rows)
    points = kilometres(rows)
    means = np.stack([np.bincount(user, axis) / number for axis in points.T], axis=1)
    squares = ((points - means[user]) ** 2).sum(axis=1)
    return binned(np.sqrt(np.bincount(user, squares) / number), [0.05, 0.5, 1, 2, 4, 8, 16])


def gaps(rows: Rows) -> Array:
    return binned(
        np.diff(rows[1])[within(rows)[1:]], [60, 600, 3600, 6 * 3600, DAY, 3 * DAY, 7 * DAY, 30 * DAY]
    )


def fast(rows: Rows) -> Array:
    points, soon = kilometres(rows), within(rows)[1:] & (np.diff(rows[1]) < 3600)
    return binned(np.sqrt((np.diff(points, axis=0)[soon] ** 2).sum(axis=1)), [1, 2, 4, 8, 16])


FIGURES: dict[str, Callable[[Rows], Array]] = {
    "steps": steps,
    "density": lambda rows: shares(cells(rows, 24), 24 * 24),
    "rows": lambda rows: shares(np.minimum(by_user(rows)[1], 64), 65),
    "stay": stay,
    "visits a day": daily,
    "gyration": gyration,
    "gaps": gaps,
    "fast": fast,
}


def centres(rows: Rows, real: Rows) -> float:
    """Kilometres of real points to the nearest of ten centres of these rows."""
    found, _ = kmeans2(kilometres(rows), 10, minit="++", seed=1)
    points = kilometres(real)[::7]
    return float(np.sqrt(((points[:, None] - found) ** 2).sum(axis=-1)).min(axis=1).mean())


def figures(rows: Rows, real: Rows) -> dict[str, float]:
    """All distances of one table."""
    found = {name: 0.5 * float(np.abs(f(rows) - f(real)).sum()) for name, f in FIGURES.items()}
    return {**found, "centres": centres(rows, real)}


def drawn_anew(real: Rows, rng: np.random.Generator) -> Rows:
    """As many users, with replacement."""
    _, number = by_user(real)
    starts = np.append(0, np.cumsum(number))
    chosen = rng.integers(0, number.size, number.size)
    places = np.concatenate([np.arange(starts[one], starts[one + 1]) for one in chosen])
    _, *others = real
    return np.repeat(np.arange(chosen.size), number[chosen]), *(own[places] for own in others)  # type: ignore[return-value]


def bounded(real: Rows, most: int, rng: np.random.Generator) -> Rows:
    """At most so many rows of each user."""
    lot = rng.random(real[0].size)
    order = np.lexsort([lot, real[0]])
    user, number = by_user(real)
    rank = np.empty(user.size, np.int64)
    rank[order] = np.arange(user.size) - np.repeat(np.cumsum(number) - number, number)
    return tuple(own[rank < most] for own in real)  # type: ignore[return-value]


def independent(real: Rows, rng: np.random.Generator) -> Rows:
    """The same users and times, with places of any rows."""
    order = rng.permutation(real[0].size)
    return real[0], real[1], real[2][order], real[3][order]


def released(source: Path, epsilon: float, most: int, method: str) -> Rows:
    """The rows of one release, in a database of its own."""
    with tempfile.TemporaryDirectory() as folder, duckdb.connect() as con, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        domain = Path(folder) / "checkins.domain.yml"
        domain.write_text(DOMAIN, encoding="utf-8")
        dpsyn_sql.release(
            con,
            SOURCE.format(source),
            into="synthetic",
            epsilon=epsilon,
            unit="user_id",
            most=most,
            order="ts_utc",
            domain=domain,
            ledger=Path(folder) / "ledger",
            method=method,
        )
        return rows_of(con, "synthetic")


def main() -> None:
    """Print one line for each floor and each method."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0, 4.0])
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--rows-per-unit", type=int, default=64)
    parser.add_argument("--methods", nargs="+", default=["traces", "auto"])
    chosen = parser.parse_args()
    source = DATA / "gowalla_nyc" / "checkins.parquet"
    with duckdb.connect() as con:
        real = rows_of(con, f"({SOURCE.format(source)})")
    made: dict[str, Callable[[np.random.Generator], Rows]] = {
        "users drawn anew": lambda rng: drawn_anew(real, rng),
        f"the bound of {chosen.rows_per_unit} rows": lambda rng: bounded(real, chosen.rows_per_unit, rng),
        "places independent": lambda rng: independent(real, rng),
    }
    for epsilon in chosen.epsilon:
        for method in chosen.methods:
            made[f"{method}, epsilon {epsilon:g}"] = lambda _, e=epsilon, m=method: released(
                source, e, chosen.rows_per_unit, m
            )
    lines = []
    for name, rows in made.items():
        found = [figures(rows(np.random.default_rng(seed)), real) for seed in range(chosen.seeds)]
        means = [float(np.mean([one[figure] for one in found])) for figure in found[0]]
        spread = float(np.std([one["steps"] for one in found]))
        lines.append([name, *(f"{mean:.3f}" for mean in means), f"{spread:.3f}"])
        print(lines[-1], flush=True)
    print_table([f"{chosen.seeds} releases each", *FIGURES, "centres, km", "spread of steps"], lines)
    print(machine())


if __name__ == "__main__":
    main()
