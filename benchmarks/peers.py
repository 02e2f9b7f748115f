"""Other synthesizers beside the methods of this project: same table, same budget, same scorer, with repeats.

    python benchmarks/peers.py [--peers "AIM (dpmm)" ...] [--methods adaptive ...] [--epsilon 1]
        [--delta 1e-9] [--runs 3] [--cache FOLDER] [--install-limit 1800] [--limit 1200]
        [--results FILE] [--picture FILE]

Adult discretised: 80 % of its rows are synthesized (39,074 rows, 14 attributes of codes), 20 % are held
back. Each peer is installed by plain pip into a virtual environment of its own below ``--cache``, and runs
there with all domains declared and no budget for preprocessing (``runners/``). Printed are medians: total
variation distance from the rows that were synthesized, over all one-way and two-way and 200 seeded three-way
marginals; area under the ROC curve of gradient boosting and of logistic regression that learn ``income>50K``
from the synthetic rows, on the rows held back; seconds, processor seconds of all cores, and peak memory.

What cannot be installed, fails, or takes longer than ``--limit`` seconds is named with the reason.
``--results`` keeps the figures of each run, and a run that the file holds is not made again. Needs
scikit-learn, a network, 5 GB of disk, and hours. This compares with private data: only for public tables.
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
from adaptive import ORDERED, adult
from beside_peers import (
    PEAK,
    PEERS,
    PROCESSOR,
    WALL,
    Codes,
    Made,
    Results,
    Task,
    compared,
    medians,
    released,
    table_lines,
)
from charts import write_chart
from classifiers import rows_of, split
from efficacy import Rows, areas
from harness import add_methods, command_line, machine, methods_wanted, print_table
from measured_once import MEASURED_ONCE, NOT_RUN
from peer_environments import default_cache

TARGET = "income>50K"
METHODS = ("adaptive", "dpsyn", "privbayes", "copula", "dpcopula", "independent")
LEARNT = ("boosting, AUC", "logistic, AUC")
COLUMNS = ("1-way", "2-way", "3-way", *LEARNT, WALL, PROCESSOR, PEAK)


def for_learners(names: Sequence[str], ordered: frozenset[str], rows: Codes, target: str) -> Rows:
    """Codes with an order as numbers, others as categories; the class is the codes above 0 of the target."""
    frame = {
        name: rows[:, place].astype(np.float64) if name in ordered else rows[:, place].astype(str)
        for place, name in enumerate(names)
        if name != target
    }
    return Rows(pd.DataFrame(frame), rows[:, list(names).index(target)] > 0)


def learnt(task: Task, copy: Codes) -> dict[str, float]:
    """Areas under the curve of both learners."""
    warnings.simplefilter("ignore")
    parts = [for_learners([*task.sizes], task.ordered, rows, TARGET) for rows in (copy, task.tested)]
    return dict(zip(LEARNT, areas(*parts), strict=True))


def task_of(name: str) -> Task:
    """The only task of this script."""
    names, sizes, rows = rows_of(adult())
    kept, tested = split(rows)
    return Task(
        name, dict(zip(names, sizes, strict=True)), frozenset(ORDERED), kept, tested, (1, 2, 3), learnt
    )


def release(name: str, method: object, epsilon: float, delta: float) -> Made:
    """One release by a method of this project: for a process of its own."""
    warnings.simplefilter("ignore")
    return released(task_of(name), method, epsilon, delta)


def once(epsilon: float, ran: Sequence[str]) -> list[list[object]]:
    """Lines of figures that were measured once, of those that did not run."""
    rows: list[list[object]] = []
    for label, (two, three, _, seconds, _, _, memory) in MEASURED_ONCE.items():
        if epsilon == 1 and label not in ran and "no privacy" not in label:
            rows.append([f"{label}, once", "", two, three, "", "", seconds, "", memory, ""])
    return rows


def draw(path: Path, title: str, found: Mapping[str, Sequence[Mapping[str, object]]]) -> None:
    """Two-way distance by processor seconds, a point for each synthesizer."""
    points = {
        label: [(medians(runs, PROCESSOR), medians(runs, "2-way"))]
        for label, runs in found.items()
        if math.isfinite(medians(runs, PROCESSOR))
    }
    write_chart(path, title, "CPU seconds of one release", "two-way distance", points)


def main() -> None:
    """Print a table for each epsilon."""
    parser = command_line(__doc__)
    add_methods(parser, METHODS)
    add_peers(parser)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0])
    parser.add_argument("--delta", type=float, default=1e-9)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--picture", type=Path, help="an SVG of the first epsilon: distance by CPU seconds")
    arguments = parser.parse_args()
    if find_spec("sklearn") is None:
        print("Skipped: scikit-learn is not installed (pip install 'dpsyn_sql[benchmarks]').")
        return
    task = task_of("adult")
    wanted = methods_wanted(arguments.methods, arguments.variants)
    results = Results(arguments.results)
    for epsilon in arguments.epsilon:
        found = compared(
            task,
            release,
            wanted,
            arguments.peers,
            epsilon,
            arguments.delta,
            arguments.runs,
            results,
            (arguments.cache, arguments.install_limit, arguments.limit),
        )
        rows, reasons = table_lines(found, COLUMNS)
        print_table(
            ["synthesizer", *COLUMNS, "runs"],
            rows + once(epsilon, [str(row[0]) for row in rows]),
            f"Adult discretised, {len(task.rows):,} rows, epsilon {epsilon:g}, delta {arguments.delta:g}; "
            f"medians; once: all 48,842 rows, not made here; {machine()}",
        )
        print_peers(found, {**NOT_RUN, **reasons})
        if arguments.picture is not None and epsilon == arguments.epsilon[0]:
            draw(arguments.picture, f"Adult discretised, epsilon {epsilon:g}", found)


def add_peers(parser: argparse.ArgumentParser, default: Sequence[str] = tuple(PEERS)) -> None:
    """Options of every script that runs peers."""
    parser.add_argument(
        "--peers",
        nargs="*",
        choices=[*PEERS, "all"],
        default=[*default],
        metavar="PEER",
        help="names, or: all",
    )
    parser.add_argument(
        "--cache", type=Path, default=default_cache(), help="environments; default: %(default)s"
    )
    parser.add_argument("--install-limit", type=float, default=1800, help="seconds; default: %(default)s")
    parser.add_argument("--limit", type=float, default=1200, help="seconds of a run; default: %(default)s")
    parser.add_argument("--results", type=Path, help="JSON lines, continued where they end")


def print_peers(found: Mapping[str, Sequence[Mapping[str, object]]], reasons: Mapping[str, str]) -> None:
    """What each peer was told, its versions, and why others did not run."""
    given: list[list[object]] = [
        [label, PEERS[label].given or "nothing", str(runs[0].get("versions", ""))]
        for label, runs in found.items()
        if label in PEERS and "reason" not in runs[0]
    ]
    print_table(["synthesizer", "private facts that it is given", "versions"], given)
    print_table(["not run", "reason"], [[label, reason] for label, reason in reasons.items()])


if __name__ == "__main__":
    main()
