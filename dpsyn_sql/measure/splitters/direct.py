"""Direct synthesis: every node is committed to a count, which its children share exactly.

"Synthetic Data via Differential Privacy", Figure 3: the root is committed to its noisy count, the children of
a node to their noisy counts after these are centred on the count of the node (Figure 4). Nodes of as many
rows as the threshold are split; with a threshold of 2 that is the figure. What is committed is a function of
the noisy counts. Proof: docs/privacy.md, "Trees".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpsyn_sql.accounting.events import GaussianEvent, LaplaceEvent
from dpsyn_sql.fit.centring import centred
from dpsyn_sql.interfaces import NoiseSource
from dpsyn_sql.measure.splitters.base import IntArray, Level
from dpsyn_sql.measure.splitters.basic import NoisyCounts


@dataclass(frozen=True, slots=True)
class Direct:
    """The splitter of ``event``: noise for one count a level. ``threshold``: the least committed count that
    is split, in rows, 1 or more."""

    event: GaussianEvent | LaplaceEvent
    threshold: int
    leaves = True

    def tests(self, noise: NoiseSource) -> NoisyCounts:
        """The tests of one tree."""
        return NoisyCounts(self.event, noise)

    def reading(self) -> _Reading:
        """A reading of one tree."""
        return _Reading(self.threshold)


class _Reading:
    """``_committed``: the counts of the level above, None before the root."""

    def __init__(self, threshold: int) -> None:
        self._threshold = threshold
        self._committed: IntArray | None = None

    def level(self, stored: IntArray, parents: IntArray) -> Level:
        """The committed counts, and which of them reach the threshold."""
        if self._committed is None:
            self._committed = np.maximum(stored, 0)
        else:
            split, groups = np.unique(parents, return_inverse=True)
            self._committed = centred(stored, groups, self._committed[split])
        return Level(self._committed >= self._threshold, self._committed)
