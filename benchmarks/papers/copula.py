"""Asghar and others, "Differentially Private Release of High-Dimensional Datasets using the Gaussian Copula"
(arXiv 1902.01499): Table 2, Figure 6 and Table 3, on Adult and on tables of the shapes of its others."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from charts import Line, Panel
from conjunctions import DELTA, TABLE_2, best, codes, conjunctions, domain, header, released, size
from copulas import direct
from dss_shape import SIZES as DSS_SIZES
from harness import DATA, apart, need, peak_mebibytes, timed
from large_tables import Shape, generate

import dpsyn_sql

from .part import Figures, Part, Picture, Shown, of_releases, said, table

WAYS = (1, 2, 3)
METHODS: dict[str, Any] = {
    "copula": "copula",
    "adaptive": "adaptive",
    "no-cor": {"name": "copula", "correlation": "none"},
    "cop-1": {"name": "copula", "correlation": "ones"},
}
"""The paper's own method, the default one, its baselines without correlations and with correlations of 1."""

OF_FIGURE_6 = {
    "smallest epsilon": {1: (357, 3419), 2: (68, 6421)},
    "largest epsilon": {2: (27, 5882)},
}
"""Section 4.3.4 in words: mean and maximum at both ends of its sweep, as far as our text of it has them."""

EPSILONS = (0.1, 0.25, 0.5, 1.0, 2.0, 5.0)
PAPER_SECONDS = {"Adult": 407.0, "Hospital": 2781.0, "DSS": 9000.0, "Syn 1": 20580.0, "Syn 2": 66720.0}
"""Table 3, on one Xeon E5-2660 with 10 cores, means of 10 runs (2 of Syn 1 and Syn 2)."""

HOSPITAL = Shape("Hospital shape", 10_000, (2, 3, 5, 10, 50, 131, 200, 300, 500))
DSS = Shape("DSS shape", 5_240_260, DSS_SIZES)


def errors(method: object, epsilon: float) -> dict[str, list[tuple[float, int]]]:
    """Mean and maximum over the best 95, 99 and 100 % of the conjunctions, by their number of values."""
    spec, source = domain(), need(DATA / "uci_adult" / "adult_train.parquet")
    sizes = [size(facts) for facts in spec["columns"].values()]
    with duckdb.connect() as con:
        real = codes(con, f"'{source}'", spec)
    made = released(source, spec, method, epsilon)
    return {
        str(ways): best(np.abs(conjunctions(made, sizes, ways) - conjunctions(real, sizes, ways)))
        for ways in WAYS
    }


def middle(runs: list[dict[str, Any]], ways: int) -> list[float]:
    """Medians of the six figures of one kind of conjunction."""
    return [float(one) for one in np.median(np.array([run[str(ways)] for run in runs]), axis=0).ravel()]


def rows_off(error: float) -> str:
    """An error in rows; small ones with a decimal."""
    return f"{error:,.0f}" if error >= 10 or error == int(error) else f"{error:.1f}"


# -- Table 2 ----------------------------------------------------------------------------------------


def measure_table(quick: bool) -> Figures:
    releases = 1 if quick else 3
    found: Figures = {"releases": releases, "runs": {}}
    for label, method in METHODS.items():
        found["runs"][label] = [errors(method, 1.0) for _ in range(releases)]
        said(f"{label}: done")
    for label, law in (("Laplace, delta 0", "laplace"), ("Gauss", "gaussian")):
        runs = [direct(law, domain(), 1.0, seed) for seed in range(releases)]
        found["runs"][label] = [{str(ways): one for ways, one in run.items()} for run in runs]
    return found


