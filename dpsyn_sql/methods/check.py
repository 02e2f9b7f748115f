"""Whether rows can come of what a method fits; asked before anything is charged."""

from __future__ import annotations

from inspect import isfunction

from dpsyn_sql.errors import InputError
from dpsyn_sql.interfaces import MarginalModel, Method, Model

NEEDED = tuple(
    name
    for name, member in (*vars(MarginalModel).items(), *vars(Model).items())
    if isfunction(member) and name[0] != "_"
)
"""What a release calls of a model."""


def check_model(method: Method) -> None:
    """Refuse a method whose models cannot be released.

    Raises:
        InputError: it does not say what class of model it fits, or that class lacks a method.
    """
    model = getattr(method, "model", None)
    if not isinstance(model, type):
        raise InputError(
            f"method={method.name!r} does not say what class of model it fits, so that nobody knows whether "
            "rows can be drawn of it; give it an attribute model. Nothing was charged."
        )
    lacking = [name for name in NEEDED if not callable(getattr(model, name, None))]
    if lacking:
        raise InputError(
            f"method={method.name!r} fits a model of class {model.__name__}, which has no "
            f"{' and no '.join(f'{name}()' for name in lacking)}: no rows could be released. Give the class "
            "what interfaces.Model asks for, or use another method. Nothing was charged."
        )
