"""Rows of hidden groups: ``method="mixture"`` beside the default method and rows drawn anew.

    python benchmarks/mixture.py [--tables groups adult adult_all german_credit] [--epsilon 1] [--runs 3]

    groups         50,000 rows, 20 columns of 2 to 5 codes, independent within each of six groups, made here
    adult          Adult discretised: 48,842 rows, 14 attributes of codes
    adult_all      Adult as published, target ``income``
    german_credit  1,000 rows, 21 columns, target ``credit``

Of the first two: mean total variation distances of the WRITTEN table from the source over up to 400 marginals
of two, three and four columns, beside a fresh sample of as many rows of the same groups. Of the last two: the
accuracy of a linear support vector machine, as in the report "in the wild", that learns from a
release of 70 % of the rows and is judged by the others. This compares with private data: only for public
tables. Needs scikit-learn for the accuracy.
"""

from __future__ import annotations

import statistics
import tempfile
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
from adaptive import Table, adult, codes_declared, written
from comparison import chosen, variations
from harness import apart, command_line, machine, print_table
from numpy.typing import NDArray
from papers.wild import domain, split, truth

import dpsyn_sql

Codes = NDArray[np.int64]

ROWS, COLUMNS, GROUPS = 50_000, 20, 6
SEED, CONCENTRATION, LEVELLED = 3, 0.5, 4.0
"""Of the groups: their profiles are Dirichlet of this concentration, their sizes of ``LEVELLED``."""

SETS = 400

CODES = ("groups", "adult")
TARGETS = {"adult": "income>50K", "adult_all": "income", "german_credit": "credit"}
_OF_A_TARGET: dict[str, dict[str, Any]] = {
    "auto": {"method": "auto"},
    "auto, target": {"method": "auto", "workload": True},
    "mixture, target": {"method": "mixture", "workload": True},
}
METHODS: dict[str, dict[str, dict[str, Any]]] = {
    "groups": {
        "auto": {"method": "auto"},
        "mixture": {"method": "mixture"},
        "mixture, kmeans": {"method": {"name": "mixture", "by": "kmeans"}},
        "mixture, 30 components": {"method": {"name": "mixture", "components": 30}},
    },
    "adult": {
        "auto": {"method": "auto"},
        "mixture": {"method": "mixture"},
        "mixture, 30 components": {"method": {"name": "mixture", "components": 30}},
        "mixture, target": {"method": "mixture", "workload": True},
        "mixture, kmeans": {"method": {"name": "mixture", "by": "kmeans"}},
    },
    "adult_all": _OF_A_TARGET,
    "german_credit": _OF_A_TARGET,
}


def groups() -> tuple[Codes, Codes, list[int]]:
    """The table, a fresh sample of as many rows, and the number of codes of each column."""
    rng = np.random.default_rng(SEED)
    sizes = rng.integers(2, 6, COLUMNS)
    shares = rng.dirichlet(np.full(GROUPS, LEVELLED))
    profiles = [rng.dirichlet(np.full(size, CONCENTRATION), GROUPS) for size in sizes]

    def drawn() -> Codes:
        group = rng.choice(GROUPS, ROWS, p=shares)
        columns = [
            (rng.random(ROWS)[:, None] > np.cumsum(own[group], axis=1)).sum(axis=1).clip(0, size - 1)
            for own, size in zip(profiles, sizes, strict=True)
        ]
        return np.stack(columns, axis=1)

    return drawn(), drawn(), sizes.tolist()


def as_table(rows: Codes, sizes: list[int]) -> Table:
    """As the methods take it."""
    named = {f"x{place}": size for place, size in enumerate(sizes)}

    def load(con: duckdb.DuckDBPyConnection) -> None:
        con.register("kept", {name: rows[:, place] for place, name in enumerate(named)})
        con.execute("CREATE TABLE source AS FROM kept")
        con.unregister("kept")

    return Table(load, codes_declared(named, set()), named)


def distances(real: Codes, copy: Codes, sizes: list[int]) -> list[float]:
    """Means over marginals of two, three and four columns."""
    found = []
    for ways in (2, 3, 4):
        sets = chosen(len(sizes), ways, SETS)
        found.append(statistics.fmean(variations(real, copy, sizes, sets)))
    return found


def of_codes(name: str, wanted: dict[str, Any], epsilon: float, delta: float) -> list[float]:
    """Distances and seconds of one release of a table of codes."""
    warnings.simplefilter("ignore")
    table = as_table(groups()[0], groups()[2]) if name == "groups" else adult()
    made = written(table, epsilon=epsilon, delta=delta, **with_target(name, wanted))
    return [*distances(made.source, made.copy, made.sizes), made.watch.seconds["total"]]


