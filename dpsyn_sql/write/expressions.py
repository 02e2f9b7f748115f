"""The owner's expressions and constants, checked before anything is charged.

Each expression is checked on its syntax tree, replaced by the text printed from it, and bound by the
database over columns of the right types without rows: an unknown name or a type that does not fit is
one fault of ours, never a failure after the debit.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from dpsyn_sql.decode.output import constant_expression, derived_value
from dpsyn_sql.domain.shape import Constant, Derived, Key, Shape, UnitId
from dpsyn_sql.errors import DomainError, EngineFailure
from dpsyn_sql.interfaces import Engine
from dpsyn_sql.source.expression_check import check_expression
from dpsyn_sql.source.query_check import QueryCatalog
from dpsyn_sql.sqltext.fragments import Fragment, ident, literal
from dpsyn_sql.sqltext.render import render


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
    faults: list[str] = []
    types, used = _types(shape), set[str]()
    for role in shape.roles:
        if isinstance(role, Constant) and not _fits(role, engine):
            faults.append(f"column {role.name!r}: {role.value!r} is not a value of the type {role.sql_type}")
    plain = [name for name, (_, computed) in types.items() if not computed]
    roles = tuple(
        _derived(role, plain, types, engine, catalog, faults, used) if isinstance(role, Derived) else role
        for role in shape.roles
    )
    never = tuple(_condition(text, types, engine, catalog, faults, used) for text in shape.never)
    if faults:
        raise DomainError("The domain does not fit the source:", faults)
    return replace(shape, roles=roles, never=never).as_text(used)


def _types(shape: Shape) -> dict[str, tuple[Fragment, bool]]:
    """Type of each column that an expression may use, and whether it is computed itself.

    Keys and unit ids are made last, so nothing can depend on them.
    """
    made_last = {role.name for role in shape.roles if isinstance(role, Key | UnitId)}
    computed = {role.name for role in shape.roles if isinstance(role, Derived)}
    found = {}
    for name, kind in shape.types.items():
        if kind is not None and name not in made_last:
            # The labels of an ENUM still to be learnt are unknown; they compare as text does.
            sql = Fragment("VARCHAR") if kind.family == "enum" else kind.sql
            found[name] = (sql, name in computed)
    return found


def _derived(
    role: Derived,
    plain: Collection[str],
    types: dict[str, tuple[Fragment, bool]],
    engine: Engine,
    catalog: QueryCatalog,
    faults: list[str],
    used: set[str],
) -> Derived:
    checked = check_expression(role.expression, plain, catalog)
    used.update(checked.columns)
    made = replace(role, expression=checked.sql)
    fault = checked.fault
    if not fault:
        value = derived_value(made)
        if not _binds(value, checked.columns, types, engine):
            fault = f"the database cannot compute it as {role.sql_type} from the columns' types"
    if fault:
        faults.append(f"column {role.name!r}: derived: {fault}")
    return made


def _condition(
    text: str,
    types: dict[str, tuple[Fragment, bool]],
    engine: Engine,
    catalog: QueryCatalog,
    faults: list[str],
    used: set[str],
) -> Fragment:
    checked = check_expression(text, tuple(types), catalog)
    used.update(checked.columns)
    fault = checked.fault
    if not fault:
        value = Fragment(f"COALESCE(TRY({checked.sql}), FALSE)")
        if not _binds(value, checked.columns, types, engine):
            fault = "the database cannot evaluate it as a condition on the columns' types"
    if fault:
        faults.append(f"never: {text!r}: {fault}")
    return checked.sql


def _binds(
    value: Fragment, used: Collection[str], types: dict[str, tuple[Fragment, bool]], engine: Engine
) -> bool:
    columns = [Fragment(f"CAST(NULL AS {types[name][0]}) AS {ident(name)}") for name in sorted(used)]
    columns = columns or [Fragment("NULL AS nothing")]
    try:
        engine.execute(render("write/bind", columns=columns, value=value), step="checking an expression")
    except EngineFailure:
        return False
    return True


def _fits(role: Constant, engine: Engine) -> bool:
    """Whether the cast succeeds, and loses nothing of a number."""
    if role.value is None:
        return True
    cast = constant_expression(role)
    kind = role.type
    exact = kind is not None and kind.family in ("integer", "decimal") and not isinstance(role.value, str)
    value = literal(role.value) if exact else cast  # type: ignore[arg-type]
    try:
        found = engine.fetch(render("write/fits", value=value, cast=cast), step="checking a constant")
    except EngineFailure:
        return False
    return bool(found["fits"][0])
