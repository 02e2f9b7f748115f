"""Whether rows can be drawn from the models of a method; checked before anything is charged."""

from __future__ import annotations

from inspect import isfunction

from dpsyn_sql.errors import InputError
from dpsyn_sql.interfaces import MarginalModel, Method, Model

NEEDED = tuple(
    name
    for name, member in (*vars(MarginalModel).items(), *vars(Model).items())
    if isfunction(member) and name[0] != "_"
)
"""The functions of a model that a release calls."""


def check_model(method: Method) -> None:
    """Refuse a method whose models cannot be released.

    Raises:
        InputError: it does not name the class of its model, or that class lacks a function.
    """
    model = getattr(method, "model", None)
    if not isinstance(model, type):
        raise InputError(
            f"method={method.name!r} does not name the class of its model, so nobody knows whether rows can "
            "be drawn from it: add the attribute model. Nothing was charged."
        )
    lacking = [name for name in NEEDED if not callable(getattr(model, name, None))]
    if lacking:
        raise InputError(
            f"method={method.name!r} fits a model of class {model.__name__}, which has no "
            f"{' and no '.join(f'{name}()' for name in lacking)}: no rows could be released. Add to the "
            "class what interfaces.Model requires, or use another method. Nothing was charged."
        )
