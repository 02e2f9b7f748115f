"""The last steps of a release: rows of the model, published in one transaction with the stored model."""

from __future__ import annotations

import shutil
<<<<<<< HEAD
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, replace
=======
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
>>>>>>> hw
from pathlib import Path
from typing import Any
from uuid import uuid4

<<<<<<< HEAD
import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.accounting.events import delta_units
=======
>>>>>>> hw
from dpsyn_sql.common.notices import warn
from dpsyn_sql.common.progress import phase
from dpsyn_sql.domain.shape import Shape
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
<<<<<<< HEAD
from dpsyn_sql.engines.stored_releases import drawing
from dpsyn_sql.engines.written_rows import reading, reading_table
from dpsyn_sql.errors import EngineFailure, InternalError, PublishError
from dpsyn_sql.fit.arrays import IntArray
=======
from dpsyn_sql.errors import EngineFailure, PublishError
>>>>>>> hw
from dpsyn_sql.fit.model import families_in
from dpsyn_sql.fit.network import Network
from dpsyn_sql.front.job import Job, seed_of
from dpsyn_sql.front.losses import departed, lost_of
from dpsyn_sql.front.measure import FittedTable
from dpsyn_sql.front.references import PublicRows as Referred
from dpsyn_sql.ledger.entries import SqliteEntry
from dpsyn_sql.private.measure.planned_events import planned_events
from dpsyn_sql.report.certificate import Claim, certificate, claim, claim_of, types_facts
from dpsyn_sql.report.departures import Departure
from dpsyn_sql.report.doubts import Doubts, remarks
from dpsyn_sql.report.fitted import FittedRelease, rows_wanted
from dpsyn_sql.report.labels import code_labels
from dpsyn_sql.report.progress_bar import ReleaseProgress
<<<<<<< HEAD
from dpsyn_sql.report.result import Release
from dpsyn_sql.rows.sample.families import FamilySampler
=======
>>>>>>> hw
from dpsyn_sql.rows.sample.quotas import unit_sizes
from dpsyn_sql.rows.sample.sql_sampler import (
    INDEPENDENTLY,
    independent_rows,
    load_slots,
)
<<<<<<< HEAD
from dpsyn_sql.rows.sample.tree import TableRows, table_seed
from dpsyn_sql.rows.write.database import WrittenTable, publish_database
from dpsyn_sql.rows.write.drawn import staged_codes, staged_families, table_codes
from dpsyn_sql.rows.write.families import stage_families, stage_table, together
from dpsyn_sql.rows.write.parts import PartRows, RowPublisher
from dpsyn_sql.rows.write.persist import NetworkTables, StoredRelease, drawn_from
from dpsyn_sql.rows.write.public_rows import GroupedRows
from dpsyn_sql.rows.write.publish import part_rows, publish, publish_in_tasks
from dpsyn_sql.rows.write.redrawing import replaced_rows
from dpsyn_sql.rows.write.staging import append, stage_rows, warn_of_few_rows
=======
from dpsyn_sql.rows.write.families import StagedRows, stage, together
from dpsyn_sql.rows.write.persist import NetworkTables, StoredRelease, drawn_from
from dpsyn_sql.rows.write.publish import WrittenTable, publish
from dpsyn_sql.rows.write.staging import (
    warn_of_few_rows,
)
from dpsyn_sql.rows.write.tasks import PartRows, RowPublisher, part_rows
>>>>>>> hw
from dpsyn_sql.sqltext.fragments import Fragment, qualified

_ROW_NUMBER = 8
"""Bytes of a staged row beside its codes; each code has one or more of its own."""


def write_release(
    job: Job,
    entry: SqliteEntry,
    tables: Mapping[str, FittedTable],
    progress: ReleaseProgress,
    notes: tuple[str, ...],
) -> Release:
    """Everything after the last question: values of codes, what was lost, rows and their output.

    Raises:
        PublishError, InternalError: as the functions that write.
    """
    if job.request.several:
        return _write_tables(job, entry, tables, progress, notes)
    (table,) = tables.values()
    fitted = with_trust(job, table.fitted)
    seed = seed_of(entry.release_id) if job.request.seed is None else job.request.seed
    rows = rows_wanted(fitted) if job.request.rows is None else job.request.rows
    written, certificate, doubts = write_rows(job, entry, fitted, rows, seed, progress)
    entry.published(job.target_name, written)
    notes = (
        *notes,
        *remarks(job.request.epsilon, job.request.time_limit, job.deadline.cuts),
        *doubts.warned(),
    )
    return released(job, entry, fitted, written, certificate, notes, progress)


def with_trust(job: Job, fitted: FittedRelease) -> FittedRelease:
    """With the values of codes, and the variances of the model's estimates."""
    with phase("trust"):
        fitted = fitted.with_values
        return replace(fitted, variances=job.only.method.variances(fitted.model, fitted.measurements))


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
<<<<<<< HEAD
            found = _compared(job, engine, fitted, plan, how, sizes, seed)
            lost, doubts = lost_of(job.only, fitted, found, plan.replaced / max(written, 1))
