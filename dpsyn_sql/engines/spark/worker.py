"""What every task of ours needs on a worker. It travels there by value: nothing else may be imported."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import duckdb

FAILED = "dpsyn_sql task failed: "
"""Before the name of the class of an error."""


def local_folder() -> str | None:
    """A folder of Spark's own for this worker, None if there is none."""
    listed = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")
    return next((folder for folder in listed if folder and os.access(folder, os.W_OK)), None)


@contextlib.contextmanager
def database(**config: Any) -> Iterator[duckdb.DuckDBPyConnection]:
    """A DuckDB of one thread (a task is one of as many as the worker has cores), which spills into a folder
    that only its user can enter; both go at the end.

    The folder lies in the folder that Spark gave the worker, so that of a killed worker it goes with the
    application's own files.
    """
    folder = tempfile.mkdtemp(prefix="dpsyn-task-", dir=local_folder())  # mode 0700
    try:
        config |= {"threads": "1", "temp_directory": folder}
        with duckdb.connect(":memory:", config=config) as connection:
            yield connection
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def nameless(run: Callable[[Any], Iterator[Any]]) -> Callable[[Any], Iterator[Any]]:
    """The same task; of an error only the name of its class goes on: messages of drivers quote values."""

    def task(batches: Any) -> Iterator[Any]:
        kind = ""
        try:
            yield from run(batches)
        except Exception as error:  # noqa: BLE001 - whatever it is, its text stays here
            kind = type(error).__name__
        if kind:  # outside of the block: an error that was raised inside would carry the first one along
            raise RuntimeError(FAILED + kind)

    return task
