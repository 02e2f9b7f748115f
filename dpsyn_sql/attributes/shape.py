"""The public shape of a release: what is measured, what is made otherwise, what is still unknown.

A column of the output is measured (an ``Attribute``, perhaps still ``Undiscovered``) or has a role: a
key, a constant, derived from other columns, or the privacy unit. Of a reference to other rows an attribute is
measured, and the roles of its columns say how the keys of rows are drawn from it; one of them has the
attribute's name. Roles, like domains, are the owner's statements or the catalog's; nothing here was looked up
in a row.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TypeVar

from dpsyn_sql.attributes.attribute import Attribute, Domain, Granularity, Label
from dpsyn_sql.attributes.roles import Fresh, Reference, Role
from dpsyn_sql.attributes.trees import Hierarchy, HierarchyColumn
from dpsyn_sql.attributes.types import SqlType, supported_type
from dpsyn_sql.errors import InternalError
from dpsyn_sql.sqltext.fragments import Fragment

OneRole = TypeVar("OneRole", bound=Role)

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

    def roles_of(self, kind: type[OneRole]) -> tuple[OneRole, ...]:
        """The roles of a class."""
        return tuple(role for role in self.roles if isinstance(role, kind))

    @property
    def fresh(self) -> tuple[Fresh, ...]:
        """The keys and ids that are made from numbers."""
        return tuple(role for role in self.roles if isinstance(role, Fresh))

    @property
    def references(self) -> tuple[Reference, ...]:
        """The columns that name other rows."""
        return tuple(role for role in self.roles if isinstance(role, Reference))

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
