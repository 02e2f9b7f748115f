"""What is decided before anything is charged: arguments, source, tree of tables, plans, ledger, output.

Everything is decided from public facts. Every refusal of a call happens here, or where it is checked.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from dpsyn_sql.accounting.budget import Budget, weakness
from dpsyn_sql.attributes.advice import serious_findings
from dpsyn_sql.attributes.database_file import is_of_tables
from dpsyn_sql.attributes.roles import UnitId
from dpsyn_sql.attributes.sliced import with_time
from dpsyn_sql.attributes.unit import check_unit, not_stated
from dpsyn_sql.common.notices import warn
from dpsyn_sql.engines.frames import memory_connection
from dpsyn_sql.engines.open_source import open_source
from dpsyn_sql.engines.open_target import open_target
from dpsyn_sql.engines.source_session import Connection, SourceSession
from dpsyn_sql.engines.target import Output, Target
from dpsyn_sql.errors import InputError, InternalError, TargetError, said
from dpsyn_sql.front.job import Job, TableDesign, TablePlan, at_node, divided_among, stored_name
from dpsyn_sql.front.ledger_lookup import LedgerLookup, check_not_the_ledger, ledger_place
from dpsyn_sql.front.request import METHOD_OF_TREES, Request
from dpsyn_sql.front.tree import TreeOfTables, opened_tree, protected_source, tree_of_one
from dpsyn_sql.methods import METHODS, method_of, static_of
from dpsyn_sql.methods.recipe import Recipe, check_model
from dpsyn_sql.planning.explain import learnt_types
from dpsyn_sql.planning.limits import MAX_PAIR_CELLS, Deadline, Terms, read_limits
from dpsyn_sql.planning.panel import Panel
from dpsyn_sql.planning.running import Total
from dpsyn_sql.planning.tree import families_of_tree
from dpsyn_sql.planning.tying.keys import split_column
from dpsyn_sql.planning.workload import read_workload
from dpsyn_sql.rows.write.persist import check_name
from dpsyn_sql.rows.write.staging import public_rows
from dpsyn_sql.source.csv_form import csv_form
from dpsyn_sql.source.files import ending_of
from dpsyn_sql.source.frames import DataFrame, Frame, framed
from dpsyn_sql.source.names import fold, listed, split_name
from dpsyn_sql.source.slices import Window

_Source = str | os.PathLike[str] | Frame


@contextmanager
def prepared(con: Connection, request: Request, *, explaining: bool = False) -> Iterator[Job]:
    """Check, resolve and plan; a wrong call is refused here, before anything is charged.

    ``explaining``: an existing output is noted, not refused.
    """
    con, request = _asked(con, request)
    with _opened(con, request, explaining=explaining) as release:
        job = release.recorded(explaining=explaining)
        if not explaining:
            release.session.ready()
            if job.preview.debits:  # a replay reads no row
                release.session.refuse_undecodable()
        yield job


# -- the call ------------------------------------------------------------------------------------------


def con_and_source(
    con: Connection | DataFrame,
    source: str | os.PathLike[str] | DataFrame | Frame | None,
    name: str | None = None,
) -> tuple[Connection, _Source]:
    """A file or data frame alone is the source, read without a database; ``name`` is then the frame's.

    Raises:
        InputError: the single argument is a connection, a database or nothing, or a data frame has no name.
    """
    if (frame := framed(con, source, name)) is not None:
        return frame
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


def _asked(con: Connection, request: Request) -> tuple[Connection, Request]:
    """The connection and the request, with all checks that need nothing opened."""
    if request.source is None and is_of_tables(request.domain):
        request = replace(request, source=())
    if request.several:
        request = _alone(request)
    if not request.several:
        con, source = con_and_source(con, request.source, request.name)  # type: ignore[arg-type]
        request = replace(request, source=source)
        if isinstance(source, Frame):
            request = _of_frame(request, source)
    if request.series and isinstance(request.window, Window) and request.version is None:
        request = replace(request, version=request.window.names[request.window.index])
    request.check()
    if not request.several and is_of_tables(request.domain):
        raise InputError(
            "domain= is the file of several tables, and the source is one: give a list of tables, such as "
            "['customers', 'orders'], or no source."
        )
    if isinstance(request.source, Frame) and con is None and request.into is None:
        con = memory_connection(read_limits(request.limits).engine)
    if weak := weakness(request.epsilon):
        warn(weak)
    return con, request


def _alone(request: Request) -> Request:
    """A list of one table is that table, with ``table.column`` as its column.

    What is not understood stays as it is: ``Request.check`` refuses it.
    """
    tables = request.tables
    if len(tables) != 1 or request.public_tables or is_of_tables(request.domain):
        return request
    (table,) = tables
    if not isinstance(table, str):
        return request
    names = (table, (split_name(table) or [table])[-1])

    def column(text: Any) -> Any:
        parts = split_column(text, names) if isinstance(text, str) else None
        return text if parts is None else parts[1]

    most, exclude = request.most, request.exclude
    if isinstance(most, Mapping) and all(
        isinstance(name, str) and fold(name) in map(fold, names) for name in most
    ):
        most = next(iter(most.values()), None)
    if isinstance(exclude, list | tuple):
        exclude = [column(name) for name in exclude]
    return replace(request, source=table, unit=column(request.unit), most=most, exclude=exclude)


def _of_frame(request: Request, frame: Frame) -> Request:
    """A release of a data frame is called as the frame is, wherever its rows go.

    Raises:
        InputError: it asks for a window.
    """
    if request.window is not None:
        raise InputError(
            "Slices and running totals are parts of a table or a file, which lasts: write the data frame to "
            "one, and release its slices."
        )
    return replace(request, name=request.name or frame.label)


# -- the source and its tables -------------------------------------------------------------------------


@contextmanager
def _opened(con: Connection, request: Request, *, explaining: bool) -> Iterator[_Asked]:
    """The open source of a request, and the tree of its tables."""
    if request.several:
        with opened_tree(con, request) as (whole, session, tied):
            yield _Asked(con, whole, session, tied, METHODS[METHOD_OF_TREES])
        return
    limits, total = read_limits(request.limits), request.total()
    request = at_node(request, total)
    with open_source(
        con,
        cast("_Source", request.source),
        trust_query=request.trust_query,
        public_tables=request.public_tables,
        memory_limit=limits.engine,
        unit=request.protected().column,
        form=csv_form(request.csv),
    ) as session:
        session.choose_scratch(limits.scratch)
        method, panel = asked_method(request), request.panel()
        for text in session.warnings:
            warn(text)
        tied = tree_of_one(request, session, total, panel)
        _check_account(request, session)
        release = _Asked(con, request, session, tied, method, total, panel)
        untold = "" if request.unit else not_stated(session.relation.columns)
        if untold and not explaining:
            raise InputError(f"{untold} Nothing was read or charged.")
        serious = _serious(request, session)
        if not explaining:
            for text in serious:
                warn(text)
        yield replace(release, untold=untold, serious=serious)


def asked_method(request: Request) -> Recipe:
    """The method that a request of one table asks for.

    Raises:
        InputError: it cannot do what is asked for.
    """
    if request.series != "panel":
        return (static_of if request.series else method_of)(request.method)
    named = method_of(request.method)
    if named.name not in ("auto", METHOD_OF_TREES):
        raise InputError(
            f"method={named.name!r} makes no panel, since it does not draw a row given the one before; use "
            f"{METHOD_OF_TREES}, or leave method= out"
        )
    return method_of(METHOD_OF_TREES)


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


def _serious(request: Request, session: SourceSession) -> tuple[str, ...]:
    """What ruins a column, by the declarations alone."""
    unit = request.protected()
    column = None if unit.column is None else check_unit(session.relation.columns, unit)
    findings = serious_findings(
        request.domain, session.relation, unit=column, exclude=request.exclude, most_cells=MAX_PAIR_CELLS
    )
    return tuple(str(finding) for finding in findings)


# -- plans, output, ledger -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Asked:
    """An open source, the tree of its tables, and what is asked of them."""

    con: Connection
    request: Request
    session: SourceSession
    tied: TreeOfTables
    method: Recipe
    total: Total | None = None
    panel: Panel | None = None
    untold: str = ""
    serious: tuple[str, ...] = ()

    def recorded(self, *, explaining: bool) -> Job:
        """The plans, the output, and what the ledger will do."""
        request, place = self.request, ledger_place(self.request, self.session)
        designs = self._designs()
        whole = designs[0].budget
        tables = self._planned(designs, whole)
        budget = _debit(whole, tables)
        book = LedgerLookup(self.con, place, request, self.session, self.tied, tables, budget)
        target, obstacle = self._target(book, tables[0], explaining=explaining)
        if self.panel is not None:
            _check_panel_output(tables[0], target)
        check_name(target.database, stored_name(request, target))
        for file in target.files:
            check_not_the_ledger(file, place)
        preview = book.look(target.output)
        if preview.account_state.warning:
            warn(preview.account_state.warning)
        for table in tables:
            if table.shape.untyped:
                warn(learnt_types(table.plan, table.shape.untyped))
        if preview.stored is not None:  # what was debited then is what may be asked now
            tables = self._planned(designs, replace(preview.stored, delta=whole.delta))
        untold = f"a release is refused: {self.untold}" if self.untold else ""
        return Job(
            request=request,
            session=self.session,
            tied=self.tied,
            tables=tables,
            public=tuple(public_rows(self.session.engine, table) for table in target.copies),
            con=self.con,
            budget=budget,
            place=place,
            target=target,
            target_name=book.name(target.output),
            key=book.key(target.output),
            preview=preview,
            obstacle=untold or obstacle,
            serious=self.serious,
        )

    def _designs(self) -> tuple[TableDesign, ...]:
        """How each table is asked, the root first."""
        request, tree, shapes = self.request, self.tied.tree, self.tied.shapes
        families = {}
        if request.several:
            domains = {name: shape.planned() for name, shape in shapes.items()}
            families = families_of_tree(tree, domains, self.tied.orders, {})
        return tuple(self._design(table.name, families.get(table.name)) for table in tree)

    def _design(self, name: str, families: Any) -> TableDesign:
        """How a table is asked.

        Raises:
            InputError: the method cannot do what is asked for.
        """
        request, shape, source = self.request, self.tied.shapes[name], self.tied.sources[name]
        workload, limits = read_workload(request.workload).matched(shape), read_limits(request.limits)
        terms = Terms(limits, workload, Deadline(limits.time))
        method = self.method if families is not None else self.method.chosen(shape.planned(), terms)
        check_model(method)
        if source.unit.together and not method.takes_families:
            able = listed([name for name, recipe in METHODS.items() if recipe.takes_families])
            raise InputError(
                f"method={method.name!r} does not keep the rows of a unit together; use {able}, or add "
                "weights=False: then each row counts, and noise grows with most="
            )
        return TableDesign(
            request=request,
            session=self.session,
            table=self.tied.tree[name],
            source=source,
            shape=shape,
            method=method,
            terms=terms,
            families=families,
            total=self.total,
            panel=self.panel,
        )

    def _planned(self, designs: tuple[TableDesign, ...], budget: Budget) -> tuple[TablePlan, ...]:
        """The plan of each table, with its share of the budget."""
        if len(designs) == 1:
            return (TablePlan.of(designs[0], budget),)
        domains = {design.name: design.shape.planned() for design in designs}
        shares = divided_among(budget, self.tied.tree, domains)
        return tuple(TablePlan.of(design, shares[design.name]) for design in designs)

    def _target(self, book: LedgerLookup, table: TablePlan, *, explaining: bool) -> tuple[Target, str]:
        """The output, and what prevents it (a plan says so, a release stops)."""
        request = self.request

        def written(output: Output) -> bool:
            return table.follows or book.look(output).wrote

        def opened(*, replace: bool) -> Target:
            return open_target(
                self.con,
                request.into,
                self.session,
                public=self.tied.tree.public,
                replace=replace,
                written=written,
                constraints=request.constraints,
            )

        try:
            return opened(replace=request.replace), ""
        except TargetError as error:
            if not explaining or request.replace:
                raise
            obstacle = str(error)
        return opened(replace=True), obstacle


def _debit(budget: Budget, tables: tuple[TablePlan, ...]) -> Budget:
    """All that the tables may spend, and the threshold deltas that they need."""
    return Budget(budget.kind, budget.amount, sum(table.plan.budget.delta for table in tables))


def _check_panel_output(table: TablePlan, target: Target) -> None:
    """A panel is a table that grows, with a column of its persons.

    Raises:
        InputError: it would be something else.
    """
    if target.kind != "table" or table.session.engine.in_parts:
        raise InputError("A panel is written to a table of a DuckDB database: name it as into=.")
    if not table.shape.roles_of(UnitId):
        raise InputError("A panel needs the column of persons in its output: take it out of exclude=.")


# -- periods -------------------------------------------------------------------------------------------


def at_period(job: Job, period: int) -> Job:
    """The same running total or panel, as it was at an earlier period: another node or window, and its key.

    Raises:
        InternalError: it is neither.
    """
    table = job.only
    if table.panel is not None:
        panel = table.panel.at(period)
        request = replace(job.request, window=panel.window, version=panel.label)
        return _replanned(job, request, panel=panel)
    if table.total is None:
        raise InternalError("only running totals and panels have periods")
    total = replace(table.total, period=period)
    return _replanned(job, at_node(job.request, total), total=total)


def _replanned(job: Job, request: Request, **part: Any) -> Job:
    """The job of another window of its calendar."""
    table = job.only
    unit = replace(table.source.unit, max_rows=request.protected().max_rows)
    sliced, shape = table.source.sliced, table.shape
    if table.panel is not None and sliced is not None:
        shape = with_time(shape, sliced)
    source = protected_source(request, job.session, unit, shape)
    design = replace(table, request=request, source=source, **part)
    tables = (TablePlan.of(design, design.budget),)
    budget = _debit(design.budget, tables)
    book = LedgerLookup(job.con, job.place, request, job.session, job.tied, tables, budget)
    return replace(job, request=request, tables=tables, budget=budget, key=book.key(job.target.output))
