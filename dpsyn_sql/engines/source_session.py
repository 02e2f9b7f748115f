"""An open source: relations that are read in one engine, and how they are put out of reach again.

PRIVATE side. A source is a list of relations. That of one table, query, file or data frame is a list of one;
tables that are tied by keys are several, with public tables beside them.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self, TypeVar

from dpsyn_sql.engines import instance
from dpsyn_sql.engines.connections import Callers, spellings
from dpsyn_sql.engines.csv_files import refuse_undecodable
from dpsyn_sql.engines.identities import StoredTable, facts_of, named_query, owners_of
from dpsyn_sql.errors import EngineFailure, InputError, InternalError
from dpsyn_sql.planning.tying.keys import TableFacts, split_column
from dpsyn_sql.source.engine import SourceEngine
from dpsyn_sql.source.files import TextFile, find_files
from dpsyn_sql.source.frames import SparkConnection
from dpsyn_sql.source.names import Identity, LedgerNames, display_name, fold
from dpsyn_sql.source.origins import Origins, Place
from dpsyn_sql.source.relation import Relation
from dpsyn_sql.sqltext.fragments import literal, qualified

_T = TypeVar("_T")
Connection = Callers | SparkConnection | str | os.PathLike[str] | None

TRUSTED = (
    "trust_query=True: the owner states that each row of the result is computed from the rows of one "
    "privacy unit and public tables only; this was not checked"
)
MULTIPLIES = (
    "a row of a private table can give several rows of the result; without a unit column, a row of the "
    "result is what is protected"
)
_OWN_ENGINE = "a private instance: what does not fit in memory is written, encrypted, to a private folder"
_CALLERS_ENGINE = "your connection, with its memory limit, threads and folder for temporary files"


@dataclass(kw_only=True)
class OpenedSource:
    """One relation of an open source, and all that it is made of.

    Args:
        relation: says what it is.
        spelled: how it was given.
        default_into: a table name or a path, or None where only the caller can choose.
        warnings: what the operator is told of it.
        reads, paths: every table, and every file, that it is made of.
        tables: the private ones of ``reads``, views written out.
        catalogued: the table or view of a catalog that it is.
        stored: where each of ``reads`` of a query or view is kept.
        pattern: of its files, if they are several.
        folder: they are those of a folder.
        texts: the CSV files of ``paths``.
        origins: where the columns of a query or view come from; None if it cannot be followed.
        conventions: the settings that decide what its expressions give; empty if it has none.
    """

    relation: Relation
    spelled: str = ""
    default_into: str | None = None
    warnings: tuple[str, ...] = ()
    reads: tuple[Identity, ...] = ()
    paths: tuple[str, ...] = ()
    tables: tuple[StoredTable, ...] = ()
    catalogued: StoredTable | None = None
    stored: tuple[StoredTable, ...] = ()
    pattern: str | None = None
    folder: bool = False
    texts: tuple[TextFile, ...] = ()
    origins: Mapping[str, Origins] | None = None
    conventions: Mapping[str, str] = field(default_factory=dict)

    unplaced: ClassVar[str] = ""
    """Why no ledger has a default place for such a source; empty if one may have."""

    @property
    def lineage_unknown(self) -> bool:
        """Whether nothing tells which tables it reads, so that the owner must say which account pays."""
        return False

    @property
    def name(self) -> str:
        """Its own name in the catalog, however it was given; of what is in none that of the relation."""
        return self.relation.name if self.catalogued is None else self.catalogued.identity[2]

    @property
    def kind(self) -> str:
        """What it is: a table and a file can have one name in the ledger, a folder and a glob too."""
        return "folder" if self.folder else self.relation.kind

    def resolved_name(self, home: LedgerNames) -> str:
        """The name that stays the same however the source was spelled."""
        if self.catalogued is not None:
            return self.catalogued.name(home)
        if self.relation.kind == "query":
            return named_query(self.relation.name, self.stored, self.paths, home)
        return home.file(self.paths[0]) if self.pattern is None else home.pattern(self.pattern)

    def definition(self, home: LedgerNames) -> str | None:
        """What a view is made by, as a digest; None for anything else: a query is its own name."""
        if self.relation.kind != "view":
            return None
        query = named_query(self.relation.sql, self.stored, self.paths, home)
        return hashlib.sha256(query.encode()).hexdigest()

    def private_sources(self, home: LedgerNames) -> tuple[str, ...]:
        """Names of the private tables and files; however one is spelled (links, globs, folders, aliases,
        letter case), it has one name."""
        names = [table.name(home) for table in self.tables] + [home.file(path) for path in self.paths]
        return tuple(dict.fromkeys(names))

    def owners(self, columns: Sequence[str], home: LedgerNames) -> dict[str, tuple[str, ...]]:
        """By which columns the rows of each private source belong to what ``columns`` name: the unit, or a
        row of another table.

        Raises:
            SourceError: those of one source in two ways.
        """
        sources = self.private_sources(home)
        if self.relation.kind not in ("query", "view"):
            return {source: tuple(map(fold, columns)) for source in sources}
        tables = {table.identity: table for table in self.tables}

        def ledger_names(origin: Place) -> Iterable[str]:
            if isinstance(origin, str):
                files = find_files(origin)
                return () if files is None else map(home.file, files.paths)
            return [tables[origin].name(home)] if origin in tables else []

        trusted = TRUSTED in self.relation.statements
        return owners_of(
            self.origins, columns, sources, ledger_names, query=self.relation.sql, trusted=trusted
        )


@dataclass
class SourceSession:
    """An open source: its relations in one engine.

    A relation is called by its own name in the catalog, however it was given.

    Args:
        engine: reads them.
        private: the relations that are released, in the order they were given; at least one.
        public: public tables beside them, which links can name.
        database: the database file that the caller gave the path of.
        memory_limit: of an instance of our own, such as ``"4GB"``.
    """

    engine: SourceEngine
    private: Mapping[str, OpenedSource]
    public: Mapping[str, OpenedSource] = field(default_factory=dict)
    database: Path | None = None
    memory_limit: str | None = None
    released: bool = field(default=False, init=False)

    # -- what it is -----------------------------------------------------------------------------

    @property
    def first(self) -> OpenedSource:
        """The first relation; of a source of one the only one."""
        return next(iter(self.private.values()))

    @property
    def relation(self) -> Relation:
        """That of the first."""
        return self.first.relation

    @property
    def relations(self) -> dict[str, Relation]:
        """The private relations by name."""
        return {name: source.relation for name, source in self.private.items()}

    @property
    def kind(self) -> str:
        """What the source is, for the ledger."""
        return self.first.kind if len(self.private) == 1 else "database"

    @property
    def default_into(self) -> str | None:
        """What is written where the caller does not choose; None if only the caller can."""
        return self.first.default_into if len(self.private) == 1 else None

    @property
    def pattern(self) -> str | None:
        """That of the files of a source of one."""
        return self.first.pattern

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the operator is told of the relations."""
        return _all(source.warnings for source in self.private.values())

    @property
    def reads(self) -> tuple[Identity, ...]:
        """Every table and view that the private relations are made of, but the public ones beside them."""
        openly = {identity for source in self.public.values() for identity in source.reads}
        reads = _all(source.reads for source in self.private.values())
        return tuple(identity for identity in reads if identity not in openly)

    @property
    def paths(self) -> tuple[str, ...]:
        """Every file that the private relations are made of."""
        return _all(source.paths for source in self.private.values())

    @property
    def tables(self) -> tuple[StoredTable, ...]:
        """The private base tables."""
        return _all(source.tables for source in self.private.values())

    @property
    def conventions(self) -> dict[str, str]:
        """The settings that decide what expressions of the relations give."""
        return dict(chain.from_iterable(source.conventions.items() for source in self.private.values()))

    @cached_property
    def facts(self) -> dict[str, TableFacts]:
        """Keys and links of the private and the public relations, as the catalog states them."""
        sources = {**self.private, **self.public}
        identities = {
            name: source.catalogued.identity if source.catalogued is not None else None
            for name, source in sources.items()
        }
        relations = {name: source.relation for name, source in sources.items()}
        return facts_of(self.engine, identities, relations)

    def named(self, text: str) -> str | None:
        """The relation that a person means; None if it is none of these."""
        wanted = fold(text)
        for name, source in chain(self.private.items(), self.public.items()):
            if wanted in (fold(name), fold(display_name(name)), fold(source.spelled)):
                return name
        return None

    def named_column(self, text: str) -> tuple[str, str] | None:
        """The relation and the column that a person means by ``table.column``; None if no table fits."""
        sources = {**self.private, **self.public}
        spelled = [source.spelled for source in sources.values()]
        table_and_column = split_column(text, dict.fromkeys([*sources, *spelled]))
        if table_and_column is None:
            return None
        table, column = table_and_column
        return self.named(table) or "", column

    # -- what it is to the ledger ---------------------------------------------------------------

    @property
    def unplaced(self) -> str:
        """Why no ledger has a default place for the source; empty if one may have."""
        return self.first.unplaced

    @property
    def lineage_unknown(self) -> bool:
        """Whether nothing tells which tables it reads, so that the owner must say which account pays."""
        return self.first.lineage_unknown

    def resolved_names(self, home: LedgerNames) -> dict[str, str]:
        """The ledger's name of each private relation, the same however it was spelled."""
        return {name: source.resolved_name(home) for name, source in self.private.items()}

    def resolved_name(self, home: LedgerNames) -> str:
        """The names of the private relations, in order."""
        return ", ".join(sorted(self.resolved_names(home).values()))

    def definition(self, home: LedgerNames) -> str | None:
        """What views are made by, as a digest; None without views."""
        if len(self.private) == 1:
            return self.first.definition(home)
        views = [source for source in self.private.values() if source.relation.kind == "view"]
        if not views:
            return None
        definitions = sorted(f"{view.resolved_name(home)} {view.definition(home)}" for view in views)
        return hashlib.sha256("\n".join(definitions).encode()).hexdigest()

    def private_sources(self, home: LedgerNames) -> tuple[str, ...]:
        """Names of all private tables and files."""
        return _all(source.private_sources(home) for source in self.private.values())

    def owners(self, columns: Sequence[str], home: LedgerNames) -> dict[str, tuple[str, ...]]:
        """``OpenedSource.owners`` of the first relation."""
        return self.first.owners(columns, home)

    # -- before the debit -----------------------------------------------------------------------

    @property
    def engine_words(self) -> Mapping[str, str]:
        """Lines of the explained plan by their labels: where counting happens, and what it leaves there."""
        return {"Engine": _OWN_ENGINE if self.engine.private else _CALLERS_ENGINE}

    def choose_scratch(self, scratch: str) -> None:
        """Say, before anything is read, whether codes that do not fit in memory are encrypted: one of
        ``planning.limits.SCRATCH``.

        Raises:
            InputError: ``plain``, and the database that reads is not an instance of ours.
        """
        plain = scratch == "plain"
        if plain and not self.engine.private:
            raise InputError(
                "limits={'scratch': 'plain'} is for files and paths of databases: your connection spills by "
                "its own settings (SET temp_file_encryption)."
            )
        self.engine.plain_files = plain

    def ready(self) -> None:
        """Refuse, before the debit, what only a try can find; looks at no row.

        Raises:
            SourceError: questions could not be answered.
        """

    def refuse_undecodable(self) -> None:
        """Refuse, before a new debit, CSV files whose bytes are not of the stated encoding. PRIVATE: it reads
        all rows, and its operator sees whether it refuses.

        Raises:
            SourceError: the database could not read some of their lines.
        """
        refuse_undecodable(_all(source.texts for source in self.private.values()))

    def probe_writing(self) -> bool:
        """Whether the source's database file can be opened for writing; asked before the debit."""
        if self.database is None or self.released:
            raise InternalError("only an open database file can be probed")
        instance.detach(self.engine, self.database)
        writable = False
        with contextlib.suppress(EngineFailure):
            instance.attach(self.engine, self.database, read_only=False)
            instance.detach(self.engine, self.database)
            writable = True
        instance.attach(self.engine, self.database, read_only=True)
        self.engine.watch(instance.files_of(self.database))  # a log may have been worked in
        return writable

    # -- after the last question ----------------------------------------------------------------

    @property
    def forbidden(self) -> tuple[str, ...]:
        """SQL that names a part of the source; refused everywhere after the last question."""
        names = tuple(qualified(*identity) for identity in self.reads)
        return names + tuple(literal(text) for text in spellings(self.paths))

    def release_source(self) -> None:
        """After the last question: drop our temporary tables, forget rows of a data frame, and put the source
        out of reach."""
        if self.released:
            return
        self.released = True
        self.engine.drop_temporary()
        if self.database is not None:
            instance.detach(self.engine, self.database)
        self.engine.forbid(self.forbidden)

    def close(self) -> None:
        """Let the database go; harmless when repeated."""
        self.engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _all(lists: Iterable[Iterable[_T]]) -> tuple[_T, ...]:
    """What is in any of the lists, once."""
    return tuple(dict.fromkeys(chain.from_iterable(lists)))
