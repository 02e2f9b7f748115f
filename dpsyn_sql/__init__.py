"""Differentially private synthetic tables, made inside the database.

    release = dpsyn_sql.release(con, "adult", epsilon=1.0, domain="adult.domain.yml")

Read in this order: ``pipeline.py`` (the pipeline on one page), ``interfaces.py`` (the seams),
then the folders as the pipeline meets them: ``source``, ``domain``, ``planning``, ``count``,
``measure`` (the door), ``fit``, ``sample``, ``write``; and ``methods`` for the recipes.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpsyn_sql.errors import (
        AccountError,
        BudgetError,
        DomainError,
        DpsynError,
        EngineFailure,
        InputError,
        InternalError,
        LedgerDamaged,
        LedgerError,
        PlanTooLarge,
        PrivacyBudgetExceeded,
        PublishError,
        ReleaseChanged,
        ReleaseExists,
        SourceError,
        TargetError,
    )
    from dpsyn_sql.explanation import Explanation, init, plan
    from dpsyn_sql.pipeline import release
    from dpsyn_sql.report.result import Release
    from dpsyn_sql.request import Request
    from dpsyn_sql.stored import load

__version__ = "0.1.0"

__all__ = [
    "AccountError",
    "BudgetError",
    "DomainError",
    "DpsynError",
    "EngineFailure",
    "Explanation",
    "InputError",
    "InternalError",
    "LedgerDamaged",
    "LedgerError",
    "PlanTooLarge",
    "PrivacyBudgetExceeded",
    "PublishError",
    "Release",
    "ReleaseChanged",
    "ReleaseExists",
    "Request",
    "SourceError",
    "TargetError",
    "init",
    "load",
    "plan",
    "release",
]

_HOMES = {
    "Explanation": "explanation",
    "Release": "report.result",
    "Request": "request",
    "init": "explanation",
    "load": "stored",
    "plan": "explanation",
    "release": "pipeline",
}
"""Modules of the public names; of all others ``errors``."""


class _Package(ModuleType):
    """The package itself: its public names are imported when they are first asked for.

    Properties, because ``release`` and ``plan`` are also modules of ours: importing such a module makes
    it an attribute of its package, and a property is stronger. The module stays in ``sys.modules``.
    """

    def __dir__(self) -> list[str]:
        return sorted({*vars(self), *__all__})


def _public(name: str) -> property:
    def value(package: ModuleType) -> Any:
        known = vars(package)
        if name not in known:
            known[name] = getattr(import_module(f"{__name__}.{_HOMES.get(name, 'errors')}"), name)
        return known[name]

    def set_value(package: ModuleType, value: object) -> None:
        if not isinstance(value, ModuleType):
            vars(package)[name] = value

    return property(value, set_value)


for _name in __all__:
    setattr(_Package, _name, _public(_name))
sys.modules[__name__].__class__ = _Package
