"""Pairs of attributes: their noisy tables, and how they interact."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dpsyn_sql.fit.arrays import FloatArray, IntArray, summed
from dpsyn_sql.fit.belief import Beliefs, arranged, marginals
from dpsyn_sql.fit.graph import JunctionTree, Scope

_WIDEST = 1_024
# Rows of a block: longer ones are multiplied no faster.

_MOST_CELLS = 2**22
# About the most cells of a matrix: rows times separators.


def all_pairs(beliefs: Beliefs, pairs: Sequence[Scope]) -> dict[Scope, FloatArray]:
    """Joint distributions of pairs of variables (ascending), each with ascending axes."""
    tree, rank = beliefs.tree, beliefs.tree.places
    clique_of = {
        variable: set(tree.cliques[index])
        for index in tree.order
        for variable in tree.cliques[index]
        if variable not in tree.separators[index]
    }
    inside, partners = list[Scope](), dict[int, list[int]]()
    for left, right in pairs:
        first, second = (left, right) if rank[left] < rank[right] else (right, left)
        if first in clique_of[second]:  # else no clique holds both
            inside.append((left, right))
        else:
            partners.setdefault(first, []).append(second)
    joints = marginals(beliefs, inside)
    if not partners:
        return joints
    margins = marginals(beliefs, [(variable,) for variable in sorted(partners)])
    steps = _Steps(beliefs)
    for block in _blocks(tree, sorted(partners, key=rank.__getitem__)):
        wanted: dict[int, list[int]] = {}
        for variable in block:
            for partner in partners[variable]:
                wanted.setdefault(partner, []).append(variable)
        tables = {variable: margins[variable,][:, None] for variable in block}
        for partner, variable, table in _tables(steps, tables, wanted):
            if variable < partner:
                joints[variable, partner] = table
            else:
                joints[partner, variable] = table.T
    return joints


def _blocks(tree: JunctionTree, variables: Sequence[int]) -> Iterator[list[int]]:
    """Runs of variables whose codes together are the rows of a matrix."""
    rows = max((math.prod(tree.sizes[v] for v in separator) for separator in tree.separators), default=1)
    most, block, codes = min(_WIDEST, _MOST_CELLS // rows), list[int](), 0
    for variable in variables:
        if block and codes + tree.sizes[variable] > most:
            yield block
            block, codes = [], 0
        block.append(variable)
        codes += tree.sizes[variable]
    yield block


Tables = dict[int, FloatArray]
"""Of variables their joint tables (codes, configurations of a separator) with it."""


class _Steps:
    """Products of tables of separators with conditional distributions within cliques, which are kept."""

    def __init__(self, beliefs: Beliefs) -> None:
        self.beliefs, self.tree = beliefs, beliefs.tree
        self._known: dict[tuple[int, Scope, Scope, Scope], FloatArray] = {}

    def rows(self, scope: Scope) -> int:
        """Configurations of variables."""
        return math.prod(self.tree.sizes[variable] for variable in scope)

    def within(self, index: int, target: Scope, variable: int) -> FloatArray:
        """(Codes of ``variable``, configurations of ``target``), all in one clique."""
        table = arranged(self.beliefs.tables[index], self.tree.cliques[index], (variable, *target))
        return table.reshape(self.tree.sizes[variable], -1)

    def carried(self, index: int, separator: Scope, tables: Tables, target: Scope) -> Tables:
        """The tables with ``target`` of variables whose tables with a separator of this clique are known."""
        if target == separator or not tables:
            return tables
        first, *further = tables.values()
        rows = np.concatenate([first, *further]) if further else first
        rows = self._carried(index, separator, rows, target)
        ends = itertools.accumulate(len(table) for table in tables.values())
        return {v: rows[end - len(tables[v]) : end] for v, end in zip(tables, ends, strict=True)}

    def _carried(self, index: int, separator: Scope, tables: FloatArray, target: Scope) -> FloatArray:
        """P(v, T) = sum over S without T of P(v, S) P(T without S | S), S the separator; of each row."""
        shared = tuple(v for v in separator if v in target)
        gone = tuple(v for v in separator if v not in target)
        new = tuple(v for v in target if v not in separator)
        tables = tables.reshape([-1, *(self.tree.sizes[v] for v in separator)])
        if not new:
            return summed(tables, [1 + separator.index(v) for v in gone]).reshape(-1, self.rows(target))
        tables = tables.transpose([0, *(1 + separator.index(v) for v in (*shared, *gone))])
        tables = tables.reshape(-1, self.rows(shared), self.rows(gone)).transpose(1, 0, 2)
        mixed = (tables @ self._conditional(index, shared, gone, new)).transpose(1, 0, 2)
        names = (*shared, *new)
        mixed = mixed.reshape([-1, *(self.tree.sizes[v] for v in names)])
        mixed = mixed.transpose([0, *(1 + names.index(v) for v in target)])
        return mixed.reshape(-1, self.rows(target))

    def _conditional(self, index: int, shared: Scope, gone: Scope, new: Scope) -> FloatArray:
        """P(new | kept, gone) in a clique, three axes: configurations of kept, gone and new."""
        key = index, shared, gone, new
        if key not in self._known:
            local = arranged(self.beliefs.tables[index], self.tree.cliques[index], (*shared, *gone, *new))
            local = local.reshape(self.rows(shared), self.rows(gone), self.rows(new))
            weight = local.sum(axis=2, keepdims=True)
            self._known[key] = np.divide(local, weight, out=np.zeros_like(local), where=weight > 0)
        return self._known[key]


def _tables(
    steps: _Steps, margins: Tables, wanted: Mapping[int, Sequence[int]]
) -> Iterator[tuple[int, int, FloatArray]]:
    """(later variable, variable of the block, their joint table with the later one last) of what is
    ``wanted``: by the later variable those of the block, whose tables alone (``margins``) are (codes, 1)."""
    tree, ranks = steps.tree, steps.tree.places
    partners = dict.fromkeys(margins, 0)  # the ranks of the partners of each as bits
    for later, variables in wanted.items():
        for variable in variables:
            partners[variable] |= 1 << ranks[later]
    last = max(ranks[later] for later in wanted)
    upward, arrived = _upward(steps, margins, partners, last), dict[int, dict[Scope, Tables]]()
    for index in tree.order:
        start, end = tree.spans[index]
        if start > last:
            break
        above, separator, below = tree.parents[index], tree.separators[index], (1 << end) - (1 << start)
        needed = [v for v in margins if partners[v] & below and ranks[v] < start and v not in separator]
        if needed:
            if separator:
                tables = _downward(steps, index, needed, arrived.get(above, {}))
            else:  # of another tree: independent; those of this clique itself are not
                tables = {variable: margins[variable] for variable in needed}
            arrived[index] = {separator: dict(tables)}
            for later in tree.cliques[index]:
                if later in wanted and later not in separator:
                    partner_tables = {variable: tables[variable] for variable in wanted[later]}
                    for variable, table in steps.carried(index, separator, partner_tables, (later,)).items():
                        yield later, variable, table
        if index in upward:
            arrived.setdefault(above, {}).setdefault(separator, {}).update(upward[index])


def _downward(steps: _Steps, index: int, needed: Sequence[int], arrived: Mapping[Scope, Tables]) -> Tables:
    """Tables with the separator of a clique of what is ``needed`` below it: of variables of its parent, and
    of those whose tables ``arrived`` there."""
    tree, separator, parent = steps.tree, steps.tree.separators[index], steps.tree.parents[index]
    inside, needed_variables = set(tree.cliques[parent]), set(needed)
    joints = {v: steps.within(parent, separator, v) for v in needed if v in inside}
    for scope, tables in arrived.items():
        wanted = {variable: table for variable, table in tables.items() if variable in needed_variables}
        joints |= steps.carried(parent, scope, wanted, separator)
    return joints


def _upward(steps: _Steps, margins: Tables, partners: Mapping[int, int], last: int) -> dict[int, Tables]:
    """Of cliques with variables of the block below the separator their tables with it; of those alone that
    have a partner after them, up to the place ``last``."""
    tree, by_clique, below = steps.tree, dict[int, Tables](), dict[int, list[int]]()
    for index in reversed(tree.order):
        separator, end = tree.separators[index], tree.spans[index][1]
        children = below.pop(index, [])
        if not separator or end > last:
            continue
        tables = {
            variable: steps.within(index, separator, variable)
            for variable in tree.cliques[index]
            if variable in margins and variable not in separator and partners[variable] >> end
        }
        for child in children:
            further = {v: table for v, table in by_clique[child].items() if partners[v] >> end}
            tables |= steps.carried(index, tree.separators[child], further, separator)
        if tables:
            by_clique[index] = tables
            below.setdefault(tree.parents[index], []).append(index)
    return by_clique


# -- interactions ------------------------------------------------------------------------------------

# Many tables at once as their interactions, the components of the analysis of variance.
#
# A coefficient of a table sums it along some axes and takes contrasts (orthonormal, of sum 0) along the
# others, the set S. So it belongs to the marginal over S alone: tables that hold S and agree on this marginal
# have the same coefficients of S. Tables of equal shape lie in one array, so a step for tens of thousands of
# them is a few products of matrices.


@dataclass(frozen=True, slots=True)
class Stack:
    """Tables of one shape, ``sizes``: ``scopes`` as they were given.

    ``variables`` (tables, axes): of the axes, by size, then number, the same order in all stacks. ``axes``:
    those of each table in this order. ``start``: of the coefficients in the vector of all. ``cells_of_mask``:
    by set of axes (a bit mask) the cells of its coefficients.
    """

    scopes: tuple[Scope, ...]
    sizes: tuple[int, ...]
    variables: IntArray
    axes: tuple[tuple[int, ...], ...]
    start: int
    cells_of_mask: Mapping[int, IntArray]

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the array of tables; that of coefficients has the tables last."""
        return (len(self.scopes), *self.sizes)

    @property
    def cells(self) -> int:
        """Of each table."""
        return math.prod(self.sizes)


