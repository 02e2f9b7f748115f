"""The last steps of a release: rows of the model, published in one transaction with the stored model."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from dpsyn_sql.common.notices import warn
from dpsyn_sql.common.progress import phase
from dpsyn_sql.domain.shape import Shape
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.errors import EngineFailure, PublishError
from dpsyn_sql.fit.model import families_in
from dpsyn_sql.fit.network import Network
from dpsyn_sql.front.job import Job
from dpsyn_sql.front.losses import departed, lost_of
from dpsyn_sql.ledger.entries import SqliteEntry
from dpsyn_sql.private.measure.planned_events import planned_events
from dpsyn_sql.report.certificate import Claim, certificate, claim, claim_of, types_facts
from dpsyn_sql.report.departures import Departure
from dpsyn_sql.report.doubts import Doubts
from dpsyn_sql.report.fitted import FittedRelease, rows_wanted
from dpsyn_sql.report.labels import code_labels
from dpsyn_sql.report.progress_bar import ReleaseProgress
from dpsyn_sql.rows.sample.quotas import unit_sizes
from dpsyn_sql.rows.sample.sql_sampler import (
    INDEPENDENTLY,
    independent_rows,
    load_slots,
)
from dpsyn_sql.rows.write.families import StagedRows, stage, together
from dpsyn_sql.rows.write.persist import NetworkTables, StoredRelease, drawn_from
from dpsyn_sql.rows.write.publish import WrittenTable, publish
from dpsyn_sql.rows.write.staging import (
    warn_of_few_rows,
)
from dpsyn_sql.rows.write.tasks import PartRows, RowPublisher, part_rows
from dpsyn_sql.sqltext.fragments import Fragment, qualified

_ROW_NUMBER = 8
"""Bytes of a staged row beside its codes; each code has one or more of its own."""


def write_rows(
    job: Job,
    entry: SqliteEntry,
    fitted: FittedRelease,
    rows: int,
    seed: int,
    progress: ReleaseProgress,
) -> tuple[int, dict[str, Any], Doubts]:
    """Sample codes, compare them with the noisy answers, decode them by SQL, and publish them with the model
    in one transaction.

    ``rows``: how many; of a model with families how many units. Returns the number of rows, the certificate,
    and what the operator is to be told.

    Raises:
        InternalError: the rows are not those that were counted.
        PublishError: something else has appeared in place of the output, Spark cannot write it, or the noisy
            total is more rows than the disk has room for.
    """
    if job.request.rows is None and job.target.publisher is None:
        _check_room(job, fitted, rows)
    if rows == 0 and rows_wanted(fitted) == 0:  # not because the caller asks for none
        warn("The noisy total is not above zero: the synthetic table is empty.")
    engine, problem = job.target.open(), ""
    fitted = replace(fitted, shape=together(fitted.shape, families_in(fitted.model)))
    try:
        plan, drawn, staged = _staged(job, engine, fitted, rows, seed)
        written, how = plan.kept, INDEPENDENTLY if staged is None else staged.drawn
        sizes = None if staged is None else staged.units
        with phase("trust"):
            found = _compared(job, engine, fitted, staged, seed)
            lost, doubts = lost_of(job, fitted, found, plan.replaced / max(written, 1))
        if sizes is None and fitted.contributions is not None:
            sizes = unit_sizes(fitted.contributions.values, written)
        facts = {**facts_of(job, entry, fitted, written, seed, how), "losses": lost}
        if plan.replaced:
            facts["sampling"]["replaced"] = plan.replaced
        kept = kept_of(job, entry, fitted, drawn, facts)
        try:
            with phase("write"), entry.publishing(job.target_name):
                progress.writing()
                table = WrittenTable(
                    job.stored_name,
                    fitted.shape,
                    plan.staged or Fragment(""),
                    seed,
                    kept,
                    units=sizes,
                    parts=plan,
                )
                publish(engine, job.target, [table])
                progress.written(job.target.name)
        except PublishError as error:
            problem = str(error)
        except EngineFailure as error:
            if job.target.publisher is None:
                raise
            problem = (
                f"{job.target.name!r} could not be written: Spark failed while {error.step} ({error.kind}). "
                "Its log says why: whether it may write there, and whether its catalog takes the name."
            )
    finally:
        engine.close()
    if problem:
        raise PublishError(
            f"{problem} The debit stands, and the answers are stored: the same call, or one with "
            f"name={entry.name!r} and another into=, costs nothing more."
        )
    return written, facts, doubts


def _compared(
    job: Job, engine: DuckDBEngine, fitted: FittedRelease, staged: StagedRows | None, seed: int
) -> tuple[Departure, ...]:
    """Where staged rows depart from the noisy answers. What tasks draw is not compared: nothing is staged."""
    drawn = None if staged is None or not staged.total else staged.compared(engine, seed)
    return () if drawn is None else departed(job.method, fitted, drawn)


def _check_room(job: Job, fitted: FittedRelease, rows: int) -> None:
    """Noise can make the total larger than any table: no file is filled until it fails."""
    folder = Path() if job.target.path is None else job.target.path.absolute().parent
    room = shutil.disk_usage(folder).free
    if rows * (_ROW_NUMBER + len(fitted.shape.domain.attributes)) > room:
        raise PublishError(
            f"The noisy total is {rows:,} rows, more than the disk has room for: give rows=, such as "
            f"rows=1000000. The debit stands, and the answers are stored: the same call with rows= costs "
            "nothing more."
        )


def _staged(
    job: Job, engine: DuckDBEngine, fitted: FittedRelease, rows: int, seed: int
) -> tuple[PartRows, NetworkTables, StagedRows | None]:
    """Draw rows of codes and stage them, or prepare tasks to do so: then nothing is staged.

    Returns the rows, the network that SQL draws rows from, and what is staged.
    """
    network, publisher = independent_rows(fitted.model, rows, job.deadline), job.target.publisher
    with ThreadPoolExecutor(max_workers=1) as beside:  # one core alone draws few rows
        drawn = beside.submit(drawn_from, fitted.model)
        if network is not None and publisher is not None:
            plan = _planned(engine, publisher, fitted.shape, network, rows, seed)
            return plan, drawn.result(), None
        told = rows if families_in(fitted.model) is None else None  # of units nobody knows how many rows
        with job.deadline.running(), phase("sample", told) as advance:
            staged = stage(
                engine,
                fitted.shape,
                fitted.model,
                rows,
                temporary("staged"),
                seed,
                advance,
                deadline=job.deadline,
                network=network,
            )
    plan = part_rows(fitted.shape, staged.total, seed, staged=staged.table)
    return replace(plan, replaced=staged.replaced), drawn.result(), staged


def _planned(
    engine: DuckDBEngine, publisher: RowPublisher, shape: Shape, network: Network, rows: int, seed: int
) -> PartRows:
    """Rows that tasks draw, part by part; if conditions may leave fewer, how many those are."""
    slots = temporary("slots")
    with phase("sample", rows) as advance:
        load_slots(engine, network, slots)
        plan = part_rows(shape, rows, seed, network, slots)
        if plan.gaps:
            plan = replace(plan, left=publisher.left(engine, plan))
            warn_of_few_rows(plan.kept, rows)
        advance(rows)
    return plan


def temporary(what: str) -> Fragment:
    """A name for a temporary table."""
    return qualified("temp", "main", f"dpsyn_{what}_{uuid4().hex}")


def _claimed(job: Job) -> Claim:
    """Of the release; of all periods together if it is a running total or a panel."""
    if job.total is not None:
        return claim_of(job.total.whole, job.request.delta)
    if job.panel is not None:
        return claim_of(job.panel.whole, job.request.delta)
    return claim(job.plan, planned_events(job.plan), job.request.delta)


def facts_of(
    job: Job, entry: SqliteEntry, fitted: FittedRelease, rows: int, seed: int, drawn: str
) -> dict[str, Any]:
    """The certificate of the rows that are written; ``drawn``: how."""
    facts = certificate(
        fitted.plan,
        fitted.shape,
        entry.events,
        release_id=entry.release_id,
        debited_on=entry.debited_on,
        claimed=_claimed(job),
        excluded=job.request.exclude,
        rows=rows,
        seed=seed,
        drawn=drawn,
        families=fitted.families,
    )
    return facts | types_facts(fitted.types)


def kept_of(
    job: Job, entry: SqliteEntry, fitted: FittedRelease, drawn: NetworkTables, facts: dict[str, Any]
) -> StoredRelease:
    """What is stored with the output, under a name without folders: readers need not know them."""
    written = fitted.shape.domain.attributes
    hidden = fitted.model.domain.attributes[len(written) :]
    return StoredRelease(
        name=job.stored_name,
        release_id=entry.release_id,
        created=entry.debited_on,
        facts=facts,
        shape=fitted.shape,
        model=fitted.model,
        drawn=drawn,
        measurements=fitted.measurements,
        labels=[code_labels(attribute) for attribute in (*written, *hidden)],
        variances=fitted.variances,
    )
