"""Open the source: which string is what, where it is read, and how it is put out of reach again.

PRIVATE side. Opening reads catalogs, a CSV header or a Parquet schema, never a row. Files and
database paths are read in an instance of our own; a caller's connection is used through a cursor,
and none of its settings change.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

import duckdb

from dpsyn_sql.engines import instance
from dpsyn_sql.engines.calling import CallingConnection, callers_catalog, new_cursor
from dpsyn_sql.engines.catalog import DuckDBCatalog, escaped_path
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.engines.stored import StoredTable, named_query, refuse_one_table_twice, stored
from dpsyn_sql.errors import EngineFailure, InputError, InternalError, SourceError
from dpsyn_sql.interfaces import Engine, SourceEngine
from dpsyn_sql.source.files import FileSet, find_files, refuse_clashes
from dpsyn_sql.source.ledger_names import Home
from dpsyn_sql.source.names import display_name, fold, is_query, shorten
from dpsyn_sql.source.paths import absolute_path, absolute_pattern
from dpsyn_sql.source.query_check import CheckedQuery, Found, Identity, check_query, check_view
from dpsyn_sql.source.relation import Relation, RelationKind
from dpsyn_sql.source.sessions import SparkConnection
from dpsyn_sql.sqltext.fragments import Fragment, literal, qualified
from dpsyn_sql.sqltext.render import render

Connection = duckdb.DuckDBPyConnection | CallingConnection | SparkConnection | str | os.PathLike[str] | None

TRUSTED = (
    "trust_query=True: the owner states that each row of the result is computed from the rows of one "
    "privacy unit and public tables only; this was not checked"
)
MULTIPLIES = (
    "a row of a private table can give several rows of the result; without a unit column, a row of the "
    "result is what is protected"
)
_OWN_ENGINE = "a private instance: what does not fit in memory is written, encrypted, to a private folder"
_CALLERS_ENGINE = "your connection, with its memory limit, threads and folder for temporary files"
_SKIPPED = "Lines of the CSV source that cannot be parsed are skipped; fields that are missing are NULL."


@dataclass
class SourceSession:
    """An open source.

    ``engine`` reads it; ``relation`` says what it is; ``default_into`` is a table name or a path,
    or None where only the caller can choose. ``reads`` and ``paths`` are everything it is made of.
    ``stored`` says where each of ``reads`` is kept; ``tables`` are the private ones, views written out.
    ``view`` is set where the source is one. ``conventions`` are the settings that decide what expressions of
    the source give; none if it has no expressions.
    ``database`` and ``alias`` are set when the caller gave the path of a database file.
    """

    engine: SourceEngine
    relation: Relation
    default_into: str | None
    warnings: tuple[str, ...]
    reads: tuple[Identity, ...]
    paths: tuple[str, ...]
    tables: tuple[StoredTable, ...] = ()
    pattern: str | None = None
    stored: tuple[StoredTable, ...] = ()
    view: StoredTable | None = None
    conventions: Mapping[str, str] = field(default_factory=dict)
    folder: bool = False
    database: Path | None = None
    alias: str | None = None
    memory_limit: str | None = None
    released: bool = field(default=False, init=False)

    unplaced = ""
    """Why no ledger has a default place for such a source; empty if one may have."""

    @property
    def lineage_unknown(self) -> bool:
        """Whether nothing tells which tables it reads, so that the owner must say which account pays."""
        return False

    @property
    def told(self) -> Mapping[str, str]:
        """Lines of the explained plan by their labels: where counting happens, and what it leaves there."""
        return {"Engine": _OWN_ENGINE if self.engine.private else _CALLERS_ENGINE}

    def ready(self) -> None:
        """Refuse, before the debit, what only a try can find; looks at no row.

        Raises:
            SourceError: questions could not be answered.
        """

    def resolved_name(self, home: Home) -> str:
        """The name that stays the same however the source was spelled."""
        if self.relation.kind == "table":
            return self.tables[0].name(home)
        if self.view is not None:
            return self.view.name(home)
        if self.relation.kind == "query":
            return named_query(self.relation.name, self.stored, self.paths, home)
        return home.file(self.paths[0]) if self.pattern is None else home.pattern(self.pattern)

    def definition(self, home: Home) -> str | None:
        """What a view is made by, as a digest; None for anything else: a query is its own name."""
        if self.view is None:
            return None
        named = named_query(self.relation.sql, self.stored, self.paths, home)
        return hashlib.sha256(named.encode()).hexdigest()

    @property
    def kind(self) -> str:
        """What the source is: a table and a file can have one name in the ledger, a folder and a glob too."""
        return "folder" if self.folder else self.relation.kind

    def private_sources(self, home: Home) -> tuple[str, ...]:
        """Names of the private tables and files; however one is spelled (links, globs, folders, aliases,
        letter case), it has one name."""
        names = [table.name(home) for table in self.tables] + [home.file(path) for path in self.paths]
        return tuple(dict.fromkeys(names))

    @property
    def forbidden(self) -> tuple[str, ...]:
        """SQL that names a part of the source; refused everywhere after the last question."""
        names = tuple(qualified(*identity) for identity in self.reads)
        return names + tuple(literal(text) for text in spellings(self.paths))

    def release_source(self) -> None:
        """After the last question: drop our temporary tables and put the source out of reach."""
        if self.released:
            return
        self.released = True
        self.engine.drop_temporary()
        if self.alias is not None:
            instance.detach(self.engine, self.alias)
        self.engine.forbid(self.forbidden)

    def probe_writing(self) -> bool:
        """Whether the source's database file can be opened for writing; asked before the debit."""
        if self.database is None or self.alias is None or self.released:
            raise InternalError("only an open database file can be probed")
        instance.detach(self.engine, self.alias)
        writable = True
        try:
            instance.attach(self.engine, self.database, self.alias, read_only=False)
            instance.detach(self.engine, self.alias)
        except EngineFailure:
            writable = False
        instance.attach(self.engine, self.database, self.alias, read_only=True)
        return writable

    def close(self) -> None:
        """Let the database go; harmless when repeated."""
        self.engine.close()

    def __enter__(self) -> SourceSession:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_source(
    con: Connection,
    source: str | os.PathLike[str],
    *,
    trust_query: bool = False,
    public_tables: Sequence[str] = (),
    memory_limit: str | None = None,
    strict: bool = False,
    unit: str | None = None,
) -> SourceSession:
    """Resolve a source and open it for reading. Reads no row.

    Args:
        con: a DuckDB connection, the path of a DuckDB file, or None (files and queries over files).
        source: a query (SELECT, FROM or WITH and white space), else the name of a table or view,
            else a path or glob of Parquet or CSV files. A ``Path`` is always a path.
        trust_query: the owner answers for a query or view that the check would refuse.
        public_tables: tables without private data that a query may join.
        memory_limit: such as ``"4GB"``; only where the reading happens in our own instance.
        strict: a line of a CSV source that cannot be parsed is an error, not skipped.
        unit: the column of a query or view that tells whose row it is; None if each row is a unit.

    Raises:
        SourceError: missing, ambiguous, unreadable, mixing rows, or visible to the caller alone.
        InputError: ``memory_limit`` is wrong or would change the caller's connection.
    """
    text = os.fspath(source)
    if not isinstance(text, str):
        raise SourceError("The source must be text or a path.")
    if not text.strip():
        raise SourceError("The source is empty: give a table, a file or a query.")
    if "\x00" in text:
        raise SourceError("The source holds a NUL character, which no name or path can hold.")
    if not isinstance(source, str):
        return _open_files(text, memory_limit, strict)
    owners = Owners(trust_query, public_tables, unit)
    if con is None:
        return _open_without_database(text, owners, memory_limit, strict)
    if isinstance(con, duckdb.DuckDBPyConnection | CallingConnection):
        return _open_on_connection(con, text, owners, memory_limit, strict)
    if not isinstance(con, str | os.PathLike):
        raise InputError(
            f"con is a {type(con).__name__}: give a DuckDB connection, a database file, a pandas or Polars "
            "data frame, an Arrow table (lazy ones after collect()), a Spark session or data frame, or None."
        )
    return _open_database_file(Path(con), text, owners, memory_limit, strict)


