"""Open the tables of a database that are released together: private ones, public ones, and their links.

PRIVATE side. Opening reads catalogs, never a row. All tables are read in one engine.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dpsyn_sql.engines import instance
from dpsyn_sql.engines.catalog import DuckDBCatalog, folded
from dpsyn_sql.engines.reader import CALLERS, Reader, no_source, open_reader, refuse_memory_limit
from dpsyn_sql.engines.source_session import Connection, SourceSession, public_identities, resolve
from dpsyn_sql.engines.stored_tables import StoredTable, refuse_one_table_twice, stored
from dpsyn_sql.errors import InputError, SourceError, said
from dpsyn_sql.planning.tree import Link
from dpsyn_sql.planning.tying.given import TableFacts, split_column
from dpsyn_sql.source.engine import Engine
from dpsyn_sql.source.files import ending_of
from dpsyn_sql.source.ledger_names import LedgerNames
from dpsyn_sql.source.names import Identity, display_name, fold, is_query, listed, shorten
from dpsyn_sql.source.query_check import CatalogRelation
from dpsyn_sql.source.query_words import TRUST_IT
from dpsyn_sql.source.relation import Relation
from dpsyn_sql.source.sessions import is_spark, is_spark_frame
from dpsyn_sql.sqltext.fragments import literal, qualified
from dpsyn_sql.sqltext.render import render


@dataclass
class DatabaseSession(SourceSession):
    """Open tables. A table is called by its own name in the catalog, however it was given.

    ``relations``: the private tables and views, in the order they were given. ``public``: the public tables.
    ``facts``: keys and links of both. ``spelled``: the names as they were given, by the tables' own.
    ``opened``: each private one as a source of its own. ``relation`` is that of the first table; ``tables``
    and all else of a source cover all private ones.
    """

    relations: Mapping[str, Relation] = field(default_factory=dict)
    public: Mapping[str, Relation] = field(default_factory=dict)
    facts: Mapping[str, TableFacts] = field(default_factory=dict)
    spelled: Mapping[str, str] = field(default_factory=dict)
    asked: tuple[StoredTable, ...] = ()
    opened: Mapping[str, SourceSession] = field(default_factory=dict)

    @property
    def links(self) -> dict[str, tuple[Link, ...]]:
        """The foreign keys of each table."""
        return {name: facts.links for name, facts in self.facts.items()}

    @property
    def keys(self) -> dict[str, tuple[str, ...]]:
        """The primary key of each table, empty where there is none."""
        return {name: facts.primary for name, facts in self.facts.items()}

    @property
    def kind(self) -> str:
        """What the source is."""
        return "database"

    def resolved_name(self, home: LedgerNames) -> str:
        """The names of the private tables and views, in order, however they were spelled."""
        return ", ".join(sorted(self.resolved_names(home).values()))

    def resolved_names(self, home: LedgerNames) -> dict[str, str]:
        """The ledger's name of each private table and view."""
        return {name: table.name(home) for name, table in zip(self.relations, self.asked, strict=True)}

    def definition(self, home: LedgerNames) -> str | None:
        """What the views are made by, as a digest; None without views."""
        views = [one for one in self.opened.values() if one.view is not None]
        if not views:
            return None
        told = sorted(f"{view.resolved_name(home)} {view.definition(home)}" for view in views)
        return hashlib.sha256("\n".join(told).encode()).hexdigest()

    def __enter__(self) -> DatabaseSession:
        return self

    def named(self, text: str) -> str | None:
        """The table that a person means; None if it is none of these."""
        wanted = fold(text)
        for name in (*self.relations, *self.public):
            if wanted in (fold(name), fold(display_name(name)), fold(self.spelled[name])):
                return name
        return None

    def named_column(self, text: str) -> tuple[str, str] | None:
        """The table and the column that a person means by ``table.column``; None if no table fits."""
        parts = split_column(text, dict.fromkeys([*self.facts, *self.spelled.values()]))
        return None if parts is None else (self.named(parts[0]) or "", parts[1])


def open_database(
    con: Connection,
    tables: Sequence[str],
    public_tables: Sequence[str] = (),
    *,
    memory_limit: str | None = None,
) -> DatabaseSession:
    """Resolve the tables of a database and open them for reading. Reads no row.

    Args:
        con: a DuckDB connection, or the path of a DuckDB file.
        tables: private tables and views.
        public_tables: tables without private data.
        memory_limit: such as ``"4GB"``; only where the reading happens in our own instance.

    Raises:
        InputError: no DuckDB database, no tables, one twice, one both private and public, several databases.
        SourceError: a table is missing, ambiguous, or visible to the caller alone; a view mixes rows.
    """
    _check_place(con)
    if not tables:
        raise InputError("tables= is missing: give the names of the tables to release.")
    return _read(con, memory_limit, lambda reader: _opened(reader, tables, public_tables))


