"""Spark makes the synthetic rows in its tasks and writes them. PUBLIC side: no source can be read here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpsyn_sql.domain.shape import Shape
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.engines.spark import draw, scratch
from dpsyn_sql.engines.spark.guard import asked
from dpsyn_sql.engines.spark.outputs import SparkOutput, without_rows
from dpsyn_sql.engines.spark.recipes import parts_of, recipe_of
from dpsyn_sql.engines.spark.types import schemas_of
from dpsyn_sql.errors import InternalError, PublishError
from dpsyn_sql.interfaces import Engine, PartRows
from dpsyn_sql.sample import rounds

_SENT = "first BIGINT, rows BIGINT, before BIGINT, codes BINARY"
_LEFT = "first BIGINT, rows BIGINT"


@dataclass(frozen=True, slots=True)
class SparkPublisher:
    """Makes and writes rows of one output (``interfaces.RowPublisher``)."""

    spark: Any
    output: SparkOutput
    replace: bool
    only_same: bool

    def left(self, engine: Engine, rows: PartRows) -> tuple[int, ...]:
        """As ``interfaces.RowPublisher``."""
        own = _own(engine)
        frame = self._in_tasks(own, rows, draw.counted(recipe_of(own, rows, "", None)), _LEFT)
        found = asked(lambda: [(int(row["first"]), int(row["rows"])) for row in frame.collect()], _STEP)
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
        """As ``interfaces.RowPublisher``."""
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
        from pyspark import cloudpickle

        for module in (draw, rounds, scratch):  # workers have no package of ours
            cloudpickle.register_pickle_by_value(module)
        sent = [(part.first, part.rows, part.before, part.codes) for part in parts_of(engine, rows)]
        parts = asked(lambda: self.spark.createDataFrame(sent, _SENT), _STEP)
        return asked(lambda: parts.mapInArrow(task, schema), _STEP)


_STEP = "making the synthetic rows in tasks of Spark"
_CHANGED = (
    "{name!r} exists and differs from what this call writes: it was changed, or it was made with another "
    "seed=, rows= or package version, or under a time_limit= (which can change how rows are drawn). It was "
    "not changed. Add replace=True to overwrite it."
)


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
