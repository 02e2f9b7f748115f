"""Which state of a source all questions see, and how a change of it in between is noticed.

A table of Delta or Iceberg is read at one version. Of other files the list is kept, with sizes and times: it
must be the same after each time that rows were read, before any of their counts is used. What Spark has in
its cache is refused: each part of it is of the time when it was first read.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any
from urllib.parse import urlsplit

from dpsyn_sql.engines.spark.catalog import SparkCatalogTable, delta_version, iceberg_snapshot
from dpsyn_sql.engines.spark.guard import asked, tried
from dpsyn_sql.errors import SourceError
from dpsyn_sql.source.names import shorten
from dpsyn_sql.source.relation import Column
from dpsyn_sql.sqltext.fragments import Fragment

_LISTING = "listing the files of the source"
_OPENING = "opening the table"
_NO_FILES = "none: what is read has no files whose change could be noticed"
_CHANGED = (
    "The files of the source changed while they were counted, or cannot be listed any more. Counts of them "
    "could be of no one state of the table, so nothing was made of them. What was charged stays charged; "
    "answers that were stored before are used again. Run the release again when nothing writes to the table, "
    "or use a format that keeps versions, Delta or Iceberg."
)
_IN_CACHE = (
    "{what} is in the cache of Spark, or reads what is: its parts can be of different times, and files that "
    "change are not noticed. Call unpersist() or spark.catalog.uncacheTable() for it, or write its rows to a "
    "new table and release that. Nothing was read or charged."
)
_CACHED = (
    "The source was put into the cache of Spark while it was counted. Its parts can be of different times, "
    "so nothing was made of the counts. What was charged stays charged; answers that were stored before are "
    "used again. Call unpersist() or spark.catalog.uncacheTable() for it, and run the release again."
)


@dataclass(frozen=True, slots=True)
class PinnedFrame:
    """A data frame of one state: ``words`` say which, ``check`` raises if it has changed."""

    frame: Any
    words: str
    check: Callable[[], None]
    versioned: bool = False


def pinned_table(spark: Any, table: SparkCatalogTable) -> PinnedFrame:
    """A table at its newest state; ``spark`` is the session that will read it.

    Raises:
        SourceError: its format has no version and no list of files, or nothing was ever written to it.
        EngineFailure: the table cannot be opened.
    """
    find = _VERSIONS.get(table.provider)
    if find is None and table.provider not in _FILES:
        raise SourceError(
            f"The table {shorten(table.shown)} is of the format {table.provider!r}, and no one state "
            f"of it can be pinned: give a table of {', '.join(sorted([*_VERSIONS, *_FILES]))}, or the "
            "data frame spark.table(...) with trust_query=True and account=."
        )
    if find is None:
        frame = asked(lambda: spark.table(table.sql), _OPENING, table.sql)
        return pinned_files(spark, frame, f"The table {shorten(table.shown)}", files=True)
    version = find(spark, table)
    if version is None:
        raise SourceError(
            f"The table {shorten(table.shown)} has no version to pin yet: nothing was ever written to it."
        )
    sql = f"SELECT * FROM {table.sql} VERSION AS OF {version}"
    frame = asked(lambda: spark.sql(sql), _OPENING, sql)
    what = f"The table {shorten(table.shown)}"
    _refuse_cached(frame, what)
    words = f"version {version} of the table ({table.provider})"
    return PinnedFrame(frame, words, lambda: _check_cache(frame), versioned=True)


_FILES = frozenset({"parquet", "orc", "csv", "json", "text", "avro", "hive"})
"""Formats of tables whose files Spark lists."""

_VERSIONS: dict[str, Callable[[Any, SparkCatalogTable], str | None]] = {
    "delta": delta_version,
    "iceberg": iceberg_snapshot,
}


def pinned_files(spark: Any, frame: Any, what: str, *, files: bool) -> PinnedFrame:
    """A data frame of whatever its files hold. ``files``: it has files, even if there are none yet.

    Raises:
        SourceError: Spark has it in its cache; ``what`` it is.
        EngineFailure: its files cannot be listed.
    """
    _refuse_cached(frame, what)
    first = asked(lambda: _state(spark, frame), _LISTING)
    if not (first or files):
        return PinnedFrame(frame, _NO_FILES, lambda: _check_cache(frame))

    def check() -> None:
        _check_cache(frame)
        if tried(lambda: _state(spark, frame)) != first:
            raise SourceError(_CHANGED)

    return PinnedFrame(frame, "names, sizes and times of files, compared whenever rows were read", check)


def _refuse_cached(frame: Any, what: str) -> None:
    if asked(lambda: is_cached(frame), _OPENING):
        raise SourceError(_IN_CACHE.format(what=what))


def _check_cache(frame: Any) -> None:
    if tried(lambda: is_cached(frame)) is not False:
        raise SourceError(_CACHED)


def _state(spark: Any, frame: Any) -> str:
    """A digest of names, sizes and times of all files that a data frame reads; empty if it has none.

    Raises:
        LookupError: a file that would be read is not there.
    """
    folders: dict[str, dict[str, str]] = {}
    for name in files_of(spark, frame):
        folders.setdefault(name.rpartition("/")[0], {})[urlsplit(name).path] = name
    if not folders:
        return ""
    digest = sha256()
    for folder, names in sorted(folders.items()):
        listed = dict(_listed(spark, folder, names))
        if not listed.keys() >= names.keys():
            raise LookupError
        for path in sorted(names):
            digest.update(f"{names[path]} {listed[path]}\n".encode())
    return digest.hexdigest()


def _listed(spark: Any, folder: str, paths: Container[str]) -> Iterator[tuple[str, str]]:
    """Path, size and time of those ``paths`` that are in a folder; of a folder those of all files below."""
    context = spark.sparkContext
    place = context._jvm.org.apache.hadoop.fs.Path(context._jvm.java.net.URI(folder))
    system = place.getFileSystem(context._jsc.hadoopConfiguration())
    for one in system.listStatus(place):
        path = str(one.getPath().toUri().getRawPath())
        if path in paths:
            yield path, "".join(_below(system, one)) if one.isDirectory() else _told(one)


def _below(system: Any, folder: Any) -> list[str]:
    found, files = [], system.listFiles(folder.getPath(), True)
    while files.hasNext():
        one = files.next()
        found.append(f"{one.getPath().toString()} {_told(one)}\n")
    return sorted(found)


def _told(file: Any) -> str:
    return f"{file.getLen()} {file.getModificationTime()}"


_ANY = frozenset({"Sample", "GlobalLimit", "LocalLimit", "Offset", "Tail"})
"""Steps that take some of the rows, and not the same ones each time."""


def _steps(plan: Any) -> Iterator[tuple[str, Any]]:
    """All steps of a logical plan with the names of their classes, those of subqueries too."""
    yield str(plan.getClass().getSimpleName()), plan
    for parts in (plan.children(), plan.subqueries()):
        for place in range(parts.size()):
            yield from _steps(parts.apply(place))


def is_cached(frame: Any) -> bool:
    """Whether Spark would read it, or what it is made of, from its cache now: all sessions of an application
    share the cache."""
    fresh = frame.select("*")  # a plan that was made before knows what was cached then
    plan = fresh._jdf.queryExecution().withCachedData()
    return any(name == "InMemoryRelation" for name, _ in _steps(plan))


def is_steady(frame: Any) -> bool:
    """Whether no step of it gives other values or other rows each time, as far as the plan says."""
    plan = frame._jdf.queryExecution().analyzed()
    return bool(plan.deterministic()) and all(name not in _ANY for name, _ in _steps(plan))


def files_of(spark: Any, frame: Any) -> list[str]:
    """URIs of all files that it reads; of a Hive table whose format is Hive's own those of its folders."""
    found = [str(name) for name in frame.inputFiles()]
    for name, step in _steps(frame._jdf.queryExecution().optimizedPlan()):
        if name == "HiveTableRelation" and not step.tableMeta().partitionColumnNames().isEmpty():
            found += _partitions(spark, step.tableMeta())
    return found


