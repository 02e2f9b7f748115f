"""The public shape of a release: what is measured, what is made otherwise, what is still unknown.

A column of the output is measured (an ``Attribute``, perhaps still ``Undiscovered``) or has a role: a
key, a constant, derived from other columns, or the privacy unit. Of a reference to other rows an attribute is
measured, and the roles of its columns say how the keys of rows are drawn from it; one of them has the
attribute's name. Roles, like domains, are the owner's statements or the catalog's; nothing here was looked up
in a row.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar

from dpsyn_sql.attributes.attribute import Attribute, Domain, Granularity, Label
from dpsyn_sql.attributes.trees import Hierarchy, HierarchyColumn
from dpsyn_sql.attributes.types import SqlType, parse_type, supported_type
from dpsyn_sql.errors import InternalError
from dpsyn_sql.source.names import cut_short
from dpsyn_sql.sqltext.fragments import Fragment

MAX_CODES = 100
"""Codes that an undiscovered attribute may get, unless the owner says otherwise: enough for most code
lists, few enough that pairs of such attributes can be measured."""


@dataclass(frozen=True, slots=True)
class Undiscovered:
    """A column without a public domain: what is planned before it is learnt through the door.

    ``kind`` says how it will be learnt: values above a threshold (categorical) or bins (numeric,
    temporal). It never gets more than ``max_codes`` codes, ``__other__`` and NULL included.
    ``granularity`` is what its bins get. ``least`` and ``most`` are bounds that the owner or the
    catalog states on one side or both (values of the type: ticks, or doubles): nothing outside is looked for.
    ``other``: rows of values that are not found are written as ``__other__``, not as found ones.
    ``clipped``: the bounds are the owner's word, and values beyond them count as the nearest within.
    ``source`` and ``type`` as of an ``Attribute``. ``typed``: the type is public; else it is a column of
    text (of a CSV file) whose type is learnt too, and ``sql_type`` and ``kind`` are those of text.
    ``prefixes``: lengths, descending, of the beginnings that are learnt of text that is not found whole.
    ``hierarchy``: its codes will be nodes of it (``kind`` "categorical", ``sql_type`` VARCHAR); the column
    may
    then stand for several columns of the source.
    """

    name: str
    sql_type: str = field(repr=False)  # an ENUM without a name may have been made from the rows
    kind: str
    nullable: bool = True
    max_codes: int = MAX_CODES
    granularity: Granularity | None = None
    least: Fraction | None = None
    most: Fraction | None = None
    source: Fragment | None = None
    other: bool = True
    typed: bool = True
    prefixes: tuple[int, ...] = ()
    clipped: bool = False
    hierarchy: Hierarchy | None = None
    type: SqlType = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "type", supported_type(self.sql_type, self.name))

    @property
    def columns(self) -> tuple[HierarchyColumn, ...]:
        """The columns of the source that it stands for: its own, or those of its hierarchy."""
        if self.hierarchy is None:
            return (HierarchyColumn(self.name, self.sql_type, self.source),)
        return self.hierarchy.columns

    def stand_in(self) -> Attribute:
        """An attribute of the largest size it can get, for planning only."""
        extras = self.nullable + (self.kind == "categorical")
        labels: tuple[Label, ...] = tuple(str(code) for code in range(max(1, self.max_codes - extras)))
        return Attribute(
            self.name,
            "VARCHAR",
            "categorical",
            labels,
            other=self.kind == "categorical",
            nullable=self.nullable,
            ordered=self.kind != "categorical",
            origin="discovered",
        )


@dataclass(frozen=True, slots=True)
class Role(ABC):
    """A column that is written, and not measured. ``type`` is ``sql_type`` parsed, None for one that only a
    unit id can have. ``last``: it is made when all rows are there, so nothing is computed from it."""

    name: str
    sql_type: str
    type: SqlType | None = field(init=False, repr=False, compare=False)
    last: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "type", parse_type(self.sql_type))

    @property
    @abstractmethod
    def in_plan(self) -> str:
        """What a plan says of it."""

    @property
    @abstractmethod
    def comment(self) -> str:
        """What the table that is written says of it."""

    def facts(self) -> dict[str, Any]:
        """What is public about it, JSON-ready."""
        return {"name": self.name, "type": self.sql_type, "role": type(self).__name__.lower()}


@dataclass(frozen=True, slots=True)
class Key(Role):
    """A column that tells rows apart: the output gets fresh values, unique in it."""

    origin: str = "declared"

    @property
    def in_plan(self) -> str:
        return f"key ({self.origin}): not read, fresh values are written"

    @property
    def comment(self) -> str:
        return "Fresh key, unrelated to the keys of the source."

    def facts(self) -> dict[str, Any]:
        return Role.facts(self) | {"origin": self.origin}


@dataclass(frozen=True, slots=True)
class UnitId(Role):
    """The privacy unit's column: fresh values, each repeated as often as its unit has rows."""

    @property
    def in_plan(self) -> str:
        return "fresh units are written"

    @property
    def comment(self) -> str:
        return "Fresh unit id, unrelated to the ids of the source."


@dataclass(frozen=True, slots=True)
class Constant(Role):
    """A column of one public value (None: all NULL), written as the owner states it."""

    value: object
    last: ClassVar[bool] = False

    @property
    def in_plan(self) -> str:
        return "constant, as the owner states"

    @property
    def comment(self) -> str:
        return "Constant, as the owner states it; not measured."

    def facts(self) -> dict[str, Any]:
        return Role.facts(self) | {"value": self.value if self.value is None else str(self.value)}


