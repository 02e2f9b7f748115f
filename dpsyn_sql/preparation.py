"""What is decided before anything is charged: arguments, source, domain, plan, ledger, output.

Everything is decided from public facts. Every refusal of a call happens here.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from dpsyn_sql.accounting.budget import Budget, exact_number, weakness
from dpsyn_sql.count.planner import check_size
from dpsyn_sql.domain.declared import evenly_binned
from dpsyn_sql.domain.file import shape_of
from dpsyn_sql.domain.shape import Shape, Undiscovered
from dpsyn_sql.domain.sliced import shape_of_slice
from dpsyn_sql.domain.unit import check_unit
from dpsyn_sql.encode.slices import sliced_source
from dpsyn_sql.encode.strict import typed_relation
from dpsyn_sql.engines.calling import owner_of
from dpsyn_sql.engines.catalog import DuckDBCatalog
from dpsyn_sql.engines.frames import memory_connection, open_any_source
from dpsyn_sql.engines.source_session import Connection, SourceSession
from dpsyn_sql.engines.target_session import Output, Target, open_target
from dpsyn_sql.errors import InputError, InternalError, LedgerError, TargetError, said
from dpsyn_sql.interfaces import Ledger, Method, Outlook
from dpsyn_sql.ledger.accounts import new_name, untouched
from dpsyn_sql.ledger.locations import VARIABLE, known_memory_ledger, memory_ledger, place_for, variable_place
from dpsyn_sql.ledger.sqlite import SqliteLedger
from dpsyn_sql.ledger.store import IN_MEMORY
from dpsyn_sql.measure.planned import planned_events
from dpsyn_sql.methods import method_of, static_of
from dpsyn_sql.methods.check import check_model
from dpsyn_sql.notices import warn
from dpsyn_sql.planning.deadline import Deadline
from dpsyn_sql.planning.discovery import planned_discovery
from dpsyn_sql.planning.key import ReleaseKey
from dpsyn_sql.planning.plan import Plan
from dpsyn_sql.planning.running import Total
from dpsyn_sql.planning.terms import Terms
from dpsyn_sql.planning.untyped import learnt_types, stay_text
from dpsyn_sql.planning.workload import read_workload
from dpsyn_sql.report.certificate import measured_facts
from dpsyn_sql.request import Request
from dpsyn_sql.source.files import ending_of, file_beside
from dpsyn_sql.source.frames import DataFrame, Frame, framed
from dpsyn_sql.source.ledger_names import Home
from dpsyn_sql.source.names import fold
from dpsyn_sql.source.relation import PrivacyUnit, Relation, Source
from dpsyn_sql.source.slices import Sliced, Window
from dpsyn_sql.write.expressions import check_expressions
from dpsyn_sql.write.persist import check_name


@dataclass(frozen=True, slots=True)
class Job:
    """Everything decided from public facts; no row was read to make it.

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
        """Of what follows the last question."""
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
    total = request.total()
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
    ) as session:
        for text in session.warnings:
            warn(text)
        protected, shape = _resolved(request, session)
        shape = _of_total(shape, total)
        if total is None and protected.sliced is not None:
            shape = shape_of_slice(shape, protected.sliced)
        workload = read_workload(request.workload, request.target).matched(shape)
        terms = Terms(limits, workload, Deadline(request.time_limit))
        chosen = method.chosen(shape.planned(), terms)
        check_model(chosen)
        yield _decided(con, request, session, protected, shape, chosen, terms, total, explaining=explaining)


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
    key = _Book(job.con, job.place, request, job.session, job.shape, plan).key(job.target.output)
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
    *,
    explaining: bool,
) -> Job:
    """The plan, the ledger and the output."""
    budget = request.budget() if total is None else total.budget
    plan, rest = _planned(method, source, shape, budget, terms, total)
    check_size(plan.queries, plan.domain)
    terms.limits.check_measured(_measured_at_once(plan))
    place = _ledger_place(request, session)
    book = _Book(con, place, request, session, shape, plan)
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


