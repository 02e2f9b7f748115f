"""A model of a table that is one key: how many rows each code has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.domain.attributes import Domain
from dpsyn_sql.fit.consistency import Margins
from dpsyn_sql.fit.model_tables import ModelTables
from dpsyn_sql.fit.network import Network, proper
from dpsyn_sql.models.product import ProductModel
from dpsyn_sql.planning.deadline import NO_DEADLINE, Deadline
from dpsyn_sql.sample.counted import CountedSampler


@dataclass(frozen=True, slots=True)
class CountedModel:
    """Rows by code of the only attribute of ``domain``.

    ``rows`` (float64[size], none negative) add up to max(0, ``total``). ``exact``: they are whole numbers,
    and a table of ``total`` rows has just these.
    """

    domain: Domain
    total: float
    rows: NDArray[np.float64]
    exact: bool

    @property
    def _product(self) -> ProductModel:
        own = proper(self.rows)
        return ProductModel(self.domain, Margins(self.total, {self.domain.names[0]: own / own.sum()}))

    def supports(self, attrs: Sequence[str]) -> bool:
        """Whether it is the attribute, named once."""
        return self._product.supports(attrs)

    def project(self, attrs: Sequence[str]) -> NDArray[np.float64]:
        """The rows by code; they sum to max(0, total).

        Raises:
            InputError: no attribute, one twice, or an unknown one.
        """
        return self._product.project(attrs)

    def network(self) -> Network:
        """One node without parents."""
        return self._product.network()

    def tables(self) -> ModelTables:
        """One bin."""
        return self._product.tables()

    def sampler(self, deadline: Deadline = NO_DEADLINE) -> CountedSampler:
        """Rows that meet the counts; no way is faster."""
        return CountedSampler(self.rows)