def show_table(found: Figures) -> Shown:
    rows, panels = [], []
    for ways in WAYS:
        lines = []
        for label, runs in found["runs"].items():
            figures = middle(runs, ways)
            rows.append([f"{ways}-way", label, *map(rows_off, figures)])
            direct_noise = label.startswith(("Lap", "Gauss"))
            if label in ("copula", "adaptive") or direct_noise:
                name = f"noise on every conjunction: {label}" if direct_noise else f"dpsyn_sql, {label}"
                lines.append(Line(name, [*enumerate(figures[::2])], "baseline" if direct_noise else "ours"))
        for row in TABLE_2:
            pairs = TABLE_2[row]["Adult"][ways]
            figures = [float(value) for pair in pairs for value in pair]
            rows.append([f"{ways}-way", f"paper, {row}", *map(rows_off, figures)])
            lines.append(Line(f"paper, Table 2, {row}", [*enumerate(figures[::2])], "paper"))
        title = f"{ways}-way conjunctions"
        ticks = {0: "95 %", 1: "99 %", 2: "100 %"}
        panels.append(Panel(title, "best queries", "mean error (rows)", lines, {}, ticks))
    caption = (
        f"Adult, 32,561 rows, epsilon 1, delta 2^-30, {of_releases(found['releases'])}; {found['machine']}"
    )
    return Shown(
        table(header("queries", "who"), rows, caption),
        [
            Picture(
                "copula_conjunctions",
                "Positive conjunctions on Adult at epsilon 1",
                panels,
                "mean error of one-, two- and three-way conjunctions, the paper beside ours",
            )
        ],
    )


# -- Figure 6 ---------------------------------------------------------------------------------------


def measure_sweep(quick: bool) -> Figures:
    releases = 1 if quick else 3
    found: Figures = {"releases": releases, "runs": {}}
    for label in ("copula", "adaptive"):
        for epsilon in EPSILONS:
            found["runs"].setdefault(label, {})[str(epsilon)] = [
                errors(METHODS[label], epsilon) for _ in range(releases)
            ]
        said(f"{label}: done")
    return found


def show_sweep(found: Figures) -> Shown:
    rows, panels = [], []
    for label, by_epsilon in found["runs"].items():
        for epsilon, runs in by_epsilon.items():
            figures = [middle(runs, ways)[4:] for ways in (1, 2)]
            rows.append(
                [epsilon, f"dpsyn_sql, {label}", *(f"{one:,.0f}" for pair in figures for one in pair)]
            )
    rows.append(["1 (Table 2)", "paper, dpc", "106", "773", "38", "4,788"])
    for end, by_ways in OF_FIGURE_6.items():
        pairs = [by_ways.get(ways, ("", "")) for ways in (1, 2)]
        texts = [f"{one:,}" if one else "" for pair in pairs for one in pair]
        rows.append([f"its {end}", "paper, dpc", *texts])
    for ways in (1, 2):
        for place, what in enumerate(("mean", "largest")):
            lines = [
                Line(
                    f"dpsyn_sql, {label}",
                    [(float(one), middle(runs, ways)[4 + place]) for one, runs in by_epsilon.items()],
                )
                for label, by_epsilon in found["runs"].items()
            ]
            of_paper = TABLE_2["dpc"]["Adult"][ways][2][place]
            lines.append(Line("paper, Table 2, dpc", [(1.0, float(of_paper))], "paper"))
            levels = {
                f"paper, section 4.3.4, its {end}": (float(by_ways[ways][place]), "paper")
                for end, by_ways in OF_FIGURE_6.items()
                if ways in by_ways
            }
            panels.append(
                Panel(f"{ways}-way, {what} of all queries", "epsilon", "error (rows)", lines, levels)
            )
    caption = f"Adult, delta 2^-30, all queries (100 %), {of_releases(found['releases'])}; {found['machine']}"
    head = ["epsilon", "who", "1-way mean", "1-way max", "2-way mean", "2-way max"]
    return Shown(
        table(head, rows, caption),
        [
            Picture(
                "copula_epsilon",
                "Conjunctions on Adult against epsilon",
                panels,
                "mean and largest error of one- and two-way conjunctions against epsilon",
                2,
            )
        ],
    )


# -- Table 3 ----------------------------------------------------------------------------------------


def time_of_shape(shape: Shape, source: Path, method: str) -> tuple[float, float]:
    """Seconds and MiB of one release from Parquet to Parquet: for a process of its own."""
    with tempfile.TemporaryDirectory(dir=source.parent) as folder, timed() as watch:
        dpsyn_sql.release(
            None,
            source,
            into=Path(folder) / "out.parquet",
            epsilon=1,
            delta=str(DELTA),
            method=method,
            domain=shape.domain(),
            ledger=Path(folder) / "ledger",
            limits={"memory": "4GB"},
        )
    return watch.seconds["total"], peak_mebibytes()


