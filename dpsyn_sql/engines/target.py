"""Where the synthetic rows go: one checked output, and outputs that are files."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from dpsyn_sql.engines import instance
from dpsyn_sql.engines.catalog import DuckDBCatalog
from dpsyn_sql.engines.connections import CALLERS, cursor_of
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.engines.identities import storage
from dpsyn_sql.engines.source_session import Connection, SourceSession
from dpsyn_sql.engines.spark.outputs import SparkOutput
from dpsyn_sql.errors import TargetError
from dpsyn_sql.planning.tree import PublicTable
from dpsyn_sql.rows.write.publish import Destination, Kind
from dpsyn_sql.rows.write.tasks import RowPublisher
from dpsyn_sql.source.files import ending_of, file_beside
from dpsyn_sql.source.names import (
    Identity,
    LedgerNames,
    absolute_path,
    case_clashes,
    display_name,
    fold,
    last_part,
    listed,
    real_pattern,
    shorten,
)
from dpsyn_sql.sqltext.fragments import Fragment, qualified
from dpsyn_sql.sqltext.release_tables import SCHEMA


@dataclass(frozen=True, slots=True)
class Output:
    """What is written, for the ledger: a table in a database file (None: in memory), or a file.

    ``spelled`` is its full name or path. ``spark``: it is a table or a folder of Spark.
    """

    spelled: str
    table: Identity | None = None
    database: str | None = None
    spark: Literal["", "table", "folder"] = ""

    def name(self, home: LedgerNames) -> str:
        """The same however ``into`` was spelled, under any alias of the database and in any letter case."""
        if self.spark:
            return home.spark(self.spelled) if self.spark == "folder" else home.spark_table(self.spelled)
        if self.table is None:
            return home.output(self.spelled)
        return home.table(self.database, *self.table)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target(Destination):
    """A checked output.

    Args:
        name: what to print.
        output: what is written, for the ledger.
        label: what the release is called there by default: a table with its schema unless that is main, a
            schema, or a file or folder without ending.
        copies: the public tables that are written too, because they are not in the same database or are
            referred to by constraints.
        spark: the table or folder of Spark.
    """

    name: str
    output: Output
    label: str
    copies: tuple[PublicTable, ...]
    _open: Callable[[], DuckDBEngine]
    _forbidden: tuple[str, ...]
    spark: SparkOutput | None = None

    def sql_of(self, table: str) -> Fragment | None:
        """The quoted full name of a table of the release in a database that is attached; None elsewhere."""
        return None if self.home is None else qualified(*self.home, self.names[table])

    @property
    def sql(self) -> Fragment | None:
        """The quoted full name of a table that is written alone."""
        return None if self.kind != "table" or self.output.table is None else qualified(*self.output.table)

    @property
    def database(self) -> str | None:
        """The attached database."""
        return None if self.home is None else self.home[0]

    @property
    def files(self) -> tuple[Path, ...]:
        """The files and folders that would be written."""
        if self.path is None:
            return ()
        inside = (self.path / f"{name}.parquet" for name in self.names.values())
        return (self.path, *(inside if self.kind == "folder" else ()))

    def stored_in(self, con: Connection) -> Connection | SparkOutput:
        """Where its models are found: with the tables, or beside files. ``con`` is what writes it."""
        if self.spark is not None or self.path is None:
            return self.spark or con
        return file_beside(self.path) if self.kind == "folder" else self.path

    def open(self) -> DuckDBEngine:
        """The session that writes; it cannot name the source.

        Raises:
            InternalError: the source has not been released although both are in one database file.
            EngineFailure: the database cannot be opened any more.
        """
        engine = self._open()
        engine.forbid(self._forbidden)
        return engine


@dataclass(frozen=True, slots=True)
class TargetCheck:
    """What an output is checked for (as ``open_target``)."""

    con: Connection
    session: SourceSession
    tables: Sequence[str]
    public: Sequence[PublicTable]
    replace: bool
    written: Callable[[Output], bool]
    constraints: bool

    def may_replace(self, output: Output) -> bool:
        """Whether this output may be written over."""
        return self.replace or self.written(output)

    def private_instance(self) -> DuckDBEngine:
        """What writes where no database does."""
        return instance.private_instance(self.session.memory_limit)

    def names(self, copies: Sequence[PublicTable]) -> dict[str, str]:
        """What each table is called in the output: the last part of its name.

        Raises:
            TargetError: two tables would have one name.
        """
        names = {name: last_part(name) for name in (*self.tables, *(table.name for table in copies))}
        if clashes := case_clashes(list(names.values())):
            raise TargetError(
                f"Several tables of the release have the name {listed(clashes)}: the output has one of each "
                "name. Make views of them under other names, and release these."
            )
        return names

    def target(
        self,
        kind: Kind,
        name: str,
        output: Output,
        label: str,
        names: Mapping[str, str],
        *,
        existing: frozenset[str] = frozenset(),
        home: tuple[str, str] | None = None,
        path: Path | None = None,
        copies: Sequence[PublicTable] = (),
        dropped: tuple[str, ...] = (),
        opened: Callable[[], DuckDBEngine] | None = None,
        publisher: RowPublisher | None = None,
        spark: SparkOutput | None = None,
    ) -> Target:
        """The checked output, of fields as of ``Target``. ``existing`` may be overwritten; ``opened`` gives
        the session that writes, None: an instance of our own."""
        return Target(
            kind=kind,
            name=name,
            output=output,
            label=label,
            names=names,
            home=home,
            path=path,
            copies=tuple(copies),
            existing=existing,
            dropped=dropped,
            replace=bool(existing) or self.replace,
            only_same=bool(existing) and not self.replace,
            _open=opened or self.private_instance,
            _forbidden=self.session.forbidden,
            publisher=publisher,
            spark=spark,
        )


# -- files and folders -------------------------------------------------------------------------------

# Outputs that are files: one of rows, a folder of Parquet files, or a database file of its own.


def file_target(text: str, check: TargetCheck) -> Target:
    """A file of rows, with the model beside it."""
    ending = ending_of(text)
    if ending is None:
        raise TargetError(
            f"{shorten(text)!r} does not end in .parquet, .csv or .csv.gz. (The name of a table with a slash "
            "must be quoted, and needs a database as con.)"
        )
    path = absolute_path(text)
    model, output, label = file_beside(path), Output(str(path)), path.name[: -len(ending)]
    _check_folder(path.parent)
    if any(belongs_to_source(file, ending_of(file.name), check.session) for file in (path, model)):
        raise TargetError(
            f"{shorten(text)!r} is the source or would become part of it: choose another into=."
        )
    exists = os.path.lexists(path)
    if exists and not path.is_file():
        raise TargetError(f"{shorten(text)!r} exists and is not a file.")
    if exists and not check.may_replace(output):
        raise TargetError(f"The file {shorten(text)!r} exists; choose another into=, or add replace=True.")
    if os.path.lexists(model):
        if not (model.is_file() and check.may_replace(output)):
            raise TargetError(
                f"{shorten(str(model))!r}, the file for the model of the release, exists. Choose another "
                "into=, or add replace=True."
            )
        # Without its output nothing says which release a model is of: the same one, or one that came later.
        if not (exists or check.replace):
            raise TargetError(
                f"{shorten(str(model))!r}, the model of a release, exists without its output. Delete it, "
                "choose another into=, or add replace=True."
            )
    names = {check.tables[0]: label}
    existing = frozenset(names if exists else ())
    return check.target("file", text, output, label, names, existing=existing, path=path)


def folder_target(text: str, check: TargetCheck) -> Target:
    """A folder, which is made if it is missing: a file for each table, and the models beside it."""
    if ending_of(text) is not None:
        raise TargetError(f"{shorten(text)!r} is one file: give a folder for the tables of the release.")
    path = absolute_path(text)
    names, output = check.names(check.public), Output(str(path))
    if os.path.lexists(path) and not path.is_dir():
        raise TargetError(f"{shorten(text)!r} exists and is not a folder.")
    _check_folder(path if path.is_dir() else path.parent)
    files = {name: path / f"{written}.parquet" for name, written in names.items()}
    models = file_beside(path)
    if any(
        belongs_to_source(file, ending_of(file.name), check.session) for file in (*files.values(), models)
    ):
        raise TargetError(f"{shorten(text)!r} has the source, or would add to it: choose another into=.")
    existing = [name for name, file in files.items() if os.path.lexists(file)]
    odd = [files[name].name for name in existing if not files[name].is_file()]
    if odd:
        raise TargetError(f"{listed(odd)} in {shorten(text)!r} is not a file; choose another into=.")
    if (existing or os.path.lexists(models)) and not check.may_replace(output):
        standing = [files[name].name for name in existing] or [str(models)]
        raise TargetError(f"{listed(standing)} exists; choose another into=, or add replace=True.")
    # Without its output nothing says which release a model is of: the same one, or one that came later.
    if os.path.lexists(models) and not (existing or check.replace):
        raise TargetError(
            f"{shorten(str(models))!r}, the models of a release, exists without its tables. Delete it, "
            "choose another into=, or add replace=True."
        )
    return check.target(
        "folder",
        text,
        output,
        path.name,
        names,
        existing=frozenset(existing),
        path=path,
        copies=check.public,
    )


def _check_folder(folder: Path) -> None:
    if not folder.is_dir():
        raise TargetError(f"The folder {shorten(str(folder))!r} does not exist.")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise TargetError(f"The folder {shorten(str(folder))!r} cannot be written.")


# -- a database file of its own ----------------------------------------------------------------------


def database_target(text: str, check: TargetCheck) -> Target:
    """A database file that is made, or holds nothing but tables of the release and models."""
    path = absolute_path(text)
    _check_folder(path.parent)
    names, output = check.names(check.public), Output(str(path))
    if belongs_to_source(path, ending_of(path.name), check.session) or _is_attached(check.con, path):
        raise TargetError(
            f"{shorten(text)!r} is an open database. For tables in it give into= the name of a schema, such "
            "as 'synthetic'."
        )
    if os.path.lexists(f"{path}.wal"):
        raise TargetError(
            f"{shorten(f'{path}.wal')!r} belongs to a database of this name that was not closed. Open and "
            "close it, or choose another into=."
        )
    exists = os.path.lexists(path)
    if exists and not path.is_file():
        raise TargetError(f"{shorten(text)!r} exists and is not a file.")
    if exists and not check.may_replace(output):
        raise TargetError(f"The file {shorten(text)!r} exists; choose another into=, or add replace=True.")
    if exists:
        _check_replaceable(path, names)
    existing = frozenset(names if exists else ())
    return check.target(
        "database", text, output, path.stem, names, existing=existing, path=path, copies=check.public
    )


def _check_replaceable(path: Path, names: Mapping[str, str]) -> None:
    """Whether a database file holds tables of this release and models alone."""
    reader = instance.opened_database(path)
    if reader is None:
        raise TargetError(f"{shorten(str(path))!r} {instance.NOT_OPENED} Choose another into=.")
    with contextlib.closing(reader):
        identities = [relation.identity for relation in DuckDBCatalog(reader).relations.values()]
    released = {fold(name) for name in names.values()}
    strangers = [
        display_name(schema, name)
        for _, schema, name in identities
        if fold(schema) != SCHEMA and not (fold(schema) == "main" and fold(name) in released)
    ]
    if strangers:
        raise TargetError(
            f"The database file {shorten(str(path))!r} would be written anew, and has more than the tables "
            f"of this release: {listed(sorted(strangers))}. Choose another into=."
        )


def _is_attached(con: Connection, path: Path) -> bool:
    if not isinstance(con, CALLERS):
        return isinstance(con, str | os.PathLike) and _same(os.fspath(con), path)
    with contextlib.closing(cursor_of(con)) as engine:
        return any(_same(row["path"], path) for row in DuckDBCatalog(engine).databases.values())


def _same(file: object, path: Path) -> bool:
    return bool(file) and os.path.realpath(str(file)) == os.path.realpath(path)


# -- whether a new file would be a part of the source ------------------------------------------------


def belongs_to_source(path: Path, ending: str | None, session: SourceSession) -> bool:
    """The same file under any name, or a new file that the source's glob or folder would take in."""
    real = os.path.realpath(path)
    files = [*session.paths, *([str(session.database)] if session.database is not None else [])]
    if storage(real) in {storage(os.path.realpath(file)) for file in files}:
        return True
    if session.pattern is None:
        return False
    # Where it is, and where it leads to if it is a link.
    addresses = {str(path), str(Path(os.path.realpath(path.parent), path.name)), real}
    if Path(session.relation.name).is_dir():
        source_endings = {ending_of(file) for file in session.paths}
        folder = os.path.realpath(session.relation.name)
        return ending in source_endings and folder in {str(Path(address).parent) for address in addresses}
    patterns = [_glob_regex(pattern) for pattern in (session.pattern, real_pattern(session.pattern))]
    return any(pattern.fullmatch(address) for pattern in patterns for address in addresses)


def _glob_regex(pattern: str) -> re.Pattern[str]:
    """A glob as a regular expression over whole paths; ``**`` crosses folders."""
    pieces = []
    for piece in re.findall(r"\*\*/?|\*|\?|\[[^\]]+\]|.", pattern, flags=re.DOTALL):
        if piece.startswith("**"):
            pieces.append(".*")
        elif piece in "*?":
            pieces.append("[^/]*" if piece == "*" else "[^/]")
        elif len(piece) > 1:
            pieces.append("[" + piece[1:-1].replace("\\", "\\\\").replace("!", "^", piece[1] == "!") + "]")
        else:
            pieces.append(re.escape(piece))
    return re.compile("".join(pieces), re.DOTALL)
