"""Tables whose structure lies in many columns at once, which marginals of two columns cannot show.

    python benchmarks/high_order.py [--tables parity dense] [--methods adaptive ...] [--peers ...]
        [--epsilon 1] [--delta 1e-9] [--runs 3] [--remedies] [--picture FILE] [--target] [options of peers.py]

    parity   20 columns. Ten fair bits, five numbers in eight equal parts, and five targets: the parity of
             two, three and five of the bits, and the sign of the product of two and of three of the numbers;
             one row in ten has the other answer. Every target is independent of each single column, and those
             of three and five columns of each pair too. After the simulated tables of "Differentially Private
             Synthetic Data via APIs 4: Tabular Data" (Tran and others, 2026)
    dense    25 numbers in eight equal parts, every pair of them correlated (a covariance of six hidden
             factors), and two targets: a weighted sum of all, in eight parts, and the sign of a sum of three
             products of two. After the densely correlated tables of "Beyond One-Size-Fits-All: Neural
             Networks for Differentially Private Tabular Data Synthesis" (Chen, Gong, Wang, 2025)

50,000 rows are synthesized, 12,500 held back. Printed are mean total variation distances of 2-, 3- and 4-way
marginals; of the marginal of each planted target with its columns; and what gradient boosting that learns
from the synthetic rows is worth on the rows held back: area under the ROC curve, or R squared for the sum.
``--target`` prints instead, of each target, what the learner is worth on rows of ``auto`` without and with
``workload=`` beside what it is worth on the real rows, and the mean two-way distance of both.
``--remedies`` shows for ``parity`` what a person who knows the structure can do, by the default method.
The tables are made here from a seed. Needs scikit-learn.
"""

from __future__ import annotations

import statistics
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path

