"""An output of several tables that was checked, and what is to be written there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.engines.target_session import Output
from dpsyn_sql.errors import TargetError
from dpsyn_sql.planning.tree import PublicTable
from dpsyn_sql.source.names import case_clashes, last_part, listed


@dataclass(frozen=True, slots=True)
class DatabaseTarget:
    """A checked output of several tables (``rows.write.publish.AnyTarget``).

    Args:
        kind: what it is.
        name: what to print.
        output: what is written, for the ledger.
        label: what the release is called there by default: the schema, or the file or folder without ending.
        home: the attached database and the schema; None for a file or folder.
        path: the database file or the folder; None for a schema.
        names: what each table, and each public table that is copied, is called there.
        copies: the public tables that are written too, because they are not in the same database or are
            referred to by constraints.
        existing: those of ``names`` that are there already.
        dropped: tables that are written anew, one that refers to others before them.
        replace: what is there may be overwritten.
        only_same: what is there must equal what is written.
    """

    kind: Literal["schema", "database", "folder"]
    name: str
    output: Output
    label: str
    home: tuple[str, str] | None
    path: Path | None
    names: Mapping[str, str]
    copies: tuple[PublicTable, ...]
    existing: frozenset[str]
    dropped: tuple[str, ...]
    replace: bool
    only_same: bool
    _open: Callable[[], DuckDBEngine]
    _forbidden: tuple[str, ...]

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
class Written:
    """What is written: the ``tables`` of a release, the first one of its units, and the ``public`` ones."""

    tables: Sequence[str]
    public: Sequence[PublicTable]
    constraints: bool

    def names(self, copies: Sequence[PublicTable]) -> dict[str, str]:
        """What each table is called in the output: the last part of its name.

        Raises:
            TargetError: two tables would have one name.
        """
        written = [*self.tables, *(table.name for table in copies)]
        names = {name: last_part(name) for name in written}
        if clashes := case_clashes(list(names.values())):
            raise TargetError(
                f"Several tables of the release have the name {listed(clashes)}: the output has one of each "
                "name. Make views of them under other names, and release these."
            )
        return names
