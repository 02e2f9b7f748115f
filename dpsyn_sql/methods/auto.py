"""``method="auto"``: the most accurate method that handles a table of this shape in minutes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.domain.attributes import Domain
from dpsyn_sql.interfaces import Curator, Method, Model
from dpsyn_sql.methods.adaptive import Adaptive
from dpsyn_sql.methods.copula import Copula
from dpsyn_sql.plan.plan import Plan
from dpsyn_sql.source.relation import Source

MOST_ATTRIBUTES = 300
"""Adaptive marginals score every pair of attributes twice: minutes from here on."""


@dataclass(frozen=True, slots=True)
class Auto:
    """Adaptive marginals up to ``MOST_ATTRIBUTES`` attributes, the copula beyond.

    The choice rests on the number of columns, and the plan names the method chosen. With a workload it is
    adaptive marginals always, as the copula has no use for one.
    """

    adaptive: Adaptive = field(default_factory=Adaptive)
    name: ClassVar[str] = "auto"

    def model(self, domain: Domain) -> type[Model]:
        """That of the method chosen."""
        return self._chosen(domain).model(domain)

    def plan(self, source: Source, domain: Domain, budget: Budget) -> Plan:
        """The plan of the method chosen."""
        return self._chosen(domain).plan(source, domain, budget)

    def run(self, plan: Plan, curator: Curator) -> Model:
        """Run the method that made the plan."""
        return self._chosen(plan.domain).run(plan, curator)

    def _chosen(self, domain: Domain) -> Method:
        few = len(domain.attributes) <= MOST_ATTRIBUTES
        return self.adaptive if few or self.adaptive.workload.sets else Copula()
