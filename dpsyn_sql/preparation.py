"""What is decided before anything is charged: arguments, source, domain, plan, ledger, output.

All of it comes from public facts. Every refusal of a call happens here.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dpsyn_sql.accounting.budget import Budget, exact_number
from dpsyn_sql.count.planner import check_size
from dpsyn_sql.domain.file import shape_of
from dpsyn_sql.domain.shape import Shape
from dpsyn_sql.domain.strict import typed_relation
from dpsyn_sql.domain.unit import check_unit
from dpsyn_sql.engines.catalog import DuckDBCatalog
from dpsyn_sql.engines.source_session import Connection, SourceSession, open_source
from dpsyn_sql.engines.target_session import Target, open_target
from dpsyn_sql.fit.deadline import Deadline
from dpsyn_sql.interfaces import Ledger, Method
from dpsyn_sql.ledger.accounts import new_name, untouched
from dpsyn_sql.ledger.locations import known_memory_ledger, memory_ledger, place_for
from dpsyn_sql.ledger.sqlite import SqliteLedger
from dpsyn_sql.ledger.store import IN_MEMORY
from dpsyn_sql.measure.calibrate import planned_events
from dpsyn_sql.methods import method_named, weighted
from dpsyn_sql.plan.discovery import planned_discovery
from dpsyn_sql.plan.key import ReleaseKey
from dpsyn_sql.plan.options import Options
from dpsyn_sql.plan.plan import Plan
from dpsyn_sql.plan.workload import read_workload
from dpsyn_sql.report.certificate import measured_facts
from dpsyn_sql.source.relation import PrivacyUnit, Source
from dpsyn_sql.write.expressions import check_expressions
from dpsyn_sql.write.persist import check_name


@dataclass(frozen=True, slots=True)
class Job:
    """Everything decided from public facts; no row was read to make it.

    ``shape`` may have columns still to be discovered; ``plan`` takes each at the largest size it can get.
    ``rest`` is what discovery leaves to the method.
    """

    options: Options
    session: SourceSession
    shape: Shape
    method: Method
    plan: Plan
    rest: Budget
    place: Ledger | Path | None
    target: Target
    key: ReleaseKey
    deadline: Deadline


@contextmanager
def prepared(con: Connection, options: Options) -> Iterator[Job]:
    """Check, resolve and plan; every refusal happens here, before anything is charged."""
    options.check()
    limits, deadline = options.limits(), Deadline(options.time_limit)
    method = method_named(options.method, limits, deadline)
    with open_source(
        con,
        options.source,
        trust_query=options.trust_query,
        public_tables=options.public_tables,
        strict=options.on_error == "fail",
        memory_limit=limits.engine,
    ) as session:
        for text in session.warnings:
            warnings.warn(text, stacklevel=4)
        unit, relation = options.unit(), session.relation
        column = None if unit.column is None else check_unit(relation.columns, unit)
        if column is not None:
            unit = PrivacyUnit(column.name, unit.max_rows)
        shape = shape_of(options.domain, relation, options.exclude, discover=options.discover, unit=column)
        shape = check_expressions(shape, session.engine, DuckDBCatalog(session.engine))
        if relation.strict:
            relation = typed_relation(relation, shape)
        method = weighted(method, read_workload(options.workload).fitted(shape))
        plan, rest = _planned(method, Source(relation, unit), shape, options.budget())
        check_size(plan.queries, plan.domain)
        limits.check_measured(_measured_at_once(plan))
        place = _ledger_place(options, session)

        def key(identity: str) -> ReleaseKey:
            return _key(options, shape, plan, session, options.name or identity, _home_of(place))

        def written(identity: str) -> bool:
            if isinstance(place, Path) and not place.exists():
                return False
            with opened_ledger(con, place) as accounts:
                return accounts.wrote(key(identity), identity)

        target = open_target(con, options.into, session, replace=options.replace, written=written)
        check_name(target.database, options.name or target.label)
        yield Job(
            options,
            session,
            shape,
            method,
            plan,
            rest,
            place,
            target,
            key(target.identity),
            deadline,
        )


def _planned(method: Method, source: Source, shape: Shape, budget: Budget) -> tuple[Plan, Budget]:
    """The whole plan, discovery included, and what discovery leaves to the method."""
    steps, rest = planned_discovery(shape, source.unit, budget)
    plan = method.plan(source, shape.planned(), rest)
    whole = Budget(budget.kind, budget.amount, sum(step.budget.delta for step in steps))
    plan = replace(plan, budget=whole, discovery=steps)
    planned_events(plan)  # refuses a share that is too small to pay for its question
    return plan, rest


def _measured_at_once(plan: Plan) -> int:
    """Cells of the largest question that is known."""
    return max((sum(plan.domain.cells(q.attrs) for q in step.queries) for step in plan.known), default=0)


def ledger_in_words(place: Ledger | Path | None) -> str:
    """Where a debit is recorded, for the explained plan."""
    if place is None:
        return "in memory: what is spent is forgotten with the connection"
    return str(place) if isinstance(place, Path) else "the one that was passed"


def account_in_words(con: Connection, job: Job) -> str:
    """The account that would be charged and how it stands; a ledger that is not there yet is not made."""
    place = job.place
    if place is None:
        known = known_memory_ledger(con)
        return str(untouched(new_name(job.key)) if known is None else known.standing(job.key))
    if isinstance(place, Path) and not place.exists():
        return str(untouched(new_name(job.key)))
    with opened_ledger(con, place) as accounts:
        return str(accounts.standing(job.key))


def _ledger_place(options: Options, session: SourceSession) -> Ledger | Path | None:
    """An open ledger, the file of one, or None for one in memory; nothing is made yet."""
    if options.ledger is not None and not isinstance(options.ledger, str | os.PathLike):
        ledger: Ledger = options.ledger
        return ledger
    databases = [table.file for table in session.tables]
    return place_for(ledger=options.ledger, databases=databases, pattern=session.pattern, files=session.paths)


def _home_of(place: Ledger | Path | None) -> Path | None:
    """The folder of the ledger: sources below it are named relative to it."""
    file = place if isinstance(place, Path) else getattr(place, "place", None)
    return None if file is None or file == IN_MEMORY else Path(os.path.realpath(file)).parent


@contextmanager
def opened_ledger(con: Connection, place: Ledger | Path | None) -> Iterator[Ledger]:
    """Open the ledger; close it if it was not open before."""
    if place is None:
        yield memory_ledger(con)
    elif isinstance(place, Path):
        with closing(SqliteLedger(place)) as ledger:
            yield ledger
    else:
        yield place


def _key(
    options: Options, shape: Shape, plan: Plan, session: SourceSession, name: str, home: Path | None
) -> ReleaseKey:
    """The idempotency key: public settings, never anything computed from rows."""
    configuration: dict[str, Any] = {
        "source": session.resolved_name,
        "statements": list(plan.source.relation.statements),
        "unit": plan.source.unit.column,
        "rows_per_unit": plan.source.unit.max_rows,
        "domain": [measured_facts(item) for item in shape.measured],
        "exclude": sorted(options.exclude),
        "method": plan.method,
        "epsilon": str(exact_number("epsilon", options.epsilon)),
        "delta": str(exact_number("delta", options.delta)),
    }
    if any(step.ask == "contributions" for step in plan.discovery):
        configuration["rows_of_units"] = "measured"
    if plan.caps:
        configuration["caps"] = list(plan.caps)
    if options.on_error != "null":
        configuration["on_error"] = options.on_error
    if plan.workload.sets:
        configuration["workload"] = plan.workload.facts()
    sources = session.private_sources(home)
    return ReleaseKey(options.account, name, options.version, configuration, sources)
