"""The network of fitted traces: a unit, what is known of the row before, the row.

The variables of the network are the attributes of the domain in their order, then the stratum of a unit, the
cell of a row, the cell of the row before, and working bins of other columns.
"""

from __future__ import annotations

import numpy as np

from dpsyn_sql.domain.attributes import edge_ticks
from dpsyn_sql.fit.arrays import FloatArray, IntArray
from dpsyn_sql.fit.network import Network, Node, code_nodes, node_of
from dpsyn_sql.fit.walks import FIRST, LAST, MIDDLE, ONLY
from dpsyn_sql.methods.traces.tables import Fitted, Task
from dpsyn_sql.planning.families import BEFORE, ROW, UNIT

_POINTS = 8
# Moments of a bin, and times of a bin, whose sums say which bin comes next.


class _Nodes:
    """Nodes as they are made, with their levels."""

    def __init__(self, task: Task) -> None:
        self.task, self.domain = task, task.families.domain
        self.sizes = list(self.domain.shape())
        self.made: list[tuple[int, Node]] = []

    def place(self, name: str) -> int:
        return self.domain.index(name)

    def variable(self, size: int) -> int:
        self.sizes.append(size)
        return len(self.sizes) - 1

    def add(self, level: int, label: str, parents: list[int], variable: int, table: FloatArray) -> None:
        """A variable given its parents, by an array; parents of one value are left out."""
        shape = [self.sizes[parent] for parent in parents]
        kept = [parent for parent, size in zip(parents, shape, strict=True) if size > 1]
        table = table.reshape([size for size in shape if size > 1] + [self.sizes[variable]])
        if self.sizes[variable] > 1:
            self.made.append((level, node_of(label, kept, [variable], table)))

    def follow(self, level: int, label: str, parent: int, of: IntArray) -> int:
        """A new variable that is a function of the parent."""
        made = self.variable(int(of.max()) + 1)
        self.add(level, label, [parent], made, np.eye(self.sizes[made])[of])
        return made

    def coded(self, level: int, name: str, bins: IntArray, within: FloatArray) -> int:
        """A new variable for the bins of an attribute, whose codes follow them once it is drawn; they are
        added by ``codes``."""
        return self.place(name) if _own(bins) else self.variable(int(bins.max()) + 1)

    def codes(self, level: int, name: str, variable: int, bins: IntArray, within: FloatArray) -> None:
        """The codes of an attribute, given the variable of its bins."""
        if variable != self.place(name) and self.sizes[self.place(name)] > 1:
            nodes = code_nodes(name, variable, self.place(name), self.sizes, bins, within)
            self.made += [(level, node) for node in nodes]

    def network(self) -> Network:
        ordered = sorted(self.made, key=lambda one: one[0])
        return Network(
            tuple(self.sizes),
            tuple(node for _, node in ordered),
            tuple(range(len(self.domain.names))),
            tuple(level for level, _ in ordered),
        )


def network_of(task: Task, found: Fitted) -> Network:
    """All nodes, ascending by level. Those of the row before say how rows are on average; where rows are
    drawn, the row before is known."""
    nodes = _Nodes(task)
    stratum = _unit(nodes, found)
    _before(nodes, found, stratum)
    _row(nodes, found, stratum)
    return nodes.network()


def _own(bins: IntArray) -> bool:
    return bool(np.array_equal(bins, np.arange(bins.size)))


def _unit(nodes: _Nodes, found: Fitted) -> int:
    """The number of rows, its stratum, and the other columns that all rows share; the variable of strata."""
    task, families = nodes.task, nodes.task.families
    size = nodes.place(families.size)
    nodes.add(UNIT, families.size, [], size, found.sizes + 1e-12)
    stratum = nodes.follow(UNIT, "stratum", size, task.strata)
    for name in task.others:
        if name in families.persons:
            _column(nodes, UNIT, name, stratum, found.others[name])
    return stratum


def _column(nodes: _Nodes, level: int, name: str, given: int, shares: FloatArray) -> None:
    """A column whose bins hang on one variable."""
    bins, within = nodes.task.bins(name), nodes.task.within(name)
    variable = nodes.coded(level, name, bins, within)
    label = name if variable == nodes.place(name) else f"{name}|bin"
    nodes.add(level, label, [given], variable, shares)
    nodes.codes(level, name, variable, bins, within)


def _before(nodes: _Nodes, found: Fitted, stratum: int) -> None:
    """The place of a row in its family, and the row before, as they are on average."""
    task, families = nodes.task, nodes.task.families
    rows = task.rows
    kinds = np.zeros((rows.size, 4))
    kinds[:, ONLY] = rows <= 1
    several = rows > 1
    kinds[several, FIRST] = kinds[several, LAST] = 1 / rows[several]
    kinds[several, MIDDLE] = np.maximum(0.0, 1 - 2 / rows[several])
    kind = nodes.place(families.place)
    nodes.add(BEFORE, families.place, [nodes.place(families.size)], kind, kinds)
    first = np.array([one in (ONLY, FIRST) for one in range(4)])
    for hidden, name in families.previous:
        attribute = nodes.domain[hidden]
        shares = np.zeros(attribute.size)
        own = task.within(name) * task.shares(name)[task.bins(name)]
        shares[: own.size] = own
        shares[-1] = 1e-12
        absent = np.eye(attribute.size)[-1]
        nodes.add(
            BEFORE, hidden, [kind], nodes.place(hidden), np.where(first[:, None], absent, shares / shares.sum())
        )


