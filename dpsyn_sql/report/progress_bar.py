"""How far a release has come: a bar on a terminal, and a note on the KeyboardInterrupt that ends it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

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

from dpsyn_sql.common.progress import is_listened_to, listening
from dpsyn_sql.ledger.entries import SqliteEntry

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


# -- if it is interrupted -----------------------------------------------------------------------------


class ReleaseProgress:
    """How far a release has come; ``str()`` is the message if it ends here."""

    def __init__(self) -> None:
        self._where, self._charged = "before anything was charged", ""

    def __str__(self) -> str:
        return " ".join([f"Interrupted {self._where}.", *([self._charged] if self._charged else [])])

    @contextmanager
    def charging(
        self, name: str, opening: AbstractContextManager[SqliteEntry], *, kept: bool
    ) -> Iterator[SqliteEntry]:
        """Open the entry of a release; ``kept``: its ledger outlives the connection."""
        again = "the same call" if kept else "the same call on the same connection"
        again += " continues from here at no further cost."
        self._where = "while the ledger was being charged"
        self._charged = f"The ledger says whether the release {name!r} was charged; if so, {again}"
        with opening as entry:
            self._where = "while the source was being measured"
            before = "Nothing was charged this time: the" if entry.replayed else "The"
            self._charged = f"{before} release {name!r} stays charged; {again}"
            yield entry

    def measured(self) -> None:
        """All answers are stored."""
        self._where = "after everything was measured, before the output was written"

    def writing(self) -> None:
        """The output is about to be written."""
        self._where = "while the output was being written"

    def written(self, target: str) -> None:
        """The output is written."""
        self._where = f"after {target} was written"


@contextmanager
def noting_interrupts() -> Iterator[ReleaseProgress]:
    """An interrupt inside keeps its type and gets a note that says how far the release has come."""
    course = ReleaseProgress()
    try:
        yield course
    except KeyboardInterrupt as interrupt:
        interrupt.add_note(str(course))
        raise
