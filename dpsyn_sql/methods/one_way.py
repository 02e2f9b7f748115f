"""One-way tables: what every method that needs them asks, and in which shares."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

import numpy as np

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.domain.attributes import Domain
from dpsyn_sql.fit.estimate import Observation
from dpsyn_sql.interfaces import Curator
from dpsyn_sql.planning.plan import MeasureStep
from dpsyn_sql.planning.queries import MarginalQuery, Marginals
from dpsyn_sql.planning.workload import UNWEIGHTED, Workload

SIZE_POWER = 2 / 3
"""Half of the budget is divided by codes^(2/3): the optimum for the L1 norm of raw noise."""

LEAST_UNITS = 10**8
"""The least budget for further tables (1e-7: noise of thousands of rows a cell). Parts of less can be 0."""

_BAND = 8
# One-way tables of up to 8, 64, 512, ... codes are asked together, at the same noise.


def one_way_steps(domain: Domain, budget: Budget, workload: Workload = UNWEIGHTED) -> list[MeasureStep]:
    """Half of the budget evenly, half by codes^(2/3); attributes of one band share their noise.

    The error of a one-way table enters every pair with its attribute, so it counts by their mean weight
    m: both halves are multiplied by m^(2/3), and attributes of one band have the same weight.
    """
    means = workload.means(domain.names)
    bands: dict[tuple[int, Fraction], list[str]] = {}
    for attribute in domain.attributes:
        band = max(1, math.ceil(math.log(attribute.size, _BAND)))
        bands.setdefault((band, means[attribute.name]), []).append(attribute.name)
    even = {name: float(mean) ** SIZE_POWER for name, mean in means.items()}
    powers = {a.name: even[a.name] * a.size**SIZE_POWER for a in domain.attributes}
    apart, shared = sum(even.values()), sum(powers.values())
    weights = {name: 0.5 * even[name] / apart + 0.5 * power / shared for name, power in powers.items()}
    ordered = sorted(bands)
    shares = budget.split([sum(weights[name] for name in bands[band]) for band in ordered])
    return [
        MeasureStep(_one_way_name(*band), tuple(MarginalQuery((n,)) for n in bands[band]), share)
        for band, share in zip(ordered, shares, strict=True)
    ]


def _one_way_name(band: int, mean: Fraction) -> str:
    weight = "" if mean == 1 else f", mean weight {float(mean):.3g}"
    return f"one-way, up to {_BAND**band} codes{weight}"


def one_way_tables(domain: Domain, curator: Curator, steps: Iterable[MeasureStep]) -> list[Observation]:
    """The one-way tables that the steps ask for, in domain order."""
    measured = {
        table.attrs: Observation(table.values.astype(np.float64), np.asarray(table.sigma, np.float64))
        for step in steps
        for table in curator.ask(Marginals(step.queries), step.budget)
    }
    return [measured[name,] for name in domain.names]
