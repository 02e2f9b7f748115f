"""How a tree grows from its root, level by level, by public verdicts; nothing of the source is here.

A node is an id of one level in each hierarchy (several make up a key of several attributes). Splitting a node
by part p replaces its id in hierarchy p by those of its children.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.attributes.trees import Hierarchy

_AT_ONCE = 2**18
"""Children that are made at a time, so that a level that is too large is noticed before it is made."""


@dataclass(frozen=True, slots=True)
class Nodes:
    """Nodes of a tree: node i is ``ids[p][i]`` of level ``levels[p][i]`` in each hierarchy p. ``parents``:
    int64, the place of each one's parent among the nodes above, never descending; 0 for the root."""

    levels: tuple[NDArray[np.int64], ...]
    ids: tuple[NDArray[Any], ...]
    parents: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.parents)

    def at(self, indices: NDArray[Any] | slice) -> Nodes:
        """Some of the nodes, by their places, a mask or a slice."""
        levels, ids = (tuple(array[indices] for array in arrays) for arrays in (self.levels, self.ids))
        return Nodes(levels, ids, self.parents[indices])


class Growth:
    """A tree that grows to at most ``depth`` levels below its root, of at most ``most`` nodes each.

    ``nodes``: the level that is to be judged. Each level takes two steps: ``split``, and ``by``.
    """

    def __init__(self, hierarchies: Sequence[Hierarchy], depth: int, most: int) -> None:
        self._hierarchies, self._depth, self._most = hierarchies, depth, most
        self._levels = [root_of(hierarchies)]
        self._leaf: list[NDArray[np.bool_]] = []
        self._below: list[Nodes] = []

    @property
    def nodes(self) -> Nodes:
        """The nodes of the last level."""
        return self._levels[-1]

    @property
    def level(self) -> int:
        """The number of the last level, the root's is 0."""
        return len(self._levels) - 1

    def split(self, verdict: NDArray[np.bool_], counts: NDArray[np.int64] | None = None) -> NDArray[np.bool_]:
        """Whether each node of the level has children by each part, bool[nodes, parts]; nowhere if
        ``verdict`` (bool[nodes]) says that it is not split.

        If the level below would be too large, the nodes of most rows are split, as many as fit, where
        ``counts`` (int64[nodes], noisy) are known, and else none.
        """
        indices = np.flatnonzero(verdict) if self.level < self._depth else np.zeros(0, dtype=np.int64)
        if counts is not None:
            indices = indices[np.argsort(-counts[indices], kind="stable")]
        children = [self._children(part, indices) for part in range(len(self._hierarchies))]
        if counts is not None:
            children = [self._fitting(below) for below in children]
        self._below = [_merged([below]) for below in children]
        refined = np.zeros((len(self.nodes), len(self._hierarchies)), dtype=np.bool_)
        for part, below in enumerate(self._below):
            refined[below.parents, part] = True
        return refined if max(map(len, self._below)) <= self._most else np.zeros_like(refined)

    def _fitting(self, below: Nodes) -> Nodes:
        """The children of the first parents, as many as make no level that is too large."""
        ends = np.flatnonzero(np.diff(below.parents[: self._most + 1], append=-1)) + 1
        fit = ends[ends <= self._most]
        return below.at(slice(fit[-1] if fit.size else 0))

    def by(self, split_parts: NDArray[np.int64]) -> bool:
        """The part that each node is split by, int64[nodes], -1 for leaves; whether a level follows."""
        chosen = [below.at(split_parts[below.parents] == part) for part, below in enumerate(self._below)]
        level = _merged(chosen)
        if not 0 < len(level) <= self._most:
            split_parts = np.full(len(self.nodes), -1, dtype=np.int64)
        self._below = []
        self._leaf.append(split_parts < 0)
        if (split_parts < 0).all():
            return False
        self._levels.append(level)
        return True

    def _children(self, part: int, indices: NDArray[np.int64]) -> Nodes:
        """The children by one part of nodes of the last level, in the order of ``indices`` among nodes of the
        same level; somewhat more than ``most`` of them at most."""
        hierarchy, nodes = self._hierarchies[part], self.nodes
        blocks, number, step = [nodes.at(indices[:0])], 0, max(1, _AT_ONCE // hierarchy.branching)
        for level in np.unique(nodes.levels[part][indices]).tolist():
            at_level = (
                indices[nodes.levels[part][indices] == level] if level < hierarchy.depth else indices[:0]
            )
            for start in range(0, len(at_level), step):
                blocks.append(_children(hierarchy, part, level, nodes, at_level[start : start + step]))
                number += len(blocks[-1])
                if number > self._most:
                    return _joined(blocks)
        return _joined(blocks)

    def leaves(self) -> Nodes:
        """All leaves depth first: with one hierarchy they ascend in keys."""
        return _joined([nodes.at(leaf) for nodes, leaf in self._judged()]).at(self._order())

    def of_leaves(self, levels: Sequence[NDArray[np.int64]]) -> NDArray[np.int64] | None:
        """Of a number for each node of each level those of the leaves, in their order; None if a level that
        has leaves is missing at the end."""
        leaves = [leaf for _, leaf in self._judged()]
        if any(leaf.any() for leaf in leaves[len(levels) :]):
            return None
        of_level = [numbers[leaf] for numbers, leaf in zip(levels, leaves, strict=False)]
        return np.concatenate(of_level)[self._order()]

    def _judged(self) -> list[tuple[Nodes, NDArray[np.bool_]]]:
        """Every level with its leaves; all nodes of a level that was not judged are leaves."""
        unjudged = [np.ones(len(nodes), dtype=np.bool_) for nodes in self._levels[len(self._leaf) :]]
        return list(zip(self._levels, [*self._leaf, *unjudged], strict=True))

    def _order(self) -> NDArray[np.intp]:
        """From the leaves level by level to the leaves depth first."""
        sizes = [leaf.astype(np.int64) for _, leaf in self._judged()]
        for level in reversed(range(1, len(sizes))):
            np.add.at(sizes[level - 1], self._levels[level].parents, sizes[level])
        starts, order = np.zeros(1, dtype=np.int64), []
        for level, (nodes, leaf) in enumerate(self._judged()):
            if level:
                before = np.cumsum(sizes[level]) - sizes[level]
                first = np.searchsorted(nodes.parents, nodes.parents)  # of the same parent's children
                starts = starts[nodes.parents] + before - before[first]
            order.append(starts[leaf])
        return np.argsort(np.concatenate(order))


def _put(arrays: tuple[NDArray[Any], ...], part: int, array: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    return (*arrays[:part], array, *arrays[part + 1 :])


def _joined(blocks: Sequence[Nodes]) -> Nodes:
    def of(name: str) -> tuple[NDArray[Any], ...]:
        return tuple(
            np.concatenate(arrays) for arrays in zip(*(getattr(nodes, name) for nodes in blocks), strict=True)
        )

    return Nodes(of("levels"), of("ids"), np.concatenate([nodes.parents for nodes in blocks]))


def _merged(blocks: Sequence[Nodes]) -> Nodes:
    """All of them in the order of their parents; children of one parent keep their own."""
    together = _joined(blocks)
    return together.at(np.argsort(together.parents, kind="stable"))


def disjoint(hierarchies: Sequence[Hierarchy], nodes: Nodes) -> bool:
    """Whether nodes share no value, so that a row is in one of them at most; always of leaves of a tree.

    From the root downwards every node that holds several of them is split by a part in which all of these
    lie deeper, until each is alone.
    """
    lowest = [
        _lowest(hierarchy, nodes.levels[part], nodes.ids[part]) for part, hierarchy in enumerate(hierarchies)
    ]
    level, node_of = root_of(hierarchies), np.zeros(len(nodes), dtype=np.int64)
    left = np.arange(len(nodes))
    while True:
        several = np.bincount(node_of, minlength=len(level)) > 1
        left, node_of = left[several[node_of]], node_of[several[node_of]]
        if not len(left):
            return True
        split_by = _deeper(level, nodes.at(left), node_of)
        if (split_by[node_of] < 0).any():
            return False
        opened_children, child_of, first = [level.at(left[:0])], np.zeros(len(left), dtype=np.int64), 0
        for part, hierarchy in enumerate(hierarchies):
            for depth in np.unique(level.levels[part][node_of[split_by[node_of] == part]]).tolist():
                opened = np.flatnonzero((split_by == part) & (level.levels[part] == depth) & several)
                below = _children(hierarchy, part, depth, level, opened)
                if not np.isin(opened, below.parents).all():
                    return False  # one value, such as text that has ended, and several nodes of it
                mine = np.isin(node_of, opened)
                lows = hierarchy.lowest(below.ids[part], depth + 1)
                child_of[mine] = first + _child(below.parents, lows, node_of[mine], lowest[part][left[mine]])
                opened_children.append(below)
                first += len(below)
        occupied, node_of = np.unique(child_of, return_inverse=True)
        level = _joined(opened_children).at(occupied)


def root_of(hierarchies: Sequence[Hierarchy]) -> Nodes:
    """The node that holds everything."""
    start = np.zeros(1, dtype=np.int64)
    return Nodes(
        tuple(start for _ in hierarchies), tuple(hierarchy.root() for hierarchy in hierarchies), start
    )


def _lowest(hierarchy: Hierarchy, levels: NDArray[np.int64], ids: NDArray[Any]) -> NDArray[Any]:
    """The lowest key of nodes of any levels."""
    keys = np.empty(len(ids), dtype=object if hierarchy.text else np.int64)
    for level in np.unique(levels).tolist():
        keys[levels == level] = hierarchy.lowest(ids[levels == level], level)
    return keys


def _deeper(level: Nodes, nodes: Nodes, node_of: NDArray[np.int64]) -> NDArray[np.int64]:
    """The first part in which all nodes that a node of ``level`` holds lie deeper than itself; -1: none."""
    deeper_part = np.full(len(level), -1, dtype=np.int64)
    for part in reversed(range(len(level.levels))):
        deeper = np.ones(len(level), dtype=np.bool_)
        deeper[node_of[nodes.levels[part] <= level.levels[part][node_of]]] = False
        deeper_part[deeper] = part
    return deeper_part


def _child(
    parents: NDArray[np.int64], lows: NDArray[Any], node_of: NDArray[np.int64], keys: NDArray[Any]
) -> NDArray[np.int64]:
    """Of each key the child that holds it, among the children of the node that does; these have ``parents``
    and the lowest keys ``lows``, ascending in both."""
    _, ranks = np.unique(np.concatenate((lows, keys)), return_inverse=True)
    order = np.concatenate((parents, node_of)) * (len(ranks) + 1) + ranks
    return np.searchsorted(order[: len(lows)], order[len(lows) :], side="right") - 1


def _children(hierarchy: Hierarchy, part: int, level: int, nodes: Nodes, indices: NDArray[np.int64]) -> Nodes:
    """The children by a part of nodes that all have this level in it."""
    ids, parent_of = hierarchy.children(nodes.ids[part][indices], level)
    below = nodes.at(indices[parent_of])
    levels = np.full(len(ids), level + 1, dtype=np.int64)
    return Nodes(_put(below.levels, part, levels), _put(below.ids, part, ids), indices[parent_of])
