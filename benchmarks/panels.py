"""The same people month after month: what a synthetic panel keeps of twelve months.

    python benchmarks/panels.py [--persons 20000] [--months 12] [--epsilon 1 10] [--seeds 3]
        [--ways panel monthly] [--quick]

An invented panel: region and birth decade stay; work state and hours of work persist, a benefit follows
from the state; each month some leave (most often out of work) and others join. ``panel`` releases it month
by month under one budget for the year. ``monthly`` releases each month by itself at the same budget a month
(the year costs the same): its rows are no persons, so row i of a month stands for row i of the month before.
The floor is another sample of the same law.

Distances are total variation: of (attribute before, attribute) over persons of either month, absence
included, mean over attributes and months; the same for pairs of different attributes; of pairs within a
month. Trajectories are of persons who are there in all months: the share whose state never changes, and
the mean number of changes beside those of the real panel. ``still there``: the share of the persons of the
first month who are there in the last one. Means over the seeds.
"""

from __future__ import annotations

import math
import tempfile
import time
import warnings
from itertools import product
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
from harness import command_line, machine, print_table

import dpsyn_sql
from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.source.slices import Window

REGIONS, DECADES = ("n", "s", "e", "w", "c"), ("40", "50", "60", "70", "80", "90")
STATES, BENEFITS = ("work", "unemployed", "study", "out"), ("none", "partly", "full")
NAMES = ("region", "decade", "state", "hours", "benefit")
SIZES = (5, 6, 4, 12, 3)
DOMAIN = {
    "columns": {
        "region": {"type": "categorical", "categories": list(REGIONS)},
        "decade": {"type": "categorical", "categories": list(DECADES)},
        "state": {"type": "categorical", "categories": list(STATES)},
        "hours": {"type": "numeric", "lower": 0, "upper": 59, "bins": 12},
        "benefit": {"type": "categorical", "categories": list(BENEFITS)},
    }
}
FIGURES = (
    ("attribute x before", "pair x before", "within a month", "rows, last month", "seconds a month"),
    ("never changes", "never changes real", "changes", "changes real", "still there", "still there real"),
)
_MOVES = np.array(
    [[0.965, 0.02, 0.01, 0.005], [0.15, 0.80, 0.02, 0.03], [0.04, 0.02, 0.93, 0.01], [0.01, 0.02, 0, 0.97]]
)
_LEAVES = np.array([0.008, 0.03, 0.015, 0.04])
_BENEFIT = np.array([[0.95, 0.04, 0.01], [0.1, 0.3, 0.6], [0.6, 0.35, 0.05], [0.2, 0.3, 0.5]])
_HOURS, _JOINING = np.array([38.0, 6.0, 14.0, 0.0]), 0.02


def drawn(persons: int, months: int, seed: int) -> np.ndarray:
    """Codes (persons, months, attributes), -1 where a person is absent."""
    chance = np.random.default_rng(seed)
    number = persons + int(_JOINING * persons) * (months - 1)
    decade = chance.integers(0, 6, number)
    region = np.minimum(chance.integers(0, 6, number), 4)
    begins = np.array([[0.7, 0.1, 0.02, 0.18], [0.62, 0.12, 0.2, 0.06]])[(decade > 3).astype(int)]
    state = _of(begins, chance)
    off = chance.normal(0, 6, number) - (region == 1) * 4
    there = np.arange(number) < persons
    nxt, found = persons, np.full((number, months, 5), -1, np.int64)
    for month in range(months):
        if month:
            there &= chance.random(number) >= _LEAVES[state]
            there[nxt : nxt + int(_JOINING * persons)] = True
            nxt += int(_JOINING * persons)
            state = _of(_MOVES[state], chance)
            off = 0.9 * off + chance.normal(0, 2.6, number)
        hours = np.clip((_HOURS[state] + off * (state != 3)), 0, 59).astype(int) // 5
        rows = np.stack(
            [region, decade, state, hours, _of(_BENEFIT[state], np.random.default_rng((seed, 7)))], 1
        )
        found[there, month] = rows[there]
    return found