def with_target(name: str, wanted: dict[str, Any]) -> dict[str, Any]:
    """The target by its name."""
    return wanted | ({"workload": TARGETS[name]} if "workload" in wanted else {})


def of_learner(name: str, wanted: dict[str, Any], epsilon: float, delta: float) -> list[float]:
    """Accuracy, and its mean over the classes, on the rows held back of what a release teaches."""
    warnings.simplefilter("ignore")
    learnt, tested = split(name)
    with tempfile.TemporaryDirectory() as folder, duckdb.connect() as con:
        con.register("kept", learnt)
        con.execute("CREATE TABLE source AS FROM kept")
        dpsyn_sql.release(
            con,
            "source",
            into="copy",
            epsilon=epsilon,
            delta=delta,
            domain=domain(name),
            ledger=Path(folder) / "ledger",
            **with_target(name, wanted),
        )
        return judged(name, con.execute("FROM copy").df(), tested)


def judged(name: str, learnt: pd.DataFrame, tested: pd.DataFrame) -> list[float]:
    """Share that a linear support vector machine gets right, and its mean over the classes."""
    from sklearn.compose import make_column_transformer
    from sklearn.metrics import accuracy_score, balanced_accuracy_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler
    from sklearn.svm import LinearSVC

    taught, wanted = truth(name, learnt), truth(name, tested)
    inputs, asked = (frame.drop(columns=TARGETS[name]) for frame in (learnt, tested))
    numbers = [column for column in inputs if pd.api.types.is_numeric_dtype(inputs[column])]
    texts = [column for column in inputs if column not in numbers]
    coded = make_column_transformer(
        (StandardScaler(), numbers), (OneHotEncoder(handle_unknown="ignore"), texts)
    )
    guessed = np.full(len(tested), taught.all())
    if taught.any() and not taught.all():  # noise can leave one class alone
        learner = make_pipeline(coded, LinearSVC(loss="hinge", random_state=0, max_iter=5000))
        guessed = learner.fit(inputs, taught).predict(asked)
    return [float(accuracy_score(wanted, guessed)), float(balanced_accuracy_score(wanted, guessed))]


def learners(name: str, epsilon: float, delta: float, runs: int) -> None:
    """Print the accuracies of one table."""
    learnt, tested = split(name)
    share = float(truth(name, tested).mean())
    rows: list[list[object]] = [
        ["real rows, no privacy", *(f"{one:.3f}" for one in judged(name, learnt, tested)), ""],
        ["the larger class", f"{max(share, 1 - share):.3f}", "0.500", ""],
    ]
    for label, wanted in METHODS[name].items():
        found = [apart(of_learner, name, wanted, epsilon, delta) for _ in range(runs)]
        means = [statistics.fmean(own) for own in zip(*found, strict=True)]
        spread = statistics.stdev(one for one, _ in found) if runs > 1 else 0.0
        rows.append([label, *(f"{one:.3f}" for one in means), f"{spread:.3f}"])
    caption = f"{name}, epsilon {epsilon:g}, delta {delta:g}, {runs} releases; {machine()}"
    print_table(["rows", "accuracy", "balanced", "deviation"], rows, caption)


def of_distances(name: str, epsilon: float, delta: float, runs: int) -> None:
    """Print the distances of one table of codes."""
    rows: list[list[object]] = []
    if name == "groups":
        table, fresh, sizes = groups()
        rows.append(
            ["a fresh sample, no privacy", *(f"{one:.4f}" for one in distances(table, fresh, sizes)), ""]
        )
    for label, wanted in METHODS[name].items():
        found = [apart(of_codes, name, wanted, epsilon, delta) for _ in range(runs)]
        means = [statistics.fmean(own) for own in zip(*found, strict=True)]
        rows.append([label, *(f"{one:.4f}" for one in means[:3]), f"{means[3]:.1f}"])
    caption = f"{name}, epsilon {epsilon:g}, delta {delta:g}, mean of {runs} releases; {machine()}"
    print_table(["rows", "2-way", "3-way", "4-way", "seconds"], rows, caption)


def main() -> None:
    """Print the tables."""
    parser = command_line(__doc__)
    parser.add_argument("--tables", nargs="+", choices=[*METHODS], default=[*METHODS])
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0])
    parser.add_argument("--delta", type=float, default=1e-9)
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    for epsilon in arguments.epsilon:
        for name in arguments.tables:
            if name in CODES:
                of_distances(name, epsilon, arguments.delta, arguments.runs)
            elif find_spec("sklearn") is not None:
                learners(name, epsilon, arguments.delta, arguments.runs)


if __name__ == "__main__":
    main()
