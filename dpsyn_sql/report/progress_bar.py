"""A progress bar on a terminal, nothing in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from dpsyn_sql.progress import is_listened_to, listening

_IN_WORDS = {
    "discover": "discover domains",
    "encode": "encode the source",
    "count": "count marginals",
    "noise": "add noise",
    "model": "compute expected counts",
    "select": "choose marginals",
    "fit": "fit the model",
    "sample": "sample rows",
    "write": "write",
}


class _Bars:
    """One line per phase; a repeated phase restarts its line."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._tasks: dict[str, TaskID] = {}

    def begin(self, name: str, total: int | None) -> None:
        if name in self._tasks:
            self._progress.reset(self._tasks[name], total=total)
        else:
            self._tasks[name] = self._progress.add_task(_IN_WORDS.get(name, name), total=total)

    def advance(self, name: str, amount: int) -> None:
        self._progress.advance(self._tasks[name], amount)

    def end(self, name: str) -> None:
        """A phase may end before its last step, as a fit that has converged does."""
        done = self._progress.tasks[self._tasks[name]].completed or 1
        self._progress.update(self._tasks[name], total=done, completed=done)


class _Steps(ProgressColumn):
    """Finished steps of all, and the time left at their pace, if the steps are known and not all done."""

    def __init__(self) -> None:
        super().__init__()
        self._remaining = TimeRemainingColumn(elapsed_when_finished=False)

    def render(self, task: Task) -> Text:
        if task.total is None or task.finished:
            return Text("")
        steps = f"{task.completed:,.0f} of {task.total:,.0f}, left "
        return Text(steps, style="progress.download") + self._remaining.render(task)


def _columns() -> tuple[ProgressColumn, ...]:
    """Phase, bar, time since it began; for a phase with known steps also the steps and the time left."""
    return (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        _Steps(),
    )


@contextmanager
def progress_bar() -> Iterator[None]:
    """Show phases on standard error if it is a terminal and nothing else listens."""
    if is_listened_to() or not sys.stderr.isatty():
        yield
        return
    with (
        Progress(*_columns(), console=Console(stderr=True), transient=True) as progress,
        listening(_Bars(progress)),
    ):
        yield
