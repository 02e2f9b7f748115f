"""Noisy counts of a column's cells: which cells stand out, where to cut them, what the counts say together.

Pure post-processing, public in and out. A column of numbers or times is looked at four times
(docs/privacy.md, "Keys", "Grids"): at its exact values, where those that many rows share show (*atoms*), at a
coarse grid, and at two finer grids whose cuts follow from the answers so far.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.attributes.attribute import Granularity
from dpsyn_sql.attributes.grids import Cuts, after, everyday_cell, rounded
from dpsyn_sql.attributes.shape import Undiscovered
from dpsyn_sql.attributes.types import SqlType
from dpsyn_sql.fit.arrays import FloatArray, IntArray
from dpsyn_sql.planning.queries import NoisyKeys

STANDS_OUT = 4.5
"""Standard deviations that a cell's noisy count must exceed: of 500 empty cells one does so by luck in one
release of 600."""

LAPLACE_STANDS_OUT = 8.5
"""The same under Laplace noise, whose tails are heavier: as rare by luck."""

CARRIES_ON = 1.0
"""Deviations that suffice next to a cell that stands out: tails of a column lie there, not anywhere."""

FAR = 0.1
"""Deviations that are subtracted for each cell away from everyday values (one, the year 2000) if nothing
stands out, and that a cell needs more for each cell between it and the fullest one: luck is as likely in the
cell of 10^9 as in that of 10, but real values are not, and one row there ruins the mean."""

NEGATIVE = 2.0
"""Deviations that are subtracted for numbers below zero: few columns have any."""

LONGEST_RUN = 6
"""Adjacent cells that are looked at together where none stands out alone: a factor of 64."""

MOST_ATOMS = 256
"""Values that get cells of their own."""

APART = 4.0
"""Deviations of the difference of two halves that they must hold to be told apart."""

AGAIN = 0.5
"""Deviations that a part of a part needs."""

PIECE = 2.0
"""Deviations of noise that a piece of a cell should hold: half of them would show more shape and more
noise."""

FEWEST_PIECES, MOST_PIECES = 8, 512

TWO_PIECES = 3.0
"""Deviations from which a cell is cut at least once, so that tails keep their slope."""

REAL = 2.0
"""Deviations that a cell of the coarse grid needs beside its atoms, and a half of its cells."""

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
    """Values of [low, high) but for atoms, with their estimated number of units (of ``variance``); evenly
    spread for all that is known."""

    low: Fraction
    high: Fraction
    mass: float
    variance: float = 0.0


def atoms_of(column: Undiscovered, noisy: NoisyKeys) -> Atoms:
    """The heaviest values within the bounds of a column."""
    values = [Fraction(key) for key in noisy.keys if not isinstance(key, str)]
    inside = [index for index, value in enumerate(values) if _allowed(column, value)]
    heaviest = sorted(sorted(inside, key=lambda index: -noisy.values[index])[:MOST_ATOMS])
    counts = noisy.values[heaviest].astype(np.float64)
    return Atoms(tuple(values[index] for index in heaviest), counts, noisy.sigma)


def _allowed(column: Undiscovered, value: Fraction) -> bool:
    least, most = column.least, column.most
    return (least is None or least <= value) and (most is None or value <= most)


def occupied_cells(
    kind: SqlType, cells: Cells, atoms: Atoms, needed: float = STANDS_OUT
) -> NDArray[np.bool_]:
    """The cells that hold values: those whose noisy count exceeds ``needed`` deviations, and more far from
    the fullest cell, or that have an atom, and from each of them outwards the cells that exceed
    ``CARRIES_ON``; if there is none, the likeliest run of cells."""
    away = np.abs(np.arange(cells.counts.size) - int(np.argmax(cells.counts)))
    least = (needed + FAR * np.maximum(0, away - LONGEST_RUN)) * cells.sigma
    chosen: NDArray[np.bool_] = cells.counts > least
    chosen[_cells_with(atoms.values, cells.cuts)] = True
    if not chosen.any():
        positive = next((i for i, low in enumerate(cells.cuts) if low >= 0 and not kind.temporal), 0)
        everyday = everyday_cell(kind, cells.cuts)
        chosen[_likeliest_run(cells.counts / cells.sigma, everyday, positive)] = True
    likely = cells.counts > CARRIES_ON * cells.sigma
    while True:
        neighbours = np.zeros_like(chosen)
        neighbours[1:] |= chosen[:-1]
        neighbours[:-1] |= chosen[1:]
        more = neighbours & likely & ~chosen
        if not more.any():
            return chosen
        chosen |= more


def stand_out(cells: Cells, chosen: NDArray[np.bool_], atoms: Atoms) -> bool:
    """Whether the cells that hold values do so together: their sum exceeds ``STANDS_OUT`` of its own
    deviations, or there is an atom."""
    mass = float(cells.counts[chosen].sum())
    return bool(atoms.values) or mass > STANDS_OUT * cells.sigma * math.sqrt(np.count_nonzero(chosen))


def _likeliest_run(deviations: FloatArray, everyday: int, positive: int) -> slice:
    """The run of adjacent cells whose sum stands out most, in its own deviations, less ``FAR`` a cell, and
    less ``NEGATIVE`` if it begins before the cell ``positive``.

    Values of one column mostly lie in a few powers of two side by side: their sum shows where one cell
    does not.
    """
    sums = np.concatenate([[0.0], np.cumsum(deviations)])
    best, likeliest = -np.inf, slice(0, 1)
    for length in range(1, min(LONGEST_RUN, len(deviations)) + 1):
        first = np.arange(len(deviations) - length + 1)
        away = np.maximum(0, np.maximum(first - everyday, everyday - (first + length - 1)))
        scores = (
            (sums[length:] - sums[:-length]) / np.sqrt(length) - FAR * away - NEGATIVE * (first < positive)
        )
        start = int(np.argmax(scores))
        if scores[start] > best:
            best, likeliest = scores[start], slice(start, start + length)
    return likeliest


def _cells_with(values: Sequence[Fraction], cuts: Cuts) -> IntArray:
    """The cell of each value that lies in one; values are ascending, and so are the cells."""
    inside = [value for value in values if cuts[0] <= value < cuts[-1]]
    cells, cell = [], 0
    for value in inside:
        while value >= cuts[cell + 1]:
            cell += 1
        cells.append(cell)
    return np.array(cells, dtype=np.int64)


def without_atoms(cells: Cells, chosen: NDArray[np.bool_], atoms: Atoms) -> tuple[Piece, ...]:
    """The chosen cells with their counts less those of the atoms in them."""
    atoms_in = np.bincount(_cells_with(atoms.values, cells.cuts), minlength=len(chosen))
    rests = _rests(cells, atoms)
    return tuple(
        Piece(
            cells.cuts[cell],
            cells.cuts[cell + 1],
            float(rests[cell]),
            cells.sigma**2 + int(atoms_in[cell]) * atoms.sigma**2,
        )
        for cell in np.flatnonzero(chosen).tolist()
    )


def refined_cuts(
    kind: SqlType,
    pieces: Sequence[Piece],
    atoms: Atoms,
    sigma: float,
    granularity: Granularity | None,
) -> Cuts:
    """Cuts for a closer look at the parts that hold values.

    A part is cut by its mass, into about one cell for each ``PIECE`` deviations of the noise ``sigma``
    (units) that the closer look will have. An atom is a cell of its own, and so is all that lies between two
    parts.
    """
    masses = np.maximum([piece.mass for piece in pieces], 0.0)
    total = float(masses.sum())
    number = min(MOST_PIECES, max(FEWEST_PIECES, int(total / (PIECE * sigma))))
    step = Fraction(granularity) if isinstance(granularity, int) else Fraction(1)
    cuts: set[Fraction] = set()
    for piece, mass in zip(pieces, masses.tolist(), strict=True):
        wanted = number * mass / total if total > 0 else 0.0
        if mass > TWO_PIECES * sigma:
            wanted = max(wanted, 2.0)
        cuts |= {piece.low, piece.high} | _inner_cuts(kind, piece.low, piece.high, wanted, step)
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
    inside = [index for index, v in enumerate(atoms.values) if cells.cuts[0] <= v < cells.cuts[-1]]
    rests = cells.counts.copy()
    np.subtract.at(rests, _cells_with(atoms.values, cells.cuts), atoms.counts[inside])
    return rests


def with_finer_counts(
    kind: SqlType, stretches: Sequence[Piece], atoms: Atoms, fine: Cells, again: bool = False
) -> tuple[tuple[Piece, ...], Atoms]:
    """What earlier answers and a closer look say together: parts ascending, and the atoms.

    The number of units of an atom, and of a part, is the mean of both looks at it, each weighted by its
    inverse variance. What lies in a part is shared out among its cells (``_shared_out``). A gap between parts
    holds values if its count stands out; where in it is seen by the next look, and guessed after the last one
    (``again``).
    """
    single = {value: index for index, value in enumerate(atoms.values)}
    atom_of = [single.get(low) for low in fine.cuts[:-1]]
    counts = atoms.counts.copy()
    for cell, atom in enumerate(atom_of):
        if atom is not None:
            counts[atom] = _mean(counts[atom], atoms.sigma**2, fine.counts[cell], fine.sigma**2)
    sigma = 1 / math.sqrt(1 / fine.sigma**2 + 1 / atoms.sigma**2) if atoms.values else 0.0
    groups, gaps = _cells_of_parts(stretches, fine.cuts, atom_of)
    estimates = []
    for stretch, inside in zip(stretches, groups, strict=True):
        if inside:
            noise = len(inside) * fine.sigma**2
            mass = _mean(stretch.mass, stretch.variance, float(fine.counts[inside].sum()), noise)
            estimates.append((inside, mass, 1 / (1 / stretch.variance + 1 / noise)))
    needed = AGAIN if again else _needed(estimates, float(counts.sum()))
    sure = STANDS_OUT if needed == REAL else needed
    likely = [
        (_shared_out(fine, inside, mass), mass > sure * math.sqrt(variance))
        for inside, mass, variance in estimates
        if mass > needed * math.sqrt(variance)
    ]
    cells = [(fine.cuts[cell], fine.cuts[cell + 1]) for cell, atom in enumerate(atom_of) if atom is not None]
    fuller = _carried_on(likely, cells)
    full_gaps = [cell for cell in gaps if fine.counts[cell] > STANDS_OUT * fine.sigma]
    pieces = [_evenly(fine, [cell], float(fine.counts[cell]))[0] for cell in full_gaps]
    fuller += [end for piece in pieces for end in _ends_beside(kind, piece, fuller)] if again else pieces
    return tuple(sorted(fuller, key=lambda piece: piece.low)), Atoms(atoms.values, counts, sigma)


def _ends_beside(kind: SqlType, gap: Piece, neighbours: Sequence[Piece]) -> list[Piece]:
    """The ends of a gap, each about as wide as the known piece beside it: values lie where others do. The
    whole gap if they fill it, or if the type has no value where one of them would end."""
    left = max(
        (piece for piece in neighbours if piece.high <= gap.low), key=lambda piece: piece.high, default=None
    )
    right = min(
        (piece for piece in neighbours if piece.low >= gap.high), key=lambda piece: piece.low, default=None
    )
    ends = [] if left is None else [(gap.low, rounded(kind, gap.low + left.high - left.low))]
    ends += [] if right is None else [(rounded(kind, gap.high - right.high + right.low), gap.high)]
    widths = [high - low for low, high in ends]
    if not ends or min(widths) <= 0 or sum(widths) >= gap.high - gap.low:
        return [gap]
    return [Piece(low, high, gap.mass / len(ends), gap.variance) for low, high in ends]


def _carried_on(
    likely: Sequence[tuple[list[Piece], bool]], atoms: Sequence[tuple[Fraction, Fraction]]
) -> list[Piece]:
    """The pieces of parts that are sure, and of others that carry on where sure values or atoms end.

    A tail begins where the values beside it end; a light part beside values that end far from it is noise.
    """
    stretches = [(pieces[0].low, pieces[-1].high, sure, pieces) for pieces, sure in likely]
    stretches += [(low, high, True, []) for low, high in atoms]
    stretches.sort(key=lambda stretch: stretch[:2])
    carried = [sure for _, _, sure, _ in stretches]
    for index in range(1, len(stretches)):
        carried[index] |= carried[index - 1] and stretches[index][0] <= stretches[index - 1][1]
    for index in range(len(stretches) - 2, -1, -1):
        carried[index] |= carried[index + 1] and stretches[index + 1][0] <= stretches[index][1]
    if not any(carried):
        carried = [True] * len(stretches)
    return [
        piece for (_, _, _, pieces), keep in zip(stretches, carried, strict=True) if keep for piece in pieces
    ]


def _needed(estimates: Sequence[tuple[list[int], float, float]], atoms: float) -> float:
    """Deviations that a part needs: none in a small table, of which too much is below the noise."""
    mass_in_all = atoms + sum(part_mass for _, part_mass, _ in estimates)
    deviation = math.sqrt(sum(variance for _, _, variance in estimates))
    return REAL if mass_in_all > CLEAR * deviation else 0.0


def _cells_of_parts(
    pieces: Sequence[Piece], cuts: Cuts, atom_of: Sequence[int | None]
) -> tuple[list[list[int]], list[int]]:
    """The cells without atoms that begin in each part, and those that begin in none."""
    groups: list[list[int]] = [[] for _ in pieces]
    gaps: list[int] = []
    index = 0
    for cell, low in enumerate(cuts[:-1]):
        while index < len(pieces) and pieces[index].high <= low:
            index += 1
        if atom_of[cell] is None:
            inside = index < len(pieces) and pieces[index].low <= low
            (groups[index] if inside else gaps).append(cell)
    return groups, gaps


def with_atoms(kind: SqlType, pieces: Sequence[Piece], atoms: Atoms) -> tuple[Piece, ...]:
    """Parts and atoms above 0, ascending: none overlaps another."""
    single = [
        Piece(value, after(kind, value), float(count))
        for value, count in zip(atoms.values, atoms.counts, strict=True)
        if count > 0
    ]
    return tuple(sorted([*pieces, *single], key=lambda piece: piece.low))


def _mean(first: float, first_variance: float, second: float, second_variance: float) -> float:
    """The mean of two estimates, weighted by their inverse variances."""
    return float((first * second_variance + second * first_variance) / (first_variance + second_variance))


def _shared_out(fine: Cells, run: Sequence[int], mass: float) -> list[Piece]:
    """Pieces of adjacent cells that hold ``mass`` together, by halves (Hay et al. 2010, constrained
    inference, from the top).

    Each half gets its count and an equal part a cell of what is missing. A half is empty if it holds less
    than ``REAL`` deviations, and less than half of what would be even. Halves are not told apart where the
    whole is below ``APART`` deviations of their difference: it stays one piece.
    """
    counts = fine.counts[list(run)]
    sums = np.concatenate([[0.0], np.cumsum(counts)])
    pieces: list[Piece] = []
    todo = [(0, len(run), mass)]
    while todo:
        start, stop, run_mass = todo.pop()
        number, middle = stop - start, (start + stop) // 2
        share = (middle - start) / number
        noise = fine.sigma * math.sqrt(number * share * (1 - share))
        if number == 1 or run_mass < APART * noise:
            pieces += _evenly(fine, run[start:stop], run_mass)
            continue
        left, right = float(sums[middle] - sums[start]), float(sums[stop] - sums[middle])
        first = left + (run_mass - left - right) * share
        if first < min(REAL * noise, run_mass * share / 2):
            first = 0.0
        elif run_mass - first < min(REAL * noise, run_mass * (1 - share) / 2):
            first = run_mass
        todo += [(start, middle, first)] * (first > 0) + [(middle, stop, run_mass - first)] * (
            run_mass > first
        )
    return pieces


def _evenly(fine: Cells, cells: Sequence[int], mass: float) -> list[Piece]:
    """Cells as one piece, or more where others lie between them, evenly spread."""
    runs: list[list[int]] = []
    for cell in cells:
        if runs and runs[-1][-1] + 1 == cell:
            runs[-1].append(cell)
        else:
            runs.append([cell])
    ends = [(fine.cuts[run[0]], fine.cuts[run[-1] + 1]) for run in runs]
    width = sum((high - low for low, high in ends), Fraction(0))
    return [
        Piece(low, high, mass * float((high - low) / width), len(run) * fine.sigma**2)
        for (low, high), run in zip(ends, runs, strict=True)
    ]
