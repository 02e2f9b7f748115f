"""release() on one page.

    prepare     source, domain, plan, ledger, output, from public facts; a wrong call is refused here
    charge      the ledger, which may refuse the debit, before anything is read
    measure     behind the door: what discovery asks, then what the method asks, and the model of the answers
    finish      the source is let go; what values codes stand for, and what was lost
    write       rows of the model, with the model and the certificate, in one transaction

What comes after the last question uses only noisy answers: it may be seeded, repeated, published.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import replace
from typing import Any

from threadpoolctl import threadpool_limits

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.common.progress import phase
from dpsyn_sql.discovery.discover import discovered
from dpsyn_sql.discovery.families import found_groups
from dpsyn_sql.engines.source_session import Connection
from dpsyn_sql.engines.stored_releases import drawing
from dpsyn_sql.engines.written_rows import reading
from dpsyn_sql.errors import InputError
from dpsyn_sql.fit.residuals import shown_tables
from dpsyn_sql.front.arguments import takes_request
from dpsyn_sql.front.job import Job, seed_of
from dpsyn_sql.front.ledger_lookup import opened_ledger
from dpsyn_sql.front.prepare import prepared
from dpsyn_sql.front.publish import write_rows
from dpsyn_sql.front.request import Request
from dpsyn_sql.front.stopping import stopping
from dpsyn_sql.ledger.entries import SqliteEntry
from dpsyn_sql.ledger.sqlite import SqliteLedger
from dpsyn_sql.planning.families import Families
from dpsyn_sql.planning.plan import MeasureStep, Plan, SiblingStage
from dpsyn_sql.planning.queries import MarginalQuery
from dpsyn_sql.private.count.counter import SqlCounter
from dpsyn_sql.private.count.discovery import SqlDiscoveryCounter
from dpsyn_sql.private.measure.curator import LocalCurator
from dpsyn_sql.private.measure.noise import ExactNoise
from dpsyn_sql.report.doubts import notes_on, remarks
from dpsyn_sql.report.fitted import FittedRelease, rows_wanted
from dpsyn_sql.report.progress_bar import LAST_PHASES, ReleaseProgress, progress_bar, telling_what_stays
from dpsyn_sql.report.result import Release, ReleasedTable
from dpsyn_sql.source.engine import SourceEngine


@takes_request(Request)
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
        ReleaseStopped: it has learnt that little of the table can be kept (``method="auto"`` alone). Nothing
            was written; what it has not asked for pays for the next release of its account. The message says
            how to go on.
        EngineFailure: a statement failed in the database; the debit stays.
        ReleaseUnfinished: memory or a file was wanting after the debit, which stays.
        InternalError: a fault of ours. This and every other error after the debit says what was charged, and
            that the same call goes on at no further cost.
        KeyboardInterrupt: with a note that says what was charged and how to continue.
    """
    if request.asks_total:
        raise InputError("cumulative= asks for a running total: call dpsyn_sql.running_total()")
    if request.asks_panel:
        raise InputError("panel= asks for a period of a panel: call dpsyn_sql.panel()")
    with begun(con, request) as (job, ledger, progress), charged(job, ledger, progress) as entry:
        notes = notes_on(entry)
        fitted = measured_and_fitted(job, entry)
        return finished(job, entry, fitted, progress, notes)


@contextmanager
def begun(con: Connection, request: Request) -> Iterator[tuple[Job, SqliteLedger, ReleaseProgress]]:
    """The job of a call and its ledger, before the debit; and how far it comes, for interrupts and a bar."""
    with (
        telling_what_stays() as progress,
        progress_bar(LAST_PHASES),
        # Fits are small: on busy cores the threads of the linear algebra library would wait for each other.
        threadpool_limits(1, user_api="blas"),
        ExitStack() as opened,
    ):
        with phase("prepare"):
            job = opened.enter_context(prepared(con, request))
            ledger = opened.enter_context(opened_ledger(job.con, job.place))
        yield job, ledger, progress


def charged(job: Job, ledger: SqliteLedger, progress: ReleaseProgress) -> AbstractContextManager[SqliteEntry]:
    """The debit, or the entry of the same release at no cost."""
    opening = ledger.open_release(job.key, job.plan.budget, new_debit=job.request.new_debit)
    series = job.total is not None or job.panel is not None
    name = job.key.name if not series else f"{job.key.name} {job.key.version}"
    return progress.charging(name, opening, kept=job.place is not None)


