"""Names as people write them: dotted and quoted names, near matches, names that differ in case only.

Public facts only. DuckDB compares identifiers without regard to ASCII case, and so does this module.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from itertools import islice

Identity = tuple[str, str, str]
"""Catalog, schema and name of a relation."""

Namespace = tuple[str, str]
"""Catalog and schema."""

_ASCII_LOWER = str.maketrans({chr(c): chr(c + 32) for c in range(ord("A"), ord("Z") + 1)})
_QUERY = re.compile(r"\s*(select|from|with)\s", re.IGNORECASE)
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_PART = re.compile(r'"((?:[^"]|"")+)"|([^".]+)')


def fold(name: str) -> str:
    """The form in which two identifiers are equal to the database (ASCII case only)."""
    return name.translate(_ASCII_LOWER)


def is_query(text: str) -> bool:
    """Whether a source string is a query: SELECT, FROM or WITH and white space."""
    return _QUERY.match(text) is not None


def split_name(
    text: str, part: re.Pattern[str] = _PART, quote: str = '"', most: int | None = 3
) -> tuple[str, ...] | None:
    """The parts of ``[[catalog.]schema.]name``, each possibly quoted; None if it is no such name.

    Another database's names: ``part`` matches a part without its quotes, or one as it is.
    """
    parts: list[str] = []
    position = 0
    while True:
        match = part.match(text, position)
        if match is None or len(parts) == most:
            return None
        parts.append(match[1].replace(quote * 2, quote) if match[1] is not None else match[2])
        position = match.end()
        if position == len(text):
            return tuple(parts)
        if text[position] != ".":
            return None
        position += 1


def last_part(text: str) -> str:
    """The name of a table without its schema and catalog; the text itself if it is no such name."""
    return (split_name(text) or (text,))[-1]


def split_search_path(text: str) -> tuple[tuple[str, ...], ...]:
    """The entries of a ``search_path`` setting, as DuckDB spells it back: (catalog, schema), or
    (schema,) of the current catalog."""
    entries = []
    for entry in re.findall(r'(?:"(?:[^"]|"")*"|[^",])+', text):
        parts = split_name(entry.strip())
        if parts is not None and len(parts) <= 2:
            entries.append(parts)
    return tuple(entries)


def display_name(*parts: str) -> str:
    """A dotted name for people that ``split_name`` reads back; quoted only where needed."""
    quoted = [part if _PLAIN.match(part) else '"' + part.replace('"', '""') + '"' for part in parts]
    return ".".join(quoted)


def near_matches(name: str, candidates: Iterable[str], most: int = 3) -> list[str]:
    """Candidates that look like ``name``, best first."""
    by_fold = {fold(candidate)[:200]: candidate for candidate in candidates}
    found = difflib.get_close_matches(fold(name)[:200], list(by_fold), n=most, cutoff=0.6)
    return [by_fold[key] for key in found]


def name_hint(name: str, known: Iterable[str], there: str = "it has") -> str:
    """For a message about an unknown name: the names that look like it, else all that there are.

    ``there`` is said before all names.
    """
    names = list(known)
    close = near_matches(name, names)
    if close:
        return f"did you mean {' or '.join(repr(shorten(one)) for one in close)}?"
    return f"{there} {listed(names) or 'no column'}"


def case_clashes(names: Sequence[str]) -> list[str]:
    """Names that are equal, or equal but for case, to another one of ``names``."""
    seen: dict[str, list[str]] = {}
    for name in names:
        seen.setdefault(fold(name), []).append(name)
    return [name for group in seen.values() if len(group) > 1 for name in group]


def listed(names: Iterable[str], most: int = 30) -> str:
    """Quoted names for a message: all of them, or the first ones and "..."."""
    shown = [repr(shorten(name)) for name in islice(names, most + 1)]
    return ", ".join([*shown[:most], *(["..."] if len(shown) > most else [])])


def shorten(text: str, most: int = 200) -> str:
    """``text`` cut for a message."""
    return text if len(text) <= most else text[:most] + "..."
