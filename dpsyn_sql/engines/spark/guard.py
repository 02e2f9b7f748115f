"""Sessions of Spark, and calls into it whose errors never pass: their text can quote values of the source."""

from __future__ import annotations

import importlib
import logging
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
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


def sent_along(*modules: Any) -> None:
    """Workers need not have this package: functions of these modules go to them with the job."""
    from pyspark import cloudpickle

    for module in modules:
        cloudpickle.register_pickle_by_value(module)


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


_JAVA = (
    "Java 17 or later has to be on the path or under JAVA_HOME (such as the package openjdk-17-jre-headless)"
)
_NAME = "dpsyn"


@contextmanager
def started(master: str) -> Iterator[Any]:
    """A session of the classic API, stopped at the end.

    Catalogs and everything else come from ``spark-defaults.conf`` (``SPARK_CONF_DIR``) and
    ``PYSPARK_SUBMIT_ARGS``, as for ``spark-submit``.

    Args:
        master: as ``local[4]``, ``yarn``, ``spark://host:7077`` or ``k8s://https://host``.

    Raises:
        InputError: pyspark is missing, ``master`` is of Spark Connect, or no session starts.
    """
    if master.startswith("sc://"):
        raise InputError(
            f"--spark {master}: a session of Spark Connect does not say how its rows lie in parts. Name a "
            "master, such as yarn, spark://host:7077 or local[4]; catalogs come from SPARK_CONF_DIR."
        )
    session = _session(master)
    try:
        yield session
    finally:
        with suppress(Exception):  # it is gone already
            session.stop()


def _session(master: str) -> Any:
    with suppress(ImportError):
        sql = importlib.import_module("pyspark.sql")
        if master.startswith("local"):  # else workers take the first python3 of the path
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        builder = sql.SparkSession.builder.master(master).appName(_NAME).config("spark.log.level", "ERROR")
        warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")  # of pandas
        with suppress(Exception):  # Java has printed its own text
            session = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
            session.sparkContext.setLogLevel("OFF")  # lines of a log may quote values
            return session
        raise InputError(
            f"No Spark session starts on --spark {master}; what Spark printed above says why. {_JAVA}, the "
            "master must answer, and yarn needs HADOOP_CONF_DIR."
        )
    raise InputError("--spark needs pyspark: pip install 'dpsyn_sql[spark]'")
