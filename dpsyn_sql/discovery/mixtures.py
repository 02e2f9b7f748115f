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
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize, nnls
from scipy.special import ndtr, ndtri

from dpsyn_sql.fit.arrays import FloatArray, IntArray, snapped

REACH = 2.8
"""Widths from its centre at which a smooth part ends: no value is drawn from where a noisy count says
nothing."""

_ENDS = float(ndtr(-REACH))

NULL_COST = 3.0
"""Squared deviations that the share of NULL must explain; in each list of costs, of cells in log-likelihood
ratios of about 2."""

ATOM_COSTS = ((0, 1, 2.0), (2, 5, 8.0), (6, 12, 10.0), (13, 64, 13.0))
"""Costs of the whole numbers from the first to the second; below zero ``BELOW_ZERO``."""

BELOW_ZERO = 15.0

BESIDE_ATOM = 5.0
"""The most that a whole number next to another atom costs: scales have no holes."""

FIRST_PART, PART_AT_ONCE, FURTHER_PART = 16.0, 14.0, 24.0
"""Costs of the first smooth part beside atoms, of one without any, and of each further one."""

FAR_PART = 10.0
"""More for a further part that lies more than ``_FAR`` octaves from everything found: a hump of noise there
would ruin the mean."""

NEGATIVE_PART, BOTH_SIGNS = 8.0, 5.0
"""More for a part below zero, and for one on both sides."""

HUGE = 0.5
"""More for each octave beyond ``_EVERYDAY``."""

MOST_PARTS, MOST_TERMS = 3, 16

_FAR, _EVERYDAY, _USUAL_WIDTH = 2.0, 16.0, 0.5
_WIDTHS = (0.05, 0.1, 0.18, 0.3, 0.5, 0.8, 1.25, 2.0)  # octaves
_CENTRES, _CENTRES_BELOW = np.arange(-6, 45, 0.125), np.arange(-6, 45, 0.5)
_MEANS, _DEVIATIONS = (-5.0, 0.0, 1.0, 2.5, 5.0, 10.0, 20.0), (2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 512.0)
_FEWEST_STEPS, _FIRST_STEP = 6, 4.0  # a narrower part is a few atoms
_REFUSED = 1e18  # finite: the simplex subtracts misfits
_OF_TOTAL = 0.01  # relative error that the total is taken to have
_ASYMMETRY = 0.5  # prior precision of the logarithm of the ratio of widths
_SNAP = 2.0**-8


@dataclass(frozen=True, slots=True)
class Hump:
    """A log-normal part on the side of ``sign`` (1, -1): in log2, centre ``centre`` with deviation ``below``
    towards zero and ``above`` away from it, cut off at ``REACH`` deviations."""

    sign: int
    centre: float
    below: float
    above: float

    def cdf(self, values: FloatArray) -> FloatArray:
        """Share of the part below each value."""
        positive = np.maximum(values * self.sign, 0.0)
        with np.errstate(divide="ignore"):
            away = np.log2(positive) - self.centre
        deviations = np.clip(np.where(away < 0, away / self.below, away / self.above), -REACH, REACH)
        lower = 2 * self.below / (self.below + self.above)
        normal = (ndtr(deviations) - _ENDS) / (1 - 2 * _ENDS)
        share = np.where(deviations < 0, lower * normal, lower / 2 + (2 - lower) * (normal - 0.5))
        return np.asarray(share if self.sign > 0 else 1 - share)

    def quantiles(self, shares: FloatArray) -> FloatArray:
        """The values below which these shares of the part lie, ascending with them."""
        own = shares if self.sign > 0 else 1 - shares
        lower = 2 * self.below / (self.below + self.above)
        below = own < lower / 2
        normal = np.where(below, own / lower, 0.5 + (own - lower / 2) / (2 - lower))
        deviations = ndtri(_ENDS + np.clip(normal, 0, 1) * (1 - 2 * _ENDS))
        return np.asarray(
            self.sign * 2.0 ** (self.centre + np.where(below, self.below, self.above) * deviations)
        )

    @property
    def reach(self) -> tuple[float, float]:
        """Least and largest value."""
        near = self.sign * 2.0 ** (self.centre - REACH * self.below)
        far = self.sign * 2.0 ** (self.centre + REACH * self.above)
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
        below, above = np.exp(np.clip(to[1:], -3.5, 1.3)).tolist()
        return replace(self, centre=centre, below=below, above=above)

    @staticmethod
    def prior(to: FloatArray, start: FloatArray) -> float:
        """Minus the logarithm of the prior of parameters: both widths are alike."""
        return float(_ASYMMETRY * (to[1] - to[2]) ** 2)


