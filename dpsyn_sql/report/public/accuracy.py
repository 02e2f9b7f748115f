"""What goes with what, how the release knows it, and how far its counts may be from the truth.

What is said of counts holds in 95 of 100 releases.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from statistics import median
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

from dpsyn_sql.fit.network import MarginalModel
from dpsyn_sql.fit.variances import TWO_SIDED, Variances
from dpsyn_sql.planning.queries import Map, NoisyMarginal
from dpsyn_sql.report.fitted import basis_of
from dpsyn_sql.report.losses import joined_columns, pair_losses
from dpsyn_sql.report.public.columns import ColumnFigures

FloatArray = NDArray[np.float64]

_NEAREST = 9
"""The error at a number of rows is the median of those of so many cells near it."""

_KEPT = 0.95


@dataclass(frozen=True, slots=True)
class Exactness:
    """Of the counts of one table. ``count``: rows of the counts that ``within`` is said of; NaN: of all.
    ``within``: rows that they are within of the truth in 95 of 100 releases. ``smallest``: the number of rows
    of which the 95 % interval is half, infinite if it is never; smaller groups say little."""

    count: float
    within: float
    smallest: float


def of_all_counts(error: float, total: float) -> Exactness:
    """Of counts with one standard error (rows) in a table of ``total`` rows: none is further off than that,
    and no group is larger. Below one row nothing is known of the total."""
    most, smallest = total if total >= 1 else math.inf, 2 * TWO_SIDED * error
    return Exactness(math.nan, min(TWO_SIDED * error, most), smallest if smallest <= most else math.inf)


def of_estimates(rows: FloatArray, errors: FloatArray, count: float) -> Exactness:
    """Of estimates whose errors grow with their rows.

    Args:
        rows: of each cell, none below 0, any shape, at least one cell.
        errors: standard errors (rows), same shape.
        count: rows of the counts to speak of; the nearest ones that there are count.

    Returns:
        ``smallest`` is by the smallest cell above which 95 % of the cells have an interval of at most half
        of their rows. Smaller counts have no larger errors than that cell.
    """
    order = np.argsort(-rows, axis=None, kind="stable")
    rows, errors = rows.ravel()[order], errors.ravel()[order]
    near = _near(rows, count)
    trusted = (rows > 0) & (rows >= 2 * TWO_SIDED * errors)
    trusted_together = np.flatnonzero(trusted & (np.cumsum(trusted) >= _KEPT * np.arange(1, rows.size + 1)))
    smallest = math.inf
    if trusted_together.size:
        last = int(trusted_together[-1])
        smallest = min(float(rows[last]), 2 * TWO_SIDED * float(np.median(errors[_near(rows, rows[last])])))
    return Exactness(float(np.median(rows[near])), TWO_SIDED * float(np.median(errors[near])), smallest)


def _near(rows: FloatArray, count: float) -> NDArray[np.intp]:
    """The places of the cells nearest to a count by ratio."""
    away = np.abs(np.log((rows + 1) / (count + 1)))
    return np.argsort(away, kind="stable")[:_NEAREST]


def count_to_report(total: float) -> float:
    """The count that errors are said of: 500, or a quarter of a small table."""
    return 500.0 if total >= 1000 else max(1.0, total / 4)


# -- pairs of columns ---------------------------------------------------------------------------------

Kind = Literal["measured", "modelled", "independent"]

MOST_COLUMNS = 30
"""Columns of the matrix; of wider tables those in the strongest pairs."""

MOST_PAIRS = 1_500
"""Measured pairs whose strength is computed in search of the strongest."""

_MOST_CELLS = 400_000
_LUCK = 1e-3
"""Noise alone makes an independent pair look clear with this probability."""

_FAINT = 0.01
"""Below this strength a pair that no table joins counts as independent."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two columns. ``strength``: Cramer's V of the model's table, 0 to 1; None if it was not computed.
    ``clear``: of measured pairs, whether the noisy table differs from independence by more than noise does;
    None if it cannot be said. ``exactness``: of the model's counts, where their errors are known.
    ``grouped``: they were counted over wider groups of values alone."""

    first: str
    second: str
    kind: Kind
    strength: float | None
    clear: bool | None
    exactness: Exactness | None = None
    grouped: bool = False


@dataclass(frozen=True, slots=True)
class Pairs:
    """``columns``: those of the matrix, in order. ``by_names``: pairs by their two names in the order
    of ``columns``. ``strongest``: pairs by falling strength. ``counted``: number of pairs of each kind.
    ``computed``: of how many pairs the strength is known, of ``possible``."""

    columns: tuple[str, ...]
    by_names: Mapping[tuple[str, str], Pair]
    strongest: tuple[Pair, ...]
    counted: Mapping[str, int]
    computed: int

    @property
    def possible(self) -> int:
        """Number of pairs of columns with several codes."""
        return sum(self.counted.values())

    @property
    def clear(self) -> int:
        """Measured pairs whose dependence stands out from the noise, of those looked at."""
        return sum(pair.clear is True for pair in self.strongest)


def pairs_of(
    model: MarginalModel,
    measured: Sequence[NoisyMarginal],
    variances: Variances,
    hidden: Collection[str] = (),
) -> Pairs:
    """The pairs of a release, without ``hidden`` attributes: all of at most ``MOST_COLUMNS`` columns, and the
    first ``MOST_PAIRS`` measured ones of wider tables."""
    names = [
        attribute.name
        for attribute in model.domain.attributes
        if attribute.size > 1 and attribute.name not in hidden
    ]
    tables, group = _tables(names, measured), joined_columns(names, measured)
    by_pair: dict[frozenset[str], Pair] = {}

    def look(a: str, b: str) -> None:
        key = frozenset((a, b))
        if key not in by_pair:
            kind: Kind = (
                "measured" if key in tables else "modelled" if group[a] == group[b] else "independent"
            )
            by_pair[key] = _pair(model, variances, a, b, kind, tables.get(key, ()))

    if len(names) > MOST_COLUMNS:
        for key in list(tables)[:MOST_PAIRS]:
            look(*sorted(key, key=names.index))
    shown = _shown(names, by_pair)
    for a, b in combinations(shown, 2):
        look(a, b)
    by_names = {(a, b): by_pair[frozenset((a, b))] for a, b in combinations(shown, 2)}
    computed = [pair for pair in by_pair.values() if pair.strength is not None]
    ranked = sorted(computed, key=lambda pair: -(pair.strength or 0.0))
    counted = asdict(pair_losses(names, measured))
    return Pairs(tuple(shown), by_names, tuple(ranked), counted, len(computed))


def _shown(names: Sequence[str], by_pair: Mapping[frozenset[str], Pair]) -> list[str]:
    """Columns of the matrix: all, or those of the strongest pairs, in the order of the table."""
    strongest = sorted(by_pair.values(), key=lambda pair: -(pair.strength or 0.0))
    ranked = [name for pair in strongest for name in (pair.first, pair.second)]
    chosen = list(dict.fromkeys([*ranked, *names]))[:MOST_COLUMNS]
    return [name for name in names if name in chosen]


def _tables(
    names: Sequence[str], measured: Sequence[NoisyMarginal]
) -> dict[frozenset[str], list[NoisyMarginal]]:
    """The measured tables of each pair."""
    several = set(names)
    by_pair: dict[frozenset[str], list[NoisyMarginal]] = {}
    for table in measured:
        for pair in combinations([name for name in table.attrs if name in several], 2):
            by_pair.setdefault(frozenset(pair), []).append(table)
    return by_pair


def _pair(
    model: MarginalModel,
    variances: Variances,
    first: str,
    second: str,
    kind: Kind,
    tables: Sequence[NoisyMarginal],
) -> Pair:
    domain = model.domain
    if domain.cells((first, second)) > _MOST_CELLS or not model.supports((first, second)):
        return Pair(first, second, kind, None, None)
    joint = model.project((first, second))
    strength = cramers_v(joint)
    if kind == "independent" and strength is not None and strength > _FAINT:
        kind = "modelled"
    clear = _stands_out(joint, first, second, tables) if kind == "measured" else None
    error_variances = variances.of([domain.index(first), domain.index(second)], joint)
    counts = (
        None
        if error_variances is None
        else of_estimates(joint, np.sqrt(error_variances), count_to_report(float(joint.sum())))
    )
    grouped = kind == "measured" and basis_of(tables, (first, second)) == "grouped"
    return Pair(first, second, kind, strength, clear, counts, grouped)


def cramers_v(joint: FloatArray) -> float | None:
    """sqrt(chi^2 / (n min(r - 1, c - 1))) of a table of expected counts, over its r rows and c columns that
    are not empty (Cramer 1946); 0 if one of them is alone, None for an empty table."""
    total = float(joint.sum())
    if not total > 0:
        return None
    shares = joint / total
    rows, columns = shares.sum(axis=1), shares.sum(axis=0)
    occupied = np.ix_(rows > 0, columns > 0)
    expected = np.outer(rows[rows > 0], columns[columns > 0])
    least = min(expected.shape) - 1
    if least == 0:
        return 0.0
    square = float(((shares[occupied] - expected) ** 2 / expected).sum())
    return min(1.0, math.sqrt(square / least))


def _stands_out(joint: FloatArray, first: str, second: str, tables: Sequence[NoisyMarginal]) -> bool | None:
    """Whether some noisy table is further from independence than noise alone is with probability ``_LUCK``:
    under noise the sum of squared differences over the variance is chi-square of (r - 1) (c - 1) degrees."""
    scores = []
    for table in tables:
        axes = [table.attrs.index(name) for name in (first, second)]
        summed_axes = tuple(axis for axis in range(table.values.ndim) if axis not in axes)
        if table.composed and summed_axes:
            continue  # its cells share noise
        noisy = table.values.sum(axis=summed_axes).astype(np.float64)
        noisy = noisy if axes[0] < axes[1] else noisy.T
        maps = [table.maps[number] if table.maps else None for number in axes]
        binned = _binned(_binned(joint, maps[0]).T, maps[1]).T
        total = float(binned.sum())
        if binned.shape != noisy.shape or not total > 0:
            continue
        variance = table.sigma**2 * table.values.size / noisy.size
        expected = np.outer(binned.sum(axis=1), binned.sum(axis=0)) / total
        beyond = noisy - expected
        beyond = beyond - beyond.mean(axis=0) - beyond.mean(axis=1, keepdims=True) + beyond.mean()
        free = (noisy.shape[0] - 1) * (noisy.shape[1] - 1)
        if free > 0 and variance > 0:
            scores.append(float(chdtrc(free, float((beyond**2).sum()) / variance)))
    return min(scores) < _LUCK if scores else None


def _binned(joint: FloatArray, bins: Map | None) -> FloatArray:
    """The table with the codes of its first axis summed into bins."""
    if bins is None:
        return joint
    summed = np.zeros((max(bins) + 1, joint.shape[1]))
    np.add.at(summed, np.asarray(bins), joint)
    return summed


# -- lines of the page --------------------------------------------------------------------------------


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
        Accuracy(table.attrs, "noise", True, of_all_counts(table.sigma, total), any(map(bool, table.maps)))
        for table in best.values()
    ]
    return sorted(lines, key=lambda line: (len(line.attrs), line.exactness.within, line.attrs))


def accuracy_lines(
    columns: Sequence[ColumnFigures], pairs: Pairs, tables: Sequence[Accuracy]
) -> list[Accuracy]:
    """What is known of the counts of every column, of pairs by falling strength, and of larger tables."""
    larger = (line for line in tables if len(line.attrs) > 2)
    return [*_of_columns(columns, tables), *_of_pairs(pairs, tables), *larger]


def _of_columns(columns: Sequence[ColumnFigures], tables: Sequence[Accuracy]) -> Iterator[Accuracy]:
    measured = {line.attrs: line for line in reversed(tables)}
    for column in columns:
        attrs = (column.attribute.name,)
        if column.error_of != "none":
            yield Accuracy(attrs, column.error_of, True, of_all_counts(column.typical_error, column.total))
        elif attrs in measured:
            yield measured[attrs]


def _of_pairs(pairs: Pairs, tables: Sequence[Accuracy]) -> Iterator[Accuracy]:
    measured = {frozenset(line.attrs): line for line in reversed(tables) if line.pair}
    for pair in pairs.strongest:
        attrs = (pair.first, pair.second)
        measured_line = measured.pop(frozenset(attrs), None)
        if pair.exactness is not None:
            yield Accuracy(attrs, "estimate", pair.kind == "measured", pair.exactness, pair.grouped)
        elif measured_line is not None:
            yield replace(measured_line, attrs=attrs)
    yield from measured.values()


def smallest_group(lines: Sequence[Accuracy]) -> float:
    """The smallest group that can be trusted in a typical one of some tables; NaN without tables."""
    return median(line.exactness.smallest for line in lines) if lines else math.nan
