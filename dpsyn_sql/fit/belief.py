"""Exact inference in a junction tree: calibration and marginals within cliques.

Sum-product belief propagation with division (Koller and Friedman 2009, 10.3) in probability space: the
logarithm of every message's sum is kept apart, so that nothing underflows, and no exponential is
taken of a whole clique. Tables have one axis per variable of their scope, ascending.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

import numpy as np

from dpsyn_sql.errors import InternalError
from dpsyn_sql.fit.arrays import FloatArray
from dpsyn_sql.fit.graph import JunctionTree, Scope, cells_of

_SMALLEST = float(np.finfo(np.float64).tiny)
# Factors that contradict each other beyond float64 leave zeros, which must not become NaN.

_FAINT = 1e-100
# Sums below are divided out at once: later, in one step with other factors, that could overflow.

_LARGE, _LONG = 2**11, 64
# Cells of tables that are multiplied in runs of at least so many cells.

_RUN = 16
# Cells: longer runs are added no faster.


Factors = dict[Scope, FloatArray]
"""Tables by scope, whose product is meant."""


@dataclass(frozen=True, slots=True)
class Beliefs:
    """A calibrated tree: ``tables[i]`` is the joint distribution of clique i (sums to 1);
    ``log_partition`` is the logarithm of the sum of the product of all potentials, of a tree with given
    variables the mean of that of each configuration of these."""

    tree: JunctionTree
    tables: tuple[FloatArray, ...]
    log_partition: float

    @property
    def proper(self) -> bool:
        """Whether every table is a distribution; not so where factors contradict beyond float64."""
        return all(abs(float(table.sum()) - 1) < 1e-6 for table in self.tables)


def room(tree: JunctionTree) -> tuple[FloatArray, ...]:
    """Tables of all cliques, not filled: for ``calibrate``."""
    return tuple(np.empty([tree.sizes[v] for v in clique]) for clique in tree.cliques)


def calibrate(
    tree: JunctionTree,
    potentials: Mapping[Scope, FloatArray],
    tables: Sequence[FloatArray] = (),
    given: Mapping[int, FloatArray] = MappingProxyType({}),
) -> Beliefs:
    """Clique beliefs of the distribution proportional to exp(sum of ``potentials``).

    With ``given`` variables that is their distribution times that of the others given them, which is
    proportional to the same: of what hangs together below a clique of given variables the potentials are
    summed to a table over these, and the clique's distribution takes its place (a conditional random field,
    Koller and Friedman 2009, 4.6.1 and 20.3.2). Nothing is learnt of the given variables themselves.

    Args:
        tree: some clique of it holds every scope of ``potentials``.
        potentials: log-factors by scope, finite; -1000 acts as minus infinity.
        tables: ``room`` that the beliefs are to take, overwriting those that took it before; else their own.
            Getting and giving back that much memory takes as long as all the sums.
        given: of each ``known`` clique its distribution, above 0; those of cliques that share variables
            agree.
    """
    factors, shift = _initial(tree, potentials)
    tables = tuple(tables) or room(tree)
    upward: list[FloatArray] = [np.ones(1)] * len(tree.cliques)
    sums = [1.0] * len(tree.cliques)
    for index in reversed(tree.order):  # collect: children before parents
        if index in given:
            tables[index][...] = given[index]
            shift += _mean_logarithm(tree, index, factors[index], given[index])
            upward[index] = summed(given[index], _axes_outside(tree.cliques[index], tree.separators[index]))
            continue
        table = _product(tree, index, factors[index], tables[index])
        message = summed(table, _axes_outside(tree.cliques[index], tree.separators[index]))
        sums[index] = max(float(message.sum()), _SMALLEST)
        upward[index] = message / sums[index]
        if (parent := tree.parents[index]) >= 0:
            _multiply(factors[parent], tree.separators[index], upward[index])
        if parent < 0 or sums[index] < _FAINT:
            table *= 1 / sums[index]
    for index in tree.order:  # distribute: multiply by the ratio of the own to the child's message
        children = tree.children[index]
        wanted = _margins(tree, index, tables[index], tuple(tree.separators[child] for child in children))
        for child in children:
            ratio = wanted[tree.separators[child]] / np.maximum(upward[child], _SMALLEST)
            if child not in given and sums[child] >= _FAINT:
                ratio *= 1 / sums[child]
            ratio = _widened(ratio, tree.separators[child], tree.cliques[child])
            _times(tables[child], ratio, tables[child])
    return Beliefs(tree, tables, shift + sum(math.log(value) for value in sums))


def _mean_logarithm(tree: JunctionTree, index: int, factors: Factors, shares: FloatArray) -> float:
    """The mean over the distribution of a clique of the logarithms of factors."""
    clique = tree.cliques[index]
    return math.fsum(
        float((summed(shares, _axes_outside(clique, scope)) * np.log(np.maximum(factor, _SMALLEST))).sum())
        for scope, factor in factors.items()
    )


def _initial(tree: JunctionTree, potentials: Mapping[Scope, FloatArray]) -> tuple[list[Factors], float]:
    """Factors by the clique they are assigned to, each scaled to a maximum of 1; the log of the scales."""
    factors: list[Factors] = [{} for _ in tree.cliques]
    shift = 0.0
    for scope, potential in potentials.items():
        highest = float(potential.max())
        shift += highest
        factors[home_of(tree, scope)][scope] = np.exp(potential - highest)
    return factors, shift


def _multiply(factors: Factors, scope: Scope, table: FloatArray) -> None:
    """One more factor of a clique: those of one scope are one factor, however many children send it."""
    factors[scope] = factors[scope] * table if scope in factors else table


def home_of(tree: JunctionTree, scope: Scope) -> int:
    """The smallest clique that holds ``scope``.

    Raises:
        InternalError: there is none.
    """
    home = tree.home(scope)
    if home is None:
        raise InternalError("no clique of the tree holds these variables")
    return home


def _product(tree: JunctionTree, index: int, factors: Factors, result: FloatArray) -> FloatArray:
    """Factor product over a clique, into ``result``; small unions first, so that few passes are full."""
    clique = tree.cliques[index]
    left = [_widened(table, scope, clique) for scope, table in factors.items()]
    for i, j in _joins(tuple(factors), tree.sizes, result.size):
        first, second = left.pop(i), left.pop(j)
        left.append(_times(first, second))
    if len(left) < 2:
        result[...] = left[0] if left else 1.0
    else:
        _times(left[0], left[1], result)
    for table in left[2:]:
        _times(result, table, result)
    return result


def _times(first: FloatArray, second: FloatArray, result: FloatArray | None = None) -> FloatArray:
    """The product of two tables of as many axes, into ``result`` (one piece of memory) if it is given.

    Numpy multiplies along the last axis, which may have two cells. So the last axes of large tables become
    one long axis, which a factor that lacks some of them is repeated along.
    """
    shape = tuple(map(max, first.shape, second.shape))
    kept = _before_run(shape)
    if kept == len(shape):
        return np.multiply(first, second, out=result)
    one, other = (_along(table, shape, kept) for table in (first, second))
    if result is None:
        return np.multiply(one, other).reshape(shape)
    np.multiply(one, other, out=result.reshape(*shape[:kept], -1))
    return result


def _along(table: FloatArray, shape: tuple[int, ...], kept: int) -> FloatArray:
    """The last axes of a factor of a table of this shape as one; of one cell if it has none of them."""
    own, run = table.shape[kept:], shape[kept:]
    if own != run and max(own) > 1:
        table = np.broadcast_to(table, (*table.shape[:kept], *run))
    return table.reshape(*table.shape[:kept], -1)


@lru_cache(maxsize=2**14)
def _before_run(shape: tuple[int, ...]) -> int:
    """How many first axes are not part of the run of the last ones; all of a small table."""
    if math.prod(shape) < _LARGE:
        return len(shape)
    return max(axis for axis in range(len(shape)) if math.prod(shape[axis:]) >= _LONG)


@lru_cache(maxsize=4096)
def _joins(scopes: tuple[Scope, ...], sizes: tuple[int, ...], whole: int) -> tuple[tuple[int, int], ...]:
    """Which two factors (places, i > j) to multiply next: the smallest union, until two are left or there is
    none of less than ``whole`` cells.

    Remembered, as every calibration of a tree joins the same scopes.
    """
    left = [frozenset(scope) for scope in scopes]
    joins = []
    while len(left) > 2:
        cells, i, j = min(
            (cells_of([tuple(left[i] | left[j])], sizes), i, j) for i in range(len(left)) for j in range(i)
        )
        if cells == whole:
            break
        joins.append((i, j))
        first, second = left.pop(i), left.pop(j)
        left.append(first | second)
    return tuple(joins)


def _widened(table: FloatArray, scope: Scope, clique: Scope) -> FloatArray:
    """A table over ``scope`` that broadcasts over ``clique``."""
    return np.asarray(table[_spread(scope, clique)])


@lru_cache(maxsize=2**14)
def _spread(scope: Scope, clique: Scope) -> tuple[slice | None, ...]:
    return tuple(slice(None) if variable in scope else None for variable in clique)


@lru_cache(maxsize=2**14)
def _axes_outside(clique: Scope, kept: Scope) -> tuple[int, ...]:
    return tuple(axis for axis, variable in enumerate(clique) if variable not in kept)


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
        place = _cheapest(blocks)
        before = math.prod(size for _, size in blocks[:place])
        after = math.prod(size for _, size in blocks[place + 1 :])
        steps.append((before, blocks[place][1], after))
        del blocks[place]
    return tuple(steps), tuple(size for axis, size in enumerate(shape) if axis not in axes)


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
        found |= _margins(tree, index, beliefs.tables[index], tuple(scopes))
    return found


def _margins(
    tree: JunctionTree, index: int, table: FloatArray, scopes: tuple[Scope, ...]
) -> dict[Scope, FloatArray]:
    """Marginals of the table of a clique, of one variable or more each."""
    found, tables = dict[Scope, FloatArray](), [table]
    for source, axis, scope in _shared_sums(tree.cliques[index], table.shape, scopes):
        tables.append(summed(tables[source], (axis,)) if axis >= 0 else tables[source])
        if scope:
            found[scope] = tables[-1]
    return found


@lru_cache(maxsize=2**14)
def _shared_sums(
    variables: Scope, sizes: tuple[int, ...], wanted: tuple[Scope, ...]
) -> tuple[tuple[int, int, Scope], ...]:
    """How to get the marginals ``wanted`` of a table: (earlier table, axis to sum out, scope if wanted).

    One variable is summed out for all scopes that lack it, then the same for the rest: first those that
    no scope has, and the largest of them. Table 0 is the whole; axis -1 leaves it as it is.
    """
    sums: list[tuple[int, int, Scope]] = []
    size_of = dict(zip(variables, sizes, strict=True))

    def collect(source: int, held: Scope, scopes: Sequence[Scope]) -> None:
        scopes = [scope for scope in scopes if scope != held]
        asked = set().union(*scopes)
        for variable in sorted(held, key=lambda v: (v in asked, -size_of[v])):
            lacking = [scope for scope in scopes if variable not in scope]
            if lacking:
                axis = held.index(variable)
                rest = held[:axis] + held[axis + 1 :]
                sums.append((source, axis, rest if rest in lacking else ()))
                collect(len(sums), rest, lacking)
                scopes = [scope for scope in scopes if variable in scope]

    if variables in wanted:
        sums.append((0, -1, variables))
    collect(0, variables, wanted)
    return tuple(sums)


def arranged(table: FloatArray, scope: Scope, wanted: Scope) -> FloatArray:
    """The marginal over ``wanted``, axes in that order, of a table over ``scope``."""
    part = summed(table, _axes_outside(scope, wanted))
    present = [v for v in scope if v in wanted]
    return part.transpose([present.index(v) for v in wanted])
