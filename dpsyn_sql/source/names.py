"""Names of tables and columns, paths of files, and what the ledger calls them."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from dpsyn_sql.errors import InputError, said

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
    name_parts: list[str] = []
    position = 0
    while True:
        match = part.match(text, position)
        if match is None or len(name_parts) == most:
            return None
        name_parts.append(match[1].replace(quote * 2, quote) if match[1] is not None else match[2])
        position = match.end()
        if position == len(text):
            return tuple(name_parts)
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
        namespace = split_name(entry.strip())
        if namespace is not None and len(namespace) <= 2:
            entries.append(namespace)
    return tuple(entries)


def display_name(*parts: str) -> str:
    """A dotted name for people that ``split_name`` reads back; quoted only where needed."""
    quoted = [part if _PLAIN.match(part) else '"' + part.replace('"', '""') + '"' for part in parts]
    return ".".join(quoted)


def near_matches(name: str, candidates: Iterable[str], most: int = 3) -> list[str]:
    """Candidates that look like ``name``, best first."""
    by_fold = {fold(candidate)[:200]: candidate for candidate in candidates}
    close = difflib.get_close_matches(fold(name)[:200], list(by_fold), n=most, cutoff=0.6)
    return [by_fold[key] for key in close]


def name_hint(name: str, candidates: Iterable[str], there: str = "it has") -> str:
    """For a message about an unknown name: the names that look like it, else all that there are.

    ``there`` is said before all names.
    """
    names = list(candidates)
    close = near_matches(name, names)
    if close:
        return f"did you mean {' or '.join(repr(shorten(match)) for match in close)}?"
    return f"{there} {listed(names) or 'no column'}"


def refuse_unknown(
    what: str,
    mapping: Mapping[Any, Any],
    allowed: Collection[str],
    elsewhere: Mapping[str, str] | None = None,
) -> None:
    """Refuse the keys of a mapping that are not allowed; ``elsewhere``: by the key where it stands instead.

    Raises:
        InputError: naming all of them, with what was meant or what is allowed.
    """
    unknown = [key for key in mapping if key not in allowed]
    if not unknown:
        return
    hints, listing = [], False
    for key in unknown:
        close = near_matches(key, allowed) if isinstance(key, str) else []
        if elsewhere and key in elsewhere:
            hints.append(f"{key!r} ({elsewhere[key]})")
        elif close:
            hints.append(f"{said(key)} (did you mean {', '.join(map(repr, close))}?)")
        else:
            hints.append(said(key))
            listing = True
    ending = f" Allowed are {', '.join(allowed)}." if listing else ""
    raise InputError(f"{what} has the unknown key{'s' * (len(hints) > 1)} {', '.join(hints)}.{ending}")


def keyed(option: str, value: object, allowed: Collection[str], example: str) -> dict[str, Any]:
    """What the mapping of an option says by its keys; a value that is None says nothing.

    Raises:
        InputError: it is no mapping, or has a key that is not allowed.
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InputError(f"{option}={said(value)}: give a mapping, such as {example}")
    refuse_unknown(f"{option}=", value, allowed)
    return {key: item for key, item in value.items() if item is not None}


def case_clashes(names: Sequence[str]) -> list[str]:
    """Names that are equal, or equal but for case, to another one of ``names``."""
    spellings: dict[str, list[str]] = {}
    for name in names:
        spellings.setdefault(fold(name), []).append(name)
    return [name for group in spellings.values() if len(group) > 1 for name in group]


def listed(names: Iterable[str], most: int = 30) -> str:
    """Quoted names for a message: all of them, or the first ones and "..."."""
    shown = [repr(shorten(name)) for name in islice(names, most + 1)]
    return ", ".join([*shown[:most], *(["..."] if len(shown) > most else [])])


def cut_short(name: str, width: int = 60) -> str:
    """A name in so many characters at most."""
    return name if len(name) <= width else name[: width - 3] + "..."


def shorten(text: str, most: int = 200) -> str:
    """``text`` cut for a message."""
    return text if len(text) <= most else text[:most] + "..."


# -- paths -------------------------------------------------------------------------------------------

# Absolute paths that mean what the operating system means by the path they are made of.
#
# ``a/link/../x`` is ``x`` in the folder above the one that the link leads to. ``os.path.abspath`` would take
# it for ``a/x``, and so do databases, each at other places. So no path keeps a ``..``, and every link before
# one is followed. Links elsewhere stay as they are named.

WILDCARDS = frozenset("*?[")


