"""The DuckDB session behind the ``Engine`` protocol: runs statements, hands out numpy columns.

PRIVATE side while it reads the source; after ``forbid`` it refuses every statement that names it.
DuckDB's messages quote cell values, so none passes: an ``EngineFailure`` says the step, the class
of the error and our own statement, and is raised outside the ``except`` block.
"""

from __future__ import annotations

import contextlib
import re
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import duckdb
import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.common.folders import LockedFolder
from dpsyn_sql.engines.code_slices import own_files
from dpsyn_sql.engines.counting_engine import CountingEngine
from dpsyn_sql.errors import EngineFailure, InternalError
from dpsyn_sql.sqltext.fragments import ident, qualified
from dpsyn_sql.sqltext.render import render

_T = TypeVar("_T")

_DRAIN = 4096
_INEXACT = ("HUGEINT", "UHUGEINT")
_INTERRUPTED = "Query interrupted"
_QUOTED = re.compile(r"--[^\n]*|\"(?:[^\"]|\"\")*\"|'(?:[^']|'')*'")
_OPENS = re.compile(
    r"\bread_|\bparquet_|\bsniff_|\bsummarize\b|\battach\b|\bquery|(?:\bfrom|\bjoin)\s*''|\$\$|/\*|\be''"
)


def _names(sql: str, fragments: Iterable[str]) -> bool:
    """Whether a statement (lower case) names one of them. What stands in text is a value, such as a label,
    unless the statement opens files."""
    bare = _QUOTED.sub(lambda found: {'"': found[0], "-": " "}.get(found[0][0], "''"), sql)
    looked_at = sql if _OPENS.search(bare) else bare
    return any(fragment in looked_at for fragment in fragments)


