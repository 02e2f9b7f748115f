"""DPSyn: noisy views that cover all pairs or triples, made consistent, and rows that meet them.

    one-way tables -> total, working bins                            methods/independent.py, fit/denoise.py
    views: a covering design, or randomly chosen                     planning/views.py
    measure them, over bins                                          through the door
    agree -> less noise -> not negative                              fit/views.py
    a graphical model of the strongest views                         fit/reconstruct.py
    any marginal from the views; rows that meet them                 fit/reconstruct.py, rows/sample/views.py

After PriView (Qardaji, Yang, Li, SIGMOD 2014) and DPSyn (Li, Zhang, Wang 2018); docs/decisions/0016 says what
differs. The claim: docs/privacy.md, "Views".
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count, groupby
from typing import ClassVar

import numpy as np

from dpsyn_sql.accounting.budget import Budget, NoiseLaw
from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.common.progress import phase
from dpsyn_sql.errors import InputError, PlanTooLarge, said
from dpsyn_sql.fit.denoise import Binned, binned, rows_of_a_bin
from dpsyn_sql.fit.estimate import Observation, total_of
from dpsyn_sql.fit.graph import Scope
from dpsyn_sql.fit.network import Model
from dpsyn_sql.fit.reconstruct import RECONSTRUCTIONS, graphical_views
from dpsyn_sql.fit.variances import Variances, followed_pairs
from dpsyn_sql.fit.views import Views, consistent, layout_of, settled, shrunk
from dpsyn_sql.methods.independent import LEAST_UNITS, asked_again, first_tables, over_bins
from dpsyn_sql.methods.models.margins import ViewsModel
from dpsyn_sql.methods.recipe import Recipe
from dpsyn_sql.planning.asking import Door, Reserve
from dpsyn_sql.planning.limits import NO_TERMS, Limits, Terms
from dpsyn_sql.planning.plan import equivalent_rho
from dpsyn_sql.planning.queries import Marginals, NoisyMarginal
from dpsyn_sql.planning.views import MOST_TOGETHER, MOST_VIEW_CELLS, Design, best_views
from dpsyn_sql.rows.sample.views import SYNTHESES

ONE_WAY_SHARE, ONE_WAY_SLOPE, ONE_WAY_MOST, ONE_WAY_RHO = 25, 17, 60, 0.0149
"""Percent of the budget for the one-way tables at epsilon 1, whose rho is the last; more for each power of
ten that rho is below it; and the most. They set the bins; views measure them again."""

LEAST_SIGMAS = 6.0
"""A code with fewer rows than so many standard deviations of a pair's cell shares its bin with others."""

MOST_BINS = (32, 24, 16, 12, 8, 6, 4, 3, 2)
"""About the most bins of an attribute: the first at which the views keep to ``MOST_CELLS``."""

COARSER = 4.0
"""If the views have too many cells even so, codes need so many times as many rows, until few enough stand
alone. In noise the counts above zero add up to far more than the total, and many bins have enough rows."""

SMALL = 4
"""Attributes of so few codes keep them all: a bin less saves no noise worth it."""

SHARE_UNITS = 2**20
# Of the budget for views. A share is a whole number of them: the last bit of a float changes no noise.

MOST_CELLS = 2**22
"""Cells of all views together: 32 MB, and a few times that while they are made consistent."""

MOST_TREE_CELLS = 2**18
"""Cells of the junction tree of the strongest views."""

_SMALLEST_SIGMA = 1e-3
# Rows. Without it a table with no noise to speak of, at a pure epsilon of hundreds, had an infinite weight.

MOST_ATTRIBUTES = {2: 300, 3: 60}
"""The most attributes whose pairs, or triples, are covered and measured in minutes."""


