"""One-way tables as the total and residuals: in which shares, and what they say together.

The total is asked for once, and of each attribute what it says beyond the total. A whole one-way table of k
codes would measure the total again at 1/k of its cost. Pure budgets ask for whole tables, because Laplace
noise gains nothing by residuals.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.domain.attributes import Domain
from dpsyn_sql.fit.estimate import Observation
from dpsyn_sql.fit.residuals import cost_factor, deviation, interaction
from dpsyn_sql.interfaces import Curator
from dpsyn_sql.methods.adaptive.settings import Settings
from dpsyn_sql.methods.one_way import SIZE_POWER, one_way_steps, one_way_tables
from dpsyn_sql.planning.plan import MeasureStep
from dpsyn_sql.planning.queries import MarginalQuery, Marginals, NoisyResidual, Residuals
from dpsyn_sql.planning.workload import Workload

TOTAL = MarginalQuery(())
"""The marginal over no attribute: one number, the rows."""


def by_residuals(budget: Budget) -> bool:
    """Whether tables are measured as residuals: all of them, or none; Laplace noise would be larger."""
    return budget.gaussian


def first_steps(domain: Domain, budget: Budget, workload: Workload, settings: Settings) -> list[MeasureStep]:
    """The total, then residuals; attributes of one size and one weight are asked for together.

    With m the mean weight of an attribute of k codes and f = 1 - 1/k, its share of the residuals is, as that
    of whole tables (``one_way_steps``), half even and half by (m k)^(2/3), times f^(1/3): a residual costs f
    times a table of the same noise. The error of the total is in every table, so it counts like a table of d
    cells for d attributes.
    """
    sizes = {a.name: a.size for a in domain.attributes if a.size > 1}
    if not by_residuals(budget) or not sizes:
        return one_way_steps(domain, budget, workload)
    means = {name: mean for name, mean in workload.means(domain.names).items() if name in sizes}
    even = {name: float(mean) ** SIZE_POWER for name, mean in means.items()}
    powers = {name: even[name] * size**SIZE_POWER for name, size in sizes.items()}
    factors = {name: cost_factor((size,)) for name, size in sizes.items()}
    weights = {
        name: (0.5 * even[name] / sum(even.values()) + 0.5 * powers[name] / sum(powers.values()))
        * factors[name] ** settings.residual_power
        for name in sizes
    }
    everywhere = float(sum(means.values())) ** SIZE_POWER
    own = sum(power * factors[name] ** SIZE_POWER for name, power in powers.items())
    share = settings.total_share * everywhere / (everywhere + own)
    bands: dict[tuple[int, Fraction], list[str]] = {}
    for name, size in sizes.items():
        bands.setdefault((size, means[name]), []).append(name)
    ordered = sorted(bands)
    parts = [
        (1 - share) * sum(weights[name] for name in bands[band]) / sum(weights.values()) for band in ordered
    ]
    for_total, *budgets = budget.split([share, *parts])
    return [
        MeasureStep("rows in all", (TOTAL,), for_total),
        *(
            MeasureStep(_name(*band), tuple(MarginalQuery((n,)) for n in bands[band]), part, residuals=True)
            for band, part in zip(ordered, budgets, strict=True)
        ),
    ]


def _name(size: int, mean: Fraction) -> str:
    weight = "" if mean == 1 else f", mean weight {float(mean):.3g}"
    return f"one-way beyond the rows in all, {size} codes{weight}"


def first_tables(domain: Domain, curator: Curator, steps: Sequence[MeasureStep]) -> list[Observation]:
    """The one-way tables that the steps tell, in domain order."""
    if not any(step.residuals for step in steps):
        return one_way_tables(domain, curator, steps)
    residuals, total = dict[str, NoisyResidual](), Observation(np.zeros(()), np.zeros(()))
    for step in steps:
        if step.residuals:
            residuals |= {r.attrs[0]: r for r in curator.ask(Residuals(step.queries), step.budget)}
        else:
            (table,) = curator.ask(Marginals(step.queries), step.budget)
            total = Observation(table.values.astype(np.float64), np.asarray(table.sigma, np.float64))
    return [_table(total, attribute.size, residuals.get(attribute.name)) for attribute in domain.attributes]


def _table(total: Observation, size: int, residual: NoisyResidual | None) -> Observation:
    """Rows (size,); the noise is that of the residual alone, since all tables share that of the total."""
    if residual is None:
        return Observation(total.values.reshape(1), total.sigma)
    return Observation(total.values / size + interaction(residual), np.asarray(deviation(residual)))
