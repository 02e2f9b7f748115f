"""What is decided before anything is charged: arguments, source, domain, plan, ledger, output.

Everything is decided from public facts. Every refusal of a call happens here.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from dpsyn_sql.accounting.budget import Budget, weakness
from dpsyn_sql.common.notices import warn
from dpsyn_sql.domain.declared import evenly_binned
from dpsyn_sql.domain.file import shape_of
from dpsyn_sql.domain.shape import Shape, Undiscovered
from dpsyn_sql.domain.sliced import shape_of_slice
from dpsyn_sql.domain.unit import check_unit
from dpsyn_sql.engines.catalog import DuckDBCatalog
from dpsyn_sql.engines.frames import memory_connection, open_any_source
from dpsyn_sql.engines.source_session import Connection, SourceSession
from dpsyn_sql.engines.target_session import Output, Target, open_target
from dpsyn_sql.errors import InputError, InternalError, TargetError, said
from dpsyn_sql.front.record import Book, ledger_place
from dpsyn_sql.front.request import Request
from dpsyn_sql.ledger.protocols import Ledger, Outlook
from dpsyn_sql.ledger.store import IN_MEMORY
from dpsyn_sql.methods import method_of, static_of
from dpsyn_sql.methods.recipe import Method, check_model
from dpsyn_sql.planning.deadline import Deadline
from dpsyn_sql.planning.discovery import DiscoveryStep, planned_discovery
from dpsyn_sql.planning.explain import learnt_types, stay_text
from dpsyn_sql.planning.growth import planned_growth
from dpsyn_sql.planning.limits import Terms
from dpsyn_sql.planning.plan import Plan, ReleaseKey
from dpsyn_sql.planning.running import Total
from dpsyn_sql.planning.workload import read_workload
from dpsyn_sql.private.count.planner import check_size
from dpsyn_sql.private.encode.slices import sliced_source, typed_relation
from dpsyn_sql.private.measure.planned import planned_events
from dpsyn_sql.rows.write.expressions import check_expressions
from dpsyn_sql.rows.write.persist import check_name
from dpsyn_sql.source.files import ending_of, file_beside
from dpsyn_sql.source.frames import DataFrame, Frame, framed
from dpsyn_sql.source.names import fold
from dpsyn_sql.source.relation import PrivacyUnit, Relation, Source
from dpsyn_sql.source.slices import Window


@dataclass(frozen=True, slots=True)
class Job:
    """A release that is checked and planned, from public facts alone; no row was read to make it.

    ``total``: the running total that is made; ``request``, ``plan`` and ``key`` are then of the node that its
    period measures.

    ``shape`` may have columns still to be discovered; ``plan`` takes each at its largest possible size.
    ``rest`` is what discovery leaves to the method. ``outlook`` is what the ledger will do. ``obstacle`` is
    what prevents the output (only in a plan; a release stops there).
    """

    con: Connection
    request: Request
    session: SourceSession
    shape: Shape
    method: Method
    plan: Plan
    rest: Budget
    place: Ledger | Path | None
    target: Target
    target_name: str
    key: ReleaseKey
    terms: Terms
    outlook: Outlook
    obstacle: str
    total: Total | None = None

    @property
    def stored_name(self) -> str:
        """What the release is called where it is stored."""
        return _stored_name(self.request, self.target)

    @property
    def deadline(self) -> Deadline:
        """The deadline of everything after the last question."""
        return self.terms.deadline


def con_and_source(
    con: Connection | DataFrame,
    source: str | os.PathLike[str] | DataFrame | Frame | None,
    name: str | None = None,
) -> tuple[Connection, str | os.PathLike[str] | Frame]:
    """A file or data frame alone is the source, read without a database; ``name`` is then the frame's.

    Raises:
        InputError: the single argument is a connection, a database or nothing, or a data frame has no name.
    """
    if (found := framed(con, source, name)) is not None:
        return found
    if source is not None:
        return cast("Connection", con), cast("str | os.PathLike[str]", source)
    if isinstance(con, str | os.PathLike) and (ending_of(text := os.fspath(con)) or Path(text).is_dir()):
        return None, con
    if isinstance(con, str | os.PathLike):
        raise InputError(
            f"{said(con)} is not a CSV or Parquet file: name the table too, release(database, 'table'), "
            "or write release(None, source) for another file, a folder or a query over files."
        )
    raise InputError(
        "source= is missing: give a table, a file, a query, or a data frame (of a lazy one: collect())."
    )


@contextmanager
def prepared(con: Connection, request: Request, *, explaining: bool = False) -> Iterator[Job]:
    """Check, resolve and plan; every refusal happens here, before anything is charged.

    ``explaining``: an existing output is noted, not refused.
    """
    con, source = con_and_source(con, request.source, request.name)
    request = replace(request, source=source)
    if isinstance(source, Frame):
        request = _of_frame(request, source)
    request.check()
    asked, total = request, request.total()
    request = _at_node(request, total)
    if weak := weakness(request.epsilon):
        warn(weak)
    limits = request.limits()
    method = method_of(request.method) if total is None else static_of(request.method)
    if isinstance(source, Frame) and con is None and request.into is None:
        con = memory_connection(limits.engine)
    with open_any_source(
        con,
        source,
        trust_query=request.trust_query,
        public_tables=request.public_tables,
        strict=request.on_error == "fail",
        memory_limit=limits.engine,
        unit=request.unit().column,
    ) as session:
        for text in session.warnings:
            warn(text)
        protected, shape = _resolved(request, session)
        _check_account(request, session)
        place = ledger_place(request, session)
        budget, total = request.budget(), asked.total()
        shape = _of_total(shape, total)
        if total is None and protected.sliced is not None:
            shape = shape_of_slice(shape, protected.sliced)
        workload = read_workload(request.workload, request.target).matched(shape)
        terms = Terms(limits, workload, Deadline(request.time_limit))
        chosen = method.chosen(shape.planned(), terms)
        check_model(chosen)
        budget = budget if total is None else total.budget
        job = _decided(
            con,
            request,
            session,
            protected,
            shape,
            chosen,
            terms,
            total,
            budget,
            place,
            explaining=explaining,
        )
        if not explaining:
            session.ready()
        yield job


def _check_account(request: Request, session: SourceSession) -> None:
    """If nobody knows which tables the rows are of, the owner must name the account that pays for them.

    Raises:
        InputError: ``account=`` is not given.
    """
    if session.lineage_unknown and request.account is None:
        raise InputError(
            "Spark does not say which tables the source reads, so account='...' must be named: the account "
            "that is charged for them, the same for every release of their rows. Nothing was read."
        )


def _of_frame(request: Request, frame: Frame) -> Request:
    """A release of a data frame is called as the frame is, wherever its rows go.

    Raises:
        InputError: it asks for a slice.
    """
    if request.slice is not None:
        raise InputError(
            "Slices and running totals are parts of a table or a file, which lasts: write the data frame to "
            "one, and release its slices."
        )
    return replace(request, name=request.name or frame.label)


def at_period(job: Job, period: int) -> Job:
    """The same running total, as it was at an earlier period: another node, and its key.

    Raises:
        InternalError: it is no running total.
    """
    if job.total is None:
        raise InternalError("only a running total has periods")
    total = replace(job.total, period=period)
    request = _at_node(job.request, total)
    unit = PrivacyUnit(job.plan.source.unit.column, request.max_rows_per_unit)
    source = _source(request, job.session, unit, job.shape)
    plan, rest = _planned(job.method, source, job.shape, total.budget, job.terms, total)
    key = Book(job.con, job.place, request, job.session, job.shape, plan).key(job.target.output)
    return replace(job, request=request, plan=plan, rest=rest, key=key, total=total)


def _at_node(request: Request, total: Total | None) -> Request:
    """A request for the node that the period of a running total measures; any other stays the same."""
    if total is None or not isinstance(request.slice, Window):
        return request
    return replace(
        request,
        slice=total.node(request.slice),
        max_rows_per_unit=total.level.rows,
        version=total.labels[total.period - 1],
    )


def _of_total(shape: Shape, total: Total | None) -> Shape:
    """Tables of different windows add up only if they have the same cells: bounds get equal bins.

    Raises:
        InputError: the domain of a column is not public.
    """
    if total is None:
        return shape
    measured = tuple(
        (evenly_binned(item) or item) if isinstance(item, Undiscovered) else item for item in shape.measured
    )
    shape = replace(shape, measured=measured)
    if shape.undiscovered:
        names = ", ".join(repr(column.name) for column in shape.undiscovered)
        raise InputError(
            f"A running total needs declared domains, and those of {names} would have to be discovered: in "
            "each window others would be found, so the tables of the windows would not add up. Declare them "
            "in the domain file (dpsyn init), or leave the columns out with exclude=."
        )
    return shape


def _resolved(request: Request, session: SourceSession) -> tuple[Source, Shape]:
    """What is protected, and what is public of its columns."""
    unit, relation = request.unit(), session.relation
    column = None if unit.column is None else check_unit(relation.columns, unit)
    _check_row(request.privacy_unit, relation)
    if column is not None:
        unit = PrivacyUnit(column.name, unit.max_rows)
    shape = shape_of(request.domain, relation, request.exclude, discover=request.discover, unit=column)
    untyped = shape.untyped
    shape = check_expressions(shape, session.engine, DuckDBCatalog(session.engine))
    if relation.strict:
        shape = shape.as_text(untyped)
    elif request.slice is not None:
        sliced = fold(request.slice.column)
        shape = shape.as_text([name for name in untyped if fold(name) == sliced])
    if stays := [name for name in untyped if name not in shape.untyped]:
        warn(stay_text(stays))
    return _source(request, session, unit, shape), shape


def _source(request: Request, session: SourceSession, unit: PrivacyUnit, shape: Shape) -> Source:
    """The rows that are read, and the unit that is protected."""
    source = Source(session.relation, unit)
    if request.slice is not None:
        source = sliced_source(source.relation, unit, request.slice, shape, session.engine.dialect)
    if source.sliced is not None and request.asks_total:
        source = replace(source, sliced=replace(source.sliced, together=True))
    if source.relation.strict:
        source = replace(source, relation=typed_relation(source.relation, shape))
    return source


def _decided(
    con: Connection,
    request: Request,
    session: SourceSession,
    source: Source,
    shape: Shape,
    method: Method,
    terms: Terms,
    total: Total | None,
    budget: Budget,
    place: Ledger | Path | None,
    *,
    explaining: bool,
) -> Job:
    """The plan, the ledger and the output."""
    plan, rest = _planned(method, source, shape, budget, terms, total)
    check_size(plan.queries, plan.domain)
    terms.limits.check_measured(_measured_at_once(plan))
    book = Book(con, place, request, session, shape, plan)
    target, obstacle = _target(con, request, session, book, explaining=explaining)
    check_name(target.database, _stored_name(request, target))
    _check_not_the_ledger(target, place)
    outlook = book.look(target.output)
    if outlook.standing.warning:
        warn(outlook.standing.warning)
    if shape.untyped:
        warn(learnt_types(plan, shape.untyped))
    if outlook.stored is not None:  # what was debited then is what may be asked now
        plan, rest = _planned(method, source, shape, outlook.stored, terms, total)
    return Job(
        con=con,
        request=request,
        session=session,
        shape=shape,
        method=method,
        plan=plan,
        rest=rest,
        place=place,
        target=target,
        target_name=book.name(target.output),
        key=book.key(target.output),
        terms=terms,
        outlook=outlook,
        obstacle=obstacle,
        total=total,
    )


def _stored_name(request: Request, target: Target) -> str:
    """A slice is called as its output, since releases of many slices have one name."""
    return (request.name if request.slice is None else None) or target.label


def _check_row(privacy_unit: str, relation: Relation) -> None:
    """``"Row"`` means single rows, unless there is a column of that name."""
    taken = any(column.name == privacy_unit for column in relation.columns)
    if taken and privacy_unit != "row" and fold(privacy_unit) == "row":
        raise InputError(
            f"privacy_unit={privacy_unit!r} is ambiguous: it can mean single rows or the column of this "
            "name. Write 'row' for single rows, or rename the column."
        )


def _target(
    con: Connection, request: Request, session: SourceSession, book: Book, *, explaining: bool
) -> tuple[Target, str]:
    """The output, and what prevents it (a plan says so, a release stops)."""

    def written(output: Output) -> bool:
        return book.look(output).wrote

    try:
        target = open_target(con, request.into, session, replace=request.replace, written=written)
    except TargetError as error:
        if not explaining or request.replace:
            raise
        obstacle = str(error)
    else:
        return target, ""
    return open_target(con, request.into, session, replace=True), obstacle


def _check_not_the_ledger(target: Target, place: Ledger | Path | None) -> None:
    """Refuse an output, or a model beside it, that would overwrite the ledger."""
    file = place if isinstance(place, Path) else getattr(place, "place", None)
    if target.path is None or file is None or file == IN_MEMORY:
        return
    ledger = os.path.realpath(file)
    taken = {ledger, f"{ledger}-wal", f"{ledger}-shm"}
    for path in (target.path, file_beside(target.path)):
        if os.path.realpath(path) in taken:
            raise TargetError(
                f"{str(path)!r} is the ledger of this release, or one of its files; choose another into=."
            )


def _planned(
    method: Method, source: Source, shape: Shape, budget: Budget, terms: Terms, total: Total | None
) -> tuple[Plan, Budget]:
    """The whole plan, discovery included, and what discovery leaves to the method.

    A running total discovers nothing: rows per unit in its nodes do not tell rows per unit in the total.
    """
    steps, rest = ((), budget) if total is not None else _discovery(method, source, shape, budget)
    plan = method.plan(source, shape.planned(), rest, terms)
    whole = Budget(budget.kind, budget.amount, sum(step.budget.delta for step in steps))
    plan = replace(plan, budget=whole, discovery=steps)
    if total is not None:
        own = plan.details
        own = replace(own, identity={**own.identity, **total.identity}, lines=(*own.lines, *total.lines))
        plan = replace(plan, details=own)
    planned_events(plan)  # refuses a share that is too small to pay for its question
    return plan, rest


def _discovery(
    method: Method, source: Source, shape: Shape, budget: Budget
) -> tuple[tuple[DiscoveryStep, ...], Budget]:
    if method.growth is None:
        return planned_discovery(shape, source.unit, budget)
    return planned_growth(shape, source.unit, budget, method.growth)


def _measured_at_once(plan: Plan) -> int:
    """Cells of the largest question that is known."""
    return max((sum(plan.domain.cells(q.attrs) for q in step.queries) for step in plan.known), default=0)
