"""What every declaration of a column is: the keys of its ``type:`` in the domain file, and what it makes of a
column.

The docstrings and the descriptions of fields are part of the published format. Nothing here reads a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, StrictBool

from dpsyn_sql.attributes.attribute import Attribute
from dpsyn_sql.attributes.fields import CodeCount, SqlTypeName
from dpsyn_sql.attributes.roles import Role
from dpsyn_sql.attributes.shape import MAX_CODES, Undiscovered
from dpsyn_sql.attributes.trees import Hierarchy
from dpsyn_sql.attributes.types import SqlType, parse_type, supported_type
from dpsyn_sql.source.relation import Column

Item = Attribute | Undiscovered | Role
"""What becomes of a column."""

TypedColumn = tuple[Column, SqlType]
"""A column of the source, and the type of its values: its own, or for text of a file the declared one."""


class Unfit(Exception):
    """A declaration does not fit its column. ``args`` are the faults, which do not name the column."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What holds for all columns of a source. ``discover``: what is not public is learnt. ``typed``: the type
    of the column is public; else it is text of a file, and that type is learnt too."""

    discover: bool
    typed: bool = True


class ColumnSpec(BaseModel):
    """A declaration of a column. A ``type:`` is a class below it with that field, and a line in ``KINDS``."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, arbitrary_types_allowed=True, populate_by_name=True
    )

    sql_type: SqlTypeName = None

    @property
    def parts(self) -> tuple[str, ...]:
        """The columns of the source that are declared together under a name of their own; none of a
        declaration of the column of its name."""
        return ()

    def checked(self, folder: Path) -> Self:
        """The declaration, complete; a file that it names lies in ``folder``.

        Raises:
            ValueError: its parts contradict each other, or one is missing.
        """
        return self

    def implied_types(self) -> tuple[SqlType, ...]:
        """The types of its columns, where they are text and no ``sql_type`` is stated."""
        return (supported_type("VARCHAR", ""),)

    def attribute(self, name: str, columns: Sequence[TypedColumn], terms: Terms) -> Item:
        """What becomes of its columns.

        Args:
            name: its key in the domain file; only of declarations with ``parts`` that of the attribute.
            columns: its own one, or the ``parts`` in their order.
            terms: of the source.

        Raises:
            Unfit: with all faults.
        """
        raise NotImplementedError


class MeasuredSpec(ColumnSpec):
    """A declaration of a column that is measured."""

    per_unit: Annotated[
        StrictBool, Field(description="All rows of a unit have the same value, such as a year of birth.")
    ] = False


class ListedSpec(MeasuredSpec):
    """A declaration of all values of a column, NULL included."""

    nullable: Annotated[StrictBool, Field(description="NULL is a value of its own.")] = False


class TreeSpec(MeasuredSpec):
    """A declaration of a tree of values, which is refined where the rows are."""

    max_codes: CodeCount | None = None
    nullable: StrictBool | None = None

    def may_be_null(self, columns: Sequence[TypedColumn]) -> bool:
        """Whether NULL is a value of its own: no column is NOT NULL, and the owner does not exclude it."""
        return not any(column.not_null for column, _ in columns) and self.nullable is not False


def tree_to_learn(hierarchy: Hierarchy, spec: TreeSpec) -> Undiscovered:
    """The attribute whose codes will be nodes of a declared tree."""
    size = MAX_CODES if spec.max_codes is None else spec.max_codes
    nullable = hierarchy.nullable
    return Undiscovered(hierarchy.name, "VARCHAR", "categorical", nullable, size, hierarchy=hierarchy)


def natural_kind(kind: SqlType) -> str:
    """The kind of entry that suits a type."""
    if kind.family == "uuid":
        return "key"
    if kind.family in ("boolean", "text", "enum"):
        return "categorical"
    return kind.binned


def shown(kind: SqlType) -> str:
    """A type without labels, which can be made from the data."""
    return "ENUM" if kind.family == "enum" else kind.text


def chosen_type(kind: SqlType, implied: SqlType, stated: str | None, *, csv: bool) -> SqlType:
    """The type of a column in the output: its own, or for text of a file the declared one.

    Raises:
        Unfit: the stated type cannot be declared, or contradicts the source.
    """
    if stated is None:
        return implied if csv else kind
    parsed = parse_type(stated)
    if parsed is None or parsed.family == "enum":
        raise Unfit(f"sql_type {stated!r} is not a type that can be declared")
    if not csv and parsed != kind:
        raise Unfit(
            f"sql_type {stated!r} contradicts the source, whose type is {shown(kind)}; remove it, or cast in "
            "a query"
        )
    return parsed


def integer_name(values: Sequence[int]) -> str:
    """The type of whole numbers that nobody states."""
    return "BIGINT" if all(-(2**63) <= value < 2**63 for value in values) else "HUGEINT"
