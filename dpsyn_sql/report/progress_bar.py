"""How far a release has come: a bar on a terminal, and what the error or the interrupt says that ends it.

Errors of Python and its libraries can quote values of the source. They are replaced by ours, which name the
class, and the line of our code.
"""

from __future__ import annotations

import errno
import math
import sys
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from dpsyn_sql.accounting.account import describe
from dpsyn_sql.common.progress import (
    Stopwatch,
    Timing,
    bar_is_free,
    in_words,
    listening,
    stopwatch,
    without_bar,
)
from dpsyn_sql.errors import (
    DpsynError,
    InputError,
    InternalError,
    PrivacyBudgetExceeded,
    ReleaseChanged,
    ReleaseStopped,
    ReleaseUnfinished,
    place_of,
    unexpected,
)
from dpsyn_sql.ledger.entries import SqliteEntry

# -- how long a phase will go on, said only where its steps so far tell it ----------------------------

_FEWEST, _BRIEFEST = 3, 1.0
"""Reports and seconds before anything is said."""
_ALIKE = 2.0
"""The first half of the steps and the second took as long within this factor, or nothing is said."""
_LATE = 0.5
"""A report that takes a second and this share of all the time so far ends what was said."""
_MOST_MARKS = 256

_SECOND, _MINUTE, _HOUR = 1.0, 60.0, 3600.0


@dataclass(slots=True)
class Pace:
    """The steps of one run of a phase.

    ``begun``: seconds of a clock; ``total``: the amount of work, or None; ``at_most``: the phase may end
    before, as a fit that has converged does.
    """

    begun: float
    total: int | None
    at_most: bool = False
    done: int = 0
    _reports: int = 0
    _last: float = 0.0
    _even: bool = False
    _apart: int = 1
    _marks: list[tuple[int, float]] = field(default_factory=list)

    def advance(self, amount: int, now: float) -> None:
        """``amount`` of the work is done at ``now``, in seconds of the clock."""
        if amount <= 0:
            return
        self.done, self._reports, self._last = self.done + amount, self._reports + 1, now
        self._even = self._is_even()
        if self._reports % self._apart == 0:
            self._marks.append((self.done, now))
        if len(self._marks) > _MOST_MARKS:
            del self._marks[::2]
            self._apart *= 2

    def _is_even(self) -> bool:
        """Whether the first half of the steps, as far as there was a report, took as long as the others."""
        half = bisect_right(self._marks, (self.done // 2, math.inf))
        if half == 0:
            return False
        done, moment = self._marks[half - 1]
        first, second = (moment - self.begun) / done, (self._last - moment) / (self.done - done)
        return first < second * _ALIKE and second < first * _ALIKE

    def left(self, now: float) -> float | None:
        """Seconds that the phase goes on, at the pace of all its steps; None: they do not tell.

        Between two reports it counts down.
        """
        spent = self._last - self.begun
        if self.total is None or self._reports < _FEWEST or spent < _BRIEFEST or self.done >= self.total:
            return None
        waited = now - self._last
        if not self._even or waited > _LATE * spent + _SECOND:
            return None
        left = spent / self.done * (self.total - self.done) - waited
        return left if left > 0 else None

    def words(self, now: float) -> str:
        """The same for people, such as "about 3 min"; empty: nothing can be said."""
        left = self.left(now)
        if left is None:
            return ""
        return f"{'at most' if self.at_most else 'about'} {duration(left)}"


def duration(seconds: float) -> str:
    """Seconds in one or two units, as coarse as a guess is: ``5 s``, ``40 s``, ``3 min``, ``2 h 10 min``."""
    if seconds < 55:
        step = 5 if seconds < 30 else 10
        return f"{max(5, round(seconds / step) * step)} s"
    if seconds < _HOUR - _MINUTE / 2:
        return f"{round(seconds / _MINUTE)} min"
    tens = round(seconds / (10 * _MINUTE))
    hours, minutes = tens // 6, tens % 6 * 10
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


# -- the bar ------------------------------------------------------------------------------------------

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
        total = pace.total if pace.total and pace.done <= pace.total else None
        bar = ProgressBar(total, pace.done, _WIDTH, pulse=total is None)
        steps = "" if total is None else f"{pace.done:,} of {total:,}"
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
        charge_words = stays(self._paid, self._again)
        if not self._inside and isinstance(error, DpsynError):
            error.args = (with_more(error, charge_words), *error.args[1:])
            return error
        return after_debit(error, charge_words)

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
    """Every error inside that follows a debit says what was charged and how to go on; an interrupt keeps its
    type and gets a note that says how far the release has come. What goes on inside is timed."""
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


# -- if an error ends it after its debit --------------------------------------------------------------

_SAYS_HOW_TO_GO_ON = ("stays charged", "costs nothing", "no further cost")
_MENDED = "It goes on in the same way after an upgrade of dpsyn_sql that mends the fault."
_NO_MEMORY = (
    "The process ran out of memory{where}. Give it more, or a table with fewer columns or categories."
)


def cost_of(entry: SqliteEntry) -> str:
    """What this call has paid for a release; empty for a debit that was there."""
    return "" if entry.cost is None else describe(entry.cost, entry.account.delta)


def stays(paid: Mapping[str, str], again: str) -> str:
    """What holds after an error.

    Args:
        paid: the releases whose debits are there, each with what this call has paid for it, in words.
        again: "the same call", and on what.
    """
    costs = {name: f" ({cost})" if cost else "" for name, cost in paid.items()}
    if len(costs) == 1:
        ((name, cost),) = costs.items()
        charged = f"release {name!r} stays charged{cost}"
    else:
        charged = f"releases {', '.join(f'{name!r}{cost}' for name, cost in costs.items())} stay charged"
    nothing = "The" if any(costs.values()) else "Nothing was charged this time: the"
    return f"{nothing} {charged}; {again} goes on from here at no further cost."


def with_more(error: Exception, addition: str) -> str:
    """The message of an error, and what is told after it."""
    text = str(error).rstrip()
    return f"{text if text.endswith(('.', '!', '?')) else f'{text}.'} {addition}"


def after_debit(error: Exception, charge_words: str) -> Exception:
    """The error that a call ends with: the same one if it is ours or a warning, and says what holds.

    Args:
        error: what was raised after a debit.
        charge_words: as ``stays`` gives it.
    """
    if isinstance(error, Warning):  # the caller asked for errors in their place; their text is ours
        error.add_note(charge_words)
        return error
    if isinstance(error, ReleaseStopped | ReleaseChanged):  # the same call does not go on: they say what does
        return error
    if isinstance(error, InputError | PrivacyBudgetExceeded):  # they say that nothing was charged
        return ReleaseUnfinished(with_more(error, charge_words))
    if isinstance(error, DpsynError):
        if any(phrase in str(error) for phrase in _SAYS_HOW_TO_GO_ON):
            return error
        mended = f" {_MENDED}" if isinstance(error, InternalError) else ""
        error.args = (f"{with_more(error, charge_words)}{mended}", *error.args[1:])
        return error
    where = place_of(error)
    if isinstance(error, MemoryError):
        return ReleaseUnfinished(f"{_NO_MEMORY.format(where=where)} {charge_words}")
    if isinstance(error, OSError):
        code = errno.errorcode.get(error.errno or 0, type(error).__name__)
        return ReleaseUnfinished(f"The system refused a file or a folder ({code}){where}. {charge_words}")
    return InternalError(f"{unexpected(error)} {charge_words} {_MENDED}")
