"""Many tables at once as their interactions, the components of the analysis of variance.

A coefficient of a table sums it along some axes and takes contrasts (orthonormal, of sum 0) along the
others, the set S. So it belongs to the marginal over S alone: tables that hold S and agree on this marginal
have the same coefficients of S. Tables of equal shape lie in one array, so a step for tens of thousands of
them is a few products of matrices.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dpsyn_sql.fit.arrays import FloatArray, IntArray
from dpsyn_sql.fit.graph import Scope


@dataclass(frozen=True, slots=True)
class Stack:
    """Tables of one shape, ``sizes``: ``scopes`` as they were given.

    ``variables`` (tables, axes): of the axes, by size, then number, the same order in all stacks. ``axes``:
    those of each table in this order. ``start``: of the coefficients in the vector of all. ``places``: by set
    of axes (a bit mask) the cells of its coefficients.
    """

    scopes: tuple[Scope, ...]
    sizes: tuple[int, ...]
    variables: IntArray
    axes: tuple[tuple[int, ...], ...]
    start: int
    places: Mapping[int, IntArray]

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

    ``held``: the sets of variables that several tables hold, numbered 0..``sets``-1. ``places``: their
    coefficients in the vector of all, with the number of each among the shared ones (``shared``) and its
    table in the order of the stacks (``owners``).
    """

    stacks: tuple[Stack, ...]
    held: tuple[SharedTables, ...]
    sets: int
    places: IntArray
    shared: IntArray
    owners: IntArray

    @classmethod
    def of(cls, shapes: Mapping[Scope, tuple[int, ...]]) -> Layout:
        """Of tables with these shapes, by ascending scope."""
        stacks = _stacks(shapes)
        held = _held(stacks)
        sizes = np.zeros(1 + max((int(h.numbers.max()) for h in held), default=-1), np.int64)
        for one in held:
            sizes[one.numbers] = stacks[one.stack].places[one.mask].size
        offsets, first = np.cumsum(sizes) - sizes, _firsts(stacks)
        places, shared, owners = [], [], []
        for one in held:
            stack = stacks[one.stack]
            own = stack.places[one.mask][:, None]
            places.append((stack.start + own * len(stack.scopes) + one.columns).ravel())
            shared.append((offsets[one.numbers] + np.arange(own.size)[:, None]).ravel())
            owners.append(np.tile(first[one.stack] + one.columns, own.size))
        none = [np.zeros(0, np.int64)]
        columns = (np.concatenate([*none, *part]) for part in (places, shared, owners))
        return cls(tuple(stacks), tuple(held), sizes.size, *columns)

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
        found = [np.zeros(0)]
        for stack, array in zip(self.stacks, arrays, strict=True):
            for size in reversed(stack.sizes):
                array = _contrasts(size) @ array.reshape(-1, size).T
            found.append(array.ravel())
        return np.concatenate(found)

    def arrays(self, coefficients: FloatArray) -> list[FloatArray]:
        """The tables with these coefficients, by stack."""
        found = []
        for stack, array in zip(self.stacks, self.by_stack(coefficients), strict=True):
            for size in stack.sizes:
                array = array.reshape(size, -1).T @ _cells(size).T
            found.append(array.reshape(stack.shape))
        return found

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
        means = np.bincount(self.shared, weights * coefficients[self.places]) / sums
        found = coefficients.copy()
        found[self.places] = means[self.shared]
        return found

    def summed(self, values: FloatArray) -> list[dict[int, FloatArray]]:
        """For each stack and set of axes: a number of each table, added up over all tables that hold the
        same variables."""
        parts = self.parts(values)
        found = [{mask: part.copy() for mask in s.places} for s, part in zip(self.stacks, parts, strict=True)]
        sums = np.zeros(self.sets)
        for one in self.held:
            np.add.at(sums, one.numbers, parts[one.stack][one.columns])
        for one in self.held:
            found[one.stack][one.mask][one.columns] = sums[one.numbers]
        return found


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
    found, start = list[Stack](), 0
    for sizes, members in groups.items():
        scopes, axes_of = zip(*members, strict=True)
        variables = np.array([[scope[a] for a in axes] for scope, axes in members], np.int64)
        found.append(Stack(scopes, sizes, variables, axes_of, start, _places(sizes)))
        start += len(scopes) * math.prod(sizes)
    return found


def _places(sizes: tuple[int, ...]) -> dict[int, IntArray]:
    """The coefficients of each set of axes; sets with an axis of one value have none."""
    labels = np.zeros(sizes, np.int64)
    for axis, size in enumerate(sizes):
        own = (np.arange(size) > 0).astype(np.int64) << axis
        labels += own.reshape([size if a == axis else 1 for a in range(len(sizes))])
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
    found, taken = list[SharedTables](), 0
    keys: list[tuple[int, Scope, IntArray, IntArray]] = [
        (number, (), np.arange(len(stack.scopes)), np.zeros(len(stack.scopes), np.int64))
        for number, stack in enumerate(stacks)
    ]
    while keys:
        _, inverse, counts = np.unique(
            np.concatenate([key for *_, key in keys]), return_inverse=True, return_counts=True
        )
        numbers = np.where(counts > 1, taken - 1 + np.cumsum(counts > 1), -1)[inverse.ravel()]
        taken = max(taken, int(numbers.max()) + 1)
        longer: list[dict[Scope, IntArray]] = [{} for _ in stacks]
        place = 0
        for number, axes, columns, key in keys:
            own = numbers[place : place + key.size]
            place += key.size
            kept = own >= 0
            if kept.any():
                full = np.full(len(stacks[number].scopes), -1)
                full[columns] = own
                longer[number][axes] = full
                mask = sum(1 << axis for axis in axes)
                if mask in stacks[number].places:
                    found.append(SharedTables(number, mask, columns[kept], own[kept]))
        keys = list(_longer(longer, ranks, count))
    return found


def _longer(
    before: Sequence[Mapping[Scope, IntArray]], ranks: Sequence[IntArray], count: int
) -> Iterator[tuple[int, Scope, IntArray, IntArray]]:
    """Of each stack, the sets with one more axis: their tables, and a number for the set of variables."""
    for number, (sets, rank) in enumerate(zip(before, ranks, strict=True)):
        for axes, own in sets.items():
            columns = np.flatnonzero(own >= 0)
            for axis in range(axes[-1] + 1 if axes else 0, rank.shape[1]):
                yield number, (*axes, axis), columns, own[columns] * count + rank[columns, axis]


def _ranks(stacks: Sequence[Stack]) -> list[IntArray]:
    """Variables by their place in the order of all."""
    order = {
        (size, int(v)): 0
        for stack in stacks
        for size, column in zip(stack.sizes, stack.variables.T, strict=True)
        for v in column
    }
    rank = {variable: place for place, (_, variable) in enumerate(sorted(order))}
    return [
        np.array([[rank[v] for v in row] for row in stack.variables.tolist()], np.int64).reshape(
            stack.variables.shape
        )
        for stack in stacks
    ]