@dataclass(frozen=True, slots=True)
class SharedTables:
    """The tables of a stack (``columns``) in which the set of axes ``mask`` has the shared ``numbers``."""

    stack: int
    mask: int
    columns: IntArray
    numbers: IntArray


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the tables and their coefficients lie.

    ``shared_tables``: the sets of variables that several tables hold, numbered 0..``sets``-1. ``positions``:
    their coefficients in the vector of all, with the number of each among the shared ones (``shared``) and
    its table in the order of the stacks (``owners``).
    """

    stacks: tuple[Stack, ...]
    shared_tables: tuple[SharedTables, ...]
    sets: int
    positions: IntArray
    shared: IntArray
    owners: IntArray

    @classmethod
    def of(cls, shapes: Mapping[Scope, tuple[int, ...]]) -> Layout:
        """Of tables with these shapes, by ascending scope."""
        stacks = _stacks(shapes)
        shared_tables = _held(stacks)
        sizes = np.zeros(1 + max((int(h.numbers.max()) for h in shared_tables), default=-1), np.int64)
        for group in shared_tables:
            sizes[group.numbers] = stacks[group.stack].cells_of_mask[group.mask].size
        offsets, first = np.cumsum(sizes) - sizes, _firsts(stacks)
        positions, shared, owners = [], [], []
        for group in shared_tables:
            stack = stacks[group.stack]
            cells = stack.cells_of_mask[group.mask][:, None]
            positions.append((stack.start + cells * len(stack.scopes) + group.columns).ravel())
            shared.append((offsets[group.numbers] + np.arange(cells.size)[:, None]).ravel())
            owners.append(np.tile(first[group.stack] + group.columns, cells.size))
        none = [np.zeros(0, np.int64)]
        columns = (np.concatenate([*none, *part]) for part in (positions, shared, owners))
        return cls(tuple(stacks), tuple(shared_tables), sizes.size, *columns)

    def stacked(self, tables: Mapping[Scope, FloatArray]) -> list[FloatArray]:
        """Tables as an array (tables, cells ...) for each stack."""
        return [
            np.array(
                [
                    np.transpose(tables[scope], axes)
                    for scope, axes in zip(stack.scopes, stack.axes, strict=True)
                ],
                np.float64,
            )
            for stack in self.stacks
        ]

    def tables(self, arrays: Sequence[FloatArray]) -> dict[Scope, FloatArray]:
        """The way back, in the order of the stacks."""
        return {
            scope: np.ascontiguousarray(np.transpose(table, np.argsort(axes)) if axes else table)
            for stack, array in zip(self.stacks, arrays, strict=True)
            for scope, axes, table in zip(stack.scopes, stack.axes, array, strict=True)
        }

    def of_each(self, values: Mapping[Scope, float]) -> FloatArray:
        """One number of each table, in the order of the stacks."""
        return np.array([values[scope] for stack in self.stacks for scope in stack.scopes], np.float64)

    def parts(self, values: FloatArray) -> list[FloatArray]:
        """Numbers of the tables, by stack."""
        return np.split(values, np.cumsum([len(stack.scopes) for stack in self.stacks])[:-1])

    def coefficients(self, arrays: Sequence[FloatArray]) -> FloatArray:
        """Of all tables, in one vector: each stack with the axes of its cells, then its tables."""
        vectors = [np.zeros(0)]
        for stack, array in zip(self.stacks, arrays, strict=True):
            for size in reversed(stack.sizes):
                array = _contrasts(size) @ array.reshape(-1, size).T
            vectors.append(array.ravel())
        return np.concatenate(vectors)

    def arrays(self, coefficients: FloatArray) -> list[FloatArray]:
        """The tables with these coefficients, by stack."""
        tables = []
        for stack, array in zip(self.stacks, self.by_stack(coefficients), strict=True):
            for size in stack.sizes:
                array = array.reshape(size, -1).T @ _cells(size).T
            tables.append(array.reshape(stack.shape))
        return tables

    def by_stack(self, coefficients: FloatArray) -> list[FloatArray]:
        """Views of the vector: (cells, tables) for each stack."""
        return [
            coefficients[stack.start : stack.start + stack.cells * len(stack.scopes)].reshape(stack.cells, -1)
            for stack in self.stacks
        ]

    def averaged(self, coefficients: FloatArray, precisions: FloatArray) -> FloatArray:
        """Coefficients of which the shared ones are the means of their tables, weighted by precision."""
        weights = precisions[self.owners]
        sums = np.bincount(self.shared, weights)
        means = np.bincount(self.shared, weights * coefficients[self.positions]) / sums
        pooled = coefficients.copy()
        pooled[self.positions] = means[self.shared]
        return pooled

    def summed(self, values: FloatArray) -> list[dict[int, FloatArray]]:
        """For each stack and set of axes: a number of each table, added up over all tables that hold the
        same variables."""
        by_mask = self.parts(values)
        totals = [
            {mask: part.copy() for mask in s.cells_of_mask}
            for s, part in zip(self.stacks, by_mask, strict=True)
        ]
        sums = np.zeros(self.sets)
        for group in self.shared_tables:
            np.add.at(sums, group.numbers, by_mask[group.stack][group.columns])
        for group in self.shared_tables:
            totals[group.stack][group.mask][group.columns] = sums[group.numbers]
        return totals


def _contrasts(size: int) -> FloatArray:
    """The sum, and orthonormal contrasts (Helmert), as rows."""
    matrix = np.tril(np.ones((size, size)), -1)
    numbers = np.arange(1, size)
    matrix[numbers, numbers] = -numbers
    matrix[1:] /= np.sqrt(numbers * (numbers + 1.0))[:, None]
    matrix[0] = 1.0
    return matrix


def _cells(size: int) -> FloatArray:
    """The inverse of ``_contrasts``."""
    matrix = _contrasts(size).T
    matrix[:, 0] /= size
    return matrix


def _stacks(shapes: Mapping[Scope, tuple[int, ...]]) -> list[Stack]:
    """Tables by shape."""
    groups = defaultdict[tuple[int, ...], list[tuple[Scope, tuple[int, ...]]]](list)
    for scope, shape in shapes.items():
        axes = tuple(sorted(range(len(scope)), key=lambda axis: (shape[axis], scope[axis])))
        groups[tuple(shape[axis] for axis in axes)].append((scope, axes))
    stacks, start = list[Stack](), 0
    for sizes, members in groups.items():
        scopes, axes_of = zip(*members, strict=True)
        variables = np.array([[scope[a] for a in axes] for scope, axes in members], np.int64)
        stacks.append(Stack(scopes, sizes, variables, axes_of, start, _places(sizes)))
        start += len(scopes) * math.prod(sizes)
    return stacks


def _places(sizes: tuple[int, ...]) -> dict[int, IntArray]:
    """The coefficients of each set of axes; sets with an axis of one value have none."""
    labels = np.zeros(sizes, np.int64)
    for axis, size in enumerate(sizes):
        bit = (np.arange(size) > 0).astype(np.int64) << axis
        labels += bit.reshape([size if a == axis else 1 for a in range(len(sizes))])
    order = np.argsort(labels, axis=None, kind="stable")
    masks, starts = np.unique(labels.ravel()[order], return_index=True)
    return dict(zip(masks.tolist(), np.split(order, starts[1:]), strict=True))


def _firsts(stacks: Sequence[Stack]) -> list[int]:
    """The number of the first table of each stack."""
    numbers = [0]
    for stack in stacks:
        numbers.append(numbers[-1] + len(stack.scopes))
    return numbers


def _held(stacks: Sequence[Stack]) -> list[SharedTables]:
    """All sets of variables that several tables hold, smaller ones first.

    A set is its first members, which are shared too if it is, and its last one.
    """
    ranks = _ranks(stacks)
    count = 1 + max((int(rank.max()) for rank in ranks if rank.size), default=0)
    groups, used = list[SharedTables](), 0
    keys: list[tuple[int, Scope, IntArray, IntArray]] = [
        (number, (), np.arange(len(stack.scopes)), np.zeros(len(stack.scopes), np.int64))
        for number, stack in enumerate(stacks)
    ]
    while keys:
        _, inverse, counts = np.unique(
            np.concatenate([key for *_, key in keys]), return_inverse=True, return_counts=True
        )
        numbers = np.where(counts > 1, used - 1 + np.cumsum(counts > 1), -1)[inverse.ravel()]
        used = max(used, int(numbers.max()) + 1)
        longer: list[dict[Scope, IntArray]] = [{} for _ in stacks]
        offset = 0
        for number, axes, columns, key in keys:
            set_numbers = numbers[offset : offset + key.size]
            offset += key.size
            shared = set_numbers >= 0
            if shared.any():
                full = np.full(len(stacks[number].scopes), -1)
                full[columns] = set_numbers
                longer[number][axes] = full
                mask = sum(1 << axis for axis in axes)
                if mask in stacks[number].cells_of_mask:
                    groups.append(SharedTables(number, mask, columns[shared], set_numbers[shared]))
        keys = list(_longer(longer, ranks, count))
    return groups


def _longer(
    before: Sequence[Mapping[Scope, IntArray]], ranks: Sequence[IntArray], count: int
) -> Iterator[tuple[int, Scope, IntArray, IntArray]]:
    """Of each stack, the sets with one more axis: their tables, and a number for the set of variables."""
    for number, (sets, rank) in enumerate(zip(before, ranks, strict=True)):
        for axes, set_numbers in sets.items():
            columns = np.flatnonzero(set_numbers >= 0)
            for axis in range(axes[-1] + 1 if axes else 0, rank.shape[1]):
                yield number, (*axes, axis), columns, set_numbers[columns] * count + rank[columns, axis]


def _ranks(stacks: Sequence[Stack]) -> list[IntArray]:
    """Variables by their place in the order of all."""
    order = {
        (size, int(v)): 0
        for stack in stacks
        for size, column in zip(stack.sizes, stack.variables.T, strict=True)
        for v in column
    }
    rank = {variable: index for index, (_, variable) in enumerate(sorted(order))}
    return [
        np.array([[rank[v] for v in row] for row in stack.variables.tolist()], np.int64).reshape(
            stack.variables.shape
        )
        for stack in stacks
    ]
