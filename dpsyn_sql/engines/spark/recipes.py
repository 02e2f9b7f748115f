"""From statements and a session that holds codes or a model to what tasks of Spark are sent. PUBLIC side."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import Any

from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.engines.spark.draw import Part, Recipe
from dpsyn_sql.interfaces import PartRows
from dpsyn_sql.sample.rounds import parts
from dpsyn_sql.sqltext.fragments import Fragment, literal
from dpsyn_sql.sqltext.render import render

_BROUGHT = 2**18
"""Rows of codes that are sent together."""

_SETTINGS = ("TimeZone", "memory_limit")
_STEP = "sending the model to the tasks"


def recipe_of(engine: DuckDBEngine, rows: PartRows, query: str, schema: Any) -> Recipe:
    """What every task is sent; ``schema`` is the Arrow schema of the decoded rows, None for counts alone.

    Statements go as plain text: the workers cannot load a class of this package.
    """
    own, slots = rows.statements, b""
    if rows.slots is not None:
        slots = _model(engine, rows.slots)
    return Recipe(
        room=str(own.room),
        staged=str(own.staged),
        draw=str(own.draw),
        check=str(own.check),
        reject=str(own.reject),
        count=str(own.count),
        trim=str(own.trim),
        query=str(query),
        slots_table=str(own.slots),
        slots=slots,
        seed=rows.seed,
        schema=schema,
        settings=tuple((name, _setting(engine, name)) for name in _SETTINGS),
    )


def _model(engine: DuckDBEngine, slots: Fragment) -> bytes:
    import pyarrow as pa

    query = render("load/all", rows=slots)
    return engine.converted(query, lambda found: _packed(found.to_arrow_reader(_BROUGHT), pa), step=_STEP)


def parts_of(engine: DuckDBEngine, rows: PartRows) -> list[Part]:
    """The parts in their order."""
    found, before = list[Part](), 0
    if rows.staged is None:
        wanted = list(parts(rows.rows, gaps=rows.gaps))
        left = rows.left or [count for _, count in wanted]
        for (first, count), kept in zip(wanted, left, strict=True):
            found.append(Part(first, count, before))
            before += kept
        return found
    for stream, count in _streams(engine, render("write/in_order", staged=rows.staged)):
        found.append(Part(0, count, before, stream))
        before += count
    return found


def _streams(engine: DuckDBEngine, query: Fragment) -> list[tuple[bytes, int]]:
    """A result as compressed Arrow streams of ``_BROUGHT`` rows, and how many rows each has."""
    import pyarrow as pa

    def packed(relation: Any) -> list[tuple[bytes, int]]:
        return [(_packed([batch], pa), batch.num_rows) for batch in relation.to_arrow_reader(_BROUGHT)]

    return engine.converted(query, packed, step=_STEP)


def _packed(batches: Iterable[Any], pa: Any) -> bytes:
    sink, writer = io.BytesIO(), None
    for batch in batches:
        if writer is None:
            options = pa.ipc.IpcWriteOptions(compression="zstd")
            writer = pa.ipc.new_stream(sink, batch.schema, options=options)
        writer.write_batch(batch)
    if writer is not None:
        writer.close()
    return sink.getvalue()


def _setting(engine: DuckDBEngine, name: str) -> str:
    sql = render("source/setting", name=literal(name))
    return str(engine.fetch(sql, step=_STEP)["value"][0])
