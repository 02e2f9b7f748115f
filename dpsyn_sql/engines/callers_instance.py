"""Which database instance a connection belongs to: all its connections and cursors have one ledger in memory.

DuckDB tells no name of an instance. So it gets one that lives as long as it does and is in none of its
databases: that of a function, which all its connections see. The function itself does nothing.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from uuid import uuid4
from weakref import WeakKeyDictionary

import duckdb

from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.engines.reader import CALLERS
from dpsyn_sql.engines.sql_calls import CallingConnection
from dpsyn_sql.errors import EngineFailure, LedgerError
from dpsyn_sql.sqltext.fragments import literal
from dpsyn_sql.sqltext.render import render

_MARK = "dpsyn_instance_"
_marking = threading.Lock()
_marks = dict[str, Callable[[], str]]()
"""The functions by their names: DuckDB does not keep them alive."""

_known: WeakKeyDictionary[duckdb.DuckDBPyConnection, str] = WeakKeyDictionary()


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
        name = _known.get(owner)
        failed = False
        if name is None:
            try:
                with contextlib.closing(DuckDBEngine(owner.cursor())) as engine:
                    name = _found(engine)
                if name is None and marked:
                    name = _made(owner)
            except (EngineFailure, duckdb.Error):
                failed = True
        if failed:
            raise LedgerError(
                "The database in memory cannot be told from others, so its ledger needs a place: give "
                "ledger='path/to/file'. Nothing was read."
            )
        if name is not None:
            _known[owner] = name
        return name


def _found(engine: DuckDBEngine) -> str | None:
    statement = render("source/instance", mark=literal(_MARK))
    names = [str(name) for name in engine.fetch(statement, step="asking which instance this is")["name"]]
    return names[0] if names else None


def _made(owner: duckdb.DuckDBPyConnection) -> str:
    name = f"{_MARK}{uuid4().hex}"

    def mark() -> str:
        return name

    with contextlib.closing(owner.cursor()) as cursor:
        cursor.create_function(name, mark, [], "VARCHAR")
    _marks[name] = mark
    return name
