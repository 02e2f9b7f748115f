"""Differentially private synthetic tables, made inside the database.

    release = dpsyn_sql.release(con, "adult", epsilon=1.0, domain="adult.domain.yml")

Read in this order: ``front/release.py`` (a release on one page), then the rooms as the data meet them:
``source``, ``domain``, ``planning``; behind the door ``private`` (encode, count, measure); then
``discovery``, ``fit``, ``methods``, ``rows``, ``report``. ``engines`` run the SQL, ``ledger`` records what
was spent. docs/how_it_works.md describes all rooms.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpsyn_sql import errors, methods
    from dpsyn_sql.auditing import audit
    from dpsyn_sql.errors import DpsynError
    from dpsyn_sql.evaluation.evaluating import evaluate
    from dpsyn_sql.front.advice import init, suggest
    from dpsyn_sql.front.attach import attach
    from dpsyn_sql.front.load import load
    from dpsyn_sql.front.plan import Explanation, plan
    from dpsyn_sql.front.release import release
    from dpsyn_sql.front.request import Request
    from dpsyn_sql.report.result import Release

__version__ = "0.2.0"

__all__ = [
    "DpsynError",
    "Explanation",
    "Release",
    "Request",
    "attach",
    "audit",
    "errors",
    "evaluate",
    "init",
    "load",
    "methods",
    "plan",
    "release",
    "suggest",
]

_MODULES = ("errors", "methods")
_HOMES = {
    "Explanation": "front.plan",
    "Release": "report.result",
    "Request": "front.request",
    "attach": "front.attach",
    "audit": "auditing",
    "evaluate": "evaluation.evaluating",
    "init": "front.advice",
    "load": "front.load",
    "plan": "front.plan",
    "release": "front.release",
    "suggest": "front.advice",
}
"""Modules of the public names; of all others ``errors``."""


if not TYPE_CHECKING:  # a checker knows the names, and that there are no others

    def __getattr__(name: str) -> Any:
        """Import a public name when it is first asked for."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        home = name if name in _MODULES else _HOMES.get(name, "errors")
        module = import_module(f"{__name__}.{home}")
        value = module if name in _MODULES else getattr(module, name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
