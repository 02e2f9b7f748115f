"""Rows of tables: what rows are below, whose row each is, what the rows below it are drawn given, the hidden
attributes that drawn rows decide, and rows read back for a comparison with the noisy answers.

Rows of persons lie below a root of persons without columns.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from dpsyn_sql.attributes.attribute import edge_ticks
from dpsyn_sql.errors import InternalError
from dpsyn_sql.fit.arrays import Codes, FloatArray, IntArray
from dpsyn_sql.fit.given import Given
from dpsyn_sql.planning.families import ALONE, PLACES, Families
from dpsyn_sql.rows.sample.systematic import Columns, generator_of
from dpsyn_sql.source.engine import Engine
from dpsyn_sql.sqltext.fragments import Fragment, ident, string_literal
from dpsyn_sql.sqltext.render import render

if TYPE_CHECKING:
    from dpsyn_sql.rows.sample.moments import Chain

_NUMBERS = 2**35
# Streams of numbers of rows, by the attribute that tells them; rows of ``rows/sample/walk.py`` are below.


def table_seed(seed: int, table: str) -> int:
    """The seed of a table of a release: no two tables of a tree take the same random numbers."""
    return int.from_bytes(hashlib.sha256(f"{seed} {table}".encode()).digest()[:8], "big")


@dataclass(frozen=True)
class People:
    """What rows are below: ``rows`` (int64, units), how many rows each unit has. ``columns``: of each
    variable of units (units,). ``moments``: of each variable of the
    moments (rows of all units,), ascending by code in a unit; empty if nothing orders rows.

    Of a table of a tree "units" are the rows of the parent, in their order, perhaps without rows; ``before``
    (int64, parents) is how many rows the unit of each has in families before, None where it has one family.
    ``kept``: of variables of rows the values (parents,) that their rows have, -1 where they are drawn.
    ``chain``: of their moments, None where these are sorted.
    """

    columns: Columns
    rows: IntArray
    moments: Columns = field(default_factory=dict)
    before: IntArray | None = None
    kept: Columns = field(default_factory=dict)
    chain: Chain | None = None

    @cached_property
    def starts(self) -> IntArray:
        """The number of each unit's first row, and that of all rows."""
        return np.concatenate([[0], np.cumsum(self.rows)]).astype(np.int64)

    @property
    def total(self) -> int:
        """Rows of all units."""
        return int(self.starts[-1])

    def owners(self, rows: IntArray) -> tuple[IntArray, IntArray]:
        """The unit of each of these rows, and their rank in it."""
        units = np.searchsorted(self.starts, rows, side="right") - 1
        return np.asarray(units), np.asarray(rows - self.starts[units])

    def in_unit(self, units: IntArray, ranks: IntArray) -> IntArray:
        """The rank in their unit of rows of these ranks in their families."""
        return ranks if self.before is None else np.asarray(self.before[units] + ranks)

    def firsts(self, rows: IntArray) -> IntArray:
        """Which (places) of these rows, ascending, are the first ones of their unit among them."""
        return np.asarray(np.unique(self.owners(rows)[0], return_index=True)[1])

    def until_end(self, rows: IntArray) -> IntArray:
        """These rows, each of another unit, and all that come after them in their units."""
        counts = self.starts[self.owners(rows)[0] + 1] - rows
        before = np.cumsum(counts) - counts - rows
        return np.asarray(np.arange(counts.sum()) - np.repeat(before, counts), dtype=np.int64)


@dataclass(frozen=True, slots=True)
class FamilyRows:
    """Rows below others, or of each unit the row before. ``codes`` (n, attributes that are drawn): -1 before
    a first row. ``ticks`` (int64, n) of the attribute that orders them; any where it is NULL, without one,
    and before a first row."""

    codes: Codes
    ticks: IntArray

    @classmethod
    def nothing(cls, units: int, drawn: int) -> FamilyRows:
        """Before the first row of each unit."""
        return cls(np.full((units, drawn), -1, np.int64), np.zeros(units, np.int64))

    def of(self, kept: IntArray) -> FamilyRows:
        """Of some of the units."""
        return FamilyRows(self.codes[kept], self.ticks[kept])


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
        return cls.root(ALONE, np.zeros((number, 0), np.uint8))

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


def places(rows: IntArray, ranks: IntArray) -> IntArray:
    """Codes of ``PLACES`` (n,) of rows of these ranks in units of so many rows."""
    only, first, middle, last = range(len(PLACES))
    codes = np.where(ranks == 0, first, np.where(ranks == rows - 1, last, middle))
    return np.where(rows == 1, only, codes)


