"""Do the error bars hold? How many true counts are within 1.96 standard errors, on real tables.

    python benchmarks/coverage.py [--tables adult_all flights diabetes_130] [--epsilon 0.3 1 3]
        [--method auto] [--pairs 400]

Every table is released with its declared domain; then the exact counts of all single columns and of pairs (a
sample of so many, pairs of at most 20,000 cells) are compared with ``Release.marginal``. ``estimate`` is
within
``estimate +- 1.96 estimate_error``, ``noisy`` within ``noisy +- 1.96 standard_error``; 95 % are expected of
both. Cells of all tables count alike; measured, summed and modelled ones are told apart, and cells by the
rows of their estimate. No other package for private synthetic tables that we know gives any error bar of its
model.

It reads the real rows without noise: what it prints is as private as its input.
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from collections import defaultdict
from collections.abc import Sequence
from itertools import chain, combinations
from pathlib import Path

import duckdb
import numpy as np
from harness import DATA, machine, need, print_table
from numpy.typing import NDArray
from real_tables import REAL_TABLES, RealTable

import dpsyn_sql
from dpsyn_sql.front.prepare import prepared
from dpsyn_sql.front.request import Request
from dpsyn_sql.planning.queries import MarginalQuery
from dpsyn_sql.private.count.counter import SqlCounter
from dpsyn_sql.report.result import Release

WITHIN = 1.96
CLASSES = (0, 10, 100, np.inf)
"""Rows of an estimate: cells are told apart by them."""

MOST_CELLS = 20_000
SEED = 0

Counts = dict[tuple[str, ...], NDArray[np.int64]]


def released(table: RealTable, epsilon: float, method: str, pairs: int) -> tuple[Release, Counts]:
    """A release, and exact counts of single columns and pairs of its codes."""
    with tempfile.TemporaryDirectory() as folder, duckdb.connect() as con, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a release: they are no part of the table
        table.load(con, need(DATA / table.path).parent.parent)
        asked = {"epsilon": epsilon, "method": method, "domain": table.domain, **table.protects}
        ledger = Path(folder) / "ledger"
        release = dpsyn_sql.release(con, table.name, into="copy", ledger=ledger, **asked)
        request = Request(table.name, into="counted", ledger=Path(folder) / "other", **asked)
        with prepared(con, request) as job:
            plan = job.only.plan
            queries = [MarginalQuery(names) for names in compared(release, pairs)]
            relation, unit = plan.source.relation, plan.source.unit
            counter = SqlCounter(
                job.session.engine, relation.sql, plan.domain, queries, decimal="", unit=unit
            )
            counts = dict(zip([query.attrs for query in queries], counter.count(queries), strict=True))
            counter.close()
    return release, counts


def compared(release: Release, pairs: int) -> list[tuple[str, ...]]:
    """Single columns, and pairs that the model answers."""
    domain = release.model.domain
    found = [
        pair
        for pair in combinations(domain.names, 2)
        if domain.cells(pair) <= MOST_CELLS and release.model.supports(pair)
    ]
    if len(found) > pairs:
        chosen = np.random.default_rng(SEED).choice(len(found), pairs, replace=False)
        found = [found[place] for place in sorted(chosen)]
    return [*((name,) for name in domain.names), *found]


def lines(table: RealTable, epsilon: float, method: str, pairs: int) -> list[list[object]]:
    """Of every basis: tables, cells, cells with a known error, and the shares within the intervals."""
    release, counts = released(table, epsilon, method, pairs)
    sums: dict[tuple[int, str], NDArray[np.int64]] = defaultdict(lambda: np.zeros(8, np.int64))
    sizes: dict[tuple[int, str], NDArray[np.int64]] = defaultdict(lambda: np.zeros(3, np.int64))
    for names, exact in counts.items():
        shown = release.marginal(names)
        # A column may have the name of a figure: figures come last.
        estimate, error, noisy, deviation = (shown.iloc[:, place].to_numpy() for place in (-5, -4, -3, -2))
        true = exact.ravel()
        modelled = np.abs(estimate - true) <= WITHIN * error
        measured = np.abs(noisy - true) <= WITHIN * deviation
        key = (len(names), str(shown.iloc[0, -1]))
        by_size = np.histogram(estimate[modelled], CLASSES)[0]
        own = [1, true.size, np.isfinite(error).sum(), modelled.sum(), measured.sum(), *by_size]
        sums[key] += np.array(own, np.int64)
        sizes[key] += np.histogram(estimate[np.isfinite(error)], CLASSES)[0]
    return [
        [
            table.name,
            epsilon,
            "columns" if ways == 1 else "pairs",
            basis,
            int(tables),
            int(cells),
            percent(known, cells),
            percent(within, known),
            *(percent(*parts) for parts in zip(by_size, sizes[ways, basis], strict=True)),
            percent(unbiased, cells) if basis != "modelled" else "",
        ]
        for (ways, basis), (tables, cells, known, within, unbiased, *by_size) in sorted(sums.items())
    ]


def percent(part: int, whole: int) -> str:
    """Empty if there is nothing to be a part of."""
    return f"{100 * part / whole:.1f} %" if whole else ""


def main(given: Sequence[str] | None = None) -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--tables", nargs="*", default=["adult_all", "flights", "diabetes_130"])
    parser.add_argument("--epsilon", nargs="*", type=float, default=[0.3, 1.0, 3.0])
    parser.add_argument("--method", default="auto")
    parser.add_argument("--pairs", type=int, default=400)
    chosen = parser.parse_args(given)
    rows = chain.from_iterable(
        lines(REAL_TABLES[name], epsilon, chosen.method, chosen.pairs)
        for name in chosen.tables
        for epsilon in chosen.epsilon
    )
    print_table(
        [
            "table",
            "epsilon",
            "of",
            "basis",
            "tables",
            "cells",
            "error known",
            "estimate within",
            "below 10 rows",
            "10 to 100",
            "from 100",
            "noisy within",
        ],
        list(rows),
        f"method {chosen.method}; true counts within 1.96 standard errors, 95 % expected. No peer gives any "
        f"error bar of its model. {machine()}",
    )


if __name__ == "__main__":
    main()
