"""Calls into Spark whose errors never pass: their text can quote values of the source."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from dpsyn_sql.errors import EngineFailure, InputError

_T = TypeVar("_T")

_OF_ERRORS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")
"""Of pyspark 4, which prints the text of an error when it is made."""
_OF_CALLS = ("py4j", "py4j.clientserver", "py4j.java_gateway")
"""What goes to Java and back."""


@contextmanager
def silenced() -> Iterator[None]:
    """Without the lines that pyspark logs of errors, which quote values of rows; nested calls do no harm."""
    # Made by pyspark's own class, which it relies on; before version 4 there is none.
    maker = getattr(sys.modules.get("pyspark.logger"), "PySparkLogger", None)
    loggers = [logging.getLogger(name) for name in _OF_CALLS]
    loggers += [] if maker is None else [maker.getLogger(name) for name in _OF_ERRORS]
    before = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = True
    try:
        yield
    finally:
        for logger, disabled in zip(loggers, before, strict=True):
            logger.disabled = disabled


def asked(call: Callable[[], _T], step: str, statement: str = "") -> _T:
    """What a call into Spark gives.

    Raises:
        EngineFailure: it failed; only the class of its error is kept.
    """
    kind = ""
    try:
        with silenced():
            return call()
    except Exception as error:  # noqa: BLE001 - Py4J, Spark and Java raise many kinds
        kind = type(error).__name__
    raise EngineFailure(step, kind, statement)


def is_stopped(spark: Any) -> bool:
    """Whether the Java process of a session has ended, or was told to."""

    def stopped() -> bool:
        java = spark.sparkContext._jsc
        return java is None or bool(java.sc().isStopped())

    return tried(stopped) is not False


def refuse_stopped(spark: Any) -> None:
    """Refuse a session that has ended.

    Raises:
        InputError: it has.
    """
    if is_stopped(spark):
        raise InputError(
            "The Spark session is stopped: start another, SparkSession.builder.getOrCreate(). Nothing was "
            "read or charged."
        )


def tried(call: Callable[[], _T]) -> _T | None:
    """What a call into Spark gives; None where it fails."""
    try:
        with silenced():
            return call()
    except Exception:  # noqa: BLE001 - as above
        return None
