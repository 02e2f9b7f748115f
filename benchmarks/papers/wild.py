"""Oprisanu, Gascon and De Cristofaro, "Evaluating Privacy-Preserving Generative Models in the Wild": support
vector machines on German Credit (Figure 7), on Adult (Figure 9) and against the share of its rows (Figures 10
to 12). Its figures are curves; a few values are in the text.

The report fixes delta = 1 / (10 n). dpsyn_sql refuses a delta above 1e-6, and no benchmark changes that: all
noise here is Gaussian, and mu-GDP holds with every (epsilon, delta) of one curve. ``same_noise`` gives the
point of this curve at delta 1e-6; a release of that point has the noise that (epsilon, 1 / (10 n)) buys.
"""

from __future__ import annotations

import statistics
import tempfile
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
from charts import Line, Panel
from harness import DATA, need
from real_tables import REAL_TABLES, RealTable

import dpsyn_sql
from dpsyn_sql.accounting.budget import LARGEST_DELTA, LARGEST_EPSILON, delta_shares
from dpsyn_sql.accounting.gdp import AMOUNT_UNITS, epsilon_from_half_mu_squared, half_mu_squared

from .part import Figures, Part, Picture, Shown, medians, of_releases, said, table

TEST_SHARE, SPLIT_SEED = 0.3, 0
NO_LIMIT = float(LARGEST_EPSILON)
"""Stands for the report's infinite epsilon: the largest that a release takes."""

EPSILONS = (0.1, 0.2, 0.5, 0.8, 1.2, 1.6, 3.2, 10.0, NO_LIMIT)
SHARES = (0.1, 0.2, 0.4, 0.6, 0.9, 1.0)
OF_SHARES = (0.8, 1.2, 3.2)
WHO = {"adaptive": "adaptive, delta 1/(10 n)", "privbayes": "privbayes, pure epsilon"}
IN_WORDS = {0.1: 0.75, 0.9: 0.80}
"""Section 6.3: about so accurate was PrivBayes at epsilon 0.8 with so large a share of the rows."""

INPUTS: dict[str, tuple[str, str, str, tuple[str, ...]]] = {
    "german_credit": ("credit", "credit == 1", "true", ()),
    "adult_all": (
        "income",
        "income == '>50K'",
        "COLUMNS(*) IS NOT NULL",
        ("fnlwgt", "education_num", "split"),
    ),
}
"""Of each table the target, who is in its class, which rows stay, and the columns that are left out."""


def same_noise(epsilon: float, rows: int) -> tuple[float, float]:
    """(epsilon, delta) that a release is asked for, to have the noise of (``epsilon``, 1 / (10 ``rows``))."""
    delta = Fraction(1, 10 * rows)
    if delta <= LARGEST_DELTA:
        return epsilon, float(delta)
    if epsilon >= NO_LIMIT:
        return NO_LIMIT, float(LARGEST_DELTA)
    amount = half_mu_squared(Fraction(str(epsilon)), delta_shares(delta)[0])
    found = epsilon_from_half_mu_squared(Fraction(amount, AMOUNT_UNITS), delta_shares(LARGEST_DELTA)[0])
    return found, float(LARGEST_DELTA)


# -- rows and classifiers -----------------------------------------------------------------------------


def split(name: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rows to learn from (70 %) and to test on, the same ones every time."""
    real: RealTable = REAL_TABLES[name]
    _, _, kept, without = INPUTS[name]
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
    for column in INPUTS[name][3]:
        columns.pop(column)
    return {
        "columns": {
            column: {key: value for key, value in facts.items() if key != "nullable"}
            for column, facts in columns.items()
        }
    }


def truth(name: str, frame: pd.DataFrame) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Who is in the class."""
    return np.asarray(frame.eval(INPUTS[name][1]), np.bool_)


def accuracies(name: str, learnt: pd.DataFrame, tested: pd.DataFrame) -> dict[str, float]:
    """Share that a linear SVM (and a logistic regression) gets right; ``balanced``: the mean over classes."""
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import accuracy_score, balanced_accuracy_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler
    from sklearn.svm import LinearSVC

    target = INPUTS[name][0]
    taught, wanted = truth(name, learnt), truth(name, tested)
    inputs = learnt.drop(columns=target)
    numbers = [column for column in inputs if pd.api.types.is_numeric_dtype(inputs[column])]
    texts = [column for column in inputs if column not in numbers]
    found = {}
    for label, learner in (
        ("svm", LinearSVC(C=1.0, loss="hinge", random_state=0, max_iter=5000)),
        ("logistic", LogisticRegression(max_iter=500)),
    ):
        guessed = np.full(len(tested), taught.all())
        if taught.any() and not taught.all():  # noise can leave one class alone
            pipeline = make_pipeline(
                make_column_transformer(
                    (StandardScaler(), numbers), (OneHotEncoder(handle_unknown="ignore"), texts)
                ),
                learner,
            )
            pipeline.fit(inputs, taught)
            guessed = pipeline.predict(tested.drop(columns=target))
        found[label] = float(accuracy_score(wanted, guessed))
        found[f"{label}, balanced"] = float(balanced_accuracy_score(wanted, guessed))
    return found


def released(name: str, learnt: pd.DataFrame, method: str, epsilon: float) -> pd.DataFrame:
    """Synthetic rows; ``privbayes`` at pure epsilon, all others as ``same_noise`` says."""
    asked = (epsilon, 0.0) if method == "privbayes" else same_noise(epsilon, len(learnt))
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
            method=method,
            domain=domain(name),
            ledger=Path(folder) / "ledger",
        )
        return con.execute("FROM made").df()


