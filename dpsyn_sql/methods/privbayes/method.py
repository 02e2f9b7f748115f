"""PrivBayes: a network of attributes, each with a few parents, chosen and measured privately.

    one-way tables -> working bins, levels                                one_way.py, fit/bins.py, encoding.py
    many attributes: noisy distances of all pairs rank candidates          asking.py, candidates.py
    for each attribute in turn: a private choice of child and parents by    structure.py
    the L1 score, then the noisy table of both                              growing.py
    codes after their bins                                                  fit/code_nodes.py

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
from dpsyn_sql.domain.attributes import Domain
from dpsyn_sql.errors import InputError
from dpsyn_sql.fit.bins import binned
from dpsyn_sql.fit.consistency import simplex_projection
from dpsyn_sql.fit.denoise import denoised
from dpsyn_sql.fit.estimate import Observation, pooled, total_of
from dpsyn_sql.fit.network import Network, Node, node_of
from dpsyn_sql.interfaces import Curator
from dpsyn_sql.methods.one_way import LEAST_UNITS, one_way_steps, one_way_tables
from dpsyn_sql.methods.pairs import MAX_CANDIDATE_CELLS, candidate_queries
from dpsyn_sql.methods.privbayes.asking import Task, cell_noise
from dpsyn_sql.methods.privbayes.candidates import FEW_CANDIDATES, MOST_CANDIDATES, Bounds
from dpsyn_sql.methods.privbayes.encoding import Encoded
from dpsyn_sql.methods.privbayes.scores import SCORES
from dpsyn_sql.methods.privbayes.structure import interleaved, two_phases
from dpsyn_sql.methods.recipe import Recipe
from dpsyn_sql.methods.settings import checked
from dpsyn_sql.models.network import NetworkModel
from dpsyn_sql.planning.limits import NO_TERMS, Limits, Terms
from dpsyn_sql.planning.plan import Further, MeasureStep, Plan, PlanDetails, ReservedStep
from dpsyn_sql.source.relation import Source

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

L1, VANILLA, HIERARCHICAL = "l1", "vanilla", "hierarchical"


@dataclass(frozen=True, slots=True)
class PrivBayes(Recipe):
    """A network in which every column has a few parents, chosen and measured one after the other.

    ``degree``: parents of a column, at most; 0: as many as leave a useful table, whose counts are on average
    ``theta`` times their noise. ``score``: what chooses the parents, ``l1`` (the distance to independence,
    measured privately), or ``mi``, ``f`` or ``r`` of the paper (on noisy tables of all pairs; ``f`` for
    columns of two values). ``encoding``: ``vanilla``, or ``hierarchical``: parents at coarser levels too.
    """

    name = "privbayes"
    model = NetworkModel
    attributes = 300
    takes_target = True
    degree: int = 0
    theta: float = 4.0
    score: str = L1
    encoding: str = VANILLA

    choices: ClassVar = {"score": (L1, *SCORES), "encoding": (VANILLA, HIERARCHICAL)}

    def __post_init__(self) -> None:
        faults = []
        if not 0 <= self.degree <= MOST_DEGREE:
            faults.append(f"degree={self.degree!r}; it can be 0 (as many as theta allows) to {MOST_DEGREE}")
        if not self.theta > 0:
            faults.append(f"theta={self.theta!r}; it can be a number above 0")
        if faults:
            raise InputError(f"method={self.name!r} has the setting {', and '.join(faults)}")
        checked(self)

    def plan(self, source: Source, domain: Domain, budget: Budget, terms: Terms = NO_TERMS) -> Plan:
        """One-way marginals by bands of size; the rest is reserved for the families.

        Raises:
            InputError: ``score='f'``, and an attribute has more than two codes.
        """
        large = [attribute for attribute in domain.attributes if attribute.size > 2]
        if self.score == "f" and large:
            raise InputError(
                f"score='f' needs columns of two values, but {large[0].name!r} has {large[0].size} codes "
                f"(of {len(large)} such columns), __other__ and NULL included: use score='l1', 'mi' or 'r'"
            )
        most = self._most_cells(terms.limits)
        pairs = candidate_queries(domain, most)
        if not pairs:
            return self.planned(source, domain, budget, terms, one_way_steps(domain, budget))
        first, rest = budget.split(SHARES)
        further = Further(self._degree + 1, MOST_CELLS, most // _FOR_PAIRS)
        reserved = ReservedStep("families of children and parents", pairs, rest, further)
        steps: list[MeasureStep | ReservedStep] = [*one_way_steps(domain, first), reserved]
        return self.planned(source, domain, budget, terms, steps)

    def run(self, plan: Plan, curator: Curator, terms: Terms = NO_TERMS) -> NetworkModel:
        """Measure the one-way tables; choose and measure a family for each attribute but the first."""
        observed = one_way_tables(plan.domain, curator, plan.known)
        for step in plan.reserved:
            if total_of(observed) <= 0 or step.budget.amount < LEAST_UNITS:
                continue
            task = self._task(plan, curator, step, observed, terms.workload.target)
            if task.steps > 0:
                grown = interleaved(task) if self.score == L1 else two_phases(task, SCORES[self.score])
                return NetworkModel(plan.domain, total_of(observed), grown.network())
            again = one_way_tables(plan.domain, curator, one_way_steps(plan.domain, step.budget))
            observed = [pooled(first, second) for first, second in zip(observed, again, strict=True)]
        return NetworkModel(plan.domain, total_of(observed), _independent(plan.domain, observed))

    def details(self, terms: Terms) -> PlanDetails:
        """Also a lower cap on cells under a limit on memory: other questions may follow."""
        own = Recipe.details(self, terms)
        most = self._most_cells(terms.limits)
        if most == MAX_CANDIDATE_CELLS:
            return own
        line = f"            within the memory limit: {most} candidate cells"
        return replace(own, identity={**own.identity, "caps": [most]}, lines=(line, *own.lines))

    @property
    def _degree(self) -> int:
        return self.degree or MOST_DEGREE

    def _most_cells(self, limits: Limits) -> int:
        return limits.candidate_cells(MAX_CANDIDATE_CELLS)

    def _task(
        self,
        plan: Plan,
        curator: Curator,
        step: ReservedStep,
        observed: Sequence[Observation],
        target: str,
    ) -> Task:
        """Bins, levels, budgets and bounds, from the noisy one-way tables."""
        domain, rows = plan.domain, plan.source.unit.max_rows
        planned = {(domain.index(query.attrs[0]), domain.index(query.attrs[1])) for query in step.queries}
        choosing, measuring = step.budget.split(CHOOSING_AND_MEASURING)
        total, active = max(total_of(observed), 1.0), sorted({v for pair in planned for v in pair})
        least = LEAST_SIGMAS * cell_noise(measuring, len(active) - 1, rows).deviation
        bins = binned(domain, observed, [least] * len(observed), MOST_BINS)
        encoded = Encoded.of(bins, hierarchical=self.encoding == HIERARCHICAL)
        active = [v for v in active if encoded.size((v, 0)) > 1]
        families = max(1, len(active) - 1)
        noise = cell_noise(measuring, families, rows)
        useful = total / (self.theta * noise.mean) if self.degree == 0 else math.inf
        # Tables that may be asked for: the candidates of every step, or of fewer a step, and all pairs.
        tables = max(FEW_CANDIDATES * families, MOST_CANDIDATES * families + math.comb(families + 1, 2))
        further = 0 if step.further is None else step.further.together // tables
        bounds = Bounds(self._degree, useful, min(further, MOST_CELLS), frozenset(planned))
        first = domain.index(target) if target else None
        always = first if first in active else None
        return Task(curator, encoded, total, active, noise, choosing, measuring, bounds, always)


def _independent(domain: Domain, observed: Sequence[Observation]) -> Network:
    """Attributes by themselves; all uniform if the noisy total says that there are no rows."""
    total, nodes = total_of(observed), list[Node]()
    for place, (attribute, table) in enumerate(zip(domain.attributes, observed, strict=True)):
        weights = np.ones(attribute.size)
        if total > 0:
            weights = simplex_projection(denoised(attribute, table.values, float(table.sigma)), total)
        if attribute.size > 1:
            nodes.append(node_of(attribute.name, (), (place,), weights))
    return Network(domain.shape(), tuple(nodes), tuple(range(len(domain.names))))
