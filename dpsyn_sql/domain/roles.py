"""Columns that are written but not measured: keys, unit ids, constants, derived values."""

from __future__ import annotations

from decimal import Decimal

from dpsyn_sql.domain.declared import shown
from dpsyn_sql.domain.entries import ConstantColumn, DerivedColumn, Scalar
from dpsyn_sql.domain.shape import Constant, Derived, Key, UnitId
from dpsyn_sql.domain.types import SqlType, enum_type, parse_type
from dpsyn_sql.source.relation import Column
from dpsyn_sql.sqltext.fragments import ident, literal


def _public_type(column: Column, kind: SqlType) -> str:
    """An ENUM without a name may hold the data's own values: fresh ones are text."""
    return "VARCHAR" if kind.family == "enum" and column.enum_labels is None else kind.text


def key_role(column: Column, kind: SqlType, origin: str) -> Key:
    """A column of fresh values, unique in the output."""
    return Key(column.name, _public_type(column, kind), origin)


def unit_role(column: Column) -> UnitId:
    """The privacy unit's column; BLOB is written too."""
    kind = parse_type(column.sql_type)
    return UnitId(column.name, column.sql_type if kind is None else _public_type(column, kind))


def constant_role(column: Column, kind: SqlType, entry: ConstantColumn, faults: list[str]) -> Constant | None:
    """A column of one value; whether it fits the type is asked of the database (``write.expressions``)."""
    value = entry.value
    if value is None and column.not_null:
        faults.append(f"column {column.name!r} is NOT NULL; its constant cannot be null")
        return None
    sql_type = kind.text
    if kind.family == "enum" and column.enum_labels is None:
        sql_type = "VARCHAR" if value is None else enum_type((str(value),))
    elif column.enum_labels is not None and value is not None and value not in column.enum_labels:
        faults.append(f"column {column.name!r}: {value!r} is not a label of the column's {shown(kind)} type")
        return None
    return Constant(column.name, sql_type, value)


def derived_role(column: Column, kind: SqlType, entry: DerivedColumn) -> Derived:
    """A computed column; a table of values becomes the CASE expression that looks it up."""
    sql_type = kind.text
    if kind.family == "enum" and column.enum_labels is None:
        sql_type = "VARCHAR"
    return Derived(column.name, sql_type, entry.expression or _lookup(entry))


def _lookup(entry: DerivedColumn) -> str:
    column = ident(entry.column)
    cases = []
    for key, value in entry.pairs:
        matches = f"{column} IS NULL" if key is None else f"{column} = {_literal(key)}"
        cases.append(f"WHEN {matches} THEN {_literal(value)}")
    return f"CASE {' '.join(cases)} ELSE {_literal(entry.otherwise)} END"


def _literal(value: Scalar) -> str:
    return literal(value) if not isinstance(value, Decimal) else format(value, "f")
