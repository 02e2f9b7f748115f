"""A connection while one of its own queries calls the package.

Inside such a call the connection is busy: a statement on it would wait for the query that waits for the
call. So the query passes on what only its connection sees (``sql/attach/seen.sql``), and everything else
goes through a cursor.
"""

from __future__ import annotations

import contextlib
import json
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb

from dpsyn_sql.engines.catalog import DuckDBCatalog, Session
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.errors import EngineFailure, InputError, said
from dpsyn_sql.sqltext.fragments import Fragment

_GONE = "The connection that this function was made for is closed. Call dpsyn_sql.attach(con) on this one."


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
    made: Any = f"STRUCT({columns})"
    special: Any = "special"
    failed = False
    try:
        con.create_function(name, call, arguments, made, null_handling=special, side_effects=True)
        DuckDBEngine(con).execute(macro, step="making a table macro")
    except (duckdb.Error, EngineFailure):
        failed = True
    if failed:
        raise InputError(
            "The connection cannot be used: it is closed, or its transaction has failed (ROLLBACK)."
        )
