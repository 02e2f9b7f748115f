"""Files for the tables of a database: a database file of their own, or a folder of Parquet files."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from dpsyn_sql.engines import instance
from dpsyn_sql.engines.catalog import DuckDBCatalog
from dpsyn_sql.engines.database_output import DatabaseTarget, Written
from dpsyn_sql.engines.reader import CALLERS, cursor_of
from dpsyn_sql.engines.source_session import Connection
from dpsyn_sql.engines.target_session import Asked, Output, belongs_to_source
from dpsyn_sql.errors import TargetError
from dpsyn_sql.source.files import ending_of, file_beside
from dpsyn_sql.source.names import display_name, fold, listed, shorten
from dpsyn_sql.source.paths import absolute_path
from dpsyn_sql.sqltext.release_tables import SCHEMA


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
