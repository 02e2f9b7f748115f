"""PRIVATE: what a task does with the rows of its partition: plain functions on Arrow batches.

Workers need DuckDB and pyarrow, not this package: the functions travel by value, and the statements as text.
So nothing else may be imported here but ``worker``, which travels too. What a task returns counts once,
however often it ran: Spark takes the results of one completed attempt, and a further attempt on the same rows
gives the same sums. (The same codes too: which rows of a unit are kept depends on nothing but the unit's own
rows, not on their order.)

An error leaves a task as the name of its class alone: messages of DuckDB and Arrow quote values.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import duckdb
import pyarrow as pa
from pyarrow import compute

from dpsyn_sql.engines.spark.worker import database, nameless

BATCH = "dpsyn_batch"
"""The relation of one chunk of rows, with the columns c0, c1, ..."""

CHUNK_ROWS = 2**19
CHUNK_BYTES = 2**26
"""Rows and bytes of Arrow data that are looked at together; a batch of Spark is never cut."""

_ENCRYPTED = ("SET force_mbedtls_unsafe = true", "SET temp_file_encryption = true")
"""Settings by which what is spilled is encrypted."""

_OUT_ROWS = 2**20
PIECE_ROWS = 2**12
"""Rows of counts that travel as one value: Spark hands thousands of values over at a time."""
_BUCKET = "bucket"
_MEMORY = 2**30
"""Bytes for the DuckDB of a task, unless Spark limits the memory of its Python workers."""

Batches = Iterable[pa.RecordBatch]
Task = Callable[[Batches], Iterator[pa.RecordBatch]]


@dataclass(frozen=True)
class Work:
    """What a task does, as text of DuckDB that was made on the driver.

    Args:
        duckdb: the version that must run it: hashes and casts differ between versions.
        settings: statements for a new instance.
        prepare: statements before the first chunk is looked at; they see it, but must not read rows of it.
        each: statements for each chunk.
        count: statements whenever ``limit`` rows have come, and at the end.
        result: the query of what the task returns, with the types of Spark.
        clear: statements after each ``count``, so that no row counts twice.
        unit: the place of the column that parts were made by, None if they are any rows.
        limit: rows to be counted together; None: all of the partition.
        streams: ``result`` is returned after each ``count``, not only once at the end.
        packed: rows come as values of ``packed``, not as columns.
        buckets: what is returned is in order of its first column, ``bucket``, and each value of ``packed``
            belongs to one bucket.
    """

    duckdb: str
    settings: tuple[str, ...]
    prepare: tuple[str, ...]
    each: tuple[str, ...]
    count: tuple[str, ...]
    result: str
    clear: tuple[str, ...]
    unit: int | None
    limit: int | None
    streams: bool
    packed: bool = False
    buckets: bool = False


class VersionDiffers(Exception):
    """The worker has another DuckDB than the driver."""


def task_of(work: Work) -> Task:
    """The function that ``mapInArrow`` runs in each task.

    It returns few values of bytes in a column ``packed``, each a stream of Arrow with many rows: Spark passes
    a value on as it is, and takes a row apart, column by column. ``buckets``: ``bucket`` INT is before it.
    """
    return nameless(partial(_worked, work))


def unpacked(data: Any) -> pa.Table:
    """The rows in one value of ``packed``, bytes or a buffer of Arrow; nothing is copied."""
    return pa.ipc.open_stream(pa.py_buffer(data)).read_all()


def versions(_: Iterable[object]) -> Iterator[tuple[str, str, str]]:
    """The worker's Python and its versions of DuckDB and pyarrow; empty where one is missing."""
    import importlib
    import sys

    found = []
    for name in ("duckdb", "pyarrow"):
        try:
            found.append(str(importlib.import_module(name).__version__))
        except Exception:  # noqa: BLE001 - whatever stops it, it is not there
            found.append("")
    yield sys.executable or "python", found[0], found[1]


def _worked(work: Work, batches: Batches) -> Iterator[pa.RecordBatch]:
    if duckdb.__version__ != work.duckdb:
        raise VersionDiffers
    pending, begun = 0, False
    with contextlib.ExitStack() as stack:
        for chunk in _unpacked(batches, work.limit) if work.packed else _chunks(batches, work.unit):
            if not begun:  # a partition without rows costs nothing
                connection = stack.enter_context(_database(work.settings))
            connection.register(BATCH, chunk)
            if not begun:
                _run(connection, work.prepare)
                begun = True
            _run(connection, work.each)
            pending += chunk.num_rows
            if work.limit is not None and pending >= work.limit:
                yield from _counted(connection, work)
                pending = 0
        if pending:
            yield from _counted(connection, work)
        if begun and not work.streams:
            yield from _returned(connection, work)


