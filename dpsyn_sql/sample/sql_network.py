"""Models as Bayesian networks: nodes in order, each with the distribution of its variables given its parents.

What every SQL sampler draws from. A graphical model becomes one by directing its junction tree from the
root: a clique's variables beyond its separator are drawn together, given the separator (Koller and Friedman
2009, 10.4.3). Codes follow from working bins as one more variable, whose only parent is the bin. Nodes
that follow each other become one where their common table stays small, because each costs a look-up a row.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import singledispatch

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.fit.adaptive import GraphicalModel
from dpsyn_sql.fit.belief import summed
from dpsyn_sql.fit.independent import ProductModel
from dpsyn_sql.interfaces import Model

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

MOST_JOINED = 2**18
"""Lines of all nodes that are made of several, at most: they stay in a cache, and small on disk."""

MOST_BITS = 60
"""Bits of the values of a node that is made of several; they stand in one word."""


MOST_EMPTY = 2**16
"""Slots of the codes within bins, beyond which they may not be four times as many as the codes: a bin of most
codes of its attribute would give as many slots to every other."""


@dataclass(frozen=True, slots=True)
class Node:
    """Variables that are drawn together and their joint distribution given their parents, line by line.

    ``label`` is unique in the network and goes into the text that random bits are drawn by. Line i says that
    given the values ``given[i]`` of the parents (n, parents) the variables have the values ``values[i]``
    (n, variables) with probability ``weights[i]`` > 0. Lines stand in the order of given, then values;
    the weights of a configuration of the parents sum to one. A configuration without lines cannot occur.
    ``reach[i]`` is the probability of the configuration ``given[i]``, or a bound above it: the less often it
    occurs, the fewer digits its weights need.
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
    """Nodes in an order in which parents come first.

    ``sizes`` has the number of values of every variable. A variable without a node has one value, or nothing
    depends on it. ``codes[i]`` is the variable that holds the original codes of attribute i of the domain.
    """

    sizes: tuple[int, ...]
    nodes: tuple[Node, ...]
    codes: tuple[int, ...]


@singledispatch
def network_of(model: Model) -> Network | None:
    """The network of a fitted model, or None for a model that is none."""
    return None


@network_of.register
def _(model: ProductModel) -> Network:
    """Attributes without parents."""
    names, sizes = model.domain.names, model.domain.shape()
    tables = [_proper(model.margins.probabilities[name]) for name in names]
    nodes = [
        node_of(name, (), (index,), tables[index]) for index, name in enumerate(names) if sizes[index] > 1
    ]
    return Network(sizes, _joined(nodes, sizes), tuple(range(len(names))))


@network_of.register
def _(model: GraphicalModel) -> Network:
    """Working bins and twins by the junction tree, codes within bins right after them."""
    tree, names = model.beliefs.tree, model.domain.names
    folded = [
        index for index, bins in enumerate(model.bins) if not np.array_equal(bins, np.arange(bins.size))
    ]
    codes = list(range(len(names)))
    sizes = [*tree.sizes, *(model.bins[index].size for index in folded)]
    for place, index in enumerate(folded):
        codes[index] = len(tree.sizes) + place
    nodes, needed = list[Node](), set(range(len(names)))
    for clique in reversed(tree.order):  # children first: what nothing depends on is not drawn
        new = [v for v in tree.cliques[clique] if v not in tree.separators[clique] and v in needed]
        if all(sizes[v] == 1 for v in new):
            continue
        needed.update(tree.separators[clique])
        own = _clique_node(model, clique, [v for v in new if sizes[v] > 1])
        after = [v for v in new if v < len(names) and codes[v] != v]
        nodes[:0] = [own, *(node for v in after for node in _code_nodes(model, v, codes[v], sizes))]
    drawn = {variable for node in nodes for variable in node.variables}
    # A bin that holds all codes of its attribute is not drawn; they are.
    for v in folded:
        if codes[v] not in drawn and sizes[codes[v]] > 1:
            nodes += _code_nodes(model, v, codes[v], sizes)
    return Network(tuple(sizes), _joined(nodes, sizes), tuple(codes))


def node_of(
    label: str,
    parents: Sequence[int],
    variables: Sequence[int],
    table: FloatArray,
    reach: FloatArray | None = None,
) -> Node:
    """The node of an array with an axis for each parent, then one for each variable; rows of any sums.

    ``reach`` (configurations of the parents,) as in ``Node``; None where nothing is known of it.
    """
    given = table.shape[: len(parents)]
    rows = table.reshape(math.prod(given), -1)
    row, value = np.nonzero(rows)
    return Node(
        label,
        tuple(variables),
        tuple(parents),
        _side_by_side(np.unravel_index(row, given) if given else (), row.size),
        _side_by_side(np.unravel_index(value, table.shape[len(parents) :]), row.size),
        (rows / np.maximum(rows.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny))[row, value],
        np.ones(row.size) if reach is None else reach[row],
    )


def configurations(node: Node, sizes: Sequence[int]) -> int:
    """How many configurations the parents of a node have, possible or not."""
    return math.prod(sizes[parent] for parent in node.parents)


def slot_bits_of(node: Node) -> int:
    """Each configuration of the parents has 2 to this power slots to look its lines up by: as many as the
    most lines that one has, at least 2."""
    begins = np.flatnonzero((node.given[1:] != node.given[:-1]).any(axis=1)) + 1
    most = int(np.diff(begins, prepend=0, append=len(node.weights)).max())
    return max(1, (most - 1).bit_length())


def _side_by_side(columns: Sequence[IntArray], rows: int) -> IntArray:
    """(rows, columns), each column in one piece."""
    return np.asarray(np.array(columns, np.int64).reshape(len(columns), rows).T)


