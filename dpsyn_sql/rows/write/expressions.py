"""The owner's expressions and constants, checked before anything is charged.

Each expression is checked on its syntax tree, replaced by the text printed from it, and bound by the
database over columns of the right types without rows: an unknown name or a type that does not fit is
one fault of ours, never a failure after the debit.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from dpsyn_sql.attributes.roles import Constant, Derived
from dpsyn_sql.attributes.shape import Shape
from dpsyn_sql.errors import DomainError, EngineFailure
from dpsyn_sql.source.engine import Engine
from dpsyn_sql.source.expression_check import check_expression
from dpsyn_sql.source.query_check import QueryCatalog
from dpsyn_sql.sqltext.fragments import Fragment, ident, literal
from dpsyn_sql.sqltext.render import render

_Types = dict[str, tuple[Fragment, bool]]
# Type of each column that an expression may use, and whether it is computed itself.


def check_expressions(shape: Shape, engine: Engine, catalog: QueryCatalog) -> Shape:
    """The same shape with every expression fit to run. Reads no row; charges nothing.

    Columns that an expression uses are text if they have no public type: it was bound to text.

    Args:
        shape: as declared; columns may still be undiscovered.
        engine: any session; it is asked to bind expressions over no rows.
        catalog: the same session's parser and functions.

    Raises:
        DomainError: with all faults of derived columns, conditions and constants.
    """
    checks, faults = _Checks(_types(shape), engine, catalog), list[str]()
    for role in shape.roles_of(Constant):
        if not _fits(role, engine):
            faults.append(f"column {role.name!r}: {role.value!r} is not a value of the type {role.sql_type}")
    roles = tuple(checks.derived(role) if isinstance(role, Derived) else role for role in shape.roles)
    never = tuple(map(checks.condition, shape.never))
    if faults or checks.faults:
        raise DomainError("The domain does not fit the source:", [*faults, *checks.faults])
    return replace(shape, roles=roles, never=never).as_text(checks.used)


def _types(shape: Shape) -> _Types:
    """Keys and unit ids are made last, so nothing can depend on them."""
    made_last = {role.name for role in shape.roles if role.last}
    computed = {role.name for role in shape.roles_of(Derived)}
    found = {}
    for name, kind in shape.types.items():
        if kind is not None and name not in made_last:
            # The labels of an ENUM still to be learnt are unknown; they compare as text does.
            sql = Fragment("VARCHAR") if kind.family == "enum" else kind.sql
            found[name] = (sql, name in computed)
    return found


class _Checks:
    """Checks expressions over columns; collects ``faults``, and the columns that are ``used``."""

    def __init__(self, types: _Types, engine: Engine, catalog: QueryCatalog) -> None:
        self._types, self._engine, self._catalog = types, engine, catalog
        self.faults: list[str] = []
        self.used: set[str] = set()

    def derived(self, role: Derived) -> Derived:
        """With the expression as it was printed."""
        plain = [name for name, (_, computed) in self._types.items() if not computed]
        checked = check_expression(role.expression, plain, self._catalog)
        made = replace(role, expression=checked.sql)
        fault = checked.fault
        if not fault and not self._binds(made.sql, checked.columns):
            fault = f"the database cannot compute it as {role.sql_type} from the columns' types"
        self._noted(checked.columns, fault and f"column {role.name!r}: derived: {fault}")
        return made

    def condition(self, text: str) -> Fragment:
        """As it was printed."""
        checked = check_expression(text, tuple(self._types), self._catalog)
        value, fault = Fragment(f"COALESCE(TRY({checked.sql}), FALSE)"), checked.fault
        if not fault and not self._binds(value, checked.columns):
            fault = "the database cannot evaluate it as a condition on the columns' types"
        self._noted(checked.columns, fault and f"never: {text!r}: {fault}")
        return checked.sql

    def _noted(self, columns: Collection[str], fault: str) -> None:
        self.used.update(columns)
        self.faults += [fault] if fault else []

    def _binds(self, value: Fragment, used: Collection[str]) -> bool:
        columns = [
            Fragment(f"CAST(NULL AS {self._types[name][0]}) AS {ident(name)}") for name in sorted(used)
        ]
        sql = render("write/bind", columns=columns or [Fragment("NULL AS nothing")], value=value)
        try:
            self._engine.execute(sql, step="checking an expression")
        except EngineFailure:
            return False
        return True


def _fits(role: Constant, engine: Engine) -> bool:
    """Whether the cast succeeds, and loses nothing of a number."""
    if role.value is None:
        return True
    cast, kind = role.sql, role.type
    exact = kind is not None and kind.family in ("integer", "decimal") and not isinstance(role.value, str)
    value = literal(role.value) if exact else cast  # type: ignore[arg-type]
    try:
        found = engine.fetch(render("write/fits", value=value, cast=cast), step="checking a constant")
    except EngineFailure:
        return False
    return bool(found["fits"][0])
