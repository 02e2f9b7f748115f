"""Rows of any network: node by node, parents first, by systematic sampling."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.errors import InternalError
from dpsyn_sql.fit.network import Network, Node
from dpsyn_sql.sample.quotas import code_type
from dpsyn_sql.sample.systematic import LOW_VARIANCE, side_by_side, systematic

Codes = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class NetworkSampler:
    """Draws rows of a network: among the rows of one parent configuration each outcome gets its expected
    number, within one."""

    network: Network
    drawn: ClassVar[str] = LOW_VARIANCE

    def batches(self, rows: int, seed: int) -> Iterator[NDArray[np.integer[Any]]]:
        """Arrays (batch, attributes) of codes in domain order, unsigned, ``rows`` in total.

        Deterministic in ``seed`` (not negative) on one kind of machine; rows <= 0 yields nothing.
        """
        return side_by_side(rows, seed, self._batch)

    def _batch(self, rows: int, generator: np.random.Generator) -> NDArray[np.integer[Any]]:
        sizes, columns = self.network.sizes, dict[int, Codes]()
        for node in self.network.nodes:
            lines = _lines(node, sizes, columns, rows, generator)
            columns.update(zip(node.variables, node.values[lines].T, strict=True))
        own = [sizes[variable] for variable in self.network.codes]
        codes = np.zeros((rows, len(own)), dtype=code_type(max(own, default=1)))
        for place, variable in enumerate(self.network.codes):
            if variable in columns:  # otherwise it has one value
                codes[:, place] = columns[variable]
        return codes


def _lines(
    node: Node, sizes: tuple[int, ...], columns: dict[int, Codes], rows: int, generator: np.random.Generator
) -> Codes:
    """A line of the node for each row.

    Raises:
        InternalError: the node has no line for the configuration of a row's parents.
    """
    groups, owners = np.zeros(rows, np.int64), np.zeros(node.weights.size, np.int64)
    if node.parents:
        shape = [sizes[parent] for parent in node.parents]
        asked = np.ravel_multi_index(
            tuple(columns.get(parent, np.zeros(rows, np.int64)) for parent in node.parents), shape
        )
        configurations, owners = np.unique(
            np.ravel_multi_index(tuple(node.given.T), shape), return_inverse=True
        )
        groups = np.minimum(np.searchsorted(configurations, asked), configurations.size - 1)
        if np.any(configurations[groups] != asked):
            raise InternalError(f"the network has no line of {node.label!r} for parents that it draws")
        owners = owners.ravel()
    sums = np.cumsum(node.weights)
    begins = np.flatnonzero(np.append(True, owners[1:] != owners[:-1]))
    before = (sums - node.weights)[begins]
    whole = np.append(before[1:], sums[-1]) - before
    return systematic(groups, owners, (sums - before[owners]) / whole[owners], generator)
