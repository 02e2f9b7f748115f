"""Marginals that several methods ask for: one-way tables in which shares, and pairs within which limits."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import combinations

import numpy as np

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.domain.attributes import Domain
from dpsyn_sql.fit.arrays import IntArray
from dpsyn_sql.fit.estimate import Observation, pooled
from dpsyn_sql.planning.limits import MAX_PAIR_CELLS
from dpsyn_sql.planning.plan import MeasureStep
from dpsyn_sql.planning.queries import Curator, Map, MarginalQuery, Marginals
from dpsyn_sql.planning.workload import UNWEIGHTED, Workload

SIZE_POWER = 2 / 3
"""Half of the budget is divided by codes^(2/3): the optimum for the L1 norm of raw noise."""

LEAST_UNITS = 10**8
"""The least budget for further tables (1e-7: noise of thousands of rows a cell). Parts of less can be 0."""

_BAND = 8
# One-way tables of up to 8, 64, 512, ... codes are asked together, at the same noise.


def one_way_steps(
    domain: Domain, budget: Budget, workload: Workload = UNWEIGHTED, among: Sequence[str] = ()
) -> list[MeasureStep]:
    """Half of the budget evenly, half by codes^(2/3); attributes of one band share their noise.

    The error of a one-way table enters every pair with its attribute, so it counts by their mean weight
    m: both halves are multiplied by m^(2/3), and attributes of one band have the same weight. ``among``: all
    attributes that a workload may name, if ``domain`` has only some of them.
    """
    means, sizes = workload.means(among or domain.names), {a.name: a.size for a in domain.attributes}
    weights, _ = size_weights(sizes, means)
    of = {name: _BAND ** max(1, math.ceil(math.log(size, _BAND))) for name, size in sizes.items()}
    bands = groups_of_equal_size(of, means)
    shares = budget.split([sum(weights[query.attrs[0]] for query in own) for own in bands.values()])
    return [
        MeasureStep(f"one-way, up to {codes} codes{in_words(mean)}", queries, share)
        for ((codes, mean), queries), share in zip(bands.items(), shares, strict=True)
    ]


def size_weights(
    sizes: Mapping[str, int], means: Mapping[str, Fraction]
) -> tuple[dict[str, float], dict[str, float]]:
    """Half even and half by codes^(2/3), both times m^(2/3) of the mean weight m; and (m codes)^(2/3)."""
    even = {name: float(means[name]) ** SIZE_POWER for name in sizes}
    powers = {name: even[name] * size**SIZE_POWER for name, size in sizes.items()}
    apart, shared = sum(even.values()), sum(powers.values())
    weights = {name: 0.5 * even[name] / apart + 0.5 * power / shared for name, power in powers.items()}
    return weights, powers


def groups_of_equal_size(
    sizes: Mapping[str, int], means: Mapping[str, Fraction]
) -> dict[tuple[int, Fraction], tuple[MarginalQuery, ...]]:
    """The one-way tables of attributes of one size and one mean weight, ascending."""
    bands: dict[tuple[int, Fraction], tuple[MarginalQuery, ...]] = {}
    for name, size in sizes.items():
        band = size, means[name]
        bands[band] = (*bands.get(band, ()), MarginalQuery((name,)))
    return dict(sorted(bands.items(), key=lambda item: item[0]))


def in_words(mean: Fraction) -> str:
    """A mean weight for the name of a step; nothing for 1."""
    return "" if mean == 1 else f", mean weight {float(mean):.3g}"


def one_way_tables(domain: Domain, curator: Curator, steps: Iterable[MeasureStep]) -> list[Observation]:
    """The one-way tables that the steps ask for, in domain order."""
    answers = curator.ask_all([(Marginals(step.queries), step.budget) for step in steps])
    measured = {
        table.attrs: Observation(table.values.astype(np.float64), np.asarray(table.sigma, np.float64))
        for answer in answers
        for table in answer
    }
    return [measured[name,] for name in domain.names]


MAX_CANDIDATE_CELLS = 2**25
"""The most cells of all candidates: 256 MB, counted at once for the distances. Smaller pairs first."""


def candidate_queries(
    domain: Domain, most: int, given: Collection[str] = frozenset()
) -> tuple[MarginalQuery, ...]:
    """Pairs of attributes within the limits, at most ``most`` cells in total, in domain order; public. Those
    of which no value was found, or all rows are written alike, are in none: noise in their NULL would look
    like dependence on every other. No pair is of two that are ``given``."""
    told = [one.name for one in domain.attributes if one.regular and one.written > 1]
    sizes = dict(zip(domain.names, domain.shape(), strict=True))
    pairs = list(combinations(told, 2))
    if given:
        pairs = [pair for pair in pairs if not set(pair) <= set(given)]
    cells = np.array([sizes[first] * sizes[second] for first, second in pairs], dtype=np.int64)
    order = np.argsort(cells, kind="stable")
    fit = (cells[order] <= MAX_PAIR_CELLS) & (np.cumsum(cells[order]) <= most)
    return tuple(MarginalQuery(pairs[place]) for place in np.sort(order[fit]).tolist())


def asked_again(
    observed: Sequence[Observation], domain: Domain, curator: Curator, steps: Iterable[MeasureStep]
) -> list[Observation]:
    """One-way tables, pooled with those that the steps ask for: they get a budget that nothing else needs."""
    again = one_way_tables(domain, curator, steps)
    return [pooled(first, second) for first, second in zip(observed, again, strict=True)]


def map_of(bins: IntArray) -> Map | None:
    """Bins of codes as a query has them: None if each code is its own."""
    return None if int(bins.max()) + 1 == bins.size else tuple(bins.tolist())


def over_bins(domain: Domain, members: Iterable[tuple[int, IntArray]]) -> MarginalQuery:
    """The question for a table over attributes (by position), each over the bin of each of its codes."""
    places, bins = zip(*members, strict=True)
    maps = tuple(map(map_of, bins))
    return MarginalQuery(tuple(domain.names[place] for place in places), maps if any(maps) else ())


def cell_deviation(budget: Budget, tables: int, rows: int) -> float:
    """Standard deviation (rows) of a cell of so many tables, or distances, that are asked for together.

    A unit has at most ``rows`` rows.
    """
    if budget.kind == "pure":
        return math.sqrt(2) * tables * rows / float(budget.fraction)
    return rows * math.sqrt(tables / (2 * float(budget.rho)))
