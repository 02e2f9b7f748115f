"""Absolute paths that mean what the operating system means by the path they are made of.

``a/link/../x`` is ``x`` in the folder above the one that the link leads to. ``os.path.abspath`` would take
it for ``a/x``, and so do databases, each at other places. So no path keeps a ``..``, and every link before
one is followed. Links elsewhere stay as they are named.
"""

from __future__ import annotations

import os
from pathlib import Path

WILDCARDS = frozenset("*?[")


def absolute_path(path: str | os.PathLike[str]) -> Path:
    """The same file, absolute and without ``..``."""
    parts = Path(path).absolute().parts
    if ".." not in parts:
        return Path(*parts)
    behind = len(parts) - parts[::-1].index("..")
    return Path(os.path.realpath(Path(*parts[:behind])), *parts[behind:])


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
    parts = Path(pattern).parts
    end = next((place for place, part in enumerate(parts) if WILDCARDS & set(part)), len(parts))
    return parts[:end], parts[end:]
