"""Accuracy of whole releases beside a stored run of the same: what is better, the same or worse.

    python benchmarks/accuracy.py [--tables adult green_taxi ... flights] [--epsilon 0.1 1 10] [--releases 6]
        [--figures FILE] [--against baselines/accuracy.csv]

Every release is a real one at delta 1e-9, in a process of its own, so that its peak memory is its own. Mean
total variation distance of the WRITTEN table from the source over all one-way, all two-way and 200 seeded
three-way marginals of codes, with the standard error of the mean over the releases. Noise has no seed, so
nothing is paired: a mean is better or worse if it is away from the stored mean by more than two standard
errors of their difference.

``--figures`` appends a line to a CSV file after each release. Releases that it holds count, so a run that was
broken off goes on where it stopped; take a new file for other code. Such a file is what ``--against`` reads.
``independent`` is released at the largest epsilon too, for the one-way distances that are possible there.
This compares with private data: only for public tables.
"""

from __future__ import annotations

import csv
import math
import statistics
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import NamedTuple

from adaptive import adult, written
from comparison import chosen, mean_distances, variations
from harness import apart, command_line, machine, print_table
from measured_once import MEASURED_ONCE
from sweep import TABLES, table_of

DELTA = 1e-9
STORED = Path(__file__).resolve().parent / "baselines" / "accuracy.csv"
SOURCES = {"adult": adult} | {name: lambda name=name: table_of(name) for name in TABLES}
WAYS = {"one_way": "one-way", "two_way": "two-way", "three_way": "three-way"}
ERRORS = 2
"""So many standard errors of a difference are called the same."""


@dataclass(frozen=True)
class Figures:
    """One release: distances, seconds on the clock and of all cores, and peak memory in MiB."""

    table: str
    method: str
    epsilon: float
    one_way: float
    two_way: float
    three_way: float
    seconds: float
    processor: float
    mebibytes: float


class Mean(NamedTuple):
    """A mean, and its standard error: not a number for a single release."""

    value: float
    error: float


def released(table: str, method: str, epsilon: float) -> Figures:
    """One whole release."""
    warnings.simplefilter("ignore")
    made = written(SOURCES[table](), method, epsilon, DELTA)
    one = variations(made.source, made.copy, made.sizes, chosen(len(made.sizes), 1))
    two, three = mean_distances(made.source, made.copy, made.sizes)
    seconds, processor = made.watch.seconds["total"], made.watch.processor["total"]
    figures = (statistics.mean(one), two, three, seconds, processor, made.peak)
    return Figures(table, method, epsilon, *(float(f"{figure:.6g}") for figure in figures))


def stored(path: Path) -> list[Figures]:
    """The releases of a file; none if there is no file."""
    if not path.exists():
        return []
    kinds = {field.name: str if field.type == "str" else float for field in fields(Figures)}
    with path.open(newline="") as file:
        return [
            Figures(**{name: kinds[name](text) for name, text in row.items()}) for row in csv.DictReader(file)
        ]


def keep(path: Path, figures: Figures) -> None:
    """Append a release; the first line names the columns."""
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, asdict(figures), lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerow(asdict(figures))


def of_point(
    figures: Sequence[Figures], table: str, epsilon: float, method: str = "adaptive"
) -> list[Figures]:
    """The releases of one table, epsilon and method."""
    return [one for one in figures if (one.table, one.epsilon, one.method) == (table, epsilon, method)]


def mean_of(figures: Sequence[Figures], way: str) -> Mean:
    """Mean of one kind of distance."""
    values = [getattr(one, way) for one in figures]
    error = statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return Mean(statistics.mean(values), error)


def verdict(ours: Mean, theirs: Mean) -> str:
    """Where a mean is, beside a stored one; unknown if one of them is of a single release."""
    apart_by, error = ours.value - theirs.value, math.hypot(ours.error, theirs.error)
    if math.isnan(error):
        return "one release"
    if abs(apart_by) <= ERRORS * error:
        return "same"
    return "better" if apart_by < 0 else "worse"


def beside(ours: Mean, theirs: Mean | None) -> str:
    """A mean with its standard error, the stored one, the difference in percent, and the verdict."""
    cell = f"{ours.value:.4f} ± {ours.error:.4f}"
    if theirs is None:
        return cell
    percent = 100 * (ours.value / theirs.value - 1)
    error = 100 * math.hypot(ours.error, theirs.error) / theirs.value
    judged = verdict(ours, theirs)
    shown = judged if judged == "same" else f"**{judged}**"
    return f"{cell}, stored {theirs.value:.4f}: {percent:+.1f} % ± {error:.1f}, {shown}"


