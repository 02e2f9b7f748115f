"""How far a call has come, and where its time went."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import NamedTuple, Protocol

# -- time --------------------------------------------------------------------------------------------

# Where the time of a call goes, phase by phase: PRIVATE, for the operator alone.
#
# How long a phase takes that reads the source follows from its rows. Nothing here is stored, written to a
# release, or computed with.

OTHER = "other"
"""All that belongs to no phase."""

_STEPS = {"discover": "columns", "fit": "steps", "sample": "rows"}
"""Phases whose finished steps follow from noisy answers and public facts, and what these are."""


class Timing(NamedTuple):
    """What a phase took by itself: the time of a phase inside it belongs to that one alone.

    ``phase``: its name in words, or "other" for all that belongs to no phase; ``times``: how often it ran;
    ``seconds``: of the clock; ``processor``: seconds of all cores of this process together; ``done``: what it
    did, such as "9 columns", or nothing.
    """

    phase: str
    times: int
    seconds: float
    processor: float
    done: str = ""


@dataclass(slots=True)
class _Spent:
    times: int = 0
    seconds: float = 0.0
    processor: float = 0.0
    steps: int = 0


class Stopwatch:
    """A listener that adds up the time of each phase by itself; the sum of all is the time since it began."""

    def __init__(
        self,
        clock: Callable[[], float] = time.perf_counter,
        processor: Callable[[], float] = time.process_time,
    ) -> None:
        self._clock, self._processor = clock, processor
        self._spent = {OTHER: _Spent(times=1)}
        self._running = [OTHER]
        self._last = clock(), processor()

    def begin(self, name: str, total: int | None) -> None:
        """The time from here on is of this phase."""
        self._charge()
        self._spent.setdefault(name, _Spent()).times += 1
        self._running.append(name)

    def advance(self, name: str, amount: int) -> None:
        """``amount`` of the work is done."""
        self._spent[name].steps += amount

    def end(self, name: str) -> None:
        """The time from here on is of the phase around this one."""
        self._charge()
        for index in range(len(self._running) - 1, 0, -1):
            if self._running[index] == name:
                del self._running[index]
                return

    def seconds(self, name: str) -> float:
        """What a phase took by itself up to now; another thread may ask."""
        spent = self._spent.get(name)
        running = self._clock() - self._last[0] if self._running[-1] == name else 0.0
        return (0.0 if spent is None else spent.seconds) + running

    def spent(self) -> dict[str, tuple[float, float]]:
        """Seconds of the clock and of all cores by name, in the order of first runs; "other" is last."""
        self._charge()
        names = [*(name for name in self._spent if name != OTHER), OTHER]
        return {name: (self._spent[name].seconds, self._spent[name].processor) for name in names}

    def timings(self) -> tuple[Timing, ...]:
        """The same in words."""
        return tuple(
            Timing(in_words(name), self._spent[name].times, *seconds, self._done(name))
            for name, seconds in self.spent().items()
        )

    def _charge(self) -> None:
        """Give the time since the last call to what is running."""
        now, spent = (self._clock(), self._processor()), self._spent[self._running[-1]]
        spent.seconds += now[0] - self._last[0]
        spent.processor += now[1] - self._last[1]
        self._last = now

    def _done(self, name: str) -> str:
        steps = self._spent[name].steps
        return f"{steps:,} {_STEPS[name]}" if steps and name in _STEPS else ""


@contextmanager
def stopwatch() -> Iterator[Stopwatch]:
    """Time everything inside."""
    watch = Stopwatch()
    with listening(watch):
        yield watch


COLUMNS = ("phase", "times", "seconds", "processor seconds", "done")
"""The columns of ``lines_of``."""


def lines_of(timings: Sequence[Timing]) -> list[tuple[str, str, str, str, str]]:
    """Cells of a table for people: each phase, what belongs to none, and the sum."""
    lines = [
        (
            timing.phase,
            "" if timing.phase == OTHER else f"{timing.times}",
            *_both(timing.seconds, timing.processor),
            timing.done,
        )
        for timing in timings
    ]
    total = _both(sum(timing.seconds for timing in timings), sum(timing.processor for timing in timings))
    return [*lines, ("total", "", *total, "")]


def _both(seconds: float, processor: float) -> tuple[str, str]:
    return f"{seconds:.1f}", f"{processor:.1f}"


# -- progress ----------------------------------------------------------------------------------------

# Phases of a release, for progress bars and stopwatches; importable from anywhere.
#
# What listeners hear (names, durations, amounts) is for the operator, who can read the source anyway. None of
# it is stored or written to a release.

_IN_WORDS = {
    "prepare": "prepare",
    "discover": "discover domains",
    "encode": "encode the source",
    "count": "count marginals",
    "noise": "add noise",
    "ledger": "write the ledger",
    "model": "compute expected counts",
    "select": "choose marginals",
    "build": "build the model",
    "fit": "fit the model",
    "fit target": "fit the target",
    "trust": "see what to trust",
    "sample": "sample rows",
    "write": "write",
}


def in_words(name: str) -> str:
    """What people are shown of the name of a phase."""
    return _IN_WORDS.get(name, name)


class Listener(Protocol):
    """Hears of phases as they begin, advance and end."""

    def begin(self, name: str, total: int | None) -> None:
        """A phase begins; ``total`` is the amount of work in it, if known."""

    def advance(self, name: str, amount: int) -> None:
        """``amount`` of the work is done."""

    def end(self, name: str) -> None:
        """The phase is over, by success or failure."""


_listeners: ContextVar[tuple[Listener, ...]] = ContextVar("dpsyn_listeners", default=())
_bar_is_free: ContextVar[bool] = ContextVar("dpsyn_bar_is_free", default=True)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Send the phases of everything called inside to ``listener`` too."""
    token = _listeners.set((*_listeners.get(), listener))
    try:
        yield
    finally:
        _listeners.reset(token)


@contextmanager
def phase(name: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
    """Mark a phase; the value is a function that reports work done."""
    listeners, begun = _listeners.get(), list[Listener]()

    def advance(amount: int) -> None:
        for listener in listeners:
            listener.advance(name, amount)

    try:
        for listener in listeners:
            listener.begin(name, total)
            begun.append(listener)
        yield advance
    finally:
        for listener in begun:
            listener.end(name)


def bar_is_free() -> bool:
    """Whether a bar may be shown here."""
    return _bar_is_free.get()


@contextmanager
def without_bar() -> Iterator[None]:
    """No bar is shown of anything called inside: there is one already, or it is not wanted."""
    token = _bar_is_free.set(False)
    try:
        yield
    finally:
        _bar_is_free.reset(token)
