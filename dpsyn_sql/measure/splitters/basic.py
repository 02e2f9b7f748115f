"""The basic adaptive histogram: a noisy count of every node, split where it reaches the threshold.

"Synthetic Data via Differential Privacy", Figure 1, without its counts of leaves: these are noisy counts that
stayed below a threshold, hence too low, and are asked for anew (its remark after Corollary 2). Proof:
docs/privacy.md, "Trees".
"""

from __future__ import annotations

from dataclasses import dataclass

from dpsyn_sql.accounting.events import GaussianEvent, LaplaceEvent
from dpsyn_sql.interfaces import NoiseSource
from dpsyn_sql.measure.noise import add_noise
from dpsyn_sql.measure.splitters.base import IntArray, Level


@dataclass(frozen=True, slots=True)
class Basic:
    """The splitter of ``event``: noise for one count a level. ``threshold``: the least noisy count that is
    split, in rows."""

    event: GaussianEvent | LaplaceEvent
    threshold: int
    leaves = False

    def tests(self, noise: NoiseSource) -> NoisyCounts:
        """The tests of one tree."""
        return NoisyCounts(self.event, noise)

    def reading(self) -> _Reading:
        """A reading of one tree."""
        return _Reading(self.threshold)


class NoisyCounts:
    """PRIVATE: every count with noise."""

    def __init__(self, event: GaussianEvent | LaplaceEvent, noise: NoiseSource) -> None:
        self._event, self._noise = event, noise

    def level(self, counts: IntArray, parents: IntArray) -> IntArray:
        """The noisy count of every node."""
        return add_noise(self._noise, [counts], self._event)[0]


class _Reading:
    def __init__(self, threshold: int) -> None:
        self._threshold = threshold

    def level(self, stored: IntArray, parents: IntArray) -> Level:
        """The noisy counts, and which of them reach the threshold."""
        return Level(stored >= self._threshold, stored)
