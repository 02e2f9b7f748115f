"""What is asked once the one-way tables are known, and the components that the answers lead to.

first     noisy pairs (of each class) -> latent classes; or components at random
label     the component that a row is nearest to, in whole numbers
round     tables of (label, attribute) -> weights and profiles, given back what the label cuts off
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations

import numpy as np

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.fit.arrays import FloatArray, IntArray
from dpsyn_sql.fit.denoise import Binned
from dpsyn_sql.fit.estimate import Observation
from dpsyn_sql.fit.graph import Scope
from dpsyn_sql.fit.latent import PartTable
from dpsyn_sql.fit.mixture import (
    Components,
    at_random,
    by_attribute,
    of_tables,
    product,
    shares_of_bins,
    softened,
    with_classes,
    with_sums,
    within_parts,
)
from dpsyn_sql.methods.independent import cell_deviation, over_bins
from dpsyn_sql.planning.queries import Curator, MarginalQuery, Marginals, NoisyMarginal
from dpsyn_sql.planning.row_labels import NearestLabel, free_names

KMEANS = "kmeans"

PAIRS_AND_ROUNDS = (30, 60)
"""Parts of what is left after the one-way tables: for what the first labels rest on, and for the rounds."""

PAIR_ROWS_PER_SIGMA = 2.0
"""Rows of a cell of a pair on average, in sigmas, below which pairs are not asked for: labels then start at
random."""

MOST_CELLS = 2**24
"""Cells of all tables that are asked for at once, at most: 128 MB."""

MOST_SCORES = 2**17
"""Scores of a label at most, one for each component and code: they are part of a statement."""

_SCALE = 1_000
# A score is minus the logarithm of a probability in thousandths.

_SQUARES = 2**20
# Of a squared distance: scales are public and between 0 and 1.

_FAR = 2**40
# The score of a row for a component of another class.

_LEAST = 1e-12
# The least probability of which a score is made.

_SEED = 0
# Of the random starts.


@dataclass(frozen=True, slots=True)
class Task:
    """What is public once the one-way tables are known.

    ``working``: the bins. ``classes``: the target whose bins split the rows first, if one
    does. ``informative``: the other attributes of several bins. ``components``: of each class (of all rows
    if there is no target). ``rows``: of a unit at most.
    """

    curator: Curator
    working: Binned
    total: float
    rows: int
    budget: Budget
    by: str
    classes: int | None
    informative: tuple[int, ...]
    components: tuple[int, ...]
    rounds: int

    @property
    def class_of(self) -> IntArray:
        """The class of each component (K,)."""
        return np.repeat(np.arange(len(self.components)), self.components)

    def by_class(self, scopes: Sequence[Scope], budget: Budget) -> dict[Scope, PartTable]:
        """Tables (classes, bins ...) of attributes by position."""
        bins = self.working.bins
        first = () if self.classes is None else ((self.classes, bins[self.classes]),)
        queries = [
            over_bins(self.working.domain, (*first, *((attribute, bins[attribute]) for attribute in scope)))
            for scope in scopes
        ]
        tables = self.curator.ask(Marginals(queries), budget)
        return dict(zip(scopes, (_parts(table, self.classes is None) for table in tables), strict=True))

    def by_label(self, label: NearestLabel, budget: Budget) -> dict[int, PartTable]:
        """Tables (components, bins) of every attribute."""
        queries = []
        for attribute in self.informative:
            query = over_bins(self.working.domain, [(attribute, self.working.bins[attribute])])
            queries.append(
                MarginalQuery((label.name, *query.attrs), (None, *query.maps) if query.maps else ())
            )
        tables = self.curator.ask(Marginals(queries, labels=(label,)), budget)
        return dict(zip(self.informative, (_parts(table, False) for table in tables), strict=True))

    def counted(
        self, margins: Sequence[Observation], tables: Mapping[int, PartTable]
    ) -> tuple[list[Observation], list[FloatArray], Components]:
        """One-way tables pooled with the sums of these, shares of bins, and the parts that they count."""
        margins = with_sums(margins, tables)
        shares = shares_of_bins(margins, self.working.shares, self.total)
        return margins, shares, of_tables(tables, shares, self.total)

    def round(
        self, margins: Sequence[Observation], mixture: Components, number: int, budget: Budget
    ) -> tuple[list[Observation], Components]:
        """Ask for the tables of a label, and fit the components to them."""
        label = self.label(mixture, number)
        margins, shares, counted = self.counted(margins, self.by_label(label, budget))
        # The label of a class is no part of the tables: it follows from the component.
        counted = self.of_class(counted, self.class_of)
        start = counted if self.by == KMEANS and number == 1 else mixture
        mixture = softened(start, counted, partial(labels_of, label, self.working), shares, number)
        return margins, self.of_class(mixture, self.class_of)

    def first(self) -> tuple[list[Observation], Components, Budget]:
        """Components before any row has a label, fitted to pairs where these stand out of their noise, else
        at random; one-way tables, and the budget that is left."""
        scopes, margins = list(combinations(self.informative, 2)), list(self.working.observed)
        for_pairs, left = self.budget.split(PAIRS_AND_ROUNDS)
        sizes, classes = self.working.sizes, len(self.components)
        cells = classes * sum(sizes[a] * sizes[b] for a, b in scopes)
        noise = cell_deviation(for_pairs, max(1, len(scopes)), self.rows)
        stand_out = self.total * len(scopes) >= PAIR_ROWS_PER_SIGMA * noise * cells
        if self.by == KMEANS or not scopes or cells > MOST_CELLS or not stand_out:
            drawn = at_random(self.working.shares, self.class_of.size, _SEED)
            return margins, self.of_class(drawn, self.class_of), self.budget
        pairs = self.by_class(scopes, for_pairs)
        tables = by_attribute(pairs)
        margins = with_sums(margins, tables)
        shares = shares_of_bins(margins, self.working.shares, self.total)
        outer = product(shares)
        if classes > 1:
            outer = self.of_class(of_tables(tables, shares, self.total), np.arange(classes))
        mixture = within_parts(outer, pairs, self.components, self.total, _SEED)
        return margins, self.of_class(mixture, self.class_of), left

    def of_class(self, mixture: Components, class_of: IntArray) -> Components:
        if self.classes is None:
            return mixture
        return with_classes(mixture, self.classes, class_of, self.working.shares[self.classes])

    def label(self, mixture: Components, number: int) -> NearestLabel:
        """The component that a row is nearest to, among those of its class."""
        domain, bins = self.working.domain, self.working.bins
        scores, offsets = [], np.zeros(mixture.number, np.int64)
        if self.by != KMEANS:
            offsets = _logarithms(mixture.weights)
        for attribute in self._looked_at(mixture.number):
            profiles = mixture.profiles[attribute]
            by_bin = self._squares(attribute, profiles) if self.by == KMEANS else _logarithms(profiles)
            scores.append((domain.names[attribute], by_bin[:, bins[attribute]]))
        if self.classes is not None:
            apart = np.where(mixture.profiles[self.classes] > 0, 0, _FAR)
            scores.append((domain.names[self.classes], apart[:, bins[self.classes]]))
        return NearestLabel(
            free_names(domain, number)[-1],
            tuple(offsets.tolist()),
            tuple((name, tuple(map(tuple, table.tolist()))) for name, table in scores),
        )

    def _looked_at(self, components: int) -> list[int]:
        """Places of attributes that a label looks at: those of the fewest codes, as many as ``MOST_SCORES``
        allows, and at least one."""
        codes = [self.working.bins[attribute].size for attribute in self.informative]
        order = np.argsort(codes, kind="stable")
        fitting = int((components * np.cumsum(np.array(codes)[order]) <= MOST_SCORES).sum())
        return sorted(self.informative[index] for index in order[: max(1, fitting)])

    def _squares(self, attribute: int, profiles: FloatArray) -> IntArray:
        """Squared distances (K, bins) of bins to the centres of components."""
        at = _on_scale(self.working, attribute)
        squares = ((at - (profiles @ at)[:, None]) ** 2).sum(axis=-1)
        return np.asarray(np.rint(_SQUARES * squares), np.int64)


def fitted(task: Task) -> Components:
    """Ask for what the first components rest on, then count them anew in rounds."""
    if task.class_of.size == len(task.components):  # the classes alone
        scopes = [(attribute,) for attribute in task.informative]
        tables = task.by_class(scopes, task.budget)
        *_, mixture = task.counted(
            task.working.observed, {attribute: tables[attribute,] for attribute in task.informative}
        )
        return task.of_class(mixture, task.class_of)
    margins, mixture, left = task.first()
    for number, budget in enumerate(left.split([1] * task.rounds), start=1):
        margins, mixture = task.round(margins, mixture, number, budget)
    return mixture


def labels_of(label: NearestLabel, working: Binned, rows: Sequence[IntArray]) -> IntArray:
    """The label of rows in bins: it is the same for all codes of a bin."""
    firsts = (np.unique(bins, return_index=True)[1] for bins in working.bins)
    names = working.domain.names
    return label.codes({name: first[column] for name, first, column in zip(names, firsts, rows, strict=True)})


def _parts(table: NoisyMarginal, undivided: bool) -> PartTable:
    """A table with its parts first; one part if it is ``undivided``."""
    values = table.values.astype(np.float64)
    return PartTable(values[None] if undivided else values, table.sigma)


def _logarithms(probabilities: FloatArray) -> IntArray:
    """Minus the natural logarithm in thousandths; that of 0 is that of the least share."""
    return np.asarray(np.rint(-_SCALE * np.log(np.maximum(probabilities, _LEAST))), np.int64)


def _on_scale(working: Binned, index: int) -> FloatArray:
    """Where the bins of an attribute lie (bins, axes), from public facts: ordered codes on an axis from 0 to
    1; codes without order, and ``__other__`` and NULL, each on an axis of its own: two differ by 1."""
    attribute, bins = working.domain.attributes[index], working.bins[index]
    size, ordered = working.sizes[index], np.zeros(bins.size, np.bool_)
    ordered[: attribute.regular if attribute.ordered else 0] = True
    codes = np.bincount(bins, minlength=size)
    inside = np.bincount(bins[ordered], minlength=size) / codes
    steps = np.arange(bins.size) / max(1, attribute.regular - 1)
    mean = np.bincount(bins[ordered], steps[ordered], size) / np.maximum(codes * inside, 1)
    middle = np.where(inside > 0, mean, 0.5)
    return np.column_stack([middle, np.diag((1 - inside) / math.sqrt(2))])
