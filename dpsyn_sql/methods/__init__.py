"""The recipes, by name: one line a method."""

from __future__ import annotations

from dataclasses import replace

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.domain.attributes import Domain
from dpsyn_sql.errors import InputError
from dpsyn_sql.interfaces import Curator, Method, Model
from dpsyn_sql.methods.adaptive import Adaptive
from dpsyn_sql.methods.copula import Copula
from dpsyn_sql.methods.independent import Independent
from dpsyn_sql.plan.plan import Plan
from dpsyn_sql.source.relation import Source

METHODS: dict[str, Method] = {
    "adaptive": Adaptive(),
    "copula": Copula(),
    "independent": Independent(),
}

AUTO_ATTRIBUTES = 100
"""Up to so many attributes ``method="auto"`` is adaptive marginals; beyond, choosing among all pairs takes
longer than fitting a copula to them."""


class Auto:
    """The most accurate method for the shape of a domain; the plan says which and why."""

    name = "auto"

    def plan(self, source: Source, domain: Domain, budget: Budget) -> Plan:
        """The plan of the method chosen, from the public number of attributes alone."""
        number = len(domain.attributes)
        adaptive = number <= AUTO_ATTRIBUTES
        chosen = METHODS["adaptive" if adaptive else "copula"]
        limit = f"{number} attributes, {'at most' if adaptive else 'more than'} {AUTO_ATTRIBUTES}"
        return replace(chosen.plan(source, domain, budget), reason=f"auto: {limit}")

    def run(self, plan: Plan, curator: Curator) -> Model:
        """Run the method that the plan names."""
        return METHODS[plan.method].run(plan, curator)


def method_named(name: str) -> Method:
    """The method of a name, or the most accurate one for ``"auto"``.

    Raises:
        InputError: there is no such method; the message lists those there are.
    """
    found = Auto() if name == "auto" else METHODS.get(name)
    if found is None:
        raise InputError(f"method={name!r} is not known; use one of auto, {', '.join(sorted(METHODS))}")
    return found
