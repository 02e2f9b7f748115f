"""Attributes as if independent: one-way marginals only. Copy this file to start a method.

A method is two steps. ``plan`` decides from public facts alone what will be asked at which share of
the budget; it must never depend on rows, counts or file sizes. ``run`` asks through the door and
fits a model to the noisy answers; everything it does after ``measure`` is post-processing.
"""

from __future__ import annotations

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.domain.attributes import Domain
from dpsyn_sql.fit.consistency import Measurements, fit_margins
from dpsyn_sql.interfaces import Curator
from dpsyn_sql.models.product import ProductModel
from dpsyn_sql.plan.plan import MeasureStep, Plan
from dpsyn_sql.plan.queries import MarginalQuery
from dpsyn_sql.source.relation import Source


class Independent:
    """One-way marginals, denoised, sampled independently."""

    name = "independent"

    def model(self, domain: Domain) -> type[ProductModel]:
        """The class of model that ``run`` fits."""
        return ProductModel

    def plan(self, source: Source, domain: Domain, budget: Budget) -> Plan:
        """The whole budget for all one-way marginals."""
        queries = tuple(MarginalQuery((name,)) for name in domain.names)
        return Plan(source, domain, self.name, (MeasureStep("one-way", queries, budget),), budget)

    def run(self, plan: Plan, curator: Curator) -> ProductModel:
        """Measure as planned; reconcile totals; fit."""
        (step,) = plan.steps
        measurements = Measurements(curator.measure(step.queries, step.budget))
        return ProductModel(plan.domain, fit_margins(plan.domain, measurements))
