"""Files that commands write themselves."""

from __future__ import annotations

import contextlib
from pathlib import Path

from dpsyn_sql.errors import InputError


def check_writable(path: Path, replace: bool) -> None:
    """Refuse before any work.

    Raises:
        InputError: the file exists, unless ``replace``; or its folder does not.
    """
    if path.exists() and not replace:
        raise InputError(f"{path} exists already: choose another file, or remove it")
    if not path.resolve().parent.is_dir():
        raise InputError(f"the folder of {path} does not exist")


def written(path: Path, text: str) -> bool:
    """Whether the text could be written."""
    with contextlib.suppress(OSError):
        path.write_text(text, encoding="utf-8")
        return True
    return False