def peer(table: str, epsilon: float) -> str:
    """Two-way and three-way distance of AIM where it was measured."""
    two, three = MEASURED_ONCE["AIM (private-pgm)"][:2]
    return f"{two} / {three}" if (table, epsilon) == ("adult", 1) else ""


def wanted(tables: Sequence[str], epsilons: Sequence[float]) -> Iterator[tuple[str, str, float]]:
    """Points of one round; the method that measures one-way tables alone is quick."""
    for table in tables:
        yield from ((table, "adaptive", epsilon) for epsilon in epsilons)
        yield table, "independent", max(epsilons)


def accuracy_table(
    figures: Sequence[Figures], before: Sequence[Figures], tables: Sequence[str], epsilons: Sequence[float]
) -> None:
    """Distances at each epsilon."""
    rows: list[list[object]] = []
    counted: dict[str, int] = dict.fromkeys(("better", "same", "worse", "one release"), 0)
    for table in tables:
        for epsilon in epsilons:
            ours, theirs = of_point(figures, table, epsilon), of_point(before, table, epsilon)
            if not ours:
                continue
            row: list[object] = [table, f"{epsilon:g}", f"{len(ours)}, {len(theirs)}"]
            for way in WAYS:
                mean, reference = mean_of(ours, way), mean_of(theirs, way) if theirs else None
                row.append(beside(mean, reference))
                if reference is not None:
                    counted[verdict(mean, reference)] += 1
            rows.append([*row, peer(table, epsilon)])
    told = ", ".join(f"{number} {name}" for name, number in counted.items() if number)
    print_table(
        ["table", "epsilon", "releases, stored", *WAYS.values(), "AIM, two-way / three-way"],
        rows,
        f"Delta {DELTA}, mean ± standard error. {told or 'Nothing is stored'}. Of equal means of six "
        f"releases about one in fifteen is more than {ERRORS} standard errors away. {machine()}",
    )


def one_way_table(figures: Sequence[Figures], tables: Sequence[str], epsilon: float) -> None:
    """How much of the one-way distance that is possible the pairs cost."""
    rows: list[list[object]] = []
    for table in tables:
        ours, alone = (of_point(figures, table, epsilon, method) for method in ("adaptive", "independent"))
        if ours and alone:
            means = [mean_of(found, "one_way") for found in (ours, alone)]
            cells = [f"{mean.value:.5f} ± {mean.error:.5f}" for mean in means]
            rows.append([table, *cells, f"{means[0].value / means[1].value:.2f}"])
    print_table(
        ["table", "adaptive", "independent", "ratio"], rows, f"One-way distance at epsilon {epsilon:g}."
    )


def cost_table(
    figures: Sequence[Figures], before: Sequence[Figures], tables: Sequence[str], epsilon: float
) -> None:
    """Time and memory."""
    rows: list[list[object]] = []
    for table in tables:
        runs = [found for run in (figures, before) if (found := of_point(run, table, epsilon))]
        if of_point(figures, table, epsilon):
            cells = [
                " / ".join(
                    f"{statistics.median(getattr(one, name) for one in run):.{digits}f}" for run in runs
                )
                for name, digits in (("seconds", 1), ("processor", 1), ("mebibytes", 0))
            ]
            rows.append([table, *cells])
    print_table(
        ["table", "seconds", "seconds of all cores", "peak MiB"],
        rows,
        f"Medians at epsilon {epsilon:g} / of the stored run, of the first release of a process, which loads "
        "its libraries too (`adaptive.py` times later ones). Seconds depend on what else runs.",
    )


def main() -> None:
    """Release what is missing, in rounds over all points, and print the tables."""
    parser = command_line(__doc__)
    parser.add_argument("--tables", nargs="+", choices=[*SOURCES], default=[*SOURCES])
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.1, 1.0, 10.0])
    parser.add_argument("--releases", type=int, default=6)
    parser.add_argument("--figures", type=Path, help="CSV file that keeps the figures of every release")
    parser.add_argument("--against", type=Path, default=STORED)
    arguments = parser.parse_args()
    tables, epsilons = arguments.tables, arguments.epsilon
    figures = stored(arguments.figures) if arguments.figures else []
    for number in range(1, arguments.releases + 1):
        for table, method, epsilon in wanted(tables, epsilons):
            if len(of_point(figures, table, epsilon, method)) < number:
                figures.append(apart(released, table, method, epsilon))
                print(figures[-1], flush=True)
                if arguments.figures:
                    keep(arguments.figures, figures[-1])
    before = stored(arguments.against)
    accuracy_table(figures, before, tables, epsilons)
    one_way_table(figures, tables, max(epsilons))
    cost_table(figures, before, tables, min(epsilons, key=lambda epsilon: abs(math.log(epsilon))))


if __name__ == "__main__":
    main()
