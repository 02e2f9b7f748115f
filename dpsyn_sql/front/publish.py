"""The last steps of a release: rows of the models, published in one transaction with the models.

Rows of the root are drawn first, then those of each table given the rows above it.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from dpsyn_sql.accounting.events import delta_units
from dpsyn_sql.common.notices import warn
from dpsyn_sql.common.progress import phase
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.engines.stored_releases import drawing
from dpsyn_sql.engines.written_rows import reading
from dpsyn_sql.errors import EngineFailure, PublishError
from dpsyn_sql.fit.network import Network, families_in
from dpsyn_sql.front.job import Job, TablePlan, seed_of
from dpsyn_sql.front.losses import departed, lost_of
from dpsyn_sql.front.measure import FittedTable
from dpsyn_sql.front.references import PublicRows as Referred
from dpsyn_sql.ledger.entries import SqliteEntry
from dpsyn_sql.planning.limits import read_limits
from dpsyn_sql.private.measure.planned_events import planned_events
from dpsyn_sql.report.certificate import (
    Claim,
    certificate,
    certificate_in_tree,
    claim,
    claim_of,
    id_of_table,
    name_of_table,
    types_facts,
)
from dpsyn_sql.report.doubts import Doubts, remarks
from dpsyn_sql.report.fitted import FittedRelease, rows_wanted
from dpsyn_sql.report.labels import code_labels
from dpsyn_sql.report.progress_bar import ReleaseProgress
from dpsyn_sql.report.result import Release, ReleasedTable
from dpsyn_sql.rows.sample.sql_rows import INDEPENDENTLY, independent_rows, load_slots
from dpsyn_sql.rows.sample.systematic import unit_sizes
from dpsyn_sql.rows.sample.tables import TableRows, table_seed
from dpsyn_sql.rows.write.families import StagedRows, stage, together
from dpsyn_sql.rows.write.persist import NetworkTables, StoredRelease, drawn_from
from dpsyn_sql.rows.write.publish import WrittenTable, publish
from dpsyn_sql.rows.write.staging import GroupedRows, warn_of_few_rows
from dpsyn_sql.rows.write.tasks import PartRows, part_rows
from dpsyn_sql.sqltext.fragments import Fragment, temporary_table

_ROW_NUMBER = 8
"""Bytes of a staged row beside its codes; each code has one or more of its own."""


def write_release(
    job: Job,
    entry: SqliteEntry,
    tables: Mapping[str, FittedTable],
    progress: ReleaseProgress,
    notes: tuple[str, ...],
) -> Release:
    """Sample codes of all tables, compare them with the noisy answers, decode them by SQL, and publish them
    with the models in one transaction.

    Raises:
        InternalError: the rows of a table are not those that were counted.
        PublishError: something else has appeared in place of the output, it cannot be written, the type of a
            key cannot hold so many values, or the noisy total is more rows than the disk has room for.
    """
    ready = [with_values(table) for table in tables.values()]
    seed = seed_of(entry.release_id) if job.request.seed is None else job.request.seed
    rows = rows_wanted(ready[0].fitted) if job.request.rows is None else job.request.rows
    if job.request.rows is None and job.target.publisher is None:
        _check_room(job, ready[0].fitted, rows)
    if rows == 0 and rows_wanted(ready[0].fitted) == 0:  # not because the caller asks for none
        what = "table is" if len(ready) == 1 else "tables are"
        warn(f"The noisy total is not above zero: the synthetic {what} empty.")
    engine, problem = job.target.open(), ""
    try:
        drawing_rows = _Drawing(job, entry, engine, seed)
        for table in ready:
            drawing_rows.draw(table, rows)
        try:
            with phase("write"), entry.publishing(job.target_name):
                progress.writing()
                written, tree = drawing_rows.written, job.tree if job.request.several else None
                constraints = job.request.constraints
                publish(engine, job.target, written, tree, job.public, constraints=constraints)
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
    entry.published(job.target_name, sum(drawing_rows.totals))
    told = told_of(
        job, {table.name: doubts for table, doubts in zip(ready, drawing_rows.doubts, strict=True)}
    )
    return released(job, entry, ready, drawing_rows.written, (*notes, *told), progress)


def with_values(table: FittedTable) -> FittedTable:
    """A table with the values of its codes, and the variances of its model's estimates."""
    with phase("trust"):
        fitted = table.fitted.with_values
        variances = table.plan.method.variances(fitted.model, fitted.measurements)
        shape = together(fitted.shape, families_in(fitted.model))
        return replace(table, fitted=replace(fitted, variances=variances, shape=shape))


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