def _of(chances: np.ndarray, chance: np.random.Generator) -> np.ndarray:
    return (
        (chance.random(len(chances))[:, None] > chances.cumsum(axis=1))
        .sum(axis=1)
        .clip(0, chances.shape[1] - 1)
    )


def month_edges(months: int) -> tuple[str, ...]:
    """First days of months."""
    return tuple(f"{2025 + month // 12}-{month % 12 + 1:02}-01" for month in range(months + 1))


def store(con: duckdb.DuckDBPyConnection, codes: np.ndarray) -> None:
    """Write the panel as table ``activity``."""
    person, month = np.nonzero(codes[:, :, 0] >= 0)
    rows = codes[person, month]
    edges = month_edges(codes.shape[1])
    frame = pd.DataFrame(
        {
            "person_id": [f"P{one}" for one in person],
            "month": pd.to_datetime([edges[one] for one in month]),
            "region": np.array(REGIONS)[rows[:, 0]],
            "decade": np.array(DECADES)[rows[:, 1]],
            "state": np.array(STATES)[rows[:, 2]],
            "hours": rows[:, 3] * 5 + 2,
            "benefit": np.array(BENEFITS)[rows[:, 4]],
        }
    )
    con.register("frame", frame)
    con.execute(
        "CREATE TABLE activity AS SELECT * REPLACE "
        "(CAST(month AS DATE) AS month, CAST(hours AS INTEGER) AS hours) FROM frame"
    )


def coded(con: duckdb.DuckDBPyConnection, table: str, months: int) -> np.ndarray:
    """The codes of a table of a panel; persons by id."""
    frame = con.execute(f"SELECT * FROM {table}").fetchdf()
    person = pd.factorize(frame["person_id"])[0]
    edges = {pd.Timestamp(edge): place for place, edge in enumerate(month_edges(months))}
    month = frame["month"].map(edges).to_numpy()
    found = np.full((person.max() + 1, months, 5), -1, np.int64)
    labels = (REGIONS, DECADES, STATES, None, BENEFITS)
    for place, (name, own) in enumerate(zip(NAMES, labels, strict=True)):
        values = frame[name]
        codes = (
            values.to_numpy() // 5
            if own is None
            else values.map({v: i for i, v in enumerate(own)}).to_numpy()
        )
        found[person, month, place] = codes
    return found


def panel(con: duckdb.DuckDBPyConnection, months: int, epsilon: float) -> np.ndarray:
    """All periods of a panel, released one after another."""
    edges = month_edges(months)
    for month in range(months):
        window = Window("month", "month from 2025-01-01", edges, month)
        dpsyn_sql.release(
            con,
            "activity",
            into="year",
            name="year",
            unit="person_id",
            series="panel",
            epsilon=epsilon,
            domain=DOMAIN,
            window=window,
        )
    return coded(con, "year", months)


def monthly(con: duckdb.DuckDBPyConnection, months: int, epsilon: float, rho: float) -> np.ndarray:
    """Each month by itself, at the budget of a month of the panel."""
    edges, found = month_edges(months), []
    for month in range(months):
        window = Window("month", "month from 2025-01-01", edges, month)
        dpsyn_sql.release(
            con,
            "activity",
            into=f"alone_{month}",
            name="alone",
            version=edges[month],
            unit="person_id",
            most=1,
            epsilon=_epsilon_of(rho),
            domain=DOMAIN,
            window=window,
        )
        con.execute(
            "CREATE OR REPLACE TABLE one AS SELECT * REPLACE "
            "(CAST(row_number() OVER () AS VARCHAR) AS person_id, "
            f"DATE '{edges[month]}' AS month) FROM alone_{month}"
        )
        found.append(con.execute("SELECT * FROM one").fetchdf())
    con.register("together", pd.concat(found))
    con.execute("CREATE OR REPLACE TABLE alone AS SELECT * FROM together")
    return coded(con, "alone", months)


def _epsilon_of(rho: float) -> float:
    """The epsilon whose budget at delta 1e-9 is ``rho``."""
    low, high = 1e-4, 100.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (
            (middle, high) if float(Budget.of_release(round(middle, 9), 1e-9).rho) < rho else (low, middle)
        )
    return round(low, 9)


