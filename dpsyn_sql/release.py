"""release(): the whole pipeline on one page.

    source -> domain -> plan -> [ count -> measure ] -> fit -> sample -> write

Everything in brackets happens behind the door (``measure/curator.py``); the ledger is charged
before it opens. What comes after uses only noisy answers: it may be seeded, repeated, published.
"""

from __future__ import annotations

import hashlib
import math
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from dpsyn_sql.accounting.budget import Number, weakness
from dpsyn_sql.accounting.events import (
    GaussianEvent,
    LaplaceEvent,
    ThresholdEvent,
)
from dpsyn_sql.count.counter import SqlCounter
from dpsyn_sql.count.discovery import SqlDiscoveryCounter
from dpsyn_sql.count.kept import KeptCounter
from dpsyn_sql.discovery import discovered
from dpsyn_sql.domain.file import DomainSpec
from dpsyn_sql.domain.shape import Shape
from dpsyn_sql.engines.released import drawing
from dpsyn_sql.engines.source_session import Connection
from dpsyn_sql.errors import PublishError
from dpsyn_sql.fit.discovered import STANDS_OUT
from dpsyn_sql.interfaces import Ledger, LedgerEntry, Method, Model
from dpsyn_sql.measure.calibrate import standard_deviation
from dpsyn_sql.measure.curator import LocalCurator
from dpsyn_sql.measure.noise import OpenDPNoise
from dpsyn_sql.measure.planned import discovery_events, planned_events
from dpsyn_sql.methods import DEFAULT
from dpsyn_sql.plan.options import Options
from dpsyn_sql.plan.plan import Plan
from dpsyn_sql.plan.queries import NoisyContributions, NoisyMarginal
from dpsyn_sql.plan.workload import WorkloadSpec
from dpsyn_sql.preparation import Job, con_and_source, opened_ledger, prepared
from dpsyn_sql.progress import phase
from dpsyn_sql.report.certificate import certificate, claim
from dpsyn_sql.report.interruption import Course, noting_interrupts
from dpsyn_sql.report.labels import code_labels
from dpsyn_sql.report.marginals import total_error
from dpsyn_sql.report.progress_bar import progress_bar
from dpsyn_sql.report.result import Release
from dpsyn_sql.sample.compile import INDEPENDENTLY, independent_rows
from dpsyn_sql.sample.sql_sampler import append_network
from dpsyn_sql.sample.units import unit_sizes
from dpsyn_sql.sqltext.fragments import qualified
from dpsyn_sql.write.persist import Drawn, Kept, drawn_from
from dpsyn_sql.write.publish import publish
from dpsyn_sql.write.staging import append, stage_rows


