"""Which values are a session of Apache Spark, and what is said of those that look like one. Imports nothing.

A session can only exist where pyspark is loaded, so the class that it comes from tells.
"""

from __future__ import annotations

import sys
from typing import Any, Protocol

from dpsyn_sql.errors import InputError

_PACKAGE = "pyspark"
_MODULE = "pyspark.sql"
_CONNECT = ".connect."


class SparkConnection(Protocol):
    """A ``pyspark.sql.SparkSession``, as far as type checkers need to know it."""

    @property
    def sparkContext(self) -> Any: ...  # noqa: N802 - pyspark's name

    @property
    def catalog(self) -> Any: ...

    def newSession(self) -> Any: ...  # noqa: N802 - pyspark's name


def is_spark(value: object) -> bool:
    """Whether this is a Spark session that can be used.

    Raises:
        InputError: it is of Spark, but no session, or one of Spark Connect.
    """
    kind = type(value)
    if not kind.__module__.startswith(f"{_PACKAGE}.") or is_spark_frame(value):
        return False
    _refuse_connect(value)
    if any(base.__name__ == "SparkSession" for base in kind.__mro__):
        return True
    raise InputError(
        f"con is a {kind.__name__} of Spark: give a session, SparkSession.builder.getOrCreate(), which needs "
        "Java 17 or newer (JAVA_HOME), or a pyspark.sql.DataFrame (of pandas on Spark: frame.to_spark())."
    )


def is_spark_frame(value: object) -> bool:
    """Whether this is a data frame of Spark."""
    module = sys.modules.get(_MODULE)
    kind = getattr(module, "DataFrame", None)
    return isinstance(kind, type) and isinstance(value, kind)


def session_of(frame: Any) -> SparkConnection:
    """The session of a data frame of Spark.

    Raises:
        InputError: it is of Spark Connect.
    """
    _refuse_connect(frame)
    session: SparkConnection = frame.sparkSession
    return session


def _refuse_connect(value: object) -> None:
    """The tasks are started, and their files removed, by the driver's own Java process."""
    if _CONNECT in f"{type(value).__module__}.":
        raise InputError(
            "This is a session of Spark Connect, which cannot reach the files of the driver. Run the program "
            "on the driver, with a session of the classic API: spark-submit, or "
            "SparkSession.builder.master(...).getOrCreate()."
        )
