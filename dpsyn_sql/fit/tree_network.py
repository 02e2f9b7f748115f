"""A junction tree as a network: directed from the root, with codes after their working bins.

The variables of a clique outside its separator are drawn together, given the separator (Koller and Friedman
2009, 10.4.3). The codes are one more variable each, whose only parent is the working bin.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.fit.belief import Beliefs, summed
from dpsyn_sql.fit.code_nodes import code_nodes
from dpsyn_sql.fit.network import Network, Node, joined, node_of

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


def tree_network(
    beliefs: Beliefs, bins: Sequence[IntArray], within: Sequence[FloatArray], names: Sequence[str]
) -> Network:
    """The network of a calibrated tree whose first variables are attributes in working bins.

    Args:
        beliefs: further variables after the attributes are coarse twins.
        bins: int64 of each attribute, one per code: its working bin.
        within: float64 of each attribute, one per code: its probability given the bin.
        names: of the attributes, for labels.
    """
    tree = beliefs.tree
    folded = [index for index, own in enumerate(bins) if not np.array_equal(own, np.arange(own.size))]
    codes = list(range(len(names)))
    sizes = [*tree.sizes, *(bins[index].size for index in folded)]
    for place, index in enumerate(folded):
        codes[index] = len(tree.sizes) + place
    nodes, needed = list[Node](), set(range(len(names)))

    def codes_of(v: int) -> list[Node]:
        return code_nodes(names[v], v, codes[v], sizes, bins[v], within[v])

    for clique in reversed(tree.order):  # children first: a variable that nothing depends on is not drawn
        new = [v for v in tree.cliques[clique] if v not in tree.separators[clique] and v in needed]
        if all(sizes[v] == 1 for v in new):
            continue
        needed.update(tree.separators[clique])
        own = _clique_node(beliefs, names, clique, [v for v in new if sizes[v] > 1])
        after = [v for v in new if v < len(names) and codes[v] != v]
        nodes[:0] = [own, *(node for v in after for node in codes_of(v))]
    drawn = {variable for node in nodes for variable in node.variables}
    # A bin that holds all codes of its attribute is not drawn; only the codes are.
    for v in folded:
        if codes[v] not in drawn and sizes[codes[v]] > 1:
            nodes += codes_of(v)
    return Network(tuple(sizes), joined(nodes, sizes), tuple(codes))


def _clique_node(beliefs: Beliefs, names: Sequence[str], index: int, new: Sequence[int]) -> Node:
    """A clique's ``new`` variables given its separator.

    If the parent clique allows a configuration of the separator and this one does not (potentials beyond
    float64), it gets the variables' own marginals, so that every drawn row can go on.
    """
    tree, tables = beliefs.tree, beliefs.tables
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
    label = names[new[0]] if new[0] < len(names) else f"{new[0]}|twin"
    return node_of(label, parents, new, rows.reshape(table.shape), reach / reach.sum())


def _over(table: FloatArray, clique: Sequence[int], kept: Sequence[int]) -> FloatArray:
    """The table of a clique over some of its variables, in this order."""
    gone = [axis for axis, variable in enumerate(clique) if variable not in kept]
    left = [variable for variable in clique if variable in kept]
    return np.ascontiguousarray(summed(table, gone).transpose([left.index(variable) for variable in kept]))