@dataclass(frozen=True, slots=True)
class DPSyn(Recipe):
    """Views of a few attributes each that cover all pairs or triples, made consistent; rows that meet them.

    After PriView (Qardaji, Yang, Li 2014) and DPSyn (Li, Zhang, Wang 2018). ``cover``: 2 or 3. ``views``:
    covering or random. ``nonnegativity``: simplex or ripple; ``theta`` is the threshold of ripple, in
    standard deviations of a view's noise. ``synthesis``: exchange, gum, mcf or sts (as published, for
    comparison: its rows have dependence that no view has). ``reconstruction``: maximum_entropy, least_norm
    or linear_programming.
    """

    cover: int = 2
    views: str = "covering"
    nonnegativity: str = "simplex"
    theta: float = 1.0
    synthesis: str = "exchange"
    reconstruction: str = "maximum_entropy"

    name = "dpsyn"
    model = ViewsModel
    takes_workload = takes_target = keeps_pairs = True
    attributes = 300  # above this number its views take minutes
    choices: ClassVar = {
        "cover": tuple(MOST_ATTRIBUTES),
        "views": ("covering", "random"),
        "nonnegativity": ("simplex", "ripple"),
        "synthesis": SYNTHESES,
        "reconstruction": RECONSTRUCTIONS,
    }

    def run(self, door: Door, domain: Domain, budget: Budget, terms: Terms = NO_TERMS) -> ViewsModel:
        """Measure the one-way tables, choose and measure the views, and make them agree.

        Raises:
            InputError: a setting has no such value.
            PlanTooLarge: the views would have too many cells, whatever the bins.
        """
        share = _one_way_share(equivalent_rho(terms.unit, domain, budget))
        first, for_views = budget.split((share, 100 - share))
        reserve = self._reserve(domain, for_views, terms)
        first = budget if reserve is None else first
        observed = first_tables(door, domain, first, reserve, terms.workload)
        total, measured = total_of(observed), dict[Scope, Observation]()
        working = binned(domain, observed, [0.0] * len(observed), MOST_BINS[0])
        if reserve is not None and total > 0 and reserve.budget.amount >= LEAST_UNITS:
            noise = reserve.budget.law(terms.unit.sensitivity)
            designed, design = self._designed(domain, noise, observed, total, terms)
            measured = _measured(door, reserve.budget, designed, design)
            if measured:
                working = designed
            else:  # no two attributes have bins that stand out: one-way tables get everything
                observed = asked_again(observed, domain, door, reserve.budget, terms.workload)
                working = binned(domain, observed, [0.0] * len(observed), MOST_BINS[0])
        with terms.deadline.running(), phase("fit"):
            return self._fitted(working, measured, observed, terms)

    def _reserve(self, domain: Domain, budget: Budget, terms: Terms) -> Reserve | None:
        """The views, paid by ``budget``; None if there are no two columns of several codes."""
        if not 0 <= self.checked().theta < math.inf:
            raise InputError(
                f"method={self.name!r} has the setting theta={said(self.theta)}; it can be 0 or "
                "a positive number"
            )
        used = [attribute.name for attribute in domain.attributes if attribute.size > 1]
        if len(used) < 2:
            return None
        room = self.caps(terms.limits)["cells of views"]
        self._check_size(len(used), room)
        cells = min(MOST_VIEW_CELLS, math.prod(domain.shape(used)))
        return Reserve("views over bins", budget, (), min(MOST_TOGETHER, len(used)), cells, room)

    def variances(self, model: Model, answers: Sequence[NoisyMarginal]) -> Variances:
        """Of the one-way tables, and of all pairs within a view."""
        one_way = Recipe.variances(self, model, answers)
        if not isinstance(model, ViewsModel):
            return one_way
        pairs = followed_pairs(model.domain, answers)
        return Variances(model.within, {**one_way.components, **pairs})

    def caps(self, limits: Limits) -> dict[str, int]:
        """Most cells of all views and of the junction tree."""
        return {
            "cells of views": limits.candidate_cells(MOST_CELLS),
            "model cells": limits.tree_cells(MOST_TREE_CELLS),
        }

    def _check_size(self, attributes: int, room: int) -> None:
        cover = min(self.cover, attributes)
        cells = math.comb(attributes, cover) * 2**cover
        if attributes > MOST_ATTRIBUTES[self.cover]:
            raise PlanTooLarge(
                f"The plan is too large: cover={self.cover} takes at most {MOST_ATTRIBUTES[self.cover]} "
                f"columns of two or more values, and there are {attributes}, with "
                f"{math.comb(attributes, cover):,} sets of {cover}. Use "
                + ("cover=2, " if self.cover == 3 and attributes <= MOST_ATTRIBUTES[2] else "")
                + "another method, or leave columns out with exclude=."
            )
        if cells > room:
            raise PlanTooLarge(
                f"The plan is too large for the memory of limits=: its views have up to {cells:,} cells even "
                f"with two bins a column, and {room:,} fit. Raise the limit, or leave columns out with "
                "exclude=."
            )

    def _designed(
        self, domain: Domain, noise: NoiseLaw, observed: Sequence[Observation], total: float, terms: Terms
    ) -> tuple[Binned, Design]:
        """Working bins and views, from noisy one-way tables and public facts.

        It ends: with enough rows needed, no attribute has more than two bins, and ``_reserve`` makes sure
        that views of these fit.
        """
        room = self.caps(terms.limits)["cells of views"]
        weights = _pair_weights(domain, terms)
        seed = ",".join(domain.names) if self.views == "random" else None
        used = sum(attribute.size > 1 for attribute in domain.attributes)
        least = LEAST_SIGMAS * noise.shared(math.comb(used, 2))
        coarser = ((MOST_BINS[-1], COARSER**power) for power in count(1))
        steps = chain(((most, 1.0) for most in MOST_BINS), coarser)
        while True:
            most, times = next(steps)
            pairs = zip(domain.attributes, observed, strict=True)
            needed = [_least(a, table, times * least, most) for a, table in pairs]
            working = binned(domain, observed, needed, most)
            design = best_views(working.sizes, total, noise, self.cover, room, seed, weights)
            if design is not None and not design.apart:
                return working, design

    def _fitted(
        self,
        working: Binned,
        measured: Mapping[Scope, Observation],
        observed: Sequence[Observation],
        terms: Terms,
    ) -> ViewsModel:
        total = total_of([*observed, *measured.values()])
        sigmas = {scope: max(float(table.sigma), _SMALLEST_SIGMA) for scope, table in measured.items()}
        views: Views = {scope: table.values for scope, table in measured.items()}
        for index, table in enumerate(working.observed):
            views[index,] = table.values
            sigma = math.sqrt(table.variance_of_total / table.values.size)
            sigmas[index,] = max(sigma, _SMALLEST_SIGMA)
        if total > 0:
            theta = self.theta if self.nonnegativity == "ripple" else None
            layout = layout_of(views)
            views = shrunk(consistent(views, sigmas, layout), sigmas, total, layout)
            views = settled(views, sigmas, total, theta, layout=layout)
        else:
            views = {scope: np.ones(table.shape) for scope, table in views.items()}
        cap = self.caps(terms.limits)["model cells"]
        beliefs = graphical_views(working.sizes, views, sigmas, total, cap, terms.deadline)
        return ViewsModel(
            working.domain,
            total,
            {scope: table / table.sum() for scope, table in views.items()},
            beliefs,
            working.bins,
            working.within,
            next(synthesis for synthesis in SYNTHESES if synthesis == self.synthesis),
            self.reconstruction,
        )


