"""A plan: what will be asked, at what budget. Data made from public facts; reads no rows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.attributes.attribute import Domain
from dpsyn_sql.errors import InternalError
from dpsyn_sql.planning.looks import Look
from dpsyn_sql.planning.queries import MarginalQuery, NoisyMarginal
from dpsyn_sql.source.relation import Source

if TYPE_CHECKING:  # loads numpy, and a ledger is shown without
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class MeasureStep:
    """One question at the door: all ``queries`` with the same noise, paid from ``budget``.

    ``residuals``: it asks for residuals, not for whole marginals.
    """

    name: str
    queries: tuple[MarginalQuery, ...]
    budget: Budget
    residuals: bool = False


@dataclass(frozen=True, slots=True)
class LaterMarginals:
    """Marginals of at most ``attributes`` attributes and ``cells`` cells that may be asked for too.

    There are too many to count them ahead. Noisy answers decide which are asked for, and these are counted
    then, over bins if they are asked for over bins: cells are those of the table that is asked for. All that
    are asked for have at most ``together`` cells.
    """

    attributes: int
    cells: int
    together: int

    def holds(self, query: MarginalQuery, domain: Domain) -> bool:
        """Whether a marginal is one of these."""
        return len(query.attrs) <= self.attributes and math.prod(query.shape(domain)) <= self.cells


@dataclass(frozen=True, slots=True)
class ReservedStep:
    """Several questions about ``queries``, or coarser tables of them, that depend on noisy answers.

    Their number and content are not known in advance. ``budget`` pays for all of them, also for those about
    ``further`` marginals; there may be these alone. ``tables``: how many are measured, if that is known.
    """

    name: str
    queries: tuple[MarginalQuery, ...]
    budget: Budget
    further: LaterMarginals | None = None
    tables: int | None = None

    def pairs_assumed(self, domain: Domain) -> int:
        """The number of tables that explains a plan: ``tables``, else the number of attributes, or of all
        tables if fewer. How many further marginals there are is not known: then the number of attributes."""
        if self.tables is not None:
            return self.tables
        return min(len(domain.names), len(self.queries) or len(domain.names))


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
class SiblingStage:
    """Questions about pairs of rows of one unit, between discovery and the steps (``discovery/families.py``).

    ``budget`` pays for all of them; what they leave of it goes to the steps. ``questions``: how many were
    asked, once they are.
    """

    budget: Budget
    questions: int = 0


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that a release will do with private data.

    ``discovery`` comes before ``steps``; ``budget`` pays for both. ``siblings`` are asked in between, where
    rows of a unit stay together. Before discovery, ``domain`` has every
    undiscovered attribute at its largest possible size. ``counted``: of a table that is one key, once
    discovery is over. ``known_tables``: one-way tables that discovery has, with the noise taken out; nobody
    asks for them again. ``seen``: noisy counts of the labels that discovery found, without those of
    ``__other__`` and NULL.
    """

    source: Source
    domain: Domain
    method: str
    steps: tuple[MeasureStep | ReservedStep, ...]
    budget: Budget
    discovery: tuple[Look, ...] = ()
    details: PlanDetails = field(default_factory=PlanDetails)
    counted: CountedKey | None = None
    known_tables: tuple[NoisyMarginal, ...] = ()
    seen: tuple[NoisyMarginal, ...] = ()
    siblings: SiblingStage | None = None

    @property
    def queries(self) -> tuple[MarginalQuery, ...]:
        """All marginals that are counted ahead, in order."""
        return tuple(query for step in self.steps for query in step.queries)

    @property
    def known(self) -> tuple[MeasureStep, ...]:
        """The steps known in every detail before anything is read, in order."""
        return tuple(step for step in self.steps if isinstance(step, MeasureStep))

    @property
    def reserved(self) -> tuple[ReservedStep, ...]:
        """The steps whose questions depend on noisy answers, in order."""
        return tuple(step for step in self.steps if isinstance(step, ReservedStep))

    @property
    def static(self) -> bool:
        """Whether every question is known before anything is read."""
        return not self.reserved

    @property
    def further(self) -> LaterMarginals | None:
        """Marginals that may be asked for in addition to ``queries``.

        Raises:
            InternalError: two steps announce some, but one limit holds for all of them.
        """
        announced = [step.further for step in self.reserved if step.further is not None]
        if len(announced) > 1:
            raise InternalError("a plan has two steps with further marginals")
        return announced[0] if announced else None


def equivalent_rho(source: Source, domain: Domain, budget: Budget, *, of_units: bool = False) -> float:
    """The rho, for units of one row, whose Gaussian noise is that of a budget; ``of_units``: for units that
    count one, whatever they weigh.

    Laplace noise of a pure epsilon on d tables has the deviation of Gaussian noise of rho = epsilon^2 / 4 d.
    """
    rows = source.unit.sensitivity // (source.unit.weight if of_units else 1)
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
