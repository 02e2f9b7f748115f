"""A plan: what will be asked, at what budget. Data made from public facts; reads no rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.attributes.attribute import Domain
from dpsyn_sql.planning.asking import Asked, Look, Reserve, Step
from dpsyn_sql.planning.queries import MarginalQuery, NoisyMarginal
from dpsyn_sql.source.relation import PrivacyUnit, Source

if TYPE_CHECKING:  # loads numpy, and a ledger is shown without
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class PlanDetails:
    """What a method says of itself in its plan; JSON-ready.

    ``settings``: those that are not the default; they make another release. ``identity``: what else makes
    another release, as other questions may follow. ``public``: further public facts of the certificate.
    ``lines``: of the explained plan, after the line that names the method.
    """

    settings: Mapping[str, Any] = field(default_factory=dict)
    identity: Mapping[str, Any] = field(default_factory=dict)
    public: Mapping[str, Any] = field(default_factory=dict)
    lines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class CountedKey:
    """What discovery has counted of a table that is one key, which is its only attribute; public.

    ``tables``: the noisy total (rows), then the noisy rows of each code. ``rows`` (float64[size], none
    negative): the estimate of the latter; they add up to max(0, total). ``committed``: they are whole
    numbers, which the rows of a release meet.
    """

    tables: tuple[NoisyMarginal, NoisyMarginal]
    rows: NDArray[np.float64]
    committed: bool

    @property
    def total(self) -> float:
        """Rows in all; may be negative."""
        return float(self.tables[0].values)


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that a release will do with private data.

    ``steps``: what the method asks before its first look, and what it reserves. ``discovery`` comes before
    them; ``budget`` pays for both. ``siblings``: what pays for questions about pairs of rows of one unit in
    between, where rows of a unit stay together (``discovery/families.py``); what they leave of it goes to the
    steps; ``sibling_questions`` is how many were asked, once they are. Before discovery, ``domain`` has every
    undiscovered attribute at its largest possible size.
    """

    source: Source
    domain: Domain
    method: str
    steps: tuple[Step, ...]
    budget: Budget
    discovery: tuple[Look, ...] = ()
    details: PlanDetails = field(default_factory=PlanDetails)
    siblings: Budget | None = None
    sibling_questions: int = 0

    @property
    def queries(self) -> tuple[MarginalQuery, ...]:
        """All marginals that are counted ahead, in order."""
        return queries_of(self.steps)

    @property
    def asked(self) -> tuple[Asked, ...]:
        """The questions known in every detail before anything is read, in order."""
        return tuple(step for step in self.steps if isinstance(step, Asked))

    @property
    def reserves(self) -> tuple[Reserve, ...]:
        """What is reserved for questions that depend on noisy answers, in order."""
        return tuple(step for step in self.steps if isinstance(step, Reserve))

    @property
    def static(self) -> bool:
        """Whether every question is known before anything is read."""
        return not self.reserves

    @property
    def together(self) -> int | None:
        """The most cells of marginals that may be asked for beside ``queries``; None: there are none."""
        further = [reserve.together for reserve in self.reserves if reserve.further]
        return sum(further) if further else None


def queries_of(steps: Iterable[Step]) -> tuple[MarginalQuery, ...]:
    """All marginals that steps name, in order."""
    return tuple(query for step in steps for query in step.queries)


def equivalent_rho(unit: PrivacyUnit, domain: Domain, budget: Budget, *, of_units: bool = False) -> float:
    """The rho, for units of one row, whose Gaussian noise is that of a budget; ``of_units``: for units that
    count one, whatever they weigh.

    By ``NoiseLaw`` Laplace noise of epsilon on d tables has the deviation of Gaussian noise of rho =
    epsilon^2 / 4 d on all of them.
    """
    rows = unit.sensitivity // (unit.weight if of_units else 1)
    if budget.gaussian:
        return float(budget.rho) / rows**2
    return float(budget.fraction) ** 2 / (4 * max(1, len(domain.attributes)) * rows**2)


Tie = tuple[str, tuple[str, ...]]
"""The table, with its key, that columns name a row of (empty: their value is the unit), and the columns."""


@dataclass(frozen=True, slots=True)
class ReleaseKey:
    """The idempotency key of a release.

    ``name`` is that of the output if ``named`` is false. ``sources`` are the private tables and files that
    are read, whatever query reads them. They decide which account is charged. They are not part of the
    identity, since a folder may grow. ``ties``: by what the rows of each of them belong to the unit; of
    single rows none.
    ``configuration`` is JSON-ready: resolved source, unit, domain, excluded columns, method and
    settings, epsilon and delta. Post-processing (output, rows, seed) is not part of it.
    """

    account: str | None
    name: str
    version: str | None
    configuration: Mapping[str, Any]
    sources: tuple[str, ...] = ()
    named: bool = True
    ties: Mapping[str, Tie] = field(default_factory=dict)

    @property
    def unit(self) -> str:
        """The privacy unit: a column's name, ``"row"`` or ``"row of result"``."""
        return str(self.configuration.get("unit") or "row")
