"""A ledger that lives as long as the process: the same rules, nothing on disk."""

from __future__ import annotations

from dpsyn_sql.ledger.sqlite import SqliteLedger
from dpsyn_sql.ledger.store import IN_MEMORY


class MemoryLedger(SqliteLedger):
    """Accounts and entries of this process alone; they end with it."""

    def __init__(self) -> None:
        super().__init__(IN_MEMORY)