=======
            found = _compared(job, engine, fitted, staged, seed)
            lost, doubts = lost_of(job, fitted, found, plan.replaced / max(written, 1))
>>>>>>> hw
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
<<<<<<< HEAD
    if plan.staged is None or not plan.kept:
        return ()
    families, names = families_in(fitted.model), fitted.shape.domain.names
    if families is None or sizes is None:
        laid_out = how != INDEPENDENTLY
        drawn = staged_codes(engine, plan.staged, names, plan.kept, seed, laid_out=laid_out)
        return departed(job.only.method, fitted, drawn)
    found = staged_families(engine, plan.staged, families, sizes, seed)
    return () if found is None else departed(job.only.method, fitted, found)
=======
    drawn = None if staged is None or not staged.total else staged.compared(engine, seed)
    return () if drawn is None else departed(job.method, fitted, drawn)
>>>>>>> hw


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
    if job.only.total is not None:
        return claim_of(job.only.total.whole, job.request.delta)
    if job.only.panel is not None:
        return claim_of(job.only.panel.whole, job.request.delta)
    return claim(job.only.plan, planned_events(job.only.plan), job.request.delta)


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


def released(
    job: Job,
    entry: SqliteEntry,
    fitted: FittedRelease,
    rows: int,
    certificate: dict[str, Any],
    notes: tuple[str, ...],
    progress: ReleaseProgress,
) -> Release:
    """What a call returns once ``rows`` rows are written."""
    kept = job.target.kept or (job.con if job.target.path is None else job.target.path)
    return Release(
        table=job.target.name,
        rows=rows,
        epsilon=certificate["guarantee"]["epsilon"],
        delta=certificate["guarantee"]["delta"],
        rho=float(fitted.plan.budget.rho),
        id=entry.release_id,
        model=fitted.model,
        measurements=fitted.measurements,
        facts=certificate,
        replayed=entry.replayed,
        notes=notes,
        draw=drawing(kept, entry.release_id, job.stored_name),
        read=reading(job.con, job.target, fitted.shape, entry.release_id),
        variances=fitted.variances,
        timings=progress.timings(),
    )


# -- several tables ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Ready:
    """A table with the values of its codes: what is written of it."""

    table: FittedTable
    fitted: FittedRelease

    @classmethod
    def of(cls, table: FittedTable) -> _Ready:
        """Everything after the last question that needs no rows."""
        leg, fitted = table.plan, table.fitted.with_values
        return cls(table, replace(fitted, variances=leg.method.variances(fitted.model, fitted.measurements)))

    @property
    def name(self) -> str:
        """That of the table."""
        return self.table.plan.name

    def judged(self, rows: TableRows, seed: int) -> tuple[dict[str, Any], Doubts]:
        """Its losses and verdicts, and the doubts that follow from them, once its rows are drawn."""
        leg = self.table.plan
        with phase("trust"):
            found = departed(leg.method, self.fitted, table_codes(rows, seed)) if rows.total else ()
            return lost_of(leg, self.fitted, found)


def _write_tables(
    job: Job,
    entry: SqliteEntry,
    tables: Mapping[str, FittedTable],
    progress: ReleaseProgress,
    notes: tuple[str, ...],
) -> Release:
    """Sample codes of all tables, decode them by SQL, and publish them with the models in one transaction.

    Raises:
        PublishError: something else has appeared in place of the output, it cannot be written, or the type of
            a key cannot hold so many values.
        InternalError: the rows of a table are not those that were counted.
    """
    with phase("trust"):
        ready = [_Ready.of(table) for table in tables.values()]
    seed = seed_of(entry.release_id) if job.request.seed is None else job.request.seed
    units = rows_wanted(ready[0].fitted) if job.request.rows is None else job.request.rows
    if units == 0 and job.request.rows is None:
        warn("The noisy total is not above zero: the synthetic tables are empty.")
    engine, problem = job.target.open(), ""
    try:
        written, rows, doubts = _staged_tables(job, entry, engine, ready, units, seed)
        try:
            with phase("write"), entry.publishing(job.target_name):
                progress.writing()
                publish_database(
                    engine,
                    job.target,
                    job.tree,
                    written,
                    job.public,
                    constraints=job.request.constraints,
                )
                progress.written(job.target.name)
        except PublishError as error:
            problem = str(error)
    finally:
        engine.close()
    if problem:
        raise PublishError(
            f"{problem} The debit stands, and the answers are stored: the same call, or one with "
            f"name={entry.name!r} and another into=, costs nothing more."
        )
    entry.published(job.target_name, sum(rows.values()))
    return _released_tables(job, entry, ready, written, doubts, notes, progress)


