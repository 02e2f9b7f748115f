"""Phases of a release, for a progress bar or a stopwatch; importable from anywhere.

What listeners see (names, durations, fractions) is for the operator, who can read the source
anyway. None of it is stored or written to a release.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol


class Listener(Protocol):
    """Hears of phases as they begin, advance and end."""

    def begin(self, name: str, total: int | None) -> None:
        """A phase begins; ``total`` is the amount of work in it, if known."""

    def advance(self, name: str, amount: int) -> None:
        """``amount`` of the work is done."""

    def end(self, name: str) -> None:
        """The phase is over, by success or failure."""


_listener: ContextVar[Listener | None] = ContextVar("dpsyn_progress", default=None)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Send the phases of everything called inside to ``listener``."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def is_listened_to() -> bool:
    """Whether a listener is set already."""
    return _listener.get() is not None


@contextmanager
def phase(name: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
    """Mark a phase; the value is a function that reports work done."""
    listener = _listener.get()
    if listener is None:
        yield lambda amount: None
        return
    listener.begin(name, total)
    try:
        yield lambda amount: listener.advance(name, amount)
    finally:
        listener.end(name)
