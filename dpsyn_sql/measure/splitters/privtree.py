"""PrivTree in whole numbers: a decaying count and noise say whether a node is split.

Zhang, Xiao and Xie, "PrivTree" (2016), Algorithm 2, with discrete Laplace noise of scale lambda, a whole
decay d >= lambda ln B and a whole threshold. A node of level l with c rows is split if
max(c - threshold - l d, -d) + noise > 0. No count is shown. Proof: docs/privacy.md, "Trees".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpsyn_sql.accounting.events import TreeEvent
from dpsyn_sql.interfaces import NoiseSource
from dpsyn_sql.measure.splitters.base import IntArray, Level


@dataclass(frozen=True, slots=True)
class PrivTree:
    """The splitter of ``event``: its noise and its decay. ``threshold``: in rows, 0 or more."""

    event: TreeEvent
    threshold: int = 0
    leaves = False

    def tests(self, noise: NoiseSource) -> _Tests:
        """The tests of one tree."""
        return _Tests(self.event, self.threshold, noise)

    def reading(self) -> Decisions:
        """A reading of one tree."""
        return Decisions()


class _Tests:
    """PRIVATE."""

    def __init__(self, event: TreeEvent, threshold: int, noise: NoiseSource) -> None:
        self._event, self._noise, self._offset = event, noise, threshold

    def level(self, counts: IntArray, parents: IntArray) -> IntArray:
        """1 for every node that is split, 0 for the others."""
        biased = np.maximum(counts - self._offset, -self._event.decay)
        self._offset += self._event.decay
        return np.asarray(self._noise.laplace(biased, self._event.scale) > 0, dtype=np.int64)


class Decisions:
    """Stored arrays of ones (split) and zeros (not split)."""

    def level(self, stored: IntArray, parents: IntArray) -> Level:
        """The decisions, and no counts."""
        return Level(stored == 1)
