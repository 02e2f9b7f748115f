"""A network of attributes as it grows: levels of parents, families that may be next, the network so far.

An attribute comes with a few parents that are in the network already; each of its conditional distributions
is fitted to a noisy table of the family. Which family comes next is the choice of a method. Post-processing
of noisy answers only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.attributes.attribute import Attribute
from dpsyn_sql.fit.arrays import FloatArray, IntArray, fit_joint, snapped
from dpsyn_sql.fit.denoise import Binned
from dpsyn_sql.fit.elimination import joint, work_of
from dpsyn_sql.fit.estimate import Observation
from dpsyn_sql.fit.network import Builder, Network, proper

FEW_CANDIDATES = 256
"""If no step can have more, every step looks at all of them."""

MOST_CANDIDATES, MOST_CHILDREN, MOST_PARENTS = 64, 16, 8
"""Of one step, where distances of pairs rank them: families, children, and parents of a child."""

SAMPLE_ROWS = 2**17
"""Rows of the public sample of the model, for joint distributions that are too large to compute."""

MOST_WORK = 2**16
"""The most lines of all steps to a joint distribution that is computed; a few milliseconds."""

MIXED = 1e-6
"""The part of the child's own distribution in each of its conditional ones: no value becomes impossible."""

_SHARE_GRID = 2.0**-30
# What is compared is snapped to it, so that every machine decides alike.

# -- encodings (TODS 2017, section 5) ----------------------------------------------------------------

# Vanilla: an attribute has its working bins alone. Hierarchical: as a parent it may also be taken at a
# coarser level, so that more parents fit into a useful table. No domain declares a taxonomy; levels are made
# from public facts and noisy one-way tables:
#
# - Neighbouring bins of an ordered attribute are joined two by two; ``__other__`` and NULL stay apart if they
#   have bins of their own.
# - Of an unordered attribute the more frequent half of the bins stay, all others share one.

Parent = tuple[int, int]
"""An attribute (by position) and its level; 0 are the working bins."""


@dataclass(frozen=True, slots=True)
class Family:
    """A child (by position) and its parents, ascending."""

    child: int
    parents: tuple[Parent, ...]

    @property
    def attributes(self) -> tuple[int, ...]:
        """Those of the parents, then the child: the axes of its tables."""
        return (*(attribute for attribute, _ in self.parents), self.child)

    def from_question(self, table: NDArray[np.generic]) -> FloatArray:
        """A table from the axes of its question, in domain order, to those of the family."""
        axes = sorted(self.attributes)
        return np.asarray(table.transpose([axes.index(v) for v in self.attributes]), dtype=np.float64)

    def to_question(self, table: FloatArray) -> FloatArray:
        """The way back."""
        return table.transpose([self.attributes.index(v) for v in sorted(self.attributes)])


@dataclass(frozen=True, slots=True)
class Encoded:
    """Attributes in working bins; ``levels[i][l]`` (int64, one per bin): the value of each bin at level l,
    of ``sizes[i][l]`` values."""

    binned: Binned
    levels: tuple[tuple[IntArray, ...], ...]
    sizes: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, binned: Binned, *, hierarchical: bool) -> Encoded:
        """Levels of every attribute, down to two values; vanilla: the working bins alone."""
        columns = zip(binned.domain.attributes, binned.bins, binned.shares, strict=True)
        levels = [
            _levels(attribute, bins, shares) if hierarchical else (np.arange(shares.size),)
            for attribute, bins, shares in columns
        ]
        sizes = (tuple(int(level.max()) + 1 for level in of_attribute) for of_attribute in levels)
        return cls(binned, tuple(levels), tuple(sizes))

    @property
    def shares(self) -> tuple[FloatArray, ...]:
        """Probabilities of the working bins of each attribute."""
        return self.binned.shares

    def size(self, parent: Parent) -> int:
        """Values of an attribute at a level."""
        attribute, level = parent
        return self.sizes[attribute][level]

    def values_of(self, parent: Parent) -> IntArray:
        """The value of each code of an attribute at a level."""
        attribute, level = parent
        return np.asarray(self.levels[attribute][level][self.binned.bins[attribute]])


