"""Open several relations in one engine, to compare them: tables, views, queries and files side by side.

PRIVATE side. Files and database paths are read in an instance of our own. A caller's connection is used
through a cursor. What is made is temporary and goes at the end; nothing is written into a database.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from dpsyn_sql.engines import instance
from dpsyn_sql.engines.catalog import DuckDBCatalog
from dpsyn_sql.engines.connections import CALLERS, Reader, no_source, open_reader, refuse_memory_limit
from dpsyn_sql.engines.csv_files import refuse_undecodable
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.engines.identities import storage, stored
from dpsyn_sql.engines.source_session import Connection
from dpsyn_sql.errors import EngineFailure, InputError, SourceError, said
from dpsyn_sql.source.csv_form import CsvForm
from dpsyn_sql.source.files import FileSet, file_beside, find_files, text_files
from dpsyn_sql.source.frames import is_spark, is_spark_frame
from dpsyn_sql.source.names import fold, is_query, shorten
from dpsyn_sql.source.query_check import CheckedQuery, check_query, check_view
from dpsyn_sql.source.relation import Column
from dpsyn_sql.sqltext.fragments import Fragment, ident, literal, qualified
from dpsyn_sql.sqltext.render import render

Given = str | os.PathLike[str]
"""The name of a table or view, a query, or the path of files."""

FURTHER = "dpsyn_further"
"""The name by which a further database file is attached."""

_MADE_HERE = "Synthetic rows, drawn from a model of noisy answers."
"""How the comment on a table that a release wrote begins."""


@dataclass(frozen=True, slots=True)
class OpenedRelation:
    """One relation: ``sql`` to put after FROM, its ``columns`` in order.

    ``identity`` is equal for two names of one table, file or query. ``untyped``: CSV files, all of whose
    columns are text. ``stored``: reading it again costs little. ``released``: it says of itself that a
    release wrote it. ``database``: the file of a table.
    """

    name: str
    sql: Fragment
    columns: tuple[Column, ...]
    identity: tuple[object, ...]
    untyped: bool = False
    stored: bool = False
    released: bool = False
    paths: tuple[str, ...] = field(default=(), repr=False)
    database: str | None = None


@contextlib.contextmanager
def opened_relations(
    con: Connection,
    given: Mapping[str, Given],
    memory_limit: str | None,
    further: Path | None = None,
) -> Iterator[tuple[DuckDBEngine, dict[str, OpenedRelation]]]:
    """An engine that reads all of ``given``, and what each of them is; all closed at the end.

    Args:
        con: a DuckDB connection, the path of a DuckDB file, or None (files and queries over files).
        given: by what they are called in messages.
        memory_limit: such as ``"4GB"``; only in an instance of our own.
        further: another database file, which is attached as ``FURTHER``; only beside a file.

    Raises:
        SourceError: one is missing, unreadable, or visible to the caller alone.
        InputError: ``con`` or ``memory_limit`` is wrong.
    """
    for called, source in given.items():
        _check_given(called, source)
    reader = _reader(con, memory_limit)
    try:
        if further is not None:
            _attach(reader, further)
        found = {called: _resolved(reader, source) for called, source in given.items()}
        beside = () if further is None else (str(further), f"{further}.wal")
        reader.lock((*(path for one in found.values() for path in one.paths), *beside))
        yield reader.engine, found
    finally:
        with contextlib.suppress(EngineFailure):  # a connection that is gone has no temporary tables
            reader.engine.drop_temporary()
        reader.engine.close()


def _attach(reader: Reader, path: Path) -> None:
    """A database file, to be read."""
    sql = render("source/attach", path=literal(str(path)), name=ident(FURTHER), read_only=1)
    attached = False
    with contextlib.suppress(EngineFailure):
        reader.engine.execute(sql, step="attaching the database file")
        attached = True
    if not attached:
        raise SourceError(f"{shorten(str(path))!r} {instance.NOT_OPENED}")


_OF_SPARK = (
    "evaluate() does not compare tables of Spark: write both to Parquet, df.write.parquet(folder), and give "
    "the folders with con=None."
)


def _check_given(called: str, source: object) -> None:
    if is_spark_frame(source):
        raise InputError(_OF_SPARK)
    if not isinstance(source, str | os.PathLike) or not isinstance(os.fspath(source), str):
        raise InputError(
            f"{called}={said(source)}: give the name of a table or view, a query, or the path of a file"
        )
    text = os.fspath(source)
    if not text.strip() or "\x00" in text:
        raise InputError(f"{called}= is empty or holds a NUL character: give a table, a file or a query")


def _reader(con: Connection, memory_limit: str | None) -> Reader:
    if isinstance(con, CALLERS):
        refuse_memory_limit(memory_limit)
        return open_reader(con, None)
    if is_spark(con):
        raise InputError(_OF_SPARK)
    if con is not None and not (isinstance(con, str | os.PathLike) and isinstance(os.fspath(con), str)):
        raise InputError(f"con={said(con)}: give a DuckDB connection, the path of a DuckDB file, or None")
    return open_reader(con, memory_limit)


def _resolved(reader: Reader, source: Given) -> OpenedRelation:
    text, catalog = os.fspath(source), reader.catalog
    without_database = reader.callers is None and reader.database is None
    if not isinstance(source, str) or (without_database and not is_query(text)):
        return _files(catalog, text, [])
    if is_query(text):
        checked = check_query(text, catalog, trusted=True)
        one = _query(catalog, text, checked, ("query", " ".join(text.split())))
    else:
        found = reader.look_up(text)
        if found is None:
            return _files(catalog, text, catalog.near(text))
        place = stored(catalog, found.identity)
        where = (fold(found.identity[0]),) if place.file is None else storage(place.file)
        identity = ("table", *where, *map(fold, found.identity[1:]))
        if found.kind == "table":
            columns = catalog.columns(found.identity)
            made = _is_released(reader.engine, found.identity)
            sql = qualified(*found.identity)
            return OpenedRelation(
                text, sql, columns, identity, stored=True, released=made, database=place.file
            )
        checked = check_view(found, catalog, trusted=True)
        one = _query(catalog, text, checked, identity)
    reader.refuse_hidden(checked.relations)
    return one


def _query(
    catalog: DuckDBCatalog, text: str, checked: CheckedQuery, identity: tuple[object, ...]
) -> OpenedRelation:
    columns = catalog.describe_query(checked.sql, f"the query or view {shorten(text)!r}")
    files = [(one, form) for path, form in checked.forms if (one := find_files(path)) is not None]
    refuse_undecodable(text for one, form in files for text in text_files(one, form))
    paths = tuple(dict.fromkeys(path for one, _ in files for path in one.paths))
    return OpenedRelation(text, Fragment(f"(\n{checked.sql}\n)"), columns, identity, paths=paths)


def _files(catalog: DuckDBCatalog, text: str, near: list[str]) -> OpenedRelation:
    files: FileSet | None = find_files(text)
    if files is None:
        raise no_source(text, near)
    call = catalog.file_call(files)
    refuse_undecodable(text_files(files, CsvForm()))
    columns = catalog.describe_files(call, f"the file {shorten(text)!r}")
    identity = ("files", *sorted(storage(path) for path in files.paths))
    made = files.single and file_beside(Path(files.paths[0])).is_file()
    untyped = files.format == "csv"
    return OpenedRelation(text, call, columns, identity, untyped, not untyped, made, files.paths)


def _is_released(engine: DuckDBEngine, identity: tuple[str, str, str]) -> bool:
    """Whether a table bears the comment of a release."""
    catalog, schema, name = (literal(part) for part in identity)
    sql = render("evaluate/comment", catalog=catalog, schema=schema, name=name)
    comments = engine.fetch(sql, step="reading the catalog")["comment"]
    return any(str(comment).startswith(_MADE_HERE) for comment in comments)
