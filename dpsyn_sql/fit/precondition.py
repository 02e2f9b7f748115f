"""Coordinates in which L-BFGS fits potentials in few steps: an additive Schwarz preconditioner.

The Hessian of the objective of ``fit/estimate.py`` is that of the model's counts plus the ridge,
N Cov(cells) + diag(sigma). Its diagonal alone is a poor guide: relative to it, raising the potential of one
value of an attribute in all tables that hold it is as steep as their number, and in one against another
only as steep as the ridge. The same goes for a pair in several three-way tables.

Within one group these directions are known. A group is a configuration x of a scope that several
tables t hold; w_t shifts all cells of t with x. All of them move the same statistic, whether a row
shows x, of variance p (1 - p) with p its probability; without variables, all cells of a table, none. So
the Hessian of w is

    R + N p (1 - p) 1 1^T,    R diagonal, R_tt = sum of sigma over the cells of t with x,

and the identity that of z where w = R^(-1/2) (I + c v v^T) z, v = R^(-1/2) 1, and
c |v|^2 = (1 + N p (1 - p) |v|^2)^(-1/2) - 1. The noisy tables stand in for p. Potentials are the sum of all
such shifts and of one coordinate for every cell, scaled by about the diagonal, as if none touched
another: the additive method of subspaces that overlap (Toselli and Widlund 2005, chapter 2). More coordinates
than potentials are no harm: a step moves along all of them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import chain, combinations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from dpsyn_sql.fit.graph import Scope

FloatArray = NDArray[np.float64]
Codes = NDArray[np.int64]

_EVERY_ROW = 0
# The group of the scope without variables.

_LEAST_SIGMA = 0.01
# Rows: the smaller sigma, the further a step of length one moves potentials, until line searches fail
# (discrete Laplace noise of epsilon 500 and more).


class Coordinates:
    """Points (one coordinate for every cell, then one for every shift) for flat vectors of potentials.

    Args:
        scopes: of the tables, in the order of the vector.
        shapes: of each.
        values: (n,) noisy counts of all cells (rows).
        sigma: (n,) their standard deviations (rows), above zero.
        total: N.
    """

    def __init__(
        self,
        scopes: Sequence[Scope],
        shapes: Sequence[tuple[int, ...]],
        values: FloatArray,
        sigma: FloatArray,
        total: float,
    ) -> None:
        sigma = np.maximum(sigma, _LEAST_SIGMA)
        self._cells = values.size
        self._diagonal = np.asarray((np.maximum(values, 0) + 2 * sigma) ** -0.5)
        cells, shifts, self._group = _shifts(scopes, shapes)
        places = (np.ones(cells.size), (cells, shifts))
        self._spread = csr_array(places, shape=(self._cells, self._group.size))
        self._root = self._sums(sigma) ** -0.5  # v
        tables = self._by_group(np.ones(self._group.size))
        probability = np.clip(self._by_group(self._sums(values)) / (tables * total), 0, 1)
        norm = self._by_group(self._root**2)  # |v|^2
        steepness = total * probability * (1 - probability)
        steepness[_EVERY_ROW] = 0.0
        self._factor = ((1 + steepness * norm) ** -0.5 - 1) / norm  # c

    def _sums(self, cells: FloatArray) -> FloatArray:
        """Over the cells that each shift moves."""
        return np.asarray(self._spread.T @ cells)

    def _by_group(self, shifts: FloatArray) -> FloatArray:
        return np.asarray(np.bincount(self._group, shifts), dtype=np.float64)

    def _turned(self, shifts: FloatArray) -> FloatArray:
        """I + c v v^T of every group."""
        along = self._factor * self._by_group(self._root * shifts)
        return np.asarray(shifts + self._root * along[self._group])

    def flat(self, point: FloatArray) -> FloatArray:
        """(n,) vector of the potentials of a point."""
        shifts = self._root * self._turned(point[self._cells :])
        return np.asarray(self._diagonal * point[: self._cells] + self._spread @ shifts)

    def gradient(self, gradient: FloatArray) -> FloatArray:
        """The gradient in these coordinates, from that in the potentials (n,)."""
        shifts = self._turned(self._root * self._sums(gradient))
        return np.concatenate([self._diagonal * gradient, shifts])

    def of_cells(self, gradient: FloatArray) -> FloatArray:
        """The gradient in the potentials (n,), from that in these coordinates."""
        return np.asarray(gradient[: self._cells] / self._diagonal)

    def point(self, flat: FloatArray) -> FloatArray:
        """A point of these potentials (n,): the one without shifts."""
        return np.concatenate([flat / self._diagonal, np.zeros(self._group.size)])


def _shifts(scopes: Sequence[Scope], shapes: Sequence[tuple[int, ...]]) -> tuple[Codes, Codes, Codes]:
    """Cells and the shifts that move them, side by side; and the group of every shift.

    There is a group for every configuration of every scope that at least two tables hold, with a shift
    for each of these tables; and first one for all rows, with a shift for each table.
    """
    holders = Counter(chain.from_iterable(_within(scope) for scope in scopes))
    shared = {scope for scope, number in holders.items() if number > 1 or not scope}
    cells, shifts, groups = ([np.zeros(0, dtype=np.int64)] for _ in range(3))
    group_of: dict[Scope, int] = {}  # the first of a scope's groups, one for each configuration
    cell = shift = group = 0  # the next
    for scope, shape in zip(scopes, shapes, strict=True):
        grid = np.indices(shape).reshape(len(shape), -1)
        for part in _within(scope):
            if part not in shared:
                continue
            axes = [scope.index(variable) for variable in part]
            sizes = tuple(shape[axis] for axis in axes)
            number = math.prod(sizes)
            if part not in group_of:
                group_of[part], group = group, group + number
            place = np.zeros(grid.shape[1], dtype=np.int64)
            for axis, size in zip(axes, sizes, strict=True):
                place = place * size + grid[axis]
            cells.append(cell + np.arange(place.size))
            shifts.append(shift + place)
            groups.append(group_of[part] + np.arange(number))
            shift += number
        cell += grid.shape[1]
    return np.concatenate(cells), np.concatenate(shifts), np.concatenate(groups)


def _within(scope: Scope) -> list[Scope]:
    """All scopes inside ``scope``, none and all of its variables included, the smallest first."""
    return list(chain.from_iterable(combinations(scope, number) for number in range(len(scope) + 1)))
