"""Machine-learning efficacy: train on synthetic rows, test on real rows that the release never saw.

    python benchmarks/efficacy.py [--tables adult_all diabetes_130 flights]
        [--domains discovered bounds declared] [--epsilon 1] [--releases 3] [--weight 10]

A fifth of the rows (of the patients, where a patient is protected) is held back before the release. Gradient
boosting and logistic regression learn a target of two classes from the written rows. Printed: area under the
ROC curve on the held-back rows, the median of several releases, beside the same learners trained on the real
rows. ``--weight`` favours the target's column in the workload.

Needs scikit-learn (``pip install '.[benchmarks]'``). The test reads real rows: only for public tables.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from harness import DATA, command_line, machine, print_table
from real_tables import REAL_TABLES
from values import is_number

import dpsyn_sql
from dpsyn_sql.errors import DpsynError
from dpsyn_sql.evaluation.codes import MOST_ROWS
from dpsyn_sql.evaluation.learning import Examples as Rows
from dpsyn_sql.evaluation.learning import class_scores, classifiers


@dataclass(frozen=True)
class Target:
    """``condition`` says who is in the class; ``without`` are columns that the learner must not see.

    ``column``: what is favoured.
    """

    column: str
    condition: str
    without: tuple[str, ...] = ()


TARGETS: Mapping[str, Target] = {
    "adult_all": Target("income", "income = '>50K'", ("split", "fnlwgt")),
    "diabetes_130": Target("readmitted", "readmitted <> 'NO'", ("encounter_id", "patient_nbr")),
    "flights": Target(
        "arr_delay", "arr_delay > 15", ("arr_time", "air_time", "dep_time", "tailnum", "year", "minute")
    ),
}

DOMAINS: Mapping[str, Callable[[Any], Any]] = {
    "discovered": lambda table: None,
    "bounds": lambda table: table.bounds(),
    "declared": lambda table: table.domain,
}


def rows_of(con: duckdb.DuckDBPyConnection, name: str, relation: str) -> Rows:
    """Numbers and times as DOUBLE, all others as text; rows whose class is unknown are left out."""
    target = TARGETS[name]
    kinds = con.execute(f"SELECT column_name, column_type FROM (DESCRIBE {name})").fetchall()
    seen = [
        (column, kind) for column, kind in kinds if column != target.column and column not in target.without
    ]
    parts = [
        f'CAST("{column}" AS {"DOUBLE" if is_number(kind) else "VARCHAR"}) AS "{column}"'
        for column, kind in seen
    ]
    sample = f"USING SAMPLE reservoir({MOST_ROWS} ROWS) REPEATABLE (1)"
    query = f"SELECT {', '.join(parts)}, {target.condition} AS truth FROM {relation} WHERE truth IS NOT NULL"
    frame = con.execute(f"FROM ({query}) {sample}").df()
    return Rows(frame.drop(columns="truth"), frame["truth"].to_numpy(np.bool_))


def areas(learnt: Rows, tested: Rows) -> list[float]:
    """Area under the ROC curve of each learner; 0.5 where there is only one class to learn."""
    made = classifiers(learnt.columns)
    return [class_scores(made[name], learnt, tested)["auc"] for name in ("boosting", "logistic")]


def hold_back(con: duckdb.DuckDBPyConnection, name: str) -> None:
    """Move a fifth of the rows to the table ``tests``, all rows of a unit together."""
    table = REAL_TABLES[name]
    table.load(con, DATA)
    unit = "rowid" if table.unit is None else f'"{table.unit}"'
    con.execute(f"CREATE TABLE tests AS FROM {name} WHERE hash({unit}) % 5 = 0")
    con.execute(f"DELETE FROM {name} WHERE hash({unit}) % 5 = 0")


def measured(name: str, domains: str, arguments: argparse.Namespace) -> list[list[float]]:
    """Areas of each release."""
    table, target = REAL_TABLES[name], TARGETS[name]
    found = []
    with duckdb.connect() as con:
        hold_back(con, name)
        tested = rows_of(con, name, "tests")
        for number in range(arguments.releases):
            with tempfile.TemporaryDirectory() as folder:
                dpsyn_sql.release(
                    con,
                    name,
                    into=f"copy_{number}",
                    method=arguments.method,
                    epsilon=arguments.epsilon,
                    domain=DOMAINS[domains](table),
                    ledger=Path(folder) / "ledger",
                    **({"workload": {target.column: arguments.weight}} if arguments.weight else {}),
                    **table.protects,
                )
            found.append(areas(rows_of(con, name, f"copy_{number}"), tested))
    return found


def of_real_rows(name: str) -> list[float]:
    """What the rows themselves teach."""
    with duckdb.connect() as con:
        hold_back(con, name)
        return areas(rows_of(con, name, name), rows_of(con, name, "tests"))


def lines(name: str, arguments: argparse.Namespace) -> list[list[object]]:
    """A line for each kind of domains, and one for the real rows."""
    target = TARGETS[name].condition
    found: list[list[object]] = []
    for domains in arguments.domains:
        try:
            runs = measured(name, domains, arguments)
        except DpsynError as error:
            found.append([name, target, domains, f"{type(error).__name__}: {error}".split("\n")[0][:80], ""])
            continue
        medians = [f"{statistics.median(run):.4f}" for run in zip(*runs, strict=True)]
        print(name, domains, *medians, flush=True)
        found.append([name, target, domains, *medians])
    return [*found, [name, target, "the real rows", *(f"{area:.4f}" for area in of_real_rows(name))]]


def main() -> None:
    """Print one table."""
    parser = command_line(__doc__)
    parser.add_argument("--tables", nargs="+", choices=[*TARGETS], default=[*TARGETS])
    parser.add_argument("--domains", nargs="+", choices=[*DOMAINS], default=[*DOMAINS])
    parser.add_argument("--method", default="adaptive")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--releases", type=int, default=3)
    parser.add_argument("--weight", type=float, help="of the target in the workload; default: none")
    arguments = parser.parse_args()
    if find_spec("sklearn") is None:
        print("Skipped: scikit-learn is not installed (pip install 'dpsyn_sql[benchmarks]').")
        return
    warnings.simplefilter("ignore")
    rows = []
    for name in arguments.tables:
        if (DATA / REAL_TABLES[name].path).exists():
            rows += lines(name, arguments)
    print_table(
        ["table", "target", "learnt from", "boosting, AUC", "logistic, AUC"],
        rows,
        f"epsilon {arguments.epsilon:g}, delta 1e-9, {arguments.method}, medians of {arguments.releases} "
        f"releases; {machine()}",
    )


if __name__ == "__main__":
    main()
