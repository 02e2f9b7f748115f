"""The stored form of a model: joint tables over working bins."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.attributes.attribute import Domain
from dpsyn_sql.errors import InputError
from dpsyn_sql.fit.arrays import FloatArray, IntArray
from dpsyn_sql.methods.models.margins import Answering, over_codes


@dataclass(frozen=True, slots=True)
class StoredTable:
    """Joint probabilities over working bins.

    ``scope`` are positions of attributes, ``shape`` their numbers of bins. ``probabilities`` (float32) belong
    to ``cells`` (int64, row-major numbers); missing cells have probability 0.
    """

    scope: tuple[int, ...]
    shape: tuple[int, ...]
    cells: IntArray
    probabilities: NDArray[np.float32]

    @property
    def size(self) -> int:
        """Number of cells, empty ones included."""
        return math.prod(self.shape)

    def summed(self, scope: Sequence[int]) -> FloatArray:
        """The table over some of its attributes, axes in the order of ``scope``."""
        numbers, shape = np.zeros(self.cells.size, np.int64), []
        for position in scope:
            axis = self.scope.index(position)
            size, stride = self.shape[axis], math.prod(self.shape[axis + 1 :])
            numbers = numbers * size + self.cells // stride % size
            shape.append(size)
        sums = np.bincount(numbers, self.probabilities, math.prod(shape))
        return np.asarray(sums, np.float64).reshape(shape)


@dataclass(frozen=True, slots=True)
class StoredModel(Answering):
    """A model read back from where it is stored.

    ``bins[i]`` (int64, one per code of attribute i) is the working bin of each code, ``within[i]`` (float64)
    its share of the bin. ``most``: the most attributes that the fitted model answers together, None for no
    limit. The database that stores the model draws its rows.
    """

    domain: Domain
    total: float
    bins: tuple[IntArray, ...]
    within: tuple[FloatArray, ...]
    tables: tuple[StoredTable, ...]
    most: int | None = None
    _holding: dict[int, list[StoredTable]] = field(init=False, repr=False, compare=False)
    """The tables of each attribute: of hundreds of attributes tens of thousands of tables are stored."""

    def __post_init__(self) -> None:
        holding: dict[int, list[StoredTable]] = {}
        for table in self.tables:
            for position in table.scope:
                holding.setdefault(position, []).append(table)
        object.__setattr__(self, "_holding", holding)

    def _answers(self, positions: tuple[int, ...]) -> bool:
        """Whether a stored table holds them all."""
        return self._smallest(positions) is not None

    def _counts(self, positions: tuple[int, ...]) -> FloatArray:
        """Summed from the smallest table that holds the attributes."""
        table = self._smallest(positions)
        if table is None:
            raise InputError(self._without([self.domain.names[position] for position in positions]))
        return over_codes(max(0.0, self.total) * table.summed(positions), positions, self.bins, self.within)

    def _smallest(self, positions: Sequence[int]) -> StoredTable | None:
        wanted = set(positions)
        candidates = min((self._holding.get(position, []) for position in wanted), key=len)
        holding = (table for table in candidates if wanted <= set(table.scope))
        return min(holding, key=lambda table: table.size, default=None)

    def _without(self, names: Sequence[str]) -> str:
        """Why no table holds the attributes, in the words of the fitted model. Every fitted model answers
        pairs, so a missing pair was left out when the model was stored."""
        if len(names) <= 2:
            return (
                f"no table of {', '.join(map(repr, names))} is stored with the release, because the largest "
                "tables are left out; count them in rows of sample()"
            )
        return (
            "this model answers marginals of one or two attributes, and of more attributes if they "
            "were fitted together; count others in the synthetic table"
        )
