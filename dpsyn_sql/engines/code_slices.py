"""Codes of a source, slice by slice: a pass reads every row once, however many groups are counted on it.

PRIVATE. A statement that groups a table larger than memory reads all of it, and there are dozens. So rows are
cut into slices of a size that public facts decide: the bytes of a row of codes, and the memory limit. All
statements of a question run on one slice, which is in memory then, before the next; their counts add up.

    source -> slice of rows -> its codes, a temporary table -> all groups of the question
                                   | kept, if more questions come: in memory while there is room,
                                   v then in a file of the private folder

Parquet files are cut by ``file_row_number``, tables by ``rowid``: DuckDB skips row groups of other slices.
Other sources (queries, views, CSV, data frames, bounded units) are encoded as a whole, and the table of their
codes is cut.

A temporary table spills, but DuckDB 2.0.0 holds about a byte of each row in memory for it. A table of a
database file is compressed and takes none. The file is encrypted with a key that nobody else ever has, where
DuckDB can encrypt, and goes with the folder; ``plain``: the disk is encrypted already.
"""

from __future__ import annotations

import contextlib
import secrets
import shutil
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from dpsyn_sql.common.progress import phase
from dpsyn_sql.errors import EngineFailure, InternalError, SourceError
from dpsyn_sql.source.engine import Encoding, Engine
from dpsyn_sql.sqltext.fragments import Fragment, ident, literal, qualified, temporary_table
from dpsyn_sql.sqltext.render import render

if TYPE_CHECKING:
    from dpsyn_sql.engines.counting_engine import CountingEngine

ROW_GROUP = 122_880
"""Rows that DuckDB stores, and skips, together."""

SLICE_BYTES = 2**27
"""Codes of a slice at most: 128 MiB, and an eighth of the memory."""

_KEPT_SHARE = 4
# A quarter of the memory holds codes that are kept; what does not fit there goes to the file.

_STEM = "dpsyn_slice"
_DISK_FULL = "IOException"
LOOKING = "looking how many rows there are"
"""A step, for messages."""
_FILED = "dpsyn_filed"
_MAKING_FILE = "making a file for what does not fit in memory"


@dataclass(frozen=True, slots=True)
class Slice:
    """Some rows: what stands after FROM, and how many there are at most."""

    relation: Fragment
    rows: int


class Slicing(Protocol):
    """A source that can be read in parts."""

    def slices(self, rows: int) -> list[Slice]:
        """Parts of at most ``rows`` rows, which together have every row once. There is one without rows too,
        so that the statements of small tables are alike."""


@dataclass(frozen=True, slots=True)
class ParquetSlicing:
    """Parquet files of one schema, without a column called file_row_number."""

    engine: Engine
    paths: tuple[Fragment, ...]
    """Literals, as statements write them."""

    def slices(self, rows: int) -> list[Slice]:
        """As ``Slicing``: a range of one file each. A file of few rows is one slice."""
        metadata = self.engine.fetch(render("source/parquet_rows", paths=list(self.paths)), step=LOOKING)
        counts = metadata["num_rows"].tolist()
        if len(counts) != len(self.paths):
            raise InternalError("not every file of the source was looked at")
        return [
            # The end is no file's own number of rows: a statement that fails goes with its error.
            Slice(
                render("source/parquet_slice", path=path, start=start, stop=start + rows),
                min(rows, count - start),
            )
            for path, count in zip(self.paths, counts, strict=True)
            for start in range(0, max(count, 1), rows)
        ]


@dataclass(frozen=True, slots=True)
class TableSlicing:
    """A table of DuckDB's own, without a column called rowid; ``table`` is its quoted name."""

    engine: Engine
    table: Fragment

    def slices(self, rows: int) -> list[Slice]:
        """As ``Slicing``: ranges of row numbers, some of which may have no row any more."""
        extent = self.engine.fetch(render("count/extent", table=self.table), step=LOOKING)
        starts = range(0, max(int(extent["last"][0]), 0) + 1, rows)
        return [Slice(_rows_of(self.table, start, start + rows), rows) for start in starts]


@dataclass(frozen=True, slots=True)
class _Kept:
    """Codes that were made: their tables, and slices of them; ``whole``: it is one table, always shown."""

    tables: tuple[Fragment, ...]
    slices: tuple[Fragment, ...]
    whole: bool


