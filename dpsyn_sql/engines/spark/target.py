"""Where the synthetic rows of a source of Spark go: checked before anything is charged. No row is read."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from dpsyn_sql.engines.spark.catalog import look_up, parts_of, quoted, shown
from dpsyn_sql.engines.spark.guard import asked, refuse_stopped, tried
from dpsyn_sql.engines.spark.outputs import Files, SparkFolder, SparkOutput, SparkTable, without_rows
from dpsyn_sql.errors import SourceError, TargetError
from dpsyn_sql.source.files import looks_like_path
from dpsyn_sql.source.names import shorten

_LOOKING = "looking at the output"


def spark_output(spark: Any, into: str | os.PathLike[str]) -> SparkOutput:
    """What an ``into`` means to a session of Spark: the name of a table, or a path of its file system.

    Raises:
        InputError: the session is stopped.
        TargetError: it is neither, or a path of CSV.
        EngineFailure: Spark failed.
    """
    refuse_stopped(spark)
    text = os.fspath(into)
    if not isinstance(into, str) or "://" in text or looks_like_path(text) or text.startswith("file:"):
        return SparkFolder(spark, _folder(spark, text))
    parts = parts_of(text)
    if parts is None or len(parts) > 3:
        raise TargetError(
            f"into={shorten(text)!r} is no name of a table: write database.table or catalog.database.table, "
            "odd names in backticks, or a path with a slash."
        )
    home = asked(lambda: (spark.catalog.currentCatalog(), spark.catalog.currentDatabase()), _LOOKING)
    return SparkTable(spark, (*map(str, home[: 3 - len(parts)]), *parts))


def _folder(spark: Any, text: str) -> str:
    if text.lower().endswith((".csv", ".csv.gz")):
        raise TargetError(
            f"into={shorten(text)!r}: Spark writes a folder of Parquet files here. Give a path without .csv, "
            "or the name of a table."
        )
    found = tried(lambda: Files(spark, text).qualified(text))
    if found is None:
        raise TargetError(f"into={shorten(text)!r}: Spark knows no file system for this path.")
    uri = found.rstrip("/")
    if not urlsplit(uri).path.strip("/"):
        raise TargetError(f"into={shorten(text)!r} is the root of a file system: give a new folder in it.")
    return uri


def check_output(output: SparkOutput, session: Any, may_replace: Callable[[], bool]) -> bool:
    """Whether something exists that is replaced.

    Args:
        output: the table or folder.
        session: the open source.
        may_replace: whether this output may be overwritten.

    Raises:
        TargetError: it exists, is a view, belongs to the source, has no home, a model stands there without
            its rows, or something else in the place of the model.
        EngineFailure: Spark failed.
    """
    if isinstance(output, SparkTable):
        _check_home(output)
    exists = output.exists()
    place = _table(output, exists) if isinstance(output, SparkTable) else _checked_folder(output, exists)
    _check_source(output, place, session)
    if output.has_model() and not output.is_model():
        raise TargetError(
            f"{shorten(output.model_name)!r} is in the way: the model of the release is kept under this "
            "name, and what stands there is none. Rename it, or choose another into=."
        )
    if exists and not may_replace():
        what = "table" if isinstance(output, SparkTable) else "folder"
        raise TargetError(
            f"The {what} {shorten(output.name)!r} exists; choose another into=, or add replace=True."
        )
    if not exists and output.has_model() and not may_replace():
        raise TargetError(without_rows(output))
    return exists


def _check_home(output: SparkTable) -> None:
    """An unknown catalog is an error of Spark's."""
    database = output.parts[:-1]
    if not tried(lambda: bool(output.spark.catalog.databaseExists(quoted(database)))):
        raise TargetError(
            f"There is no database {shorten(shown(database))!r} in Spark. Make it, or choose another into=."
        )


def _table(output: SparkTable, exists: bool) -> str | None:
    """The URI of the files of a table that exists."""
    location = None
    for parts in (output.parts, output.model):
        if not asked(lambda name=parts: bool(output.spark.catalog.tableExists(quoted(name))), _LOOKING):  # type: ignore[misc]
            continue
        found = None
        with suppress(SourceError):
            found = look_up(output.spark, quoted(parts))
        if found is None or found.kind != "table":
            raise TargetError(f"{shorten(shown(parts))!r} is a view; choose another into=.")
        if parts == output.parts:
            location = found.location
    return location if exists else None


def _checked_folder(output: SparkFolder, exists: bool) -> str:
    files = asked(lambda: Files(output.spark, output.uri), _LOOKING)
    above = output.uri.rpartition("/")[0]
    if not asked(lambda: files.is_folder(above), _LOOKING):
        raise TargetError(f"The folder {shorten(above)!r} does not exist.")
    if exists and not asked(lambda: files.is_folder(output.uri), _LOOKING):
        raise TargetError(f"{shorten(output.name)!r} exists and is not a folder.")
    return output.uri


def _check_source(output: SparkOutput, place: str | None, session: Any) -> None:
    """Refuse the source itself, and a folder that would become part of it or holds files of it."""
    table = getattr(session.first, "table", None)
    same = False
    if table is not None:
        same = isinstance(output, SparkTable) and _folded(table.parts) in (
            _folded(output.parts),
            _folded(output.model),
        )
        same = same or _overlap(place, table.location)
    pinned = getattr(session, "pinned", None)
    if not same and place is not None and pinned is not None:
        files = tried(lambda: list(pinned.frame.inputFiles())) or []
        same = any(_within(file, place) for file in files)
    if same:
        raise TargetError(f"{shorten(output.name)!r} is the source, or is read by it; choose another into=.")


def _overlap(one: str | None, other: str | None) -> bool:
    return one is not None and other is not None and (_within(one, other) or _within(other, one))


def _within(inner: str, outer: str) -> bool:
    """Whether a URI is the other or below it; of local files however their scheme is written."""
    return f"{_plain(inner)}/".startswith(f"{_plain(outer)}/")


def _plain(uri: str) -> str:
    parts = urlsplit(uri)
    scheme = {"s3a": "s3", "s3n": "s3", "": "file"}.get(parts.scheme, parts.scheme)
    return f"{scheme}://{parts.netloc}{parts.path.rstrip('/')}"


def _folded(parts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(part.lower() for part in parts)
