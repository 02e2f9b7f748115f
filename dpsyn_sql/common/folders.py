"""Private folders for what is not complete, or needed for a while; a killed process leaves none for long.

Each folder is locked while its process lives. A lock ends with its process however that ends, so a
folder whose lock is free was left behind, and the next folder that its user makes there removes it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

try:
    import fcntl
except ImportError:  # no such locks on this system: what is left behind stays
    fcntl = None  # type: ignore[assignment]

# What a file system without locks answers: there nobody can take a folder for one that was left behind.
_NO_LOCKS = frozenset(
    {errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EBADF, errno.EINVAL}
)


@dataclass(frozen=True, slots=True)
class LockedFolder:
    """A folder that only we can enter; ``close``, or the end of a ``with`` block, removes it."""

    path: Path
    _lock: int | None

    def close(self) -> None:
        """Remove the folder, then let its lock go; to be called once."""
        shutil.rmtree(self.path, ignore_errors=True)
        _unlock(self._lock)

    def __enter__(self) -> Path:
        return self.path

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def locked_folder(parent: Path, prefix: str) -> LockedFolder:
    """A new folder in ``parent`` (an existing one), called ``prefix`` and a random name.

    Folders of this prefix that killed processes of the same user left in ``parent`` are removed.

    Raises:
        OSError: no folder can be made there, or it cannot be locked.
    """
    _remove_left_behind(parent, prefix)
    while True:
        path = parent / f"{prefix}{secrets.token_hex(8)}"
        path.mkdir(mode=0o700)
        lock = _lock_new(path)
        if path.is_dir():
            return LockedFolder(path, lock)
        _unlock(lock)  # somebody tidied up between making and locking


def _lock_new(path: Path) -> int | None:
    """The descriptor that holds the lock of a new folder; None where there are no locks, or it is gone."""
    if fcntl is None:
        return None
    lock: int | None = None
    try:
        lock = os.open(path, os.O_RDONLY)
        fcntl.flock(lock, fcntl.LOCK_EX)
    except FileNotFoundError:
        return None
    except OSError as error:
        _unlock(lock)
        if error.errno in _NO_LOCKS and lock is not None:
            return None
        # One that is not locked could be removed by others while it is used.
        with contextlib.suppress(OSError):
            path.rmdir()
        raise
    return lock


def _remove_left_behind(parent: Path, prefix: str) -> None:
    if fcntl is None:
        return
    ours = re.compile(re.escape(prefix) + "[0-9a-f]{16}")
    left_behind: list[Path] = []
    with contextlib.suppress(OSError):
        left_behind = [item for item in parent.iterdir() if ours.fullmatch(item.name)]
    for path in left_behind:
        lock: int | None = None
        with contextlib.suppress(OSError):
            lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)  # a folder, and no link to one
            if os.fstat(lock).st_uid == os.geteuid():
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path, ignore_errors=True)
        _unlock(lock)


def _unlock(lock: int | None) -> None:
    if lock is not None:
        os.close(lock)
