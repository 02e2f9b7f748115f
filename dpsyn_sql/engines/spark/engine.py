"""PRIVATE: counts of a Spark source. Spark moves the rows; a DuckDB beside every part counts them.

A count is the sum of what the tasks of one job return. Spark hands on the results of completed tasks only,
each once, so that a task that is repeated, or run twice for speed, changes nothing. No accumulator is read,
and nothing is cached: a cached part that was let go is computed again from whatever the files then hold.
Rows of one privacy unit come together by ``repartition(number, unit)``: Spark changes no number of parts that
a caller gave, so that a unit is in one part whatever the session's settings are.
"""

from __future__ import annotations

import builtins
import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import uuid4

import duckdb
from numpy.typing import NDArray

from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.engines.instance import lock, private_instance
from dpsyn_sql.engines.spark import tasks, worker
from dpsyn_sql.engines.spark.catalog import quoted
from dpsyn_sql.engines.spark.guard import is_stopped, sent_along, silenced, tried
from dpsyn_sql.engines.spark.outputs import Files
from dpsyn_sql.engines.spark.pin import SparkRows
from dpsyn_sql.engines.spark.work import Reading, Sums, Types, adding, counting, named_in
from dpsyn_sql.engines.spark.work import encoding as _encoding
from dpsyn_sql.errors import EngineFailure, InputError, InternalError, SourceError, said
from dpsyn_sql.source.engine import Encoding, Tally
from dpsyn_sql.sqltext.fragments import Fragment, ident, literal, temporary_table
from dpsyn_sql.sqltext.render import render

_T = TypeVar("_T")

_CARRIED = re.compile(
    r"BOOLEAN|TINYINT|SMALLINT|INTEGER|BIGINT|FLOAT|DOUBLE|VARCHAR|BLOB|DATE|TIMESTAMP( WITH TIME ZONE)?"
    r"|DECIMAL\(\d+,\d+\)"
)
"""Types of columns that go to tasks; a release names columns of all others, which it cannot read."""

_MOST_PROBED = 64
_STOPPED = (
    "The Spark session was stopped while {step}. What was charged stays charged, and the answers so far are "
    "stored: the same call with another session goes on from there and costs nothing more."
)
# Task results are moved into place when the job commits; the other algorithm lets files of a failed job show.
# Java writes a file's values at once, so few are in one.
_WRITTEN = {"mapreduce.fileoutputcommitter.algorithm.version": "1", "maxRecordsPerFile": "16"}
_PACKED = "packed BINARY"


@dataclass(frozen=True, slots=True)
class _Kept:
    """Codes in files: where, and under which names and types statements read them."""

    uri: str
    types: Types


