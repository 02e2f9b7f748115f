"""Elimination of variables: any marginal of a network, and the network of a calibrated tree."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol, Self, TypeVar

import numpy as np

from dpsyn_sql.errors import InternalError
from dpsyn_sql.fit.arrays import FloatArray, IntArray
from dpsyn_sql.fit.belief import Beliefs, arranged, home_of, marginals
from dpsyn_sql.fit.graph import JunctionTree, Scope
from dpsyn_sql.fit.network import Builder, Network, Node, agreeing, columns_of, numbered
from dpsyn_sql.fit.pairs import all_pairs
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
        return cls(scope, numbered(columns_of(node), scope, sizes, node.weights.size), node.weights)

    def columns(self, sizes: Sequence[int]) -> dict[int, IntArray]:
        """The values of each variable (n,)."""
        if not self.scope:
            return {}
        values = np.unravel_index(self.numbers, [sizes[variable] for variable in self.scope])
        return dict(zip(self.scope, values, strict=True))

    def times(self, factor: _Lines, sizes: Sequence[int]) -> _Lines:
        """Every line with all lines of the other table that agree with it."""
        base, added = self.columns(sizes), factor.columns(sizes)
        line, partner = agreeing(base, added, sizes, (self.weights.size, factor.weights.size)).pairs()
        columns = {v: column[partner] for v, column in added.items()}
        columns |= {v: column[line] for v, column in base.items()}
        scope = (*self.scope, *(v for v in factor.scope if v not in self.scope))
        numbers = numbered(columns, scope, sizes, line.size)
        return _Lines(scope, numbers, self.weights[line] * factor.weights[partner])

    def summed_to(self, scope: Scope, sizes: Sequence[int]) -> _Lines:
        if scope == self.scope:
            return self
        numbers = numbered(self.columns(sizes), scope, sizes, self.weights.size)
        cells, cell_of_line = np.unique(numbers, return_inverse=True)
        weights = np.bincount(cell_of_line.ravel(), self.weights, cells.size)
        return _Lines(scope, cells, np.asarray(weights, np.float64))


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


# -- networks of trees ------------------------------------------------------------------------------

# Variables one after the other, with codes after their working bins.
#
# A junction tree is directed from its roots: the variables of a clique outside its separator are drawn
# together, given the separator (Koller and Friedman 2009, 10.4.3). The codes of an attribute are one more
# variable, whose only parent is the working bin.
#
# Rows may follow from what is drawn before them: a unit, moments of its rows, then each row. The variables of
# a tree with such levels were eliminated from the highest level down, without a fill edge: the product of
# each one's distribution given its neighbours that are left then is the joint distribution. The factors of
# the highest level are that level given all lower ones, exactly (9.3).


@dataclass(frozen=True, slots=True)
class Step:
    """Variables of one level with the same neighbours, which go together; ``parents`` are left then.
    ``above``: the clique that the parents are drawn from; -1 if they may have any values."""

    variables: tuple[int, ...]
    parents: tuple[int, ...]
    level: int
    above: int = -1


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


def tree_network(
    beliefs: Beliefs, bins: Sequence[IntArray], within: Sequence[FloatArray], names: Sequence[str]
) -> Network:
    """The network of a calibrated tree whose first variables are attributes in working bins.

    Args:
        beliefs: further variables after the attributes are coarse twins.
        bins: int64 of each attribute, one per code: its working bin.
        within: float64 of each attribute, one per code: its probability given the bin.
        names: of the attributes, for labels.
    """
    tree = beliefs.tree
    steps = (
        Step(tuple(v for v in clique if v not in separator), separator, 0, above)
        for clique, separator, above in (
            (tree.cliques[index], tree.separators[index], tree.parents[index])
            for index in reversed(tree.order)
        )
    )
    build = Builder(names, tree.sizes, bins, within)
    _directed(beliefs, build, steps, {})
    return build.network()


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
    tree = beliefs.tree
    if len(tree.levels) != len(tree.sizes):
        raise InternalError("a tree of units and rows has no levels")
    evident = {BEFORE, UNIT} if given_units else {BEFORE}
    build = Builder(names, tree.sizes, bins, within)
    steps = [step for step in perfect_elimination(tree) if step.level not in evident]
    _directed(beliefs, build, steps, _met(beliefs, bins, within, previous))
    return build.network(
        {v: bins[v] for v, name in enumerate(names) if tree.levels[v] in evident or name in retained}
    )


def _directed(beliefs: Beliefs, build: Builder, steps: Iterable[Step], met: Mapping[int, FloatArray]) -> None:
    """Add the nodes of steps, which come last first: a variable that nothing depends on is not drawn."""
    needed, drawn = set(range(len(build.names))), list[tuple[Step, list[int]]]()
    for step in steps:
        if new := [v for v in step.variables if v in needed]:
            drawn.append((step, new))
            if any(build.sizes[v] > 1 for v in new):
                needed.update(step.parents)
    for step, new in reversed(drawn):
        if several := [v for v in new if build.sizes[v] > 1]:
            _add(beliefs, build, step, several, met)
        for attribute in new:
            if attribute < len(build.names):
                build.add_codes(attribute, step.level)


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


def _add(
    beliefs: Beliefs, build: Builder, step: Step, new: Sequence[int], met: Mapping[int, FloatArray]
) -> None:
    """Variables given others of one clique. ``met``: how often rows have values of the row before.

    Rows meet the row before otherwise than in the model where moments are sorted, as in SQL. Where the
    model all but excludes what they meet, its factors leave what goes with everything, such as NULL. There a
    row does not follow what is known of the row before: first not what depends most on its other parents, in
    the end nothing of it. A configuration that the model excludes all the same (also by potentials beyond
    float64) gets the variables' own marginals, so that every drawn row can go on.
    """
    tree = beliefs.tree
    levels = tree.levels or (0,) * len(tree.sizes)
    parents = [v for v in step.parents if tree.sizes[v] > 1]
    before = [v for v in parents if levels[v] == BEFORE and step.above < 0]
    parents = [*(v for v in parents if v not in before), *before]
    clique = home_of(tree, tuple(sorted((*parents, *new))))
    table = np.ascontiguousarray(arranged(beliefs.tables[clique], tree.cliques[clique], (*parents, *new)))
    table = (table / max(float(table.sum()), _TINY)).reshape(
        math.prod(tree.sizes[v] for v in parents if v not in before), *(tree.sizes[v] for v in before), -1
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
    if step.above >= 0:
        possible = arranged(beliefs.tables[step.above], tree.cliques[step.above], tuple(parents))
        law = np.where((reach > 0) | (possible.reshape(reach.shape) > 0), law, 0.0)
    label = build.names[new[0]] if new[0] < len(build.names) else f"{new[0]}|twin"
    bound = np.maximum(reach, _apart(reach, often)).ravel()
    build.add(label, parents, new, law, bound, step.level)


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


# -- joint distributions across components ----------------------------------------------------------------

# Of more than two variables that no clique holds: what the pairs that depend most say, and else independence.


def joints_of(beliefs: Beliefs, scopes: Sequence[Scope]) -> dict[Scope, FloatArray]:
    """As ``joint_of``, of many sets of variables."""
    inside = [scope for scope in scopes if beliefs.tree.home(scope) is not None]
    across = [scope for scope in scopes if len(scope) == 2 and beliefs.tree.home(scope) is None]
    joints = {**marginals(beliefs, inside), **all_pairs(beliefs, across)}
    return {scope: joints[scope] if scope in joints else joint_of(beliefs, scope) for scope in scopes}


def joint_of(beliefs: Beliefs, scope: Scope) -> FloatArray:
    """Probabilities of a set of variables: a table of the model if a clique holds it; else of two variables
    their joint table, of more that of the two that depend most, times the one-way tables of the others."""
    if beliefs.tree.home(scope) is not None:
        return marginals(beliefs, [scope])[scope]
    pairs = all_pairs(beliefs, list(itertools.combinations(scope, 2)))
    if len(scope) == 2:
        return pairs[scope]
    tied = {
        pair: float(np.abs(table - np.multiply.outer(table.sum(axis=1), table.sum(axis=0))).sum())
        for pair, table in pairs.items()
    }
    return products(beliefs, [(scope, max(tied, key=tied.__getitem__))])[scope]


def products(
    beliefs: Beliefs,
    sets: Sequence[tuple[Scope, Scope]],
    bins: Mapping[int, IntArray] = MappingProxyType({}),
) -> dict[Scope, FloatArray]:
    """Of each set of variables the joint table of a pair in it, or of none, times the one-way tables of all
    others: probabilities by set.

    ``sets``: each with its pair, both ascending. ``bins``: of some variables two bins (0 and 1) of their
    values; tables are over these.
    """
    pairs = sorted({pair for _, pair in sets if pair})
    alone = sorted({(variable,) for scope, pair in sets for variable in scope if variable not in pair})
    tables = {**marginals(beliefs, alone), **all_pairs(beliefs, pairs)}
    for key, table in tables.items():
        for axis, variable in enumerate(key):
            if variable in bins:
                halves = [table.compress(bins[variable] == side, axis).sum(axis) for side in range(2)]
                table = np.stack(halves, axis)
        tables[key] = table
    joints = dict[Scope, FloatArray]()
    for scope, pair in sets:
        independent = tuple(variable for variable in scope if variable not in pair)
        joint = tables[pair] if pair else np.ones(())
        for variable in independent:
            joint = np.multiply.outer(joint, tables[variable,])
        order = (*pair, *independent)
        joints[scope] = joint.transpose([order.index(variable) for variable in scope])
    return joints
