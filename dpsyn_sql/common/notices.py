"""Warnings to the person who called the package, or to a listener that keeps them; safe names,
and tables in plain text; importable from anywhere.

Warnings depend on public facts and noisy answers only.
"""

from __future__ import annotations

import sys
import unicodedata
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

_HIDDEN = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Unicode categories of characters that move, hide or colour text."""
_OURS = ("dpsyn_sql", "contextlib")

_listener: ContextVar[list[str] | None] = ContextVar("dpsyn_notices", default=None)


@contextmanager
def keeping() -> Iterator[list[str]]:
    """The warnings of everything called inside, in a list, each once; none of them is shown."""
    notices: list[str] = []
    token = _listener.set(notices)
    try:
        yield notices
    finally:
        _listener.reset(token)


def warn(text: str) -> None:
    """Warn at the line that called the package, at any depth of calls; or tell the listener."""
    notices = _listener.get()
    if notices is not None:
        if text not in notices:
            notices.append(text)
        return
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _OURS:
        level, frame = level + 1, frame.f_back
    warnings.warn(text, stacklevel=level)


def printable(text: str, *, lines: bool = True) -> str:
    r"""``text`` with every character that could move, hide or colour text, as ``\x1b``.

    Args:
        text: anything.
        lines: keep ends of lines.
    """
    return "".join(
        char
        if (lines and char == "\n") or unicodedata.category(char) not in _HIDDEN
        else char.encode("unicode_escape").decode("ascii")
        for char in text
    )


def widths(names: Sequence[str], cells: Sequence[Sequence[str]]) -> list[int]:
    """Of each column of a table the longest text."""
    return [max(map(len, column)) for column in zip(names, *cells, strict=True)]


def aligned(names: Sequence[str], cells: Sequence[Sequence[str]], right: Sequence[bool]) -> list[str]:
    """A table in plain text, columns two spaces apart; ``right``: which ones are flush right."""
    wide = widths(names, cells)
    return [
        "  ".join(
            cell.rjust(width) if flush else cell.ljust(width)
            for cell, width, flush in zip(row, wide, right, strict=True)
        ).rstrip()
        for row in [names, *cells]
    ]
