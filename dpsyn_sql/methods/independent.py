"""Methods that ask for one-way tables, and how marginals are asked for."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.attributes.attribute import Domain
from dpsyn_sql.fit.arrays import IntArray
from dpsyn_sql.fit.estimate import Observation, pooled
from dpsyn_sql.fit.views import Measurements, fit_margins
from dpsyn_sql.methods.models.margins import ProductModel
from dpsyn_sql.methods.recipe import Recipe
from dpsyn_sql.planning.asking import Asked, Door, Handle, Reserve, tables_of
from dpsyn_sql.planning.limits import MAX_PAIR_CELLS, NO_TERMS, Terms
from dpsyn_sql.planning.queries import (
    Map,
    MarginalQuery,
    Marginals,
    NoisyMarginal,
)
from dpsyn_sql.planning.workload import UNWEIGHTED, Workload

# -- marginals ---------------------------------------------------------------------------------------

# Marginals that several methods ask for: one-way tables in which shares, and pairs within which limits.

SIZE_POWER = 2 / 3
"""Half of the budget is divided by codes^(2/3): the optimum for the L1 norm of raw noise."""

LEAST_UNITS = 10**8
"""The least budget for further tables (1e-7: noise of thousands of rows a cell). Parts of less can be 0."""

_BAND = 8
# One-way tables of up to 8, 64, 512, ... codes are asked together, at the same noise.


def one_way_steps(
    domain: Domain, budget: Budget, workload: Workload = UNWEIGHTED, among: Sequence[str] = ()
) -> list[Asked]:
    """Half of the budget evenly, half by codes^(2/3); attributes of one band share their noise.

    The error of a one-way table enters every pair with its attribute, so it counts by their mean weight
    m: both halves are multiplied by m^(2/3), and attributes of one band have the same weight. ``among``: all
    attributes that a workload may name, if ``domain`` has only some of them.
    """
    means, sizes = workload.means(among or domain.names), {a.name: a.size for a in domain.attributes}
    weights, _ = size_weights(sizes, means)
    of = {name: _BAND ** max(1, math.ceil(math.log(size, _BAND))) for name, size in sizes.items()}
    bands = groups_of_equal_size(of, means)
    shares = budget.split([sum(weights[query.attrs[0]] for query in band) for band in bands.values()])
    return [
        Asked(Marginals(queries), share, f"one-way, up to {codes} codes{in_words(mean)}")
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


def one_way_tables(domain: Domain, handles: Iterable[Handle[list[NoisyMarginal]]]) -> list[Observation]:
    """The one-way tables among the answers, in domain order."""
    measured = {
        table.attrs: Observation(table.values.astype(np.float64), np.asarray(table.sigma, np.float64))
        for table in tables_of(handles)
    }
    return [measured[name,] for name in domain.names]


def first_tables(
    door: Door, domain: Domain, budget: Budget, reserve: Reserve | None, workload: Workload = UNWEIGHTED
) -> list[Observation]:
    """The one-way tables that a budget pays for, in domain order. What may be asked later is reserved before
    any of them is read."""
    handles = [door.ask(*step) for step in one_way_steps(domain, budget, workload)]
    if reserve is not None:
        door.reserve(reserve)
    return one_way_tables(domain, handles)


MAX_CANDIDATE_CELLS = 2**25
"""The most cells of all candidates: 256 MB, counted at once for the distances. Smaller pairs first."""


def candidate_queries(
    domain: Domain, most: int, above: Collection[str] = frozenset()
) -> tuple[MarginalQuery, ...]:
    """Pairs of attributes within the limits, at most ``most`` cells in total, in domain order; public. Those
    of which no value was found, or all rows are written alike, are in none: noise in their NULL would look
    like dependence on every other. No pair is of two of ``above``: attributes of rows above."""
    informative = [
        attribute.name for attribute in domain.attributes if attribute.regular and attribute.written > 1
    ]
    sizes = dict(zip(domain.names, domain.shape(), strict=True))
    pairs = list(combinations(informative, 2))
    if above:
        pairs = [pair for pair in pairs if not set(pair) <= set(above)]
    cells = np.array([sizes[first] * sizes[second] for first, second in pairs], dtype=np.int64)
    order = np.argsort(cells, kind="stable")
    fit = (cells[order] <= MAX_PAIR_CELLS) & (np.cumsum(cells[order]) <= most)
    return tuple(MarginalQuery(pairs[index]) for index in np.sort(order[fit]).tolist())


def asked_again(
    observed: Sequence[Observation],
    domain: Domain,
    door: Door,
    budget: Budget,
    workload: Workload = UNWEIGHTED,
) -> list[Observation]:
    """One-way tables, pooled with what a budget that nothing else needs asks of them."""
    again = first_tables(door, domain, budget, None, workload)
    return [pooled(first, second) for first, second in zip(observed, again, strict=True)]


def map_of(bins: IntArray) -> Map | None:
    """Bins of codes as a query has them: None if each code is its own."""
    return None if int(bins.max()) + 1 == bins.size else tuple(bins.tolist())


def over_bins(domain: Domain, members: Iterable[tuple[int, IntArray]]) -> MarginalQuery:
    """The question for a table over attributes (by position), each over the bin of each of its codes."""
    attributes, bins = zip(*members, strict=True)
    maps = tuple(map(map_of, bins))
    return MarginalQuery(
        tuple(domain.names[attribute] for attribute in attributes), maps if any(maps) else ()
    )


# -- independent columns -----------------------------------------------------------------------------

# Independent attributes: one-way marginals only. Copy this file to start a method.
#
# A recipe asks, and fits. Until it reads an answer, its questions and their shares of the budget follow from
# public facts alone, never from rows, counts or file sizes; a method whose later questions depend on answers
# reserves them before (``door.reserve``). Everything after the answers is post-processing.


@dataclass(frozen=True, slots=True)
class Independent(Recipe):
    """One-way marginals, denoised; the columns are drawn independently of each other."""

    name = "independent"
    model = ProductModel
    static = True

    def one_way_part(self, rows: float, attributes: int, budget: Budget, terms: Terms = NO_TERMS) -> Fraction:
        """All of it: there is nothing else to measure."""
        return Fraction(1)

    def run(self, door: Door, domain: Domain, budget: Budget, terms: Terms = NO_TERMS) -> ProductModel:
        """The whole budget for the one-way tables of what discovery does not know; reconcile the totals, and
        make each marginal a distribution."""
        queries = tuple(MarginalQuery((name,)) for name in domain.names if name not in terms.known)
        handles = [door.ask(Marginals(queries), budget, "one-way")] if queries else []
        answers = [*terms.evidence.read().tables, *tables_of(handles)]
        return ProductModel(domain, fit_margins(domain, Measurements(answers), terms.known))
