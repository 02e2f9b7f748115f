"""The network as far as it is grown: encodings of attributes, nodes, joint distributions of what is placed.

Encodings (TODS 2017, section 5). Vanilla: an attribute has its working bins alone. Hierarchical: as a parent
it may also be taken at a coarser level, so that more parents fit into a useful table. No domain declares a
taxonomy; levels are made from public facts and noisy one-way tables:

- Neighbouring bins of an ordered attribute are joined two by two; ``__other__`` and NULL stay apart if they
  have bins of their own.
- Of an unordered attribute the more frequent half of the bins stay, all others share one.

Post-processing of noisy answers only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.attributes.attribute import Attribute
from dpsyn_sql.fit.arrays import FloatArray, IntArray, fit_joint, snapped
from dpsyn_sql.fit.denoise import Binned
from dpsyn_sql.fit.elimination import joint, work_of
from dpsyn_sql.fit.estimate import Observation
from dpsyn_sql.fit.network import Builder, Network, proper
from dpsyn_sql.methods.independent import over_bins
from dpsyn_sql.planning.queries import MarginalQuery
from dpsyn_sql.rows.sample.systematic import stratified

_GRID = 2.0**-30
# Of a probability.

Parent = tuple[int, int]
"""An attribute (by position) and its level; 0 are the working bins."""


@dataclass(frozen=True, slots=True)
class Family:
    """A child (by position) and its parents, ascending."""

    child: int
    parents: tuple[Parent, ...]


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

    def shape(self, family: Family) -> tuple[int, ...]:
        """Sizes of the parents, then of the child."""
        return (*(self.size(parent) for parent in family.parents), self.size((family.child, 0)))

    def query(self, family: Family) -> MarginalQuery:
        """The question for the table of a family, attributes in domain order."""
        members = sorted([*family.parents, (family.child, 0)])
        bins = self.binned.bins
        return over_bins(self.binned.domain, ((v, self.levels[v][level][bins[v]]) for v, level in members))

    def to_family(self, family: Family, table: NDArray[np.generic]) -> FloatArray:
        """A table from the axes of ``query`` to those of ``shape``."""
        order = sorted([*(attribute for attribute, _ in family.parents), family.child])
        axes = [order.index(v) for v in (*(attribute for attribute, _ in family.parents), family.child)]
        return np.asarray(table.transpose(axes), dtype=np.float64)

    def to_query(self, family: Family, table: FloatArray) -> FloatArray:
        """The way back."""
        placed = [*(attribute for attribute, _ in family.parents), family.child]
        return table.transpose([placed.index(attribute) for attribute in sorted(placed)])


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
    mass = snapped(np.bincount(level, shares).astype(np.float64), _GRID)
    frequent = np.sort(np.argsort(-mass, kind="stable")[: (size + 1) // 2 - 1])
    new_value = np.full(size, frequent.size)
    new_value[frequent] = np.arange(frequent.size)
    return np.asarray(new_value[level])


def cells_of(encoded: Encoded, members: Sequence[Parent]) -> int:
    """Cells of a table over attributes at levels."""
    return math.prod(encoded.size(member) for member in members)


SAMPLE_ROWS = 2**17
"""Rows of the public sample of the model, for joint distributions that are too large to compute."""

MOST_WORK = 2**16
"""The most lines of all steps to a joint distribution that is computed; a few milliseconds."""

_SEED = 0
# Public: the sample is a function of noisy answers.

MIXED = 1e-6
"""The part of the child's own distribution in each of its conditional ones: no value becomes impossible."""


@dataclass
class GrowingNetwork:
    """Nodes so far; the first variables are the attributes in working bins, coarser levels come after them.

    ``build``: the network as it is. ``sample``: values of the variables placed, for ``SAMPLE_ROWS`` rows.
    """

    encoded: Encoded
    build: Builder
    placed: list[int] = field(default_factory=list)
    sample: dict[int, IntArray] = field(default_factory=dict)
    _coarse: dict[Parent, int] = field(default_factory=dict)
    _joints: dict[tuple[Parent, ...], tuple[FloatArray, bool]] = field(default_factory=dict)
    _random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(_SEED))

    @classmethod
    def of(cls, encoded: Encoded) -> GrowingNetwork:
        """Nothing is placed yet."""
        binned, sizes = encoded.binned, [encoded.size((v, 0)) for v in range(len(encoded.levels))]
        return cls(encoded, Builder(binned.domain.names, sizes, binned.bins, binned.within))

    def place(self, family: Family, table: Observation | None, total: float) -> None:
        """Add a child with the distribution that a noisy table of its family gives it; without parents, its
        own."""
        shares = self.encoded.shares[family.child]
        name = self.encoded.binned.domain.names[family.child]
        if table is None:
            conditional, reach = shares[None, :], None
            groups = np.zeros(SAMPLE_ROWS, np.int64)
        else:
            above, exact = self.parents_joint(family.parents)
            conditional = fitted_conditional(table, above.ravel(), shares, total)
            reach = above.ravel() if exact else None
            groups = self._rows(family.parents)
        parents = [self._variable(parent) for parent in family.parents]
        self.build.add(name, parents, (family.child,), conditional, reach)
        self.placed.append(family.child)
        self.sample[family.child] = stratified(groups, conditional, self._random)

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
            values = self.encoded.levels[attribute][level]
            size = self.encoded.size(parent)
            self._coarse[parent] = self.build.variable(size)
            label = f"{self.encoded.binned.domain.names[attribute]}|level {level}"
            table = (values[:, None] == np.arange(size)).astype(np.float64)
            self.build.add(label, (attribute,), (self._coarse[parent],), table)
        return self._coarse[parent]

    def _rows(self, parents: tuple[Parent, ...]) -> IntArray:
        """The configuration of the parents in each row of the sample."""
        rows = np.zeros(SAMPLE_ROWS, np.int64)
        for attribute, level in parents:
            column = self.sample[attribute]
            rows *= self.encoded.size((attribute, level))
            rows += column if level == 0 else self.encoded.levels[attribute][level][column]
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
