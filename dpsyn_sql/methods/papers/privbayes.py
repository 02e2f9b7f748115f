"""PrivBayes: a network of attributes, each with a few parents, chosen and measured privately.

    one-way tables -> working bins, levels as parents                     Encoded, fit/denoise.py
    many attributes: noisy distances of all pairs rank candidates         Task.distances, candidates
    for each attribute in turn: a private choice of child and parents by
    a score, then the noisy table of both                                 Task.chosen, GrowingNetwork.place
    codes after their bins                                                fit/network.py

After Zhang, Cormode, Procopiuc, Srivastava and Xiao (SIGMOD 2014, TODS 2017). What differs from the paper,
and why, is in docs/privacy.md ("PrivBayes networks") and docs/decisions/0018.

The score ``L1`` of a family (X, P) at the door is the integer |counts - reference|_1 with reference =
round(N Q(P) q(x)): Q is the joint distribution of the parents in the model so far, q the child's own, N the
noisy total. All three come from answers that are released already. The scores of the paper, mutual
information, F and R, are made of the counts alone, in whole steps (docs/privacy.md, "Scores of families").
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, product
from typing import ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.accounting.budget import MEAN_ABSOLUTE, Budget
from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.errors import InputError
from dpsyn_sql.fit.arrays import FloatArray, IntArray, fit_joint, snapped
from dpsyn_sql.fit.denoise import Binned, binned, denoised, shares_of
from dpsyn_sql.fit.elimination import joint, work_of
from dpsyn_sql.fit.estimate import Observation, total_of
from dpsyn_sql.fit.network import Builder, Network, proper
from dpsyn_sql.methods.independent import (
    LEAST_UNITS,
    MAX_CANDIDATE_CELLS,
    asked_again,
    candidate_queries,
    one_way_steps,
    one_way_tables,
    over_bins,
)
from dpsyn_sql.methods.models.networks import NetworkModel
from dpsyn_sql.methods.recipe import Recipe
from dpsyn_sql.planning.asking import Door, Reserve
from dpsyn_sql.planning.limits import NO_TERMS, Limits, Terms
from dpsyn_sql.planning.queries import Choice, Distances, FamilyChoice, MarginalQuery, Marginals, Score
from dpsyn_sql.rows.sample.systematic import stratified

MOST_DEGREE = 4
"""Parents of an attribute, at most."""

MOST_CELLS = 2**17
"""Cells of a table of more than two attributes, at most."""

SHARES = (35, 65)
"""Percent for the one-way tables, whose error enters every family, and for the families."""

CHOOSING_AND_MEASURING = (10, 60)
"""Shares of what the families get: for choosing them, and for their tables."""

RANK_PERCENT = 25
"""Of the budget of the choices, for the distances of pairs that rank candidates."""

LEAST_SIGMAS = 4.0
"""A code stands alone if its noisy count is this many deviations of a family's table; otherwise it shares a
bin, in which families are measured."""

MOST_BINS = 32
"""About how many bins an ordered attribute gets at most."""

FEW_CANDIDATES = 256
"""If no step can have more, every step looks at all of them."""

MOST_CANDIDATES, MOST_CHILDREN, MOST_PARENTS = 64, 16, 8
"""Of one step, where distances of pairs rank them: families, children, and parents of a child."""

CHARGE = 0.25
"""The part of a table's sampling error and noise (mean absolute values, rows) that lowers its score: fitting
drops most of both."""

MOST_BITS = 40
"""``I`` is mutual information up to 2^40 rows at most."""

SAMPLE_ROWS = 2**17
"""Rows of the public sample of the model, for joint distributions that are too large to compute."""

MOST_WORK = 2**16
"""The most lines of all steps to a joint distribution that is computed; a few milliseconds."""

MIXED = 1e-6
"""The part of the child's own distribution in each of its conditional ones: no value becomes impossible."""

_FOR_PAIRS = 2
# Cells of candidate pairs per cell of larger candidate tables, which are all kept too.

_LARGEST_TOTAL = 2.0**56
# References must sum to less than 2^57.

_ENTROPY_GRID, _SHARE_GRID = 2.0**-24, 2.0**-30
# What is compared is snapped to these, so that every machine decides alike.

