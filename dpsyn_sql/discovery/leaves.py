"""What the answers about a tree make of columns: an attribute whose codes are coarse nodes, and its counts.
Public in and out.

    counts along the tree that agree               discovery/branches.py
    nodes with enough rows are opened, the others beside each other share a code
    within a code, rows are spread over its leaves by their counts
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.attributes.attribute import MAX_SIZE, OTHER, Attribute, Label, Recoding
from dpsyn_sql.attributes.shape import Undiscovered
from dpsyn_sql.attributes.trees import Hierarchy, Leaves
from dpsyn_sql.discovery.branches import Branches, Estimates, branches_of, estimated, nearest, settled
from dpsyn_sql.errors import InternalError
from dpsyn_sql.fit.arrays import FloatArray, IntArray
from dpsyn_sql.planning.plan import CountedKey
from dpsyn_sql.planning.queries import NoisyLeaves, NoisyMarginal, NoisyTree

_ROUNDS = 18
# Steps of the search for the least number of rows of a code: among 10^7 numbers it is found within a part in
# 10,000.

_LEAST = 1e-6
# Rows from which a node of a key may be opened: any at all.

_SMALL = 0.25
"""Codes of less than this part of the rows that a code should have are joined with a neighbour. Without it
the empty nodes on both sides of a long chain of single nodes would take most codes."""


@dataclass(frozen=True, slots=True)
class Run:
    """Neighbouring nodes that share a code: ``nodes`` of the tree in the order of keys, and their rows."""

    nodes: tuple[int, ...]
    rows: float


def coarsened(branches: Branches, counts: FloatArray, most: int, least: float = 1.0) -> list[Run]:
    """At most ``most`` codes, one or more: runs of neighbouring nodes that cover the tree, in order.

    A node of at least so many rows is opened, if it has children; the number is the least one, from
    ``least``, that gives few enough codes. So codes have about the same number of rows, and a leaf of many
    rows has its own.

    Args:
        branches: the tree.
        counts: rows of each node, as of ``settled``.
        most: the largest number of codes.
        least: rows that a code should have at least, above 0.
    """
    low, high = max(least, 1e-9), max(2 * least, 2 * float(counts[0]) + 1)
    best = _runs(branches, counts, low, most)
    if best is not None:
        return best
    best = [Run((0,), float(counts[0]))]
    for _ in range(_ROUNDS):
        middle = float(np.sqrt(low * high))
        runs = _runs(branches, counts, middle, most)
        if runs is None:
            low = middle
        else:
            high, best = middle, runs if len(runs) >= len(best) else best
    return best


def _runs(branches: Branches, counts: FloatArray, enough: float, most: int) -> list[Run] | None:
    """The codes if nodes of ``enough`` rows are opened; None if they are more than ``most``."""
    opened = branches.split & (counts >= enough)
    shown = ~opened
    shown[1:] &= opened[branches.parents[1:]]  # children have no more rows than their parent
    nodes = np.flatnonzero(shown)
    if (counts[nodes] >= enough).sum() > most:
        return None
    nodes = nodes[np.argsort(branches.starts[nodes], kind="stable")]
    begins, sums = _siblings(branches.parents[nodes], counts[nodes], enough)
    begins, sums = _absorbed(begins, sums, _SMALL * enough)
    if len(begins) > most:
        return None
    shared, ends = nodes.tolist(), [*begins[1:], nodes.size]
    return [Run(tuple(shared[a:b]), total) for a, b, total in zip(begins, ends, sums, strict=True)]


def _siblings(parents: IntArray, rows: FloatArray, enough: float) -> tuple[list[int], list[float]]:
    """Where each run begins, and its rows: neighbours with the same parent share a code while they have fewer
    than ``enough`` rows together."""
    empty = rows <= 0
    again = np.zeros(rows.size, np.bool_)  # an empty node after an empty sibling goes with it
    again[1:] = empty[1:] & empty[:-1] & (parents[1:] == parents[:-1])
    begin_nodes = np.flatnonzero(~again)
    begins, sums, before = list[int](), list[float](), -2
    first = begin_nodes.tolist(), parents[begin_nodes].tolist(), rows[begin_nodes].tolist()
    for index, parent, node_rows in zip(*first, strict=True):
        if parent == before and sums[-1] + node_rows < enough:
            sums[-1] += node_rows
        else:
            begins.append(index)
            sums.append(node_rows)
        before = parent
    return begins, sums


def _absorbed(begins: Sequence[int], sums: Sequence[float], small: float) -> tuple[list[int], list[float]]:
    """The same with runs of fewer than ``small`` rows joined with the lighter one of their neighbours."""
    joined_begins, rows = list[int](), list[float]()
    carried, start = 0.0, -1  # what waits to be joined with the next run, and where it begins
    for index, run_rows in enumerate(sums):
        begin, total = (begins[index], run_rows) if start < 0 else (start, run_rows + carried)
        start, last = -1, index + 1 == len(sums)
        if total >= small or (last and not joined_begins):
            joined_begins.append(begin)
            rows.append(total)
        elif last or (joined_begins and rows[-1] <= sums[index + 1]):
            rows[-1] += total
        else:
            start, carried = begin, total
    return joined_begins, rows


def leaves_of_runs(
    hierarchy: Hierarchy, branches: Branches, counts: FloatArray, runs: Sequence[Run]
) -> Leaves:
    """The leaves of the codes. A node without rows is one leaf, whatever is below it; where its code has rows
    it is left out, unless the code begins with it."""
    begins = np.zeros(counts.size, np.bool_)
    begins[[node for run in runs for node in run.nodes]] = True
    ends = ~branches.split | (counts <= 0)
    for block in branches.blocks():
        parents = branches.parents[block]
        begins[block] |= begins[parents] & ~ends[parents]
    leaves = np.flatnonzero(begins & ends)
    leaves = leaves[np.argsort(branches.starts[leaves], kind="stable")]
    codes = codes_of_leaves(branches, runs)[branches.starts[leaves]]
    needed = (counts[leaves] > 0) | (np.bincount(codes, counts[leaves])[codes] <= 0)
    needed |= np.diff(codes, prepend=-1) > 0
    leaves, codes = leaves[needed], codes[needed]
    return Leaves(
        (hierarchy,),
        (tuple(branches.levels[leaves].tolist()),),
        (tuple(branches.ids[leaves].tolist()),),
        tuple(counts[leaves].tolist()),
        tuple(codes.tolist()),
    )


def codes_of_leaves(branches: Branches, runs: Sequence[Run]) -> IntArray:
    """The code of each leaf of the tree, in the order of keys."""
    begins = branches.starts[[run.nodes[0] for run in runs]]
    return np.asarray(np.searchsorted(begins, np.arange(branches.ends[0]), side="right") - 1)


def labels_of_runs(
    hierarchy: Hierarchy, branches: Branches, counts: FloatArray, runs: Sequence[Run]
) -> tuple[str, ...]:
    """How a person reads the codes: the name of the node, or of the first and the last node with rows."""
    ends = [_ends(run, counts) for run in runs]
    names = _names(hierarchy, branches, {node for pair in ends for node in pair})
    return unique(
        names[first] if first == last else f"{names[first]} to {names[last]}" for first, last in ends
    )


def unique(labels: Iterable[str]) -> tuple[str, ...]:
    """Labels that differ from each other and from ``__other__``: a text may read like the name of a run."""
    distinct = dict[str, None]()
    for label in labels:
        while label in distinct or label == OTHER:
            label += " "
        distinct[label] = None
    return tuple(distinct)


def _ends(run: Run, counts: FloatArray) -> tuple[int, int]:
    occupied = [node for node in run.nodes if counts[node] > 0] or run.nodes
    return occupied[0], occupied[-1]


def _names(hierarchy: Hierarchy, branches: Branches, nodes: set[int]) -> dict[int, str]:
    sorted_nodes = np.array(sorted(nodes))
    return dict(
        zip(
            sorted_nodes.tolist(),
            _labels(hierarchy, branches.levels[sorted_nodes], branches.ids[sorted_nodes]),
            strict=True,
        )
    )


def own_codes(branches: Branches, counts: FloatArray, most: int) -> list[Run]:
    """A code for each leaf of the tree; coarser if they are more than ``most``."""
    nodes = np.flatnonzero(~branches.split)
    if nodes.size > most:
        return coarsened(branches, counts, most, _LEAST)
    nodes = nodes[np.argsort(branches.starts[nodes])]
    return [Run((node,), rows) for node, rows in zip(nodes.tolist(), counts[nodes].tolist(), strict=True)]


def attribute_of_runs(
    column: Undiscovered, hierarchy: Hierarchy, branches: Branches, counts: FloatArray, runs: Sequence[Run]
) -> Attribute:
    """The attribute whose codes are runs of nodes of the column's hierarchy."""
    labels = labels_of_runs(hierarchy, branches, counts, runs)
    return attribute_of(column, labels, leaves_of_runs(hierarchy, branches, counts, runs))


