"""The figures of PrivBayes on Adult: distances of marginals, and four classifiers trained on synthetic rows.

    python benchmarks/classifiers.py [--methods privbayes adaptive] [--variants "privbayes score=I"]
        [--epsilon 0.05 0.1 0.2 0.4 0.8 1.6] [--delta 0] [--seeds 3] [--quick]

A release is made of 80 % of the rows of Adult discretised (seeded). A linear support vector machine with
hinge loss and C = 1, on one-hot codes of the other attributes, learns each of four targets from the written
table: sex (male), education (a degree after school), salary (above 50K) and marital status (never married),
as the paper does. The other 20 % of the real rows give its misclassification. The paper promises pure
epsilon, so delta is 0 unless another one is given; its own figures are curves without numbers, and its table
has 45,222 rows and 15 attributes. Two lines bound what is possible: the same classifier trained on the real
rows, and the commonest answer for everybody.

Needs scikit-learn (``pip install '.[benchmarks]'``). This compares with private data: only for public tables.
"""

from __future__ import annotations

import statistics
import warnings
from collections.abc import Mapping
from dataclasses import replace
from importlib.util import find_spec

import duckdb
import numpy as np
from adaptive import Table, adult, written
from comparison import codes_of, mean_distances
from harness import add_methods, apart, command_line, machine, methods_wanted, print_table
from numpy.typing import NDArray

from dpsyn_sql.evaluation.learning import support_vector_machine

TARGETS: Mapping[str, tuple[str, int, int]] = {
    "education": ("education-num", 10, 15),
    "salary": ("income>50K", 1, 1),
    "marital status": ("marital-status", 2, 2),
    "gender": ("sex", 1, 1),
}
"""Of each classifier the attribute, and the codes (first and last) of those who have the property."""

TEST_SHARE, SPLIT_SEED = 0.2, 0
Codes = NDArray[np.int64]


def rows_of(table: Table) -> tuple[list[str], list[int], Codes]:
    """Names and sizes of the attributes, and all rows."""
    with duckdb.connect() as con:
        table.load(con)
        (rows,), sizes = codes_of(con, ("source",), table.scored)
    return [*table.scored], sizes, rows


def split(rows: Codes) -> tuple[Codes, Codes]:
    """Rows to learn from and rows to test on, the same ones every time."""
    order = np.random.default_rng(SPLIT_SEED).permutation(len(rows))
    tests = round(TEST_SHARE * len(rows))
    return rows[order[tests:]], rows[order[:tests]]


def training_table(table: Table) -> Table:
    """The table of the rows to learn from alone."""
    names, _, rows = rows_of(table)
    kept, _ = split(rows)

    def load(con: duckdb.DuckDBPyConnection) -> None:
        con.register("kept", {name: kept[:, place] for place, name in enumerate(names)})
        con.execute("CREATE TABLE source AS FROM kept")
        con.unregister("kept")

    return replace(table, load=load)


def one_hot(rows: Codes, sizes: list[int], without: int) -> object:
    """A sparse matrix: a column for each code of each attribute but one."""
    from scipy.sparse import csr_matrix

    places = [place for place in range(len(sizes)) if place != without]
    starts = np.cumsum([0, *(sizes[place] for place in places)])
    columns = rows[:, places] + starts[:-1]
    pointers = np.arange(len(rows) + 1) * len(places)
    return csr_matrix((np.ones(columns.size), columns.ravel(), pointers), shape=(len(rows), int(starts[-1])))


def misclassified(learnt: Codes, tested: Codes, names: list[str], sizes: list[int]) -> dict[str, float]:
    """Share of the tested rows that each classifier gets wrong."""
    found = {}
    for target, (name, first, last) in TARGETS.items():
        place = names.index(name)
        truth, taught = ((first <= rows[:, place]) & (rows[:, place] <= last) for rows in (tested, learnt))
        if taught.all() or not taught.any():  # noise left one class: there is nothing to learn
            found[target] = float((truth != taught.all()).mean())
            continue
        machine_ = support_vector_machine()
        machine_.fit(one_hot(learnt, sizes, place), taught)
        found[target] = float((machine_.predict(one_hot(tested, sizes, place)) != truth).mean())
    return found


def measured(method: object, epsilon: float, delta: float) -> list[float]:
    """Two-way and three-way distance from the rows learnt from, then the four misclassifications."""
    warnings.simplefilter("ignore")
    names, sizes, rows = rows_of(adult())
    learnt, tested = split(rows)
    made = written(training_table(adult()), method, epsilon, delta)
    errors = misclassified(made.copy, tested, names, sizes)
    return [*mean_distances(learnt, made.copy, sizes), *errors.values()]


def bounds() -> dict[str, list[float]]:
    """What the real rows teach, and what no row teaches."""
    warnings.simplefilter("ignore")
    names, sizes, rows = rows_of(adult())
    learnt, tested = split(rows)
    guessed = []
    for name, first, last in TARGETS.values():
        codes = tested[:, names.index(name)]
        share = float(((first <= codes) & (codes <= last)).mean())
        guessed.append(min(share, 1 - share))
    return {
        "the real rows, no privacy": [*misclassified(learnt, tested, names, sizes).values()],
        "the commonest answer": guessed,
    }


def main() -> None:
    """Print a table for each epsilon."""
    parser = command_line(__doc__)
    add_methods(parser)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.05, 0.1, 0.2, 0.4, 0.8, 1.6])
    parser.add_argument("--delta", type=float, default=0.0)
    parser.add_argument("--seeds", type=int, default=3, help="releases of each")
    parser.add_argument("--quick", action="store_true", help="one release of each at epsilon 0.8")
    arguments = parser.parse_args()
    if find_spec("sklearn") is None:
        print("Skipped: scikit-learn is not installed (pip install 'dpsyn_sql[benchmarks]').")
        return
    if arguments.quick:
        arguments.epsilon, arguments.seeds = [0.8], 1
    wanted = methods_wanted(arguments.methods, arguments.variants)
    header = ["epsilon", "learnt from", "2-way", "3-way", *TARGETS]
    rows: list[list[object]] = []
    for epsilon in arguments.epsilon:
        for label, method in wanted.items():
            runs = [apart(measured, method, epsilon, arguments.delta) for _ in range(arguments.seeds)]
            figures = [statistics.median(column) for column in zip(*runs, strict=True)]
            rows.append([f"{epsilon:g}", label, *(f"{figure:.4f}" for figure in figures)])
            print(" ".join(map(str, rows[-1])), flush=True)
    for label, errors in apart(bounds).items():
        rows.append(["", label, "", "", *(f"{error:.4f}" for error in errors)])
    print_table(
        header,
        rows,
        f"Adult discretised, delta {arguments.delta:g}, medians of {arguments.seeds} releases; {machine()}",
    )


if __name__ == "__main__":
    main()
