"""From noisy answers about a column to its attribute: pure post-processing, public in and out.

Bounds and bins (numbers and times): cells of the grid whose noisy count stands out are the roots of
trees, PrivTree says where they are dense, leaves become bins (docs/privacy.md, "Trees"). A cell or leaf
of one value is a bin of its own, so that point masses keep their value. Categories: the keys that
passed the threshold; all other values are ``__other__``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.domain.attributes import OTHER, Attribute, Recoding
from dpsyn_sql.domain.grids import Cell, binned_kind, edge_of, everyday_cell, grid_cells
from dpsyn_sql.domain.shape import Undiscovered
from dpsyn_sql.domain.types import SqlType, enum_type
from dpsyn_sql.errors import InternalError
from dpsyn_sql.planning.queries import NoisyKeys, NoisyTree, TreeQuery, TreeRoot

STANDS_OUT = 4.5
"""Standard deviations that a cell's noisy count must exceed: of 500 empty cells one does so by luck in one
release of 600; in one of three with the heavier tails of Laplace noise. It costs a bin that stays empty."""

CARRIES_ON = 2.0
"""Deviations that suffice next to a cell that stands out: tails of a column lie there, not anywhere."""


FAR = 0.1
"""Deviations that are subtracted for each cell away from everyday values (one, the year 2000) if nothing
stands out: luck is as likely in the cell of 10^9 as in that of 10, but real values are not."""

_NEVER = 1e6  # deviations

NEGATIVE = 2.0
"""Deviations that are subtracted for numbers below zero: few columns have any."""

LONGEST_RUN = 6
"""Adjacent cells that are looked at together where none stands out alone: a factor of 64."""


def attribute_from_keys(column: Undiscovered, found: NoisyKeys) -> Attribute:
    """A categorical attribute of the keys with the largest noisy counts, in the order of the values."""
    kind = column.type
    room = max(0, column.max_codes - 1 - column.nullable)
    # A value that is spelled as the code of all others belongs to them.
    order = [index for index in np.argsort(-found.values, kind="stable") if found.keys[index] != OTHER]
    labels = tuple(found.keys[index] for index in sorted(order[:room]))
    sql_type = column.sql_type
    if kind.family == "enum":
        # An ENUM without a name may hold the data's own values: the output knows the released ones.
        sql_type = enum_type(tuple(str(label) for label in labels)) if labels else "VARCHAR"
    return Attribute(
        column.name,
        sql_type,
        "categorical",
        labels,
        other=True,
        nullable=column.nullable,
        origin="discovered",
        source=column.source,
        recoding=None if column.other or not labels else Recoding((len(labels),), tuple(range(len(labels)))),
    )


@dataclass(frozen=True, slots=True)
class Bounds:
    """Cells of the grid that stand out, ascending."""

    cells: tuple[Cell, ...]


def bounds_from_grid(column: Undiscovered, noisy: NDArray[np.int64], sigma: float) -> Bounds:
    """Cells whose noisy count exceeds ``STANDS_OUT`` deviations, and from each of them outwards the cells
    that exceed ``CARRIES_ON``; if none stands out, the likeliest run of cells.

    ``noisy``: int64, one per cell of the grid and, if the column is nullable, one for NULL.
    """
    cells = grid_cells(column.type)
    allowed = np.array([_may_hold(column, cell) for cell in cells])
    counts = np.where(allowed, noisy[: len(cells)], -_NEVER * sigma)
    chosen = counts > STANDS_OUT * sigma
    if not chosen.any():
        kind = column.type
        numbers = binned_kind(kind) == "numeric"
        positive = next((i for i, cell in enumerate(cells) if cell.low >= 0), 0) if numbers else 0
        chosen[_likeliest_run(counts / sigma, everyday_cell(kind, cells), positive)] = True
    likely = counts > CARRIES_ON * sigma
    while True:
        beside = np.zeros_like(chosen)
        beside[1:] |= chosen[:-1]
        beside[:-1] |= chosen[1:]
        more = beside & likely & ~chosen
        if not more.any():
            break
        chosen |= more
    return Bounds(tuple(cells[index] for index in np.flatnonzero(chosen)))


def _may_hold(column: Undiscovered, cell: Cell) -> bool:
    """Whether the bounds that the catalog states leave anything of a cell."""
    least, most = column.least, column.most
    return (least is None or cell.high > least) and (most is None or cell.low <= most)


def _likeliest_run(deviations: NDArray[np.float64], everyday: int, positive: int) -> slice:
    """The run of adjacent cells whose sum stands out most, in its own deviations, less ``FAR`` a cell, and
    less ``NEGATIVE`` if it begins before the cell ``positive``.

    Values of one column mostly lie in a few powers of two side by side: their sum shows where one cell
    does not.
    """
    sums = np.concatenate([[0.0], np.cumsum(deviations)])
    best, found = -np.inf, slice(0, 1)
    for length in range(1, min(LONGEST_RUN, len(deviations)) + 1):
        first = np.arange(len(deviations) - length + 1)
        away = np.maximum(0, np.maximum(first - everyday, everyday - (first + length - 1)))
        scores = (
            (sums[length:] - sums[:-length]) / np.sqrt(length) - FAR * away - NEGATIVE * (first < positive)
        )
        start = int(np.argmax(scores))
        if scores[start] > best:
            best, found = scores[start], slice(start, start + length)
    return found


def tree_query(column: Undiscovered, bounds: Bounds) -> TreeQuery | None:
    """The question where those cells are dense; None if none of them can be halved."""
    roots = tuple(TreeRoot(cell.low, cell.unit, cell.depth) for cell in bounds.cells if cell.depth)
    return TreeQuery(column.name, column.sql_type, roots, column.source) if roots else None


def attribute_from_tree(column: Undiscovered, bounds: Bounds, tree: NoisyTree | None) -> Attribute:
    """Bins from the first cell that stands out to the last: leaves, and one for each gap between."""
    kind = column.type
    room = max(1, column.max_codes - column.nullable)
    cuts = _within(column, kind, _cuts(bounds, tree, room))
    edges = tuple(edge_of(kind, cut) for cut in cuts)
    return Attribute(
        column.name,
        column.sql_type,
        binned_kind(kind),
        edges=edges,
        nullable=column.nullable,
        ordered=True,
        origin="discovered",
        granularity=column.granularity,
        source=column.source,
    )


def _cuts(bounds: Bounds, tree: NoisyTree | None, room: int) -> list[Fraction]:
    """At most ``room`` bins: the deepest splits are given up first, then every second cut."""
    ends = {end for cell in bounds.cells for end in (cell.low, cell.high)}
    inner = (
        []
        if tree is None
        else sorted((level, _middle(tree.query, root, level, index)) for root, level, index in tree.split)
    )
    spare = max(0, room - (len(ends) - 1))
    cuts = sorted(ends | {cut for _, cut in inner[:spare]})
    while len(cuts) - 1 > room:
        cuts = [*cuts[:-1:2], cuts[-1]]
    return cuts


def _within(column: Undiscovered, kind: SqlType, cuts: list[Fraction]) -> list[Fraction]:
    """The cuts, ended where the catalog's bounds end; untouched if nothing would be left."""
    low = cuts[0] if column.least is None else max(cuts[0], Fraction(math.ceil(column.least)))
    high = cuts[-1]
    if column.most is not None:
        high = min(high, Fraction(math.floor(column.most) + 1))
    if kind.family == "float":
        low = cuts[0] if column.least is None else max(cuts[0], column.least)
        high = cuts[-1] if column.most is None else min(cuts[-1], column.most)
    return [low, *(cut for cut in cuts if low < cut < high), high] if low < high else cuts


def _middle(query: TreeQuery, root: int, level: int, index: int) -> Fraction:
    """Where a node of a tree is cut in two."""
    top = query.roots[root]
    if not 0 <= level < top.depth or not 0 <= index < 2**level:
        raise InternalError("a tree was split below its depth")
    return top.low + top.width * Fraction((1 << (top.depth - level - 1)) * (2 * index + 1))
