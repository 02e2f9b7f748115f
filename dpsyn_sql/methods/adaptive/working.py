"""The variables of a graphical model made from noisy one-way tables: working bins and coarse twins.

Post-processing of noisy answers only.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.domain.attributes import Attribute, Domain
from dpsyn_sql.fit.bins import binned
from dpsyn_sql.fit.denoise import merged_neighbours
from dpsyn_sql.fit.estimate import Observation
from dpsyn_sql.fit.graph import JunctionTree, Scope, cells_of
from dpsyn_sql.methods.adaptive.settings import Settings
from dpsyn_sql.planning.plan import Further
from dpsyn_sql.planning.queries import MarginalQuery
from dpsyn_sql.planning.workload import Workload

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_FORBIDDEN = -1e3
"""Log-factor of a structural zero: its exponential is 0 in float64, and it stays finite in sums."""

_LEAST_PROBABILITY = 1e-3
"""A bin starts with at least this share of an even one: the fit could never correct a zero."""


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of the model: an attribute (by position) and the bin of each of its codes."""

    attribute: int
    bins: IntArray

    @property
    def size(self) -> int:
        """Number of bins."""
        return int(self.bins.max()) + 1


@dataclass(frozen=True, slots=True)
class Working:
    """The start of the rounds.

    ``variables``: the attributes in their working bins, in domain order, then coarse twins. ``observed`` are
    the one-way tables over working bins, ``base`` their logarithms, ``links`` the 0/1 tables (as
    logarithms) that tie a twin to its attribute. ``within``: as in ``GraphicalModel``.
    """

    domain: Domain
    variables: tuple[Variable, ...]
    observed: Mapping[Scope, Observation]
    base: Mapping[Scope, FloatArray]
    links: Mapping[Scope, FloatArray]
    within: tuple[FloatArray, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """Bins of each variable."""
        return tuple(variable.size for variable in self.variables)

    def sum_of_sigma(self, variable: int) -> float:
        """Sum over the bins of a variable of the noise of its one-way table (rows)."""
        own = self.variables[variable]
        fine, table = self.variables[own.attribute], self.observed[own.attribute,]
        squares = np.broadcast_to(table.sigma, table.values.shape) ** 2
        coarse = own.bins[np.unique(fine.bins, return_index=True)[1]]
        return float(np.sqrt(np.bincount(coarse, squares)).sum())

    def query(self, scope: Scope) -> MarginalQuery:
        """The question for the table over ``scope``, attributes in domain order."""
        chosen = sorted((self.variables[v] for v in scope), key=lambda variable: variable.attribute)
        attributes = [self.domain.attributes[variable.attribute] for variable in chosen]
        maps = tuple(
            None if variable.size == attribute.size else tuple(variable.bins.tolist())
            for variable, attribute in zip(chosen, attributes, strict=True)
        )
        names = tuple(attribute.name for attribute in attributes)
        return MarginalQuery(names, maps if any(maps) else ())

    def turned(self, scope: Scope, table: NDArray[np.generic]) -> FloatArray:
        """A table from the axes of ``query(scope)`` to those of ``scope``, or back: of a pair, or of three
        attributes without twins, whose axes are the same."""
        places = [self.variables[v].attribute for v in scope]
        return np.asarray(table if places == sorted(places) else table.T, dtype=np.float64)


def working_domain(
    domain: Domain, one_ways: Sequence[Observation], strength: float, settings: Settings
) -> Working:
    """Denoise the one-way tables, choose working bins and twins.

    Args:
        domain: the public domain.
        one_ways: one noisy table per attribute, in domain order.
        strength: N sqrt(rho), how much there is to see.
        settings: of the recipe.
    """
    most = settings.bins * (strength / settings.bins_strength) ** settings.bins_power
    most = float(np.clip(most, *settings.bins_range))
    least = [
        max(settings.merge_sigmas, math.sqrt(2 * math.log(attribute.size))) * float(table.sigma)
        for attribute, table in zip(domain.attributes, one_ways, strict=True)
    ]
    found = binned(domain, one_ways, least, most, finer_tails=True)
    variables = [Variable(index, bins) for index, bins in enumerate(found.bins)]
    observed: dict[Scope, Observation] = {(i,): table for i, table in enumerate(found.observed)}
    base: dict[Scope, FloatArray] = {}
    for index, shares in enumerate(found.shares):
        start = np.maximum(shares, _LEAST_PROBABILITY / shares.size)
        base[index,] = np.log(start / start.sum())
    coarse = strength < settings.twin_strength
    twins, links = _twins(domain.attributes if coarse else (), variables, observed, settings)
    return Working(domain, (*variables, *twins), observed, base, links, found.within)


def _twins(
    attributes: Sequence[Attribute],
    variables: Sequence[Variable],
    observed: Mapping[Scope, Observation],
    settings: Settings,
) -> tuple[list[Variable], dict[Scope, FloatArray]]:
    """Coarse twins of ordered attributes with many working bins, and the tables that tie them."""
    twins = list[Variable]()
    links: dict[Scope, FloatArray] = {}
    for index, (attribute, variable) in enumerate(zip(attributes, variables, strict=False)):
        if not attribute.ordered or variable.size <= settings.twin_from * settings.twin_bins:
            continue
        coarse = merged_neighbours(observed[index,].values, 0.0, settings.twin_bins, finer_tails=True)
        match = coarse[:, None] == np.arange(coarse.max() + 1)
        links[index, len(variables) + len(twins)] = np.where(match, 0.0, _FORBIDDEN)
        twins.append(Variable(index, coarse[variable.bins]))
    return twins, links


def candidate_pairs(
    working: Working, allowed: Sequence[MarginalQuery]
) -> tuple[list[Scope], dict[Scope, Scope]]:
    """Pairs of variables that may be measured, and the coarse twins of fine pairs.

    ``allowed`` are the pairs of attributes that the plan announces. A variable of one bin carries nothing.
    """
    named = {query.attrs for query in allowed}
    names, sizes = working.domain.names, working.sizes
    coarse = {attribute: attribute for attribute in range(len(names))}
    coarse |= {working.variables[v].attribute: v for v in range(len(names), len(sizes))}
    pairs: list[Scope] = [
        pair
        for pair in combinations(range(len(names)), 2)
        if (names[pair[0]], names[pair[1]]) in named and min(sizes[v] for v in pair) > 1
    ]
    twins: dict[Scope, Scope] = {}
    for first, second in pairs:
        twin = tuple(sorted((coarse[first], coarse[second])))
        if twin != (first, second):
            twins[first, second] = twin
    return [*pairs, *twins.values()], twins


def candidate_triples(
    working: Working, tree: JunctionTree, allowed: Further, settings: Settings
) -> list[Scope]:
    """Three attributes within a clique: measuring them does not let the model grow. Small tables of original
    codes come first, up to the limit; none if there are too few."""
    attributes = {v for v in range(len(working.domain.attributes)) if working.sizes[v] > 1}
    triples = {
        triple
        for clique in tree.cliques
        for triple in combinations([v for v in clique if v in attributes], allowed.attributes)
        if cells_of([triple], working.sizes) <= settings.triple_cells
    }
    codes = {triple: cells_of([triple], working.domain.shape()) for triple in sorted(triples)}
    kept, held = list[Scope](), 0
    for triple in sorted(codes, key=codes.__getitem__):
        held += codes[triple]
        if codes[triple] <= allowed.cells and held <= allowed.together:
            kept.append(triple)
    return sorted(kept) if len(kept) >= settings.fewest_triples else []


def table_weights(working: Working, workload: Workload, scopes: Iterable[Scope]) -> dict[Scope, float]:
    """Weights other than 1 of tables: those of pairs, and of larger ones the mean of their pairs."""
    pairs = pair_weights(working, workload)
    return {
        scope: statistics.fmean(pairs.get(pair, 1.0) for pair in combinations(scope, 2))
        for scope in (scopes if pairs else ())
    }


def pair_weights(working: Working, workload: Workload) -> dict[Scope, float]:
    """Weights other than 1 of pairs of variables; a twin has the weight of its attribute."""
    names = working.domain.names
    variables: dict[str, list[int]] = {}
    for number, variable in enumerate(working.variables):
        variables.setdefault(names[variable.attribute], []).append(number)
    return {
        (min(first, second), max(first, second)): float(weight)
        for (one, other), weight in workload.pairs(names).items()
        for first in variables[one]
        for second in variables[other]
    }
