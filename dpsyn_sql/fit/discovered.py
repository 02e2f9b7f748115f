"""From noisy answers about a column to its attribute: pure post-processing, public in and out.

Numbers and times: pieces of estimated counts (``fit.cells``) become codes, the lightest neighbours together,
and what is known inside of a code becomes its fill. Categories are in ``fit.found_labels``.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

import numpy as np

from dpsyn_sql.domain.attributes import FILL_PIECES, Attribute, Granularity
from dpsyn_sql.domain.grids import Cuts, after, binned_kind, edge_of, rounded
from dpsyn_sql.domain.shape import Undiscovered
from dpsyn_sql.domain.types import SqlType
from dpsyn_sql.fit.cells import Piece

ATOM_WEIGHT = 2.0
"""How much heavier an atom counts when neighbours are merged: a value of its own is lost in a longer bin."""

GAP_WEIGHT = 2.0
"""The same for neighbours with a gap between them, which pieces of the fill may have to cross."""


def attribute_of_cuts(column: Undiscovered, cuts: Sequence[Fraction]) -> Attribute:
    """Bins between cuts of which nothing more is known."""
    room = max(1, column.max_codes - column.nullable)
    while len(cuts) - 1 > room:
        cuts = [*cuts[:-1:2], cuts[-1]]
    return _binned(column, cuts, (), column.granularity)


def attribute_of_pieces(
    column: Undiscovered, pieces: Sequence[Piece], granularity: Granularity | None
) -> Attribute:
    """Codes and their fill from pieces, ascending and at least one.

    As long as there are more codes than ``column.max_codes`` allows, the two neighbours that are lightest
    together become one. No code stands for a gap: values there belong to the nearer code, and are not
    written.
    """
    kind = column.type
    groups = _merged(kind, pieces, max(1, column.max_codes - column.nullable))
    inner = [_between(kind, one[-1].high, two[0].low) for one, two in pairwise(groups)]
    cuts = [groups[0][0].low, *inner, groups[-1][-1].high]
    return _binned(column, cuts, tuple(_fill(kind, group) for group in groups), granularity)


def _binned(
    column: Undiscovered,
    cuts: Sequence[Fraction],
    fill: tuple[Cuts, ...],
    granularity: Granularity | None,
) -> Attribute:
    kind = column.type
    return Attribute(
        column.name,
        column.sql_type,
        binned_kind(kind),
        edges=tuple(edge_of(kind, cut) for cut in cuts),
        nullable=column.nullable,
        ordered=True,
        origin="discovered",
        granularity=granularity,
        source=column.source,
        fill=tuple(tuple(edge_of(kind, cut) for cut in own) for own in fill),
    )


def _merged(kind: SqlType, pieces: Sequence[Piece], room: int) -> list[list[Piece]]:
    groups = [[piece] for piece in pieces]
    weights = [piece.mass * (ATOM_WEIGHT if _single(kind, piece) else 1.0) for piece in pieces]
    while len(groups) > room:
        together = np.array(weights[:-1]) + np.array(weights[1:])
        gaps = np.array([one[-1].high < two[0].low for one, two in pairwise(groups)])
        place = int(np.argmin(together * np.where(gaps, GAP_WEIGHT, 1.0)))
        groups[place] += groups.pop(place + 1)
        weights[place] += weights.pop(place + 1)
    return groups


def _single(kind: SqlType, piece: Piece) -> bool:
    """Whether a piece holds one value."""
    return after(kind, piece.low) == piece.high


def _between(kind: SqlType, end: Fraction, start: Fraction) -> Fraction:
    """Where values between two codes change from the lower to the upper."""
    return end if end == start else max(end, rounded(kind, (end + start) / 2))


def _fill(kind: SqlType, group: Sequence[Piece]) -> Cuts:
    """The values of a code: one, evenly over one piece, or ``FILL_PIECES`` pieces of equal probability."""
    if len(group) == 1:
        (piece,) = group
        return (piece.low,) if _single(kind, piece) else (piece.low, piece.high)
    ends = np.cumsum([piece.mass for piece in group])
    cuts = [group[0].low]
    for part in range(1, FILL_PIECES):
        wanted = float(ends[-1]) * part / FILL_PIECES
        place = int(np.searchsorted(ends, wanted))
        piece = group[place]
        inside = 1 - (float(ends[place]) - wanted) / piece.mass
        cut = piece.low if _single(kind, piece) else _inside(kind, piece, inside)
        cuts.append(max(cuts[-1], cut))
    return (*cuts, group[-1].high)


def _inside(kind: SqlType, piece: Piece, share: float) -> Fraction:
    cut = rounded(kind, piece.low + (piece.high - piece.low) * Fraction(min(1.0, max(0.0, share))))
    return min(piece.high, max(piece.low, cut))
