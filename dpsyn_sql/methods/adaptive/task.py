"""What stays the same in all rounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.fit.estimate import Observation, total_of
from dpsyn_sql.interfaces import Curator
from dpsyn_sql.methods.adaptive.one_ways import by_residuals
from dpsyn_sql.methods.adaptive.selection import MEAN_ABSOLUTE, NoiseLaw
from dpsyn_sql.methods.adaptive.settings import Settings
from dpsyn_sql.methods.adaptive.shares import score_share, score_share_of_many, tree_cap
from dpsyn_sql.methods.adaptive.working import Working, working_domain
from dpsyn_sql.planning.limits import Terms
from dpsyn_sql.planning.plan import Plan, equivalent_rho


@dataclass(frozen=True, slots=True)
class Task:
    """The plan, the curator, and the results of the one-way tables.

    ``working``: the variables of the model. ``total``: rows, at least 1. ``cap``: cells of the junction tree
    in the last round.
    """

    plan: Plan
    curator: Curator
    terms: Terms
    constants: Settings
    working: Working
    total: float
    cap: int

    @classmethod
    def of(
        cls,
        plan: Plan,
        curator: Curator,
        terms: Terms,
        constants: Settings,
        most: int,
        one_ways: Sequence[Observation],
    ) -> Task:
        """Choose the variables by the noisy one-way tables; ``most`` cells of the junction tree."""
        rho = equivalent_rho(plan.source, plan.domain, plan.budget)
        strength = max(total_of(one_ways), 1.0) * math.sqrt(rho)
        working = working_domain(plan.domain, one_ways, strength, constants)
        total = max(total_of(list(working.observed.values())), 1.0)
        cap = min(most, tree_cap(rho, total, constants))
        return cls(plan, curator, terms, constants, working, total, cap)

    @property
    def rho(self) -> float:
        """The rho of the release, for units of one row."""
        return equivalent_rho(self.plan.source, self.plan.domain, self.plan.budget)

    @property
    def many(self) -> bool:
        """Whether there are so many attributes that the scores take much of the budget, in one round."""
        return len(self._sizes) > self.constants.preselect_between[1]

    @property
    def _sizes(self) -> tuple[int, ...]:
        return self.working.sizes[: len(self.plan.domain.attributes)]

    def parts(self, budget: Budget) -> tuple[Budget, Budget]:
        """The budget of a round for the scores, and for the tables that they choose."""
        if self.many:
            share = score_share_of_many(self._sizes, self.noise_law(budget).power, self.constants)
        else:
            share = score_share(self.rho, self.constants)
        scores, tables = budget.split((share, 100 - share))
        return scores, tables

    def noise_law(self, budget: Budget) -> NoiseLaw:
        """Noise of a table measured with a part of a budget."""
        rows = self.plan.source.unit.max_rows
        if budget.kind == "pure":
            return NoiseLaw(rows / float(budget.fraction), 1.0)
        unit = MEAN_ABSOLUTE * rows / math.sqrt(2 * float(budget.rho))
        return NoiseLaw(unit, 0.5, by_residuals(budget))
