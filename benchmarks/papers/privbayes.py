"""Zhang, Cormode, Procopiuc, Srivastava and Xiao, "PrivBayes" (SIGMOD 2014; TODS 2017): marginals of Adult
and four classifiers against epsilon. Its slides name the queries; its figures are curves without numbers."""

from __future__ import annotations

import math
import statistics

import numpy as np
from adaptive import adult
from baselines.lap import answered, laplace_scale, made_shares
from charts import Line, Panel
from classifiers import TARGETS, bounds, measured, rows_of, split
from comparison import TRIPLES, chosen, shares

from .part import Figures, Part, Picture, Shown, of_releases, said, table

EPSILONS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
WHO: dict[str, tuple[str, float]] = {
    "privbayes, pure epsilon": ("privbayes", 0.0),
    "dpsyn, pure epsilon": ("dpsyn", 0.0),
    "adaptive, pure epsilon": ("adaptive", 0.0),
    "adaptive, delta 1e-9": ("adaptive", 1e-9),
    "independent, pure epsilon": ("independent", 0.0),
}
HEAD = ("2-way", "3-way", *TARGETS)
REAL, COMMONEST = "the real rows, no privacy", "the commonest answer"
LAPLACE = "Laplace noise on every marginal"


def of_noise(epsilon: float, seed: int) -> list[float]:
    """Two-way and three-way distance where every marginal gets Laplace noise and no table is made."""
    _, sizes, rows = rows_of(adult())
    learnt, _ = split(rows)
    found = []
    for ways, groups in ((2, chosen(len(sizes), 2)), (3, chosen(len(sizes), 3, TRIPLES))):
        scale = laplace_scale(math.comb(len(sizes), ways), epsilon)
        rng = np.random.default_rng(seed)
        distances = []
        for axes in groups:
            (noisy,) = answered(learnt, sizes, [axes], scale, rng)
            distances.append(float(np.abs(shares(learnt, sizes, axes) - made_shares(noisy)).sum() / 2))
        found.append(statistics.mean(distances))
    return found


def measure(quick: bool) -> Figures:
    releases = 1 if quick else 3
    found: Figures = {"releases": releases, "runs": {label: {} for label in WHO}, "noise": {}}
    for epsilon in EPSILONS[1::2] if quick else EPSILONS:
        for label, (method, delta) in WHO.items():
            found["runs"][label][str(epsilon)] = [measured(method, epsilon, delta) for _ in range(releases)]
        found["noise"][str(epsilon)] = of_noise(epsilon, 0)
        said(f"epsilon {epsilon:g}: done")
    return found | {"bounds": bounds()}


def show(found: Figures) -> Shown:
    rows: list[list[object]] = []
    lines: dict[str, list[Line]] = {name: [] for name in HEAD}
    for label, by_epsilon in found["runs"].items():
        middle = {
            epsilon: [statistics.median(column) for column in zip(*runs, strict=True)]
            for epsilon, runs in by_epsilon.items()
        }
        rows += [[epsilon, label, *(f"{one:.4f}" for one in row)] for epsilon, row in middle.items()]
        baseline = label.startswith("independent")
        for place, name in enumerate(HEAD):
            points = [(float(epsilon), row[place]) for epsilon, row in middle.items()]
            lines[name].append(
                Line(label if baseline else f"dpsyn_sql, {label}", points, "baseline" if baseline else "ours")
            )
    for epsilon, pair in found["noise"].items():
        rows.append([epsilon, LAPLACE, *(f"{one:.4f}" for one in pair), *[""] * len(TARGETS)])
    for place, name in enumerate(HEAD[:2]):
        points = [(float(epsilon), pair[place]) for epsilon, pair in found["noise"].items()]
        lines[name].append(Line(LAPLACE, points, "baseline"))
    rows += [["", who, "", "", *(f"{one:.4f}" for one in row)] for who, row in found["bounds"].items()]
    panels = []
    for place, name in enumerate(HEAD):
        if place < 2:
            panels.append(Panel(f"all {name} marginals", "epsilon", "total variation distance", lines[name]))
            continue
        levels = {who: (row[place - 2], "baseline") for who, row in found["bounds"].items()}
        panels.append(Panel(f"classifier of {name}", "epsilon", "share misclassified", lines[name], levels))
    caption = f"Adult discretised, {of_releases(found['releases'])}; {found['machine']}"
    return Shown(
        table(["epsilon", "who", *HEAD], rows, caption),
        [
            Picture(
                "privbayes",
                "PrivBayes' experiments on Adult",
                panels,
                "distance of marginals and misclassification of four classifiers against epsilon",
            )
        ],
    )


PARTS = [Part("privbayes", "PrivBayes: marginals and classifiers on Adult", measure, show)]
