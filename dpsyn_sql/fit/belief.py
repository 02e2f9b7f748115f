"""Exact inference in a junction tree: calibration and marginals within cliques.

Sum-product belief propagation with division (Koller and Friedman 2009, 10.3) in probability space: the
logarithm of every message's sum is kept apart, and no exponential is taken of a whole clique. Where
potentials contradict each other so much that products lose digits, it is done once more in logarithms. Tables
have one axis per variable of their scope, ascending.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

import numpy as np

from dpsyn_sql.errors import InternalError
from dpsyn_sql.fit.arrays import FloatArray, sound, summed, widened
from dpsyn_sql.fit.graph import JunctionTree, Scope, cells_of

_SMALLEST = float(np.finfo(np.float64).tiny)
# Impossible cells leave zeros, which must not become NaN.

_FAINT, _FAINTEST = 1e-80, 1e-200
# Factors and messages are at most 1. While the product of the sums of a clique and those above it is at least
# ``_FAINT``, a cell of a message that matters is no smaller, but for the 16 digits: nothing in it has
# underflowed, and no ratio of messages exceeds 1 / ``_FAINT`` times the cells. Below given variables, whose
# distribution no message changes, every cell matters.

_LARGE, _LONG = 2**11, 64
# Cells of tables that are multiplied in runs of at least so many cells.


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

    def checked(self) -> Beliefs:
        """The same, after every table was seen to be a distribution.

        Raises:
            InternalError: one is not.
        """
        for table in self.tables:
            if not (float(table.min(initial=0.0)) >= 0 and abs(float(table.sum()) - 1) < 1e-6):
                raise InternalError("a table of a fitted model is no distribution")
        return self


def room(tree: JunctionTree) -> tuple[FloatArray, ...]:
    """Tables of all cliques, not filled: for ``calibrate``."""
    return tuple(np.empty([tree.sizes[v] for v in clique]) for clique in tree.cliques)


def calibrate(
    tree: JunctionTree,
    potentials: Mapping[Scope, FloatArray],
    tables: Sequence[FloatArray] = (),
    given_tables: Mapping[int, FloatArray] = MappingProxyType({}),
) -> Beliefs:
    """Clique beliefs of the distribution proportional to exp(sum of ``potentials``).

    With given variables that is their distribution (``given_tables``) times that of the others given them,
    which is proportional to the same: of what hangs together below a clique of given variables the potentials
    are summed to a table over these, and the clique's distribution takes its place (a conditional random
    field, Koller and Friedman 2009, 4.6.1 and 20.3.2). Nothing is learnt of the given variables themselves.

    Args:
        tree: some clique of it holds every scope of ``potentials``.
        potentials: log-factors by scope, finite; -1000 acts as minus infinity.
        tables: ``room`` that the beliefs are to take, overwriting those that took it before; else their own.
            Getting and giving back that much memory takes as long as all the sums.
        given_tables: of each of ``given_cliques`` its distribution, above 0; those of cliques that share
            variables agree.

    Raises:
        InternalError: a potential is not finite, or numbers have left those of float64.
    """
    for potential in potentials.values():
        if not np.isfinite(potential).all():
            raise InternalError("a potential of a fit is not a finite number")
    tables = tuple(tables) or room(tree)
    with sound("the calibration of a model"):
        beliefs = _in_products(tree, potentials, tables, given_tables)
        return _in_logarithms(tree, potentials, tables, given_tables) if beliefs is None else beliefs


def _in_products(
    tree: JunctionTree,
    potentials: Mapping[Scope, FloatArray],
    tables: tuple[FloatArray, ...],
    given_tables: Mapping[int, FloatArray],
) -> Beliefs | None:
    """``calibrate`` in probability space; None where that would lose digits."""
    factors, shift = _initial(tree, potentials, given_tables)
    upward: list[FloatArray] = [np.ones(1)] * len(tree.cliques)
    sums = [1.0] * len(tree.cliques)
    for index in reversed(tree.order):  # collect: children before parents
        parent = tree.parents[index]
        if index in given_tables:
            tables[index][...] = given_tables[index]
            shift += _mean_of(tree, index, factors[index], given_tables[index])
            upward[index] = summed(
                given_tables[index], _axes_outside(tree.cliques[index], tree.separators[index])
            )
            continue
        table = _product(tree, index, factors[index], tables[index])
        message = summed(table, _axes_outside(tree.cliques[index], tree.separators[index]))
        sums[index] = float(message.sum())
        if sums[index] < _FAINT:
            return None
        upward[index] = message / sums[index]
        if parent in given_tables and float(upward[index].min()) < _FAINTEST:
            return None
        if parent in given_tables:
            _add(factors[parent], tree.separators[index], np.log(upward[index]))
        elif parent >= 0:
            _multiply(factors[parent], tree.separators[index], upward[index])
        else:
            table *= 1 / sums[index]
    above = [1.0] * len(tree.cliques)  # products of the sums from the root down, of those below 1
    for index in tree.order:  # distribute: multiply by the ratio of the own to the child's message
        above[index] = min(sums[index], 1.0) * (above[tree.parents[index]] if tree.parents[index] >= 0 else 1)
        if above[index] < _FAINT:
            return None
        children = tree.children[index]
        wanted = _margins(tree, index, tables[index], tuple(tree.separators[child] for child in children))
        for child in children:
            ratio = wanted[tree.separators[child]] / np.maximum(upward[child], _SMALLEST)
            ratio *= 1 / sums[child]
            ratio = widened(ratio, tree.separators[child], tree.cliques[child])
            _times(tables[child], ratio, tables[child])
    return Beliefs(tree, tables, shift + math.fsum(math.log(value) for value in sums))


def _in_logarithms(
    tree: JunctionTree,
    potentials: Mapping[Scope, FloatArray],
    tables: tuple[FloatArray, ...],
    given_tables: Mapping[int, FloatArray],
) -> Beliefs:
    """``calibrate`` with logarithms in place of probabilities: slower, for potentials of any size."""
    factors: list[Factors] = [{} for _ in tree.cliques]
    for scope, potential in potentials.items():
        factors[home_of(tree, scope)][scope] = potential
    upward, log_sum = list[FloatArray](tables), 0.0
    outside = [_axes_outside(*scopes) for scopes in zip(tree.cliques, tree.separators, strict=True)]
    for index in reversed(tree.order):
        clique, table = tree.cliques[index], tables[index]
        table[...] = 0.0
        for scope, factor in factors[index].items():
            table += widened(factor, scope, clique)
        parent, separator, shares = tree.parents[index], tree.separators[index], given_tables.get(index)
        if shares is not None:
            log_sum += float((shares * table).sum())
            np.log(shares, out=table)
        upward[index] = _log_summed(table, outside[index])
        if shares is not None:
            continue
        if parent < 0:
            log_sum += float(upward[index].ravel()[0])
            table -= upward[index]
        else:
            _add(factors[parent], separator, upward[index])
    for index in tree.order:
        for child in tree.children[index]:
            clique, separator = tree.cliques[index], tree.separators[child]
            ratio = _log_summed(tables[index], _axes_outside(clique, separator)) - upward[child]
            tables[child][...] += widened(ratio, separator, tree.cliques[child])
    for table in tables:  # potentials of 2^50 and more have lost the digits that make sums exactly 1
        table -= table.max()
        np.exp(table, out=table)
        table *= 1 / table.sum()
    return Beliefs(tree, tables, log_sum)


def _log_summed(logs: FloatArray, axes: tuple[int, ...]) -> FloatArray:
    """Logarithms of the sums of exponentials over some axes."""
    if not axes:
        return logs.copy()
    highest = logs.max(axis=axes, keepdims=True)
    sums = np.log(summed(np.exp(logs - highest), axes))
    return np.asarray(sums + highest.reshape(sums.shape))


def _mean_of(tree: JunctionTree, index: int, logarithms: Factors, shares: FloatArray) -> float:
    """The mean over the distribution of a clique of the sum of tables."""
    clique = tree.cliques[index]
    return math.fsum(
        float((summed(shares, _axes_outside(clique, scope)) * table).sum())
        for scope, table in logarithms.items()
    )


def _initial(
    tree: JunctionTree, potentials: Mapping[Scope, FloatArray], given_tables: Mapping[int, FloatArray]
) -> tuple[list[Factors], float]:
    """Factors by the clique they are assigned to, each scaled to a maximum of 1; the log of the scales. Of
    given variables, whose factors are never multiplied, their logarithms."""
    factors: list[Factors] = [{} for _ in tree.cliques]
    shift = 0.0
    for scope, potential in potentials.items():
        home = home_of(tree, scope)
        if home in given_tables:
            _add(factors[home], scope, potential)
            continue
        highest = float(potential.max())
        shift += highest
        factors[home][scope] = np.exp(potential - highest)
    return factors, shift


def _add(logarithms: Factors, scope: Scope, table: FloatArray) -> None:
    """As ``_multiply``, of logarithms."""
    logarithms[scope] = logarithms[scope] + table if scope in logarithms else table


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
    left = [widened(table, scope, clique) for scope, table in factors.items()]
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
    """The product of two tables of as many axes, into ``result`` (one piece of memory) if it is given: it
    may have cells along axes that neither table has.

    Numpy multiplies along the last axis, which may have two cells. So the last axes of large tables become
    one long axis, which a factor that lacks some of them is repeated along.
    """
    shape = tuple(map(max, first.shape, second.shape)) if result is None else result.shape
    leading = _before_run(shape)
    if leading == len(shape):
        return np.multiply(first, second, out=result)
    left, right = (_along(table, shape, leading) for table in (first, second))
    if result is None:
        return np.multiply(left, right).reshape(shape)
    np.multiply(left, right, out=result.reshape(*shape[:leading], -1))
    return result


def _along(table: FloatArray, shape: tuple[int, ...], leading: int) -> FloatArray:
    """The last axes of a factor of a table of this shape as one; of one cell if it has none of them."""
    last, run = table.shape[leading:], shape[leading:]
    if last != run and max(last) > 1:
        table = np.broadcast_to(table, (*table.shape[:leading], *run))
    return table.reshape(*table.shape[:leading], -1)


@lru_cache(maxsize=2**14)
def _before_run(shape: tuple[int, ...]) -> int:
    """How many first axes are not part of the run of the last ones; all of a small table."""
    if math.prod(shape) < _LARGE:
        return len(shape)
    return max(axis for axis in range(len(shape)) if math.prod(shape[axis:]) >= _LONG)


@lru_cache(maxsize=4096)
def _joins(scopes: tuple[Scope, ...], sizes: tuple[int, ...], most: int) -> tuple[tuple[int, int], ...]:
    """Which two factors (places, i > j) to multiply next: the smallest union, until two are left or there is
    none of less than ``most`` cells.

    Remembered, as every calibration of a tree joins the same scopes.
    """
    left = [frozenset(scope) for scope in scopes]
    joins = []
    while len(left) > 2:
        cells, i, j = min(
            (cells_of([tuple(left[i] | left[j])], sizes), i, j) for i in range(len(left)) for j in range(i)
        )
        if cells == most:
            break
        joins.append((i, j))
        first, second = left.pop(i), left.pop(j)
        left.append(first | second)
    return tuple(joins)


@lru_cache(maxsize=2**14)
def _axes_outside(clique: Scope, separator: Scope) -> tuple[int, ...]:
    return tuple(axis for axis, variable in enumerate(clique) if variable not in separator)


def marginals(beliefs: Beliefs, wanted: Iterable[Scope]) -> dict[Scope, FloatArray]:
    """Marginals within cliques, each with ascending axes; partial sums are shared."""
    tree = beliefs.tree
    by_clique: dict[int, list[Scope]] = {}
    for scope in wanted:
        by_clique.setdefault(home_of(tree, scope), []).append(scope)
    tables: dict[Scope, FloatArray] = {}
    for index, scopes in by_clique.items():
        tables |= _margins(tree, index, beliefs.tables[index], tuple(scopes))
    return tables


def _margins(
    tree: JunctionTree, index: int, table: FloatArray, scopes: tuple[Scope, ...]
) -> dict[Scope, FloatArray]:
    """Marginals of the table of a clique, of one variable or more each."""
    margins, tables = dict[Scope, FloatArray](), [table]
    for source, axis, scope in _shared_sums(tree.cliques[index], table.shape, scopes):
        tables.append(summed(tables[source], (axis,)) if axis >= 0 else tables[source])
        if scope:
            margins[scope] = tables[-1]
    return margins


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

    def collect(source: int, present: Scope, scopes: Sequence[Scope]) -> None:
        scopes = [scope for scope in scopes if scope != present]
        needed = set().union(*scopes)
        for variable in sorted(present, key=lambda v: (v in needed, -size_of[v])):
            lacking = [scope for scope in scopes if variable not in scope]
            if lacking:
                axis = present.index(variable)
                remaining = present[:axis] + present[axis + 1 :]
                sums.append((source, axis, remaining if remaining in lacking else ()))
                collect(len(sums), remaining, lacking)
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
