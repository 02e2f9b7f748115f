"""What a task of Spark runs to make synthetic rows: its own DuckDB draws and decodes the parts it is given.

PUBLIC side: a task sees a model of noisy answers and codes drawn from it. These functions travel to the
workers by value, so they import the standard library, duckdb and pyarrow only, and ``sample.rounds`` and
``worker``, which travel with them. An error carries the name of its class only.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from dpsyn_sql.engines.spark.worker import database, nameless
from dpsyn_sql.rows.sample.rounds import rows_left

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

_BATCH = 2**16  # rows that leave a task together


@dataclass(frozen=True)
class Recipe:
    """How parts of rows are made: the texts of ``write.publish`` and what they read.

    ``model``: what the table ``slots`` holds as an Arrow stream, empty if codes are brought. ``query``
    decodes a part. ``schema`` is what Spark expects. ``settings`` are those of the task's DuckDB.
    """

    room: str
    staged: str
    draw: str
    check: str
    reject: str
    count: str
    slots: str
    trim: str
    query: str
    model: bytes
    seed: int
    schema: Any
    settings: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Part:
    """Rows of one part: numbered from ``first`` on, ``rows`` of them, after ``before`` rows of earlier parts.

    ``codes``: an Arrow stream of them; None: they are drawn.
    """

    first: int
    rows: int
    before: int
    codes: bytes | None = None


def decoded(recipe: Recipe) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A function for ``mapInArrow``: from rows of ``first, rows, before, codes`` to the parts' rows."""
    return nameless(partial(_decoded, recipe))


def counted(recipe: Recipe) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A function for ``mapInArrow``: from the same rows to ``first`` and ``rows``, those that are left."""
    return nameless(partial(_counted, recipe))


def _decoded(recipe: Recipe, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    with _session(recipe) as con:
        for part in _parts(batches):
            staged_part(con, recipe, part)
            con.execute(f"SET VARIABLE dpsyn_before = {part.before}")
            for batch in con.sql(recipe.query).to_arrow_reader(_BATCH):
                yield from pa.Table.from_batches([batch]).cast(recipe.schema).to_batches()


def _counted(recipe: Recipe, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    with _session(recipe) as con:
        for part in _parts(batches):
            kept = staged_part(con, recipe, part)
            yield pa.RecordBatch.from_pydict(
                {"first": pa.array([part.first], pa.int64()), "rows": pa.array([kept], pa.int64())}
            )


def staged_part(con: duckdb.DuckDBPyConnection, recipe: Recipe, part: Part) -> int:
    """Fill the table of codes with a part; how many rows it has."""
    con.execute(f"DROP TABLE IF EXISTS {recipe.staged}")
    con.execute(recipe.room)
    if part.codes is not None:
        _load(con, recipe.staged, part.codes)
        return part.rows

    def draw(rows: int, seed: int, first: int) -> int:
        if rows > 0:
            _set(con, first, rows, seed)
            con.execute(recipe.draw)
            if con.execute(recipe.check).fetchall() != [(rows, rows)]:
                raise RuntimeError
        return rows

    def reject(first: int) -> int:
        _set(con, first, 0, 0)
        con.execute(recipe.reject)
        _set(con, part.first, 0, 0)
        ((kept,),) = con.execute(recipe.count).fetchall()  # to its end: a result left open blocks the next
        return int(kept)

    def trim(rows: int) -> None:
        _set(con, part.first, rows, 0)
        con.execute(recipe.trim)

    if not recipe.reject:
        return draw(part.rows, recipe.seed, part.first)
    return rows_left(part.rows, recipe.seed, part.first, draw, reject, trim)


def _set(con: duckdb.DuckDBPyConnection, first: int, rows: int, seed: int) -> None:
    for name, value in (("first", first), ("rows", rows), ("seed", seed)):
        con.execute(f"SET VARIABLE dpsyn_{name} = {value}")


def _parts(batches: Iterator[pa.RecordBatch]) -> Iterator[Part]:
    for batch in batches:
        for row in batch.to_pylist():
            yield Part(row["first"], row["rows"], row["before"], row["codes"])


def _load(con: duckdb.DuckDBPyConnection, table: str, stream: bytes) -> None:
    import pyarrow as pa

    # A reader decompresses as it is read: the whole table is never held twice.
    con.register("dpsyn_arriving", pa.ipc.open_stream(io.BytesIO(stream)))
    con.execute(f"INSERT INTO {table} BY NAME FROM dpsyn_arriving")
    con.unregister("dpsyn_arriving")


@contextlib.contextmanager
def _session(recipe: Recipe) -> Iterator[duckdb.DuckDBPyConnection]:
    """A DuckDB with the model."""
    with database() as con:
        for name, value in recipe.settings:
            con.execute(f"SET {name} = '{value}'")
        if recipe.model:
            con.execute(
                f"CREATE TEMP TABLE {recipe.slots} "
                "(node INTEGER, position BIGINT, threshold BIGINT, value BIGINT, alias BIGINT)"
            )
            _load(con, recipe.slots, recipe.model)
        yield con