def attribute_of(
    column: Undiscovered,
    labels: tuple[Label, ...],
    leaves: Leaves | None = None,
    sql_type: str = "",
    prefixes: tuple[int, ...] = (),
) -> Attribute:
    """The discovered categories of a column, perhaps made up of leaves; ``sql_type`` if it is another one."""
    return Attribute(
        column.name,
        sql_type or column.sql_type,
        "categorical",
        labels,
        other=True,
        nullable=column.nullable,
        origin="discovered",
        prefixes=prefixes,
        source=column.source,
        recoding=None if column.other or not labels else Recoding((len(labels),), tuple(range(len(labels)))),
        leaves=leaves,
    )


LEAST_SIGMAS = 4.0
"""A code has at least so many standard deviations of a leaf's noise in rows, if it can."""

CLEAR = 3.0
"""Standard deviations above which rows outside, or without a value, are not noise alone, where counts are
committed."""

_NOTHING = 1.5
"""Standard deviations below which the estimate of a node is taken for noise. Without it many rows lie in
leaves where no row was; from 2 on what is lost at the finest levels outweighs that."""

_SMALLEST_VARIANCE = 1e-6
# Exact answers (tests only) would otherwise get an infinite weight.


def attribute_of_tree(column: Undiscovered, tree: NoisyTree, counted: NoisyLeaves) -> Attribute:
    """The attribute of a column with a hierarchy: at most ``max_codes`` codes, coarse nodes of it."""
    hierarchy = _hierarchy(column)
    branches = branches_of(hierarchy, tree.levels[0], tree.nodes[0])
    counts = settled(branches, _estimated(branches, tree, counted), clear=_NOTHING)
    runs = coarsened(branches, counts, _room(column), max(1.0, LEAST_SIGMAS * counted.sigma))
    return attribute_of_runs(column, hierarchy, branches, counts, runs)