class CodeSlices:
    """Tables of codes, kept or made in passing; the view ``Encoding.table`` shows one slice at a time.

    Args:
        engine: makes tables and runs statements.
    """

    def __init__(self, engine: CountingEngine) -> None:
        self._engine = engine
        self._relations: dict[Fragment, Slicing] = {}
        self._parts: dict[Fragment, Slicing] = {}
        self._kept: dict[Fragment, _Kept] = {}

    def declare(self, relation: Fragment, slicing: Slicing) -> None:
        """From now on ``relation``, the text after FROM, is read in parts."""
        self._relations[relation] = slicing

    def part_of(self, relation: Fragment) -> Fragment | None:
        """A name under which an encoding reads one part of a relation after the other; None: it has none."""
        if relation not in self._relations:
            return None
        part = temporary_table("dpsyn_part")
        self._parts[part] = self._relations[relation]
        return part

    def parts(self, over: Encoding) -> int:
        """How many slices a pass over the codes takes."""
        base, in_passing = self._chain(over)
        return len(self._source(in_passing[0]) if base is None else self._kept[base.table].slices)

    def keep(self, encoding: Encoding, step: str) -> None:
        """Make the codes once.

        Raises:
            EngineFailure: the database failed; nothing is left.
            SourceError: there is no room for the codes, or the source changed meanwhile.
        """
        if encoding.part is not None:
            for _ in self.slices(encoding, step, keep=True):
                pass
            return
        table = temporary_table(_STEM)
        try:
            with self._engine.one_read():
                self._engine.make(table, encoding.query, step)
            self._engine.unchanged()
            self._show(encoding.table, _rows_of(table))
            # Rows have their numbers when the transaction has ended, not before.
            extent = self._engine.fetch(render("count/extent", table=table), step=LOOKING)
        except BaseException:
            with contextlib.suppress(EngineFailure, InternalError):
                self._hide(encoding.table)
                self._let_go([table], step)
            raise
        rows, last = _rows_of_slice(encoding.width, self._engine.memory), int(extent["last"][0])
        slices = tuple(_rows_of(table, start, start + rows) for start in range(0, max(last, 0) + 1, rows))
        self._kept[encoding.table] = _Kept((table,), slices, whole=True)

    def slices(self, over: Encoding, step: str, *, keep: bool = False) -> Iterator[None]:
        """Show one slice of the codes after the other as ``over.table``, for statements to read.

        ``keep``: the codes, which are those of the source itself, are not to be made again.

        Raises:
            EngineFailure: the database failed.
            InternalError: the codes cannot be made in passing, and were not kept.
            SourceError: there is no room for the codes, or the source changed meanwhile.
        """
        base, in_passing = self._chain(over)
        shown = (
            self._stored(base.table) if base is not None else self._read(in_passing.pop(0), step, keep=keep)
        )
        with contextlib.closing(shown):
            for _ in shown:
                with self._in_passing(in_passing, step):
                    yield

    def drop(self, table: Fragment, step: str) -> bool:
        """Let kept codes go; False if none have this name."""
        codes = self._kept.pop(table, None)
        if codes is None:
            return False
        self._hide(table)
        self._let_go(codes.tables, step)
        return True

    def forget(self) -> None:
        """All tables are gone."""
        self._kept, self._parts = {}, {}

    # -- how ------------------------------------------------------------------------------------

    def _chain(self, last: Encoding | None) -> tuple[Encoding | None, list[Encoding]]:
        """The kept codes that an encoding is made from, None for the source; and what is made on the way."""
        in_passing: list[Encoding] = []
        while last is not None and last.table not in self._kept:
            in_passing.insert(0, last)
            last = last.of
        if last is None and in_passing[0].part not in self._parts:
            raise InternalError("codes were not kept, and cannot be made in passing")
        return last, in_passing

    def _source(self, encoding: Encoding) -> list[Slice]:
        rows = _rows_of_slice(encoding.width, self._engine.memory)
        return self._parts[encoding.part or Fragment("")].slices(rows)

    def _read(self, encoding: Encoding, step: str, *, keep: bool) -> Generator[None]:
        """Codes of the source, slice by slice."""
        engine, part, tables = self._engine, encoding.part or Fragment(""), list[Fragment]()
        with engine.snapshot():
            slices = self._source(encoding)
            in_memory = self._in_memory(encoding.width, slices) if keep else len(slices)
            try:
                for number, source_slice in enumerate(slices):
                    self._show(part, source_slice.relation)
                    tables.append(self._made(encoding.query, step))
                    self._show(encoding.table, _rows_of(tables[-1]))
                    yield
                    if not keep:
                        self._let_go([tables.pop()], step)
                    elif number >= in_memory:
                        tables.append(self._in_file(tables[-1], step))
                        self._let_go([tables.pop(-2)], step)
                engine.unchanged()
            except BaseException:
                with contextlib.suppress(EngineFailure, InternalError):  # they go with a failed transaction
                    self._let_go(tables, step)
                raise
            finally:
                with contextlib.suppress(EngineFailure, InternalError):
                    self._hide(encoding.table)
                    self._hide(part)
        if keep:
            self._kept[encoding.table] = _Kept(tuple(tables), tuple(map(_rows_of, tables)), whole=False)

    def _stored(self, table: Fragment) -> Generator[None]:
        """Kept codes, slice by slice."""
        codes = self._kept[table]
        if codes.whole and len(codes.slices) == 1:
            yield
            return
        try:
            for relation in codes.slices:
                self._show(table, relation)
                yield
        finally:
            with contextlib.suppress(EngineFailure, InternalError):
                if codes.whole:
                    self._show(table, _rows_of(codes.tables[0]))
                else:
                    self._hide(table)

    @contextlib.contextmanager
    def _in_passing(self, encodings: Sequence[Encoding], step: str) -> Iterator[None]:
        """Tables of codes that are made of the slice that is shown; they go with it."""
        tables = []
        try:
            for encoding in encodings:
                tables.append(encoding.table)
                with phase("encode"):
                    self._engine.make(encoding.table, encoding.query, step)
            yield
        finally:
            with contextlib.suppress(EngineFailure, InternalError):
                self._let_go(tables, step)

    def _made(self, query: Fragment, step: str) -> Fragment:
        table = temporary_table(_STEM)
        with phase("encode"):
            self._engine.make(table, query, step)
        return table

    def _in_memory(self, width: int, slices: Sequence[Slice]) -> int:
        """How many of the slices stay in memory; for the others there is room in the private folder.

        Raises:
            SourceError: there is none.
        """
        folder, room = self._engine.folder, self._engine.memory // _KEPT_SHARE
        if folder is None:  # the caller's connection spills by its own settings
            return len(slices)
        sizes = [source_slice.rows * width for source_slice in slices]
        in_memory = sum(end <= room for end in accumulate(sizes))
        if sum(sizes[in_memory:]) > shutil.disk_usage(folder).free:
            raise SourceError(_no_room(folder, sum(sizes[in_memory:])))
        return in_memory

    def _in_file(self, table: Fragment, step: str) -> Fragment:
        """The same codes in a table of the file."""
        filed, folder, failed = temporary_table(_STEM), self._engine.folder, False
        try:
            with phase("encode"):
                self._engine.make(filed, Fragment(f"SELECT * FROM {table}"), step, filed=True)
        except EngineFailure as error:
            if error.kind != _DISK_FULL or folder is None:
                raise
            failed = True
        if failed and folder is not None:
            raise SourceError(_no_room(folder))
        return filed

    def _show(self, view: Fragment, relation: Fragment) -> None:
        self._engine.execute(render("count/view", view=view, relation=relation), step=LOOKING)

    def _hide(self, view: Fragment) -> None:
        self._engine.execute(render("source/drop_temporary", view=1, name=view), step=LOOKING)

    def _let_go(self, tables: Iterable[Fragment], step: str) -> None:
        for table in tables:
            self._engine.remove(table, step)


