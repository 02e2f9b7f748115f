"""Check where the synthetic rows go before anything is charged: tables, schemas, files, what Spark writes.

Writes nothing and reads no row.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpsyn_sql.engines import instance
from dpsyn_sql.engines.catalog import DuckDBCatalog, folded
from dpsyn_sql.engines.connections import CALLERS, cursors_of
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.engines.source_session import Connection, SourceSession
from dpsyn_sql.engines.spark.outputs import SparkFolder
from dpsyn_sql.engines.spark.publish import SparkPublisher
from dpsyn_sql.engines.spark.target import check_output, spark_output
from dpsyn_sql.engines.target import Output, Target, TargetCheck, database_target, file_target, folder_target
from dpsyn_sql.errors import InternalError, TargetError
from dpsyn_sql.planning.tree import PublicTable
from dpsyn_sql.source.files import DATABASE_ENDINGS, looks_like_path
from dpsyn_sql.source.frames import is_spark
from dpsyn_sql.source.names import Identity, absolute_path, display_name, fold, listed, shorten, split_name
from dpsyn_sql.sqltext.release_tables import OLD, SCHEMA, TABLES, columns_of, is_old

_ALL = "*"  # what the ledger calls all tables of a schema


def open_target(
    con: Connection,
    into: str | os.PathLike[str] | None,
    session: SourceSession,
    tables: Sequence[str] = (),
    public: Sequence[PublicTable] = (),
    *,
    replace: bool = False,
    written: Callable[[Output], bool] = lambda output: False,
    constraints: bool = False,
) -> Target:
    """Check the output. Writes nothing and reads no row.

    Args:
        con: as given to ``open_source``.
        into: of one table the name of a table, or a path ending in .parquet, .csv or .csv.gz (a ``Path``
            always is one, and so is any text when there is no database). Of several a schema, which is made
            if it is missing; a database file, ending in .duckdb or .db; or a folder for Parquet files, which
            is a ``Path`` or has a slash. None: the source's default, of several a schema beside that of the
            first table, with ``_synthetic`` at the end.
        session: the open source, not released yet.
        tables: names of the private tables of the release; none: those of ``session``.
        public: the public tables of the release.
        replace: an existing table or file may be overwritten.
        written: whether the same release wrote this output before, so that it may write the same again
            (``Target.only_same``).
        constraints: keys will be stated, so public tables that they refer to are copied.

    Raises:
        TargetError: it exists, is a view, belongs to the source, is read-only, has no folder, or cannot be
            told; tables that are not of the release refer to ones that would be replaced.
    """
    tables = tables or tuple(session.private)
    check = TargetCheck(con, session, tables, public, replace, written, constraints)
    if len(tables) + len(public) > 1:
        return _several(into, check)
    chosen = into if into is not None else session.default_into
    if (spark := _spark_of(con, session)) is not None:
        return _spark_target(spark, chosen, check)
    if chosen is None:
        raise TargetError("The source is a query or several files: give the table or file to write as into=.")
    text = _text(chosen, "table")
    from_file = into is None and session.relation.kind in ("parquet", "csv")
    if from_file or con is None or not isinstance(chosen, str) or looks_like_path(text):
        return file_target(text, check)
    return _in_database(text, check, _table)


def _several(into: str | os.PathLike[str] | None, check: TargetCheck) -> Target:
    if is_spark(check.con):
        raise TargetError("Several tables are written by DuckDB: give a DuckDB connection or file as con.")
    text = _text(_default_schema(check.session) if into is None else into, "schema")
    is_path = into is not None and (not isinstance(into, str) or looks_like_path(text))
    if Path(text).suffix.lower() in DATABASE_ENDINGS and not text.endswith('"'):
        return database_target(text, check)
    if is_path:
        return folder_target(text, check)
    if isinstance(check.con, (*CALLERS, str, os.PathLike)):
        return _in_database(text, check, _schema)
    raise TargetError(
        f"into={shorten(text)!r} names a schema, which needs a database as con=. Give a database file ending "
        "in .duckdb, or a folder such as './synthetic'."
    )


def _text(into: str | os.PathLike[str], what: str) -> str:
    text = os.fspath(into)
    if not isinstance(text, str) or not text.strip() or "\x00" in text:
        raise TargetError(f"into= must be the name of a {what} or a path, without NUL characters.")
    return text


def _default_schema(session: SourceSession) -> str:
    """A schema beside that of the first table; of one in main, named after its database."""
    name_parts = split_name(session.relation.name) or ()
    if session.relation.kind not in ("table", "view") or len(name_parts) != 3:
        raise TargetError("The first table is in no database: give a folder or file to write as into=.")
    schema = name_parts[0] if fold(name_parts[1]) == "main" else name_parts[1]
    return display_name(name_parts[0], f"{schema}_synthetic")


# -- Spark --------------------------------------------------------------------------------------


def _spark_of(con: object, session: SourceSession) -> Any:
    """The session of Spark that writes: that of a source that is a data frame of Spark, if no other database
    is given; None if Spark does not write."""
    if is_spark(con):
        return con
    pinned = getattr(session, "pinned", None)
    return pinned.frame.sparkSession if con is None and pinned is not None else None


def _spark_target(con: Any, chosen: str | os.PathLike[str] | None, check: TargetCheck) -> Target:
    if chosen is None:
        raise TargetError(
            "The source is a query or a data frame: give the table or folder of Spark to write as into=."
        )
    output = spark_output(con, chosen)
    entry = Output(output.name, spark="folder" if isinstance(output, SparkFolder) else "table")
    exists = check_output(output, check.session, lambda: check.may_replace(entry))
    names = {check.tables[0]: output.label}
    return check.target(
        "spark",
        output.name,
        entry,
        output.label,
        names,
        existing=frozenset(names if exists else ()),
        publisher=SparkPublisher(con, output, check.replace, exists and not check.replace),
        spark=output,
    )


# -- tables and schemas of a database -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Database:
    """A database that is looked at: ``opened`` opens it to write once its rows are released.

    ``reading_only`` is attached read-only just for this look.
    """

    catalog: DuckDBCatalog
    opened: Callable[[], DuckDBEngine]
    reading_only: str | None = None

    def path(self, database: str) -> str | None:
        """The file of an attached database; None if it is in memory."""
        path = self.catalog.databases.get(fold(database), {}).get("path")
        return str(path) if path else None

    def refuse_unwritable(self, database: str, shown: str, what: str, elsewhere: str) -> None:
        """Refuse a table or schema of a database that nothing can be written to, or that does not last."""
        row = self.catalog.databases.get(fold(database), {})
        if row.get("internal"):
            raise TargetError(f"{shown} would be temporary or internal; choose a {what} of a database.")
        if row.get("readonly") and database != self.reading_only:
            raise TargetError(f"The database of {shown} is read-only; give into= {elsewhere}.")


def _in_database(
    text: str, check: TargetCheck, checked: Callable[[_Database, str, TargetCheck], Target]
) -> Target:
    """A table or schema of the database that was given as con."""
    con = check.con
    if isinstance(con, CALLERS):
        opened = cursors_of(con)
        with contextlib.closing(opened()) as engine:
            return checked(_Database(DuckDBCatalog(engine), opened), text, check)
    if not isinstance(con, str | os.PathLike):
        raise InternalError("a table is written by a database or by Spark")
    path = absolute_path(con)
    if not path.is_file():
        raise TargetError(f"There is no database file {shorten(str(path))!r} to write a table to.")
    reader, opened = _reader_and_writer(path, check)
    with contextlib.closing(reader):
        alias = instance.database_alias(path)
        target = checked(_Database(DuckDBCatalog(reader), opened, alias), text, check)
    _check_writable(path, check.session)
    return target


def _reader_and_writer(path: Path, check: TargetCheck) -> tuple[DuckDBEngine, Callable[[], DuckDBEngine]]:
    """A database file, opened to look at, and what opens it to write once its rows are released.

    Raises:
        TargetError: it cannot be opened.
    """
    session = check.session

    def opened() -> DuckDBEngine:
        if session.database is not None and not session.released:
            raise InternalError("the source's database file must be released before it is written")
        engine = check.private_instance()
        with instance.closed_on_failure(engine):
            instance.attach(engine, path, read_only=False)
        return engine

    reader = instance.opened_database(path)
    if reader is None:
        raise TargetError(f"{shorten(str(path))!r} {instance.NOT_OPENED}")
    return reader, opened


def _table(database: _Database, text: str, check: TargetCheck) -> Target:
    identity, catalog = _identity(database.catalog, text), database.catalog
    shown = shorten(display_name(*identity))
    database.refuse_unwritable(identity[0], shown, "table", "a file or a table of another database")
    if folded(identity) in map(folded, check.session.reads):
        raise TargetError(f"{shown} is the source, or is read by it; choose another into=.")
    _check_room_for_model(catalog, identity, check.session)
    existing = catalog.relations.get(folded(identity))
    if existing is not None and existing.kind == "view":
        raise TargetError(f"{shown} is a view; choose another into=.")
    identity = identity if existing is None else existing.identity
    name = display_name(*identity)
    output = Output(name, identity, database.path(identity[0]))
    if existing is not None and not check.may_replace(output):
        raise TargetError(f"The table {shown} exists; choose another into=, or add replace=True.")
    # Tables of one name in two schemas are two releases; the schema that is looked in by itself goes unsaid.
    label = identity[2] if fold(identity[1]) == "main" else f"{identity[1]}.{identity[2]}"
    names = {check.tables[0]: identity[2]}
    return check.target(
        "table",
        name,
        output,
        label,
        names,
        existing=frozenset(names if existing is not None else ()),
        home=identity[:2],
        opened=database.opened,
    )


def _schema(database: _Database, text: str, check: TargetCheck) -> Target:
    catalog = database.catalog
    home = _home(catalog, text)
    shown = shorten(display_name(*home))
    database.refuse_unwritable(home[0], shown, "schema", "a file, a folder or another database's schema")
    public = [split_name(table.relation.name) or () for table in check.public]
    sources = [read for read in (*check.session.reads, *public) if len(read) == 3]
    if any((fold(read[0]), fold(read[1])) == (fold(home[0]), fold(home[1])) for read in sources):
        raise TargetError(
            f"{shown} is the schema of a table of the release, which an output of its name would overwrite; "
            "choose another into=."
        )
    _check_room_for_model(catalog, (*home, _ALL), check.session)
    copies = [table for table in check.public if check.constraints or not _is_in(table, home[0])]
    names = check.names(copies)
    output = Output(shown, (*home, _ALL), database.path(home[0]))
    existing = _existing(catalog, home, names, shown)
    if existing and not check.may_replace(output):
        raise TargetError(
            f"{shown} has tables of these names: {listed(sorted(names[name] for name in existing))}. Choose "
            "another into=, or add replace=True."
        )
    replaced = {fold(names[name]) for name in existing} if check.replace else set()
    return check.target(
        "schema",
        display_name(*home),
        output,
        home[1],
        names,
        existing=existing,
        home=home,
        copies=copies,
        dropped=_dropped(catalog, home, replaced, shown),
        opened=database.opened,
    )


def _check_room_for_model(catalog: DuckDBCatalog, identity: Identity, session: SourceSession) -> None:
    """Whether schema ``dpsyn`` of the database can take what is kept of the release, and is found by name."""
    database = identity[0]
    if SCHEMA in catalog.databases:
        raise TargetError(
            f"A database has the name {SCHEMA!r}, which is that of the schema for models. Attach it under "
            "another name, or rename the file."
        )
    if fold(identity[1]) == SCHEMA:
        raise TargetError(f"Schema {SCHEMA!r} keeps the models of releases; choose another schema for into=.")
    reads = {folded(read) for read in session.reads}
    for table in TABLES:
        model_table = (fold(database), SCHEMA, table)
        relation = catalog.relations.get(model_table)
        if relation is None:
            continue
        standing = () if relation.kind == "view" else catalog.columns(relation.identity)
        columns = tuple((column.name, column.sql_type) for column in standing)
        if table == "releases" and is_old(columns):
            raise TargetError(
                f"The releases in database {database!r} were {OLD} Nothing was read or charged."
            )
        if model_table in reads or columns != columns_of(table):
            raise TargetError(
                f"{shorten(display_name(*relation.identity))} has the name of a table for models, but is "
                "something else or the source. Rename it, or choose an into= in another database."
            )


def _check_writable(path: Path, session: SourceSession) -> None:
    """Open the database file for writing once, while nothing is charged yet; leaves no trace of it."""
    refused = not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK | os.X_OK))
    if not refused and session.database is not None:
        refused = not session.probe_writing()
    elif not refused:
        probe = instance.opened_database(path, read_only=False)
        refused = probe is None
        if probe is not None:
            probe.close()
    if refused:
        raise TargetError(
            f"The database file {shorten(str(path))!r} cannot be written: it is read-only or in use "
            "elsewhere. Give into= a path that ends in .parquet or .csv."
        )


# -- which table or schema a name means ----------------------------------------------------------------


_ONE_FILE = (
    " One table is written to a table, or to a file ending in .parquet, .csv or .csv.gz; a database file is "
    "for several."
)


def _identity(catalog: DuckDBCatalog, text: str) -> Identity:
    """Which table a name means; schemas and databases must exist."""
    name_parts = split_name(text) or (text,)
    home = catalog.session.path[0]
    if len(name_parts) == 1:
        return (*home, name_parts[0])
    if len(name_parts) == 3:
        candidates = [catalog.schemas.get((fold(name_parts[0]), fold(name_parts[1])))]
    else:
        within = catalog.schemas.get((fold(home[0]), fold(name_parts[0])))
        candidates = [within, catalog.schemas.get((fold(name_parts[0]), "main"))]
    schemas = list(dict.fromkeys(schema for schema in candidates if schema is not None))
    if len(schemas) == 1:
        return (*schemas[0], name_parts[-1])
    where = shorten(display_name(*name_parts[:-1]))
    if schemas:
        raise TargetError(f"{where} is both a schema and a database: write database.schema.table.")
    raise TargetError(
        f"There is no schema or database {where}. If the dot is part of the table's name, quote the name: "
        f"{shorten(display_name(text))}.{_ONE_FILE if text.lower().endswith(DATABASE_ENDINGS) else ''}"
    )


def _home(catalog: DuckDBCatalog, text: str) -> tuple[str, str]:
    """The database and the schema that a name means; the database must exist."""
    name_parts, current = split_name(text) or (text,), catalog.session.path[0][0]
    if len(name_parts) == 1:
        schema = catalog.schemas.get((fold(current), fold(name_parts[0])))
        if schema is None and fold(name_parts[0]) in catalog.databases:
            raise TargetError(f"{shorten(text)} is a database: write database.schema.")
        return schema or (current, name_parts[0])
    if len(name_parts) == 2 and fold(name_parts[0]) in catalog.databases:
        database = str(catalog.databases[fold(name_parts[0])]["catalog"])
        return catalog.schemas.get((fold(database), fold(name_parts[1])), (database, name_parts[1]))
    raise TargetError(
        f"There is no database {shorten(display_name(*name_parts[:-1]))}: into= is a schema, "
        "database.schema, a file ending in .duckdb, or a folder such as './synthetic'."
    )


# -- tables that a schema has already ------------------------------------------------------------------


def _is_in(table: PublicTable, database: str) -> bool:
    """Whether a public table is in a database, and so joins what is written there."""
    name_parts = split_name(table.relation.name) or ()
    return (
        table.relation.kind in ("table", "view")
        and len(name_parts) == 3
        and fold(name_parts[0]) == fold(database)
    )


def _existing(
    catalog: DuckDBCatalog, home: tuple[str, str], names: Mapping[str, str], shown: str
) -> frozenset[str]:
    existing = set()
    for name, written in names.items():
        relation = catalog.relations.get((fold(home[0]), fold(home[1]), fold(written)))
        if relation is not None and relation.kind == "view":
            raise TargetError(f"{shorten(written)} is a view in {shown}; choose another into=.")
        if relation is not None:
            existing.add(name)
    return frozenset(existing)


def _dropped(
    catalog: DuckDBCatalog, home: tuple[str, str], replaced: set[str], shown: str
) -> tuple[str, ...]:
    """The replaced tables, one that refers to others before them."""
    pairs = [(fold(table), fold(referenced)) for table, referenced in catalog.references(home)]
    outside = sorted(
        {table for table, referenced in pairs if referenced in replaced and table not in replaced}
    )
    if outside:
        raise TargetError(
            f"Tables of {shown} that the release does not write refer to ones that it writes anew: "
            f"{listed(outside)}. Drop them, or choose another into=."
        )
    order = list[str]()
    while len(order) < len(replaced):
        left = sorted(replaced.difference(order))
        free = [
            name
            for name in left
            if not any(referenced == name and table in left for table, referenced in pairs)
        ]
        order += free or left
    return tuple(order)