def _one_way_share(rho: float) -> int:
    """A whole percentage, so that every machine plans the same."""
    powers = max(0.0, math.log10(ONE_WAY_RHO / max(rho, 1e-30)))
    return round(min(ONE_WAY_SHARE + ONE_WAY_SLOPE * powers, ONE_WAY_MOST))


def _pair_weights(domain: Domain, terms: Terms) -> dict[tuple[int, int], float]:
    """Of pairs of attributes (by position) whose weight is not 1."""
    weights_of_pairs = terms.workload.pairs(domain.names).items()
    return {
        (domain.index(left), domain.index(right)): float(weight) for (left, right), weight in weights_of_pairs
    }


def _least(attribute: Attribute, table: Observation, least: float, most: int) -> float:
    """As ``rows_of_a_bin``. Noise of the one-way table alone makes no bins: of k codes the largest is about
    sqrt(2 ln k) deviations."""
    if attribute.size <= min(SMALL, most):
        return -math.inf
    least = max(least, math.sqrt(2 * math.log(attribute.size)) * float(table.sigma))
    return rows_of_a_bin(attribute, table, least, most)


def _measured(door: Door, budget: Budget, working: Binned, design: Design) -> dict[Scope, Observation]:
    """The views' noisy tables. Those of about the same share are asked for together, at the same noise."""
    shares = {
        view: max(1, round(SHARE_UNITS * share))
        for view, share in zip(design.views, design.shares, strict=True)
    }
    bands = [
        list(views)
        for _, views in groupby(sorted(shares, key=shares.__getitem__), lambda v: _band(shares[v]))
    ]
    measured = dict[Scope, Observation]()
    if not bands:
        return measured
    budgets = budget.split([sum(shares[view] for view in band) for band in bands])
    for band, share in zip(bands, budgets, strict=True):
        queries = [
            over_bins(working.domain, ((attribute, working.bins[attribute]) for attribute in view))
            for view in band
        ]
        tables = door.ask(Marginals(queries), share).read()
        for view, table in zip(band, tables, strict=True):
            measured[view] = Observation(table.values.astype(np.float64), np.asarray(table.sigma))
    return measured


def _band(share: int) -> int:
    """Twice the logarithm to base 2, rounded down."""
    return (share**2).bit_length() - 1