def key_of_tree(
    columns: Sequence[Undiscovered], tree: NoisyTree, counted: NoisyLeaves, root_counts: NoisyLeaves
) -> tuple[Attribute, CountedKey]:
    """The key of one or several columns, each with its hierarchy, and its rows. A code is a leaf of the tree.

    ``root_counts`` are of the root alone: rows inside, outside, and without a value. They say how many rows
    there are: the sum of many leaves has much more noise.
    """
    column = _together(columns)
    size = 2 + column.nullable
    number, of_leaf = tree.levels[0].size, _variance(counted.sigma)
    leaves = counted.values[:number].astype(np.float64)
    branches, estimates = None, None
    inside, variance = float(leaves.sum()), of_leaf * number
    if len(columns) == 1:
        branches = branches_of(_hierarchy(column), tree.levels[0], tree.nodes[0])
        estimates = _estimated(branches, tree, counted)
        inside, variance = float(estimates.values[0]), float(estimates.variances[0])
    values = np.array([inside, *counted.values[number:]])[:size]
    variances = np.array([variance, *[of_leaf] * (size - 1)])
    weights = _variance(root_counts.sigma) / (_variance(root_counts.sigma) + variances)
    values = weights * values + (1 - weights) * root_counts.values[:size]
    variances = weights * variances
    total = float(values.sum())
    inside, *outside = nearest(values, variances, max(0.0, total)).tolist()
    if branches is None or estimates is None:
        rows = nearest(leaves, np.ones(number), inside)
        attribute, codes = _attribute_of_several(column, columns, tree, rows)
    else:
        counts = settled(branches, estimates, inside, _NOTHING)
        attribute, rows, codes = _attribute_of_one(column, branches, counts)
    noisy = np.concatenate([_summed(codes, leaves), values[1:]])
    largest = max(of_leaf * float(np.bincount(codes).max()), float(variances[1:].max()))
    return attribute, CountedKey(
        (_total(round(total), float(variances.sum())), _table(attribute, noisy, largest)),
        np.concatenate([_summed(codes, rows), outside]),
        committed=False,
    )


def committed_key(
    columns: Sequence[Undiscovered], tree: NoisyTree, root_counts: NoisyLeaves
) -> tuple[Attribute, CountedKey]:
    """The same from counts that the tree commits: they stay as they are.

    Raises:
        InternalError: the tree commits none.
    """
    if tree.counts is None or tree.sigma is None:
        raise InternalError("a tree without counts commits none")
    column = _together(columns)
    outside = root_counts.values[1 : 2 + column.nullable].astype(np.float64)
    clear_outside = np.where(outside > CLEAR * root_counts.sigma, outside, 0.0)
    rows = tree.counts.astype(np.float64)
    if len(columns) == 1:
        branches = branches_of(_hierarchy(column), tree.levels[0], tree.nodes[0])
        counts = settled(branches, estimated(branches, rows, 1.0))
        attribute, rows, codes = _attribute_of_one(column, branches, counts)
    else:
        attribute, codes = _attribute_of_several(column, columns, tree, rows)
    noisy = np.concatenate([np.rint(_summed(codes, rows)), clear_outside])
    variance, of_whole = _variance(tree.sigma), _variance(root_counts.sigma)
    return attribute, CountedKey(
        (
            _total(int(noisy.sum()), variance + clear_outside.size * of_whole),
            _table(attribute, noisy, max(variance, of_whole)),
        ),
        noisy,
        committed=True,
    )


