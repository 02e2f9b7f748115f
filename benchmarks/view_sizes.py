"""SSE of marginals against the number m and the size L of views, in memory with seeded noise.

    python benchmarks/view_sizes.py [--input bms_webview_1] [--items 32] [--cells 16 64 256 1024]
        [--numbers 10 20 50 100] [--ways 2 4 6] [--epsilon 1] [--seeds 3] [--pictures docs/pictures] [--quick]

The question of the DPSyn proposal: how many views of how many cells? ``method="dpsyn"`` answers it by its
expected error alone and has no setting for it, so this script measures views by themselves: m views of at
most L cells of binary transactions, randomly chosen, or a covering of all pairs (its m follows from L),
greedy or from a finite plane.
One-way tables get 15 % of rho and the views the rest, so that their Gaussian noise has sigma
sqrt(m / (1.7 rho)). Then come weighted least squares, non-negativity, and maximum entropy for a
marginal that no view holds. The noise is numpy's, from a seed, on counts in memory, and the total is the true
one: no privacy, only for public tables. SSE as in ``transactions.py``.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from pathlib import Path

import duckdb
import numpy as np
from baselines.lap import gaussian_sigma
from charts import write_chart
from comparison import codes_of, shares, squared_error
from harness import command_line, machine, print_table
from numpy.typing import NDArray
from transactions import INPUTS, groups_of, transactions

from dpsyn_sql.fit import reconstruct
from dpsyn_sql.fit import views as fit_views
from dpsyn_sql.planning import views as planned_views

ONE_WAY_SHARE = 0.15
"""Of the budget, as in the method."""

Scopes = Sequence[tuple[int, ...]]


def fitted(
    rows: NDArray[np.int64], scopes: Scopes, epsilon: float, delta: float, rng: np.random.Generator
) -> dict[tuple[int, ...], NDArray[np.float64]]:
    """One-way tables and views with noise, made consistent and non-negative, as probabilities."""
    sizes, number = [2] * rows.shape[1], len(rows)
    alone = [(place,) for place in range(len(sizes))]
    noisy, sigmas = {}, {}
    for group, share in ((alone, ONE_WAY_SHARE), (scopes, 1 - ONE_WAY_SHARE)):
        sigma = gaussian_sigma(len(group), epsilon, delta) / math.sqrt(share)
        for scope in group:
            counts = number * shares(rows, sizes, scope).reshape([2] * len(scope))
            noisy[scope] = counts + rng.normal(0, sigma, counts.shape)
            sigmas[scope] = sigma
    agreed = fit_views.settled(fit_views.consistent(noisy, sigmas), sigmas, float(number))
    return {scope: view / view.sum() for scope, view in agreed.items()}


def errors(
    rows: NDArray[np.int64], scopes: Scopes, epsilon: float, delta: float, ways: Sequence[int], seed: int
) -> list[float]:
    """Average SSE by number of attributes."""
    sizes = [2] * rows.shape[1]
    views = fitted(rows, scopes, epsilon, delta, np.random.default_rng(seed))

    def answer(axes: tuple[int, ...]) -> NDArray[np.float64]:
        return reconstruct.reconstructed(views, axes, sizes, "maximum_entropy").ravel()

    return [
        statistics.mean(
            squared_error(shares(rows, sizes, axes), answer(axes)) for axes in groups_of(len(sizes), number)
        )
        for number in ways
    ]


def main() -> None:
    """A table, and a chart for each number of attributes."""
    parser = command_line(__doc__)
    parser.add_argument("--input", choices=INPUTS, default="bms_webview_1")
    parser.add_argument("--items", type=int, default=32)
    parser.add_argument("--cells", type=int, nargs="+", default=[16, 64, 256, 1024])
    parser.add_argument("--numbers", type=int, nargs="+", default=[10, 20, 50, 100])
    parser.add_argument("--ways", type=int, nargs="+", default=[2, 4, 6])
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--delta", type=float, default=1e-9)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--pictures", type=Path, help="folder for charts")
    parser.add_argument("--quick", action="store_true", help="two numbers, two sizes, one seed, pairs alone")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.cells, arguments.numbers, arguments.ways, arguments.seeds = [16, 256], [10, 50], [2], 1
    table = transactions(arguments.input, arguments.items)
    with duckdb.connect() as con:
        table.load(con)
        (rows,), sizes = codes_of(con, ("source",), table.scored)
    lines: list[list[object]] = []
    charts: dict[int, dict[str, list[tuple[float, float]]]] = {ways: {} for ways in arguments.ways}
    for cells in arguments.cells:
        name, draw = f"random, L = {cells}", planned_views.random_views
        designs = [(name, tuple(draw(sizes, cells, "view_sizes", range(m)))) for m in arguments.numbers]
        designs.append(("covering of all pairs", planned_views.covering_views(sizes, 2, cells).views))
        if plane := planned_views.plane_covering(sizes, cells):
            designs.append(("finite plane", plane))
        for label, scopes in designs:
            found = [
                errors(rows, scopes, arguments.epsilon, arguments.delta, arguments.ways, seed)
                for seed in range(arguments.seeds)
            ]
            middle = [statistics.median(column) for column in zip(*found, strict=True)]
            lines.append([label.partition(",")[0], cells, len(scopes), *(f"{one:.3g}" for one in middle)])
            print(*lines[-1], flush=True)
            for ways, error in zip(arguments.ways, middle, strict=True):
                charts[ways].setdefault(label, []).append((len(scopes), error))
    print_table(
        ["views", "cells L", "number m", *(f"SSE, {ways}-way" for ways in arguments.ways)],
        lines,
        f"{arguments.input}, {len(sizes)} items, {len(rows):,} rows, epsilon {arguments.epsilon:g}, delta "
        f"{arguments.delta:g}, medians of {arguments.seeds} seeds; {machine()}",
    )
    if arguments.pictures:
        for ways, series in charts.items():
            path = arguments.pictures / f"sse_by_views_{ways}_way.svg"
            title = f"{arguments.input}, {len(sizes)} items, {ways}-way marginals"
            write_chart(path, title, "number m of views", "average SSE of a marginal", series)
            print(f"wrote {path}")


if __name__ == "__main__":
    main()
