"""PrivTree with integer noise: which nodes of public binary trees are split. PRIVATE counts go in.

Zhang, Xiao and Xie, "PrivTree" (2016), Algorithm 2, with whole numbers throughout: discrete Laplace noise
of scale lambda, decay d = ceil(lambda ln 2), threshold 0. A node of level l with c points is split if
max(c - l d, -d) + noise > 0. No count is shown. The proof is in docs/privacy.md, "Trees".
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.accounting.events import TreeEvent
from dpsyn_sql.interfaces import NoiseSource
from dpsyn_sql.planning.queries import TreeRoot

MOST_TESTS = 2**17
"""The most nodes that are tested, level by level from the left. The results of these tests are a function
of the whole trees, which the proof is about."""


def grow(
    roots: tuple[TreeRoot, ...],
    cells: NDArray[np.int64],
    units: NDArray[np.int64],
    event: TreeEvent,
    noise: NoiseSource,
) -> NDArray[np.int64]:
    """The nodes that are split.

    Args:
        roots: public; cells of the finest level are numbered through all of them.
        cells: int64, occupied cells of the finest level, ascending.
        units: int64, points in each.
        event: noise and decay.
        noise: of the tests.

    Returns:
        int64[nodes, 3]: root, level, index from the left within the root; level by level, then by root and
        index.
    """
    depths = np.array([root.depth for root in roots], dtype=np.int64)
    starts = np.concatenate(([0], np.cumsum(np.left_shift(np.int64(1), depths))))[:-1]
    sums = np.concatenate(([0], np.cumsum(units, dtype=np.int64)))

    def counts(root: NDArray[np.int64], level: int, index: NDArray[np.int64]) -> NDArray[np.int64]:
        size = np.left_shift(np.int64(1), depths[root] - level)
        low = starts[root] + index * size
        ends = np.searchsorted(cells, np.stack((low, low + size)))
        return np.asarray(sums[ends[1]] - sums[ends[0]], dtype=np.int64)

    root, index = np.arange(len(roots)), np.zeros(len(roots), dtype=np.int64)
    level, left, split = 0, MOST_TESTS, []
    while True:
        testable = np.flatnonzero(depths[root] > level)[:left]
        if not len(testable):
            break
        root, index, left = root[testable], index[testable], left - len(testable)
        biased = np.maximum(counts(root, level, index) - level * event.decay, -event.decay)
        passed = noise.laplace(biased, event.scale) > 0
        root, index = root[passed], index[passed]
        split.append(np.stack((root, np.full_like(root, level), index), axis=1))
        root, index = np.repeat(root, 2), np.repeat(2 * index, 2)
        index[1::2] += 1
        level += 1
    return np.concatenate(split) if split else np.zeros((0, 3), dtype=np.int64)
