"""What the answers about a tree make of columns: an attribute, and its counts; public in and out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.domain.attributes import MAX_SIZE, Attribute
from dpsyn_sql.domain.hierarchies.base import Hierarchy, Leaves
from dpsyn_sql.domain.shape import Undiscovered
from dpsyn_sql.errors import InternalError
from dpsyn_sql.fit.branches import (
    Branches,
    Estimates,
    FloatArray,
    IntArray,
    branches_of,
    estimated,
    nearest,
    settled,
)
from dpsyn_sql.fit.leaves import (
    attribute_of,
    attribute_of_runs,
    coarsened,
    codes_of_leaves,
    own_codes,
    unique,
)
from dpsyn_sql.planning.plan import Counted
from dpsyn_sql.planning.queries import NoisyLeaves, NoisyMarginal, NoisyTree

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
    columns: Sequence[Undiscovered], tree: NoisyTree, counted: NoisyLeaves, whole: NoisyLeaves
) -> tuple[Attribute, Counted]:
    """The key of one or several columns, each with its hierarchy, and its rows. A code is a leaf of the tree.

    ``whole`` are counts of the root alone: rows inside, outside, and without a value. They say how many rows
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
    weights = _variance(whole.sigma) / (_variance(whole.sigma) + variances)
    values = weights * values + (1 - weights) * whole.values[:size]
    variances = weights * variances
    total = float(values.sum())
    inside, *beside = nearest(values, variances, max(0.0, total)).tolist()
    if branches is None or estimates is None:
        rows = nearest(leaves, np.ones(number), inside)
        attribute, codes = _attribute_of_several(column, columns, tree, rows)
    else:
        counts = settled(branches, estimates, inside, _NOTHING)
        attribute, rows, codes = _attribute_of_one(column, branches, counts)
    noisy = np.concatenate([_summed(codes, leaves), values[1:]])
    largest = max(of_leaf * float(np.bincount(codes).max()), float(variances[1:].max()))
    return attribute, Counted(
        (_total(round(total), float(variances.sum())), _table(attribute, noisy, largest)),
        np.concatenate([_summed(codes, rows), beside]),
        committed=False,
    )


def committed_key(
    columns: Sequence[Undiscovered], tree: NoisyTree, whole: NoisyLeaves
) -> tuple[Attribute, Counted]:
    """The same from counts that the tree commits: they stay as they are.

    Raises:
        InternalError: the tree commits none.
    """
    if tree.counts is None or tree.sigma is None:
        raise InternalError("a tree without counts commits none")
    column = _together(columns)
    outside = whole.values[1 : 2 + column.nullable].astype(np.float64)
    beside = np.where(outside > CLEAR * whole.sigma, outside, 0.0)
    rows = tree.counts.astype(np.float64)
    if len(columns) == 1:
        branches = branches_of(_hierarchy(column), tree.levels[0], tree.nodes[0])
        counts = settled(branches, estimated(branches, rows, 1.0))
        attribute, rows, codes = _attribute_of_one(column, branches, counts)
    else:
        attribute, codes = _attribute_of_several(column, columns, tree, rows)
    noisy = np.concatenate([np.rint(_summed(codes, rows)), beside])
    variance, of_whole = _variance(tree.sigma), _variance(whole.sigma)
    return attribute, Counted(
        (
            _total(int(noisy.sum()), variance + beside.size * of_whole),
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
    own = np.flatnonzero(~branches.split)
    rows = counts[own[np.argsort(branches.starts[own])]]
    attribute = attribute_of_runs(column, _hierarchy(column), branches, counts, runs)
    return attribute, rows, codes_of_leaves(branches, runs)


def _attribute_of_several(
    column: Undiscovered, columns: Sequence[Undiscovered], tree: NoisyTree, rows: FloatArray
) -> tuple[Attribute, IntArray]:
    """The attribute of a key of several hierarchies, and the code of each leaf. Of more leaves than there can
    be codes, as many neighbours as needed share one."""
    hierarchies = tuple(_hierarchy(one) for one in columns)
    size = min(rows.size, MAX_SIZE - 2)
    codes = np.arange(rows.size) * size // rows.size
    parts = [
        _labels(hierarchy, levels, nodes)
        for hierarchy, levels, nodes in zip(hierarchies, tree.levels, tree.nodes, strict=True)
    ]
    names = [", ".join(own) for own in zip(*parts, strict=True)]
    first = np.flatnonzero(np.diff(codes, prepend=-1)).tolist()
    last = [*(place - 1 for place in first[1:]), rows.size - 1]
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
    found = np.empty(levels.size, object)
    for level in np.unique(levels).tolist():
        own = levels == level
        found[own] = hierarchy.labels(nodes[own], level)
    return [str(label) for label in found]


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
