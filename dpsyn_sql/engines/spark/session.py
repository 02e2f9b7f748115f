"""Open a source of Spark: a table, or with the owner's word a view, a query or a data frame.

PRIVATE side. Opening reads catalogs and schemas, never a row. Questions run in tasks of Spark, each in a
DuckDB of its own (``engine.py``). The driver's DuckDB holds an empty relation of the same columns, so that
expressions are checked there.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, ClassVar

from dpsyn_sql.engines.source_session import MULTIPLIES, TRUSTED, OpenedSource, SourceSession
from dpsyn_sql.engines.spark.catalog import SparkCatalogTable, columns_of, look_up, shown
from dpsyn_sql.engines.spark.engine import SparkEngine, open_engine
from dpsyn_sql.engines.spark.guard import asked, refuse_stopped, tried
from dpsyn_sql.engines.spark.outputs import Place, private_place
from dpsyn_sql.engines.spark.pin import PinnedFrame, SparkRows, is_steady, pinned_files, pinned_table
from dpsyn_sql.errors import InputError, InternalError, SourceError
from dpsyn_sql.source.frames import Frame, session_of
from dpsyn_sql.source.names import LedgerNames, display_name, is_query, shorten
from dpsyn_sql.source.relation import Relation, RelationKind
from dpsyn_sql.sqltext.fragments import ident

NAME = "dpsyn_rows"
_TASKS = 32
"""Tasks per core of the application: a source of many small parts is read in no more of them."""
_PARTS = 4
"""Parts per core where all rows of a unit are in one part."""
_SAME = "; the owner also states that the same rows come whenever they are computed"
_NEEDS_TRUST = (
    "Spark does not say which rows it is computed from, so whether each of its rows belongs to one privacy "
    "unit cannot be checked. Give a table, or add trust_query=True and account='...', the account that is "
    "charged for what it reads."
)
_ENGINE = (
    "Spark counts in its tasks, each with a private DuckDB; the driver's DuckDB gets their sums alone. A "
    "release takes 3 to 6 times the processor time of one DuckDB for each row"
)
_LOGS = (
    "event logs, the Spark UI and query histories hold exact counts, and logs of driver and executors can "
    "quote values: keep them as private as the source"
)


@dataclass(kw_only=True)
class OpenedSparkSource(OpenedSource):
    """An open source of Spark. ``table``: what it is in a catalog; None for queries and data frames."""

    table: SparkCatalogTable | None = None

    unplaced: ClassVar[str] = "A Spark application has no lasting place of its own"

    @property
    def lineage_unknown(self) -> bool:
        """Anything but a table."""
        return self.relation.kind != "table"

    def resolved_name(self, home: LedgerNames) -> str:
        """A table by the place of its files, a data frame by its label, all else by its text."""
        if self.relation.kind == "frame":
            return home.frame(self.relation.name)
        if self.table is not None and self.table.location is not None and self.relation.kind == "table":
            return home.spark(self.table.location)
        return home.spark_query(self.relation.name)

    def definition(self, home: LedgerNames) -> str | None:
        """What a view is made by, as a digest."""
        if self.table is None or not self.table.definition:
            return None
        return sha256(self.table.definition.encode()).hexdigest()

    def private_sources(self, home: LedgerNames) -> tuple[str, ...]:
        """The only one."""
        return (self.resolved_name(home),)


@dataclass(kw_only=True)
class SparkSource(SourceSession):
    """An open session of one source of Spark: the state that is read, and the place of its codes.

    ``pinned`` is None once the rows are forgotten.
    """

    engine: SparkEngine
    place: Place
    pinned: PinnedFrame | None

    @property
    def forbidden(self) -> tuple[str, ...]:
        """The name under which statements read the rows."""
        return (ident(NAME),)

    @property
    def engine_words(self) -> Mapping[str, str]:
        """For the explained plan: who counts, which state, and where counts and codes come to lie."""
        if self.pinned is None:
            raise InternalError("the rows of a source of Spark were forgotten")
        return {
            "Engine": _ENGINE,
            "Snapshot": self.pinned.words,
            "Codes": f"{self.place.words}; removed after the last question",
            "Private": _LOGS,
        }

    def ready(self) -> None:
        """Try a task without any row of the source: do all machines have what tasks need?"""
        self.engine.probe()

    def release_source(self) -> None:
        """After the last question: remove what was kept, and forget the rows."""
        if not self.released:
            self._forget_rows()
            super().release_source()

    def close(self) -> None:
        """Harmless when repeated."""
        try:
            self._forget_rows()
        finally:
            super().close()

    def _forget_rows(self) -> None:
        self.pinned = None
        try:
            self.engine.release_rows()
        finally:
            self.place.close()


def open_spark(
    con: Any,
    source: str | os.PathLike[str] | Frame,
    *,
    trust_query: bool = False,
    public_tables: Sequence[str] = (),
    memory_limit: str | None = None,
) -> SparkSource:
    """Resolve a source of Spark and pin its state. Reads no row.

    Args:
        con: the session; for a data frame its own is used.
        source: ``catalog.database.table``, or fewer parts, as Spark completes them; a query; a data frame.
        trust_query: the owner answers for a view, a query or a data frame.
        public_tables: refused, since no query of Spark is checked.
        memory_limit: of the driver's DuckDB, such as ``"4GB"``.

    Raises:
        InputError: the session is stopped, or an option does not fit.
        SourceError: missing, no table and not trusted, of a format that cannot be pinned, with names of
            columns that cannot be told apart, or there is no private place for codes.
        EngineFailure: Spark failed.
    """
    if public_tables:
        raise InputError(
            "public_tables= is for queries of DuckDB. Queries of Spark are not checked: add trust_query=True."
        )
    spark = session_of(source.data) if isinstance(source, Frame) else con
    refuse_stopped(spark)
    if isinstance(source, Frame):
        return _frame(spark, source, trust_query, memory_limit)
    if isinstance(source, str) and is_query(source):
        return _query(spark, source, trust_query, memory_limit)
    return _named(spark, os.fspath(source), trust_query, memory_limit)


# -- what it is ---------------------------------------------------------------------------------


def _frame(spark: Any, frame: Frame, trusted: bool, memory_limit: str | None) -> SparkSource:
    if not trusted:
        raise SourceError(f"{shorten(frame.label)} is a data frame. {_NEEDS_TRUST}")
    _refuse_changing(frame.data, "The data frame")
    pinned = pinned_files(spark, frame.data, f"The data frame {shorten(frame.label)}", files=False)
    into = display_name(f"{frame.label}_synthetic")
    return _session(spark, frame.label, "frame", pinned, memory_limit, default_into=into)


def _query(spark: Any, text: str, trusted: bool, memory_limit: str | None) -> SparkSource:
    if not trusted:
        raise SourceError(f"The source is a query. {_NEEDS_TRUST}")
    frame = tried(lambda: spark.sql(f"SELECT * FROM (\n{text}\n)"))  # so that it cannot be a command
    if frame is None:
        raise SourceError("Spark does not accept the query. Run it yourself with LIMIT 0 to check its names.")
    _refuse_changing(frame, "The query")
    return _session(spark, text, "query", pinned_files(spark, frame, "The query", files=False), memory_limit)


def _named(spark: Any, text: str, trusted: bool, memory_limit: str | None) -> SparkSource:
    table = look_up(spark, text)
    own = spark if table.kind == "temporary view" else _own_session(spark)
    into = shown((*table.parts[:-1], f"{table.parts[-1]}_synthetic"))
    if table.kind == "table" and table.location is not None:
        pinned = pinned_table(own, table)
        return _session(own, table.shown, "table", pinned, memory_limit, table=table, default_into=into)
    if not trusted:
        what = f"a {table.kind}" if table.kind != "table" else "a table without a place of its own"
        raise SourceError(f"{shorten(table.shown)} is {what}. {_NEEDS_TRUST}")
    frame = asked(lambda: own.table(table.sql), "opening the view", table.sql)
    _refuse_changing(frame, "The view")
    pinned = pinned_files(own, frame, f"The view {shorten(table.shown)}", files=False)
    view_into = into if table.kind == "view" else None
    return _session(own, table.shown, "view", pinned, memory_limit, table=table, default_into=view_into)


def _refuse_changing(frame: Any, what: str) -> None:
    """A second look at such rows would see others, and a task that is repeated would count others."""
    if asked(lambda: bool(frame.isStreaming), "opening the data frame"):
        raise SourceError(f"{what} is a stream: write it to a table, and release that.")
    if not asked(lambda: is_steady(frame), "looking at the plan of Spark"):
        raise SourceError(
            f"{what} uses an expression that gives other values each time, such as rand() or "
            "monotonically_increasing_id(), or takes some of the rows and not the same each time: LIMIT, "
            "OFFSET or a sample. Write its result to a table, and release that."
        )


def _own_session(spark: Any) -> Any:
    """A session of the same application and the same settings, in which parts stay as they are made."""

    def opened() -> Any:
        own = spark.newSession()
        for name in (str(row[0]) for row in spark.sql("SET").collect()):
            if name.startswith("spark.sql.") and spark.conf.get(name) != own.conf.get(name, None):
                own.conf.set(name, spark.conf.get(name))
        own.conf.set("spark.sql.adaptive.enabled", "false")
        return own

    return asked(opened, "opening a session of Spark")


# -- the session --------------------------------------------------------------------------------


def _session(
    spark: Any,
    name: str,
    kind: RelationKind,
    pinned: PinnedFrame,
    memory_limit: str | None,
    *,
    table: SparkCatalogTable | None = None,
    default_into: str | None = None,
) -> SparkSource:
    schema = asked(lambda: pinned.frame.schema, "reading the schema")
    what = f"The {kind} {shorten(name)}" if kind != "query" else "The query"
    columns = columns_of(schema, what, enforced=pinned.versioned)
    place = private_place(spark)
    try:
        # Parts are in a number that follows from the cores of the application, which are public.
        cores = max(1, int(asked(lambda: spark.sparkContext.defaultParallelism, "counting cores")))
        # They are joined as they come, whatever they hold: no row moves from one to another.
        frame = asked(lambda: pinned.frame.coalesce(_TASKS * cores), "opening the rows")
        rows = SparkRows(spark, frame, columns, ident(NAME), _PARTS * cores, place.uri, pinned.check)
        engine = open_engine(rows, memory_limit)
    except BaseException:
        place.close()
        raise
    trusted = kind != "table"
    statements = (TRUSTED + _SAME, MULTIPLIES) if trusted else ()
    relation = Relation(name, kind, ident(NAME), columns, statements, multiplies=trusted)
    source = OpenedSparkSource(relation=relation, default_into=default_into, table=table)
    return SparkSource(
        engine=engine, private={source.name: source}, memory_limit=memory_limit, place=place, pinned=pinned
    )