# -- where it is read ---------------------------------------------------------------------------


def _open_without_database(
    text: str, owners: Owners, memory_limit: str | None, strict: bool
) -> SourceSession:
    if not is_query(text):
        return _open_files(text, memory_limit, strict)
    engine = instance.private_instance(memory_limit)
    try:
        session = _resolve(engine, text, owners)
        if session is None:
            raise no_source(text, [])
        session.memory_limit = memory_limit
        instance.lock(engine, spellings(session.paths))
    except BaseException:
        engine.close()
        raise
    return session


def _open_files(text: str, memory_limit: str | None, strict: bool) -> SourceSession:
    files = find_files(text)
    if files is None:
        raise SourceError(f"There is no file {shorten(text)!r}; a name of a table needs con=.")
    engine = instance.private_instance(memory_limit)
    try:
        session = _file_session(engine, files, text, strict)
        session.memory_limit = memory_limit
        instance.lock(engine, spellings(files.paths))
    except BaseException:
        engine.close()
        raise
    return session


def _open_database_file(
    path: Path,
    text: str,
    owners: Owners,
    memory_limit: str | None,
    strict: bool,
) -> SourceSession:
    if not path.is_file():
        raise SourceError(f"There is no database file {shorten(str(path))!r}.")
    path = absolute_path(path)
    alias = instance.database_alias(path)
    engine = instance.private_instance(memory_limit)
    try:
        attach_source(engine, path, alias)
        session = _resolve(engine, text, owners)
        if session is not None:
            session.database, session.alias = path, alias
            session.memory_limit = memory_limit
            instance.lock(engine, (*spellings(session.paths), str(path), f"{path}.wal"))
            return session
        near = DuckDBCatalog(engine).near(text)
    except BaseException:
        engine.close()
        raise
    engine.close()
    return _files_or_missing(text, near, memory_limit, strict)


