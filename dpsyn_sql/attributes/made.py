"""Columns that are made, not measured: keys, constants, and what is computed from other columns."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field

from dpsyn_sql.attributes.fields import Derivation, Scalar, Single
from dpsyn_sql.attributes.roles import Constant, Derived, Key, UnitId
from dpsyn_sql.attributes.spec import ColumnSpec, Terms, TypedColumn, Unfit, integer_name, shown
from dpsyn_sql.attributes.types import SqlType, enum_type, parse_type, supported_type
from dpsyn_sql.source.relation import Column
from dpsyn_sql.sqltext.fragments import ident, literal


class KeySpec(ColumnSpec):
    """A column that tells rows apart: the output gets fresh values, unique in it."""

    type: Literal["key"]

    def attribute(self, name: str, columns: Sequence[TypedColumn], terms: Terms) -> Key:
        ((column, kind),) = columns
        return key_role(column, kind, "declared")


class ConstantSpec(ColumnSpec):
    """A column of one public value."""

    type: Literal["constant"]
    value: Single

    def implied_types(self) -> tuple[SqlType, ...]:
        value, name = self.value, "VARCHAR"
        if isinstance(value, bool):
            name = "BOOLEAN"
        elif isinstance(value, int):
            name = integer_name([value])
        elif isinstance(value, Decimal):
            name = "DOUBLE"
        elif isinstance(value, date):
            name = "DATE" if type(value) is date else "TIMESTAMP"
        return (supported_type(name, ""),)

    def attribute(self, name: str, columns: Sequence[TypedColumn], terms: Terms) -> Constant:
        """Whether the value fits the type is asked of the database (``rows.write.expressions``)."""
        ((column, kind),), value = columns, self.value
        if value is None and column.not_null:
            raise Unfit("it is NOT NULL; its constant cannot be null")
        sql_type = kind.text
        if kind.family == "enum" and column.enum_labels is None:
            sql_type = "VARCHAR" if value is None else enum_type((str(value),))
        elif column.enum_labels is not None and value is not None and value not in column.enum_labels:
            raise Unfit(f"{value!r} is not a label of the column's {shown(kind)} type")
        return Constant(column.name, sql_type, value)


class DerivedSpec(ColumnSpec):
    """A column computed from other columns of the output."""

    type: Literal["derived"] = "derived"
    derived: Derivation
    otherwise: Annotated[Single, Field(alias="else", description="Where the mapping has no entry.")] = None

    def checked(self, folder: Path) -> Self:
        if isinstance(self.derived, str) and "otherwise" in self.model_fields_set:
            raise ValueError("else needs a mapping; write the other value into the expression")
        return self

    def attribute(self, name: str, columns: Sequence[TypedColumn], terms: Terms) -> Derived:
        """A table of values becomes the CASE expression that looks it up."""
        ((column, kind),) = columns
        expression = self.derived if isinstance(self.derived, str) else _lookup(self)
        return Derived(column.name, _public_type(column, kind), expression)


SPECS = {"key": KeySpec, "constant": ConstantSpec, "derived": DerivedSpec}


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


def _lookup(spec: DerivedSpec) -> str:
    source, pairs = spec.derived
    column, cases = ident(source), []
    for key, value in pairs:
        matches = f"{column} IS NULL" if key is None else f"{column} = {_literal(key)}"
        cases.append(f"WHEN {matches} THEN {_literal(value)}")
    return f"CASE {' '.join(cases)} ELSE {_literal(spec.otherwise)} END"


def _literal(value: Scalar) -> str:
    return literal(value) if not isinstance(value, Decimal) else format(value, "f")