def absolute_path(path: str | os.PathLike[str]) -> Path:
    """The same file, absolute and without ``..``."""
    components = Path(path).absolute().parts
    if ".." not in components:
        return Path(*components)
    after = len(components) - components[::-1].index("..")
    return Path(os.path.realpath(Path(*components[:after])), *components[after:])


def absolute_pattern(pattern: str) -> str:
    """The same glob, absolute and without ``..`` before its first wildcard."""
    before, after = _parts(pattern)
    return str(absolute_path(Path(*before)).joinpath(*after))


def has_parent_after_wildcard(pattern: str) -> bool:
    """Whether a glob has a ``..`` after a wildcard."""
    return ".." in _parts(pattern)[1]


def real_pattern(pattern: str) -> str:
    """The same glob with all links before its first wildcard followed."""
    before, after = _parts(pattern)
    return str(Path(os.path.realpath(Path(*before)), *after))


def _parts(pattern: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The parts of a glob before its first wildcard, and the others."""
    components = Path(pattern).parts
    end = next((index for index, part in enumerate(components) if WILDCARDS & set(part)), len(components))
    return components[:end], components[end:]


# -- names in the ledger -----------------------------------------------------------------------------

# What a ledger calls tables and files, so that one source has one name however it is spelled.
#
# A file is named by its path with links followed, a table by its database file, schema and name. Names begin
# at the ledger's home: what lies below its folder is named relative to it, and the tables of the database
# that the ledger lies beside are named without their file. So a folder can be moved, and a database renamed,
# together with its ledger. Tables are named as the database compares them, without regard to letter case.

SUFFIX = ".dpsyn-ledger"
"""A ledger beside a database file is called ``<database file>.dpsyn-ledger``."""

_ONE_STORE = {"s3a": "s3", "s3n": "s3"}
"""Schemes of one and the same store."""


@dataclass(frozen=True, slots=True)
class LedgerNames:
    """Where a ledger's names begin: the place it had when it was made, or None for one in memory."""

    place: Path | None = None

    @classmethod
    def of(cls, place: str | os.PathLike[str] | None) -> LedgerNames:
        """The home of a ledger that is made at ``place`` (links are followed)."""
        return cls(None if place is None else Path(os.path.realpath(place)))

    @property
    def database(self) -> Path | None:
        """The database file that the ledger lies beside, by the ledger's name."""
        if self.place is None or not self.place.name.endswith(SUFFIX) or self.place.name == SUFFIX:
            return None
        return self.place.with_name(self.place.name.removesuffix(SUFFIX))

    def file(self, path: str) -> str:
        """The name of a file that is read."""
        return self._relative(Path(os.path.realpath(path)))

    def output(self, path: str) -> str:
        """The name of a file that is written: a link there is replaced, so only its folder is followed."""
        folder, name = os.path.split(path)
        return self._relative(Path(os.path.realpath(folder)) / name)

    def pattern(self, pattern: str) -> str:
        """The name of a glob: links before the first wildcard are followed."""
        return self._relative(Path(real_pattern(pattern)))

    def table(self, database: str | None, catalog: str, schema: str, name: str) -> str:
        """The name of a table; ``database`` is the file that holds it, None for a database in memory, which
        has no name but the one it is attached by."""
        dotted = display_name(fold(schema), fold(name))
        if database is None:
            return f":memory:{dotted if catalog == 'memory' else display_name(fold(catalog)) + '.' + dotted}"
        real = Path(os.path.realpath(database))
        return dotted if real == self.database else f"{self._relative(real)}:{dotted}"

    def frame(self, label: str) -> str:
        """The name of a data frame: the owner's label for it, wherever the ledger lies."""
        return f":frame:{display_name(fold(label))}"

    def spark(self, location: str) -> str:
        """The name of a table of Spark: the place of its files, which two names of one table share."""
        scheme, _, path = location.partition(":")
        if scheme == "file":
            return f":spark:{self._relative(Path(os.path.realpath('/' + path.lstrip('/'))))}"
        return f":spark:{_ONE_STORE.get(scheme, scheme)}:{path.rstrip('/')}"

    def spark_table(self, name: str) -> str:
        """The name of a table of Spark that is written, which has no place yet."""
        return f":spark-table:{fold(name)}"

    def spark_query(self, text: str) -> str:
        """The name of a view or query of Spark."""
        return f":spark-query:{text}"

    def _relative(self, real: Path) -> str:
        if self.place is not None and real.is_relative_to(self.place.parent):
            return real.relative_to(self.place.parent).as_posix()
        return str(real)
