"""release(): the whole pipeline on one page.

    source -> domain -> plan -> [ count -> measure ] -> fit -> sample -> write

Everything in brackets happens behind the door (``private/measure/curator.py``). The ledger is charged
first. What comes after uses only noisy answers: it may be seeded, repeated, published.
"""

from __future__ import annotations

import hashlib
from contextlib import closing
from dataclasses import replace
from typing import Any

from threadpoolctl import threadpool_limits

from dpsyn_sql.accounting.events import GaussianEvent, LaplaceEvent, ThresholdEvent
from dpsyn_sql.discovery.cells import STANDS_OUT
from dpsyn_sql.discovery.discover import discovered
from dpsyn_sql.discovery.recoding import recoded
from dpsyn_sql.engines.source_session import Connection
from dpsyn_sql.engines.stored_releases import drawing
from dpsyn_sql.engines.written_rows import reading
from dpsyn_sql.errors import InputError
from dpsyn_sql.fit.residuals import shown_tables
from dpsyn_sql.fit.variances import one_way_counts
from dpsyn_sql.front.calls import taking
from dpsyn_sql.front.prepare import Job, prepared
from dpsyn_sql.front.publish import write_rows
from dpsyn_sql.front.record import opened_ledger
from dpsyn_sql.front.request import Request
from dpsyn_sql.ledger.protocols import LedgerEntry
from dpsyn_sql.planning.discovery import Ask
from dpsyn_sql.planning.plan import Plan
from dpsyn_sql.planning.queries import NoisyMarginal
from dpsyn_sql.private.count.counter import SqlCounter
from dpsyn_sql.private.count.discovery import SqlDiscoveryCounter
from dpsyn_sql.private.measure.calibrate import standard_deviation
from dpsyn_sql.private.measure.curator import LocalCurator
from dpsyn_sql.private.measure.noise import ExactNoise
from dpsyn_sql.private.measure.planned import discovery_events
from dpsyn_sql.private.measure.questions.keys import shown_from
from dpsyn_sql.report.doubts import doubts, notes_on, remarks
from dpsyn_sql.report.fitted import FittedRelease, rows_wanted
from dpsyn_sql.report.loss_words import facts_of_losses
from dpsyn_sql.report.losses import losses_of
from dpsyn_sql.report.progress_bar import ReleaseProgress, noting_interrupts, progress_bar
from dpsyn_sql.report.result import Release
from dpsyn_sql.source.engine import SourceEngine


@taking(Request)
def release(con: Connection, request: Request) -> Release:
    """Write a differentially private synthetic copy of a table.

    ``release(con, source, epsilon=...)``, or ``release(con, Request(source, epsilon=...))``.

    Args:
        con: a DuckDB connection, the path of a DuckDB file, a Spark session, or None (files only). A file
            alone is the source: ``release("people.parquet")``. So is a data frame of pandas, Polars or Spark
            or an Arrow table, with the name that the ledger knows its data by:
            ``release(df, "people", ledger="people.ledger")``. Without ``into`` its synthetic rows are in
            memory: ``Release.to_df()``.
        request: the options as one value; or its fields as arguments:

    Raises:
        InputError: the call cannot be carried out; nothing was read, written or charged.
        PrivacyBudgetExceeded: the ledger refuses the debit; nothing was read.
        ReleaseChanged: name and version were released with other settings; nothing was charged.
        ReleaseExists: the same source, version and settings were released to another output, and no
            ``name`` is given; nothing was charged. The message says how to replay it at no cost.
        LedgerError: the ledger cannot be found, opened or written; nothing was read.
        PublishError: something else has appeared at ``into``; the debit stays, and the message says how
            another ``into`` costs nothing more.
        EngineFailure: a statement failed in the database; the debit stays.
        KeyboardInterrupt: with a note that says what was charged and how to continue.
    """
    if request.asks_total:
        raise InputError("cumulative= asks for a running total: call dpsyn_sql.running_total()")
    with (
        noting_interrupts() as course,
        progress_bar(),
        # Fits are small: on busy cores the threads of the linear algebra library would wait for each other.
        threadpool_limits(1, user_api="blas"),
        prepared(con, request) as job,
        opened_ledger(job.con, job.place) as accounts,
        course.charging(
            job.key.name,
            accounts.open_release(job.key, job.plan.budget, new_debit=request.new_debit),
            kept=job.place is not None,
        ) as entry,
    ):
        notes = notes_on(entry)
        made = _measure_and_fit(job, entry)
        return finished(job, entry, made, course, notes)


