"""The recipes. A method is a value: ``method="copula"``, or ``method=Adaptive()`` with its settings.

``METHODS`` feeds help texts, errors, plans and the audit: nothing outside this folder names a method.
``names`` has also those that are not for every table.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.domain.attributes import Domain
from dpsyn_sql.errors import InputError, PlanTooLarge, said
from dpsyn_sql.methods.adaptive import Adaptive
from dpsyn_sql.methods.auto import Auto
from dpsyn_sql.methods.copula import Copula
from dpsyn_sql.methods.dpcopula import DPCopula
from dpsyn_sql.methods.dpsyn import DPSyn
from dpsyn_sql.methods.hierarchical import Hierarchical
from dpsyn_sql.methods.independent import Independent
from dpsyn_sql.methods.privbayes import PrivBayes
from dpsyn_sql.methods.recipe import METHODS, Recipe, Static
from dpsyn_sql.methods.settings import in_words, with_texts, with_values
from dpsyn_sql.planning.limits import NO_TERMS, Terms
from dpsyn_sql.source.relation import Source

__all__ = [
    "DEFAULT",
    "METHODS",
    "NO_TERMS",
    "Adaptive",
    "Auto",
    "Copula",
    "DPCopula",
    "DPSyn",
    "Hierarchical",
    "Independent",
    "PrivBayes",
    "Recipe",
    "Static",
    "Terms",
    "described",
    "least_asking",
    "method_help",
    "method_of",
    "names",
    "static_default",
    "static_of",
    "with_settings",
]

for _method in (  # the most accurate first
    Adaptive(),
    DPSyn(),
    PrivBayes(),
    Copula(),
    DPCopula(),
    Independent(),
):
    METHODS[_method.name] = _method

_AUTO = Auto()

_OF_KEYS = Hierarchical()
# Not among METHODS, which take any table.

DEFAULT = _AUTO.name
"""The default method of a release."""


def method_of(given: object) -> Recipe:
    """The method of a name, of a mapping ``{"name": "adaptive", ...settings}``, or a value that is one.

    Raises:
        InputError: there is no such method (the message lists all methods), it has no such setting, or a
            setting is of another type.
    """
    if isinstance(given, Recipe):
        return with_values(given, asdict(given))
    if isinstance(given, Mapping):
        return with_values(_named(given.get("name")), {k: v for k, v in given.items() if k != "name"})
    return _named(given)


def with_settings(method: object, given: Mapping[str, str]) -> Recipe:
    """A method, as in ``method_of``, with settings from a command line.

    Raises:
        InputError: as in ``method_of``.
    """
    return with_texts(method_of(method), given)


def _named(name: object) -> Recipe:
    known = {_AUTO.name: _AUTO, **METHODS, _OF_KEYS.name: _OF_KEYS}
    found = known.get(name) if isinstance(name, str) else None
    if found is None:
        listed = ", ".join([_AUTO.name, *sorted([*METHODS, _OF_KEYS.name])])
        raise InputError(f"method={said(name)} is not known; use one of {listed}")
    return found


def names() -> tuple[str, ...]:
    """The names of all methods, the default first."""
    return (_AUTO.name, *METHODS, _OF_KEYS.name)


def method_help() -> str:
    """``auto, adaptive, privbayes, copula or independent``."""
    *others, last = names()
    return f"{', '.join(others)} or {last}"


def described() -> list[str]:
    """One line per method: what it does, and its settings."""
    return [
        f"{one.name}: {(type(one).__doc__ or '').splitlines()[0].rstrip('.')}; {in_words(one)}"
        for one in (_AUTO, *METHODS.values(), _OF_KEYS)
    ]


def static_default() -> Static:
    """The most accurate method whose questions are all known beforehand."""
    return next(one for one in METHODS.values() if isinstance(one, Static))


def static_of(given: object) -> Static:
    """A method whose questions are all known beforehand: the tables of its releases can be added up.

    Raises:
        InputError: as ``method_of``, or another method; ``auto`` is ``static_default``.
    """
    method = method_of(given)
    if isinstance(method, Auto):
        return static_default()
    if isinstance(method, Static):
        return method
    able = " or ".join(repr(name) for name, one in METHODS.items() if isinstance(one, Static))
    raise InputError(
        f"method={method.name!r} cannot make a running total: what it asks for depends on its answers, so "
        f"tables of different windows do not add up. Use method={able}."
    )


def least_asking(source: Source, domain: Domain, budget: Budget) -> Recipe:
    """Of the methods whose questions are all known beforehand the one that asks for the fewest cells."""
    cells: dict[str, int] = {}
    for name, one in METHODS.items():
        if isinstance(one, Static):
            with suppress(PlanTooLarge):
                plan = one.plan(source, domain, budget)
                cells[name] = sum(domain.cells(query.attrs) for query in plan.queries)
    return METHODS[min(cells, key=cells.__getitem__)]
