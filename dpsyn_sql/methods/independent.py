"""Independent attributes: one-way marginals only. Copy this file to start a method.

A method has two steps. ``steps`` decides from public facts alone the questions and their shares of the
budget; it must never depend on rows, counts or file sizes. ``fitted`` makes a model from the noisy
answers; everything it does is post-processing. A method whose questions depend on answers has ``run`` in
place of ``fitted``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.domain.attributes import Domain
from dpsyn_sql.fit.consistency import Measurements, fit_margins
from dpsyn_sql.methods.models.product import ProductModel
from dpsyn_sql.methods.recipe import Static
from dpsyn_sql.planning.limits import NO_TERMS, Terms
from dpsyn_sql.planning.plan import MeasureStep, Plan
from dpsyn_sql.planning.queries import Curator, MarginalQuery, NoisyMarginal
from dpsyn_sql.source.relation import Source


@dataclass(frozen=True, slots=True)
class Independent(Static):
    """One-way marginals, denoised; the columns are drawn independently of each other."""

    name = "independent"
    model = ProductModel

    def steps(self, domain: Domain, budget: Budget) -> list[MeasureStep]:
        """The whole budget for all one-way marginals."""
        return [MeasureStep("one-way", tuple(MarginalQuery((name,)) for name in domain.names), budget)]

    def one_way_part(self, rows: float, attributes: int, budget: Budget, terms: Terms = NO_TERMS) -> Fraction:
        """All of it: there is nothing else to measure."""
        return Fraction(1)

    def plan(self, source: Source, domain: Domain, budget: Budget, terms: Terms = NO_TERMS) -> Plan:
        """One-way tables of what discovery does not know."""
        unknown = Domain(tuple(one for one in domain.attributes if one.name not in terms.known))
        steps = self.steps(unknown, budget) if unknown.attributes else []
        return self.planned(source, domain, budget, terms, steps)

    def run(self, plan: Plan, curator: Curator, terms: Terms = NO_TERMS) -> ProductModel:
        """Measure as planned and fit, with what discovery knows."""
        answers = [*plan.known_tables, *self.answers(plan, curator)]
        return ProductModel(plan.domain, fit_margins(plan.domain, Measurements(answers), terms.known))

    def fitted(self, domain: Domain, answers: Sequence[NoisyMarginal]) -> ProductModel:
        """Reconcile the totals, and make each marginal a distribution."""
        return ProductModel(domain, fit_margins(domain, Measurements(answers)))
