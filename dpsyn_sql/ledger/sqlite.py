"""A ledger in SQLite: a file, or memory."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from dpsyn_sql.accounting.budget import Budget, Number
from dpsyn_sql.errors import InputError
from dpsyn_sql.ledger import accounts, entries, ties
from dpsyn_sql.ledger.entries import SqliteEntry
from dpsyn_sql.ledger.guard import Backup, translate_errors
from dpsyn_sql.ledger.overview import AccountOverview, Overview, account_overview, overview
from dpsyn_sql.ledger.preview import ReleasePreview
from dpsyn_sql.ledger.store import IN_MEMORY, Store, append
from dpsyn_sql.ledger.verify import verify
from dpsyn_sql.planning.plan import ReleaseKey
from dpsyn_sql.source.names import LedgerNames


class SqliteLedger:
    """Accounts and entries in a SQLite file."""

    def __init__(self, path: str | os.PathLike[str], *, create: bool = True, read_only: bool = False) -> None:
        """Open the ledger, making it if ``create``; ``read_only``: an existing one, to look at it.

        Raises:
            LedgerError: it cannot be opened or made.
        """
        self._store = Store(os.fspath(path), create=create and not read_only, read_only=read_only)
        if not read_only:
            self._begin()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.place!r})"

    @property
    def place(self) -> str:
        """The ledger's file."""
        return self._store.place

    @contextmanager
    def open_release(
        self, key: ReleaseKey, budget: Budget, *, new_debit: bool = False
    ) -> Iterator[SqliteEntry]:
        """Debit ``budget`` and open an entry, or find the one of the same key at no cost.

        However the ``with`` block ends, the debit stays.

        Args:
            key: public labels and settings; equal keys share one debit and one transcript.
            budget: what the release may spend.
            new_debit: pay again where the name and version exist with other settings, or the same settings
                under another name.

        Raises:
            PrivacyBudgetExceeded: the account does not hold it; nothing was read.
            ReleaseChanged: same name and version, other settings; nothing was charged.
            ReleaseExists: same version and settings, another output; nothing was charged.
            AccountError: another unit, kind or account than the source's own.
            LedgerError: the file cannot be written, or was moved and the move was not recorded.
        """
        yield self._open(key, budget, new_debit)

    @property
    @translate_errors
    def home(self) -> LedgerNames:
        """Where the names of its sources begin: the place where it was made, or the one it was moved to
        together with its data."""
        with self._store.reading():
            return ties.home(self._store)

    @translate_errors
    def look(
        self, key: ReleaseKey, budget: Budget, targets: Sequence[str], *, new_debit: bool = False
    ) -> ReleasePreview:
        """What ``open_release`` would do, for an output of these names; changes nothing.

        Raises:
            AccountError: the sources belong to another account, or to different ones.
            LedgerError: the ledger was moved and the move was not recorded.
        """
        with self._store.trying():
            ties.settle(self._store)
            return entries.preview_release(self._store, key, budget, targets, new_debit=new_debit)

    @translate_errors
    def moved(self, *, with_data: bool) -> None:
        """Record that the ledger was moved: together with its data, or alone.

        Args:
            with_data: names begin at the new place from now on; otherwise where they began before.

        Raises:
            InputError: it is where it was.
        """
        with self._store.writing():
            ties.moved(self._store, with_data=with_data)

    @translate_errors
    def grant(self, account: str, epsilon: Number, delta: Number | None = None) -> AccountOverview:
        """Set the total limit of an account, never below what is spent.

        ``delta``: default 1e-9 for each whole epsilon, so that N releases of an epsilon fit N times it.

        Raises:
            BudgetError: out of range, or below what is spent.
            AccountError: delta = 0 for an approximate account.
            InputError: a table of the database beside the ledger, with the name of its file.
        """
        _check_label("account", account)
        with self._store.writing():
            ties.settle(self._store)
            ties.refuse_own_file(self._store, account)
            granted = accounts.granted(self._store, account, epsilon, delta)
            return account_overview(granted, accounts.sources_of(self._store, granted))

    @translate_errors
    def overview(self) -> Overview:
        """Accounts and releases, as ``dpsyn ledger`` prints them."""
        with self._store.reading():
            return overview(self._store)

    @translate_errors
    def verify(self, head: str | None = None) -> str:
        """Recompute every cost, sum and hash; returns the head hash.

        Args:
            head: a hash that an earlier ``verify`` or ``overview`` gave: it must still be in the
                chain, else the file was cut off or replaced by an older copy.

        Raises:
            LedgerDamaged: names the first broken record.
        """
        with self._store.reading():
            return verify(self._store, head)

    @translate_errors
    def backup(self, path: str | os.PathLike[str]) -> str:
        """Copy the ledger, as it is at one moment, to a new file; returns the head hash of the copy.

        Whoever restores a copy can spend again what was spent after it was made: keep the head elsewhere.

        Raises:
            InputError: something is at ``path``.
            LedgerDamaged: the ledger is not sound.
            LedgerError: the copy cannot be written; there is none then.
        """
        return Backup(self._store, os.fspath(path)).make()

    def close(self) -> None:
        """Close the file; entries of this ledger can no longer be used."""
        self._store.close()

    @translate_errors
    def _begin(self) -> None:
        """The first record names the ledger, so that the chains of two ledgers never meet."""
        if self._store.one("last_record") is None:
            with self._store.writing():
                if self._store.one("last_record") is None:
                    append(self._store, "ledger", {"id": secrets.token_hex(16), **ties.here(self._store)})

    @translate_errors
    def _open(self, key: ReleaseKey, budget: Budget, new_debit: bool) -> SqliteEntry:
        for argument, text in (("account", key.account), ("name", key.name), ("version", key.version)):
            if text is not None:
                _check_label(argument, text)
        with self._store.writing():
            ties.settle(self._store)
            return entries.opened(self._store, key, budget, new_debit=new_debit)


def _check_label(argument: str, text: str) -> None:
    try:
        if text and text.encode("utf-8"):
            return
    except UnicodeEncodeError:
        pass
    raise InputError(f"{argument}={text!r} is not a usable label: give some text (valid Unicode)")


# -- in memory ---------------------------------------------------------------------------------------

# A ledger that lives as long as the process: the same rules, nothing on disk.


class MemoryLedger(SqliteLedger):
    """Accounts and entries of this process alone; they end with it."""

    def __init__(self) -> None:
        super().__init__(IN_MEMORY)
