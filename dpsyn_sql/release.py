"""release() and plan(): the whole pipeline on one page.

    source -> domain -> plan -> [ count -> measure ] -> fit -> sample -> write

Everything in brackets happens behind the door (``measure/curator.py``); the ledger is charged
before it opens. What comes after uses only noisy answers: it may be seeded, repeated, published.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.accounting.budget import Number, exact_number
from dpsyn_sql.count.counter import SqlCounter
from dpsyn_sql.count.planner import CountingPlan, check_size, plan_counting
from dpsyn_sql.domain.file import DomainSpec, domain_of
from dpsyn_sql.domain.template import template_text
from dpsyn_sql.engines.source_session import Connection, SourceSession, open_source
from dpsyn_sql.engines.target_session import Target, open_target
from dpsyn_sql.interfaces import Ledger, LedgerEntry, Method, Model
from dpsyn_sql.ledger.memory import MemoryLedger
from dpsyn_sql.measure.calibrate import marginals_event, standard_deviation
from dpsyn_sql.measure.curator import LocalCurator
from dpsyn_sql.measure.noise import OpenDPNoise
from dpsyn_sql.methods import method_named
from dpsyn_sql.plan.explain import explain
from dpsyn_sql.plan.key import ReleaseKey
from dpsyn_sql.plan.options import Options
from dpsyn_sql.plan.plan import Plan
from dpsyn_sql.plan.queries import NoisyMarginal
from dpsyn_sql.progress import phase
from dpsyn_sql.report.certificate import attribute_facts, certificate, reported_epsilon
from dpsyn_sql.report.progress_bar import progress_bar
from dpsyn_sql.report.result import Release
from dpsyn_sql.sample.compile import compile_sampler
from dpsyn_sql.source.relation import PrivacyUnit, Source
from dpsyn_sql.sqltext.fragments import qualified
from dpsyn_sql.write.publish import publish, stage


def release(
    con: Connection,
    source: str | os.PathLike[str],
    *,
    into: str | os.PathLike[str] | None = None,
    epsilon: Number = 1.0,
    delta: Number = 1e-9,
    method: str = "auto",
    domain: DomainSpec = None,
    privacy_unit: str = "row",
    max_rows_per_unit: int = 1,
    name: str | None = None,
    version: str | None = None,
    account: str | None = None,
    ledger: Ledger | None = None,
    rows: int | None = None,
    seed: int | None = None,
    exclude: Sequence[str] = (),
    replace: bool = False,
    trust_query: bool = False,
    public_tables: Sequence[str] = (),
) -> Release:
    """Write a differentially private synthetic copy of a table.

    Args:
        con: a DuckDB connection, the path of a DuckDB file, or None (files only).
        source: a table or view, a CSV or Parquet path or glob, or a query.
        into: table name, or path ending in .parquet, .csv or .csv.gz; default: the source's name
            with ``_synthetic``, beside it.
        epsilon: privacy loss; smaller is more private.
        delta: 0 (pure differential privacy, Laplace noise) to 1e-6.
        method: ``"auto"``, ``"copula"`` or ``"independent"``.
        domain: YAML file, mapping, or None where the catalog knows every column's values.
        privacy_unit: ``"row"``: neighbouring tables differ in one row.
        max_rows_per_unit: 1.
        name: None.
        version: None.
        account: None.
        ledger: where the debit is recorded; default: one that lives as long as the process.
        rows: rows to write; default: the noisy total.
        seed: of the sampling (0 to 2^64 - 1); default: derived from the release id. Noise has no seed.
        exclude: columns to leave out.
        replace: allow an existing ``into`` to be overwritten.
        trust_query: the owner states that each row of the query belongs to one unit.
        public_tables: tables that hold no private data and may be joined.

    Raises:
        InputError: the call cannot be carried out; nothing was read, written or charged.
        PrivacyBudgetExceeded: the ledger refuses the debit; nothing was read.
        EngineFailure: a statement failed in the database; the debit stays.
    """
    arguments = {key: value for key, value in locals().items() if key != "con"}
    options = Options(**arguments)
    accounts = MemoryLedger() if ledger is None else ledger
    with (
        progress_bar(),
        _prepared(con, options) as job,
        accounts.open_release(job.key, job.plan.budget) as entry,
    ):
        model, measurements = _measure_and_fit(job, entry)
        entry.close_questions()
        job.session.release_source()  # the source is out of reach from here on
        chosen = _seed_of(entry.release_id) if seed is None else seed
        written = max(0, round(model.total)) if rows is None else rows
        _write(job, model, written, chosen)
        entry.published(job.target.name, written)
        return _released(job, entry, model, measurements, written, chosen)


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a release would do; ``str()`` gives the text that ``dpsyn plan`` prints."""

    plan: Plan
    counting: CountingPlan
    into: str

    def __str__(self) -> str:
        unit = self.plan.source.unit
        noise = [
            standard_deviation(marginals_event(len(step.queries), unit.max_rows, step.budget))
            for step in self.plan.steps
        ]
        lines = explain(self.plan, counting=self.counting.describe(), noise=noise)
        return "\n".join([*lines, f"Writes      {self.into}"])


