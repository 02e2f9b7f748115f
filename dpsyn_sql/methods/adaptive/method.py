"""Adaptive marginals: one-way tables, then the pairs where the model is most wrong, then triples.

    one-way tables -> denoise -> working bins, coarse twins          fit/denoise.py, working.py
    twice:  noisy distances of all pairs to the model -> score       questions.py, through the door
            greedy choice under a cap on the junction tree           rounds.py, selection.py
            are the first pairs worth their budget?                   worth.py, scores.py
            measure them, fit a graphical model                      known.py, fit/estimate.py
            pairs that the cap keeps out of the tree: for the sample  beside.py
    once:   the same for three attributes within a clique, from epsilon 0.8 on
    if no pair was: one-way tables again, with the rest of the budget

The first model is independence. AIM (McKenna, Mullins, Sheldon, Miklau 2022) chooses one marginal at a
time and refits after each; two rounds of many marginals need two fits, and spend less on choosing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.domain.attributes import Domain
from dpsyn_sql.fit.estimate import pooled, total_of
from dpsyn_sql.fit.variances import Variances
from dpsyn_sql.interfaces import Curator, Model
from dpsyn_sql.methods.adaptive.beside import targets
from dpsyn_sql.methods.adaptive.errors import components
from dpsyn_sql.methods.adaptive.known import Known, independence
from dpsyn_sql.methods.adaptive.one_ways import first_steps, first_tables
from dpsyn_sql.methods.adaptive.rounds import all_rounds
from dpsyn_sql.methods.adaptive.settings import Settings
from dpsyn_sql.methods.adaptive.shares import further_queries, one_way_share
from dpsyn_sql.methods.adaptive.task import Task
from dpsyn_sql.methods.one_way import LEAST_UNITS
from dpsyn_sql.methods.pairs import MAX_CANDIDATE_CELLS, candidate_queries
from dpsyn_sql.methods.recipe import Recipe
from dpsyn_sql.models.graphical import GraphicalModel
from dpsyn_sql.planning.limits import NO_LIMITS, NO_TERMS, Limits, Terms
from dpsyn_sql.planning.plan import MeasureStep, Plan, PlanDetails, ReservedStep, equivalent_rho
from dpsyn_sql.planning.queries import NoisyMarginal
from dpsyn_sql.source.relation import Source


@dataclass(frozen=True, slots=True)
class Adaptive(Recipe):
    """One-way marginals, then the pairs where the model is most wrong, then triples.

    After AIM (McKenna, Mullins, Sheldon, Miklau 2022), in two rounds of many pairs; the model is
    graphical. It has no settings: its constants (``constants``, with their reasons) were chosen together.
    """

    name = "adaptive"
    model = GraphicalModel
    attributes = 1_000  # it scores every pair of attributes; more were not measured
    takes_workload = takes_target = True
    constants: ClassVar[Settings] = Settings()

    def plan(self, source: Source, domain: Domain, budget: Budget, terms: Terms = NO_TERMS) -> Plan:
        """One-way marginals by bands of size; the rest is reserved for the rounds."""
        most, _ = self._caps(terms.limits)
        pairs, rho = candidate_queries(domain, most), equivalent_rho(source, domain, budget)
        if not pairs:
            one_ways = first_steps(domain, budget, terms.workload, self.constants)
            return self.planned(source, domain, budget, terms, one_ways)
        share = one_way_share(rho, self.constants)
        first, rest = budget.split((share, 100 - share))
        triples = further_queries(domain, rho, most, self.constants)
        name = "two-way, in two rounds" + (", then three-way" if triples else "")
        steps: list[MeasureStep | ReservedStep] = [
            *first_steps(domain, first, terms.workload, self.constants),
            ReservedStep(name, pairs, rest, triples),
        ]
        return self.planned(source, domain, budget, terms, steps)

    def run(self, plan: Plan, curator: Curator, terms: Terms = NO_TERMS) -> GraphicalModel:
        """Measure the one-way tables, then as many rounds as there are candidates for; fit."""
        observed = first_tables(plan.domain, curator, plan.known)
        _, cap = self._caps(terms.limits)
        task = Task.of(plan, curator, terms, self.constants, cap, observed)
        known = independence(task)
        if plan.reserved and total_of(observed) > 0:
            known, left = all_rounds(task, known, plan.reserved[0])
            if (
                left is not None and left.amount >= LEAST_UNITS
            ):  # no pair stands out: one-way tables get everything
                steps = first_steps(plan.domain, left, terms.workload, self.constants)
                again = first_tables(plan.domain, curator, steps)
                observed = [pooled(first, second) for first, second in zip(observed, again, strict=True)]
                task = Task.of(plan, curator, terms, self.constants, cap, observed)
                known = replace(independence(task), dispersions=known.dispersions)
        return _model(task, known, known.total if known.tables else total_of(observed))

    def variances(self, model: Model, answers: Sequence[NoisyMarginal]) -> Variances:
        """Of all one-way tables, and of the pairs that were scored."""
        own = Recipe.variances(self, model, answers)
        if not isinstance(model, GraphicalModel):
            return own
        return Variances(model.within, {**own.components, **model.components})

    def details(self, terms: Terms) -> PlanDetails:
        """Also lower caps under a limit on memory: other questions may follow."""
        own = Recipe.details(self, terms)
        caps = self._caps(terms.limits)
        if caps == self._caps(NO_LIMITS):
            return own
        line = f"            within the memory limit: {caps[0]} candidate cells, {caps[1]} model cells"
        return replace(own, identity={**own.identity, "caps": list(caps)}, lines=(line, *own.lines))

    def _caps(self, limits: Limits) -> tuple[int, int]:
        """Most cells of all candidates and of the junction tree."""
        most = MAX_CANDIDATE_CELLS, round(self.constants.cap_most)
        return limits.candidate_cells(most[0]), limits.tree_cells(most[1])


def _model(task: Task, known: Known, total: float) -> GraphicalModel:
    attributes = task.working.variables[: len(task.plan.domain.attributes)]
    bins = tuple(variable.bins for variable in attributes)
    beside = targets(task, known)
    told = components(task, known)
    return GraphicalModel(task.plan.domain, total, known.beliefs, bins, task.working.within, beside, told)
