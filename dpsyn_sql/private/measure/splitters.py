"""Which nodes of a public tree are split. PRIVATE counts go in, noisy arrays come out.

A tree is grown level by level from the root, and read again from what was stored. At each level all nodes
that are still there are asked about at once: the children of the nodes that were split one level above, empty
ones included. For every level one array is stored. Every splitter has two halves: tests that see exact counts
and add noise, and a public reading of what they stored, which needs these arrays and the public hierarchy,
nothing else. The proofs are in docs/privacy.md, "Trees".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.accounting.events import GaussianEvent, ImprovedEvent, LaplaceEvent, TreeEvent
from dpsyn_sql.fit.centring import centred, group_sums, take_rows_in_turns
from dpsyn_sql.planning.queries import Discount
from dpsyn_sql.private.measure.noise import add_noise, drawn_rows
from dpsyn_sql.private.protocols import NoiseSource

IntArray = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Level:
    """What the stored array of a level says; public.

    ``split``: bool[n], which nodes are split if the hierarchy refines them. ``counts``: int64[n], the noisy
    or committed number of rows of each node; None where the algorithm shows no counts.
    """

    split: NDArray[np.bool_]
    counts: IntArray | None = None


class Tests(Protocol):
    """PRIVATE: the levels of one growing tree, in turn from the root."""

    def level(self, counts: IntArray, parents: IntArray) -> IntArray:
        """The array to store for the next level.

        Args:
            counts: int64[n], exact rows of every node of the level.
            parents: int64[n], never descending: the place of each node's parent among the nodes of the level
                above. For the root: 0.
        """


class Reading:
    """Public: what stored arrays say, level by level from the root: here 1 (split) and 0 (not split)."""

    def level(self, stored: IntArray, parents: IntArray) -> Level:
        """What the next stored array says; ``parents`` as for ``Tests.level``."""
        return Level(stored == 1)


# -- noisy counts ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Basic:
    """The basic adaptive histogram: a noisy count of every node, split where it reaches the threshold.

    "Synthetic Data via Differential Privacy", Figure 1, without its counts of leaves: these are noisy counts
    that stayed below a threshold, hence too low, and are asked for anew (its remark after Corollary 2).
    ``event``: noise for one count a level. ``threshold``: the least noisy count that is split, in rows.
    """

    event: GaussianEvent | LaplaceEvent
    threshold: int
    leaves: ClassVar[bool] = False

    def tests(self, noise: NoiseSource) -> Tests:
        """The tests of one tree."""
        return _NoisyCounts(self.event, noise)

    def reading(self) -> Reading:
        """A reading of one tree."""
        return _Counted(self.threshold)


@dataclass(frozen=True, slots=True)
class Direct(Basic):
    """Direct synthesis: every node is committed to a count, which its children share exactly.

    "Synthetic Data via Differential Privacy", Figure 3: the root is committed to its noisy count, the
    children of a node to their noisy counts after these are centred on the count of the node (Figure 4).
    Nodes of as many rows as the threshold are split; with a threshold of 2 that is the figure. What is
    committed is a function of the noisy counts. ``event``: noise for one count a level. ``threshold``: the
    least committed count that is split, in rows, 1 or more.
    """

    leaves: ClassVar[bool] = True

    def reading(self) -> Reading:
        """A reading of one tree."""
        return _Committed(self.threshold)


class _NoisyCounts:
    """PRIVATE: every count with noise."""

    def __init__(self, event: GaussianEvent | LaplaceEvent, noise: NoiseSource) -> None:
        self._event, self._noise = event, noise

    def level(self, counts: IntArray, parents: IntArray) -> IntArray:
        """The noisy count of every node."""
        return add_noise(self._noise, [counts], self._event)[0]


class _Counted(Reading):
    def __init__(self, threshold: int) -> None:
        self._threshold = threshold

    def level(self, stored: IntArray, parents: IntArray) -> Level:
        """The noisy counts, and which of them reach the threshold."""
        return Level(stored >= self._threshold, stored)


class _Committed(_Counted):
    """``_above``: the committed counts of the level above, None before the root."""

    _above: IntArray | None = None

    def level(self, stored: IntArray, parents: IntArray) -> Level:
        """The committed counts, and which of them reach the threshold."""
        if self._above is None:
            self._above = np.maximum(stored, 0)
        else:
            split, groups = np.unique(parents, return_inverse=True)
            self._above = centred(stored, groups, self._above[split])
        return Level(self._above >= self._threshold, self._above)


# -- decisions -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PrivTree:
    """PrivTree in whole numbers: a decaying count and noise say whether a node is split.

    Zhang, Xiao and Xie, "PrivTree" (2016), Algorithm 2, with discrete Laplace noise of scale lambda, a whole
    decay d >= lambda ln B and a whole threshold. A node of level l with c rows is split if
    max(c - threshold - l d, -d) + noise > 0. No count is shown. ``event``: noise and decay. ``threshold``: in
    rows, 0 or more.
    """

    event: TreeEvent
    threshold: int = 0
    leaves: ClassVar[bool] = False

    def tests(self, noise: NoiseSource) -> Tests:
        """The tests of one tree."""
        return _Decaying(self.event, self.threshold, noise)

    def reading(self) -> Reading:
        """A reading of one tree."""
        return Reading()


@dataclass(frozen=True, slots=True)
class Improved:
    """The improved adaptive histogram: every level takes a discount off the counts, and noise says who is
    split.

    "Synthetic Data via Differential Privacy", Figure 2 without its counts of leaves, which are asked for
    anew, and Appendix A, with discrete Laplace noise, a whole threshold b and a whole discount t. A node
    whose discounted count is x is split if x + noise >= b. docs/privacy.md says why other discounts of the
    appendix are not here. ``event``: its noise. ``threshold``: in rows, 0 or more.

    A discount says how many of the rows of a node are left over for each of its children. All of them leave a
    child at least t rows fewer than its parent:

    - ``clamped``: max(0, c - l t) on level l, whatever the parent had;
    - ``uniform``: t rows go from the children of a node, equally from each as far as it has any;
    - ``proportional``: t rows of a node go, drawn at random.

    The last two split about three times as many nodes. That resolves more, but leaves have fewer rows each,
    and their counts the same noise: with few rows or a small epsilon ``clamped`` is closer to the source.
    """

    event: ImprovedEvent
    threshold: int
    discount: Discount = "clamped"
    leaves: ClassVar[bool] = False

    def tests(self, noise: NoiseSource) -> Tests:
        """The tests of one tree."""
        return _Discounted(self, noise)

    def reading(self) -> Reading:
        """A reading of one tree."""
        return Reading()


Splitter = Basic | Direct | PrivTree | Improved
"""An algorithm with its noise. ``event``: what growing one tree costs. ``leaves``: whether the nodes of the
deepest level are asked about as well; they are never split."""


class _Decaying:
    """PRIVATE."""

    def __init__(self, event: TreeEvent, threshold: int, noise: NoiseSource) -> None:
        self._event, self._noise, self._offset = event, noise, threshold

    def level(self, counts: IntArray, parents: IntArray) -> IntArray:
        """1 for every node that is split, 0 for the others."""
        biased = np.maximum(counts - self._offset, -self._event.decay)
        self._offset += self._event.decay
        return np.asarray(self._noise.laplace(biased, self._event.scale) > 0, dtype=np.int64)


class _Discounted:
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
            return take_rows_in_turns(counts, groups, taken)
        return counts - drawn_rows(counts, groups, taken)