def _partitions(spark: Any, table: Any) -> list[str]:
    """Folders of the partitions of a Hive table, which need not lie in the folder of the table."""
    none = getattr(getattr(spark.sparkContext._jvm.scala, "None$"), "MODULE$")
    parts = spark._jsparkSession.sessionState().catalog().listPartitions(table.identifier(), none)
    return [str(parts.apply(place).location().toString()) for place in range(parts.size())]


@dataclass(frozen=True, slots=True)
class SparkRows:
    """A data frame of one state of a source, and where counting may keep what it needs twice.

    Args:
        spark: the session of the frame; jobs are started and cancelled through it.
        frame: a ``pyspark.sql.DataFrame``; reading it twice gives the same rows.
        columns: of the frame, in order, as ``columns.columns_of`` gives them.
        relation: one quoted name, under which statements read the rows.
        partitions: parts that rows are dealt to by their unit, at least 1.
        place: URI of an existing private folder for kept codes; the engine removes what it makes in there.
        unchanged: to be called whenever the frame was read, before anything that was counted is used; raises
            ``SourceError`` if its files are not what they were.
    """

    spark: Any = field(repr=False)
    frame: Any = field(repr=False)
    columns: tuple[Column, ...]
    relation: Fragment
    partitions: int
    place: str
    unchanged: Callable[[], None] = field(default=lambda: None, repr=False)
