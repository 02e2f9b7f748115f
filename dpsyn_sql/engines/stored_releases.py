"""Find stored releases in a database, read them, and draw rows from them. All of it is public.

A path is opened read-only in our own instance without other access to files, because a stored release
has macros. A caller's connection is read through a cursor.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.common.folders import locked_folder
from dpsyn_sql.engines import instance
from dpsyn_sql.engines.catalog import DuckDBCatalog
from dpsyn_sql.engines.connections import CALLERS, CallingConnection, cursor_of
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.engines.source_session import Connection
from dpsyn_sql.engines.spark.outputs import SparkOutput
from dpsyn_sql.errors import EngineFailure, InputError, said
from dpsyn_sql.rows.sample.sql_text import MOST_NODES, MOST_ON_WAY
from dpsyn_sql.source.files import ending_of, file_beside
from dpsyn_sql.source.names import Identity, absolute_path, fold, listed, shorten
from dpsyn_sql.sqltext.fragments import Fragment, ident, literal, qualified, string_literal
from dpsyn_sql.sqltext.release_tables import OLD, SCHEMA, TABLES, columns_of, is_old
from dpsyn_sql.sqltext.render import render

if TYPE_CHECKING:
    import pandas as pd

_READING = "reading a stored release"
_DRAWING = "drawing rows of a stored release"
_NETWORK = ("shares", "variables")
"""The tables that rows are drawn from, and what the numbers in them mean."""
_REMEDY = "The same release with replace=True stores it again and costs nothing more."
_OUT_OF_ROOM = ("OutOfMemoryException", "MemoryError")
_NO_ROOM = (*_OUT_OF_ROOM, "IOException")
_WRITERS = {".parquet": "write/copy_parquet", ".json": "write/copy_json"}
"""Templates by the ending of a file; of all others CSV."""

_COPIES = "dpsyn-model-"

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Tied:
    """A table of a release of several: ``name`` of the release, ``table``, and the parent of each table, None
    of the root."""

    name: str
    table: str
    parents: Mapping[str, str | None]

    @property
    def way(self) -> list[str]:
        """The tables from the root to this one."""
        tables, above = [self.table], self.parents[self.table]
        while above is not None and above not in tables:
            tables.insert(0, above)
            above = self.parents[above]
        return tables


@dataclass(frozen=True, slots=True)
class Stored:
    """One release in a database: ``number`` is its key in all tables."""

    database: str
    number: int
    release_id: str
    name: str
    total: float
    certificate: str

    @property
    def tied(self) -> Tied | None:
        """How it belongs to a release of several tables; None if it is alone, or its certificate damaged."""
        try:
            facts = json.loads(self.certificate)["database"]
            parents = {str(entry["table"]): entry["parent"] for entry in facts["tables"]}
            tied = Tied(str(facts["name"]), str(facts["table"]), parents)
            return tied if tied.way else None
        except (LookupError, RecursionError, TypeError, ValueError):
            return None


@dataclass(frozen=True, slots=True)
class StoredSession:
    """A database, or several attached ones, opened to read releases.

    ``where`` is for messages; ``output`` is the file whose model the database keeps, if its path says so.
    """

    engine: DuckDBEngine
    where: str
    output: Path | None = None

    def find(self, name: str | None) -> Stored:
        """The release of this name (in any letter case), or the only one.

        Raises:
            InputError: there is none, or several; the message lists the releases.
        """
        return named(self.releases(), name, self._current, self.where)

    def find_tables(self, name: str | None) -> dict[str, Stored]:
        """The tables of the release of several that has this name, or of the only release; empty if there is
        none, or the name is that of one table.

        Raises:
            InputError: as ``releases``; or several databases have such a release.
        """
        return tables_named(self.releases(), name, self._current, self.where)

    def known(self, release_id: str) -> Stored | None:
        """The release of this id; None if it is not here.

        Raises:
            InputError: as ``releases``.
        """
        return next((release for release in self.releases() if release.release_id == release_id), None)

    def releases(self) -> list[Stored]:
        """All releases, of the current database first.

        Raises:
            InputError: there is none, or their tables are damaged or of an older format.
        """
        releases, faults = list[Stored](), list[str]()
        for database, tables in self._databases().items():
            fault = self._fault(tables)
            if fault:
                faults.append(fault)
            else:
                releases += self._releases(database)
        if releases:
            return releases
        if faults:
            raise InputError(faults[0])
        raise InputError(
            f"There is no release in {self.where}. A release is stored in schema {SCHEMA!r} of the database "
            "that has the synthetic table, or in the file beside an output file that ends in .dpsyn.duckdb."
        )

    def tables(self, release: Stored) -> dict[str, dict[str, NDArray[Any]]]:
        """The rows of a release in each table, except the tables that rows are drawn from."""
        read = [table for table in TABLES if table not in ("releases", *_NETWORK)]
        return {table: self._table(release, table) for table in read}

    def network(self, release: Stored) -> dict[str, dict[str, NDArray[Any]]]:
        """The rows of a release in the tables of its network, ``shares`` and ``variables``: none if its
        model is no network."""
        return {table: self._table(release, table) for table in _NETWORK}

    def draw(self, release: Stored, rows: int, seed: int | None) -> pd.DataFrame:
        """Rows of a release, by its stored macro.

        Raises:
            InputError: SQL cannot draw rows of the model, or the macro is missing.
            EngineFailure: there was not enough memory.
        """
        sql, converted = _sample(release, rows, seed), self.engine.converted
        frame: pd.DataFrame = self._drawn(
            release, lambda: converted(sql, lambda relation: relation.df(), step=_DRAWING)
        )
        return frame

    def write(self, release: Stored, rows: int, seed: int | None, path: Path, statement: Fragment) -> int:
        """Rows of a release into a new file that this session may write; how many they are.

        Args:
            release: what is drawn from.
            rows: how many to draw; the owner's conditions may exclude some.
            seed: None: that of ``dpsyn_sample``.
            path: ends in .parquet, .json (an array), .csv or .csv.gz.
            statement: a literal of one piece that a Parquet file keeps.

        Raises:
            InputError: SQL cannot draw rows of the model, or the macro is missing.
            EngineFailure: there was not enough memory or room.
        """
        template = _WRITERS.get(path.suffix.lower(), "write/copy_csv")
        file, query = string_literal(str(path)), _sample(release, rows, seed)
        sql = render(template, path=file, query=query, statement=statement)
        return int(self._drawn(release, lambda: self.engine.fetch(sql, step=_DRAWING), _NO_ROOM)["Count"][0])

    def _drawn(self, release: Stored, draw: Callable[[], _T], passed: Collection[str] = _OUT_OF_ROOM) -> _T:
        """What ``draw`` gives; failures of kinds ``passed`` pass, others are those of a changed release."""
        self._check_network(release)
        failure = ""
        try:
            home = qualified(release.database, "main")
            self.engine.execute(render("source/use", name=home), step=_DRAWING)
            return draw()
        except EngineFailure as error:
            if error.kind in passed:
                raise
            failure = error.kind
        raise InputError(
            f"The database cannot draw rows of release {release.name!r} ({failure}): its stored form was "
            "changed, or another attached database has the name 'dpsyn'. "
            f"{_REMEDY}"
        )

    def _check_network(self, stored: Stored) -> None:
        table = qualified(*self._databases()[stored.database]["shares"])
        numbers = [table_release.number for table_release in way_of(self.releases(), stored)]
        nodes = [
            int(self._fetched(render("load/nodes", table=table, release=number))["nodes"][0])
            for number in numbers
        ]
        if all(nodes) and sum(nodes) <= (MOST_NODES if len(nodes) == 1 else MOST_ON_WAY):
            return
        why = "has too many variables for one query" if all(nodes) else "is not a network"
        raise InputError(
            f"The model of release {stored.name!r} {why}, so SQL cannot draw rows of it. For more rows use "
            "the same call of release() with rows= and another into=, at no cost."
        )

    @property
    def _current(self) -> str:
        return str(self._fetched(render("source/session"))["catalog"][0])

    def _databases(self) -> dict[str, dict[str, Identity]]:
        """Databases with tables of ours, and where these are; the current one first. A view does not count:
        reading it would run the query of whoever made it."""
        databases: dict[str, dict[str, Identity]] = {}
        for relation in self._told(lambda: list(DuckDBCatalog(self.engine).relations.values())):
            catalog, schema, table = relation.identity
            is_of_ours = relation.kind == "table" and fold(table) in TABLES
            if is_of_ours and fold(schema) == SCHEMA:
                databases.setdefault(catalog, {})[fold(table)] = relation.identity
        return dict(sorted(databases.items(), key=lambda item: (item[0] != self._current, item[0])))

    def _fault(self, tables: dict[str, Identity]) -> str:
        """What is wrong with the tables of a database; empty if nothing is."""
        if "releases" in tables and is_old(self._columns(tables["releases"])):
            return f"The releases in {self.where} were {OLD}"
        missing = [table for table in TABLES if table not in tables]
        if missing:
            return self._damaged(f"schema {SCHEMA!r} has no table {listed(missing)}")
        for table in TABLES:
            if self._columns(tables[table]) != columns_of(table):
                return self._damaged(f"the columns of its table {table!r} are not those that release() makes")
        return ""

    def _columns(self, identity: Identity) -> tuple[tuple[str, str], ...]:
        catalog, schema, name = (literal(part) for part in identity)
        described = self._fetched(render("source/columns", catalog=catalog, schema=schema, name=name))
        return tuple(zip(map(str, described["name"]), map(str, described["sql_type"]), strict=True))

    def _damaged(self, what: str) -> str:
        return f"The releases stored in {self.where} are damaged: {what}. {_REMEDY}"

    def _releases(self, database: str) -> list[Stored]:
        rows = self._fetched(render("load/releases", schema=_schema(database)))
        if any(np.ma.is_masked(values) for values in rows.values()):
            raise InputError(self._damaged("NULL in table 'releases'"))
        columns = (rows[key].tolist() for key in ("release", "release_id", "name", "total", "certificate"))
        releases = [Stored(database, *values) for values in zip(*columns, strict=True)]
        if len({release.number for release in releases}) < len(releases):
            raise InputError(self._damaged("several releases have the same number"))
        return releases

    def _table(self, release: Stored, table: str) -> dict[str, NDArray[Any]]:
        columns = [name for name, _ in columns_of(table) if name != "release"]
        sql = render(
            "load/rows",
            schema=_schema(release.database),
            table=ident(table),
            columns=[ident(name) for name in columns],
            release=release.number,
        )
        return self._fetched(sql)

    def _fetched(self, sql: Fragment) -> dict[str, NDArray[Any]]:
        return self._told(lambda: self.engine.fetch(sql, step=_READING))

    def _told(self, read: Callable[[], _T]) -> _T:
        """A database that cannot be read is damaged, or was removed."""
        failure = ""
        try:
            return read()
        except EngineFailure as error:
            if error.kind in _OUT_OF_ROOM:
                raise
            failure = error.kind
        raise InputError(f"The releases stored in {self.where} cannot be read ({failure}).")


def _sample(release: Stored, rows: int, seed: int | None) -> Fragment:
    return render(
        "load/sample",
        database=ident(release.database),
        name=string_literal(release.name),
        rows=rows,
        seeded=int(seed is not None),
        seed=literal(seed),
    )


@contextlib.contextmanager
def opened_releases(con: Connection | SparkOutput, output: Path | None = None) -> Iterator[StoredSession]:
    """A session that reads the releases stored in ``con``, all at one moment. It writes no database.

    Args:
        con: a DuckDB connection, the path of a DuckDB file, or of a released file with such a file beside it;
            or a release in Spark, whose model is copied for as long as the session lasts.
        output: a new file that a session on a path may write.

    Raises:
        InputError: there is no such file, or it cannot be opened as a DuckDB database now.
    """
    with contextlib.ExitStack() as stack:
        if isinstance(con, SparkOutput):
            folder = stack.enter_context(locked_folder(Path(tempfile.gettempdir()), _COPIES))
            copy = _opened_file(str(con.fetch_model(folder)), None)
            session = StoredSession(copy.engine, repr(shorten(con.name)))
        elif isinstance(con, CALLERS):
            session = StoredSession(cursor_of(con), "the databases of this connection")
        elif isinstance(con, str | os.PathLike) and isinstance(os.fspath(con), str):
            session = _opened_file(os.fspath(con), output)
        else:
            raise InputError(
                f"con={said(con)}: give a DuckDB connection, the path of a DuckDB file, or the path of a "
                "file that release() wrote"
            )
        stack.callback(session.engine.close)
        stack.enter_context(session.engine.transaction())
        yield session


def standing(con: Connection | SparkOutput, release_id: str, table: Fragment | None = None) -> Stored | None:
    """The release of this id if it is stored in ``con`` and its output has the rows that it says; else None.

    Args:
        con: as for ``opened_releases``; of an output file its path.
        release_id: of the release.
        table: quoted name of the output, if it is a table.
    """
    try:
        with opened_releases(con) as session:
            release = session.known(release_id)
            if release is None or table is None:
                return release
            counted = session.engine.fetch(render("load/count", table=table), step=_READING)
            rows = json.loads(release.certificate)["sampling"]["rows"]
            return release if int(counted["rows"][0]) == rows else None
    except (InputError, EngineFailure):
        return None


def reopenable(con: Connection | SparkOutput) -> Connection | SparkOutput:
    """The same database for a later call, from any folder."""
    if isinstance(con, CallingConnection):
        return con.con  # the query is over by then
    return absolute_path(con) if isinstance(con, str | os.PathLike) else con


def drawing(
    con: Connection | SparkOutput, release_id: str, name: str
) -> Callable[[int, int | None], pd.DataFrame]:
    """A function of the number of rows and the seed (None: that of ``dpsyn_sample``) that draws rows of a
    stored release. Each call opens ``con``; nothing stays open in between."""
    database = reopenable(con)

    def draw(rows: int, seed: int | None) -> pd.DataFrame:
        with opened_releases(database) as session:
            release = session.known(release_id)
            if release is None:
                raise InputError(
                    f"The release {name!r} is no longer in {session.where}: it was replaced or "
                    "removed. load() gives the present release."
                )
            return session.draw(release, rows, seed)

    return draw


def _opened_file(text: str, written: Path | None) -> StoredSession:
    """A database file, read-only, in an instance that can open nothing else but a file to write."""
    if not text.strip() or "\x00" in text:
        raise InputError("The path is empty or holds a NUL character.")
    path, output = absolute_path(text), None
    ending = file_beside(Path("x")).name[1:]
    if ending_of(path.name) is not None or os.path.isdir(path):  # noqa: PTH112 - as below
        path, output = file_beside(path), path
    elif path.name.endswith(ending):
        output = path.with_name(path.name[: -len(ending)])
    if not os.path.isfile(path):  # noqa: PTH113 - False for text that cannot be a path
        if output is None or not os.path.lexists(output):
            raise InputError(f"There is no file {shorten(text)!r}.")
        purpose = f"the file for the model of {shorten(output.name)!r}"
        raise InputError(f"There is no file {shorten(str(path))!r}, {purpose}.")
    engine = instance.opened_database(path)
    if engine is None:
        raise InputError(f"{shorten(str(path))!r} {instance.NOT_OPENED}")
    with instance.closed_on_failure(engine):
        instance.lock(engine, (str(path), f"{path}.wal", *(() if written is None else (str(written),))))
    return StoredSession(engine, repr(shorten(str(path))), output)


def _schema(database: str) -> Fragment:
    return qualified(database, SCHEMA)


# -- which stored release a name means: one table's, or those of all tables of one release --------------


def named(releases: Sequence[Stored], name: str | None, current: str, where: str) -> Stored:
    """The release of this name (in any letter case), or the only one.

    Args:
        releases: all of them.
        name: None: the only one.
        current: the database that is looked at first.
        where: for messages.

    Raises:
        InputError: there is none, or several; the message lists the releases.
    """
    names = listed(sorted({release.name for release in releases}, key=fold))
    candidates = [release for release in releases if name is None or fold(release.name) == fold(name)]
    if not candidates:
        raise InputError(f"There is no release {shorten(repr(name))} in {where}; there are {names}.")
    if name is None and len(candidates) > 1:
        raise InputError(f"There are several releases in {where}: give name=, one of {names}.")
    return candidates[_here([release.database for release in candidates], name, current, where)]


def tables_named(releases: Sequence[Stored], name: str | None, current: str, where: str) -> dict[str, Stored]:
    """The tables of the release of several that has this name, or of the only release; empty if there is
    none, or the name is that of one table. Arguments as of ``named``.

    Raises:
        InputError: several databases have such a release.
    """
    if name is not None and any(fold(release.name) == fold(name) for release in releases):
        return {}
    trees = dict[tuple[str, str], dict[str, Stored]]()
    for release in releases:
        tied = release.tied
        if tied is not None and (name is None or fold(tied.name) == fold(name)):
            trees.setdefault((release.database, fold(tied.name)), {})[tied.table] = release
    alone = sum(map(len, trees.values())) < len(releases)
    if not trees or (name is None and (alone or len({tree for _, tree in trees}) > 1)):
        return {}
    return [*trees.values()][_here([database for database, _ in trees], name, current, where)]


def way_of(releases: Sequence[Stored], release: Stored) -> list[Stored]:
    """The releases of the tables from the root down to that of ``release``; alone if it is of no tree."""
    tied = release.tied
    if tied is None:
        return [release]
    tree_releases = [(other, other.tied) for other in releases if other.database == release.database]
    tables = {
        tied_other.table: other
        for other, tied_other in tree_releases
        if tied_other is not None and fold(tied_other.name) == fold(tied.name)
    }
    return [tables[table] for table in tied.way if table in tables]


def _here(databases: Sequence[str], name: str | None, current: str, where: str) -> int:
    """Which of several is in the current database, or the only one."""
    here = [number for number, database in enumerate(databases) if fold(database) == fold(current)]
    chosen = here if len(here) == 1 else [*range(len(databases))]
    if len(chosen) > 1:
        raise InputError(
            f"The name {shorten(repr(name))} stands for {len(chosen)} releases in {where}, in the databases "
            f"{listed(sorted({*databases}))}: USE one of them, or give the path of its file as con."
        )
    return chosen[0]
