"""Noise of running totals: the sum of the periods' own tables and the tree of nodes, over 12 and 365 periods.

    python benchmarks/running_totals.py [--charts FOLDER] [--repeats N]

Two kinds of data, with one budget for the whole calendar (epsilon 1, delta 1e-9):

- a panel: the same people have one row in each period;
- visits: each person has one row in a single period.

The tables are all one-way and two-way marginals, as the method copula asks for them. Each node gets noise of
the door's own mechanism at the scale that its budget buys. Its counts are made here, as multinomial draws,
and not counted by a database. The last table is of whole releases in DuckDB, with a ledger in a file.
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
import warnings
from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import date, timedelta
from pathlib import Path

import duckdb
import numpy as np
from charts import write_chart
from harness import machine, print_table
from numpy.typing import NDArray

import dpsyn_sql
from dpsyn_sql import Request
from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.ledger.sqlite import SqliteLedger
from dpsyn_sql.methods import Copula
from dpsyn_sql.planning.running import Running, both_ways
from dpsyn_sql.private.measure.noise import ExactNoise, add_noise, standard_deviation
from dpsyn_sql.private.measure.questions.tables import marginals_event
from dpsyn_sql.source.slices import Window

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


def measured(running: Running, windows: NDArray[np.int64], budget: Budget, repeats: int) -> Errors:
    """Both errors of each period's total, root mean squares over runs with fresh noise."""
    runs = np.array([measured_once(running, windows, budget) for _ in range(repeats)])
    return [(float(one), float(two)) for one, two in np.sqrt((runs**2).mean(axis=0))]


def measured_once(running: Running, windows: NDArray[np.int64], budget: Budget) -> Errors:
    shape_of, noise = domain(), ExactNoise()
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


def noise_table(repeats: int) -> dict[str, Errors]:
    """Prints one line for each kind of data, number of periods and way; gives the errors for the chart."""
    budget = Budget.of_release(EPSILON, DELTA).without_thresholds()
    lines, kept = [], {}
    for kind in ROWS:
        for periods in (12, 365):
            windows = counts_of(kind, periods)
            ways = both_ways(periods, periods if kind == "panel" else 1, 1, budget.kind)
            for running in ways:
                errors, expected = measured(running, windows, budget, repeats), planned(running, budget)
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
        "Noise is a multiple of that of one release with the whole budget. Errors are root mean squares of "
        f"cells in rows, {repeats} runs; in parentheses what the budgets of the nodes say. "
        f"epsilon={EPSILON:g}, delta={DELTA:g} for the whole calendar; {machine()}",
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


def end_to_end() -> None:
    """Whole releases: 12 months one by one; 365 days, the last two of them."""
    lines: list[list[object]] = []
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for periods, people in ((12, 2_000), (365, 100)):
            path = Path(folder, f"{periods}.duckdb")
            make_panel(path, periods, people)
            wanted = range(1, 13) if periods == 12 else (364, 365)
            for period in wanted:
                begun = time.perf_counter()
                made = dpsyn_sql.release(path, total_of(periods, period))
                seconds = time.perf_counter() - begun
                nodes = made.certificate()["public_facts"]["running_total"]["nodes"]
                if period in (1, 2, 12, 364, 365):
                    lines.append([periods, period, len(nodes), seconds, f"{spent(path):.4g}"])
    print_table(
        ["periods", "period", "nodes in its total", "seconds", "epsilon spent so far"],
        lines,
        "A panel of 2,000 people over 12 periods, of 100 people over 365, method copula. The call for period "
        "364 measures 363 missing periods first; that for 365 measures one and reads 364 from the ledger.",
    )


def make_panel(path: Path, periods: int, people: int) -> None:
    with duckdb.connect(str(path)) as con:
        con.execute(
            "CREATE TABLE panel AS SELECT p::INTEGER AS person, DATE '2020-01-01' + d::INTEGER AS day, "
            "(p % 6)::INTEGER AS region, ((p * 7 + d) % 10)::INTEGER AS age, "
            "(hash(p, d) % 4)::INTEGER AS status "
            f"FROM range({people}) AS a(p), range({periods}) AS b(d)"
        )


def total_of(periods: int, period: int) -> Request:
    first = date(2020, 1, 1)
    edges = tuple(str(first + timedelta(days=number)) for number in range(periods + 1))
    columns = {name: {"type": "categorical", "categories": list(range(size))} for name, size in SIZES.items()}
    return Request(
        "panel",
        name="so_far",
        into="so_far",
        replace=True,
        unit="person",
        most=1,
        exclude=["day"],
        domain={"columns": columns},
        epsilon=EPSILON,
        delta=DELTA,
        window=Window("day", "days from 2020-01-01", edges, period - 1),
        series="total",
    )


def spent(path: Path) -> float:
    with closing(SqliteLedger(f"{path}.dpsyn-ledger")) as ledger:
        return float(ledger.overview().accounts[0].epsilon)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--charts", type=Path)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    errors = noise_table(arguments.repeats)
    if arguments.charts:
        draw(arguments.charts, errors)
    end_to_end()


if __name__ == "__main__":
    main()
