"""Where rows are read: an instance of our own with what it attached, or a cursor of the caller's connection.

PRIVATE side. Nothing of the caller's connection changes. What only the caller sees (temporary relations,
changes that are not committed) is never read: another relation of the same name would be read in its place.

While one of its own queries calls the package, a connection is busy: a statement on it would wait for the
query that waits for the call. So the query passes on what only its connection sees (``sql/attach/seen.sql``),
and everything else goes through a cursor.

DuckDB tells no name of an instance, whose connections and cursors have one ledger in memory. So an instance
gets a name that lives as long as it does and is in none of its databases: that of a function, which all its
connections see. The function itself does nothing.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4
from weakref import WeakKeyDictionary

import duckdb

from dpsyn_sql.engines import instance
from dpsyn_sql.engines.catalog import DuckDBCatalog, Session, escaped_path
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.errors import EngineFailure, InputError, LedgerError, SourceError, said
from dpsyn_sql.source.names import Identity, absolute_path, fold, shorten
from dpsyn_sql.source.query_check import CatalogRelation
from dpsyn_sql.sqltext.fragments import Fragment, literal
from dpsyn_sql.sqltext.render import render

_GONE = "The connection that this function was made for is closed. Call dpsyn_sql.attach(con) on this one."
_UNUSABLE = "The connection cannot be used: it is closed, or its transaction has failed (ROLLBACK)."
_BUSY = "ResourceInUseException"
"""What DuckDB calls it when two threads use one connection."""

_MARK = "dpsyn_instance_"
_marking = threading.Lock()
_marks = dict[str, Callable[[], str]]()
"""The functions by their names: DuckDB does not keep them alive."""

_instance_names: WeakKeyDictionary[duckdb.DuckDBPyConnection, str] = WeakKeyDictionary()


class SeenCatalog(DuckDBCatalog):
    """The catalog as a connection described it: names alone, without definitions."""

    def __init__(self, session: Session, relations: Sequence[Mapping[str, Any]]) -> None:
        """No engine: nothing else of the catalog can be asked."""
        self.session = session
        self._relation_rows = [{"definition": "", **row} for row in relations]


@dataclass(frozen=True, eq=False, slots=True)
class CallingConnection:
    """``con`` with what its query says that it sees."""

    con: duckdb.DuckDBPyConnection
    catalog: SeenCatalog

    @classmethod
    def of(cls, con: duckdb.DuckDBPyConnection, seen: Mapping[str, Any]) -> CallingConnection:
        """From the columns of ``sql/attach/seen.sql``."""
        session = Session(str(seen["catalog"]), str(seen["schema"]), str(seen["search_path"] or ""))
        return cls(con, SeenCatalog(session, seen["relations"]))


Callers = duckdb.DuckDBPyConnection | CallingConnection
CALLERS = (duckdb.DuckDBPyConnection, CallingConnection)


@contextlib.contextmanager
def _not_busy() -> Iterator[None]:
    """What the caller's own connection is asked, before anything is charged."""
    busy = False
    try:
        yield
    except EngineFailure as failure:
        if failure.kind != _BUSY:
            raise
        busy = True
    if busy:
        raise SourceError(
            "The connection is in use by another thread, or by a query of its own that has not ended. Give "
            "each thread a cursor of its own, con.cursor(). Nothing was read or charged."
        )


