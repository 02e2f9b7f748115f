"""A column of a small table from one question: noisy counts on one public grid; public.

The grid has a cell for each small whole number, so that the answer is both the range of the column and its
one-way table: nothing is asked about the column again. Numbers become a mixture of values and smooth parts
(``discovery/mixtures.py``), dates and times a smoothed histogram.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import groupby, pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from dpsyn_sql.attributes.attribute import Attribute, Granularity, edge_ticks, fill_ticks
from dpsyn_sql.attributes.grids import EQUAL_BINS, Cuts, after, equal_cuts, rounded
from dpsyn_sql.attributes.shape import Undiscovered
from dpsyn_sql.attributes.types import SqlType
from dpsyn_sql.discovery.attributes import attribute_of_nothing, coded, likely_granularity
from dpsyn_sql.discovery.cells import STANDS_OUT, Piece
from dpsyn_sql.discovery.mixtures import REACH, Cellular, Mixture, mixture_of
from dpsyn_sql.fit.arrays import FloatArray, IntArray
from dpsyn_sql.fit.denoise import reshaped, smoothed
from dpsyn_sql.planning.queries import NoisyMarginal, NoisySteps

NULL_SIGMAS = 2.0
"""Deviations of noise above which rows without a value are believed."""

INTERVAL_COST = 16.0
"""Squared deviations that a further stretch of dates must explain."""

FIRST_COST, SHORT_COST = 25.0, 45.0
"""The same of the first stretch, and what is added to it over the number of cells: Laplace noise makes high
single cells. Without rows one in a hundred columns has such a stretch by luck."""

BIN_SIGMAS = 2.0
"""Deviations of the noise of a cell that an equal bin between stated bounds holds at least, if all are
even."""

LEAST_ROWS = 2.0
"""Deviations of the noisy number of rows below which there may be none: nothing of a column is believed."""

MOST_CODES = 32
"""Codes of a column: what is known inside of a code is in its fill, and pairs of few codes are quick."""

_CLEAR = 3.0
# Deviations of noise by which rows of other values are known to be few.

_MOST_INTERVALS = 3
_SHARES = np.unique(
    np.concatenate([np.linspace(0, 1, 65), [0.002, 0.005, 0.99, 0.995, 0.998, 0.9995, 0.9999]])
)
_LEAST_MASS = 1e-6  # of all rows; a piece of less is not written

MOST_REACH, _BEYOND = 4.0, 0.2
"""Widths at which a smooth part ends at most; and rows beyond, in deviations of noise of a cell."""


def attribute_of_one_look(
    column: Undiscovered,
    cuts: Cuts,
    noisy: NoisyMarginal,
    steps: NoisySteps | None,
    rows: float,
    owners: Sequence[int] = (),
    missed: float = STANDS_OUT,
) -> tuple[Attribute, NoisyMarginal]:
    """The attribute of a column of numbers or times, and its one-way table with the noise taken out.

    Args:
        column: not yet discovered, of a stated or found type.
        cuts: of ``special_cuts``.
        noisy: the counts of its cells, then of NULL.
        steps: which steps its values are multiples of; None if the owner states a granularity.
        rows: noisy number of units; 0 or less if there may be none: nothing is found then.
        owners: of the cells; empty if each is counted as itself.
        missed: deviations from which rows of a cell that nothing else explains are believed.

    The table is what was counted: a row whose value was not found is in the code that its value has.
    """
    total = max(rows, 1.0)
    counts = noisy.values.astype(np.float64)
    sigma = max(noisy.sigma, 1e-3)  # exact answers (tests only)
    if not column.nullable and counts[-1] <= missed * sigma:
        counts[-1] = 0.0
    grid = _Grid(column.type, cuts, tuple(owners) or tuple(range(len(cuts) - 1)))
    counts[:-1][~grid.counted] = 0.0  # what nothing is counted as is noise alone
    granularity = column.granularity
    if steps is not None:
        granularity = likely_granularity(column.type, steps)
    if rows <= 0:
        pieces = list[Piece]()
    elif column.type.temporal:
        pieces = _of_times(cuts, counts, sigma, total)
    else:
        step = _step(column.type, granularity)
        cells, alone = _cellular(grid, step)
        mixture = mixture_of(cells, counts, sigma, total).reaching(_limit(total / sigma))
        ratios = _ratios(cells, mixture, counts[:-1], sigma)
        more = _missed(cells, mixture, ratios, counts[:-1], missed * sigma)
        pieces = _of_numbers(grid, step, mixture, ratios, alone, more)
    if not pieces and rows > 0:
        pieces = _of_bounds(column, grid, counts, sigma, total)
    if pieces:
        few = replace(column, max_codes=min(column.max_codes, MOST_CODES))
        attribute, mass = coded(few, _by_cell(grid, pieces), granularity)
    else:
        attribute, mass = attribute_of_nothing(column, cuts), np.array([1.0])
    null = _null(float(counts[-1]), sigma, total)
    rows_of_bins = mass * ((total - null) / max(float(mass.sum()), 1e-9))
    if column.nullable:
        rows_of_bins = np.append(rows_of_bins, null)
    else:
        rows_of_bins[attribute.fallback_code] += null  # as it is encoded
    rows_of_codes = np.rint(rows_of_bins).astype(np.int64)
    table = NoisyMarginal((column.name,), rows_of_codes, noisy.sigma, composed=True, fitted=True)
    return attribute, table


def _null(count: float, sigma: float, total: float) -> float:
    """The rows of NULL: what was counted there, whatever was found of the values. The other rows have some
    value, so that those of which nothing was found are no NULLs for the fit, even if NULL is written for
    them."""
    return min(count, total) if count > NULL_SIGMAS * sigma else 0.0


@dataclass(frozen=True, slots=True)
class _Grid:
    """The cells of a grid of a type: cell i is [cuts[i], cuts[i + 1]), and is counted as ``owners[i]``."""

    kind: SqlType
    cuts: Cuts
    owners: tuple[int, ...]

    @property
    def counted(self) -> NDArray[np.bool_]:
        """The cells that have a count (bool[k])."""
        return np.asarray(np.array(self.owners) == np.arange(len(self.owners)), np.bool_)

    def owners_of(self, values: Sequence[Fraction]) -> IntArray:
        """The cell that each value is counted in (int64[n])."""
        return np.array(self.owners, np.int64)[_cells_of(self.cuts, values)]


def _of_bounds(
    column: Undiscovered, grid: _Grid, counts: FloatArray, sigma: float, total: float
) -> list[Piece]:
    """Equal bins between the bounds of a column of which nothing stands out, if both are stated: as many as
    its rows support, ``EQUAL_BINS`` at most. Their counts are drawn to even ones, as far as noise hides them.
    """
    rows = total - _null(float(counts[-1]), sigma, total)
    if column.least is None or column.most is None or rows <= NULL_SIGMAS * sigma:
        return []
    number = EQUAL_BINS
    while number > 1 and (rows < BIN_SIGMAS * sigma * number or number > column.max_codes - column.nullable):
        number //= 2
    bin_cuts = equal_cuts(column.type, column.least, column.most, number)
    even = rows / (len(bin_cuts) - 1)
    bin_of = _cells_of(bin_cuts, grid.cuts[:-1])
    counted = np.bincount(bin_of, weights=counts[:-1], minlength=len(bin_cuts) - 1)
    noise = sigma**2 * np.bincount(bin_of, weights=grid.counted, minlength=len(bin_cuts) - 1)
    masses = np.maximum(even + (counted - even) * even**2 / (even**2 + noise), _LEAST_MASS * total)
    return [
        Piece(low, high, mass) for (low, high), mass in zip(pairwise(bin_cuts), masses.tolist(), strict=True)
    ]


def other_part(
    column: Undiscovered,
    cuts: Cuts,
    attribute: Attribute,
    noisy: NoisyMarginal,
    total: NoisyMarginal,
    owners: Sequence[int] = (),
) -> float:
    """The part of the units that may have another value than the first one that was found, or than NULL if
    none was; up to three deviations of noise. 1 if the value is one of several of its cell.

    Args:
        column: as for ``attribute_of_one_look``.
        cuts: of the grid.
        attribute: with the value as its first edge.
        noisy: the counts of the cells, then of NULL.
        total: noisy number of units.
        owners: of the cells; empty if each is counted as itself.
    """
    explained = float(noisy.values[-1]) if column.nullable else 0.0
    if attribute.recoding is None or 0 not in attribute.recoding.codes:
        value = Fraction(edge_ticks(attribute)[0] if column.type.discrete else attribute.edges[0])  # type: ignore[arg-type]
        cell = bisect_right(cuts, value) - 1
        if not 0 <= cell < len(cuts) - 1 or after(column.type, cuts[cell]) != cuts[cell + 1]:
            return 1.0
        if owners and list(owners).count(cell) != 1:
            return 1.0
        explained += float(noisy.values[cell])
    rows = max(float(total.values), 1.0)
    error = _CLEAR * math.hypot(total.sigma, math.sqrt(2) * noisy.sigma)
    return min(1.0, max(0.0, rows - explained + error) / rows)


def _limit(strength: float) -> float:
    """The widths at which smooth parts end: where rows beyond would be a part of the noise of one cell. A
    tail that was cut earlier would miss rows that one-way tables see, and most of the variance."""
    return float(np.clip(ndtri(1 - _BEYOND / max(strength, 1.0)), REACH, MOST_REACH))


def _by_cell(grid: _Grid, pieces: Sequence[Piece]) -> list[list[Piece]]:
    """The pieces of each cell together: only of whole cells the rows are known."""
    cells = grid.owners_of([piece.low for piece in pieces]).tolist()
    together = groupby(zip(cells, pieces, strict=True), key=lambda pair: pair[0])
    return [[piece for _, piece in part] for _, part in together]


def _cells_of(cuts: Cuts, values: Sequence[Fraction]) -> IntArray:
    """The cell of each value (int64[n])."""
    after_cuts = np.searchsorted([float(cut) for cut in cuts], [float(value) for value in values], "right")
    return np.clip(after_cuts - 1, 0, len(cuts) - 2)


# -- numbers --------------------------------------------------------------------------------------------


@lru_cache(maxsize=32)
def _cellular(grid: _Grid, step: Fraction) -> tuple[Cellular, dict[int, Fraction]]:
    """The cells in units of the values, for multiples of a step (ticks; 0 for none); and of those cells that
    hold one value alone, or one multiple of the step, this value (ticks)."""
    unit, cuts = Fraction(10**grid.kind.scale), grid.cuts
    bounds = np.array([float(_before(cut, step) / unit) for cut in cuts])
    bounds[0], bounds[-1] = -np.inf, np.inf
    number, first = Counter[int](), dict[int, Fraction]()
    for (low, high), owner in zip(pairwise(cuts), grid.owners, strict=True):
        multiples = (
            math.ceil(high / step) - math.ceil(low / step) if step else 1 + (after(grid.kind, low) < high)
        )
        number[owner] += multiples
        if multiples:
            first.setdefault(owner, _up(low, step))
    alone = {cell: value for cell, value in first.items() if number[cell] == 1}
    singles = np.array([cell in alone for cell in range(len(grid.owners))])
    values = np.array([float(alone.get(cell, cut) / unit) for cell, cut in enumerate(cuts[:-1])])
    owners = np.array(grid.owners, np.int64)
    return Cellular(bounds, singles, values, float(step / unit), owners), alone


def _step(kind: SqlType, granularity: Granularity | None) -> Fraction:
    """In ticks, or for FLOAT and DOUBLE in units; 0 for none."""
    if granularity is None or granularity == "month":
        return Fraction(0 if kind.family == "float" else 1)
    return Fraction(granularity)


def _up(cut: Fraction, step: Fraction) -> Fraction:
    """The first multiple of a step that is not below a cut."""
    return math.ceil(cut / step) * step if step else cut


@lru_cache(maxsize=64)
def first_values(kind: SqlType, cuts: Cuts, granularity: Granularity | None) -> Cuts:
    """The cuts, each moved to the first multiple of a granularity that is not below it."""
    step = _step(kind, granularity)
    return tuple(rounded(kind, _up(cut, step)) for cut in cuts)


def _before(cut: Fraction, step: Fraction) -> Fraction:
    """Half a step before the first multiple that is not below a cut."""
    return (math.ceil(cut / step) - Fraction(1, 2)) * step if step else cut


def _ratios(cells: Cellular, mixture: Mixture, counts: FloatArray, sigma: float) -> FloatArray:
    """Of each cell, how many times the rows of the smooth parts the counts show there (float64[k])."""
    expected, without_atoms = np.zeros(counts.size), counts.copy()
    for cell, rows in mixture.values.items():
        if cell < counts.size:
            without_atoms[cell] -= rows
    for part, rows in mixture.smooth:
        expected += rows * cells.shares(part)[:-1]
    rows_shown = reshaped(expected, without_atoms, sigma)
    return np.divide(rows_shown, expected, out=np.ones_like(expected), where=expected > 0)


def _missed(
    cells: Cellular, mixture: Mixture, ratios: FloatArray, counts: FloatArray, least: float
) -> dict[int, float]:
    """Rows of cells that the mixture does not explain, more than ``least``; of the end cells, in which values
    can lie anywhere, never."""
    explained = np.zeros(counts.size)
    for part, rows in mixture.smooth:
        explained += rows * cells.shares(part)[:-1] * ratios
    for atom_cell, rows in mixture.values.items():
        if atom_cell < counts.size:
            explained[atom_cell] += rows
    left = counts - explained
    last = int(cells.owners[-1])
    unexplained = [
        cell for cell in np.flatnonzero(left > least).tolist() if cells.singles[cell] or 0 < cell < last
    ]
    return {cell: float(left[cell]) for cell in unexplained}


def _of_numbers(
    grid: _Grid,
    step: Fraction,
    mixture: Mixture,
    ratios: FloatArray,
    alone: Mapping[int, Fraction],
    missed: Mapping[int, float],
) -> list[Piece]:
    """The pieces of a mixture, ascending, and what it missed: an atom where a cell has one value, else even
    in the cell. Smooth parts have in each cell ``ratios`` times their rows."""
    kind, cuts, unit = grid.kind, grid.cuts, Fraction(10**grid.kind.scale)
    atom_rows = Counter({cell: rows for cell, rows in mixture.values.items() if cell in alone})
    atom_rows.update({cell: rows for cell, rows in missed.items() if cell in alone})
    atoms = {alone[cell]: rows for cell, rows in atom_rows.items()}
    ends = {end for value in atoms for end in (value, value + step if step else after(kind, value))}
    even = np.zeros(len(cuts) - 1)  # rows of one tick of each cell
    for cell in missed.keys() - alone.keys():
        of_owner = [index for index, owner in enumerate(grid.owners) if owner == cell]
        runs = [(_up(cuts[index], step), _up(cuts[index + 1], step)) for index in of_owner]
        width = float(sum((high - low for low, high in runs), Fraction(0)))
        if width:  # else it holds no multiple of the step
            ends |= {end for run in runs for end in run}
            even[of_owner] = missed[cell] / width
    for part in mixture.parts:
        inner = _ends_of(kind, part.quantiles(_SHARES), unit, step)
        low, high = min(inner), max(inner)
        ends |= inner | {end for end in _ends_of_cells(grid, step) if low < end < high}
    inside = sorted({min(max(end, cuts[0]), cuts[-1]) for end in ends})
    bounds = np.array([float(_before(end, step) / unit) for end in inside])
    if mixture.parts:
        bounds[0], bounds[-1] = -np.inf, np.inf
    masses = np.zeros(max(0, len(inside) - 1))
    for part, rows in mixture.smooth:
        masses += rows * np.diff(part.cdf(bounds))
    masses *= ratios[grid.owners_of(inside[:-1])]
    masses += even[_cells_of(cuts, inside[:-1])] * np.diff([float(end) for end in inside])
    least, pieces = _LEAST_MASS * float(mixture.rows.sum()), list[Piece]()
    for (low, high), mass in zip(pairwise(inside), masses.tolist(), strict=True):
        rows = mass + atoms.get(low, 0.0)
        if rows > least:
            start = rounded(kind, low)
            single = bool(step) and high - low <= step
            pieces.append(Piece(start, after(kind, start) if single else rounded(kind, high), rows))
    return pieces


@lru_cache(maxsize=32)
def _ends_of_cells(grid: _Grid, step: Fraction) -> tuple[Fraction, ...]:
    """The cuts between cells that are counted apart, each moved to the first multiple of the step that is not
    below it. A special value inside of a wide cell is none unless rows were found there: what lies on both
    sides of it is one stretch."""
    wide = Counter(grid.owners)
    cells = [cell for cell, owner in enumerate(grid.owners) if wide[owner] > 1]
    moved = []
    for index, cut in enumerate(grid.cuts[:-1]):
        around = bisect_left(cells, index)
        within = 0 < around < len(cells) and grid.owners[cells[around - 1]] == grid.owners[cells[around]]
        if not within:
            moved.append(_up(cut, step))
    return (*moved, _up(grid.cuts[-1], step))


def _ends_of(kind: SqlType, values: FloatArray, unit: Fraction, step: Fraction) -> set[Fraction]:
    """Values of a column as cuts between multiples of its step, and the end of the last one."""
    if not step:
        return {rounded(kind, Fraction(value)) for value in values.tolist()}
    multiples = [math.floor(Fraction(value) * unit / step + Fraction(1, 2)) for value in values.tolist()]
    return {multiple * step for multiple in (*multiples, multiples[-1] + 1)}


# -- dates and times ------------------------------------------------------------------------------------


def _of_times(cuts: Cuts, counts: FloatArray, sigma: float, total: float) -> list[Piece]:
    """The cells of the stretches that hold values, smoothed."""
    null = _null(float(counts[-1]), sigma, total)
    left = counts[:-1].copy()
    rows = np.zeros(left.size)
    for number in range(_MOST_INTERVALS):
        start, stop, gain = _likeliest_interval(left, sigma)
        if gain <= (INTERVAL_COST if number else FIRST_COST + SHORT_COST / (stop - start)):
            break
        rows[start:stop] = np.maximum(smoothed(left[start:stop], sigma), 0.0)
        left[start:stop] = 0.0
        if rows.sum() >= total - null - 2 * sigma * math.sqrt(np.count_nonzero(rows)):
            break
    return [
        Piece(low, high, mass)
        for (low, high), mass in zip(pairwise(cuts), rows.tolist(), strict=True)
        if mass > 0
    ]


def _likeliest_interval(counts: FloatArray, sigma: float) -> tuple[int, int, float]:
    """The run of cells whose even distribution explains most of the counts: first, end, squared
    deviations."""
    sums = np.concatenate([[0.0], np.cumsum(counts)])
    most = float((sums - np.minimum.accumulate(sums)).max())  # of any run
    best = (0, counts.size, -math.inf)
    for length in range(1, counts.size + 1):
        if most**2 / (length * sigma**2) < best[2]:
            break  # no longer run can explain as much
        gains = np.maximum(sums[length:] - sums[:-length], 0.0) ** 2 / (length * sigma**2)
        start = int(np.argmax(gains))
        if gains[start] > best[2]:
            best = (start, start + length, float(gains[start]))
    return best


# -- what was counted --------------------------------------------------------------------------------

# What one look at a column counted, as far as its codes tell the cells apart; public.
#
# The one-way table of such a column is a curve through these counts. The rows are
# compared with the counts themselves, so that a wrong curve shows.


@dataclass(frozen=True, slots=True)
class Looked:
    """Counts of the values that have one code, or several that share a cell.

    ``groups``: of each code its place in ``values`` (int64[g]), which are sums of so many ``cells``
    (int64[g]) with noise of deviation ``sigma`` each.
    """

    attr: str
    groups: tuple[int, ...]
    values: IntArray
    cells: IntArray
    sigma: float


def looked_at(attribute: Attribute, cuts: Cuts, noisy: NoisyMarginal, owners: Sequence[int] = ()) -> Looked:
    """The counts of one look by the codes that were made of it.

    A code has the cells in which its values lie; codes that have values in one cell are judged together.
    Cells in which no value is written are left out: the rows that were counted there are too many in the
    codes. Of a column of one value or none, every value has its code.

    Args:
        attribute: of the column, as it was found.
        cuts: of the grid, each moved to the first value that the column can have.
        noisy: the counts of its cells, then of NULL, which has a code in every column.
        owners: of the cells; empty if each is counted as itself.
    """
    counted = tuple(owners) or tuple(range(len(cuts) - 1))
    code_of = dict[int, int]()  # by the cell that counts
    first = list(range(attribute.regular))  # the first code that shares cells with each
    for code, (low, high) in enumerate(_spans(attribute)):
        start = max(bisect_right(cuts, low) - 1, 0)
        stop = max(bisect_left(cuts, high), start + 1)
        for owner in {counted[cell] for cell in range(start, min(stop, len(counted)))}:
            least, most = sorted((first[code_of.setdefault(owner, code)], first[code]))
            first = [least if leader == most else leader for leader in first]
    if attribute.regular == 1:
        code_of = dict.fromkeys(counted, 0)
    group_of = {code: number for number, code in enumerate(sorted(set(first)))}
    groups, cells = [group_of[code] for code in first], list(code_of)
    of_cell = [groups[code] for code in code_of.values()]
    cells.append(len(noisy.values) - 1)
    if attribute.nullable:
        of_cell.append(len(group_of))
        groups.append(len(group_of))
    else:  # NULL counts as the value that stands for it
        of_cell.append(groups[attribute.fallback_code])
    values = np.zeros(max(groups) + 1, np.int64)
    np.add.at(values, of_cell, noisy.values[cells])
    return Looked(attribute.name, tuple(groups), values, np.bincount(of_cell), noisy.sigma)


def _spans(attribute: Attribute) -> list[tuple[Fraction, Fraction]]:
    """Of each code the first value that is written and the end of them; the same for a single value."""
    if attribute.type.discrete:
        return [(Fraction(cuts[0]), Fraction(cuts[-1])) for cuts in fill_ticks(attribute)]
    return [(Fraction(cuts[0]), Fraction(cuts[-1])) for cuts in attribute.fill]  # type: ignore[arg-type]
