"""The query behind ``dpsyn_sample`` of a table of a tree: the parameter of rows is the number of root units.

The query of a table holds those of the tables above it. They draw the same rows for every table, so keys of
one table's rows are those that the rows of another name: numbers of rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np

from dpsyn_sql.domain.shape import ForeignKey, Key, PartOfKey, PublicKey, RandomKey, Role, Shape, UnitId
from dpsyn_sql.fit.network import Network
from dpsyn_sql.planning.families import Families
from dpsyn_sql.rows.decode.leaves import measured_columns
from dpsyn_sql.rows.decode.output import impossible_query, surrogate, written_type
from dpsyn_sql.rows.sample.sql_text import WORD, Script, Tables
from dpsyn_sql.rows.sample.table_text import (
    Passed,
    TableScript,
    evidence_names,
    seed_of,
    table_network,
)
from dpsyn_sql.rows.write.drawn_values import MOST_NUMBERED, fresh_tick, row_bits, valued
from dpsyn_sql.rows.write.public_rows import GroupedRows
from dpsyn_sql.sqltext.fragments import Fragment, ident, literal, string_literal
from dpsyn_sql.sqltext.render import render

MOST_PUBLIC = 10_000
"""Rows of a public table that a macro lists: they are part of its text."""


@dataclass(frozen=True, slots=True)
class TableOfTree:
    """A table on the way from the root. ``stored``: where its distributions are. ``lookups``: by attribute,
    the public rows that it stands for."""

    shape: Shape
    network: Network
    families: Families
    stored: Tables
    lookups: Mapping[str, GroupedRows] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Code:
    """An attribute of a table on the way, by its depth (the root has 0) and place in the domain."""

    depth: int
    place: int


@dataclass(frozen=True, slots=True)
class Number:
    """The number of a row on the way: ``row`` in its table, or ``rank`` in its family."""

    depth: int
    kind: Literal["row", "rank"]


Item = Code | Number


@dataclass(frozen=True)
class TableWay:
    """The tables from the root to the one whose rows are wanted. ``seed``: an expression."""

    tables: Sequence[TableOfTree]
    seed: Fragment

    @cached_property
    def _depths(self) -> dict[str, int]:
        return {table.families.table: depth for depth, table in enumerate(self.tables)}

    @cached_property
    def _named(self) -> dict[str, tuple[Role, Number]]:
        """Of the columns that name rows on the way: the key that is meant, and the number it comes from."""
        last = len(self.tables) - 1
        found = {role.name: self._meant(last, role.name) for role in self.tables[last].shape.roles}
        return {name: meant for name, meant in found.items() if meant is not None}

    @property
    def _numbers(self) -> set[Item]:
        return {number for _, number in self._named.values()}

    def _meant(self, depth: int, column: str) -> tuple[Role, Number] | None:
        """The key that a column of a table repeats, or is, and its number; None if it names no row on the
        way."""
        roles = {role.name: role for role in self.tables[depth].shape.roles}
        role = roles.get(column)
        if isinstance(role, Key | UnitId):
            return role, Number(depth, "row")
        if isinstance(role, PartOfKey):
            return role, Number(depth, "rank")
        if isinstance(role, ForeignKey) and depth > 0:
            return self._meant(depth - 1, role.key)
        return None

    def bits_seed(self, depth: int) -> Fragment:
        """The seed of a table."""
        return seed_of(self.tables[depth].families.table, self.seed)

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
        found, below = list[set[Item]](), set(self._numbers)
        for depth in reversed(range(len(self.tables))):
            own = self._evidence(depth).values()
            below = {item for item in (*below, *own) if item.depth < depth}
            found.insert(0, below)
        return found

    def _evidence(self, depth: int) -> dict[str, Code]:
        """The attributes above that the rows of a table follow from, by their names in its domain."""
        network, families = self.tables[depth].network, self.tables[depth].families
        names, found = set(evidence_names(network, families)), dict[str, Code]()
        for one in families.above:
            if one.name in names:
                up = self._depths[one.table]
                found[one.name] = Code(up, self.tables[up].families.domain.index(one.attribute))
        return found

    def rows(self, units: Fragment, *, low_variance: bool) -> Fragment:
        """The query of the wanted rows: row, parent, rank, codes, and t if they are ordered."""
        query = self._root(units, low_variance=low_variance)
        for depth in range(1, len(self.tables)):
            query = self._below(self._possible(query, depth - 1), depth)
        return query

    def _root(self, units: Fragment, *, low_variance: bool) -> Fragment:
        root = self.tables[0]
        script, tables = Script(root.network, self.bits_seed(0)), root.stored
        return script.low_variance(units, tables) if low_variance else script.iid(units, tables)

    def _below(self, parents: Fragment, depth: int) -> Fragment:
        table, seed = self.tables[depth], self.bits_seed(depth)
        families = table.families.with_attributes(table.shape.domain)
        below = self._numbers if depth + 1 == len(self.tables) else self._needed[depth + 1]
        passed = [
            Passed(self.column(item, depth - 1), self.column(item, depth), self._width(item))
            for item in sorted(below, key=str)
            if item.depth < depth and item != Number(depth - 1, "row")
        ]
        known = {name: self.column(code, depth - 1) for name, code in self._evidence(depth).items()}
        script = TableScript(table_network(table.network), seed, families, known, tuple(passed))
        return script.below(parents, table.stored, fresh_tick(table.shape, families, seed))

    def _width(self, item: Item) -> int:
        if isinstance(item, Number):
            return WORD
        size = self.tables[item.depth].families.domain.attributes[item.place].size
        return (size - 1).bit_length()

    def _possible(self, rows: Fragment, depth: int) -> Fragment:
        """Rows of a table that its conditions do not exclude."""
        shape = self.tables[depth].shape
        if not shape.never:
            return rows
        bits = row_bits(self.bits_seed(depth))
        _, impossible = impossible_query(shape, Fragment("everything"), ident("row"), 0, bits)
        return render("sample/possible", rows=rows, impossible=impossible)

    def keys(self, units: Fragment) -> dict[str, Fragment]:
        """Of the columns that are keys their values in the last table, over its rows."""
        last, made = len(self.tables) - 1, dict[str, Fragment]()
        for role in self.tables[last].shape.roles:
            if role.name in self._named:
                key, number = self._named[role.name]
                made[role.name] = _key(key, role, ident(self.column(number, last)))
            elif isinstance(role, RandomKey) and (drawn := self._random(role, units)) is not None:
                made[role.name] = drawn
            elif isinstance(role, PublicKey) and (public := self._public(role)) is not None:
                made[role.name] = public
        return made

    def _bits(self, attribute: str) -> str:
        """64 random bits of a row of the last table for the row that an attribute of it names."""
        purpose, seed = string_literal(f"{attribute}|named|"), self.bits_seed(len(self.tables) - 1)
        return f"hash(xor(CAST({ident('row')} AS UBIGINT), hash({purpose} || {seed})))"

    def _measured(self, attribute: str) -> Fragment:
        """The value of an attribute of the last table."""
        shape, seed = self.tables[-1].shape, self.bits_seed(len(self.tables) - 1)
        return measured_columns(shape.domain, row_bits(seed), shape.ticks)[attribute]

    def _public(self, role: PublicKey) -> Fragment | None:
        """The key of a public row of the group that was drawn. None without a lookup, or of too many rows."""
        lookup = self.tables[-1].lookups.get(role.attribute)
        if lookup is None or lookup.groups.size > MOST_PUBLIC:
            return None
        order = np.argsort(lookup.groups, kind="stable")
        sizes = np.bincount(lookup.groups)
        starts, group = np.cumsum(sizes) - sizes, f"CAST({self._measured(role.attribute)} AS BIGINT) + 1"
        size, start = (f"({_listed(map(str, one), 'BIGINT')})[{group}]" for one in (sizes, starts))
        place = _below(self._bits(role.attribute), size)
        keys = _listed((literal(str(lookup.keys[role.key][row])) for row in order), "VARCHAR")
        key = f"({keys})[{start} + {place} + 1]"
        return Fragment(f"CASE WHEN {size} > 0 THEN CAST({key} AS {written_type(role.type)}) END")

    def _random(self, role: RandomKey, units: Fragment) -> Fragment | None:
        """The key of a root row, or of an earlier row of the same table. None where that could be a row that
        conditions exclude, and of other tables, whose number of rows the query does not know."""
        last = len(self.tables) - 1
        depth, own = last if role.earlier else 0, self.tables[last]
        table, meant = self.tables[depth], self._meant(depth, role.key)
        if table.families.table != role.table or table.shape.never or meant is None:
            return None
        key, number = meant
        if number != Number(depth, "row"):
            return None
        rows = ident("row") if role.earlier else units
        least = 0 if role.earlier and role.name in own.shape.not_null else 1  # a first row may name itself
        value = _key(key, role, Fragment(_below(self._bits(role.attribute), rows)))
        there = self._measured(role.attribute)
        return Fragment(f"CASE WHEN {there} IS NOT NULL AND {rows} >= {least} THEN {value} END")


def _below(bits: str, count: str) -> str:
    """A number below ``count``, a BIGINT, of 64 random bits; 0 if that is 0."""
    return f"(CAST((CAST({bits} AS UHUGEINT) * CAST({count} AS UHUGEINT)) >> 64 AS BIGINT))"


def _listed(values: Iterable[str], kind: str) -> str:
    return f"CAST([{', '.join(values)}] AS {kind}[])"


def _key(key: Role, role: Role, number: Fragment) -> Fragment:
    """The value of a key for a number, in the type of the column that repeats it."""
    value = surrogate(key.type, number, MOST_NUMBERED, f"key|{key.name}", 0)
    return value if key.type == role.type else Fragment(f"CAST({value} AS {written_type(role.type)})")


def table_queries(
    tables: Sequence[TableOfTree], units: Fragment, seed: Fragment
) -> tuple[Fragment, Fragment]:
    """The queries of the rows of the last of the tables, given from the root on: where rows of the root have
    low variance, and where they are independent. ``units``: how many these are, an expression."""
    way, shape = TableWay(tables, seed), tables[-1].shape
    keys, bits = way.keys(units), row_bits(way.bits_seed(len(tables) - 1))
    low_variance, independent = (
        valued(shape, way.rows(units, low_variance=low), bits, keys) for low in (True, False)
    )
    return low_variance, independent
