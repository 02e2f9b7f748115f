"""Models of independent attributes: of their margins, or of one key, how many rows each code has."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import numpy as np

from dpsyn_sql.domain.attributes import Domain
from dpsyn_sql.fit.arrays import FloatArray
from dpsyn_sql.fit.consistency import Margins
from dpsyn_sql.fit.model import Sampler
from dpsyn_sql.fit.network import ModelTables, Network, joined, node_of, proper
from dpsyn_sql.methods.models.checks import Answering
from dpsyn_sql.planning.deadline import NO_DEADLINE, Deadline
from dpsyn_sql.rows.sample.quotas import CountedSampler, ProductSampler


@dataclass(frozen=True, slots=True)
class ProductModel(Answering):
    """Independent attributes: ``margins`` holds the total and the probabilities of each attribute."""

    domain: Domain
    margins: Margins

    @property
    def total(self) -> float:
        """Estimated number of (bounded) rows of the source; may be negative."""
        return self.margins.total

    @property
    def _probabilities(self) -> tuple[FloatArray, ...]:
        """Of each attribute, in domain order."""
        return tuple(self.margins.probabilities[name] for name in self.domain.names)

    def _counts(self, places: tuple[int, ...]) -> FloatArray:
        """The outer product of the margins."""
        own = self._probabilities
        return np.asarray(max(0.0, self.total) * reduce(np.multiply.outer, (own[place] for place in places)))

    def network(self) -> Network:
        """Attributes without parents."""
        sizes = self.domain.shape()
        nodes = [
            node_of(name, (), (index,), proper(own))
            for index, (name, own) in enumerate(zip(self.domain.names, self._probabilities, strict=True))
            if sizes[index] > 1
        ]
        return Network(sizes, joined(nodes, sizes), tuple(range(len(sizes))))

    def tables(self) -> ModelTables:
        """One bin per attribute, so that every marginal is a product of shares."""
        sizes = self.domain.shape()
        return ModelTables(
            tuple(np.zeros(size, np.int64) for size in sizes),
            tuple(np.asarray(own, np.float64) for own in self._probabilities),
            ((tuple(range(len(sizes))), np.ones(1)),),
        )

    def sampler(self, deadline: Deadline = NO_DEADLINE) -> Sampler:
        """Rows that meet the one-way counts; no way is faster."""
        return ProductSampler(self._probabilities)


@dataclass(frozen=True, slots=True)
class CountedModel(ProductModel):
    """Rows by code of the only attribute of ``domain``.

    ``rows`` (float64[size], none negative) add up to max(0, ``total``). ``exact``: they are whole numbers,
    and a table of ``total`` rows has just these.
    """

    rows: FloatArray
    exact: bool

    @classmethod
    def of(cls, domain: Domain, total: float, rows: FloatArray, exact: bool) -> CountedModel:
        """The model of these rows."""
        own = proper(rows)
        return cls(domain, Margins(total, {domain.names[0]: own / own.sum()}), rows, exact)

    def sampler(self, deadline: Deadline = NO_DEADLINE) -> Sampler:
        """Rows that meet the counts; no way is faster."""
        return CountedSampler(self.rows)