class SparkEngine(DuckDBEngine):
    """A private DuckDB on the driver, whose source lies in the partitions of a Spark data frame.

    ``open_engine`` makes one. Statements that do not read the source run in the driver's DuckDB, where the
    relation of the source exists and is empty.
    """

    def __init__(self, driver: DuckDBEngine, rows: SparkRows) -> None:
        """Take over ``driver``, a private instance, for the sums of ``rows``."""
        super().__init__(driver._connection, scratch=driver._scratch)
        self._rows: SparkRows | None = rows
        self._apart: Any = None
        self._kept: dict[Fragment, _Kept] = {}
        self._declared: dict[Fragment, Types] = {}
        self._columns = tuple(column for column in rows.columns if _CARRIED.fullmatch(column.sql_type))
        columns = [Fragment(f"{ident(column.name)} {column.sql_type}") for column in self._columns]
        self.execute(
            render("spark/relation", table=rows.relation, columns=columns or [Fragment("dpsyn_row BOOLEAN")]),
            step="declaring the source",
        )
        zone = self.fetch("SELECT current_setting('TimeZone') AS zone", step="reading the time zone")
        value = literal(str(zone["zone"][0]))
        self._settings = [render("source/set_option", name=ident("TimeZone"), value=value)]
        lock(self, ())

    @property
    def in_parts(self) -> bool:
        """The rows lie in partitions."""
        return True

    # -- what is asked of the rows --------------------------------------------------------------

    def sums(
        self, tallies: Sequence[Tally], *, step: str, over: Encoding | None = None, unit: str | None = None
    ) -> Iterator[dict[str, NDArray[Any]]]:
        """As ``SourceEngine``: one job, and one pass over the rows for all tallies.

        Raises:
            EngineFailure: Spark, or DuckDB in a task or on the driver, failed.
            InternalError: keys that are neither integers nor bytes; the rows were released.
            SourceError: the source changed meanwhile.
        """
        if not tallies:
            return
        collected = temporary_table("dpsyn_sums")
        try:
            sums = self._collect(collected, tallies, over, unit, step, together=True)
            for number in range(len(tallies)):
                yield self.fetch(sums.of(number, collected), step=step)
        finally:
            super().drop(collected, step="dropping sums")

    def part_of(self, relation: Fragment, unit: str | None) -> Fragment | None:
        """As ``SourceEngine``: in a task the relation has the rows of a partition."""
        return relation

    def parts(self, over: Encoding) -> int:
        """As ``SourceEngine``: one job."""
        return 1

    def part_sums(
        self, tallies: Sequence[Tally], *, over: Encoding, step: str, keep: bool = False
    ) -> Iterator[tuple[int, dict[str, NDArray[Any]]]]:
        """As ``SourceEngine``: sums of all partitions."""
        if keep:
            self.keep(over, step=step)
        try:
            yield from enumerate(self.sums(tallies, step=step, over=over))
        finally:
            if over.table not in self._kept:  # made in passing: the driver's empty table goes
                self.drop(over.table, step=step)

    def chunks(
        self, columns: Sequence[Fragment], *, over: Encoding, step: str, keep: bool = False
    ) -> Iterator[tuple[int, dict[str, NDArray[Any]]]]:
        """Rows do not come to the driver.

        Raises:
            InternalError: always.
        """
        raise InternalError("rows of codes were asked of Spark, which gives counts alone")

    def gather(self, table: Fragment, tally: Tally, *, step: str, unit: str | None = None) -> None:
        """As ``SourceEngine``: a temporary table of the driver's DuckDB, part by part.

        Raises:
            EngineFailure, InternalError, SourceError: as ``sums``.
        """
        collected = temporary_table("dpsyn_sums")
        try:
            sums = self._collect(collected, [tally], None, unit, step, together=False)
            self.make(table, sums.of(0, collected), step)
        finally:
            super().drop(collected, step="dropping sums")

    def keep(self, encoding: Encoding, *, step: str) -> None:
        """As ``SourceEngine``: Parquet files in the private place.

        Raises:
            EngineFailure, SourceError: as ``sums``.
            InternalError: codes that are no integers within BIGINT; the rows were released.
        """
        rows = self._reachable()
        base, made = self._chain(encoding)
        types = made[-1][1]
        uri = f"{rows.place.rstrip('/')}/{uuid4().hex}"
        self._kept[encoding.table] = _Kept(uri, types)  # from here on ``drop`` removes what there is
        whole = _unit_of(made)
        frame, reading = self._reading(rows, base, [one.query for one, _ in made], whole)
        task = tasks.task_of(_encoding(reading, made, self._settings))

        def written() -> None:
            frame().mapInArrow(task, _PACKED).write.options(**_WRITTEN).mode("error").parquet(uri)

        try:
            self._asked(written, encoding.query, step)
            rows.unchanged()
        except BaseException:
            self._forget(encoding.table)
            raise

    def drop(self, table: Fragment, *, step: str) -> None:
        """As ``SourceEngine``."""
        self._forget(table)
        self._declared.pop(table, None)
        super().drop(table, step=step)

    def probe(self) -> None:
        """Check that the workers have DuckDB, of the driver's version, and Arrow; reads no row of the source.

        Raises:
            InputError: they have not, or run no Python; the message says what to install.
            SourceError: the session was stopped.
        """
        context = self._reachable().spark.sparkContext

        def found() -> list[tuple[str, str, str]]:
            sent_along(tasks, worker)
            parts = max(1, min(_MOST_PROBED, int(context.defaultParallelism)))
            told = context.range(parts, numSlices=parts).mapPartitions(tasks.versions)
            return [tuple(one) for one in told.collect()]

        wanted, kind = duckdb.__version__, ""
        try:
            told = self._asked(found, "", "looking for DuckDB on the workers of Spark")
        except EngineFailure as error:
            kind = error.kind
        if kind:
            raise InputError(
                f"No task of Python runs on the Spark workers ({kind}). They start "
                f"{said(context.pythonExec)}. PYSPARK_PYTHON names it, before the session starts, and every "
                "machine must have it. Nothing was read or charged."
            )
        for python, has, arrow in told:
            lacking = [name for name, version in (("duckdb", has), ("pyarrow", arrow)) if not version]
            if not lacking and has == wanted:
                continue
            fault = (
                f"has no {' and no '.join(lacking)}" if lacking else f"has duckdb {has}, the driver {wanted}"
            )
            raise InputError(
                f"The Python of the Spark workers ({python}) {fault}: run `pip install duckdb=={wanted} "
                "pyarrow` there on every machine, or point PYSPARK_PYTHON to a Python that has them. Both "
                "must count with one version of DuckDB. Nothing was read or charged."
            )

    def release_rows(self) -> None:
        """Forget the rows and remove kept codes, so that counting is an error; harmless when repeated."""
        for table in list(self._kept):
            self._forget(table)
        self._rows = None

    def close(self) -> None:
        """Forget the rows, then as ``DuckDBEngine``."""
        self.release_rows()
        super().close()

    # -- how ------------------------------------------------------------------------------------

    def _collect(
        self,
        collected: Fragment,
        tallies: Sequence[Tally],
        over: Encoding | None,
        unit: str | None,
        step: str,
        *,
        together: bool,
    ) -> Sums:
        """Make the driver's table of the sums of tallies, by one job; ``together``: it fits in memory."""
        rows = self._reachable()
        base, made = self._chain(over)
        sums = Sums(tuple((tally, self._types(tally.query)) for tally in tallies))
        whole = unit or _unit_of(made)
        statements = [*(one.query for one, _ in made), *(tally.query for tally in tallies)]
        frame, reading = self._reading(rows, base, statements, whole)
        task = tasks.task_of(counting(reading, made, sums, self._settings, rows.partitions))
        add = tasks.task_of(adding(sums))
        self.execute(sums.table(collected), step=step)

        def fetched() -> None:
            counts = frame().mapInArrow(task, f"bucket INT, {_PACKED}").repartition(rows.partitions, "bucket")
            packed = counts.select("packed").mapInArrow(add, _PACKED)
            for row in packed.collect() if together else packed.toLocalIterator():
                self._append(collected, tasks.unpacked(row[0]))

        self._asked(fetched, "\n;\n".join(statements), step)
        if base is None:
            rows.unchanged()
        return sums

    def _append(self, table: Fragment, found: Any) -> None:
        name = f"dpsyn_load_{uuid4().hex}"
        self._connection.register(name, found)
        try:
            self._connection.execute(f"INSERT INTO {table} SELECT * FROM {ident(name)}").fetchall()
        finally:
            self._connection.unregister(name)

    def _chain(self, last: Encoding | None) -> tuple[Fragment | None, list[tuple[Encoding, Types]]]:
        """The kept codes that an encoding is made from, None for the source; and what is made on the way, of
        which the driver has empty tables."""
        made: list[Encoding] = []
        while last is not None and last.table not in self._kept:
            made.insert(0, last)
            last = last.of
        for one in made:
            if one.table not in self._declared:
                self.make(one.table, one.query, "declaring codes")
                self._declared[one.table] = self._types(Fragment(f"FROM {one.table}"))
        return None if last is None else last.table, [(one, self._declared[one.table]) for one in made]

    def _types(self, query: Fragment) -> Types:
        """Names and types of the columns of a query, from the driver's empty relations."""
        found = self.fetch(render("source/describe_query", query=query), step="checking a statement")
        return dict(zip(map(str, found["column_name"]), map(str, found["column_type"]), strict=True))

    def _reading(
        self, rows: SparkRows, base: Fragment | None, statements: Sequence[str], unit: str | None
    ) -> tuple[Callable[[], Any], Reading]:
        """What makes the data frame of the columns that statements name, c0, c1, ..., and how it is read.

        With ``unit``, rows without one are left out, and all of one are in one part.
        """
        names = [column.name for column in self._columns] if base is None else []
        if unit is not None and unit not in names:
            raise InternalError("rows of units are asked for where their column is not")
        if base is not None:
            kept = self._kept[base]
            return lambda: self._read(rows, kept), Reading(base, tuple(kept.types.items()), packed=True)
        places, together = named_in(statements, names), None
        if unit is not None:
            owner = names.index(unit)
            places += [] if owner in places else [owner]
            together = places.index(owner)
        columns = [self._columns[place] for place in places]
        reading = Reading(rows.relation, tuple((one.name, one.sql_type) for one in columns), together)

        def frame() -> Any:
            from pyspark.sql import functions

            sent_along(tasks, worker)
            wanted = [functions.col(quoted([one.name])) for one in columns] or [functions.lit(True)]
            selected = rows.frame.select(*(one.alias(f"c{place}") for place, one in enumerate(wanted)))
            if together is None:
                return selected
            its = functions.col(f"c{together}")
            return selected.where(its.isNotNull()).repartition(rows.partitions, its)

        return frame, reading

    def _read(self, rows: SparkRows, kept: _Kept) -> Any:
        """The data frame of kept codes, in a session that hands values over one by one: each is large."""
        sent_along(tasks, worker)
        if self._apart is None:
            self._apart = rows.spark.newSession()
            self._apart.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "1")
        return self._apart.read.parquet(kept.uri)

    def _reachable(self) -> SparkRows:
        if self._rows is None:
            raise InternalError("the rows of the source are counted after the last question")
        return self._rows

    def _forget(self, table: Fragment) -> None:
        """Remove kept codes; what a broken session leaves goes with the private place."""
        kept = self._kept.pop(table, None)
        if kept is not None and self._rows is not None:
            spark = self._rows.spark
            tried(lambda: Files(spark, kept.uri).delete(kept.uri))

    def _asked(self, call: Callable[[], _T], statement: str, step: str) -> _T:
        """What jobs of Spark give; they are cancelled when the user interrupts them.

        Raises:
            EngineFailure: with the class of the error in the task, if it was one of ours.
            SourceError: the session was stopped.
        """
        rows = self._reachable()
        self._admit(statement, step)
        tag = f"dpsyn-{uuid4().hex}"
        kind = "Error"
        try:
            with silenced():
                rows.spark.sparkContext.addJobTag(tag)
                return call()
        except KeyboardInterrupt:
            tried(lambda: rows.spark.sparkContext.cancelJobsWithTag(tag))
            raise
        except InternalError:
            raise
        except Exception as error:  # noqa: BLE001 - Py4J, Spark and Java raise many kinds
            kind = kind_of(error)
        finally:
            tried(lambda: rows.spark.sparkContext.removeJobTag(tag))
        if is_stopped(rows.spark):
            raise SourceError(_STOPPED.format(step=step))
        raise EngineFailure(step, kind, statement)