@dataclass(frozen=True, slots=True)
class Reader:
    """An open ``engine`` and its ``catalog``; ``callers`` is the caller's connection, ``database`` the file
    that is attached, both None if there is none."""

    engine: DuckDBEngine
    catalog: DuckDBCatalog
    callers: Callers | None = None
    database: Path | None = None

    @_not_busy()
    def look_up(self, text: str) -> CatalogRelation | None:
        """The relation that a name means, here and to the caller.

        Raises:
            SourceError: it is ambiguous, or the caller alone sees what it means.
        """
        # To the caller a temporary relation hides a table of the same name; to our cursor it does not.
        if self.callers is not None and _callers_catalog(self.callers).temporary(text):
            raise SourceError(
                f"{shorten(text)} is a temporary table or view, or a registered data frame, that only your "
                "connection sees. Write it to a table first (CREATE TABLE name AS FROM it), or give the full "
                "name database.schema.table of the table that you mean."
            )
        relation = self.catalog.look_up(text)
        if relation is None and self.callers is not None and _callers_catalog(self.callers).look_up(text):
            raise SourceError(
                f"{shorten(text)} exists only in a transaction of your connection that is not committed. "
                "COMMIT first: the release reads through its own connection."
            )
        return relation

    @_not_busy()
    def refuse_hidden(self, reads: Iterable[Identity]) -> None:
        """The same for what a query or view reads.

        Raises:
            SourceError: a temporary relation of the caller hides one of them.
        """
        temporary = () if self.callers is None else _callers_catalog(self.callers).temporary_names
        for identity in reads:
            if fold(identity[2]) in map(fold, temporary):
                raise SourceError(
                    f"The query reads {shorten(identity[2])}, but a temporary table or registered data frame "
                    "of your connection has the same name. Drop or rename the temporary one."
                )

    def lock(self, paths: Iterable[str]) -> None:
        """Let an instance of ours open these files and its database alone; a connection stays as it is.

        The database is watched as files are: its lock is gone as soon as anything in this process opens and
        closes the file once more, and then another process can write to it.
        """
        if self.callers is None:
            database_files = () if self.database is None else instance.files_of(self.database)
            self.engine.watch(database_files)
            instance.lock(self.engine, (*spellings(paths), *database_files))


def open_reader(con: Callers | str | os.PathLike[str] | None, memory_limit: str | None) -> Reader:
    """Open a connection, a database file or nothing (to read files) for reading.

    Raises:
        SourceError: the database cannot be opened, or changes what built-in functions mean.
        InputError: ``memory_limit`` is not understood.
    """
    if con is None:
        engine = instance.private_instance(memory_limit)
        return Reader(engine, DuckDBCatalog(engine))
    if isinstance(con, CALLERS):
        engine = cursor_of(con)
        reader = Reader(engine, DuckDBCatalog(engine), callers=con)
    else:
        path = Path(con)
        if not path.is_file():
            raise SourceError(f"There is no database file {shorten(str(path))!r}.")
        path = absolute_path(path)
        database_engine = instance.opened_database(path, memory_limit)
        if database_engine is None:
            raise SourceError(f"{shorten(str(path))!r} {instance.NOT_OPENED}")
        engine = database_engine
        reader = Reader(engine, DuckDBCatalog(engine), database=path)
    with instance.closed_on_failure(engine):
        reader.catalog.refuse_shadowing()
    return reader


def refuse_memory_limit(memory_limit: str | None) -> None:
    """A limit can be set in an instance of ours alone."""
    if memory_limit is not None:
        raise InputError(
            "limits= with 'memory' would change the settings of your connection. Give the path of the "
            "database file instead, or SET memory_limit yourself."
        )


def cursor_of(con: Callers) -> DuckDBEngine:
    """A cursor of the caller's connection that looks names up as the caller does.

    Raises:
        SourceError: the connection is closed or in use, or its transaction has failed.
    """
    return cursors_of(con)()


@_not_busy()
def cursors_of(con: Callers) -> Callable[[], DuckDBEngine]:
    """What makes cursors that look names up as the caller does; the connection itself is asked only now.

    Raises:
        SourceError: the connection is closed or in use, or its transaction has failed.
    """
    with contextlib.suppress(duckdb.Error):
        try:
            setting = _callers_catalog(con).session.setting
            return partial(_cursor, con.con if isinstance(con, CallingConnection) else con, setting)
        except EngineFailure as failure:
            if failure.kind == _BUSY:
                raise
    raise SourceError(_UNUSABLE)


def _cursor(con: duckdb.DuckDBPyConnection, search_path: str) -> DuckDBEngine:
    cursor = None
    try:
        cursor = DuckDBEngine(con.cursor())
        if search_path:
            sql = render("source/set_search_path", search_path=literal(search_path))
            cursor.execute(sql, step="copying the search path")
        return cursor
    except (EngineFailure, duckdb.Error):
        if cursor is not None:
            cursor.close()
    raise SourceError(_UNUSABLE)


def no_source(text: str, near: list[str]) -> SourceError:
    """The error for a name that means nothing."""
    hint = f" Did you mean {' or '.join(shorten(name) for name in near)}?" if near else ""
    return SourceError(
        f"There is no table, view or file {shorten(text)!r}.{hint} A query starts with SELECT, FROM or WITH "
        "and a space; a data frame is given itself, not by its name."
    )


def spellings(paths: Iterable[str]) -> tuple[str, ...]:
    """Each path as it is and as our statements write it; DuckDB allows access by spelling."""
    return tuple(dict.fromkeys(text for path in paths for text in (path, escaped_path(path))))


