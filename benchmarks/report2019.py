"""The report "in the wild" and the slides of PrivBayes repeated, by one command: all methods of the registry.

    python benchmarks/report2019.py [--parts german adult shares places scores] [--runs 10] [--redraw]
        [--anew] [--methods adaptive privbayes] [--epsilon 0.1 1 4 8] [--into docs]

Each part measures what its stored figures (``papers/figures/wild_*.json``) do not have yet, cell by cell,
until every cell has ``--runs`` runs; it can be stopped at any time and goes on where it was. Then it prints
its tables, draws ``pictures/paper_*.svg`` and replaces its tables in ``papers.md``, between the markers of
its name. A part whose data are missing is told and skipped. ``--redraw``: nothing is measured. ``--anew``:
stored figures (of ``--methods``, if given) are forgotten, which a change of a method calls for.

Ten runs of all parts take some ten hours of an idle core. Needs scikit-learn and matplotlib
(``pip install '.[benchmarks]'``). This compares with private data: only for public tables.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from harness import REPOSITORY, command_line
from papers import scores, wild, wild_places
from papers.cells import Cells
from papers.part import Shown
from reproduce import write

PAGE, COMMAND = "papers.md", "report2019.py --parts"

Measure = Callable[[Cells, int, Sequence[str], Sequence[float]], None]
Show = Callable[[Cells], Shown]


def of_shares(cells: Cells, runs: int, methods: Sequence[str], epsilons: Sequence[float]) -> None:
    """Its methods and epsilons are those of the report."""
    wild.measure_shares(cells, runs)


def of_scores(cells: Cells, runs: int, methods: Sequence[str], epsilons: Sequence[float]) -> None:
    """One method, at the epsilons of the paper."""
    scores.measure(cells, runs, epsilons or scores.EPSILONS)


def of_table(name: str, cells: Cells, runs: int, methods: Sequence[str], epsilons: Sequence[float]) -> None:
    """Learners on one table."""
    wild.measure(name, cells, runs, methods, epsilons or wild.EPSILONS)


def of_places(cells: Cells, runs: int, methods: Sequence[str], epsilons: Sequence[float]) -> None:
    """k-means."""
    wild_places.measure(cells, runs, methods, epsilons or wild_places.EPSILONS)


PARTS: dict[str, tuple[Measure, Show]] = {
    "german": (partial(of_table, "german_credit"), partial(wild.show, "german_credit")),
    "adult": (partial(of_table, "adult_all"), partial(wild.show, "adult_all")),
    "shares": (of_shares, wild.show_shares),
    "places": (of_places, wild_places.show),
    "scores": (of_scores, scores.show),
}


def main() -> None:
    """Run the parts."""
    parser = command_line(__doc__)
    parser.add_argument("--parts", nargs="+", choices=[*PARTS], default=[*PARTS])
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--methods", nargs="*", default=[], help="all that are registered, if not given")
    parser.add_argument("--epsilon", type=float, nargs="*", default=[])
    parser.add_argument("--redraw", action="store_true", help="from the stored figures")
    parser.add_argument("--anew", action="store_true", help="forget stored figures, of --methods or all")
    parser.add_argument("--into", type=Path, default=REPOSITORY / "docs")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in arguments.parts:
        measure, show = PARTS[name]
        cells = Cells(f"wild_{name}")
        if arguments.anew:
            cells.forget(arguments.methods)
        if not arguments.redraw:
            try:
                measure(cells, arguments.runs, arguments.methods, arguments.epsilon)
            except SystemExit as missing:  # ``need`` says which file, and how to say where it is
                print(f"{name} is skipped: {missing}\n", flush=True)
                continue
        if not cells.runs:
            print(f"{name} is skipped: nothing was measured\n", flush=True)
            continue
        shown = show(cells)
        print(f"{shown.markdown}\n", flush=True)
        for key, reason in cells.refused.items():
            print(f"refused: {key}: {reason}", flush=True)
        write(name, COMMAND, PAGE, shown, arguments.into)


if __name__ == "__main__":
    main()
