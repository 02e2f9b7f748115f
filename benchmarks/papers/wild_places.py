"""Oprisanu, Gascon and De Cristofaro, section 6.6: k-means on places (its Figures 18 to 20).

Its places are those of San Francisco's cabs; check-ins of gowalla in New York stand for them. A row is the
unit. Its pictures are maps; what its text says is which clusters are empty and which look alike.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from harness import DATA, need
from hierarchies import BOX
from numpy.typing import NDArray
from real_tables import REAL_TABLES
from scipy.spatial.distance import cdist

import dpsyn_sql
from dpsyn_sql.evaluation.queries import centres_of, mean_cost
from dpsyn_sql.methods import METHODS

from .cells import Cells, Run, mean_and_spread
from .part import Shown, table

CENTRES = (10, 20)
EPSILONS = (0.1, 1.0, 8.0)
LEARNT_FROM = 20_000
"""Rows that k-means learns from, drawn by a seed; the costs are of all real rows."""

DELTA = 1e-9
TREE = "hierarchical, a point"
Places = NDArray[np.float64]


def settings(way: str) -> dict[str, Any]:
    """Method and domain. Trees take a place as one point; the others two columns in declared intervals."""
    if way == TREE:
        columns = {axis: list(ends) for axis, ends in BOX.items()}
        return {
            "method": "hierarchical",
            "domain": {"columns": {"place": {"type": "point", "columns": columns}}},
        }
    declared = REAL_TABLES["gowalla"].declared()["columns"]
    return {"method": way, "domain": {"columns": {axis: declared[axis] for axis in ("lat", "lon")}}}


def drawn(places: Places) -> Places:
    """At most ``LEARNT_FROM`` of them."""
    order = np.random.default_rng(0).permutation(len(places))
    return places[order[:LEARNT_FROM]]


def compared(real: Places, made: Places) -> Run:
    """Of each number of centres the cost of the synthetic centres by that of the real ones, and how many of
    the real centres have no synthetic place around them."""
    found: Run = {}
    for number in CENTRES:
        own = centres_of(drawn(real), number, 1)
        learnt = centres_of(drawn(made), min(number, len(np.unique(made, axis=0))), 1)
        near = cdist(made, own, "sqeuclidean").argmin(axis=1)
        found[f"cost {number}"] = mean_cost(real, learnt) / mean_cost(real, own)
        found[f"empty {number}"] = int(number - len(np.unique(near)))
    return found


def measure(cells: Cells, runs: int, methods: Sequence[str], epsilons: Sequence[float]) -> None:
    """Every method, and trees of points."""
    file = need(DATA / "gowalla_nyc" / "checkins.parquet")
    with duckdb.connect() as con:
        rows = con.execute(f"SELECT lat, lon FROM '{file}'").fetchnumpy()
    real = np.stack([rows["lat"], rows["lon"]], axis=1).astype(np.float64)

    def one(key: str) -> Run:
        way, epsilon = key.split(" | ")
        with tempfile.TemporaryDirectory() as folder, duckdb.connect() as con:
            con.execute(f"CREATE TABLE places AS SELECT lat, lon FROM '{file}'")
            dpsyn_sql.release(
                con,
                "places",
                into="made",
                epsilon=float(epsilon),
                delta=DELTA,
                ledger=Path(folder) / "ledger",
                **settings(way),
            )
            made = con.execute("SELECT lat, lon FROM made WHERE lat IS NOT NULL").fetchnumpy()
        places = np.stack([np.asarray(made[axis], np.float64) for axis in ("lat", "lon")], axis=1)
        return compared(real, places[np.isfinite(places).all(axis=1)])

    cells.facts = {"rows": len(real)}
    names = [name for name in METHODS if not methods or name in methods]
    cells.fill([f"{way} | {epsilon:g}" for way in (TREE, *names) for epsilon in epsilons], one, runs)


def show(cells: Cells) -> Shown:
    """One table."""
    rows: list[list[object]] = []
    for key, runs in cells.runs.items():
        if runs:
            empty = [f"{np.mean([run[f'empty {number}'] for run in runs]):g}" for number in CENTRES]
            costs = [mean_and_spread(runs, f"cost {number}", 2) for number in CENTRES]
            rows.append([*key.split(" | ")[::-1], *costs, *empty])
    rows.sort(key=lambda row: float(str(row[0])))
    head = ["epsilon", "method", *(f"cost, k = {n}" for n in CENTRES), *(f"empty of {n}" for n in CENTRES)]
    caption = (
        f"{cells.facts['rows']:,} check-ins, delta {DELTA:g}. Cost: mean squared distance of the real places "
        "to centres that k-means found in the synthetic ones, by that of the real centres (1: best). Empty: "
        f"real clusters in which no synthetic place lies. {cells.numbers}; {cells.machine}."
    )
    return Shown(table(head, rows, caption))
