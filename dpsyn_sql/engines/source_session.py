"""Open the source: which string is what, where it is read, and how it is put out of reach again.

PRIVATE side. Opening reads catalogs, a CSV header or a Parquet schema, never a row. Files and
database paths are read in an instance of our own; a caller's connection is used through a cursor,
and none of its settings change.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from dpsyn_sql.engines import instance
from dpsyn_sql.engines.catalog import DuckDBCatalog, path_literal
from dpsyn_sql.engines.code_slices import ParquetSlicing, TableSlicing
from dpsyn_sql.engines.csv_call import csv_dialect
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.engines.file_bytes import refuse_undecodable
from dpsyn_sql.engines.owners import origins_in, owners_of
from dpsyn_sql.engines.reader import (
    CALLERS,
    Callers,
    Reader,
    no_source,
    open_reader,
    refuse_memory_limit,
    spellings,
)
from dpsyn_sql.engines.stored_tables import StoredTable, named_query, refuse_one_table_twice, stored
from dpsyn_sql.errors import EngineFailure, InputError, InternalError, SourceError
from dpsyn_sql.source.csv_form import CsvForm
from dpsyn_sql.source.engine import SourceEngine
from dpsyn_sql.source.files import FileSet, TextFile, common_header, find_files, refuse_clashes, text_files
from dpsyn_sql.source.ledger_names import LedgerNames
from dpsyn_sql.source.names import Identity, display_name, fold, is_query, shorten
from dpsyn_sql.source.origins import Origins, Place
from dpsyn_sql.source.paths import absolute_path, absolute_pattern
from dpsyn_sql.source.query_check import CatalogRelation, CheckedQuery, check_query, check_view
from dpsyn_sql.source.relation import Relation, RelationKind
from dpsyn_sql.source.sessions import SparkConnection
from dpsyn_sql.sqltext.fragments import Fragment, literal, qualified

Connection = Callers | SparkConnection | str | os.PathLike[str] | None

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
_SKIPPED = (
    "Lines of the CSV source that cannot be parsed are skipped; fields that are missing are NULL, and "
    "further ones are left out."
)
_COMMAS = (
    "The CSV source has ';' between its fields, as files have whose numbers are written 1234,5: these would "
    "be read as text. If there are such numbers, give decimal=','; if not, decimal='.'."
)
_STATED = "the owner states how the CSV file is written"
_PLAIN = CsvForm()


@dataclass
class SourceSession:
    """An open source.

    ``engine`` reads it; ``relation`` says what it is; ``default_into`` is a table name or a path,
    or None where only the caller can choose. ``reads`` and ``paths`` are everything it is made of.
    ``stored`` says where each of ``reads`` is kept; ``tables`` are the private ones, views written out.
    ``view`` is set where the source is one. ``origins``: where the columns of a query or view come from,
    None if it cannot be followed. ``conventions`` are the settings that decide what expressions of the
    source give; none if it has no expressions.
    ``database`` is set when the caller gave the path of a database file. ``texts`` are the CSV files of
    ``paths``.
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
    origins: Mapping[str, Origins] | None = None
    conventions: Mapping[str, str] = field(default_factory=dict)
    folder: bool = False
    database: Path | None = None
    memory_limit: str | None = None
    texts: tuple[TextFile, ...] = ()
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

    def choose_scratch(self, *, plain: bool) -> None:
        """Say, before anything is read, whether codes that do not fit in memory are encrypted.

        Raises:
            InputError: ``plain``, and the database that reads is not an instance of ours.
        """
        if plain and not self.engine.private:
            raise InputError(
                "scratch='plain' is for files and paths of databases: your connection spills by its own "
                "settings (SET temp_file_encryption)."
            )
        self.engine.plain_files = plain

    def ready(self) -> None:
        """Refuse, before the debit, what only a try can find; looks at no row.

        Raises:
            SourceError: questions could not be answered.
        """

    def refuse_undecodable(self) -> None:
        """Refuse, before a new debit, CSV files whose bytes are not of the stated encoding. PRIVATE: it reads
        all rows, and its operator sees whether it refuses.

        Raises:
            SourceError: the database could not read some of their lines.
        """
        refuse_undecodable(self.texts)

    def resolved_name(self, home: LedgerNames) -> str:
        """The name that stays the same however the source was spelled."""
        if self.relation.kind == "table":
            return self.tables[0].name(home)
        if self.view is not None:
            return self.view.name(home)
        if self.relation.kind == "query":
            return named_query(self.relation.name, self.stored, self.paths, home)
        return home.file(self.paths[0]) if self.pattern is None else home.pattern(self.pattern)

    def definition(self, home: LedgerNames) -> str | None:
        """What a view is made by, as a digest; None for anything else: a query is its own name."""
        if self.view is None:
            return None
        named = named_query(self.relation.sql, self.stored, self.paths, home)
        return hashlib.sha256(named.encode()).hexdigest()

    @property
    def kind(self) -> str:
        """What the source is: a table and a file can have one name in the ledger, a folder and a glob too."""
        return "folder" if self.folder else self.relation.kind

    def private_sources(self, home: LedgerNames) -> tuple[str, ...]:
        """Names of the private tables and files; however one is spelled (links, globs, folders, aliases,
        letter case), it has one name."""
        names = [table.name(home) for table in self.tables] + [home.file(path) for path in self.paths]
        return tuple(dict.fromkeys(names))

    def owners(self, columns: Sequence[str], home: LedgerNames) -> dict[str, tuple[str, ...]]:
        """By which columns the rows of each private source belong to what ``columns`` name: the unit, or a
        row of another table.

        Raises:
            SourceError: those of one source in two ways.
        """
        sources = self.private_sources(home)
        if self.relation.kind not in ("query", "view"):
            return {source: tuple(map(fold, columns)) for source in sources}
        kept = {table.identity: table for table in self.tables}

        def named(place: Place) -> Iterable[str]:
            if isinstance(place, str):
                return [home.file(path) for path in (find_files(place) or _NO_FILES).paths]
            return [kept[place].name(home)] if place in kept else []

        trusted = TRUSTED in self.relation.statements
        text = self.relation.sql
        return owners_of(self.origins, columns, sources, named, query=text, trusted=trusted)

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
        if self.database is not None:
            instance.detach(self.engine, self.database)
        self.engine.forbid(self.forbidden)

    def probe_writing(self) -> bool:
        """Whether the source's database file can be opened for writing; asked before the debit."""
        if self.database is None or self.released:
            raise InternalError("only an open database file can be probed")
        instance.detach(self.engine, self.database)
        writable = False
        with contextlib.suppress(EngineFailure):
            instance.attach(self.engine, self.database, read_only=False)
            instance.detach(self.engine, self.database)
            writable = True
        instance.attach(self.engine, self.database, read_only=True)
        self.engine.watch(instance.files_of(self.database))  # a log may have been worked in
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
    form: CsvForm = _PLAIN,
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
        form: how a CSV source is written.

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
        return _open_files(text, memory_limit, strict, form)
    if con is not None and not isinstance(con, (*CALLERS, str, os.PathLike)):
        raise InputError(
            f"con is a {type(con).__name__}: give a DuckDB connection, a database file, a pandas or Polars "
            "data frame, an Arrow table (lazy ones after collect()), a Spark session or data frame, or None."
        )
    if con is None and not is_query(text):
        return _open_files(text, memory_limit, strict, form)
    callers = isinstance(con, CALLERS)
    reader = open_reader(con, None if callers else memory_limit)
    with instance.closed_on_failure(reader.engine):
        session = resolve(reader, text, trust_query, public_tables, unit)
        near = reader.catalog.near(text) if session is None else []
        if session is not None:
            if callers:
                refuse_memory_limit(memory_limit)
            session.database, session.memory_limit = reader.database, memory_limit
            reader.lock(session.paths)
            return session
    reader.engine.close()
    if find_files(text) is None:
        raise no_source(text, near)
    return _open_files(text, memory_limit, strict, form)


