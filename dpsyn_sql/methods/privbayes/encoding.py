"""Encodings: the working bins of each attribute, and coarser levels of them for parents.

Vanilla: an attribute has its working bins alone. Hierarchical (TODS 2017, section 5): as a parent it may also
be taken at a coarser level, so that more parents fit into a useful table. No domain declares a taxonomy;
levels are made from public facts and noisy one-way tables:

- Neighbouring bins of an ordered attribute are joined two by two; ``__other__`` and NULL stay apart if they
  have bins of their own.
- Of an unordered attribute the more frequent half of the bins stay, all others share one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.domain.attributes import Attribute
from dpsyn_sql.fit.bins import Binned
from dpsyn_sql.fit.reproducible import snapped
from dpsyn_sql.planning.queries import Map, MarginalQuery

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

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
        sizes = (tuple(int(level.max()) + 1 for level in own) for own in levels)
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
        names, maps = list[str](), list[Map | None]()
        for attribute, level in members:
            own = self.levels[attribute][level][self.binned.bins[attribute]]
            names.append(self.binned.domain.names[attribute])
            whole = int(own.max()) + 1 == own.size
            maps.append(None if whole else tuple(own.tolist()))
        return MarginalQuery(tuple(names), tuple(maps) if any(maps) else ())

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
    kept = np.sort(np.argsort(-mass, kind="stable")[: (size + 1) // 2 - 1])
    place = np.full(size, kept.size)
    place[kept] = np.arange(kept.size)
    return np.asarray(place[level])


def cells_of(encoded: Encoded, members: Sequence[Parent]) -> int:
    """Cells of a table over attributes at levels."""
    return math.prod(encoded.size(member) for member in members)
