"""What a constant of the adaptive method is worth: variants beside the method as it is, paired by seed.

    python benchmarks/variants.py [--tables adult weather] [--epsilon 0.1 1] [--seeds 8] [--unordered]
        [--delta 1e-9] [--vary luck=1.5 charge=0.35 pairs=never strength=30 dpsyn]

A variant is a field of ``methods/adaptive/budget.py`` with another value; ``pairs=never`` or
``pairs=always``, whatever they are worth; ``strength``, from which a pure budget (``--delta 0``) asks about
pairs at all; or another method by its name. Everything between counting and writing is the
real thing, but the counts are in memory and the noise is numpy's, with a seed: no privacy, only for public
tables. Mean total variation distance of a sample of the model over all two-way and 200 seeded three-way
marginals, and the difference from the method as it is with its standard error over the seeds.
"""

from __future__ import annotations

import math
import statistics
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import duckdb
import numpy as np
from adaptive import Table, adult
from comparison import codes_of, mean_distances
from harness import command_line, machine, print_table
from numpy.typing import NDArray
from sweep import TABLES, table_of

from dpsyn_sql.accounting.budget import Budget, Kind
from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.ledger.sqlite import MemoryLedger
from dpsyn_sql.methods import METHODS, Adaptive
from dpsyn_sql.methods.adaptive import method as recipe
from dpsyn_sql.methods.adaptive import select
from dpsyn_sql.methods.recipe import Recipe
from dpsyn_sql.planning.plan import ReleaseKey
from dpsyn_sql.planning.queries import MarginalQuery
from dpsyn_sql.planning.row_labels import NearestLabel, labelled
from dpsyn_sql.private.count.counter import aggregated
from dpsyn_sql.private.measure.curator import LocalCurator
from dpsyn_sql.source.relation import Relation, Source

SOURCE = Source(Relation("source", "table", "source", ()))
AS_IT_IS = "adaptive"


class InMemory:
    """Exact counts of codes; each table is counted once."""

    def __init__(self, domain: Domain, codes: NDArray[np.int64]) -> None:
        self.domain, self.codes = domain, codes
        self.tables: dict[MarginalQuery, NDArray[np.int64]] = {}

    def count(
        self, queries: Sequence[MarginalQuery], labels: Sequence[NearestLabel] = ()
    ) -> Iterator[NDArray[np.int64]]:
        """Full tables; those of labels are not kept."""
        if not labels:
            # Pairs over original codes, which all questions share; larger tables over their bins.
            return (
                aggregated(self._table(query.original), query.maps)
                if len(query.attrs) <= 2
                else self._table(query)
                for query in queries
            )
        columns = {name: self.codes[:, place] for place, name in enumerate(self.domain.names)}
        codes = np.column_stack([self.codes, *(label.codes(columns) for label in labels)])
        return InMemory(labelled(self.domain, labels), codes).count(queries)

    def _table(self, query: MarginalQuery) -> NDArray[np.int64]:
        if not query.attrs:
            return np.asarray(len(self.codes))
        if query not in self.tables:
            shape = query.shape(self.domain)
            columns = [
                self.codes[:, self.domain.index(name)]
                if bins is None
                else np.array(bins)[self.codes[:, self.domain.index(name)]]
                for name, bins in zip(query.attrs, query.maps or [None] * len(shape), strict=True)
            ]
            cells = np.ravel_multi_index(tuple(columns), shape)
            self.tables[query] = np.bincount(cells, minlength=math.prod(shape)).reshape(shape)
        return self.tables[query]


