"""Codes that are noise are written as others; tables that change with them."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from dpsyn_sql.attributes.attribute import Attribute, Recoding, fill_ticks
from dpsyn_sql.attributes.grids import Cuts
from dpsyn_sql.attributes.shape import Shape
from dpsyn_sql.errors import InternalError
from dpsyn_sql.fit.arrays import FloatArray, IntArray
from dpsyn_sql.fit.variances import OneWayCounts
from dpsyn_sql.planning.queries import NoisyMarginal

# -- shapes ------------------------------------------------------------------------------------------

# Where the counts of cells say more than the shape of a smooth part: they are followed; public.
#
# A log-normal part has few parameters. Where noise is small the counts show more: that a column ends at 25
# and 64, or has two peaks. Each step needs evidence, so where noise hides all, the part stays as it is.

END_COST = 6.0
"""Squared deviations that leaving out the cells of one end must explain."""

SPLIT_SIGMAS = 2.5
"""Deviations by which the halves of a stretch must differ from the shape to be followed."""

NONE_SIGMAS = 2.0
"""Deviations of noise below which a half that lost rows has none."""


def reshaped(expected: FloatArray, counts: FloatArray, sigma: float) -> FloatArray:
    """Rows of cells in order (float64[k]), as many in all as expected.

    First the ends where values were expected and none are seen get none. Then rows are divided from the whole
    down to single cells, each stretch where half of its expected rows lie on either side: in proportion to
    the counts where they contradict the shape, else as expected.

    Args:
        expected: rows by the shape, float64[k], none negative.
        counts: noisy counts of the same cells, float64[k] (rows).
        sigma: deviation of their noise (rows), above 0.
    """
    shape = _without_ends(expected, counts, sigma)
    rows, cells = np.zeros_like(shape), np.flatnonzero(shape > 0)
    if cells.size:
        rows[cells] = _divided(shape[cells], counts[cells], sigma, float(shape.sum()))
    return rows


def _without_ends(expected: FloatArray, counts: FloatArray, sigma: float) -> FloatArray:
    """The shape cut where that explains the counts best, with the same sum."""
    gains = (expected**2 - 2 * counts * expected) / sigma**2
    shape = expected.copy()
    for side in (slice(None), slice(None, None, -1)):
        sums = np.cumsum(gains[side])
        last = int(np.argmax(sums))
        if sums[last] > END_COST:
            shape[side][: last + 1] = 0.0
    left = float(shape.sum())
    return shape * (float(expected.sum()) / left) if left > 0 else expected


def _divided(shape: FloatArray, counts: FloatArray, sigma: float, rows: float) -> FloatArray:
    """So many rows over the cells of a stretch, each of which is expected to have some."""
    if shape.size == 1 or rows <= 0:
        return np.full(shape.size, rows / shape.size) if shape.size == 1 else np.zeros(shape.size)
    sums = np.cumsum(shape)
    middle = int(np.argmin(np.abs(sums[:-1] - sums[-1] / 2))) + 1
    share = _share(shape, counts, sigma, middle)
    halves = ((slice(middle), share), (slice(middle, None), 1 - share))
    return np.concatenate([_divided(shape[half], counts[half], sigma, rows * part) for half, part in halves])


def _share(shape: FloatArray, counts: FloatArray, sigma: float, middle: int) -> float:
    """Of the rows of a stretch, the share of the cells before the middle."""
    expected = float(shape[:middle].sum() / shape.sum())
    sizes = np.array([middle, shape.size - middle])
    sums = np.array([counts[:middle].sum(), counts[middle:].sum()])
    weights = np.array([1 - expected, -expected])
    if abs(weights @ sums) <= SPLIT_SIGMAS * sigma * math.sqrt(float(weights**2 @ sizes)):
        return expected
    sums[sums < NONE_SIGMAS * sigma * np.sqrt(sizes)] = 0.0
    return float(sums[0] / sums.sum()) if sums.any() else expected


# -- codes -------------------------------------------------------------------------------------------

# Codes that are nothing but noise are not written; public, from noisy counts.
#
# ``__other__`` and NULL have a code wherever a value could need one. Where no row does, the noise of their
# counts would still write some: a value that the column does not have.

NOISE = 3.0
"""Standard errors below which a count is noise. A code without rows is written in one release of 740, and a
code that has six standard errors of rows is left out in one of 740."""

MOST_LEFT_OUT = 0.02
"""A code with a larger noisy share of the rows is written, however uncertain the share is."""

_PLACES = 256
"""Entries of a list of codes by their shares; it becomes a constant list of SQL."""


def recoded(shape: Shape, counts: Mapping[str, OneWayCounts], total: float) -> Shape:
    """The shape whose attributes say which codes are not written.

    Args:
        shape: complete.
        counts: of ``one_way_counts``.
        total: noisy number of rows.
    """
    return replace(shape, measured=tuple(_recoded(item, counts, total) for item in shape.domain.attributes))


def _recoded(attribute: Attribute, counts: Mapping[str, OneWayCounts], total: float) -> Attribute:
    table = counts.get(attribute.name)
    if table is None:
        return attribute
    codes = set() if attribute.recoding is None else set(attribute.recoding.codes)
    codes |= {code for code in _extra(attribute) if _is_noise(table, code, total)}
    if not _writes_other(attribute, codes):
        codes |= {code for code in (attribute.other_code,) if code is not None}
    if not codes or len(codes) == attribute.size:
        return attribute
    return replace(attribute, recoding=Recoding(tuple(sorted(codes)), _by_share(table.counts, codes)))


def _extra(attribute: Attribute) -> list[int]:
    """The codes of ``__other__`` and NULL."""
    return [code for code in (attribute.other_code, attribute.null_code) if code is not None]


def _is_noise(table: OneWayCounts, code: int, total: float) -> bool:
    return bool(table.counts[code] < min(NOISE * table.sigma[code], MOST_LEFT_OUT * total))


def _writes_other(attribute: Attribute, codes: set[int]) -> bool:
    """Whether a row of ``__other__`` can be written: as text, or as NULL where the column has NULL."""
    if attribute.leaves is not None:
        texts = all(hierarchy.text for hierarchy in attribute.leaves.hierarchies)
    else:
        texts = attribute.type.family == "text"
    if texts:
        return True
    return attribute.null_code is not None and attribute.null_code not in codes


def _by_share(counts: FloatArray, codes: set[int]) -> tuple[int, ...]:
    """The other codes, each as often as its share of their positive counts."""
    weights = np.maximum(counts, 0.0)
    weights[list(codes)] = 0.0
    if not weights.any():
        weights = np.ones_like(counts)
        weights[list(codes)] = 0.0
    ends = np.cumsum(weights)
    if not ends[-1] > 0:
        raise InternalError("no code of an attribute is left to be written")
    positions = (np.arange(_PLACES) + 0.5) / _PLACES * ends[-1]
    return tuple(int(code) for code in np.searchsorted(ends, positions, side="right"))


# -- what was counted --------------------------------------------------------------------------------

# What one look at a column counted, as far as its codes tell the cells apart; public.
#
# The one-way table of such a column is a curve through these counts (``discovery/one_look.py``). The rows are
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
