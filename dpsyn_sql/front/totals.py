"""A running total: everything so far, period after period, under one budget for a whole calendar.

    nodes of earlier periods, measured or replayed -> the period's own node -> sums -> fit -> sample -> write

Each period measures one node (``planning/running.py``) under a ledger entry of its own. A total is made of
sums of stored answers, which is post-processing. Its rows, model and certificate are published under the
period's entry.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dpsyn_sql.accounting.events import PrivacyEvent, event_to_dict
from dpsyn_sql.common.progress import phase
from dpsyn_sql.errors import InternalError
from dpsyn_sql.front.job import Job
from dpsyn_sql.front.measure import FittedTable, charged, opened_counter
from dpsyn_sql.front.prepare import at_period
from dpsyn_sql.ledger.entries import SqliteEntry
from dpsyn_sql.ledger.sqlite import SqliteLedger
from dpsyn_sql.methods.recipe import Recipe
from dpsyn_sql.planning.asking import Recalled, tables_of
from dpsyn_sql.planning.plan import Plan
from dpsyn_sql.planning.queries import NoisyMarginal
from dpsyn_sql.planning.running import Total
from dpsyn_sql.private.measure.curator import LocalCurator
from dpsyn_sql.private.measure.noise import ExactNoise
from dpsyn_sql.report.fitted import FittedRelease
from dpsyn_sql.report.progress_bar import ReleaseProgress
from dpsyn_sql.source.slices import Window


@dataclass(frozen=True, slots=True)
class Node:
    """The answers of one period, and the entry that paid for them."""

    period: int
    release_id: str
    tables: Sequence[NoisyMarginal]
    events: tuple[PrivacyEvent, ...]


@dataclass(frozen=True, slots=True)
class TotalBefore:
    """The nodes of earlier periods that the total of a period adds up, and ``notes`` on what was measured for
    them."""

    nodes: tuple[Node, ...]
    notes: tuple[str, ...]

    @classmethod
    def of(cls, job: Job, ledger: SqliteLedger, progress: ReleaseProgress) -> TotalBefore:
        """Earlier periods that are missing are measured first, in order, without an output of their own.

        Raises:
            PrivacyBudgetExceeded: the ledger refuses the debit of a period; what was measured before stays.
        """
        total = _total(job)
        missing = _measure_missing(job, ledger, progress)
        nodes = tuple(_node(at_period(job, period), ledger, progress) for period in total.earlier)
        return cls(nodes, _note(missing, total))

    def measured(self, job: Job, entry: SqliteEntry) -> dict[str, FittedTable]:
        """The node of the period, and the model of all sums."""
        nodes = (*self.nodes, _measure(job, entry))
        table = job.only
        return {table.name: FittedTable(table, _made(job, nodes), ())}


def _total(job: Job) -> Total:
    if job.only.total is None:
        raise InternalError("a job of a running total has none")
    return job.only.total


def _method(job: Job) -> Recipe:
    if not isinstance(job.only.method, Recipe):
        raise InternalError("a running total was planned with a method whose questions depend on answers")
    return job.only.method


def _measure_missing(job: Job, ledger: SqliteLedger, progress: ReleaseProgress) -> tuple[int, ...]:
    """Measure all earlier periods that are not, in order: a bound on the windows of a unit holds only then.

    A period is measured after all before it, so the last one that is measured tells the rest.
    """
    period = _total(job).period - 1
    while period and not _is_measured(at_period(job, period), ledger):
        period -= 1
    missing = tuple(range(period + 1, _total(job).period))
    for each in missing:
        _node(at_period(job, each), ledger, progress)
    return missing


def _is_measured(job: Job, ledger: SqliteLedger) -> bool:
    preview = ledger.look(job.key, job.budget, (), new_debit=job.request.new_debit)
    return preview.measured_on is not None


def _node(job: Job, ledger: SqliteLedger, progress: ReleaseProgress) -> Node:
    """Measure the node of a period, or read back its answers."""
    with charged(job, ledger, progress) as entry:
        node = _measure(job, entry)
        entry.close_questions()
        return node


def _measure(job: Job, entry: SqliteEntry) -> Node:
    """Ask all questions of a node: the private side of the door."""
    source, domain, door = job.only.plan.source, job.only.plan.domain, LocalCurator(entry, ExactNoise())
    plan = _method(job).plan(source, domain, entry.budget, job.only.terms)
    with opened_counter(job, source, domain) as opening:
        door.open(opening, domain, source.unit.max_rows)
        tables = tables_of([door.ask(*asked) for asked in plan.asked])
    return Node(_total(job).period, entry.release_id, tables, entry.events)


def _made(job: Job, nodes: Sequence[Node]) -> FittedRelease:
    """The model of the summed answers, with the plan as the certificate tells it."""
    tables, plan = _summed([node.tables for node in nodes]), job.only.plan
    with phase("build"):
        model = _method(job).run(Recalled(tables), plan.domain, plan.budget, job.only.terms)
    return FittedRelease(
        shape=job.only.shape,
        plan=_told(job, nodes),
        model=model,
        measurements=tables,
        contributions=None,
        answers=tables,
    )


def _summed(nodes: Sequence[Sequence[NoisyMarginal]]) -> tuple[NoisyMarginal, ...]:
    """Sums of the tables of disjoint windows; their noise is independent, so its variances add up."""
    return tuple(
        replace(
            tables[0],
            values=sum(table.values for table in tables[1:]) + tables[0].values,
            sigma=math.hypot(*(table.sigma for table in tables)),
        )
        for tables in zip(*nodes, strict=True)
    )


def _told(job: Job, nodes: Sequence[Node]) -> Plan:
    """The plan with the budget and the unit of the whole calendar, and how the total was made."""
    total, plan = _total(job), job.only.plan
    unit = replace(plan.source.unit, max_rows=total.running.rows)
    public = {**plan.details.public, "running_total": _facts(job, nodes)}
    return replace(
        plan,
        source=replace(plan.source, unit=unit, sliced=None),
        budget=total.whole,
        details=replace(plan.details, public=public),
    )


def _facts(job: Job, nodes: Sequence[Node]) -> Mapping[str, Any]:
    """What readers need to know of a total, JSON-ready."""
    total, sliced = _total(job), job.only.plan.source.sliced
    if sliced is None or not isinstance(sliced.slice, Window):
        raise InternalError("a running total is of no calendar")
    whole = replace(sliced, slice=replace(sliced.slice, index=0, span=total.period))
    return {
        **total.facts,
        "period": total.period,
        "rows": whole.facts,
        "nodes": [
            {
                "release": node.release_id,
                "version": total.labels[node.period - 1],
                "windows": [node.period - total.running.span(node.period) + 1, node.period],
                "rows_per_unit": total.running.level(node.period).rows,
                "mechanisms": [event_to_dict(event) for event in node.events],
            }
            for node in nodes
        ],
    }


def _note(missing: Sequence[int], total: Total) -> tuple[str, ...]:
    if not missing:
        return ()
    first, last = (repr(total.labels[period - 1]) for period in (missing[0], missing[-1]))
    which = f"Period {first} was" if first == last else f"Periods {first} to {last} were"
    return (f"{which} not measured yet, and measured first.",)
