"""Noisy counts of a column's cells: which cells stand out, where to cut them, what the counts say together.

Pure post-processing, public in and out. A column of numbers or times is looked at three times
(docs/privacy.md, "Keys", "Grids"): at its exact values, where those that many rows share show (*atoms*), at a
coarse grid, and at a finer grid whose cuts follow from these two answers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.domain.attributes import Granularity
from dpsyn_sql.domain.grids import Cuts, after, binned_kind, everyday_cell, rounded
from dpsyn_sql.domain.shape import Undiscovered
from dpsyn_sql.domain.types import SqlType
from dpsyn_sql.planning.queries import NoisyKeys

FloatArray = NDArray[np.float64]

STANDS_OUT = 4.5
"""Standard deviations that a cell's noisy count must exceed: of 500 empty cells one does so by luck in one
release of 600; in one of three with the heavier tails of Laplace noise. It costs a bin that stays empty."""

CARRIES_ON = 2.0
"""Deviations that suffice next to a cell that stands out: tails of a column lie there, not anywhere."""

FAR = 0.1
"""Deviations that are subtracted for each cell away from everyday values (one, the year 2000) if nothing
stands out: luck is as likely in the cell of 10^9 as in that of 10, but real values are not."""

NEGATIVE = 2.0
"""Deviations that are subtracted for numbers below zero: few columns have any."""

LONGEST_RUN = 6
"""Adjacent cells that are looked at together where none stands out alone: a factor of 64."""

MOST_ATOMS = 256
"""Values that get cells of their own."""

PIECE = 2.0
"""Deviations of noise that a piece of a cell should hold: half of them would show more shape and more
noise."""

FEWEST_PIECES, MOST_PIECES = 8, 512

TWO_PIECES = 3.0
"""Deviations from which a cell is cut at least once, so that tails keep their slope."""

REAL = 2.5
"""Deviations that values which are no atoms need in all, and again in each cell of the coarse grid."""

CLEAR = 20.0
"""Deviations of the noise of all cells together that a column must hold before cells that stand out no more
are taken for empty: of a small table too much is below the noise."""


@dataclass(frozen=True, slots=True)
class Cells:
    """Adjacent cells [cuts[i], cuts[i + 1]) and their noisy counts of deviation ``sigma`` (units)."""

    cuts: Cuts
    counts: FloatArray
    sigma: float


@dataclass(frozen=True, slots=True)
class Atoms:
    """Values that many units share exactly, ascending, with noisy counts of deviation ``sigma``."""

    values: Cuts = ()
    counts: FloatArray = field(default_factory=lambda: np.zeros(0))
    sigma: float = 0.0


@dataclass(frozen=True, slots=True)
class Piece:
    """Values of [low, high) with their estimated number of units, above 0; evenly spread for all that is
    known."""

    low: Fraction
    high: Fraction
    mass: float


def atoms_of(column: Undiscovered, found: NoisyKeys) -> Atoms:
    """The heaviest values within the bounds of a column."""
    values = [Fraction(key) for key in found.keys if not isinstance(key, str)]
    inside = [place for place, value in enumerate(values) if _allowed(column, value)]
    heaviest = sorted(sorted(inside, key=lambda place: -found.values[place])[:MOST_ATOMS])
    counts = found.values[heaviest].astype(np.float64)
    return Atoms(tuple(values[place] for place in heaviest), counts, found.sigma)


def _allowed(column: Undiscovered, value: Fraction) -> bool:
    least, most = column.least, column.most
    return (least is None or least <= value) and (most is None or value <= most)


def standing_cells(kind: SqlType, cells: Cells, atoms: Atoms) -> NDArray[np.bool_]:
    """The cells that hold values: those whose noisy count exceeds ``STANDS_OUT`` deviations or that have an
    atom, and from each of them outwards the cells that exceed ``CARRIES_ON``; if there is none, the likeliest
    run of cells."""
    chosen = cells.counts > STANDS_OUT * cells.sigma
    chosen[_cells_with(atoms.values, cells.cuts)] = True
    if not chosen.any():
        numbers = binned_kind(kind) == "numeric"
        positive = next((i for i, low in enumerate(cells.cuts) if low >= 0), 0) if numbers else 0
        everyday = everyday_cell(kind, cells.cuts)
        chosen[_likeliest_run(cells.counts / cells.sigma, everyday, positive)] = True
    likely = cells.counts > CARRIES_ON * cells.sigma
    while True:
        beside = np.zeros_like(chosen)
        beside[1:] |= chosen[:-1]
        beside[:-1] |= chosen[1:]
        more = beside & likely & ~chosen
        if not more.any():
            return chosen
        chosen |= more


def _likeliest_run(deviations: FloatArray, everyday: int, positive: int) -> slice:
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


def _cells_with(values: Sequence[Fraction], cuts: Cuts) -> NDArray[np.int64]:
    """The cell of each value that lies in one; values are ascending, and so are the cells."""
    inside = [value for value in values if cuts[0] <= value < cuts[-1]]
    places, place = [], 0
    for value in inside:
        while value >= cuts[place + 1]:
            place += 1
        places.append(place)
    return np.array(places, dtype=np.int64)


def refined_cuts(
    kind: SqlType,
    cells: Cells,
    chosen: NDArray[np.bool_],
    atoms: Atoms,
    sigma: float,
    granularity: Granularity | None,
) -> Cuts:
    """Cuts for a second look at the cells that hold values.

    A cell gets pieces by its noisy count less that of its atoms, about one for each ``PIECE`` deviations of
    the noise ``sigma`` (units) that the second look will have. An atom is a cell of its own, and so is all
    that lies between two cells that hold values.
    """
    places = np.flatnonzero(chosen)
    rests = _rests(cells, atoms)
    rests = np.where(chosen, np.maximum(rests, 0.0), 0.0)
    total = float(rests.sum())
    number = min(MOST_PIECES, max(FEWEST_PIECES, int(total / (PIECE * sigma))))
    step = Fraction(granularity) if isinstance(granularity, int) else Fraction(1)
    cuts: set[Fraction] = set()
    for place in places.tolist():
        low, high = cells.cuts[place], cells.cuts[place + 1]
        cuts |= {low, high}
        wanted = number * float(rests[place]) / total if total > 0 else 0.0
        if rests[place] > TWO_PIECES * sigma:
            wanted = max(wanted, 2.0)
        cuts |= _inner_cuts(kind, low, high, wanted, step)
    for value in atoms.values:
        cuts |= {value, after(kind, value)}
    return tuple(sorted(cuts))


def _inner_cuts(kind: SqlType, low: Fraction, high: Fraction, wanted: float, step: Fraction) -> set[Fraction]:
    """Equal pieces, a power of two of them, not narrower than a step, at whole multiples of it."""
    number = 1 << max(0, math.ceil(math.log2(wanted))) if wanted > 1 else 1
    if kind.family != "float":
        while number > 1 and (high - low) / number < step:
            number //= 2
    inner = (low + (high - low) * Fraction(part, number) for part in range(1, number))
    if kind.family != "float":
        inner = (step * math.ceil(cut / step) for cut in inner)
    return {cut for cut in (rounded(kind, cut) for cut in inner) if low < cut < high}


def _rests(cells: Cells, atoms: Atoms) -> FloatArray:
    """Counts of the cells less those of the atoms in them."""
    inside = [place for place, v in enumerate(atoms.values) if cells.cuts[0] <= v < cells.cuts[-1]]
    rests = cells.counts.copy()
    np.subtract.at(rests, _cells_with(atoms.values, cells.cuts), atoms.counts[inside])
    return rests


def pieces_of(cells: Cells, chosen: NDArray[np.bool_], atoms: Atoms, fine: Cells) -> tuple[Piece, ...]:
    """What the three answers say together, ascending; cells that are nothing but noise are left out.

    The number of units of an atom, and of a coarse cell without its atoms, is the mean of both looks at it,
    each weighted by its inverse variance. A coarse cell whose estimate is below ``REAL`` deviations is empty.
    Its pieces are the nearest non-negative numbers of that sum, so that no noise is added by cutting it at
    zero.
    """
    single = dict(zip(atoms.values, range(len(atoms.values)), strict=True))
    parents = _parents(cells.cuts, fine.cuts)
    own = [single.get(low) for low in fine.cuts[:-1]]
    found: list[Piece] = []
    for place, atom in enumerate(own):
        if atom is not None:
            mass = _mean(atoms.counts[atom], atoms.sigma**2, fine.counts[place], fine.sigma**2)
            if mass > 0:
                found.append(Piece(fine.cuts[place], fine.cuts[place + 1], mass))
    rests, held = (
        _rests(cells, atoms),
        np.bincount(_cells_with(atoms.values, cells.cuts), minlength=len(chosen)),
    )
    groups: dict[int, list[int]] = {}
    for place, parent in enumerate(parents):
        if own[place] is None:
            groups.setdefault(parent if chosen[parent] else -1 - place, []).append(place)
    estimates: dict[int, tuple[float, float]] = {}
    for parent, places in groups.items():
        counted, variance = float(fine.counts[places].sum()), len(places) * fine.sigma**2
        if parent >= 0:
            noise = cells.sigma**2 + held[parent] * atoms.sigma**2
            estimates[parent] = (
                _mean(float(rests[parent]), noise, counted, variance),
                1 / (1 / noise + 1 / variance),
            )
        else:  # a gap
            estimates[parent] = (counted, (STANDS_OUT / REAL) ** 2 * variance)
    total = sum(mass for mass, _ in estimates.values())
    deviation = math.sqrt(sum(variance for _, variance in estimates.values()))
    known = total + sum(piece.mass for piece in found)
    needed = REAL if known > CLEAR * deviation else 0.0
    if found and total < needed * deviation:
        return tuple(sorted(found, key=lambda piece: piece.low))
    for parent, places in groups.items():
        mass, variance = estimates[parent]
        if mass > needed * math.sqrt(variance):
            for place, part in zip(places, _of_sum(fine.counts[places], mass).tolist(), strict=True):
                if part > 0:
                    found.append(Piece(fine.cuts[place], fine.cuts[place + 1], part))
    return tuple(sorted(found, key=lambda piece: piece.low))


def _parents(coarse: Cuts, fine: Cuts) -> list[int]:
    """Of each fine cell the coarse cell in which it begins."""
    return [int(place) for place in _cells_with(fine[:-1], coarse)]


def _mean(one: float, variance: float, other: float, its: float) -> float:
    """The mean of two estimates, weighted by their inverse variances."""
    return float((one * its + other * variance) / (variance + its))


def _of_sum(values: FloatArray, total: float) -> FloatArray:
    """The nearest non-negative numbers of a sum above 0 (projection onto a simplex)."""
    descending = np.sort(values)[::-1]
    excess = (np.cumsum(descending) - total) / np.arange(1, values.size + 1)
    last = int(np.flatnonzero(descending > excess)[-1])
    return np.asarray(np.maximum(values - excess[last], 0.0))
