"""The answers of the door, the model of them, and its number of rows; all public."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from dpsyn_sql.discovery.attributes import FoundType
from dpsyn_sql.discovery.filling import filled
from dpsyn_sql.discovery.looked import Looked
from dpsyn_sql.discovery.octave_fills import spread_along_tails
from dpsyn_sql.discovery.recoding import recoded
from dpsyn_sql.domain.shape import Shape
from dpsyn_sql.fit.model import Model
from dpsyn_sql.fit.tails import with_estimates
from dpsyn_sql.fit.variances import NO_VARIANCES, Variances, one_way_counts
from dpsyn_sql.planning.families import Families
from dpsyn_sql.planning.plan import Plan
from dpsyn_sql.planning.queries import NoisyContributions, NoisyMarginal, NoisyResidual
from dpsyn_sql.report.marginals import total_error

ROWS_OF_NOISE = 1_000_000
"""The most rows that are written, without rows=, if the noisy total is less than four standard errors above
zero. At epsilon 1e-6 noise alone gives ten million rows and more (docs/decisions/0008)."""


@dataclass(frozen=True, slots=True)
class FittedRelease:
    """``shape`` and ``plan`` are complete: nothing is left to be discovered. ``types``: what was found of
    columns of text without a stated type. ``variances``: of the model's estimates. ``families``: of rows that
    stay together; the model has their domain, and its total are units. ``answers``: those that
    ``measurements`` show, as the door gave them; a unit counts ``weight`` in them.
    ``beyond``: of columns of one value or none the part of the units that may have another one, where
    discovery counted them. ``looks``: what discovery counted of columns that it looked at once, in units."""

    shape: Shape
    plan: Plan
    model: Model
    measurements: tuple[NoisyMarginal, ...]
    contributions: NoisyContributions | None
    types: Mapping[str, FoundType] = field(default_factory=dict)
    variances: Variances = NO_VARIANCES
    families: Families | None = None
    answers: tuple[NoisyMarginal | NoisyResidual, ...] = ()
    weight: int = 1
    beyond: Mapping[str, float] = field(default_factory=dict)
    looks: tuple[Looked, ...] = ()

    @property
    def with_values(self) -> FittedRelease:
        """The same with bins filled as the noisy answers say, and codes that are noise written as others. The
        model and its codes stay as they are."""
        domain = self.shape.domain
        counts = with_estimates(domain, one_way_counts(domain, self.measurements))
        domain = spread_along_tails(filled(domain, counts), counts)
        shape = recoded(replace(self.shape, measured=domain.attributes), counts, self.model.total)
        families = None if self.families is None else self.families.with_attributes(shape.domain)
        domain = domain if families is None else families.domain
        return replace(self, shape=shape, plan=replace(self.plan, domain=domain), families=families)


def rows_wanted(made: FittedRelease) -> int:
    """How many rows to write, judged by noisy answers alone."""
    total = max(0, round(made.model.total))
    return min(total, ROWS_OF_NOISE) if 4 * total_error(made.measurements) > total else total
