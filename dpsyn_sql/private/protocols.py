"""PRIVATE: what stands behind the door: counters of the source, and noise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.accounting.budget import Kind
from dpsyn_sql.domain.hierarchies.base import Hierarchy
from dpsyn_sql.domain.hierarchies.growth import Nodes
from dpsyn_sql.planning.queries import (
    ContributionQuery,
    Exact,
    GridQuery,
    KeyQuery,
    MarginalQuery,
    StepQuery,
    TypesQuery,
)
from dpsyn_sql.planning.row_labels import RowLabel


class Counter(Protocol):
    """PRIVATE: exact counts of marginals of the encoded source."""

    def counted_as(self, query: MarginalQuery) -> MarginalQuery:
        """The marginal to count for a query over bins: over its original codes if others need these too,
        else the query itself."""

    def count(
        self, queries: Sequence[MarginalQuery], labels: Sequence[RowLabel] = ()
    ) -> list[NDArray[np.int64]]:
        """One int64 array of the marginal's full shape per query; ``labels`` are further attributes."""

    def siblings(self, queries: Sequence[MarginalQuery]) -> list[NDArray[np.int64]]:
        """For each query of two attributes the weights of ordered pairs of distinct rows of one unit, at most
        ``WEIGHT`` of a unit: int64 arrays of full shape."""


class DiscoveryCounter(Protocol):
    """PRIVATE: exact counts for discovery; each unit counts for at most k keys or cells."""

    def keys(self, query: KeyQuery, least: int) -> Iterator[tuple[list[Exact], NDArray[np.int64]]]:
        """Distinct values of at least ``least`` distinct units each, with their numbers, in parts: there may
        be more of them than memory holds."""

    def cells(self, query: GridQuery) -> NDArray[np.int64]:
        """Distinct units per code of the grid, int64[grid.size]."""

    def steps(self, query: StepQuery) -> NDArray[np.int64]:
        """Distinct units by the last step that fits, int64[len(query.steps) + 1]; at 0 if none does."""

    def types(self, query: TypesQuery) -> NDArray[np.int64]:
        """Distinct units per class of text, int64[len(CLASSES)]."""

    def contributions(self, query: ContributionQuery) -> NDArray[np.int64]:
        """Units by number of bounded rows, int64[query.most]."""

    def nodes(self, hierarchies: tuple[Hierarchy, ...], nodes: Nodes) -> NDArray[np.int64]:
        """Rows of nodes that share no row, int64[nodes]: rows, not units, and at most k of a unit."""

    def outside(self, hierarchies: tuple[Hierarchy, ...]) -> NDArray[np.int64]:
        """Rows outside of a hierarchy, and rows without a value, int64[2], among the same rows of units."""

    def largest(
        self, hierarchies: tuple[Hierarchy, ...], nodes: Nodes, refined: NDArray[np.bool_]
    ) -> NDArray[np.int64]:
        """Rows of the largest child of each node by each part, int64[nodes, parts]; 0 where ``refined`` (bool
        of the same shape) says that it has no children by a part."""


class NoiseSource(Protocol):
    """Integer noise; there is no seed."""

    def gaussian(self, values: NDArray[np.int64], sigma: float) -> NDArray[np.int64]:
        """Add independent discrete Gaussian noise of scale ``sigma`` to a flat vector.

        Values and scale are in steps of an event's lattice.
        """

    def laplace(self, values: NDArray[np.int64], scale: float) -> NDArray[np.int64]:
        """Add independent discrete Laplace noise of ``scale`` to a flat vector."""

    def select(self, scores: NDArray[np.int64], scale: float, kind: Kind, number: int) -> NDArray[np.int64]:
        """Indices of ``number`` candidates with high scores, best first: exponential mechanism or
        permute-and-flip, peeled."""
