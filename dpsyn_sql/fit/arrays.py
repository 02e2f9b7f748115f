"""Arrays of numbers: sums along their axes, and tables that obey what is known of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.errors import InternalError

# -- types -------------------------------------------------------------------------------------------

# Arrays, and numbers on a coarse grid: decisions must not hang on the last bits of a float.
#
# A replay asks its questions again, perhaps on another machine, whose sums and exponentials differ in the
# last bit. Whatever decides on a question (bins, scores) is put on a grid first. The grid's boundaries are
# irrational: sums of noisy integers, their means and halves, never lie on one.

Codes = NDArray[np.integer[Any]]
FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_OFFSET = (np.sqrt(5) - 1) / 2


def snapped(values: FloatArray, step: float) -> FloatArray:
    """Multiples of ``step`` (a power of two), each less than a step from its value."""
    return np.asarray(np.floor(values / step + _OFFSET) * step)


_TINY = float(np.finfo(np.float64).tiny)


def quotient(values: FloatArray, divisors: FloatArray) -> FloatArray:
    """``values`` / ``divisors``; 0 where one is 0, or too small for a quotient in float64."""
    return np.divide(values, divisors, out=np.zeros_like(values), where=divisors >= _TINY)


@contextmanager
def sound(subject: str) -> Iterator[None]:
    """Arithmetic in which an overflow, a division by zero or a NaN is an error with a name: numpy's warning
    passes, and what is left of the numbers makes wrong rows.

    Raises:
        InternalError: one of these has happened in ``subject``.
    """
    try:
        with np.errstate(over="raise", divide="raise", invalid="raise"):
            yield
            return
    except FloatingPointError as error:
        kind = str(error)
    raise InternalError(f"{subject} has left the numbers of float64: {kind}")


# -- sums --------------------------------------------------------------------------------------------

# Sums over axes of tables, and within groups of neighbours.

_LONG_GROUP = 512
# Values: groups that are longer are added one by one, others place by place.


def group_cumsum(values: FloatArray, begins: IntArray) -> FloatArray:
    """Cumulative sums (n,) within groups of neighbours, which start at ``begins`` (ascending, the first 0).

    Differences of one sum over all groups would have no digits left for small values of late groups.
    """
    sums, sizes = values.astype(np.float64), np.diff(begins, append=values.size)
    for group in np.flatnonzero(sizes > _LONG_GROUP):
        part = slice(begins[group], begins[group] + sizes[group])
        sums[part] = np.cumsum(sums[part])
    short = begins[sizes <= _LONG_GROUP]
    sizes = sizes[sizes <= _LONG_GROUP]
    for place in range(1, int(sizes.max(initial=0))):
        short, sizes = short[sizes > place], sizes[sizes > place]
        sums[short + place] += sums[short + place - 1]
    return sums


_RUN = 16
# Cells: longer runs are added no faster.


def summed(table: FloatArray, axes: Sequence[int]) -> FloatArray:
    """``table.sum(axes)`` on one thread and in one order, faster than numpy's.

    Runs of neighbouring axes are summed together by einsum. BLAS is not used: its threads hinder each other
    on tables of this size, and the order of its sums depends on their number.
    """
    if not axes:
        return table
    steps, shape = _steps(table.shape, tuple(axes))
    for step in steps:
        table = np.einsum("akb->ab", table.reshape(step))
    return table.reshape(shape)


@lru_cache(maxsize=2**16)
def _steps(
    shape: tuple[int, ...], axes: tuple[int, ...]
) -> tuple[tuple[tuple[int, int, int], ...], tuple[int, ...]]:
    """Shapes whose middle axis is to be summed, one after the other, and that of the result.

    Remembered, as is what else depends on shapes alone: a model of many attributes has small tables, and
    thinking about a sum takes longer than the sum.
    """
    blocks, steps = _blocks(shape, set(axes)), list[tuple[int, int, int]]()
    while any(dropped for dropped, _ in blocks):
        index = _cheapest(blocks)
        before = math.prod(size for _, size in blocks[:index])
        after = math.prod(size for _, size in blocks[index + 1 :])
        steps.append((before, blocks[index][1], after))
        del blocks[index]
    return tuple(steps), tuple(size for axis, size in enumerate(shape) if axis not in axes)


def _cheapest(blocks: Sequence[tuple[bool, int]]) -> int:
    """The block to sum first: the longest of those with a run of cells behind each entry, which are added
    at a third of the price of neighbours; else the one with most behind it."""
    prices, after = dict[int, tuple[int, int]](), 1
    for index in reversed(range(len(blocks))):
        dropped, size = blocks[index]
        if dropped:
            prices[index] = (min(after, _RUN), size)
        after *= size
    return max(prices, key=prices.__getitem__)


def widened(table: FloatArray, scope: tuple[int, ...], wider: tuple[int, ...]) -> FloatArray:
    """A table over the variables ``scope`` that broadcasts over ``wider`` ones; both ascend."""
    return np.asarray(table[_spread(scope, wider)])


@lru_cache(maxsize=2**14)
def _spread(scope: tuple[int, ...], wider: tuple[int, ...]) -> tuple[slice | None, ...]:
    return tuple(slice(None) if variable in scope else None for variable in wider)


def _blocks(shape: Sequence[int], axes: set[int]) -> list[tuple[bool, int]]:
    """Runs of neighbouring axes that are all dropped or all kept, with their number of cells."""
    blocks: list[tuple[bool, int]] = []
    for axis, size in enumerate(shape):
        if blocks and blocks[-1][0] == (axis in axes):
            blocks[-1] = (blocks[-1][0], blocks[-1][1] * size)
        else:
            blocks.append((axis in axes, size))
    return blocks


# -- projections -----------------------------------------------------------------------------------

# Tables that obey what is known of them: no negative cells, known margins, no more noise than was added.
#
# *Shrinkage of singular values.* With all d(d-1)/2 pairs measured at one budget, most cells of a large pair
# table hold less than their noise. But what two attributes say about each other is nearly of low rank
# (ordered bins vary smoothly, categories fall into groups), while noise spreads over all singular values up
# to a known edge. Values within the edge are dropped, the others shrunk.
#
# *Ripple* (PriView, section 4.4): negative cells become zero, and their neighbours pay for it. Neighbours of
# a cell differ from it in the value of one attribute; a table of l1 x l2 x ... cells has h = (l1 - 1) + (l2 -
# 1) + ... of them. So a deficit is taken from similar cells, where a projection takes it from all cells.
#
# All of it is post-processing of noisy tables.


def shrink_singular_values(residuals: FloatArray, sigmas: FloatArray) -> FloatArray:
    """The signal in doubly centred tables (tables, l1, l2) with noise ``sigmas`` (tables,; rows).

    Gavish, Donoho 2017 (Optimal shrinkage of singular values), equation 7, the shrinker for
    Frobenius loss: with y a singular value in units of sigma sqrt(n), n >= m the sides of the
    table and beta = m/n, it becomes sqrt((y^2 - beta - 1)^2 - 4 beta)/y above 1 + sqrt(beta) and 0
    below. Double centring takes one from either side. sigma = 0 changes nothing.
    """
    shape = residuals.shape[1:]
    if min(shape) < 2 or not (sigmas > 0).any():
        return residuals
    sides, noise = sorted(size - 1 for size in shape), np.where(sigmas > 0, sigmas, 1.0)[:, None]
    if sides[0] == 1:  # one free side leaves one singular value: the norm
        norm = np.linalg.norm(residuals, axis=(1, 2))[:, None]
        shrinkage = _shrunk(norm, noise, sides) / np.where(norm > 0, norm, 1.0)
        shrunk = residuals * shrinkage[:, :, None]
    else:
        left, singular, right = np.linalg.svd(residuals, full_matrices=False)
        shrunk = (left * _shrunk(singular, noise, sides)[:, None, :]) @ right
    return np.where((sigmas > 0)[:, None, None], shrunk, residuals)


def shrink_contrasts(residuals: FloatArray, sigmas: FloatArray) -> FloatArray:
    """The same of many tables (tables, l1 - 1, l2 - 1) in orthonormal contrasts along both axes, each with
    its noise above 0."""
    if residuals.size == 0:
        return residuals
    left, singular, right = np.linalg.svd(residuals, full_matrices=False)
    shrinkage = _shrunk(singular, sigmas[:, None], sorted(residuals.shape[1:]))
    return np.asarray((left * shrinkage[:, None, :]) @ right)


def _shrunk(singular: FloatArray, sigma: FloatArray, sides: list[int]) -> FloatArray:
    """Singular values of a table with these free sides, ascending."""
    unit, beta = sigma * np.sqrt(sides[1]), sides[0] / sides[1]
    least = 1.0 + np.sqrt(beta)
    y = np.maximum(singular / unit, least)
    shrunk = unit * np.sqrt(np.maximum((y**2 - beta - 1.0) ** 2 - 4.0 * beta, 0.0)) / y
    return np.where(y > least, shrunk, 0.0)


RAKING_ROUNDS = 20
"""Rounds of proportional fitting that restore the margins after a projection, at most."""

_RAKED = 1e-12
# Both margins fit to this probability: further rounds change nothing that is seen.

INDEPENDENT_TRACE = 1e-9
"""Weight of independence in a pair table before it is fitted to its margins."""


def simplex_projection(values: FloatArray, total: float) -> FloatArray:
    """Nearest table (Euclidean) with cells >= 0 that sum to ``total``; zeros if ``total`` <= 0.

    ``values`` may have any shape. Duchi et al. 2008, figure 1: sort, find the one threshold.
    """
    return np.asarray(simplex_projections(np.asarray(values)[None], total)[0])


def simplex_projections(values: FloatArray, total: float) -> FloatArray:
    """``simplex_projection`` of many tables of one shape (tables, cells ...)."""
    if total <= 0 or np.size(values) == 0:
        return np.zeros_like(values, dtype=np.float64)
    # Measured from the largest cell, so that huge values keep their small differences.
    flat = np.asarray(values, dtype=np.float64).reshape(len(values), -1)
    flat = flat - flat.max(axis=1, keepdims=True)
    descending = np.sort(flat, axis=1)[:, ::-1]
    excess = (np.cumsum(descending, axis=1) - total) / np.arange(1, flat.shape[1] + 1)
    last = flat.shape[1] - 1 - np.argmax((descending > excess)[:, ::-1], axis=1)
    projected = np.maximum(flat - np.take_along_axis(excess, last[:, None], axis=1), 0.0)
    return np.asarray(projected * (total / projected.sum(axis=1, keepdims=True))).reshape(np.shape(values))


def fit_joint(
    values: FloatArray, sigma: float, first: FloatArray, second: FloatArray, total: float
) -> FloatArray:
    """Joint probabilities (l1, l2) from a noisy table, consistent with the margins, denoised; total > 0.

    In order: (1) the table is shifted to the margins by least squares (every cell of a row or column moves
    equally); (2) what it says beyond independence is shrunk for its known noise (``shrink_singular_values``);
    (3) projection to the simplex; (4) proportional fitting back to the margins.
    """
    return np.asarray(fit_joints(values[None], np.array([sigma]), first[None], second[None], total)[0])


def fit_joints(
    values: FloatArray, sigmas: FloatArray, first: FloatArray, second: FloatArray, total: float
) -> FloatArray:
    """``fit_joint`` of many tables (tables, l1, l2) with margins (tables, l1) and (tables, l2)."""
    independent = first[:, :, None] * second[:, None, :]
    signal = shrink_singular_values(_double_centred(values - total * independent), sigmas)
    joint = simplex_projections(total * independent + signal, total) / total
    return _raked_many(joint, first, second)


def _double_centred(tables: FloatArray) -> FloatArray:
    """Remove row and column means: the least-squares shift to margins of zero."""
    rows, columns = tables.mean(axis=2, keepdims=True), tables.mean(axis=1, keepdims=True)
    return np.asarray(tables - rows - columns + rows.mean(axis=1, keepdims=True))


def raked(joint: FloatArray, first: FloatArray, second: FloatArray) -> FloatArray:
    """Proportional fitting of a joint table (l1, l2) to its margins (Deming, Stephan 1940).

    A trace of independence is mixed in first: without it the cells that a projection left positive
    may be unable to carry the margins.
    """
    return np.asarray(_raked_many(joint[None], first[None], second[None])[0])


Rule = tuple[IntArray, FloatArray]
"""Of each cell of a table the number of its sum, and what the sums are."""


def raked_to(table: FloatArray, rules: Sequence[Rule], rounds: int = RAKING_ROUNDS) -> FloatArray:
    """The table nearest to ``table`` in relative entropy whose sums are those of the rules, as far as they
    agree with each other (Deming, Stephan 1940); the last rule holds. A sum of 0 stays 0."""
    for _ in range(rounds):
        for cells, sums in rules:
            current = np.bincount(cells.ravel(), table.ravel(), sums.size).astype(np.float64)
            table = np.asarray(table * quotient(sums, current)[cells])
    return table


def _raked_many(joint: FloatArray, first: FloatArray, second: FloatArray) -> FloatArray:
    independent = first[:, :, None] * second[:, None, :]
    joint = (1.0 - INDEPENDENT_TRACE) * joint + INDEPENDENT_TRACE * independent
    open_ = np.arange(len(joint))
    for _ in range(RAKING_ROUNDS):
        part = joint[open_]
        part = part * quotient(first[open_], part.sum(axis=2))[:, :, None]
        part = part * quotient(second[open_], part.sum(axis=1))[:, None, :]
        joint[open_] = part
        open_ = open_[np.abs(part.sum(axis=2) - first[open_]).max(axis=1) >= _RAKED]
        if open_.size == 0:
            break
    return np.asarray(joint / joint.sum(axis=(1, 2), keepdims=True))


MOST_STEPS = 50
"""Steps, at most: a deficit among many others takes thousands to reach the few cells that can pay."""


def without_negative_cells(tables: FloatArray, thetas: FloatArray, most: int = MOST_STEPS) -> FloatArray:
    """Tables of one shape (tables, cells ...) without cells below -theta; their sums stay what they were.

    Every cell c < -theta becomes 0, and each of its h neighbours loses |c| / h. Others may then fall below
    -theta, so this repeats until none is, or ``most`` times. All cells of a step change at once. After the
    last step what is left is taken from all positive cells, in proportion. A table whose sum is not positive
    has no cells to pay: it stays as it is.

    Args:
        tables: counts (rows).
        thetas: of each table (rows), not negative.
        most: steps.
    """
    counts = np.array(tables, np.float64)
    axes, neighbours = tuple(range(1, counts.ndim)), sum(size - 1 for size in counts.shape[1:])
    if neighbours == 0 or counts.size == 0:
        return counts
    able = counts.sum(axis=axes, keepdims=True) > 0
    lowest = np.where(able, -np.reshape(thetas, able.shape), -np.inf)
    for _ in range(most):
        deficit = np.where(counts < lowest, -counts, 0.0)
        if not deficit.any():
            return counts
        counts += deficit
        for axis in axes:
            counts -= (deficit.sum(axis=axis, keepdims=True) - deficit) / neighbours
    deficit = np.where(counts < lowest, -counts, 0.0)
    rich = np.maximum(counts, 0.0)
    owed, paying = (part.sum(axis=axes, keepdims=True) for part in (deficit, rich))
    share = np.divide(owed, paying, out=np.zeros_like(owed), where=owed > 0)
    return np.asarray(counts + deficit - rich * share)


def posterior_means(
    likelihood: FloatArray,
    grid: FloatArray,
    start: FloatArray,
    steps: int,
    learnt: Callable[[FloatArray], FloatArray],
) -> FloatArray:
    """Posterior means (n,) under the distribution on a grid that makes noisy values most likely.

    It has no form, and is found by expectation maximisation (Kiefer and Wolfowitz 1956); the means are
    empirical Bayes estimates (Jiang and Zhang 2009).

    Args:
        likelihood: (n, g) of each value at each point of the grid, up to a factor per value.
        grid: (g,).
        start: (g,) the distribution to start from.
        steps: of expectation maximisation.
        learnt: the next distribution (g,) from posteriors (n, g).
    """
    prior = start
    for _ in range(steps):
        posterior = likelihood * prior
        posterior /= posterior.sum(axis=1, keepdims=True)
        prior = learnt(posterior)
    posterior = likelihood * prior
    return np.asarray((posterior @ grid) / posterior.sum(axis=1))
