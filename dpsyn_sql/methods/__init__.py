"""The recipes, by name: one line a method."""

from __future__ import annotations

from dataclasses import replace

from dpsyn_sql.errors import InputError, said
from dpsyn_sql.fit.deadline import NO_DEADLINE, Deadline
from dpsyn_sql.interfaces import Method
from dpsyn_sql.methods.adaptive import Adaptive
from dpsyn_sql.methods.auto import Auto
from dpsyn_sql.methods.copula import Copula
from dpsyn_sql.methods.independent import Independent
from dpsyn_sql.plan.limits import NO_LIMITS, Limits
from dpsyn_sql.plan.workload import Workload

METHODS: dict[str, Method] = {
    "adaptive": Adaptive(),
    "copula": Copula(),
    "independent": Independent(),
}


def method_named(name: str, limits: Limits = NO_LIMITS, deadline: Deadline = NO_DEADLINE) -> Method:
    """The method of a name, within limits; ``"auto"`` chooses by the domain when it plans.

    Raises:
        InputError: there is no such method; the message lists those there are.
    """
    adaptive = Adaptive(limits, deadline)
    known = {**METHODS, "adaptive": adaptive, "auto": Auto(adaptive)}
    found = known.get(name) if isinstance(name, str) else None
    if found is None:
        raise InputError(f"method={said(name)} is not known; use one of auto, {', '.join(sorted(METHODS))}")
    return found


def weighted(method: Method, workload: Workload) -> Method:
    """The same method for a workload.

    Raises:
        InputError: the method asks for all marginals alike and has no use for weights.
    """
    if not workload.sets:
        return method
    if isinstance(method, Adaptive):
        return replace(method, workload=workload)
    if isinstance(method, Auto):
        return Auto(replace(method.adaptive, workload=workload))
    raise InputError(f"method={method.name!r} has no use for workload=; use method='auto' or 'adaptive'")
