"""Accuracy and processor time of methods on tables of a hundred to a thousand columns.

    python benchmarks/many_columns.py [--structures factor tree clusters classes one_hot]
        [--columns 100 200 300] [--codes mixed binary] [--rows 50000] [--epsilon 0.3 1 3]
        [--methods adaptive copula auto] [--runs 1] [--whole]

    factor      every column follows five hidden normal variables: what a Gaussian copula describes
    tree        every column follows one earlier column
    clusters    half of the columns in groups of ten that follow a hidden class; the rest is independent
    classes     all columns nearly follow one hidden class of sixty: values change together or not at all
    one_hot     diabetes_130 as one column of two codes for each frequent value: real rows

``mixed`` columns have 2 to 8 codes. The tables are made here from a fixed seed. A line has the mean total
variation distance of a sample from the table over 2,000 pairs of columns, and over up to 2,000 pairs that
depend: those whose counts are further than 0.05 from independence. Seconds are those of the processor, but
for ``wall``; what no phase names is in the whole alone.

Without ``--whole`` counts are in memory and the noise is numpy's, with a seed (``variants.py``): for
comparisons of methods. With it each line is a whole release from Parquet to Parquet, in a process of its
own. Two and ten hundred columns, each released whole:

    python benchmarks/many_columns.py --whole --structures tree --columns 200 1000 --rows 100000
        --methods adaptive

``--beside CHECKOUT`` compares processor time with that of another checkout, release by release in turns, each
in a process of its own: Adult discretised, and raw tables of ``--columns`` whose domain nobody declared. It
is that of a whole release, with what it loads:

    python benchmarks/many_columns.py --beside ../other --columns 100 320 --rows 5000 --runs 4
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from adaptive import Codes, adult, codes_declared
from harness import (
    DATA,
    REPOSITORY,
    Stopwatch,
    apart,
    command_line,
    machine,
    need,
    peak_mebibytes,
    print_table,
    timed,
)
from numpy.typing import NDArray
from variants import InMemory, SeededNoise

import dpsyn_sql
from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.ledger.sqlite import MemoryLedger
from dpsyn_sql.methods import Adaptive, method_of
from dpsyn_sql.planning.plan import ReleaseKey
from dpsyn_sql.planning.queries import MarginalQuery
from dpsyn_sql.planning.row_labels import NearestLabel
from dpsyn_sql.private.count.counter import aggregated
from dpsyn_sql.private.measure.curator import LocalCurator

PAIRS = 2_000
DEPENDENT = 0.05
"""Total variation distance from independence above which a pair depends."""

PHASES = ("encode", "count", "noise", "model", "select", "fit", "sample", "write")

Release = tuple[Stopwatch, float]
"""Seconds and peak memory (MiB)."""


def sizes_of(codes: str, columns: int) -> list[int]:
    """Codes of each column."""
    return [2] * columns if codes == "binary" else [2 + 5 * index % 7 for index in range(columns)]


def cut(values: NDArray[np.float64], size: int, rng: np.random.Generator) -> Codes:
    """Codes of numbers, with a random margin."""
    shares = rng.dirichlet(np.full(size, 3.0))
    return np.searchsorted(np.quantile(values, np.cumsum(shares)[:-1]), values).astype(np.int64)


def factor(rows: int, sizes: Sequence[int], rng: np.random.Generator) -> Codes:
    """Five hidden factors, which explain up to half of a column."""
    hidden = rng.normal(size=(rows, 5))
    found = []
    for size in sizes:
        loading = rng.normal(size=5)
        loading *= np.sqrt(rng.uniform(0.0, 0.5)) / np.linalg.norm(loading)
        own = hidden @ loading + rng.normal(scale=np.sqrt(1 - loading @ loading), size=rows)
        found.append(cut(own, size, rng))
    return np.stack(found, axis=1)


def tree(rows: int, sizes: Sequence[int], rng: np.random.Generator) -> Codes:
    """A column follows one of the five before it in a half of the rows."""
    found = [cut(rng.random(rows), sizes[0], rng)]
    for place, size in enumerate(sizes[1:], start=1):
        parent = int(rng.integers(max(0, place - 5), place))
        told = rng.permutation(size)[found[parent] % size]
        found.append(np.where(rng.random(rows) < 0.5, told, cut(rng.random(rows), size, rng)))
    return np.stack(found, axis=1)


def clusters(rows: int, sizes: Sequence[int], rng: np.random.Generator) -> Codes:
    """Of twenty columns ten follow a hidden class of four; the others are independent."""
    found = []
    for place, size in enumerate(sizes):
        if place % 20 == 0:
            hidden = rng.integers(0, 4, rows)
        if place % 20 < 10:
            bounds = np.cumsum(rng.dirichlet(np.full(size, 0.7), 4), axis=1)
            drawn = (bounds[hidden] < rng.random(rows)[:, None]).sum(axis=1)
            found.append(np.minimum(drawn, size - 1))
        else:
            found.append(cut(rng.random(rows), size, rng))
    return np.stack(found, axis=1)


def classes(rows: int, sizes: Sequence[int], rng: np.random.Generator) -> Codes:
    """Few codes for each hidden class."""
    hidden = rng.choice(60, rows, p=rng.dirichlet(np.full(60, 0.3)))
    found = []
    for size in sizes:
        bounds = np.cumsum(rng.dirichlet(np.full(size, 0.05), 60), axis=1)
        found.append(np.minimum((bounds[hidden] < rng.random(rows)[:, None]).sum(axis=1), size - 1))
    return np.stack(found, axis=1)


def one_hot(rows: int, columns: int) -> Codes:
    """One column for each of the most frequent values of all columns, if a hundredth of the rows has it."""
    file = need(DATA / "diabetes_130" / "diabetic_data.parquet")
    with duckdb.connect() as con:
        names = [name for name, *_ in con.execute(f"DESCRIBE FROM '{file}'").fetchall()]
        frame = con.execute(f"FROM '{file}' LIMIT {rows}").fetchnumpy()
    found: list[tuple[float, NDArray[np.bool_]]] = []
    for name in names:
        values = np.ma.filled(np.ma.asarray(frame[name]).astype(str), "NULL")
        for value, count in zip(*np.unique(values, return_counts=True), strict=True):
            if 0.01 <= count / len(values) <= 0.99:
                found.append((float(min(count, len(values) - count)), values == value))
    found.sort(key=lambda one: -one[0])
    return np.stack([flag for _, flag in found[:columns]], axis=1).astype(np.int64)


STRUCTURES: dict[str, Callable[[int, Sequence[int], np.random.Generator], Codes]] = {
    "factor": factor,
    "tree": tree,
    "clusters": clusters,
    "classes": classes,
}


class Matrix:
    """All two-way tables of codes at once: products of columns of zeros and ones. Counts for a curator."""

    def __init__(self, domain: Domain, codes: Codes) -> None:
        self.domain, self.codes, self.sizes = domain, codes, domain.shape()
        self.ends = np.cumsum([0, *self.sizes])
        self.names = {name: place for place, name in enumerate(domain.names)}
        self.counts = np.zeros((self.ends[-1], self.ends[-1]), np.int64)
        for start in range(0, len(codes), 2**13):
            part = codes[start : start + 2**13]
            ones = np.zeros((len(part), self.ends[-1]), np.float32)
            for place in range(codes.shape[1]):
                ones[np.arange(len(part)), self.ends[place] + part[:, place]] = 1
            self.counts += (ones.T @ ones).astype(np.int64)

    def table(self, places: Sequence[int]) -> NDArray[np.int64]:
        """Counts of one or two columns."""
        first, *others = [slice(self.ends[place], self.ends[place + 1]) for place in places]
        return self.counts[first, others[0]] if others else np.diag(self.counts)[first]

    def count(
        self, queries: Sequence[MarginalQuery], labels: Sequence[NearestLabel] = ()
    ) -> Iterator[NDArray[np.int64]]:
        if labels:
            return InMemory(self.domain, self.codes).count(queries, labels)
        return (
            aggregated(self.table([self.names[name] for name in query.attrs]), query.maps)
            if query.attrs
            else np.asarray(len(self.codes))
            for query in queries
        )

    def dependent(self) -> list[tuple[int, int]]:
        """Pairs that are far from independence."""
        rows, found = len(self.codes), []
        ones = [self.table([place]) / rows for place in range(len(self.sizes))]
        for pair in combinations(range(len(self.sizes)), 2):
            apart = np.abs(self.table(pair) / rows - np.outer(ones[pair[0]], ones[pair[1]])).sum() / 2
            if apart > DEPENDENT:
                found.append(pair)
        return found


class Table:
    """A table of codes, and the pairs of columns that a copy is judged by."""

    def __init__(self, structure: str, codes: str, columns: int, rows: int) -> None:
        rng = np.random.default_rng(columns)
        if structure == "one_hot":
            self.codes = one_hot(rows, columns)
            self.sizes = [2] * self.codes.shape[1]
        else:
            self.sizes = sizes_of(codes, columns)
            self.codes = STRUCTURES[structure](rows, self.sizes, rng)
        labels = [tuple(range(size)) for size in self.sizes]
        attributes = (
            Attribute(f"a{place}", "INTEGER", "categorical", labels=own) for place, own in enumerate(labels)
        )
        self.matrix = Matrix(Domain(tuple(attributes)), self.codes)
        dependent = self.matrix.dependent()
        self.number = len(dependent)
        everything = list(combinations(range(len(self.sizes)), 2))
        self.pairs = [self._some(pairs, rng) for pairs in (everything, dependent)]

    def _some(self, pairs: list[tuple[int, int]], rng: np.random.Generator) -> list[tuple[int, int]]:
        return [pairs[i] for i in rng.permutation(len(pairs))[:PAIRS]]

    def distances(self, sample: Codes) -> list[float]:
        """Means over pairs, and over pairs that depend."""
        found = []
        for pairs in self.pairs:
            apart = []
            for pair in pairs:
                size = self.sizes[pair[1]]
                cells = sample[:, pair[0]].astype(np.int64) * size + sample[:, pair[1]]
                counts = np.bincount(cells, minlength=self.sizes[pair[0]] * size)
                real = self.matrix.table(pair).ravel() / len(self.codes)
                apart.append(np.abs(counts / max(len(sample), 1) - real).sum() / 2)
            found.append(float(np.mean(apart)) if apart else float("nan"))
        return found


def sampled(table: Table, method: Any, budget: Budget, seed: int) -> Codes:
    """A sample of the model that a method fits."""
    domain, ledger = table.matrix.domain, MemoryLedger()
    with ledger.open_release(ReleaseKey("many", "many", None, {}), budget) as entry:
        door = LocalCurator(entry, SeededNoise(seed))
        door.open(lambda _: table.matrix, domain)
        model = method.run(door, domain, budget)
    ledger.close()
    return np.concatenate([*model.sampler().batches(max(1, round(model.total)), seed)])


def released(folder: Path, sizes: Mapping[str, int], name: str, epsilon: float, delta: float) -> Release:
    """Whole release from ``source.parquet`` to ``out.parquet``; its seconds and its peak memory."""
    warnings.simplefilter("ignore")
    with timed() as watch:
        dpsyn_sql.release(
            None,
            folder / "source.parquet",
            into=folder / "out.parquet",
            epsilon=epsilon,
            delta=delta,
            method=wanted(name),
            domain=codes_declared(dict(sizes), set()),
            ledger=folder / "ledger",
        )
    return watch, peak_mebibytes()


def written(table: Table, name: str, epsilon: float, delta: float) -> tuple[Codes, Release]:
    """The rows of a whole release in a process of its own, and what ``released`` says of it."""
    names = table.matrix.domain.names
    with tempfile.TemporaryDirectory() as folder, duckdb.connect() as con:
        frame = {name: table.codes[:, place].astype(np.uint8) for place, name in enumerate(names)}
        con.register("frame", frame)
        con.execute(f"COPY frame TO '{folder}/source.parquet'")
        sizes = dict(zip(names, table.sizes, strict=True))
        told = apart(released, Path(folder), sizes, name, epsilon, delta)
        copy = con.execute(f"FROM '{folder}/out.parquet'").fetchnumpy()
        return np.stack([np.asarray(copy[name], np.int64) for name in names], axis=1), told


def wanted(name: str) -> Any:
    """A method by its name, or ``adaptive`` with constants: ``adaptive rounds=0.4,0.6 luck=2``."""
    name, *changes = name.split()
    if not changes:
        return method_of(name)
    values: dict[str, Any] = {}
    for key, value in (change.split("=") for change in changes):
        numbers = tuple(float(number) for number in value.split(","))
        values[key] = numbers if isinstance(getattr(Adaptive.constants, key), tuple) else numbers[0]
    constants = replace(Adaptive.constants, **values)
    return type("Varied", (Adaptive,), {"constants": constants, "__slots__": ()})()


RELEASE = """
import json, sys, time, warnings
import duckdb, dpsyn_sql
warnings.simplefilter("ignore")
con = duckdb.connect("a.duckdb")
con.execute("CREATE TABLE source AS FROM 'source.parquet'")
domain, begun = json.loads(sys.argv[1]), time.process_time()
dpsyn_sql.release(con, "source", epsilon=1.0, delta=1e-9, domain=domain, ledger="ledger")
print(time.process_time() - begun)
"""


def raw(columns: int, rows: int) -> dict[str, Any]:
    """Numbers, amounts, words, flags and days that follow five hidden normal variables."""
    rng = np.random.default_rng(columns)
    hidden, frame = rng.normal(size=(rows, 5)), dict[str, Any]()
    for number in range(columns):
        score = hidden @ (0.27 * rng.normal(size=5)) + rng.normal(scale=0.8, size=rows)
        days = np.datetime64("2015-01-01") + np.round(800 + 300 * score).astype("timedelta64[D]")
        frame[f"a{number}"] = (
            np.round(40 + 15 * score).astype(np.int64),
            np.round(np.exp(3 + 0.8 * score), 2),
            np.array(["red", "green", "blue", "black"])[np.clip(np.floor(score + 2), 0, 3).astype(int)],
            score > 0.5,
            days.astype("datetime64[us]"),
        )[number % 5]
    return frame


def processor(checkout: Path, source: str, frame: dict[str, Any] | None, domain: object) -> float:
    """Seconds of one release of ``source`` by the package of a checkout."""
    with tempfile.TemporaryDirectory() as folder, duckdb.connect() as con:
        if frame is not None:
            con.register("frame", frame)
        con.execute(f"COPY (FROM {source}) TO '{folder}/source.parquet'")
        call = [sys.executable, "-c", RELEASE, json.dumps(domain)]
        there = os.environ | {"PYTHONPATH": str(checkout.resolve())}
        return float(subprocess.run(call, cwd=folder, env=there, check=True, stdout=subprocess.PIPE).stdout)


def print_beside(other: Path, arguments: argparse.Namespace) -> None:
    """Medians of this checkout and of the other one."""
    tables = {"adult": (f"'{DATA}/adult_discretised/adult.parquet'", None, adult().domain)}
    for columns in arguments.columns:
        frame = raw(columns, arguments.rows)
        tables[f"raw, {columns} columns x {arguments.rows:,}"] = ("frame", frame, None)
    rows = list[list[object]]()
    for name, table in tables.items():
        pairs = [
            [processor(checkout, *table) for checkout in (REPOSITORY, other)] for _ in range(arguments.runs)
        ]
        ours, theirs = (statistics.median(times) for times in zip(*pairs, strict=True))
        rows.append([name, ours, theirs, statistics.median(here / there for here, there in pairs)])
    header = ["table", "processor seconds", "of the other checkout", "ratio"]
    print_table(header, rows, f"Medians of {arguments.runs} releases; {machine()}")


def line(table: Table, name: str, epsilon: float, arguments: argparse.Namespace) -> list[object]:
    """Distances and seconds: means of the runs."""
    scores, runs = list[list[float]](), list[Release]()
    for seed in range(arguments.runs):
        if arguments.whole:
            copy, run = written(table, name, epsilon, arguments.delta)
        else:
            with timed() as watch:
                budget = Budget.from_epsilon(epsilon, arguments.delta).without_thresholds()
                copy = sampled(table, wanted(name), budget, seed)
            run = watch, peak_mebibytes()
        scores.append(table.distances(copy))
        runs.append(run)
    means = [f"{mean:.4f}" for mean in np.mean(scores, axis=0)]
    seconds = [
        f"{statistics.mean(watch.processor[phase] for watch, _ in runs):.1f}" for phase in ("total", *PHASES)
    ]
    wall = statistics.mean(watch.seconds["total"] for watch, _ in runs)
    return [name, f"{epsilon:g}", *means, f"{wall:.1f}", *seconds, f"{max(peak for _, peak in runs):.0f}"]


def main() -> None:
    """Print one table for each structure, kind of codes, and number of columns."""
    parser = command_line(__doc__)
    parser.add_argument("--structures", nargs="+", choices=[*STRUCTURES, "one_hot"], default=[*STRUCTURES])
    parser.add_argument("--columns", nargs="+", type=int, default=[100, 200, 300])
    parser.add_argument("--codes", nargs="+", choices=["mixed", "binary"], default=["mixed"])
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--epsilon", nargs="+", type=float, default=[1.0])
    parser.add_argument("--delta", type=float, default=1e-9)
    parser.add_argument("--methods", nargs="+", default=["independent", "copula", "adaptive"])
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--whole", action="store_true", help="whole releases, from Parquet to Parquet")
    parser.add_argument("--beside", type=Path, metavar="CHECKOUT", help="another checkout of the project")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.beside:
        print_beside(arguments.beside, arguments)
        return
    for columns in arguments.columns:
        for structure in arguments.structures:
            for codes in arguments.codes if structure != "one_hot" else ["binary"]:
                begun = time.process_time()
                table = Table(structure, codes, columns, arguments.rows)
                title = f"{structure}, {len(table.sizes)} {codes} columns, {len(table.codes)} rows"
                print(f"{title}: made in {time.process_time() - begun:.0f} s", flush=True)
                rows = []
                for epsilon in arguments.epsilon:
                    for name in arguments.methods:
                        rows.append(line(table, name, epsilon, arguments))
                        print(*rows[-1], flush=True)
                print_table(
                    ["method", "epsilon", "pairs", "dependent pairs", "wall", "seconds", *PHASES, "MiB"],
                    rows,
                    f"{title}, {table.number:,} pairs depend; delta {arguments.delta}, "
                    f"{arguments.runs} runs; {machine()}",
                )


if __name__ == "__main__":
    main()
