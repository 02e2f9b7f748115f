"""How a ledger is made: its columns, and the lock beside it."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dpsyn_sql.errors import LedgerError

# -- columns -----------------------------------------------------------------------------------------

# What kind of value each column of a ledger holds: a damaged file can hold any kind in any column.

_INTEGERS = (
    *("position", "account_id", "entry_id", "sequence", "ordinal", "synthetic_rows", "publications"),
    *("limit_amount", "limit_delta", "spent_amount", "spent_delta", "amount", "delta", "last", "handed"),
)
_TEXTS = (
    *("kind", "body", "previous", "hash", "name", "unit", "granted_epsilon", "granted_delta", "account"),
    "shown_delta",
    *("release_id", "version", "configuration", "configuration_hash", "debited_at", "state", "measured_on"),
    *("event", "question", "shapes", "digest", "target", "sliced", "stop"),
)
_OPTIONAL = (
    "unit",
    "granted_epsilon",
    "granted_delta",
    "limit_amount",
    "limit_delta",
    "version",
    "measured_on",
    "sliced",
)

_KINDS: dict[str, type] = {
    **dict.fromkeys(_INTEGERS, int),
    **dict.fromkeys(_TEXTS, str),
    "content": bytes,
}


def misplaced(row: dict[str, Any]) -> str | None:
    """The first column that holds another kind of value than it may."""
    for column, value in row.items():
        wanted = _KINDS.get(column)
        if wanted is None or (value is None and column in _OPTIONAL):
            continue
        if type(value) is not wanted:
            return column
    return None


# -- the lock ----------------------------------------------------------------------------------------

# One at a time: a lock on a file beside the ledger, held for each transaction, reading or writing.
#
# What is committed rests on this lock alone. SQLite locks by POSIX locks, and the system drops all of them
# that a process has on a file as soon as any part of the process closes the file: a thread that reads its
# bytes is enough. This lock (``flock``) belongs to its own descriptor, so nobody else can drop it, and it
# ends with its process, however that ends.

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
            descriptor = _held(lock)
        except OSError as error:
            if reading and error.errno in _NO_PLACE:
                return None
            raise
        if descriptor is not None:
            return descriptor
        if time.monotonic() >= end:
            raise BlockingIOError(errno.EAGAIN, "another process holds the lock of the ledger")
        time.sleep(_PAUSE_SECONDS)


def _held(lock: Path) -> int | None:
    """The descriptor that holds the lock, or None while another one does."""
    descriptor, locked = _opened(lock), False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # A file that was removed meanwhile locks nobody out.
        locked = os.path.samestat(os.fstat(descriptor), lock.stat())
    except (BlockingIOError, FileNotFoundError):
        pass
    finally:
        if not locked:
            os.close(descriptor)
    if not locked:
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


# -- creation ----------------------------------------------------------------------------------------

# A new ledger file appears whole or not at all, whatever other processes do and whenever one dies.
#
# It is built under another name in the same folder, then linked to its own name, which never overwrites. So a
# file of 0 bytes is never a ledger that is being made: its content is lost.

_NEW = "-dpsyn-new-"
_BESIDE = ("-journal", "-wal")
_NO_LINKS = (errno.EPERM, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK, errno.EINVAL)
_ONLY_IF_NEW = "if no release was ever charged to it"


def make_ledger(path: str, build: Callable[[str], None]) -> None:
    """Make sure that there is a ledger at ``path``: the existing one, or a new one; call with its lock held.

    Args:
        path: its file; links are followed.
        build: writes a whole ledger to a path and waits until it is on the disk.

    Raises:
        LedgerError: a part of a lost ledger lies beside it.
        OSError: the folder cannot be written.
    """
    file = Path(os.path.realpath(path))
    if os.path.lexists(file):
        if file.stat().st_nlink > 1:  # a process was killed just after it had given the ledger its name
            with contextlib.suppress(OSError):
                _remove_left_behind(file)
        return
    _remove_left_behind(file)
    refuse_remains(path)
    make_new(file, build)


def files_of(path: str) -> frozenset[str]:
    """The files that a ledger may consist of or have beside it, links followed."""
    file = os.path.realpath(path)
    return frozenset({file, str(lock_of(Path(file))), *(f"{file}{suffix}" for suffix in _BESIDE)})


def refuse_remains(path: str) -> None:
    """Refuse a place whose file is missing while its other half is there: SQLite would mix it into a new one.

    Raises:
        LedgerError: names it.
    """
    file = Path(os.path.realpath(path))
    for remains in (file.with_name(f"{file.name}{suffix}") for suffix in _BESIDE):
        if not os.path.lexists(file) and remains.is_file() and remains.stat().st_size:
            raise LedgerError(
                f"The ledger {path} is missing, but {remains}, which belongs to it, exists: the ledger file "
                f"was moved or deleted alone. Put it back. Only {_ONLY_IF_NEW}: delete {remains} too; then "
                "a new ledger is made. Nothing was read or charged."
            )


def refuse_empty(path: str) -> None:
    """Refuse a file of 0 bytes, before SQLite takes it for a new database.

    Raises:
        LedgerError: says what it means.
    """
    file = Path(path)
    if file.is_file() and file.stat().st_size == 0:
        raise empty(path)


def empty(path: str) -> LedgerError:
    """The file is there and holds no ledger."""
    return LedgerError(
        f"The ledger {path} is empty. Its content is lost, and what was spent is not known. Restore it from "
        f"a backup. Only {_ONLY_IF_NEW}: delete it; then a new ledger is made. Nothing was read or charged."
    )


def _remove_left_behind(file: Path) -> None:
    """Remove what killed processes built; call with the lock held."""
    if os.name == "nt":  # no lock there says that nobody is building
        return
    for path in file.parent.iterdir():
        if path.name.startswith(f"{file.name}{_NEW}"):
            path.unlink(missing_ok=True)


def make_new(file: Path, build: Callable[[str], None]) -> bool:
    """Make a file, whole or not at all; False where something is there, which stays.

    Raises:
        OSError: the folder cannot be written.
    """
    if os.path.lexists(file):
        return False
    temporary = file.with_name(f"{file.name}{_NEW}{secrets.token_hex(8)}")
    try:
        build(str(temporary))
        created = _name(temporary, file)
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
    _sync_folder(file.parent)
    return created


def _name(temporary: Path, file: Path) -> bool:
    """Give the file its name; a file that another process has put there stays."""
    try:
        os.link(temporary, file)
        return True
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
    # No hard links on this file system. The lock keeps other processes away between check and renaming.
    if os.path.lexists(file):
        return False
    temporary.rename(file)
    return True


def _sync_folder(folder: Path) -> None:
    """Make the name survive a power cut; some systems cannot do this for a folder."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
