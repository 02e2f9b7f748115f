"""Mixtures of independent columns: the recipe, its questions and labels."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import ClassVar

import numpy as np

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.attributes.attribute import Domain
from dpsyn_sql.errors import InputError, PlanTooLarge
from dpsyn_sql.fit.arrays import FloatArray, IntArray, snapped
from dpsyn_sql.fit.denoise import Binned, binned, rows_of_a_bin
from dpsyn_sql.fit.estimate import Observation, total_of
from dpsyn_sql.fit.graph import Scope
from dpsyn_sql.fit.latent import PartTable
from dpsyn_sql.fit.mixture import (
    Components,
    at_random,
    by_attribute,
    labels_of,
    logarithms,
    mixture_network,
    of_tables,
    product,
    shares_of_bins,
    softened,
    squared_distances,
    with_classes,
    with_sums,
    within_parts,
)
from dpsyn_sql.methods.independent import (
    LEAST_UNITS,
    asked_again,
    first_tables,
    over_bins,
)
from dpsyn_sql.methods.models.networks import NetworkModel
from dpsyn_sql.methods.recipe import Recipe
from dpsyn_sql.planning.asking import Door, Reserve
from dpsyn_sql.planning.limits import NO_TERMS, Terms
from dpsyn_sql.planning.queries import MarginalQuery, Marginals, NoisyMarginal
from dpsyn_sql.planning.row_labels import MOST_CLASSES, NearestLabel, free_names

# -- questions and labels ----------------------------------------------------------------------------

# What is asked once the one-way tables are known, and the components that the answers lead to.
#
#     first     noisy pairs (of each class) -> latent classes; or components at random
#     label     the component that a row is nearest to, in whole numbers
#     round     tables of (label, attribute) -> weights and profiles, given back what the label cuts off

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

_FAR = 2**40
# The score of a row for a component of another class.

_SEED = 0
# Of the random starts.


@dataclass(frozen=True, slots=True)
class Task:
    """What is public once the one-way tables are known.

    ``working``: the bins. ``classes``: the target whose bins split the rows first, if one
    does. ``informative``: the other attributes of several bins. ``components``: of each class (of all rows
    if there is no target). ``rows``: of a unit at most.
    """

    door: Door
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
        tables = self.door.ask(Marginals(queries), budget).read()
        return dict(zip(scopes, (_parts(table, self.classes is None) for table in tables), strict=True))

    def by_label(self, label: NearestLabel, budget: Budget) -> dict[int, PartTable]:
        """Tables (components, bins) of every attribute."""
        queries = []
        for attribute in self.informative:
            query = over_bins(self.working.domain, [(attribute, self.working.bins[attribute])])
            queries.append(
                MarginalQuery((label.name, *query.attrs), (None, *query.maps) if query.maps else ())
            )
        tables = self.door.ask(Marginals(queries, labels=(label,)), budget).read()
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
        noise = for_pairs.law(self.rows).shared(max(1, len(scopes)))
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
            offsets = logarithms(mixture.weights)
        for attribute in self._looked_at(mixture.number):
            profiles = mixture.profiles[attribute]
            far = self.by == KMEANS
            by_bin = squared_distances(self.working, attribute, profiles) if far else logarithms(profiles)
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


def _parts(table: NoisyMarginal, undivided: bool) -> PartTable:
    """A table with its parts first; one part if it is ``undivided``."""
    values = table.values.astype(np.float64)
    return PartTable(values[None] if undivided else values, table.sigma)


# -- the recipe --------------------------------------------------------------------------------------

# Mixtures: a hidden component of each row, within which columns are independent. Faithful, experimental.
#
#     one-way tables -> working bins                                     fit/denoise.py
#     em, target: noisy pairs (of each class) -> latent classes          fit/mixture.py
#     kmeans: centres drawn from the one-way tables
#     rounds: the label of the nearest component is one more column; one question asks for the tables of
#         (label, attribute) of all attributes -> weights and profiles   fit/mixture.py
#     codes after their bins                                             fit/network.py
#
# The generative cores of DP-SYN (Abay, Zhou, Kantarcioglu, Thuraisingham, Sweeney, ECML PKDD 2018: a split by
# class, expectation maximisation within) and Priv-VAE (Acs, Melis, Castelluccia, De Cristofaro, IEEE TKDE
# 2019: private k-means, a generative model per cluster). What differs from them, and why, is in
# docs/decisions/0050-mixtures.md.

AUTO, EM, TARGET = "auto", "em", "target"

ONE_WAY_SHARE = 10
"""Percent for the one-way tables."""

ROUNDS, ROUNDS_ALONE = 3, 5
"""Rounds after pairs, and from random centres."""

MOST_ROUNDS = 50
"""What the setting takes at most; of ``components`` as many as a label has classes."""

MOST_CHOSEN = 64
"""Components at most that the number of rows chooses."""

ROWS_PER_SIGMA = 40.0
"""Rows of a component on average, in sigmas of a cell of a round times the root of the mean number of bins:
the default has as many components as that leaves."""

LEAST_SIGMAS = 2.0
"""A code stands alone if its noisy count is so many deviations of a cell of a round; else it shares a bin."""

MOST_BINS = 16
"""About how many working bins an attribute gets at most."""

_GRID = 2.0**-10
# Rows, or components.


@dataclass(frozen=True, slots=True)
class Mixture(Recipe):
    """Hidden groups of rows, found on noisy pairs and refined by labels; columns are independent within one.

    ``by``: ``em``, latent classes; ``target``, first the classes of the target, then latent classes within
    each; ``kmeans``, the nearest centre on public scales; ``auto``: ``target`` if one is named, else ``em``.
    ``components``: how many groups, ``rounds``: how often they are counted anew; 0 and 0: by the noisy number
    of rows, and three (five from random centres).
    """

    name = "mixture"
    keeps_columns = False
    model = NetworkModel
    attributes = 300
    takes_target = True
    by: str = AUTO
    components: int = 0
    rounds: int = 0

    choices: ClassVar = {"by": (AUTO, EM, TARGET, KMEANS)}

    def __post_init__(self) -> None:
        faults = [
            f"{name}={value!r}; it can be 0 (as usual) or 1 to {most:,}"
            for name, value, most in (
                ("components", self.components, MOST_CLASSES),
                ("rounds", self.rounds, MOST_ROUNDS),
            )
            if not 0 <= value <= most
        ]
        if faults:
            raise InputError(f"method={self.name!r} has the setting {', and '.join(faults)}")
        self.checked()

    def run(self, door: Door, domain: Domain, budget: Budget, terms: Terms = NO_TERMS) -> NetworkModel:
        """Measure the one-way tables; find components, and count them anew in rounds.

        Raises:
            InputError: ``by='target'`` without a target, or another ``by`` with one.
            PlanTooLarge: the tables of all components have more cells than ``MOST_CELLS``, or than fit the
                limit on memory.
        """
        self._check_target(terms.workload.target)
        target, most = terms.workload.target, 2 * MOST_BINS + 3
        sizes = [min(attribute.size, most) for attribute in domain.attributes if attribute.size > 1]
        first, for_rounds = budget, replace(budget, amount=0)
        if len(sizes) > 1:
            first, for_rounds = budget.split((ONE_WAY_SHARE, 100 - ONE_WAY_SHARE))
        reserve = self._reserve(sizes, for_rounds, bool(target)) if len(sizes) > 1 else None
        if reserve is not None:
            terms.limits.check_measured(reserve.together)
        observed = first_tables(door, domain, first, reserve)
        if reserve is not None and total_of(observed) > 0 and for_rounds.amount >= LEAST_UNITS:
            task = self._task(door, domain, for_rounds, observed, terms)
            if task is not None:
                return _model(task.working, task.total, fitted(task))
            observed = asked_again(observed, domain, door, for_rounds)
        working = binned(domain, observed, [-math.inf] * len(observed), MOST_BINS)
        return _model(working, total_of(observed), product(working.shares))

    def _check_target(self, target: str) -> None:
        if self.by == TARGET and not target:
            raise InputError(
                f"method={self.name!r} with by='target' splits by the target that workload= names, and none "
                "is named: name it, or use by='em'"
            )
        if target and self.by not in (AUTO, TARGET):
            raise InputError(
                f"method={self.name!r} with by={self.by!r} does not use a target of workload=: leave one of "
                "them out"
            )

    def _reserve(self, sizes: Sequence[int], budget: Budget, target: bool) -> Reserve:
        """What may be asked for beyond the one-way tables, by the most bins of every attribute.

        Raises:
            PlanTooLarge: as ``run``.
        """
        *_, second, first = sorted(sizes)
        labelled, rounds = self.components or MOST_CHOSEN, self.rounds or ROUNDS_ALONE
        cells = labelled * sum(sizes)
        if cells > MOST_CELLS:
            raise PlanTooLarge(
                f"The plan is too large: the tables of {labelled:,} components and {len(sizes):,} columns "
                f"have up to {cells:,} cells, above the limit of {MOST_CELLS:,}. Take fewer components, "
                "leave out columns with exclude=, or use method='adaptive'."
            )
        cells_of_pairs = (sum(sizes) ** 2 - sum(size**2 for size in sizes)) // 2
        pairs = min(MOST_CELLS, (first if target else 1) * cells_of_pairs)
        most = max((first if target else 1) * first * second, labelled * first)
        return Reserve("pairs and labels", budget, (), 3 if target else 2, most, rounds * cells + pairs)

    def _task(
        self, door: Door, domain: Domain, budget: Budget, observed: Sequence[Observation], terms: Terms
    ) -> Task | None:
        """Working bins and numbers of components; None if there is nothing to divide the rows by."""
        rows, target = terms.unit.sensitivity, terms.workload.target
        total = float(snapped(np.asarray(total_of(observed)), _GRID))  # it decides on questions
        rounds = self.rounds or (ROUNDS_ALONE if self.by == KMEANS else ROUNDS)
        for_rounds = budget if self.by == KMEANS else budget.split(PAIRS_AND_ROUNDS)[1]
        number = sum(attribute.size > 1 for attribute in domain.attributes)
        noise = for_rounds.law(rows).shared(number * rounds)
        columns = zip(domain.attributes, observed, strict=True)
        least = [rows_of_a_bin(*column, LEAST_SIGMAS * noise, 2 * MOST_BINS) for column in columns]
        working = binned(domain, observed, least, MOST_BINS)
        classes = domain.index(target) if target and working.sizes[domain.index(target)] > 1 else None
        informative = tuple(p for p, size in enumerate(working.sizes) if size > 1 and p != classes)
        if len(informative) < (2 if classes is None else 1):
            return None
        shares = np.ones(1) if classes is None else working.shares[classes]
        bins = math.sqrt(sum(working.sizes[index] for index in informative) / len(informative))
        components = _numbers(shares, self.components, total / (ROWS_PER_SIGMA * bins * noise))
        if sum(components) == 1:
            return None
        return Task(door, working, total, rows, budget, self.by, classes, informative, components, rounds)


def _model(working: Binned, total: float, mixture: Components) -> NetworkModel:
    network = mixture_network(mixture, working.bins, working.within, working.domain.names)
    return NetworkModel(working.domain, total, network)


def _numbers(shares: FloatArray, wanted: int, affordable: float) -> tuple[int, ...]:
    """Components of each class: one, and what is left of all of them in proportion to the shares of rows."""
    left = max(0.0, float(wanted or min(affordable, MOST_CHOSEN)) - shares.size)
    return tuple(1 + int(more) for more in snapped(left * shares / shares.sum(), _GRID))