@dataclass(frozen=True, slots=True)
class Derived(Role):
    """A column computed from other columns of the output by a SQL expression of the owner's."""

    expression: str
    last: ClassVar[bool] = False

    @property
    def in_plan(self) -> str:
        return f"computed, as the owner states: {cut_short(self.expression)}"

    @property
    def comment(self) -> str:
        return f"Computed from other columns of the synthetic row: {self.expression}"

    def facts(self) -> dict[str, Any]:
        return Role.facts(self) | {"expression": self.expression}


@dataclass(frozen=True, slots=True)
class ForeignKey(Role):
    """Names the parent's row: what the column ``key`` of the parent ``table`` has in it."""

    table: str
    key: str

    @property
    def in_plan(self) -> str:
        return f"key of the parent's row in {cut_short(self.table)}: not read"

    @property
    def comment(self) -> str:
        return f"Key of the row above in {self.table}, which this row was drawn for."


@dataclass(frozen=True, slots=True)
class PartOfKey(Role):
    """A part of a key: the number of the row within its parent, from 1."""

    @property
    def in_plan(self) -> str:
        return "part of a key: not read, rows are numbered within their parent"

    @property
    def comment(self) -> str:
        return "Part of a key: the number of the row within its parent."


@dataclass(frozen=True, slots=True)
class RandomKey(Role):
    """Names a row at random: what the column ``key`` of a row of ``table`` has; NULL where the measured
    ``attribute`` is NULL. Columns of one attribute name one row. ``earlier``: ``table`` is its own, and the
    row is one before it."""

    table: str
    key: str
    attribute: str
    earlier: bool = False

    @property
    def in_plan(self) -> str:
        row = "an earlier row" if self.earlier else "a random row"
        return f"key of {row} of {cut_short(self.table)}; that there is one is measured"

    @property
    def comment(self) -> str:
        row = "an earlier row" if self.earlier else "a row"
        return f"Key of {row} of {self.table} at random; measured is only whether there is one."


@dataclass(frozen=True, slots=True)
class PublicKey(Role):
    """Names a row of a public table: what its column ``key`` has in a random row of the group that is the
    value of the measured ``attribute``; NULL where that is NULL. Columns of one attribute name one row."""

    key: str
    attribute: str

    @property
    def in_plan(self) -> str:
        return "key of a random row of the public group that is measured"

    @property
    def comment(self) -> str:
        return "Key of a row of a public table at random, within the group that was drawn."


@dataclass(frozen=True, slots=True)
class Shape:
    """Everything public about the table to be written.

    ``measured``: the attributes in source order. ``roles``: the other columns that are written.
    ``order``: names of all written columns in source order. ``never``: SQL conditions that hold for
    no row of the output (the owner's ``never:`` and the catalog's CHECK constraints). ``not_null``: columns
    that the catalog declares NOT NULL; no row has NULL in them. ``per_unit``: the attributes that, as the
    owner says, all rows of a unit share. ``together``: rows lie below others, such as those of a
    person. ``numbered``: rows are numbered from 0 without holes, as rows below them or their persons say.
    ``ticks``: the attribute that orders rows below others, whose values are drawn; none if empty.
    """

    measured: tuple[Attribute | Undiscovered, ...]
    roles: tuple[Role, ...] = ()
    order: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    not_null: tuple[str, ...] = ()
    per_unit: frozenset[str] = frozenset()
    together: bool = False
    numbered: bool = False
    ticks: str = ""

    @property
    def undiscovered(self) -> tuple[Undiscovered, ...]:
        """What has to be learnt through the door."""
        return tuple(item for item in self.measured if isinstance(item, Undiscovered))

    @property
    def untyped(self) -> tuple[str, ...]:
        """Names of the columns of text whose type is to be learnt."""
        return tuple(item.name for item in self.undiscovered if not item.typed)

    @property
    def sql_types(self) -> dict[str, str]:
        """The type of every written column, as the catalog spells it."""
        types = {column.name: column.sql_type for item in self.measured for column in item.columns}
        return types | {role.name: role.sql_type for role in self.roles}

    @property
    def types(self) -> dict[str, SqlType | None]:
        """The type of every written column; None for one that only a unit id can have."""
        types: dict[str, SqlType | None] = {
            column.name: column.type for item in self.measured for column in item.columns
        }
        return types | {role.name: role.type for role in self.roles}

    def as_text(self, names: Collection[str]) -> Shape:
        """The same shape in which those of these columns that have no public type are text."""

        def settled(item: Attribute | Undiscovered) -> Attribute | Undiscovered:
            return (
                replace(item, typed=True) if isinstance(item, Undiscovered) and item.name in names else item
            )

        return replace(self, measured=tuple(settled(item) for item in self.measured))

    def planned(self) -> Domain:
        """The domain to plan with: every undiscovered attribute at the largest size it can get."""
        return Domain(
            tuple(item.stand_in() if isinstance(item, Undiscovered) else item for item in self.measured)
        )

    def completed(self, attributes: dict[str, Attribute]) -> Shape:
        """The same shape with every undiscovered attribute replaced by what was found."""
        if set(attributes) != {item.name for item in self.undiscovered}:
            raise InternalError("a domain was completed with other attributes than it lacks")
        return replace(
            self,
            measured=tuple(
                attributes[item.name] if isinstance(item, Undiscovered) else item for item in self.measured
            ),
        )

    @property
    def domain(self) -> Domain:
        """The complete domain.

        Raises:
            InternalError: something is still undiscovered.
        """
        if self.undiscovered:
            raise InternalError("the domain is not complete yet")
        return Domain(tuple(item for item in self.measured if isinstance(item, Attribute)))