_SEED = 0
# Public: the sample is a function of noisy answers.

L1 = "L1"
VANILLA, HIERARCHICAL = "vanilla", "hierarchical"

# -- the recipe --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PrivBayes(Recipe):
    """A network in which every column has a few parents, chosen and measured one after the other.

    ``degree``: parents of a column, at most; 0: as many as leave a useful table, whose counts are on average
    ``theta`` times their noise. ``score``: what chooses the parents, ``L1`` (the distance to what the model
    expects), or a score of the paper: ``I`` (mutual information), ``R`` (the distance to independence) or
    ``F`` (the distance to full dependence; for columns of two values). ``encoding``: ``vanilla``, or
    ``hierarchical``: parents at coarser levels too.
    """

    name = "privbayes"
    model = NetworkModel
    attributes = 300
    takes_target = True
    degree: int = 0
    theta: float = 4.0
    score: str = L1
    encoding: str = VANILLA

    choices: ClassVar = {"score": (L1, "I", "F", "R"), "encoding": (VANILLA, HIERARCHICAL)}

    def __post_init__(self) -> None:
        faults = []
        if not 0 <= self.degree <= MOST_DEGREE:
            faults.append(f"degree={self.degree!r}; it can be 0 (as many as theta allows) to {MOST_DEGREE}")
        if not self.theta > 0:
            faults.append(f"theta={self.theta!r}; it can be a number above 0")
        if faults:
            raise InputError(f"method={self.name!r} has the setting {', and '.join(faults)}")
        self.checked()

    def run(self, door: Door, domain: Domain, budget: Budget, terms: Terms = NO_TERMS) -> NetworkModel:
        """Measure the one-way tables; choose and measure a family for each attribute but the first.

        Raises:
            InputError: ``score='F'``, and an attribute has more than two codes.
        """
        large = [attribute for attribute in domain.attributes if attribute.size > 2]
        if self.score == "F" and large:
            raise InputError(
                f"score='F' needs columns of two values, but {large[0].name!r} has {large[0].size} codes "
                f"(of {len(large)} such columns), __other__ and NULL included: use score='L1', 'I' or 'R'"
            )
        most = self.caps(terms.limits)["candidate cells"]
        pairs = candidate_queries(domain, most)
        first, for_families = budget.split(SHARES) if pairs else (budget, replace(budget, amount=0))
        handles = [door.ask(*step) for step in one_way_steps(domain, first)]
        name, degree, cells = "families of children and parents", self._degree + 1, most // _FOR_PAIRS
        reserve = Reserve(name, for_families, pairs, degree, MOST_CELLS, cells)
        if pairs:
            door.reserve(reserve)
        observed = one_way_tables(domain, handles)
        if pairs and total_of(observed) > 0 and for_families.amount >= LEAST_UNITS:
            task = self._task(door, domain, reserve, observed, terms)
            if len(task.active) > 1:
                return NetworkModel(domain, total_of(observed), grown_network(task).network())
            observed = asked_again(observed, domain, door, for_families)
        return NetworkModel(domain, total_of(observed), _independent(domain, observed))

    def caps(self, limits: Limits) -> dict[str, int]:
        """Most cells of all candidates."""
        return {"candidate cells": limits.candidate_cells(MAX_CANDIDATE_CELLS)}

    @property
    def _degree(self) -> int:
        return self.degree or MOST_DEGREE

    def _task(
        self, door: Door, domain: Domain, reserve: Reserve, observed: Sequence[Observation], terms: Terms
    ) -> Task:
        """Bins, levels, budgets and bounds, from the noisy one-way tables."""
        rows, target = terms.unit.sensitivity, terms.workload.target
        planned = {(domain.index(query.attrs[0]), domain.index(query.attrs[1])) for query in reserve.queries}
        choosing, measuring = reserve.budget.split(CHOOSING_AND_MEASURING)
        total, active = max(total_of(observed), 1.0), sorted({v for pair in planned for v in pair})
        least = LEAST_SIGMAS * measuring.law(rows).shared(len(active) - 1)
        bins = binned(domain, observed, [least] * len(observed), MOST_BINS)
        encoded = Encoded.of(bins, hierarchical=self.encoding == HIERARCHICAL)
        active = [v for v in active if encoded.size((v, 0)) > 1]
        families = max(1, len(active) - 1)
        law = measuring.law(rows)
        noise = law.shared(families)
        mean = noise * law.absolute_part
        useful = total / (self.theta * mean) if self.degree == 0 else math.inf
        # Tables that may be asked for: the candidates of every step, or of fewer a step, and all pairs.
        tables = max(
            FEW_CANDIDATES * families,
            MOST_CANDIDATES * families + math.comb(families + 1, 2),
        )
        further = reserve.together // tables
        bounds = Bounds(self._degree, useful, min(further, MOST_CELLS), frozenset(planned))
        first = domain.index(target) if target else None
        always = first if first in active else None
        return Task(door, encoded, total, active, noise, choosing, measuring, bounds, self.score, always)


