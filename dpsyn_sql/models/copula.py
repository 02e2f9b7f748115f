"""The Gaussian copula as a model: the fitted pairs, and rows from latent normals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.domain.attributes import Domain
from dpsyn_sql.fit.copula import FittedCopula, FixedCopula
from dpsyn_sql.fit.model_tables import ModelTables, affordable, tables_of_codes
from dpsyn_sql.models.asked import checked_names, fault
from dpsyn_sql.planning.deadline import NO_DEADLINE, Deadline
from dpsyn_sql.sample.copula import CopulaSampler, OneNormalSampler
from dpsyn_sql.sample.independent import ProductSampler

FloatArray = NDArray[np.float64]

_MOST_ATTRIBUTES = 2


@dataclass(frozen=True, slots=True)
class CopulaModel:
    """A fitted copula over the codes of a domain."""

    domain: Domain
    fitted: FittedCopula | FixedCopula

    @property
    def total(self) -> float:
        """Estimated number of (bounded) rows of the source; may be negative."""
        return self.fitted.margins.total

    def supports(self, attrs: Sequence[str]) -> bool:
        """Whether they are one or two attributes."""
        return not fault(self.domain, attrs, _MOST_ATTRIBUTES)

    def project(self, attrs: Sequence[str]) -> FloatArray:
        """Expected counts of one or two attributes; sums to max(0, total).

        Raises:
            InputError: more than two attributes, none, one twice or an unknown one.
        """
        names = checked_names(self.domain, attrs, _MOST_ATTRIBUTES)
        scale, fitted = max(0.0, self.total), self.fitted
        if len(names) == 1:
            return scale * fitted.margins.probabilities[names[0]]
        return scale * fitted.pair(*names)

    def network(self) -> None:
        """Latent normals are not a network of tables."""
        return

    def tables(self) -> ModelTables:
        """All attributes and pairs."""
        total, names, sizes = max(self.total, 1e-300), self.domain.names, self.domain.shape()
        ones, room = affordable(combinations(range(len(names)), 1), sizes)
        pairs, _ = affordable(combinations(range(len(names)), 2), sizes, room)
        alone = ((scope, self.project([names[scope[0]]]) / total) for scope in ones)
        share = max(0.0, self.total) / total
        joint = ((scope, share * self.fitted.pair(*(names[i] for i in scope))) for scope in pairs)
        return tables_of_codes(sizes, (*alone, *joint))

    def sampler(self, deadline: Deadline = NO_DEADLINE) -> CopulaSampler | ProductSampler | OneNormalSampler:
        """Rows that meet the one-way counts; there is no faster way to draw them."""
        if isinstance(self.fitted, FittedCopula):
            return CopulaSampler(self.fitted)
        probabilities = tuple(self.fitted.margins.probabilities[name] for name in self.domain.names)
        return OneNormalSampler(probabilities) if self.fitted.one else ProductSampler(probabilities)
