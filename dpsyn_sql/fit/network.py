"""Networks of conditional tables: nodes in order, each with the distribution of its variables given parents.

SQL samples from such networks. Trees, junction trees and PrivBayes models are all networks. Neighbouring
nodes become one (``joined``) if their common table stays small, because each node costs a look-up per row.

``ModelTables`` are stored with a model: SQL answers marginals from them. A marginal is the sum of the
smallest table that holds its attributes, divided among the codes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.attributes.attribute import Domain
from dpsyn_sql.errors import InternalError
from dpsyn_sql.fit.arrays import FloatArray, IntArray
from dpsyn_sql.fit.graph import Scope, cells_of
from dpsyn_sql.planning.families import Families
from dpsyn_sql.planning.limits import NO_DEADLINE, Deadline

MOST_JOINED = 2**18
"""The most lines of all joined nodes: they stay in a cache, and small on disk."""

MOST_BITS = 60
"""Bits of the values of a joined node; they fit in one word."""


@dataclass(frozen=True, slots=True)
class Node:
    """Variables that are drawn together and their joint distribution given their parents, line by line.

    ``label`` is unique in the network and part of the text that random bits are drawn by. Line i says that
    given the values ``given[i]`` of the parents (n, parents) the variables have the values ``values[i]``
    (n, variables) with probability ``weights[i]`` > 0. Lines are sorted by given, then values. The weights
    of a configuration of the parents sum to one. A configuration without lines cannot occur. ``reach[i]`` is
    the probability of the configuration ``given[i]``, or a bound above it: rarer ones need fewer digits.
    """

    label: str
    variables: tuple[int, ...]
    parents: tuple[int, ...]
    given: IntArray
    values: IntArray
    weights: FloatArray
    reach: FloatArray


@dataclass(frozen=True, slots=True)
class Network:
    """Nodes in an order where parents come first.

    ``sizes`` has the number of values of every variable. A variable without a node has one value, or nothing
    depends on it. ``codes[i]`` is the variable that holds the original codes of attribute i of the domain.

    ``levels``: of each node, ascending, if rows of a unit are drawn after the unit (``fit/elimination.py``);
    else none. ``evidence``: variables that no node draws because they are known before; of each the bin
    (int64) of every code of the attribute of the same number.
    """

    sizes: tuple[int, ...]
    nodes: tuple[Node, ...]
    codes: tuple[int, ...]
    levels: tuple[int, ...] = ()
    evidence: Mapping[int, IntArray] = field(default_factory=dict)


def node_of(
    label: str,
    parents: Sequence[int],
    variables: Sequence[int],
    table: FloatArray,
    reach: FloatArray | None = None,
) -> Node:
    """The node of an array with an axis for each parent, then one for each variable; rows of any sums.

    ``reach`` (configurations of the parents,) as in ``Node``; None if it is not known.

    Raises:
        InternalError: a number is negative or not finite, or all are 0.
    """
    shape = table.shape[: len(parents)]
    rows = table.reshape(math.prod(shape), -1)
    highest = rows.max(axis=1, keepdims=True)
    if not (np.isfinite(highest).all() and float(rows.min()) >= 0 and float(highest.max()) > 0):
        raise InternalError(f"the distribution of {label!r} in a fitted model has no mass, or is none")
    shares = rows / np.where(highest > 0, highest, 1.0)  # their sum is 1 or more, however small rows are
    shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1.0)
    row, value = np.nonzero(shares)
    return Node(
        label,
        tuple(variables),
        tuple(parents),
        _side_by_side(np.unravel_index(row, shape) if shape else (), row.size),
        _side_by_side(np.unravel_index(value, table.shape[len(parents) :]), row.size),
        shares[row, value],
        np.ones(row.size) if reach is None else reach[row],
    )


def configurations(node: Node, sizes: Sequence[int]) -> int:
    """How many configurations the parents of a node have, possible or not."""
    return math.prod(sizes[parent] for parent in node.parents)


def slot_bits_of(node: Node) -> int:
    """Each configuration of the parents has 2 to this power slots to look up its lines: at least 2, and at
    least as many as the most lines of one configuration."""
    begins = np.flatnonzero((node.given[1:] != node.given[:-1]).any(axis=1)) + 1
    most = int(np.diff(begins, prepend=0, append=len(node.weights)).max())
    return max(1, (most - 1).bit_length())


def _side_by_side(columns: Sequence[IntArray], rows: int) -> IntArray:
    """(rows, columns), each column in one piece."""
    return np.asarray(np.array(columns, np.int64).reshape(len(columns), rows).T)


def proper(weights: FloatArray) -> FloatArray:
    """Rows without mass, which nothing should reach, become uniform."""
    return np.where(weights.sum(axis=-1, keepdims=True) > 0, weights, 1.0)


def joined(nodes: Sequence[Node], sizes: Sequence[int]) -> tuple[Node, ...]:
    """The network with neighbours drawn together if that gives few lines."""
    merged, most = list[Node](), MOST_JOINED // max(1, len(nodes))
    for node in nodes:
        union = _both(merged[-1], node, sizes, most) if merged else None
        if union is None:
            merged.append(node)
        else:
            merged[-1] = union
    return tuple(merged)


def _both(first: Node, second: Node, sizes: Sequence[int], most: int) -> Node | None:
    """Two nodes as one: P(A | S) P(B | T) over A and B given S and the part of T outside A. None if that has
    more than ``most`` lines, or more than twice as many slots."""
    variables = (*first.variables, *second.variables)
    outside = [parent for parent in second.parents if parent not in (*first.variables, *first.parents)]
    lines = len(first.weights) * math.prod(sizes[parent] for parent in outside)
    bits = sum((sizes[variable] - 1).bit_length() for variable in variables)
    if lines > most or bits > MOST_BITS:
        return None
    base, added = columns_of(first), columns_of(second)
    matches = agreeing(base, added, sizes, (first.weights.size, second.weights.size))
    if matches.counts.sum() > most:
        return None
    line, partner = matches.pairs()
    columns = {variable: column[partner] for variable, column in added.items()}
    columns |= {variable: column[line] for variable, column in base.items()}
    parents = (*first.parents, *outside)
    order = np.lexsort([columns[variable] for variable in reversed((*parents, *variables))])
    union = Node(
        first.label,
        variables,
        parents,
        _side_by_side([columns[parent][order] for parent in parents], order.size),
        _side_by_side([columns[variable][order] for variable in variables], order.size),
        (first.weights[line] * second.weights[partner])[order],
        first.reach[line][order],
    )
    return union if configurations(union, sizes) << slot_bits_of(union) <= 2 * most else None


def columns_of(node: Node) -> dict[int, IntArray]:
    """The values (n,) of each parent and variable of a node, line by line."""
    return dict(zip((*node.parents, *node.variables), [*node.given.T, *node.values.T], strict=True))


def numbered(
    columns: Mapping[int, IntArray], scope: Sequence[int], sizes: Sequence[int], lines: int
) -> IntArray:
    """The number (n,) of each of so many lines' values of ``scope``, row-major; 0 if there are none."""
    if not scope:
        return np.zeros(lines, np.int64)
    shape = tuple(sizes[variable] for variable in scope)
    return np.asarray(np.ravel_multi_index(tuple(columns[v] for v in scope), shape), np.int64)


