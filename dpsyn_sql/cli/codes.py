"""The exit codes of every command, in one table (docs/command_line.md explains them)."""

from __future__ import annotations

from enum import IntEnum

from dpsyn_sql.errors import (
    DpsynError,
    InputError,
    LedgerDamaged,
    LedgerError,
    PrivacyBudgetExceeded,
    ReleaseChanged,
    ReleaseExists,
    ScheduleLocked,
)


class ExitCode(IntEnum):
    """How a command ended."""

    DONE = 0
    FAILED = 1
    """Something failed on the way; of ``dpsyn audit`` also: the claim is violated; of ``dpsyn check``:
    something is odd."""
    REFUSED = 2
    """The command cannot be carried out as written; nothing was done."""
    OVER_BUDGET = 3
    """The ledger refused the debit; nothing was read."""
    LOCKED = 4
    """Another run is at work; nothing was done."""
    INTERRUPTED = 130
    """Ctrl-C, as in shells."""


_CODES: tuple[tuple[type[DpsynError], ExitCode], ...] = (
    (PrivacyBudgetExceeded, ExitCode.OVER_BUDGET),
    (ScheduleLocked, ExitCode.LOCKED),
    (LedgerDamaged, ExitCode.FAILED),
    (InputError, ExitCode.REFUSED),
    (LedgerError, ExitCode.REFUSED),
    (ReleaseChanged, ExitCode.REFUSED),
    (ReleaseExists, ExitCode.REFUSED),
)
"""The first line that fits decides; all other errors happen on the way."""


def exit_code(error: DpsynError) -> ExitCode:
    """The exit code of a command that ends with ``error``."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), ExitCode.FAILED)
