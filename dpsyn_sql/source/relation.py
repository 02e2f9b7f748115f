"""What is protected: the relation that is read and the privacy unit (public facts only).

Nothing here holds a row, a count or a file size: a ``Relation`` is a name, the SQL text to
put after FROM, and the columns as the catalog or a file's header states them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal

from dpsyn_sql.source.slices import Sliced
from dpsyn_sql.sqltext.fragments import Fragment

RelationKind = Literal["table", "view", "query", "parquet", "csv", "frame"]


Constant = Decimal | str
"""A literal of a constraint: a number, or text (dates and times included)."""


@dataclass(frozen=True, slots=True)
class CheckDomain:
    """What CHECK constraints say of one column: all its values, or one or both bounds."""

    values: tuple[Constant, ...] = ()
    lower: Constant | None = None
    upper: Constant | None = None


@dataclass(frozen=True, slots=True)
class Check:
    """A CHECK constraint of a base table that looks at single rows: its SQL and the columns in it."""

    expression: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the source as its catalog states it.

    ``sql_type`` is the database's own spelling (``"DECIMAL(10,2)"``, ``"ENUM('a', 'b')"``).
    ``enum_labels`` is set for a *named* ENUM type only: an anonymous one may have been made
    from the data itself, so the repr does not show the type.
    ``not_null``, ``unique`` (alone a PRIMARY KEY or UNIQUE) and ``check`` are constraints of a base
    table, never observations. ``refused`` says why a generated column cannot be read: its expression
    may mix rows.
    """

    name: str
    sql_type: str = field(repr=False)
    not_null: bool = False
    enum_labels: tuple[str, ...] | None = None
    unique: bool = False
    check: CheckDomain | None = None
    refused: str = ""


@dataclass(frozen=True, slots=True)
class Relation:
    """A resolved source: ``name`` for people, ``sql`` to put after FROM, columns in order.

    ``statements`` are the owner's public statements that made it admissible
    (``trust_query``, ``public_tables``), printed in plan and certificate.
    ``checks`` are the CHECK constraints of a base table. ``multiplies``: one row of a private table can give
    several rows. ``strict`` says that text of a CSV file that
    does not parse is an error (outside the privacy promise), not NULL.
    """

    name: str
    kind: RelationKind
    sql: Fragment
    columns: tuple[Column, ...]
    statements: tuple[str, ...] = ()
    checks: tuple[Check, ...] = ()
    strict: bool = False
    multiplies: bool = False

    def without(self, names: frozenset[str]) -> tuple[Column, ...]:
        """The columns that are not excluded, in source order."""
        return tuple(column for column in self.columns if column.name not in names)


ROW_OF_RESULT = "row of result"
"""The unit where one row of a table can give several rows of the result: it protects less than "row"."""


@dataclass(frozen=True, slots=True)
class PrivacyUnit:
    """Whom one group of rows belongs to; ``column=None`` protects single rows.

    Neighbouring tables differ by adding or removing one unit with at most ``max_rows`` rows.
    """

    column: str | None = None
    max_rows: int = 1


@dataclass(frozen=True, slots=True)
class Source:
    """A relation together with the unit that is protected; ``sliced``: which part of the table it is."""

    relation: Relation
    unit: PrivacyUnit = PrivacyUnit()
    sliced: Sliced | None = None

    @property
    def unit_name(self) -> str:
        """What the ledger adds up by: a column, ``"row"``, or ``"row of result"``."""
        if self.unit.column is not None:
            return self.unit.column
        return ROW_OF_RESULT if self.relation.multiplies else "row"
