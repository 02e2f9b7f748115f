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
includes what belongs to no phase (planning, the ledger).

``--paper`` releases a table of the census shape with ``--rows`` rows and multiplies its rates: encoding,
counting, sampling and writing grow with the rows; noise, choices and fits do not. It prints each step, and
what ``dpsyn plan`` says about counting.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import warnings
from pathlib import Path
from typing import Any

from harness import add_methods, apart, machine, methods_wanted, peak_mebibytes, print_table, timed
from large_tables import Shape, generate

import dpsyn_sql
from dpsyn_sql.errors import DpsynError

SHAPES = {
    "binary": Shape("100 attributes of 2 values", 5_000_000, (2,) * 100),
    "twenty": Shape("30 attributes of 20 values", 1_000_000, (20,) * 30),
    "census": Shape("100 attributes of 10 values", 300_000_000, (10,) * 100),
}
GROWS_WITH_ROWS = {
    "encode": "rows read",
    "count": "rows read",
    "sample": "rows written",
    "write": "rows written",
}
"""Phases whose seconds are a rate times a number of rows; the others are the same for every table."""


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
        "memory_limit": arguments.memory,
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
    order = ["encode", "count", "noise", "model", "select", "fit", "sample", "write", "total"]
    known = {phase for seconds, _, _ in found.values() for phase in seconds}
    phases = [phase for phase in order if phase in known]
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
    """The proposal's largest plan, from the rates of a smaller table of its shape."""
    shape = SHAPES["census"]
    rows = arguments.rows or 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "source.parquet"
        generate(shape, rows, source)
        try:
            said = dpsyn_sql.plan(None, **call(shape, source, method, arguments))
        except DpsynError as error:
            print(f"census, {label}: {error}\n", flush=True)
            return
        run = released("census", source, label, method, arguments)
    if run is None:
        return
    seconds, written, memory = run
    steps, whole = paper_steps(seconds, rows, written, shape.rows)
    print_table(
        ["phase", "measured", "step", "minutes"],
        [*steps, ["total", f"{seconds['total']:.1f} s", "the sum", whole / 60]],
        f"{shape.rows:,} rows x {len(shape.sizes)} attributes of {shape.sizes[0]} values on paper, {label}, "
        f"from {rows:,} rows, peak {memory:.0f} MiB, load {os.getloadavg()[0]:.1f}; {machine()}",
    )
    print("`dpsyn plan` says about counting:\n")
    print(
        "\n".join(f"    {line}" for line in str(said).splitlines() if "per million rows" in line), flush=True
    )
    stored = shape.rows * len(shape.sizes)
    print(
        f"\nThe encoded table has {stored / 1e9:.0f} billion codes of one byte before compression, which spill "
        "to a private folder.\n",
        flush=True,
    )


def paper_steps(
    seconds: dict[str, float], read: int, written: int, rows: int
) -> tuple[list[list[object]], float]:
    """Lines of the arithmetic for so many rows, and the seconds of all together.

    What belongs to no phase is planning and the ledger: it does not grow.
    """
    lines, whole = [], 0.0
    outside = seconds["total"] - sum(value for phase, value in seconds.items() if phase != "total")
    for phase, value in {**seconds, "outside the phases": max(0.0, outside)}.items():
        if phase == "total":
            continue
        basis = GROWS_WITH_ROWS.get(phase)
        if basis is None or value == 0:
            lines.append([phase, f"{value:.2f} s", "does not grow", value / 60])
            whole += value
            continue
        rate = (read if basis == "rows read" else written) / value
        lines.append([phase, f"{value:.2f} s", f"{rows:,} / {rate:,.0f} {basis} a second", rows / rate / 60])
        whole += rows / rate
    return lines, whole


def main() -> None:
    """Print a table for each shape, or the plan on paper."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
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
