"""A small hierarchy for tests of what is done with trees, and random partitions of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpsyn_sql.attributes.trees import HierarchyColumn
from dpsyn_sql.sqltext.fragments import Fragment


@dataclass(frozen=True)
class Even:
    """Whole numbers below ``branching ** depth``; a node of level l stands for those with l equal first
    digits. Nodes of level 2 whose id is odd cannot be refined, if ``ends``."""

    branching: int = 3
    depth: int = 4
    ends: bool = False
    name: str = "key"
    nullable: bool = False
    text: bool = False

    @property
    def columns(self) -> tuple[HierarchyColumn, ...]:
        return (HierarchyColumn(self.name, "BIGINT"),)

    def root(self) -> np.ndarray:
        return np.zeros(1, np.int64)

    def children(self, nodes: np.ndarray, level: int) -> tuple[np.ndarray, np.ndarray]:
        ended = self.ends and level == 2
        places = np.flatnonzero(nodes % 2 == 0) if ended else np.arange(nodes.size)
        ids = nodes[places, None] * self.branching + np.arange(self.branching)
        return ids.ravel(), np.repeat(places, self.branching)

    def lowest(self, nodes: np.ndarray, level: int) -> np.ndarray:
        return nodes * self.branching ** (self.depth - level)

    def labels(self, nodes: np.ndarray, level: int) -> list[str]:
        return [f"{level}:{node}" for node in nodes.tolist()]

    def key(self, values: Sequence[Fragment]) -> Fragment:
        raise NotImplementedError

    def at(self, key: Fragment, level: int) -> Fragment:
        raise NotImplementedError

    def named(self) -> dict[str, object]:
        return {"even": [self.branching, self.depth]}


def partition(
    tree: Even, generator: np.random.Generator, opened: float = 0.6
) -> tuple[np.ndarray, np.ndarray]:
    """Levels and nodes of random leaves, in the order of keys."""
    levels, nodes, ids = list[int](), list[int](), tree.root()
    for level in range(tree.depth + 1):
        split = (generator.random(ids.size) < opened) & (level < tree.depth)
        if level < tree.depth:
            refined = np.zeros(ids.size, bool)
            refined[np.unique(tree.children(ids, level)[1])] = True
            split &= refined
        levels += [level] * int((~split).sum())
        nodes += ids[~split].tolist()
        ids = tree.children(ids[split], level)[0] if split.any() else ids[:0]
    found = sorted(zip(levels, nodes, strict=True), key=lambda leaf: tree.lowest(np.array(leaf[1]), leaf[0]))
    return np.array([level for level, _ in found]), np.array([node for _, node in found])
