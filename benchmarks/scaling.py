"""Time of whole releases by phase, for two large shapes and every method; and a plan on paper.

    python benchmarks/scaling.py [--shapes binary twenty] [--methods adaptive] [--rows 100000]
        [--memory 4GB] [--epsilon 1] [--seeds 1] [--quick]
    python benchmarks/scaling.py --paper [--methods adaptive] [--rows 1000000]

    binary   5,000,000 rows of 100 attributes of 2 values
    twenty   1,000,000 rows of 30 attributes of 20 values
    census   300,000,000 rows of 100 attributes of 10 values, on paper alone: the proposal's largest plan

Tables are generated in SQL by another process, outside the clock: a row has a hidden group g of 40 (small
groups are more frequent), and attribute i has the value (g (7 + 2 i) + floor(size u^3)) mod size for a
uniform u. From Parquet to Parquet, each release in a process of its own. Phases are in minutes; ``total``
includes what belongs to no phase.

``--paper`` releases tables of the census shape with ``--rows`` rows and with a fifth of them. The difference
gives the rates of encoding, counting, sampling and writing, which are multiplied; noise, choices and fits do
not grow with the rows. It prints each step, and what ``dpsyn plan`` says about counting.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import warnings
from pathlib import Path
from typing import Any

from harness import (
    add_methods,
    apart,
    command_line,
    machine,
    methods_wanted,
    peak_mebibytes,
    print_table,
    timed,
)
from large_tables import Shape, generate

import dpsyn_sql
from dpsyn_sql.errors import DpsynError

SHAPES = {
    "binary": Shape("100 attributes of 2 values", 5_000_000, (2,) * 100),
    "twenty": Shape("30 attributes of 20 values", 1_000_000, (20,) * 30),
    "census": Shape("100 attributes of 10 values", 300_000_000, (10,) * 100),
}
ORDER = ("prepare", "encode", "count", "noise", "ledger", "build", "model", "select", "fit")
ORDER += ("trust", "sample", "write")
GROWING = ("encode", "count", "sample", "write")
"""Phases whose seconds grow with the rows."""

PART = 5
"""On paper a fifth of the rows is released too."""


def call(shape: Shape, source: Path, method: object, arguments: argparse.Namespace) -> dict[str, Any]:
    """What release() and plan() are called with."""
    return {
        "source": source,
        "into": source.parent / "out.parquet",
        "epsilon": arguments.epsilon,
        "delta": arguments.delta,
        "method": method,
        "domain": shape.domain(),
        "ledger": source.parent / "ledger",
        "limits": {"memory": arguments.memory},
    }


def measured(
    name: str, source: Path, method: object, arguments: argparse.Namespace
) -> tuple[dict[str, float], int, float] | str:
    """Seconds by phase, rows written and MiB of one release, or why there is none."""
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory(dir=source.parent) as folder:
        linked = Path(folder) / "source.parquet"
        linked.symlink_to(source)
        try:
            with timed() as watch:
                made = dpsyn_sql.release(None, **call(SHAPES[name], linked, method, arguments))
        except DpsynError as error:
            return str(error)
    return dict(watch.seconds), made.rows, peak_mebibytes()


def released(
    name: str, source: Path, label: str, method: object, arguments: argparse.Namespace
) -> tuple[dict[str, float], int, float] | None:
    """Medians of several releases, each in its own process; None, with a message, if there is none."""
    runs = []
    for _ in range(arguments.seeds):
        run = apart(measured, name, source, method, arguments)
        if isinstance(run, str):
            print(f"{name}, {label}: {run}\n", flush=True)
            return None
        runs.append(run)
    phases = {phase for seconds, _, _ in runs for phase in seconds}
    middle = {phase: statistics.median(seconds.get(phase, 0.0) for seconds, _, _ in runs) for phase in phases}
    print(f"{name}, {label}: {middle['total'] / 60:.2f} min", flush=True)
    return middle, runs[0][1], max(memory for _, _, memory in runs)


def shape_table(name: str, arguments: argparse.Namespace, wanted: dict[str, dict[str, object]]) -> None:
    """Minutes by phase, a column for each method."""
    shape = SHAPES[name]
    rows = arguments.rows or shape.rows
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "source.parquet"
        generate(shape, rows, source)
        runs = {label: released(name, source, label, one, arguments) for label, one in wanted.items()}
    found = {label: run for label, run in runs.items() if run is not None}
    known = {phase for seconds, _, _ in found.values() for phase in seconds}
    phases = [phase for phase in (*ORDER, "total") if phase in known]
    lines: list[list[object]] = [
        [phase, *(run[0].get(phase, 0.0) / 60 for run in found.values())] for phase in phases
    ]
    lines.append(["MiB", *(f"{run[2]:.0f}" for run in found.values())])
    print_table(
        ["minutes", *found],
        lines,
        f"{shape.title}, {rows:,} rows, epsilon {arguments.epsilon:g}, medians of {arguments.seeds}, "
        f"memory_limit {arguments.memory}, load {os.getloadavg()[0]:.1f}; {machine()}",
    )


def on_paper(label: str, method: object, arguments: argparse.Namespace) -> None:
    """The proposal's largest plan, from two smaller tables of its shape."""
    shape = SHAPES["census"]
    rows = arguments.rows or 1_000_000
    runs = []
    with tempfile.TemporaryDirectory() as folder:
        for size in (rows // PART, rows):
            source = Path(folder) / "source.parquet"
            generate(shape, size, source)
            runs.append(released("census", source, label, method, arguments))
        if None in runs:
            return
        said = str(dpsyn_sql.plan(None, **call(shape, source, method, arguments)))
    (small, _, _), (large, _, memory) = runs
    steps, whole = paper_steps(small, large, rows // PART, rows, shape.rows)
    print_table(
        ["phase", f"{rows // PART:,} rows", f"{rows:,} rows", f"{shape.rows:,} rows", "minutes"],
        [*steps, ["total", f"{small['total']:.1f} s", f"{large['total']:.1f} s", "the sum", whole / 60]],
        f"{shape.rows:,} rows x {len(shape.sizes)} attributes of {shape.sizes[0]} values on paper, {label}, "
        f"peak {memory:.0f} MiB at {rows:,} rows, load {os.getloadavg()[0]:.1f}; {machine()}",
    )
    told = [line.strip() for line in said.splitlines() if "GROUP BY" in line or "cells in all" in line]
    print("`dpsyn plan` says about counting:\n", *(f"    {line}" for line in told), sep="\n")
    stored = shape.rows * len(shape.sizes)
    print(
        f"\nThe encoded table has {stored / 1e9:.0f} billion codes, at most a byte each; what does not fit "
        "in memory spills to a private folder.\n",
        flush=True,
    )


def paper_steps(
    small: dict[str, float], large: dict[str, float], fewer: int, more: int, rows: int
) -> tuple[list[list[object]], float]:
    """Lines of the arithmetic for so many rows, and the seconds of all together.

    A phase that grows with the rows takes a rate, from the difference between the two sizes, and a constant.
    If the difference drowns in the fluctuation between runs, all of the longer time counts as growth.
    """
    lines: list[list[object]] = []
    whole = 0.0
    small, large = (
        {**run, "the rest": run["total"] - sum(run.get(phase, 0.0) for phase in ORDER)}
        for run in (small, large)
    )
    for phase in (*ORDER, "the rest"):
        first, second = small.get(phase, 0.0), large.get(phase, 0.0)
        step, seconds = "does not grow", second
        if phase in GROWING and second > 0:
            rate = (more - fewer) / (second - first) if second > 1.1 * first else more / second
            constant = max(0.0, second - more / rate)
            seconds = rows / rate + constant
            step = f"{rows:,} / {rate:,.0f} a second + {constant:.2f} s"
        if second > 0:
            lines.append([phase, f"{first:.2f} s", f"{second:.2f} s", step, seconds / 60])
            whole += seconds
    return lines, whole


def main() -> None:
    """Print a table for each shape, or the plan on paper."""
    parser = command_line(__doc__)
    add_methods(parser)
    parser.add_argument("--shapes", nargs="+", choices=["binary", "twenty"], default=["binary", "twenty"])
    parser.add_argument("--rows", type=int, help="default: those of the shape; on paper 1,000,000")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--delta", type=float, default=1e-9)
    parser.add_argument("--memory", default="4GB")
    parser.add_argument("--seeds", type=int, default=1, help="releases of each")
    parser.add_argument("--paper", action="store_true", help="the census shape, on paper")
    parser.add_argument("--quick", action="store_true", help="50,000 rows")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.rows = 50_000
    wanted = methods_wanted(arguments.methods, arguments.variants)
    if arguments.paper:
        for label, method in wanted.items():
            on_paper(label, method, arguments)
        return
    for name in arguments.shapes:
        shape_table(name, arguments, wanted)


if __name__ == "__main__":
    main()