def baselines(name: str) -> dict[str, float]:
    """Both of the report's, and the commonest answer for everybody."""
    learnt, tested = split(name)
    taught, wanted = truth(name, learnt).mean(), truth(name, tested).mean()
    found = accuracies(name, learnt, tested)
    return {f"real rows, {label}": value for label, value in found.items()} | {
        "lower baseline": float(taught * wanted + (1 - taught) * (1 - wanted)),
        "the commonest answer": float(wanted if taught >= 0.5 else 1 - wanted),
        "rows": len(learnt),
    }


# -- parts --------------------------------------------------------------------------------------------


def measure_table(name: str, releases: int) -> Figures:
    learnt, tested = split(name)
    found: Figures = {"releases": releases, "runs": {}, "baselines": baselines(name)}
    for method in WHO:
        for epsilon in EPSILONS:
            runs = [
                accuracies(name, released(name, learnt, method, epsilon), tested) for _ in range(releases)
            ]
            found["runs"].setdefault(method, {})[str(epsilon)] = runs
        said(f"{name}, {method}: done")
    return found


def measure_shares(quick: bool) -> Figures:
    releases, name = (1 if quick else 2), "adult_all"
    shares, epsilons = (SHARES[::2], OF_SHARES[:1]) if quick else (SHARES, OF_SHARES)
    learnt, tested = split(name)
    found: Figures = {"releases": releases, "runs": {}, "baselines": baselines(name), "real": {}}
    for share in shares:
        part = learnt.iloc[: round(share * len(learnt))]
        found["real"][str(share)] = accuracies(name, part, tested)
        for method in WHO:
            for epsilon in epsilons:
                runs = [
                    accuracies(name, released(name, part, method, epsilon), tested) for _ in range(releases)
                ]
                by_share = found["runs"].setdefault(method, {}).setdefault(str(epsilon), {})
                by_share[str(share)] = runs
        said(f"share {share:g}: done")
    return found


def levels(found: Figures, label: str) -> dict[str, tuple[float, Any]]:
    """The baselines as lines across a panel."""
    known = found["baselines"]
    return {
        "original data (real rows)": (known[f"real rows, {label}"], "baseline"),
        "lower baseline (answers by the label's shares)": (known["lower baseline"], "baseline"),
        "the commonest answer": (known["the commonest answer"], "baseline"),
    }


def shown_epsilon(epsilon: float) -> str:
    return "1000 (for no limit)" if epsilon >= NO_LIMIT else f"{epsilon:g}"


