"""Mixtures: a hidden component of each row, within which columns are independent. Faithful, experimental.

    one-way tables -> working bins                                     fit/denoise.py
    em, target: noisy pairs (of each class) -> latent classes          fit/mixture.py
    kmeans: centres drawn from the one-way tables
    rounds: the label of the nearest component is one more column; one question asks for the tables of
        (label, attribute) of all attributes -> weights and profiles   fit/mixture.py
    codes after their bins                                             fit/network.py

The generative cores of DP-SYN (Abay, Zhou, Kantarcioglu, Thuraisingham, Sweeney, ECML PKDD 2018: a split by
class, expectation maximisation within) and Priv-VAE (Acs, Melis, Castelluccia, De Cristofaro, IEEE TKDE 2019:
private k-means, a generative model per cluster). What differs from them, and why, is in
docs/decisions/0050-mixtures.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.domain.attributes import Attribute, Domain
from dpsyn_sql.errors import InputError, PlanTooLarge
from dpsyn_sql.fit.arrays import FloatArray, snapped
from dpsyn_sql.fit.denoise import Binned, binned
from dpsyn_sql.fit.estimate import Observation, total_of
from dpsyn_sql.fit.mixture import Components, mixture_network, product
from dpsyn_sql.methods.independent import (
    LEAST_UNITS,
    asked_again,
    cell_deviation,
    one_way_steps,
    one_way_tables,
)
from dpsyn_sql.methods.mixture.rounds import KMEANS, MOST_CELLS, PAIRS_AND_ROUNDS, Task, fitted
from dpsyn_sql.methods.models.networks import NetworkModel
from dpsyn_sql.methods.recipe import Recipe
from dpsyn_sql.planning.limits import NO_TERMS, Terms
from dpsyn_sql.planning.plan import LaterMarginals, MeasureStep, Plan, ReservedStep
from dpsyn_sql.planning.queries import Curator
from dpsyn_sql.planning.row_labels import MOST_CLASSES
from dpsyn_sql.source.relation import Source

AUTO, EM, TARGET = "auto", "em", "target"

ONE_WAY_SHARE = 10
"""Percent for the one-way tables."""

ROUNDS, ROUNDS_ALONE = 3, 5
"""Rounds after pairs, and from random centres."""

MOST_ROUNDS = 50
"""What the setting takes at most; of ``components`` as many as a label has classes."""

MOST_CHOSEN = 64
"""Components at most that the number of rows chooses."""

ROWS_PER_SIGMA = 40.0
"""Rows of a component on average, in sigmas of a cell of a round times the root of the mean number of bins:
the default has as many components as that leaves."""

LEAST_SIGMAS = 2.0
"""A code stands alone if its noisy count is so many deviations of a cell of a round; else it shares a bin."""

MOST_BINS = 16
"""About how many working bins an attribute gets at most."""

_GRID = 2.0**-10
# Rows, or components.


@dataclass(frozen=True, slots=True)
class Mixture(Recipe):
    """Hidden groups of rows, found on noisy pairs and refined by labels; columns are independent within one.

    ``by``: ``em``, latent classes; ``target``, first the classes of ``target=``, then latent classes within
    each; ``kmeans``, the nearest centre on public scales; ``auto``: ``target`` if one is named, else ``em``.
    ``components``: how many groups, ``rounds``: how often they are counted anew; 0 and 0: by the noisy number
    of rows, and three (five from random centres).
    """

    name = "mixture"
    keeps_columns = False
    model = NetworkModel
    attributes = 300
    takes_target = True
    by: str = AUTO
    components: int = 0
    rounds: int = 0

    choices: ClassVar = {"by": (AUTO, EM, TARGET, KMEANS)}

    def __post_init__(self) -> None:
        faults = [
            f"{name}={value!r}; it can be 0 (as usual) or 1 to {most:,}"
            for name, value, most in (
                ("components", self.components, MOST_CLASSES),
                ("rounds", self.rounds, MOST_ROUNDS),
            )
            if not 0 <= value <= most
        ]
        if faults:
            raise InputError(f"method={self.name!r} has the setting {', and '.join(faults)}")
        self.checked()

    def plan(self, source: Source, domain: Domain, budget: Budget, terms: Terms = NO_TERMS) -> Plan:
        """One-way tables; the rest is reserved for pairs and for tables of labels.

        Raises:
            InputError: ``by='target'`` without a target, or another ``by`` with one.
            PlanTooLarge: the tables of all components have more cells than ``MOST_CELLS``, or than fit the
                limit on memory.
        """
        self._check_target(terms.workload.target)
        sizes = [_most_bins(attribute) for attribute in domain.attributes if attribute.size > 1]
        if len(sizes) < 2:
            return self.planned(source, domain, budget, terms, one_way_steps(domain, budget))
        further = self._further(sizes, bool(terms.workload.target))
        terms.limits.check_measured(further.together)
        first, for_rounds = budget.split((ONE_WAY_SHARE, 100 - ONE_WAY_SHARE))
        steps: list[MeasureStep | ReservedStep] = [
            *one_way_steps(domain, first),
            ReservedStep("pairs and labels", (), for_rounds, further),
        ]
        return self.planned(source, domain, budget, terms, steps)

    def run(self, plan: Plan, curator: Curator, terms: Terms = NO_TERMS) -> NetworkModel:
        """Measure the one-way tables; find components, and count them anew in rounds."""
        observed = one_way_tables(plan.domain, curator, plan.known)
        for step in plan.reserved:
            if total_of(observed) <= 0 or step.budget.amount < LEAST_UNITS:
                continue
            task = self._task(plan, curator, step.budget, observed, terms.workload.target)
            if task is not None:
                return _model(task.working, task.total, fitted(task))
            observed = asked_again(observed, plan.domain, curator, one_way_steps(plan.domain, step.budget))
        working = binned(plan.domain, observed, [-math.inf] * len(observed), MOST_BINS)
        return _model(working, total_of(observed), product(working.shares))

    def _check_target(self, target: str) -> None:
        if self.by == TARGET and not target:
            raise InputError(
                f"method={self.name!r} with by='target' splits by the column that target= names, and none is "
                "named: name it, or use by='em'"
            )
        if target and self.by not in (AUTO, TARGET):
            raise InputError(
                f"method={self.name!r} with by={self.by!r} does not use target=: leave one of them out"
            )

    def _further(self, sizes: Sequence[int], target: bool) -> LaterMarginals:
        """What may be asked for beyond the one-way tables, by the most bins of every attribute.

        Raises:
            PlanTooLarge: as ``plan``.
        """
        *_, second, first = sorted(sizes)
        labelled, rounds = self.components or MOST_CHOSEN, self.rounds or ROUNDS_ALONE
        cells = labelled * sum(sizes)
        if cells > MOST_CELLS:
            raise PlanTooLarge(
                f"The plan is too large: the tables of {labelled:,} components and {len(sizes):,} columns "
                f"have up to {cells:,} cells, above the limit of {MOST_CELLS:,}. Take fewer components, "
                "leave out columns with exclude=, or use method='adaptive'."
            )
        pairs = min(MOST_CELLS, (first if target else 1) * _pair_cells(sizes))
        most = max((first if target else 1) * first * second, labelled * first)
        return LaterMarginals(3 if target else 2, most, rounds * cells + pairs)

    def _task(
        self, plan: Plan, curator: Curator, budget: Budget, observed: Sequence[Observation], target: str
    ) -> Task | None:
        """Working bins and numbers of components; None if there is nothing to divide the rows by."""
        domain, rows = plan.domain, plan.source.unit.sensitivity
        total = float(snapped(np.asarray(total_of(observed)), _GRID))  # it decides on questions
        rounds = self.rounds or (ROUNDS_ALONE if self.by == KMEANS else ROUNDS)
        for_rounds = budget if self.by == KMEANS else budget.split(PAIRS_AND_ROUNDS)[1]
        number = sum(attribute.size > 1 for attribute in domain.attributes)
        noise = cell_deviation(for_rounds, number * rounds, rows)
        pairs = zip(domain.attributes, observed, strict=True)
        working = binned(domain, observed, [_least(a, o, LEAST_SIGMAS * noise) for a, o in pairs], MOST_BINS)
        classes = domain.index(target) if target and working.sizes[domain.index(target)] > 1 else None
        informative = tuple(p for p, size in enumerate(working.sizes) if size > 1 and p != classes)
        if len(informative) < (2 if classes is None else 1):
            return None
        shares = np.ones(1) if classes is None else working.shares[classes]
        bins = math.sqrt(sum(working.sizes[index] for index in informative) / len(informative))
        components = _numbers(shares, self.components, total / (ROWS_PER_SIGMA * bins * noise))
        if sum(components) == 1:
            return None
        return Task(curator, working, total, rows, budget, self.by, classes, informative, components, rounds)


def _model(working: Binned, total: float, mixture: Components) -> NetworkModel:
    network = mixture_network(mixture, working.bins, working.within, working.domain.names)
    return NetworkModel(working.domain, total, network)


def _numbers(shares: FloatArray, wanted: int, affordable: float) -> tuple[int, ...]:
    """Components of each class: one, and what is left of all of them in proportion to the shares of rows."""
    left = max(0.0, float(wanted or min(affordable, MOST_CHOSEN)) - shares.size)
    return tuple(1 + int(more) for more in snapped(left * shares / shares.sum(), _GRID))


def _most_bins(attribute: Attribute) -> int:
    """Working bins of an attribute at most."""
    return min(attribute.size, 2 * MOST_BINS + 3)


def _pair_cells(sizes: Sequence[int]) -> int:
    return (sum(sizes) ** 2 - sum(size**2 for size in sizes)) // 2


def _least(attribute: Attribute, table: Observation, least: float) -> float:
    """The rows that a code needs for a bin of its own; of unordered codes at most twice ``MOST_BINS`` do."""
    most = 2 * MOST_BINS
    if attribute.ordered or attribute.size <= most:
        return least
    return max(least, float(np.nextafter(np.sort(table.values)[-most - 1], math.inf)))
