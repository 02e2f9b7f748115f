"""PrivBayes: a network of attributes, each with a few parents, chosen and measured privately.

    one-way tables -> working bins, levels as parents                     fit/denoise.py, fit/growing.py
    many attributes: noisy distances of all pairs rank candidates         Task.distances
    for each attribute in turn: a private choice of child and parents by
    a score, then the noisy table of both                                 Task.chosen, fit/growing.py
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
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import ClassVar, cast

import numpy as np

from dpsyn_sql.accounting.budget import MEAN_ABSOLUTE, Budget
from dpsyn_sql.attributes.attribute import Domain
from dpsyn_sql.errors import InputError
from dpsyn_sql.fit.arrays import IntArray, snapped
from dpsyn_sql.fit.denoise import binned, denoised, shares_of
from dpsyn_sql.fit.estimate import Observation, total_of
from dpsyn_sql.fit.growing import (
    FEW_CANDIDATES,
    MOST_CANDIDATES,
    Bounds,
    Encoded,
    Family,
    GrowingNetwork,
    candidates,
    largest_number,
)
from dpsyn_sql.fit.network import Builder, Network
from dpsyn_sql.methods.independent import (
    LEAST_UNITS,
    MAX_CANDIDATE_CELLS,
    asked_again,
    candidate_queries,
    first_tables,
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

CHARGE = 0.25
"""The part of a table's sampling error and noise (mean absolute values, rows) that lowers its score: fitting
drops most of both."""

MOST_BITS = 40
"""``I`` is mutual information up to 2^40 rows at most."""

_FOR_PAIRS = 2
# Cells of candidate pairs per cell of larger candidate tables, which are all kept too.

_LARGEST_TOTAL = 2.0**56
# References must sum to less than 2^57.

_ENTROPY_GRID = 2.0**-24
# Entropies that are compared are snapped to it, so that every machine decides alike.

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
        name, degree, cells = "families of children and parents", self._degree + 1, most // _FOR_PAIRS
        reserve = Reserve(name, for_families, pairs, degree, MOST_CELLS, cells)
        observed = first_tables(door, domain, first, reserve if pairs else None)
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
    encoded, draw = task.encoded, partial(stratified, generator=np.random.default_rng(_SEED))
    grown, first = GrowingNetwork.of(encoded, draw), task.first
    grown.grow(Family(first, ()))
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
        grown.grow(family, task.measured(family, table), task.total)
        outside.remove(family.child)
    for v in range(len(encoded.levels)):
        if v not in grown.sample and encoded.size((v, 0)) > 1:
            grown.grow(Family(v, ()))
    return grown


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

    def _query(self, family: Family) -> MarginalQuery:
        """The question for the table of a family, attributes in domain order."""
        members = sorted([*family.parents, (family.child, 0)])
        return over_bins(
            self.encoded.binned.domain, ((parent[0], self.encoded.values_of(parent)) for parent in members)
        )

    def chosen(self, grown: GrowingNetwork, families: Sequence[Family], budget: Budget) -> Family:
        """A private choice of the family of the largest score."""
        queries = [self._query(family) for family in families]
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
            references.append(np.rint(family.to_question(expected)).astype(np.int64))
        return references, allowances

    @property
    def _bits(self) -> int:
        """2^bits is between two and four times the noisy number of rows, so hardly below the true one."""
        rows = int(snapped(np.array([self._rows]), 1.0)[0])
        return min(MOST_BITS, rows.bit_length() + 1)

    def measured(self, family: Family, budget: Budget) -> Observation:
        """The noisy table of a family (parents' values ..., child's values)."""
        (table,) = self.door.ask(Marginals([self._query(family)]), budget).read()
        return Observation(family.from_question(table.values), np.asarray(table.sigma))

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
        queries = [self._query(Family(child, ((parent, 0),))) for parent, child in pairs]
        noisy = self.door.ask(Distances(queries, references), budget).read()
        beyond = [
            rows - MEAN_ABSOLUTE * float(np.sqrt(table).sum())
            for rows, table in zip(noisy, expected, strict=True)
        ]
        return dict(zip(pairs, snapped(np.array(beyond), 1.0).tolist(), strict=True))
