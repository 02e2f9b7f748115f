"""Which error of a task ended a job, by the name of its class: its text can quote values of the source."""

from __future__ import annotations

import builtins
import contextlib
import re

import duckdb

from dpsyn_sql.engines.spark import tasks, worker

_FAILED = re.compile(re.escape(worker.FAILED) + r"(\w+)")


def kind_of(error: Exception) -> str:
    """The class of an error: of that in a task, if it is one."""
    with contextlib.suppress(Exception):
        # A value that Java quotes could hold the same words: only the name of a known class passes.
        known = (name for name in _FAILED.findall(str(error)) if _is_class(name))
        if name := next(known, ""):
            return str(name)
    return type(error).__name__


def _is_class(name: str) -> bool:
    """Whether an error that can happen in a task has this name."""
    places = (duckdb, builtins, tasks)
    return any(isinstance(getattr(place, name, None), type) for place in places)
