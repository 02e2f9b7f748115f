"""Which table a name means, and its keys and links."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from dpsyn_sql.attributes.database_file import DatabaseFile, StatedTable
from dpsyn_sql.engines.catalog import DuckDBCatalog, escaped_path, folded
from dpsyn_sql.errors import InputError, SourceError
from dpsyn_sql.planning.tree import Link
from dpsyn_sql.planning.tying.keys import Given, TableFacts
from dpsyn_sql.planning.tying.tables import root_of
from dpsyn_sql.source.engine import Engine
from dpsyn_sql.source.names import Identity, LedgerNames, display_name, fold, listed, name_hint, shorten
from dpsyn_sql.source.origins import AWAY, IN_SELECT, Origins, Place
from dpsyn_sql.source.query_check import CatalogRelation, origins
from dpsyn_sql.source.relation import Relation
from dpsyn_sql.sqltext.fragments import Fragment, ident, literal, qualified
from dpsyn_sql.sqltext.render import render

if TYPE_CHECKING:
    from dpsyn_sql.engines.source_session import SourceSession


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


# -- keys and links ----------------------------------------------------------------------------------

# What the catalog, a call and the file of a database say of open tables, by their names (public facts).

# -- what the catalog says ---------------------------------------------------------------------------


def facts_of(
    engine: Engine, identities: Mapping[str, Identity | None], relations: Mapping[str, Relation]
) -> dict[str, TableFacts]:
    """Keys and links of relations that are open together; what is no table of a catalog has none.

    Args:
        engine: reads them.
        identities: by name, of tables and views; None of what is in no catalog.
        relations: by name.
    """
    names = {folded(identity): name for name, identity in identities.items() if identity is not None}
    catalog, facts = DuckDBCatalog(engine), dict[str, TableFacts]()
    for name, identity in identities.items():
        columns = relations[name].columns
        if identity is None or relations[name].kind != "table":
            facts[name] = TableFacts(name, columns)
            continue
        constraints = [*_constraints(engine, identity)]
        primary = [own_columns for kind, own_columns, _, _ in constraints if kind == "PRIMARY KEY"]
        unique = tuple(own_columns for kind, own_columns, _, _ in constraints if kind == "UNIQUE")
        links = list[Link]()
        for kind, own_columns, referenced, key in constraints:
            if kind not in ("PRIMARY KEY", "UNIQUE"):
                target = (identity[0], identity[1], referenced)
                table = names.get(folded(target)) or _outside(target, names.values(), catalog)
                links.append(Link(own_columns, table, key))
        facts[name] = TableFacts(name, columns, primary[-1] if primary else (), unique, tuple(links))
    return facts


def _constraints(
    engine: Engine, identity: Identity
) -> Iterator[tuple[str, tuple[str, ...], str, tuple[str, ...]]]:
    """Each constraint: its kind, its columns, and the table and the columns that a foreign key names."""
    catalog, schema, name = map(literal, identity)
    rows = engine.fetch(
        render("source/keys", catalog=catalog, schema=schema, name=name), step="reading the catalog"
    )
    columns = [rows[part].tolist() for part in ("kind", "columns", "referenced", "referenced_columns")]
    for kind, own_columns, referenced, key in zip(*columns, strict=True):
        yield str(kind), tuple(map(str, own_columns)), str(referenced), tuple(map(str, key))


def _outside(identity: Identity, names: Iterable[str], catalog: DuckDBCatalog) -> str:
    """The shortest name that finds a table that is not open here, and that none of the open ones has."""
    relation = catalog.find((identity[2],)) if fold(identity[2]) not in map(fold, names) else None
    short = relation is not None and folded(relation.identity) == folded(identity)
    return identity[2] if short else display_name(*identity)


# -- what a call and the file say --------------------------------------------------------------------


def given_of(
    session: SourceSession,
    file: DatabaseFile,
    unit: str = "",
    most: Mapping[str, int] | None = None,
    exclude: Iterable[str] = (),
) -> Given:
    """What a call, its file and the catalog say, by the names of the tables.

    Args:
        session: the open tables.
        file: what the owner states of them.
        unit: the table of the units or its key, such as ``"customers.customer_id"``; if empty, the units are
            in the table that has no parent.
        most: by table the rows that are kept of one row of the parent.
        exclude: columns that are not written, such as ``"orders.note"``.

    Raises:
        InputError: a name is unknown, or nothing says where the units are.
    """
    root, column = _unit(unit, session) if unit else ("", "")
    stated = dict[str, StatedTable]()
    for text, table in file.tables.items():
        if (name := _stated_name(text, session, "tables", session.private)) is not None:
            stated[name] = table
    public_keys = dict[str, tuple[str, ...]]()
    for text, key in file.public.items():
        if (name := _stated_name(text, session, "public_tables", session.public)) is not None:
            public_keys[name] = key
    given = Given(
        root=root,
        unit=column,
        private={name: session.facts[name] for name in session.private},
        public={name: session.facts[name] for name in session.public},
        relations={name: source.relation for name, source in {**session.private, **session.public}.items()},
        stated=stated,
        public_keys=public_keys,
        most=_most(most or {}, session),
        excluded=_excluded(exclude, session),
    )
    return given if root else replace(given, root=root_of(given))


def _unit(text: str, session: SourceSession) -> tuple[str, str]:
    """The table of the units, and the column of its key if it is named."""
    table = session.named(text)
    table_and_column = (table, "") if table is not None else session.named_column(text)
    if table_and_column is None:
        raise InputError(
            f"unit={text!r} names no table of the release: give the key of one of "
            f"{listed(session.private)}, such as '{next(iter(session.private))}.id', and name its "
            "table in the list of tables."
        )
    if table_and_column[0] not in session.private:
        raise InputError(
            f"unit={text!r} is of {table_and_column[0]}, a public table: units are rows of a private one."
        )
    return table_and_column


def _stated_name(text: str, session: SourceSession, section: str, tables: Mapping[str, object]) -> str | None:
    """The table of the release that the file means; None if it is another table of the database."""
    name = session.named(text)
    if name is not None and name in tables:
        return name
    if name is not None:
        side = "public" if section == "tables" else "private"
        raise InputError(
            f"The file of the database has {text!r} under {section}:, and {name} is {side} in this "
            "release: a table is either private or public."
        )
    catalog = DuckDBCatalog(session.engine)
    if catalog.look_up(text) is None:
        hint = name_hint(text, session.facts, "the release has")
        raise InputError(f"The file of the database has {text!r} under {section}:, which is no table; {hint}")
    return None


def _most(most: Mapping[str, int], session: SourceSession) -> dict[str, int]:
    numbers = dict[str, int]()
    for text, number in most.items():
        name = session.named(text)
        if name is None or name not in session.private:
            hint = name_hint(text, session.private, "they are")
            raise InputError(f"most= names {text!r}, which is no private table of the release; {hint}")
        numbers[name] = number
    return numbers


def _excluded(exclude: Iterable[str], session: SourceSession) -> dict[str, frozenset[str]]:
    excluded: dict[str, frozenset[str]] = {}
    for text in exclude:
        name, spelled = session.named_column(text) or ("", "")
        if name not in session.private:
            raise InputError(
                f"exclude= names {text!r}: give a table of the release and its column, such as "
                f"'{next(iter(session.private))}.note'. The tables are {listed(session.private)}."
            )
        column = session.facts[name].column(spelled)
        if column is None:
            hint = name_hint(spelled, [column.name for column in session.facts[name].columns])
            raise InputError(f"exclude= names {text!r}, and {name} has no such column; {hint}")
        excluded[name] = excluded.get(name, frozenset()) | {column.name}
    return excluded