@dataclass(frozen=True, slots=True)
class Matches:
    """Lines of two tables that agree: of each line of the first ``counts`` lines of the second, which stand
    in ``order`` from ``starts`` on; int64 all."""

    starts: IntArray
    counts: IntArray
    order: IntArray

    def pairs(self) -> tuple[IntArray, IntArray]:
        """The places of all pairs in both tables, in the order of the first."""
        line = np.repeat(np.arange(self.counts.size), self.counts)
        place = np.arange(line.size) - np.repeat(self.counts.cumsum() - self.counts, self.counts)
        return line, self.order[place + self.starts[line]]


def agreeing(
    first: Mapping[int, IntArray],
    second: Mapping[int, IntArray],
    sizes: Sequence[int],
    lines: tuple[int, int],
) -> Matches:
    """Lines of two tables, of values by variable, that agree in the variables of both; ``lines``: how many
    the tables have."""
    shared = tuple(variable for variable in first if variable in second)
    here, there = (
        numbered(columns, shared, sizes, number)
        for columns, number in zip((first, second), lines, strict=True)
    )
    order = np.argsort(there, kind="stable")
    starts = np.searchsorted(there[order], here, side="left")
    return Matches(starts, np.searchsorted(there[order], here, side="right") - starts, order)


MOST_EMPTY = 2**16
"""Above this number, the slots of codes within bins may be at most four times the codes: a bin with most
codes of its attribute would give as many slots to every other bin."""