def _independent(domain: Domain, observed: Sequence[Observation]) -> Network:
    """Attributes by themselves; all uniform if the noisy total says that there are no rows."""
    total, build = total_of(observed), Builder(domain.names, domain.shape())
    for index, (attribute, table) in enumerate(zip(domain.attributes, observed, strict=True)):
        weights = np.ones(attribute.size)
        if total > 0:
            weights = shares_of(attribute, denoised(attribute, table.values, float(table.sigma)), total)
        build.add(attribute.name, (), (index,), weights)
    return build.network(together=False)


def grown_network(task: Task) -> GrowingNetwork:
    """One attribute after the other: a private choice, then the noisy table of the chosen family.

    The target, else the attribute of most entropy, is the first. Attributes without a family that may be
    counted are independent.
    """
    encoded = task.encoded
    grown, first = GrowingNetwork.of(encoded), task.first
    grown.place(Family(first, ()))
    outside = [v for v in task.active if v != first]
    ranks, choosing = None, task.choosing
    if largest_number(encoded, task.active, task.bounds.degree) > FEW_CANDIDATES:
        ranking, choosing = choosing.split((RANK_PERCENT, 100 - RANK_PERCENT))
        ranks = task.distances(ranking)
    even = [1] * len(outside)
    for choice, table in zip(choosing.split(even), task.measuring.split(even), strict=True):
        inside = [v for v in task.active if v not in outside]
        families = candidates(encoded, inside, outside, task.bounds, ranks, task.target)
        if not families:
            break
        family = task.chosen(grown, families, choice)
        grown.place(family, task.measured(family, table), task.total)
        outside.remove(family.child)
    for v in range(len(encoded.levels)):
        if v not in grown.sample and encoded.size((v, 0)) > 1:
            grown.place(Family(v, ()))
    return grown


# -- encodings (TODS 2017, section 5) ----------------------------------------------------------------

# Vanilla: an attribute has its working bins alone. Hierarchical: as a parent it may also be taken at a
# coarser level, so that more parents fit into a useful table. No domain declares a taxonomy; levels are made
# from public facts and noisy one-way tables:
#
# - Neighbouring bins of an ordered attribute are joined two by two; ``__other__`` and NULL stay apart if they
#   have bins of their own.
# - Of an unordered attribute the more frequent half of the bins stay, all others share one.

Parent = tuple[int, int]
"""An attribute (by position) and its level; 0 are the working bins."""


@dataclass(frozen=True, slots=True)
class Family:
    """A child (by position) and its parents, ascending."""

    child: int
    parents: tuple[Parent, ...]

    @property
    def attributes(self) -> tuple[int, ...]:
        """Those of the parents, then the child: the axes of its tables."""
        return (*(attribute for attribute, _ in self.parents), self.child)