def time_of_adult(method: str) -> tuple[float, float]:
    """The same for Adult."""
    source = need(DATA / "uci_adult" / "adult_train.parquet")
    with timed() as watch:
        released(source, domain(), method, 1.0)
    return watch.seconds["total"], peak_mebibytes()


def measure_times(quick: bool) -> Figures:
    releases = 1 if quick else 3
    found: Figures = {"releases": releases, "lines": []}

    def add(name: str, rows: int, attributes: int, values: int, method: str, runs: list[Any]) -> None:
        seconds, memory = np.median(np.array(runs), axis=0).tolist()
        load = round(os.getloadavg()[0], 1)
        found["lines"].append([name, rows, attributes, values, method, len(runs), seconds, memory, load])
        said(f"{name}, {method}: {seconds:.1f} s")

    for method in ("copula", "adaptive"):
        add("Adult", 32_561, 14, 194, method, [apart(time_of_adult, method) for _ in range(releases)])
    with tempfile.TemporaryDirectory() as folder:
        shapes = [("Hospital", HOSPITAL, releases), ("DSS", DSS, 1)]
        for name, shape, times in shapes[:1] if quick else shapes:
            source = Path(folder) / f"{name}.parquet"
            generate(shape, shape.rows, source)
            for method in ("copula", "adaptive"):
                runs = [apart(time_of_shape, shape, source, method) for _ in range(times)]
                add(name, shape.rows, len(shape.sizes), sum(shape.sizes), method, runs)
    return found


def show_times(found: Figures) -> Shown:
    rows: list[list[object]] = []
    for name, count, attributes, values, method, runs, seconds, memory, load in found["lines"]:
        rows.append(
            [
                name if name == "Adult" else f"{name} (shape)",
                f"{count:,}",
                attributes,
                f"{values:,}",
                method,
                runs,
                f"{seconds:.1f}",
                f"{PAPER_SECONDS[name]:,.0f}",
                f"{memory:,.0f}",
                load,
            ]
        )
    unmeasured = (
        [] if "DSS" in {row[0] for row in found["lines"]} else [("DSS", len(DSS.sizes), sum(DSS.sizes))]
    )
    for name, attributes, values in [*unmeasured, ("Syn 1", 1000, 1000), ("Syn 2", 2000, 2000)]:
        paper = f"{PAPER_SECONDS[name]:,.0f}"
        rows.append(
            [name, "5,240,260", f"{attributes:,}", f"{values:,}", "not in this run", "", "", paper, "", ""]
        )
    head = [
        "table",
        "rows",
        "attributes",
        "values",
        "method",
        "runs",
        "seconds",
        "paper, seconds",
        "MiB",
        "load",
    ]
    names = [*dict.fromkeys(line[0] for line in found["lines"])]
    lines = [
        Line(
            f"dpsyn_sql, {method}",
            [(names.index(line[0]), line[6]) for line in found["lines"] if line[4] == method],
        )
        for method in ("copula", "adaptive")
    ]
    lines.append(
        Line("paper, Table 3, 10 cores", [(i, PAPER_SECONDS[name]) for i, name in enumerate(names)], "paper")
    )
    sizes = {line[0]: f"{line[0]}\n{line[1]:,} rows\n{line[3]:,} values" for line in found["lines"]}
    ticks = {float(place): sizes[name] for place, name in enumerate(names)}
    panel = Panel("", "table", "seconds of a release", lines, {}, ticks)
    return Shown(
        table(head, rows, f"Medians, on a shared machine; load: mean of the last minute; {found['machine']}"),
        [
            Picture(
                "copula_times",
                "Time of a release: 2 shared cores here, 10 cores in the paper",
                [panel],
                "seconds of a release, the paper beside ours",
            )
        ],
    )


PARTS = [
    Part(
        "copula_conjunctions", "The copula paper, Table 2: conjunctions on Adult", measure_table, show_table
    ),
    Part("copula_epsilon", "The copula paper, Figure 6: against epsilon", measure_sweep, show_sweep),
    Part("copula_times", "The copula paper, Table 3: time", measure_times, show_times),
]