def spellings(paths: Iterable[str]) -> tuple[str, ...]:
    """Each path as it is and as our statements write it; DuckDB allows access by spelling."""
    return tuple(dict.fromkeys(text for path in paths for text in (path, escaped_path(path))))


def attach_source(engine: Engine, path: Path, alias: str) -> None:
    """Attach a database file read-only.

    Raises:
        SourceError: it cannot be opened.
    """
    failed = False
    try:
        instance.attach(engine, path, alias, read_only=True)
    except EngineFailure:
        failed = True
    if failed:
        raise SourceError(
            f"{shorten(str(path))!r} cannot be opened as a DuckDB database: it is not a database, is of a "
            "newer version, or is open for writing (in this process: pass the connection itself as con)."
        )


def _open_on_connection(
    con: duckdb.DuckDBPyConnection | CallingConnection,
    text: str,
    owners: Owners,
    memory_limit: str | None,
    strict: bool,
) -> SourceSession:
    engine = cursor_of(con)
    try:
        refuse_if_shadowed(con, text)
        session = _resolve(engine, text, owners)
        if session is not None:
            if session.relation.kind == "query":
                refuse_if_reads_shadowed(con, session.reads)
            if memory_limit is not None:
                raise InputError(
                    "memory_limit= would change the settings of your connection. Give the path of the "
                    "database file instead, or SET memory_limit yourself."
                )
            return session
        near = DuckDBCatalog(engine).near(text)
        refuse_if_callers_own(con, text)
    except BaseException:
        engine.close()
        raise
    engine.close()
    return _files_or_missing(text, near, memory_limit, strict)


def cursor_of(con: duckdb.DuckDBPyConnection | CallingConnection) -> DuckDBEngine:
    """A cursor of the caller's connection that looks names up as the caller does.

    Raises:
        SourceError: the connection is closed, or its transaction has failed.
    """
    cursor = None
    try:
        setting = callers_catalog(con).session.setting
        cursor = DuckDBEngine(new_cursor(con))
        if setting:
            sql = render("source/set_search_path", search_path=literal(setting))
            cursor.execute(sql, step="copying the search path")
        return cursor
    except (EngineFailure, duckdb.Error):
        if cursor is not None:
            cursor.close()
    raise SourceError(
        "The connection cannot be used: it is closed, or its transaction has failed (ROLLBACK)."
    )


