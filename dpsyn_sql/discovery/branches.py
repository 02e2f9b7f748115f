"""The tree whose leaves make up a partition of a hierarchy, and counts that agree along it; public.

The door answers with leaves alone. The hierarchy is public, so the nodes above them follow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.attributes.trees import Hierarchy
from dpsyn_sql.errors import InternalError
from dpsyn_sql.fit.arrays import FloatArray, IntArray


@dataclass(frozen=True)
class Branches:
    """All nodes of a tree, level by level, and within a level in the order of keys.

    ``ids`` (int64, or object for text), ``levels``, ``parents`` (-1 for the root), ``starts`` and ``ends``
    are of shape (nodes,): the leaves starts[v] to ends[v], exclusive, are below node v. ``offsets`` has one
    entry more than there are levels: the nodes of level l are offsets[l] to offsets[l + 1].
    """

    ids: NDArray[Any]
    levels: IntArray
    parents: IntArray
    starts: IntArray
    ends: IntArray
    offsets: tuple[int, ...]

    @cached_property
    def split(self) -> NDArray[np.bool_]:
        """Whether a node has children in the tree; the others are leaves."""
        inner = np.zeros(self.parents.size, np.bool_)
        inner[self.parents[1:]] = True
        return inner

    def blocks(self) -> Iterator[slice]:
        """The nodes of each level below the root, from the top."""
        for low, high in zip(self.offsets[1:], self.offsets[2:], strict=False):
            yield slice(low, high)


def branches_of(hierarchy: Hierarchy, levels: IntArray, nodes: NDArray[Any]) -> Branches:
    """The tree of a partition, given as in ``planning.queries.NoisyTree``.

    Raises:
        InternalError: the nodes are no partition of the hierarchy.
    """
    ids: list[NDArray[Any]] = [hierarchy.root()]
    above = [np.array([-1])]
    leaf_ranks, leaves = list[IntArray](), 0
    while True:
        level = len(leaf_ranks)
        of_level = np.flatnonzero(levels == level)
        wanted = dict(zip(nodes[of_level].tolist(), of_level.tolist(), strict=True))
        leaf_ranks.append(np.array([wanted.get(node, -1) for node in ids[level].tolist()], np.int64))
        leaves += int((leaf_ranks[level] >= 0).sum())
        opened = np.flatnonzero(leaf_ranks[level] < 0)
        if not opened.size:
            break
        children, parents = hierarchy.children(ids[level][opened], level)
        if level == hierarchy.depth or not children.size:
            raise InternalError("a node that is no leaf has no children")
        ids.append(children)
        above.append(opened[parents])
    if leaves != levels.size:
        raise InternalError("leaves of a tree lie below other leaves")
    return joined(ids, above, leaf_ranks)


def joined(ids: list[NDArray[Any]], above: list[IntArray], leaf_ranks: list[IntArray]) -> Branches:
    """The tree of levels: the ids of each, the place of each node's parent in the level above (-1 for the
    root), and the place of each leaf among the leaves in the order of keys, -1 for other nodes."""
    starts, ends = [ranks.copy() for ranks in leaf_ranks], [ranks + 1 for ranks in leaf_ranks]
    for level in range(len(ids) - 1, 0, -1):
        parents = above[level]
        first = np.flatnonzero(np.diff(parents, prepend=-1))
        last = np.flatnonzero(np.diff(parents, append=-1))
        starts[level - 1][parents[first]] = starts[level][first]
        ends[level - 1][parents[first]] = ends[level][last]
    offsets = np.cumsum([0, *(level_ids.size for level_ids in ids)])
    moved = [parents + offsets[level - 1] for level, parents in enumerate(above) if level]
    return Branches(
        np.concatenate(ids),
        np.repeat(np.arange(len(ids)), [level_ids.size for level_ids in ids]),
        np.concatenate([above[0], *moved]),
        np.concatenate(starts),
        np.concatenate(ends),
        tuple(offsets.tolist()),
    )


@dataclass(frozen=True, slots=True)
class Estimates:
    """Rows of each node: ``values`` (float64[nodes], may be negative) with ``variances``."""

    values: FloatArray
    variances: FloatArray


def estimated(
    branches: Branches,
    leaves: FloatArray,
    variance: float,
    levels: Sequence[IntArray] = (),
    of_levels: float = 1.0,
) -> Estimates:
    """The rows of each node as everything below it says: least squares, from the leaves to the root.

    A node's own noisy count is averaged with the sum of its children, by inverse variances (Hay, Rastogi,
    Miklau, Suciu 2010, for nodes of any number of children and depth).

    Args:
        branches: the tree.
        leaves: noisy rows of each leaf.
        variance: of a leaf.
        levels: noisy rows of all nodes of each level, from the root.
        of_levels: the variance of one of these.
    """
    values, variances = np.empty(branches.parents.size), np.empty(branches.parents.size)
    ends = ~branches.split
    values[ends], variances[ends] = leaves[branches.starts[ends]], variance
    for level in reversed(range(len(branches.offsets) - 1)):
        block = slice(branches.offsets[level], branches.offsets[level + 1])
        if level + 2 < len(branches.offsets):
            below = slice(branches.offsets[level + 1], branches.offsets[level + 2])
            inner = branches.split[block]
            parents, size = branches.parents[below] - block.start, inner.size
            values[block][inner] = np.bincount(parents, values[below], size)[inner]
            variances[block][inner] = np.bincount(parents, variances[below], size)[inner]
        if level < len(levels):
            weight = variances[block] / (variances[block] + of_levels)
            values[block] += weight * (levels[level] - values[block])
            variances[block] *= 1 - weight
    return Estimates(values, variances)


def settled(
    branches: Branches, estimates: Estimates, total: float | None = None, clear: float = 0.0
) -> FloatArray:
    """Counts of all nodes that are not negative and agree: those of children add up to that of their parent.

    From the top, the children of a node get the nearest such counts to their estimates, each bearing as much
    of what has to change as its variance says: without bounds that is least squares over all counts. So the
    noise of many empty leaves does not reach the node beside them, and no bias adds up.

    Args:
        branches: the tree.
        estimates: as of ``estimated``.
        total: rows in all, if that is better known.
        clear: a node of fewer standard deviations of its estimate has no rows, if a sibling has more: its
            siblings get its rows in proportion to their own.

    Returns:
        float64[nodes].
    """
    counts = np.empty(branches.parents.size)
    counts[0] = max(0.0, float(estimates.values[0]) if total is None else total)
    for block in branches.blocks():
        parents = branches.parents[block]
        shared = _shared(estimates.values[block], estimates.variances[block], parents, counts)
        counts[block] = (
            _cleared(shared, clear * np.sqrt(estimates.variances[block]), parents) if clear else shared
        )
    return counts


def _cleared(counts: FloatArray, least: FloatArray, parents: IntArray) -> FloatArray:
    """Counts below ``least`` go to the siblings that are not, if there are any; ``parents`` ascend."""
    groups = np.cumsum(np.diff(parents, prepend=parents[:1]) != 0)
    clear = np.where(counts >= least, counts, 0.0)
    before, after = np.bincount(groups, counts), np.bincount(groups, clear)
    scale = np.divide(before, after, out=np.zeros_like(after), where=after > 0)
    return np.asarray(np.where(after[groups] > 0, clear * scale[groups], counts))


def nearest(values: FloatArray, variances: FloatArray, total: float) -> FloatArray:
    """The nearest counts that are not negative and add up to ``total`` (0 or more); near relative to the
    variances of the values."""
    if not values.size:
        return np.zeros(0)
    return _shared(values, variances, np.zeros(values.size, np.int64), np.array([total]))


def _shared(values: FloatArray, weights: FloatArray, parents: IntArray, counts: FloatArray) -> FloatArray:
    """The nearest counts x >= 0 to ``values`` that add up to ``counts[p]`` for each parent p; near in the sum
    of (x - value)^2 / weight.

    Parents ascend. x = max(0, value + weight * shift), with one shift per parent: the children with the
    largest ratios of value to weight stay above 0 (Duchi et al. 2008, figure 1, with weights).
    """
    groups = np.cumsum(np.diff(parents, prepend=parents[:1]) != 0)
    begins = np.searchsorted(groups, np.arange(groups[-1] + 1))
    order = np.lexsort((-values / weights, groups))
    value, weight = values[order], weights[order]
    above, heavy = _running(value, begins, groups), _running(weight, begins, groups)
    wanted = counts[parents[begins]]
    shifts = (wanted[groups] - above) / heavy
    positive = np.add.reduceat((value + weight * shifts > 0).astype(np.int64), begins)
    shift = shifts[begins + np.maximum(positive, 1) - 1]
    nearest_counts = np.maximum(0.0, values + weights * shift[groups])
    sums = np.add.reduceat(nearest_counts, begins)
    scale = np.divide(wanted, sums, out=np.zeros_like(sums), where=sums > 0)
    return np.asarray(nearest_counts * scale[groups])


def _running(values: FloatArray, begins: IntArray, groups: IntArray) -> FloatArray:
    """Cumulative sums that begin anew in each group."""
    running = np.cumsum(values)
    before = np.where(begins > 0, running[begins - 1], 0.0)
    return np.asarray(running - before[groups])
