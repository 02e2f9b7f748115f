"""From noisy counts of the leaves of a tree to an attribute whose codes are coarse nodes; public.

counts along the tree that agree               fit/branches.py
nodes with enough rows are opened, the others beside each other share a code
within a code, rows are spread over its leaves by their counts
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from dpsyn_sql.domain.attributes import OTHER, Attribute, Recoding
from dpsyn_sql.domain.hierarchies.base import Hierarchy, Leaves
from dpsyn_sql.domain.shape import Undiscovered
from dpsyn_sql.fit.branches import Branches, FloatArray, IntArray

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
        found = _runs(branches, counts, middle, most)
        if found is None:
            low = middle
        else:
            high, best = middle, found if len(found) >= len(best) else best
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
    places = np.flatnonzero(~again)
    begins, sums, before = list[int](), list[float](), -2
    first = places.tolist(), parents[places].tolist(), rows[places].tolist()
    for place, parent, own in zip(*first, strict=True):
        if parent == before and sums[-1] + own < enough:
            sums[-1] += own
        else:
            begins.append(place)
            sums.append(own)
        before = parent
    return begins, sums


def _absorbed(begins: Sequence[int], sums: Sequence[float], small: float) -> tuple[list[int], list[float]]:
    """The same with runs of fewer than ``small`` rows joined with the lighter one of their neighbours."""
    found, rows = list[int](), list[float]()
    carried, start = 0.0, -1  # what waits to be joined with the next run, and where it begins
    for place, own in enumerate(sums):
        begin, total = (begins[place], own) if start < 0 else (start, own + carried)
        start, last = -1, place + 1 == len(sums)
        if total >= small or (last and not found):
            found.append(begin)
            rows.append(total)
        elif last or (found and rows[-1] <= sums[place + 1]):
            rows[-1] += total
        else:
            start, carried = begin, total
    return found, rows


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
    found = dict[str, None]()
    for label in labels:
        while label in found or label == OTHER:
            label += " "
        found[label] = None
    return tuple(found)


def _ends(run: Run, counts: FloatArray) -> tuple[int, int]:
    held = [node for node in run.nodes if counts[node] > 0] or run.nodes
    return held[0], held[-1]


def _names(hierarchy: Hierarchy, branches: Branches, nodes: set[int]) -> dict[int, str]:
    found = dict[int, str]()
    ordered = np.array(sorted(nodes))
    for level in np.unique(branches.levels[ordered]).tolist():
        own = ordered[branches.levels[ordered] == level]
        found |= zip(own.tolist(), hierarchy.labels(branches.ids[own], level), strict=True)
    return found


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


def attribute_of(column: Undiscovered, labels: tuple[str, ...], leaves: Leaves) -> Attribute:
    """The discovered attribute of a column whose codes are made up of leaves."""
    return Attribute(
        column.name,
        column.sql_type,
        "categorical",
        labels,
        other=True,
        nullable=column.nullable,
        origin="discovered",
        source=column.source,
        recoding=None if column.other else Recoding((len(labels),), tuple(range(len(labels)))),
        leaves=leaves,
    )
