"""Where the synthetic rows go: one output that was checked before anything was charged.

An output is a list of tables: a table or a schema of a database, a file or a folder, a database file, or what
Spark writes. Public side: the engine that ``Target.open`` hands out refuses every statement that names the
source.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from dpsyn_sql.engines import instance
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.engines.source_session import Connection, SourceSession
from dpsyn_sql.engines.spark.outputs import SparkOutput
from dpsyn_sql.errors import TargetError
from dpsyn_sql.planning.tree import PublicTable
from dpsyn_sql.rows.write.tasks import RowPublisher
from dpsyn_sql.source.files import ending_of, file_beside
from dpsyn_sql.source.ledger_names import LedgerNames
from dpsyn_sql.source.names import Identity, case_clashes, last_part, listed
from dpsyn_sql.sqltext.fragments import Fragment, qualified

TargetKind = Literal["table", "schema", "file", "folder", "database", "spark"]


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


@dataclass(frozen=True, slots=True)
class Target:
    """A checked output.

    Args:
        kind: what it is; ``"database"`` is a database file of its own.
        name: what to print.
        output: what is written, for the ledger.
        label: what the release is called there by default: a table with its schema unless that is main, a
            schema, or a file or folder without ending.
        names: what each table, and each public table that is copied, is called there.
        home: the attached database and the schema; None for a file, a folder or Spark.
        path: the file, the folder or the database file; None for all else.
        copies: the public tables that are written too, because they are not in the same database or are
            referred to by constraints.
        existing: those of ``names`` that are there already.
        dropped: tables of a schema that are written anew, one that refers to others before them.
        replace: what is there may be overwritten.
        only_same: what is there must equal what is written.
        publisher: of Spark, writes the rows.
        spark: the table or folder of Spark.
    """

    kind: TargetKind
    name: str
    output: Output
    label: str
    names: Mapping[str, str]
    home: tuple[str, str] | None
    path: Path | None
    copies: tuple[PublicTable, ...]
    existing: frozenset[str]
    dropped: tuple[str, ...]
    replace: bool
    only_same: bool
    _open: Callable[[], DuckDBEngine]
    _forbidden: tuple[str, ...]
    publisher: RowPublisher | None = None
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
    def format(self) -> Literal["parquet", "csv"] | None:
        """That of a file; one that ends in .gz is meant compressed."""
        if self.kind != "file" or self.path is None:
            return None
        return "parquet" if ending_of(self.path.name) == ".parquet" else "csv"

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
        kind: TargetKind,
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
