"""The Gaussian copula: all one-way and two-way marginals (see ``fit/copula.py``).

The paper's baselines replace the correlation matrix (Differentially Private Release of High-Dimensional
Datasets using the Gaussian Copula, table 1). They need no pairs, so all of the budget pays for one-way
marginals:

- ``none`` (no-cor): probabilities of pairs are products of one-way probabilities.
- ``identity`` (cop-ID): independent latent normals. The same distribution as ``none``; the paper has both.
- ``ones`` (cop-1): one latent normal for all codes (``fit/copula.py`` says which rows it gives).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.domain.attributes import Domain
from dpsyn_sql.errors import PlanTooLarge
from dpsyn_sql.fit.consistency import Measurements, fit_margins
from dpsyn_sql.fit.copula import FixedCopula, fit_copula
from dpsyn_sql.methods.models.copula import CopulaModel
from dpsyn_sql.methods.recipe import Static
from dpsyn_sql.planning.plan import MeasureStep
from dpsyn_sql.planning.queries import MarginalQuery, NoisyMarginal

SHARES = (1, 4)
"""Weights of the one-way and the two-way marginals. Pair tables contain the one-way tables too, but for
large attributes only as sums of many noisy cells (docs/results_details.md)."""

MAX_CODES = 12_000
"""The most codes of all attributes. A matrix of latent correlations then takes 1.1 GiB, and a fit needs
several. If the attributes have similar sizes, fewer codes already exceed the limit on cells of pairs."""

CORRELATIONS = ("fitted", "none", "identity", "ones")


@dataclass(frozen=True, slots=True)
class Copula(Static):
    """All one-way and two-way marginals, joined by a Gaussian copula over the values of the columns.

    ``correlation``: fitted, none, identity or ones; the last three ask for one-way marginals alone.
    """

    name = "copula"
    model = CopulaModel
    correlation: str = "fitted"

    choices: ClassVar = {"correlation": CORRELATIONS}

    def steps(self, domain: Domain, budget: Budget) -> list[MeasureStep]:
        """One-way marginals, then all pairs; only one-way marginals of a single attribute, or if the
        correlation is not fitted.

        Raises:
            InputError: there is no such correlation.
            PlanTooLarge: more than ``MAX_CODES`` codes.
        """
        one_way = tuple(MarginalQuery((name,)) for name in domain.names)
        if self.checked().correlation != "fitted":
            return [MeasureStep("one-way", one_way, budget)]
        codes = sum(domain.shape())
        if codes > MAX_CODES:
            raise PlanTooLarge(
                f"The plan is too large: the copula needs a latent variable for each of {codes:,} codes, "
                f"above the limit of {MAX_CODES:,}. Declare fewer bins or categories, leave out a column "
                "with exclude=, or use method='adaptive'."
            )
        two_way = tuple(MarginalQuery(pair) for pair in combinations(domain.names, 2))
        if not two_way:
            return [MeasureStep("one-way", one_way, budget)]
        first, second = budget.split(SHARES)
        return [MeasureStep("one-way", one_way, first), MeasureStep("two-way", two_way, second)]

    def fitted(self, domain: Domain, answers: Sequence[NoisyMarginal]) -> CopulaModel:
        """A correlation of latent normals for each pair, and the one-way marginals."""
        if self.correlation != "fitted":
            margins = fit_margins(domain, Measurements(answers))
            return CopulaModel(domain, FixedCopula(margins, one=self.correlation == "ones"))
        return CopulaModel(domain, fit_copula(domain, answers))
