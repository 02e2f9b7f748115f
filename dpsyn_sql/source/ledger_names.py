"""What a ledger calls tables and files, so that one source has one name however it is spelled.

A file is named by its path with links followed, a table by its database file, schema and name. Names begin
at the ledger's home: what lies below its folder is named relative to it, and the tables of the database
that the ledger lies beside are named without their file. So a folder can be moved, and a database renamed,
together with its ledger. Tables are named as the database compares them, without regard to letter case.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from dpsyn_sql.source.names import display_name, fold
from dpsyn_sql.source.paths import real_pattern

SUFFIX = ".dpsyn-ledger"
"""A ledger beside a database file is called ``<database file>.dpsyn-ledger``."""

_ONE_STORE = {"s3a": "s3", "s3n": "s3"}
"""Schemes of one and the same store."""


@dataclass(frozen=True, slots=True)
class LedgerNames:
    """Where a ledger's names begin: the place it had when it was made, or None for one in memory."""

    place: Path | None = None

    @classmethod
    def of(cls, place: str | os.PathLike[str] | None) -> LedgerNames:
        """The home of a ledger that is made at ``place`` (links are followed)."""
        return cls(None if place is None else Path(os.path.realpath(place)))

    @property
    def database(self) -> Path | None:
        """The database file that the ledger lies beside, by the ledger's name."""
        if self.place is None or not self.place.name.endswith(SUFFIX) or self.place.name == SUFFIX:
            return None
        return self.place.with_name(self.place.name.removesuffix(SUFFIX))

    def file(self, path: str) -> str:
        """The name of a file that is read."""
        return self._relative(Path(os.path.realpath(path)))

    def output(self, path: str) -> str:
        """The name of a file that is written: a link there is replaced, so only its folder is followed."""
        folder, name = os.path.split(path)
        return self._relative(Path(os.path.realpath(folder)) / name)

    def pattern(self, pattern: str) -> str:
        """The name of a glob: links before the first wildcard are followed."""
        return self._relative(Path(real_pattern(pattern)))

    def table(self, database: str | None, catalog: str, schema: str, name: str) -> str:
        """The name of a table; ``database`` is the file that holds it, None for a database in memory, which
        has no name but the one it is attached by."""
        own = display_name(fold(schema), fold(name))
        if database is None:
            return f":memory:{own if catalog == 'memory' else display_name(fold(catalog)) + '.' + own}"
        real = Path(os.path.realpath(database))
        return own if real == self.database else f"{self._relative(real)}:{own}"

    def frame(self, label: str) -> str:
        """The name of a data frame: the owner's label for it, wherever the ledger lies."""
        return f":frame:{display_name(fold(label))}"

    def spark(self, location: str) -> str:
        """The name of a table of Spark: the place of its files, which two names of one table share."""
        scheme, _, rest = location.partition(":")
        if scheme == "file":
            return f":spark:{self._relative(Path(os.path.realpath('/' + rest.lstrip('/'))))}"
        return f":spark:{_ONE_STORE.get(scheme, scheme)}:{rest.rstrip('/')}"

    def spark_table(self, name: str) -> str:
        """The name of a table of Spark that is written, which has no place yet."""
        return f":spark-table:{fold(name)}"

    def spark_query(self, text: str) -> str:
        """The name of a view or query of Spark."""
        return f":spark-query:{text}"

    def _relative(self, real: Path) -> str:
        if self.place is not None and real.is_relative_to(self.place.parent):
            return real.relative_to(self.place.parent).as_posix()
        return str(real)