def release(
    con: Connection,
    source: str | os.PathLike[str] | None = None,
    *,
    into: str | os.PathLike[str] | None = None,
    epsilon: Number = 1.0,
    delta: Number = 1e-9,
    method: str | Method | Mapping[str, Any] = DEFAULT,
    domain: DomainSpec = None,
    privacy_unit: str = "row",
    max_rows_per_unit: int = 1,
    name: str | None = None,
    version: str | None = None,
    account: str | None = None,
    ledger: Ledger | str | os.PathLike[str] | None = None,
    rows: int | None = None,
    seed: int | None = None,
    exclude: Sequence[str] = (),
    replace: bool = False,
    new_debit: bool = False,
    trust_query: bool = False,
    public_tables: Sequence[str] = (),
    discover: bool = True,
    on_error: str = "null",
    memory_limit: str | int | None = None,
    time_limit: float | None = None,
    workload: WorkloadSpec = None,
) -> Release:
    """Write a differentially private synthetic copy of a table.

    Args:
        con: a DuckDB connection, the path of a DuckDB file, or None (files only). A file alone is the
            source: ``release("people.parquet")``.
        source: a table or view, a CSV or Parquet path or glob, or a query.
        into: table name, or path ending in .parquet, .csv or .csv.gz; default: the source's name
            with ``_synthetic``, beside it.
        epsilon: privacy loss; smaller is more private.
        delta: 0 (pure differential privacy, Laplace noise) to 1e-6.
        method: a name, a value such as those of ``dpsyn_sql.methods``, where each is described, or a mapping
            ``{"name": ...}`` with its settings; default: the most accurate one for so many columns.
        domain: YAML file or mapping that says what is public of the columns: bounds, categories, roles.
        privacy_unit: ``"row"``, or the column that says whose row it is: then all rows of one value are
            protected together and rows without a value are left out; the output has fresh values in it.
        max_rows_per_unit: how many rows of one unit count; the noise grows with it.
        name: of the release in the ledger; default: the output, relative to the ledger's folder.
        version: public label of the data (batch, period); the same name and version replays the
            stored answers at no cost, a new one measures anew.
        account: of the ledger; default: the one its source is charged to.
        ledger: file (or open ledger) where the debit is recorded; default: the variable
            DPSYN_LEDGER, else beside the source; for a database in memory it lives with the connection.
        rows: rows to write; default: the noisy total (a million at most where it is nothing but noise).
        seed: of the sampling (0 to 2^64 - 1); default: derived from the release id. Noise has no seed.
        exclude: columns to leave out.
        replace: allow an existing ``into`` to be overwritten.
        new_debit: pay again for a name and version that were released with other settings, or for settings
            that were released to another output. Without it neither is charged.
        trust_query: the owner states that each row of the query belongs to one unit.
        public_tables: tables that hold no private data and may be joined.
        discover: learn the domain of columns that neither ``domain`` nor the catalog makes public, for a
            tenth of the budget; False refuses them.
        on_error: CSV text that cannot be read as its column's type is NULL (``"null"``), or stops the
            release (``"fail"``; that it stopped depends on a row and is outside the promise).
        memory_limit: of the process, ``"4GB"`` or bytes, 512MiB at least, for files and paths of databases:
            the database spills earlier and the model is smaller. A connection you pass has its own setting.
        time_limit: seconds for the fit and the sample together: the last fit takes fewer steps and the rows
            are drawn the fastest way when they run short. Measuring takes the time it takes.
        workload: what matters most, ``{"income": 5, ("age", "sex"): 2}``: weights (0.001 to 1000) of all
            pairs with a column, or of the pairs within several; other pairs have weight 1.

    Raises:
        InputError: the call cannot be carried out; nothing was read, written or charged.
        PrivacyBudgetExceeded: the ledger refuses the debit; nothing was read.
        ReleaseChanged: name and version were released with other settings; nothing was charged.
        ReleaseExists: the same source, version and settings were released to another output, and no
            ``name`` is given; nothing was charged. The message says how to replay it at no cost.
        LedgerError: the ledger cannot be found, opened or written; nothing was read.
        PublishError: something else came to stand at ``into`` meanwhile; the debit stays, and the message
            says how another ``into`` costs nothing more.
        EngineFailure: a statement failed in the database; the debit stays.
        KeyboardInterrupt: with a note that says what was charged and how to go on.
    """
    con, source = con_and_source(con, source)
    arguments = {key: value for key, value in locals().items() if key != "con"}
    options = Options(**arguments)
    with (
        noting_interrupts() as course,
        progress_bar(),
        # Threads of the linear algebra library wait for each other on busy cores: fits are small.
        threadpool_limits(1, user_api="blas"),
        prepared(con, options) as job,
        opened_ledger(con, job.place) as accounts,
        course.charging(
            job.key.name,
            accounts.open_release(job.key, job.plan.budget, new_debit=new_debit),
            kept=job.place is not None,
        ) as entry,
    ):
        notes = _notes_on(entry)
        made = _measure_and_fit(job, entry)
        entry.close_questions()
        course.measured()
        job.session.release_source()  # the source is out of reach from here on
        chosen = _seed_of(entry.release_id) if seed is None else seed
        wanted = _wanted(made) if rows is None else rows
        written, facts = _write(job, entry, made, wanted, chosen, course)
        entry.published(job.target_name, written)
        doubts = (*_weak(job), *_cuts(job), *_uncertain_total(made), *_rare_values(made), *_no_pairs(made))
        return _released(con, job, entry, made, written, facts, (*notes, *doubts))


_RARE = 0.05
"""Part of the noisy total that a value must have to be found, above which a release warns."""

_UNCERTAIN = 0.1
"""Standard error of the noisy total, as a part of it, above which a release warns."""

_ROWS_OF_NOISE = 1_000_000
"""Rows written at most, unless rows= is given, where the noisy total is less than four standard errors above
zero: at epsilon 1e-6 noise alone gives ten million rows and more, which fill memory and disk for nothing."""


