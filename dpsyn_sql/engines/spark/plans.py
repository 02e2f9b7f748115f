"""What Spark's plan of a data frame says about its rows. No row is read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

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
