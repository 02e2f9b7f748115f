"""Networks of conditional tables: nodes in order, each with the distribution of its variables given parents.

SQL samples from such networks. Trees, junction trees and PrivBayes models are all networks. Neighbouring
nodes become one (``joined``) if their common table stays small, because each node costs a look-up per row.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

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
    """

    sizes: tuple[int, ...]
    nodes: tuple[Node, ...]
    codes: tuple[int, ...]


def node_of(
    label: str,
    parents: Sequence[int],
    variables: Sequence[int],
    table: FloatArray,
    reach: FloatArray | None = None,
) -> Node:
    """The node of an array with an axis for each parent, then one for each variable; rows of any sums.

    ``reach`` (configurations of the parents,) as in ``Node``; None if it is not known.
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
    made, most = list[Node](), MOST_JOINED // max(1, len(nodes))
    for node in nodes:
        both = _both(made[-1], node, sizes, most) if made else None
        if both is None:
            made.append(node)
        else:
            made[-1] = both
    return tuple(made)


def _both(first: Node, second: Node, sizes: Sequence[int], most: int) -> Node | None:
    """Two nodes as one: P(A | S) P(B | T) over A and B given S and the part of T outside A. None if that has
    more than ``most`` lines, or more than twice as many slots."""
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
    """For each configuration of a node's parents its first line, and the number of its lines."""
    shape = [sizes[parent] for parent in node.parents]
    if not shape:
        return np.zeros(number, np.int64), np.full(number, len(node.weights))
    own, asked = np.ravel_multi_index(tuple(node.given.T), shape), np.ravel_multi_index(tuple(given), shape)
    starts = np.searchsorted(own, asked, side="left")
    return starts, np.searchsorted(own, asked, side="right") - starts