def _notes_on(entry: LedgerEntry) -> tuple[str, ...]:
    """What the ledger has to say to the operator; a replay is also a warning."""
    notes = []
    if entry.replayed:
        label = repr(entry.name) if entry.version is None else f"{entry.name!r} version {entry.version!r}"
        if entry.measured_on is None:
            notes.append(f"Resumed {label} where it stopped, under the debit that was made then.")
        else:
            notes.append(
                f"Replayed {label}, measured on {entry.measured_on}: nothing was charged and the noisy "
                "answers are those of then. To measure new data pass another version=."
            )
        warnings.warn(notes[0], stacklevel=3)
    return (*notes, f"The account {entry.standing}.")


def _weak(job: Job) -> tuple[str, ...]:
    """A note on an epsilon that hardly protects; the warning came before anything was charged."""
    weak = weakness(job.options.epsilon)
    return () if weak is None else (weak,)


def _cuts(job: Job) -> tuple[str, ...]:
    """What the time limit left out, for the operator: it depends on the machine."""
    if not job.deadline.cuts:
        return ()
    return (f"Within time_limit={job.options.time_limit:g} seconds {', and '.join(job.deadline.cuts)}.",)


@dataclass(frozen=True, slots=True)
class _Made:
    """What came through the door, and the model of it; public."""

    shape: Shape
    plan: Plan
    model: Model
    measurements: tuple[NoisyMarginal, ...]
    contributions: NoisyContributions | None


def _measure_and_fit(job: Job, entry: LedgerEntry) -> _Made:
    """The private side of the door, and the fit that is woven into it."""
    source, engine = job.plan.source, job.session.engine
    relation, unit = source.relation, source.unit
    csv = relation.kind == "csv" and not relation.strict
    unknown = SqlDiscoveryCounter(engine, relation.sql, csv=csv, unit=unit)
    door = LocalCurator(None, None, unit.max_rows, entry, OpenDPNoise(), unknown)
    shape, contributions, asked = discovered(job.shape, job.plan.discovery, door, unit.max_rows)
    plan = job.method.plan(source, shape.domain, job.rest, job.terms)
    asked_once = SqlCounter(
        engine, relation.sql, shape.domain, plan.queries, csv=csv, unit=unit, further=plan.further
    )
    counter = KeptCounter(asked_once, plan.queries, further=plan.further is not None)
    try:
        door.open(counter, shape.domain)
        model = job.method.run(plan, door, job.terms)
    finally:
        counter.close()
    whole = replace(plan, budget=job.plan.budget, discovery=asked)
    return _Made(shape, whole, model, door.measurements, contributions)


def _write(
    job: Job, entry: LedgerEntry, made: _Made, rows: int, seed: int, course: Course
) -> tuple[int, dict[str, Any]]:
    """Post-processing: sample codes, decode them by SQL, publish in one transaction, the model included.

    Returns the number of rows and the certificate.
    """
    if rows == 0:
        warnings.warn("The noisy total is not above zero: the synthetic table is empty.", stacklevel=4)
    engine, network = job.target.open(), independent_rows(made.model, rows, job.deadline)
    sampler = made.model.sampler(job.deadline)
    try:
        staged = qualified("temp", "main", f"dpsyn_staged_{uuid4().hex}")
        with ThreadPoolExecutor(max_workers=1) as beside:  # few rows are drawn by one core alone
            drawn = beside.submit(drawn_from, made.model)
            with job.deadline.running(), phase("sample", rows) as advance:

                def draw(number: int, other: int, first: int) -> int:
                    if network is not None:
                        return append_network(
                            engine, network, number, other, staged, first=first, advance=advance
                        )
                    batches = _reported(sampler.batches(number, other), advance)
                    return append(engine, made.shape.domain, batches, staged, first)

                written = stage_rows(engine, made.shape, draw, rows, staged, seed)
        sizes = None if made.contributions is None else unit_sizes(made.contributions.values, written)
        manner = sampler.drawn if network is None else INDEPENDENTLY
        facts = _facts(job, entry, made, written, seed, manner)
        kept = _kept(job, entry, made, drawn.result(), facts)
        problem = ""
        try:
            with phase("write"), entry.publishing(job.target_name):
                course.writing()
                publish(engine, job.target, made.shape, staged, seed, sizes, kept)
                course.written(job.target.name)
        except PublishError as error:
            problem = str(error)
    finally:
        engine.close()
    if problem:
        raise PublishError(
            f"{problem} The debit stands and its answers are kept: the same call with name={entry.name!r} "
            "and another into= costs nothing more."
        )
    return written, facts


def _facts(job: Job, entry: LedgerEntry, made: _Made, rows: int, seed: int, drawn: str) -> dict[str, Any]:
    return certificate(
        made.plan,
        made.shape,
        entry.events,
        release_id=entry.release_id,
        debited_at=entry.debited_at,
        claimed=claim(job.plan, planned_events(job.plan), job.options.delta),
        excluded=job.options.exclude,
        rows=rows,
        seed=seed,
        drawn=drawn,
    )


