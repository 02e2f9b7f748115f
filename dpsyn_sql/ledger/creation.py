"""A new ledger file appears whole or not at all, whatever other processes do and whenever one dies.

It is built under another name in the same folder, then linked to its own name, which never overwrites. So
a file of 0 bytes is never a ledger that is being made: its content is lost.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from collections.abc import Callable
from pathlib import Path

from dpsyn_sql.errors import LedgerError
from dpsyn_sql.ledger.side_lock import lock_of

_NEW = "-dpsyn-new-"
_BESIDE = ("-journal", "-wal")
_NO_LINKS = (errno.EPERM, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK, errno.EINVAL)
_ONLY_IF_NEW = "if no release was ever charged to it"


def make_ledger(place: str, build: Callable[[str], None]) -> None:
    """Make sure that there is a ledger at ``place``: the existing one, or a new one; call with its lock held.

    Args:
        place: its file; links are followed.
        build: writes a whole ledger to a path and waits until it is on the disk.

    Raises:
        LedgerError: a part of a lost ledger lies beside the place.
        OSError: the folder cannot be written.
    """
    file = Path(os.path.realpath(place))
    if os.path.lexists(file):
        if file.stat().st_nlink > 1:  # a process was killed just after it had given the ledger its name
            with contextlib.suppress(OSError):
                _remove_left_behind(file)
        return
    _remove_left_behind(file)
    refuse_remains(place)
    make_new(file, build)


def files_of(place: str) -> frozenset[str]:
    """The files that a ledger may consist of or have beside it, links followed."""
    file = os.path.realpath(place)
    return frozenset({file, str(lock_of(Path(file))), *(f"{file}{suffix}" for suffix in _BESIDE)})


def refuse_remains(place: str) -> None:
    """Refuse a place whose file is missing while its other half is there: SQLite would mix it into a new one.

    Raises:
        LedgerError: names it.
    """
    file = Path(os.path.realpath(place))
    for beside in (file.with_name(f"{file.name}{suffix}") for suffix in _BESIDE):
        if not os.path.lexists(file) and beside.is_file() and beside.stat().st_size:
            raise LedgerError(
                f"The ledger {place} is missing, but {beside}, which belongs to it, exists: the ledger file "
                f"was moved or deleted alone. Put it back. Only {_ONLY_IF_NEW}: delete {beside} too; then "
                "a new ledger is made. Nothing was read or charged."
            )


def refuse_empty(place: str) -> None:
    """Refuse a file of 0 bytes, before SQLite takes it for a new database.

    Raises:
        LedgerError: says what it means.
    """
    file = Path(place)
    if file.is_file() and file.stat().st_size == 0:
        raise empty(place)


def empty(place: str) -> LedgerError:
    """The file is there and holds no ledger."""
    return LedgerError(
        f"The ledger {place} is empty. Its content is lost, and what was spent is not known. Restore it from "
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
        named = _name(temporary, file)
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
    _sync_folder(file.parent)
    return named


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