def _staged_tables(
    job: Job, entry: SqliteEntry, engine: DuckDBEngine, ready: Sequence[_Ready], units: int, seed: int
) -> tuple[list[WrittenTable], dict[str, int], dict[str, Doubts]]:
    """Draw the rows of all tables, those of the root first, stage them, and compare them with the noisy
    answers; how many they are, and what is doubtful, by table."""
    rows, written, doubts = dict[str, TableRows](), list[WrittenTable](), dict[str, Doubts]()
    for one in ready:
        leg, own, families = one.table.plan, table_seed(seed, one.name), families_in(one.fitted.model)
        above = None if leg.table.parent is None else rows[leg.table.parent]
        shape = together(one.fitted.shape, families)
        given = None if above is None or families is None else above.given(families, own)
        staged, model = temporary("staged"), one.fitted.model
        with leg.terms.deadline.running(), phase("sample") as advance:
            drawn = stage_table(engine, shape, model, given, units, staged, own, advance, above=above)
        rows[one.name] = drawn
        lost, doubts[one.name] = one.judged(drawn, own)
        parent = next((other.kept for other in written if other.name == leg.table.parent), None)
        lookups = {name: _grouped(found) for name, found in job.tied.lookups.get(one.name, {}).items()}
        kept = _kept_of_table(job, entry, one, _facts_of_table(job, entry, one, lost, drawn.total, seed))
        kept = replace(kept, parent=parent, lookups=lookups)
        written.append(WrittenTable(one.name, shape, staged, own, kept, lookups))
    return written, {name: drawn.total for name, drawn in rows.items()}, doubts


def _grouped(rows: Referred) -> GroupedRows:
    """The rows of a public table that a reference can name, each with its group."""
    groups = np.repeat(np.arange(rows.sizes.size), rows.sizes)
    return GroupedRows(groups, dict(zip(rows.key, rows.texts, strict=True)))


def _facts_of_table(
    job: Job, entry: SqliteEntry, one: _Ready, lost: Mapping[str, Any], rows: int, seed: int
) -> dict[str, Any]:
    """The certificate of a table: the promise is that of all tables together, the questions are its own.
    ``lost``: of ``facts_of_losses``."""
    leg, fitted, events = one.table.plan, one.fitted, entry.events
    thresholds = sum(delta_units(event) for own in job.tables for event in planned_events(own.plan))
    claimed = claim_of(job.budget, job.request.delta, thresholds)
    facts = certificate(
        fitted.plan,
        fitted.shape,
        [events[place] for place in one.table.events],
        release_id=entry.release_id,
        debited_on=entry.debited_on,
        claimed=claimed,
        excluded=job.request.exclude,
        rows=rows,
        seed=seed,
        drawn=fitted.model.sampler().drawn,
        families=fitted.families,
    )
    return table_certificate(
        {**facts, **types_facts(fitted.types), "losses": lost},
        job.tree,
        leg.name,
        name=job.stored_name,
        release=entry.release_id,
        budget=job.budget,
        claimed=claimed,
        not_protected=job.tree.not_protected,
    )


def _kept_of_table(job: Job, entry: SqliteEntry, one: _Ready, facts: dict[str, Any]) -> StoredRelease:
    """What is stored of a table by itself."""
    fitted = one.fitted
    attributes = fitted.shape.domain.attributes
    hidden = fitted.model.domain.attributes[len(attributes) :]
    return StoredRelease(
        name=name_of_table(job.stored_name, one.name),
        release_id=id_of_table(entry.release_id, one.name),
        created=entry.debited_on,
        facts=facts,
        shape=fitted.shape,
        model=fitted.model,
        drawn=drawn_from(fitted.model),
        measurements=fitted.measurements,
        labels=[code_labels(attribute) for attribute in (*attributes, *hidden)],
        variances=fitted.variances,
    )


def _released_tables(
    job: Job,
    entry: SqliteEntry,
    ready: Sequence[_Ready],
    written: Sequence[WrittenTable],
    doubts: Mapping[str, Doubts],
    notes: tuple[str, ...],
    progress: ReleaseProgress,
) -> Release:
    """The release of each table, and what the operator is told of all of them."""
    deadline = job.deadline
    own = [*notes, *remarks(job.request.epsilon, job.request.time_limit, deadline.cuts)]
    for one in ready:
        own += [f"{one.name}: {text}" for text in doubts[one.name].notes]
        for text in doubts[one.name].warnings:
            warn(f"{one.name}: {text}")
            own.append(f"{one.name}: {text}")
    tables = dict[str, Release]()
    for one, table in zip(ready, written, strict=True):
        if table.kept is None:
            raise InternalError("a table was written without what stays with it")
        facts, fitted = dict(table.kept.facts), one.fitted
        tables[one.name] = Release(
            table=job.target.names[one.name],
            rows=facts["sampling"]["rows"],
            epsilon=facts["guarantee"]["epsilon"],
            delta=facts["guarantee"]["delta"],
            rho=float(job.budget.rho),
            id=table.kept.release_id,
            model=fitted.model,
            measurements=fitted.measurements,
            facts=facts,
            replayed=entry.replayed,
            notes=tuple(own),
            draw=drawing(job.stored_in, table.kept.release_id, table.kept.name),
            read=reading_table(job.con, job.target, one.name, table.kept.release_id),
            variances=fitted.variances,
        )
    return DatabaseRelease.of(tables, job.target.name, progress.timings())
