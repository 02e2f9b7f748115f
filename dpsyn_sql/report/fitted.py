"""The answers of the door, the model of them, and its marginals with error bars; all public."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import pandas as pd
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
from dpsyn_sql.methods.models.margins import checked_names
from dpsyn_sql.planning.families import Families
from dpsyn_sql.planning.plan import Plan
from dpsyn_sql.planning.queries import NoisyContributions, NoisyMarginal, NoisyResidual
from dpsyn_sql.report.labels import code_labels

Basis = Literal["measured", "summed", "grouped", "modelled"]

_FIGURES = ("estimate", "estimate_error", "noisy", "standard_error")


class MarginalTable(pd.DataFrame):
    """Counts with their errors: printed as whole rows and in full width, kept as they are; below them what
    ``attrs["counts"]`` says of what is counted."""

    @property
    def _constructor(self) -> type[MarginalTable]:
        return MarginalTable

    def __repr__(self) -> str:
        shown = self._as_shown()
        most = pd.get_option("display.max_rows")
        text: str = shown.to_string(max_rows=most, min_rows=pd.get_option("display.min_rows"))
        cut = "" if most is None or len(shown) <= most else f"\n\n[{len(shown):,} rows]"
        counts = f"\n\n{self.attrs['counts']}" if "counts" in self.attrs else ""
        return f"{text}{cut}{counts}"

    def _repr_html_(self) -> str:
        shown: str = self._as_shown()._repr_html_()  # type: ignore[operator]
        return shown

    def _as_shown(self) -> pd.DataFrame:
        """The figures as text. An attribute may have the name of a figure: it is no float."""
        columns = []
        for position, name in enumerate(self.columns):
            column = pd.Series(self.iloc[:, position])
            figures = name in _FIGURES and column.dtype == np.float64
            columns.append(column.map(_rows) if figures else column)
        return pd.concat(columns, axis=1) if columns else pd.DataFrame(self)


def _rows(number: float) -> str:
    """Whole rows; the first digit of less than one, and nothing where nothing is known."""
    if math.isnan(number):
        return ""
    return f"{number:,.0f}" if abs(number) >= 1 or number == 0 else f"{number:.1g}"


def marginal_table(
    model: MarginalModel,
    measurements: Sequence[NoisyMarginal],
    attrs: Sequence[str],
    variances: Variances = NO_VARIANCES,
) -> MarginalTable:
    """One row per cell of the marginal over ``attrs``, in row-major order of the codes.

    Columns: the attributes (labels, bins as text, None for NULL), then

    - ``estimate``: expected count of the model, in rows; denoised (ordered one-ways smoothed, rare codes
      pooled, cells not below 0, tables agree with each other). Closest to the source on average, but
      biased towards what is smooth.
    - ``estimate_error``: standard error (rows) of ``estimate`` as an estimate of the true count, by
      ``variances``; NaN where these know none.
    - ``noisy``: inverse-variance mean of all measured tables that contain ``attrs``, or the sum of the
      measured residuals of ``attrs`` and of their margins, unprocessed: it is unbiased and may be below 0.
    - ``standard_error``: of ``noisy`` (not of ``estimate``), exact, in rows.
    - ``basis``: ``"measured"`` (a table over exactly these attributes was measured, or its residual),
      ``"summed"`` (only larger tables were), ``"grouped"`` (several attributes were counted together over
      wider groups of their codes alone) or ``"modelled"`` (no table has them together, or one attribute has a
      curve through noisy counts). Of the last two ``noisy`` and ``standard_error`` are NaN.

    Raises:
        InputError: unknown or repeated attributes, or a marginal the model cannot answer.
    """
    names = checked_names(model.domain, attrs)
    estimate = model.project(names)
    containing = [table for table in measurements if _contains(table, names)]
    basis = basis_of(measurements, names)
    noisy, error = _combine(model.domain, containing, names, estimate.shape)
    variance = variances.of([model.domain.index(name) for name in names], estimate)
    deviation = math.nan if variance is None else np.sqrt(variance).ravel()
    labels = [code_labels(model.domain[name]) for name in names]
    index = np.indices(estimate.shape).reshape(len(names), -1)
    columns: dict[str, object] = {
        name: pd.Series([labels[axis][code] for code in index[axis]], dtype=object)
        for axis, name in enumerate(names)
    }
    figures = {
        "estimate": estimate.ravel(),
        "estimate_error": deviation,
        "noisy": noisy.ravel(),
        "standard_error": error,
        "basis": basis,
    }
    # An attribute may have the name of a figure: then both columns are there, the attribute first.
    return MarginalTable(pd.concat([pd.DataFrame(columns), pd.DataFrame(figures)], axis=1))


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