import numpy as np
from adaptive import written
from beside_peers import (
    PEAK,
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
from comparison import variations
from harness import add_methods, apart, command_line, machine, methods_wanted, print_table
from numpy.typing import NDArray
from peers import METHODS, add_peers, for_learners, print_peers

ROWS, TESTED = 50_000, 12_500
PARTS, FACTORS, FLIPPED = 8, 6, 0.1
SEED = 1
PLANTED = {
    "xor of 2": ("b0", "b1"),
    "xor of 3": ("b2", "b3", "b4"),
    "xor of 5": ("b5", "b6", "b7", "b8", "b9"),
    "product of 2": ("x0", "x1"),
    "product of 3": ("x2", "x3", "x4"),
}
"""Of the table ``parity``: targets and the columns that make them."""

NUMBERS = 25
SUM, PRODUCTS = "sum of 25", "products"
PRODUCT_COLUMNS = ("x0", "x1", "x2", "x3", "x4", "x5")
TASKS = ("parity", "dense")


@dataclass(frozen=True)
class Generated:
    """``planted``: targets with the columns whose joint marginal with them is scored."""

    columns: Mapping[str, Codes]
    sizes: Mapping[str, int]
    planted: Mapping[str, tuple[str, ...]]


def parts_of(values: NDArray[np.float64]) -> Codes:
    """Codes of parts with equally many rows."""
    ranks = values.argsort(kind="stable").argsort(kind="stable")
    return ranks * PARTS // len(values)


def parity() -> Generated:
    """Bits and signs: see the module."""
    rng = np.random.default_rng(SEED)
    total = ROWS + TESTED
    bits = {f"b{place}": rng.integers(0, 2, total) for place in range(10)}
    numbers = {f"x{place}": rng.normal(size=total) for place in range(5)}
    columns: dict[str, Codes] = {**bits, **{name: parts_of(values) for name, values in numbers.items()}}
    for target, names in PLANTED.items():
        signs = [bits[name] if name in bits else (numbers[name] > 0).astype(np.int64) for name in names]
        columns[target] = (sum(signs) + (rng.random(total) < FLIPPED)) % 2
    sizes = {name: PARTS if name in numbers else 2 for name in columns}
    return Generated(columns, sizes, PLANTED)


def dense() -> Generated:
    """Correlated numbers, a sum and products: see the module."""
    rng = np.random.default_rng(SEED)
    total = ROWS + TESTED
    loadings = rng.normal(size=(FACTORS, NUMBERS)) / FACTORS**0.5
    values = rng.normal(size=(total, FACTORS)) @ loadings + 0.5 * rng.normal(size=(total, NUMBERS))
    values /= values.std(axis=0)
    columns = {f"x{place}": parts_of(values[:, place]) for place in range(NUMBERS)}
    weighted = values @ rng.normal(size=NUMBERS)
    columns[SUM] = parts_of(weighted / weighted.std() + 0.3 * rng.normal(size=total))
    products = sum(values[:, place] * values[:, place + 1] for place in (0, 2, 4))
    columns[PRODUCTS] = (products > np.median(products)).astype(np.int64)
    sizes = {name: 2 if name == PRODUCTS else PARTS for name in columns}
    return Generated(columns, sizes, {PRODUCTS: PRODUCT_COLUMNS})


def generated(name: str) -> Generated:
    """A table by its name."""
    return {"parity": parity, "dense": dense}[name]()


def targets_of(name: str) -> list[str]:
    """Columns that are learnt."""
    return [*PLANTED] if name == "parity" else [SUM, PRODUCTS]


def task_of(name: str) -> Task:
    """A table in two parts."""
    made = generated(name)
    rows = np.stack([*made.columns.values()], axis=1)
    ordered = frozenset(column for column, size in made.sizes.items() if size == PARTS)
    return Task(name, made.sizes, ordered, rows[:ROWS], rows[ROWS:], (2, 3, 4), scores)


def scores(task: Task, copy: Codes) -> dict[str, float]:
    """Distance of each planted marginal, and what a learner of each target is worth."""
    made = generated(task.name)
    names, sizes = [*task.sizes], [*task.sizes.values()]
    found = {}
    for target, columns in made.planted.items():
        if task.name == "parity":
            axes = [names.index(column) for column in (*columns, target)]
            found[f"{target}, distance"] = variations(task.rows, copy, sizes, [axes])[0]
    for target in targets_of(task.name):
        found[worth(target)] = learnt(task, copy, target)
    return found


def worth(target: str) -> str:
    """The name of a target's figure."""
    return f"{target}, {'R2' if target == SUM else 'AUC'}"


def learnt(task: Task, copy: Codes, target: str) -> float:
    """Gradient boosting that sees every column but the targets, on the rows held back."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from sklearn.metrics import r2_score, roc_auc_score

    others = [name for name in task.sizes if name not in targets_of(task.name)]
    places = [[*task.sizes].index(name) for name in (*others, target)]
    # Every code is a number here, bits too: a tree splits both alike.
    everything = frozenset(task.sizes)
    train, test = (
        for_learners([*others, target], everything, rows[:, places], target) for rows in (copy, task.tested)
    )
    if target == SUM:
        truth, taught = task.tested[:, places[-1]], copy[:, places[-1]]
        regressor = HistGradientBoostingRegressor(random_state=0, max_iter=200).fit(train.columns, taught)
        return float(r2_score(truth, regressor.predict(test.columns)))
    if train.truth.all() or not train.truth.any():
        return 0.5
    learner = HistGradientBoostingClassifier(random_state=0, max_iter=200, max_leaf_nodes=63)
    learner.fit(train.columns, train.truth)
    return float(roc_auc_score(test.truth, learner.predict_proba(test.columns)[:, 1]))


def release(name: str, method: object, epsilon: float, delta: float) -> Made:
    """One release by a method of this project: for a process of its own."""
    warnings.simplefilter("ignore")
    return released(task_of(name), method, epsilon, delta)


def remedied(remedy: str, epsilon: float, delta: float) -> dict[str, float]:
    """Figures of ``parity`` when the table is changed before the release, and changed back after it.

    ``bijection``: the last bit of each parity is replaced by the parity itself, from which it follows again.
    ``joint``: the columns of each parity and product become one column of all their combinations.
    """
    warnings.simplefilter("ignore")
    task = task_of("parity")
    changed = _joined(task) if remedy == "joint" else _replaced(task)
    made = released(changed, "adaptive", epsilon, delta).copy
    back = _parted(task, changed, made) if remedy == "joint" else _replaced_back(task, made)
    return scores(task, back)


def _replaced(task: Task) -> Task:
    return Task(
        "changed", task.sizes, task.ordered, _replaced_back(task, task.rows), task.tested, (), task.scorer
    )


def _replaced_back(task: Task, rows: Codes) -> Codes:
    """The last bit of each parity and the parity of its bits in each other's place: its own inverse."""
    names, found = [*task.sizes], rows.copy()
    for columns in PLANTED.values():
        if columns[0].startswith("b"):
            places = [names.index(column) for column in columns]
            found[:, places[-1]] = rows[:, places].sum(axis=1) % 2
    return found


def _joined(task: Task) -> Task:
    """A column for each planted group in place of its columns; the targets stay."""
    names = [*task.sizes]
    columns, sizes = [], {}
    for target, group in PLANTED.items():
        places, shape = _group(task, group)
        columns += [
            np.ravel_multi_index(tuple(task.rows[:, places].T), shape),
            task.rows[:, names.index(target)],
        ]
        sizes |= {f"joint {target}": int(np.prod(shape)), target: 2}
    return Task("joint", sizes, frozenset(), np.stack(columns, axis=1), task.tested, (), task.scorer)


def _parted(task: Task, joint: Task, made: Codes) -> Codes:
    """The columns of a joined table, as the task has them."""
    names, found = [*task.sizes], np.empty((len(made), len(task.sizes)), dtype=np.int64)
    for target, group in PLANTED.items():
        places, shape = _group(task, group)
        codes = made[:, [*joint.sizes].index(f"joint {target}")]
        found[:, places] = np.stack(np.unravel_index(codes, shape), axis=1)
        found[:, names.index(target)] = made[:, [*joint.sizes].index(target)]
    return found


def _group(task: Task, group: Sequence[str]) -> tuple[list[int], tuple[int, ...]]:
    return [[*task.sizes].index(column) for column in group], tuple(task.sizes[column] for column in group)


def remedy_lines(columns: Sequence[str], epsilon: float, delta: float, runs: int) -> list[list[object]]:
    """Medians for each remedy."""
    rows: list[list[object]] = []
    for label, remedy in (("parity in place of a bit", "bijection"), ("one joint column a group", "joint")):
        found = [apart(remedied, remedy, epsilon, delta) for _ in range(runs)]
        medians_of = (statistics.median(run[name] for run in found) for name in columns)
        rows.append([f"adaptive, {label}", *(f"{figure:.3f}" for figure in medians_of)])
    return rows


def named(name: str, target: str, epsilon: float, delta: float, said: bool) -> tuple[float, float]:
    """What the learner of a target is worth on one release, told of it or not; and the two-way distance."""
    warnings.simplefilter("ignore")
    task = task_of(name)
    made = written(task.table(), "auto", epsilon, delta, target if said else None)
    pairs = list(combinations(range(len(task.sizes)), 2))
    distance = statistics.mean(variations(task.rows, made.copy, [*task.sizes.values()], pairs))
    return learnt(task, made.copy, target), distance


def target_lines(name: str, epsilon: float, delta: float, runs: int) -> list[list[object]]:
    """A line for each target: medians without and with it named, the best possible and the share of it."""
    rows: list[list[object]] = []
    for target in targets_of(name):
        task = task_of(name)
        best = learnt(task, task.rows, target)
        (before, apart_before), (after, apart_after) = (
            (statistics.median(own) for own in zip(*found, strict=True))
            for found in (
                [apart(named, name, target, epsilon, delta, said) for _ in range(runs)]
                for said in (False, True)
            )
        )
        share = f"{after / best:.0%}"
        figures = [f"{figure:.4f}" for figure in (apart_before, apart_after)]
        rows.append([worth(target), f"{before:.3f}", f"{after:.3f}", f"{best:.3f}", share, *figures])
        print(*rows[-1], flush=True)
    return rows


def columns_of(task: Task) -> tuple[str, ...]:
    """Figures in the order of the table."""
    groups = [f"{target}, distance" for target in PLANTED] if task.name == "parity" else []
    return ("2-way", "3-way", "4-way", *groups, *(worth(target) for target in targets_of(task.name)))


def draw(path: Path, title: str, found: Mapping[str, Sequence[Mapping[str, object]]]) -> None:
    """Of each synthesizer, what its rows teach about targets of two, three and five columns."""
    shown = {2: "xor of 2", 3: "xor of 3", 5: "xor of 5"}
    lines = {
        label: [(number, medians(runs, worth(target))) for number, target in shown.items()]
        for label, runs in found.items()
    }
    write_chart(path, title, "columns of the parity", "area under the ROC curve", lines)


def main() -> None:
    """Print a table for each task and epsilon."""
    parser = command_line(__doc__)
    add_methods(parser, METHODS)
    add_peers(parser, ())
    parser.add_argument("--tables", nargs="+", choices=TASKS, default=[*TASKS])
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0])
    parser.add_argument("--delta", type=float, default=1e-9)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument(
        "--remedies", action="store_true", help="what a person who knows the structure can do"
    )
    parser.add_argument("--target", action="store_true", help="each target by name, beside the best possible")
    parser.add_argument("--picture", type=Path, help="an SVG: parities of the first epsilon")
    arguments = parser.parse_args()
    if find_spec("sklearn") is None:
        print("Skipped: scikit-learn is not installed (pip install 'dpsyn_sql[benchmarks]').")
        return
    if arguments.target:
        header = ["target", "auto", "auto, target", "real rows", "share", "2-way", "2-way, target"]
        for epsilon in arguments.epsilon:
            for name in arguments.tables:
                lines = target_lines(name, epsilon, arguments.delta, arguments.runs)
                print_table(header, lines, f"{name}, epsilon {epsilon:g}, {arguments.runs} runs; {machine()}")
        return
    wanted = methods_wanted(arguments.methods, arguments.variants)
    results = Results(arguments.results)
    bounds = (arguments.cache, arguments.install_limit, arguments.limit)
    for epsilon in arguments.epsilon:
        spent = (epsilon, arguments.delta, arguments.runs)
        for task in map(task_of, arguments.tables):
            found = compared(task, release, wanted, arguments.peers, *spent, results, bounds)
            columns = (*columns_of(task), WALL, PROCESSOR, PEAK)
            rows, reasons = table_lines(found, columns)
            print_table(
                ["synthesizer", *columns, "runs"],
                rows,
                f"{task.name}, {ROWS:,} rows, epsilon {epsilon:g}, delta {arguments.delta:g}; {machine()}",
            )
            print_peers(found, reasons)
            if task.name == "parity" and arguments.remedies:
                scored = columns_of(task)[3:]
                print_table(["synthesizer", *scored], remedy_lines(scored, *spent))
            if task.name == "parity" and arguments.picture is not None and epsilon == arguments.epsilon[0]:
                draw(arguments.picture, f"Parities, epsilon {epsilon:g}", found)


if __name__ == "__main__":
    main()
