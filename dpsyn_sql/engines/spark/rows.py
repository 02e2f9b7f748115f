"""PRIVATE: the rows of a Spark source, as the engine is given them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from dpsyn_sql.source.relation import Column
from dpsyn_sql.sqltext.fragments import Fragment


def _kept_still() -> None:
    """A source of which one version is read does not change."""


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
    unchanged: Callable[[], None] = field(default=_kept_still, repr=False)