def refuse_if_shadowed(con: duckdb.DuckDBPyConnection | CallingConnection, text: str) -> None:
    """To the caller a temporary relation hides a table of the same name; to our cursor it does not."""
    if not is_query(text) and callers_catalog(con).temporary(text):
        raise SourceError(
            f"{shorten(text)} is a temporary table or view, or a registered data frame, that only your "
            "connection sees. Write it to a table first (CREATE TABLE name AS FROM it), or give the full "
            "name database.schema.table of the table that you mean."
        )


def refuse_if_reads_shadowed(
    con: duckdb.DuckDBPyConnection | CallingConnection, reads: Iterable[Identity]
) -> None:
    """The same for what a query or view reads."""
    temporary = {fold(name) for name in callers_catalog(con).temporary_names}
    for identity in reads:
        if fold(identity[2]) in temporary:
            raise SourceError(
                f"The query reads {shorten(identity[2])}, but a temporary table or registered data frame "
                "of your connection has the same name. Drop or rename the temporary one."
            )


def refuse_if_callers_own(con: duckdb.DuckDBPyConnection | CallingConnection, text: str) -> None:
    """Say so when only the caller's own connection sees the relation."""
    if callers_catalog(con).look_up(text) is not None:
        raise SourceError(
            f"{shorten(text)} exists only in a transaction of your connection that is not committed. "
            "COMMIT first: the release reads through its own connection."
        )


def _files_or_missing(text: str, near: list[str], memory_limit: str | None, strict: bool) -> SourceSession:
    if not is_query(text) and find_files(text) is not None:
        return _open_files(text, memory_limit, strict)
    raise no_source(text, near)


def no_source(text: str, near: list[str]) -> SourceError:
    """The error for a name that means nothing."""
    hint = f" Did you mean {' or '.join(shorten(name) for name in near)}?" if near else ""
    return SourceError(
        f"There is no table, view or file {shorten(text)!r}.{hint} A query starts with SELECT, FROM or WITH "
        "and a space; a data frame is given itself, not by its name."
    )


# -- what it is ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Owners:
    """What the owner states of a query, as ``open_source`` takes it."""

    trusts: bool
    public_tables: Sequence[str]
    unit: str | None


def _resolve(engine: SourceEngine, text: str, owners: Owners) -> SourceSession | None:
    """The session of a query, table or view; None if the text is neither."""
    catalog = DuckDBCatalog(engine)
    catalog.refuse_shadowing()
    if is_query(text):
        public = _public(catalog, owners.public_tables)
        checked = check_query(text, catalog, public, trusted=owners.trusts, unit=owners.unit)
        # The text itself is the name: two queries over one table are two sources to the ledger.
        return _checked_session(engine, catalog, checked.sql, checked, owners.trusts)
    found = catalog.look_up(text)
    if found is None:
        return None
    if found.kind == "view":
        public = _public(catalog, owners.public_tables)
        checked = check_view(found, catalog, public, trusted=owners.trusts, unit=owners.unit)
        return _checked_session(engine, catalog, _display(found.identity), checked, owners.trusts, found)
    columns = catalog.columns(found.identity)
    checks = catalog.checks(found.identity, columns)
    relation = Relation(_display(found.identity), "table", qualified(*found.identity), columns, checks=checks)
    tables = _private_tables(catalog, (found.identity,), ())
    session = SourceSession(engine, relation, _beside(found.identity), (), (found.identity,), (), tables)
    session.conventions = catalog.conventions() if catalog.computes(found.identity) else {}
    return session


