"""Units or rows of a parent, whose rows are drawn, and what is known before a rank of them is."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from dpsyn_sql.fit.arrays import IntArray
from dpsyn_sql.rows.sample.chain import Chain
from dpsyn_sql.rows.sample.lines import Columns


@dataclass(frozen=True)
class People:
    """Units in ascending order of their number of rows: ``rows`` (int64, units). ``columns``: of each
    variable of units (units,). ``most``: rows that a unit has at most. ``moments``: of each variable of the
    moments (rows of all units,), ascending by code in a unit; empty if nothing orders rows.

    Of a table of a tree "units" are the rows of the parent, in their order, perhaps without rows; ``before``
    (int64, parents) is how many rows the unit of each has in families before, None where it has one family.
    ``kept``: of variables of rows the values (parents,) that their rows have, -1 where they are drawn.
    ``chain``: of their moments, None where these are sorted.
    """

    columns: Columns
    rows: IntArray
    most: int
    moments: Columns = field(default_factory=dict)
    before: IntArray | None = None
    kept: Columns = field(default_factory=dict)
    chain: Chain | None = None

    @property
    def sizes(self) -> IntArray:
        """int64 (most,): entry i is the number of units with i+1 rows."""
        return np.asarray(np.bincount(self.rows, minlength=self.most + 1)[1:])

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
class Before:
    """What is known of units before a rank is drawn. ``codes`` (units, drawn) of the row before, -1 before
    a first row. ``tick`` (units,) of the row before, any before a first row."""

    codes: IntArray
    tick: IntArray

    @classmethod
    def nothing(cls, units: int, drawn: int) -> Before:
        """Before the first rank."""
        return cls(np.full((units, drawn), -1, np.int64), np.zeros(units, np.int64))

    def of(self, kept: IntArray) -> Before:
        """Of some of the units."""
        return Before(self.codes[kept], self.tick[kept])
