"""PRIVATE: how a database that holds all rows of a source counts them. The other half of an engine runs
statements (``Engine``)."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from dpsyn_sql.engines.code_slices import LOOKING, ROW_GROUP, CodeSlices, FiledTables, Slicing
from dpsyn_sql.errors import EngineFailure, InternalError, SourceError
from dpsyn_sql.planning.limits import bytes_written
from dpsyn_sql.source.engine import Encoding, Engine, Tally
from dpsyn_sql.source.names import Identity, display_name, listed
from dpsyn_sql.sqltext.fragments import Fragment, literal
from dpsyn_sql.sqltext.render import render

_LEAST = 2**26
# Bytes, if the database says its limit in words that we do not know.

_OUT_OF_MEMORY = "OutOfMemoryException"
_CHANGED = (
    "Files of the source changed while they were counted: {}. Counts of them could be of no one state of the "
    "table, so nothing was made of them. What was charged stays charged; answers that were stored before are "
    "used again. Run the release again when nothing writes to the files."
)
_REDEFINED = (
    "Tables of the source were altered or replaced while they were counted: {}. A view in the place of a "
    "table could give a row twice, so nothing was counted. What was charged stays charged. Run the release "
    "again when nobody changes the schema."
)


def _stamp(path: str) -> tuple[int, ...] | None:
    """What changes with the content of a file, and where a path leads; None if there is none.

    The time of change of its entry tells of what the time of its content does not: files that were renamed
    and renamed back, a link that led elsewhere for a while, a time that was set.
    """
    with contextlib.suppress(OSError):
        found, link = os.stat(path), os.lstat(path)  # noqa: PTH116 - as of find_files
        of_entry = (found.st_ctime_ns, link.st_dev, link.st_ino, link.st_ctime_ns)
        return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, *of_entry
    return None


def _reaching(tally: Tally) -> Fragment:
    """The query of a tally where all rows are one part."""
    if tally.least <= 1:
        return tally.query
    return render("count/reaching", query=tally.query, least=tally.least)


class CountingEngine(Engine):
    """A ``SourceEngine`` of one database; what is abstract here runs statements."""

    def __init__(self) -> None:
        self._codes = CodeSlices(self)
        self._filed: FiledTables | None = None
        self._overflowed = False
        self.plain_files = False
        """Whether tables in a file are not encrypted."""
        self._watched: dict[str, tuple[int, ...] | None] = {}
        self._defined: dict[Identity, str | None] = {}

    @property
    def folder(self) -> Path | None:
        """The private folder of an instance of ours; a caller's connection has none."""
        return None

    @property
    def in_parts(self) -> bool:
        """One database holds all rows."""
        return False

    def sums(
        self, tallies: Sequence[Tally], *, step: str, over: Encoding | None = None, unit: str | None = None
    ) -> Iterator[dict[str, NDArray[Any]]]:
        """As ``SourceEngine``; all rows are one part, so a query's counts are the sums.

        Raises:
            EngineFailure: the database failed.
            InternalError: as ``fetch``; ``over`` was not kept.
            SourceError: the source changed meanwhile.
        """
        for tally in tallies:
            with self.one_read() if over is None else contextlib.nullcontext():
                found = self.fetch(_reaching(tally), step=step)
                self.unchanged()
            yield found

    def gather(self, table: Fragment, tally: Tally, *, step: str, unit: str | None = None) -> None:
        """As ``SourceEngine``."""
        with self.one_read():
            self.make(table, _reaching(tally), step)
            self.unchanged()

    # -- codes, slice by slice ------------------------------------------------------------------

    @cached_property
    def memory(self) -> int:
        """Bytes that the database may use; a setting, which stays as it is."""
        found = self.fetch("SELECT current_setting('memory_limit') AS most", step="reading the memory limit")
        return int(bytes_written(str(found["most"][0])) or _LEAST)

    def read_in_parts(self, relation: Fragment, slicing: Slicing) -> None:
        """From now on the rows of ``relation``, the text after FROM, can be read in parts."""
        self._codes.declare(relation, slicing)

    def part_of(self, relation: Fragment, unit: str | None) -> Fragment | None:
        """As ``SourceEngine``: rows of one unit may be in several slices."""
        return self._codes.part_of(relation) if unit is None else None

    def parts(self, over: Encoding) -> int:
        """As ``SourceEngine``: slices."""
        return self._codes.parts(over)

    def keep(self, encoding: Encoding, *, step: str) -> None:
        """As ``SourceEngine``: temporary tables, or tables of a file in our private folder."""
        self._codes.keep(encoding, step)

    def part_sums(
        self, tallies: Sequence[Tally], *, over: Encoding, step: str, keep: bool = False
    ) -> Iterator[tuple[int, dict[str, NDArray[Any]]]]:
        """As ``SourceEngine``: all tallies of one slice after the other."""
        for _ in self._codes.slices(over, step, keep=keep):
            for number, tally in enumerate(tallies):
                yield number, self.fetch(tally.query, step=step)

    def chunks(
        self, columns: Sequence[Fragment], *, over: Encoding, step: str, keep: bool = False
    ) -> Iterator[tuple[int, dict[str, NDArray[Any]]]]:
        """As ``SourceEngine``."""
        for place, _ in enumerate(self._codes.slices(over, step, keep=keep)):
            held = self.fetch(render("count/extent", table=over.table), step=LOOKING)
            read, (first, stop) = 0, (int(held["first"][0]), int(held["last"][0]) + 1)
            # Of no rows there is a chunk too, so that the statements of small tables are alike.
            for start in range(first, max(stop, first + 1), ROW_GROUP):
                end = start + ROW_GROUP
                sql = render("count/chunk", table=over.table, columns=list(columns), start=start, stop=end)
                codes = self.fetch(sql, step=step)
                read += len(codes[columns[0]])
                yield place, codes
            if read != int(held["n"][0]):
                raise InternalError("not every row of the codes was read exactly once")

    def drop(self, table: Fragment, *, step: str) -> None:
        """Let what ``keep`` or ``gather`` made go."""
        if not self._codes.drop(table, step):
            self.remove(table, step)

    def remove(self, table: Fragment, step: str) -> None:
        """Let a table that ``make`` made go."""
        if self._filed is None or not self._filed.drop(table, step):
            self.execute(render("count/drop", table=table), step=step)

    def watch(self, paths: Iterable[str]) -> None:
        """From now on these files stay as they are (``unchanged``), and those of earlier calls."""
        self._watched |= {path: _stamp(path) for path in paths}

    def unchanged(self) -> None:
        """Check that the files of the source are what they were.

        Raises:
            SourceError: counts of them could be of no one state, and a row could count twice.
        """
        changed = sorted(path for path, stamp in self._watched.items() if _stamp(path) != stamp)
        if changed:
            raise SourceError(_CHANGED.format(listed(changed)))

    def watch_tables(self, identities: Iterable[Identity]) -> None:
        """From now on these tables of a caller's connection are defined as they are, and no views.

        Raises:
            SourceError: one is a table no more.
        """
        if not self.private:
            self._defined |= {identity: self._definition(identity) for identity in identities}
            self._refuse_redefined(identity for identity, was in self._defined.items() if was is None)

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        """All statements inside see the source at one moment: a caller's tables can change, what an instance
        of ours reads is read-only or watched.

        Raises:
            SourceError: a table was defined anew since ``watch_tables``.
        """
        with contextlib.nullcontext() if self.private else self.transaction():
            self._refuse_redefined(one for one, was in self._defined.items() if self._definition(one) != was)
            yield

    def one_read(self) -> AbstractContextManager[None]:
        """For one statement, which sees one moment in any case: ``snapshot`` where tables are watched.

        Raises:
            SourceError: as ``snapshot``.
        """
        return self.snapshot() if self._defined else contextlib.nullcontext()

    def _definition(self, identity: Identity) -> str | None:
        """The statement that makes a table, None if there is no table of this name."""
        catalog, schema, name = map(literal, identity)
        sql = render("source/table_sql", catalog=catalog, schema=schema, name=name)
        found = self.fetch(sql, step="reading the catalog")["sql"].tolist()
        return str(found[0]) if found else None

    def _refuse_redefined(self, changed: Iterable[Identity]) -> None:
        names = [display_name(*identity) for identity in changed]
        if names:
            raise SourceError(_REDEFINED.format(listed(names)))

    def make(self, table: Fragment, query: Fragment, step: str, *, filed: bool = False) -> None:
        """A temporary table; with ``filed``, and once one did not fit, a table in a file of our folder.

        Raises:
            EngineFailure: the database failed; nothing is left.
        """
        failure: EngineFailure | None = None
        if not (filed or self._overflowed):
            try:
                sql = render("count/keep", table=table, query=query)
                self.execute(sql, step=step)
            except EngineFailure as error:
                failure = error
            if failure is None:
                return
            if self.folder is None or failure.kind != _OUT_OF_MEMORY:
                raise EngineFailure(failure.step, failure.kind, failure.statement)
            self._overflowed = True
        if self.folder is None:
            raise InternalError("a caller's connection has no file of ours")
        if self._filed is None:
            self._filed = FiledTables(self, self.folder, plain=self.plain_files)
        self._filed.keep(table, query, step)

    def _forget_tables(self) -> None:
        """All temporary tables are gone."""
        self._codes.forget()
        if self._filed is not None:
            self._filed.close()
            self._filed = None
