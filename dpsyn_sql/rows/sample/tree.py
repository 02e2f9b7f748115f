"""Rows of the tables of a tree: whose row each is, what the rows below it are drawn given, and the hidden
attributes that drawn rows decide.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dpsyn_sql.domain.attributes import edge_ticks
from dpsyn_sql.errors import InternalError
from dpsyn_sql.fit.arrays import Codes, FloatArray, IntArray
from dpsyn_sql.fit.given import Given
from dpsyn_sql.planning.families import Families
from dpsyn_sql.rows.sample.families import FamilySampler, places
from dpsyn_sql.rows.sample.moments import People
from dpsyn_sql.rows.sample.quotas import generator_of

_NUMBERS = 2**35
# Streams of numbers of rows, by the attribute that tells them; rows of ``rows/sample/families.py`` are below.


def table_seed(seed: int, table: str) -> int:
    """The seed of a table of a release: no two tables of a tree take the same random numbers."""
    return int.from_bytes(hashlib.sha256(f"{seed} {table}".encode()).digest()[:8], "big")


@dataclass(frozen=True, eq=False)
class TableRows:
    """Rows of a table of a tree, by row number: rows of one parent lie together, parents in their order.

    Args:
        families: of the table.
        codes: (n, families.drawn), unsigned: the attributes of the table, then those of the tables below.
        parent: int64 (n,), the number of the parent's row; ascending. Of the root all 0.
        unit: int64 (n,), the number of the unit's row in the root; ascending.
        above: the rows of the parent table, None for the root.
    """

    families: Families
    codes: Codes
    parent: IntArray
    unit: IntArray
    above: TableRows | None = None

    @classmethod
    def of(cls, families: Families, people: People, codes: Codes, above: TableRows | None) -> TableRows:
        """Rows with their codes (n, drawn): ``people`` are those of ``above``, or of the root itself."""
        parent, _ = people.owners(np.arange(people.total))
        if above is None:
            return cls(families, codes, np.zeros_like(parent), np.arange(parent.size))
        return cls(families, codes, parent, above.unit[parent], above)

    def without(self, families: IntArray) -> tuple[TableRows, IntArray]:
        """The rows that are in other families than these (by number), and their numbers here."""
        owners = np.arange(self.total) if self.above is None else self.parent
        left = np.flatnonzero(~np.isin(owners, families))
        unit = np.arange(left.size) if self.above is None else self.unit[left]
        return replace(self, codes=self.codes[left], parent=self.parent[left], unit=unit), left

    @property
    def total(self) -> int:
        """How many rows."""
        return len(self.codes)

    def column(self, name: str) -> Codes:
        """The codes (n,) of an attribute of the table, of one for the tables below, or of one above.

        Raises:
            InternalError: it is drawn with no row, such as what is known of the row before.
        """
        position = self.families.domain.index(name)
        if position < self.families.drawn:
            return np.asarray(self.codes[:, position])
        source = next((above for above in self.families.above if above.name == name), None)
        if source is None or self.above is None:
            raise InternalError("rows of a table have no codes of an attribute of the row before")
        return self.above.named(source.table, source.attribute)[self.parent]

    def named(self, table: str, attribute: str) -> Codes:
        """The codes (n,) of an attribute of these rows, or of the rows of a table above them."""
        if table == self.families.table:
            return self.column(attribute)
        if self.above is None:
            raise InternalError("an attribute is said to be above that no table above has")
        return self.above.named(table, attribute)[self.parent]

    @cached_property
    def weights(self) -> FloatArray:
        """float64 (n,): what each row weighs, in units: of the root 1, of others that of the parent's row
        divided by its rows."""
        if self.above is None:
            return np.ones(self.total)
        rows = np.bincount(self.parent, minlength=self.above.total)
        return np.asarray(self.above.weights[self.parent] / rows[self.parent])

    def given(self, child: Families, seed: int) -> Given:
        """These rows as the parents of the rows of a table below; deterministic in ``seed`` (not negative).

        The number of rows of each is drawn evenly among those of its code.
        """
        position = self.families.domain.index(child.number_above)
        edges = np.array(edge_ticks(self.families.domain.attributes[position]), np.int64)
        code = self.codes[:, position].astype(np.int64)
        rows = generator_of(seed, _NUMBERS + position).integers(edges[code], edges[code + 1])
        before = np.cumsum(rows) - rows
        _, firsts, owners = np.unique(self.unit, return_index=True, return_inverse=True)
        ranks = before - before[firsts][owners.ravel()] if rows.size else before
        columns = {
            attribute.name: self.named(attribute.table, attribute.attribute) for attribute in child.above
        }
        return Given(columns, rows, self.weights, np.asarray(ranks, dtype=np.int64))


def drawn_rows(
    sampler: FamilySampler, given: Given | None, above: TableRows | None, units: int, seed: int
) -> TableRows:
    """Rows of a table, drawn and not written: what questions about the tables below it depend on.

    ``given``: the rows of ``above``, None for the root, of which there are ``units``. Deterministic in
    ``seed`` (not negative).
    """
    people = sampler.people(units, seed, given)
    batches = [batch.codes for batch in sampler.rows(people, seed)]
    codes = np.concatenate(batches) if batches else np.zeros((0, sampler.families.drawn), np.uint8)
    return TableRows.of(sampler.families, people, codes, above)


def with_hidden(
    families: Families, columns: Mapping[str, Codes], owners: IntArray
) -> tuple[dict[str, Codes], FloatArray]:
    """The codes (n,) of attributes of rows by their names, also of the number of rows of a family, of the row
    before and of the place; and float64 (n,), one over the rows of each row's family.

    Classes of families and the time since the row before are not among them.

    Args:
        families: of the rows.
        columns: codes (n,) of the attributes that are drawn.
        owners: int64 (n,), the family of each row; rows of one lie together, and all of them are there.
    """
    codes = dict(columns)
    first = np.append(True, owners[1:] != owners[:-1])[: owners.size]
    starts = np.flatnonzero(first)
    sizes = np.diff(np.append(starts, owners.size))
    rows = np.repeat(sizes, sizes)
    if families.size and not families.table:
        edges = np.array(edge_ticks(families.domain[families.size]), np.int64)
        codes[families.size] = np.searchsorted(edges, rows, side="right") - 1
    for name, attribute in families.previous:
        before = np.roll(columns[attribute].astype(np.int64), 1)
        before[first] = families.domain[name].size - 1
        codes[name] = before
    if families.place:
        codes[families.place] = places(rows, np.arange(owners.size) - np.repeat(starts, sizes))
    return codes, 1 / np.maximum(rows, 1)