def _counted(connection: duckdb.DuckDBPyConnection, work: Work) -> Iterator[pa.RecordBatch]:
    _run(connection, work.count)
    if work.streams:
        yield from _returned(connection, work)
    _run(connection, work.clear)


def _run(connection: duckdb.DuckDBPyConnection, statements: Iterable[str]) -> None:
    for statement in statements:
        connection.execute(statement)


def _returned(connection: duckdb.DuckDBPyConnection, work: Work) -> Iterator[pa.RecordBatch]:
    for batch in connection.sql(work.result).to_arrow_reader(_OUT_ROWS):
        if not work.buckets:
            yield from _values(batch, [])
            continue
        runs, first = compute.run_end_encode(batch.column(_BUCKET)), 0
        counts = batch.drop_columns([_BUCKET])
        for bucket, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
            for start in range(first, end, PIECE_ROWS):
                part = counts.slice(start, min(PIECE_ROWS, end - start))
                yield from _values(part, [pa.array([bucket], pa.int32())])
            first = end


def _values(batch: pa.RecordBatch, before: list[pa.Array]) -> Iterator[pa.RecordBatch]:
    """The rows as one value, after the columns ``before``; nothing of no rows."""
    if batch.num_rows:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        data = sink.getvalue()
        ends = pa.array([0, data.size], pa.int32()).buffers()[1]
        column = pa.Array.from_buffers(pa.binary(), 1, [None, ends, data])
        names = [_BUCKET, "packed"] if before else ["packed"]
        yield pa.RecordBatch.from_arrays([*before, column], names=names)


@contextlib.contextmanager
def _database(settings: Iterable[str]) -> Iterator[duckdb.DuckDBPyConnection]:
    """A DuckDB that can read nothing but the rows of its task."""
    with database(
        memory_limit=f"{_memory()}B",
        python_enable_replacements="false",
        autoinstall_known_extensions="false",
        autoload_known_extensions="false",
    ) as connection:
        # As on the driver: encryption of what is spilled fails where the cipher cannot be had.
        with contextlib.suppress(duckdb.Error):
            _run(connection, _ENCRYPTED)
        _run(connection, settings)
        _run(connection, ("SET enable_external_access = false", "SET lock_configuration = true"))
        yield connection


def _memory() -> int:
    """Bytes for DuckDB: half of what Spark allows a Python worker (``spark.executor.pyspark.memory``), else a
    constant."""
    allowed = os.environ.get("PYSPARK_EXECUTOR_MEMORY_MB", "")
    return int(allowed) * 2**19 if allowed.isdigit() and int(allowed) else _MEMORY


def _chunks(batches: Batches, unit: int | None = None) -> Iterator[pa.Table]:
    """Batches put together to tables of about ``CHUNK_ROWS`` rows or ``CHUNK_BYTES`` bytes; none is empty."""
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        held.append(_readable(batch, unit))
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= CHUNK_ROWS or size >= CHUNK_BYTES:
            yield pa.Table.from_batches(held)
            held, rows, size = [], 0, 0
    if held:
        yield pa.Table.from_batches(held)


def _unpacked(batches: Batches, least: int | None) -> Iterator[pa.Table]:
    """The rows of values of ``packed``, put together to tables of at least ``least`` rows but for the last;
    None: of about ``CHUNK_ROWS`` rows."""
    held: list[pa.Table] = []
    rows = 0
    for batch in batches:
        for value in batch.column(0):
            held.append(unpacked(value.as_buffer()))
            rows += held[-1].num_rows
            if rows >= (least or CHUNK_ROWS):
                yield pa.concat_tables(held)
                held, rows = [], 0
    if held:
        yield pa.concat_tables(held)


def _readable(batch: pa.RecordBatch, unit: int | None) -> pa.RecordBatch:
    """The batch with text that is UTF-8 throughout: Spark passes any bytes, and DuckDB fails on others.

    Bytes that are no text become the replacement character, value by value. Two such values can then be one,
    and Spark made parts by what they were: a unit must not be one of them, so there it becomes NULL.
    """
    columns = [
        _decoded(column, None if place == unit else "replace") if _is_broken(column) else column
        for place, column in enumerate(batch.columns)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _is_broken(column: pa.Array) -> bool:
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        try:
            column.validate(full=True)
        except pa.ArrowInvalid:
            return True
    return False


def _decoded(column: pa.Array, errors: str | None) -> pa.Array:
    """Text of bytes; ``errors`` as ``bytes.decode``, or None: what is no text is NULL."""
    kind = pa.binary() if pa.types.is_string(column.type) else pa.large_binary()

    def text(value: bytes | None) -> str | None:
        if value is None:
            return None
        try:
            return value.decode("utf-8", errors or "strict")
        except UnicodeDecodeError:
            return None

    return pa.array([text(value) for value in column.view(kind).to_pylist()], column.type)
