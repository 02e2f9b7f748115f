"""Open a data frame: its types before the debit, its rows when the first question reads them.

PRIVATE side. Opening looks at an empty frame of the same columns. The rows are registered with a DuckDB
instance of ours when the first statement reads them, and let go after the last question. The caller's
connection never sees them.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import duckdb

from dpsyn_sql.common.notices import warn
from dpsyn_sql.domain.types import parse_type
from dpsyn_sql.engines import instance
from dpsyn_sql.engines.catalog import DuckDBCatalog
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.engines.source_session import Connection, SourceSession, open_source
from dpsyn_sql.errors import EngineFailure, InputError, SourceError
from dpsyn_sql.source.csv_form import CsvForm
from dpsyn_sql.source.files import refuse_clashes
from dpsyn_sql.source.frames import Frame, library_of
from dpsyn_sql.source.ledger_names import LedgerNames
from dpsyn_sql.source.names import display_name, listed
from dpsyn_sql.source.relation import Column, Relation
from dpsyn_sql.source.sessions import is_spark, is_spark_frame
from dpsyn_sql.sqltext.fragments import Fragment, ident, literal, qualified
from dpsyn_sql.sqltext.render import render

NAME = "dpsyn_frame"
_IDENTITY = ("temp", "main", NAME)
_FROM = qualified(*_IDENTITY)
_RELEASED_AS = {"TIME_NS": "TIME"}
"""Types of columns of Arrow data, and what such a column is read and released as."""
_PLAIN = CsvForm()


@dataclass
class FrameSession(SourceSession):
    """An open data frame; the ledger knows it by its label alone."""

    unplaced = "A data frame has no place"
    let_go: Callable[[], None] = field(default=lambda: None)

    def resolved_name(self, home: LedgerNames) -> str:
        """The label, marked as that of a data frame."""
        return home.frame(self.relation.name)

    def private_sources(self, home: LedgerNames) -> tuple[str, ...]:
        """The only one."""
        return (home.frame(self.relation.name),)

    def release_source(self) -> None:
        """After the last question: forget the rows."""
        self.let_go()
        super().release_source()


def open_any_source(
    con: Connection,
    source: str | os.PathLike[str] | Frame,
    *,
    trust_query: bool = False,
    public_tables: Sequence[str] = (),
    memory_limit: str | None = None,
    strict: bool = False,
    unit: str | None = None,
    form: CsvForm = _PLAIN,
) -> SourceSession:
    """``open_source``, for data frames and for Spark too.

    Raises:
        InputError: options of queries, with a data frame; those of a CSV file, with anything else; what Spark
            cannot be asked.
        SourceError: as ``open_source``; of a data frame its column names.
    """
    with contextlib.ExitStack() as opened:
        session = opened.enter_context(
            _opened(con, source, trust_query, public_tables, memory_limit, strict, unit, form)
        )
        if form.stated and session.relation.kind != "csv":
            raise InputError(
                f"{form.stated[0].partition('=')[0]}= says how a CSV file is written: the source is none. "
                "In a query write it as an option: FROM read_csv('people.csv', encoding = 'latin-1')."
            )
        opened.pop_all()
    return session


def _opened(
    con: Connection,
    source: str | os.PathLike[str] | Frame,
    trust_query: bool,
    public_tables: Sequence[str],
    memory_limit: str | None,
    strict: bool,
    unit: str | None,
    form: CsvForm,
) -> SourceSession:
    if is_spark_frame(source.data) if isinstance(source, Frame) else is_spark(con):
        from dpsyn_sql.engines.spark.session import open_spark  # not without Spark

        return open_spark(
            con, source, trust_query=trust_query, public_tables=public_tables, memory_limit=memory_limit
        )
    if not isinstance(source, Frame):
        return open_source(
            con,
            source,
            trust_query=trust_query,
            public_tables=public_tables,
            memory_limit=memory_limit,
            strict=strict,
            unit=unit,
            form=form,
        )
    if trust_query or public_tables:
        raise InputError("trust_query= and public_tables= are for queries: a data frame is read as it is.")
    return _open_frame(source, memory_limit)


def memory_connection(memory_limit: str | None) -> duckdb.DuckDBPyConnection:
    """A database in memory for the rows of a release that is written nowhere else."""
    config: dict[str, Any] = {"python_enable_replacements": "false"}
    if memory_limit is not None:
        config["memory_limit"] = memory_limit
    return duckdb.connect(":memory:", config=config)


def _open_frame(frame: Frame, memory_limit: str | None) -> SourceSession:
    names = _names(frame.data)
    engine = instance.private_instance(memory_limit)
    with instance.closed_on_failure(engine):
        instance.set_option(engine, "pandas_analyze_sample", literal(0))
        instance.lock(engine, ())
        described = _pandas if library_of(frame.data) == "pandas" else _arrow
        columns, sql, rows = described(engine, frame.data, names)
    engine.hold_back(NAME, rows)
    relation = Relation(frame.label, "frame", sql, columns)
    session = FrameSession(engine, relation, display_name(f"{frame.label}_synthetic"), (), (_IDENTITY,), ())
    session.let_go = engine.let_go
    session.memory_limit = memory_limit
    return session


_Described = tuple[tuple[Column, ...], Fragment, Callable[[], object]]
"""Columns, the SQL of the rows, and what gives the object to register."""


def _pandas(engine: DuckDBEngine, data: Any, names: list[str]) -> _Described:
    from dpsyn_sql.engines.frame_columns import Unsupported, expressions, pandas_columns, registered

    if left_out := [name for name in data.index.names if name is not None]:
        told = listed(name if isinstance(name, str) else "no text" for name in left_out)
        warn(f"The index of the data frame ({told}) is left out. df.reset_index() makes it a column.")
    empty = pandas_columns(data.iloc[:0])
    arrays = registered(empty)
    sql = _relation(expressions(names, empty)) if arrays else Fragment("")
    types = dict(_described(engine, arrays, sql)) if arrays else {}
    columns = [
        Column(name, one.sql_type if isinstance(one, Unsupported) else types[name])
        for name, one in zip(names, empty, strict=True)
    ]
    return tuple(columns), sql, lambda: registered(pandas_columns(data))


def _arrow(engine: DuckDBEngine, data: Any, names: list[str]) -> _Described:
    """Of anything that gives streams of Arrow data: Polars needs no pyarrow for that."""
    empty = data.clear() if library_of(data) == "polars" else data.schema.empty_table()
    types = {name: _arrow_type(engine, empty.select([name])) for name in names}
    read = [name for name in names if parse_type(types[name]) is not None]
    sql = _relation([Fragment(f"CAST({ident(name)} AS {types[name]}) AS {ident(name)}") for name in read])
    columns = tuple(Column(name, types[name]) for name in names)
    return columns, sql, lambda: _Stream(data.select(read))


def _arrow_type(engine: DuckDBEngine, empty: Any) -> str:
    """The SQL type of the only column of an empty frame; of one that DuckDB cannot read its own type."""
    polars = library_of(empty) == "polars"
    own = str(empty.dtypes[0] if polars else empty.schema.types[0])
    if own.lower() == "null":
        return "NULL"  # the older DuckDB takes it for INTEGER
    with contextlib.suppress(SourceError, EngineFailure):
        found = _described(engine, _Stream(empty), _FROM)[0][1]
        return "VARCHAR" if found.startswith("ENUM(") else _RELEASED_AS.get(found, found)
    return own.split("(")[0].split("[")[0]


def _described(engine: DuckDBEngine, empty: object, sql: Fragment) -> list[tuple[str, str]]:
    """Names and types of the columns that are read of an empty frame."""
    with engine.registered(NAME, empty):
        columns = DuckDBCatalog(engine).describe_files(sql, "the data frame")
    return [(column.name, column.sql_type) for column in columns]


def _relation(columns: list[Fragment]) -> Fragment:
    return render("source/frame", columns=columns, frame=_FROM)


def _names(data: Any) -> list[str]:
    """The names of the columns: text that SQL can hold and tell apart."""
    given = data.schema.names if library_of(data) == "pyarrow" else list(data.columns)
    for place, name in enumerate(given, 1):
        if not isinstance(name, str):
            raise SourceError(
                f"The name of column {place} of the data frame is no text but <{type(name).__name__}>. Give "
                "every column a name: df.columns = [...]."
            )
        if not name or "\x00" in name or name != name.encode("utf-8", "replace").decode():
            raise SourceError(
                f"The name of column {place} of the data frame is empty, or has a NUL or half a surrogate "
                "pair, which no database can hold. Rename it."
            )
    if not given:
        raise SourceError("The data frame has no columns.")
    names = [str.__str__(name) for name in given]
    refuse_clashes(tuple(names), "The data frame")
    return names


class _Stream:
    """Arrow data by the C stream interface alone, so that DuckDB needs no other library for it."""

    def __init__(self, data: Any) -> None:
        self._data = data

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._data.__arrow_c_stream__(requested_schema)
