"""Models as Bayesian networks: an order of variables, each with its conditional distribution.

What every SQL sampler draws from. A graphical model becomes one by directing its junction tree from the
root: a clique's variables beyond its separator come one after the other, by the chain rule, given the
separator and those before (Koller and Friedman 2009, 10.4.3). Codes follow from working bins as one more
variable, whose only parent is the bin.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
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


@dataclass(frozen=True, slots=True)
class Node:
    """One variable and its distribution given its parents.

    ``label`` is unique in the network and goes into the text that random bits are drawn by.
    ``configurations`` (c,) int64, ascending, are the mixed-radix codes of the parents' values (first
    parent most significant) that can occur; ``weights`` (c, size) float64 are proportional to the
    probabilities of the variable's values, each row with a positive sum.
    """

    label: str
    variable: int
    parents: tuple[int, ...]
    configurations: IntArray
    weights: FloatArray

    @property
    def fixed(self) -> bool:
        """Whether the parents decide the value."""
        return bool(np.all(np.count_nonzero(self.weights, axis=1) == 1))


@dataclass(frozen=True, slots=True)
class Network:
    """Nodes in an order in which parents come first.

    ``sizes`` has the number of values of every variable. A variable without a node has one value.
    ``codes[i]`` is the variable that holds the original codes of attribute i of the domain.
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
    names = model.domain.names
    nodes = [
        Node(name, index, (), np.zeros(1, np.int64), _proper(model.margins.probabilities[name][None, :]))
        for index, name in enumerate(names)
    ]
    return _pruned(model.domain.shape(), nodes, tuple(range(len(names))))


@network_of.register
def _(model: GraphicalModel) -> Network:
    """Working bins and twins by the junction tree, then codes within bins."""
    sizes = [*model.beliefs.tree.sizes]
    names = model.domain.names
    labels = [names[v] if v < len(names) else f"{v}|twin" for v in range(len(sizes))]
    nodes = [node for index in model.beliefs.tree.order for node in _clique_nodes(model, index, labels)]
    codes = list(range(len(names)))
    for index, (bins, within) in enumerate(zip(model.bins, model.within, strict=True)):
        if np.array_equal(bins, np.arange(bins.size)):
            continue
        weights = np.zeros((sizes[index], bins.size))
        weights[bins, np.arange(bins.size)] = within
        nodes.append(
            Node(f"{names[index]}|code", len(sizes), (index,), np.arange(len(weights)), _proper(weights))
        )
        codes[index] = len(sizes)
        sizes.append(bins.size)
    return _pruned(tuple(sizes), nodes, tuple(codes))


def _clique_nodes(model: GraphicalModel, index: int, labels: Sequence[str]) -> Iterator[Node]:
    """The chain rule over one clique: P(v1 | S) P(v2 | S, v1) ..."""
    tree = model.beliefs.tree
    separator = tree.separators[index]
    new = [variable for variable in tree.cliques[index] if variable not in separator]
    table = _directed(model, index, new)
    for place, variable in enumerate(new):
        parents = (*separator, *new[:place])
        axes = list(range(len(parents) + 1, table.ndim))
        weights = summed(table, axes).reshape(-1, tree.sizes[variable])
        occurring = np.flatnonzero(weights.sum(axis=1) > 0)
        yield Node(labels[variable], variable, parents, occurring, weights[occurring])


def _directed(model: GraphicalModel, index: int, new: Sequence[int]) -> FloatArray:
    """The clique's table, axes: the separator, then ``new``.

    A configuration of the separator that the parent clique holds possible and this one does not
    (potentials beyond float64) gets the variables' own marginals: every row drawn goes on.
    """
    tree, tables = model.beliefs.tree, model.beliefs.tables
    clique, separator = tree.cliques[index], tree.separators[index]
    table = np.ascontiguousarray(tables[index].transpose([clique.index(v) for v in (*separator, *new)]))
    rows = table.reshape(math.prod(tree.sizes[v] for v in separator), -1)
    reached = rows.sum(axis=1) > 0
    if tree.parents[index] >= 0:
        above = tree.cliques[tree.parents[index]]
        outside = [axis for axis, variable in enumerate(above) if variable not in separator]
        lost = ~reached & (summed(tables[tree.parents[index]], outside).ravel() > 0)
    else:
        lost = ~reached
    if lost.any():
        rows = rows.copy()
        mean = rows.sum(axis=0)
        rows[lost] = mean if mean.sum() > 0 else 1.0
    return rows.reshape(table.shape)


def _proper(weights: FloatArray) -> FloatArray:
    """Rows without mass, which nothing should reach, become even ones."""
    return np.where(weights.sum(axis=1, keepdims=True) > 0, weights, 1.0)


def _pruned(sizes: tuple[int, ...], nodes: Sequence[Node], codes: tuple[int, ...]) -> Network:
    """Without the variables of one value and those that nothing depends on (barren nodes)."""
    needed, kept = set(codes), list[Node]()
    for node in reversed(nodes):
        if node.variable in needed and sizes[node.variable] > 1:
            kept.append(node)
            needed.update(node.parents)
    return Network(sizes, tuple(reversed(kept)), codes)