@dataclass(slots=True)
class _Drawing:
    """The rows of all tables, drawn one after the other, the root first."""

    job: Job
    entry: SqliteEntry
    engine: DuckDBEngine
    seed: int
    written: list[WrittenTable] = field(default_factory=list)
    totals: list[int] = field(default_factory=list)
    doubts: list[Doubts] = field(default_factory=list)
    _rows: dict[str, TableRows] = field(default_factory=dict)

    def draw(self, table: FittedTable, rows: int) -> None:
        """Stage the rows of a table, of the root so many, and judge them."""
        job, fitted, name = self.job, table.fitted, temporary_table("dpsyn_staged")
        seed = table_seed(self.seed, table.name) if job.request.several else self.seed
        network = independent_rows(fitted.model, rows, job.deadline)
        with ThreadPoolExecutor(max_workers=1) as beside:  # one core alone draws few rows
            further = beside.submit(drawn_from, fitted.model)
            if network is not None and job.target.publisher is not None:
                parts = self._parts(fitted, network, rows, seed)
                staged = StagedRows(Fragment(""), (), parts.kept, INDEPENDENTLY)
            else:
                staged = self._staged(table, network, rows, name, seed)
                parts = part_rows(fitted.shape, staged.total, seed, staged=name)
        with phase("trust"):
            compared = staged.compared(self.engine, seed) if staged.total and staged.table else None
            departures = () if compared is None else departed(table.plan.method, fitted, compared)
            replaced = staged.replaced / max(staged.total, 1)
            lost, doubts = lost_of(table.plan, fitted, departures, replaced)
        facts = facts_of(job, self.entry, table, staged.total, self.seed, staged.drawn) | {"losses": lost}
        if staged.replaced:
            facts["sampling"]["replaced"] = staged.replaced
        lookups = {name: _grouped(rows) for name, rows in job.tied.lookups.get(table.name, {}).items()}
        above = next((other.kept for other in self.written if other.name == table.plan.table.parent), None)
        stored = kept_of(job, self.entry, table, further.result(), facts)
        stored = replace(stored, parent=above, lookups=lookups)
        units = None
        if fitted.contributions is not None and not staged.persons:
            units = unit_sizes(fitted.contributions.values, staged.total)
        self.written.append(
            WrittenTable(
                table.name, fitted.shape, staged.table, seed, stored, lookups, units, staged.persons, parts
            )
        )
        self.totals.append(staged.total)
        self.doubts.append(doubts)

    def _staged(
        self, table: FittedTable, network: Network | None, rows: int, name: Fragment, seed: int
    ) -> StagedRows:
        """Rows that are drawn here."""
        fitted, deadline, parent = table.fitted, self.job.deadline, table.plan.table.parent
        known = rows if fitted.families is None else None  # of persons nobody knows how many rows
        with deadline.running(), phase("sample", known) as advance:
            staged = stage(
                self.engine,
                fitted.shape,
                fitted.model,
                rows,
                name,
                seed,
                advance,
                above=None if parent is None else self._rows[parent],
                deadline=deadline,
                network=network,
            )
        if staged.rows is not None:
            self._rows[table.name] = staged.rows
        return staged

    def _parts(self, fitted: FittedRelease, network: Network, rows: int, seed: int) -> PartRows:
        """Rows that tasks draw, part by part; if conditions may leave fewer, how many those are."""
        slots, publisher = temporary_table("dpsyn_slots"), self.job.target.publisher
        with phase("sample", rows) as advance:
            load_slots(self.engine, network, slots)
            parts = part_rows(fitted.shape, rows, seed, network, slots)
            if parts.gaps and publisher is not None:
                parts = replace(parts, left=publisher.left(self.engine, parts))
                warn_of_few_rows(parts.kept, rows)
            advance(rows)
        return parts


