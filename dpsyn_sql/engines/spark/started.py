"""A Spark session for a command, which has none: what Spark's own configuration says, on the master named."""

from __future__ import annotations

import importlib
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from dpsyn_sql.errors import InputError

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
