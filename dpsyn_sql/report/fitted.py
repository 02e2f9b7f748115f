"""The answers of the door, the model of them, and its marginals with error bars; all public."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.attributes.attribute import Domain
from dpsyn_sql.attributes.shape import Shape
from dpsyn_sql.discovery.attributes import FoundType
from dpsyn_sql.discovery.filling import filled
from dpsyn_sql.discovery.labels import recoded
from dpsyn_sql.discovery.octaves import spread_along_tails
from dpsyn_sql.discovery.one_look import Looked
from dpsyn_sql.fit.network import MarginalModel, Model
from dpsyn_sql.fit.tails import with_estimates
from dpsyn_sql.fit.variances import NO_VARIANCES, Variances, one_way_counts
from dpsyn_sql.planning.families import Families
from dpsyn_sql.planning.plan import Plan
from dpsyn_sql.planning.queries import NoisyContributions, NoisyMarginal, NoisyResidual

Basis = Literal["measured", "summed", "grouped", "modelled"]


def marginal_figures(
    model: MarginalModel,
    measurements: Sequence[NoisyMarginal],
    names: Sequence[str],
    variances: Variances = NO_VARIANCES,
) -> dict[str, Any]:
    """The columns of ``marginal_table`` beside the attributes: a value for each cell of the marginal over
    ``names``, which are attributes of the model, in row-major order of the codes; ``basis`` is one for all.
    ``estimate_error`` is NaN where the variances know none.

    Raises:
        InputError: a marginal that the model cannot answer.
    """
    estimate = model.project(names)
    containing = [table for table in measurements if _contains(table, names)]
    noisy, error = _combine(model.domain, containing, tuple(names), estimate.shape)
    variance = variances.of([model.domain.index(name) for name in names], estimate)
    deviation = np.full(estimate.size, math.nan) if variance is None else np.sqrt(variance).ravel()
    return {
        "estimate": estimate.ravel(),
        "estimate_error": deviation,
        "noisy": noisy.ravel(),
        "standard_error": np.full(estimate.size, error),
        "basis": basis_of(measurements, names),
    }


def basis_of(measurements: Sequence[NoisyMarginal], names: Sequence[str]) -> Basis:
    """How the marginal over several attributes, or over one, is known: as ``marginal_table`` says."""
    containing = [table for table in measurements if _contains(table, names)]
    if containing:
        return "measured" if any(len(table.attrs) == len(names) for table in containing) else "summed"
    together = (table for table in measurements if {*names} <= {*table.attrs} and not table.fitted)
    counted = any(len(table.attrs) == len(names) or not table.composed for table in together)
    return "grouped" if counted and len(names) > 1 else "modelled"


def total_error(measurements: Sequence[NoisyMarginal]) -> float:
    """Standard error (rows) of the total: the inverse-variance mean of the sums of all measured tables. The
    sums of composed tables are those of others."""
    weights = [1 / (table.sigma**2 * table.values.size) for table in measurements if not table.composed]
    return math.sqrt(1 / math.fsum(weights))


def _contains(table: NoisyMarginal, names: Sequence[str]) -> bool:
    """Whether the marginal over original codes can be summed from a table (perhaps over bins)."""
    maps = dict(zip(table.attrs, table.maps or (None,) * len(table.attrs), strict=True))
    there = all(name in maps and maps[name] is None for name in names)
    return there and not table.fitted and (len(names) == len(table.attrs) or not table.composed)


def _combine(
    domain: Domain, tables: Sequence[NoisyMarginal], names: tuple[str, ...], shape: tuple[int, ...]
) -> tuple[NDArray[np.float64], float]:
    """Inverse-variance mean over tables; a cell summed from c cells has variance c sigma^2."""
    weighted, weights = np.zeros(shape), 0.0
    for table in tables:
        summed_axes = tuple(axis for axis, name in enumerate(table.attrs) if name not in names)
        order = [name for name in table.attrs if name in names]
        summed = table.values.sum(axis=summed_axes).transpose([order.index(name) for name in names])
        weight = 1 / (table.sigma**2 * table.values.size / domain.cells(names))
        weighted, weights = weighted + weight * summed, weights + weight
    if not tables:
        return np.full(shape, np.nan), math.nan
    return weighted / weights, math.sqrt(1 / weights)


# -- what was measured and fitted ---------------------------------------------------------------------

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


def rows_wanted(fitted: FittedRelease) -> int:
    """How many rows to write, judged by noisy answers alone."""
    total = max(0, round(fitted.model.total))
    return min(total, ROWS_OF_NOISE) if 4 * total_error(fitted.measurements) > total else total
