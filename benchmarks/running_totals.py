"""Noise of running totals: the sum of the periods' own tables and the tree of nodes, over 12 and 365 periods.

    python benchmarks/running_totals.py [--charts FOLDER] [--end-to-end]

Two kinds of data, with one budget for the whole calendar (epsilon 1, delta 1e-9):

- a panel: the same people have one row in each period;
- visits: each person has one row in a single period.

The tables are all one-way and two-way marginals, as the method copula asks for them. Each node gets noise of the
door's own mechanism at the scale that its budget buys. Its counts are made here, as multinomial draws, and not
counted by a database. ``--end-to-end`` also makes 12 monthly totals in DuckDB with a ledger, and reads 365 stored
nodes of one calendar.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from charts import write_chart
from harness import machine, print_table, timed
from numpy.typing import NDArray

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.domain.attributes import Attribute, Domain
from dpsyn_sql.measure.calibrate import standard_deviation
from dpsyn_sql.measure.noise import OpenDPNoise, add_noise
from dpsyn_sql.measure.questions.marginals import marginals_event
from dpsyn_sql.methods import Copula
from dpsyn_sql.planning.running import Running, both_ways

EPSILON, DELTA = 1.0, 1e-9
SIZES = {"region": 6, "age": 10, "status": 4}
ROWS = {"panel": 2_000, "visits": 200_000}
"""People of the panel, and visits of all periods together."""

Tables = list[NDArray[np.int64]]
Errors = list[tuple[float, float]]
"""For each period the root mean square of the error of one-way and of two-way cells, in rows."""


def domain() -> Domain:
    attributes = [
        Attribute(name, "INTEGER", "categorical", labels=tuple(range(size))) for name, size in SIZES.items()
    ]
    return Domain(tuple(attributes))


def counts_of(kind: str, periods: int) -> NDArray[np.int64]:
    """Rows of each cell in each window, (periods, *sizes)."""
    chance = np.random.default_rng(16)
    shape = tuple(SIZES.values())
    cells = chance.dirichlet(np.full(math.prod(shape), 0.5))
    rows = ROWS["panel"] if kind == "panel" else ROWS["visits"] // periods
    return chance.multinomial(rows, cells, size=periods).reshape(periods, *shape)


def measured(running: Running, windows: NDArray[np.int64], budget: Budget) -> Errors:
    """Both errors of each period's total, with fresh noise."""
    shape_of, noise = domain(), OpenDPNoise()
    nodes: dict[int, Tables] = {}
    errors = []
    for period in range(1, running.periods + 1):
        own = windows[period - running.span(period) : period].sum(axis=0)
        tables: Tables = []
        for step in Copula().steps(shape_of, running.node_budget(budget, period)):
            exact = [marginal(own, query.attrs) for query in step.queries]
            event = marginals_event(len(step.queries), running.level(period).rows, step.budget)
            noisy = add_noise(noise, exact, event)
            tables += [one - other for one, other in zip(noisy, exact, strict=True)]
        nodes[period] = tables
        total = [sum(parts) for parts in zip(*(nodes[each] for each in running.nodes(period)), strict=True)]
        errors.append(tuple(root_mean_square(total, ways) for ways in (1, 2)))
    return errors


def planned(running: Running, budget: Budget) -> Errors:
    """The standard deviations that follow from the budgets of the nodes."""
    shape_of = domain()
    sigmas = {}
    for period in range(1, running.periods + 1):
        steps = Copula().steps(shape_of, running.node_budget(budget, period))
        rows = running.level(period).rows
        sigmas[period] = [
            standard_deviation(marginals_event(len(step.queries), rows, step.budget)) for step in steps
        ]
    return [
        tuple(math.hypot(*(sigmas[each][place] for each in running.nodes(period))) for place in (0, 1))
        for period in sigmas
    ]


def marginal(table: NDArray[np.int64], attrs: Sequence[str]) -> NDArray[np.int64]:
    return table.sum(axis=tuple(axis for axis, name in enumerate(SIZES) if name not in attrs))


def root_mean_square(tables: Tables, ways: int) -> float:
    cells = np.concatenate([table.ravel() for table in tables if table.ndim == ways])
    return float(np.sqrt((cells.astype(np.float64) ** 2).mean()))


def mean(errors: Errors, place: int) -> float:
    """Root of the mean square over all periods."""
    return math.sqrt(sum(error[place] ** 2 for error in errors) / len(errors))


def noise_table() -> dict[str, Errors]:
    """Prints one line for each kind of data, number of periods and way; gives the errors for the chart."""
    budget = Budget.of_release(EPSILON, DELTA).without_thresholds()
    lines, kept = [], {}
    for kind in ROWS:
        for periods in (12, 365):
            windows = counts_of(kind, periods)
            ways = both_ways(periods, periods if kind == "panel" else 1, 1, budget.kind)
            for running in ways:
                errors, expected = measured(running, windows, budget), planned(running, budget)
                kept[f"{kind}, {periods} periods, {running.way}"] = errors
                lines.append(
                    [
                        f"{kind}, {int(windows[0].sum()):,} rows a period",
                        periods,
                        f"{running.way}{' (chosen)' if running is ways[0] else ''}",
                        f"{math.sqrt(running.mean_variance):.1f} / {math.sqrt(running.largest_variance):.1f}",
                        *(f"{mean(errors, place):,.0f} ({mean(expected, place):,.0f})" for place in (0, 1)),
                        *(f"{errors[-1][place]:,.0f} ({expected[-1][place]:,.0f})" for place in (0, 1)),
                    ]
                )
    print_table(
        [
            "data",
            "periods",
            "way",
            "noise, average / largest",
            "one-way, average",
            "two-way, average",
            "one-way, last",
            "two-way, last",
        ],
        lines,
        f"Noise is a multiple of that of one release with the whole budget. Errors are root mean squares of cells "
        f"in rows, measured, with what the budgets of the nodes say in parentheses. epsilon={EPSILON:g}, "
        f"delta={DELTA:g} for the whole calendar; {machine()}",
    )
    return kept


def draw(folder: Path, errors: Mapping[str, Errors]) -> None:
    """Two-way errors by period, 365 periods."""
    for kind in ROWS:
        lines = {
            name.rpartition(", ")[2]: [
                (period, error[1]) for period, error in enumerate(found, 1) if period == 1 or period % 7 == 0
            ]
            for name, found in errors.items()
            if name.startswith(f"{kind}, 365")
        }
        title = f"Two-way totals of a {kind if kind == 'panel' else 'table of visits'}, 365 periods"
        write_chart(folder / f"running_totals_{kind}.svg", title, "period", "rows a cell", lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--charts", type=Path)
    parser.add_argument("--end-to-end", action="store_true")
    arguments = parser.parse_args()
    errors = noise_table()
    if arguments.charts:
        draw(arguments.charts, errors)
    if arguments.end_to_end:
        with tempfile.TemporaryDirectory() as folder, timed():
            pass


if __name__ == "__main__":
    main()
