"""How far a release has come: a bar on a terminal, and what the error or the interrupt says that ends it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from dpsyn_sql.common.progress import bar_is_free, in_words, listening, without_bar
from dpsyn_sql.common.stopwatch import Stopwatch, Timing, stopwatch
from dpsyn_sql.errors import DpsynError
from dpsyn_sql.ledger.entries import SqliteEntry
from dpsyn_sql.report.pace import Pace
from dpsyn_sql.report.unfinished import after_debit, cost_of, stays, with_more

LAST_PHASES = ("sample", "write")
"""The phases that end every release."""

_MAY_END_EARLY = frozenset({"fit"})
_WIDTH = 10


class Bars:
    """A listener that shows a line for each phase: its steps, and the time that all its runs took themselves.

    Below is what is known of the time left in the phase that runs, and which of ``last`` are still to come:
    phases that will come for certain.
    """

    def __init__(self, last: Sequence[str] = (), clock: Callable[[], float] = time.perf_counter) -> None:
        self._last, self._clock = tuple(last), clock
        self._paces: dict[str, Pace] = {}
        self._running: list[str] = []
        self._watch, self._spinner = Stopwatch(clock, lambda: 0.0), Spinner("dots")

    def begin(self, name: str, total: int | None) -> None:
        """The phase runs, for the first time or again."""
        self._watch.begin(name, total)
        self._paces[name] = Pace(self._clock(), total, name in _MAY_END_EARLY)
        self._running.append(name)

    def advance(self, name: str, amount: int) -> None:
        """Its bar moves."""
        self._paces[name].advance(amount, self._clock())

    def end(self, name: str) -> None:
        """Its bar is full: it may end before its last step, as a fit that has converged does."""
        self._watch.end(name)
        self._running.remove(name)

    def __rich__(self) -> RenderableType:
        """The lines as they are at this moment; another thread may ask."""
        running, now = tuple(self._running), self._clock()
        paces = dict(self._paces)  # has all that runs
        shown = Table.grid(padding=(0, 1))
        for name, pace in paces.items():
            shown.add_row(*self._cells(name, pace, name in running))
        left = next((words for name in reversed(running) if (words := paces[name].words(now))), "")
        coming = ", ".join(in_words(name) for name in self._last if name not in paces)
        below = [f"{left[0].upper()}{left[1:]} left in this phase."] if left else []
        below += [f"Still to come: {coming}."] if coming and paces else []
        return Group(shown, Text(f"  {' '.join(below)}", style="progress.download")) if below else shown

    def _cells(self, name: str, pace: Pace, running: bool) -> tuple[RenderableType, ...]:
        spent = Text(_clock_face(self._watch.seconds(name)), style="progress.elapsed")
        if not running:
            return "", in_words(name), ProgressBar(1, 1, _WIDTH), spent, ""
        known = pace.total if pace.total and pace.done <= pace.total else None
        bar = ProgressBar(known, pace.done, _WIDTH, pulse=known is None)
        steps = "" if known is None else f"{pace.done:,} of {known:,}"
        return self._spinner, in_words(name), bar, spent, Text(steps, style="progress.download")


def _clock_face(seconds: float) -> str:
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}"


@contextmanager
def progress_bar(last: Sequence[str] = ()) -> Iterator[None]:
    """Show phases on standard error if it is a terminal, and no bar is shown or unwanted already.

    ``last``: the phases that will end the call for certain.
    """
    if not bar_is_free() or not sys.stderr.isatty():
        yield
        return
    bars = Bars(last)
    live = Live(bars, console=Console(stderr=True), transient=True, refresh_per_second=10)
    with live, without_bar(), listening(bars):
        yield


# -- if it is interrupted -----------------------------------------------------------------------------


class ReleaseProgress:
    """How far a release has come; ``str()`` is the message if it is interrupted here."""

    def __init__(self, watch: Stopwatch) -> None:
        self._where, self._charged, self._watch = "before anything was charged", "", watch
        self._paid: dict[str, str] = {}
        self._again, self._inside = "", False

    def timings(self) -> tuple[Timing, ...]:
        """PRIVATE, for the operator: where the time went up to now."""
        return self._watch.timings()

    def __str__(self) -> str:
        return " ".join([f"Interrupted {self._where}.", *([self._charged] if self._charged else [])])

    def ended_by(self, error: Exception) -> Exception:
        """The error that the call ends with. A refusal of a debit stays one; after another debit of this call
        it says that this one stays, as every error does."""
        if not self._paid:
            return error
        told = stays(self._paid, self._again)
        if not self._inside and isinstance(error, DpsynError):
            error.args = (with_more(error, told), *error.args[1:])
            return error
        return after_debit(error, told)

    @contextmanager
    def charging(
        self, name: str, opening: AbstractContextManager[SqliteEntry], *, kept: bool
    ) -> Iterator[SqliteEntry]:
        """Open the entry of a release; ``kept``: its ledger outlives the connection."""
        self._again = "the same call" if kept else "the same call on the same connection"
        again = f"{self._again} continues from here at no further cost."
        self._where = "while the ledger was being charged"
        self._charged = f"The ledger says whether the release {name!r} was charged; if so, {again}"
        with opening as entry:
            self._paid[name], self._inside = cost_of(entry), True
            self._where = "while the source was being measured"
            before = "Nothing was charged this time: the" if entry.replayed else "The"
            self._charged = f"{before} release {name!r} stays charged; {again}"
            yield entry
        self._inside = False

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
def telling_what_stays() -> Iterator[ReleaseProgress]:
    """Every error inside that follows a debit says what was charged and how to go on
    (``report/unfinished.py``); an interrupt keeps its type and gets a note that says how far the release has
    come. What goes on inside is timed."""
    with stopwatch() as watch:
        course = ReleaseProgress(watch)
        try:
            yield course
            return
        except KeyboardInterrupt as interrupt:
            interrupt.add_note(str(course))
            raise
        except Exception as error:
            ended = course.ended_by(error)
            if ended is error:
                raise
        raise ended