def _callers_catalog(con: Callers) -> DuckDBCatalog:
    """What the caller's own connection sees, its temporary relations included."""
    return con.catalog if isinstance(con, CallingConnection) else DuckDBCatalog(DuckDBEngine(con))


# -- a query of the connection that calls the package ------------------------------------------------


@dataclass(frozen=True, slots=True)
class Call:
    """A call by a query: ``options`` and what it has ``seen`` as JSON, the id of the query, its text."""

    con: duckdb.DuckDBPyConnection
    options: str
    seen: str
    query: int
    text: str

    def connection(self) -> CallingConnection:
        """The connection, to be used inside the call.

        Raises:
            InputError: the call is not the table macro's.
        """
        seen: Any = None
        with contextlib.suppress(ValueError):
            seen = json.loads(self.seen)
        if not isinstance(seen, dict) or not isinstance(seen.get("relations"), list):
            raise InputError("This function is a part of a table macro: call that. Nothing was charged.")
        return CallingConnection.of(self.con, seen)


Answer = Callable[[Call], dict[str, Any]]
"""From a call to the columns of a result."""


def register(con: object, name: str, answer: Answer, result: Mapping[str, str], macro: Fragment) -> None:
    """Make a function of (options, what is seen, query id, query text), and the table macro that calls it.

    The function is volatile, so that planning a query does not run it. It does not keep the connection alive.

    Args:
        con: the caller's connection; not busy.
        name: of the function. All connections to the database have it; the macro is of this one alone.
        answer: gives the columns of ``result``; raises nothing.
        result: SQL types by names.
        macro: the statement that makes the table macro.

    Raises:
        InputError: it is no DuckDB connection, is closed, or its transaction has failed.
    """
    if not isinstance(con, duckdb.DuckDBPyConnection):
        raise InputError(f"con={said(con)}: give an open DuckDB connection")
    caller = weakref.ref(con)

    def call(options: str | None, seen: str | None, query: int | None, text: str | None) -> dict[str, Any]:
        owner = caller()
        if owner is None:
            return {**dict.fromkeys(result), "fault": _GONE}
        return answer(Call(owner, options or "", seen or "", query or 0, text or ""))

    columns = ", ".join(f"{column} {kind}" for column, kind in result.items())
    arguments: Any = ["VARCHAR", "VARCHAR", "UBIGINT", "VARCHAR"]
    result_type: Any = f"STRUCT({columns})"
    special: Any = "special"
    failed = False
    try:
        con.create_function(name, call, arguments, result_type, null_handling=special, side_effects=True)
        DuckDBEngine(con).execute(macro, step="making a table macro")
    except (duckdb.Error, EngineFailure):
        failed = True
    if failed:
        raise InputError(_UNUSABLE)


# -- which instance a connection belongs to ----------------------------------------------------------


def instance_of(con: object, *, marked: bool = False) -> str | None:
    """The name of the instance of a caller's connection; None if it has none yet.

    Args:
        con: a DuckDB connection or cursor; anything else has no instance.
        marked: give it a name if it has none.

    Raises:
        LedgerError: it cannot get one.
    """
    if not isinstance(con, CALLERS):
        return None
    owner = con.con if isinstance(con, CallingConnection) else con
    with _marking:
        name = _instance_names.get(owner)
        failed = False
        if name is None:
            try:
                with contextlib.closing(DuckDBEngine(owner.cursor())) as engine:
                    name = _marked_name(engine)
                if name is None and marked:
                    name = _mark_instance(owner)
            except (EngineFailure, duckdb.Error):
                failed = True
        if failed:
            raise LedgerError(
                "The database in memory cannot be told from others, so its ledger needs a place: give "
                "ledger='path/to/file'. Nothing was read."
            )
        if name is not None:
            _instance_names[owner] = name
        return name


def _marked_name(engine: DuckDBEngine) -> str | None:
    statement = render("source/instance", mark=literal(_MARK))
    names = [str(name) for name in engine.fetch(statement, step="asking which instance this is")["name"]]
    return names[0] if names else None


def _mark_instance(owner: duckdb.DuckDBPyConnection) -> str:
    name = f"{_MARK}{uuid4().hex}"

    def mark() -> str:
        return name

    with contextlib.closing(owner.cursor()) as cursor:
        cursor.create_function(name, mark, [], "VARCHAR")
    _marks[name] = mark
    return name