def _kept(job: Job, entry: LedgerEntry, made: _Made, drawn: Drawn, facts: dict[str, Any]) -> Kept:
    """What stays with the output; under a name without folders, which readers need not know."""
    return Kept(
        job.options.name or job.target.label,
        entry.release_id,
        entry.debited_at,
        facts,
        made.shape,
        made.model,
        drawn,
        made.measurements,
        [code_labels(attribute) for attribute in made.shape.domain.attributes],
    )


def _reported(
    batches: Iterator[NDArray[np.integer[Any]]], advance: Callable[[int], None]
) -> Iterator[NDArray[np.integer[Any]]]:
    for batch in batches:
        yield batch
        advance(len(batch))


def _seed_of(release_id: str) -> int:
    """The default sampling seed; the release id is random and public."""
    return int.from_bytes(hashlib.sha256(release_id.encode()).digest()[:8], "big")


def _wanted(made: _Made) -> int:
    """How many rows to write, judged by noisy answers alone."""
    total = max(0, round(made.model.total))
    return min(total, _ROWS_OF_NOISE) if 4 * total_error(made.measurements) > total else total


def _uncertain_total(made: _Made) -> tuple[str, ...]:
    """A note, and a warning, if noise makes up much of the total; judged by noisy answers alone."""
    error, unit = total_error(made.measurements), made.plan.source.unit
    if error <= _UNCERTAIN * max(0.0, made.model.total):
        return ()
    note = (
        f"The noisy total of {made.model.total:,.0f} rows has a standard error of {error:,.0f}: the number "
        "of rows, and all else, is uncertain"
        + (f", and {_wanted(made):,} rows stand for it" if _wanted(made) == _ROWS_OF_NOISE else "")
        + ". Spend a larger epsilon"
        + (f", or count fewer than {unit.max_rows} rows of a unit." if unit.max_rows > 1 else ".")
    )
    warnings.warn(note, stacklevel=3)
    return (note,)


def _rare_values(made: _Made) -> tuple[str, ...]:
    """A note, and a warning, on columns of which only frequent values could be found, or none."""
    limit, needed = _RARE * max(0.0, made.model.total), dict[str, float]()
    planned = zip(made.plan.discovery, discovery_events(made.plan), strict=True)
    for step, event in planned:
        if isinstance(event, ThresholdEvent) and step.attr is not None:
            nothing = not made.shape.domain[step.attr].labels
            needed[step.attr] = math.inf if nothing else event.threshold
        elif step.ask == "grid" and isinstance(event, GaussianEvent | LaplaceEvent) and step.attr is not None:
            needed[step.attr] = STANDS_OUT * standard_deviation(event)
    names = ", ".join(repr(name) for name, rows in needed.items() if rows > limit)
    if not names:
        return ()
    note = (
        f"Rare values of {names} stay hidden, if there are any: what less than a twentieth of the rows have, "
        "or all values, could not be found. Declare this domain, or spend a larger epsilon."
    )
    warnings.warn(note, stacklevel=3)
    return (note,)


def _no_pairs(made: _Made) -> tuple[str, ...]:
    """A note, and a warning, if pairs could have been measured and none was worth it."""
    candidates = [query for step in made.plan.reserved for query in step.queries]
    if all(len(query.attrs) == 1 for query in candidates) or any(
        len(table.attrs) > 1 for table in made.measurements
    ):
        return ()
    note = (
        "No pair of columns stands out of the noise: the columns of the output are independent of each "
        "other. If they should not be, spend a larger epsilon."
    )
    warnings.warn(note, stacklevel=3)
    return (note,)


def _released(
    con: Connection,
    job: Job,
    entry: LedgerEntry,
    made: _Made,
    rows: int,
    facts: dict[str, Any],
    notes: tuple[str, ...],
) -> Release:
    guarantee, kept = facts["guarantee"], con if job.target.path is None else job.target.path
    return Release(
        table=job.target.name,
        rows=rows,
        epsilon=guarantee["epsilon"],
        delta=guarantee["delta"],
        rho=float(job.plan.budget.rho),
        id=entry.release_id,
        model=made.model,
        measurements=made.measurements,
        facts=facts,
        replayed=entry.replayed,
        notes=notes,
        draw=drawing(kept, entry.release_id, job.options.name or job.target.label),
    )
