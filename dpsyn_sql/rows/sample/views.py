"""Rows that meet views, in one of four ways.

- ``exchange``: rows of a graphical model of the strongest views, then exchanges of values (``moves.py``);
- ``gum``: rows of the one-way tables, then the gradual update of PrivSyn (``moves.py``);
- ``mcf``: rows of the one-way tables, then the fewest moves for each view (``moves.py``);
- ``sts``: rows from topologically sorted views.

Rows come in batches, each updated by itself, so that work is linear in rows.

*Topologically sorted views* (STS of DPSyn, section 3.3), as published, for comparison. The first view is
random. Then comes, again and again, one of those with the fewest new attributes, until all attributes are
there. Records are made one by one: in each view the record takes, among the cells that agree with what it has
already, one with the largest count, and the count falls by one; ties go at random. This makes dependence that
no view has: the same records come first in every view and take the commonest values of all of them. On Adult
at epsilon 1 pairs are 0.088 from the real ones, those of independent columns 0.079 (docs/methods.md).

A record's choice depends only on how many records with the same known values came before it. So all records
take one view at once: in each group of records with the same known values, the r-th record gets the r-th cell
of the sequence that takes the largest count left each time. A cell of count c is in that sequence at the
levels c, c - 1, ..., so the sequence is all levels above 0, sorted downwards.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from dpsyn_sql.fit.arrays import Codes, FloatArray, IntArray
from dpsyn_sql.fit.belief import Beliefs, marginals
from dpsyn_sql.fit.graph import Scope, largest
from dpsyn_sql.planning.limits import NO_DEADLINE, Deadline
from dpsyn_sql.rows.sample.graphical import drawn_bins, drawn_codes
from dpsyn_sql.rows.sample.moves import FLOW_ROUNDS, GRADUAL_ROUNDS, balanced, moved_least, updated_gradually
from dpsyn_sql.rows.sample.systematic import Batches, batch_sizes, by_themselves, cells, codes_of, whole

Synthesis = Literal["exchange", "gum", "mcf", "sts"]
SYNTHESES: tuple[Synthesis, ...] = get_args(Synthesis)

PASSES: Mapping[str, int] = {"exchange": 6, "gum": GRADUAL_ROUNDS, "mcf": FLOW_ROUNDS}
"""Passes over all rows and views, where they fit ``MOST_WORK``."""

FURTHER, PAYS = 60, 1e-3
"""Further passes of exchanges, at most, while each brings the rows nearer to the views by at least so much
(mean total variation distance). Where columns depend strongly, six passes go only a third of the way."""

MOST_WORK = 3e9
"""The most rows x attributes of all views x passes: two to three minutes of processor time. A million rows
of 14 attributes in pairs get all passes of exchanges, a million of 100 in 350 views of 8 get one."""

_PER_SECOND: Mapping[str, float] = {"exchange": 2e7, "gum": 4e7, "mcf": 1e8}

_DRAWN: Mapping[str, str] = {
    "exchange": "with low variance, then moved towards the views by exchanges of values",
    "gum": "from one-way tables, then moved towards the views by gradual update",
    "mcf": "from one-way tables, then moved towards the views by min-cost flow",
    "sts": "from topologically sorted views",
}


@dataclass(frozen=True, slots=True)
class ViewRows:
    """Rows that meet consistent views, as well as ``deadline`` leaves the time.

    The variables of ``beliefs`` and ``views`` (by ascending scope, not negative) are the attributes in their
    working bins; ``bins`` (int64) and ``within`` (float64) have an entry per code: its bin, and its
    probability given the bin.
    """

    beliefs: Beliefs
    views: Mapping[Scope, FloatArray]
    bins: tuple[IntArray, ...]
    within: tuple[FloatArray, ...]
    synthesis: Synthesis = "exchange"
    deadline: Deadline = NO_DEADLINE

    def sampler(self) -> Batches:
        """What draws them."""
        return by_themselves(self._prepared, _DRAWN[self.synthesis])

    @property
    def _largest(self) -> dict[Scope, FloatArray]:
        """The views that no other view holds: the others say the same."""
        return {scope: self.views[scope] for scope in largest(self.views) if scope}

    def _prepared(self, rows: int) -> Callable[[int, np.random.Generator], Codes]:
        views, passes = self._largest, self._passes(rows)
        further = self._further(rows, passes)

        def batch(size: int, generator: np.random.Generator) -> Codes:
            drawn = self._drawn(size, generator, views, passes, further)
            return drawn_codes(self.bins, self.within, drawn, generator)

        return batch

    def _passes(self, rows: int) -> float:
        """Passes over the rows that fit the limits.

        Exchanges can visit a part of the rows, so this may be below 1; gum and mcf always get one pass.
        """
        if self.synthesis == "sts":
            return 1.0
        work = self._work(rows)
        passes = min(float(PASSES[self.synthesis]), MOST_WORK / work)
        seconds = passes * work / _PER_SECOND[self.synthesis]
        if self.deadline.forbids(seconds, "the rows were moved towards the views in fewer passes"):
            passes *= max(self.deadline.left, 0.0) / seconds
        return passes

    def _work(self, rows: int) -> int:
        """Of a pass."""
        return max(rows, 1) * max(sum(len(scope) for scope in self._largest), 1)

    def _further(self, rows: int, passes: float) -> int:
        """Passes of exchanges that fit the limits after the usual ones."""
        if self.synthesis != "exchange" or passes < PASSES["exchange"]:
            return 0
        work = self._work(rows)
        most = min(MOST_WORK / work, self.deadline.left * _PER_SECOND["exchange"] / work)
        return max(0, min(FURTHER, int(most - passes)))

    def _drawn(
        self,
        rows: int,
        generator: np.random.Generator,
        views: Mapping[Scope, FloatArray],
        passes: float,
        further: int,
    ) -> Mapping[int, Codes]:
        """Columns of all attributes over working bins."""
        sizes = self.beliefs.tree.sizes
        if self.synthesis == "sts":
            return self._sorted(rows, generator, views)
        if self.synthesis == "exchange":
            start = _columns(drawn_bins(self.beliefs, rows, generator))
            expected = {scope: rows * _shares(table) for scope, table in views.items()}
            return dict(enumerate(_exchanged(start, sizes, expected, generator, passes, further)))
        wanted = {scope: whole(table, rows, generator) for scope, table in views.items()}
        start = _columns(self._independent(rows, generator))
        move = updated_gradually if self.synthesis == "gum" else moved_least
        return dict(enumerate(move(start, sizes, wanted, generator, max(1, int(passes)))))

    def _sorted(
        self, rows: int, generator: np.random.Generator, views: Mapping[Scope, FloatArray]
    ) -> Mapping[int, Codes]:
        """Parts of the rows, each from views in an order of its own; attributes of no view by themselves."""
        sizes, columns = self.beliefs.tree.sizes, self._independent(rows, generator)
        ends = np.cumsum(batch_sizes(rows, -(-rows // PARTS)))
        parts = np.split(generator.permutation(rows), ends[:-1])
        for part in parts:
            order = topologically_sorted(list(views), generator)
            for variable, own in sorted_rows(sizes, views, part.size, order, generator).items():
                columns[variable][part] = own
        return columns

    def _independent(self, rows: int, generator: np.random.Generator) -> dict[int, Codes]:
        """Columns of independent attributes."""
        wanted = marginals(self.beliefs, [(variable,) for variable in range(len(self.bins))])
        return {
            variable: generator.permutation(np.repeat(np.arange(table.size), whole(table, rows, generator)))
            for (variable,), table in wanted.items()
        }


def _exchanged(
    columns: list[Codes],
    sizes: Sequence[int],
    expected: Mapping[Scope, FloatArray],
    generator: np.random.Generator,
    passes: float,
    further: int,
) -> list[Codes]:
    """Columns after ``passes`` of exchanges, and up to so many ``further`` ones while they pay."""
    times = max(1, math.ceil(passes))
    share = passes / times
    if not further:
        return balanced(columns, sizes, expected, generator, times, share)
    columns = balanced(columns, sizes, expected, generator, times - 1, share)
    apart = misfit(columns, sizes, expected)
    for _ in range(1 + further):
        before, columns = apart, balanced(columns, sizes, expected, generator, 1, share)
        apart = misfit(columns, sizes, expected)
        if before - apart < PAYS:
            break
    return columns


def misfit(columns: Sequence[Codes], sizes: Sequence[int], expected: Mapping[Scope, FloatArray]) -> float:
    """Mean total variation distance of the rows from their views; 0 without views or rows."""
    rows = columns[0].size if columns else 0
    found = [
        float(np.abs(np.bincount(cells(columns, scope, sizes), minlength=table.size) - table.ravel()).sum())
        for scope, table in expected.items()
    ]
    return sum(found) / (2 * len(found) * rows) if found and rows else 0.0


def _columns(drawn: Mapping[int, Codes]) -> list[Codes]:
    """By variable, in half the memory."""
    return [drawn[variable].astype(np.int32) for variable in range(len(drawn))]


def _shares(table: FloatArray) -> FloatArray:
    """Probabilities; uniform for a table of zeros."""
    total = float(table.sum())
    return table / total if total > 0 else np.full(table.shape, 1 / table.size)


PARTS = 8
"""Parts of the rows, each with a first view of its own, as the impact of the first view is random."""

_WHOLE = 1e-6
# Counts so near to a whole number are that number: sums of tables have rounding errors.


def topologically_sorted(scopes: Sequence[Scope], generator: np.random.Generator) -> list[Scope]:
    """A random first view, then one of those with the fewest new attributes, without those that have none."""
    left, order, known = list(scopes), list[Scope](), set[int]()
    while left:
        new = [len(set(scope) - known) for scope in left] if known else [1] * len(left)
        fewest = [place for place, number in enumerate(new) if number == min(new)]
        scope = left[fewest[int(generator.integers(len(fewest)))]]
        order.append(scope)
        known |= set(scope)
        left = [other for other in left if not set(other) <= known]
    return order


def sorted_rows(
    sizes: Sequence[int],
    views: Mapping[Scope, FloatArray],
    rows: int,
    order: Sequence[Scope],
    generator: np.random.Generator,
) -> dict[int, Codes]:
    """Columns of the variables of ``order``, in the order in which the records are made.

    Args:
        sizes: codes of each variable.
        views: tables by ascending scope, not negative. In each group their counts are scaled to its records,
            so that they are used up with the last of them (tables of whole counts that agree: by 1).
        rows: records.
        order: of the views, each with new variables.
        generator: of ties.
    """
    columns: dict[int, Codes] = {}
    for scope in order:
        known = tuple(variable for variable in scope if variable in columns)
        new = tuple(variable for variable in scope if variable not in columns)
        axes = [scope.index(variable) for variable in (*known, *new)]
        table = views[scope].transpose(axes).reshape(math.prod(sizes[v] for v in known), -1)
        groups = cells(columns, known, sizes) if known else np.zeros(rows, np.int64)
        columns |= codes_of(largest_first(groups, table, generator), new, sizes)
    return columns


def largest_first(groups: Codes, table: FloatArray, generator: np.random.Generator) -> IntArray:
    """One outcome per row: the largest count left of its group, which then falls by one.

    Args:
        groups: (n,) row of ``table`` for each record, in the order of the records.
        table: (g, k) counts, not negative; a row of zeros counts as uniform.
        generator: of ties.
    """
    size = np.bincount(groups, minlength=len(table))
    occupied = np.flatnonzero(size)
    counts = table[occupied]
    counts = np.where(counts.any(axis=1, keepdims=True), counts, 1.0)
    counts = counts * (size[occupied] / counts.sum(axis=1))[:, None]
    near = np.rint(counts)
    counts = np.where(np.abs(counts - near) < _WHOLE, near, counts).ravel()
    levels = np.ceil(counts).astype(np.int64)
    lines = np.repeat(np.arange(counts.size), levels)
    taken = np.arange(lines.size) - np.repeat(np.cumsum(levels) - levels, levels)
    group = lines // table.shape[1]
    sequence = np.lexsort((generator.random(lines.size), taken - counts[lines], group))
    length = np.bincount(group, minlength=occupied.size)
    kept = np.arange(lines.size) - np.repeat(np.cumsum(length) - length, length)
    sequence = sequence[kept < np.repeat(size[occupied], length)]
    found = np.empty(groups.size, np.int64)
    found[np.argsort(groups, kind="stable")] = lines[sequence] % table.shape[1]
    return found
