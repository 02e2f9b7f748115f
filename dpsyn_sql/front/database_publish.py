"""The last steps of a database release: rows of all tables, published together with their models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

import numpy as np

from dpsyn_sql.accounting.events import delta_units
from dpsyn_sql.common.notices import warn
from dpsyn_sql.common.progress import phase
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.engines.stored_releases import drawing
from dpsyn_sql.engines.written_rows import reading_table
from dpsyn_sql.errors import InternalError, PublishError
from dpsyn_sql.fit.model import families_in
from dpsyn_sql.front.database_job import DatabaseJob, FittedTable
from dpsyn_sql.front.job import seed_of
from dpsyn_sql.front.losses import departed, lost_of
from dpsyn_sql.front.references import PublicRows as Referred
from dpsyn_sql.ledger.entries import SqliteEntry
from dpsyn_sql.private.measure.planned_events import planned_events
from dpsyn_sql.report.certificate import certificate, claim_of, types_facts
from dpsyn_sql.report.database_certificate import id_of_table, name_of_table, table_certificate
from dpsyn_sql.report.database_result import DatabaseRelease
from dpsyn_sql.report.doubts import Doubts, remarks
from dpsyn_sql.report.fitted import FittedRelease, rows_wanted
from dpsyn_sql.report.labels import code_labels
from dpsyn_sql.report.progress_bar import ReleaseProgress
from dpsyn_sql.report.result import Release
from dpsyn_sql.rows.sample.tree import TableRows, table_seed
from dpsyn_sql.rows.write.families import stage_table, together
from dpsyn_sql.rows.write.persist import StoredRelease, drawn_from
from dpsyn_sql.rows.write.public_rows import GroupedRows
from dpsyn_sql.rows.write.publish import WrittenTable, publish
from dpsyn_sql.rows.write.staging import table_codes
from dpsyn_sql.sqltext.fragments import Fragment, qualified


@dataclass(frozen=True, slots=True)
class _Ready:
    """A table with the values of its codes: what is written of it."""

    table: FittedTable
    fitted: FittedRelease

    @classmethod
    def of(cls, table: FittedTable) -> _Ready:
        """Everything after the last question that needs no rows."""
        leg, fitted = table.leg, table.fitted.with_values
        return cls(table, replace(fitted, variances=leg.method.variances(fitted.model, fitted.measurements)))

    @property
    def name(self) -> str:
        """That of the table."""
        return self.table.leg.name

    def judged(self, rows: TableRows, seed: int) -> tuple[dict[str, Any], Doubts]:
        """Its losses and verdicts, and the doubts that follow from them, once its rows are drawn."""
        leg = self.table.leg
        with phase("trust"):
            found = departed(leg.method, self.fitted, table_codes(rows, seed)) if rows.total else ()
            return lost_of(leg, self.fitted, found)


def write_database(
    job: DatabaseJob,
    entry: SqliteEntry,
    tables: Mapping[str, FittedTable],
    progress: ReleaseProgress,
    notes: tuple[str, ...],
) -> DatabaseRelease:
    """Sample codes of all tables, decode them by SQL, and publish them with the models in one transaction.

    Raises:
        PublishError: something else has appeared in place of the output, it cannot be written, or the type of
            a key cannot hold so many values.
        InternalError: the rows of a table are not those that were counted.
    """
    with phase("trust"):
        ready = [_Ready.of(table) for table in tables.values()]
    seed = seed_of(entry.release_id) if job.request.seed is None else job.request.seed
    units = rows_wanted(ready[0].fitted) if job.request.units is None else job.request.units
    if units == 0 and job.request.units is None:
        warn("The noisy total is not above zero: the synthetic tables are empty.")
    engine, problem = job.target.open(), ""
    try:
        written, rows, doubts = _staged(job, entry, engine, ready, units, seed)
        try:
            with phase("write"), entry.publishing(job.target_name):
                progress.writing()
                publish(
                    engine,
                    job.target,
                    written,
                    job.tree,
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
    return _released(job, entry, ready, written, doubts, notes, progress)


def _staged(
    job: DatabaseJob, entry: SqliteEntry, engine: DuckDBEngine, ready: Sequence[_Ready], units: int, seed: int
) -> tuple[list[WrittenTable], dict[str, int], dict[str, Doubts]]:
    """Draw the rows of all tables, those of the root first, stage them, and compare them with the noisy
    answers; how many they are, and what is doubtful, by table."""
    rows, written, doubts = dict[str, TableRows](), list[WrittenTable](), dict[str, Doubts]()
    for one in ready:
        leg, own, families = one.table.leg, table_seed(seed, one.name), families_in(one.fitted.model)
        above = None if leg.table.parent is None else rows[leg.table.parent]
        shape = together(one.fitted.shape, families)
        given = None if above is None or families is None else above.given(families, own)
        staged, model = _temporary(), one.fitted.model
        with leg.terms.deadline.running(), phase("sample") as advance:
            drawn = stage_table(
                engine,
                shape,
                model,
                given,
                units,
                staged,
                own,
                advance,
                above=above,
                deadline=leg.terms.deadline,
            )
        rows[one.name] = drawn
        lost, doubts[one.name] = one.judged(drawn, own)
        parent = next((other.kept for other in written if other.name == leg.table.parent), None)
        lookups = {name: _grouped(found) for name, found in job.tied.lookups.get(one.name, {}).items()}
        kept = _kept(job, entry, one, _facts(job, entry, one, lost, drawn.total, seed))
        kept = replace(kept, parent=parent, lookups=lookups)
        written.append(WrittenTable(one.name, shape, staged, own, kept, lookups))
    return written, {name: drawn.total for name, drawn in rows.items()}, doubts


def _grouped(rows: Referred) -> GroupedRows:
    """The rows of a public table that a reference can name, each with its group."""
    groups = np.repeat(np.arange(rows.sizes.size), rows.sizes)
    return GroupedRows(groups, dict(zip(rows.key, rows.texts, strict=True)))


def _temporary() -> Fragment:
    return qualified("temp", "main", f"dpsyn_staged_{uuid4().hex}")


def _facts(
    job: DatabaseJob, entry: SqliteEntry, one: _Ready, lost: Mapping[str, Any], rows: int, seed: int
) -> dict[str, Any]:
    """The certificate of a table: the promise is that of all tables together, the questions are its own.
    ``lost``: of ``facts_of_losses``."""
    leg, fitted, events = one.table.leg, one.fitted, entry.events
    thresholds = sum(delta_units(event) for own in job.legs for event in planned_events(own.plan))
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
        name=job.name,
        release=entry.release_id,
        budget=job.budget,
        claimed=claimed,
        not_protected=job.tree.not_protected,
    )


def _kept(job: DatabaseJob, entry: SqliteEntry, one: _Ready, facts: dict[str, Any]) -> StoredRelease:
    """What is stored of a table by itself."""
    fitted = one.fitted
    attributes = fitted.shape.domain.attributes
    hidden = fitted.model.domain.attributes[len(attributes) :]
    return StoredRelease(
        name=name_of_table(job.name, one.name),
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


def _released(
    job: DatabaseJob,
    entry: SqliteEntry,
    ready: Sequence[_Ready],
    written: Sequence[WrittenTable],
    doubts: Mapping[str, Doubts],
    notes: tuple[str, ...],
    progress: ReleaseProgress,
) -> DatabaseRelease:
    """The release of each table, and what the operator is told of all of them."""
    deadline = job.legs[0].terms.deadline
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
