"""Warnings to the person who called the package, or to a listener that keeps them; importable from anywhere.

They depend on public facts and noisy answers only.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_OURS = ("dpsyn_sql", "contextlib")

_kept: ContextVar[list[str] | None] = ContextVar("dpsyn_notices", default=None)


@contextmanager
def keeping() -> Iterator[list[str]]:
    """The warnings of everything called inside, in a list, each once; none of them is shown."""
    kept: list[str] = []
    token = _kept.set(kept)
    try:
        yield kept
    finally:
        _kept.reset(token)


def warn(text: str) -> None:
    """Warn at the line that called the package, at any depth of calls; or tell the listener."""
    kept = _kept.get()
    if kept is not None:
        if text not in kept:
            kept.append(text)
        return
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _OURS:
        level, frame = level + 1, frame.f_back
    warnings.warn(text, stacklevel=level)
