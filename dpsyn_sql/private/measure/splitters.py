"""How trees of nodes are split, and what that costs.

Which nodes of a public tree are split. PRIVATE counts go in, noisy arrays come out.

A tree is grown level by level from the root, and read again from what was stored. At each level all nodes
that are still there are asked about at once: the children of the nodes that were split one level above, empty
ones included. For every level one array is stored. Every splitter has two halves: tests that see exact counts
and add noise, and a public reading of what they stored, which needs these arrays and the public hierarchy,
nothing else. The proofs are in docs/privacy.md, "Trees".

From a share of the budget to a splitter: its noise, decay or discount, and threshold. Public.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.accounting.events import (
    GaussianEvent,
    ImprovedEvent,
    LaplaceEvent,
    TreeEvent,
    cost_units,
    log_above,
)
from dpsyn_sql.accounting.gdp import range_of_choice
from dpsyn_sql.errors import BudgetError, InputError
from dpsyn_sql.fit.centres import centred, group_sums, take_rows_in_turns
from dpsyn_sql.planning.queries import Discount, TreeQuery
from dpsyn_sql.private.measure.noise import (
    MOST_ROWS,
    NoiseSource,
    add_noise,
    counts_event,
    drawn_rows,
    grown_until,
    laplace_mechanism,
    refuse_no_discovery,
    standard_deviation,
)

# -- how nodes are split -------------------------------------------------------------------------------


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


# -- prices --------------------------------------------------------------------------------------------


_Event = TypeVar("_Event", TreeEvent, ImprovedEvent)

_MOST_TAKEN = 2**61


def splitter_of(question: TreeQuery, rows_per_unit: int, share: Budget) -> Splitter:
    """The splitter that a question asks for, within ``share``.

    Thresholds that a question leaves open: 0 rows for privtree; for direct the noise of a count, at least 2;
    for basic and improved such that of the children of an empty node less than one is split on average, so
    that noise alone makes no large tree.

    Raises:
        BudgetError: the share is nothing, or so small that what its noise takes off counts is no BIGINT.
        InputError: the threshold is out of range.
    """
    refuse_no_discovery(share)
    branching = max(hierarchy.branching for hierarchy in question.hierarchies)
    threshold = question.threshold
    least = 1 if question.splitter == "direct" else 0
    if threshold is not None and not least <= threshold <= MOST_ROWS:
        raise InputError(
            f"threshold={threshold} is out of range: it is a number of rows, {least} to {MOST_ROWS}"
        )
    if question.splitter == "privtree":
        tests = _pure_event(lambda scale: TreeEvent(scale, rows_per_unit, branching), share)
        _refuse_overflow(question.depth * tests.decay)
        return PrivTree(tests, threshold or 0)
    if question.splitter == "improved":
        event = _pure_event(lambda scale: ImprovedEvent(scale, rows_per_unit), share)
        least = _discounting_threshold(event, branching, threshold)
        _refuse_overflow(question.depth * event.discount(least))
        return Improved(event, least, question.discount)
    if question.splitter == "direct":
        noise = levels_event(question.depth + 1, rows_per_unit, share)
        return Direct(noise, max(2, math.ceil(standard_deviation(noise))) if threshold is None else threshold)
    noise = levels_event(question.depth, rows_per_unit, share)
    return Basic(noise, usual_threshold(noise, branching) if threshold is None else threshold)


def _refuse_overflow(taken: int) -> None:
    """What all levels take off a count has to be far from the end of a BIGINT: an error in the middle of a
    tree would depend on its answers.

    Raises:
        BudgetError: it is not.
    """
    if taken > _MOST_TAKEN:
        raise BudgetError(
            "the share of the budget for a tree is so small that its noise is wider than any table: raise "
            "epsilon, or lower depth, threshold or the rows per unit"
        )


def _discounting_threshold(event: ImprovedEvent, branching: int, threshold: int | None) -> int:
    """The threshold of the improved adaptive histogram: at least scale ln branching rows.

    Raises:
        InputError: it is lower, so that noise alone splits without end.
    """
    least = max(1, math.ceil(Fraction(event.scale) * log_above(branching)))
    if threshold is not None and threshold < least:
        raise InputError(
            f"threshold={threshold} is too low for the improved splitter: a node has up to {branching} "
            f"children, more than e^(threshold / scale) for noise of scale {event.scale:.4g}. So noise alone "
            f"would split empty nodes without end. Set threshold={least} or more, or raise epsilon"
        )
    return least if threshold is None else threshold


def levels_event(levels: int, rows_per_unit: int, share: Budget) -> GaussianEvent | LaplaceEvent:
    """The event of one noisy count of every node on each of ``levels`` levels, within ``share``."""
    return counts_event(levels * rows_per_unit, levels * rows_per_unit**2, share)


def usual_threshold(event: GaussianEvent | LaplaceEvent, branching: int) -> int:
    """Three standard deviations of the noise of a count, or the count that noise alone reaches with a
    probability of about 1 / (2 branching), if that is more; in rows, at least 1."""
    noise = standard_deviation(event)
    if isinstance(event, LaplaceEvent):
        reach = event.scale * math.log(branching)
    else:
        reach = noise * float(ndtri(1 - 1 / (2 * branching)))
    return max(1, math.ceil(max(reach, 3 * noise)))


def _pure_event(of: Callable[[float], _Event], share: Budget) -> _Event:
    """The event of least noise within ``share`` that both accountants accept.

    ``of`` gives the event of a scale; it is epsilon-DP, with epsilon a multiple of 1 / scale.
    """
    unit = of(1.0).cost("pure")
    epsilon = range_of_choice(share.fraction) / 2 if share.kind == "gdp" else float(share.fraction)

    def fits(scale: float) -> bool:
        second = Fraction(laplace_mechanism(scale).map(1)) * unit
        paid = second if share.kind == "pure" else second**2 / 2
        return cost_units(of(scale), share.kind) <= share.amount and paid <= share.fraction

    return of(grown_until(fits, float(unit) / epsilon))
