"""What is known of the counts of columns, pairs and larger tables, by errors of estimates or by noise."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Literal

from dpsyn_sql.planning.queries import NoisyMarginal
from dpsyn_sql.report.public.exactness import Exactness, count_to_report, of_all_counts
from dpsyn_sql.report.public.figures import ColumnFigures
from dpsyn_sql.report.public.pairs import Pairs


@dataclass(frozen=True, slots=True)
class Accuracy:
    """A line of the page. ``of``: whether its error is that of estimates or of noisy counts. ``together``:
    whether the columns were counted together. ``grouped``: whether it is over wider groups of values than the
    columns have codes."""

    attrs: tuple[str, ...]
    of: Literal["estimate", "noise"]
    together: bool
    exactness: Exactness
    grouped: bool = False

    @property
    def pair(self) -> bool:
        """Whether it is about two columns."""
        return len(self.attrs) == 2

    def count_of(self, total: float) -> float:
        """The count that it speaks of, in a table of so many rows."""
        return count_to_report(total) if math.isnan(self.exactness.count) else self.exactness.count

    def away_from(self, total: float) -> float:
        """How far this is from the usual one, by ratio."""
        return abs(math.log((self.count_of(total) + 1) / (count_to_report(total) + 1)))


def measured_tables(measured: Sequence[NoisyMarginal], total: float) -> list[Accuracy]:
    """Of the noisy counts of every measured table once, those of few columns and little noise first;
    ``total``: noisy number of rows."""
    best: dict[tuple[frozenset[str], int], NoisyMarginal] = {}
    for table in measured:
        key = (frozenset(table.attrs), table.values.size)
        if table.attrs and (key not in best or table.sigma < best[key].sigma):
            best[key] = table
    lines = [
        Accuracy(one.attrs, "noise", True, of_all_counts(one.sigma, total), any(map(bool, one.maps)))
        for one in best.values()
    ]
    return sorted(lines, key=lambda one: (len(one.attrs), one.exactness.within, one.attrs))


def accuracy_lines(
    columns: Sequence[ColumnFigures], pairs: Pairs, tables: Sequence[Accuracy]
) -> list[Accuracy]:
    """What is known of the counts of every column, of pairs by falling strength, and of larger tables."""
    larger = (one for one in tables if len(one.attrs) > 2)
    return [*_of_columns(columns, tables), *_of_pairs(pairs, tables), *larger]


def _of_columns(columns: Sequence[ColumnFigures], tables: Sequence[Accuracy]) -> Iterator[Accuracy]:
    measured = {one.attrs: one for one in reversed(tables)}
    for one in columns:
        attrs = (one.attribute.name,)
        if one.error_of != "none":
            yield Accuracy(attrs, one.error_of, True, of_all_counts(one.typical_error, one.total))
        elif attrs in measured:
            yield measured[attrs]


def _of_pairs(pairs: Pairs, tables: Sequence[Accuracy]) -> Iterator[Accuracy]:
    measured = {frozenset(one.attrs): one for one in reversed(tables) if one.pair}
    for pair in pairs.strongest:
        attrs = (pair.first, pair.second)
        found = measured.pop(frozenset(attrs), None)
        if pair.exactness is not None:
            yield Accuracy(attrs, "estimate", pair.kind == "measured", pair.exactness, pair.grouped)
        elif found is not None:
            yield replace(found, attrs=attrs)
    yield from measured.values()


def smallest_group(lines: Sequence[Accuracy]) -> float:
    """The smallest group that can be trusted in a typical one of some tables; NaN without tables."""
    return median(one.exactness.smallest for one in lines) if lines else math.nan