@dataclass(frozen=True, slots=True)
class Encoded:
    """Attributes in working bins; ``levels[i][l]`` (int64, one per bin): the value of each bin at level l,
    of ``sizes[i][l]`` values."""

    binned: Binned
    levels: tuple[tuple[IntArray, ...], ...]
    sizes: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, binned: Binned, *, hierarchical: bool) -> Encoded:
        """Levels of every attribute, down to two values; vanilla: the working bins alone."""
        columns = zip(binned.domain.attributes, binned.bins, binned.shares, strict=True)
        levels = [
            _levels(attribute, bins, shares) if hierarchical else (np.arange(shares.size),)
            for attribute, bins, shares in columns
        ]
        sizes = (tuple(int(level.max()) + 1 for level in of_attribute) for of_attribute in levels)
        return cls(binned, tuple(levels), tuple(sizes))

    @property
    def shares(self) -> tuple[FloatArray, ...]:
        """Probabilities of the working bins of each attribute."""
        return self.binned.shares

    def size(self, parent: Parent) -> int:
        """Values of an attribute at a level."""
        attribute, level = parent
        return self.sizes[attribute][level]

    def query(self, family: Family) -> MarginalQuery:
        """The question for the table of a family, attributes in domain order."""
        members = sorted([*family.parents, (family.child, 0)])
        bins = self.binned.bins
        return over_bins(self.binned.domain, ((v, self.levels[v][level][bins[v]]) for v, level in members))


def in_order_of_family(family: Family, table: NDArray[np.generic]) -> FloatArray:
    """A table from the axes of its question, in domain order, to those of the family."""
    axes = sorted(family.attributes)
    return np.asarray(table.transpose([axes.index(v) for v in family.attributes]), dtype=np.float64)


def in_order_of_question(family: Family, table: FloatArray) -> FloatArray:
    """The way back."""
    axes = family.attributes
    return table.transpose([axes.index(v) for v in sorted(axes)])


def _levels(attribute: Attribute, bins: IntArray, shares: FloatArray) -> tuple[IntArray, ...]:
    levels = [np.arange(shares.size)]
    regular = int(bins[: attribute.regular].max(initial=-1)) + 1  # discovery can find no category at all
    while True:
        last = levels[-1]
        coarser = _paired(last, regular) if attribute.ordered else _rarer_joined(last, shares)
        if coarser.max() < 1 or coarser.max() == last.max():
            return tuple(levels)
        levels.append(coarser)


def _paired(level: IntArray, regular: int) -> IntArray:
    """Neighbours among the first ``regular`` bins joined two by two; later ones stay."""
    joined = level[:regular] // 2
    return np.concatenate([joined, level[regular:] - level[regular - 1] + joined[-1]])


