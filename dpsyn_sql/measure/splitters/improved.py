"""The improved adaptive histogram: every level takes a discount off the counts, and noise says who is split.

"Synthetic Data via Differential Privacy", Figure 2 without its counts of leaves, which are asked for anew,
and Appendix A, with discrete Laplace noise, a whole threshold b and a whole discount t. A node whose
discounted count is x is split if x + noise >= b. Proof, and why other discounts of the appendix are not here:
docs/privacy.md, "Trees".

A discount says how many of the rows of a node are left over for each of its children. All of them leave a
child at least t rows fewer than its parent:

- ``clamped``: max(0, c - l t) on level l, whatever the parent had;
- ``uniform``: t rows go from the children of a node, equally from each as far as it has any;
- ``proportional``: t rows of a node go, drawn at random.

The last two split about three times as many nodes. That resolves more, but leaves have fewer rows each, and
their counts the same noise: with few rows or a small epsilon ``clamped`` is closer to the source.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpsyn_sql.accounting.events import ImprovedEvent
from dpsyn_sql.fit.centring import group_sums, taken_in_turns
from dpsyn_sql.interfaces import NoiseSource
from dpsyn_sql.measure.noise import drawn_rows
from dpsyn_sql.measure.splitters.base import IntArray
from dpsyn_sql.measure.splitters.privtree import Decisions
from dpsyn_sql.planning.queries import Discount


@dataclass(frozen=True, slots=True)
class Improved:
    """The splitter of ``event``: its noise. ``threshold``: in rows, 0 or more."""

    event: ImprovedEvent
    threshold: int
    discount: Discount = "clamped"
    leaves = False

    def tests(self, noise: NoiseSource) -> _Tests:
        """The tests of one tree."""
        return _Tests(self, noise)

    def reading(self) -> Decisions:
        """A reading of one tree."""
        return Decisions()


class _Tests:
    """PRIVATE. ``_above``: what was left over for the nodes of the level above."""

    def __init__(self, splitter: Improved, noise: NoiseSource) -> None:
        self._scale, self._threshold = splitter.event.scale, splitter.threshold
        self._off = splitter.event.discount(splitter.threshold)
        self._discount, self._noise = splitter.discount, noise
        self._depth, self._above = 0, np.zeros(0, dtype=np.int64)

    def level(self, counts: IntArray, parents: IntArray) -> IntArray:
        """1 for every node that is split, 0 for the others."""
        left = self._left(counts, parents) if self._depth else counts
        self._depth, self._above = self._depth + 1, left
        passed = self._noise.laplace(left - self._threshold, self._scale) >= 0
        return np.asarray(passed, dtype=np.int64)

    def _left(self, counts: IntArray, parents: IntArray) -> IntArray:
        """What is left over of the counts of children."""
        if self._discount == "clamped":
            return np.maximum(counts - self._depth * self._off, 0)
        split, groups = np.unique(parents, return_inverse=True)
        sums = group_sums(counts, groups)
        taken = sums - np.clip(self._above[split] - self._off, 0, sums)
        if self._discount == "uniform":
            return taken_in_turns(counts, groups, taken)
        return counts - drawn_rows(counts, groups, taken)
