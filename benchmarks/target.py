"""What a target brings: classifiers learn from synthetic rows, and real rows judge them.

    python benchmarks/target.py [--tables adult_all diabetes_130 german_credit]
        [--methods adaptive dpsyn privbayes] [--weights 1 target] [--epsilon 1] [--runs 3] [--real]

A release is made of about 80 % of the privacy units (by a hash of the unit, or of the row), with the domain
file of ``domains/``. Logistic regression and gradient boosting (those of ``dpsyn_sql.evaluate``) learn from
the written table; the area under the curve (AUC) is that of the other units' real rows.
``--weights``: 1 is no workload, ``target`` and any other number stand for the column in ``workload=``.
``--real`` adds the classifiers that learn from the real rows.

Also printed: the mean total variation distance of all pairs with the target, and of all other pairs, between
the written rows and those they were made of (numbers on ten bins of equal frequency). This compares with
private data: only for public tables.
"""

from __future__ import annotations

import statistics
import tempfile
import warnings
from collections.abc import Mapping
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
from harness import DATA, apart, command_line, machine, need, print_table
from numpy.typing import NDArray
from real_tables import REAL_TABLES

import dpsyn_sql
from dpsyn_sql.evaluation.learning import Examples, class_scores, classifiers

TARGETS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "adult_all": ("income", (">50K",)),
    "diabetes_130": ("readmitted", ("<30", ">30")),
    "german_credit": ("credit", ("2",)),
}
"""Of each table the target, and the values of those who have the property."""

LEFT_OUT = {"adult_all": ("split", "education_num", "fnlwgt"), "diabetes_130": ("encounter_id",)}
"""Keys, and what says nothing about people."""

BINS = 10


def halves(name: str, con: duckdb.DuckDBPyConnection) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Real rows to release, in the table ``source``, and rows held back."""
    table = REAL_TABLES[name]
    table.load(con, need(DATA / table.path).parent.parent)
    unit = f'"{table.unit}"' if table.unit else "rowid"
    held = f"hash({unit}) % 5 = 0"
    con.execute(f"CREATE TEMP TABLE held AS FROM {name} WHERE {held}")
    con.execute(f"DELETE FROM {name} WHERE {held}")
    return con.execute(f"FROM {name}").df(), con.execute("FROM held").df()


def options(name: str, weight: str) -> dict[str, Any]:
    """How a weight is asked for."""
    target = TARGETS[name][0]
    return {} if weight == "1" else {"workload": {target: weight}}


def columns(name: str, frame: pd.DataFrame) -> list[str]:
    """What a classifier learns from."""
    table = REAL_TABLES[name]
    skipped = {TARGETS[name][0], table.unit, *LEFT_OUT.get(name, ())}
    return [column for column in frame if column not in skipped]


def areas(name: str, learnt: pd.DataFrame, tested: pd.DataFrame) -> list[float]:
    """AUC of logistic regression and of gradient boosting; 0.5 where noise left one class."""
    target, property_ = TARGETS[name]
    used = columns(name, tested)
    numbers = [c for c in used if pd.api.types.is_numeric_dtype(tested[c])]
    taught, judged = (
        Examples(
            pd.DataFrame({c: frame[c].astype(float if c in numbers else object) for c in used}),
            frame[target].astype(str).isin(property_).to_numpy(),
        )
        for frame in (learnt, tested)
    )
    made = classifiers(taught.columns)
    return [class_scores(made[learner], taught, judged)["auc"] for learner in ("logistic", "boosting")]


def pair_distances(name: str, real: pd.DataFrame, copy: pd.DataFrame) -> list[float]:
    """Mean distance of the pairs with the target, and of the others."""
    target = TARGETS[name][0]
    coded = {c: coded_alike(real[c], copy[c]) for c in [target, *columns(name, real)]}
    found: dict[bool, list[float]] = {True: [], False: []}
    for one, other in combinations(coded, 2):
        size = max(map(np.max, coded[other])) + 1
        cells = (max(map(np.max, coded[one])) + 1) * size
        shares = [
            np.bincount(a * size + b, minlength=cells) / len(a)
            for a, b in zip(coded[one], coded[other], strict=True)
        ]
        found[one == target].append(0.5 * float(np.abs(shares[0] - shares[1]).sum()))
    return [statistics.fmean(found[True]), statistics.fmean(found[False])]


def coded_alike(real: pd.Series[Any], copy: pd.Series[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The codes of two columns: values as they are, or bins."""
    if pd.api.types.is_numeric_dtype(real) and real.nunique() > 2 * BINS:
        cuts = np.unique(np.nanquantile(real.astype(float), np.arange(1, BINS) / BINS))
        return tuple(np.searchsorted(cuts, c.astype(float).fillna(0), "right") for c in (real, copy))  # type: ignore[return-value]
    codes, _ = pd.factorize(pd.concat([real, copy]).astype(str), use_na_sentinel=False)
    return codes[: len(real)], codes[len(real) :]


def measured(name: str, method: str, weight: str, epsilon: float) -> list[float]:
    """Both areas and both distances of one release."""
    warnings.simplefilter("ignore")
    table = REAL_TABLES[name]
    with tempfile.TemporaryDirectory() as folder, duckdb.connect(str(Path(folder) / "a.duckdb")) as con:
        real, tested = halves(name, con)
        dpsyn_sql.release(
            con,
            name,
            into="copy",
            method=method,
            epsilon=epsilon,
            domain=table.domain,
            ledger=Path(folder) / "ledger",
            **table.protects,
            **options(name, weight),
        )
        copy = con.execute("FROM copy").df()
    return [*areas(name, copy, tested), *pair_distances(name, real, copy)]


def real_areas(name: str) -> list[float]:
    """The areas of the classifiers that learn from the real rows."""
    warnings.simplefilter("ignore")
    with duckdb.connect() as con:
        return areas(name, *halves(name, con))


def main() -> None:
    """Print a row for each table, method and weight."""
    parser = command_line(__doc__)
    parser.add_argument("--tables", nargs="+", choices=[*TARGETS], default=[*TARGETS])
    parser.add_argument("--methods", nargs="+", default=["adaptive", "dpsyn", "privbayes"])
    parser.add_argument("--weights", nargs="+", default=["1", "target"])
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--real", action="store_true")
    arguments = parser.parse_args()
    if find_spec("sklearn") is None:
        print("Skipped: scikit-learn is not installed (pip install 'dpsyn_sql[benchmarks]').")
        return
    rows: list[list[object]] = []
    for name in arguments.tables:
        if arguments.real:
            rows.append(
                [name, "", "real rows", "", *(f"{area:.3f}" for area in apart(real_areas, name)), "", ""]
            )
        for epsilon in arguments.epsilon:
            for method in arguments.methods:
                for weight in arguments.weights:
                    runs = [apart(measured, name, method, weight, epsilon) for _ in range(arguments.runs)]
                    figures = [statistics.median(column) for column in zip(*runs, strict=True)]
                    rows.append(
                        [name, f"{epsilon:g}", method, weight, *(f"{figure:.3f}" for figure in figures)]
                    )
                    print(" ".join(map(str, rows[-1])), flush=True)
    header = ["table", "epsilon", "learnt from", "weight", "logistic", "boosting", "target's pairs", "others"]
    print_table(
        header, rows, f"AUC on real rows held back; medians of {arguments.runs} releases; {machine()}"
    )


if __name__ == "__main__":
    main()
