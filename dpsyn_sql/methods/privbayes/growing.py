"""The network as far as it is grown: its nodes, and joint distributions of the attributes placed so far.

Post-processing of noisy answers only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.fit.code_nodes import code_nodes
from dpsyn_sql.fit.consistency import raked, simplex_projection
from dpsyn_sql.fit.elimination import joint, work_of
from dpsyn_sql.fit.estimate import Observation
from dpsyn_sql.fit.network import Network, Node, node_of, proper
from dpsyn_sql.fit.shrinkage import shrink_singular_values
from dpsyn_sql.methods.privbayes.encoding import Encoded, Family, Parent
from dpsyn_sql.sample.systematic import stratified

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

SAMPLE_ROWS = 2**17
"""Rows of the public sample of the model, for joint distributions that are too large to compute."""

MOST_WORK = 2**16
"""The most lines of all steps to a joint distribution that is computed; a few milliseconds."""

_SEED = 0
# Public: the sample is a function of noisy answers.

MIXED = 1e-6
"""The part of the child's own distribution in each of its conditional ones: no value becomes impossible."""


@dataclass
class Grown:
    """Nodes so far; the first variables are the attributes in working bins, coarser levels come after them.

    ``sizes``: values of each variable. ``sample``: values of the variables placed, for ``SAMPLE_ROWS`` rows.
    """

    encoded: Encoded
    sizes: list[int]
    nodes: list[Node] = field(default_factory=list)
    placed: list[int] = field(default_factory=list)
    sample: dict[int, IntArray] = field(default_factory=dict)
    _coarse: dict[Parent, int] = field(default_factory=dict)
    _joints: dict[tuple[Parent, ...], tuple[FloatArray, bool]] = field(default_factory=dict)
    _random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(_SEED))

    @classmethod
    def of(cls, encoded: Encoded) -> Grown:
        """Nothing is placed yet."""
        return cls(encoded, [encoded.size((v, 0)) for v in range(len(encoded.levels))])

    def place(self, family: Family, table: Observation | None, total: float) -> None:
        """Add a child with the distribution that a noisy table of its family gives it; without parents, its
        own."""
        own = self.encoded.shares[family.child]
        name = self.encoded.binned.domain.names[family.child]
        if table is None:
            conditional, reach = own[None, :], None
            groups = np.zeros(SAMPLE_ROWS, np.int64)
        else:
            above, exact = self.parents_joint(family.parents)
            conditional = fitted_conditional(table, above.ravel(), own, total)
            reach = above.ravel() if exact else None
            groups = self._rows(family.parents)
        parents = [self._variable(parent) for parent in family.parents]
        shape = [self.sizes[parent] for parent in parents]
        node = node_of(name, parents, (family.child,), conditional.reshape(*shape, -1), reach)
        self.nodes.append(node)
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
        binned = self.encoded.binned
        names, sizes, nodes = binned.domain.names, list(self.sizes), list(self.nodes)
        codes = list(range(len(names)))
        for index, bins in enumerate(binned.bins):
            if not np.array_equal(bins, np.arange(bins.size)):
                codes[index] = len(sizes)
                sizes.append(bins.size)
                nodes += code_nodes(names[index], index, codes[index], sizes, bins, binned.within[index])
        return Network(tuple(sizes), tuple(nodes), tuple(codes))

    def _joint(self, parents: tuple[Parent, ...]) -> tuple[FloatArray, bool]:
        attributes = [attribute for attribute, _ in parents]
        network = Network(tuple(self.sizes), tuple(self.nodes), ())
        work = work_of(network, attributes)
        if work is not None and work <= MOST_WORK:
            table = joint(network, attributes)
            for axis, (attribute, level) in enumerate(parents):
                table = _joined(table, axis, self.encoded.levels[attribute][level])
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
            self._coarse[parent] = len(self.sizes)
            self.sizes.append(size)
            label = f"{self.encoded.binned.domain.names[attribute]}|level {level}"
            table = (values[:, None] == np.arange(size)).astype(np.float64)
            self.nodes.append(node_of(label, (attribute,), (self._coarse[parent],), table))
        return self._coarse[parent]

    def _rows(self, parents: tuple[Parent, ...]) -> IntArray:
        """The configuration of the parents in each row of the sample."""
        rows = np.zeros(SAMPLE_ROWS, np.int64)
        for attribute, level in parents:
            column = self.sample[attribute]
            rows *= self.encoded.size((attribute, level))
            rows += column if level == 0 else self.encoded.levels[attribute][level][column]
        return rows


def fitted_conditional(table: Observation, above: FloatArray, own: FloatArray, total: float) -> FloatArray:
    """Distributions of a child (configurations of the parents, child's values) from a noisy joint table.

    What the table says beyond independence is shrunk for its noise. The joint distribution keeps to the
    parents' in the model, and to the child's own.

    Args:
        table: (parents' values ..., child's values), rows, one sigma.
        above: the parents' joint distribution in the model, flat.
        own: the child's distribution.
        total: rows, above 0.
    """
    values = table.values.reshape(above.size, own.size)
    apart = total * np.outer(above, own)
    signal = shrink_singular_values(doubly_centred(values - apart), float(table.sigma))
    joint_table = raked(simplex_projection(apart + signal, total) / total, above, own)
    conditional = proper(joint_table) / proper(joint_table).sum(axis=1, keepdims=True)
    reached = joint_table.sum(axis=1, keepdims=True) > 0
    return np.where(reached, (1 - MIXED) * conditional + MIXED * own, own)


def doubly_centred(table: FloatArray) -> FloatArray:
    """Row and column means removed."""
    return np.asarray(
        table - table.mean(axis=1, keepdims=True) - table.mean(axis=0, keepdims=True) + table.mean()
    )


def _joined(table: FloatArray, axis: int, level: IntArray) -> FloatArray:
    """Values of one axis added up to those of a coarser level."""
    shape = list(table.shape)
    shape[axis] = int(level.max()) + 1
    found = np.zeros(shape)
    np.add.at(np.moveaxis(found, axis, 0), level, np.moveaxis(table, axis, 0))
    return found
