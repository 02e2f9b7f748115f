"""A release whose rows are in Spark, and how its model and rows are read again. All of it is public."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpsyn_sql.engines.spark.guard import asked, tried
from dpsyn_sql.engines.spark.outputs import SparkOutput
from dpsyn_sql.errors import InputError, said

_STEP = "reading the synthetic rows"
_MADE: dict[str, Callable[[Any], Any]] = {
    "pandas": lambda frame: frame.toPandas(),
    "arrow": lambda frame: _arrow(frame),
    "polars": lambda frame: _polars(frame),
    "spark": lambda frame: frame,
}


@dataclass(frozen=True, slots=True)
class SparkRelease:
    """Where a release is kept; ``opened_releases`` takes it in place of a connection."""

    output: SparkOutput

    @property
    def name(self) -> str:
        """For messages."""
        return self.output.name

    def fetched(self, folder: Path) -> Path:
        """The database file of the release, copied into a folder of ours.

        Raises:
            InputError: there is none, or it is damaged.
        """
        return self.output.fetch_model(folder)

    def rows(self, kind: str) -> Any:
        """The rows that are there, as a data frame of this kind.

        Raises:
            InputError: an unknown kind, a missing package, or rows that cannot be read.
        """
        if kind not in _MADE:
            raise InputError(f"to_df({said(kind)}) is not known; use one of {', '.join(_MADE)}")
        frame = None
        if tried(self.output.exists):
            frame = asked(lambda: _MADE[kind](self.output.rows()), _STEP)
        if frame is None:
            raise InputError(
                f"The rows of the release cannot be read: {self.name} was removed, or to_df({kind!r}) needs "
                "a package that is missing."
            )
        return frame


def _arrow(frame: Any) -> Any:
    import pyarrow as pa

    if hasattr(frame, "toArrow"):
        return frame.toArrow()
    return pa.Table.from_pandas(frame.toPandas(), preserve_index=False)


def _polars(frame: Any) -> Any:
    try:
        import polars
    except ImportError:
        return None
    return polars.from_arrow(_arrow(frame))
