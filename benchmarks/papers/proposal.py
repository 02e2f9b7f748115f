"""Li, Zhang and Wang, "DPSyn: Differentially Private Synthetic Data Publication" (2018), section 5: SSE of
k-way marginals, k from 3 to 8 (section 4.1). It plans; it prints no figure. Its other measure,
misclassification, is in ``privbayes``."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import numpy as np
from adaptive import Table, adult, written
from baselines.lap import gaussian_sigma
from baselines.lap import squared_error as expected_error
from charts import Line, Panel
from comparison import chosen
from numpy.typing import NDArray
from transactions import transactions

from .part import Figures, Part, Picture, Shown, of_releases, said, table

DELTA = 1e-9
WAYS = (3, 4, 5, 6, 8)
EPSILONS = (0.1, 1.0, 10.0)
METHODS = ("dpsyn", "adaptive", "privbayes", "independent")
SETS = 50
"""Seeded marginals of each number of attributes."""

ITEMS = 32
INPUTS = {"bms": f"BMS-WebView-1, {ITEMS} items", "adult": "Adult discretised"}
DIRECT = "Gaussian noise on these marginals alone"
Codes = NDArray[np.int64]


def source_of(name: str) -> Table:
    """A table of the plan, or the nearest one that is at hand."""
    return adult() if name == "adult" else transactions("bms_webview_1", ITEMS)


def squared_error(source: Codes, copy: Codes, sizes: Sequence[int], axes: Sequence[int]) -> float:
    """SSE of one marginal in shares of the rows, by the cells that hold a row of either table."""
    shape = [sizes[axis] for axis in axes]
    both = np.concatenate([source[:, axes], copy[:, axes]])
    _, cells = np.unique(np.ravel_multi_index(tuple(both.T), shape), return_inverse=True)
    number = int(cells.max()) + 1
    here, there = cells[: len(source)], cells[len(source) :]
    difference = np.bincount(here, minlength=number) / len(source)
    difference -= np.bincount(there, minlength=number) / len(copy)
    return float(np.square(difference).sum())


def errors(name: str, method: str, epsilon: float) -> Figures:
    """Mean SSE of one release by the number of attributes; the rows and sizes of the table."""
    made = written(source_of(name), method, epsilon, DELTA)
    found: Figures = {
        str(ways): statistics.mean(
            squared_error(made.source, made.copy, made.sizes, axes)
            for axes in chosen(len(made.sizes), ways, SETS)
        )
        for ways in WAYS
    }
    return found | {"rows": len(made.source), "sizes": made.sizes}


def direct(sizes: Sequence[int], rows: int, ways: int, epsilon: float) -> float:
    """Expected SSE of noise on the chosen marginals, which get the whole budget."""
    sets = chosen(len(sizes), ways, SETS)
    sigma = gaussian_sigma(len(sets), epsilon, DELTA)
    return statistics.mean(
        expected_error(int(np.prod([sizes[axis] for axis in axes])), rows, sigma, "gaussian") for axes in sets
    )


def measure(quick: bool) -> Figures:
    releases = 1 if quick else 3
    found: Figures = {"releases": releases, "runs": {}}
    for name in INPUTS:
        for method in METHODS:
            for epsilon in EPSILONS[:2] if quick else EPSILONS:
                runs = [errors(name, method, epsilon) for _ in range(releases)]
                found["runs"].setdefault(name, {}).setdefault(method, {})[str(epsilon)] = runs
            said(f"{name}, {method}: done")
    return found


def show(found: Figures) -> Shown:
    rows: list[list[object]] = []
    panels = []
    for name, title in INPUTS.items():
        by_method = found["runs"][name]
        first = by_method["dpsyn"]["1.0"][0]
        lines: dict[str, list[tuple[float, float]]] = {}
        across: dict[str, list[tuple[float, float]]] = {}
        for epsilon in map(float, by_method["dpsyn"]):
            known = {
                method: [statistics.median(run[str(ways)] for run in runs[str(epsilon)]) for ways in WAYS]
                for method, runs in by_method.items()
            }
            known[DIRECT] = [direct(first["sizes"], first["rows"], ways, epsilon) for ways in WAYS]
            for method, figures in known.items():
                rows.append([title, f"{epsilon:g}", method, *(f"{one:.3g}" for one in figures)])
                across.setdefault(method, []).append((epsilon, figures[1]))
                if epsilon == 1:
                    lines[method] = [*zip(WAYS, figures, strict=True)]
        for points, label, head in (
            (lines, "attributes k of a marginal", f"{title}, epsilon 1"),
            (across, "epsilon", f"{title}, k = 4"),
        ):
            drawn = [
                Line(
                    method if method in (DIRECT, "independent") else f"dpsyn_sql, {method}",
                    one,
                    "baseline" if method in (DIRECT, "independent") else "ours",
                )
                for method, one in points.items()
            ]
            ticks = {float(way): str(way) for way in WAYS} if "attributes" in label else {}
            panels.append(Panel(head, label, "mean SSE (shares squared)", drawn, {}, ticks))
    caption = (
        f"Mean SSE over {SETS} seeded marginals, delta 1e-9, {of_releases(found['releases'])}; "
        f"{found['machine']}"
    )
    picture = Picture(
        "proposal", "The plan of the DPSyn proposal", panels, "SSE of marginals against k and epsilon", 2
    )
    head = ["table", "epsilon", "who", *(f"k = {ways}" for ways in WAYS)]
    return Shown(table(head, rows, caption), [picture])


PARTS = [Part("dpsyn_proposal", "The plan of the DPSyn proposal", measure, show)]