def measured_and_fitted(job: Job, entry: SqliteEntry) -> FittedRelease:
    """The private side of the door, and the fits between its questions."""
    engine, source, unit = job.session.engine, job.source, job.source.unit
    csv = source.relation.read_as_text
    looked = unit.in_discovery
    with closing(SqlDiscoveryCounter(engine, source.relation.sql, csv=csv, unit=looked)) as unknown:
        door = LocalCurator(None, None, looked.max_rows, entry, ExactNoise(), unknown)
        chooser = replace(job.chooser, review=stopping(job, entry))
        found = discovered(job.shape, job.plan.discovery, door, looked.max_rows, chooser)
    # The domain is complete now: the plan so far took what was unknown at its largest.
    domain, terms = job.of_families(found.shape.domain, job.terms)
    rest = replace(job.rest, amount=job.rest.amount + found.unspent)
    if found.once is not None:
        rest = found.once.rest
        known = frozenset(name for table in found.tables for name in table.attrs)
        terms = replace(terms, alone=found.once.alone, known=known)
    siblings = None
    if terms.families is not None and job.method.takes_classes:
        families, rest, siblings = _with_groups(job, door, terms.families, rest)
        domain, terms = families.domain, replace(terms, families=families)
    plan = job.method.plan(source, domain, rest, terms)
    plan = replace(plan, siblings=siblings, counted=found.counted, known_tables=found.tables, seen=found.seen)
    with opened_counter(engine, plan, terms.families) as counter:
        door.open(counter, domain, unit.sensitivity)
        with phase("build"):
            model = job.method.run(plan, door, terms)
    in_discovery = found.tables if plan.counted is None else plan.counted.tables
    shown = (*in_discovery, *shown_tables(domain, door.measurements, found.tables))
    return FittedRelease(
        shape=found.shape,
        plan=replace(plan, budget=job.plan.budget, discovery=found.asked),
        model=model,
        measurements=tuple(table.in_units(unit.weight) for table in shown),
        contributions=found.contributions,
        types=found.types,
        families=terms.families,
        answers=(*(() if plan.counted is None else plan.counted.tables), *door.measurements),
        weight=unit.weight,
        beyond=found.beyond,
        looks=found.looks,
    )


def _with_groups(
    job: Job, door: LocalCurator, families: Families, budget: Budget
) -> tuple[Families, Budget, SiblingStage]:
    """The families, with classes of each if its rows agree more than its own attributes explain; what is left
    of the budget; and what was asked."""
    own, rest = job.divided(budget)
    queries = tuple(MarginalQuery((name,)) for name in families.domain.names)
    step = MeasureStep("pairs of rows of a unit", queries, own)
    plan = Plan(job.source, families.domain, job.method.name, (step,), own)
    with opened_counter(job.session.engine, plan, families, siblings=True) as counter:
        door.open(counter, families.domain, job.source.unit.sensitivity)
        before = door.questions
        groups, left = found_groups(door, families, own)
        stage = SiblingStage(own, door.questions - before)
    return families.grouped(groups), replace(rest, amount=rest.amount + left.amount), stage


def opened_counter(
    engine: SourceEngine, plan: Plan, families: Families | None = None, *, siblings: bool = False
) -> closing[SqlCounter]:
    """PRIVATE: what counts the marginals of a plan, for the door alone; ``siblings``: and pairs of rows."""
    relation, unit, csv = plan.source.relation, plan.source.unit, plan.source.relation.read_as_text
    return closing(
        SqlCounter(
            engine,
            relation.sql,
            plan.domain,
            plan.queries,
            csv=csv,
            unit=unit,
            further=plan.further,
            families=families,
            siblings=siblings,
        )
    )


def finished(
    job: Job, entry: SqliteEntry, fitted: FittedRelease, progress: ReleaseProgress, notes: tuple[str, ...]
) -> Release:
    """Everything after the last question: values of codes, what was lost, rows and their output."""
    entry.close_questions()
    progress.measured()
    job.session.release_source()  # from here on nothing can read the source
    with phase("trust"):
        fitted = fitted.with_values
        fitted = replace(fitted, variances=job.method.variances(fitted.model, fitted.measurements))
    seed = seed_of(entry.release_id) if job.request.seed is None else job.request.seed
    rows = rows_wanted(fitted) if job.request.rows is None else job.request.rows
    written, certificate, doubts = write_rows(job, entry, fitted, rows, seed, progress)
    entry.published(job.target_name, written)
    own = remarks(job.request.epsilon, job.request.time_limit, job.deadline.cuts)
    notes = (*notes, *own, *doubts.warned())
    return released(job, entry, fitted, certificate, notes, progress)


def released(
    job: Job,
    entry: SqliteEntry,
    fitted: FittedRelease,
    certificate: dict[str, Any],
    notes: tuple[str, ...],
    progress: ReleaseProgress,
) -> Release:
    """What a call returns once rows are written."""
    kept = job.target.kept or (job.con if job.target.path is None else job.target.path)
    table = ReleasedTable(
        table=job.target.name,
        facts=certificate,
        model=fitted.model,
        measurements=fitted.measurements,
        draw=drawing(kept, entry.release_id, job.stored_name),
        read=reading(job.con, job.target, fitted.shape, entry.release_id),
        variances=fitted.variances,
    )
    return Release.of(
        {job.stored_name: table}, replayed=entry.replayed, notes=notes, timings=progress.timings()
    )
