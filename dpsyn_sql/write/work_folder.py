"""A folder beside the output for a file that is not complete yet; a killed process leaves none for long.

Each folder is locked while its process lives. A lock ends with its process however that ends, so a
folder whose lock is free was left behind, and the next one who writes there removes it.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

try:
    import fcntl
except ImportError:  # no such locks on this system: what is left behind stays
    fcntl = None  # type: ignore[assignment]

_PREFIX = ".dpsyn-work-"


@contextmanager
def work_folder(parent: Path) -> Iterator[Path]:
    """A new folder in ``parent`` (an existing one) that is removed with all it holds.

    Folders that killed processes left in ``parent`` are removed too.

    Raises:
        OSError: no folder can be made there.
    """
    _remove_left_behind(parent)
    while True:
        folder = parent / f"{_PREFIX}{secrets.token_hex(8)}"
        folder.mkdir(mode=0o700)
        lock = _locked(folder, wait=True)
        if folder.is_dir():
            break
        _unlock(lock)  # somebody tidied up between the two lines above
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        _unlock(lock)


def _remove_left_behind(parent: Path) -> None:
    if fcntl is None:
        return
    for folder in parent.glob(f"{_PREFIX}*"):
        lock = _locked(folder, wait=False)
        if lock is not None:
            shutil.rmtree(folder, ignore_errors=True)
            _unlock(lock)


def _locked(folder: Path, *, wait: bool) -> int | None:
    """The descriptor that holds the lock; None when somebody else has it, or there are no locks."""
    if fcntl is None:
        return None
    lock: int | None = None
    with contextlib.suppress(OSError):
        lock = os.open(folder, os.O_RDONLY)
        fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        return lock
    _unlock(lock)
    return None


def _unlock(lock: int | None) -> None:
    if lock is not None:
        os.close(lock)