def open_linked(
    con: Connection, tables: Sequence[str], beside: Iterable[str], *, memory_limit: str | None = None
) -> DatabaseSession:
    """As ``open_database``, for the owner alone: views may mix rows, and whatever else the tables' foreign
    keys name is public.

    Args:
        con: a DuckDB connection, or the path of a DuckDB file.
        tables: private tables and views.
        beside: names of tables that are public unless they are among ``tables``; unknown names are left out.
        memory_limit: as there.

    Raises:
        InputError: as ``open_database``.
        SourceError: as ``open_database``, but for views.
    """
    _check_place(con)
    return _read(con, memory_limit, lambda reader: _with_linked(reader, tables, beside))


def _read(
    con: Connection, memory_limit: str | None, opened: Callable[[Reader], DatabaseSession]
) -> DatabaseSession:
    """The session that is opened with a reader of the connection."""
    callers = isinstance(con, CALLERS)
    reader = open_reader(con, None if callers else memory_limit)  # type: ignore[arg-type]
    with instance.closed_on_failure(reader.engine):
        if callers:
            refuse_memory_limit(memory_limit)
        session = opened(reader)
        session.database, session.memory_limit = reader.database, memory_limit
        reader.lock(session.paths)
        return session


def _with_linked(reader: Reader, tables: Sequence[str], beside: Iterable[str]) -> DatabaseSession:
    catalog = reader.catalog
    private = {folded(one.identity) for one in map(catalog.look_up, tables) if one is not None}
    known = {text: one.identity for text in beside if (one := catalog.look_up(text)) is not None}
    public = {folded(one): text for text, one in known.items() if folded(one) not in private}
    session = _opened(reader, tables, [*public.values()], trusted=True)
    further = _linked(session)
    return _opened(reader, tables, [*public.values(), *further], trusted=True) if further else session


def _linked(session: DatabaseSession) -> list[str]:
    """The tables that foreign keys of the private ones name, and that are not open."""
    links = (link.table for name in session.relations for link in session.facts[name].links)
    return [*dict.fromkeys(table for table in links if table not in session.facts)]


def open_schema(con: Connection, public_tables: Sequence[str] = ()) -> DatabaseSession:
    """As ``open_database``, with all base tables of the schema where the connection looks names up.

    Raises:
        InputError: as ``open_database``, or the schema has no private table.
        SourceError: as ``open_database``.
    """
    _check_place(con)
    return _read(con, None, lambda reader: _of_home(reader, public_tables))


def _of_home(reader: Reader, public_tables: Sequence[str]) -> DatabaseSession:
    public = set(_public(reader, public_tables).values())
    tables = [name for name, identity in _of_schema(reader.catalog) if identity not in public]
    if not tables:
        raise InputError("The database has no private tables: give the name of a table, or a file.")
    return _opened(reader, tables, public_tables)


def is_database(con: Any) -> bool:
    """Whether it is a DuckDB connection, or a path that is neither a folder nor named as a file of rows."""
    if isinstance(con, CALLERS):
        return True
    return isinstance(con, str | os.PathLike) and ending_of(os.fspath(con)) is None and not Path(con).is_dir()


def _of_schema(catalog: DuckDBCatalog) -> Iterator[tuple[str, Identity]]:
    home = tuple(map(fold, catalog.session.path[0]))
    for found in catalog.relations.values():
        if found.kind == "table" and tuple(map(fold, found.identity[:2])) == home:
            yield display_name(*found.identity), found.identity


def _check_place(con: Any) -> None:
    if is_spark(con) or is_spark_frame(con):
        raise InputError(
            "Tables tied by keys are released from DuckDB alone, not from Spark: write them to a DuckDB "
            "file, or release each table on its own with release()."
        )
    if not isinstance(con, (*CALLERS, str, os.PathLike)):
        raise InputError(f"con={said(con)}: give a DuckDB connection, or the path of a DuckDB file.")


def _opened(
    reader: Reader, tables: Sequence[str], public_tables: Sequence[str], *, trusted: bool = False
) -> DatabaseSession:
    catalog = reader.catalog
    public = _public(reader, public_tables)
    opened = {text: _private(reader, text, public_tables, trusted) for text in tables}
    asked = {text: _identity(opened[text]) for text in tables}
    names = _names([*((text, asked[text]) for text in tables), *public.items()])
    spelled = {identity[2]: text for text, identity in names.items()}
    private = {asked[text][2]: opened[text] for text in tables}
    known = {folded(identity): identity[2] for identity in names.values()}
    sessions, hidden = tuple(private.values()), set(public.values())
    reads = tuple(dict.fromkeys(read for one in sessions for read in one.reads if read not in hidden))
    stores = tuple(dict.fromkeys(table for one in sessions for table in one.tables))
    refuse_one_table_twice([*stores, *(stored(catalog, identity) for identity in public.values())])
    relations = {name: one.relation for name, one in private.items()}
    openly = {identity[2]: _public_relation(catalog, identity) for identity in public.values()}
    facts = {
        identity[2]: _facts(reader, identity, known, {**relations, **openly}[identity[2]])
        for identity in names.values()
    }
    return DatabaseSession(
        engine=reader.engine,
        relation=sessions[0].relation,
        default_into=None,
        warnings=(),
        reads=reads,
        paths=tuple(dict.fromkeys(path for one in sessions for path in one.paths)),
        texts=tuple(dict.fromkeys(file for one in sessions for file in one.texts)),
        tables=stores,
        stored=tuple(dict.fromkeys(table for one in sessions for table in one.stored)),
        conventions={key: value for one in sessions for key, value in one.conventions.items()},
        relations=relations,
        public=openly,
        facts=facts,
        spelled=spelled,
        asked=tuple(stored(catalog, asked[text]) for text in tables),
        opened=private,
    )