def _checked_session(
    engine: SourceEngine,
    catalog: DuckDBCatalog,
    name: str,
    checked: CheckedQuery,
    trusted: bool,
    view: Found | None = None,
) -> SourceSession:
    sql = Fragment(f"(\n{checked.sql}\n)")
    columns = catalog.describe_query(checked.sql, "the query" if view is None else "the view")
    refuse_clashes(tuple(column.name for column in columns), "The result of the query")
    statements = [TRUSTED] if trusted else []
    if checked.public:
        named = ", ".join(_display(identity) for identity in checked.public)
        statements.append(f"public_tables: the owner states that {named} hold no private data")
    if checked.multiplies:
        statements.append(MULTIPLIES)
    kind: RelationKind = "query" if view is None else "view"
    relation = Relation(name, kind, sql, columns, tuple(statements), multiplies=checked.multiplies)
    paths = tuple(path for item in checked.files for path in (find_files(item) or _NO_FILES).paths)
    default = None if view is None else _beside(view.identity)
    reads = tuple(stored(catalog, identity) for identity in checked.relations)
    refuse_one_table_twice(reads)
    tables = _private_tables(catalog, checked.relations, checked.public)
    if not trusted:
        _refuse_generated(catalog, tables)
    session = SourceSession(engine, relation, default, (), checked.relations, paths, tables, stored=reads)
    session.view = None if view is None else stored(catalog, view.identity)
    session.conventions = catalog.conventions()
    return session


def _private_tables(
    catalog: DuckDBCatalog, reads: Sequence[Identity], public: Sequence[Identity]
) -> tuple[StoredTable, ...]:
    found = []
    for identity in sorted(set(reads) - set(public)):
        known = catalog.find(identity)
        if known is not None and known.kind == "table":
            found.append(stored(catalog, identity))
    return tuple(found)


def _refuse_generated(catalog: DuckDBCatalog, tables: Iterable[StoredTable]) -> None:
    """A query may read any column of its tables."""
    for table in tables:
        for column in catalog.columns(table.identity):
            if column.refused:
                raise SourceError(
                    f"The column {shorten(column.name)!r} of {shorten(_display(table.identity))} "
                    f"{column.refused}. Drop the column, or add trust_query=True to state that each of its "
                    "values comes from its own row."
                )


_NO_FILES = FileSet("", (), "csv", False, False)


def _file_session(engine: SourceEngine, files: FileSet, text: str, strict: bool) -> SourceSession:
    catalog, strict = DuckDBCatalog(engine), strict and files.format == "csv"
    sql = catalog.file_call(files, strict=strict)
    columns = catalog.describe_files(sql, f"the file {shorten(text)!r}")
    relation = Relation(files.name, files.format, sql, columns, strict=strict)
    default = None
    if files.single:
        path = Path(text)
        default = str(path.with_name(f"{path.name.split('.')[0] or path.name}_synthetic.parquet"))
    warnings = (_SKIPPED,) if files.format == "csv" and not strict else ()
    pattern = None if files.single else absolute_pattern(text)
    folder = Path(text).is_dir()
    if folder:
        pattern = str(absolute_path(text) / f"*.{files.format}")
    return SourceSession(engine, relation, default, warnings, (), files.paths, pattern=pattern, folder=folder)


def _public(catalog: DuckDBCatalog, names: Sequence[str]) -> frozenset[Identity]:
    """The identities of the tables that the owner calls public."""
    if isinstance(names, str):
        raise SourceError("public_tables= must be a list of names.")
    found = {name: catalog.look_up(name) for name in names}
    missing = [name for name, relation in found.items() if relation is None]
    if missing:
        raise SourceError(f"public_tables= has unknown tables: {', '.join(map(shorten, missing))}.")
    views = [name for name, relation in found.items() if relation is not None and relation.kind == "view"]
    if views:
        raise SourceError(
            f"public_tables= names views: {', '.join(shorten(name) for name in views)}. A view can read "
            "private tables; name base tables."
        )
    return frozenset(relation.identity for relation in found.values() if relation is not None)


def _display(identity: Identity) -> str:
    return display_name(*identity)


def _beside(identity: Identity) -> str:
    return display_name(identity[0], identity[1], f"{identity[2]}_synthetic")
