"""Tables of a private instance in a file of its folder, for what does not fit under the memory limit.

PRIVATE. A temporary table spills, but DuckDB 2.0.0 holds about a byte of each row in memory for it. A table
of a database file is compressed and takes none. The file is encrypted with a key that nobody else ever has,
where DuckDB can encrypt, and goes with the folder; ``plain``: the disk is encrypted already.
"""

from __future__ import annotations

import contextlib
import secrets
from pathlib import Path

from dpsyn_sql.errors import EngineFailure
from dpsyn_sql.source.engine import Engine
from dpsyn_sql.sqltext.fragments import Fragment, ident, literal, qualified
from dpsyn_sql.sqltext.render import render

_NAME = "dpsyn_filed"
_STEP = "making a file for what does not fit in memory"


def own_files(folder: Path) -> tuple[str, ...]:
    """The files that an instance with this private folder may open for itself."""
    path = str(folder / f"{_NAME}.duckdb")
    return path, f"{path}.wal"


class FiledTables:
    """Tables in a file; each is seen through a temporary view of the name it was asked by."""

    def __init__(self, engine: Engine, folder: Path, *, plain: bool = False) -> None:
        self._engine = engine
        self._path = Path(own_files(folder)[0])
        self._tables: dict[Fragment, Fragment] = {}
        failed = plain
        if not plain:
            try:
                self._attach(literal(secrets.token_hex(32)))
            except EngineFailure:
                failed = True
        if failed:  # no cipher module: the folder's mode alone protects the file, as it does a spill
            self._attach(None)

    def keep(self, table: Fragment, query: Fragment, step: str) -> None:
        """Make a table of the rows of a query.

        Raises:
            EngineFailure: the database failed; nothing is left.
        """
        filed = qualified(_NAME, "main", f"t{len(self._tables)}_{secrets.token_hex(4)}")
        self._engine.execute(render("count/keep_filed", table=filed, query=query), step=step)
        rows = render("count/slice", table=filed, start=None, stop=None)
        self._engine.execute(render("count/view", view=table, relation=rows), step=step)
        self._tables[table] = filed

    def drop(self, table: Fragment, step: str) -> bool:
        """Let a table go; False if it is none of these."""
        filed = self._tables.pop(table, None)
        if filed is None:
            return False
        self._engine.execute(render("source/drop_temporary", view=1, name=table), step=step)
        self._engine.execute(render("count/drop", table=filed), step=step)
        return True

    def close(self) -> None:
        """Let the file go; its tables are seen by nobody any more."""
        self._engine.execute(render("source/detach", name=ident(_NAME)), step=_STEP)
        with contextlib.suppress(OSError):
            self._path.unlink()

    def _attach(self, key: Fragment | None) -> None:
        with contextlib.suppress(OSError):
            self._path.unlink()
        path = literal(str(self._path))
        self._engine.execute(render("count/attach_filed", path=path, name=ident(_NAME), key=key), step=_STEP)
