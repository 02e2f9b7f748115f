"""Moments of the rows of units that follow each other as in the model.

The moments m_1 <= m_2 <= ... of a unit of n rows are drawn from the product of f(m_r | unit) and
follow(m_(r-1), m_r), by messages backwards and draws forwards (Rabiner 1989), so that a step knows how many
rows are left. ``follow`` is fitted to the model's table of moment before and moment by iterative
proportional fitting, f to the model's moments given the unit. What else a network says of moments is drawn
after them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpsyn_sql.fit.arrays import FloatArray, IntArray
from dpsyn_sql.fit.network import Node
from dpsyn_sql.rows.sample.systematic import Lines, evenly
from dpsyn_sql.rows.sample.tables import People

MOST_BACK = 0.1
"""The most of the model's rows after another whose moment lies before that one's, where moments are a chain:
above, the table is too noisy to follow."""

MOST_FAR = 0.1
"""How far (total variation) from the model a chain may be, in both tables; where none comes as close,
moments are sorted."""

MOST_ROWS = 2**10
"""The most rows of a unit whose moments are a chain."""

_MOST_CELLS = 2**22
# About the most cells of messages at a time.

_MOST_WORK = 2**25
# About the most products of one round of fitting.

_ROUNDS, _LAST = 100, 20
# Of fitting: of both tables, then of the moments alone.

_LEAST, _TRACE = 1e-4, 1e-6
# The least factor of a step, so that no unit is without moments; what is added to each cell.

_REFINED, _MOST_REFINED, _NEAR, _STEP = 20, 200, 1e-3, 1.5
# Rounds for the units that are drawn, at least, and at most until their moments are as near as that; how
# much of what one row needs a round goes. Rows of a large unit move together: factors of one that is like no
# other take many rounds.

_TINY = float(np.finfo(np.float64).tiny)

_FEWEST = 64
# Kinds of units that factors are fitted to, at least, if there are so many.


@dataclass(frozen=True, eq=False)
class Succession:
    """How a moment follows the one before it in a model.

    ``table``: (m, m), probabilities of the working bins of moment before and moment, where rows of a unit
    weigh 1 together; 0 below the diagonal. ``bins``: of each code of the order, ascending.
    """

    table: FloatArray
    bins: IntArray


def succession(pair: FloatArray, bins: IntArray, before: IntArray, within: FloatArray) -> Succession | None:
    """What a model says of the order and the order of the row before; None if no chain can follow it.

    Args:
        pair: (bins of the order before, bins of the order) probabilities.
        bins: of each code of the order its working bin.
        before: of each code of the order before its working bin; the last one is that of first rows, and of
            rows after one without a moment.
        within: of each code of the order before its probability given the bin.
    """
    if bins.size < 2 or (np.diff(bins) < 0).any():
        return None
    most, dated = int(bins[-1]) + 1, before.size - 1
    shares = np.zeros((len(pair), most))  # of each bin of the order before, in bins of the order
    np.add.at(shares, (before[:dated], bins[:dated]), within[:dated])
    reached = np.cumsum(shares, axis=1)  # a bin that reaches beyond a moment counts up to it
    ratio = pair / np.where(reached > 0, reached, 1.0)
    table = np.triu(shares.T @ np.where(reached > 0, ratio, 0.0))
    back = float((pair * shares.sum(axis=1, keepdims=True))[reached <= 0].sum())
    if bins.size > dated:  # after a row without a moment no row has one
        table[-1, -1] += pair[before[-1], -1] * within[-1]
    whole = float(table.sum())
    if not whole > 0 or back > MOST_BACK * (whole + back):
        return None
    return Succession(table / whole, bins)


@dataclass(frozen=True, eq=False)
class Chain:
    """Factors of the moments of units: ``follow`` (m, m); ``own`` (sizes, m) of units of ``sizes`` rows
    (ascending), and of those of numbers in between."""

    follow: FloatArray
    sizes: IntArray
    own: FloatArray

    def factors(self, weights: FloatArray, rows: IntArray) -> FloatArray:
        """Factors (n, m) of units of so many ``rows`` (n,), descending, whose moments then have the
        distribution ``weights`` (n, m)."""
        size = np.minimum(np.searchsorted(self.sizes, rows), self.sizes.size - 1)
        goal = weights / weights.sum(axis=1, keepdims=True)
        found = goal * self.own[size]
        left = np.arange(rows.size)
        for attempt in range(_MOST_REFINED):
            _, singles = _expected(found[left], self.follow, rows[left], np.ones(left.size))
            if attempt >= _REFINED:
                far = np.abs(goal[left] - singles).max(axis=1) > _NEAR
                left, singles = left[far], singles[far]
            if not left.size:
                break
            refined = found[left] * _correction(goal[left], singles, rows[left])
            found[left] = refined / refined.max(axis=1, keepdims=True)
        return np.asarray(found)

    def draw(
        self,
        weights: FloatArray,
        units: Units,
        generator: np.random.Generator,
    ) -> IntArray:
        """Bins of all rows that are left of ``units``, unit by unit, ascending in each; ``weights``
        (configurations, m)."""
        starts = np.cumsum(units.left) - units.left
        found = np.zeros(int(units.left.sum()), np.int64)
        order = np.argsort(-units.left, kind="stable")
        first = 0
        while first < order.size:
            cells = int(units.left[order[first]]) * len(self.follow)
            block = order[first : first + max(1, _MOST_CELLS // cells)]
            self._block(weights, units.of(block), starts[block], found, generator)
            first += block.size
        return found

    def _block(
        self,
        weights: FloatArray,
        units: Units,
        starts: IntArray,
        found: IntArray,
        generator: np.random.Generator,
    ) -> None:
        """Draw units, those with most rows left first, into ``found`` from ``starts`` on."""
        kinds, kind = np.unique(np.stack([-units.rows, units.configuration]), axis=1, return_inverse=True)
        kind = kind.ravel()
        factors = self.factors(weights[kinds[1]], -kinds[0])
        messages = _messages(factors, self.follow, int(units.left[0]))
        follow = np.vstack([self.follow, np.ones(len(self.follow))])  # last: before a first row
        now = np.where(units.start < 0, len(self.follow), units.start)
        _, apart = np.unique(units.apart, return_inverse=True)
        for rank in range(int(units.left[0])):
            going = int(np.searchsorted(-units.left, -rank, side="left"))
            own, state = kind[:going], now[:going]
            ends = np.cumsum(
                (factors[own] * messages[units.left[:going] - 1 - rank, own]) * follow[state], axis=1
            )
            keys = (apart.ravel()[:going] * len(factors) + own) * len(follow) + state
            keys = keys * (int(units.left[0]) + 1) + units.left[:going]
            order, places = evenly(np.unique(keys, return_inverse=True)[1].ravel(), generator)
            drawn = np.empty(going)
            drawn[order] = places
            now = (drawn[:, None] * ends[:, -1:] >= ends).sum(axis=1)
            now = np.minimum(now, _last(np.where(ends[:, -1:] > 0, ends, np.cumsum(factors[own], axis=1))))
            found[starts[:going] + rank] = now


@dataclass(frozen=True, eq=False)
class Units:
    """Units whose moments are drawn, int64 (n,) each: their ``rows``, how many are ``left`` to draw (1 or
    more), the ``configuration`` of what moments follow from, the bin of the row before (``start``, -1
    without one), and what keeps families of one unit ``apart``: no two of one number are of the same unit."""

    rows: IntArray
    left: IntArray
    configuration: IntArray
    start: IntArray
    apart: IntArray

    def of(self, kept: IntArray) -> Units:
        """Some of them."""
        return Units(
            self.rows[kept], self.left[kept], self.configuration[kept], self.start[kept], self.apart[kept]
        )


def fitted(
    wanted: Succession, weights: FloatArray, rows: IntArray, configuration: IntArray, share: FloatArray
) -> Chain | None:
    """The chain of units of so many ``rows`` (n,), of these configurations, that weigh ``share``; None if
    no unit has two rows, one has more than ``MOST_ROWS``, or none comes as close as ``MOST_FAR``."""
    most = int(rows.max(initial=0))
    if most < 2 or most > MOST_ROWS:
        return None
    room = max(_FEWEST, _MOST_WORK // (most * len(wanted.table) ** 2))
    rows, configuration, share = _sample(rows, configuration, share, room)
    starts = np.flatnonzero(np.append(True, rows[1:] != rows[:-1]))
    group = np.repeat(np.arange(starts.size), np.diff(starts, append=rows.size))
    own_rows = weights[configuration]
    wanted_of_kinds = own_rows / own_rows.sum(axis=1, keepdims=True) * share[:, None]
    goal = np.add.reduceat(wanted_of_kinds, starts, axis=0)
    follow, factors = np.triu(np.ones_like(wanted.table)), np.ones_like(goal)
    # Each factor enters once a row: larger steps go back and forth.
    step = 1 / max(4.0, float((rows * share).sum() / share.sum()))
    for attempt in range(_ROUNDS + _LAST):
        pairs, singles = _expected(own_rows * factors[group], follow, rows, share)
        if attempt < _ROUNDS:
            ratio = (wanted.table + _TRACE) / (pairs / max(float(pairs.sum()), _LEAST) + _TRACE)
            follow = np.triu(np.clip(follow * ratio**step, _LEAST, 1 / _LEAST))
        factors *= _correction(goal, np.add.reduceat(singles, starts, axis=0), rows[starts])
        factors /= factors.max(axis=1, keepdims=True)
    chain = Chain(follow, rows[starts][::-1].copy(), factors[::-1].copy())
    # What is drawn is judged, not what was fitted to all units of a number of rows together.
    pairs, singles = _expected(chain.factors(own_rows, rows), follow, rows, share)
    apart = np.abs(pairs / max(float(pairs.sum()), _LEAST) - wanted.table).sum()
    off = np.abs(singles - wanted_of_kinds).sum() / share.sum()
    return chain if max(apart, off) / 2 <= MOST_FAR else None


def _correction(goal: FloatArray, found: FloatArray, rows: IntArray) -> FloatArray:
    """What factors of units of so many rows are multiplied by: each enters once a row, and larger steps go
    back and forth."""
    noise = _LEAST * goal.mean(axis=1, keepdims=True)
    return np.asarray(np.clip((goal + noise) / (found + noise), 0.5, 2.0) ** (_STEP / rows[:, None]))


def _sample(
    rows: IntArray, configuration: IntArray, share: FloatArray, most: int
) -> tuple[IntArray, IntArray, FloatArray]:
    """Kinds of units, those with most rows first, and what each weighs: all, or of evenly spread units."""
    order = np.lexsort((configuration, -rows))
    order = order[(rows[order] > 0) & (share[order] > 0)]
    for spread in (False, True):
        if spread:
            order = order[(np.arange(most) * order.size + order.size // 2) // most]
        joint = np.stack([-rows[order], configuration[order]])
        kinds, kind = np.unique(joint, axis=1, return_inverse=True)
        if kinds.shape[1] <= most:
            break
    return -kinds[0], kinds[1], np.bincount(kind.ravel(), share[order]).astype(np.float64)


def _messages(factors: FloatArray, follow: FloatArray, most: int) -> FloatArray:
    """(most, n, m): what the k rows that are left after a row say of its bin, in units of these factors
    (n, m)."""
    found = np.ones((most, *factors.shape))
    for left in range(1, most):
        told = (factors * found[left - 1]) @ follow.T
        found[left] = told / np.maximum(told.max(axis=1, keepdims=True), _TINY)
    return found


def _expected(
    factors: FloatArray, follow: FloatArray, rows: IntArray, share: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """How often a bin follows another (m, m), and how often units have each (n, m): rows of a unit weigh its
    ``share`` together. ``rows`` descend."""
    most = int(rows[0])
    messages = _messages(factors, follow, most)
    pairs, singles = np.zeros_like(follow), np.zeros_like(factors)
    weight = (share / rows)[:, None]
    ahead = factors
    for rank in range(most):
        going = int(np.searchsorted(-rows, -rank, side="left"))
        ahead, left = ahead[:going], rows[:going] - 1 - rank
        here = ahead * messages[left, np.arange(going)]
        singles[:going] += weight[:going] * here / np.maximum(here.sum(axis=1, keepdims=True), _TINY)
        going = int(np.searchsorted(-rows, -rank - 1, side="left"))
        reached = ahead[:going] @ follow
        told = factors[:going] * messages[left[:going] - 1, np.arange(going)]
        joint = (reached * told).sum(axis=1, keepdims=True)
        pairs += (ahead[:going] * weight[:going] / np.maximum(joint, _TINY)).T @ told
        ahead = reached * factors[:going]
        ahead /= np.maximum(ahead.max(axis=1, keepdims=True), _TINY)
    return pairs * follow, singles


def _last(ends: FloatArray) -> IntArray:
    """The last bin of each row that has a weight, of cumulative ones."""
    return np.asarray((ends >= ends[:, -1:]).argmax(axis=1))


MOST_OF_NODE = 2**22
"""The most cells of the table of a node whose moments are a chain."""


class LinkedMoments:
    """The node of the moments' bins as a table ``weights`` (configurations of its parents, bins), and the
    nodes of what is drawn ``after`` the bins."""

    def __init__(
        self,
        succession: Succession,
        moments: Sequence[Lines],
        variable: int,
        code: int,
        sizes: tuple[int, ...],
    ) -> None:
        self.variable, self._code = variable, code
        self._succession, self._lines = succession, moments[0]
        node = moments[0].node
        axis = node.variables.index(variable)
        bins = node.values[:, axis]
        columns = dict(zip(node.parents, node.given.T, strict=True))
        self.weights: FloatArray = np.zeros((moments[0].known.size, sizes[variable]))
        np.add.at(self.weights, (moments[0].groups(columns, bins.size), bins), node.weights)
        other_axes = [i for i in range(len(node.variables)) if i != axis]
        given, values = np.column_stack([node.given, bins]), node.values[:, other_axes]
        order = np.lexsort([*values.T[::-1], *given.T[::-1]])
        node_after = Node(
            node.label,
            tuple(node.variables[i] for i in other_axes),
            (*node.parents, variable),
            given[order],
            values[order],
            node.weights[order],
            node.reach[order],
        )
        self.after = [*([Lines(node_after, sizes)] if other_axes else []), *moments[1:]]

    def chain(self, people: People, shares: FloatArray) -> Chain | None:
        """The chain of these units, whose rows weigh ``shares`` (units,) together; None where their moments
        are sorted."""
        groups = self._lines.groups(people.columns, people.rows.size)
        return fitted(self._succession, self.weights, people.rows, groups, shares)

    def bins(
        self, people: People, chain: Chain, numbers: IntArray, generator: np.random.Generator
    ) -> IntArray:
        """The bins of the rows of these numbers, ascending: of a unit all from one rank on, after the moment
        of the row before."""
        first = numbers[people.firsts(numbers)]
        units, ranks = people.owners(first)
        start, later = np.full(units.size, -1), np.flatnonzero(ranks > 0)
        if later.size:
            start[later] = self._succession.bins[people.moments[self._code][first[later] - 1]]
        groups = self._lines.groups({v: own[units] for v, own in people.columns.items()}, units.size)
        rows, apart = people.rows[units], people.in_unit(units, ranks)
        return chain.draw(self.weights, Units(rows, rows - ranks, groups, start, apart), generator)
