"""Rows of any network, node by node, parents first, by systematic sampling."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpsyn_sql.fit.arrays import Codes
from dpsyn_sql.fit.network import Network
from dpsyn_sql.rows.sample.lines import Columns, Lines
from dpsyn_sql.rows.sample.quotas import code_type
from dpsyn_sql.rows.sample.systematic import LOW_VARIANCE, side_by_side


@dataclass(frozen=True, slots=True)
class NetworkSampler:
    """Draws rows of a network: among the rows of one parent configuration each outcome gets its expected
    number, within one."""

    network: Network
    drawn: ClassVar[str] = LOW_VARIANCE

    def batches(self, rows: int, seed: int) -> Iterator[Codes]:
        """Arrays (batch, attributes) of codes in domain order, unsigned, ``rows`` in total.

        Deterministic in ``seed`` (not negative) on one kind of machine; rows <= 0 yields nothing.

        Raises:
            InternalError: a node has no line for the configuration of a row's parents.
        """
        lines = [Lines(node, self.network.sizes) for node in self.network.nodes]
        own = [self.network.sizes[variable] for variable in self.network.codes]
        dtype = code_type(max(own, default=1))

        def batch(size: int, generator: np.random.Generator) -> Codes:
            columns: Columns = {}
            for node in lines:
                node.draw(columns, None, size, generator)
            codes = np.zeros((len(own), size), dtype)
            for place, variable in enumerate(self.network.codes):
                if variable in columns:  # otherwise it has one value
                    codes[place] = columns[variable]
            return codes.T

        return side_by_side(rows, seed, batch)
