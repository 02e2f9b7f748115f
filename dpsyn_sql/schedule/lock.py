"""One run at a time for each ledger. The system lets the lock go however a process ends."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from dpsyn_sql.errors import LedgerError, ScheduleLocked

try:
    import fcntl
except ImportError:  # no such locks on this system: the ledger still debits each release once
    fcntl = None  # type: ignore[assignment]


@contextlib.contextmanager
def alone(ledger: Path) -> Iterator[None]:
    """Hold the lock ``<ledger>.run-lock``; the file stays, and is not in the way of anybody.

    Raises:
        ScheduleLocked: another run holds it.
        LedgerError: the folder of the ledger cannot be written.
    """
    real = Path(os.path.realpath(ledger))
    place = real.with_name(f"{real.name}.run-lock")
    number, taken = -1, True
    with contextlib.suppress(OSError):
        number = os.open(place, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    if number < 0:
        raise LedgerError(
            f"The lock {place} cannot be made: the folder is missing or cannot be written. Nothing was done."
        )
    try:
        if fcntl is not None:
            try:
                fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                taken = False
        if not taken:
            raise ScheduleLocked(
                f"Another run holds the lock {place}, because it charges the same ledger. Nothing was done. "
                "Run again when it is done."
            )
        yield
    finally:
        os.close(number)
