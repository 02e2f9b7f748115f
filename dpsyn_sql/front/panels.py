"""A panel: the same synthetic persons, period after period of a calendar, under one budget.

    first period    a release of its window
    later periods   persons of the period before (from the output) -> who stays, who joins
                    -> the model of a row given the row before -> rows of the period, after those before

What a period asks, and what it may spend, is in ``planning/panel.py``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpsyn_sql.attributes.attribute import Domain
from dpsyn_sql.attributes.shape import Shape
from dpsyn_sql.attributes.sliced import at_window
from dpsyn_sql.common.progress import phase
from dpsyn_sql.discovery.learn import discovered
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.engines.stored_releases import StoredSession, opened_releases
from dpsyn_sql.errors import EngineFailure, InputError, InternalError, PublishError
from dpsyn_sql.fit.arrays import IntArray
from dpsyn_sql.fit.given import Given, Presence, drawn, presence_of, rows_measured
from dpsyn_sql.fit.reconstruct import shown_tables
from dpsyn_sql.front.job import Job, seed_of
from dpsyn_sql.front.losses import departed, lost_of
from dpsyn_sql.front.measure import FittedTable, measured
from dpsyn_sql.front.prepare import at_period
from dpsyn_sql.front.publish import facts_of, kept_of, released, told_of, with_values
from dpsyn_sql.ledger.entries import SqliteEntry
from dpsyn_sql.ledger.sqlite import SqliteLedger
from dpsyn_sql.planning.asking import Answered, Reserve, Step
from dpsyn_sql.planning.families import Families
from dpsyn_sql.planning.limits import Evidence
from dpsyn_sql.planning.panel import Panel, presence_domain, presence_step
from dpsyn_sql.planning.plan import queries_of
from dpsyn_sql.private.count.counter import SqlCounter
from dpsyn_sql.private.count.discovery import SqlDiscoveryCounter
from dpsyn_sql.private.measure.curator import LocalCurator, Opening
from dpsyn_sql.private.measure.noise import ExactNoise
from dpsyn_sql.private.rows.kept import Bound, rows_of_units
from dpsyn_sql.private.rows.relations import UNIT, joined_rows
from dpsyn_sql.report.doubts import Doubts
from dpsyn_sql.report.fitted import ROWS_OF_NOISE, FittedRelease, rows_wanted
from dpsyn_sql.report.progress_bar import ReleaseProgress
from dpsyn_sql.report.result import Release
from dpsyn_sql.rows.sample.systematic import generator_of
from dpsyn_sql.rows.sample.tables import DrawnRows, TableRows, table_codes
from dpsyn_sql.rows.write.families import stage
from dpsyn_sql.rows.write.outputs import digest
from dpsyn_sql.rows.write.panel import (
    PanelOutput,
    Persons,
    number_rows,
    staged_numbers,
)
from dpsyn_sql.rows.write.persist import NetworkTables, drawn_from
from dpsyn_sql.rows.write.publish import Period, WrittenTable, publish
from dpsyn_sql.rows.write.staging import replaced_rows
from dpsyn_sql.source.names import fold
from dpsyn_sql.source.relation import PrivacyUnit
from dpsyn_sql.sqltext.fragments import Fragment, temporary_table

_STAYING, _NUMBERING = 2**40, 2**41
# Streams of random numbers: who stays, and the order of new persons; rows are below.


@dataclass(frozen=True, slots=True, eq=False)
class _Following:
    """Persons of the period before and how they go on. ``stays`` (places in ``persons``) have a row, then
    come ``joins`` new persons; ``given`` is all of them."""

    persons: Persons
    stays: IntArray
    joins: int
    given: Given


@dataclass(slots=True)
class PanelBefore:
    """What a period of a panel goes on from: the complete ``shape``, and once it is measured its persons, who
    ``follow`` those of the period before. The first period follows nobody."""

    shape: Shape
    follow: _Following | None = None
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, job: Job, ledger: SqliteLedger) -> PanelBefore:
        """Of the periods before, which stand in the output.

        Raises:
            InputError: the period before was not released with these settings, or was changed.
        """
        _check_before(job, ledger)
        return cls(_discovered(job, ledger))

    def measured(self, job: Job, entry: SqliteEntry) -> dict[str, FittedTable]:
        """All questions of the period, and the model of its answers."""
        if not job.only.follows:
            return measured(job, entry)
        fitted, self.follow = _measured(job, self.shape, entry, seed_of(entry.release_id))
        return {job.only.name: FittedTable(job.only, fitted, ())}


# -- before the debit ----------------------------------------------------------------------------------


def _check_before(job: Job, ledger: SqliteLedger) -> None:
    """Refuse a period whose period before was not released with these settings, or was changed.

    Raises:
        InputError: says what to do.
    """
    own = _panel(job)
    if not own.follows:
        return
    label = own.labels[own.period - 2]
    before = at_period(job, own.period - 1)
    preview = ledger.look(before.key, before.budget, (), new_debit=False)
    if preview.measured_on is None:
        why = preview.refusal or f"Period {label!r} was not released yet with these settings."
        raise InputError(
            f"Period {own.label!r} follows {label!r}, which comes first. {why} All periods of a panel have "
            "the same source, domain, epsilon, delta, calendar and output. Nothing was read or charged."
        )
    with _stored(job) as session:
        certificates = {fold(one.name): one.certificate for one in session.releases()}
        for period in range(1, own.period):
            told = certificates.get(fold(_stored_name(job, own.at(period))))
            facts = {} if told is None else json.loads(told).get("panel", {})
            rows = _output(job, own.at(period), job.only.shape)
            if not _is_there(session, rows, facts):
                raise InputError(
                    f"The rows of period {own.labels[period - 1]!r} in {job.target.name} are not those that "
                    "were written: the table was changed or removed. Restore it; or drop it and call "
                    "release() for each period again, in order (of a schedule: dpsyn run --select "
                    "NAME:PERIOD), which costs nothing. Nothing was read or charged."
                )


def _is_there(session: StoredSession, output: PanelOutput, facts: dict[str, Any]) -> bool:
    try:
        return digest(session.engine, output.rows(output.constant)) == (
            facts.get("rows"),
            facts.get("digest"),
        )
    except EngineFailure:
        return False


@contextmanager
def _stored(job: Job) -> Iterator[StoredSession]:
    """The database of the output, to read from."""
    none = ""
    with opened_releases(job.con) as session:
        try:
            session.releases()
        except InputError as error:
            none = str(error)
        if not none:
            yield session
    if none:
        raise InputError(f"Earlier periods of the panel are not in {job.target.name}: {none}")


def _panel(job: Job) -> Panel:
    if job.only.panel is None:
        raise InternalError("a job of a panel has none")
    return job.only.panel


def _stored_name(job: Job, own: Panel) -> str:
    return f"{job.stored_name}.{own.label}"


def _output(job: Job, own: Panel, shape: Shape) -> PanelOutput:
    if job.target.sql is None or job.only.source.sliced is None:
        raise InternalError("a panel has no table or no calendar")
    column = job.only.source.sliced.column
    return PanelOutput(job.target.sql, at_window(shape, column, own.window), column)


def _output_before(job: Job, shape: Shape) -> PanelOutput:
    return _output(job, _panel(job).at(_panel(job).period - 1), shape)


# -- the private side of the door ----------------------------------------------------------------------


def _measured(job: Job, shape: Shape, entry: SqliteEntry, seed: int) -> tuple[FittedRelease, _Following]:
    """All questions of a later period, and the model of its answers."""
    domain, terms = job.only.of_families(shape.domain, job.only.terms)
    families, own = terms.families, job.only.divided(entry.budget)[0]
    if families is None:
        raise InternalError("a later period has no period before")
    persons = _persons(job, shape)
    door, step = LocalCurator(entry, ExactNoise()), presence_step(families, own)
    with _joined(job, shape.domain, everybody=True) as opening:
        door.open(opening, presence_domain(families))
        tables = door.ask(*step).read()
    presence = presence_of(tables, persons.codes)
    stays = drawn(presence.stays, generator_of(seed, _STAYING))
    following = _given(families, persons, stays, _whole(presence))
    evidence = Answered(Evidence(given=following.given))
    terms = replace(terms, unit=job.only.source.unit, evidence=evidence)
    with _joined(job, shape.domain, everybody=False) as opening:
        door.open(opening, domain)
        with phase("build"):
            model = job.only.method.run(door, domain, job.only.divided(entry.budget)[1], terms)
    total = rows_measured(tables[0])
    shown = shown_tables(domain, door.measurements[len(tables) :], (total,))
    whole = job.only.planned(job.only.panel.budget if job.only.panel else entry.budget)
    fitted = FittedRelease(
        shape=shape,
        plan=replace(whole, domain=domain, steps=(step, *door.steps)),
        model=model,
        measurements=(total, *shown),
        contributions=None,
        families=families,
        answers=door.measurements[len(tables) :],
    )
    return fitted, following


def _whole(presence: Presence) -> int:
    """How many persons join; no more than ``ROWS_OF_NOISE`` if that is nothing but noise."""
    joins = max(0, round(presence.joins))
    return min(joins, ROWS_OF_NOISE) if joins < 4 * presence.error else joins


def _discovered(job: Job, ledger: SqliteLedger) -> Shape:
    """The domain of the first period: its discovery again, from stored answers."""
    if not job.only.follows or not job.only.shape.undiscovered:
        return job.only.shape
    first = at_period(job, 1)
    table = first.only
    relation, unit = table.source.relation, table.source.unit
    with (
        closing(
            SqlDiscoveryCounter(job.session.engine, relation.sql, relation.text_decimal, unit)
        ) as unknown,
        ledger.open_release(first.key, first.budget) as entry,
    ):
        door = LocalCurator(entry, ExactNoise())
        door.discover(unknown, 1)
        return discovered(table.shape, table.plan.discovery, door, table.chooser).shape


def _persons(job: Job, shape: Shape) -> Persons:
    """The synthetic persons of the period before, in the codes of the domain."""
    output = _output_before(job, shape)
    read = Domain(tuple(replace(one, source=None) for one in shape.domain.attributes))
    bound = Bound(output.unit.name, 1, 0)
    coded = rows_of_units(output.rows(output.constant), read, bound)
    with _stored(job) as session:
        return output.persons(session.engine, coded, len(read.attributes))


def _given(families: Families, persons: Persons, stays: IntArray, joins: int) -> _Following:
    """Persons of the period before, then new ones, who were absent."""
    number = len(persons.numbers) + joins
    rows = np.zeros(number, np.int64)
    rows[stays] = 1
    rows[len(persons.numbers) :] = 1
    columns = {}
    for place, one in enumerate(families.above[:-1]):
        absent = families.domain[one.name].size - 1
        columns[one.name] = np.concatenate([persons.codes[:, place], np.full(joins, absent, np.int64)])
        if one.attribute in families.kept:
            columns[one.attribute] = np.concatenate([persons.codes[:, place], np.full(joins, -1, np.int64)])
    columns[families.size] = np.zeros(number, np.int64)
    given = Given(columns, rows, np.ones(number), np.zeros(number, np.int64))
    return _Following(persons, stays, joins, given)


@contextmanager
def _joined(job: Job, domain: Domain, *, everybody: bool) -> Iterator[Opening]:
    """PRIVATE: for the door alone, what makes the counter of the joined rows of a period and the period
    before."""
    own, engine = _panel(job), job.session.engine
    past = at_period(job, own.period - 1).only.source
    bound = Bound.of(job.only.source.unit, None)
    if bound is None:
        raise InternalError("a panel is of units")
    sql, coded = joined_rows(job.only.source, past, domain, bound.key, everybody=everybody)
    with ExitStack() as stack:

        def opening(steps: tuple[Step, ...]) -> SqlCounter:
            further = any(isinstance(step, Reserve) and step.further for step in steps)
            counter = SqlCounter(
                engine, sql, coded, queries_of(steps), unit=PrivacyUnit(UNIT), further=further
            )
            return stack.enter_context(closing(counter))

        yield opening


# -- after the last question ---------------------------------------------------------------------------


def write_period(
    job: Job,
    entry: SqliteEntry,
    tables: Mapping[str, FittedTable],
    before: PanelBefore,
    progress: ReleaseProgress,
    notes: tuple[str, ...],
) -> Release:
    """What was lost, the rows of the period, and their output, after those of earlier periods."""
    (table,), seed = tables.values(), seed_of(entry.release_id)
    table, problem = with_values(table), ""
    engine = job.target.open()
    try:
        output = _output(job, _panel(job), table.fitted.shape)
        table = replace(table, fitted=replace(table.fitted, shape=output.shape))
        written, doubts = _written(job, entry, engine, table, output, before.follow, seed)
        with phase("write"), entry.publishing(job.target_name):
            progress.writing()
            publish(engine, job.target, [written])
            progress.written(job.target.name)
    except PublishError as error:
        problem = str(error)
    finally:
        engine.close()
    if problem:
        raise PublishError(f"{problem} The debit stands, and the answers are stored.")
    entry.published(job.target_name, written.kept.facts["sampling"]["rows"] if written.kept else 0)
    notes = (*notes, *told_of(job, {table.name: doubts}))
    return released(job, entry, [table], [written], notes, progress)


def _written(
    job: Job,
    entry: SqliteEntry,
    engine: DuckDBEngine,
    table: FittedTable,
    output: PanelOutput,
    following: _Following | None,
    seed: int,
) -> tuple[WrittenTable, Doubts]:
    """The rows of the period, staged and judged, with what is stored of them."""
    fitted = table.fitted
    staged, numbers, so_far, drawn = _staged(job, engine, output, fitted, following, seed)
    rows, replaced = len(numbers), 0
    with phase("trust"):
        departures = departed(table.plan.method, fitted, drawn) if rows and drawn is not None else ()
        if following is None and output.shape.never:
            replaced = replaced_rows(engine, staged, rows_wanted(fitted), rows_wanted(fitted))
        lost, doubts = lost_of(table.plan, fitted, departures, replaced / max(rows, 1))
    output.check_room(so_far)
    persons = temporary_table("dpsyn_persons")
    number_rows(engine, persons, staged_numbers(engine, staged), numbers)
    past = None if following is None else _output_before(job, table.plan.shape).constant
    query = output.query(staged, persons, rows, seed, past, table.plan.shape.per_unit)
    facts = facts_of(job, entry, table, rows, seed, "rows of persons given the period before")
    counted, of_rows = digest(engine, Fragment(f"({query})"))
    panel = {**_panel(job).facts, "rows": counted, "digest": of_rows, "persons_so_far": so_far}
    facts |= {"losses": lost, "panel": panel}
    if replaced:
        facts["sampling"]["replaced"] = replaced
    network = NetworkTables(None, {}) if following is not None else drawn_from(fitted.model)
    kept = replace(kept_of(job, entry, table, network, facts), name=_stored_name(job, _panel(job)))
    period = Period(query, output.rows(output.constant))
    return WrittenTable(table.name, output.shape, staged, seed, kept, period=period), doubts


def _staged(
    job: Job,
    engine: DuckDBEngine,
    output: PanelOutput,
    fitted: FittedRelease,
    following: _Following | None,
    seed: int,
) -> tuple[Fragment, IntArray, int, DrawnRows | None]:
    """Stage the rows of a period: their table, the person of each, how many persons there are so far, and the
    rows for a comparison with the noisy answers."""
    table, order = temporary_table("dpsyn_staged"), generator_of(seed, _NUMBERING)
    if following is None:
        wanted = rows_wanted(fitted)
        with job.deadline.running(), phase("sample", wanted) as advance:
            staged = stage(
                engine, output.shape, fitted.model, wanted, table, seed, advance, deadline=job.deadline
            )
        rows, drawn = staged.total, staged.compared(engine, seed)
        return table, order.permutation(rows), rows, drawn
    persons, given = following.persons, following.given
    above = TableRows.persons(given.rows.size)
    known, kept = len(persons.numbers), None
    if output.shape.never:
        parents = np.flatnonzero(given.rows)  # of the rows as they are staged
        rows_kept, staying = np.flatnonzero(parents < known), temporary_table("dpsyn_staying")
        number_rows(engine, staying, rows_kept, persons.numbers[parents[rows_kept]])
        past = _output_before(job, job.only.shape).constant
        kept = output.kept(engine, table, staying, past, job.only.shape.per_unit)
    with job.deadline.running(), phase("sample", int(given.rows.sum())) as advance:
        staged = stage(
            engine,
            output.shape,
            fitted.model,
            0,
            table,
            seed,
            advance,
            above=above,
            evidence=given,
            retained=kept,
        )
    made = staged.rows
    if made is None:
        raise InternalError("rows of a period lie below their persons")
    new = made.parent >= known
    numbers = np.zeros(made.total, np.int64)
    numbers[~new] = persons.numbers[made.parent[~new]]
    numbers[new] = persons.so_far + order.permutation(int(new.sum()))
    codes = table_codes(made, seed, given.columns)
    return table, numbers, persons.so_far + int(new.sum()), codes
