"""A copy of a ledger as it is at one moment, whatever other processes do meanwhile."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from dpsyn_sql.errors import InputError
from dpsyn_sql.ledger import creation
from dpsyn_sql.ledger.guard import translate_errors_with
from dpsyn_sql.ledger.store import Store
from dpsyn_sql.ledger.verify import verify

_NONE_MADE = "No backup was made, and the ledger itself is unchanged."


class Backup:
    """A backup of ``store`` that is to be made at ``place``."""

    def __init__(self, store: Store, place: str) -> None:
        self._store = store
        self.place = place

    def make(self) -> str:
        """Write it, whole or not at all; returns the head hash of the copy.

        Raises:
            InputError: something is at the place already.
            LedgerDamaged: the ledger is not sound, so that a copy would stand for a better one.
            LedgerError: the copy cannot be written.
        """
        with self._store.reading():
            head = verify(self._store, None)
            made = self._written()
        if not made:
            raise InputError(
                f"{self.place} exists, and a backup never overwrites: choose another name. {_NONE_MADE}"
            )
        return head

    @translate_errors_with(_NONE_MADE)
    def _written(self) -> bool:
        def build(path: str) -> None:
            self._store.copy_to(path)
            shutil.copymode(self._store.place, path)

        return creation.make_new(Path(os.path.abspath(self.place)), build)  # noqa: PTH100
