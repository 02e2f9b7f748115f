"""Networks of rows that follow from what is drawn before them: a unit, moments of its rows, then each row.

The variables of a tree with levels were eliminated from the highest level down, without a fill edge: the
product of each one's distribution given its neighbours that are left then is the joint distribution. The
factors of the highest level are that level given all lower ones, exactly (Koller and Friedman 2009, 9.3).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from dpsyn_sql.errors import InternalError
from dpsyn_sql.fit.arrays import FloatArray, IntArray
from dpsyn_sql.fit.belief import Beliefs, home_of
from dpsyn_sql.fit.graph import JunctionTree
from dpsyn_sql.fit.network import Network, Node, code_nodes, joined, node_of, over
from dpsyn_sql.planning.families import BEFORE, UNIT


@dataclass(frozen=True, slots=True)
class Step:
    """Variables of one level with the same neighbours, which go together; ``parents`` are left then."""

    variables: tuple[int, ...]
    parents: tuple[int, ...]
    level: int


def perfect_elimination(tree: JunctionTree) -> list[Step]:
    """The variables of a tree with levels in an order without fill edges, the highest level first.

    Raises:
        InternalError: there is none: the tree was made without these levels.
    """
    around: list[set[int]] = [set() for _ in tree.sizes]
    for clique in tree.cliques:
        for variable in clique:
            around[variable].update(clique)
    left, steps = set(range(len(tree.sizes))), list[Step]()
    for level in sorted(set(tree.levels), reverse=True):
        waiting = [variable for variable in left if tree.levels[variable] == level]
        while waiting:
            found = next((v for v in waiting if all(around[v] <= around[other] for other in around[v])), None)
            if found is None:
                raise InternalError("a tree has no order of elimination by its levels")
            own = sorted(v for v in waiting if around[v] == around[found])
            steps.append(Step(tuple(own), tuple(sorted(around[found] - set(own))), level))
            waiting = [v for v in waiting if v not in own]
            for other in around[found]:
                around[other] = around[other] - set(own)
    return steps


def levelled_network(
    beliefs: Beliefs,
    bins: Sequence[IntArray],
    within: Sequence[FloatArray],
    names: Sequence[str],
    *,
    given: bool = False,
    kept: Collection[str] = (),
) -> Network:
    """The network of a calibrated tree with levels; arguments as of ``tree_network``.

    Nodes ascend by level. Attributes of level ``BEFORE`` are evidence: no node draws them or their codes. So
    are those of level ``UNIT`` where they are ``given``: rows above a table of a tree. What is ``kept`` is
    drawn where it is not known.

    Raises:
        InternalError: the tree has no levels, or was made without them.
    """
    tree, attributes = beliefs.tree, range(len(names))
    if len(tree.levels) != len(tree.sizes):
        raise InternalError("a tree of units and rows has no levels")
    evident = {BEFORE, UNIT} if given else {BEFORE}
    known = [v for v in attributes if tree.levels[v] in evident]
    folded = [
        v for v in attributes if v not in known and not np.array_equal(bins[v], np.arange(bins[v].size))
    ]
    codes, sizes = list(attributes), [*tree.sizes, *(bins[v].size for v in folded)]
    for place, variable in enumerate(folded):
        codes[variable] = len(tree.sizes) + place
    needed, nodes = set(attributes), dict[int, list[Node]]()

    def codes_of(v: int) -> list[Node]:
        return code_nodes(names[v], v, codes[v], sizes, bins[v], within[v]) if v in folded else []

    for step in perfect_elimination(tree):  # backwards: a variable that nothing depends on is not drawn
        if step.level in evident:
            continue
        new = [v for v in step.variables if v in needed]
        drawn = [v for v in new if sizes[v] > 1]
        made = list[Node]()
        if drawn:
            needed.update(step.parents)
            made.append(_node(beliefs, names, drawn, [v for v in step.parents if tree.sizes[v] > 1]))
        made += [node for v in new if v < len(names) and sizes[codes[v]] > 1 for node in codes_of(v)]
        nodes.setdefault(step.level, [])[:0] = made
    levels = sorted(nodes)
    together = [joined(nodes[level], sizes) for level in levels]
    return Network(
        tuple(sizes),
        tuple(node for made in together for node in made),
        tuple(codes),
        tuple(level for level, made in zip(levels, together, strict=True) for _ in made),
        {v: bins[v] for v in attributes if v in known or names[v] in kept},
    )


def _node(beliefs: Beliefs, names: Sequence[str], new: Sequence[int], parents: Sequence[int]) -> Node:
    """Variables given others of one clique. A configuration that the model excludes gets the variables' own
    marginals: what is known of a row before it is drawn may be so all the same."""
    home = home_of(beliefs.tree, tuple(sorted((*parents, *new))))
    table = over(beliefs.tables[home], beliefs.tree.cliques[home], (*parents, *new))
    rows = table.reshape(math.prod(beliefs.tree.sizes[v] for v in parents), -1).copy()
    reach = rows.sum(axis=1)
    if (reach <= 0).any():
        mean = rows.sum(axis=0)
        rows[reach <= 0] = mean if mean.sum() > 0 else 1.0
    label = names[new[0]] if new[0] < len(names) else f"{new[0]}|twin"
    whole = float(reach.sum())
    return node_of(label, parents, new, rows.reshape(table.shape), reach / whole if whole > 0 else None)
