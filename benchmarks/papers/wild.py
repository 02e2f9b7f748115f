"""Oprisanu, Gascon and De Cristofaro, "Evaluating Privacy-Preserving Generative Models in the Wild" (2019):
a support vector machine, logistic and linear regression learn from synthetic rows of German Credit (Figures 7
and 8) and Adult (Figure 9), also of a share of its rows (Figures 10 to 12). Its figures are curves, which no
text of it has: its words alone are compared.

The report fixes delta = 1 / (10 n). dpsyn_sql refuses a delta above 1e-6, and no benchmark changes that: all
noise here is Gaussian, and mu-GDP holds with every (epsilon, delta) of one curve. ``same_noise`` gives the
point of this curve at delta 1e-6; a release of that point has the noise that (epsilon, 1 / (10 n)) buys.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
from charts import Line, Panel
from harness import DATA, need
from real_tables import REAL_TABLES, RealTable

import dpsyn_sql
from dpsyn_sql.accounting.budget import LARGEST_DELTA, delta_shares
from dpsyn_sql.accounting.gdp import AMOUNT_UNITS, epsilon_from_half_mu_squared, half_mu_squared
from dpsyn_sql.methods import METHODS

from .cells import Cells, Run, mean_and_spread
from .part import Picture, Shown, table

TEST_SHARE, SPLIT_SEED = 0.3, 0
EPSILONS = (0.1, 0.5, 1.0, 2.0, 4.0, 8.0)
SHARES = (0.1, 0.4, 0.9)
OF_SHARES = (0.8, 1.2, 3.2)
IN_WORDS = {0.1: 0.75, 0.9: 0.80}
"""Section 6.3: about so accurate was PrivBayes at epsilon 0.8 with so large a share of the rows."""

LEARNERS = {"svm": "support vector machine", "logistic": "logistic regression", "linear": "linear regression"}

INPUTS: dict[str, tuple[str, str, str, str, tuple[str, ...]]] = {
    "german_credit": ("German Credit", "credit", "credit == 1", "true", ()),
    "adult_all": (
        "Adult",
        "income",
        "income == '>50K'",
        "COLUMNS(*) IS NOT NULL",
        ("fnlwgt", "education_num", "split"),
    ),
}
"""Of each table its title, the target, who is in its class, which rows stay, and what is left out."""

OF_REPORT, SMALL, PURE = "1/(10 n)", "1e-9", "0"


@dataclass(frozen=True)
class Way:
    """A method, with or without a target, at a delta."""

    method: str
    target: bool
    delta: str

    @property
    def label(self) -> str:
        """As the tables name it."""
        return f"{self.method}{', target' if self.target else ''}, delta {self.delta}"


def ways(names: Sequence[str] = ()) -> list[Way]:
    """Every registered method (or those named), with the target where it takes one, at both deltas;
    PrivBayes at pure epsilon too, as in the report."""
    found = []
    for name, method in METHODS.items():
        if names and name not in names:
            continue
        for target in (False, True)[: 1 + method.takes_target]:
            found += [Way(name, target, delta) for delta in (SMALL, OF_REPORT)]
            found += [Way(name, target, PURE)] * (name == "privbayes")
    return found


def same_noise(epsilon: float, rows: int) -> tuple[float, float]:
    """(epsilon, delta) that a release is asked for, to have the noise of (``epsilon``, 1 / (10 ``rows``))."""
    delta = Fraction(1, 10 * rows)
    if delta <= LARGEST_DELTA:
        return epsilon, float(delta)
    amount = half_mu_squared(Fraction(str(epsilon)), delta_shares(delta)[0])
    found = epsilon_from_half_mu_squared(Fraction(amount, AMOUNT_UNITS), delta_shares(LARGEST_DELTA)[0])
    return found, float(LARGEST_DELTA)


# -- rows and classifiers -----------------------------------------------------------------------------


@cache
def split(name: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rows to learn from (70 %) and to test on, the same ones every time."""
    real: RealTable = REAL_TABLES[name]
    *_, kept, without = INPUTS[name]
    file = need(DATA / real.path)
    dropped = f"EXCLUDE ({', '.join(without)})" if without else ""
    with duckdb.connect() as con:
        frame = con.execute(f"SELECT * {dropped} FROM '{file}' WHERE {kept}").df()
    order = np.random.default_rng(SPLIT_SEED).permutation(len(frame))
    tests = round(TEST_SHARE * len(frame))
    return frame.iloc[order[tests:]], frame.iloc[order[:tests]]


def domain(name: str) -> dict[str, Any]:
    """The table's domain file, without the columns that are left out; no value is missing."""
    columns = dict(REAL_TABLES[name].declared()["columns"])
    for column in INPUTS[name][-1]:
        columns.pop(column)
    return {
        "columns": {
            column: {key: value for key, value in facts.items() if key != "nullable"}
            for column, facts in columns.items()
        }
    }


