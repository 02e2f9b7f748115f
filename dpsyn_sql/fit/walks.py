"""Walks among places, from noisy tables: where they start, and where each step leads. Post-processing.

Cells of a noisy table are pulled towards what coarser tables lead to expect, as far as the table itself does
not stand out of its noise (``pulled``: an empirical Bayes mean as of Efron and Morris 1973, with a spread in
proportion to what is expected). What is expected of a step from x to y, given the rows that leave x and those
that reach y, is the table of greatest entropy that agrees with them (``raked``: Deming and Stephan 1940),
with how many steps go how far, and with how many lead from one class of places to another.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpsyn_sql.fit.arrays import FloatArray, IntArray, Rule, raked_to, simplex_projection

ONLY, FIRST, MIDDLE, LAST = range(4)
"""Places of a row in its family."""

RINGS = 16
"""Bins of the length of a step from one place to another, each ``RATIO`` times as far as the one before."""

RATIO = 1.4

ROUNDS = 40
"""Of raking. The last changes less than one person in a thousand on tables of real visits."""

_TRACE = 1e-9
# The least expectation (units) of a cell: no step is impossible.

_STEPS, _STARTS = 50, 8
# Of k-means.


@dataclass(frozen=True, slots=True)
class Walks:
    """``starts`` (strata, places): the probability of the place of a first row. ``steps`` (strata, places,
    places): of the next place, given the place before."""

    starts: FloatArray
    steps: FloatArray


@dataclass(frozen=True, slots=True)
class Seen:
    """Noisy tables (units; a unit's rows count one together) and what is known beside them.

    ``flows`` (strata, 4, places): rows by stratum of their unit, place in the family and place; ``steps``
    (places, places): by the place of the row before and their own; each with its ``sigma``.
    ``places`` (places,): rows of each, of the one-way table, with its ``sigma``.
    ``discovered`` (places,): rows that discovery has estimated, if it has.
    ``masses`` (strata, 4): rows by stratum and place in the family, of the numbers of rows of units.
    ``rings`` (places, places): the bin of the distance between places, 0 for a place and itself.
    ``classes`` (places,): of alike places.
    """

    places: tuple[FloatArray, float]
    flows: tuple[FloatArray, float]
    steps: tuple[FloatArray, float]
    discovered: FloatArray | None
    masses: FloatArray
    rings: IntArray
    classes: IntArray


def pulled(table: FloatArray, expected: FloatArray, sigma: float) -> FloatArray:
    """A noisy table, pulled towards ``expected`` (not negative) and to the same total; not negative.

    A cell of expectation m is taken for m (1 + e) with e of mean 0 and variance v, and noise ``sigma``: its
    posterior mean is m + v m^2 / (v m^2 + sigma^2) (cell - m). v is fitted to all cells by moments.
    """
    squares = expected**2
    energy = float(squares.sum())
    if energy <= 0:
        return expected
    spread = max(0.0, float(((table - expected) ** 2 - sigma**2).sum()) / energy)
    trust = spread * squares / np.maximum(spread * squares + sigma**2, _TRACE**2)
    return of_total(np.maximum(expected + trust * (table - expected), 0.0), float(expected.sum()))


def summed(cells: IntArray, values: FloatArray, number: int = 0) -> FloatArray:
    """The sum of the values of each cell, of ``number`` cells at least."""
    return np.bincount(cells.ravel(), values.ravel(), number).astype(np.float64)


def of_total(table: FloatArray, total: float) -> FloatArray:
    """A table that is not negative, in proportion; even if it is empty."""
    mass = float(table.sum())
    return np.full_like(table, total / table.size) if mass <= 0 else table * (total / mass)


def raked(table: FloatArray, rules: Sequence[Rule]) -> FloatArray:
    """The table of units nearest to ``table`` whose sums are those of the rules."""
    return raked_to(table + _TRACE, rules, ROUNDS)


def masses(sizes: FloatArray, rows: FloatArray) -> FloatArray:
    """The weight of only, first, middle and last rows (4,) of units by size: ``sizes`` (units), ``rows`` (the
    mean number of rows of a unit)."""
    alone = rows <= 1
    ends = float((sizes / rows)[~alone].sum())
    several = float(sizes[~alone].sum())
    return np.array([float(sizes[alone].sum()), ends, max(0.0, several - 2 * ends), ends])


def fitted_walks(tables: Seen) -> Walks:
    """Starts and steps that agree with the flows of every stratum."""
    flows = _flows(tables)
    strata, _, number = flows.shape
    leaving, reached = flows[:, FIRST] + flows[:, MIDDLE], flows[:, MIDDLE] + flows[:, LAST]
    rules = _Rules(tables.rings, tables.classes, number)
    out, into = leaving.sum(axis=0), reached.sum(axis=0)
    every = rules.followed(*tables.steps, out, into)
    steps = np.array([rules.of_flows(every, leaving[s], reached[s]) for s in range(strata)])
    starts = flows[:, ONLY] + flows[:, FIRST] + _TRACE
    return Walks(
        starts / starts.sum(axis=1, keepdims=True),
        (steps + _TRACE) / (steps + _TRACE).sum(axis=2, keepdims=True),
    )


def _flows(tables: Seen) -> FloatArray:
    """Rows (strata, 4, places): those of a place in the family are like those of their stratum, and strata
    like all, as far as tables do not tell otherwise."""
    values, sigma = tables.flows
    strata, kinds, _ = values.shape
    table, noise_of_sum = values.sum(axis=(0, 1)), sigma * math.sqrt(strata * kinds)
    total = float(tables.masses.sum())
    every_place, noise = _pooled(table, noise_of_sum, *tables.places)
    if tables.discovered is not None:  # its noise is what they differ by beyond that of the tables
        discovered = of_total(tables.discovered, total)
        beyond = max(0.0, float(((every_place - discovered) ** 2).mean()) - noise**2)
        every_place = (beyond * every_place + noise**2 * discovered) / max(beyond + noise**2, _TRACE**2)
    every = simplex_projection(every_place, total) + _TRACE
    flows = np.empty_like(values)
    for s in range(strata):
        rows = float(tables.masses[s].sum())
        stratum = pulled(values[s].sum(axis=0), of_total(every, rows), sigma * math.sqrt(kinds))
        for kind in range(kinds):
            flows[s, kind] = pulled(values[s, kind], of_total(stratum, float(tables.masses[s, kind])), sigma)
    return flows


def _pooled(
    first: FloatArray, first_sigma: float, second: FloatArray, second_sigma: float
) -> tuple[FloatArray, float]:
    """The best mean of two noisy tables, and its noise."""
    weight = second_sigma**2 / max(first_sigma**2 + second_sigma**2, _TRACE**2)
    return weight * first + (1 - weight) * second, first_sigma * math.sqrt(weight)


@dataclass(frozen=True)
class _Rules:
    """What steps agree with. The rows that leave a place, and those that reach it, come last."""

    rings: IntArray
    classes: IntArray
    number: int

    def followed(
        self, table: FloatArray, sigma: float, leaving: FloatArray, reached: FloatArray
    ) -> FloatArray:
        """A noisy table of steps, pulled towards what its sums lead to expect."""
        total, ends = float(leaving.sum()), self._ends(leaving, reached)
        sums = [self._sums(self.rings, table, total)]
        if number := int(self.classes.max(initial=0)):
            sums.append(self._sums(self.classes[:, None] * (number + 1) + self.classes, table, total))
        expected = raked(of_total(np.outer(leaving, reached), total), [*sums, *ends])
        return raked(pulled(table, expected, sigma), ends)

    def of_flows(self, steps: FloatArray, leaving: FloatArray, reached: FloatArray) -> FloatArray:
        """Steps of other flows."""
        return raked(of_total(steps, float(leaving.sum())), self._ends(leaving, reached))

    def _ends(self, leaving: FloatArray, reached: FloatArray) -> list[Rule]:
        rows = np.repeat(np.arange(self.number), self.number).reshape(self.number, self.number)
        return [(rows, leaving), (np.ascontiguousarray(rows.T), of_total(reached, float(leaving.sum())))]

    def _sums(self, cells: IntArray, table: FloatArray, total: float) -> Rule:
        number = int(cells.max(initial=0)) + 1
        return cells, simplex_projection(summed(cells, table, number), total)


def rings(centres: FloatArray | None, number: int) -> IntArray:
    """The bin of the distance between any two places (places, places): 0 for a place and itself.

    ``centres`` (places, axes), in units that are the same for all axes; None: all others are equally far.
    """
    same = np.eye(number, dtype=np.bool_)
    if centres is None or number < 2:
        return np.where(same, 0, 1)
    apart = np.sqrt(((centres[:, None] - centres) ** 2).sum(axis=-1))
    edges = float(apart.max()) * RATIO ** -np.arange(RINGS - 1.0, 0, -1)
    return np.where(same, 0, 1 + np.searchsorted(edges, apart, side="right"))


def alike(profiles: FloatArray, weights: FloatArray, number: int) -> IntArray:
    """The class of each place, at most ``number`` of them, numbered from 0: weighted k-means (Lloyd 1982) of
    profiles (places, values), the best of some starts; deterministic."""
    generator, best, cost = np.random.default_rng(0), np.zeros(len(profiles), np.int64), math.inf
    profiles, weights = np.round(profiles, 6), weights + _TRACE * max(1.0, float(weights.sum()))
    number = min(number, len(np.unique(profiles, axis=0)))
    if number < 2:
        return best
    for _ in range(_STARTS):
        chosen = generator.choice(len(profiles), 1)
        for _ in range(number - 1):  # far from those that are there (Arthur and Vassilvitskii 2007)
            near = ((profiles[:, None] - profiles[chosen]) ** 2).sum(axis=-1).min(axis=1) * weights
            chosen = np.append(chosen, generator.choice(len(profiles), p=near / near.sum()))
        centres = profiles[chosen]
        for _ in range(_STEPS):
            apart = ((profiles[:, None] - centres) ** 2).sum(axis=-1)
            nearest = apart.argmin(axis=1)
            mass = np.bincount(nearest, weights, number)
            sums = np.stack([np.bincount(nearest, weights * column, number) for column in profiles.T], axis=1)
            centres = np.where(mass[:, None] > 0, sums / np.maximum(mass, _TRACE)[:, None], centres)
        spent = float((apart.min(axis=1) * weights).sum())
        if spent < cost:
            best, cost = np.unique(nearest, return_inverse=True)[1].astype(np.int64), spent
    return best
