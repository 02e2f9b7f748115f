"""``method="auto"``: the most accurate method that handles a table of this shape in minutes."""

from __future__ import annotations

from dataclasses import dataclass

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.domain.attributes import Domain
from dpsyn_sql.interfaces import Curator, Method, Model
from dpsyn_sql.methods.recipe import METHODS, Recipe
from dpsyn_sql.planning.limits import NO_TERMS, Terms
from dpsyn_sql.planning.plan import Plan
from dpsyn_sql.source.relation import Source


@dataclass(frozen=True, slots=True)
class Auto(Recipe):
    """Chooses by the number of columns alone; the plan and the certificate name the chosen method.

    It takes the most accurate method that works in minutes with so many attributes. With a workload or a
    target it considers only methods that use one; if there are too many attributes for all of these, the
    most accurate.
    """

    name = "auto"
    takes_workload = takes_target = True

    def chosen(self, domain: Domain, terms: Terms) -> Method:
        """The method for a domain."""
        workload = terms.workload
        able = [
            one
            for one in METHODS.values()
            if (one.takes_workload or not workload.sets) and (one.takes_target or not workload.target)
        ]
        number = len(domain.attributes)
        quick = (one for one in able if one.attributes is None or number <= one.attributes)
        return next(quick, able[0])

    def plan(self, source: Source, domain: Domain, budget: Budget, terms: Terms = NO_TERMS) -> Plan:
        """The plan of the chosen method."""
        return self.chosen(domain, terms).plan(source, domain, budget, terms)

    def run(self, plan: Plan, curator: Curator, terms: Terms = NO_TERMS) -> Model:
        """Run the method that made the plan."""
        return self.chosen(plan.domain, terms).run(plan, curator, terms)