def _rows_of(table: Fragment, start: int | None = None, stop: int | None = None) -> Fragment:
    """What stands after FROM for all rows of a table, or those of a range of numbers."""
    return render("count/slice", table=table, start=start, stop=stop)


def _rows_of_slice(width: int, memory: int) -> int:
    """Whole row groups."""
    return max(1, min(SLICE_BYTES, memory // 8) // width // ROW_GROUP) * ROW_GROUP


def _no_room(folder: Path, needed: int | None = None) -> str:
    size = "" if needed is None else f" of up to {2 ** max(0, (needed - 1).bit_length() - 30)} GiB"
    return (
        f"There is no room in {folder.parent} for a file{size} with the codes of the source, which are read "
        "several times. Make room there, set TMPDIR to a folder of another disk, raise the memory of "
        "limits=, or choose a method that reads once: copula or independent. What was charged stays "
        "charged; the same call goes on from there and costs nothing more."
    )


# -- tables in a file -----------------------------------------------------------------------------


def own_files(folder: Path) -> tuple[str, ...]:
    """The files that an instance with this private folder may open for itself."""
    path = str(folder / f"{_FILED}.duckdb")
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
        filed = qualified(_FILED, "main", f"t{len(self._tables)}_{secrets.token_hex(4)}")
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
        self._engine.execute(render("source/detach", name=ident(_FILED)), step=_MAKING_FILE)
        with contextlib.suppress(OSError):
            self._path.unlink()

    def _attach(self, key: Fragment | None) -> None:
        with contextlib.suppress(OSError):
            self._path.unlink()
        path = literal(str(self._path))
        self._engine.execute(
            render("count/attach_filed", path=path, name=ident(_FILED), key=key), step=_MAKING_FILE
        )
