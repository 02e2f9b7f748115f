"""Open the source: which string is what, and where it is read.

PRIVATE side. Opening reads catalogs, a CSV header or a Parquet schema, never a row. Files and database paths
are read in an instance of our own. A caller's connection is used through a cursor, and none of its settings
change. All relations of a source are read in one engine.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dpsyn_sql.engines import instance
from dpsyn_sql.engines.catalog import folded
from dpsyn_sql.engines.connections import CALLERS, Reader, no_source, open_reader, refuse_memory_limit
from dpsyn_sql.engines.csv_files import refuse_undecodable
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.engines.frames import open_frame
from dpsyn_sql.engines.identities import refuse_one_table_twice, storage
from dpsyn_sql.engines.resolve import opened_files, public_sources, resolved
from dpsyn_sql.engines.source_session import Connection, OpenedSource, SourceSession
from dpsyn_sql.errors import EngineFailure, InputError, SourceError, said
from dpsyn_sql.source.csv_form import CsvForm
from dpsyn_sql.source.files import ending_of, file_beside, find_files
from dpsyn_sql.source.frames import Frame, is_spark, is_spark_frame
from dpsyn_sql.source.names import Identity, display_name, fold, is_query, listed, shorten
from dpsyn_sql.source.query_words import TRUST_IT
from dpsyn_sql.source.relation import Column
from dpsyn_sql.sqltext.fragments import Fragment, ident, literal
from dpsyn_sql.sqltext.render import render

_PLAIN = CsvForm()

OneSource = str | os.PathLike[str] | Frame
"""A query, the name of a table or view, a path, or a data frame."""


@dataclass(frozen=True, slots=True)
class _Options:
    """What the owner says of a source; as of ``open_source``."""

    trusted: bool
    public_tables: Sequence[str]
    unit: str | None
    memory_limit: str | None
    form: CsvForm


def open_source(
    con: Connection,
    source: OneSource | Sequence[str] | None,
    *,
    trust_query: bool = False,
    public_tables: Sequence[str] = (),
    linked: bool = False,
    memory_limit: str | None = None,
    unit: str | None = None,
    form: CsvForm = _PLAIN,
) -> SourceSession:
    """Resolve a source and open it for reading. Reads no row.

    Args:
        con: a DuckDB connection, the path of a DuckDB file, a session of Spark, or None (data frames, files
            and queries over files).
        source: a query (SELECT, FROM or WITH and white space), else the name of a table or view, else a path
            or glob of Parquet or CSV files. A ``Path`` is always a path. Or a data frame. A list: names of
            tables and views of one database that are tied by keys. None: all base tables of the schema where
            the connection looks names up.
        trust_query: the owner answers for queries and views that the check would refuse.
        public_tables: tables without private data. A query may join them, links of a list may name them.
        linked: for the owner alone: whatever else the foreign keys of a list name is public, and unknown
            ``public_tables`` are left out.
        memory_limit: such as ``"4GB"``; only where the reading happens in our own instance.
        unit: the column of a query or view that tells whose row it is; None if each row is a unit.
        form: how a CSV source is written; if it is ``strict``, a line that cannot be parsed is an error.

    Raises:
        SourceError: missing, ambiguous, unreadable, mixing rows, or visible to the caller alone; of a data
            frame its column names.
        InputError: ``memory_limit`` is wrong or would change the caller's connection; options of queries with
            a data frame, or of CSV files with anything else; what Spark cannot be asked; a list of tables of
            no DuckDB database, of none, of one twice, of several databases, both private and public.
    """
    options = _Options(trust_query, public_tables, unit, memory_limit, form)
    if source is not None and isinstance(source, (str, os.PathLike, Frame)):
        session = _open_one(con, source, options)
    else:
        session = _open_tied(con, source, options, linked=linked)
    if form.stated and session.relation.kind != "csv":
        session.close()
        raise InputError(
            "csv= says how a CSV file is written: the source is none. "
            "In a query write it as an option: FROM read_csv('people.csv', encoding = 'latin-1')."
        )
    return session


def is_database(con: Any) -> bool:
    """Whether it is a DuckDB connection, or a path that is neither a folder nor named as a file of rows."""
    if isinstance(con, CALLERS):
        return True
    return isinstance(con, str | os.PathLike) and ending_of(os.fspath(con)) is None and not Path(con).is_dir()


# -- a source of one ---------------------------------------------------------------------------------


def _open_one(con: Connection, source: OneSource, options: _Options) -> SourceSession:
    if is_spark_frame(source.data) if isinstance(source, Frame) else is_spark(con):
        from dpsyn_sql.engines.spark.session import open_spark  # not without Spark

        return open_spark(
            con,
            source,
            trust_query=options.trusted,
            public_tables=options.public_tables,
            memory_limit=options.memory_limit,
        )
    if isinstance(source, Frame):
        if options.trusted or options.public_tables:
            raise InputError(
                "trust_query= and public_tables= are for queries: a data frame is read as it is."
            )
        return open_frame(source, options.memory_limit)
    text = os.fspath(source)
    if not isinstance(text, str):
        raise SourceError("The source must be text or a path.")
    if not text.strip():
        raise SourceError("The source is empty: give a table, a file or a query.")
    if "\x00" in text:
        raise SourceError("The source holds a NUL character, which no name or path can hold.")
    if not isinstance(source, str):
        return _open_files(text, options)
    if con is not None and not isinstance(con, (*CALLERS, str, os.PathLike)):
        raise InputError(
            f"con is a {type(con).__name__}: give a DuckDB connection, a database file, a pandas or Polars "
            "data frame, an Arrow table (lazy ones after collect()), a Spark session or data frame, or None."
        )
    if con is None and not is_query(text):
        return _open_files(text, options)
    return _open_named(con, text, options)


def _open_named(con: Any, text: str, options: _Options) -> SourceSession:
    """A query, or a table or view of a connection or database file; else files."""
    callers = isinstance(con, CALLERS)
    reader = open_reader(con, None if callers else options.memory_limit)
    with instance.closed_on_failure(reader.engine):
        source = resolved(
            reader,
            text,
            trusted=options.trusted,
            public_tables=options.public_tables,
            unit=options.unit,
        )
        near = reader.catalog.near(text) if source is None else []
        if source is not None:
            if callers:
                refuse_memory_limit(options.memory_limit)
            return _locked(reader, SourceSession(reader.engine, {source.name: source}), options)
    reader.engine.close()
    if find_files(text) is None:
        raise no_source(text, near)
    return _open_files(text, options)


def _open_files(text: str, options: _Options) -> SourceSession:
    files = find_files(text)
    if files is None:
        raise SourceError(f"There is no file {shorten(text)!r}; a name of a table needs con=.")
    reader = open_reader(None, options.memory_limit)
    with instance.closed_on_failure(reader.engine):
        source = opened_files(reader.engine, files, text, options.form)
        return _locked(reader, SourceSession(reader.engine, {source.name: source}), options)


def _locked(reader: Reader, session: SourceSession, options: _Options) -> SourceSession:
    session.database, session.memory_limit = reader.database, options.memory_limit
    reader.lock(session.paths)
    return session


# -- tables that are tied by keys --------------------------------------------------------------------


def _open_tied(
    con: Connection, tables: Sequence[str] | None, options: _Options, *, linked: bool
) -> SourceSession:
    if is_spark(con) or is_spark_frame(con):
        raise InputError(
            "Tables tied by keys are released from DuckDB alone, not from Spark: write them to a DuckDB "
            "file, or release each table on its own with release()."
        )
    if not isinstance(con, (*CALLERS, str, os.PathLike)):
        raise InputError(f"con={said(con)}: give a DuckDB connection, or the path of a DuckDB file.")
    if tables is not None and not tables:
        raise InputError("No table is named: give the names of the tables to release.")
    callers = isinstance(con, CALLERS)
    reader = open_reader(con, None if callers else options.memory_limit)
    with instance.closed_on_failure(reader.engine):
        if callers:
            refuse_memory_limit(options.memory_limit)
        if tables is None:
            tables = _tables_of_schema(reader, options.public_tables)
        session = (_with_linked if linked else _tied)(reader, tables, options.public_tables, options)
        return _locked(reader, session, options)


def _tied(
    reader: Reader, tables: Sequence[str], public_tables: Sequence[str], options: _Options
) -> SourceSession:
    public = public_sources(reader, public_tables)
    private = [_tied_table(reader, text, public_tables, options) for text in tables]
    _refuse_clashes([*private, *public])
    session = SourceSession(
        reader.engine,
        {source.name: source for source in private},
        {source.name: source for source in public},
    )
    open_tables = (source.catalogued for source in public if source.catalogued is not None)
    refuse_one_table_twice([*session.tables, *open_tables])
    return session


def _tied_table(reader: Reader, text: str, public_tables: Sequence[str], options: _Options) -> OpenedSource:
    if is_query(text) or not text.strip() or "\x00" in text:
        raise InputError(
            f"The list of tables has {shorten(text)!r}: give names of tables and "
            "views. Make a view of a query (CREATE VIEW)."
        )
    source, problem = None, ""
    try:
        source = resolved(reader, text, trusted=options.trusted, public_tables=public_tables)
    except SourceError as error:
        problem = str(error)
    if problem:
        raise SourceError(f"{shorten(text)}: {problem.removesuffix(TRUST_IT).strip()}")
    if source is None:
        raise no_source(text, reader.catalog.near(text))
    return source


def _with_linked(
    reader: Reader, tables: Sequence[str], public_tables: Sequence[str], options: _Options
) -> SourceSession:
    """As ``_tied``; what foreign keys of private tables name is public, and unknown public tables go."""
    catalog, public = reader.catalog, dict[Identity, str]()
    private = {folded(relation.identity) for relation in map(catalog.look_up, tables) if relation is not None}
    for text in public_tables:
        relation = catalog.look_up(text)
        if relation is not None and folded(relation.identity) not in private:
            public[folded(relation.identity)] = text
    session = _tied(reader, tables, [*public.values()], options)
    links = (link.table for name in session.private for link in session.facts[name].links)
    further = [*dict.fromkeys(table for table in links if table not in session.facts)]
    return _tied(reader, tables, [*public.values(), *further], options) if further else session


def _tables_of_schema(reader: Reader, public_tables: Sequence[str]) -> list[str]:
    """All base tables of the schema where names are looked up, but the public ones."""
    catalog = reader.catalog
    public = {identity for source in public_sources(reader, public_tables) for identity in source.reads}
    home = tuple(map(fold, catalog.session.path[0]))
    identities = [
        relation.identity
        for relation in catalog.relations.values()
        if relation.kind == "table" and tuple(map(fold, relation.identity[:2])) == home
    ]
    tables = [display_name(*identity) for identity in identities if identity not in public]
    if not tables:
        raise InputError("The database has no private tables: give the name of a table, or a file.")
    return tables


def _refuse_clashes(sources: Sequence[OpenedSource]) -> None:
    """Tables that are tied have names of their own, in one database.

    Raises:
        InputError: one is given twice, two have one name, or they are in several databases.
    """
    by_identity, by_name = dict[Identity, str](), dict[str, str]()
    identities = [source.catalogued.identity for source in sources if source.catalogued is not None]
    for text, identity in zip((source.spelled for source in sources), identities, strict=True):
        if (first := by_identity.get(folded(identity))) is not None:
            raise InputError(
                f"{shorten(display_name(*identity))} is named twice in the list of tables and public_tables= "
                f"({said(first)}, {said(text)}): a table is either private or public, and named once."
            )
        if (first := by_name.get(fold(identity[2]))) is not None:
            raise InputError(
                f"{said(first)} and {said(text)} have the same name in different schemas: the tables of a "
                "release need different names. Make a view with another name of one of them."
            )
        by_identity[folded(identity)] = by_name[fold(identity[2])] = text
    databases = {fold(identity[0]): identity[0] for identity in identities}
    if len(databases) > 1:
        raise InputError(
            f"The tables are in several databases: {listed(databases.values())}. Tables tied by keys must be "
            "in one: copy the others into it."
        )


# -- relations that are compared ---------------------------------------------------------------------


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
        relations = {called: _compared(reader, source) for called, source in given.items()}
        beside = () if further is None else (str(further), f"{further}.wal")
        reader.lock((*(path for relation in relations.values() for path in relation.paths), *beside))
        yield reader.engine, relations
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


def _compared(reader: Reader, source: Given) -> OpenedRelation:
    text, near, opened = os.fspath(source), list[str](), None
    if isinstance(source, str) and (reader.callers or reader.database or is_query(text)):
        opened = resolved(reader, text, trusted=True, public_tables=())
        near = [] if opened is not None else reader.catalog.near(text)
    if opened is None:
        files = find_files(text)
        if files is None:
            raise no_source(text, near)
        opened = opened_files(reader.engine, files, text, _PLAIN)
    if opened.relation.kind == "view":
        reader.refuse_hidden(opened.reads)
    refuse_undecodable(opened.texts)
    kind, place = opened.relation.kind, opened.catalogued
    return OpenedRelation(
        text,
        opened.relation.sql,
        opened.relation.columns,
        _identity(opened),
        untyped=kind == "csv",
        stored=kind in ("table", "parquet"),
        released=_is_released(reader.engine, opened),
        paths=opened.paths,
        database=place.file if kind == "table" and place is not None else None,
    )


def _identity(opened: OpenedSource) -> tuple[object, ...]:
    """Equal for two names of one table, file or query."""
    if opened.relation.kind == "query":
        return ("query", " ".join(opened.spelled.split()))
    place = opened.catalogued
    if place is None:
        return ("files", *sorted(storage(path) for path in opened.paths))
    database = (fold(place.identity[0]),) if place.file is None else storage(place.file)
    return ("table", *database, *map(fold, place.identity[1:]))


def _is_released(engine: DuckDBEngine, opened: OpenedSource) -> bool:
    """Whether a table bears the comment of a release, or a file has its model beside it."""
    if opened.relation.kind == "table" and opened.catalogued is not None:
        catalog, schema, name = map(literal, opened.catalogued.identity)
        sql = render("evaluate/comment", catalog=catalog, schema=schema, name=name)
        comments = engine.fetch(sql, step="reading the catalog")["comment"]
        return any(str(comment).startswith(_MADE_HERE) for comment in comments)
    is_file = opened.catalogued is None and opened.relation.kind != "query" and opened.pattern is None
    return is_file and file_beside(Path(opened.paths[0])).is_file()
