"""Names as Spark writes them: parts between dots, in backticks where needed, in any letter case."""

from __future__ import annotations

import re
from collections.abc import Sequence

_PART = re.compile(r"`((?:[^`]|``)+)`|([^`.\s]+)")
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def parts_of(text: str) -> tuple[str, ...] | None:
    """The parts of ``[catalog.][database.]table``; None if it is no such name."""
    parts: list[str] = []
    position = 0
    while match := _PART.match(text, position):
        parts.append(match[1].replace("``", "`") if match[1] is not None else match[2])
        position = match.end()
        if position == len(text):
            return tuple(parts)
        if text[position] != ".":
            return None
        position += 1
    return None


def quoted(parts: Sequence[str]) -> str:
    """The name in a statement of Spark."""
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)


def shown(parts: Sequence[str]) -> str:
    """The name for people, which ``parts_of`` reads back."""
    return ".".join(part if _PLAIN.match(part) else quoted([part]) for part in parts)
