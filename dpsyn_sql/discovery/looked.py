"""What one look at a column counted, as far as its codes tell the cells apart; public.

The one-way table of such a column is a curve through these counts (``discovery/one_look.py``). The rows are
compared with the counts themselves, so that a wrong curve shows.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpsyn_sql.domain.attributes import Attribute, fill_ticks
from dpsyn_sql.domain.grids import Cuts
from dpsyn_sql.fit.arrays import IntArray
from dpsyn_sql.planning.queries import NoisyMarginal


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
            first = [least if own == most else own for own in first]
    if attribute.regular == 1:
        code_of = dict.fromkeys(counted, 0)
    places = {code: place for place, code in enumerate(sorted(set(first)))}
    groups, cells = [places[code] for code in first], list(code_of)
    of_cell = [groups[code] for code in code_of.values()]
    cells.append(len(noisy.values) - 1)
    if attribute.nullable:
        of_cell.append(len(places))
        groups.append(len(places))
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