class _Book:
    """What the ledger is asked before the debit. A missing ledger is not made."""

    def __init__(
        self,
        con: Connection,
        place: Ledger | Path | None,
        request: Request,
        session: SourceSession,
        shape: Shape,
        plan: Plan,
    ) -> None:
        self._con, self._place, self._request = con, place, request
        self._session, self._shape, self._plan = session, shape, plan
        with self._opened() as ledger:
            self._home = (
                Home.of(place if isinstance(place, Path) else None) if ledger is None else ledger.home
            )

    def name(self, output: Output) -> str:
        """What the ledger calls an output."""
        return output.name(self._home)

    def key(self, output: Output) -> ReleaseKey:
        """The idempotency key of a release to this output, and its key in ledgers of the first format."""
        request, session, unit = self._request, self._session, self._plan.source.unit.column
        former = ReleaseKey(
            account=request.account,
            name=request.name or output.spelled,
            version=request.version,
            configuration=self._configuration(session.resolved_spelling, session.former_statements, unit),
            sources=session.private_spellings(self._home),
        )
        statements, name = self._plan.source.relation.statements, self._plan.source.unit_name
        unit = None if name == "row" else name
        return ReleaseKey(
            account=request.account,
            name=request.name or self.name(output),
            version=request.version,
            configuration=self._told(unit, statements),
            sources=session.private_sources(self._home),
            named=request.name is not None,
            former=former,
        )

    def _told(self, unit: str | None, statements: Sequence[str]) -> dict[str, Any]:
        """The configuration: the source in the ledger's names, and only settings that make a difference."""
        session, relation = self._session, self._plan.source.relation
        told = self._configuration(session.resolved_name(self._home), statements, unit)
        if relation.kind != "csv":
            told.pop("on_error", None)
        left_out = {fold(name) for name in self._request.exclude} - {
            fold(self._plan.source.unit.column or "")
        }
        return {**told, "kind": session.kind, "exclude": sorted(left_out)}

    def look(self, output: Output) -> Outlook:
        """What the ledger would do with the release."""
        key, budget, fresh = self.key(output), self._plan.budget, self._request.new_debit
        with self._opened() as ledger:
            if ledger is None:
                return Outlook(untouched(new_name(key)))
            return ledger.look(key, budget, (self.name(output), output.spelled), new_debit=fresh)

    def _configuration(self, source: str, statements: Sequence[str], unit: str | None) -> dict[str, Any]:
        """Public settings, never anything computed from rows."""
        request, plan = self._request, self._plan
        configuration: dict[str, Any] = {
            "source": source,
            "statements": list(statements),
            "unit": unit,
            "rows_per_unit": plan.source.unit.max_rows,
            "domain": [measured_facts(item) for item in self._shape.measured],
            "exclude": sorted(request.exclude),
            "method": plan.method,
            "epsilon": str(exact_number("epsilon", request.epsilon)),
            "delta": str(exact_number("delta", request.delta)),
        }
        if any(step.ask == "contributions" for step in plan.discovery):
            configuration["rows_of_units"] = "measured"
        if plan.source.sliced is not None:
            configuration["slice"] = self._slice(plan.source.sliced)
        if request.on_error != "null":
            configuration["on_error"] = request.on_error
        if plan.particulars.settings:
            configuration["settings"] = dict(plan.particulars.settings)
        return {**configuration, **plan.particulars.identity}

    def _slice(self, sliced: Sliced) -> dict[str, Any]:
        """A slice with all that decides its rows: a view of another definition has other slices, and where a
        bound is enforced so has another time zone."""
        definition, conventions = self._session.definition(self._home), self._session.conventions
        told = {**sliced.identity, **({} if definition is None else {"definition": definition})}
        if conventions and sliced.slice.most is not None:
            told["conventions"] = dict(conventions)
        return told

    @contextmanager
    def _opened(self) -> Iterator[Ledger | None]:
        """The ledger; None if it does not exist yet."""
        if self._place is None:
            yield known_memory_ledger(owner_of(self._con))
        elif isinstance(self._place, Path) and not os.path.lexists(self._place):
            yield None
        else:
            with opened_ledger(self._con, self._place) as ledger:
                yield ledger


def _target(
    con: Connection, request: Request, session: SourceSession, book: _Book, *, explaining: bool
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
    steps, rest = ((), budget) if total is not None else planned_discovery(shape, source.unit, budget)
    plan = method.plan(source, shape.planned(), rest, terms)
    whole = Budget(budget.kind, budget.amount, sum(step.budget.delta for step in steps))
    plan = replace(plan, budget=whole, discovery=steps)
    if total is not None:
        own = plan.particulars
        own = replace(own, identity={**own.identity, **total.identity}, lines=(*own.lines, *total.lines))
        plan = replace(plan, particulars=own)
    planned_events(plan)  # refuses a share that is too small to pay for its question
    return plan, rest


def _measured_at_once(plan: Plan) -> int:
    """Cells of the largest question that is known."""
    return max((sum(plan.domain.cells(q.attrs) for q in step.queries) for step in plan.known), default=0)


def ledger_in_words(place: Ledger | Path | None) -> str:
    """Where a debit is recorded, for the explained plan."""
    if place is None:
        return "in memory: it ends with the connection"
    return str(place) if isinstance(place, Path) else "the open ledger that you passed"


def _ledger_place(request: Request, session: SourceSession) -> Ledger | Path | None:
    """An open ledger, the file of one, or None for one in memory. Nothing is made yet."""
    if request.ledger is not None and not isinstance(request.ledger, str | os.PathLike):
        ledger: Ledger = request.ledger
        return ledger
    if isinstance(request.source, Frame) and request.ledger is None and variable_place() is None:
        raise LedgerError(
            "A data frame has no place, so its ledger must be named: give ledger='path/to/file', the same "
            f"for every release of these data, or set the environment variable {VARIABLE}. Nothing was read."
        )
    databases = [table.file for table in session.tables]
    return place_for(ledger=request.ledger, databases=databases, pattern=session.pattern, files=session.paths)


@contextmanager
def opened_ledger(con: Connection, place: Ledger | Path | None) -> Iterator[Ledger]:
    """Open the ledger; close it if it was not open before."""
    if place is None:
        yield memory_ledger(owner_of(con))
    elif isinstance(place, Path):
        with closing(SqliteLedger(place)) as ledger:
            yield ledger
    else:
        yield place
