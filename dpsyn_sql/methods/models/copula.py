"""Copulas as models: the Gaussian copula, and DPCopula over ordered codes in each part of a split."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from dpsyn_sql.domain.attributes import Domain
from dpsyn_sql.fit.arrays import FloatArray
from dpsyn_sql.fit.copula import FittedCopula, FixedCopula
from dpsyn_sql.fit.gaussian import discretised
from dpsyn_sql.fit.latent import FittedLatent
from dpsyn_sql.fit.network import ModelTables, affordable, tables_of_codes
from dpsyn_sql.methods.models.checks import Answering, over_codes
from dpsyn_sql.planning.deadline import NO_DEADLINE, Deadline
from dpsyn_sql.rows.sample.copula import CopulaSampler, LatentSampler, OneNormalSampler
from dpsyn_sql.rows.sample.quotas import ProductSampler


class _OfNormals(Answering):
    """What all copulas have in common: they answer marginals of one or two attributes."""

    __slots__ = ()

    most = 2

    def network(self) -> None:
        """Latent normals are not a network of tables."""
        return


@dataclass(frozen=True, slots=True)
class CopulaModel(_OfNormals):
    """A fitted copula over the codes of a domain."""

    domain: Domain
    fitted: FittedCopula | FixedCopula

    @property
    def total(self) -> float:
        """Estimated number of (bounded) rows of the source; may be negative."""
        return self.fitted.margins.total

    def _counts(self, places: tuple[int, ...]) -> FloatArray:
        names, fitted = [self.domain.names[place] for place in places], self.fitted
        return max(0.0, self.total) * (
            fitted.margins.probabilities[names[0]] if len(names) == 1 else fitted.pair(*names)
        )

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


@dataclass(frozen=True, slots=True)
class LatentModel(_OfNormals):
    """A fitted copula in each part, over the codes of a domain.

    Marginals are those of the normals, cut into working bins; codes are independent within bins. In the
    rows, codes of one bin follow the normals too.
    """

    domain: Domain
    fitted: FittedLatent

    @property
    def total(self) -> float:
        """Estimated number of (bounded) rows of the source; may be negative."""
        return self.fitted.total

    def _counts(self, places: tuple[int, ...]) -> FloatArray:
        ordered, table = self.fitted.ordered, self._over_bins(places)
        return over_codes(max(0.0, self.total) * table, places, ordered.bins, ordered.within)

    def tables(self) -> ModelTables:
        """All attributes and pairs, over working bins."""
        ordered = self.fitted.ordered
        sizes = [share.size for share in ordered.shares]
        ones, room = affordable(combinations(range(len(sizes)), 1), sizes)
        pairs, _ = affordable(combinations(range(len(sizes)), 2), sizes, room)
        return ModelTables(
            ordered.bins, ordered.within, tuple((scope, self._over_bins(scope)) for scope in (*ones, *pairs))
        )

    def sampler(self, deadline: Deadline = NO_DEADLINE) -> LatentSampler:
        """Rows with low variance; there is no faster way to draw them."""
        return LatentSampler(self.fitted)

    def _over_bins(self, positions: Sequence[int]) -> FloatArray:
        """Probabilities over the working bins of one or two attributes."""
        fitted = self.fitted
        shares = fitted.parts.ravel()
        if len(positions) == 1:
            return np.asarray(shares @ self._given_part(positions[0]))
        first, second = positions
        if first in fitted.latent and second in fitted.latent:
            i, j = fitted.latent.index(first), fitted.latent.index(second)
            joint = discretised(fitted.margins[i], fitted.margins[j], fitted.correlations[:, i, j])
            return np.asarray(np.tensordot(shares, joint, axes=1))
        # Given the part, an attribute that splits has one value: whatever goes with it is independent.
        return np.asarray((self._given_part(first) * shares[:, None]).T @ self._given_part(second))

    def _given_part(self, position: int) -> FloatArray:
        """Probabilities (parts, bins) of an attribute in each part."""
        fitted = self.fitted
        if position in fitted.latent:
            return fitted.margins[fitted.latent.index(position)]
        axis = fitted.split.index(position)
        codes = np.unravel_index(np.arange(fitted.parts.size), fitted.parts.shape)[axis]
        return np.eye(fitted.parts.shape[axis])[codes]
