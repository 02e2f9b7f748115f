"""PrivBayes: a network of attributes, each with a few parents, chosen and measured privately.

    one-way tables -> working bins, levels                                 network.py, fit/denoise.py
    many attributes: noisy distances of all pairs rank candidates          families.py
    for each attribute in turn: a private choice of child and parents by
    a score, then the noisy table of both                                  families.py, network.py
    codes after their bins                                                 fit/network.py

After Zhang, Cormode, Procopiuc, Srivastava and Xiao (SIGMOD 2014, TODS 2017). What differs from the paper,
and why, is in docs/privacy.md ("PrivBayes networks") and docs/decisions/0018.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.attributes.attribute import Domain
from dpsyn_sql.errors import InputError
from dpsyn_sql.fit.arrays import snapped
from dpsyn_sql.fit.denoise import binned, denoised, shares_of
from dpsyn_sql.fit.estimate import Observation, total_of
from dpsyn_sql.fit.network import Builder, Network
from dpsyn_sql.methods.independent import (
    LEAST_UNITS,
    MAX_CANDIDATE_CELLS,
    asked_again,
    candidate_queries,
    cell_deviation,
    one_way_steps,
    one_way_tables,
)
from dpsyn_sql.methods.models.networks import NetworkModel
from dpsyn_sql.methods.privbayes.families import (
    FEW_CANDIDATES,
    L1,
    MOST_CANDIDATES,
    Bounds,
    Task,
    candidates,
    largest_number,
)
from dpsyn_sql.methods.privbayes.network import Encoded, Family, GrowingNetwork
from dpsyn_sql.methods.recipe import Recipe
from dpsyn_sql.planning.asking import Door, Reserve
from dpsyn_sql.planning.limits import NO_TERMS, Limits, Terms
from dpsyn_sql.planning.views import MEAN_ABSOLUTE

MOST_DEGREE = 4
"""Parents of an attribute, at most."""

MOST_CELLS = 2**17
"""Cells of a table of more than two attributes, at most."""

SHARES = (35, 65)
"""Percent for the one-way tables, whose error enters every family, and for the families."""

LEAST_SIGMAS = 4.0
"""A code stands alone if its noisy count is this many deviations of a family's table; otherwise it shares a
bin, in which families are measured."""

MOST_BINS = 32
"""About how many bins an ordered attribute gets at most."""

_FOR_PAIRS = 2
# Cells of candidate pairs per cell of larger candidate tables, which are all kept too.

CHOOSING_AND_MEASURING = (10, 60)
"""Shares of what the families get: for choosing them, and for their tables."""

VANILLA, HIERARCHICAL = "vanilla", "hierarchical"


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
        reserve = Reserve(
            "families of children and parents",
            for_families,
            pairs,
            self._degree + 1,
            MOST_CELLS,
            most // _FOR_PAIRS,
        )
        if pairs:
            door.reserve(reserve)
        observed = one_way_tables(domain, handles)
        if pairs and total_of(observed) > 0 and for_families.amount >= LEAST_UNITS:
            task = self._task(door, domain, reserve, observed, terms)
            if task.steps > 0:
                return NetworkModel(domain, total_of(observed), grown_network(task).network())
            observed = asked_again(observed, domain, door, one_way_steps(domain, for_families))
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
        least = LEAST_SIGMAS * cell_deviation(measuring, len(active) - 1, rows)
        bins = binned(domain, observed, [least] * len(observed), MOST_BINS)
        encoded = Encoded.of(bins, hierarchical=self.encoding == HIERARCHICAL)
        active = [v for v in active if encoded.size((v, 0)) > 1]
        families = max(1, len(active) - 1)
        noise = cell_deviation(measuring, families, rows)
        mean = noise * (math.sqrt(0.5) if measuring.kind == "pure" else MEAN_ABSOLUTE)
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


RANK_PERCENT = 25
"""Of the budget of the choices, for the distances of pairs that rank candidates."""

_GRID = 2.0**-24
# Of a score or a probability.


def grown_network(task: Task) -> GrowingNetwork:
    """One attribute after the other: a private choice, then the noisy table of the chosen family."""
    grown, outside = _first(task)
    ranks, choosing = None, task.choosing
    if largest_number(task.encoded, task.active, task.bounds.degree) > FEW_CANDIDATES:
        ranking, choosing = choosing.split((RANK_PERCENT, 100 - RANK_PERCENT))
        ranks = task.distances(ranking)
    choices = choosing.split([1] * task.steps)
    tables = task.measuring.split([1] * task.steps)
    for choice, table in zip(choices, tables, strict=True):
        inside = [v for v in task.active if v not in outside]
        families = candidates(task.encoded, inside, outside, task.bounds, ranks, task.target)
        if not families:
            break
        family = task.chosen(grown, families, choice)
        (observed,) = task.measured([family], table)
        grown.place(family, observed, task.total)
        outside.remove(family.child)
    return _with_independent(grown)


def _first(task: Task) -> tuple[GrowingNetwork, list[int]]:
    """The target, else the attribute of most entropy, is placed; the other active ones remain."""
    grown = GrowingNetwork.of(task.encoded)
    shares = [np.maximum(task.encoded.shares[v], np.finfo(np.float64).tiny) for v in task.active]
    entropies = snapped(np.array([-(q * np.log(q)).sum() for q in shares]), _GRID)
    first = task.active[int(np.argmax(entropies))] if task.target is None else task.target
    grown.place(Family(first, ()), None, task.total)
    return grown, [v for v in task.active if v != first]


def _with_independent(grown: GrowingNetwork) -> GrowingNetwork:
    """Attributes without a family that may be counted are independent."""
    for v in range(len(grown.encoded.levels)):
        if v not in grown.placed and grown.encoded.size((v, 0)) > 1:
            grown.place(Family(v, ()), None, 1.0)
    return grown