def plan(con: Connection, source: str | os.PathLike[str], **options: Any) -> Explanation:
    """Explain what ``release`` would do with the same arguments. Reads no rows, charges nothing.

    Raises:
        InputError: ``release`` would refuse the same call.
    """
    arguments = inspect.signature(release).bind(con, source, **options)
    arguments.apply_defaults()
    arguments.arguments.pop("con")
    with _prepared(con, Options(**arguments.arguments)) as job:
        return Explanation(job.plan, job.counting, job.target.name)


plan.__signature__ = inspect.signature(release).replace(return_annotation=Explanation)  # type: ignore[attr-defined]


def domain_template(
    con: Connection,
    source: str | os.PathLike[str],
    *,
    trust_query: bool = False,
    public_tables: Sequence[str] = (),
) -> str:
    """A domain file (YAML) to fill in, from catalog types or header names alone. Reads no row.

    Raises:
        SourceError: the source is missing, ambiguous or not admissible.
    """
    with open_source(con, source, trust_query=trust_query, public_tables=public_tables) as session:
        return template_text(session.relation)


@dataclass(frozen=True, slots=True)
class _Job:
    """Everything decided from public facts; no row was read to make it."""

    options: Options
    session: SourceSession
    method: Method
    plan: Plan
    counting: CountingPlan
    target: Target
    key: ReleaseKey


@contextmanager
def _prepared(con: Connection, options: Options) -> Iterator[_Job]:
    """Check, resolve and plan; every refusal happens here, before anything is charged."""
    options.check()
    method = method_named(options.method)
    with open_source(
        con, options.source, trust_query=options.trust_query, public_tables=options.public_tables
    ) as session:
        for text in session.warnings:
            warnings.warn(text, stacklevel=4)
        unit = PrivacyUnit()
        domain = domain_of(options.domain, session.relation, options.exclude)
        plan = method.plan(Source(session.relation, unit), domain, options.budget())
        check_size(plan.queries, domain)
        counting = plan_counting(plan.queries, domain)
        target = open_target(con, options.into, session, replace=options.replace)
        yield _Job(options, session, method, plan, counting, target, _key(options, plan, session, target))


def _key(options: Options, plan: Plan, session: SourceSession, target: Target) -> ReleaseKey:
    """The idempotency key: public settings, never anything computed from rows."""
    configuration = {
        "source": session.resolved_name,
        "unit": plan.source.unit.column,
        "rows_per_unit": plan.source.unit.max_rows,
        "domain": [attribute_facts(attribute) for attribute in plan.domain.attributes],
        "exclude": sorted(options.exclude),
        "method": plan.method,
        "epsilon": str(exact_number("epsilon", options.epsilon)),
        "delta": str(exact_number("delta", options.delta)),
    }
    return ReleaseKey(options.account, options.name or target.name, options.version, configuration)


def _measure_and_fit(job: _Job, entry: LedgerEntry) -> tuple[Model, tuple[NoisyMarginal, ...]]:
    """The private side of the door, and the fit that is woven into it."""
    relation, domain = job.plan.source.relation, job.plan.domain
    counter = SqlCounter(
        job.session.engine, relation.sql, domain, job.plan.queries, csv=relation.kind == "csv"
    )
    try:
        curator = LocalCurator(counter, domain, job.plan.source.unit.max_rows, entry, OpenDPNoise())
        return job.method.run(job.plan, curator), curator.measurements
    finally:
        counter.close()


def _write(job: _Job, model: Model, rows: int, seed: int) -> None:
    """Post-processing: sample codes, decode them by SQL, publish in one transaction."""
    if rows == 0:
        warnings.warn("The noisy total is not above zero: the synthetic table is empty.", stacklevel=4)
    engine = job.target.open()
    try:
        staged = qualified("temp", "main", f"dpsyn_staged_{uuid4().hex}")
        with phase("sample", rows) as advance:
            batches = _reported(compile_sampler(model).batches(rows, seed), advance)
            stage(engine, job.plan.domain, batches, staged)
        with phase("write"):
            publish(engine, job.target, job.plan.domain, staged, seed)
    finally:
        engine.close()


def _reported(
    batches: Iterator[NDArray[np.integer[Any]]], advance: Callable[[int], None]
) -> Iterator[NDArray[np.integer[Any]]]:
    for batch in batches:
        yield batch
        advance(len(batch))


def _seed_of(release_id: str) -> int:
    """The default sampling seed; the release id is random and public."""
    return int.from_bytes(hashlib.sha256(release_id.encode()).digest()[:8], "big")


def _released(
    job: _Job,
    entry: LedgerEntry,
    model: Model,
    measurements: tuple[NoisyMarginal, ...],
    rows: int,
    seed: int,
) -> Release:
    budget, delta = job.plan.budget, float(exact_number("delta", job.options.delta))
    epsilon = reported_epsilon(budget, job.options.delta)
    facts = certificate(
        job.plan,
        entry.events,
        release_id=entry.release_id,
        debited_at=entry.debited_at,
        epsilon=epsilon,
        delta=delta,
        excluded=job.options.exclude,
        rows=rows,
        seed=seed,
    )
    return Release(
        job.target.name, rows, epsilon, delta, float(budget.rho), entry.release_id, model, measurements, facts
    )