def truth(name: str, frame: pd.DataFrame) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Who is in the class."""
    return np.asarray(frame.eval(INPUTS[name][2]), np.bool_)


def learnt_from(name: str, learnt: pd.DataFrame, tested: pd.DataFrame) -> Run:
    """Of each learner: the share that it gets right, the mean over classes, and its confusion counts (said
    no rightly, yes wrongly, no wrongly, yes rightly). Linear regression on 0 and 1 says yes above a half."""
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LinearRegression, LogisticRegression
    from sklearn.metrics import accuracy_score, balanced_accuracy_score, confusion_matrix
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler
    from sklearn.svm import LinearSVC

    target = INPUTS[name][1]
    taught, wanted = truth(name, learnt), truth(name, tested)
    inputs = learnt.drop(columns=target)
    numbers = [column for column in inputs if pd.api.types.is_numeric_dtype(inputs[column])]
    texts = [column for column in inputs if column not in numbers]
    found: Run = {}
    for label, learner in (
        ("svm", LinearSVC(C=1.0, loss="hinge", random_state=0, max_iter=5000)),
        ("logistic", LogisticRegression(max_iter=500)),
        ("linear", LinearRegression()),
    ):
        guessed = np.full(len(tested), taught.all())
        if taught.any() and not taught.all():  # noise can leave one class alone
            coded = make_column_transformer(
                (StandardScaler(), numbers), (OneHotEncoder(handle_unknown="ignore"), texts)
            )
            pipeline = make_pipeline(coded, learner)
            pipeline.fit(inputs, taught.astype(float) if label == "linear" else taught)
            guessed = np.asarray(pipeline.predict(tested.drop(columns=target))) > 0.5
        found[label] = float(accuracy_score(wanted, guessed))
        found[f"{label}, balanced"] = float(balanced_accuracy_score(wanted, guessed))
        found[f"{label}, counts"] = confusion_matrix(wanted, guessed, labels=[False, True]).ravel().tolist()
    return found


def released(name: str, learnt: pd.DataFrame, way: Way, epsilon: float) -> pd.DataFrame:
    """Synthetic rows."""
    asked = same_noise(epsilon, len(learnt)) if way.delta == OF_REPORT else (epsilon, float(way.delta))
    with tempfile.TemporaryDirectory() as folder, duckdb.connect() as con:
        con.register("learnt", learnt)
        con.execute("CREATE TABLE source AS FROM learnt")
        con.unregister("learnt")
        dpsyn_sql.release(
            con,
            "source",
            into="made",
            epsilon=asked[0],
            delta=asked[1],
            method=way.method,
            domain=domain(name),
            ledger=Path(folder) / "ledger",
            **({"workload": INPUTS[name][1]} if way.target else {}),
        )
        return con.execute("FROM made").df()


def bounds(name: str) -> Run:
    """The real rows, both baselines of the report, and the commonest answer."""
    learnt, tested = split(name)
    taught, wanted = truth(name, learnt).mean(), truth(name, tested).mean()
    return {
        "real": learnt_from(name, learnt, tested),
        "lower baseline": float(taught * wanted + (1 - taught) * (1 - wanted)),
        "commonest": float(wanted if taught >= 0.5 else 1 - wanted),
        "rows": len(learnt),
        "tested": len(tested),
    }


# -- tables against epsilon ---------------------------------------------------------------------------


def measure(name: str, cells: Cells, runs: int, methods: Sequence[str], epsilons: Sequence[float]) -> None:
    """A release for each way and epsilon, ``runs`` times."""
    learnt, tested = split(name)
    cells.facts = bounds(name)
    by_key = {f"{way.label} | {epsilon:g}": (way, epsilon) for way in ways(methods) for epsilon in epsilons}
    cells.fill(by_key, lambda key: learnt_from(name, released(name, learnt, *by_key[key]), tested), runs)


def measured(cells: Cells) -> tuple[list[str], list[float]]:
    """Labels of the ways and epsilons that were measured."""
    keys = [key.split(" | ") for key, runs in cells.runs.items() if runs]
    return list(dict.fromkeys(key[0] for key in keys)), sorted({float(key[1]) for key in keys})


def show(name: str, cells: Cells) -> Shown:
    """A table for each learner, confusion counts of the first, and a picture."""
    labels, epsilons = measured(cells)
    title, facts = INPUTS[name][0], cells.facts
    head = ["learnt from", *(f"epsilon {epsilon:g}" for epsilon in epsilons)]
    parts = []
    for learner, words in LEARNERS.items():
        rows: list[list[object]] = [["real rows", *[_real(facts, learner)] * len(epsilons)]]
        rows += [[label, *(_cell(cells, label, one, learner) for one in epsilons)] for label in labels]
        parts.append(f"**{title}, {words}**: accuracy (in brackets the mean over both classes).")
        parts.append(table(head, rows))
    counted = [epsilon for epsilon in (1.0, 4.0) if epsilon in epsilons]
    rows = [["real rows", *[_counts([facts["real"]])] * len(counted)]]
    rows += [[label, *(_counts(cells.of(f"{label} | {one:g}")) for one in counted)] for label in labels]
    parts.append(
        f"**{title}, support vector machine**: mean confusion counts, rightly no / wrongly yes / wrongly no "
        "/ rightly yes."
    )
    told = (
        f"Learnt from {facts['rows']:,} rows, tested on {facts['tested']:,} real ones; lower baseline of the "
        f"report {facts['lower baseline']:.3f}, the commonest answer {facts['commonest']:.3f}; mean ± "
        f"standard deviation, {cells.numbers}; {cells.machine}."
    )
    parts.append(table(["learnt from", *(f"epsilon {one:g}" for one in counted)], rows, told))
    return Shown("\n\n".join(parts), [_picture(name, cells, labels, epsilons)])


def _cell(cells: Cells, label: str, epsilon: float, learner: str) -> str:
    runs = cells.of(f"{label} | {epsilon:g}")
    balanced = statistics.mean(run[f"{learner}, balanced"] for run in runs) if runs else 0
    return f"{mean_and_spread(runs, learner)} ({balanced:.2f})" if runs else ""


def _real(facts: Run, learner: str) -> str:
    return f"{facts['real'][learner]:.3f} ({facts['real'][f'{learner}, balanced']:.2f})"


def _counts(runs: Sequence[Run]) -> str:
    if not runs:
        return ""
    return " / ".join(f"{one:.0f}" for one in np.mean([run["svm, counts"] for run in runs], axis=0))


def _picture(name: str, cells: Cells, labels: Sequence[str], epsilons: Sequence[float]) -> Picture:
    """Of each method the way of the report's delta, with the target if it takes one."""
    facts, title = cells.facts, INPUTS[name][0]
    shown = [one for one in labels if one.endswith(OF_REPORT) and _with_target(one) not in labels]
    panels = []
    for learner, words in LEARNERS.items():
        lines = []
        for label in shown:
            means = [(one, [run[learner] for run in cells.of(f"{label} | {one:g}")]) for one in epsilons]
            points = [(epsilons.index(one), statistics.mean(own)) for one, own in means if own]
            lines.append(Line(f"dpsyn_sql, {label}", points))
        levels: dict[str, tuple[float, Any]] = {
            "original data (real rows)": (facts["real"][learner], "baseline"),
            "lower baseline (answers by the label's shares)": (facts["lower baseline"], "baseline"),
            "the commonest answer": (facts["commonest"], "baseline"),
        }
        ticks = {float(place): f"{one:g}" for place, one in enumerate(epsilons)}
        panels.append(Panel(words, "epsilon", "accuracy on real rows", lines, levels, ticks))
    described = f"accuracy on real rows of {title} of classifiers that learnt from synthetic rows"
    return Picture(f"wild_{name}", f"{title}: train on synthetic rows", panels, described)


