"""The last steps of a release: rows of the model, published in one transaction with the stored model."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.common.notices import warn
from dpsyn_sql.common.progress import phase
from dpsyn_sql.domain.shape import Shape
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.errors import EngineFailure, PublishError
from dpsyn_sql.fit.arrays import IntArray
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
from dpsyn_sql.rows.sample.families import FamilySampler
from dpsyn_sql.rows.sample.quotas import unit_sizes
from dpsyn_sql.rows.sample.rounds import PART_ROWS
from dpsyn_sql.rows.sample.sql_sampler import (
    INDEPENDENTLY,
    alias_lists,
    append_network,
    independent_rows,
    load_slots,
)
from dpsyn_sql.rows.write.families import stage_families, together
from dpsyn_sql.rows.write.persist import NetworkTables, StoredRelease, drawn_from
from dpsyn_sql.rows.write.publish import WrittenTable, publish
from dpsyn_sql.rows.write.staging import (
    append,
    replaced_rows,
    stage_rows,
    staged_codes,
    staged_families,
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
        plan, drawn, how, sizes = _staged(job, engine, fitted, rows, seed)
        written = plan.kept
        with phase("trust"):
            found = _compared(job, engine, fitted, plan, how, sizes, seed)
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
    job: Job,
    engine: DuckDBEngine,
    fitted: FittedRelease,
    plan: PartRows,
    how: str,
    sizes: IntArray | None,
    seed: int,
) -> tuple[Departure, ...]:
    """Where staged rows depart from the noisy answers. What tasks draw is not compared: nothing is staged."""
    if plan.staged is None or not plan.kept:
        return ()
    families, names = families_in(fitted.model), fitted.shape.domain.names
    if families is None or sizes is None:
        laid_out = how != INDEPENDENTLY
        drawn = staged_codes(engine, plan.staged, names, plan.kept, seed, laid_out=laid_out)
        return departed(job.method, fitted, drawn)
    found = staged_families(engine, plan.staged, families, sizes, seed)
    return () if found is None else departed(job.method, fitted, found)


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
) -> tuple[PartRows, NetworkTables, str, IntArray | None]:
    """Draw rows of codes and stage them, or prepare tasks to do so.

    Returns the rows, the network that SQL draws rows from, a word for how the rows are drawn, and the numbers
    of units by rows if units are drawn.
    """
    network, publisher = independent_rows(fitted.model, rows, job.deadline), job.target.publisher
    with ThreadPoolExecutor(max_workers=1) as beside:  # one core alone draws few rows
        drawn = beside.submit(drawn_from, fitted.model)
        if network is not None and publisher is not None:
            plan = _planned(engine, publisher, fitted.shape, network, rows, seed)
            return plan, drawn.result(), INDEPENDENTLY, None
        plan, how, sizes = _drawn(job, engine, fitted, rows, seed, network)
    return plan, drawn.result(), how, sizes


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


def _drawn(
    job: Job, engine: DuckDBEngine, fitted: FittedRelease, rows: int, seed: int, network: Network | None
) -> tuple[PartRows, str, IntArray | None]:
    """Rows that are staged in the session that writes, how they were drawn, and units by their rows."""
    staged, sampler = temporary("staged"), fitted.model.sampler(job.deadline)
    if isinstance(sampler, FamilySampler):
        with job.deadline.running(), phase("sample") as advance:  # units are drawn, and rows told
            sizes = stage_families(engine, fitted.shape, sampler, rows, staged, seed, advance)
        written = int(sizes @ np.arange(1, sizes.size + 1))
        return part_rows(fitted.shape, written, seed, staged=staged), sampler.drawn, sizes
    made = nullcontext() if network is None else alias_lists(engine, network)
    with job.deadline.running(), phase("sample", rows) as advance, made as lists:

        def draw(number: int, other: int, first: int) -> int:
            if network is None or lists is None:
                batches = _reported(sampler.batches(number, other), advance)
                return append(engine, fitted.shape.domain, batches, staged, first)
            drawn = network, lists, number, other, staged
            return append_network(engine, *drawn, first=first, advance=advance)

        in_parts = network is not None
        written = stage_rows(engine, fitted.shape, draw, rows, staged, seed, in_parts=in_parts)
    plan = part_rows(fitted.shape, written, seed, staged=staged)
    if fitted.shape.never:
        plan = replace(plan, replaced=replaced_rows(engine, staged, rows, PART_ROWS if in_parts else rows))
    return plan, sampler.drawn if network is None else INDEPENDENTLY, None


def temporary(what: str) -> Fragment:
    """A name for a temporary table."""
    return qualified("temp", "main", f"dpsyn_{what}_{uuid4().hex}")


def _reported(
    batches: Iterator[NDArray[np.integer[Any]]], advance: Callable[[int], None]
) -> Iterator[NDArray[np.integer[Any]]]:
    for batch in batches:
        yield batch
        advance(len(batch))


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
