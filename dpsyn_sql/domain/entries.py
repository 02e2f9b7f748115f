"""What an owner can declare about a column, as plain values: the domain file after reading it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from typing import Literal

from dpsyn_sql.domain.attributes import Label

Cut = Decimal | date | time
Scalar = bool | int | Decimal | str | date | None
Id = int | str
Step = Decimal | Literal["second", "minute", "hour", "day", "month"]


@dataclass(frozen=True, slots=True)
class Bins:
    """Declared cuts of a column: either ``lower``, ``upper`` and perhaps ``bins``, or ``edges``.

    ``granularity``: the values that occur are whole multiples of it; None: the type's own.
    """

    kind: Literal["numeric", "temporal"]
    lower: Cut | None = None
    upper: Cut | None = None
    bins: int | None = None
    edges: tuple[Cut, ...] = ()
    nullable: bool = False
    granularity: Step | None = None

    @property
    def values(self) -> tuple[Cut, ...]:
        """Every value the owner wrote."""
        return (*(value for value in (self.lower, self.upper) if value is not None), *self.edges)


@dataclass(frozen=True, slots=True)
class Categories:
    """Declared categories; ``other=None`` means that the owner said nothing about completeness."""

    labels: tuple[Label, ...]
    other: bool | None = None
    ordered: bool = False
    nullable: bool = False
    prefixes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Discover:
    """To be learnt through the door, between ``lower`` and ``upper`` (both included); None: as the type and
    the catalog say. ``prefixes``: lengths of the beginnings of text that are learnt too."""

    kind: Literal["categorical", "numeric"] | None = None
    max_codes: int | None = None
    nullable: bool | None = None
    granularity: Step | None = None
    other: bool = True
    lower: Cut | None = None
    upper: Cut | None = None
    prefixes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """Tells rows apart: fresh values in the output."""


@dataclass(frozen=True, slots=True)
class ConstantColumn:
    """One public value in every row."""

    value: Scalar


@dataclass(frozen=True, slots=True)
class DerivedColumn:
    """Computed from other columns: a SQL expression, or a table of the values of one ``column``.

    ``otherwise`` is the value where the table has none.
    """

    expression: str | None = None
    column: str = ""
    pairs: tuple[tuple[Scalar, Scalar], ...] = ()
    otherwise: Scalar = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tree:
    """What declarations of hierarchies share: codes at most, and whether NULL is a value of its own (None: as
    the catalog says)."""

    max_codes: int | None = None
    nullable: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DyadicColumn(_Tree):
    """A number or moment between ``lower`` and ``upper`` (both included), halved ``depth`` times at most."""

    lower: Cut
    upper: Cut
    depth: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PointColumns(_Tree):
    """Columns that are a point together, each with its lower and upper bound (both included)."""

    box: tuple[tuple[str, Cut, Cut], ...]
    depth: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TextColumn(_Tree):
    """Text of the characters of ``alphabet`` (ascending), cut at ``longest`` of them, whose beginnings are
    refined to ``lengths``."""

    alphabet: str
    longest: int
    lengths: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaxonomyColumn(_Tree):
    """Ids with their parents (None: the root), or ids alone with the lengths of the beginnings they share."""

    parents: tuple[tuple[Id, Id | None], ...] = ()
    ids: tuple[Id, ...] = ()
    prefixes: tuple[int, ...] = ()


HierarchyEntry = DyadicColumn | TextColumn | TaxonomyColumn
"""A hierarchy over one column."""

Entry = (
    Bins | Categories | Discover | KeyColumn | ConstantColumn | DerivedColumn | HierarchyEntry | PointColumns
)


def moments(values: Sequence[Cut]) -> list[datetime]:
    """The timestamps among declared values."""
    return [value for value in values if isinstance(value, datetime)]
