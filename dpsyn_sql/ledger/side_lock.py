"""One at a time: a lock on a file beside the ledger, held for each transaction, reading or writing.

What is committed rests on this lock alone. SQLite locks by POSIX locks, and the system drops all of them
that a process has on a file as soon as any part of the process closes the file: a thread that reads its
bytes is enough. This lock (``flock``) belongs to its own descriptor, so nobody else can drop it, and it ends
with its process, however that ends.
"""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: there SQLite's own locks belong to a descriptor too
    fcntl = None  # type: ignore[assignment]

_LOCK = "-dpsyn-lock"
_PAUSE_SECONDS = 0.005
_NO_PLACE = (errno.EACCES, errno.EPERM, errno.EROFS)

_held_here = set[int]()
"""Descriptors of locks that this process holds."""


def lock_of(file: Path) -> Path:
    """The file that is locked: beside the ledger, only while somebody holds it or was killed with it."""
    return file.with_name(f"{file.name}{_LOCK}")


@contextmanager
def alone(file: Path, seconds: float, *, reading: bool = False) -> Iterator[bool]:
    """Hold the lock of a ledger; False for a reader that goes on without it.

    Args:
        file: the ledger, links followed.
        seconds: how long to wait for another process or thread.
        reading: only reads: goes on without the lock where no file can be made beside the ledger.

    Raises:
        BlockingIOError: somebody else held it all the time.
        OSError: the folder cannot be written, or its file system has no locks.
    """
    descriptor = None if fcntl is None else _waited(lock_of(file), seconds, reading=reading)
    try:
        yield descriptor is not None or fcntl is None
    finally:
        if descriptor is not None:
            _let_go(descriptor, lock_of(file))


def _waited(lock: Path, seconds: float, *, reading: bool) -> int | None:
    end = time.monotonic() + seconds
    while True:
        try:
            held = _held(lock)
        except OSError as error:
            if reading and error.errno in _NO_PLACE:
                return None
            raise
        if held is not None:
            return held
        if time.monotonic() >= end:
            raise BlockingIOError(errno.EAGAIN, "another process holds the lock of the ledger")
        time.sleep(_PAUSE_SECONDS)


def _held(lock: Path) -> int | None:
    """The descriptor that holds the lock, or None while another one does."""
    descriptor, held = _opened(lock), False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # A file that was removed meanwhile locks nobody out.
        held = os.path.samestat(os.fstat(descriptor), lock.stat())
    except (BlockingIOError, FileNotFoundError):
        pass
    finally:
        if not held:
            os.close(descriptor)
    if not held:
        return None
    _held_here.add(descriptor)
    return descriptor


def _opened(lock: Path) -> int:
    try:
        return os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
    except PermissionError:
        return os.open(lock, os.O_RDONLY)  # left behind by another user's process; it locks as well


def _let_go(descriptor: int, lock: Path) -> None:
    if descriptor not in _held_here:  # a forked child: the lock is its parent's
        return
    _held_here.discard(descriptor)
    # Removed while it is held: who waits for it sees that, and takes a new one.
    with contextlib.suppress(OSError):
        if os.path.samestat(os.fstat(descriptor), lock.stat()):
            lock.unlink()
    with contextlib.suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_UN)  # closing alone leaves it to a child that was forked meanwhile
    os.close(descriptor)


def _forget_in_child() -> None:
    """A child that was forked while a thread held the lock shares it: it must not outlive the parent."""
    for descriptor in _held_here:
        with contextlib.suppress(OSError):
            os.close(descriptor)
    _held_here.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_in_child)