# -- rows that are compared with the answers ------------------------------------------------------------

MOST_ROWS, _MOST_CODES = 1_000_000, 60_000_000
"""Rows that are compared at most; of wide tables so many codes."""

_CHOSEN = 2**42
# The stream of random numbers that chooses rows; those of rows are below.

_STEP = "comparing sampled rows with the answers"


@dataclass(frozen=True, slots=True)
class DrawnRows:
    """``columns``: codes (n,) by attribute. ``weights`` (float64, n): of each row, in units. ``row``: the
    units of one row, for the variance of the weight in a cell. ``evenly``: rows are laid out with low
    variance, not drawn one by one."""

    columns: Mapping[str, Codes]
    weights: FloatArray
    row: float = 1.0
    evenly: bool = False


def staged_codes(
    engine: Engine, staged: Fragment, names: Sequence[str], rows: int, seed: int, *, laid_out: bool
) -> DrawnRows:
    """Rows of a staged table whose rows are independent of each other.

    Args:
        engine: the session that writes.
        staged: quoted name of the table with the columns row, a0, a1, ...
        names: of the attributes, in their order.
        rows: how many are staged.
        seed: not negative; chooses rows of a table of more than are compared.
        laid_out: the rows have low variance, and are not independent.
    """
    part = min(1.0, _most(names) / max(rows, 1))
    columns = _fetched(engine, staged, names, None if part == 1 else _chosen(part, seed))
    number = len(next(iter(columns.values()))) if columns else 0
    return DrawnRows(columns, np.ones(number), evenly=laid_out and part == 1)


def _chosen(part: float, seed: int) -> Fragment:
    """Whether a row is one of those that are compared. Its number alone does not tell: conditions give rows
    that they change other numbers, and parts of a large table begin anew."""
    bits = f"hash(xor(CAST(s.{ident('row')} AS UBIGINT), hash({string_literal(f'compared|{seed}')}))) >> 32"
    return Fragment(f"{bits} < {math.ceil(part * 2**32)}")


def ordered_codes(engine: Engine, staged: Fragment, attributes: int) -> Codes:
    """Codes (n, attributes) of all staged rows, in the order of their numbers."""
    columns = _fetched(engine, staged, [str(position) for position in range(attributes)], ordered=True)
    return np.stack(list(columns.values()), axis=1)


def table_codes(rows: TableRows, seed: int, above: Mapping[str, Codes] | None = None) -> DrawnRows:
    """Rows that lie below others, with the attributes of these; ``above``: these attributes, by their names,
    where the rows above have them not. What rows keep of those above is their own: a row that has none
    above has its code too."""
    families = rows.families
    names = families.domain.names[: families.drawn]
    codes_of_rows = {name: np.asarray(rows.codes[:, position]) for position, name in enumerate(names)}
    columns = with_hidden(families, codes_of_rows, rows.parent)
    if above is not None:
        columns = {name: codes[rows.parent] for name, codes in above.items()} | columns
    else:
        columns |= {attribute.name: rows.column(attribute.name) for attribute in families.above}
    most, weights = _most(tuple(columns)), rows.weights
    if rows.total <= most:
        return DrawnRows(columns, weights, _row(weights), evenly=True)
    chosen = np.sort(generator_of(seed, _CHOSEN).choice(rows.total, most, replace=False))
    part = {name: codes[chosen] for name, codes in columns.items()}
    return DrawnRows(part, weights[chosen], float(weights.max()))


def _most(names: Sequence[str]) -> int:
    return min(MOST_ROWS, max(_MOST_CODES // max(len(names), 1), 1))


def _row(weights: FloatArray) -> float:
    return float(weights @ weights) / max(float(weights.sum()), 1e-9)


def _fetched(
    engine: Engine,
    staged: Fragment,
    names: Sequence[str],
    condition: Fragment | None = None,
    *,
    ordered: bool = False,
) -> dict[str, Codes]:
    """Codes of all rows, or of those that meet a condition, by attribute."""
    if not names:
        return {}
    columns = [Fragment(f"a{position}") for position in range(len(names))]
    query = render("write/drawn", staged=staged, condition=condition, columns=columns, ordered=ordered)
    fetched = engine.fetch(query, step=_STEP)
    return {name: np.asarray(fetched[column]) for name, column in zip(names, columns, strict=True)}
