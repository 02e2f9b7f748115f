"""Copulas: from all pairs, and DPCopula."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

import numpy as np

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.attributes.attribute import Domain
from dpsyn_sql.errors import InputError, PlanTooLarge
from dpsyn_sql.fit import latent
from dpsyn_sql.fit.copula import FixedCopula, fit_copula
from dpsyn_sql.fit.latent import FittedLatent, Ordered, PartTable
from dpsyn_sql.fit.views import Margins, Measurements, fit_margins
from dpsyn_sql.methods.independent import LEAST_UNITS, one_way_steps, over_bins
from dpsyn_sql.methods.models.margins import CopulaModel
from dpsyn_sql.methods.recipe import Recipe
from dpsyn_sql.planning.asking import Door, Reserve, tables_of
from dpsyn_sql.planning.limits import NO_TERMS, Terms
from dpsyn_sql.planning.queries import MarginalQuery, Marginals, NoisyMarginal

# -- all pairs ---------------------------------------------------------------------------------------

# The Gaussian copula: all one-way and two-way marginals (see ``fit/copula.py``).
#
# The paper's baselines replace the correlation matrix (Differentially Private Release of High-Dimensional
# Datasets using the Gaussian Copula, table 1). They need no pairs, so all of the budget pays for one-way
# marginals:
#
# - ``none`` (no-cor): probabilities of pairs are products of one-way probabilities. - ``identity`` (cop-ID):
# independent latent normals. The same distribution as ``none``; the paper has both. - ``ones`` (cop-1): one
# latent normal for all codes (``fit/copula.py`` says which rows it gives).

SHARES = (1, 4)
"""Weights of the one-way and the two-way marginals. Pair tables contain the one-way tables too, but for
large attributes only as sums of many noisy cells (docs/results_details.md)."""

MAX_CODES = 12_000
"""The most codes of all attributes. A matrix of latent correlations then takes 1.1 GiB, and a fit needs
several. If the attributes have similar sizes, fewer codes already exceed the limit on cells of pairs."""

CORRELATIONS = ("fitted", "none", "identity", "ones")


@dataclass(frozen=True, slots=True)
class Copula(Recipe):
    """All one-way and two-way marginals, joined by a Gaussian copula over the values of the columns.

    ``correlation``: fitted, none, identity or ones; the last three ask for one-way marginals alone.
    """

    name = "copula"
    model = CopulaModel
    static = True
    correlation: str = "fitted"

    choices: ClassVar = {"correlation": CORRELATIONS}

    def run(self, door: Door, domain: Domain, budget: Budget, terms: Terms = NO_TERMS) -> CopulaModel:
        """One-way marginals, then all pairs: a correlation of latent normals for each. Only one-way marginals
        of a single attribute, or if the correlation is not fitted.

        Raises:
            InputError: there is no such correlation.
            PlanTooLarge: more than ``MAX_CODES`` codes.
        """
        one_way = Marginals(tuple(MarginalQuery((name,)) for name in domain.names))
        if self.checked().correlation != "fitted":
            tables = door.ask(one_way, budget, "one-way").read()
            margins = fit_margins(domain, Measurements(tables))
            return CopulaModel(domain, FixedCopula(margins, all_ones=self.correlation == "ones"))
        codes = sum(domain.shape())
        if codes > MAX_CODES:
            raise PlanTooLarge(
                f"The plan is too large: the copula needs a latent variable for each of {codes:,} codes, "
                f"above the limit of {MAX_CODES:,}. Declare fewer bins or categories, leave out a column "
                "with exclude=, or use method='adaptive'."
            )
        two_way = Marginals(tuple(MarginalQuery(pair) for pair in combinations(domain.names, 2)))
        first, second = budget.split(SHARES) if two_way.queries else (budget, budget)
        handles = [door.ask(one_way, first, "one-way")]
        if two_way.queries:
            handles.append(door.ask(two_way, second, "two-way"))
        return CopulaModel(domain, fit_copula(domain, tables_of(handles)))


# -- DPCopula ----------------------------------------------------------------------------------------

# DPCopula and DPHybrid (Li, Xiong, Jiang, EDBT 2014), from noisy tables.
#
#     one-way tables -> margins -> working bins in code order        fit/latent.py
#     hybrid: as many attributes of few values as the noisy total allows split the table into parts
#             tables of parts x bins of each other attribute -> margins of every part
#     tables of (parts x) pairs of bins -> Kendall's tau -> latent correlations
#
# What differs from the paper, and why, is in docs/decisions/0019-dpcopula.md.

BINS = 8
"""About how many working bins an attribute gets. The noise of tau grows with their number, and eight say
nearly all that the codes say about it."""

LEAST_SIGMAS = 4.0
"""A code below so many sigmas of its one-way table joins its neighbours."""

SMALL = 10
"""DPHybrid splits by attributes of fewer values (section 4.4 of the paper)."""

ROWS_PER_SIGMA = 3.0
"""Rows that a part must have on average, in sigmas of a cell of pair tables. Tau of one part is then mostly
noise, but it is shrunk to the mean of the parts (docs/decisions/0019-dpcopula.md)."""

PART_SHARE = 0.25
"""Of what is left after the one-way tables, for the margins of the parts."""

MOST_CELLS = 2**24
"""The most cells of all pairs over bins, without parts: 128 MB."""

MOST_PART_CELLS = 2**20
"""The most cells of all tables of parts: 20 seconds of noise. Four times as many gain nothing on Adult at
epsilon 10."""


@dataclass(frozen=True, slots=True)
class DPCopula(Recipe):
    """One-way tables and Kendall's tau of all pairs, joined by a Gaussian copula over ordered codes.

    After DPCopula (Li, Xiong, Jiang 2014). ``hybrid``: attributes of fewer than ten values split the table
    into parts with a copula each (DPHybrid). ``ratio``: the budget of the margins over that of the pairs.
    """

    name = "dpcopula"
    model = CopulaModel
    hybrid: bool = False
    ratio: float = 1.0

    def run(self, door: Door, domain: Domain, budget: Budget, terms: Terms = NO_TERMS) -> CopulaModel:
        """Measure one-way tables, then the tables over bins that they lead to; fit.

        Raises:
            InputError: the ratio is not above 0 and at most 1000.
            PlanTooLarge: all pairs could have more than ``MOST_CELLS`` cells over bins, or more than fit
                the limit on memory.
        """
        reserve = self._reserve(domain, budget, terms)
        first = budget if reserve is None else budget.split((self.ratio, 1))[0]
        handles = [door.ask(*step) for step in one_way_steps(domain, first)]
        if reserve is not None:
            door.reserve(reserve)
        answers = tables_of(handles)
        margins = fit_margins(domain, Measurements(answers))
        ordered = latent.in_order(domain, margins, _least(domain, answers), BINS)
        informative = [attribute for attribute, share in enumerate(ordered.shares) if share.size > 1]
        if reserve is None or reserve.budget.amount < LEAST_UNITS:
            return CopulaModel(domain, _independent(domain, margins, ordered))
        if margins.total <= 0 or len(informative) < 2:
            # No two columns have bins that stand out: one-way tables get everything.
            answers += tables_of([door.ask(*step) for step in one_way_steps(domain, reserve.budget)])
            margins = fit_margins(domain, Measurements(answers))
            ordered = latent.in_order(domain, margins, _least(domain, answers), BINS)
            return CopulaModel(domain, _independent(domain, margins, ordered))
        rows = terms.unit.sensitivity
        split = self._split(domain, reserve.budget, rows, margins.total, ordered) if self.hybrid else ()
        ordered = latent.whole(
            ordered, split, [margins.probabilities[domain.names[attribute]] for attribute in split]
        )
        return CopulaModel(domain, _fitted(door, domain, reserve.budget, margins, ordered, split))

    def _reserve(self, domain: Domain, budget: Budget, terms: Terms) -> Reserve | None:
        """The tables over bins; None if there are no two columns of several codes."""
        if not 0 < self.ratio <= 1000:
            raise InputError(
                f"method={self.name!r} has the setting ratio={self.ratio!r}; it can be a number above 0 and "
                "at most 1000"
            )
        sizes = [min(size, 2 * BINS + 1) for size in domain.shape() if size > 1]
        if len(sizes) < 2:
            return None
        cells = (sum(sizes) ** 2 - sum(size**2 for size in sizes)) // 2
        if cells > MOST_CELLS:
            raise PlanTooLarge(
                f"The plan is too large: the pairs of {len(sizes):,} columns have up to {cells:,} cells over "
                f"bins, above the limit of {MOST_CELLS:,}. Leave out columns with exclude=, or use "
                "method='adaptive'."
            )
        name, most_attributes, most_cells = "pairs over bins", 2, (2 * BINS + 1) ** 2
        if self.hybrid:
            name, most_attributes, most_cells = f"{name}, in parts", 2 + len(_small(domain)), MOST_PART_CELLS
            cells = max(cells, MOST_PART_CELLS)
        terms.limits.check_measured(cells)
        for_bins = budget.split((self.ratio, 1))[1]
        tables = math.comb(len(sizes), 2)
        return Reserve(name, for_bins, (), most_attributes, most_cells, cells, tables)

    def _split(
        self, domain: Domain, for_bins: Budget, rows: int, total: float, ordered: Ordered
    ) -> tuple[int, ...]:
        """The attributes that split the table: those of the fewest values, as long as the noisy total gives
        every part enough rows, and the tables have few enough cells."""
        chosen: tuple[int, ...] = ()
        for attribute in _small(domain):
            if ordered.shares[attribute].size == 1:
                continue  # all but one value are noise
            trial = (*chosen, attribute)
            part_count = math.prod(domain.attributes[splitting].size for splitting in trial)
            sizes = [s.size for i, s in enumerate(ordered.shares) if i not in trial and s.size > 1]
            cells = part_count * (sum(sizes) ** 2 - sum(s**2 for s in sizes)) // 2 + part_count * (
                sum(sizes) + 1
            )
            tables = max(1, math.comb(len(sizes), 2))
            for_pairs = _pair_budget(for_bins, True)[1]
            sigma = for_pairs.law(rows).shared(tables)
            # Values that do not stand out of the noise, such as a NULL that never occurs, make no part.
            occupied = math.prod(ordered.shares[splitting].size for splitting in trial)
            if total / occupied < ROWS_PER_SIGMA * sigma or cells > MOST_PART_CELLS:
                break
            chosen = trial
        return tuple(sorted(chosen))


def _small(domain: Domain) -> list[int]:
    """Attributes of 2 to 9 values, those of fewer values first."""
    small = [attribute for attribute, size in enumerate(domain.shape()) if 1 < size < SMALL]
    return sorted(small, key=lambda attribute: domain.attributes[attribute].size)


def _least(domain: Domain, answers: Sequence[NoisyMarginal]) -> list[float]:
    """Of each attribute the rows that stand out of the noise of its one-way table."""
    sigmas = {table.attrs: table.sigma for table in answers}
    return [LEAST_SIGMAS * sigmas[name,] for name in domain.names]


def _pair_budget(budget: Budget, with_parts: bool) -> tuple[Budget | None, Budget]:
    """For the margins of parts, and for the pairs."""
    if not with_parts:
        return None, budget
    first, second = budget.split((PART_SHARE, 1 - PART_SHARE))
    return first, second


def _fitted(
    door: Door,
    domain: Domain,
    for_bins: Budget,
    margins: Margins,
    ordered: Ordered,
    split: tuple[int, ...],
) -> FittedLatent:
    """Ask for the tables over bins, and fit margins and correlations of every part."""
    total = margins.total
    latent_attributes = tuple(attribute for attribute in range(len(domain.names)) if attribute not in split)
    informative = [i for i, attribute in enumerate(latent_attributes) if ordered.shares[attribute].size > 1]
    pairs = list(combinations(informative, 2))
    for_parts, for_pairs = _pair_budget(for_bins, bool(split) and bool(pairs))
    if split and for_parts is None:
        for_parts = for_bins
    sizes, part_tables = None, dict[int, PartTable]()
    if for_parts is not None:
        queries = [
            _query(domain, ordered, split, scope)
            for scope in ((), *((latent_attributes[i],) for i in informative))
        ]
        counts, *tables = door.ask(Marginals(queries), for_parts).read()
        sizes = _part_table(counts, 0)
        part_tables = {i: _part_table(table, 1) for i, table in zip(informative, tables, strict=True)}
    pair_tables = dict[tuple[int, int], PartTable]()
    if pairs:
        queries = [
            _query(domain, ordered, split, (latent_attributes[i], latent_attributes[j])) for i, j in pairs
        ]
        tables = door.ask(Marginals(queries), for_pairs).read()
        pair_tables = {pair: _part_table(table, 2) for pair, table in zip(pairs, tables, strict=True)}
    part_shares = latent.fit_parts(
        [ordered.shares[attribute] for attribute in split], sizes, list(part_tables.values()), total
    )
    of_bins = tuple(
        latent.fit_part_margins(part_shares, part_tables.get(i), ordered.shares[attribute], total)
        for i, attribute in enumerate(latent_attributes)
    )
    correlations = latent.fit_correlations(part_shares, of_bins, pair_tables, total)
    return FittedLatent(total, ordered, split, part_shares, latent_attributes, of_bins, correlations)


def _query(domain: Domain, ordered: Ordered, split: tuple[int, ...], scope: tuple[int, ...]) -> MarginalQuery:
    """The table over the codes of ``split`` and the bins of ``scope``, in this order."""
    return over_bins(domain, ((attribute, ordered.bins[attribute]) for attribute in (*split, *scope)))


def _part_table(table: NoisyMarginal, axes: int) -> PartTable:
    """A table with the attributes that split as one axis."""
    shape = table.values.shape
    bins = shape[len(shape) - axes :]
    part_count = math.prod(shape[: len(shape) - axes])
    return PartTable(table.values.astype(np.float64).reshape(part_count, *bins), table.sigma)


def _independent(domain: Domain, margins: Margins, ordered: Ordered) -> FittedLatent:
    """Without pairs: latent normals that know nothing of each other."""
    number = len(domain.names)
    return FittedLatent(
        margins.total,
        ordered,
        (),
        np.ones(()),
        tuple(range(number)),
        tuple(share[None, :] for share in ordered.shares),
        np.eye(number)[None],
    )
