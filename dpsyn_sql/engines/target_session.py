"""Where the synthetic rows go: checked before anything is charged, opened after the last question.

Public side: the engine that ``Target.open`` hands out refuses every statement that names the source.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from dpsyn_sql.engines import instance
from dpsyn_sql.engines.catalog import DuckDBCatalog, folded
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.engines.reader import CALLERS, Callers, cursors_of
from dpsyn_sql.engines.source_session import Connection, SourceSession
from dpsyn_sql.engines.spark.outputs import SparkFolder, SparkOutput
from dpsyn_sql.engines.spark.publish import SparkPublisher
from dpsyn_sql.engines.spark.target import check_output, spark_output
from dpsyn_sql.engines.stored_tables import storage
from dpsyn_sql.errors import InternalError, TargetError
from dpsyn_sql.rows.write.tasks import RowPublisher
from dpsyn_sql.source.files import ending_of, file_beside, looks_like_path
from dpsyn_sql.source.ledger_names import LedgerNames
from dpsyn_sql.source.names import Identity, display_name, fold, shorten, split_name
from dpsyn_sql.source.paths import absolute_path, real_pattern
from dpsyn_sql.source.sessions import is_spark
from dpsyn_sql.sqltext.fragments import Fragment, qualified
from dpsyn_sql.sqltext.release_tables import OLD, SCHEMA, TABLES, columns_of, is_old


@dataclass(frozen=True, slots=True)
class Output:
    """What is written, for the ledger: a table in a database file (None: in memory), or a file.

    ``spelled`` is its full name or path. ``spark``: it is a table or a folder of Spark.
    """

    spelled: str
    table: Identity | None = None
    database: str | None = None
    spark: Literal["", "table", "folder"] = ""

    def name(self, home: LedgerNames) -> str:
        """The same however ``into`` was spelled, under any alias of the database and in any letter case."""
        if self.spark:
            return home.spark(self.spelled) if self.spark == "folder" else home.spark_table(self.spelled)
        if self.table is None:
            return home.output(self.spelled)
        return home.table(self.database, *self.table)


@dataclass(frozen=True, slots=True)
class Target:
    """A checked output; ``name`` is what to print.

    ``replace`` says that what exists there is overwritten, ``only_same`` that it must equal what is written.
    ``label`` is what the release is called there by default: the table, with its schema unless that is
    main, or the file without folder and ending. Of Spark: ``publisher`` writes, and the release is ``kept``.
    """

    name: str
    output: Output
    label: str
    replace: bool
    only_same: bool
    _open: Callable[[], DuckDBEngine]
    _forbidden: tuple[str, ...]
    publisher: RowPublisher | None = None
    kept: SparkOutput | None = None

    @property
    def kind(self) -> Literal["table", "file", "spark"]:
        """What is written."""
        return "spark" if self.output.spark else "file" if self.output.table is None else "table"

    @property
    def sql(self) -> Fragment | None:
        """The quoted full name of a table."""
        return None if self.output.table is None else qualified(*self.output.table)

    @property
    def database(self) -> str | None:
        """The attached database of a table."""
        return None if self.output.table is None else self.output.table[0]

    @property
    def path(self) -> Path | None:
        """The path of a file."""
        return Path(self.output.spelled) if self.kind == "file" else None

    @property
    def format(self) -> Literal["parquet", "csv"] | None:
        """That of a file; one that ends in .gz is meant compressed."""
        if self.path is None:
            return None
        return "parquet" if ending_of(self.path.name) == ".parquet" else "csv"

    def open(self) -> DuckDBEngine:
        """The session that writes; it cannot name the source.

        Raises:
            InternalError: the source has not been released although both are in one database file.
            EngineFailure: the database cannot be opened any more.
        """
        engine = self._open()
        engine.forbid(self._forbidden)
        return engine


@dataclass(frozen=True, slots=True)
class Asked:
    """For which open source an output is checked, and what may be overwritten (as ``open_target``)."""

    session: SourceSession
    replace: bool
    written: Callable[[Output], bool]

    def may_replace(self, output: Output) -> bool:
        """Whether this output may be written over."""
        return self.replace or self.written(output)

    def private_instance(self) -> DuckDBEngine:
        """What writes where no database does."""
        return instance.private_instance(self.session.memory_limit)

    def target(
        self, name: str, output: Output, label: str, exists: bool, opened: Callable[[], DuckDBEngine]
    ) -> Target:
        """The checked output; ``exists``: something is there that may be overwritten."""
        only_same = exists and not self.replace
        return Target(name, output, label, exists or self.replace, only_same, opened, self.session.forbidden)


def open_target(
    con: Connection,
    into: str | os.PathLike[str] | None,
    session: SourceSession,
    *,
    replace: bool = False,
    written: Callable[[Output], bool] = lambda output: False,
) -> Target:
    """Check the output. Writes nothing and reads no row.

    Args:
        con: as given to ``open_source``.
        into: a table name, or a path ending in .parquet, .csv or .csv.gz (a ``Path`` always is one,
            and so is any text when there is no database); None: the source's default.
        session: the open source, not released yet.
        replace: an existing table or file may be overwritten.
        written: whether the same release wrote this output before, so that it may write the same again
            (``Target.only_same``).

    Raises:
        TargetError: it exists, is a view, belongs to the source, is read-only, has no folder, or
            cannot be told.
    """
    asked = Asked(session, replace, written)
    chosen = into if into is not None else session.default_into
    if (spark := _spark_of(con, session)) is not None:
        return _spark_target(spark, chosen, asked)
    if chosen is None:
        raise TargetError("The source is a query or several files: give the table or file to write as into=.")
    text = os.fspath(chosen)
    if not isinstance(text, str) or not text.strip() or "\x00" in text:
        raise TargetError("into= must be the name of a table or a path, without NUL characters.")
    from_file = into is None and session.relation.kind in ("parquet", "csv")
    if from_file or con is None or not isinstance(chosen, str) or looks_like_path(text):
        return _file_target(text, asked)
    if isinstance(con, CALLERS):
        return _connection_target(con, text, asked)
    if not isinstance(con, str | os.PathLike):
        raise InternalError("a table is written by a database or by Spark")
    return _database_target(absolute_path(con), text, asked)


# -- Spark --------------------------------------------------------------------------------------


def _spark_of(con: object, session: SourceSession) -> Any:
    """The session of Spark that writes: that of a source that is a data frame of Spark, if no other database
    is given; None if Spark does not write."""
    if is_spark(con):
        return con
    pinned = getattr(session, "pinned", None)
    return pinned.frame.sparkSession if con is None and pinned is not None else None


def _spark_target(con: Any, chosen: str | os.PathLike[str] | None, asked: Asked) -> Target:
    if chosen is None:
        raise TargetError(
            "The source is a query or a data frame: give the table or folder of Spark to write as into=."
        )
    place = spark_output(con, chosen)
    output = Output(place.name, spark="folder" if isinstance(place, SparkFolder) else "table")
    exists = check_output(place, asked.session, lambda: asked.may_replace(output))
    target = asked.target(place.name, output, place.label, exists, asked.private_instance)
    publisher = SparkPublisher(con, place, asked.replace, target.only_same)
    return dataclasses.replace(target, publisher=publisher, kept=place)


# -- tables -------------------------------------------------------------------------------------


def _connection_target(con: Callers, text: str, asked: Asked) -> Target:
    opened = cursors_of(con)
    with contextlib.closing(opened()) as engine:
        return _table(DuckDBCatalog(engine), text, asked, opened)


def reader_and_writer(path: Path, asked: Asked) -> tuple[DuckDBEngine, Callable[[], DuckDBEngine]]:
    """A database file, opened to look at, and what opens it to write once its rows are released.

    Raises:
        TargetError: it cannot be opened.
    """
    session = asked.session

    def opened() -> DuckDBEngine:
        if session.database is not None and not session.released:
            raise InternalError("the source's database file must be released before it is written")
        engine = asked.private_instance()
        with instance.closed_on_failure(engine):
            instance.attach(engine, path, read_only=False)
        return engine

    reader = instance.opened_database(path)
    if reader is None:
        raise TargetError(f"{shorten(str(path))!r} {instance.NOT_OPENED}")
    return reader, opened


def _database_target(path: Path, text: str, asked: Asked) -> Target:
    if not path.is_file():
        raise TargetError(f"There is no database file {shorten(str(path))!r} to write a table to.")
    reader, opened = reader_and_writer(path, asked)
    with contextlib.closing(reader):
        target = _table(
            DuckDBCatalog(reader), text, asked, opened, reading_only=instance.database_alias(path)
        )
    check_writable(path, asked.session)
    return target


def _table(
    catalog: DuckDBCatalog,
    text: str,
    asked: Asked,
    opened: Callable[[], DuckDBEngine],
    reading_only: str | None = None,
) -> Target:
    """The table to write; ``reading_only`` is attached read-only just for this look."""
    identity, session = _identity(catalog, text), asked.session
    shown = shorten(display_name(*identity))
    database = catalog.databases.get(fold(identity[0]), {})
    if database.get("internal"):
        raise TargetError(f"{shown} would be temporary or internal; choose a table of a database.")
    if database.get("readonly") and identity[0] != reading_only:
        raise TargetError(
            f"The database of {shown} is read-only; give into= a file or a table of another database."
        )
    place = folded(identity)
    if place in {folded(read) for read in session.reads}:
        raise TargetError(f"{shown} is the source, or is read by it; choose another into=.")
    check_room_for_model(catalog, identity, session)
    existing = catalog.relations.get(place)
    if existing is not None and existing.kind == "view":
        raise TargetError(f"{shown} is a view; choose another into=.")
    identity = identity if existing is None else existing.identity
    name = display_name(*identity)
    output = Output(name, identity, str(database["path"]) if database.get("path") else None)
    if existing is not None and not asked.may_replace(output):
        raise TargetError(f"The table {shown} exists; choose another into=, or add replace=True.")
    # Tables of one name in two schemas are two releases; the schema that is looked in by itself goes unsaid.
    label = identity[2] if fold(identity[1]) == "main" else f"{identity[1]}.{identity[2]}"
    return asked.target(name, output, label, existing is not None, opened)


def check_room_for_model(catalog: DuckDBCatalog, identity: Identity, session: SourceSession) -> None:
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
        place = (fold(database), SCHEMA, table)
        found = catalog.relations.get(place)
        if found is None:
            continue
        there = () if found.kind == "view" else catalog.columns(found.identity)
        columns = tuple((one.name, one.sql_type) for one in there)
        if table == "releases" and is_old(columns):
            raise TargetError(
                f"The releases in database {database!r} were {OLD} Nothing was read or charged."
            )
        if place in reads or columns != columns_of(table):
            raise TargetError(
                f"{shorten(display_name(*found.identity))} has the name of a table for models, but is "
                "something else or the source. Rename it, or choose an into= in another database."
            )


def _identity(catalog: DuckDBCatalog, text: str) -> Identity:
    """Which table a name means; schemas and databases must exist."""
    parts = split_name(text) or (text,)
    home = catalog.session.path[0]
    if len(parts) == 1:
        return (*home, parts[0])
    if len(parts) == 3:
        schemas = [catalog.schemas.get((fold(parts[0]), fold(parts[1])))]
    else:
        within = catalog.schemas.get((fold(home[0]), fold(parts[0])))
        schemas = [within, catalog.schemas.get((fold(parts[0]), "main"))]
    found = list(dict.fromkeys(schema for schema in schemas if schema is not None))
    if len(found) == 1:
        return (*found[0], parts[-1])
    where = shorten(display_name(*parts[:-1]))
    if found:
        raise TargetError(f"{where} is both a schema and a database: write database.schema.table.")
    raise TargetError(
        f"There is no schema or database {where}. If the dot is part of the table's name, quote the name: "
        f"{shorten(display_name(text))}."
    )


def check_writable(path: Path, session: SourceSession) -> None:
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


# -- files --------------------------------------------------------------------------------------


def _file_target(text: str, asked: Asked) -> Target:
    ending = ending_of(text)
    if ending is None:
        raise TargetError(
            f"{shorten(text)!r} does not end in .parquet, .csv or .csv.gz. (The name of a table with a slash "
            "must be quoted, and needs a database as con.)"
        )
    path = absolute_path(text)
    folder, beside, output = path.parent, file_beside(path), Output(str(path))
    if not folder.is_dir():
        raise TargetError(f"The folder {shorten(str(folder))!r} does not exist.")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise TargetError(f"The folder {shorten(str(folder))!r} cannot be written.")
    if any(belongs_to_source(one, ending_of(one.name), asked.session) for one in (path, beside)):
        raise TargetError(
            f"{shorten(text)!r} is the source or would become part of it: choose another into=."
        )
    exists = os.path.lexists(path)
    if exists and not path.is_file():
        raise TargetError(f"{shorten(text)!r} exists and is not a file.")
    if exists and not asked.may_replace(output):
        raise TargetError(f"The file {shorten(text)!r} exists; choose another into=, or add replace=True.")
    if os.path.lexists(beside):
        if not (beside.is_file() and asked.may_replace(output)):
            raise TargetError(
                f"{shorten(str(beside))!r}, the file for the model of the release, exists. Choose another "
                "into=, or add replace=True."
            )
        # Without its output nothing says which release a model is of: the same one, or one that came later.
        if not (exists or asked.replace):
            raise TargetError(
                f"{shorten(str(beside))!r}, the model of a release, exists without its output. Delete it, "
                "choose another into=, or add replace=True."
            )
    return asked.target(text, output, path.name[: -len(ending)], exists, asked.private_instance)


def belongs_to_source(path: Path, ending: str | None, session: SourceSession) -> bool:
    """The same file under any name, or a new file that the source's glob or folder would take in."""
    real = os.path.realpath(path)
    parts = [*session.paths, *([str(session.database)] if session.database is not None else [])]
    if storage(real) in {storage(os.path.realpath(part)) for part in parts}:
        return True
    if session.pattern is None:
        return False
    # Where it is, and where it leads to if it is a link.
    places = {str(path), str(Path(os.path.realpath(path.parent), path.name)), real}
    if Path(session.relation.name).is_dir():
        source_endings = {ending_of(part) for part in session.paths}
        folder = os.path.realpath(session.relation.name)
        return ending in source_endings and folder in {str(Path(place).parent) for place in places}
    patterns = [_glob_regex(pattern) for pattern in (session.pattern, real_pattern(session.pattern))]
    return any(pattern.fullmatch(place) for pattern in patterns for place in places)


def _glob_regex(pattern: str) -> re.Pattern[str]:
    """A glob as a regular expression over whole paths; ``**`` crosses folders."""
    pieces = []
    for piece in re.findall(r"\*\*/?|\*|\?|\[[^\]]+\]|.", pattern, flags=re.DOTALL):
        if piece.startswith("**"):
            pieces.append(".*")
        elif piece in "*?":
            pieces.append("[^/]*" if piece == "*" else "[^/]")
        elif len(piece) > 1:
            pieces.append("[" + piece[1:-1].replace("\\", "\\\\").replace("!", "^", piece[1] == "!") + "]")
        else:
            pieces.append(re.escape(piece))
    return re.compile("".join(pieces), re.DOTALL)
