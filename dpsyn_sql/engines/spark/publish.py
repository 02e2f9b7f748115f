"""Spark makes the synthetic rows in its tasks and writes them. PUBLIC side: no source can be read here.

Tasks are sent statements, and codes or a model from the session that holds them.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dpsyn_sql.attributes.shape import Shape
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.engines.spark import draw, worker
from dpsyn_sql.engines.spark.catalog import schemas_of
from dpsyn_sql.engines.spark.draw import Part, Recipe
from dpsyn_sql.engines.spark.guard import asked, sent_along
from dpsyn_sql.engines.spark.outputs import SparkOutput, without_rows
from dpsyn_sql.errors import InternalError, PublishError
from dpsyn_sql.rows.sample import rounds
from dpsyn_sql.rows.sample.rounds import parts
from dpsyn_sql.rows.write.tasks import PartRows
from dpsyn_sql.source.engine import Engine
from dpsyn_sql.sqltext.fragments import Fragment, literal
from dpsyn_sql.sqltext.render import render

_SENT = "first BIGINT, rows BIGINT, before BIGINT, codes BINARY"
_LEFT = "first BIGINT, rows BIGINT"
_MAKING = "making the synthetic rows in tasks of Spark"
_SENDING = "sending the model to the tasks"
_CHANGED = (
    "{name!r} exists and differs from what this call writes: it was changed, or it was made with another "
    "seed=, rows= or package version, or under a time of limits= (which can change how rows are drawn). It "
    "was not changed. Add replace=True to overwrite it."
)
_BROUGHT = 2**18
"""Rows of codes that are sent together."""

_SETTINGS = ("TimeZone", "memory_limit")


@dataclass(frozen=True, slots=True)
class SparkPublisher:
    """Makes and writes rows of one output (``RowPublisher``)."""

    spark: Any
    output: SparkOutput
    replace: bool
    only_same: bool

    def left(self, engine: Engine, rows: PartRows) -> tuple[int, ...]:
        """As ``RowPublisher``."""
        own = _own(engine)
        frame = self._in_tasks(own, rows, draw.counted(recipe_of(own, rows, "", None)), _LEFT)
        found = asked(lambda: [(int(row["first"]), int(row["rows"])) for row in frame.collect()], _MAKING)
        if len(found) != len(parts_of(own, rows)):
            raise InternalError("parts of the synthetic rows were lost in Spark")
        return tuple(count for _, count in sorted(found))

    def publish(
        self,
        engine: Engine,
        rows: PartRows,
        query: str,
        shape: Shape,
        comments: Mapping[str, str],
        words: str,
        release: str,
        model: Path,
    ) -> None:
        """As ``RowPublisher``."""
        own, output = _own(engine), self.output
        columns, carried = schemas_of(shape, comments)
        frame = self._in_tasks(own, rows, draw.decoded(recipe_of(own, rows, query, carried)), columns)
        there = output.exists()
        if there and self.only_same:
            if not _same(output.rows(), frame):
                raise PublishError(_CHANGED.format(name=output.name))
            if output.has_model():  # all written before
                return
        else:
            if self.replace:
                output.drop_model()  # never the model of other rows
            elif output.has_model():
                raise PublishError(without_rows(output))
            output.put_rows(frame, release, words, replace=self.replace)
        output.put_model(model, release, words)

    def _in_tasks(self, engine: DuckDBEngine, rows: PartRows, task: Any, schema: Any) -> Any:
        """A data frame of what tasks give of the parts."""
        sent_along(draw, rounds, worker)
        sent = [(part.first, part.rows, part.before, part.codes) for part in parts_of(engine, rows)]
        parts = asked(lambda: self.spark.createDataFrame(sent, _SENT), _MAKING)
        return asked(lambda: parts.mapInArrow(task, schema), _MAKING)


def _own(engine: Engine) -> DuckDBEngine:
    if not isinstance(engine, DuckDBEngine):
        raise InternalError("rows for Spark are staged in a DuckDB of ours")
    return engine


def _same(there: Any, made: Any) -> bool:
    """Whether two data frames have the same rows, each as often, in any order."""

    def equal() -> bool:
        if there.columns != made.columns:
            return False
        return bool(there.exceptAll(made).isEmpty() and made.exceptAll(there).isEmpty())

    return asked(equal, "comparing the output that is there")


def recipe_of(engine: DuckDBEngine, rows: PartRows, query: str, schema: Any) -> Recipe:
    """What every task is sent; ``schema`` is the Arrow schema of the decoded rows, None for counts alone.

    Statements go as plain text: the workers cannot load a class of this package.
    """
    plain: dict[str, Any] = {name: str(text) for name, text in asdict(rows.statements).items()}
    return Recipe(
        **plain,
        query=str(query),
        model=b"" if rows.slots is None else _model(engine, rows.slots),
        seed=rows.seed,
        schema=schema,
        settings=tuple((name, _setting(engine, name)) for name in _SETTINGS),
    )


def _model(engine: DuckDBEngine, slots: Fragment) -> bytes:
    import pyarrow as pa

    query = render("load/all", rows=slots)
    return engine.converted(query, lambda found: _packed(found.to_arrow_reader(_BROUGHT), pa), step=_SENDING)


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

    return engine.converted(query, packed, step=_SENDING)


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
    return str(engine.fetch(sql, step=_SENDING)["value"][0])
