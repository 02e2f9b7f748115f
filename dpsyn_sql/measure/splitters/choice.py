"""Keys of several attributes: by which of them a node is split, chosen privately.

"Synthetic Data via Differential Privacy", section 4.1: the exponential mechanism with the score "imbalance",
the rows of the largest child that a node has by an attribute (its equation 8); permute-and-flip in pure
accounts. All nodes of a level choose in parallel, so that a level costs what one choice costs. Proof:
docs/privacy.md, "Trees".
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.accounting.budget import Kind
from dpsyn_sql.accounting.events import SelectionEvent
from dpsyn_sql.errors import InternalError
from dpsyn_sql.interfaces import NoiseSource

IntArray = NDArray[np.int64]


def chosen_parts(
    largest: IntArray, refines: NDArray[np.bool_], event: SelectionEvent, kind: Kind, noise: NoiseSource
) -> IntArray:
    """The attribute that each node of a level is split by. PRIVATE counts go in.

    Args:
        largest: int64[n, parts], the rows of the largest child of every node by every attribute.
        refines: bool[n, parts], whether the hierarchy of the attribute refines the node; public.
        event: scale of the choices; ``number`` of its choices is that of the levels.
        kind: of the account.
        noise: of the choices.

    Returns:
        int64[n]: places of attributes; -1 where none refines the node.

    Raises:
        InternalError: the arrays do not fit together.
    """
    if largest.shape != refines.shape or largest.dtype != np.int64:
        raise InternalError("a choice of attributes needs a score for every node and attribute")
    found = np.where(refines.any(axis=1), np.argmax(refines, axis=1), -1)
    for node in np.flatnonzero(refines.sum(axis=1) > 1):  # the others have no choice
        parts = np.flatnonzero(refines[node])
        found[node] = parts[noise.select(largest[node, parts], event.scale, kind, 1)[0]]
    return np.asarray(found, dtype=np.int64)