def _rarer_joined(level: IntArray, shares: FloatArray) -> IntArray:
    """The more frequent half of the values, less one, stay in order; the last value is all others."""
    size = int(level.max()) + 1
    mass = snapped(np.bincount(level, shares).astype(np.float64), _SHARE_GRID)
    frequent = np.sort(np.argsort(-mass, kind="stable")[: (size + 1) // 2 - 1])
    new_value = np.full(size, frequent.size)
    new_value[frequent] = np.arange(frequent.size)
    return np.asarray(new_value[level])


# -- candidates of a step ----------------------------------------------------------------------------

# Their number is bounded by public constants. Which they are follows from noisy answers alone.


@dataclass(frozen=True, slots=True)
class Bounds:
    """``degree``: parents at most. ``useful``: cells of a table that stand out of its noise on average
    (infinite for a fixed degree). ``countable``: cells of a table that may be counted. ``pairs``: attributes
    whose pair may be counted however large it is."""

    degree: int
    useful: float
    countable: int
    pairs: frozenset[tuple[int, int]]

    def fits(self, encoded: Encoded, child: int, parents: Sequence[Parent]) -> bool:
        """Whether a table may be asked for. A single parent need not be useful: shrinkage drops its noise."""
        cells = _cells(encoded, [*parents, (child, 0)])
        if len(parents) == 1:
            pair = min(child, parents[0][0]), max(child, parents[0][0])
            return pair in self.pairs or cells <= self.countable
        return cells <= min(self.useful, self.countable)


def largest_number(encoded: Encoded, active: Sequence[int], degree: int) -> int:
    """The most candidates that a step can have if every set of parents fits; with levels, if each set has as
    many as it has parents."""
    several = any(len(encoded.levels[v]) > 1 for v in active)
    each = [size if several else 1 for size in range(degree + 1)]
    number = len(active)
    return max(
        (
            (number - placed) * sum(each[size] * math.comb(placed, size) for size in range(1, degree + 1))
            for placed in range(1, number)
        ),
        default=0,
    )


def candidates(
    encoded: Encoded,
    inside: Sequence[int],
    outside: Sequence[int],
    bounds: Bounds,
    ranks: Mapping[tuple[int, int], float] | None,
    target: int | None = None,
) -> list[Family]:
    """Families to choose from: all, or the ``MOST_CANDIDATES`` most promising.

    Args:
        encoded: attributes and their levels.
        inside: attributes placed.
        outside: the others.
        bounds: of the tables.
        ranks: what is known of each pair of attributes, large for dependence; None if there are so few
            candidates that all are taken.
        target: a placed attribute that is a parent of every child whose table with it may be asked for.
    """
    if ranks is None:
        families = (f for child in outside for f in _families(encoded, child, sorted(inside), bounds, target))
        return list(families)

    def rank(child: int, parent: int) -> float:
        return ranks.get((min(child, parent), max(child, parent)), 0.0)

    best = {child: max(rank(child, parent) for parent in inside) for child in outside}
    likely = sorted(outside, key=lambda child: -best[child])[:MOST_CHILDREN]
    scored: list[tuple[float, Family]] = []
    for child in likely:
        near = sorted(inside, key=lambda parent: -rank(child, parent))[:MOST_PARENTS]
        nearest = {*near, *(() if target is None else (target,))}
        for family in _families(encoded, child, sorted(nearest), bounds, target):
            scored.append((sum(max(0.0, rank(child, parent)) for parent, _ in family.parents), family))
    scored.sort(key=lambda pair: -pair[0])
    return [family for _, family in scored[:MOST_CANDIDATES]]


def _families(
    encoded: Encoded, child: int, inside: Sequence[int], bounds: Bounds, target: int | None
) -> Iterator[Family]:
    """A child with every set of parents that fits; of the levels of one set those that no finer ones beat.

    If the child fits a table with the target, the target is in every set.
    """
    if target is not None and not _finest(encoded, child, (target,), bounds):
        target = None
    for size in range(1, bounds.degree + 1):
        for chosen in combinations(inside, size):
            if target is None or target in chosen:
                yield from (Family(child, parents) for parents in _finest(encoded, child, chosen, bounds))


def _finest(encoded: Encoded, child: int, chosen: Sequence[int], bounds: Bounds) -> list[tuple[Parent, ...]]:
    """Levels that fit, and do not with any one of them finer by one: of these the largest tables, as many as
    there are parents (``largest_number`` counts on it)."""
    finest = tuple((attribute, 0) for attribute in chosen)
    if bounds.fits(encoded, child, finest):
        return [finest]
    levels = [range(len(encoded.levels[attribute])) for attribute in chosen]
    fitting = {
        combination
        for combination in product(*levels)
        if bounds.fits(encoded, child, tuple(zip(chosen, combination, strict=True)))
    }
    maximal = [
        combination
        for combination in sorted(fitting)
        if not any(
            (*combination[:index], level - 1, *combination[index + 1 :]) in fitting
            for index, level in enumerate(combination)
        )
    ]
    parent_sets = [tuple(zip(chosen, combination, strict=True)) for combination in maximal]
    return sorted(parent_sets, key=lambda parents: -_cells(encoded, parents))[: len(chosen)]


def _cells(encoded: Encoded, members: Sequence[Parent]) -> int:
    return math.prod(encoded.size(member) for member in members)


# -- questions ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Task:
    """What stays the same while the network grows.

    ``total``: rows, at least 1. ``active``: attributes with several bins, ascending; the others are
    independent. ``noise``: standard deviation of a cell (rows) of the table of a family. ``choosing`` and
    ``measuring``: budgets of all choices (or pair tables) and of all tables. ``bounds``: of the tables that
    may be asked for. ``score``: what chooses. ``target``: the active attribute that the network starts at,
    and that is a parent of all others where tables allow it.
    """

    door: Door
    encoded: Encoded
    total: float
    active: Sequence[int]
    noise: float
    choosing: Budget
    measuring: Budget
    bounds: Bounds
    score: str
    target: int | None

    @property
    def first(self) -> int:
        """The target, else the active attribute of most entropy."""
        if self.target is not None:
            return self.target
        shares = [np.maximum(self.encoded.shares[v], np.finfo(np.float64).tiny) for v in self.active]
        entropies = snapped(np.array([-(q * np.log(q)).sum() for q in shares]), _ENTROPY_GRID)
        return self.active[int(np.argmax(entropies))]

    @property
    def _rows(self) -> float:
        """The total that references are made of."""
        return min(self.total, _LARGEST_TOTAL)

    def chosen(self, grown: GrowingNetwork, families: Sequence[Family], budget: Budget) -> Family:
        """A private choice of the family of the largest score."""
        queries = [self.encoded.query(family) for family in families]
        if self.score == L1:
            references, allowances = self._expected(grown, families)
            (best,) = self.door.ask(Choice(queries, references, 1, allowances), budget).read()
            return families[best]
        names = self.encoded.binned.domain.names
        children = [names[family.child] for family in families]
        bits = self._bits if self.score == "I" else 0
        choice = FamilyChoice(queries, children, cast(Score, self.score), bits)
        return families[self.door.ask(choice, budget).read()]

    def _expected(
        self, grown: GrowingNetwork, families: Sequence[Family]
    ) -> tuple[list[IntArray], list[int]]:
        """Of each family its counts if the child is independent of its parents, and an allowance.

        Without any dependence a score is as large as the sampling errors are, and what the noise of the table
        will be is lost again: both are allowed for.
        """
        references, allowances = list[IntArray](), list[int]()
        for family in families:
            above, _ = grown.parents_joint(family.parents)
            expected = self._rows * np.multiply.outer(above, self.encoded.shares[family.child])
            chance = CHARGE * MEAN_ABSOLUTE * float(np.sqrt(expected + self.noise**2).sum())
            allowances.append(round(min(chance, _LARGEST_TOTAL)))
            references.append(np.rint(in_order_of_question(family, expected)).astype(np.int64))
        return references, allowances

    @property
    def _bits(self) -> int:
        """2^bits is between two and four times the noisy number of rows, so hardly below the true one."""
        rows = int(snapped(np.array([self._rows]), 1.0)[0])
        return min(MOST_BITS, rows.bit_length() + 1)

    def measured(self, family: Family, budget: Budget) -> Observation:
        """The noisy table of a family (parents' values ..., child's values)."""
        (table,) = self.door.ask(Marginals([self.encoded.query(family)]), budget).read()
        return Observation(in_order_of_family(family, table.values), np.asarray(table.sigma))

    def distances(self, budget: Budget) -> dict[tuple[int, int], float]:
        """Of every pair of active attributes that may be counted its noisy distance to independence, less
        what sampling explains (rows)."""
        pairs = [
            (parent, child)
            for parent, child in combinations(self.active, 2)
            if self.bounds.fits(self.encoded, child, ((parent, 0),))
        ]
        if not pairs:
            return {}
        shares = self.encoded.shares
        expected = [self._rows * np.outer(shares[parent], shares[child]) for parent, child in pairs]
        references = [np.rint(table).astype(np.int64) for table in expected]
        queries = [self.encoded.query(Family(child, ((parent, 0),))) for parent, child in pairs]
        noisy = self.door.ask(Distances(queries, references), budget).read()
        beyond = [
            rows - MEAN_ABSOLUTE * float(np.sqrt(table).sum())
            for rows, table in zip(noisy, expected, strict=True)
        ]
        return dict(zip(pairs, snapped(np.array(beyond), 1.0).tolist(), strict=True))


# -- the network as far as it is grown ---------------------------------------------------------------


@dataclass
class GrowingNetwork:
    """Nodes so far; the first variables are the attributes in working bins, coarser levels come after them.

    ``build``: the network as it is. ``sample``: values of the attributes placed, for ``SAMPLE_ROWS`` rows.
    Post-processing of noisy answers only.
    """

    encoded: Encoded
    build: Builder
    sample: dict[int, IntArray] = field(default_factory=dict)
    _coarse: dict[Parent, int] = field(default_factory=dict)
    _joints: dict[tuple[Parent, ...], tuple[FloatArray, bool]] = field(default_factory=dict)
    _random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(_SEED))

    @classmethod
    def of(cls, encoded: Encoded) -> GrowingNetwork:
        """Nothing is placed yet."""
        binned, sizes = encoded.binned, [encoded.size((v, 0)) for v in range(len(encoded.levels))]
        return cls(encoded, Builder(binned.domain.names, sizes, binned.bins, binned.within))

    def place(self, family: Family, table: Observation | None = None, total: float = 1.0) -> None:
        """Add a child with the distribution that a noisy table of its family gives it; without parents, its
        own."""
        shares = self.encoded.shares[family.child]
        name = self.encoded.binned.domain.names[family.child]
        conditional, reach = shares[None, :], None
        if table is not None:
            above, exact = self.parents_joint(family.parents)
            conditional = fitted_conditional(table, above.ravel(), shares, total)
            reach = above.ravel() if exact else None
        parents = [self._variable(parent) for parent in family.parents]
        self.build.add(name, parents, (family.child,), conditional, reach)
        self.sample[family.child] = stratified(self._rows(family.parents), conditional, self._random)

    def parents_joint(self, parents: tuple[Parent, ...]) -> tuple[FloatArray, bool]:
        """Joint distribution of attributes that are placed, and whether it is exact.

        It is that of the sample where an exact one takes too long. Later nodes do not change it.
        """
        if parents not in self._joints:
            self._joints[parents] = self._joint(parents)
        return self._joints[parents]

    def network(self) -> Network:
        """The whole network, with codes after their working bins."""
        for attribute in range(len(self.encoded.levels)):
            self.build.add_codes(attribute)
        return self.build.network(together=False)

    def _joint(self, parents: tuple[Parent, ...]) -> tuple[FloatArray, bool]:
        attributes = [attribute for attribute, _ in parents]
        network = self.build.network(together=False)
        work = work_of(network, attributes)
        if work is not None and work <= MOST_WORK:
            table = joint(network, attributes)
            for axis, (attribute, level) in enumerate(parents):
                table = _coarser(table, axis, self.encoded.levels[attribute][level])
            return table, True
        shape = [self.encoded.size(parent) for parent in parents]
        counts = np.bincount(self._rows(parents), minlength=math.prod(shape))
        return counts.reshape(shape) / SAMPLE_ROWS, False

    def _variable(self, parent: Parent) -> int:
        """The variable of an attribute at a level; a coarser one gets a node that follows from the bins."""
        attribute, level = parent
        if level == 0:
            return attribute
        if parent not in self._coarse:
            size = self.encoded.size(parent)
            self._coarse[parent] = self.build.variable(size)
            label = f"{self.encoded.binned.domain.names[attribute]}|level {level}"
            table = np.eye(size)[self.encoded.levels[attribute][level]]
            self.build.add(label, (attribute,), (self._coarse[parent],), table)
        return self._coarse[parent]

    def _rows(self, parents: tuple[Parent, ...]) -> IntArray:
        """The configuration of the parents in each row of the sample."""
        rows = np.zeros(SAMPLE_ROWS, np.int64)
        for attribute, level in parents:
            rows *= self.encoded.size((attribute, level))
            rows += self.encoded.levels[attribute][level][self.sample[attribute]]
        return rows


def fitted_conditional(table: Observation, above: FloatArray, shares: FloatArray, total: float) -> FloatArray:
    """Distributions of a child (configurations of the parents, child's values) from a noisy joint table.

    What the table says beyond independence is shrunk for its noise. The joint distribution keeps to the
    parents' in the model, and to the child's own.

    Args:
        table: (parents' values ..., child's values), rows, one sigma.
        above: the parents' joint distribution in the model, flat.
        shares: the child's distribution.
        total: rows, above 0.
    """
    values = table.values.reshape(above.size, shares.size)
    joint_table = fit_joint(values, float(table.sigma), above, shares, total)
    conditional = proper(joint_table) / proper(joint_table).sum(axis=1, keepdims=True)
    reached = joint_table.sum(axis=1, keepdims=True) > 0
    return np.where(reached, (1 - MIXED) * conditional + MIXED * shares, shares)


def _coarser(table: FloatArray, axis: int, level: IntArray) -> FloatArray:
    """Values of one axis added up to those of a coarser level."""
    shape = list(table.shape)
    shape[axis] = int(level.max()) + 1
    coarse = np.zeros(shape)
    np.add.at(np.moveaxis(coarse, axis, 0), level, np.moveaxis(table, axis, 0))
    return coarse
