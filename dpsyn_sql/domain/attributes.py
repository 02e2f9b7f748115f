"""The public shape of a table: attributes with their codes (no value of the source in it).

Codes of an attribute are 0..size-1, in this order: its labels (categorical) or its bins
(numeric, temporal); then ``__other__`` if it has one; then NULL if it is nullable.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time
from decimal import Decimal
from typing import Literal

from dpsyn_sql.domain.types import Edge, SqlType, supported_type, to_tick
from dpsyn_sql.errors import InternalError
from dpsyn_sql.sqltext.fragments import Fragment, ident

Kind = Literal["categorical", "numeric", "temporal"]
Label = bool | int | str
Granularity = int | Decimal | Literal["month"]

OTHER = "__other__"
MAX_SIZE = 131_072
"""Codes that an attribute can have at most."""


@dataclass(frozen=True, slots=True)
class Attribute:
    """One discretised column.

    ``labels`` are the values of a categorical attribute in code order. ``edges`` are the k+1
    cuts of a numeric or temporal one: bin i holds edges[i] <= v < edges[i+1]. For discrete
    types (integers, DATE) the last edge is one step past the upper bound; for continuous
    types the last bin also holds its upper edge. Values beyond the edges fall into the end
    bins. ``ordered`` says that neighbouring codes are alike (always so for bins).
    ``origin`` says who made the domain public.
    ``granularity`` says which values inside a bin are written: whole multiples of so many ticks
    (discrete types), of a number (FLOAT, DOUBLE), or first days of months; None: the type's own.
    ``source`` is the SQL expression of one row of the source that gives its values; None: the column
    of its name. ``type`` is ``sql_type`` parsed.
    """

    name: str
    sql_type: str
    kind: Kind
    labels: tuple[Label, ...] = ()
    edges: tuple[Edge, ...] = ()
    other: bool = False
    nullable: bool = False
    ordered: bool = False
    origin: Literal["declared", "catalog", "discovered"] = "declared"
    granularity: Granularity | None = None
    source: Fragment | None = None
    type: SqlType = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "type", supported_type(self.sql_type, self.name))

    @property
    def value(self) -> Fragment:
        """What stands for its values in a query of the source."""
        return ident(self.name) if self.source is None else self.source

    @property
    def regular(self) -> int:
        """Number of codes that stand for a label or a bin."""
        return len(self.labels) if self.kind == "categorical" else len(self.edges) - 1

    @property
    def size(self) -> int:
        """Number of codes, ``__other__`` and NULL included."""
        return self.regular + self.other + self.nullable

    @property
    def other_code(self) -> int | None:
        """Code of values that no label covers, or None."""
        return self.regular if self.other else None

    @property
    def null_code(self) -> int | None:
        """Code of NULL, or None."""
        return self.regular + self.other if self.nullable else None

    @property
    def fallback_code(self) -> int:
        """Where a value goes that nothing else covers, so that encoding is a total function:
        ``__other__``, else NULL, else code 0."""
        if self.other_code is not None:
            return self.other_code
        return self.null_code if self.null_code is not None else 0


@dataclass(frozen=True, slots=True)
class Domain:
    """Attributes in the order of the source's columns; ``names`` are theirs, in order."""

    attributes: tuple[Attribute, ...]
    names: tuple[str, ...] = field(init=False, repr=False, compare=False)
    _places: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(attribute.name for attribute in self.attributes))
        object.__setattr__(self, "_places", {name: place for place, name in enumerate(self.names)})

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def __getitem__(self, name: str) -> Attribute:
        if name not in self._places:
            raise InternalError(f"no attribute {name!r} in the domain")
        return self.attributes[self._places[name]]

    def index(self, name: str) -> int:
        """Position of an attribute."""
        return self._places[name]

    def shape(self, names: Iterable[str] | None = None) -> tuple[int, ...]:
        """Sizes of the named attributes (default: all), in the order given."""
        return tuple(self[name].size for name in (self.names if names is None else names))

    def cells(self, names: Sequence[str]) -> int:
        """Number of cells of the marginal over the named attributes."""
        return math.prod(self.shape(names))


def edge_ticks(attribute: Attribute) -> tuple[int, ...]:
    """The k+1 cuts of a discrete binned attribute in ticks: bin i holds ticks[i] <= t < ticks[i+1].

    The day after 9999-12-31 has no Python date, nor has the end of a day a Python time. An upper bound
    of the last one is therefore kept as the last edge itself and turned into the tick past it here.
    """
    kind = attribute.type
    last = attribute.edges[-1]
    if kind.family in ("date", "time"):
        marks_the_end = last in (date.max, time.max)
    else:
        marks_the_end = isinstance(last, datetime) and last.replace(tzinfo=None) == datetime.max
    end = kind.high + 1 if marks_the_end else to_tick(kind, last)
    return (*(to_tick(kind, edge) for edge in attribute.edges[:-1]), end)