def finished(
    job: Job, entry: LedgerEntry, made: FittedRelease, course: ReleaseProgress, notes: tuple[str, ...]
) -> Release:
    """Everything after the last question: rows, their publication, and what the caller gets."""
    entry.close_questions()
    course.measured()
    made = made.filled
    job.session.release_source()  # from here on nothing can read the source
    made = _written_as(made)
    needed = _needed(made.plan)
    losses = losses_of(made, needed, job.shape)
    told = doubts(made, losses, needed=needed, named=_named(job))
    made = replace(made, variances=job.method.variances(made.model, made.measurements))
    seed = _seed_of(entry.release_id) if job.request.seed is None else job.request.seed
    rows = rows_wanted(made) if job.request.rows is None else job.request.rows
    lost = facts_of_losses(losses, told.warnings)
    written, facts = write_rows(job, entry, made, lost, rows, seed, course)
    entry.published(job.target_name, written)
    own = remarks(job.request.epsilon, job.request.time_limit, job.deadline.cuts)
    return _released(job, entry, made, written, facts, (*notes, *own, *told.warned()))


def _written_as(made: FittedRelease) -> FittedRelease:
    """How codes are written, by the noisy counts of each attribute."""
    counts = one_way_counts(made.shape.domain, made.measurements)
    return replace(made, shape=recoded(made.shape, counts, made.model.total))


def _measure_and_fit(job: Job, entry: LedgerEntry) -> FittedRelease:
    """The private side of the door, and the fits between its questions."""
    source, engine = job.plan.source, job.session.engine
    relation, unit = source.relation, source.unit
    csv = relation.kind == "csv" and not relation.strict
    with closing(SqlDiscoveryCounter(engine, relation.sql, csv=csv, unit=unit)) as unknown:
        door = LocalCurator(None, None, unit.max_rows, entry, ExactNoise(), unknown)
        found = discovered(job.shape, job.plan.discovery, door, unit.max_rows)
    domain = found.shape.domain
    plan = replace(job.method.plan(source, domain, job.rest, job.terms), counted=found.counted)
    with counted(engine, plan) as counter:
        door.open(counter, domain)
        model = job.method.run(plan, door, job.terms)
    return FittedRelease(
        shape=found.shape,
        plan=replace(plan, budget=job.plan.budget, discovery=found.asked),
        model=model,
        measurements=(*_counted(plan), *shown_tables(domain, door.measurements)),
        contributions=found.contributions,
        types=found.types,
    )


def _counted(plan: Plan) -> tuple[NoisyMarginal, ...]:
    return () if plan.counted is None else plan.counted.tables


def counted(engine: SourceEngine, plan: Plan) -> closing[SqlCounter]:
    """PRIVATE: what counts the marginals of a plan, for the door alone."""
    relation, unit = plan.source.relation, plan.source.unit
    csv = relation.kind == "csv" and not relation.strict
    queries, further = plan.queries, plan.further
    return closing(
        SqlCounter(engine, relation.sql, plan.domain, queries, csv=csv, unit=unit, further=further)
    )


def _seed_of(release_id: str) -> int:
    """The default sampling seed; the release id is random and public."""
    return int.from_bytes(hashlib.sha256(release_id.encode()).digest()[:8], "big")


def _named(job: Job) -> set[str]:
    """The columns to which the workload gives weight, and the target."""
    return {name for members, weight in job.terms.workload.weighted if weight > 1 for name in members}


_SEEN: tuple[Ask, ...] = ("grid", "leaves")
# The questions whose noise hides values.


def _needed(plan: Plan) -> dict[str, float]:
    """For discovered columns the rows that a value must have to be found."""
    found: dict[str, float] = {}
    for step, (event, *_) in zip(plan.discovery, discovery_events(plan), strict=True):
        if step.attr is not None and step.ask == "keys" and isinstance(event, ThresholdEvent):
            found[step.attr] = shown_from(event)
        elif step.attr is not None and isinstance(event, GaussianEvent | LaplaceEvent) and step.ask in _SEEN:
            found[step.attr] = STANDS_OUT * standard_deviation(event)
    return found


def _released(
    job: Job,
    entry: LedgerEntry,
    made: FittedRelease,
    rows: int,
    facts: dict[str, Any],
    notes: tuple[str, ...],
) -> Release:
    kept = job.target.kept or (job.con if job.target.path is None else job.target.path)
    return Release(
        table=job.target.name,
        rows=rows,
        epsilon=facts["guarantee"]["epsilon"],
        delta=facts["guarantee"]["delta"],
        rho=float(made.plan.budget.rho),
        id=entry.release_id,
        model=made.model,
        measurements=made.measurements,
        facts=facts,
        replayed=entry.replayed,
        notes=notes,
        draw=drawing(kept, entry.release_id, job.stored_name),
        read=reading(job.con, job.target, made.shape, entry.release_id),
        variances=made.variances,
    )
