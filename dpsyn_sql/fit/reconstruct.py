"""Any marginal from consistent views (PriView, section 4.3): three ways to fill in what no view holds.

The views that share attributes with the wanted set fix some of its marginals. Many tables have these:

- **maximum entropy**: the table that says nothing beyond them, by iterative scaling;
- **least norm**: the table of the smallest sum of squares, without negative cells;
- **linear programming**: a table whose largest departure from any of them is least.

Views that agree can still contradict each other (a = b, b = c, a != c): no table has all their marginals. The
first two ways then come close to all of them, and the third has the smallest departure that there is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import coo_array, hstack, vstack

from dpsyn_sql.errors import InputError, InternalError
from dpsyn_sql.fit.graph import Scope
from dpsyn_sql.fit.views import Views, consistent, spread, summed_to

FloatArray = NDArray[np.float64]

MOST_CELLS = 2**20
"""Cells of a marginal that is reconstructed: 8 MB, summed in a few dozen rounds."""

MOST_PROGRAM_CELLS = 2**13
"""Cells of a marginal by linear programming: each is a variable, which takes a second or two."""

RECONSTRUCTIONS = ("maximum_entropy", "least_norm", "linear_programming")
"""Names of the ways, the default first."""

_PROJECTIONS = 400
# Of least norm. About a thousand random tables met their parts to 3e-9 by then; with 100 some missed by 6e-6.

_ROUNDS = 100
_CLOSE = 1e-9
# Rounds, and the largest departure (of a total of 1) at which nothing is left to do.


def most_cells(how: str) -> int:
    """The most cells of a marginal that is reconstructed in one of ``RECONSTRUCTIONS``."""
    return MOST_PROGRAM_CELLS if how == RECONSTRUCTIONS[2] else MOST_CELLS


def reconstructed(
    views: Mapping[Scope, FloatArray], scope: Scope, sizes: Sequence[int], how: str
) -> FloatArray:
    """The marginal over ``scope`` (ascending), probabilities.

    Args:
        views: consistent and not negative, by ascending scope, each of sum 1.
        scope: attributes.
        sizes: of all attributes.
        how: one of ``RECONSTRUCTIONS``.

    Raises:
        InputError: the marginal has too many cells.
    """
    shape = [sizes[index] for index in scope]
    most = most_cells(how)
    if math.prod(shape) > most:
        raise InputError(
            f"a marginal of {math.prod(shape):,} cells is too large to be reconstructed from views: allowed "
            f"are {most:,} with reconstruction={how!r}; ask for fewer attributes, or count it in the "
            "synthetic table"
        )
    parts = known_parts(views, scope)
    if scope in parts:
        return parts[scope]
    if how == RECONSTRUCTIONS[0]:
        return maximum_entropy(parts, scope, shape)
    if how == RECONSTRUCTIONS[1]:
        return least_norm(parts, scope, shape)
    return linear_programming(parts, scope, shape)


def known_parts(views: Mapping[Scope, FloatArray], scope: Scope) -> Views:
    """What views say of ``scope``: their marginals over the attributes they share with it, the largest."""
    wanted, sources = set(scope), dict[Scope, Scope]()
    for view in sorted(views, key=lambda view: views[view].size):
        kept = tuple(index for index in view if index in wanted)
        if kept:
            sources.setdefault(kept, view)
    largest = [one for one in sources if not any(set(one) < set(other) for other in sources)]
    return {one: np.asarray(summed_to(views[sources[one]], sources[one], one)) for one in sorted(largest)}


def maximum_entropy(parts: Mapping[Scope, FloatArray], scope: Scope, shape: Sequence[int]) -> FloatArray:
    """Iterative proportional scaling from the uniform table. Parts that contradict each other make it go
    round in a circle, so the scaling of each is damped more and more then."""
    table = np.full(shape, 1 / math.prod(shape))
    for number in range(_ROUNDS):
        power = min(1.0, 2 * _ROUNDS / 5 / (number + 1))
        worst = 0.0
        for kept, part in parts.items():
            own = summed_to(table, scope, kept)
            worst = max(worst, float(np.abs(own - part).max()))
            ratio = np.divide(part, own, out=np.zeros_like(part), where=own > 0)
            table = table * spread(ratio**power, kept, scope)
        table /= max(float(table.sum()), np.finfo(float).tiny)
        if worst <= _CLOSE:
            break
    return table if table.sum() > 0.5 else np.full(shape, 1 / math.prod(shape))


def least_norm(parts: Mapping[Scope, FloatArray], scope: Scope, shape: Sequence[int]) -> FloatArray:
    """The nearest table to zero that has the parts and no negative cell, by Dykstra's (1986) projections in
    turns: to the parts, which is one pass of ``consistent``, and to tables without negative cells."""
    table, correction = np.zeros(shape), np.zeros(shape)
    for _ in range(_PROJECTIONS):
        exact = _with_parts(table, parts, scope)
        lifted = exact + correction
        table = np.maximum(lifted, 0.0)
        correction = lifted - table
        if float(np.abs(table - exact).max()) <= _CLOSE:
            break
    return np.asarray(table / table.sum())


def _with_parts(table: FloatArray, parts: Mapping[Scope, FloatArray], scope: Scope) -> FloatArray:
    """The nearest table with these parts: views of almost no noise against one of much."""
    sigmas = dict.fromkeys(parts, 1e-8) | {scope: 1.0}
    return consistent({**parts, scope: table}, sigmas)[scope]


def linear_programming(parts: Mapping[Scope, FloatArray], scope: Scope, shape: Sequence[int]) -> FloatArray:
    """A table without negative cells that sums to 1 and whose largest departure from a part is least.

    Raises:
        InternalError: the solver ended without a solution, which every such program has.
    """
    size = math.prod(shape)
    cells = np.indices(shape).reshape(len(shape), -1)
    rows = list[coo_array]()
    for kept, part in parts.items():
        axes = tuple(scope.index(index) for index in kept)
        numbers = np.ravel_multi_index(tuple(cells[axis] for axis in axes), part.shape)
        rows.append(coo_array((np.ones(size), (numbers, np.arange(size))), (part.size, size)))
    sums = vstack(rows)
    wanted = np.concatenate([part.ravel() for part in parts.values()])
    slack = coo_array(-np.ones((sums.shape[0], 1)))
    limits: Any = vstack([hstack([sums, slack]), hstack([-sums, slack])]).tocsr()  # its stubs know dense ones
    found = linprog(
        np.r_[np.zeros(size), 1.0],
        A_ub=limits,
        b_ub=np.r_[wanted, -wanted],
        A_eq=np.r_[np.ones(size), 0.0][None],
        b_eq=[1.0],
        method="highs",
    )
    if found.x is None:
        raise InternalError("the linear program of a marginal has no solution")
    table = np.maximum(found.x[:-1], 0.0).reshape(shape)
    return np.asarray(table / table.sum())
