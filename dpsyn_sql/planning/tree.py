"""Tables tied by keys, as a tree: the root holds the privacy units, every other table belongs to one parent.

Public facts only: names, keys and bounds, as the catalog or the owner states them. A unit of the root owns
the rows of a table that its key leads to, at most ``most`` of each row above.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from dpsyn_sql.attributes.attribute import Domain
from dpsyn_sql.attributes.roles import ForeignKey, Key, PartOfKey, PublicKey, RandomKey, Role
from dpsyn_sql.attributes.shape import Shape
from dpsyn_sql.errors import InternalError
from dpsyn_sql.planning.families import Families, families_of_table
from dpsyn_sql.source.relation import WEIGHT, Relation

if TYPE_CHECKING:  # loads numpy, and a ledger is shown without
    from dpsyn_sql.planning.row_labels import FamilyClass

DEFAULT_MOST = 16
"""Rows that are kept of one row of the parent, unless the owner says otherwise."""

ReferenceKind = Literal["public", "other", "self"]


@dataclass(frozen=True, slots=True)
class Link:
    """A foreign key: ``columns`` name a row of ``table`` by its columns ``key``, in the same order.

    ``key`` is empty if nobody says more than the table: then it is the key of it.
    """

    columns: tuple[str, ...]
    table: str
    key: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PublicTable:
    """A table without private data, which is kept as it is; ``key``: columns that tell its rows apart."""

    name: str
    relation: Relation
    key: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reference:
    """A foreign key beside the one that says whose row it is.

    ``columns``: of the table, in the order of the key that they name. ``table``: whose row is named, by
    ``kind``: "public", a public table, whose columns ``by`` are public facts of the row (none: the named row
    itself is); "other", a table of the tree, whose rows are drawn at random; "self", an earlier row of the
    same table.
    """

    columns: tuple[str, ...]
    table: str
    kind: ReferenceKind
    by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Table:
    """A private table of the tree.

    ``key``: what tells its real rows apart, empty if nothing does. ``measured_key``: the columns of it that
    have a domain of their own, so that they are columns like others. ``parent``: the table above, None for
    the root.
    ``foreign_key``: the columns that name the parent's row, in the order of the parent's key. ``most``: rows
    that are kept of one row of the parent. ``order``: the column that orders them; none if empty.
    """

    name: str
    relation: Relation
    key: tuple[str, ...]
    parent: str | None = None
    foreign_key: tuple[str, ...] = ()
    most: int = 1
    order: str = ""
    references: tuple[Reference, ...] = ()
    measured_key: frozenset[str] = frozenset()

    @property
    def tied(self) -> frozenset[str]:
        """The columns of all its keys that have no domain of their own."""
        beside = (name for reference in self.references for name in reference.columns)
        return frozenset((*self.key, *self.foreign_key, *beside)) - self.measured_key

    @property
    def numbered_within_parent(self) -> bool:
        """Whether its key holds all of the owning foreign key: other parts are numbers within the parent."""
        return self.parent is not None and set(self.foreign_key) <= set(self.key)


@dataclass(frozen=True, slots=True)
class Tree:
    """``tables``: parents before their children, the root first. ``public``: tables kept as they are."""

    tables: tuple[Table, ...]
    public: tuple[PublicTable, ...] = ()

    @property
    def root(self) -> Table:
        """The table of the privacy units."""
        return self.tables[0]

    def __getitem__(self, name: str) -> Table:
        return next(table for table in self.tables if table.name == name)

    def __iter__(self) -> Iterator[Table]:
        return iter(self.tables)

    def public_table(self, name: str) -> PublicTable:
        """The public table of a name."""
        return next(table for table in self.public if table.name == name)

    def children(self, name: str) -> tuple[Table, ...]:
        """The tables right below, in order."""
        return tuple(table for table in self.tables if table.parent == name)

    def path(self, name: str) -> tuple[Table, ...]:
        """From the root to the table."""
        table = self[name]
        return (*(self.path(table.parent) if table.parent is not None else ()), table)

    def rows_per_unit(self, name: str) -> int:
        """How many rows of a unit are kept in a table at most."""
        return math.prod(table.most for table in self.path(name))

    def links(self, name: str) -> Iterator[Link]:
        """What a table's columns name: the parent's row first, then the references."""
        table = self[name]
        if table.parent is not None:
            yield Link(table.foreign_key, table.parent, self[table.parent].key)
        for reference in table.references:
            named = (
                self.public_table(reference.table) if reference.kind == "public" else self[reference.table]
            )
            yield Link(reference.columns, reference.table, named.key)

    def has_unique_key(self, name: str) -> bool:
        """Whether the written key of a table has other values in each row: a part of it is fresh, or numbered
        within the parent, or the parent has one such row."""
        table = self[name]
        named = {column for link in self.links(name) for column in link.columns}
        own = set(table.key) - named - table.measured_key
        return bool(own) or (table.numbered_within_parent and table.most == 1)

    def stated_key(self, name: str, shape: Shape) -> tuple[str, ...]:
        """The columns of a table whose written values are its key: others in each row, and never NULL. Empty
        if nothing promises that, or a part of the key is not written."""
        table = self[name]
        other = {column for one in table.references for column in one.columns} | table.measured_key
        full = set(table.key) <= set(shape.order) and set(table.key) & other <= set(shape.not_null)
        return table.key if full and self.has_unique_key(name) else ()

    @property
    def countable(self) -> bool:
        """Whether each kept row has a weight of at least one."""
        return all(self.rows_per_unit(table.name) <= WEIGHT for table in self.tables)

    @property
    def not_protected(self) -> tuple[str, ...]:
        """Persons and rows that are named beside the owning keys, in words: a unit's own rows are protected,
        and not those that name it elsewhere."""
        return tuple(
            f"whom {', '.join(reference.columns)} of {table.name} names in {reference.table}"
            for table in self.tables
            for reference in table.references
            if reference.kind == "other"
        )


def roles_of(tree: Tree, name: str, types: Mapping[str, str]) -> tuple[Role, ...]:
    """How all columns in the keys of a table are written.

    The key of a parent's row is copied into the rows below it. A key that holds all of the owning foreign key
    has numbers within the parent in its other parts; any other key is fresh. Parts that are measured have no
    role.

    Args:
        tree: of all tables.
        name: of the table.
        types: SQL types of its columns, as the catalog of the source spells them.

    Raises:
        InternalError: one column belongs to the owning foreign key and to a reference, or to two references.
    """
    table, found = tree[name], dict[str, Role]()
    for link in tree.links(name):
        for column, key in zip(link.columns, link.key, strict=True):
            if column in found:
                raise InternalError(f"column {column!r} of table {name!r} names two rows")
            found[column] = _named(table, link, column, key, types[column])
    for column in table.key:
        if column not in found and column not in table.measured_key:
            kind = types[column]
            found[column] = (
                PartOfKey(column, kind)
                if table.numbered_within_parent
                else Key(column, kind, "key of the table")
            )
    return tuple(found.values())


def _named(table: Table, link: Link, column: str, key: str, kind: str) -> Role:
    if link.columns == table.foreign_key:
        return ForeignKey(column, kind, link.table, key)
    reference = next(one for one in table.references if one.columns == link.columns)
    if reference.kind == "public":
        return PublicKey(column, kind, link.table, key, link.columns[0])
    return RandomKey(column, kind, link.table, key, link.columns[0], reference.kind == "self")


def families_of_tree(
    tree: Tree,
    domains: Mapping[str, Domain],
    orders: Mapping[str, str],
    groups: Mapping[str, Sequence[FamilyClass]],
) -> dict[str, Families]:
    """The families of all tables, by name.

    Args:
        tree: the tables.
        domains: of their own attributes.
        orders: the attribute that orders the rows of one parent; tables without one may be missing.
        groups: classes of the rows of a child table, as far as they are known.
    """
    found = dict[str, Families]()
    for table in tree:
        found[table.name] = families_of_table(
            table.name,
            domains[table.name],
            None if table.parent is None else found[table.parent],
            [(child.name, child.most) for child in tree.children(table.name)],
            groups=groups,
            order=orders.get(table.name, ""),
        )
    return found
