"""Where the tables of a database go: checked before anything is charged, opened after the last question.

A schema of a database, a database file of their own, or a folder of Parquet files. Public side: the engine
that ``DatabaseTarget.open`` hands out refuses every statement that names the source.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from dpsyn_sql.engines import instance
from dpsyn_sql.engines.catalog import DuckDBCatalog
from dpsyn_sql.engines.database_output import DatabaseTarget, Written
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.engines.reader import CALLERS, cursor_of, cursors_of
from dpsyn_sql.engines.source_session import Connection, SourceSession
from dpsyn_sql.engines.target_session import (
    Asked,
    Output,
    belongs_to_source,
    check_room_for_model,
    check_writable,
    reader_and_writer,
)
from dpsyn_sql.errors import TargetError
from dpsyn_sql.planning.tree import PublicTable
from dpsyn_sql.source.files import DATABASE_ENDINGS, ending_of, file_beside, looks_like_path
from dpsyn_sql.source.names import display_name, fold, listed, shorten, split_name
from dpsyn_sql.source.paths import absolute_path
from dpsyn_sql.source.sessions import is_spark
from dpsyn_sql.sqltext.release_tables import SCHEMA

_ALL = "*"  # what the ledger calls all tables of a schema


def open_database_target(
    con: Connection,
    into: str | os.PathLike[str] | None,
    session: SourceSession,
    tables: Sequence[str],
    public: Sequence[PublicTable] = (),
    *,
    replace: bool = False,
    written: Callable[[Output], bool] = lambda output: False,
    constraints: bool = False,
) -> DatabaseTarget:
    """Check the output of a release of several tables. Writes nothing and reads no row.

    Args:
        con: as given to ``open_source``.
        into: a schema, which is made if it is missing; a database file, ending in .duckdb or .db; or a folder
            for Parquet files, which is a ``Path`` or has a slash. None: a schema beside that of the first
            table, with ``_synthetic`` at the end.
        session: the open source, whose ``relation`` is the first table; not released yet.
        tables: names of the private tables in the release.
        public: the public tables of the release.
        replace: existing tables may be overwritten.
        written: whether the same release wrote this output before, so that it may write the same again.
        constraints: keys will be stated, so public tables that they refer to are copied.

    Raises:
        TargetError: tables exist, are views or belong to the source; others refer to them; the place is
            read-only, has no folder, or cannot be told.
    """
    asked, release = Asked(session, replace, written), Written(tables, public, constraints)
    if is_spark(con):
        raise TargetError("Several tables are written by DuckDB: give a DuckDB connection or file as con.")
    text = _default(session) if into is None else os.fspath(into)
    if not isinstance(text, str) or not text.strip() or "\x00" in text:
        raise TargetError("into= must be the name of a schema or a path, without NUL characters.")
    is_path = into is not None and (not isinstance(into, str) or looks_like_path(text))
    if Path(text).suffix.lower() in DATABASE_ENDINGS and not text.endswith('"'):
        return database_file(con, text, asked, release)
    if is_path:
        return folder_of_files(text, asked, release)
    if isinstance(con, CALLERS):
        opened = cursors_of(con)
        with contextlib.closing(opened()) as engine:
            return _schema_target(DuckDBCatalog(engine), text, asked, release, opened)
    if isinstance(con, str | os.PathLike):
        return _schema_of_file(absolute_path(con), text, asked, release)
    raise TargetError(
        f"into={shorten(text)!r} names a schema, which needs a database as con=. Give a database file ending "
        "in .duckdb, or a folder such as './synthetic'."
    )


def _default(session: SourceSession) -> str:
    """A schema beside that of the first table; of one in main, named after its database."""
    parts = split_name(session.relation.name) or ()
    if session.relation.kind not in ("table", "view") or len(parts) != 3:
        raise TargetError("The first table is in no database: give a folder or file to write as into=.")
    beside = parts[0] if fold(parts[1]) == "main" else parts[1]
    return display_name(parts[0], f"{beside}_synthetic")


# -- a schema -----------------------------------------------------------------------------------


def _schema_of_file(path: Path, text: str, asked: Asked, release: Written) -> DatabaseTarget:
    """A schema of the database file that was given as con."""
    reader, opened = reader_and_writer(path, asked)
    with contextlib.closing(reader):
        alias = instance.database_alias(path)
        target = _schema_target(DuckDBCatalog(reader), text, asked, release, opened, reading_only=alias)
    check_writable(path, asked.session)
    return target


def _schema_target(
    catalog: DuckDBCatalog,
    text: str,
    asked: Asked,
    release: Written,
    opened: Callable[[], DuckDBEngine],
    reading_only: str | None = None,
) -> DatabaseTarget:
    """``reading_only`` is attached read-only just for this look."""
    home = _home(catalog, text)
    shown, database = shorten(display_name(*home)), catalog.databases.get(fold(home[0]), {})
    if database.get("internal"):
        raise TargetError(f"{shown} would be temporary or internal; choose a schema of a database.")
    if database.get("readonly") and home[0] != reading_only:
        raise TargetError(
            f"The database of {shown} is read-only; give into= a file, a folder or another database's schema."
        )
    place = (fold(home[0]), fold(home[1]))
    public = [split_name(table.relation.name) or () for table in release.public]
    sources = [read for read in (*asked.session.reads, *public) if len(read) == 3]
    if any((fold(read[0]), fold(read[1])) == place for read in sources):
        raise TargetError(
            f"{shown} is the schema of a table of the release, which an output of its name would overwrite; "
            "choose another into=."
        )
    check_room_for_model(catalog, (*home, _ALL), asked.session)
    copies = tuple(table for table in release.public if release.constraints or not _is_in(table, home[0]))
    names = release.names(copies)
    output = Output(shown, (*home, _ALL), str(database["path"]) if database.get("path") else None)
    existing = _existing(catalog, home, names, shown)
    if existing and not asked.may_replace(output):
        raise TargetError(
            f"{shown} has tables of these names: {listed(sorted(names[name] for name in existing))}. Choose "
            "another into=, or add replace=True."
        )
    replaced = {fold(names[name]) for name in existing} if asked.replace else set()
    dropped = _dropped(catalog, home, replaced, shown)
    return DatabaseTarget(
        kind="schema",
        name=display_name(*home),
        output=output,
        label=home[1],
        home=home,
        path=None,
        names=names,
        copies=copies,
        existing=existing,
        dropped=dropped,
        replace=bool(existing) or asked.replace,
        only_same=bool(existing) and not asked.replace,
        _open=opened,
        _forbidden=asked.session.forbidden,
    )


def _home(catalog: DuckDBCatalog, text: str) -> tuple[str, str]:
    """The database and the schema that a name means; the database must exist."""
    parts, current = split_name(text) or (text,), catalog.session.path[0][0]
    if len(parts) == 1:
        found = catalog.schemas.get((fold(current), fold(parts[0])))
        if found is None and fold(parts[0]) in catalog.databases:
            raise TargetError(f"{shorten(text)} is a database: write database.schema.")
        return found or (current, parts[0])
    if len(parts) == 2 and fold(parts[0]) in catalog.databases:
        database = str(catalog.databases[fold(parts[0])]["catalog"])
        return catalog.schemas.get((fold(database), fold(parts[1])), (database, parts[1]))
    raise TargetError(
        f"There is no database {shorten(display_name(*parts[:-1]))}: into= is a schema, database.schema, a "
        "file ending in .duckdb, or a folder such as './synthetic'."
    )


def _is_in(table: PublicTable, database: str) -> bool:
    """Whether a public table is in a database, and so joins what is written there."""
    parts = split_name(table.relation.name) or ()
    return table.relation.kind in ("table", "view") and len(parts) == 3 and fold(parts[0]) == fold(database)


def _existing(
    catalog: DuckDBCatalog, home: tuple[str, str], names: Mapping[str, str], shown: str
) -> frozenset[str]:
    found = set()
    for name, written in names.items():
        there = catalog.relations.get((fold(home[0]), fold(home[1]), fold(written)))
        if there is not None and there.kind == "view":
            raise TargetError(f"{shorten(written)} is a view in {shown}; choose another into=.")
        if there is not None:
            found.add(name)
    return frozenset(found)


def _dropped(
    catalog: DuckDBCatalog, home: tuple[str, str], replaced: set[str], shown: str
) -> tuple[str, ...]:
    """The replaced tables, one that refers to others before them."""
    pairs = [(fold(one), fold(other)) for one, other in catalog.references(home)]
    outside = sorted({one for one, other in pairs if other in replaced and one not in replaced})
    if outside:
        raise TargetError(
            f"Tables of {shown} that the release does not write refer to ones that it writes anew: "
            f"{listed(outside)}. Drop them, or choose another into=."
        )
    order = list[str]()
    while len(order) < len(replaced):
        left = sorted(replaced.difference(order))
        free = [name for name in left if not any(other == name and one in left for one, other in pairs)]
        order += free or left
    return tuple(order)


# -- files: a database of their own, or a folder of Parquet files ------------------------------------


def database_file(con: Connection, text: str, asked: Asked, release: Written) -> DatabaseTarget:
    """A database file that is made, or holds nothing but tables of the release and models."""
    path = absolute_path(text)
    _check_folder(path.parent)
    names, output = release.names(release.public), Output(str(path))
    if belongs_to_source(path, ending_of(path.name), asked.session) or _is_attached(con, path):
        raise TargetError(
            f"{shorten(text)!r} is an open database. For tables in it give into= the name of a schema, such "
            "as 'synthetic'."
        )
    if os.path.lexists(f"{path}.wal"):
        raise TargetError(
            f"{shorten(f'{path}.wal')!r} belongs to a database of this name that was not closed. Open and "
            "close it, or choose another into=."
        )
    exists = os.path.lexists(path)
    if exists and not path.is_file():
        raise TargetError(f"{shorten(text)!r} exists and is not a file.")
    if exists and not asked.may_replace(output):
        raise TargetError(f"The file {shorten(text)!r} exists; choose another into=, or add replace=True.")
    if exists:
        _check_replaceable(path, names)
    return _path_target("database", text, path, asked, release, names, exists)


def _check_replaceable(path: Path, names: Mapping[str, str]) -> None:
    """Whether a database file holds tables of this release and models alone."""
    reader = instance.opened_database(path)
    if reader is None:
        raise TargetError(f"{shorten(str(path))!r} {instance.NOT_OPENED} Choose another into=.")
    with contextlib.closing(reader):
        there = [one.identity for one in DuckDBCatalog(reader).relations.values()]
    ours = {fold(name) for name in names.values()}
    others = [
        display_name(*one[1:])
        for one in there
        if fold(one[1]) != SCHEMA and not (fold(one[1]) == "main" and fold(one[2]) in ours)
    ]
    if others:
        raise TargetError(
            f"The database file {shorten(str(path))!r} would be written anew, and has more than the tables "
            f"of this release: {listed(sorted(others))}. Choose another into=."
        )


def _is_attached(con: Connection, path: Path) -> bool:
    if not isinstance(con, CALLERS):
        return isinstance(con, str | os.PathLike) and _same(os.fspath(con), path)
    with contextlib.closing(cursor_of(con)) as engine:
        return any(_same(row["path"], path) for row in DuckDBCatalog(engine).databases.values())


def _same(place: object, path: Path) -> bool:
    return bool(place) and os.path.realpath(str(place)) == os.path.realpath(path)


def folder_of_files(text: str, asked: Asked, release: Written) -> DatabaseTarget:
    """A folder, which is made if it is missing: a file for each table, and the models beside it."""
    if ending_of(text) is not None:
        raise TargetError(f"{shorten(text)!r} is one file: give a folder for the tables of the release.")
    path = absolute_path(text)
    names, output = release.names(release.public), Output(str(path))
    if os.path.lexists(path) and not path.is_dir():
        raise TargetError(f"{shorten(text)!r} exists and is not a folder.")
    _check_folder(path if path.is_dir() else path.parent)
    files = {name: path / f"{written}.parquet" for name, written in names.items()}
    beside = file_beside(path)
    if any(belongs_to_source(one, ending_of(one.name), asked.session) for one in (*files.values(), beside)):
        raise TargetError(f"{shorten(text)!r} has the source, or would add to it: choose another into=.")
    existing = [name for name, file in files.items() if os.path.lexists(file)]
    odd = [files[name].name for name in existing if not files[name].is_file()]
    if odd:
        raise TargetError(f"{listed(odd)} in {shorten(text)!r} is not a file; choose another into=.")
    if (existing or os.path.lexists(beside)) and not asked.may_replace(output):
        there = [files[name].name for name in existing] or [str(beside)]
        raise TargetError(f"{listed(there)} exists; choose another into=, or add replace=True.")
    # Without its output nothing says which release a model is of: the same one, or one that came later.
    if os.path.lexists(beside) and not (existing or asked.replace):
        raise TargetError(
            f"{shorten(str(beside))!r}, the models of a release, exists without its tables. Delete it, "
            "choose another into=, or add replace=True."
        )
    return _path_target("folder", text, path, asked, release, names, bool(existing), frozenset(existing))


def _check_folder(folder: Path) -> None:
    if not folder.is_dir():
        raise TargetError(f"The folder {shorten(str(folder))!r} does not exist.")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise TargetError(f"The folder {shorten(str(folder))!r} cannot be written.")


def _path_target(
    kind: Literal["database", "folder"],
    text: str,
    path: Path,
    asked: Asked,
    release: Written,
    names: Mapping[str, str],
    exists: bool,
    existing: frozenset[str] | None = None,
) -> DatabaseTarget:
    return DatabaseTarget(
        kind=kind,
        name=text,
        output=Output(str(path)),
        label=path.stem if kind == "database" else path.name,
        home=None,
        path=path,
        names=names,
        copies=tuple(release.public),
        existing=existing if existing is not None else frozenset(names if exists else ()),
        dropped=(),
        replace=exists or asked.replace,
        only_same=exists and not asked.replace,
        _open=asked.private_instance,
        _forbidden=asked.session.forbidden,
    )