def _attribute_of_one(
    column: Undiscovered, branches: Branches, counts: FloatArray
) -> tuple[Attribute, FloatArray, IntArray]:
    """The attribute of a key of one hierarchy; the rows of each leaf of the tree, and its code."""
    runs = own_codes(branches, counts, MAX_SIZE - 2)
    leaf_nodes = np.flatnonzero(~branches.split)
    rows = counts[leaf_nodes[np.argsort(branches.starts[leaf_nodes])]]
    attribute = attribute_of_runs(column, _hierarchy(column), branches, counts, runs)
    return attribute, rows, codes_of_leaves(branches, runs)


def _attribute_of_several(
    column: Undiscovered, columns: Sequence[Undiscovered], tree: NoisyTree, rows: FloatArray
) -> tuple[Attribute, IntArray]:
    """The attribute of a key of several hierarchies, and the code of each leaf. Of more leaves than there can
    be codes, as many neighbours as needed share one."""
    hierarchies = tuple(_hierarchy(each) for each in columns)
    size = min(rows.size, MAX_SIZE - 2)
    codes = np.arange(rows.size) * size // rows.size
    labels_of = [
        _labels(hierarchy, levels, nodes)
        for hierarchy, levels, nodes in zip(hierarchies, tree.levels, tree.nodes, strict=True)
    ]
    names = [", ".join(words) for words in zip(*labels_of, strict=True)]
    first = np.flatnonzero(np.diff(codes, prepend=-1)).tolist()
    last = [*(begin - 1 for begin in first[1:]), rows.size - 1]
    labels = unique(
        names[a] if a == b else f"{names[a]} to {names[b]}" for a, b in zip(first, last, strict=True)
    )
    leaves = Leaves(
        hierarchies,
        tuple(tuple(levels.tolist()) for levels in tree.levels),
        tuple(tuple(nodes.tolist()) for nodes in tree.nodes),
        tuple(rows.tolist()),
        tuple(codes.tolist()),
    )
    return attribute_of(column, labels, leaves), codes


def _labels(hierarchy: Hierarchy, levels: IntArray, nodes: NDArray[Any]) -> list[str]:
    labels = np.empty(levels.size, object)
    for level in np.unique(levels).tolist():
        of_level = levels == level
        labels[of_level] = hierarchy.labels(nodes[of_level], level)
    return [str(label) for label in labels]


def _estimated(branches: Branches, tree: NoisyTree, counted: NoisyLeaves) -> Estimates:
    """From the counts of the leaves, and of the levels of the tree if it shows them."""
    leaves = counted.values[: tree.levels[0].size].astype(np.float64)
    of_levels = _variance(tree.sigma or 0.0)
    return estimated(branches, leaves, _variance(counted.sigma), tree.level_counts, of_levels)


def _variance(sigma: float) -> float:
    return max(sigma**2, _SMALLEST_VARIANCE)


def _summed(codes: IntArray, rows: FloatArray) -> FloatArray:
    return np.asarray(np.bincount(codes, rows), np.float64)


def _total(rows: int, variance: float) -> NoisyMarginal:
    return NoisyMarginal((), np.asarray(rows, np.int64), math.sqrt(variance))


def _table(attribute: Attribute, rows: FloatArray, variance: float) -> NoisyMarginal:
    """Composed: the total is measured apart, and its noise is partly the same."""
    values = np.rint(rows).astype(np.int64)
    return NoisyMarginal((attribute.name,), values, math.sqrt(variance), composed=True)


def _together(columns: Sequence[Undiscovered]) -> Undiscovered:
    """What stands for a key: the first column, or one named after all of them."""
    if len(columns) == 1:
        return columns[0]
    name = ", ".join(column.name for column in columns)
    return replace(columns[0], name=name, nullable=any(column.nullable for column in columns))


def _hierarchy(column: Undiscovered) -> Hierarchy:
    if column.hierarchy is None:
        raise InternalError("a column without a hierarchy has no tree")
    return column.hierarchy


def _room(column: Undiscovered) -> int:
    return max(1, column.max_codes - 1 - column.nullable)
