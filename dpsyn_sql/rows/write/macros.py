"""The queries behind ``dpsyn_sample``: rows that SQL draws of a network, as values of the released columns.

The seed and the number of rows, or of units if their rows go together, are parameters of the macro. Rows are
drawn from the model of the release; the released ones were drawn from it by its sampler. Keys and unit
ids are NULL, because fresh ones would repeat those of the released table without being the same rows; ids of
units that are drawn number them, and say no more. Rows that the owner's conditions exclude are left out, not
replaced.

Every release is of a table on the way down from a root: its own table alone, persons and their rows, or the
tables of a tree down to it. The parameter of rows is that of the root, and the query holds all tables on the
way. They draw the same rows for every table of a tree, so keys of one table's rows are those that the rows of
another name: numbers of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.attributes.output import (
    conditions,
    impossible_query,
    rows_with_places,
    values_of,
    written_columns,
)
from dpsyn_sql.attributes.roles import ForeignKey, Fresh, PublicKey, RandomKey, Role, UnitId, written_type
from dpsyn_sql.attributes.shape import Shape
from dpsyn_sql.errors import InternalError
from dpsyn_sql.fit.network import Network, families_in
from dpsyn_sql.planning.families import ALONE, Families
from dpsyn_sql.rows.sample.sql_text import (
    MOST_NODES,
    MOST_ON_WAY,
    WORD,
    Passed,
    Script,
    Tables,
    row_bits,
)
from dpsyn_sql.rows.sample.ticks import array_of, number_below
from dpsyn_sql.source.names import fold
from dpsyn_sql.sqltext.fragments import Fragment, ident, literal, string_literal
from dpsyn_sql.sqltext.render import render

if TYPE_CHECKING:
    from dpsyn_sql.rows.write.persist import StoredRelease

MOST_NUMBERED = 10**9
"""Rows whose keys have the same number of digits, where keys are text."""


def valued(
    shape: Shape, staged: Fragment, bits: Callable[[Attribute], Fragment], keys: Mapping[str, Fragment]
) -> Fragment:
    """Values of staged codes, columns in the order of the release. ``keys``: values of columns that name
    rows; all others that do are NULL."""
    valued_codes = values_of(shape.domain, bits, shape.ticks)
    nulls = {
        role.name: Fragment(f"CAST(NULL AS {written_type(role.type)})") for role in shape.roles if role.last
    }
    columns, written = written_columns(shape, {**valued_codes.values, **nulls, **keys})
    return render(
        "macros/sampled",
        staged=rows_with_places(Fragment(f"(\n{staged}\n    )"), valued_codes),
        columns=columns,
        written=written,
        conditions=conditions(shape),
    )


def position_bits(
    seed: Fragment, unit: str | None = None, shared: frozenset[str] = frozenset()
) -> Callable[[Attribute], Fragment]:
    """As ``attributes.output.position_bits``, with the seed as an expression; of the attributes ``shared`` by
    rows of a unit from its number."""

    def bits(attribute: Attribute) -> Fragment:
        number = unit if unit is not None and attribute.name in shared else '"row"'
        return row_bits(attribute.name, "position", seed, number)

    return bits


def parameters(shapes: Iterable[Shape]) -> tuple[Fragment, Fragment]:
    """The names of the macros' parameters. A parameter hides columns of its name, so no column has it: of the
    table, and of those above it."""
    taken = {fold(name) for shape in shapes for name in shape.order or shape.types}
    rows, seed = "dpsyn_rows", "dpsyn_seed"
    while rows in taken or seed in taken:
        rows, seed = f"{rows}_", f"{seed}_"
    return Fragment(rows), Fragment(seed)


def sample_queries(tables: Sequence[StoredRelease], numbers: Sequence[int]) -> tuple[Fragment, Fragment]:
    """The queries of the low-variance and of the independent rows of a release.

    ``tables``: the one of the release last; before it those above in its tree, the root first. ``numbers``:
    of each that of its release in the tables of models. A model that is no network, and networks of more
    steps than ``MOST_NODES``, on the way from a root ``MOST_ON_WAY``, give an error that says so.
    """
    shape, name = tables[-1].shape, tables[-1].name
    networks = [table.drawn.network for table in tables if table.drawn.network is not None]
    few = sum(len(network.nodes) for network in networks) <= (MOST_NODES if len(tables) == 1 else MOST_ON_WAY)
    if len(networks) < len(tables) or not few:
        why = "has too many variables for one query" if not few else "is no network"
        message = (
            f"The model of release {name} {why}, so SQL cannot draw rows of it; its table and "
            "dpsyn_marginal() are here. For more rows call release(..., rows=) under the same name, at no "
            "cost."
        )
        failing = render("macros/no_model", columns=_columns(shape), message=string_literal(message))
        return failing, failing
    names = parameters(table.shape for table in tables)
    nrows, seed = (
        Fragment(f"CAST({parameter} AS {kind})")
        for parameter, kind in zip(names, ("BIGINT", "UBIGINT"), strict=True)
    )
    stored = [Tables(Fragment("dpsyn.shares"), Fragment(f"release = {number}")) for number in numbers]
    way = WayDown(tables, networks, stored, seed)
    low_variance, independent = (
        valued(shape, way.rows(nrows, low_variance=low), way.bits, way.keys(nrows)) for low in (True, False)
    )
    return low_variance, independent


def _columns(shape: Shape) -> list[Fragment]:
    """The columns of the release without values."""
    kinds = shape.types
    names = shape.order or tuple(kinds)
    return [Fragment(f"CAST(NULL AS {written_type(kinds[name])}) AS {ident(name)}") for name in names]


MOST_PUBLIC = 10_000
"""Rows of a public table that a macro lists: they are part of its text."""


@dataclass(frozen=True, slots=True)
class Code:
    """An attribute of a table on the way, by its depth (the root has 0) and place in the domain."""

    depth: int
    place: int


@dataclass(frozen=True, slots=True)
class Number:
    """The number of a row on the way: ``row`` in its table, ``rank`` in its family, or of its ``parent``."""

    depth: int
    kind: Literal["row", "parent", "rank"]


Item = Code | Number


@dataclass(frozen=True)
class WayDown:
    """The tables from the root to the one whose rows are wanted, and what draws each. ``stored``: where the
    distributions are. ``seed``: an expression."""

    tables: Sequence[StoredRelease]
    networks: Sequence[Network]
    stored: Sequence[Tables]
    seed: Fragment

    @cached_property
    def _families(self) -> list[Families]:
        """How rows of each table go together, over the attributes as they are written."""
        return [
            (families_in(table.model) or ALONE).with_attributes(table.shape.domain) for table in self.tables
        ]

    @property
    def _last(self) -> int:
        return len(self.tables) - 1

    @cached_property
    def _depths(self) -> dict[str, int]:
        return {self._name(depth): depth for depth in range(len(self.tables))}

    def _name(self, depth: int) -> str:
        """That of a table of a tree; empty of others."""
        return self._families[depth].table

    @property
    def bits(self) -> Callable[[Attribute], Fragment]:
        """The random bits of a wanted row."""
        shape = self.tables[-1].shape
        shared = shape.per_unit if shape.together else frozenset[str]()
        return position_bits(self.bits_seed(self._last), "parent", shared)

    @cached_property
    def _named(self) -> dict[str, tuple[Fresh, Number]]:
        """Of the columns that name rows on the way: the key that is meant, and the number it comes from."""
        meant = {role.name: self._meant(self._last, role.name) for role in self.tables[-1].shape.roles}
        return {name: key for name, key in meant.items() if key is not None}

    @property
    def _numbers(self) -> set[Item]:
        return {number for _, number in self._named.values()}

    def _meant(self, depth: int, column: str) -> tuple[Fresh, Number] | None:
        """The key that a column of a table repeats, or is, and its number; None if it names no row on the
        way. An id names a person; rows of no tree have no keys."""
        families = self._families[depth]
        role = {role.name: role for role in self.tables[depth].shape.roles}.get(column)
        if not (families.table or (families.size and isinstance(role, UnitId))):
            return None
        if isinstance(role, Fresh):
            return role, Number(depth, role.numbered)
        if isinstance(role, ForeignKey) and depth > 0:
            return self._meant(depth - 1, role.key)
        return None

    def bits_seed(self, depth: int) -> Fragment:
        """The seed of a table."""
        return _seed_of(self._name(depth), self.seed)

    def column(self, item: Item, depth: int) -> str:
        """The column that an item has in the rows of the table of a depth, its own or one below."""
        if isinstance(item, Code):
            return f"a{item.place}" if item.depth == depth else f"a{item.place}_{item.depth}"
        if item.depth == depth:
            return item.kind
        return "parent" if item == Number(depth - 1, "row") else f"{item.kind}_{item.depth}"

    @cached_property
    def _needed(self) -> list[set[Item]]:
        """Of every table what its rows, its keys and the tables below need of rows above."""
        items_of_tables, below = list[set[Item]](), set(self._numbers)
        for depth in reversed(range(len(self.tables))):
            evidence = self._evidence(depth).values()
            below = {item for item in (*below, *evidence) if item.depth < depth}
            items_of_tables.insert(0, below)
        return items_of_tables

    def _evidence(self, depth: int) -> dict[str, Code]:
        """The attributes above that the rows of a table follow from, by their names in its domain."""
        families, codes = self._families[depth], dict[str, Code]()
        names = set(_evidence_names(self.networks[depth], families))
        for attribute in families.above:
            if attribute.name in names:
                up = self._depths[attribute.table]
                codes[attribute.name] = Code(up, self._domain(up).index(attribute.attribute))
        return codes

    def _domain(self, depth: int) -> Domain:
        """The attributes of a table, with those that tie its rows to others."""
        return self._families[depth].domain

    def rows(self, units: Fragment, *, low_variance: bool) -> Fragment:
        """The query of the wanted rows: row, codes, parent and rank if they lie below others, and t if they
        are ordered."""
        query = self._root(units, low_variance=low_variance)
        for depth in range(1, len(self.tables)):
            query = self._below(self._possible(query, depth - 1), depth)
        return query

    def _root(self, units: Fragment, *, low_variance: bool) -> Fragment:
        script = Script(self.networks[0], self.bits_seed(0), self._families[0])
        return (script.low_variance if low_variance else script.iid)(units, self.stored[0])

    def _below(self, parents: Fragment, depth: int) -> Fragment:
        families, seed = self._families[depth], self.bits_seed(depth)
        if families.by_themselves:
            raise InternalError("a table below another has no families")
        below = self._numbers if depth + 1 == len(self.tables) else self._needed[depth + 1]
        passed = [
            Passed(self.column(item, depth - 1), self.column(item, depth), self._width(item))
            for item in sorted(below, key=str)
            if item.depth < depth and item != Number(depth - 1, "row")
        ]
        above = {name: self.column(code, depth - 1) for name, code in self._evidence(depth).items()}
        script = Script(_table_network(self.networks[depth]), seed, families, above, tuple(passed))
        return script.below(parents, self.stored[depth])

    def _width(self, item: Item) -> int:
        if isinstance(item, Number):
            return WORD
        size = self._domain(item.depth).attributes[item.place].size
        return (size - 1).bit_length()

    def _possible(self, rows: Fragment, depth: int) -> Fragment:
        """Rows of a table that its conditions do not exclude."""
        shape = self.tables[depth].shape
        if not shape.never:
            return rows
        bits = position_bits(self.bits_seed(depth))
        _, impossible = impossible_query(shape, Fragment("everything"), ident("row"), 0, bits)
        return render("sample/possible", rows=rows, impossible=impossible)

    def keys(self, units: Fragment) -> dict[str, Fragment]:
        """Of the columns that are keys their values in the last table, over its rows."""
        values = dict[str, Fragment]()
        for role in self.tables[-1].shape.roles:
            value = None
            if role.name in self._named:
                key, number = self._named[role.name]
                value = _key(key, role, ident(self.column(number, self._last)))
            elif isinstance(role, RandomKey):
                value = self._random(role, units)
            elif isinstance(role, PublicKey):
                value = self._public(role)
            if value is not None:
                values[role.name] = value
        return values

    def _bits(self, attribute: str) -> Fragment:
        """64 random bits of a row of the last table for the row that an attribute of it names."""
        return row_bits(attribute, "named", self.bits_seed(self._last))

    def _measured(self, attribute: str) -> Fragment:
        """The value of an attribute of the last table."""
        shape = self.tables[-1].shape
        return values_of(shape.domain, self.bits, shape.ticks).values[attribute]

    def _public(self, role: PublicKey) -> Fragment | None:
        """The key of a public row of the group that was drawn. None without a lookup, or of too many rows."""
        lookup = self.tables[-1].lookups.get(role.attribute)
        if lookup is None or lookup.groups.size > MOST_PUBLIC:
            return None
        order = np.argsort(lookup.groups, kind="stable")
        sizes = np.bincount(lookup.groups)
        starts, group = np.cumsum(sizes) - sizes, f"CAST({self._measured(role.attribute)} AS BIGINT) + 1"
        size, start = (f"({array_of(map(str, values), 'BIGINT')})[{group}]" for values in (sizes, starts))
        chosen = number_below(size, self._bits(role.attribute))
        keys = array_of((literal(str(lookup.keys[role.key][row])) for row in order), "VARCHAR")
        key = f"({keys})[{start} + {chosen} + 1]"
        return Fragment(f"CASE WHEN {size} > 0 THEN CAST({key} AS {written_type(role.type)}) END")

    def _random(self, role: RandomKey, units: Fragment) -> Fragment | None:
        """The key of a root row, or of an earlier row of the same table. None where that could be a row that
        conditions exclude, and of other tables, whose number of rows the query does not know."""
        depth = self._last if role.earlier else 0
        shape, meant = self.tables[depth].shape, self._meant(depth, role.key)
        if self._name(depth) != role.table or shape.never or meant is None:
            return None
        key, number = meant
        if number != Number(depth, "row"):
            return None
        rows = ident("row") if role.earlier else units
        least = 0 if role.earlier and role.name in shape.not_null else 1  # a first row may name itself
        value = _key(key, role, Fragment(number_below(rows, self._bits(role.attribute))))
        there = self._measured(role.attribute)
        return Fragment(f"CASE WHEN {there} IS NOT NULL AND {rows} >= {least} THEN {value} END")


def _key(key: Fresh, role: Role, number: Fragment) -> Fragment:
    """The value of a key for a number, in the type of the column that repeats it."""
    value = key.of(number, MOST_NUMBERED, 0)
    return value if key.type == role.type else Fragment(f"CAST({value} AS {written_type(role.type)})")


def _seed_of(table: str, seed: Fragment) -> Fragment:
    """The seed of one table of a tree: rows of the same number in two tables share no random bits."""
    return seed if not table else Fragment(f"({string_literal(f'{table}|')} || {seed})")


def _table_network(network: Network) -> Network:
    """A network without evidence that no node follows from."""
    used = {parent for node in network.nodes for parent in node.parents}
    return replace(network, evidence={v: bins for v, bins in network.evidence.items() if v in used})


def _evidence_names(network: Network, families: Families) -> list[str]:
    """The attributes above that rows of a table follow from; the size of a family is one."""
    used = _table_network(network).evidence
    names = [attribute.name for attribute in families.above]
    return [name for name in names if name == families.size or families.domain.index(name) in used]
