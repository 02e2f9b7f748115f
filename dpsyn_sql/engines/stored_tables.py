"""Which table a name means, whatever the database is attached as: its file, its schema and its name."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from dpsyn_sql.engines.catalog import DuckDBCatalog, escaped_path
from dpsyn_sql.engines.open_files import still_open
from dpsyn_sql.errors import SourceError
from dpsyn_sql.source.ledger_names import LedgerNames
from dpsyn_sql.source.names import Identity, display_name, fold, shorten
from dpsyn_sql.sqltext.fragments import ident, literal, qualified


@dataclass(frozen=True, slots=True)
class StoredTable:
    """A table or view: its names and the file of its database (None: memory)."""

    identity: Identity
    file: str | None

    def name(self, home: LedgerNames) -> str:
        """The same under any alias of an attached database file, and in any letter case."""
        return home.table(self.file, *self.identity)


def stored(catalog: DuckDBCatalog, identity: Identity) -> StoredTable:
    """Where a table or view is kept.

    Raises:
        SourceError: its database has another file open than the one that lies at the path it names.
    """
    database = catalog.databases.get(fold(identity[0]), {})
    file = database.get("path")
    if file and database.get("type") == "duckdb" and "://" not in str(file) and not still_open(str(file)):
        raise SourceError(
            f"{shorten(str(file))!r} is not the file that the database has open: that was renamed, moved, "
            "deleted or replaced since. So its ledger cannot be told, and what was spent would be forgotten. "
            "Close the connection and open the database where it is now. Nothing was read or charged."
        )
    return StoredTable(identity, str(file) if file else None)


def refuse_one_table_twice(tables: Iterable[StoredTable]) -> None:
    """A database file that is attached twice gives each row several times, under names that look different.

    Raises:
        SourceError: naming both.
    """
    seen: dict[tuple[object, ...], Identity] = {}
    for table in tables:
        if table.file is None:
            continue
        place = (*storage(table.file), fold(table.identity[1]), fold(table.identity[2]))
        other = seen.setdefault(place, table.identity)
        if other != table.identity:
            names = " and ".join(shorten(display_name(*one)) for one in (other, table.identity))
            raise SourceError(
                f"The query reads one table under two names: {names} are in one database file that is "
                "attached twice. Use one of the names."
            )


def storage(file: str) -> tuple[object, ...]:
    """The same for every path of a file, hard links included; any other address stands for itself."""
    with contextlib.suppress(OSError):
        status = Path(file).stat()
        return (status.st_dev, status.st_ino)
    return (file,)


def named_query(text: str, reads: Sequence[StoredTable], paths: Iterable[str], home: LedgerNames) -> str:
    """The text of a query with the ledger's names of what it reads, so that an alias, a move or another file
    of the same name makes the difference that it makes to the rows."""
    for table in sorted(reads, key=lambda one: -len(qualified(*one.identity))):
        text = text.replace(qualified(*table.identity), ident(table.name(home)))
    for path in paths:
        for spelled in dict.fromkeys((path, escaped_path(path))):
            text = text.replace(literal(spelled), literal(home.file(path)))
    return text
