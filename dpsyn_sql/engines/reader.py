"""Where rows are read: an instance of our own with what it attached, or a cursor of the caller's connection.

PRIVATE side. Nothing of the caller's connection changes. What only the caller sees (temporary relations,
changes that are not committed) is never read: another relation of the same name would be read in its place.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import duckdb

from dpsyn_sql.engines import instance
from dpsyn_sql.engines.catalog import DuckDBCatalog, escaped_path
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.engines.sql_calls import CallingConnection
from dpsyn_sql.errors import EngineFailure, InputError, SourceError
from dpsyn_sql.source.names import Identity, fold, shorten
from dpsyn_sql.source.paths import absolute_path
from dpsyn_sql.source.query_check import CatalogRelation
from dpsyn_sql.sqltext.fragments import literal
from dpsyn_sql.sqltext.render import render

Callers = duckdb.DuckDBPyConnection | CallingConnection
CALLERS = (duckdb.DuckDBPyConnection, CallingConnection)


_BUSY = "ResourceInUseException"
"""What DuckDB calls it when two threads use one connection."""


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
        found = self.catalog.look_up(text)
        if found is None and self.callers is not None and _callers_catalog(self.callers).look_up(text):
            raise SourceError(
                f"{shorten(text)} exists only in a transaction of your connection that is not committed. "
                "COMMIT first: the release reads through its own connection."
            )
        return found

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
            further = () if self.database is None else instance.files_of(self.database)
            self.engine.watch(further)
            instance.lock(self.engine, (*spellings(paths), *further))


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
        opened = instance.opened_database(path, memory_limit)
        if opened is None:
            raise SourceError(f"{shorten(str(path))!r} {instance.NOT_OPENED}")
        engine = opened
        reader = Reader(engine, DuckDBCatalog(engine), database=path)
    with instance.closed_on_failure(engine):
        reader.catalog.refuse_shadowing()
    return reader


def refuse_memory_limit(memory_limit: str | None) -> None:
    """A limit can be set in an instance of ours alone."""
    if memory_limit is not None:
        raise InputError(
            "memory_limit= would change the settings of your connection. Give the path of the "
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
    raise _unusable()


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
    raise _unusable()


def _unusable() -> SourceError:
    return SourceError(
        "The connection cannot be used: it is closed, or its transaction has failed (ROLLBACK)."
    )


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