@dataclass(frozen=True, slots=True)
class Bell:
    """A normal part of values on both sides of zero, cut off at ``REACH`` deviations."""

    mean: float
    deviation: float

    def cdf(self, values: FloatArray) -> FloatArray:
        """Share of the part below each value."""
        standard = np.clip((values - self.mean) / self.deviation, -REACH, REACH)
        return np.asarray((ndtr(standard) - _ENDS) / (1 - 2 * _ENDS))

    def quantiles(self, shares: FloatArray) -> FloatArray:
        """The values below which these shares of the part lie."""
        return np.asarray(self.mean + self.deviation * ndtri(_ENDS + shares * (1 - 2 * _ENDS)))

    @property
    def reach(self) -> tuple[float, float]:
        """Least and largest value."""
        return self.mean - REACH * self.deviation, self.mean + REACH * self.deviation

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


@dataclass(frozen=True)
class Cellular:
    """The cells of a grid as a mixture sees them.

    ``bounds`` (float64[k + 1], ascending): cell i holds the multiples of the step between bounds[i] and
    bounds[i + 1]; bounds lie half a step before the first of them, so that a smooth part rounded to steps has
    the share F(bounds[i + 1]) - F(bounds[i]) of cell i. ``singles`` (bool[k]): cells of one value, the whole
    number ``values`` (float64[k]). After the k cells comes NULL. ``step``: of the values, 0 for none.
    """

    bounds: FloatArray
    singles: NDArray[np.bool_]
    values: FloatArray
    step: float

    def shares(self, part: Part) -> FloatArray:
        """Of each cell, and of NULL, the share of a smooth part (float64[k + 1])."""
        return np.append(np.maximum(np.diff(part.cdf(self.bounds)), 0.0), 0.0)

    @cached_property
    def atom_costs(self) -> FloatArray:
        """Of an atom in each cell and of NULL (float64[k + 1]); infinite where a cell has many values."""
        costs = np.where(self.singles, BELOW_ZERO, np.inf)
        for first, last, cost in ATOM_COSTS:
            costs[self.singles & (self.values >= first) & (self.values <= last)] = cost
        return np.append(costs, NULL_COST)

    @cached_property
    def dictionary(self) -> tuple[list[Part], FloatArray, FloatArray]:
        """Smooth parts, their shares of cells (one row each), and their costs."""
        parts = list[Part]()
        for sign, centres in ((1, _CENTRES), (-1, _CENTRES_BELOW)):
            parts += [Hump(sign, centre, width, width) for centre in centres.tolist() for width in _WIDTHS]
        parts += [Bell(mean, width) for mean in _MEANS for width in _DEVIATIONS if abs(mean) <= 2 * width]
        low, high = self.bounds[1], self.bounds[-2]
        kept = [part for part in parts if self.fits(part) and part.reach[1] > low and part.reach[0] < high]
        shares = np.array([self.shares(part) for part in kept]).reshape(len(kept), self.singles.size + 1)
        return kept, shares, np.array([part.cost for part in kept])

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
    found = [_pursued(counts, at_once=at_once) for at_once in (False, True)]
    _, best = min(found, key=lambda one: one[0])
    return best


def _pursued(counts: _Counts, *, at_once: bool) -> tuple[float, Mixture]:
    atoms, parts, spent = list[int](), list[Part](), 0.0
    rows = np.zeros(0)
    if at_once and (first := _likeliest_part(counts, counts.noisy, [], [])):
        parts.append(_refined(counts, first[1], counts.noisy))
        spent += PART_AT_ONCE + first[1].cost
    for _ in range(MOST_TERMS):
        rows, _ = _weights(counts, atoms, parts)
        left = counts.noisy - _explained(counts, atoms, parts, rows)
        gain, atom, cost = _likeliest_atom(counts, left, atoms)
        part = _likeliest_part(counts, left, atoms, parts) if len(parts) < MOST_PARTS else None
        if part is not None and part[0] > max(gain, 0.0):
            parts.append(_refined(counts, part[1], left))
            spent += part[2]
        elif gain > 0:
            atoms.append(atom)
            spent += cost
        else:
            break
    parts = _all_refined(counts, atoms, parts)
    rows, misfit = _weights(counts, atoms, parts)
    return misfit + spent, Mixture(tuple(atoms), tuple(parts), rows)


