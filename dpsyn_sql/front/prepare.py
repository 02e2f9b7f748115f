"""What is decided before anything is charged: arguments, source, domain, plan, ledger, output.

Everything is decided from public facts. Every refusal of a call happens here.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from dpsyn_sql.accounting.budget import weakness
from dpsyn_sql.common.notices import warn
from dpsyn_sql.domain.advice import serious_findings
from dpsyn_sql.domain.declared import evenly_binned
from dpsyn_sql.domain.file import shape_of
from dpsyn_sql.domain.shape import Shape, Undiscovered, UnitId
from dpsyn_sql.domain.sliced import shape_of_slice, with_time, without_time
from dpsyn_sql.domain.unit import check_unit, not_stated
from dpsyn_sql.engines.catalog import DuckDBCatalog
from dpsyn_sql.engines.frames import memory_connection
from dpsyn_sql.engines.open_source import open_source
from dpsyn_sql.engines.open_target import open_target
from dpsyn_sql.engines.source_session import Connection, SourceSession
from dpsyn_sql.engines.target import Output, Target
from dpsyn_sql.errors import InputError, InternalError, TargetError, said
from dpsyn_sql.front.job import Design, Job, at_node, protected_source, stored_name
from dpsyn_sql.front.ledger_lookup import LedgerLookup, check_not_the_ledger, ledger_place
from dpsyn_sql.front.request import Request
from dpsyn_sql.ledger.sqlite import SqliteLedger
from dpsyn_sql.methods import METHODS, method_of, static_of
from dpsyn_sql.methods.recipe import Recipe, check_model
from dpsyn_sql.planning.deadline import Deadline
from dpsyn_sql.planning.explain import learnt_types, stay_text
from dpsyn_sql.planning.limits import MAX_PAIR_CELLS, Terms
from dpsyn_sql.planning.running import Total
from dpsyn_sql.planning.workload import read_workload
from dpsyn_sql.rows.sample.ticks import ordering
from dpsyn_sql.rows.write.expressions import check_expressions
from dpsyn_sql.rows.write.persist import check_name
from dpsyn_sql.source.files import ending_of
from dpsyn_sql.source.frames import DataFrame, Frame, framed
from dpsyn_sql.source.names import fold, listed
from dpsyn_sql.source.relation import Relation, Source

PANEL_METHOD = "adaptive"
"""The method of panels: a row is drawn given the row before."""

_Place = str | os.PathLike[str] | Frame


def con_and_source(
    con: Connection | DataFrame,
    source: str | os.PathLike[str] | DataFrame | Frame | None,
    name: str | None = None,
) -> tuple[Connection, _Place]:
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
    """Check, resolve and plan; a wrong call is refused here, before anything is charged.

    ``explaining``: an existing output is noted, not refused.
    """
    con, source, request = _asked(con, request)
    total = request.total()
    with _opened_source(con, source, at_node(request, total)) as session:
        session.choose_scratch(plain=request.plain_scratch)
        design = _designed(at_node(request, total), session, total)
        untold = "" if request.privacy_unit else not_stated(session.relation.columns)
        if untold and not explaining:
            raise InputError(f"{untold} Nothing was read or charged.")
        serious = _serious(design)
        if not explaining:
            for text in serious:
                warn(text)
        job = _recorded(con, design, ledger_place(request, session), explaining=explaining)
        job = replace(
            job, obstacle=f"a release is refused: {untold}" if untold else job.obstacle, serious=serious
        )
        if not explaining:
            session.ready()
            if job.preview.debits:  # a replay reads no row
                session.refuse_undecodable()
        yield job


def _asked(con: Connection, request: Request) -> tuple[Connection, _Place, Request]:
    """The connection, the source and the request, with all checks that need nothing opened."""
    con, source = con_and_source(con, request.source, request.name)
    request = replace(request, source=source)
    if isinstance(source, Frame):
        request = _of_frame(request, source)
    request.check()
    if isinstance(source, Frame) and con is None and request.into is None:
        con = memory_connection(request.limits().engine)
    if weak := weakness(request.epsilon):
        warn(weak)
    return con, source, request


def _opened_source(
    con: Connection, source: _Place, request: Request
) -> AbstractContextManager[SourceSession]:
    return open_source(
        con,
        source,
        trust_query=request.trust_query,
        public_tables=request.public_tables,
        strict=request.on_error == "fail",
        memory_limit=request.limits().engine,
        unit=request.unit().column,
        form=request.form(),
    )


def _designed(request: Request, session: SourceSession, total: Total | None) -> Design:
    """What is protected, what is public of its columns, and the method for such a table."""
    method = asked_method(request)
    for text in session.warnings:
        warn(text)
    source, shape = _resolved(request, session)
    _check_account(request, session)
    panel = request.of_panel()
    if panel is not None and source.sliced is not None:
        shape = without_time(shape, source.sliced)
    elif total is not None:
        shape = _of_total(shape)
    elif source.sliced is not None:
        shape = shape_of_slice(shape, source.sliced)
    workload = read_workload(request.workload, request.target).matched(shape)
    terms = Terms(request.limits(), workload, Deadline(request.time_limit))
    method = method.chosen(shape.planned(), terms)
    check_model(method)
    if source.unit.together and not method.takes_families:
        able = listed([name for name, one in METHODS.items() if one.takes_families])
        raise InputError(
            f"method={method.name!r} does not keep the rows of a unit together; use {able}, or leave out "
            "together="
        )
    return Design(request, session, source, shape, method, terms, total, panel)


def asked_method(request: Request) -> Recipe:
    """The method that a request asks for.

    Raises:
        InputError: it cannot do what is asked for.
    """
    if not request.asks_panel:
        return (static_of if request.asks_total else method_of)(request.method)
    named = method_of(request.method)
    if named.name not in ("auto", PANEL_METHOD):
        raise InputError(
            f"method={named.name!r} makes no panel, since it does not draw a row given the one before; use "
            f"{PANEL_METHOD}, or leave method= out"
        )
    return method_of(PANEL_METHOD)


def _serious(design: Design) -> tuple[str, ...]:
    """What ruins a column, by the declarations alone."""
    request, relation = design.request, design.session.relation
    unit = request.unit()
    column = None if unit.column is None else check_unit(relation.columns, unit)
    found = serious_findings(
        request.domain, relation, unit=column, exclude=request.exclude, most_cells=MAX_PAIR_CELLS
    )
    return tuple(str(finding) for finding in found)


def _recorded(con: Connection, design: Design, place: SqliteLedger | Path | None, *, explaining: bool) -> Job:
    """The plan, the output, and what the ledger will do."""
    request = design.request
    plan, rest = design.planned(design.budget)
    book = LedgerLookup.of(con, place, design, plan)
    target, obstacle = _target(con, design, book, explaining=explaining)
    if design.panel is not None:
        _check_panel_output(design, target)
    check_name(target.database, stored_name(request, target))
    check_not_the_ledger(target.path, place)
    preview = book.look(target.output)
    if preview.account_state.warning:
        warn(preview.account_state.warning)
    if design.shape.untyped:
        warn(learnt_types(plan, design.shape.untyped))
    if preview.stored is not None:  # what was debited then is what may be asked now
        plan, rest = design.planned(preview.stored)
    return Job.of(
        design,
        con=con,
        plan=plan,
        rest=rest,
        place=place,
        target=target,
        target_name=book.name(target.output),
        key=book.key(target.output),
        preview=preview,
        obstacle=obstacle,
        serious=(),
    )


def at_period(job: Job, period: int) -> Job:
    """The same running total or panel, as it was at an earlier period: another node or window, and its key.

    Raises:
        InternalError: it is neither.
    """
    if job.panel is not None:
        panel = job.panel.at(period)
        request = replace(job.request, slice=panel.window, version=panel.label)
        return _replanned(job, request, panel=panel)
    if job.total is None:
        raise InternalError("only running totals and panels have periods")
    total = replace(job.total, period=period)
    return _replanned(job, at_node(job.request, total), total=total)


def _replanned(job: Job, request: Request, **part: Any) -> Job:
    """The job of another window of its calendar."""
    unit = replace(job.source.unit, max_rows=request.max_rows_per_unit)
    sliced, shape = job.source.sliced, job.shape
    if job.panel is not None and sliced is not None:
        shape = with_time(shape, sliced)
    source = protected_source(request, job.session, unit, shape)
    node = replace(job, request=request, source=source, **part)
    plan, rest = node.planned(node.budget)
    return replace(
        node, plan=plan, rest=rest, key=LedgerLookup.of(job.con, job.place, node, plan).key(job.target.output)
    )


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


def _of_total(shape: Shape) -> Shape:
    """Tables of different windows add up only if they have the same cells: bounds get equal bins.

    Raises:
        InputError: the domain of a column is not public.
    """
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
        unit = replace(unit, column=column.name)
    shape = shape_of(request.domain, relation, request.exclude, discover=request.discover, unit=column)
    untyped = shape.untyped
    shape = check_expressions(shape, session.engine, DuckDBCatalog(session.engine))
    if relation.strict:
        shape = shape.as_text(untyped)
    elif request.slice is not None:
        sliced = fold(request.slice.column)
        shape = shape.as_text([name for name in untyped if fold(name) == sliced])
    if unit.order is not None:
        unit = replace(unit, order=ordering(shape, unit.order))
    if stays := [name for name in untyped if name not in shape.untyped]:
        warn(stay_text(stays))
    return protected_source(request, session, unit, shape), shape


def _check_row(privacy_unit: str | None, relation: Relation) -> None:
    """``"Row"`` means single rows, unless there is a column of that name."""
    if privacy_unit is None:
        return
    taken = any(column.name == privacy_unit for column in relation.columns)
    if taken and privacy_unit != "row" and fold(privacy_unit) == "row":
        raise InputError(
            f"privacy_unit={privacy_unit!r} is ambiguous: it can mean single rows or the column of this "
            "name. Write 'row' for single rows, or rename the column."
        )


def _target(con: Connection, design: Design, book: LedgerLookup, *, explaining: bool) -> tuple[Target, str]:
    """The output, and what prevents it (a plan says so, a release stops)."""
    request, session = design.request, design.session

    def written(output: Output) -> bool:
        return design.follows or book.look(output).wrote

    try:
        return open_target(con, request.into, session, replace=request.replace, written=written), ""
    except TargetError as error:
        if not explaining or request.replace:
            raise
        obstacle = str(error)
    return open_target(con, request.into, session, replace=True), obstacle


def _check_panel_output(design: Design, target: Target) -> None:
    """A panel is a table that grows, with a column of its persons.

    Raises:
        InputError: it would be something else.
    """
    if target.kind != "table" or design.session.engine.in_parts:
        raise InputError("A panel is written to a table of a DuckDB database: name it as into=.")
    if not any(isinstance(role, UnitId) for role in design.shape.roles):
        raise InputError("A panel needs the column of persons in its output: take it out of exclude=.")
