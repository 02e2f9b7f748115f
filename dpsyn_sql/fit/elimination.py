"""Elimination of variables: orders of elimination, and levels that are drawn one after the other."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol, Self, TypeVar

import numpy as np

from dpsyn_sql.errors import InternalError
from dpsyn_sql.fit.arrays import FloatArray, IntArray
from dpsyn_sql.fit.belief import Beliefs, home_of, marginals
from dpsyn_sql.fit.graph import JunctionTree, Scope
from dpsyn_sql.fit.network import Network, Node, code_nodes, joined, node_of, over
from dpsyn_sql.planning.families import BEFORE, UNIT

MOST_LINES = 2**20
"""The most lines of a step: about 100 MB, and a fraction of a second."""

_MOST_NUMBERS = 2**62
# The values of a scope are numbered in 64 bits.


class _Factor(Protocol):
    """A table over some variables, or what is known about it before it is made."""

    @property
    def scope(self) -> Scope: ...

    def times(self, factor: Self, sizes: Sequence[int]) -> Self: ...

    def summed_to(self, scope: Scope, sizes: Sequence[int]) -> Self: ...


_F = TypeVar("_F", bound=_Factor)


def _eliminated(
    network: Network, wanted: Sequence[int], factor_of: Callable[[Node, Sequence[int]], _F]
) -> list[_F]:
    """Factors over ``wanted`` alone whose product is their joint distribution."""
    pool, needed, sizes = list[_F](), set(wanted), network.sizes
    for node in reversed(network.nodes):
        if needed.isdisjoint(node.variables):
            continue
        needed.update(node.parents)
        pool.append(factor_of(node, sizes))
        gone = [variable for variable in node.variables if variable not in wanted]
        while gone:
            cheapest = min(gone, key=lambda variable: _union(pool, variable, sizes))
            gone.remove(cheapest)
            pool = _without(pool, cheapest, sizes)
    # A parent without a node has one value.
    return [factor.summed_to(tuple(v for v in factor.scope if v in wanted), sizes) for factor in pool]


def _union(pool: Sequence[_F], variable: int, sizes: Sequence[int]) -> int:
    """Cells of a table over all variables that share a factor with a variable."""
    together = set(itertools.chain(*(factor.scope for factor in pool if variable in factor.scope)))
    return _cells(tuple(together), sizes)


def _without(pool: Sequence[_F], variable: int, sizes: Sequence[int]) -> list[_F]:
    """The factors after a variable is summed out of the product of those that have it."""
    touched = [factor for factor in pool if variable in factor.scope]
    product, *further = sorted(touched, key=lambda factor: _cells(factor.scope, sizes))
    for factor in further:
        product = product.times(factor, sizes)
    summed = product.summed_to(tuple(v for v in product.scope if v != variable), sizes)
    return [*(factor for factor in pool if variable not in factor.scope), summed]


def _cells(scope: Scope, sizes: Sequence[int]) -> int:
    return math.prod(sizes[variable] for variable in scope)


@dataclass(frozen=True, slots=True)
class _Bound:
    """At most so many lines; ``most`` is the largest bound of its parts, ``work`` their sum."""

    scope: Scope
    lines: int
    most: int
    work: int

    @classmethod
    def of(cls, scope: Scope, lines: int, sizes: Sequence[int], *made_of: _Bound) -> _Bound:
        cells = _cells(scope, sizes)
        lines = min(lines, cells)
        numbers = lines if cells <= _MOST_NUMBERS else cells
        most = max([numbers, *(bound.most for bound in made_of)])
        return cls(scope, lines, most, numbers + sum(bound.work for bound in made_of))

    @classmethod
    def of_node(cls, node: Node, sizes: Sequence[int]) -> _Bound:
        return cls.of((*node.parents, *node.variables), node.weights.size, sizes)

    def times(self, factor: _Bound, sizes: Sequence[int]) -> _Bound:
        new = tuple(v for v in factor.scope if v not in self.scope)
        without = tuple(v for v in self.scope if v not in factor.scope)
        lines = min(
            self.lines * min(factor.lines, _cells(new, sizes)),
            factor.lines * min(self.lines, _cells(without, sizes)),
        )
        return _Bound.of((*self.scope, *new), lines, sizes, self, factor)

    def summed_to(self, scope: Scope, sizes: Sequence[int]) -> _Bound:
        return _Bound.of(scope, self.lines, sizes, self)


@dataclass(frozen=True, slots=True)
class _Lines:
    """A table by lines: ``numbers`` (n,) of their values, row-major over ``scope``, and weights."""

    scope: Scope
    numbers: IntArray
    weights: FloatArray

    @classmethod
    def of_node(cls, node: Node, sizes: Sequence[int]) -> _Lines:
        scope = (*node.parents, *node.variables)
        columns = dict(zip(scope, [*node.given.T, *node.values.T], strict=True))
        return cls(scope, _numbered(columns, scope, sizes, node.weights.size), node.weights)

    def columns(self, sizes: Sequence[int]) -> dict[int, IntArray]:
        """The values of each variable (n,)."""
        if not self.scope:
            return {}
        values = np.unravel_index(self.numbers, [sizes[variable] for variable in self.scope])
        return dict(zip(self.scope, values, strict=True))

    def times(self, factor: _Lines, sizes: Sequence[int]) -> _Lines:
        """Every line with all lines of the other table that agree with it."""
        shared = tuple(v for v in self.scope if v in factor.scope)
        base, added = self.columns(sizes), factor.columns(sizes)
        here, there = (
            _numbered(columns, shared, sizes, lines.weights.size)
            for columns, lines in ((base, self), (added, factor))
        )
        order = np.argsort(there, kind="stable")
        starts = np.searchsorted(there[order], here, side="left")
        counts = np.searchsorted(there[order], here, side="right") - starts
        line = np.repeat(np.arange(here.size), counts)
        partner = order[np.arange(line.size) - np.repeat(counts.cumsum() - counts, counts) + starts[line]]
        columns = {v: column[partner] for v, column in added.items()}
        columns |= {v: column[line] for v, column in base.items()}
        scope = (*self.scope, *(v for v in factor.scope if v not in self.scope))
        numbers = _numbered(columns, scope, sizes, line.size)
        return _Lines(scope, numbers, self.weights[line] * factor.weights[partner])

    def summed_to(self, scope: Scope, sizes: Sequence[int]) -> _Lines:
        if scope == self.scope:
            return self
        numbers = _numbered(self.columns(sizes), scope, sizes, self.weights.size)
        cells, cell_of_line = np.unique(numbers, return_inverse=True)
        weights = np.bincount(cell_of_line.ravel(), self.weights, cells.size)
        return _Lines(scope, cells, np.asarray(weights, np.float64))


def _numbered(columns: dict[int, IntArray], scope: Scope, sizes: Sequence[int], lines: int) -> IntArray:
    if not scope:
        return np.zeros(lines, np.int64)
    shape = tuple(sizes[variable] for variable in scope)
    return np.asarray(np.ravel_multi_index(tuple(columns[v] for v in scope), shape), np.int64)


def work_of(network: Network, wanted: Sequence[int]) -> int | None:
    """The most lines of all steps to the joint distribution of some variables, each named once; None if a
    step may need more than ``MOST_LINES``."""
    cells = _cells(tuple(wanted), network.sizes)
    bounds = _eliminated(network, wanted, _Bound.of_node)
    if max([cells, *(bound.most for bound in bounds)]) > MOST_LINES:
        return None
    return cells + sum(bound.work for bound in bounds)


def fits(network: Network, wanted: Sequence[int]) -> bool:
    """Whether the joint distribution of some variables needs at most ``MOST_LINES`` per step."""
    return work_of(network, wanted) is not None


def joint(network: Network, wanted: Sequence[int]) -> FloatArray:
    """The joint distribution of variables that ``fits``, axes in the order of ``wanted``; sums to 1."""
    sizes = network.sizes
    table = np.ones([sizes[variable] for variable in wanted])
    for factor in _eliminated(network, wanted, _Lines.of_node):
        dense = np.bincount(factor.numbers, factor.weights, _cells(factor.scope, sizes))
        dense = dense.reshape([sizes[variable] for variable in factor.scope])
        scope = [variable for variable in wanted if variable in factor.scope]
        dense = dense.transpose([factor.scope.index(variable) for variable in scope])
        table *= dense.reshape([sizes[v] if v in scope else 1 for v in wanted])
    return np.asarray(table / max(float(table.sum()), np.finfo(np.float64).tiny))


# -- levels ------------------------------------------------------------------------------------------

# Networks of rows that follow from what is drawn before them: a unit, moments of its rows, then each row.
#
# The variables of a tree with levels were eliminated from the highest level down, without a fill edge: the
# product of each one's distribution given its neighbours that are left then is the joint distribution. The
# factors of the highest level are that level given all lower ones, exactly (Koller and Friedman 2009, 9.3).


@dataclass(frozen=True, slots=True)
class Step:
    """Variables of one level with the same neighbours, which go together; ``parents`` are left then."""

    variables: tuple[int, ...]
    parents: tuple[int, ...]
    level: int


def perfect_elimination(tree: JunctionTree) -> list[Step]:
    """The variables of a tree with levels in an order without fill edges, the highest level first.

    Raises:
        InternalError: there is none: the tree was made without these levels.
    """
    around: list[set[int]] = [set() for _ in tree.sizes]
    for clique in tree.cliques:
        for variable in clique:
            around[variable].update(clique)
    left, steps = set(range(len(tree.sizes))), list[Step]()
    for level in sorted(set(tree.levels), reverse=True):
        waiting = [variable for variable in left if tree.levels[variable] == level]
        while waiting:
            simplicial = next(
                (v for v in waiting if all(around[v] <= around[neighbour] for neighbour in around[v])), None
            )
            if simplicial is None:
                raise InternalError("a tree has no order of elimination by its levels")
            group = sorted(v for v in waiting if around[v] == around[simplicial])
            steps.append(Step(tuple(group), tuple(sorted(around[simplicial] - set(group))), level))
            waiting = [v for v in waiting if v not in group]
            for neighbour in around[simplicial]:
                around[neighbour] = around[neighbour] - set(group)
    return steps


def levelled_network(
    beliefs: Beliefs,
    bins: Sequence[IntArray],
    within: Sequence[FloatArray],
    names: Sequence[str],
    previous: Mapping[int, int] = MappingProxyType({}),
    *,
    given_units: bool = False,
    retained: Collection[str] = (),
) -> Network:
    """The network of a calibrated tree with levels; arguments as of ``tree_network``. ``previous``: of each
    variable of the row before the attribute of which it holds the code.

    Nodes ascend by level. Attributes of level ``BEFORE`` are evidence: no node draws them or their codes. So
    are those of level ``UNIT`` with ``given_units``: rows above a table of a tree. What is ``retained`` is
    drawn where it is not known.

    Raises:
        InternalError: the tree has no levels, or was made without them.
    """
    tree, attributes = beliefs.tree, range(len(names))
    if len(tree.levels) != len(tree.sizes):
        raise InternalError("a tree of units and rows has no levels")
    evident = {BEFORE, UNIT} if given_units else {BEFORE}
    evidence = [v for v in attributes if tree.levels[v] in evident]
    folded = [
        v for v in attributes if v not in evidence and not np.array_equal(bins[v], np.arange(bins[v].size))
    ]
    codes, sizes = list(attributes), [*tree.sizes, *(bins[v].size for v in folded)]
    for number, variable in enumerate(folded):
        codes[variable] = len(tree.sizes) + number
    needed, nodes = set(attributes), dict[int, list[Node]]()
    met = _met(beliefs, bins, within, previous)

    def codes_of(v: int) -> list[Node]:
        return code_nodes(names[v], v, codes[v], sizes, bins[v], within[v]) if v in folded else []

    for step in perfect_elimination(tree):  # backwards: a variable that nothing depends on is not drawn
        if step.level in evident:
            continue
        new = [v for v in step.variables if v in needed]
        drawn = [v for v in new if sizes[v] > 1]
        level_nodes = list[Node]()
        if drawn:
            needed.update(step.parents)
            level_nodes.append(
                _node(beliefs, names, drawn, [v for v in step.parents if tree.sizes[v] > 1], met)
            )
        level_nodes += [node for v in new if v < len(names) and sizes[codes[v]] > 1 for node in codes_of(v)]
        nodes.setdefault(step.level, [])[:0] = level_nodes
    levels = sorted(nodes)
    together = [joined(nodes[level], sizes) for level in levels]
    return Network(
        tuple(sizes),
        tuple(node for level_nodes in together for node in level_nodes),
        tuple(codes),
        tuple(level for level, level_nodes in zip(levels, together, strict=True) for _ in level_nodes),
        {v: bins[v] for v in attributes if v in evidence or names[v] in retained},
    )


FAR = 0.1
"""A row half follows what is known of the row before if it meets that so much more rarely in the model than
if the two were independent."""

_TINY = float(np.finfo(np.float64).tiny)


def _met(
    beliefs: Beliefs, bins: Sequence[IntArray], within: Sequence[FloatArray], previous: Mapping[int, int]
) -> dict[int, FloatArray]:
    """How often any row has each value of a variable of the row before: the last row of a unit is before none
    in the model."""
    margins = marginals(beliefs, {(attribute,) for attribute in previous.values()})
    return {
        v: np.asarray(
            np.bincount(bins[v][: bins[a].size], margins[a,][bins[a]] * within[a], beliefs.tree.sizes[v]),
            np.float64,
        )
        for v, a in previous.items()
    }


def _node(
    beliefs: Beliefs,
    names: Sequence[str],
    new: Sequence[int],
    parents: Sequence[int],
    met: Mapping[int, FloatArray],
) -> Node:
    """Variables given others of one clique. ``met``: how often rows have values of the row before.

    Rows meet the row before otherwise than in the model where moments are sorted, as in SQL. Where the
    model all but excludes what they meet, its factors leave what goes with everything, such as NULL. There a
    row does not follow what is known of the row before: first not what depends most on its other parents, in
    the end nothing of it. A configuration that the model excludes all the same gets the variables' own
    marginals.
    """
    tree = beliefs.tree
    row_parents = [v for v in parents if tree.levels[v] != BEFORE]
    before = [v for v in parents if tree.levels[v] == BEFORE]
    home = home_of(tree, tuple(sorted((*parents, *new))))
    clique_table = over(beliefs.tables[home], tree.cliques[home], (*row_parents, *before, *new))
    table = (clique_table / max(float(clique_table.sum()), _TINY)).reshape(
        math.prod(tree.sizes[v] for v in row_parents), *(tree.sizes[v] for v in before), -1
    )
    alone = table.sum(axis=tuple(range(table.ndim - 1)))
    law = np.broadcast_to(alone if alone.sum() > 0 else np.ones_like(alone), table.shape)
    law = law / law.sum(axis=-1, keepdims=True)
    ties = np.argsort([-_tie(table, axis) for axis in range(1, len(before) + 1)]) + 1
    often = [met.get(v) for v in before]
    for gone in range(len(before), -1, -1):  # from nothing of the row before to all of it
        now = table.sum(axis=tuple(ties[:gone].tolist()), keepdims=True)
        reach = now.sum(axis=-1, keepdims=True)
        far = FAR * np.maximum(_apart(reach, often) - reach, 0.0)  # 0 without what is known of a row before
        met_at_all = np.where(reach > 0, reach, 1.0)  # quotients, since squares of both may vanish
        with np.errstate(over="ignore"):
            trust = np.where(reach > 0, 1 / (1 + (far / met_at_all) ** 2), 0.0)
        law = trust * (now / met_at_all) + (1 - trust) * law
    label = names[new[0]] if new[0] < len(names) else f"{new[0]}|twin"
    bound = np.maximum(reach, _apart(reach, often)).ravel()
    return node_of(label, (*row_parents, *before), new, law.reshape(clique_table.shape), bound)


def _apart(reach: FloatArray, often: Sequence[FloatArray | None]) -> FloatArray:
    """Probabilities of configurations (others, each of the row before, 1) if what is known of the row before
    were independent of the others, and no less than if all of it were independent too and as frequent as
    ``often`` says of each."""
    before_only = reach.sum(axis=0, keepdims=True)
    each = np.ones_like(before_only)
    for axis, frequency in enumerate(often, 1):
        if reach.shape[axis] > 1:
            alone = before_only.sum(
                axis=tuple(other_axis for other_axis in range(reach.ndim) if other_axis != axis),
                keepdims=True,
            )
            each = each * (alone if frequency is None else np.maximum(alone, frequency.reshape(alone.shape)))
    return np.asarray(
        reach.sum(axis=tuple(range(1, reach.ndim)), keepdims=True) * np.maximum(before_only, each)
    )


def _tie(table: FloatArray, axis: int) -> float:
    """How far (total variation) one axis is from independent of the first."""
    pair = table.sum(axis=tuple(other_axis for other_axis in range(1, table.ndim) if other_axis != axis))
    return float(np.abs(pair - np.outer(pair.sum(axis=1), pair.sum(axis=0))).sum()) / 2