def show_table(name: str, number: int, title: str, found: Figures) -> Shown:
    learners = ("svm", "logistic") if name == "german_credit" else ("svm",)
    count = int(found["baselines"]["rows"])
    rows: list[list[object]] = []
    lines: dict[str, list[Line]] = {label: [] for label in learners}
    for method, by_epsilon in found["runs"].items():
        for label in learners:
            points = [
                (EPSILONS.index(float(epsilon)), statistics.median(run[label] for run in runs))
                for epsilon, runs in by_epsilon.items()
            ]
            lines[label].append(Line(f"dpsyn_sql, {WHO[method]}", points))
        for epsilon, runs in by_epsilon.items():
            middle, svm = medians(runs), [run["svm"] for run in runs]
            asked = f"{same_noise(float(epsilon), count)[0]:.3f}" if method != "privbayes" else ""
            known = [middle[key] for label in learners for key in (label, f"{label}, balanced")]
            figures = [f"{one:.3f}" for one in known]
            if len(runs) > 1:
                figures[0] += f" ({min(svm):.3f} to {max(svm):.3f})"
            rows.append([shown_epsilon(float(epsilon)), asked, WHO[method], *figures])
    known = found["baselines"]
    real = [f"{known[f'real rows, {key}']:.3f}" for one in learners for key in (one, f"{one}, balanced")]
    rows.append(["", "", "original data (real rows)", *real])
    spare = [""] * (len(real) - 1)
    rows.append(["", "", "lower baseline", f"{known['lower baseline']:.3f}", *spare])
    rows.append(["", "", "the commonest answer", f"{known['the commonest answer']:.3f}", *spare])
    names = {"svm": f"SVM (its Figure {number})", "logistic": "logistic regression (its Figure 8)"}
    ticks = {float(place): shown_epsilon(one).split()[0] for place, one in enumerate(EPSILONS)}
    panels = [
        Panel(names[label], "epsilon", "accuracy on real rows", lines[label], levels(found, label), ticks)
        for label in learners
    ]
    head = ["epsilon", "asked at delta 1e-6", "learnt from"]
    head += [key for label in learners for key in (f"{label}, accuracy", f"{label}, balanced")]
    spread = " (lowest to highest)" if found["releases"] > 1 else ""
    caption = (
        f"{title}, learnt from {count:,} rows, tested on the other 30 %, {of_releases(found['releases'])}"
        f"{spread}; {found['machine']}"
    )
    picture = Picture(
        f"wild_{name}", f"{title}: train on synthetic rows", panels, f"accuracy on {title} against epsilon"
    )
    return Shown(table(head, rows, caption), [picture])


def show_shares(found: Figures) -> Shown:
    rows: list[list[object]] = []
    panels = []
    shares = [float(share) for share in found["real"]]
    for epsilon in map(float, found["runs"]["adaptive"]):
        lines = []
        for method, by_epsilon in found["runs"].items():
            by_share = by_epsilon[str(epsilon)]
            middle = {
                share: statistics.median(run["svm"] for run in runs) for share, runs in by_share.items()
            }
            rows.append([f"{epsilon:g}", WHO[method], *(f"{one:.3f}" for one in middle.values())])
            points = [(float(share), value) for share, value in middle.items()]
            lines.append(Line(f"dpsyn_sql, {WHO[method]}", points))
        if epsilon == 0.8:
            lines.append(Line("report, section 6.3, PrivBayes", [*IN_WORDS.items()], "paper"))
            told = [f"about {IN_WORDS[share]:.2f}" if share in IN_WORDS else "" for share in shares]
            rows.append(["0.8", "report, PrivBayes, in words", *told])
        real = [(float(share), one["svm"]) for share, one in found["real"].items()]
        lines.append(Line("the same real rows", real, "baseline"))
        others = {key: value for key, value in levels(found, "svm").items() if not key.startswith("original")}
        ticks = {share: f"{share:g}" for share in shares}
        title = f"epsilon {epsilon:g} (its Figure {10 + OF_SHARES.index(epsilon)})"
        panels.append(Panel(title, "share of the rows", "SVM accuracy", lines, others, ticks))
    real_rows = [f"{one['svm']:.3f}" for one in found["real"].values()]
    rows.append(["", "the same real rows", *real_rows])
    caption = f"Adult, {of_releases(found['releases'])}; {found['machine']}"
    picture = Picture(
        "wild_shares",
        "Adult: accuracy against the share of the rows",
        panels,
        "accuracy against share of rows",
    )
    return Shown(
        table(["epsilon", "learnt from", *(f"{share:.0%}" for share in shares)], rows, caption), [picture]
    )


PARTS = [
    Part(
        "wild_german",
        "In the wild, Figures 7 and 8: German Credit",
        lambda quick: measure_table("german_credit", 5 if quick else 9),
        lambda found: show_table("german_credit", 7, "German Credit", found),
    ),
    Part(
        "wild_adult",
        "In the wild, Figure 9: Adult",
        lambda quick: measure_table("adult_all", 1 if quick else 3),
        lambda found: show_table("adult_all", 9, "Adult", found),
    ),
    Part("wild_shares", "In the wild, Figures 10 to 12: share of the rows", measure_shares, show_shares),
]
