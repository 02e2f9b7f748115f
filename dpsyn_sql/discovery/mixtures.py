"""Which mixture of values and smooth parts made the noisy counts of a column's cells; public.

Of a small table the noise of a cell is often larger than its count, but a column of numbers has few
parameters: the shares of NULL and of a few small whole numbers (*atoms*), and one or a few humps (*smooth
parts*), each a log-normal distribution with a width of its own on each side (after Fernandez and Steel 1998),
or a normal one where values lie on both sides of zero. All cells together say what no single cell says.

The mixture is found by matching pursuit (Mallat and Zhang 1993): the atom or part of a dictionary that
explains most of what is left is added, as long as it explains more than its cost; all weights are fitted
again by non-negative least squares. Costs stand for how common each feature is among columns, as in the
minimum description length: an atom at 0 is cheap, a second hump far from the first is dear. The parameters of
a part are then refined with its neighbours held.

Noise has the same deviation in every cell, so least squares is maximum likelihood.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize, nnls
from scipy.special import ndtr, ndtri

from dpsyn_sql.attributes.grids import NONE_CODES, YEARS
from dpsyn_sql.fit.arrays import FloatArray, IntArray, snapped

NULL_COST = 3.0
"""Squared deviations that the share of NULL must explain; in each list of costs, of cells in log-likelihood
ratios of about 2."""

ATOM_COSTS = ((0, 1, 2.0), (2, 5, 8.0), (6, 12, 10.0), (13, 64, 13.0))
"""Costs of the whole numbers from the first to the second; below zero ``BELOW_ZERO``."""

BELOW_ZERO = 15.0

SPECIAL_COSTS = ((65, 128, 15.0), (*YEARS, 17.0))
NONE_COST, ANY_COST = 13.0, (6.0, 20.0)
"""The same of further whole numbers, and of codes for none; of any other value that is alone in its cell the
first of ``ANY_COST`` and 2 ln n of n such cells, the second at most."""

FAR_ATOM = 9.0
"""More for an atom that lies more than ``_FAR`` octaves above all else, where noise would ruin the mean, and
for one up to ``_SMALLEST`` as far below all else (a 1 beside years), a third of it for zero."""

BINARY = 12.0
"""Squared deviations by which 0 and 1, or 1 and 2, alone beat anything else: no third value was seen."""

BESIDE_ATOM = 5.0
"""The most that a whole number next to another atom costs: scales have no holes."""

FIRST_PART, PART_AT_ONCE, FURTHER_PART = 16.0, 14.0, 24.0
"""Costs of the first smooth part beside atoms, of one without any, and of each further one."""

FAR_PART = 10.0
"""More for a further part that lies more than ``_FAR`` octaves from everything found: a hump of noise there
would ruin the mean."""

MOST_PARTS, MOST_TERMS = 3, 32

_FAR, _WIDE = 2.0, 0.5  # octaves
_SMALLEST = 12
_WIDTHS = (0.05, 0.1, 0.18, 0.3, 0.5, 0.8, 1.25, 2.0)  # octaves
_WIDTHS_OF_YEARS = (0.0015, 0.003, 0.006, 0.0125, 0.025)  # octaves: 2 to 34 years
_CENTRES, _CENTRES_BELOW = np.arange(-6, 45, 0.125), np.arange(-6, 45, 0.5)
_MEANS, _DEVIATIONS = (-5.0, 0.0, 1.0, 2.5, 5.0, 10.0, 20.0), (2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 512.0)
_FEWEST_STEPS, _FIRST_STEP = 6, 4.0  # a narrower part is a few atoms
_REFUSED = 1e18  # finite: the simplex subtracts misfits
_OF_TOTAL = 0.01  # relative error that the total is taken to have
_SNAP, _SNAP_OF_YEARS = 2.0**-8, 2.0**-16


@dataclass(frozen=True)
class Cellular:
    """The cells of a grid as a mixture sees them.

    ``bounds`` (float64[k + 1], ascending): cell i holds the multiples of the step between bounds[i] and
    bounds[i + 1]; bounds lie half a step before the first of them, so that a smooth part rounded to steps has
    the share F(bounds[i + 1]) - F(bounds[i]) of cell i. ``singles`` (bool[k]): cells of one value, or one
    multiple of the step, which is ``values`` (float64[k]). After the k cells comes NULL. ``step``: of the
    values, 0 for none. ``owners`` (int64[k]): the cell that each is counted as.
    """

    bounds: FloatArray
    singles: NDArray[np.bool_]
    values: FloatArray
    step: float
    owners: IntArray

    def shares(self, part: Part) -> FloatArray:
        """Of each cell, and of NULL, the share of a smooth part (float64[k + 1])."""
        masses = np.maximum(np.diff(part.cdf(self.bounds)), 0.0)
        return np.append(np.bincount(self.owners, weights=masses, minlength=masses.size), 0.0)

    @cached_property
    def atom_costs(self) -> FloatArray:
        """Of an atom in each cell and of NULL (float64[k + 1]); infinite where a cell has many values."""
        least, most = ANY_COST
        number = max(int(np.count_nonzero(self.singles)), 1)
        costs = np.full(self.singles.size, min(most, least + 2 * np.log(number)))
        costs[self.values < 0] = np.maximum(costs, BELOW_ZERO)[self.values < 0]
        costs[(self.values < 0) & (self.values >= -5)] = BELOW_ZERO
        integral = self.values % 1 == 0
        for first, last, cost in SPECIAL_COSTS:
            special = integral & (self.values >= first) & (self.values <= last)
            costs[special] = np.minimum(costs[special], cost)
        costs[np.isin(self.values, NONE_CODES)] = np.minimum(costs, NONE_COST)[
            np.isin(self.values, NONE_CODES)
        ]
        for first, last, cost in ATOM_COSTS:
            costs[integral & (self.values >= first) & (self.values <= last)] = cost
        return np.append(np.where(self.singles, costs, np.inf), NULL_COST)

    @cached_property
    def dictionary(self) -> tuple[list[Part], FloatArray, FloatArray]:
        """Smooth parts, their shares of cells divided by their length (one row each), and their costs."""
        candidates = list[Part]()
        for sign, centres in ((1, _CENTRES), (-1, _CENTRES_BELOW)):
            candidates += [
                Hump(sign, centre, width, width) for centre in centres.tolist() for width in _WIDTHS
            ]
        candidates += [
            Hump(1, float(np.log2(year)), width, width)
            for year in range(YEARS[0] + 4, YEARS[1], 4)
            for width in _WIDTHS_OF_YEARS
        ]
        candidates += [
            Bell(mean, width) for mean in _MEANS for width in _DEVIATIONS if abs(mean) <= 2 * width
        ]
        low, high = self.bounds[1], self.bounds[-2]
        fitting = [
            part for part in candidates if self.fits(part) and part.reach[1] > low and part.reach[0] < high
        ]
        shares = np.array([self.shares(part) for part in fitting]).reshape(
            len(fitting), self.singles.size + 1
        )
        lengths = np.sqrt(np.maximum((shares**2).sum(axis=1, keepdims=True), 1e-12))
        return fitting, shares / lengths, np.array([part.cost for part in fitting])

    @cached_property
    def reaches(self) -> tuple[FloatArray, FloatArray]:
        """The least and the largest value of each part of the dictionary."""
        lows, highs = np.array([part.reach for part in self.dictionary[0]]).T
        return lows, highs

    def fits(self, part: Part) -> bool:
        """Whether a part spans several steps and lies beyond the first one: what is narrower is atoms."""
        least, most = part.reach
        within = isinstance(part, Hump) and 2.0**part.centre < _FIRST_STEP * self.step
        return self.step == 0 or (most - least >= _FEWEST_STEPS * self.step and not within)


@dataclass(frozen=True, slots=True)
class Mixture:
    """What was found: atoms by cell (the cell after the last is NULL), smooth parts, and their rows
    (float64, none negative), the atoms first."""

    atoms: tuple[int, ...]
    parts: tuple[Part, ...]
    rows: FloatArray

    @property
    def values(self) -> dict[int, float]:
        """Rows of the atoms by cell."""
        return dict(zip(self.atoms, self.rows.tolist(), strict=False))

    @property
    def smooth(self) -> list[tuple[Part, float]]:
        """The smooth parts, each with its rows."""
        return list(zip(self.parts, self.rows[len(self.atoms) :].tolist(), strict=True))

    def reaching(self, limit: float) -> Mixture:
        """With wide smooth parts that end at so many widths. What is beyond the end of a narrow one hardly
        moves a deviation."""
        wide = [isinstance(part, Hump) and part.above >= _WIDE for part in self.parts]
        smooth_parts = zip(self.parts, wide, strict=True)
        return replace(
            self, parts=tuple(replace(part, limit=limit) if far else part for part, far in smooth_parts)
        )


@dataclass(frozen=True, slots=True)
class _Counts:
    """Noisy counts (float64[k + 1]) of deviation ``sigma``, and the noisy total (rows)."""

    cells: Cellular
    noisy: FloatArray
    sigma: float
    total: float


def mixture_of(cells: Cellular, noisy: FloatArray, sigma: float, total: float) -> Mixture:
    """The mixture that explains noisy counts best for its cost.

    The pursuit starts once with nothing and once with the likeliest smooth part: a scale of a few values and
    a narrow hump look alike at first.

    Args:
        cells: k cells.
        noisy: their counts and that of NULL, float64[k + 1] (rows).
        sigma: deviation of each (rows), above 0.
        total: rows in all, above 0; known much better than their sum.
    """
    counts = _Counts(cells, noisy, sigma, total)
    starts = [(_Found(), MOST_PARTS), (_Found(), 0)]
    if first := _likeliest_part(counts, noisy, _Found()):
        part = _refined(counts, first[1], noisy)
        starts.append((_Found(parts=((part, PART_AT_ONCE + first[1].cost),)), MOST_PARTS))
    pursued = [_pruned(counts, _pursued(counts, start, most)) for start, most in starts]
    scored = [(_weights(counts, terms)[1] + terms.cost, terms) for terms in pursued]
    scored += [(_weights(counts, terms)[1] + terms.cost - BINARY, terms) for terms in _binary(cells)]
    _, best = min(scored, key=lambda scored_terms: scored_terms[0])
    return Mixture(tuple(best.atoms), tuple(part for part, _ in best.parts), _weights(counts, best)[0])


@dataclass(frozen=True, slots=True)
class _Found:
    """What was found so far, and what each cost: atoms by cell, and smooth parts."""

    atoms: Mapping[int, float] = field(default_factory=dict)
    parts: tuple[tuple[Part, float], ...] = ()

    @property
    def cost(self) -> float:
        """Of all."""
        return sum(self.atoms.values()) + sum(cost for _, cost in self.parts)

    def each(self) -> Iterator[_Found]:
        """Without one atom or part, in order."""
        for atom in self.atoms:
            yield replace(self, atoms={cell: cost for cell, cost in self.atoms.items() if cell != atom})
        for index in range(len(self.parts)):
            yield replace(self, parts=(*self.parts[:index], *self.parts[index + 1 :]))


def _binary(cells: Cellular) -> Iterator[_Found]:
    """0 and 1 alone, and 1 and 2 alone, each with and without NULL."""
    for pair in ((0.0, 1.0), (1.0, 2.0)):
        pair_cells = np.flatnonzero(cells.singles & np.isin(cells.values, pair)).tolist()
        if len(pair_cells) == len(pair):
            atoms = {cell: float(cells.atom_costs[cell]) for cell in pair_cells}
            yield _Found(atoms)
            yield _Found({**atoms, cells.singles.size: NULL_COST})


def _pursued(counts: _Counts, terms: _Found, most: int) -> _Found:
    """What explains more than it costs, one after the other, with at most so many smooth parts."""
    for _ in range(MOST_TERMS):
        rows, _ = _weights(counts, terms)
        left = counts.noisy - _explained(counts, terms, rows)
        gain, atom, cost = _likeliest_atom(counts, left, terms.atoms)
        part = _likeliest_part(counts, left, terms) if len(terms.parts) < most else None
        if part is not None and part[0] > max(gain, 0.0):
            terms = replace(terms, parts=(*terms.parts, (_refined(counts, part[1], left), part[2])))
        elif gain > 0:
            terms = replace(terms, atoms={**terms.atoms, atom: cost})
        else:
            break
    return _all_refined(counts, terms)


def _pruned(counts: _Counts, terms: _Found) -> _Found:
    """Without atoms and parts that explain less than they cost, now that all are there."""
    best = _weights(counts, terms)[1] + terms.cost
    while without_one := list(terms.each()):
        scores = [_weights(counts, fewer)[1] + fewer.cost for fewer in without_one]
        if min(scores) > best:
            break
        best, terms = min(scores), without_one[int(np.argmin(scores))]
    return terms


def _likeliest_atom(counts: _Counts, left: FloatArray, atoms: Collection[int]) -> tuple[float, int, float]:
    """What an atom explains beyond its cost, its cell, and the cost."""
    costs, null = counts.cells.atom_costs.copy(), counts.noisy.size - 1
    for atom in atoms:
        if atom < null:
            for cell in _beside(counts.cells, atom):
                costs[cell] = min(costs[cell], BESIDE_ATOM)
    gains = np.maximum(left / counts.sigma, 0.0) ** 2 - costs
    gains[list(atoms)] = -np.inf
    best = int(np.argmax(gains))
    return float(gains[best]), best, float(costs[best])


def _beside(cells: Cellular, atom: int) -> IntArray:
    """The cells of the whole numbers before and after that of an atom, if it says that values are a scale:
    0 and 1 alone are common."""
    apart = np.abs(cells.values - cells.values[atom])
    return np.flatnonzero(cells.singles & (apart == 1) & (cells.values[atom] > 1))


def _likeliest_part(counts: _Counts, left: FloatArray, terms: _Found) -> tuple[float, Part, float] | None:
    """What the best smooth part of the dictionary explains beyond its cost, the part, and the cost."""
    candidates, directions, costs = counts.cells.dictionary
    if not candidates:
        return None
    costs = costs + (FURTHER_PART if terms.parts else FIRST_PART)
    reaches = [part.reach for part, _ in terms.parts]
    reaches += [(counts.cells.values[atom],) * 2 for atom in terms.atoms if atom < counts.noisy.size - 1]
    if reaches:
        costs = costs + FAR_PART * _are_far(*counts.cells.reaches, reaches)
    gains = (np.maximum(directions @ left, 0.0) / counts.sigma) ** 2 - costs
    best = int(np.argmax(gains))
    return float(gains[best]), candidates[best], float(costs[best])


def _are_far(
    lows: FloatArray, highs: FloatArray, reaches: Sequence[tuple[float, float]]
) -> NDArray[np.bool_]:
    """Whether each stretch of values from low to high lies octaves away from all others (bool[n])."""
    far = [
        (lows > max(2.0**_FAR * most, 1.0)) | (highs < min(least / 2.0**_FAR, least))
        for least, most in reaches
    ]
    return np.asarray(np.logical_and.reduce(far))


def _explained(counts: _Counts, terms: _Found, rows: FloatArray) -> FloatArray:
    return rows @ _design(counts, terms) if rows.size else np.zeros_like(counts.noisy)


def _design(counts: _Counts, terms: _Found) -> FloatArray:
    single = np.zeros((len(terms.atoms), counts.noisy.size))
    single[np.arange(len(terms.atoms)), list(terms.atoms)] = 1.0
    return np.array([*single, *(counts.cells.shares(part) for part, _ in terms.parts)])


def _weights(counts: _Counts, terms: _Found) -> tuple[FloatArray, float]:
    """Rows of atoms and parts by non-negative least squares, and the squared misfit in deviations."""
    if not terms.atoms and not terms.parts:
        return np.zeros(0), float(((counts.noisy / counts.sigma) ** 2).sum())
    design, deviation = _design(counts, terms), _OF_TOTAL * counts.total
    system = np.vstack([design.T / counts.sigma, np.full(len(design), 1 / deviation)])
    rows, _ = nnls(system, np.append(counts.noisy / counts.sigma, counts.total / deviation))
    misfit = float((((counts.noisy - rows @ design) / counts.sigma) ** 2).sum())
    return rows, misfit + _cost_of_far_atoms(counts, terms)


def _cost_of_far_atoms(counts: _Counts, terms: _Found) -> float:
    values, null = counts.cells.values, counts.noisy.size - 1
    reaches = [part.reach for part, _ in terms.parts]
    atom_values = [float(values[atom]) for atom in terms.atoms if atom < null]
    cost = 0.0
    for value in atom_values:
        other_reaches = [
            *reaches,
            *((atom_value, atom_value) for atom_value in atom_values if atom_value not in (value, 0.0)),
        ]
        if not other_reaches or value < 0:
            continue
        least, most = min(low for low, _ in other_reaches), max(high for _, high in other_reaches)
        if value <= _SMALLEST and least > 2.0**_FAR * max(value, 1.0) + 1:
            cost += FAR_ATOM if value else FAR_ATOM / 3
        elif value > 2.0**_FAR * max(most, 1.0):
            cost += FAR_ATOM
    return cost


def _all_refined(counts: _Counts, terms: _Found) -> _Found:
    """Each part refined to what the others leave, one after the other."""
    for index, (part, cost) in enumerate(terms.parts):
        rows, _ = _weights(counts, terms)
        number = len(terms.atoms) + index
        by_others = _explained(counts, terms, rows) - rows[number] * counts.cells.shares(part)
        to = _refined(counts, part, counts.noisy - by_others)
        terms = replace(terms, parts=(*terms.parts[:index], (to, cost), *terms.parts[index + 1 :]))
    return terms


def _refined(counts: _Counts, part: Part, left: FloatArray) -> Part:
    """The parameters near those of a part that explain ``left`` best (Nelder and Mead 1965), on a coarse
    grid: a replay on another machine finds the same."""
    start = part.start

    def misfit(to: FloatArray) -> float:
        if not counts.cells.fits(part.moved(to)):
            return _REFUSED
        shares = counts.cells.shares(part.moved(to))
        energy = float(shares @ shares)
        rows = max(float(left @ shares) / energy, 0.0) if energy > 0 else 0.0
        return float((((left - rows * shares) / counts.sigma) ** 2).sum()) / 2 + part.prior(to, start)

    options: dict[str, Any] = {"maxiter": 120, "xatol": 0.02, "fatol": 0.05}
    narrow = isinstance(part, Hump) and part.below < _WIDTHS[0]
    if narrow and isinstance(part, Hump):  # of years: moves of the usual length would leave the hump
        moves = np.diag([part.below, 0.4, 0.4])
        options |= {"initial_simplex": np.vstack([start, start + moves]), "xatol": part.below / 20}
    solution = minimize(misfit, start, method="Nelder-Mead", options=options)  # type: ignore[call-overload]
    to = snapped(np.asarray(solution.x), _SNAP_OF_YEARS if narrow else _SNAP)
    return part.moved(to) if misfit(to) < misfit(start) else part


# -- smooth parts ------------------------------------------------------------------------------------

# The smooth parts of a mixture: log-normal and normal distributions that end; public.

REACH = 2.8
"""Widths from its centre at which a smooth part ends, if nothing else is said: no value is drawn from where
a noisy count says nothing."""

NEGATIVE_PART, BOTH_SIGNS = 8.0, 5.0
"""More, in squared deviations, for a part below zero, and for one on both sides."""

HUGE = 0.5
"""More for each octave beyond ``_EVERYDAY``."""

_EVERYDAY, _USUAL_WIDTH = 16.0, 0.5
_ASYMMETRY = 0.5  # prior precision of the logarithm of the ratio of widths


@dataclass(frozen=True, slots=True)
class Hump:
    """A log-normal part on the side of ``sign`` (1, -1): in log2, centre ``centre`` with deviation ``below``
    towards zero and ``above`` away from it, cut off at ``limit`` deviations."""

    sign: int
    centre: float
    below: float
    above: float
    limit: float = REACH

    def cdf(self, values: FloatArray) -> FloatArray:
        """Share of the part below each value."""
        positive = np.maximum(values * self.sign, 0.0)
        with np.errstate(divide="ignore"):
            away = np.log2(positive) - self.centre
        deviations = np.clip(
            np.where(away < 0, away / self.below, away / self.above), -self.limit, self.limit
        )
        lower = 2 * self.below / (self.below + self.above)
        ends = ndtr(-self.limit)
        normal = (ndtr(deviations) - ends) / (1 - 2 * ends)
        share = np.where(deviations < 0, lower * normal, lower / 2 + (2 - lower) * (normal - 0.5))
        return np.asarray(share if self.sign > 0 else 1 - share)

    def quantiles(self, shares: FloatArray) -> FloatArray:
        """The values below which these shares of the part lie, ascending with them."""
        lower_shares = shares if self.sign > 0 else 1 - shares
        lower = 2 * self.below / (self.below + self.above)
        below = lower_shares < lower / 2
        normal = np.where(below, lower_shares / lower, 0.5 + (lower_shares - lower / 2) / (2 - lower))
        ends = ndtr(-self.limit)
        deviations = ndtri(ends + np.clip(normal, 0, 1) * (1 - 2 * ends))
        return np.asarray(
            self.sign * 2.0 ** (self.centre + np.where(below, self.below, self.above) * deviations)
        )

    @property
    def reach(self) -> tuple[float, float]:
        """Least and largest value."""
        near = self.sign * 2.0 ** (self.centre - self.limit * self.below)
        far = self.sign * 2.0 ** (self.centre + self.limit * self.above)
        return min(near, far), max(near, far)

    @property
    def cost(self) -> float:
        """Beyond that of any part: there are more places for a narrow one, and huge values are rare."""
        narrow = 2 * math.log(max(1.0, _USUAL_WIDTH / self.below))
        return narrow + HUGE * max(0.0, self.centre - _EVERYDAY) + (0.0 if self.sign > 0 else NEGATIVE_PART)

    @property
    def start(self) -> FloatArray:
        """The parameters that are refined."""
        return np.array([self.centre, math.log(self.below), math.log(self.above)])

    def moved(self, to: FloatArray) -> Hump:
        """The same with other parameters."""
        centre = float(np.clip(to[0], -12.0, 44.0))
        below, above = np.exp(np.clip(to[1:], -7.0, 1.3)).tolist()
        return replace(self, centre=centre, below=below, above=above)

    @staticmethod
    def prior(to: FloatArray, start: FloatArray) -> float:
        """Minus the logarithm of the prior of parameters: both widths are alike."""
        return float(_ASYMMETRY * (to[1] - to[2]) ** 2)


@dataclass(frozen=True, slots=True)
class Bell:
    """A normal part of values on both sides of zero, cut off at ``limit`` deviations."""

    mean: float
    deviation: float
    limit: float = REACH

    def cdf(self, values: FloatArray) -> FloatArray:
        """Share of the part below each value."""
        standard = np.clip((values - self.mean) / self.deviation, -self.limit, self.limit)
        ends = ndtr(-self.limit)
        return np.asarray((ndtr(standard) - ends) / (1 - 2 * ends))

    def quantiles(self, shares: FloatArray) -> FloatArray:
        """The values below which these shares of the part lie."""
        ends = ndtr(-self.limit)
        return np.asarray(self.mean + self.deviation * ndtri(ends + shares * (1 - 2 * ends)))

    @property
    def reach(self) -> tuple[float, float]:
        """Least and largest value."""
        return self.mean - self.limit * self.deviation, self.mean + self.limit * self.deviation

    @property
    def cost(self) -> float:
        """Beyond that of any part."""
        return BOTH_SIGNS

    @property
    def start(self) -> FloatArray:
        """The parameters that are refined."""
        return np.array([self.mean, math.log(self.deviation)])

    def moved(self, to: FloatArray) -> Bell:
        """The same with other parameters; the mean stays within a deviation of the start."""
        deviation = float(np.exp(np.clip(to[1], -3.0, 14.0)))
        return Bell(float(to[0]), deviation)

    def prior(self, to: FloatArray, start: FloatArray) -> float:
        """Minus the logarithm of the prior of parameters: near where they started."""
        return float(0.02 * (((to[0] - start[0]) / self.deviation) ** 2 + (to[1] - start[1]) ** 2))


Part = Hump | Bell