def _grouped(rows: Referred) -> GroupedRows:
    """The rows of a public table that a reference can name, each with its group."""
    groups = np.repeat(np.arange(rows.sizes.size), rows.sizes)
    return GroupedRows(groups, dict(zip(rows.key, rows.texts, strict=True)))


# -- what stays with the rows --------------------------------------------------------------------------


def _claimed(job: Job, table: TablePlan) -> Claim:
    """Of the release; of all periods together if it is a running total or a panel."""
    series = table.total or table.panel
    if series is not None:
        return claim_of(series.whole, job.request.delta)
    if table.families is None:
        return claim(table.plan, planned_events(table.plan), job.request.delta)
    thresholds = sum(delta_units(event) for each in job.tables for event in planned_events(each.plan))
    return claim_of(job.budget, job.request.delta, thresholds)


def facts_of(
    job: Job, entry: SqliteEntry, table: FittedTable, rows: int, seed: int, drawn: str
) -> dict[str, Any]:
    """The certificate of the rows that are written: the promise is that of all tables together, the questions
    are the table's own; ``drawn``: how."""
    fitted, events = table.fitted, entry.events
    if table.plan.families is not None:
        events = tuple(events[place] for place in table.events)
    facts = certificate(
        fitted.plan,
        fitted.shape,
        events,
        release_id=entry.release_id,
        debited_on=entry.debited_on,
        claimed=_claimed(job, table.plan),
        excluded=job.request.exclude,
        rows=rows,
        seed=seed,
        drawn=drawn,
        families=fitted.families,
    )
    facts |= types_facts(fitted.types)
    return certificate_in_tree(facts, job.tree, table.name, name=job.stored_name, budget=job.budget)


def kept_of(
    job: Job, entry: SqliteEntry, table: FittedTable, drawn: NetworkTables, facts: dict[str, Any]
) -> StoredRelease:
    """What is stored with the output, under a name without folders: readers need not know them."""
    fitted = table.fitted
    attributes = fitted.shape.domain.attributes
    hidden = fitted.model.domain.attributes[len(attributes) :]
    return StoredRelease(
        name=name_of_table(job.tree, job.stored_name, table.name),
        release_id=id_of_table(job.tree, entry.release_id, table.name),
        created=entry.debited_on,
        facts=facts,
        shape=fitted.shape,
        model=fitted.model,
        drawn=drawn,
        measurements=fitted.measurements,
        labels=[code_labels(attribute) for attribute in (*attributes, *hidden)],
        variances=fitted.variances,
    )


# -- what a call returns -------------------------------------------------------------------------------


def told_of(job: Job, doubts: Mapping[str, Doubts]) -> tuple[str, ...]:
    """What the operator is told of the rows; of several tables with the name of the table."""
    told = [*remarks(job.request.epsilon, read_limits(job.request.limits).time, job.deadline.cuts)]
    if not job.request.several:
        (only,) = doubts.values()
        return (*told, *only.warned())
    for name, own in doubts.items():
        told += [f"{name}: {text}" for text in own.notes]
        for text in own.warnings:
            warn(f"{name}: {text}")
            told.append(f"{name}: {text}")
    return tuple(dict.fromkeys(told))


def released(
    job: Job,
    entry: SqliteEntry,
    tables: list[FittedTable],
    written: list[WrittenTable],
    notes: tuple[str, ...],
    progress: ReleaseProgress,
) -> Release:
    """What a call returns once the rows are written."""
    parts = dict[str, ReleasedTable]()
    for table, rows in zip(tables, written, strict=True):
        kept = rows.kept
        if kept is None:
            continue
        parts[table.name if job.request.several else job.stored_name] = ReleasedTable(
            table=job.target.names[table.name] if job.request.several else job.target.name,
            facts=dict(kept.facts),
            model=table.fitted.model,
            measurements=table.fitted.measurements,
            draw=drawing(job.stored_in, kept.release_id, kept.name),
            read=reading(job.con, job.target, table.name, table.fitted.shape, kept.release_id),
            variances=table.fitted.variances,
        )
    into = job.target.name if job.request.several else None
    return Release.of(parts, into, replayed=entry.replayed, notes=notes, timings=progress.timings())
