"""Traces of persons: the recipe, and the network of a step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.attributes.attribute import Domain, edge_ticks
from dpsyn_sql.errors import InputError, said
from dpsyn_sql.fit.arrays import FloatArray, IntArray
from dpsyn_sql.fit.gaussian import Ahead, ahead, first_moments
from dpsyn_sql.fit.network import Builder, Network, Node
from dpsyn_sql.fit.walks import FIRST, LAST, MIDDLE, ONLY
from dpsyn_sql.methods.independent import one_way_steps, one_way_tables
from dpsyn_sql.methods.models.networks import NetworkModel
from dpsyn_sql.methods.recipe import Recipe
from dpsyn_sql.methods.traces.tables import MOST_BINS, MOST_CELLS, STRATA, Fitted, Task
from dpsyn_sql.planning.asking import Door, Reserve
from dpsyn_sql.planning.families import BEFORE, ROW, UNIT, Families
from dpsyn_sql.planning.limits import NO_TERMS, Terms
from dpsyn_sql.planning.queries import MarginalQuery
from dpsyn_sql.source.names import fold

# -- the network -------------------------------------------------------------------------------------

# The network of fitted traces: a unit, what is known of the row before, the row.
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
        cells, codes = task.cells, codes_of(task, task.place)
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


def codes_of(task: Task, name: str) -> FloatArray:
    """The share of each code of an attribute, above 0."""
    return task.within(name) * task.shares(name)[task.bins(name)] + 1e-12


def network_of(task: Task, fitted: Fitted) -> Network:
    """All nodes, ascending by level. Those of the row before say how rows are on average; where rows are
    drawn, the row before is known."""
    nodes = _Nodes(task)
    stratum, pace = _unit(nodes, fitted)
    _before(nodes)
    _row(nodes, fitted, stratum, pace)
    return nodes.network(together=False)


def _unit(nodes: _Nodes, fitted: Fitted) -> tuple[int, int]:
    """The number of rows, and the other columns that all rows share; the variables of strata and paces."""
    task, families = nodes.task, nodes.task.families
    size = nodes.place(families.size)
    nodes.add(families.size, [], [size], fitted.sizes + 1e-12, level=UNIT)
    if differing := families.differing:
        nodes.add(differing, [], [nodes.place(differing)], codes_of(task, differing), level=UNIT)
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
        shares = np.zeros(attribute.size)
        shares_of_rows = task.within(name) * task.shares(name)[task.bins(name)]
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
    hidden = next(name for name, followed in families.previous if followed == families.order)
    order_variable, before, since = (
        nodes.place(families.order),
        nodes.place(hidden),
        nodes.place(families.since),
    )
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


# -- the recipe --------------------------------------------------------------------------------------

# Traces: a person's rows in order, each at a place that follows from the place before.
#
#     one-way tables -> cells of places, strata of persons, working bins        fit/denoise.py
#     flows: (stratum, only / first / middle / last, cell)
#     steps: (cell before, cell) -> walks that agree with both                  fit/walks.py
#     times: (number of rows, time since the row before), (stratum, first moment)
#     others: (cell, column) -> what else is true of a row; classes of alike cells
#     persons first, then their rows one after another                          rows/sample/walk.py
#
# After Syn-Loc (Bindschaedler, Shokri, IEEE S&P 2016): classes of places by what happens there, a chain of
# classes, and a place of the class by how many people come and go. What differs from it, and why, is in
# docs/decisions/0056-traces.md.

ONE_WAY_SHARE = 15
"""Percent for the one-way tables."""

MOST_CLASSES = 64
"""Classes of places at most."""


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
        names = [followed for _, followed in families.previous if followed != families.order]
        columns = [name for name in names if fold(name) == fold(self.place)]
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


def _of_the_row_before(families: Families, column: str) -> tuple[MarginalQuery, ...]:
    """Attributes that later tables are over, and that have no one-way table of their own."""
    before = next(name for name, followed in families.previous if followed == column)
    return MarginalQuery((families.place,)), MarginalQuery((before,))


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
    queries, most = _of_the_row_before(families, column), max(cells_of_tables)
    return Reserve("flows, steps and times", budget, queries, 3, most, sum(cells_of_tables))
