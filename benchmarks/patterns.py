"""Patterns of many columns in one table: what this version reaches, its aim, and the best possible.

    python benchmarks/patterns.py [--runs 3] [--lines parity dense groups adult german]

The tables and learners are those of ``high_order.py``, ``mixture.py`` and ``target.py``, epsilon 1 and delta
1e-9, and 4 for German Credit. Aims of a learner's area under the curve are parts of what the real rows teach
it, where one row in ten has the other answer. "Best" is what the real rows or a fresh sample of as many rows
give. Needs scikit-learn.
"""

from __future__ import annotations

import statistics
import warnings
from collections.abc import Callable
from importlib.util import find_spec

import high_order
import mixture
import target
from harness import apart, command_line, machine, print_table
from papers.wild import split

EPSILON, DELTA = 1.0, 1e-9
PARITY_AIMS = {"xor of 2": 0.98, "xor of 3": 0.95, "xor of 5": 0.85}
"""Parts of the best possible area under the curve."""

Line = tuple[str, float, str, float]
"""What, the figure, its aim, the best possible."""


def parity() -> list[Line]:
    """One release of all planted targets, none of them named."""
    warnings.simplefilter("ignore")
    task = high_order.task_of("parity")
    copy = high_order.release("parity", "auto", EPSILON, DELTA).copy
    found = []
    for name in high_order.PLANTED:
        area, best = (high_order.learnt(task, rows, name) for rows in (copy, task.rows))
        aim = f">= {PARITY_AIMS[name] * best:.3f}" if name in PARITY_AIMS else "-"
        found.append((f"{name}: AUC", area, aim, best))
    return found


def dense() -> list[Line]:
    """Each target by name."""
    task, found = high_order.task_of("dense"), []
    for name, aim in ((high_order.PRODUCTS, ">= 0.85"), (high_order.SUM, ">= 0.78")):
        reached, _distance = high_order.named("dense", name, EPSILON, DELTA, said=True)
        found.append((high_order.worth(name), reached, aim, high_order.learnt(task, task.rows, name)))
    return found


def groups() -> list[Line]:
    """Four-way distance of rows of six hidden groups."""
    table, fresh, sizes = mixture.groups()
    best = mixture.distances(table, fresh, sizes)[2]
    return [
        (
            f"six groups by {name}: four-way distance",
            mixture.of_codes("groups", {"method": name}, EPSILON, DELTA)[2],
            aim,
            best,
        )
        for name, aim in (("mixture", "<= 0.022"), ("auto", "<= 0.027"))
    ]


def adult() -> list[Line]:
    """Distances without a target, and what boosting learns with one."""
    two, three, _four, seconds = mixture.of_codes("adult", {"method": "auto"}, EPSILON, DELTA)
    _logistic, boosting, own, _others = target.measured("adult_all", "adaptive", "target", EPSILON)
    real = target.real_areas("adult_all")[1]
    nothing = float("nan")
    return [
        ("Adult: two-way distance", two, "0.0265", nothing),
        ("Adult: three-way distance", three, "0.0667", nothing),
        ("Adult: seconds", seconds, "-", nothing),
        ("Adult, target: AUC of boosting", boosting, ">= 0.910", real),
        ("Adult, target: two-way distance of its pairs", own, "-", nothing),
    ]


def german() -> list[Line]:
    """A linear support vector machine at epsilon 4."""
    learnt, tested = split("german_credit")
    best = mixture.judged("german_credit", learnt, tested)[0]
    wanted = {"method": "mixture", "workload": True}
    reached = mixture.of_learner("german_credit", wanted, 4.0, DELTA)[0]
    return [("German Credit, epsilon 4, mixture with a target: SVM", reached, ">= 0.74", best)]


LINES: dict[str, Callable[[], list[Line]]] = {
    "parity": parity,
    "dense": dense,
    "groups": groups,
    "adult": adult,
    "german": german,
}


def main() -> None:
    """Print one table."""
    parser = command_line(__doc__)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--lines", nargs="+", choices=[*LINES], default=[*LINES])
    arguments = parser.parse_args()
    if find_spec("sklearn") is None:
        print("Skipped: scikit-learn is not installed (pip install 'dpsyn_sql[benchmarks]').")
        return
    rows: list[list[object]] = []
    for name in arguments.lines:
        runs = [apart(LINES[name]) for _ in range(arguments.runs)]
        for lines in zip(*runs, strict=True):
            what, _reached, aim, best = lines[0]
            reached = [figure for _, figure, _, _ in lines]
            spread = f"{min(reached):.4f} to {max(reached):.4f}"
            shown = "" if best != best else f"{best:.4f}"
            rows.append([what, f"{statistics.median(reached):.4f}", spread, aim, shown])
            print(*rows[-1], sep="; ", flush=True)
    caption = f"Medians of {arguments.runs} releases; {machine()}"
    print_table(["what", "reached", "from, to", "aim", "best"], rows, caption)


if __name__ == "__main__":
    main()