class DuckDBEngine(CountingEngine):
    """One DuckDB connection or cursor of ours; see ``Engine``.

    ``trace`` sees every statement before it runs: the proof that nothing touches the source after
    the last question. ``scratch`` is a private folder that goes when the session is closed.
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        *,
        scratch: LockedFolder | None = None,
        trace: Callable[[str], None] | None = None,
    ) -> None:
        super().__init__()
        self.trace = trace
        self._connection = connection
        self._scratch = scratch
        self._forbidden: tuple[str, ...] = ()
        self._held: tuple[str, Callable[[], object] | None] | None = None
        self._closed = False

    @property
    def private(self) -> bool:
        """Whether this is an instance of ours, with a private folder for what does not fit in memory."""
        return self._scratch is not None

    def execute(self, sql: str, *, step: str) -> None:
        """Run a statement and drain its result.

        Raises:
            EngineFailure: the database failed.
            InternalError: the statement names a forbidden relation, or the session is closed.
        """

        def run() -> None:
            self._connection.execute(sql)
            if self._connection.description is not None:
                while self._connection.fetchmany(_DRAIN):
                    pass

        self._guarded(run, sql, step)

    def fetch(self, sql: str, *, step: str) -> dict[str, NDArray[Any]]:
        """Run a query; columns by name, a masked array where NULLs occur.

        Raises:
            EngineFailure: the database failed.
            InternalError: the statement names a forbidden relation; two columns of one name; a
                HUGEINT column, which numpy would round to DOUBLE.
        """

        def run() -> dict[str, NDArray[Any]]:
            self._connection.execute(sql)
            described = self._connection.description or []
            names = [column[0] for column in described]
            if len(set(names)) < len(names):
                raise InternalError("a query of ours returns two columns of one name")
            wide = [column[0] for column in described if str(column[1]) in _INEXACT]
            if wide:
                raise InternalError(f"cast to BIGINT in the query: {', '.join(wide)}")
            fetched = self._connection.fetchnumpy().items()
            return {
                key: values if isinstance(values, np.ndarray) else np.asarray(values)
                for key, values in fetched
            }

        return self._guarded(run, sql, step)

    def converted(self, sql: str, make: Callable[[Any], _T], *, step: str) -> _T:
        """What ``make`` gives of a query's result, as a relation of DuckDB's Python package.

        Raises:
            EngineFailure: the database or ``make`` failed.
            InternalError: the statement names a forbidden relation, or the session is closed.
        """
        return self._guarded(lambda: make(self._connection.sql(sql)), sql, step)

    def load(self, table: str, columns: Mapping[str, NDArray[Any]], *, step: str) -> None:
        """Append equally long numpy columns to an existing table, matched by name.

        Args:
            table: quoted SQL name.
            columns: arrays of shape (rows,) by column name.
            step: what we are doing, for messages.
        """
        lengths = {len(values) for values in columns.values()}
        if len(lengths) != 1:
            raise InternalError("columns to load differ in length or there are none")
        name = f"dpsyn_load_{uuid.uuid4().hex}"
        sql = f"INSERT INTO {table} BY NAME\nSELECT *\nFROM {ident(name)}"

        def run() -> None:
            self._connection.register(name, {key: np.asarray(values) for key, values in columns.items()})
            try:
                self._connection.execute(sql).fetchall()
            finally:
                self._connection.unregister(name)

        self._guarded(run, sql, step)

    @property
    def own_files(self) -> tuple[str, ...]:
        """Files that this instance opens for itself, in its private folder."""
        return () if self._scratch is None else own_files(self._scratch.path)

    @property
    def folder(self) -> Path | None:
        """The private folder of an instance of ours."""
        return None if self._scratch is None else self._scratch.path

    @contextlib.contextmanager
    def registered(self, name: str, rows: object) -> Iterator[None]:
        """Python's data as a view of this connection, for as long as the block lasts.

        Raises:
            EngineFailure: DuckDB cannot read such data.
        """
        self._guarded(lambda: self._connection.register(name, rows), "", "registering a data frame")
        try:
            yield
        finally:
            self._connection.unregister(name)

    def hold_back(self, name: str, rows: Callable[[], object]) -> None:
        """Register what ``rows`` gives under ``name`` when the first statement names it, not earlier."""
        self._held = (name, rows)

    def let_go(self) -> None:
        """Forget what was held back, whether it was registered or not; harmless when repeated."""
        held, self._held = self._held, None
        if held is not None and held[1] is None and not self._closed:
            self._connection.unregister(held[0])

    def _bring(self, sql: str) -> None:
        name, rows = self._held or ("", None)
        if rows is None or ident(name) not in sql:
            return
        self._held = (name, None)
        self._connection.register(name, rows())

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """One transaction: committed at the end, rolled back on any error or interrupt."""
        self.execute("BEGIN TRANSACTION", step="opening a transaction")
        try:
            yield
            self.execute("COMMIT", step="committing")
        except BaseException:
            # A failed COMMIT has ended the transaction already; the first error is the one to show.
            with contextlib.suppress(EngineFailure, InternalError):
                self.execute("ROLLBACK", step="rolling back")
            raise

    def forbid(self, fragments: Iterable[str]) -> None:
        """From now on refuse every statement that names one of ``fragments`` (any case): a relation
        anywhere outside of text, a file where a file is opened."""
        self._forbidden += tuple(fragment.lower() for fragment in fragments if fragment)

    def drop_temporary(self) -> None:
        """Drop every temporary table and view of this connection, all of them ours, and forget what was held
        back."""
        self.let_go()
        found = self.fetch(render("source/relations"), step="listing temporary tables")
        for kind, schema, name, temporary in zip(
            found["kind"], found["schema"], found["name"], found["temporary"], strict=True
        ):
            if temporary:
                path = qualified("temp", str(schema), str(name))
                sql = render("source/drop_temporary", view=int(kind == "view"), name=path)
                self.execute(sql, step="dropping temporary tables")
        self._forget_tables()

    def close(self) -> None:
        """Close the connection (it is ours) and remove its private folder; harmless when repeated."""
        if self._closed:
            return
        self.let_go()
        self._closed = True
        # A connection that cannot be closed is gone already; there is nothing left to do about it.
        with contextlib.suppress(duckdb.Error):
            self._connection.close()
        if self._scratch is not None:
            self._scratch.close()

    def _admit(self, sql: str, step: str) -> None:
        """Show a statement to ``trace``, unless nobody may run it any more."""
        if self._closed:
            raise InternalError(f"the database session is closed ({step})")
        if self._forbidden and _names(sql.lower(), self._forbidden):
            raise InternalError(f"a statement names the source after the last question ({step})")
        if self.trace is not None:
            self.trace(sql)

    def _guarded(self, run: Callable[[], _T], sql: str, step: str) -> _T:
        self._admit(sql, step)
        kind = "Error"
        interrupted = False
        try:
            self._bring(sql)
            return run()
        except InternalError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever the driver raises may quote cell values
            kind = type(error).__name__
            # DuckDB answers Ctrl-C with a RuntimeError of this fixed text.
            interrupted = isinstance(error, RuntimeError) and str(error) == _INTERRUPTED
        if interrupted:
            raise KeyboardInterrupt
        raise EngineFailure(step, kind, sql)
