"""The scores I, F, R (Zhang, Cormode, Procopiuc, Srivastava and Xiao) and L1 of this package in the
exponential mechanism: how much mutual information the chosen trees hold, at pure epsilon as in the slides.

The counts are in memory and the noise is numpy's, with a seed: no privacy, only for public tables.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from functools import cache

import duckdb
import numpy as np
from adaptive import Table, adult
from charts import Line, Panel
from comparison import codes_of, mean_distances
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import minimum_spanning_tree
from transactions import transactions
from variants import InMemory, SeededNoise, domain_of

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.fit.network import Network
from dpsyn_sql.ledger.sqlite import MemoryLedger
from dpsyn_sql.methods import PrivBayes
from dpsyn_sql.planning.plan import ReleaseKey
from dpsyn_sql.private.measure.curator import LocalCurator
from dpsyn_sql.private.measure.scores import scored

from .cells import Cells, Run, mean_and_spread
from .part import Picture, Shown, table

EPSILONS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 8.0)
ITEMS = 16
INPUTS = {
    "mushroom": f"mushroom, {ITEMS} items (binary)",
    "bms_webview_1": f"BMS-WebView-1, {ITEMS} items (binary)",
    "adult": "Adult discretised",
}
SCORES = ("L1", "I", "F", "R")
FIGURES = ("tree", "two-way", "three-way")
DRAWS = 20_000
"""Random joint distributions of two binary attributes."""

IN_SLIDES = 0.9472
"""Correlation of I and F of random distributions."""

Codes = NDArray[np.int64]


def source_of(name: str) -> Table:
    """Binary columns, or Adult."""
    return adult() if name == "adult" else transactions(name, ITEMS)


@cache
def counter_of(name: str) -> InMemory:
    """The rows of a table, and its domain."""
    source = source_of(name)
    with duckdb.connect() as con:
        source.load(con)
        (codes,), sizes = codes_of(con, ("source",), source.scored)
    return InMemory(domain_of(source, sizes, ordered=True), codes)


@cache
def informations(name: str) -> NDArray[np.float64]:
    """Mutual information of every pair in bits; symmetric."""
    counter = counter_of(name)
    sizes = counter.domain.shape()
    found = np.zeros((len(sizes), len(sizes)))
    for one in range(len(sizes)):
        for other in range(one):
            cells = counter.codes[:, one] * sizes[other] + counter.codes[:, other]
            joint = np.bincount(cells, minlength=sizes[one] * sizes[other]).reshape(sizes[one], -1)
            joint = joint / joint.sum()
            apart = np.outer(joint.sum(axis=1), joint.sum(axis=0))
            held = joint > 0
            found[one, other] = found[other, one] = (joint[held] * np.log2(joint[held] / apart[held])).sum()
    return found


def best_tree(name: str) -> float:
    """The most mutual information of a tree (Chow and Liu 1968)."""
    return -float(minimum_spanning_tree(csr_array(-informations(name))).sum())


def held(name: str, network: Network) -> float:
    """Mutual information of the edges of a network of one parent a column."""
    parents = {node.variables[0]: node.parents for node in network.nodes if "|" not in node.label}
    number = len(counter_of(name).domain.names)
    pairs = [(v, own[0]) for v, own in parents.items() if len(own) == 1 and max(v, own[0]) < number]
    return float(sum(informations(name)[pair] for pair in pairs))


def one_run(name: str, score: str, epsilon: float, seed: int) -> Run:
    """Bits that a chosen tree holds, of those of the best; distances of rows where parents are several."""
    counter, budget = counter_of(name), Budget.from_epsilon(epsilon, 0)
    found: Run = {}
    for degree in (1, 0):
        method, ledger = PrivBayes(degree=degree, score=score), MemoryLedger()
        with ledger.open_release(ReleaseKey("scores", "scores", None, {}), budget) as entry:
            door = LocalCurator(entry, SeededNoise(seed))
        door.open(lambda _: counter, counter.domain)
        model = method.run(door, counter.domain, budget)
        ledger.close()
        if degree == 1:
            found["tree"] = held(name, model.fitted) / best_tree(name)
        else:
            batches = model.sampler().batches(max(1, round(model.total)), seed)
            rows = np.concatenate([*batches]).astype(np.int64)
            found["two-way"], found["three-way"] = mean_distances(counter.codes, rows, counter.domain.shape())
    return found


def correlations() -> dict[str, float]:
    """Of the scores of random distributions of two binary attributes, uniform over all there are."""
    joints = np.random.default_rng(0).dirichlet(np.ones(4), DRAWS).reshape(-1, 2, 2)
    counts = np.rint(joints * 2**20).astype(np.int64)
    by_score = {s: [scored(one, 1, s, 21 if s == "I" else 0) for one in counts] for s in ("I", "F", "R")}
    pairs = (("I", "F"), ("I", "R"), ("F", "R"))
    return {f"{a} and {b}": float(np.corrcoef(by_score[a], by_score[b])[0, 1]) for a, b in pairs}


def measure(cells: Cells, runs: int, epsilons: Sequence[float] = EPSILONS) -> None:
    """Each score that the table allows, at each epsilon; seeds are the numbers of the runs."""
    cells.facts = {"correlations": correlations(), "best": {name: best_tree(name) for name in INPUTS}}

    def one(key: str) -> Run:
        name, score, epsilon = key.split(" | ")
        return one_run(name, score, float(epsilon), len(cells.of(key)))

    keys = [
        f"{name} | {score} | {epsilon:g}"
        for name in INPUTS
        for score in SCORES
        for epsilon in epsilons
        if score != "F" or name != "adult"
    ]
    cells.fill(keys, one, runs)


def show(cells: Cells) -> Shown:
    """What the trees hold, distances, and correlations."""
    keys = [key.split(" | ") for key, runs in cells.runs.items() if runs]
    epsilons = sorted({float(key[2]) for key in keys})
    rows: list[list[object]] = []
    panels = []
    for name, title in INPUTS.items():
        lines = []
        known = [score for score in SCORES if [name, score] in [key[:2] for key in keys]]
        for what in FIGURES:
            for score in known:
                by_epsilon = [cells.of(f"{name} | {score} | {epsilon:g}") for epsilon in epsilons]
                rows.append([title, what, score, *(mean_and_spread(runs, what) for runs in by_epsilon)])
                if what == FIGURES[0]:
                    lines.append(Line(score, _means(epsilons, by_epsilon, what)))
        panels.append(Panel(title, "epsilon (delta 0)", "share of the best tree's bits", lines))
    told = ", ".join(f"{pair} {value:.4f}" for pair, value in cells.facts["correlations"].items())
    best = ", ".join(f"{INPUTS[name]} {bits:.2f}" for name, bits in cells.facts["best"].items())
    caption = (
        "Tree: mutual information of the chosen tree (one parent a column) as a share of that of the best "
        f"tree (bits: {best}). Distances: of rows of a network of several parents. Pure epsilon, seeded "
        f"noise, {cells.numbers}, mean ± standard deviation. Correlations of the scores of {DRAWS:,} random "
        f"joint distributions of two binary attributes: {told}; the slides: I and F {IN_SLIDES}. "
        f"{cells.machine}."
    )
    head = ["table", "figure", "score", *(f"epsilon {epsilon:g}" for epsilon in epsilons)]
    described = "share of the best tree's mutual information by score and epsilon"
    picture = Picture("scores", "PrivBayes' scores in the exponential mechanism", panels, described)
    return Shown(table(head, rows, caption), [picture])


def _means(epsilons: Sequence[float], runs: Sequence[Sequence[Run]], what: str) -> list[tuple[float, float]]:
    pairs = zip(epsilons, runs, strict=True)
    return [(epsilon, statistics.mean(run[what] for run in own)) for epsilon, own in pairs if own]
