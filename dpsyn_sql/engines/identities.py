"""What a source is to the ledger: its tables, however they are called, and whose their rows are.

A table is its file, its schema and its name, whatever the database is attached as. The columns of a query or
view are followed to the tables that it reads.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from dpsyn_sql.engines.catalog import DuckDBCatalog, escaped_path
from dpsyn_sql.errors import SourceError
from dpsyn_sql.source.ledger_names import LedgerNames
from dpsyn_sql.source.names import Identity, display_name, fold, shorten
from dpsyn_sql.source.origins import AWAY, IN_SELECT, Origins, Place
from dpsyn_sql.source.query_check import CatalogRelation, origins
from dpsyn_sql.sqltext.fragments import Fragment, ident, literal, qualified

_DESCRIPTORS = Path("/dev/fd")
"""The descriptors of this process, on Linux and macOS. On Windows a file that is open cannot be renamed."""

_CHANCE = re.compile(r"(?<=dpsyn_)[0-9a-f]{32}")
"""What differs from call to call in a text that is checked."""


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


def still_open(path: str) -> bool:
    """Whether this process has the file open that lies at ``path`` now; True where the system cannot tell.

    A database names its file by the path that it was opened by. If the file is renamed, moved or replaced
    meanwhile, that path means no file or another one, and so another ledger. Links are followed. Only the
    descriptors of this process are looked at, nothing is opened.
    """
    try:
        descriptors = [int(entry.name) for entry in _DESCRIPTORS.iterdir()]
    except OSError:
        return True
    try:
        status = Path(path).stat()
    except OSError:
        return False
    for descriptor in descriptors:
        with contextlib.suppress(OSError):  # that of the listing itself is closed again
            if os.path.samestat(os.fstat(descriptor), status):
                return True
    return False


def refuse_one_table_twice(tables: Iterable[StoredTable]) -> None:
    """A database file that is attached twice gives each row several times, under names that look different.

    Raises:
        SourceError: naming both.
    """
    seen: dict[tuple[object, ...], Identity] = {}
    for table in tables:
        if table.file is None:
            continue
        storage_key = (*storage(table.file), fold(table.identity[1]), fold(table.identity[2]))
        first = seen.setdefault(storage_key, table.identity)
        if first != table.identity:
            names = " and ".join(shorten(display_name(*identity)) for identity in (first, table.identity))
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
    for table in sorted(reads, key=lambda read: -len(qualified(*read.identity))):
        text = text.replace(qualified(*table.identity), ident(table.name(home)))
    for path in paths:
        for spelled in dict.fromkeys((path, escaped_path(path))):
            text = text.replace(literal(spelled), literal(home.file(path)))
    return text


# -- by which columns the rows of each table belong to the unit ---------------------------------------


def origins_in(catalog: DuckDBCatalog, source: str | CatalogRelation) -> dict[str, Origins] | None:
    """Where the columns of a query or view of this catalog come from; None if it cannot be followed."""

    def types(read: Identity | Fragment) -> Mapping[str, str]:
        if not isinstance(read, str):
            return catalog.types(read)
        columns = catalog.describe_files(read, "a file of the query")
        return {column.name: column.sql_type for column in columns}

    return origins(source, catalog, types)


def owners_of(
    column_origins: Mapping[str, Origins] | None,
    columns: Sequence[str],
    sources: Iterable[str],
    ledger_names: Callable[[Place], Iterable[str]],
    *,
    query: str,
    trusted: bool,
) -> dict[str, tuple[str, ...]]:
    """By what the rows of each source belong to the unit that ``columns`` of a query name.

    What cannot be followed is an owner like no other. Of a trusted query the owner answers for tables that
    the columns do not come from: they are not named here.

    Args:
        column_origins: where the columns of the query come from; None if it cannot be followed.
        columns: of the query; together they name the unit, or the row of another table.
        sources: the private tables and files that the query reads, as the ledger calls them.
        ledger_names: what the ledger calls a table, or the files of a path.
        query: its text. What can only be told within it is an owner like no other of another query.
        trusted: the owner states that the query mixes no rows.

    Raises:
        SourceError: the rows of one source belong to units by two columns.
    """
    owners = {source: list[str]() for source in sources}
    in_query = f"in the query {sha256(_CHANCE.sub('', query).encode()).hexdigest()[:16]}"
    for column in columns:
        if column_origins is None:
            all_origins: Origins = frozenset()
            elsewhere = fold(column) if trusted else f"the value of {column} {in_query}"
        else:
            all_origins = column_origins.get(fold(column), frozenset())
            elsewhere = "" if trusted else f"the value of {column} {in_query}"
        texts = {source: set[str]() for source in owners}
        for origin, text in all_origins:
            for source in () if origin is None else ledger_names(origin):
                if source in texts and not (trusted and text.startswith(AWAY)):
                    within = IN_SELECT in text and not trusted
                    texts[source].add(f"{text} for {column} {in_query}" if within else text)
        for source, owner_texts in texts.items():
            if len(owner_texts) > 1:
                reasons = " and by ".join(sorted(owner_texts))
                raise SourceError(
                    f"The rows of {source!r} belong to the unit {column!r} by {reasons}: one row would count "
                    "for two units, and removing one of them changes what the other one has. Release the "
                    "rows of one owner, or give each owner a release and a ledger= of its own. Nothing was "
                    "read or charged."
                )
            owners[source] += owner_texts or ([elsewhere] if elsewhere else [])
    return {source: tuple(texts) for source, texts in owners.items() if len(texts) == len(columns)}