def open_engine(rows: SparkRows, memory_limit: str | None = None) -> SparkEngine:
    """An engine for the rows of a Spark source; the driver's DuckDB has ``memory_limit``.

    Raises:
        InputError: the memory limit is not one DuckDB understands.
        EngineFailure: there is no place for temporary files.
    """
    driver = private_instance(memory_limit)
    try:
        return SparkEngine(driver, rows)
    except BaseException:
        driver.close()
        raise


def _unit_of(made: Sequence[tuple[Encoding, Types]]) -> str | None:
    return next((one.unit for one, _ in made if one.unit is not None), None)


# -- failures of tasks -----------------------------------------------------------------------------------

# Which error of a task ended a job, by the name of its class: its text can quote values of the source.

_FAILED = re.compile(re.escape(worker.FAILED) + r"(\w+)")


def kind_of(error: Exception) -> str:
    """The class of an error: of that in a task, if it is one."""
    with contextlib.suppress(Exception):
        # A value that Java quotes could hold the same words: only the name of a known class passes.
        known = (name for name in _FAILED.findall(str(error)) if _is_class(name))
        if name := next(known, ""):
            return str(name)
    return type(error).__name__


def _is_class(name: str) -> bool:
    """Whether an error that can happen in a task has this name."""
    places = (duckdb, builtins, tasks)
    return any(isinstance(getattr(place, name, None), type) for place in places)