def _levels(attribute: Attribute, bins: IntArray, shares: FloatArray) -> tuple[IntArray, ...]:
    levels = [np.arange(shares.size)]
    regular = int(bins[: attribute.regular].max(initial=-1)) + 1  # discovery can find no category at all
    while True:
        last = levels[-1]
        coarser = _paired(last, regular) if attribute.ordered else _rarer_joined(last, shares)
        if coarser.max() < 1 or coarser.max() == last.max():
            return tuple(levels)
        levels.append(coarser)


def _paired(level: IntArray, regular: int) -> IntArray:
    """Neighbours among the first ``regular`` bins joined two by two; later ones stay."""
    joined = level[:regular] // 2
    return np.concatenate([joined, level[regular:] - level[regular - 1] + joined[-1]])


def _rarer_joined(level: IntArray, shares: FloatArray) -> IntArray:
    """The more frequent half of the values, less one, stay in order; the last value is all others."""
    size = int(level.max()) + 1
    mass = snapped(np.bincount(level, shares).astype(np.float64), _SHARE_GRID)
    frequent = np.sort(np.argsort(-mass, kind="stable")[: (size + 1) // 2 - 1])
    new_value = np.full(size, frequent.size)
    new_value[frequent] = np.arange(frequent.size)
    return np.asarray(new_value[level])


# -- candidates of a step ----------------------------------------------------------------------------

# Their number is bounded by public constants. Which they are follows from noisy answers alone.


@dataclass(frozen=True, slots=True)
class Bounds:
    """``degree``: parents at most. ``useful``: cells of a table that stand out of its noise on average
    (infinite for a fixed degree). ``countable``: cells of a table that may be counted. ``pairs``: attributes
    whose pair may be counted however large it is."""

    degree: int
    useful: float
    countable: int
    pairs: frozenset[tuple[int, int]]

    def fits(self, encoded: Encoded, child: int, parents: Sequence[Parent]) -> bool:
        """Whether a table may be asked for. A single parent need not be useful: shrinkage drops its noise."""
        cells = _cells(encoded, [*parents, (child, 0)])
        if len(parents) == 1:
            pair = min(child, parents[0][0]), max(child, parents[0][0])
            return pair in self.pairs or cells <= self.countable
        return cells <= min(self.useful, self.countable)


def largest_number(encoded: Encoded, active: Sequence[int], degree: int) -> int:
    """The most candidates that a step can have if every set of parents fits; with levels, if each set has as
    many as it has parents."""
    several = any(len(encoded.levels[v]) > 1 for v in active)
    each = [size if several else 1 for size in range(degree + 1)]
    number = len(active)
    return max(
        (
            (number - placed) * sum(each[size] * math.comb(placed, size) for size in range(1, degree + 1))
            for placed in range(1, number)
        ),
        default=0,
    )


def candidates(
    encoded: Encoded,
    inside: Sequence[int],
    outside: Sequence[int],
    bounds: Bounds,
    ranks: Mapping[tuple[int, int], float] | None,
    target: int | None = None,
) -> list[Family]:
    """Families to choose from: all, or the ``MOST_CANDIDATES`` most promising.

    Args:
        encoded: attributes and their levels.
        inside: attributes placed.
        outside: the others.
        bounds: of the tables.
        ranks: what is known of each pair of attributes, large for dependence; None if there are so few
            candidates that all are taken.
        target: a placed attribute that is a parent of every child whose table with it may be asked for.
    """
    if ranks is None:
        families = (f for child in outside for f in _families(encoded, child, sorted(inside), bounds, target))
        return list(families)

    def rank(child: int, parent: int) -> float:
        return ranks.get((min(child, parent), max(child, parent)), 0.0)

    best = {child: max(rank(child, parent) for parent in inside) for child in outside}
    likely = sorted(outside, key=lambda child: -best[child])[:MOST_CHILDREN]
    scored: list[tuple[float, Family]] = []
    for child in likely:
        near = sorted(inside, key=lambda parent: -rank(child, parent))[:MOST_PARENTS]
        nearest = {*near, *(() if target is None else (target,))}
        for family in _families(encoded, child, sorted(nearest), bounds, target):
            scored.append((sum(max(0.0, rank(child, parent)) for parent, _ in family.parents), family))
    scored.sort(key=lambda pair: -pair[0])
    return [family for _, family in scored[:MOST_CANDIDATES]]


def _families(
    encoded: Encoded, child: int, inside: Sequence[int], bounds: Bounds, target: int | None
) -> Iterator[Family]:
    """A child with every set of parents that fits; of the levels of one set those that no finer ones beat.

    If the child fits a table with the target, the target is in every set.
    """
    if target is not None and not _finest(encoded, child, (target,), bounds):
        target = None
    for size in range(1, bounds.degree + 1):
        for chosen in combinations(inside, size):
            if target is None or target in chosen:
                yield from (Family(child, parents) for parents in _finest(encoded, child, chosen, bounds))


def _finest(encoded: Encoded, child: int, chosen: Sequence[int], bounds: Bounds) -> list[tuple[Parent, ...]]:
    """Levels that fit, and do not with any one of them finer by one: of these the largest tables, as many as
    there are parents (``largest_number`` counts on it)."""
    finest = tuple((attribute, 0) for attribute in chosen)
    if bounds.fits(encoded, child, finest):
        return [finest]
    levels = [range(len(encoded.levels[attribute])) for attribute in chosen]
    fitting = {
        combination
        for combination in product(*levels)
        if bounds.fits(encoded, child, tuple(zip(chosen, combination, strict=True)))
    }
    maximal = [
        combination
        for combination in sorted(fitting)
        if not any(
            (*combination[:index], level - 1, *combination[index + 1 :]) in fitting
            for index, level in enumerate(combination)
        )
    ]
    parent_sets = [tuple(zip(chosen, combination, strict=True)) for combination in maximal]
    return sorted(parent_sets, key=lambda parents: -_cells(encoded, parents))[: len(chosen)]


def _cells(encoded: Encoded, members: Sequence[Parent]) -> int:
    return math.prod(encoded.size(member) for member in members)


# -- the network as far as it is grown ---------------------------------------------------------------


@dataclass
class GrowingNetwork:
    """Nodes so far; the first variables are the attributes in working bins, coarser levels come after them.

    ``build``: the network as it is. ``draw``: an outcome for each row, of the distribution (row of an array)
    of its group. ``sample``: values of the attributes placed, for ``SAMPLE_ROWS`` rows.
    Post-processing of noisy answers only.
    """

    encoded: Encoded
    build: Builder
    draw: Callable[[IntArray, FloatArray], IntArray]
    sample: dict[int, IntArray] = field(default_factory=dict)
    _coarse: dict[Parent, int] = field(default_factory=dict)
    _joints: dict[tuple[Parent, ...], tuple[FloatArray, bool]] = field(default_factory=dict)

    @classmethod
    def of(cls, encoded: Encoded, draw: Callable[[IntArray, FloatArray], IntArray]) -> GrowingNetwork:
        """Nothing is placed yet."""
        binned, sizes = encoded.binned, [encoded.size((v, 0)) for v in range(len(encoded.levels))]
        return cls(encoded, Builder(binned.domain.names, sizes, binned.bins, binned.within), draw)

    def grow(self, family: Family, table: Observation | None = None, total: float = 1.0) -> None:
        """Add a child with the distribution that a noisy table of its family gives it; without parents, its
        own."""
        shares = self.encoded.shares[family.child]
        name = self.encoded.binned.domain.names[family.child]
        conditional, reach = shares[None, :], None
        if table is not None:
            above, exact = self.parents_joint(family.parents)
            conditional = fitted_conditional(table, above.ravel(), shares, total)
            reach = above.ravel() if exact else None
        parents = [self._variable(parent) for parent in family.parents]
        self.build.add(name, parents, (family.child,), conditional, reach)
        self.sample[family.child] = self.draw(self._rows(family.parents), conditional)

    def parents_joint(self, parents: tuple[Parent, ...]) -> tuple[FloatArray, bool]:
        """Joint distribution of attributes that are placed, and whether it is exact.

        It is that of the sample where an exact one takes too long. Later nodes do not change it.
        """
        if parents not in self._joints:
            self._joints[parents] = self._joint(parents)
        return self._joints[parents]

    def network(self) -> Network:
        """The whole network, with codes after their working bins."""
        for attribute in range(len(self.encoded.levels)):
            self.build.add_codes(attribute)
        return self.build.network(together=False)

    def _joint(self, parents: tuple[Parent, ...]) -> tuple[FloatArray, bool]:
        attributes = [attribute for attribute, _ in parents]
        network = self.build.network(together=False)
        work = work_of(network, attributes)
        if work is not None and work <= MOST_WORK:
            table = joint(network, attributes)
            for axis, (attribute, level) in enumerate(parents):
                table = _coarser(table, axis, self.encoded.levels[attribute][level])
            return table, True
        shape = [self.encoded.size(parent) for parent in parents]
        counts = np.bincount(self._rows(parents), minlength=math.prod(shape))
        return counts.reshape(shape) / SAMPLE_ROWS, False

    def _variable(self, parent: Parent) -> int:
        """The variable of an attribute at a level; a coarser one gets a node that follows from the bins."""
        attribute, level = parent
        if level == 0:
            return attribute
        if parent not in self._coarse:
            size = self.encoded.size(parent)
            self._coarse[parent] = self.build.variable(size)
            label = f"{self.encoded.binned.domain.names[attribute]}|level {level}"
            table = np.eye(size)[self.encoded.levels[attribute][level]]
            self.build.add(label, (attribute,), (self._coarse[parent],), table)
        return self._coarse[parent]

    def _rows(self, parents: tuple[Parent, ...]) -> IntArray:
        """The configuration of the parents in each row of the sample."""
        rows = np.zeros(SAMPLE_ROWS, np.int64)
        for attribute, level in parents:
            rows *= self.encoded.size((attribute, level))
            rows += self.encoded.levels[attribute][level][self.sample[attribute]]
        return rows


def fitted_conditional(table: Observation, above: FloatArray, shares: FloatArray, total: float) -> FloatArray:
    """Distributions of a child (configurations of the parents, child's values) from a noisy joint table.

    What the table says beyond independence is shrunk for its noise. The joint distribution keeps to the
    parents' in the model, and to the child's own.

    Args:
        table: (parents' values ..., child's values), rows, one sigma.
        above: the parents' joint distribution in the model, flat.
        shares: the child's distribution.
        total: rows, above 0.
    """
    values = table.values.reshape(above.size, shares.size)
    joint_table = fit_joint(values, float(table.sigma), above, shares, total)
    conditional = proper(joint_table) / proper(joint_table).sum(axis=1, keepdims=True)
    reached = joint_table.sum(axis=1, keepdims=True) > 0
    return np.where(reached, (1 - MIXED) * conditional + MIXED * shares, shares)


def _coarser(table: FloatArray, axis: int, level: IntArray) -> FloatArray:
    """Values of one axis added up to those of a coarser level."""
    shape = list(table.shape)
    shape[axis] = int(level.max()) + 1
    coarse = np.zeros(shape)
    np.add.at(np.moveaxis(coarse, axis, 0), level, np.moveaxis(table, axis, 0))
    return coarse