def _joint(first: np.ndarray, second: np.ndarray, sizes: tuple[int, int]) -> np.ndarray:
    held = (first >= 0) | (second >= 0)
    cells = (first[held] + 1) * (sizes[1] + 1) + second[held] + 1
    counts = np.bincount(cells, minlength=(sizes[0] + 1) * (sizes[1] + 1))
    return counts / max(1, counts.sum())


def figures(real: np.ndarray, other: np.ndarray) -> dict[str, float]:
    """All figures of a panel beside the real one."""
    months = real.shape[1]

    def apart(pairs: list[tuple[int, int]], lag: int) -> float:
        return float(
            np.mean(
                [
                    np.abs(
                        _joint(real[:, month - lag, a], real[:, month, b], (SIZES[a], SIZES[b]))
                        - _joint(other[:, month - lag, a], other[:, month, b], (SIZES[a], SIZES[b]))
                    ).sum()
                    / 2
                    for month in range(lag, months)
                    for a, b in pairs
                ]
            )
        )

    told = {}
    for name, codes in (("", other), (" real", real)):
        whole = codes[(codes[:, :, 2] >= 0).all(axis=1)][:, :, 2]
        changes = (np.diff(whole, axis=1) != 0).sum(axis=1)
        told[f"never changes{name}"] = float((changes == 0).mean()) if len(whole) else float("nan")
        told[f"changes{name}"] = float(changes.mean()) if len(whole) else float("nan")
        first = codes[:, 0, 0] >= 0
        told[f"still there{name}"] = float((codes[first, -1, 0] >= 0).mean())
    return {
        "attribute x before": apart([(place, place) for place in range(5)], 1),
        "pair x before": apart([(a, b) for a, b in product(range(5), repeat=2) if a != b], 1),
        "within a month": apart([(a, b) for a in range(5) for b in range(a)], 0),
        **told,
        "rows, last month": float((other[:, -1, 0] >= 0).sum() / (real[:, -1, 0] >= 0).sum()),
    }


def main() -> None:
    """Print all figures."""
    parser = command_line(__doc__)
    parser.add_argument("--persons", type=int, default=20_000)
    parser.add_argument("--months", type=int, default=12)
    parser.add_argument("--epsilon", type=float, nargs="*", default=[1.0, 10.0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--ways", nargs="*", choices=["panel", "monthly"], default=["panel", "monthly"])
    parser.add_argument("--quick", action="store_true")
    asked = parser.parse_args()
    if asked.quick:
        asked.persons, asked.months, asked.seeds, asked.epsilon = 2_000, 3, 1, [10.0]
    warnings.simplefilter("ignore")
    print(machine())
    rows: dict[tuple[str, str], list[dict[str, float]]] = {}
    for seed in range(asked.seeds):
        real = drawn(asked.persons, asked.months, seed)
        rows.setdefault(("floor", ""), []).append(
            figures(real, drawn(asked.persons, asked.months, 1_000 + seed))
        )
        for epsilon in asked.epsilon:
            with (
                tempfile.TemporaryDirectory() as folder,
                duckdb.connect(str(Path(folder, "a.duckdb"))) as con,
            ):
                store(con, real)
                start = time.perf_counter()
                found = figures(real, panel(con, asked.months, epsilon))
                found["seconds a month"] = (time.perf_counter() - start) / asked.months
                rows.setdefault(("panel", f"{epsilon:g}"), []).append(found)
                if "monthly" not in asked.ways:
                    continue
                rho = float(Budget.of_release(epsilon, 1e-9).rho) / asked.months
                rows.setdefault(("monthly", f"{epsilon:g}"), []).append(
                    figures(real, monthly(con, asked.months, epsilon, rho))
                )
    for told in FIGURES:
        means = [
            [way, epsilon, *(float(np.mean([one.get(name, math.nan) for one in found])) for name in told)]
            for (way, epsilon), found in sorted(rows.items(), key=lambda item: (item[0][1], item[0][0]))
        ]
        print_table(["rows", "epsilon", *told], means)


if __name__ == "__main__":
    main()