def _likeliest_atom(counts: _Counts, left: FloatArray, atoms: Sequence[int]) -> tuple[float, int, float]:
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


def _likeliest_part(
    counts: _Counts, left: FloatArray, atoms: Sequence[int], parts: Sequence[Part]
) -> tuple[float, Part, float] | None:
    """What the best smooth part of the dictionary explains beyond its cost, the part, and the cost."""
    known, shares, costs = counts.cells.dictionary
    if not known:
        return None
    costs = costs + (FURTHER_PART if parts else FIRST_PART)
    held = [part.reach for part in parts]
    held += [(counts.cells.values[atom],) * 2 for atom in atoms if atom < counts.noisy.size - 1]
    if held:
        costs = costs + FAR_PART * np.array([_is_far(part.reach, held) for part in known])
    scores = (
        np.maximum(shares @ left, 0.0) / np.sqrt(np.maximum((shares**2).sum(axis=1), 1e-12)) / counts.sigma
    )
    gains = scores**2 - costs
    best = int(np.argmax(gains))
    return float(gains[best]), known[best], float(costs[best])


def _is_far(reach: tuple[float, float], held: Sequence[tuple[float, float]]) -> bool:
    """Whether a stretch of values lies octaves away from all others."""
    low, high = reach
    return all(
        low > max(2.0**_FAR * most, 1.0) or high < min(least / 2.0**_FAR, least) for least, most in held
    )


def _explained(counts: _Counts, atoms: Sequence[int], parts: Sequence[Part], rows: FloatArray) -> FloatArray:
    return rows @ _design(counts, atoms, parts) if rows.size else np.zeros_like(counts.noisy)


def _design(counts: _Counts, atoms: Sequence[int], parts: Sequence[Part]) -> FloatArray:
    single = np.zeros((len(atoms), counts.noisy.size))
    single[np.arange(len(atoms)), list(atoms)] = 1.0
    return np.array([*single, *(counts.cells.shares(part) for part in parts)])


def _weights(counts: _Counts, atoms: Sequence[int], parts: Sequence[Part]) -> tuple[FloatArray, float]:
    """Rows of atoms and parts by non-negative least squares, and the squared misfit in deviations."""
    if not atoms and not parts:
        return np.zeros(0), float(((counts.noisy / counts.sigma) ** 2).sum())
    design, deviation = _design(counts, atoms, parts), _OF_TOTAL * counts.total
    system = np.vstack([design.T / counts.sigma, np.full(len(design), 1 / deviation)])
    rows, _ = nnls(system, np.append(counts.noisy / counts.sigma, counts.total / deviation))
    return rows, float((((counts.noisy - rows @ design) / counts.sigma) ** 2).sum())


def _all_refined(counts: _Counts, atoms: Sequence[int], parts: Sequence[Part]) -> list[Part]:
    """Each part refined to what the others leave, one after the other."""
    found = list(parts)
    for place, part in enumerate(found):
        rows, _ = _weights(counts, atoms, found)
        number = len(atoms) + place
        others = _explained(counts, atoms, found, rows) - rows[number] * counts.cells.shares(part)
        found[place] = _refined(counts, part, counts.noisy - others)
    return found


def _refined(counts: _Counts, part: Part, left: FloatArray) -> Part:
    """The parameters near those of a part that explain ``left`` best (Nelder and Mead 1965), on a coarse
    grid: a replay on another machine finds the same."""
    start = part.start

    def misfit(to: FloatArray) -> float:
        if not counts.cells.fits(part.moved(to)):
            return _REFUSED
        shares = counts.cells.shares(part.moved(to))
        own = float(shares @ shares)
        rows = max(float(left @ shares) / own, 0.0) if own > 0 else 0.0
        return float((((left - rows * shares) / counts.sigma) ** 2).sum()) / 2 + part.prior(to, start)

    found = minimize(
        misfit, start, method="Nelder-Mead", options={"maxiter": 120, "xatol": 0.02, "fatol": 0.05}
    )
    to = snapped(np.asarray(found.x), _SNAP)
    return part.moved(to) if misfit(to) < misfit(start) else part
