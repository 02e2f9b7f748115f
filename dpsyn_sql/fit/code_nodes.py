"""Codes after their working bins, as nodes of a network: each code belongs to one bin."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.fit.network import Node, configurations, node_of, proper, slot_bits_of

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

MOST_EMPTY = 2**16
"""Above this number, the slots of codes within bins may be at most four times the codes: a bin with most
codes of its attribute would give as many slots to every other bin."""


def code_nodes(
    name: str, attribute: int, variable: int, sizes: list[int], bins: IntArray, within: FloatArray
) -> list[Node]:
    """The codes of an attribute given its working bin.

    If one bin has far more codes than others, blocks of codes are one more variable in between; its size is
    added to ``sizes``.
    """
    if sizes[attribute] == 1:
        return [node_of(f"{name}|code", (), (variable,), proper(within))]
    node = _parted(f"{name}|code", attribute, variable, bins, within)
    bits = slot_bits_of(node)
    if configurations(node, sizes) << bits <= max(MOST_EMPTY, 4 * len(node.weights)):
        return [node]
    order = np.argsort(bins, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(bins.size) - np.searchsorted(bins[order], bins[order])
    (bin_of, _), block_of = np.unique(np.stack([bins, rank >> bits // 2]), axis=1, return_inverse=True)
    block_of, block = block_of.ravel(), len(sizes)
    sizes.append(bin_of.size)
    shares = np.bincount(block_of, within).astype(np.float64)
    return [
        _parted(f"{name}|block", attribute, block, bin_of, shares),
        _parted(f"{name}|code", block, variable, block_of, within),
    ]


def _parted(label: str, parent: int, variable: int, of: IntArray, weights: FloatArray) -> Node:
    """A variable each of whose values belongs to one value ``of[value]`` of its parent, with ``weights``."""
    weights = np.where(np.bincount(of, weights)[of] > 0, weights, 1.0)
    values = np.flatnonzero(weights)
    values = values[np.argsort(of[values], kind="stable")]
    shares = (weights / np.bincount(of, weights)[of])[values]
    return Node(
        label, (variable,), (parent,), of[values][:, None], values[:, None], shares, np.ones(values.size)
    )
