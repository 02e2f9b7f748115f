"""A plan: what will be asked, at what budget. Data made from public facts; reads no rows."""

from __future__ import annotations

from dataclasses import dataclass

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.domain.attributes import Domain
from dpsyn_sql.plan.discovery import DiscoveryStep
from dpsyn_sql.plan.queries import MarginalQuery
from dpsyn_sql.plan.workload import UNWEIGHTED, Workload
from dpsyn_sql.source.relation import Source


@dataclass(frozen=True, slots=True)
class MeasureStep:
    """One question through the door: all ``queries`` at the same noise, paid by ``budget``."""

    name: str
    queries: tuple[MarginalQuery, ...]
    budget: Budget


@dataclass(frozen=True, slots=True)
class Further:
    """Marginals of ``attributes`` attributes and at most ``cells`` cells that may be asked for too.

    Too many to be counted ahead: which of them, noisy answers decide, and they are counted then. All that
    are asked for have ``together`` cells at most.
    """

    attributes: int
    cells: int
    together: int

    def holds(self, query: MarginalQuery, domain: Domain) -> bool:
        """Whether a marginal is one of these."""
        return len(query.attrs) == self.attributes and domain.cells(query.attrs) <= self.cells


@dataclass(frozen=True, slots=True)
class ReservedStep:
    """Several questions about ``queries``, or coarser tables of them, that depend on noisy answers.

    How many there will be, and which, is not known in advance; ``budget`` pays for all of them, also for
    those about ``further`` marginals.
    """

    name: str
    queries: tuple[MarginalQuery, ...]
    budget: Budget
    further: Further | None = None

    def pairs_assumed(self, domain: Domain) -> int:
        """How many tables a plan is explained with: as many as there are attributes, or all there are."""
        return min(len(domain.names), len(self.queries))


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything a release will do that touches private data.

    ``discovery`` comes before ``steps``; ``budget`` pays for both. Until discovery has been, ``domain`` has
    every undiscovered attribute at the largest size it can get. ``caps``: cells of all candidates and of the
    junction tree at most, if a limit on memory lowered them: other questions may follow.
    ``workload``: what the shares rest on.
    """

    source: Source
    domain: Domain
    method: str
    steps: tuple[MeasureStep | ReservedStep, ...]
    budget: Budget
    discovery: tuple[DiscoveryStep, ...] = ()
    caps: tuple[int, ...] = ()
    workload: Workload = UNWEIGHTED

    @property
    def queries(self) -> tuple[MarginalQuery, ...]:
        """All marginals that are counted ahead, in order."""
        return tuple(query for step in self.steps for query in step.queries)

    @property
    def further(self) -> Further | None:
        """Marginals that may be asked for beside ``queries``."""
        return next((step.further for step in self.steps if isinstance(step, ReservedStep)), None)

    @property
    def known(self) -> tuple[MeasureStep, ...]:
        """The steps known in every detail before anything is read; they come first."""
        return tuple(step for step in self.steps if isinstance(step, MeasureStep))
