"""The query behind ``dpsyn_sample`` of a table of a tree: the parameter of rows is the number of root units.

The query of a table holds those of the tables above it. They draw the same rows for every table, so keys of
one table's rows are those that the rows of another name: numbers of rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from dpsyn_sql.domain.attributes import Domain
from dpsyn_sql.domain.shape import Shape
from dpsyn_sql.fit.network import Network
from dpsyn_sql.planning.families import Families
from dpsyn_sql.rows.decode.leaves import measured_columns, with_leaves
from dpsyn_sql.rows.decode.output import impossible_query
from dpsyn_sql.rows.decode.values import tick_expression
from dpsyn_sql.rows.sample.sql_text import Script, Tables
from dpsyn_sql.rows.sample.table_text import (
    Passed,
    TableScript,
    evidence_names,
    seed_of,
    table_network,
)
from dpsyn_sql.sqltext.fragments import Fragment
from dpsyn_sql.sqltext.render import render


@dataclass(frozen=True, slots=True)
class DrawnTable:
    """A table as SQL draws it. ``release``: its number in the tables of models."""

    shape: Shape
    network: Network
    families: Families
    release: int


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

    tables: Sequence[DrawnTable]
    seed: Fragment
    numbers: frozenset[Number] = frozenset()

    @cached_property
    def _depths(self) -> dict[str, int]:
        return {table.families.table: depth for depth, table in enumerate(self.tables)}

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
        found, below = list[set[Item]](), set[Item](self.numbers)
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
        script, tables = Script(root.network, self.bits_seed(0)), self._stored(root)
        return script.low_variance(units, tables) if low_variance else script.iid(units, tables)

    @staticmethod
    def _stored(table: DrawnTable) -> Tables:
        return Tables(Fragment("dpsyn.shares"), Fragment(f"release = {table.release}"))

    def _below(self, parents: Fragment, depth: int) -> Fragment:
        table, seed = self.tables[depth], self.bits_seed(depth)
        families = written_families(table)
        below = self._needed[depth + 1] if depth + 1 < len(self.tables) else self.numbers
        passed = [
            Passed(self.column(item, depth - 1), self.column(item, depth), self._width(item))
            for item in sorted(below, key=str)
            if item.depth < depth and item != Number(depth - 1, "row")
        ]
        known = {name: self.column(code, depth - 1) for name, code in self._evidence(depth).items()}
        script = TableScript(table_network(table.network), seed, families, known, tuple(passed))
        return script.below(parents, self._stored(table), fresh_tick(table.shape, families, seed))

    def _width(self, item: Item) -> int:
        if isinstance(item, Number):
            return Passed.bits
        size = self.tables[item.depth].families.domain.attributes[item.place].size
        return (size - 1).bit_length()

    def _possible(self, rows: Fragment, depth: int) -> Fragment:
        """Rows of a table that its conditions do not exclude."""
        shape = self.tables[depth].shape
        if not shape.never:
            return rows
        bits = row_bits(self.bits_seed(depth))
        number, impossible = impossible_query(shape, Fragment("everything"), 0, bits)
        return render("sample/possible", rows=rows, impossible=impossible)
