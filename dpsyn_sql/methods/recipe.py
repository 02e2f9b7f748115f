"""The base of all methods: a value whose fields are its settings, with its description."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.domain.attributes import Domain
from dpsyn_sql.errors import InputError
from dpsyn_sql.fit.variances import Variances, one_way_components
from dpsyn_sql.interfaces import Curator, Method, Model
from dpsyn_sql.methods.settings import Setting, changed_settings
from dpsyn_sql.planning.growth import Growth
from dpsyn_sql.planning.limits import NO_TERMS, Terms
from dpsyn_sql.planning.plan import MeasureStep, Plan, PlanDetails, ReservedStep
from dpsyn_sql.planning.queries import Marginals, NoisyMarginal
from dpsyn_sql.source.relation import Source

METHODS: dict[str, Recipe] = {}
"""By name, with default settings, the most accurate first. ``methods/__init__.py`` fills it."""


@dataclass(frozen=True, slots=True)
class Recipe(ABC):
    """Base of all methods.

    A subclass is a frozen dataclass; its fields are settings (int, float, bool or str, each with a default)
    that a user may change, from Python, YAML or the command line. Class variables describe it: ``name``;
    ``model``, the class that ``run`` fits; ``attributes``, the most with which it works in minutes (None: any
    number); ``takes_workload``, whether it divides its budget by the weights of a workload; ``takes_target``,
    whether it favours one column; ``choices``, the values of the settings that have few.
    """

    name: ClassVar[str]
    model: ClassVar[type[Model]]
    attributes: ClassVar[int | None] = None
    takes_workload: ClassVar[bool] = False
    takes_target: ClassVar[bool] = False
    choices: ClassVar[Mapping[str, Sequence[Setting]]] = {}

    @property
    def growth(self) -> Growth | None:
        """How discovery grows domains together; without it (None) it asks for columns one by one."""
        return None

    def chosen(self, domain: Domain, terms: Terms) -> Method:
        """Itself."""
        return self

    @abstractmethod
    def plan(self, source: Source, domain: Domain, budget: Budget, terms: Terms = NO_TERMS) -> Plan:
        """The marginals and their shares of the budget, from public facts; ``planned`` makes the plan."""

    @abstractmethod
    def run(self, plan: Plan, curator: Curator, terms: Terms = NO_TERMS) -> Model:
        """Measure as planned and fit a model to the noisy answers."""

    def variances(self, model: Model, answers: Sequence[NoisyMarginal]) -> Variances:
        """Of the measured one-way tables, with which every model agrees."""
        return Variances((), one_way_components(model.domain, answers))

    def planned(
        self,
        source: Source,
        domain: Domain,
        budget: Budget,
        terms: Terms,
        steps: Iterable[MeasureStep | ReservedStep],
    ) -> Plan:
        """A plan of these steps, with the details of the method.

        Raises:
            InputError: a workload or a target is given, but the method does not use it.
        """
        if terms.workload.sets:
            self._check_uses("workload", self.takes_workload, [m.takes_workload for m in METHODS.values()])
        if terms.workload.target:
            self._check_uses("target", self.takes_target, [m.takes_target for m in METHODS.values()])
        said = self.details(terms)
        return Plan(source, domain, self.name, tuple(steps), budget, details=said)

    def _check_uses(self, option: str, able: bool, others: Sequence[bool]) -> None:
        if not able:
            names = [repr(name) for name, other in zip(METHODS, others, strict=True) if other]
            raise InputError(
                f"method={self.name!r} does not use {option}=: use method='auto' or {' or '.join(names)}"
            )

    def details(self, terms: Terms) -> PlanDetails:
        """Its settings, the workload and the target, which a certificate states even if they are empty."""
        workload = terms.workload
        identity: dict[str, Any] = {"workload": workload.facts()} if workload.sets else {}
        if workload.target:
            identity["target"] = workload.target
        public = {"workload": workload.facts(), "target": workload.target or None}
        return PlanDetails(changed_settings(self), identity, public, tuple(workload.lines()))


class Static(Recipe):
    """A method whose questions are all known beforehand: ``steps``, then ``fitted``."""

    __slots__ = ()

    @abstractmethod
    def steps(self, domain: Domain, budget: Budget) -> Sequence[MeasureStep]:
        """The questions and their shares of the budget, from public facts alone."""

    @abstractmethod
    def fitted(self, domain: Domain, answers: Sequence[NoisyMarginal]) -> Model:
        """A model of the noisy answers to all steps, in order."""

    def plan(self, source: Source, domain: Domain, budget: Budget, terms: Terms = NO_TERMS) -> Plan:
        """All of ``steps``."""
        return self.planned(source, domain, budget, terms, self.steps(domain, budget))

    def answers(self, plan: Plan, curator: Curator) -> list[NoisyMarginal]:
        """All tables of ``steps``, in order."""
        return [table for step in plan.known for table in curator.ask(Marginals(step.queries), step.budget)]

    def run(self, plan: Plan, curator: Curator, terms: Terms = NO_TERMS) -> Model:
        """Measure as planned and fit."""
        return self.fitted(plan.domain, self.answers(plan, curator))
