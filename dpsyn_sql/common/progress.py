"""Phases of a release, for progress bars and stopwatches; importable from anywhere.

What listeners hear (names, durations, amounts) is for the operator, who can read the source anyway. None of
it is stored or written to a release.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

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
