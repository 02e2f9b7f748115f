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

from dpsyn_sql.domain.hierarchies.base import Hierarchy

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

    def at(self, places: NDArray[Any] | slice) -> Nodes:
        """Some of the nodes, by their places, a mask or a slice."""
        levels, ids = (tuple(one[places] for one in own) for own in (self.levels, self.ids))
        return Nodes(levels, ids, self.parents[places])


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
        places = np.flatnonzero(verdict) if self.level < self._depth else np.zeros(0, dtype=np.int64)
        if counts is not None:
            places = places[np.argsort(-counts[places], kind="stable")]
        made = [self._children(part, places) for part in range(len(self._hierarchies))]
        if counts is not None:
            made = [self._fitting(below) for below in made]
        self._below = [_merged([below]) for below in made]
        refined = np.zeros((len(self.nodes), len(self._hierarchies)), dtype=np.bool_)
        for part, below in enumerate(self._below):
            refined[below.parents, part] = True
        return refined if max(map(len, self._below)) <= self._most else np.zeros_like(refined)

    def _fitting(self, below: Nodes) -> Nodes:
        """The children of the first parents, as many as make no level that is too large."""
        ends = np.flatnonzero(np.diff(below.parents[: self._most + 1], append=-1)) + 1
        fit = ends[ends <= self._most]
        return below.at(slice(fit[-1] if fit.size else 0))

    def by(self, parts: NDArray[np.int64]) -> bool:
        """The part that each node is split by, int64[nodes], -1 for leaves; whether a level follows."""
        chosen = [below.at(parts[below.parents] == part) for part, below in enumerate(self._below)]
        level = _merged(chosen)
        if not 0 < len(level) <= self._most:
            parts = np.full(len(self.nodes), -1, dtype=np.int64)
        self._below = []
        self._leaf.append(parts < 0)
        if (parts < 0).all():
            return False
        self._levels.append(level)
        return True

    def _children(self, part: int, places: NDArray[np.int64]) -> Nodes:
        """The children by one part of nodes of the last level, in the order of ``places`` among nodes of the
        same level; somewhat more than ``most`` of them at most."""
        hierarchy, nodes = self._hierarchies[part], self.nodes
        found, number, step = [nodes.at(places[:0])], 0, max(1, _AT_ONCE // hierarchy.branching)
        for level in np.unique(nodes.levels[part][places]).tolist():
            own = places[nodes.levels[part][places] == level] if level < hierarchy.depth else places[:0]
            for start in range(0, len(own), step):
                found.append(_children(hierarchy, part, level, nodes, own[start : start + step]))
                number += len(found[-1])
                if number > self._most:
                    return _joined(found)
        return _joined(found)

    def leaves(self) -> Nodes:
        """All leaves depth first: with one hierarchy they ascend in keys."""
        return _joined([nodes.at(leaf) for nodes, leaf in self._judged()]).at(self._order())

    def of_leaves(self, levels: Sequence[NDArray[np.int64]]) -> NDArray[np.int64] | None:
        """Of a number for each node of each level those of the leaves, in their order; None if a level that
        has leaves is missing at the end."""
        leaves = [leaf for _, leaf in self._judged()]
        if any(leaf.any() for leaf in leaves[len(levels) :]):
            return None
        own = [numbers[leaf] for numbers, leaf in zip(levels, leaves, strict=False)]
        return np.concatenate(own)[self._order()]

    def _judged(self) -> list[tuple[Nodes, NDArray[np.bool_]]]:
        """Every level with its leaves; all nodes of a level that was not judged are leaves."""
        rest = [np.ones(len(nodes), dtype=np.bool_) for nodes in self._levels[len(self._leaf) :]]
        return list(zip(self._levels, [*self._leaf, *rest], strict=True))

    def _order(self) -> NDArray[np.intp]:
        """From the leaves level by level to the leaves depth first."""
        sizes = [leaf.astype(np.int64) for _, leaf in self._judged()]
        for place in reversed(range(1, len(sizes))):
            np.add.at(sizes[place - 1], self._levels[place].parents, sizes[place])
        starts, order = np.zeros(1, dtype=np.int64), []
        for place, (nodes, leaf) in enumerate(self._judged()):
            if place:
                before = np.cumsum(sizes[place]) - sizes[place]
                first = np.searchsorted(nodes.parents, nodes.parents)  # of the same parent's children
                starts = starts[nodes.parents] + before - before[first]
            order.append(starts[leaf])
        return np.argsort(np.concatenate(order))


def _put(arrays: tuple[NDArray[Any], ...], part: int, own: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    return (*arrays[:part], own, *arrays[part + 1 :])


def _joined(parts: Sequence[Nodes]) -> Nodes:
    def of(name: str) -> tuple[NDArray[Any], ...]:
        return tuple(
            np.concatenate(arrays) for arrays in zip(*(getattr(one, name) for one in parts), strict=True)
        )

    return Nodes(of("levels"), of("ids"), np.concatenate([one.parents for one in parts]))


def _merged(parts: Sequence[Nodes]) -> Nodes:
    """All of them in the order of their parents; children of one parent keep their own."""
    together = _joined(parts)
    return together.at(np.argsort(together.parents, kind="stable"))


def disjoint(hierarchies: Sequence[Hierarchy], nodes: Nodes) -> bool:
    """Whether nodes share no value, so that a row is in one of them at most; always of leaves of a tree.

    From the root downwards every node that holds several of them is split by a part in which all of these
    lie deeper, until each is alone.
    """
    lowest = [_lowest(one, nodes.levels[part], nodes.ids[part]) for part, one in enumerate(hierarchies)]
    level, held = root_of(hierarchies), np.zeros(len(nodes), dtype=np.int64)
    left = np.arange(len(nodes))
    while True:
        several = np.bincount(held, minlength=len(level)) > 1
        left, held = left[several[held]], held[several[held]]
        if not len(left):
            return True
        parts = _deeper(level, nodes.at(left), held)
        if (parts[held] < 0).any():
            return False
        found, places, first = [level.at(left[:0])], np.zeros(len(left), dtype=np.int64), 0
        for part, hierarchy in enumerate(hierarchies):
            for depth in np.unique(level.levels[part][held[parts[held] == part]]).tolist():
                own = np.flatnonzero((parts == part) & (level.levels[part] == depth) & several)
                below = _children(hierarchy, part, depth, level, own)
                if not np.isin(own, below.parents).all():
                    return False  # one value, such as text that has ended, and several nodes of it
                mine = np.isin(held, own)
                lows = hierarchy.lowest(below.ids[part], depth + 1)
                places[mine] = first + _child(below.parents, lows, held[mine], lowest[part][left[mine]])
                found.append(below)
                first += len(below)
        kept, held = np.unique(places, return_inverse=True)
        level = _joined(found).at(kept)


def root_of(hierarchies: Sequence[Hierarchy]) -> Nodes:
    """The node that holds everything."""
    start = np.zeros(1, dtype=np.int64)
    return Nodes(tuple(start for _ in hierarchies), tuple(one.root() for one in hierarchies), start)


def _lowest(hierarchy: Hierarchy, levels: NDArray[np.int64], ids: NDArray[Any]) -> NDArray[Any]:
    """The lowest key of nodes of any levels."""
    found = np.empty(len(ids), dtype=object if hierarchy.text else np.int64)
    for level in np.unique(levels).tolist():
        found[levels == level] = hierarchy.lowest(ids[levels == level], level)
    return found


def _deeper(level: Nodes, nodes: Nodes, held: NDArray[np.int64]) -> NDArray[np.int64]:
    """The first part in which all nodes that a node of ``level`` holds lie deeper than itself; -1: none."""
    parts = np.full(len(level), -1, dtype=np.int64)
    for part in reversed(range(len(level.levels))):
        deeper = np.ones(len(level), dtype=np.bool_)
        deeper[held[nodes.levels[part] <= level.levels[part][held]]] = False
        parts[deeper] = part
    return parts


def _child(
    parents: NDArray[np.int64], lows: NDArray[Any], held: NDArray[np.int64], keys: NDArray[Any]
) -> NDArray[np.int64]:
    """Of each key the child that holds it, among the children of the node that does; these have ``parents``
    and the lowest keys ``lows``, ascending in both."""
    _, ranks = np.unique(np.concatenate((lows, keys)), return_inverse=True)
    order = np.concatenate((parents, held)) * (len(ranks) + 1) + ranks
    return np.searchsorted(order[: len(lows)], order[len(lows) :], side="right") - 1


def _children(hierarchy: Hierarchy, part: int, level: int, nodes: Nodes, places: NDArray[np.int64]) -> Nodes:
    """The children by a part of nodes that all have this level in it."""
    ids, own = hierarchy.children(nodes.ids[part][places], level)
    below = nodes.at(places[own])
    levels = np.full(len(ids), level + 1, dtype=np.int64)
    return Nodes(_put(below.levels, part, levels), _put(below.ids, part, ids), places[own])
