"""Leaves of a hierarchy as arrays: where they and their codes begin."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.domain.hierarchies.base import Hierarchy, Leaves
from dpsyn_sql.domain.hierarchies.text import Texts
from dpsyn_sql.errors import InternalError


def by_level(levels: tuple[int, ...]) -> dict[int, NDArray[np.int64]]:
    """The places of the leaves of each level, ascending."""
    found = np.array(levels, dtype=np.int64)
    return {int(level): np.flatnonzero(found == level) for level in np.unique(found)}


def node_array(hierarchy: Hierarchy, nodes: tuple[int | str, ...]) -> NDArray[Any]:
    """Ids as the hierarchy takes them: int64, or object for text."""
    return np.array(nodes, dtype=object if hierarchy.text else np.int64)


def finished_leaves(leaves: Leaves) -> list[bool]:
    """Whether each leaf of one or more hierarchies is written whole: no text in it is a beginning alone."""
    whole = np.ones(len(leaves.codes), dtype=bool)
    for hierarchy, levels, nodes in zip(leaves.hierarchies, leaves.levels, leaves.nodes, strict=True):
        if not isinstance(hierarchy, Texts):
            continue
        ids = node_array(hierarchy, nodes)
        for level, places in by_level(levels).items():
            whole[places] &= hierarchy.finished(ids[places], level)
    found: list[bool] = whole.tolist()
    return found


def code_starts(hierarchy: Hierarchy, leaves: Leaves) -> list[int] | list[str]:
    """The least key of each code 0, 1, ..., ascending. The leaves are those of one hierarchy.

    Raises:
        InternalError: the leaves do not ascend in keys, or a code has none.
    """
    codes = np.array(leaves.codes, dtype=np.int64)
    firsts = np.flatnonzero(np.diff(codes, prepend=-1))
    levels = tuple(leaves.levels[0][place] for place in firsts)
    nodes = node_array(hierarchy, tuple(leaves.nodes[0][place] for place in firsts))
    starts = np.empty(len(firsts), dtype=nodes.dtype)
    for level, places in by_level(levels).items():
        starts[places] = hierarchy.lowest(nodes[places], level)
    listed: list[Any] = starts.tolist()
    steady = codes[firsts].tolist() == list(range(len(firsts)))
    if not listed or not steady or any(before >= after for before, after in pairwise(listed)):
        raise InternalError("the leaves of a hierarchy do not ascend, or a code has none")
    return listed
