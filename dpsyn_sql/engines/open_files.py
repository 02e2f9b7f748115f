"""Whether a path still means the file that the database has open.

A database names its file by the path that it was opened by. If the file is renamed, moved or replaced
meanwhile, that path means no file or another one, and so another ledger.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

_OPEN = Path("/dev/fd")
"""The descriptors of this process, on Linux and macOS. On Windows a file that is open cannot be renamed."""


def still_open(path: str) -> bool:
    """Whether this process has the file open that lies at ``path`` now; True where the system cannot tell.

    Links are followed. Only the descriptors of this process are looked at, nothing is opened.
    """
    try:
        descriptors = [int(one.name) for one in _OPEN.iterdir()]
    except OSError:
        return True
    try:
        there = Path(path).stat()
    except OSError:
        return False
    for descriptor in descriptors:
        with contextlib.suppress(OSError):  # that of the listing itself is closed again
            if os.path.samestat(os.fstat(descriptor), there):
                return True
    return False