def _private(reader: Reader, text: str, public_tables: Sequence[str], trusted: bool) -> SourceSession:
    if is_query(text) or not text.strip() or "\x00" in text:
        raise InputError(
            f"tables= has {shorten(text)!r}: give names of tables and views. Make a view of a query (CREATE "
            "VIEW)."
        )
    session, problem = None, ""
    try:
        session = resolve(reader, text, trusted=trusted, public_tables=public_tables, unit=None)
    except SourceError as error:
        problem = str(error)
    if problem:
        raise SourceError(f"{shorten(text)}: {problem.removesuffix(TRUST_IT).strip()}")
    if session is None:
        raise no_source(text, reader.catalog.near(text))
    return session


def _identity(session: SourceSession) -> Identity:
    return session.view.identity if session.view is not None else session.reads[0]


def _public(reader: Reader, names: Sequence[str]) -> dict[str, Identity]:
    """The public tables by the names that were given."""
    for name in names:
        reader.look_up(name)  # refuses what the caller alone sees
    public_identities(reader.catalog, names)
    found: dict[str, CatalogRelation | None] = {name: reader.catalog.look_up(name) for name in names}
    return {name: relation.identity for name, relation in found.items() if relation is not None}


def _names(given: Sequence[tuple[str, Identity]]) -> dict[str, Identity]:
    """The tables by the names that were given, each with a name of its own.

    Raises:
        InputError: one is given twice, two have one name, or they are in several databases.
    """
    seen: dict[Identity, str] = {}
    names: dict[str, str] = {}
    for text, identity in given:
        if folded(identity) in seen:
            other = seen[folded(identity)]
            raise InputError(
                f"{shorten(display_name(*identity))} is named twice in tables= and public_tables= "
                f"({said(other)}, {said(text)}): a table is either private or public, and named once."
            )
        seen[folded(identity)] = text
        if fold(identity[2]) in names:
            other = names[fold(identity[2])]
            raise InputError(
                f"{said(other)} and {said(text)} have the same name in different schemas: the tables of a "
                "release need different names. Make a view with another name of one of them."
            )
        names[fold(identity[2])] = text
    databases = {fold(identity[0]): identity[0] for _, identity in given}
    if len(databases) > 1:
        raise InputError(
            f"The tables are in several databases: {listed(databases.values())}. Tables tied by keys must be "
            "in one: copy the others into it."
        )
    return dict(given)


def _public_relation(catalog: DuckDBCatalog, identity: Identity) -> Relation:
    return Relation(display_name(*identity), "table", qualified(*identity), catalog.columns(identity))


def _facts(
    reader: Reader, identity: Identity, known: Mapping[Identity, str], relation: Relation
) -> TableFacts:
    """Keys and links; a link names a table of ``known`` by its own name, any other by one that finds it."""
    primary: tuple[str, ...] = ()
    unique, links = list[tuple[str, ...]](), list[Link]()
    for kind, columns, referenced, key in (
        _stated(reader.engine, identity) if relation.kind == "table" else ()
    ):
        if kind == "PRIMARY KEY":
            primary = columns
        elif kind == "UNIQUE":
            unique.append(columns)
        else:
            other = (identity[0], identity[1], referenced)
            links.append(
                Link(columns, known.get(folded(other)) or _outside(other, known, reader.catalog), key)
            )
    return TableFacts(identity[2], relation.columns, primary, tuple(unique), tuple(links))


def _outside(other: Identity, known: Mapping[Identity, str], catalog: DuckDBCatalog) -> str:
    """The shortest name that finds a table that is not of the release, and that none of the release has."""
    own = {fold(name) for name in known.values()}
    found = catalog.find((other[2],)) if fold(other[2]) not in own else None
    short = found is not None and folded(found.identity) == folded(other)
    return other[2] if short else display_name(*other)


def _stated(
    engine: Engine, identity: Identity
) -> Iterator[tuple[str, tuple[str, ...], str, tuple[str, ...]]]:
    """Each constraint: its kind, its columns, and the table and the columns that a foreign key names."""
    catalog, schema, name = map(literal, identity)
    found = engine.fetch(
        render("source/keys", catalog=catalog, schema=schema, name=name), step="reading the catalog"
    )
    columns = [found[part].tolist() for part in ("kind", "columns", "referenced", "referenced_columns")]
    for kind, own, referenced, key in zip(*columns, strict=True):
        yield str(kind), tuple(map(str, own)), str(referenced), tuple(map(str, key))
