"""What is asked once the one-way tables are known, and the walks, times and columns that the answers lead to.

All numbers of tables are units (people): answers are divided by the weight of one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.attributes.attribute import Attribute, Domain, edge_ticks
from dpsyn_sql.attributes.points import Points
from dpsyn_sql.fit.arrays import FloatArray, IntArray, simplex_projection, snapped
from dpsyn_sql.fit.denoise import Binned, binned
from dpsyn_sql.fit.estimate import Observation, total_of
from dpsyn_sql.fit.walks import (
    Seen,
    Walks,
    alike,
    fitted_walks,
    masses,
    of_total,
    pulled,
    raked,
    rings,
    summed,
)
from dpsyn_sql.methods.independent import over_bins
from dpsyn_sql.planning.asking import Door
from dpsyn_sql.planning.families import PLACES, Families
from dpsyn_sql.planning.queries import MarginalQuery, Marginals
from dpsyn_sql.source.relation import PrivacyUnit

STRATA = 2
"""Parts of the units, by their number of rows: about as many units in each."""

MOST_CELLS = 256
"""Cells of places at most: codes, or runs of neighbouring codes of about as many rows."""

MOST_BINS = 32
"""Working bins of any other column at most; about half as many of a column with an order."""

PARTS = {"flows": 5, "steps": 9, "times": 2, "others": 3}
"""Of the budget after the one-way tables; ``others``, if there are other columns."""

_GRID = 2.0**-10
# Units.

_FEW = 2.0
# Units in deviations of the noise of a one-way table below which a code of another column shares a bin.

Table = tuple[FloatArray, float]


@dataclass(frozen=True, slots=True)
class Fitted:
    """``sizes`` (codes of the number of rows,): shares of units. ``walks``: among cells. ``times`` (paces,
    bins of the time since the row before): shares of later rows. ``moments`` (paces, codes of the
    ordering column): shares of all rows. ``columns``: of each other column
    that is written shares of its bins, by cell, or by stratum if all rows of a unit share it."""

    sizes: FloatArray
    walks: Walks
    times: FloatArray
    moments: FloatArray
    columns: Mapping[str, FloatArray]


@dataclass(frozen=True, slots=True)
class Task:
    """What is public once the one-way tables are known.

    ``observed``: one-way tables (units). ``total``: units. ``working``: attributes in their bins, those of
    ``names``; ``cells``: of each code of ``place`` its cell, ``strata``: of each code of the number of rows
    its stratum.
    """

    families: Families
    place: str
    observed: Mapping[str, Observation]
    total: float
    weight: int
    classes: int
    working: Binned
    cells: IntArray
    strata: IntArray

    @classmethod
    def of(
        cls,
        families: Families,
        column: str,
        observed: Mapping[str, Observation],
        unit: PrivacyUnit,
        classes: int,
    ) -> Task:
        """Choose cells, strata and bins by the noisy one-way tables (in ``unit.weight``)."""
        people = {
            name: Observation(table.values / unit.weight, table.sigma / unit.weight)
            for name, table in observed.items()
        }
        total = float(snapped(np.asarray(total_of(list(people.values()))), _GRID))
        domain = Domain(
            tuple(attribute for attribute in families.domain.attributes if attribute.name in people)
        )
        least = [_FEW * float(people[name].sigma) for name in domain.names]
        working = binned(domain, [people[name] for name in domain.names], least, MOST_BINS / 2)
        sizes = simplex_projection(people[families.size].values, max(total, 1.0))
        return cls(
            families,
            column,
            people,
            total,
            unit.weight,
            classes,
            working,
            _runs(snapped(simplex_projection(people[column].values, max(total, 1.0)), _GRID)),
            _halves(snapped(sizes, _GRID)),
        )

    @property
    def others(self) -> list[str]:
        """The written columns that are neither the places nor the moments."""
        written = self.families.domain.names[: self.families.written]
        return [name for name in written if name not in (self.place, self.families.order)]

    def bins(self, name: str) -> IntArray:
        """The working bin of each code of an attribute."""
        return self.working.bins[self.working.domain.index(name)]

    def shares(self, name: str) -> FloatArray:
        """The share of each working bin."""
        return self.working.shares[self.working.domain.index(name)]

    def within(self, name: str) -> FloatArray:
        """The probability of each code, given its bin."""
        return self.working.within[self.working.domain.index(name)]

    @property
    def rows(self) -> FloatArray:
        """The mean number of rows of each code of the number of rows."""
        edges = np.array(edge_ticks(self.families.domain[self.families.size]), np.float64)
        return np.asarray((edges[:-1] + edges[1:] - 1) / 2)

    def people(self, shares: FloatArray) -> FloatArray:
        """Units, of shares of them."""
        return np.asarray(shares * self.most)

    @property
    def paces(self) -> IntArray:
        """Of each code of the number of rows how often 1 is doubled to reach it."""
        return np.unique(np.floor(np.log2(self.rows)), return_inverse=True)[1].astype(np.int64)

    @property
    def most(self) -> float:
        """Units, at least one."""
        return max(self.total, 1.0)

    def _counts(self, name: str, bins: IntArray) -> FloatArray:
        """Units of each bin of an attribute, by its one-way table."""
        return summed(bins, simplex_projection(self.observed[name].values, self.most))

    def measured(self, door: Door, budget: Budget) -> Fitted:
        """Ask for all tables, and fit."""
        names = [name for name in PARTS if name != "others" or self.others]
        shares = dict(zip(names, budget.split([PARTS[name] for name in names]), strict=True))
        columns = self._others(door, shares["others"]) if self.others else {}
        size = self.families.size
        sizes = self.within(size) * self.shares(size)[self.bins(size)]
        walks = self._walks(door, shares["flows"], shares["steps"], sizes, columns)
        times, moments = self._times(door, shares["times"], sizes)
        return Fitted(sizes, walks, times, moments, columns)

    def _asked(
        self, door: Door, budget: Budget, scopes: Sequence[Sequence[tuple[str, IntArray]]]
    ) -> list[Table]:
        """Tables over attributes, each over bins of its codes."""
        domain = self.families.domain
        queries: list[MarginalQuery] = [
            over_bins(domain, [(domain.index(name), bins) for name, bins in scope]) for scope in scopes
        ]
        answers = door.ask(Marginals(queries), budget).read()
        return [(table.values / self.weight, table.sigma / self.weight) for table in answers]

    def _walks(
        self,
        door: Door,
        flows: Budget,
        steps: Budget,
        sizes: FloatArray,
        columns: Mapping[str, FloatArray],
    ) -> Walks:
        families, number = self.families, int(self.cells.max()) + 1
        before, last = self.before
        size, place_cells = (families.size, self.strata), (self.place, self.cells)
        (flow,) = self._asked(door, flows, [(size, (families.place, np.arange(len(PLACES))), place_cells)])
        (step,) = self._asked(door, steps, [((before, last), place_cells)])
        alone = self.observed[self.place]
        spread = np.sqrt(np.bincount(self.cells).mean())
        people, rows = self.people(sizes), self.rows
        return fitted_walks(
            Seen(
                (summed(self.cells, alone.values), float(alone.sigma) * float(spread)),
                flow,
                (_padded(step[0], number), step[1]),
                _known(families.domain[self.place], self.cells),
                np.array([masses(people[stratum], rows[stratum]) for stratum in self._parts]),
                rings(self._centres(), number),
                self._alike(columns, number),
            )
        )

    @property
    def before(self) -> tuple[str, IntArray]:
        """The attribute of the place of the row before, and the cell of each of its codes.

        That of NULL, which stands for a first row too, is the last."""
        (name,) = (hidden for hidden, followed in self.families.previous if followed == self.place)
        cells = self.cells[: self.families.domain[name].size - 1]
        return name, np.append(cells, cells.max(initial=-1) + 1)

    @property
    def _parts(self) -> list[IntArray]:
        return [np.flatnonzero(self.strata == part) for part in range(int(self.strata.max()) + 1)]

    def _alike(self, columns: Mapping[str, FloatArray], number: int) -> IntArray:
        """Classes of cells by the columns that hang on them."""
        profiles = [table for name, table in columns.items() if name not in self.families.persons]
        if not profiles:
            return np.zeros(number, np.int64)
        return alike(np.concatenate(profiles, axis=1), self._counts(self.place, self.cells), self.classes)

    def _centres(self) -> FloatArray | None:
        """Where cells of points lie (cells, axes), each axis in deviations of the rows; None for others."""
        attribute = self.families.domain[self.place]
        leaves = attribute.leaves
        if leaves is None or len(leaves.hierarchies) > 1 or not isinstance(leaves.hierarchies[0], Points):
            return None
        mass = np.array(leaves.rows) + 1.0
        code = np.array(leaves.codes)
        middles = _middles(leaves.hierarchies[0], leaves.levels[0], leaves.nodes[0])
        mean = np.average(middles, axis=0, weights=mass)
        spread = np.sqrt(np.average((middles - mean) ** 2, axis=0, weights=mass))
        middles = (middles - mean) / np.where(spread > 0, spread, 1.0)
        cell, number = self.cells[code], int(self.cells.max()) + 1
        cell_mass = np.bincount(cell, mass, number)
        sums = np.stack([np.bincount(cell, mass * axis, number) for axis in middles.T], axis=1)
        return np.asarray(sums / np.maximum(cell_mass, 1.0)[:, None])  # other values lie in the middle of all

    def _others(self, door: Door, budget: Budget) -> dict[str, FloatArray]:
        """Shares of the bins of other columns by cell, or by stratum."""
        families = self.families
        parents = {
            name: (families.size, self.strata) if name in families.persons else (self.place, self.cells)
            for name in self.others
        }
        scopes = [(parents[name], (name, self.bins(name))) for name in self.others]
        answers = self._asked(door, budget, scopes)
        shares = dict[str, FloatArray]()
        for name, (values, sigma) in zip(self.others, answers, strict=True):
            parent, groups = parents[name]
            shares[name] = conditional(values, sigma, self._counts(parent, groups), self.shares(name))
        return shares

    def _times(self, door: Door, budget: Budget, sizes: FloatArray) -> tuple[FloatArray, FloatArray]:
        families = self.families
        since, order = families.domain[families.since], families.order
        number = (families.size, self.paces)
        (gaps, noise), (moments, sigma) = self._asked(
            door,
            budget,
            [
                (number, (families.since, np.arange(since.size))),
                (number, (order, self.bins(order))),
            ],
        )
        people = self.people(sizes)
        later = people * (1 - 1 / np.maximum(self.rows, 1))
        alone = simplex_projection(self.observed[families.since].values[:-1], max(float(later.sum()), 1.0))
        times = _by_pace(self.paces, gaps[:, : since.size - 1], noise, later, of_total(alone, 1.0))
        spread = _by_pace(self.paces, moments, sigma, people, self.shares(order))
        return times, spread[:, self.bins(order)] * self.within(order)


def conditional(table: FloatArray, sigma: float, groups: FloatArray, shares: FloatArray) -> FloatArray:
    """Shares of columns given the row of a noisy table: independent as far as it does not tell otherwise.
    ``groups``: units of each row."""
    expected = np.outer(of_total(groups, max(float(groups.sum()), 1.0)), of_total(shares, 1.0))
    rows = np.repeat(np.arange(groups.size), shares.size).reshape(groups.size, shares.size)
    columns = np.broadcast_to(np.arange(shares.size), rows.shape)
    sides = [(columns, expected.sum(axis=0)), (rows, expected.sum(axis=1))]
    fitted = raked(pulled(table, expected, sigma), sides) + 1e-9 * shares
    return np.asarray(fitted / np.maximum(fitted.sum(axis=1, keepdims=True), 1e-300))


def _by_pace(
    paces: IntArray, table: FloatArray, sigma: float, groups: FloatArray, shares: FloatArray
) -> FloatArray:
    """Shares by pace, like those of all paces as far as the table does not tell otherwise, and these like
    ``shares``. ``groups``: units by the code of the number of rows, ``paces``: of these codes."""
    people = summed(paces, groups)
    every = conditional(table.sum(axis=0)[None], sigma * math.sqrt(people.size), people.sum()[None], shares)
    return conditional(table, sigma, people, every[0])


def _runs(people: FloatArray) -> IntArray:
    """The cell of each code: its own, or that of a run of neighbours with about as many rows as others."""
    if people.size <= MOST_CELLS:
        return np.arange(people.size)
    middle = np.cumsum(people) - people / 2
    return np.unique(
        (middle * (MOST_CELLS / max(float(people.sum()), 1e-9))).astype(np.int64), return_inverse=True
    )[1]


def _halves(sizes: FloatArray) -> IntArray:
    """Of each number of rows whether its units are in the half with more rows."""
    above = np.cumsum(sizes[::-1])[::-1] / max(float(sizes.sum()), 1e-9)
    if sizes.size < 2:
        return np.zeros(sizes.size, np.int64)
    first = 1 + int(np.argmin(np.abs(above[1:] - 0.5)))
    return np.asarray(np.arange(sizes.size) >= first, np.int64)


def _padded(steps: FloatArray, number: int) -> FloatArray:
    """Steps (cells, cells) without those after a NULL, which stands for a first row too: walks start anew
    there."""
    return np.pad(steps[:-1], ((0, number + 1 - len(steps)), (0, 0)))


def _known(attribute: Attribute, cells: IntArray) -> FloatArray | None:
    """Rows of each cell by discovery, if it has counted leaves."""
    if attribute.leaves is None:
        return None
    codes = np.array(attribute.leaves.codes)
    return summed(cells[codes], np.array(attribute.leaves.rows), int(cells.max()) + 1)


def _middles(points: Points, levels: Sequence[int], nodes: Sequence[int | str]) -> FloatArray:
    """The middles of nodes (nodes, axes)."""
    middles = np.empty((len(nodes), len(points.columns)))
    of, ids = np.array(levels), np.array([int(node) for node in nodes], np.int64)
    for level in np.unique(of):
        of_level = np.flatnonzero(of == level)
        for axis, (low, high) in enumerate(points.boxes(ids[of_level], int(level))):
            middles[of_level, axis] = (low.astype(np.float64) + high.astype(np.float64)) / 2
    return middles
