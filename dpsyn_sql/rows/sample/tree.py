"""Rows of the tables of a tree: whose row each is, what the rows below it are drawn given, and the hidden
attributes that drawn rows decide. Rows of persons lie below a root of persons without columns.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dpsyn_sql.attributes.attribute import Domain, edge_ticks
from dpsyn_sql.errors import InternalError
from dpsyn_sql.fit.arrays import Codes, FloatArray, IntArray
from dpsyn_sql.fit.given import Given
from dpsyn_sql.fit.model import Model
from dpsyn_sql.planning.families import Families
from dpsyn_sql.rows.sample.batches import generator_of
from dpsyn_sql.rows.sample.moments import People
from dpsyn_sql.rows.sample.walk import FamilySampler, places

_PERSONS = Families(Domain(()), 0, frozenset(), "")
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
    def root(cls, families: Families, codes: Codes) -> TableRows:
        """Rows of the units: codes (n, drawn)."""
        return cls(families, codes, np.zeros(len(codes), np.int64), np.arange(len(codes)))

    @classmethod
    def persons(cls, number: int) -> TableRows:
        """A root of so many persons, without columns."""
        return cls.root(_PERSONS, np.zeros((number, 0), np.uint8))

    @classmethod
    def below(cls, above: TableRows, families: Families, people: People, codes: Codes) -> TableRows:
        """Rows with their codes (n, drawn), below those of ``above``: ``people``."""
        parent, _ = people.owners(np.arange(people.total))
        return cls(families, codes, parent, above.unit[parent], above)

    def without(self, families: IntArray) -> tuple[TableRows, IntArray]:
        """The rows that are in other families than these (by number), and their numbers here."""
        left = np.flatnonzero(~np.isin(self.parent, families))
        rows = replace(self, codes=self.codes[left], parent=self.parent[left], unit=self.unit[left])
        return rows, left

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


def drawn_rows(model: Model, families: Families, above: TableRows | None, units: int, seed: int) -> TableRows:
    """Rows of a table, drawn and not written: what questions about the tables below it depend on.

    ``above``: the rows of the parent, None for the root, of which there are ``units``. Deterministic in
    ``seed`` (not negative).
    """
    sampler = model.sampler()
    if above is None or not isinstance(sampler, FamilySampler):
        return TableRows.root(families, _joined(sampler.batches(units, seed), families))
    people = sampler.people(0, seed, above.given(families, seed))
    codes = _joined((batch.codes for batch in sampler.rows(people, seed)), families)
    return TableRows.below(above, families, people, codes)


def _joined(batches: Iterable[Codes], families: Families) -> Codes:
    return np.concatenate([np.zeros((0, families.drawn), np.uint8), *batches])


def with_hidden(families: Families, columns: Mapping[str, Codes], owners: IntArray) -> dict[str, Codes]:
    """The codes (n,) of attributes of rows by their names, also of the number of rows of a family, of the row
    before and of the place.

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
    return codes