def _open_files(text: str, memory_limit: str | None, strict: bool, form: CsvForm) -> SourceSession:
    files = find_files(text)
    if files is None:
        raise SourceError(f"There is no file {shorten(text)!r}; a name of a table needs con=.")
    reader = open_reader(None, memory_limit)
    with instance.closed_on_failure(reader.engine):
        session = _file_session(reader.engine, files, text, strict, form)
        session.memory_limit = memory_limit
        reader.lock(files.paths)
    return session


# -- what it is ---------------------------------------------------------------------------------


def resolve(
    reader: Reader, text: str, trusted: bool, public_tables: Sequence[str], unit: str | None
) -> SourceSession | None:
    """The session of a query, table or view; None if the text is neither."""
    engine, catalog = reader.engine, reader.catalog
    if is_query(text):
        public = public_identities(catalog, public_tables)
        checked = check_query(text, catalog, public, trusted=trusted, unit=unit)
        # The text itself is the name: two queries over one table are two sources to the ledger.
        session = _checked_session(engine, catalog, checked.sql, checked, trusted)
        session.origins = origins_in(catalog, text)
        reader.refuse_hidden(session.reads)
        return session
    found = reader.look_up(text)
    if found is None:
        return None
    if found.kind == "view":
        public = public_identities(catalog, public_tables)
        checked = check_view(found, catalog, public, trusted=trusted, unit=unit)
        session = _checked_session(engine, catalog, display_name(*found.identity), checked, trusted, found)
        session.origins = origins_in(catalog, found)
        return session
    engine.watch_tables((found.identity,))
    columns = catalog.columns(found.identity)
    checks = catalog.checks(found.identity, columns)
    relation = Relation(
        display_name(*found.identity), "table", qualified(*found.identity), columns, checks=checks
    )
    tables = _private_tables(catalog, (found.identity,), ())
    session = SourceSession(engine, relation, _beside(found.identity), (), (found.identity,), (), tables)
    session.conventions = catalog.conventions() if catalog.computes(found.identity) else {}
    unnamed = "rowid" not in map(fold, (column.name for column in columns))
    if unnamed and catalog.numbers_rows(found.identity):
        engine.read_in_parts(relation.sql, TableSlicing(engine, relation.sql))
    return session