def _clique_node(model: GraphicalModel, index: int, new: Sequence[int]) -> Node:
    """A clique's ``new`` variables given its separator.

    A configuration of the separator that the parent clique holds possible and this one does not
    (potentials beyond float64) gets the variables' own marginals: every row drawn goes on.
    """
    tree, tables = model.beliefs.tree, model.beliefs.tables
    clique, separator = tree.cliques[index], tree.separators[index]
    parents = [variable for variable in separator if tree.sizes[variable] > 1]
    table = _over(tables[index], clique, (*parents, *new))
    rows = table.reshape(math.prod(tree.sizes[v] for v in parents), -1).copy()
    reach = rows.sum(axis=1)
    lost = reach <= 0
    if tree.parents[index] >= 0:
        above = tree.parents[index]
        lost &= _over(tables[above], tree.cliques[above], parents).ravel() > 0
    if lost.any():
        mean = rows.sum(axis=0)
        rows[lost] = mean if mean.sum() > 0 else 1.0
    names = model.domain.names
    label = names[new[0]] if new[0] < len(names) else f"{new[0]}|twin"
    return node_of(label, parents, new, rows.reshape(table.shape), reach / reach.sum())


def _over(table: FloatArray, clique: Sequence[int], kept: Sequence[int]) -> FloatArray:
    """The table of a clique over some of its variables, in this order."""
    gone = [axis for axis, variable in enumerate(clique) if variable not in kept]
    left = [variable for variable in clique if variable in kept]
    return np.ascontiguousarray(summed(table, gone).transpose([left.index(variable) for variable in kept]))


def _code_nodes(model: GraphicalModel, attribute: int, variable: int, sizes: list[int]) -> list[Node]:
    """The codes of an attribute given its working bin.

    Where one bin has far more of them than others, by way of blocks of codes: one more variable, whose size
    is added to ``sizes``.
    """
    bins, within = model.bins[attribute], model.within[attribute]
    name = model.domain.names[attribute]
    if model.beliefs.tree.sizes[attribute] == 1:
        return [node_of(f"{name}|code", (), (variable,), _proper(within))]
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
    """A variable whose values each go with one value ``of[value]`` of its parent, as ``weights`` says."""
    weights = np.where(np.bincount(of, weights)[of] > 0, weights, 1.0)
    values = np.flatnonzero(weights)
    values = values[np.argsort(of[values], kind="stable")]
    shares = (weights / np.bincount(of, weights)[of])[values]
    return Node(
        label, (variable,), (parent,), of[values][:, None], values[:, None], shares, np.ones(values.size)
    )


def _proper(weights: FloatArray) -> FloatArray:
    """Rows without mass, which nothing should reach, become even ones."""
    return np.where(weights.sum(axis=-1, keepdims=True) > 0, weights, 1.0)


def _joined(nodes: Sequence[Node], sizes: Sequence[int]) -> tuple[Node, ...]:
    """Neighbours drawn together where few lines come of it."""
    joined, most = list[Node](), MOST_JOINED // max(1, len(nodes))
    for node in nodes:
        both = _both(joined[-1], node, sizes, most) if joined else None
        if both is None:
            joined.append(node)
        else:
            joined[-1] = both
    return tuple(joined)


def _both(first: Node, second: Node, sizes: Sequence[int], most: int) -> Node | None:
    """Two nodes as one: P(A | S) P(B | T) over A and B given S and what of T is not in A; None if that has
    more than ``most`` lines, or slots more than twice that."""
    variables = (*first.variables, *second.variables)
    outside = [parent for parent in second.parents if parent not in (*first.variables, *first.parents)]
    lines = len(first.weights) * math.prod(sizes[parent] for parent in outside)
    bits = sum((sizes[variable] - 1).bit_length() for variable in variables)
    if lines > most or bits > MOST_BITS:
        return None
    columns = dict(zip((*first.parents, *first.variables), [*first.given.T, *first.values.T], strict=True))
    line, crossed = np.divmod(np.arange(lines), lines // len(first.weights))
    columns = {variable: column[line] for variable, column in columns.items()}
    values = np.unravel_index(crossed, [sizes[parent] for parent in outside]) if outside else ()
    columns.update(zip(outside, values, strict=True))
    starts, counts = _matching(second, [columns[parent] for parent in second.parents], lines, sizes)
    if counts.sum() > most:
        return None
    kept = np.repeat(np.arange(lines), counts)
    other = np.arange(kept.size) - np.repeat(counts.cumsum() - counts, counts) + starts[kept]
    columns = {variable: column[kept] for variable, column in columns.items()}
    columns.update(zip(second.variables, second.values[other].T, strict=True))
    parents = (*first.parents, *outside)
    order = np.lexsort([columns[variable] for variable in reversed((*parents, *variables))])
    both = Node(
        first.label,
        variables,
        parents,
        _side_by_side([columns[parent][order] for parent in parents], order.size),
        _side_by_side([columns[variable][order] for variable in variables], order.size),
        (first.weights[line[kept]] * second.weights[other])[order],
        first.reach[line[kept]][order],
    )
    return both if configurations(both, sizes) << slot_bits_of(both) <= 2 * most else None


def _matching(
    node: Node, given: Sequence[IntArray], number: int, sizes: Sequence[int]
) -> tuple[IntArray, IntArray]:
    """Of each of so many configurations of a node's parents the first of its lines, and how many they are."""
    shape = [sizes[parent] for parent in node.parents]
    if not shape:
        return np.zeros(number, np.int64), np.full(number, len(node.weights))
    own, asked = np.ravel_multi_index(tuple(node.given.T), shape), np.ravel_multi_index(tuple(given), shape)
    starts = np.searchsorted(own, asked, side="left")
    return starts, np.searchsorted(own, asked, side="right") - starts
