"""Exact inference in a junction tree: calibration, marginals, tables across cliques.

Sum-product belief propagation with division (Koller and Friedman 2009, 10.3) in probability space: the
logarithm of every message's sum is kept apart, so that nothing underflows, and no exponential is
taken of a whole clique. Tables have one axis per variable of their scope, ascending.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.errors import InternalError
from dpsyn_sql.fit.graph import JunctionTree, Scope, cells_of

FloatArray = NDArray[np.float64]

_SMALLEST = float(np.finfo(np.float64).tiny)
# Factors that contradict each other beyond float64 leave zeros, which must not become NaN.

_RUN = 16
# Cells: longer runs are added no faster.


@dataclass(frozen=True, slots=True)
class Beliefs:
    """A calibrated tree: ``tables[i]`` is the joint distribution of clique i (sums to 1);
    ``log_partition`` is the logarithm of the sum of the product of all potentials."""

    tree: JunctionTree
    tables: tuple[FloatArray, ...]
    log_partition: float

    @property
    def proper(self) -> bool:
        """Whether every table is a distribution; not so where factors contradict beyond float64."""
        return all(abs(float(table.sum()) - 1) < 1e-6 for table in self.tables)


def calibrate(tree: JunctionTree, potentials: Mapping[Scope, FloatArray]) -> Beliefs:
    """Clique beliefs of the distribution proportional to exp(sum of ``potentials``).

    Args:
        tree: some clique of it holds every scope of ``potentials``.
        potentials: log-factors by scope, finite; -1000 acts as minus infinity.
    """
    factors, shift = _initial(tree, potentials)
    tables: list[FloatArray] = [np.ones(1)] * len(tree.cliques)
    upward: list[FloatArray] = [np.ones(1)] * len(tree.cliques)
    sums = [1.0] * len(tree.cliques)
    for index in reversed(tree.order):  # collect: children before parents
        table = _product(tree, index, factors[index])
        message = summed(table, _axes_outside(tree.cliques[index], tree.separators[index]))
        sums[index] = max(float(message.sum()), _SMALLEST)
        upward[index] = message / sums[index]
        tables[index] = table / sums[index]
        if tree.parents[index] >= 0:
            factors[tree.parents[index]].append((tree.separators[index], upward[index]))
    for index in tree.order:  # distribute: multiply by the ratio of the parent's to the own message
        parent = tree.parents[index]
        if parent >= 0:
            separator = tree.separators[index]
            wanted = summed(tables[parent], _axes_outside(tree.cliques[parent], separator))
            ratio = np.divide(wanted, upward[index], out=np.zeros_like(wanted), where=upward[index] > 0)
            tables[index] *= _widened(tree, ratio, separator, tree.cliques[index])
    return Beliefs(tree, tuple(tables), shift + sum(math.log(value) for value in sums))


def _initial(
    tree: JunctionTree, potentials: Mapping[Scope, FloatArray]
) -> tuple[list[list[tuple[Scope, FloatArray]]], float]:
    """Factors by the clique they are assigned to, each scaled to a maximum of 1; the log of the scales."""
    factors: list[list[tuple[Scope, FloatArray]]] = [[] for _ in tree.cliques]
    shift = 0.0
    for scope, potential in potentials.items():
        highest = float(potential.max())
        shift += highest
        factors[home_of(tree, scope)].append((scope, np.exp(potential - highest)))
    return factors, shift


def home_of(tree: JunctionTree, scope: Scope) -> int:
    """The smallest clique that holds ``scope``.

    Raises:
        InternalError: there is none.
    """
    home = tree.home(scope)
    if home is None:
        raise InternalError("no clique of the tree holds these variables")
    return home


def _product(tree: JunctionTree, index: int, factors: Sequence[tuple[Scope, FloatArray]]) -> FloatArray:
    """Factor product over a clique; small unions first, so that few passes have full size."""
    clique = tree.cliques[index]
    left = [_widened(tree, table, scope, clique) for scope, table in factors]
    for i, j in _joins(tuple(scope for scope, _ in factors), tree.sizes):
        first, second = left.pop(i), left.pop(j)
        left.append(first * second)
    result = np.empty([tree.sizes[v] for v in clique])
    if len(left) == 2:
        np.multiply(left[0], left[1], out=result)
    else:
        result[...] = left[0] if left else 1.0
    return result


@lru_cache(maxsize=4096)
def _joins(scopes: tuple[Scope, ...], sizes: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    """Which two factors (places, i > j) to multiply next, until two are left: the smallest union.

    Remembered, as every calibration of a tree joins the same scopes.
    """
    left = [frozenset(scope) for scope in scopes]
    joins = []
    while len(left) > 2:
        _, i, j = min(
            (cells_of([tuple(left[i] | left[j])], sizes), i, j) for i in range(len(left)) for j in range(i)
        )
        joins.append((i, j))
        first, second = left.pop(i), left.pop(j)
        left.append(first | second)
    return tuple(joins)


def _widened(tree: JunctionTree, table: FloatArray, scope: Scope, clique: Scope) -> FloatArray:
    """A table over ``scope`` that broadcasts over ``clique``."""
    return table.reshape([tree.sizes[v] if v in scope else 1 for v in clique])


def _axes_outside(clique: Sequence[int], kept: Iterable[int]) -> list[int]:
    kept = set(kept)
    return [axis for axis, variable in enumerate(clique) if variable not in kept]


def summed(table: FloatArray, axes: Sequence[int]) -> FloatArray:
    """``table.sum(axes)``, several times faster, on one thread and in one order.

    Runs of neighbouring axes are summed together, by einsum: BLAS would be as fast, but its threads get in
    each other's way on tables of this size, and the order of its sums depends on their number.
    """
    if not axes:
        return table
    shape = [size for axis, size in enumerate(table.shape) if axis not in axes]
    blocks = _blocks(table.shape, set(axes))
    while any(dropped for dropped, _ in blocks):
        place = _cheapest(blocks)
        before = math.prod(size for _, size in blocks[:place])
        after = math.prod(size for _, size in blocks[place + 1 :])
        table = np.einsum("akb->ab", table.reshape(before, blocks[place][1], after))
        del blocks[place]
    return table.reshape(shape)


def _cheapest(blocks: Sequence[tuple[bool, int]]) -> int:
    """The block to sum first: the longest of those with a run of cells behind each entry, which are added
    at a third of the price of neighbours; else the one with most behind it."""
    prices, after = dict[int, tuple[int, int]](), 1
    for place in reversed(range(len(blocks))):
        dropped, size = blocks[place]
        if dropped:
            prices[place] = (min(after, _RUN), size)
        after *= size
    return max(prices, key=prices.__getitem__)


def _blocks(shape: Sequence[int], axes: set[int]) -> list[tuple[bool, int]]:
    """Runs of neighbouring axes that are all dropped or all kept, with their number of cells."""
    blocks: list[tuple[bool, int]] = []
    for axis, size in enumerate(shape):
        if blocks and blocks[-1][0] == (axis in axes):
            blocks[-1] = (blocks[-1][0], blocks[-1][1] * size)
        else:
            blocks.append((axis in axes, size))
    return blocks


def marginals(beliefs: Beliefs, wanted: Iterable[Scope]) -> dict[Scope, FloatArray]:
    """Marginals within cliques, each with ascending axes; partial sums are shared."""
    tree = beliefs.tree
    by_clique: dict[int, list[Scope]] = {}
    for scope in wanted:
        by_clique.setdefault(home_of(tree, scope), []).append(scope)
    found: dict[Scope, FloatArray] = {}
    for index, scopes in by_clique.items():
        _collect(beliefs.tables[index], tree.cliques[index], scopes, tree.sizes, found)
    return found


def _collect(
    table: FloatArray,
    variables: Scope,
    wanted: Sequence[Scope],
    sizes: Sequence[int],
    found: dict[Scope, FloatArray],
) -> None:
    """Sum out one variable for all scopes that lack it, the largest variable first; recurse."""
    if variables in wanted:
        found[variables] = table
        wanted = [scope for scope in wanted if scope != variables]
    for variable in sorted(variables, key=lambda v: -sizes[v]):
        lacking = [scope for scope in wanted if variable not in scope]
        if lacking:
            axis = variables.index(variable)
            rest = variables[:axis] + variables[axis + 1 :]
            _collect(summed(table, [axis]), rest, lacking, sizes, found)
            wanted = [scope for scope in wanted if variable in scope]


@dataclass(frozen=True, slots=True)
class _Arrival:
    """The joint distribution of a variable and the separator through which a clique was entered."""

    clique: int
    origin: int
    separator: Scope
    joint: FloatArray


def pair_tables(beliefs: Beliefs, variable: int, others: Iterable[int]) -> dict[int, FloatArray]:
    """Joint distributions (size of ``variable``, size of the other) with each of ``others``.

    Out-of-clique queries (Koller and Friedman 10.3.3.2) of one variable at once: its joint table with
    a separator is carried outwards, from clique to clique, by the conditional distribution of the
    next separator given the last.
    """
    tree, left = beliefs.tree, set(others) - {variable}
    found: dict[int, FloatArray] = {}
    edges = tree.neighbours()
    waiting = [_Arrival(home_of(tree, (variable,)), -1, (), np.ones(1))]
    while waiting and left:
        arrival = waiting.pop()
        clique = set(tree.cliques[arrival.clique])
        for other in left & clique:
            found[other] = _joint_with(beliefs, variable, arrival, (other,))
        left -= clique
        for neighbour in edges[arrival.clique]:
            if neighbour != arrival.origin:
                separator = tuple(sorted((clique & set(tree.cliques[neighbour])) - {variable}))
                joint = _joint_with(beliefs, variable, arrival, separator)
                waiting.append(_Arrival(neighbour, arrival.clique, separator, joint))
    if left:  # in other trees of the forest: independent
        own = marginals(beliefs, [(v,) for v in {variable, *left}])
        found |= {other: np.outer(own[variable,], own[other,]) for other in left}
    return found


def _joint_with(beliefs: Beliefs, variable: int, arrival: _Arrival, target: Scope) -> FloatArray:
    """Joint table of ``variable`` (first axis) and ``target``, some variables of the clique arrived at:
    P(v, T) = sum over S without T of P(v, S) P(T without S | S), S the separator."""
    clique, sizes = beliefs.tree.cliques[arrival.clique], beliefs.tree.sizes
    table = beliefs.tables[arrival.clique]
    if variable in clique:
        return _arranged(table, clique, (variable, *target))
    kept = tuple(v for v in arrival.separator if v in target)
    gone = tuple(v for v in arrival.separator if v not in target)
    new = tuple(v for v in target if v not in arrival.separator)
    groups = [math.prod(sizes[v] for v in group) for group in (kept, gone, new)]
    local = _arranged(table, clique, kept + gone + new).reshape(groups)
    weight = local.sum(axis=2, keepdims=True)
    conditional = np.divide(local, weight, out=np.zeros_like(local), where=weight > 0)
    carried = _arranged(arrival.joint, (variable, *arrival.separator), (*kept, variable, *gone))
    mixed = carried.reshape(groups[0], sizes[variable], groups[1]) @ conditional
    names = (*kept, variable, *new)
    return _arranged(mixed.reshape([sizes[v] for v in names]), names, (variable, *target))


def _arranged(table: FloatArray, scope: Scope, wanted: Scope) -> FloatArray:
    """The marginal over ``wanted``, axes in that order, of a table over ``scope``."""
    part = summed(table, _axes_outside(scope, wanted))
    present = [v for v in scope if v in wanted]
    return part.transpose([present.index(v) for v in wanted])
