"""Where a ledger lies and where its names begin: recorded first when it is made, and again after a move.

A ledger that is not where its last such record says is refused until somebody says how it was moved.
Otherwise its names would mean other tables and files, and what was spent on them would be forgotten.
"""

from __future__ import annotations

import json
import os

from dpsyn_sql.errors import InputError, LedgerError
from dpsyn_sql.ledger.chain import append
from dpsyn_sql.ledger.store import IN_MEMORY, Store
from dpsyn_sql.source.ledger_names import LedgerNames


def here(store: Store) -> dict[str, str]:
    """Facts for a record: the ledger lies here, and its names begin here."""
    place = _place(store)
    return {} if place is None else {"place": place, "home": place}


def home(store: Store) -> LedgerNames:
    """Where names begin; call inside a transaction."""
    return LedgerNames.of(_recorded(store)[1])


def settle(store: Store) -> None:
    """Refuse a ledger that was moved; inside a transaction.

    Raises:
        LedgerError: it is not where its record says.
    """
    place, found = _recorded(store)[0], _place(store)
    if found is None or found == place:
        return
    raise LedgerError(
        f"This ledger was at {place} and is now at {found}. If the data were moved or renamed together "
        f"with it, run `dpsyn ledger moved {found} --with-data`. If the data stayed where they were, run "
        f"`dpsyn ledger moved {found} --alone`. Nothing was read or charged."
    )


def moved(store: Store, *, with_data: bool) -> None:
    """Record the new place; inside a writing transaction.

    Raises:
        InputError: it is where its record says, or in memory.
    """
    (place, start), found = _recorded(store), _place(store)
    if found is None or found == place:
        raise InputError(f"The ledger {store.place} was not moved: it is where its record says.")
    append(store, "moved", {"place": found, "home": found if with_data else start})


def refuse_own_file(store: Store, account: str) -> None:
    """Refuse to grant a table of the ledger's own database under the file's name; inside a transaction.

    Raises:
        InputError: no release would ever be charged to such an account.
    """
    file, colon, table = account.partition(":")
    database = home(store).database
    if not colon or not table or database is None:
        return
    if file == database.name or os.path.realpath(file) == str(database):
        meant = table if "#" in table else f"{table}#row"
        raise InputError(
            f"No release would be charged to {account!r}: this ledger lies beside {database.name} and "
            f"names the tables in it without the file; did you mean {meant!r}?"
        )


def _place(store: Store) -> str | None:
    return None if store.place == IN_MEMORY else os.path.realpath(store.place)


def _recorded(store: Store) -> tuple[str | None, str | None]:
    """The place and the home of the last record that has them."""
    row = store.one("last_home")
    body = {} if row is None else json.loads(row["body"])
    return body.get("place"), body.get("home")
