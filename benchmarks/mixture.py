"""Rows of hidden groups: ``method="mixture"`` beside the default method and rows drawn anew.

    python benchmarks/mixture.py [--tables groups adult german_credit] [--epsilon 1] [--runs 3]

    groups         50,000 rows, 20 columns of 2 to 5 codes, independent within each of six groups, made here
    adult          Adult discretised: 48,842 rows, 14 attributes of codes, target ``income>50K``
    german_credit  1,000 rows, 21 columns, target ``credit``

Of the first two: mean total variation distances of the WRITTEN table from the source over up to 400 marginals
of two, three and four columns, beside a fresh sample of as many rows of the same groups. Of the last two: the
accuracy of a support vector machine that learns from a release of 70 % of the rows and is judged by the
others, beside one that learns from real rows and the larger class. This compares with private data: only for
public tables. Needs scikit-learn for the accuracy.
"""

from __future__ import annotations

import argparse
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
from harness import DATA, apart, machine, need, print_table
from numpy.typing import NDArray
from real_tables import REAL_TABLES

import dpsyn_sql

Codes = NDArray[np.int64]

ROWS, COLUMNS, GROUPS = 50_000, 20, 6
SEED, CONCENTRATION, LEVELLED = 3, 0.5, 4.0
"""Of the groups: their profiles are Dirichlet of this concentration, their sizes of ``LEVELLED``."""

SETS = 400
LEARNT = 0.7

TARGETS = {"adult": "income>50K", "german_credit": "credit"}
METHODS: dict[str, dict[str, dict[str, Any]]] = {
    "groups": {
        "auto": {"method": "auto"},
        "mixture": {"method": "mixture"},
        "mixture, kmeans": {"method": {"name": "mixture", "by": "kmeans"}},
        "mixture, 30 components": {"method": {"name": "mixture", "components": 30}},
    },
    "adult": {
        "auto": {"method": "auto"},
        "auto, target": {"method": "auto", "target": True},
        "mixture": {"method": "mixture"},
        "mixture, 30 components": {"method": {"name": "mixture", "components": 30}},
        "mixture, target": {"method": "mixture", "target": True},
        "mixture, kmeans": {"method": {"name": "mixture", "by": "kmeans"}},
    },
    "german_credit": {
        "auto": {"method": "auto"},
        "auto, target": {"method": "auto", "target": True},
        "mixture, target": {"method": "mixture", "target": True},
    },
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
    return wanted | ({"target": TARGETS[name]} if "target" in wanted else {})


def parts(name: str, run: int) -> tuple[pd.DataFrame, pd.DataFrame, dict[str, Any]]:
    """Rows to release, rows held back, and what is declared about them."""
    with duckdb.connect() as con:
        if name == "adult":
            table = adult()
            table.load(con)
            rows, declared = con.execute("FROM source").df(), dict(table.domain or {})
        else:
            real = REAL_TABLES[name]
            real.load(con, need(DATA / real.path).parent.parent)
            rows, declared = con.execute(f"FROM {name}").df(), real.declared()
    order = np.random.default_rng(run).permutation(len(rows))
    kept = int(LEARNT * len(rows))
    return rows.iloc[order[:kept]], rows.iloc[order[kept:]], declared


def accuracy(name: str, learnt: pd.DataFrame, tested: pd.DataFrame) -> float:
    """Of a support vector machine: numbers on a common scale, every category a column."""
    from sklearn.compose import make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler
    from sklearn.svm import SVC, LinearSVC

    target = TARGETS[name]
    truth, taught = tested[target].astype(str), learnt[target].astype(str)
    if taught.nunique() < 2:
        return float((truth == taught.iloc[0]).mean())
    others = [column for column in tested if column != target]
    numbers = [c for c in others if pd.api.types.is_numeric_dtype(tested[c]) and tested[c].nunique() > 10]
    categories = [column for column in others if column not in numbers]
    coded = make_column_transformer(
        (StandardScaler(), numbers), (OneHotEncoder(handle_unknown="ignore"), categories)
    )
    learner = make_pipeline(coded, SVC() if len(learnt) < 10_000 else LinearSVC())
    frames = [
        frame[others].astype(dict.fromkeys(numbers, float) | dict.fromkeys(categories, str))
        for frame in (learnt, tested)
    ]
    return float((learner.fit(frames[0], taught).predict(frames[1]) == truth).mean())


def of_learner(name: str, wanted: dict[str, Any], epsilon: float, delta: float, run: int) -> float:
    """Accuracy on the rows held back of what a release teaches."""
    warnings.simplefilter("ignore")
    learnt, tested, declared = parts(name, run)
    with tempfile.TemporaryDirectory() as folder, duckdb.connect() as con:
        con.register("kept", learnt)
        con.execute("CREATE TABLE source AS FROM kept")
        dpsyn_sql.release(
            con,
            "source",
            into="copy",
            epsilon=epsilon,
            delta=delta,
            domain=declared,
            ledger=Path(folder) / "ledger",
            **with_target(name, wanted),
        )
        return accuracy(name, con.execute("FROM copy").df(), tested)


def of_real(name: str, run: int) -> tuple[float, float]:
    """Accuracy of what real rows teach, and of the larger class."""
    learnt, tested, _ = parts(name, run)
    shares = tested[TARGETS[name]].value_counts(normalize=True)
    return accuracy(name, learnt, tested), float(shares.max())


def learners(name: str, epsilon: float, delta: float, runs: int) -> None:
    """Print the accuracies of one table."""
    real = [apart(of_real, name, run) for run in range(runs)]
    rows: list[list[object]] = [
        ["real rows, no privacy", *spread([one for one, _ in real])],
        ["the larger class", *spread([one for _, one in real])],
    ]
    for label, wanted in METHODS[name].items():
        found = [apart(of_learner, name, wanted, epsilon, delta, run) for run in range(runs)]
        rows.append([label, *spread(found)])
    caption = f"{name}, epsilon {epsilon:g}, delta {delta:g}, {runs} splits; {machine()}"
    print_table(["rows", "accuracy", "deviation"], rows, caption)


def spread(found: list[float]) -> list[object]:
    """Mean and deviation."""
    return [f"{statistics.fmean(found):.3f}", f"{statistics.stdev(found) if len(found) > 1 else 0:.3f}"]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tables", nargs="+", choices=[*METHODS], default=[*METHODS])
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0])
    parser.add_argument("--delta", type=float, default=1e-9)
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    for epsilon in arguments.epsilon:
        for name in arguments.tables:
            if name != "german_credit":
                rows: list[list[object]] = []
                if name == "groups":
                    table, fresh, sizes = groups()
                    figures = distances(table, fresh, sizes)
                    rows.append(["a fresh sample, no privacy", *(f"{one:.4f}" for one in figures), ""])
                for label, wanted in METHODS[name].items():
                    runs = [
                        apart(of_codes, name, wanted, epsilon, arguments.delta) for _ in range(arguments.runs)
                    ]
                    means = [statistics.fmean(own) for own in zip(*runs, strict=True)]
                    rows.append([label, *(f"{one:.4f}" for one in means[:3]), f"{means[3]:.1f}"])
                caption = f"{name}, epsilon {epsilon:g}, delta {arguments.delta:g}, "
                caption += f"mean of {arguments.runs} releases; {machine()}"
                print_table(["rows", "2-way", "3-way", "4-way", "seconds"], rows, caption)
            if name != "groups" and find_spec("sklearn") is not None:
                learners(name, epsilon, arguments.delta, arguments.runs)


if __name__ == "__main__":
    main()