def _checked_session(
    engine: DuckDBEngine,
    catalog: DuckDBCatalog,
    name: str,
    checked: CheckedQuery,
    trusted: bool,
    view: CatalogRelation | None = None,
) -> SourceSession:
    sql = Fragment(f"(\n{checked.sql}\n)")
    columns = catalog.describe_query(checked.sql, "the query" if view is None else "the view")
    refuse_clashes(tuple(column.name for column in columns), "The result of the query")
    statements = [TRUSTED] if trusted else []
    if checked.public:
        named = ", ".join(display_name(*identity) for identity in checked.public)
        statements.append(f"public_tables: the owner states that {named} hold no private data")
    if checked.multiplies:
        statements.append(MULTIPLIES)
    kind: RelationKind = "query" if view is None else "view"
    relation = Relation(name, kind, sql, columns, tuple(statements), multiplies=checked.multiplies)
    files = [(find_files(path) or _NO_FILES, form) for path, form in checked.forms]
    paths = tuple(dict.fromkeys(path for one, _ in files for path in one.paths))
    default = None if view is None else _beside(view.identity)
    reads = tuple(stored(catalog, identity) for identity in checked.relations)
    refuse_one_table_twice(reads)
    tables = _private_tables(catalog, checked.relations, checked.public)
    engine.watch_tables(table.identity for table in _private_tables(catalog, checked.relations, ()))
    if not trusted:
        _refuse_generated(catalog, tables)
    if checked.ordered:
        _refuse_variants(catalog, checked)
    session = SourceSession(engine, relation, default, (), checked.relations, paths, tables, stored=reads)
    session.texts = tuple(file for one, form in files for file in text_files(one, form))
    session.view = None if view is None else stored(catalog, view.identity)
    session.conventions = catalog.conventions()
    engine.watch(paths)
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
                    f"The column {shorten(column.name)!r} of {shorten(display_name(*table.identity))} "
                    f"{column.refused}. Drop the column, or add trust_query=True to state that each of its "
                    "values comes from its own row."
                )


def _refuse_variants(catalog: DuckDBCatalog, checked: CheckedQuery) -> None:
    """Two numbers of different types can be one in an order of VARIANT, and functions tell them apart."""
    known = [catalog.find(identity) for identity in checked.relations]
    columns = [
        column for one in known if one and one.kind == "table" for column in catalog.columns(one.identity)
    ]
    for path in checked.files:
        files = find_files(path)
        if files is not None and files.format == "parquet":
            columns += catalog.describe_files(catalog.file_call(files), f"the file {shorten(path)!r}")
    for column in columns:
        if "VARIANT" in column.sql_type.upper():
            raise SourceError(
                f"The column {shorten(column.name)!r} is a VARIANT, which a query with window functions may "
                "not read: values of different types can be one in its order. Write the table without it."
            )


_NO_FILES = FileSet("", (), "csv", False, False)


def _file_session(
    engine: DuckDBEngine, files: FileSet, text: str, strict: bool, form: CsvForm
) -> SourceSession:
    catalog, strict = DuckDBCatalog(engine), strict and files.format == "csv"
    sql = catalog.file_call(files, form=form, strict=strict)
    columns = catalog.describe_files(sql, f"the file {shorten(text)!r}")
    stated = (f"{', '.join(form.stated)}: {_STATED}",) if form.stated and files.format == "csv" else ()
    relation = Relation(files.name, files.format, sql, columns, stated, strict=strict)
    engine.dialect = csv_dialect(form)
    if files.format == "parquet" and "file_row_number" not in map(fold, (one.name for one in columns)):
        engine.read_in_parts(sql, ParquetSlicing(engine, tuple(map(path_literal, files.paths))))
    engine.watch(files.paths)
    default = None
    if files.single:
        path = Path(text)
        default = str(path.with_name(f"{path.name.split('.')[0] or path.name}_synthetic.parquet"))
    warnings: tuple[str, ...] = (_SKIPPED,) if files.format == "csv" and not strict else ()
    if files.format == "csv" and form.decimal is None and common_header(files, form).delimiter == ";":
        warnings += (_COMMAS,)
    pattern = None if files.single else absolute_pattern(text)
    folder = Path(text).is_dir()
    if folder:
        pattern = str(absolute_path(text) / f"*.{files.format}")
    session = SourceSession(engine, relation, default, warnings, (), files.paths, pattern=pattern)
    session.folder, session.texts = folder, text_files(files, form)
    return session


def public_identities(catalog: DuckDBCatalog, names: Sequence[str]) -> frozenset[Identity]:
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


def _beside(identity: Identity) -> str:
    return display_name(identity[0], identity[1], f"{identity[2]}_synthetic")