class SeededNoise:
    """Rounded noise of the right scale, the same for the same seed: for comparisons, never for a release."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)

    def gaussian(self, values: NDArray[np.int64], sigma: float) -> NDArray[np.int64]:
        return values + np.rint(self.random.normal(0, sigma, values.shape)).astype(np.int64)

    def laplace(self, values: NDArray[np.int64], scale: float) -> NDArray[np.int64]:
        return values + np.rint(self.random.laplace(0, scale, values.shape)).astype(np.int64)

    def select(self, scores: NDArray[np.int64], scale: float, kind: Kind, number: int) -> NDArray[np.int64]:
        """Peeled: Gumbel noise is the exponential mechanism, exponential noise permute-and-flip."""
        law = self.random.gumbel if kind != "pure" else self.random.exponential
        left, chosen = scores.astype(np.float64), list[int]()
        for _ in range(number):
            chosen.append(int(np.argmax(left + law(scale=scale, size=left.shape))))
            left[chosen[-1]] = -np.inf
        return np.array(chosen)


def domain_of(table: Table, sizes: Sequence[int], *, ordered: bool) -> Domain:
    """Codes as categories, in order where the table declares it."""
    columns = table.domain["columns"] if table.domain else {}
    return Domain(
        tuple(
            Attribute(
                name,
                "INTEGER",
                "categorical",
                labels=tuple(range(size)),
                ordered=ordered and columns[name]["ordered"],
            )
            for name, size in zip(columns, sizes, strict=True)
        )
    )


@contextmanager
def varied(variant: str) -> Iterator[Recipe]:
    """The method of a variant."""
    name, _, value = variant.partition("=")
    if variant in METHODS:
        yield METHODS[variant]
    elif name == "pairs":
        before, select.pairs_worth_their_budget = (
            select.pairs_worth_their_budget,
            lambda *_: value == "always",
        )
        try:
            yield Adaptive()
        finally:
            select.pairs_worth_their_budget = before
    elif name == "strength":
        before_it, recipe.LEAST_STRENGTH_PURE = recipe.LEAST_STRENGTH_PURE, float(value)
        try:
            yield Adaptive()
        finally:
            recipe.LEAST_STRENGTH_PURE = before_it
    elif value:
        kind = type(getattr(Adaptive.constants, name))
        constants = replace(Adaptive.constants, **{name: kind(float(value))})
        yield type("Varied", (Adaptive,), {"constants": constants, "__slots__": ()})()
    else:
        yield Adaptive()


def distances(
    counter: InMemory, method: Recipe, epsilon: float, delta: float, seed: int
) -> tuple[float, float]:
    """Two-way and three-way distance of one sample."""
    budget = Budget.from_epsilon(epsilon, delta)
    budget = budget.without_thresholds() if delta else budget
    ledger = MemoryLedger()
    with ledger.open_release(ReleaseKey("variant", "variant", None, {}), budget) as entry:
        door = LocalCurator(entry, SeededNoise(seed))
        door.open(lambda _: counter, counter.domain)
        model = method.run(door, counter.domain, budget)
    ledger.close()
    rows = max(1, round(model.total))
    sample = np.concatenate([*model.sampler().batches(rows, seed)]).astype(np.int64)
    return mean_distances(counter.codes, sample, counter.domain.shape())


def compared(found: Sequence[tuple[float, float]], base: Sequence[tuple[float, float]]) -> list[str]:
    """Mean distances, and their difference from the base in percent of it."""
    cells = []
    for place in (0, 1):
        ours, theirs = [score[place] for score in found], [score[place] for score in base]
        mean = statistics.mean(theirs)
        apart = [100 * (own - other) / mean for own, other in zip(ours, theirs, strict=True)]
        error = statistics.stdev(apart) / len(apart) ** 0.5
        difference = f" ({statistics.mean(apart):+.1f} % ± {error:.1f})" if found is not base else ""
        cells.append(f"{statistics.mean(ours):.4f}{difference}")
    return cells


def main() -> None:
    """Print one table for each input."""
    sources: dict[str, Callable[[], Table]] = {"adult": adult}
    sources |= {name: lambda name=name: table_of(name) for name in TABLES}
    parser = command_line(__doc__)
    parser.add_argument("--tables", nargs="+", choices=[*sources], default=["adult", "weather"])
    parser.add_argument("--vary", nargs="+", default=["pairs=never", "pairs=always", "independent"])
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.1, 1])
    parser.add_argument("--delta", type=float, default=1e-9)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--unordered", action="store_true", help="declare no attribute as ordered")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in arguments.tables:
        table = sources[name]()
        with duckdb.connect() as con:
            table.load(con)
            (codes,), sizes = codes_of(con, ("source",), table.scored)
        counter = InMemory(domain_of(table, sizes, ordered=not arguments.unordered), codes)
        rows: list[list[object]] = []
        for epsilon in arguments.epsilon:
            found: dict[str, list[tuple[float, float]]] = {}
            for variant in [AS_IT_IS, *arguments.vary]:
                with varied(variant) as method:
                    found[variant] = [
                        distances(counter, method, epsilon, arguments.delta, seed)
                        for seed in range(arguments.seeds)
                    ]
                rows.append([f"{epsilon:g}", variant, *compared(found[variant], found[AS_IT_IS])])
                print(*rows[-1], flush=True)
        print_table(
            [f"{name}, epsilon", "variant", "two-way", "three-way"],
            rows,
            f"delta {arguments.delta}, {arguments.seeds} seeds; {machine()}",
        )


if __name__ == "__main__":
    main()
