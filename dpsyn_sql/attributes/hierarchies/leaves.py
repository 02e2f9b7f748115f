"""Leaves of a hierarchy as arrays: where they and their codes begin; and as JSON, for certificates. All of it
is public.

Anybody can edit a stored release, so what is read back is checked as if it were new. The SQL expressions that
gave the values are not read back: nothing may read the source again.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.attributes.hierarchies.base import Hierarchy, HierarchyColumn, Leaves, NodeId
from dpsyn_sql.attributes.hierarchies.points import Points
from dpsyn_sql.attributes.hierarchies.taxonomy import Taxonomy
from dpsyn_sql.attributes.hierarchies.text import Texts
from dpsyn_sql.errors import InternalError


def by_level(levels: tuple[int, ...]) -> dict[int, NDArray[np.int64]]:
    """The places of the leaves of each level, ascending."""
    level_of = np.array(levels, dtype=np.int64)
    return {int(level): np.flatnonzero(level_of == level) for level in np.unique(level_of)}


def node_array(hierarchy: Hierarchy, nodes: tuple[int | str, ...]) -> NDArray[Any]:
    """Ids as the hierarchy takes them: int64, or object for text."""
    return np.array(nodes, dtype=object if hierarchy.text else np.int64)


def finished_leaves(leaves: Leaves) -> list[bool]:
    """Whether each leaf of one or more hierarchies is written whole: no text in it is a beginning alone."""
    finished = np.ones(len(leaves.codes), dtype=bool)
    for hierarchy, levels, nodes in zip(leaves.hierarchies, leaves.levels, leaves.nodes, strict=True):
        if not isinstance(hierarchy, Texts):
            continue
        ids = node_array(hierarchy, nodes)
        for level, indices in by_level(levels).items():
            finished[indices] &= hierarchy.finished(ids[indices], level)
    flags: list[bool] = finished.tolist()
    return flags


def code_starts(hierarchy: Hierarchy, leaves: Leaves) -> list[int] | list[str]:
    """The least key of each code 0, 1, ..., ascending. The leaves are those of one hierarchy.

    Raises:
        InternalError: the leaves do not ascend in keys, or a code has none.
    """
    codes = np.array(leaves.codes, dtype=np.int64)
    firsts = np.flatnonzero(np.diff(codes, prepend=-1))
    levels = tuple(leaves.levels[0][first] for first in firsts)
    nodes = node_array(hierarchy, tuple(leaves.nodes[0][first] for first in firsts))
    starts = np.empty(len(firsts), dtype=nodes.dtype)
    for level, indices in by_level(levels).items():
        starts[indices] = hierarchy.lowest(nodes[indices], level)
    listed: list[Any] = starts.tolist()
    steady = codes[firsts].tolist() == list(range(len(firsts)))
    if not listed or not steady or any(before >= after for before, after in pairwise(listed)):
        raise InternalError("the leaves of a hierarchy do not ascend, or a code has none")
    return listed


_PLACES = 3  # of numbers of rows: more are noise


def leaves_facts(leaves: Leaves) -> dict[str, Any]:
    """Everything about leaves, JSON-ready: ``levels``, ``nodes``: a list by leaf for each hierarchy."""
    return {
        "hierarchies": [_facts(hierarchy) for hierarchy in leaves.hierarchies],
        "levels": [list(levels) for levels in leaves.levels],
        "nodes": [list(nodes) for nodes in leaves.nodes],
        "rows": [round(rows, _PLACES) for rows in leaves.rows],
        "codes": list(leaves.codes),
    }


def leaves_of(facts: Mapping[str, Any]) -> Leaves:
    """The leaves that ``leaves_facts`` describes.

    Raises:
        InternalError, KeyError, TypeError, ValueError: it describes none.
    """
    hierarchies = tuple(_hierarchy(hierarchy) for hierarchy in facts["hierarchies"])
    levels = tuple(tuple(map(int, of_hierarchy)) for of_hierarchy in facts["levels"])
    nodes = tuple(
        tuple(_node(hierarchy, node) for node in of_hierarchy)
        for hierarchy, of_hierarchy in zip(hierarchies, facts["nodes"], strict=True)
    )
    rows, codes = tuple(map(float, facts["rows"])), tuple(map(int, facts["codes"]))
    lengths = {len(rows), len(codes), *map(len, levels), *map(len, nodes)}
    if len(lengths) > 1 or not rows or len(levels) != len(hierarchies):
        raise InternalError("stored leaves do not fit together")
    for hierarchy, of_hierarchy in zip(hierarchies, levels, strict=True):
        if not all(0 <= level <= hierarchy.depth for level in of_hierarchy):
            raise InternalError("stored leaves are deeper than their hierarchy")
    return Leaves(hierarchies, levels, nodes, rows, codes)


def _facts(hierarchy: Hierarchy) -> dict[str, Any]:
    """What ``named`` has; of a taxonomy, which that has by its hash, the ids and nodes too."""
    facts = dict(hierarchy.named())
    if isinstance(hierarchy, Taxonomy):
        facts |= {
            "ids": list(hierarchy.ids),
            "nodes": [list(map(list, level_nodes)) for level_nodes in hierarchy.nodes],
        }
    return facts


def _hierarchy(facts: Mapping[str, Any]) -> Hierarchy:
    kind, nullable = facts["kind"], bool(facts.get("nullable", False))
    if kind == "point":
        columns = tuple(
            HierarchyColumn(column_facts["name"], column_facts["type"]) for column_facts in facts["columns"]
        )
        lows, highs = (
            tuple(_end(column_facts[end]) for column_facts in facts["columns"]) for end in ("low", "high")
        )
        return Points(facts["name"], columns, lows, highs, facts["depth"], nullable)
    column = HierarchyColumn(facts["name"], facts["type"])
    if kind == "string":
        return Texts(column, facts["alphabet"], tuple(facts["lengths"]), facts["longest"], nullable)
    if kind == "taxonomy":
        nodes = tuple(
            tuple((int(first), str(label)) for first, label in level_nodes) for level_nodes in facts["nodes"]
        )
        return Taxonomy(column, tuple(map(str, facts["ids"])), nodes, nullable)
    raise InternalError("a stored hierarchy is of an unknown kind")


def _node(hierarchy: Hierarchy, stated: int | str) -> NodeId:
    return str(stated) if hierarchy.text else int(stated)


def _end(stated: int | str) -> int | float:
    """An end of a box: a tick, or a double as text."""
    return stated if isinstance(stated, int) else float(stated)
