"""Elimination of variables: any marginal of a network, and what it takes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, Self, TypeVar

import numpy as np

from dpsyn_sql.fit.arrays import FloatArray, IntArray
from dpsyn_sql.fit.graph import Scope
from dpsyn_sql.fit.network import Network, Node, agreeing, columns_of, numbered

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
