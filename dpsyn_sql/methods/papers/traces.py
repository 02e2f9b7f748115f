"""Traces: a person's rows in order, each at a place that follows from the place before.

    one-way tables -> cells of places, strata of persons, working bins        fit/denoise.py
    flows: (stratum, only / first / middle / last, cell)
    steps: (cell before, cell) -> walks that agree with both                  fit/walks.py, fit/traces.py
    times: (number of rows, time since the row before), (pace, moment)
    others: (cell, column) -> what else is true of a row; classes of alike cells
    persons first, then their rows one after another                          rows/sample/walk.py

After Syn-Loc (Bindschaedler, Shokri, IEEE S&P 2016): classes of places by what happens there, a chain of
classes, and a place of the class by how many people come and go. What differs from it, and why, is in
docs/decisions/0056-traces.md.

All numbers of tables are units (people): answers are divided by the weight of one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.attributes.attribute import Domain
from dpsyn_sql.errors import InputError, said
from dpsyn_sql.fit.arrays import FloatArray, IntArray, simplex_projection, snapped
from dpsyn_sql.fit.denoise import binned
from dpsyn_sql.fit.estimate import Observation, total_of
from dpsyn_sql.fit.traces import Fitted, Places, network_of, row_before
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
from dpsyn_sql.methods.independent import first_tables, over_bins
from dpsyn_sql.methods.models.networks import NetworkModel
from dpsyn_sql.methods.recipe import Recipe
from dpsyn_sql.planning.asking import Door, Reserve
from dpsyn_sql.planning.families import PLACES, UNIT, Families
from dpsyn_sql.planning.limits import NO_TERMS, Terms
from dpsyn_sql.planning.queries import MarginalQuery, Marginals
from dpsyn_sql.source.names import fold
from dpsyn_sql.source.relation import PrivacyUnit

ONE_WAY_SHARE = 15
"""Percent for the one-way tables."""

MOST_CLASSES = 64
"""Classes of places at most."""

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

# -- the recipe --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Traces(Recipe):
    """Walks among places, for rows of persons in order: each place follows from the one before.

    Needs rows of units with an ``order=``. ``place``: the column of places, a point of the domain file or any
    other column of codes. ``classes``: of places where like things happen, at most.
    """

    place: str = "place"
    classes: int = 6

    name = "traces"
    model = NetworkModel
    takes_families = True
    takes_classes = False

    def __post_init__(self) -> None:
        if not 1 <= self.classes <= MOST_CLASSES:
            raise InputError(
                f"method={self.name!r} has the setting classes={self.classes!r}; "
                f"it can be 1 to {MOST_CLASSES}"
            )

    def run(self, door: Door, domain: Domain, budget: Budget, terms: Terms = NO_TERMS) -> NetworkModel:
        """Measure one-way tables, then flows, steps, times and other columns; fit walks.

        Raises:
            InputError: rows have no order, or there is no such column of places.
        """
        families = self._families(terms.families)
        column, alone = self._place(families), _asked_alone(families)
        first, for_walks = budget.split((ONE_WAY_SHARE, 100 - ONE_WAY_SHARE))
        reserve = _reserve(families, column, for_walks)
        terms.limits.check_measured(reserve.together)
        observed = dict(zip(alone.names, first_tables(door, alone, first, reserve), strict=True))
        task = Task.of(families, column, observed, terms.unit, self.classes)
        fitted = task.measured(door, for_walks)
        return NetworkModel(domain, task.places.total, network_of(task.places, fitted), families)

    def _families(self, families: Families | None) -> Families:
        if families is None or not families.order:
            raise InputError(
                f"method={self.name!r} makes traces, rows of a person in order: give unit= and "
                "order=, the column that orders them, such as order='visited_at'"
            )
        return families

    def _place(self, families: Families) -> str:
        """The attribute of places: one of rows, other than the one that orders them."""
        followed = [name for _, name in families.previous if name != families.order]
        columns = [name for name in followed if fold(name) == fold(self.place)]
        if not columns:
            raise InputError(
                f"method={self.name!r} walks among places, and no column of rows is called "
                f"{said(self.place)}: declare a point of that name in the domain file, place: {{type: point, "
                "columns: {lat: [40, 41], lon: [-75, -73]}}, or name the column of places, "
                f"method={{'name': {self.name!r}, 'place': 'station'}}"
            )
        return columns[0]


def _asked_alone(families: Families) -> Domain:
    """The attributes whose one-way tables are asked for; the row before is like any row."""
    hidden = {families.place, *(name for name, _ in families.previous)}
    return Domain(
        tuple(attribute for attribute in families.domain.attributes if attribute.name not in hidden)
    )


def _reserve(families: Families, column: str, budget: Budget) -> Reserve:
    """What may be asked for beyond the one-way tables, by the most cells and bins."""
    domain, levels = families.domain, families.levels
    cells = min(domain[column].size, MOST_CELLS)
    walks = [STRATA * 4 * cells, (cells + 1) * cells]
    times = [
        domain[families.size].size * domain[families.since].size,
        domain[families.size].size * 2 * MOST_BINS,
    ]
    cells_of_columns = [
        min(attribute.size, MOST_BINS) * (STRATA if level == UNIT else cells)
        for attribute, level in zip(domain.attributes, levels, strict=True)
        if attribute.name in families.domain.names[: families.written]
    ]
    cells_of_tables = [*walks, *times, *cells_of_columns]
    # Later tables are over these too, which have no one-way table of their own.
    queries = tuple(MarginalQuery((name,)) for name in (families.place, row_before(families, column)))
    most = max(cells_of_tables)
    return Reserve("flows, steps and times", budget, queries, 3, most, sum(cells_of_tables))


# -- questions and fits ------------------------------------------------------------------------------

Table = tuple[FloatArray, float]


@dataclass(frozen=True, slots=True)
class Task:
    """What is public once the one-way tables are known.

    ``observed``: one-way tables (units). ``weight``: of a unit in answers. ``classes``: of places, at most.
    """

    places: Places
    observed: Mapping[str, Observation]
    weight: int
    classes: int

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
        places = Places(
            families,
            column,
            total,
            working,
            _runs(snapped(simplex_projection(people[column].values, max(total, 1.0)), _GRID)),
            _halves(snapped(sizes, _GRID)),
        )
        return cls(places, people, unit.weight, classes)

    def _counts(self, name: str, bins: IntArray) -> FloatArray:
        """Units of each bin of an attribute, by its one-way table."""
        return summed(bins, simplex_projection(self.observed[name].values, self.places.most))

    def measured(self, door: Door, budget: Budget) -> Fitted:
        """Ask for all tables, and fit."""
        names = [name for name in PARTS if name != "others" or self.places.others]
        shares = dict(zip(names, budget.split([PARTS[name] for name in names]), strict=True))
        columns = self._others(door, shares["others"]) if self.places.others else {}
        sizes = self.places.of_codes(self.places.families.size)
        walks = self._walks(door, shares["flows"], shares["steps"], sizes, columns)
        times, moments = self._times(door, shares["times"], sizes)
        return Fitted(sizes, walks, times, moments, columns)

    def _asked(
        self, door: Door, budget: Budget, scopes: Sequence[Sequence[tuple[str, IntArray]]]
    ) -> list[Table]:
        """Tables over attributes, each over bins of its codes."""
        domain = self.places.families.domain
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
        places, number = self.places, int(self.places.cells.max()) + 1
        before, last = places.before
        size, place_cells = places.by_stratum, places.by_cell
        (flow,) = self._asked(
            door, flows, [(size, (places.families.place, np.arange(len(PLACES))), place_cells)]
        )
        (step,) = self._asked(door, steps, [((before, last), place_cells)])
        alone = self.observed[places.column]
        spread = np.sqrt(np.bincount(places.cells).mean())
        people, rows = sizes * places.most, places.rows
        return fitted_walks(
            Seen(
                (summed(places.cells, alone.values), float(alone.sigma) * float(spread)),
                flow,
                (_padded(step[0], number), step[1]),
                places.discovered,
                np.array([masses(people[stratum], rows[stratum]) for stratum in places.parts]),
                rings(places.centres(), number),
                self._alike(columns, number),
            )
        )

    def _alike(self, columns: Mapping[str, FloatArray], number: int) -> IntArray:
        """Classes of cells by the columns that hang on them."""
        profiles = [table for name, table in columns.items() if name not in self.places.families.persons]
        if not profiles:
            return np.zeros(number, np.int64)
        return alike(np.concatenate(profiles, axis=1), self._counts(*self.places.by_cell), self.classes)

    def _others(self, door: Door, budget: Budget) -> dict[str, FloatArray]:
        """Shares of the bins of other columns by cell, or by stratum."""
        places = self.places
        parents = {
            name: places.by_stratum if name in places.families.persons else places.by_cell
            for name in places.others
        }
        scopes = [(parents[name], (name, places.bins(name))) for name in places.others]
        answers = self._asked(door, budget, scopes)
        shares = dict[str, FloatArray]()
        for name, (values, sigma) in zip(places.others, answers, strict=True):
            parent, groups = parents[name]
            shares[name] = conditional(values, sigma, self._counts(parent, groups), places.shares(name))
        return shares

    def _times(self, door: Door, budget: Budget, sizes: FloatArray) -> tuple[FloatArray, FloatArray]:
        places, families = self.places, self.places.families
        since, order = families.domain[families.since], families.order
        number = (families.size, places.paces)
        (gaps, noise), (moments, sigma) = self._asked(
            door,
            budget,
            [
                (number, (families.since, np.arange(since.size))),
                (number, (order, places.bins(order))),
            ],
        )
        people = sizes * places.most
        later = people * (1 - 1 / np.maximum(places.rows, 1))
        alone = simplex_projection(self.observed[families.since].values[:-1], max(float(later.sum()), 1.0))
        times = _by_pace(places.paces, gaps[:, : since.size - 1], noise, later, of_total(alone, 1.0))
        spread = _by_pace(places.paces, moments, sigma, people, places.shares(order))
        return times, spread[:, places.bins(order)] * places.within(order)


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
