"""Traces: a person's rows in order, each at a place that follows from the place before.

    one-way tables -> cells of places, strata of persons, working bins        fit/denoise.py
    flows: (stratum, only / first / middle / last, cell)
    steps: (cell before, cell) -> walks that agree with both                  fit/walks.py
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
from dpsyn_sql.attributes.attribute import Attribute, Domain, edge_ticks
from dpsyn_sql.attributes.points import Points
from dpsyn_sql.errors import InputError, said
from dpsyn_sql.fit.arrays import FloatArray, IntArray, simplex_projection, snapped
from dpsyn_sql.fit.denoise import Binned, binned
from dpsyn_sql.fit.estimate import Observation, total_of
from dpsyn_sql.fit.gaussian import Ahead, ahead, first_moments
from dpsyn_sql.fit.network import Builder, Network, Node
from dpsyn_sql.fit.walks import (
    FIRST,
    LAST,
    MIDDLE,
    ONLY,
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
from dpsyn_sql.methods.independent import one_way_steps, one_way_tables, over_bins
from dpsyn_sql.methods.models.networks import NetworkModel
from dpsyn_sql.methods.recipe import Recipe
from dpsyn_sql.planning.asking import Door, Reserve
from dpsyn_sql.planning.families import BEFORE, PLACES, ROW, UNIT, Families
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
        handles = [door.ask(*step) for step in one_way_steps(alone, first)]
        door.reserve(reserve)
        observed = dict(zip(alone.names, one_way_tables(alone, handles), strict=True))
        task = Task.of(families, column, observed, terms.unit, self.classes)
        fitted = task.measured(door, for_walks)
        return NetworkModel(domain, task.total, network_of(task, fitted), families)

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


def _row_before(families: Families, column: str) -> str:
    """The attribute that has the column of the row before."""
    return next(name for name, followed in families.previous if followed == column)


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
    queries = tuple(MarginalQuery((name,)) for name in (families.place, _row_before(families, column)))
    most = max(cells_of_tables)
    return Reserve("flows, steps and times", budget, queries, 3, most, sum(cells_of_tables))


# -- questions and fits ------------------------------------------------------------------------------

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

    def of_codes(self, name: str) -> FloatArray:
        """The share of each code of an attribute."""
        return self.within(name) * self.shares(name)[self.bins(name)]

    @property
    def rows(self) -> FloatArray:
        """The mean number of rows of each code of the number of rows."""
        edges = np.array(edge_ticks(self.families.domain[self.families.size]), np.float64)
        return np.asarray((edges[:-1] + edges[1:] - 1) / 2)

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
        sizes = self.of_codes(self.families.size)
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
        people, rows = sizes * self.most, self.rows
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
        name = _row_before(self.families, self.place)
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
        people = sizes * self.most
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


# -- the network -------------------------------------------------------------------------------------

# A unit, what is known of the row before, the row.
#
# The variables of the network are the attributes of the domain in their order, in bins; codes of these; then
# the stratum and the pace of a unit, and the cell of the row before.


class _Nodes(Builder):
    """The network of a task as it is made. The first variables are the attributes: places in cells, other
    columns in working bins, and codes of what orders and hides rows."""

    def __init__(self, task: Task) -> None:
        self.task, self.domain = task, task.families.domain
        bins = [np.arange(size) for size in self.domain.shape()]
        within = [np.ones(size) for size in self.domain.shape()]
        for name in task.others:
            bins[self.place(name)], within[self.place(name)] = task.bins(name), task.within(name)
        cells, codes = task.cells, task.of_codes(task.place) + 1e-12
        bins[self.place(task.place)] = cells
        within[self.place(task.place)] = codes / np.bincount(cells, codes)[cells]
        sizes = [int(bin_of.max()) + 1 for bin_of in bins]
        Builder.__init__(self, self.domain.names, sizes, bins, within)

    def place(self, name: str) -> int:
        return self.domain.index(name)

    def own(self, name: str) -> bool:
        """Whether each code of an attribute is its own bin."""
        return bool(self.codes[self.place(name)] == self.place(name))

    def follow(self, level: int, label: str, parent: int, of: IntArray) -> int:
        """A new variable that is a function of the parent."""
        variable = self.variable(int(of.max()) + 1)
        self.add(label, [parent], [variable], np.eye(self.sizes[variable])[of], level=level)
        return variable


def network_of(task: Task, fitted: Fitted) -> Network:
    """All nodes, ascending by level. Those of the row before say how rows are on average; where rows are
    drawn, the row before is known."""
    nodes = _Nodes(task)
    stratum, pace = _unit(nodes, fitted)
    _before(nodes)
    _row(nodes, fitted, stratum, pace)
    return nodes.network({}, together=False)


def _unit(nodes: _Nodes, fitted: Fitted) -> tuple[int, int]:
    """The number of rows, and the other columns that all rows share; the variables of strata and paces."""
    task, families = nodes.task, nodes.task.families
    size = nodes.place(families.size)
    nodes.add(families.size, [], [size], fitted.sizes + 1e-12, level=UNIT)
    if differing := families.differing:
        nodes.add(differing, [], [nodes.place(differing)], task.of_codes(differing) + 1e-12, level=UNIT)
    stratum = nodes.follow(UNIT, "stratum", size, task.strata)
    for name in task.others:
        if name in families.persons:
            _column(nodes, UNIT, name, stratum, fitted.columns[name])
    return stratum, nodes.follow(UNIT, "pace", size, task.paces)


def _column(nodes: _Nodes, level: int, name: str, parent: int, shares: FloatArray) -> None:
    """A column whose bins hang on one variable."""
    label = name if nodes.own(name) else f"{name}|bin"
    nodes.add(label, [parent], [nodes.place(name)], shares, level=level)
    nodes.add_codes(nodes.place(name), level)


def _before(nodes: _Nodes) -> None:
    """The place of a row in its family, and the row before, as they are on average."""
    task, families = nodes.task, nodes.task.families
    rows = task.rows
    kinds = np.zeros((rows.size, 4))
    kinds[:, ONLY] = rows <= 1
    several = rows > 1
    kinds[several, FIRST] = kinds[several, LAST] = 1 / rows[several]
    kinds[several, MIDDLE] = np.maximum(0.0, 1 - 2 / rows[several])
    kind = nodes.place(families.place)
    nodes.add(families.place, [nodes.place(families.size)], [kind], kinds, level=BEFORE)
    first = np.array([place_in_family in (ONLY, FIRST) for place_in_family in range(4)])
    for hidden, name in families.previous:
        attribute = nodes.domain[hidden]
        shares_of_rows = task.of_codes(name)
        shares = np.zeros(attribute.size)
        shares[: shares_of_rows.size] = shares_of_rows
        shares[-1] = 1e-12
        absent = np.eye(attribute.size)[-1]
        law = np.where(first[:, None], absent, shares / shares.sum())
        nodes.add(hidden, [kind], [nodes.place(hidden)], law, level=BEFORE)


def _row(nodes: _Nodes, fitted: Fitted, stratum: int, pace: int) -> None:
    """A row, given its unit and the row before: time since, moment, place, and what hangs on it."""
    task, families = nodes.task, nodes.task.families
    kind = nodes.place(families.place)
    since = nodes.place(families.since)
    times = np.zeros((nodes.sizes[pace], 4, nodes.sizes[since]))
    times[:, [ONLY, FIRST], -1] = 1.0
    times[:, MIDDLE, :-1] = times[:, LAST, :-1] = fitted.times
    nodes.add(families.since, [pace, kind], [since], times, level=ROW)
    _moment(nodes, fitted, pace)
    hidden, last = task.before
    earlier = nodes.follow(ROW, "cell before", nodes.place(hidden), last)
    walks = np.concatenate([fitted.walks.steps[:, : last[-1]], fitted.walks.starts[:, None, :]], axis=1)
    cell = nodes.place(task.place)
    nodes.add(task.place if nodes.own(task.place) else "cell", [stratum, earlier], [cell], walks, level=ROW)
    nodes.add_codes(cell, ROW)
    for name in task.others:
        if name not in families.persons:
            _column(nodes, ROW, name, cell, fitted.columns[name])


def _moment(nodes: _Nodes, fitted: Fitted, pace: int) -> None:
    """The code of the ordering column: of a first row by pace; else what the code of the row before and the
    time since lead to."""
    task, families = nodes.task, nodes.task.families
    order = nodes.domain[families.order]
    hidden = _row_before(families, families.order)
    order_variable, before, since = map(nodes.place, (families.order, hidden, families.since))
    if nodes.sizes[order_variable] == 1:
        return
    edges = np.array(edge_ticks(order), np.float64)
    lines = ahead(edges, np.array(edge_ticks(nodes.domain[families.since]), np.float64))
    begin = _first(task, fitted, lines, order.regular)
    paced, codes, gaps = nodes.sizes[pace], nodes.sizes[before], nodes.sizes[since]
    blocks = [_lines(codes - 1, gap, begin, paced) for gap in range(gaps)]
    for code in range(codes - 1):
        blocks.append(_lines(code, gaps - 1, _undated(order.size, code, order.null_code), paced))
    walked = np.column_stack([lines.before, lines.since, lines.after, lines.shares])
    blocks += [np.insert(walked, 0, number, axis=1) for number in range(paced)]
    table = np.concatenate(blocks)
    table = table[np.lexsort(table[:, 3::-1].T)]
    parent_values, values, weights = (
        table[:, :3].astype(np.int64),
        table[:, 3:4].astype(np.int64),
        table[:, 4],
    )
    parents = [pace, before, since]
    several = [i for i, parent in enumerate(parents) if nodes.sizes[parent] > 1]
    nodes.add_node(
        Node(
            families.order,
            (order_variable,),
            tuple(parents[i] for i in several),
            np.ascontiguousarray(parent_values[:, several]),
            np.ascontiguousarray(values),
            np.ascontiguousarray(weights),
            np.ones(weights.size),
        ),
        ROW,
    )


def _first(task: Task, fitted: Fitted, lines: Ahead, regular: int) -> FloatArray:
    """Shares of the codes of first rows (paces, codes); those that are no moments keep theirs."""
    shares = fitted.moments.copy()
    of, rows = task.paces, task.rows
    for pace, times in enumerate(fitted.times):
        of_pace, mass = of == pace, float(shares[pace, :regular].sum())
        weights = fitted.sizes[of_pace] + 1e-12
        mean = round(float((weights @ rows[of_pace]) / weights.sum()))
        if mass > 0:
            shares[pace, :regular] = mass * first_moments(lines, times, mean, shares[pace, :regular])
    return shares


def _undated(size: int, code: int, null: int | None) -> FloatArray:
    """A row that has no time since the row before has no moment; or that of the row before."""
    return np.eye(size)[None, min(code, size - 1) if null is None else null]


def _lines(code: int, gap: int, shares: FloatArray, paced: int) -> FloatArray:
    """Lines (pace, code before, time since, code, probability) of codes given the pace."""
    shares = np.broadcast_to(shares, (paced, shares.shape[-1]))
    shares = shares / shares.sum(axis=1, keepdims=True)
    rows, codes = np.nonzero(shares)
    earlier = np.broadcast_to(np.array([code, gap]), (rows.size, 2))
    return np.column_stack([rows, earlier, codes, shares[rows, codes]])