def code_nodes(
    name: str, attribute: int, variable: int, sizes: list[int], bins: IntArray, within: FloatArray
) -> list[Node]:
    """The codes of an attribute given its working bin.

    If one bin has far more codes than others, blocks of codes are one more variable in between; its size is
    added to ``sizes``.
    """
    if sizes[attribute] == 1:
        return [node_of(f"{name}|code", (), (variable,), proper(within))]
    node = _parted(f"{name}|code", attribute, variable, bins, within)
    bits = slot_bits_of(node)
    if configurations(node, sizes) << bits <= max(MOST_EMPTY, 4 * len(node.weights)):
        return [node]
    order = np.argsort(bins, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(bins.size) - np.searchsorted(bins[order], bins[order])
    (bin_of, _), block_of = np.unique(np.stack([bins, rank >> bits // 2]), axis=1, return_inverse=True)
    block_of, block = block_of.ravel(), len(sizes)
    sizes.append(bin_of.size)
    shares = np.bincount(block_of, within).astype(np.float64)
    return [
        _parted(f"{name}|block", attribute, block, bin_of, shares),
        _parted(f"{name}|code", block, variable, block_of, within),
    ]


def _parted(label: str, parent: int, variable: int, of: IntArray, weights: FloatArray) -> Node:
    """A variable each of whose values belongs to one value ``of[value]`` of its parent, with ``weights``."""
    weights = np.where(np.bincount(of, weights)[of] > 0, weights, 1.0)
    values = np.flatnonzero(weights)
    values = values[np.argsort(of[values], kind="stable")]
    shares = (weights / np.bincount(of, weights)[of])[values]
    return Node(
        label, (variable,), (parent,), of[values][:, None], values[:, None], shares, np.ones(values.size)
    )


class Builder:
    """A network as its nodes are made, in the order in which they are drawn.

    The first variables are the attributes in working bins, then come further ones of ``sizes``, then the
    codes of attributes whose bins are wider than a code, and what is added later.

    Args:
        names: of the attributes, for labels.
        sizes: values of each variable, as far as they are known.
        bins: int64 of each attribute, one per code: its working bin. None: each code is its own.
        within: float64 of each attribute, one per code: its probability given the bin.
    """

    def __init__(
        self,
        names: Sequence[str],
        sizes: Sequence[int],
        bins: Sequence[IntArray] = (),
        within: Sequence[FloatArray] = (),
    ) -> None:
        self.names, self.sizes, self.codes = names, [*sizes], [*range(len(names))]
        self._bins, self._within = bins, within
        self._made = list[tuple[int, Node]]()
        for attribute, bin_of in enumerate(bins):
            if not np.array_equal(bin_of, np.arange(bin_of.size)):
                self.codes[attribute] = self.variable(bin_of.size)

    def variable(self, size: int) -> int:
        """A new variable of so many values."""
        self.sizes.append(size)
        return len(self.sizes) - 1

    def add(
        self,
        label: str,
        parents: Sequence[int],
        variables: Sequence[int],
        table: FloatArray,
        reach: FloatArray | None = None,
        level: int = 0,
    ) -> None:
        """A node, as of ``node_of``; variables and parents of one value are left out, and a node of none."""
        parents, variables = ([v for v in group if self.sizes[v] > 1] for group in (parents, variables))
        if variables:
            table = table.reshape([self.sizes[variable] for variable in (*parents, *variables)])
            self.add_node(node_of(label, parents, variables, table, reach), level)

    def add_node(self, node: Node, level: int = 0) -> None:
        """A node that is made already."""
        self._made.append((level, node))

    def add_codes(self, attribute: int, level: int = 0) -> None:
        """The codes of an attribute given its bin, unless each is its own, or there is one."""
        code = self.codes[attribute]
        if code != attribute and self.sizes[code] > 1:
            bins, within = self._bins[attribute], self._within[attribute]
            for node in code_nodes(self.names[attribute], attribute, code, self.sizes, bins, within):
                self.add_node(node, level)

    def network(self, evidence: Mapping[int, IntArray] | None = None, *, together: bool = True) -> Network:
        """The network of all nodes, neighbours of a level drawn together. With ``evidence`` (it may be empty)
        nodes have levels."""
        levels = sorted({level for level, _ in self._made})
        nodes = {level: [node for of, node in self._made if of == level] for level in levels}
        if together:
            nodes = {level: [*joined(of_level, self.sizes)] for level, of_level in nodes.items()}
        of_each = (
            tuple(level for level in levels for _ in nodes[level])
            if any(levels) or evidence is not None
            else ()
        )
        return Network(
            tuple(self.sizes),
            tuple(node for level in levels for node in nodes[level]),
            tuple(self.codes),
            of_each,
            evidence or {},
        )


Table = tuple[Scope, FloatArray]

MOST_CELLS = 2**22
"""The most stored cells of tables that no larger table holds, smaller ones first. 4 million take 16 MB."""


@dataclass(frozen=True, slots=True)
class ModelTables:
    """Joint probabilities: ``tables`` are (positions of attributes, array over their bins; of shape (1,)
    if each has one bin, because arrays have at most 64 axes).

    ``bins[i]`` (int64, one per code of attribute i) is the bin of each code, ``within[i]`` its share of
    the bin.
    """

    bins: tuple[IntArray, ...]
    within: tuple[FloatArray, ...]
    tables: tuple[Table, ...]


def tables_of_codes(sizes: Sequence[int], tables: Iterable[Table]) -> ModelTables:
    """Tables over the codes themselves: each code is its own bin."""
    return ModelTables(
        tuple(np.arange(size) for size in sizes), tuple(np.ones(size) for size in sizes), tuple(tables)
    )


def affordable(
    scopes: Iterable[Scope], sizes: Sequence[int], room: int | None = None
) -> tuple[list[Scope], int]:
    """The smallest of ``scopes`` whose cells fit in ``room`` (default: ``MOST_CELLS``) together, and the room
    left (below 0 if one did not fit)."""
    room = MOST_CELLS if room is None else room
    fitting = list[Scope]()
    for scope in sorted(scopes, key=lambda scope: cells_of([scope], sizes)):
        room -= cells_of([scope], sizes)
        if room < 0:
            break
        fitting.append(scope)
    return fitting, room


# -- models --------------------------------------------------------------------------------------------

# What a fitted model answers, and how its rows are drawn.


class MarginalModel(Protocol):
    """What is known of a table after the fit, or read back from where it is stored; public."""

    @property
    def domain(self) -> Domain:
        """The attributes it models."""

    @property
    def total(self) -> float:
        """Estimated number of (bounded) rows of the source; may be negative."""

    def supports(self, attrs: Sequence[str]) -> bool:
        """Whether ``project`` answers for these attributes; cheap."""

    def project(self, attrs: Sequence[str]) -> NDArray[np.float64]:
        """Expected counts of a marginal the model can answer, axes in the order of ``attrs``.

        Raises:
            InputError: it does not support these attributes.
        """


class Model(MarginalModel, Protocol):
    """A fitted model. It says itself what it answers and how its rows are drawn."""

    def network(self) -> Network | None:
        """What SQL draws rows of it from; None for a model that is no network."""

    def tables(self) -> ModelTables:
        """What SQL answers marginals from."""

    def sampler(self, deadline: Deadline = NO_DEADLINE) -> Sampler:
        """What draws its rows; ``deadline`` says how much time there is."""


def families_in(model: Model) -> Families | None:
    """How rows of a unit go together in a model; None if every row is by itself."""
    families = getattr(model, "families", None)
    return families if isinstance(families, Families) else None


class Sampler(Protocol):
    """Draws synthetic rows as codes; post-processing, deterministic in the seed."""

    @property
    def drawn(self) -> str:
        """How it draws rows, as certificates have it: ``"with low variance"``."""

    def batches(self, rows: int, seed: int) -> Iterator[NDArray[np.integer[Any]]]:
        """Arrays of shape (batch, attributes) that sum to ``rows`` rows."""
