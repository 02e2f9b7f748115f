"""The recipes. A method is a value: ``method="copula"``, or ``method=Adaptive()`` with its settings.

``METHODS`` feeds help texts, errors, plans and the audit: nothing outside this folder names a method.
``names`` has also those that are not for every table.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.attributes.attribute import Domain
from dpsyn_sql.errors import InputError, PlanTooLarge, said
from dpsyn_sql.fit.network import Model
from dpsyn_sql.methods.adaptive import Adaptive
from dpsyn_sql.methods.independent import Independent
from dpsyn_sql.methods.papers.dpcopula import Copula, DPCopula
from dpsyn_sql.methods.papers.dpsyn import DPSyn
from dpsyn_sql.methods.papers.hierarchical import Hierarchical
from dpsyn_sql.methods.papers.mixture import Mixture
from dpsyn_sql.methods.papers.privbayes import PrivBayes
from dpsyn_sql.methods.papers.traces import Traces
from dpsyn_sql.methods.recipe import METHODS, Recipe
from dpsyn_sql.planning.asking import Door
from dpsyn_sql.planning.limits import NO_TERMS, Terms
from dpsyn_sql.planning.plan import Plan
from dpsyn_sql.source.relation import Source

__all__ = ["METHODS", "Recipe"]


@dataclass(frozen=True, slots=True)
class Auto(Recipe):
    """Chooses by the number of columns alone; the plan and the certificate name the chosen method.

    It takes the most accurate method that works in minutes with so many attributes. With a workload or a
    target it considers only methods that use one; if there are too many attributes for all of these, the
    most accurate.
    """

    name = "auto"
    takes_workload = takes_target = takes_families = True

    def chosen(self, domain: Domain, terms: Terms) -> Recipe:
        """The method for a domain."""
        workload = terms.workload
        able = [
            method
            for method in METHODS.values()
            if (method.takes_workload or not workload.sets) and (method.takes_target or not workload.target)
        ]
        number = len(domain.attributes)
        quick = (method for method in able if method.attributes is None or number <= method.attributes)
        return next(quick, able[0])

    def plan(self, source: Source, domain: Domain, budget: Budget, terms: Terms = NO_TERMS) -> Plan:
        """The plan of the chosen method."""
        return self.chosen(domain, terms).plan(source, domain, budget, terms)

    def run(self, door: Door, domain: Domain, budget: Budget, terms: Terms = NO_TERMS) -> Model:
        """Run the chosen method."""
        return self.chosen(domain, terms).run(door, domain, budget, terms)


for _method in (  # the most accurate first
    Adaptive(),
    DPSyn(),
    PrivBayes(),
    Copula(),
    DPCopula(),
    Mixture(),
    Independent(),
):
    METHODS[_method.name] = _method

_AUTO = Auto()

_OF_SOME = {method.name: method for method in (Hierarchical(), Traces())}
# Not among METHODS, which take any table: all columns a key, and rows of persons in order.

DEFAULT = _AUTO.name
"""The default method of a release."""


def method_of(method: object) -> Recipe:
    """The method of a name, of a mapping ``{"name": "adaptive", ...settings}``, or a value that is one.

    Raises:
        InputError: there is no such method (the message lists all methods), it has no such setting, or a
            setting is of another type.
    """
    if isinstance(method, Recipe):
        return method.with_values(asdict(method))
    if isinstance(method, Mapping):
        return _named(method.get("name")).with_values({k: v for k, v in method.items() if k != "name"})
    return _named(method)


def with_settings(method: object, settings: Mapping[str, str]) -> Recipe:
    """A method, as in ``method_of``, with settings from a command line.

    Raises:
        InputError: as in ``method_of``.
    """
    return method_of(method).with_texts(settings)


def _named(name: object) -> Recipe:
    methods = {_AUTO.name: _AUTO, **METHODS, **_OF_SOME}
    method = methods.get(name) if isinstance(name, str) else None
    if method is None:
        listed = ", ".join([_AUTO.name, *sorted([*METHODS, *_OF_SOME])])
        raise InputError(f"method={said(name)} is not known; use one of {listed}")
    return method


def names() -> tuple[str, ...]:
    """The names of all methods, the default first."""
    return (_AUTO.name, *METHODS, *_OF_SOME)


def method_help() -> str:
    """``auto, adaptive, privbayes, copula or independent``."""
    *first_names, last = names()
    return f"{', '.join(first_names)} or {last}"


def described() -> list[str]:
    """One line per method: what it does, and its settings."""
    summaries = (
        (method, (type(method).__doc__ or "").splitlines()[0].rstrip("."))
        for method in (_AUTO, *METHODS.values(), *_OF_SOME.values())
    )
    return [f"{method.name}: {summary}; {method.settings_in_words()}" for method, summary in summaries]


def static_default() -> Recipe:
    """The most accurate method whose questions are all known beforehand."""
    return next(method for method in METHODS.values() if method.static)


def static_of(chosen: object) -> Recipe:
    """A method whose questions are all known beforehand: the tables of its releases can be added up.

    Raises:
        InputError: as ``method_of``, or another method; ``auto`` is ``static_default``.
    """
    method = method_of(chosen)
    if isinstance(method, Auto):
        return static_default()
    if method.static:
        return method
    able = " or ".join(repr(name) for name, recipe in METHODS.items() if recipe.static)
    raise InputError(
        f"method={method.name!r} cannot make a running total: what it asks for depends on its answers, so "
        f"tables of different windows do not add up. Use method={able}."
    )


def method_of_fewest_cells(source: Source, domain: Domain, budget: Budget) -> Recipe:
    """Of the methods whose questions are all known beforehand the one that asks for the fewest cells."""
    cells: dict[str, int] = {}
    for name, method in METHODS.items():
        if method.static:
            with suppress(PlanTooLarge):
                plan = method.plan(source, domain, budget)
                cells[name] = sum(domain.cells(query.attrs) for query in plan.queries)
    return METHODS[min(cells, key=cells.__getitem__)]
