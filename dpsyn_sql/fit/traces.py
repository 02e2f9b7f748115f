"""The network of traces: a unit, what is known of the row before, the row.

Where rows lie (``Places``) is public once one-way tables are known; the tables that are fitted to noisy
answers (``Fitted``) become nodes. Post-processing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dpsyn_sql.attributes.attribute import edge_ticks
from dpsyn_sql.attributes.points import Points
from dpsyn_sql.fit.arrays import FloatArray, IntArray
from dpsyn_sql.fit.denoise import Binned
from dpsyn_sql.fit.gaussian import Ahead, ahead, first_moments
from dpsyn_sql.fit.network import Builder, Network, Node
from dpsyn_sql.fit.walks import FIRST, LAST, MIDDLE, ONLY, Walks, summed
from dpsyn_sql.planning.families import BEFORE, ROW, UNIT, Families


@dataclass(frozen=True, slots=True)
class Places:
    """Where rows of units may be: what is public once the one-way tables are known.

    ``column``: the attribute of places; ``cells``: of each of its codes its cell. ``total``: units.
    ``working``: attributes in their bins. ``strata``: of each code of the number of rows its stratum.
    """

    families: Families
    column: str
    total: float
    working: Binned
    cells: IntArray
    strata: IntArray

    @property
    def by_stratum(self) -> tuple[str, IntArray]:
        """The attribute of the number of rows, and the stratum of each of its codes."""
        return self.families.size, self.strata

    @property
    def by_cell(self) -> tuple[str, IntArray]:
        """The attribute of places, and the cell of each of its codes."""
        return self.column, self.cells

    @property
    def others(self) -> list[str]:
        """The written columns that are neither the places nor the moments."""
        written = self.families.domain.names[: self.families.written]
        return [name for name in written if name not in (self.column, self.families.order)]

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

    @property
    def before(self) -> tuple[str, IntArray]:
        """The attribute of the place of the row before, and the cell of each of its codes.

        That of NULL, which stands for a first row too, is the last."""
        name = row_before(self.families, self.column)
        cells = self.cells[: self.families.domain[name].size - 1]
        return name, np.append(cells, cells.max(initial=-1) + 1)

    @property
    def parts(self) -> list[IntArray]:
        """The codes of the number of rows of each stratum."""
        return [np.flatnonzero(self.strata == part) for part in range(int(self.strata.max()) + 1)]

    def centres(self) -> FloatArray | None:
        """Where cells of points lie (cells, axes), each axis in deviations of the rows; None for others."""
        attribute = self.families.domain[self.column]
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

    @property
    def discovered(self) -> FloatArray | None:
        """Rows of each cell by discovery, if it has counted leaves."""
        leaves = self.families.domain[self.column].leaves
        if leaves is None:
            return None
        return summed(self.cells[np.array(leaves.codes)], np.array(leaves.rows), int(self.cells.max()) + 1)


def row_before(families: Families, column: str) -> str:
    """The attribute that has the column of the row before."""
    return next(name for name, followed in families.previous if followed == column)


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

# The variables of the network are the attributes of the domain in their order, in bins; codes of these; then
# the stratum and the pace of a unit, and the cell of the row before.


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


class _Nodes(Builder):
    """The network of walks as it is made. The first variables are the attributes: places in cells, other
    columns in working bins, and codes of what orders and hides rows."""

    def __init__(self, places: Places) -> None:
        self.places, self.domain = places, places.families.domain
        bins = [np.arange(size) for size in self.domain.shape()]
        within = [np.ones(size) for size in self.domain.shape()]
        for name in places.others:
            bins[self.number(name)], within[self.number(name)] = places.bins(name), places.within(name)
        cells, codes = places.cells, places.of_codes(places.column) + 1e-12
        bins[self.number(places.column)] = cells
        within[self.number(places.column)] = codes / np.bincount(cells, codes)[cells]
        sizes = [int(bin_of.max()) + 1 for bin_of in bins]
        Builder.__init__(self, self.domain.names, sizes, bins, within)

    def number(self, name: str) -> int:
        return self.domain.index(name)

    def fine(self, name: str) -> bool:
        """Whether each code of an attribute is its own bin."""
        return bool(self.codes[self.number(name)] == self.number(name))

    def follow(self, level: int, label: str, parent: int, of: IntArray) -> int:
        """A new variable that is a function of the parent."""
        variable = self.variable(int(of.max()) + 1)
        self.add(label, [parent], [variable], np.eye(self.sizes[variable])[of], level=level)
        return variable


def network_of(places: Places, fitted: Fitted) -> Network:
    """All nodes, ascending by level. Those of the row before say how rows are on average; where rows are
    drawn, the row before is known."""
    nodes = _Nodes(places)
    stratum, pace = _unit(nodes, fitted)
    _before(nodes)
    _row(nodes, fitted, stratum, pace)
    return nodes.network({}, together=False)


def _unit(nodes: _Nodes, fitted: Fitted) -> tuple[int, int]:
    """The number of rows, and the other columns that all rows share; the variables of strata and paces."""
    places, families = nodes.places, nodes.places.families
    size = nodes.number(families.size)
    nodes.add(families.size, [], [size], fitted.sizes + 1e-12, level=UNIT)
    if differing := families.differing:
        nodes.add(differing, [], [nodes.number(differing)], places.of_codes(differing) + 1e-12, level=UNIT)
    stratum = nodes.follow(UNIT, "stratum", size, places.strata)
    for name in places.others:
        if name in families.persons:
            _column(nodes, UNIT, name, stratum, fitted.columns[name])
    return stratum, nodes.follow(UNIT, "pace", size, places.paces)


def _column(nodes: _Nodes, level: int, name: str, parent: int, shares: FloatArray) -> None:
    """A column whose bins hang on one variable."""
    label = name if nodes.fine(name) else f"{name}|bin"
    nodes.add(label, [parent], [nodes.number(name)], shares, level=level)
    nodes.add_codes(nodes.number(name), level)


def _before(nodes: _Nodes) -> None:
    """The place of a row in its family, and the row before, as they are on average."""
    places, families = nodes.places, nodes.places.families
    rows = places.rows
    kinds = np.zeros((rows.size, 4))
    kinds[:, ONLY] = rows <= 1
    several = rows > 1
    kinds[several, FIRST] = kinds[several, LAST] = 1 / rows[several]
    kinds[several, MIDDLE] = np.maximum(0.0, 1 - 2 / rows[several])
    kind = nodes.number(families.place)
    nodes.add(families.place, [nodes.number(families.size)], [kind], kinds, level=BEFORE)
    first = np.array([place_in_family in (ONLY, FIRST) for place_in_family in range(4)])
    for hidden, name in families.previous:
        attribute = nodes.domain[hidden]
        shares_of_rows = places.of_codes(name)
        shares = np.zeros(attribute.size)
        shares[: shares_of_rows.size] = shares_of_rows
        shares[-1] = 1e-12
        absent = np.eye(attribute.size)[-1]
        law = np.where(first[:, None], absent, shares / shares.sum())
        nodes.add(hidden, [kind], [nodes.number(hidden)], law, level=BEFORE)


def _row(nodes: _Nodes, fitted: Fitted, stratum: int, pace: int) -> None:
    """A row, given its unit and the row before: time since, moment, place, and what hangs on it."""
    places, families = nodes.places, nodes.places.families
    kind = nodes.number(families.place)
    since = nodes.number(families.since)
    times = np.zeros((nodes.sizes[pace], 4, nodes.sizes[since]))
    times[:, [ONLY, FIRST], -1] = 1.0
    times[:, MIDDLE, :-1] = times[:, LAST, :-1] = fitted.times
    nodes.add(families.since, [pace, kind], [since], times, level=ROW)
    _moment(nodes, fitted, pace)
    hidden, last = places.before
    earlier = nodes.follow(ROW, "cell before", nodes.number(hidden), last)
    walks = np.concatenate([fitted.walks.steps[:, : last[-1]], fitted.walks.starts[:, None, :]], axis=1)
    cell = nodes.number(places.column)
    nodes.add(
        places.column if nodes.fine(places.column) else "cell", [stratum, earlier], [cell], walks, level=ROW
    )
    nodes.add_codes(cell, ROW)
    for name in places.others:
        if name not in families.persons:
            _column(nodes, ROW, name, cell, fitted.columns[name])


def _moment(nodes: _Nodes, fitted: Fitted, pace: int) -> None:
    """The code of the ordering column: of a first row by pace; else what the code of the row before and the
    time since lead to."""
    places, families = nodes.places, nodes.places.families
    order = nodes.domain[families.order]
    hidden = row_before(families, families.order)
    order_variable, before, since = map(nodes.number, (families.order, hidden, families.since))
    if nodes.sizes[order_variable] == 1:
        return
    edges = np.array(edge_ticks(order), np.float64)
    lines = ahead(edges, np.array(edge_ticks(nodes.domain[families.since]), np.float64))
    begin = _first(places, fitted, lines, order.regular)
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


def _first(places: Places, fitted: Fitted, lines: Ahead, regular: int) -> FloatArray:
    """Shares of the codes of first rows (paces, codes); those that are no moments keep theirs."""
    shares = fitted.moments.copy()
    of, rows = places.paces, places.rows
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