def _with_target(label: str) -> str:
    """The label of the same method with its target; of one that has it, no label."""
    return "" if "target" in label else label.replace(", delta", ", target, delta")


# -- share of the rows --------------------------------------------------------------------------------


def measure_shares(cells: Cells, runs: int) -> None:
    """Adult from a share of its rows."""
    learnt, tested = split("adult_all")
    two = [Way("adaptive", True, OF_REPORT), Way("privbayes", False, PURE)]
    by_key = {f"{w.label} | {e:g} | {s:g}": (w, e, s) for w in two for e in OF_SHARES for s in SHARES}

    def one(key: str) -> Run:
        way, epsilon, share = by_key[key]
        part = learnt.iloc[: round(share * len(learnt))]
        return learnt_from("adult_all", released("adult_all", part, way, epsilon), tested)

    cells.fill(by_key, one, runs)


def show_shares(cells: Cells) -> Shown:
    """One table."""
    labels, epsilons = measured(cells)
    rows: list[list[object]] = []
    for epsilon in epsilons:
        for label in labels:
            runs = [cells.of(f"{label} | {epsilon:g} | {share:g}") for share in SHARES]
            rows.append([f"{epsilon:g}", label, *(mean_and_spread(own, "svm") for own in runs)])
        if epsilon == OF_SHARES[0]:
            told = [f"about {IN_WORDS[share]:.2f}" if share in IN_WORDS else "" for share in SHARES]
            rows.append([f"{epsilon:g}", "report, PrivBayes, in words", *told])
    caption = f"Adult, accuracy of the support vector machine, {cells.numbers}; {cells.machine}."
    return Shown(table(["epsilon", "learnt from", *(f"{share:.0%}" for share in SHARES)], rows, caption))
