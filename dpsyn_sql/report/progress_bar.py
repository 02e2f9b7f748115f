"""A progress bar on a terminal, nothing in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from dpsyn_sql.progress import is_listened_to, listening


class _Bars:
    """One line per phase."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._tasks: dict[str, TaskID] = {}

    def begin(self, name: str, total: int | None) -> None:
        if name in self._tasks:
            self._progress.reset(self._tasks[name], total=total)
        else:
            self._tasks[name] = self._progress.add_task(name, total=total)

    def advance(self, name: str, amount: int) -> None:
        self._progress.advance(self._tasks[name], amount)

    def end(self, name: str) -> None:
        self._progress.update(self._tasks[name], total=1, completed=1)


@contextmanager
def progress_bar() -> Iterator[None]:
    """Show phases on standard error if it is a terminal and nobody else listens."""
    if is_listened_to() or not sys.stderr.isatty():
        yield
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with (
        Progress(*columns, console=Console(stderr=True), transient=True) as progress,
        listening(_Bars(progress)),
    ):
        yield