def _row(nodes: _Nodes, found: Fitted, stratum: int) -> None:
    """A row, given its unit and the row before: the time since, the moment, the place, and what hangs on it."""
    task, families = nodes.task, nodes.task.families
    kind, size = nodes.place(families.place), nodes.place(families.size)
    since = nodes.place(families.since)
    times = np.zeros((nodes.sizes[size], 4, nodes.sizes[since]))
    times[:, [ONLY, FIRST], -1] = 1.0
    times[:, MIDDLE, :-1] = times[:, LAST, :-1] = found.times
    nodes.add(ROW, families.since, [size, kind], since, times)
    _moment(nodes, found, stratum)
    cells, number = task.cells, int(task.cells.max()) + 1
    hidden, last = task.before
    earlier = nodes.follow(ROW, "cell before", nodes.place(hidden), last)
    walks = np.concatenate([found.walks.steps[:, : last[-1]], found.walks.starts[:, None, :]], axis=1)
    shares = task.within(task.place) * task.shares(task.place)[task.bins(task.place)] + 1e-12
    within = shares / np.bincount(cells, shares)[cells]
    cell = nodes.place(task.place) if _own(cells) else nodes.variable(number)
    nodes.add(ROW, task.place if _own(cells) else "cell", [stratum, earlier], cell, walks)
    nodes.codes(ROW, task.place, cell, cells, within)
    for name in task.others:
        if name not in families.persons:
            _column(nodes, ROW, name, cell, found.others[name])


def _moment(nodes: _Nodes, found: Fitted, stratum: int) -> None:
    """The code of the ordering column: of a first row by stratum; else what the code of the row before and the
    time since lead to."""
    task, families = nodes.task, nodes.task.families
    order = nodes.domain[families.order]
    hidden = dict((followed, hidden) for hidden, followed in families.previous)[families.order]
    own, before, since = nodes.place(families.order), nodes.place(hidden), nodes.place(families.since)
    if nodes.sizes[own] == 1:
        return
    bins, within = task.bins(families.order), task.within(families.order)
    begin = found.starts[:, bins] * within
    strata, codes, gaps = begin.shape[0], nodes.sizes[before], nodes.sizes[since]
    lines = [_lines(np.array([codes - 1, gap]), begin, strata) for gap in range(gaps)]
    lines += [_lines(np.array([code, gaps - 1]), _undated(order.size, code, order.null_code), strata) for code in range(codes - 1)]
    ahead = _ahead(edge_ticks(order), edge_ticks(nodes.domain[families.since]))
    spread = [np.concatenate([np.full((len(ahead), 1), s), ahead[:, :3]], axis=1) for s in range(strata)]
    table = np.concatenate([*lines, *(np.column_stack([one, ahead[:, 3]]) for one in spread)])
    table = table[np.lexsort(table[:, 3::-1].T)]
    given, values, weights = table[:, :3].astype(np.int64), table[:, 3:4].astype(np.int64), table[:, 4]
    parents = [stratum, before, since]
    several = [i for i, parent in enumerate(parents) if nodes.sizes[parent] > 1]
    nodes.made.append(
        (
            ROW,
            Node(
                families.order,
                (own,),
                tuple(parents[i] for i in several),
                np.ascontiguousarray(given[:, several]),
                np.ascontiguousarray(values),
                np.ascontiguousarray(weights),
                np.ones(weights.size),
            ),
        )
    )


def _undated(size: int, code: int, null: int | None) -> FloatArray:
    """A row that has no time since the row before has no moment; or that of the row before."""
    return np.eye(size)[None, min(code, size - 1) if null is None else null]


def _lines(given: IntArray, shares: FloatArray, strata: int) -> FloatArray:
    """Lines (stratum, code before, time since, code, probability) of codes given the stratum."""
    shares = np.broadcast_to(shares, (strata, shares.shape[-1]))
    shares = shares / shares.sum(axis=1, keepdims=True)
    rows, codes = np.nonzero(shares)
    return np.column_stack([rows, np.tile(given, (rows.size, 1)), codes, shares[rows, codes]])


def _ahead(edges: tuple[int, ...], spans: tuple[int, ...]) -> FloatArray:
    """Lines (code before, time since, code, probability): a moment anywhere in its bin and a time anywhere in
    its own. What would lie after the last bin is left out, or in the last bin if nothing else is left."""
    cuts, steps = np.array(edges, np.float64), np.array(spans, np.float64)
    parts = (np.arange(_POINTS) + 0.5) / _POINTS
    moments = cuts[:-1, None] + np.diff(cuts)[:, None] * parts
    times = steps[:-1, None] + np.diff(steps)[:, None] * parts
    number, found = cuts.size - 1, list[FloatArray]()
    for code in range(number):
        sums = (moments[code][:, None, None] + times[None]).transpose(1, 0, 2).reshape(len(times), -1)
        after = np.searchsorted(cuts, sums, side="right") - 1
        counts = np.stack([np.bincount(one, minlength=number + 1) for one in after]).astype(np.float64)
        lost = counts[:, :number].sum(axis=1) == 0
        counts[lost, number - 1] = 1.0
        shares = counts[:, :number] / counts[:, :number].sum(axis=1, keepdims=True)
        gap, next_ = np.nonzero(shares)
        found.append(np.column_stack([np.full(gap.size, code), gap, next_, shares[gap, next_]]))
    return np.concatenate(found)
