"""What an engine that reads a source can do, whole or in parts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from numpy.typing import NDArray

from dpsyn_sql.sqltext.fragments import Fragment

# -- parts -------------------------------------------------------------------------------------------

# What is asked of the rows of a source, wherever they lie: in one database, or in parts on many machines.
#
# A ``Tally`` gives counts that add up over parts of the rows, an ``Encoding`` rows of codes, part by part.
# Both are statements of DuckDB: an engine in parts runs them in a DuckDB beside every part.


@dataclass(frozen=True, slots=True)
class Tally:
    """A query whose counts add up over parts of the rows.

    Args:
        query: with the columns ``keys`` and an integer column ``n``, never NULL; one row per group of keys.
        keys: names of the columns that tell groups apart: integers within BIGINT, or bytes (BLOB), and any
            other numbers where all rows are one part. A NULL is a value of its own: groups that have it in
            the same places, and else the same keys, are one.
        least: groups with a smaller sum over all parts are left out.
    """

    query: Fragment
    keys: tuple[str, ...]
    least: int = 1


@dataclass(frozen=True, slots=True)
class Encoding:
    """Rows of codes that are made of other rows, each part by itself.

    Args:
        table: quoted name under which statements read the codes.
        query: over the relation of the source, or over ``of``; its columns are integers within BIGINT, never
            NULL.
        unit: a column of the source; all rows of one of its values are in one part when ``query`` runs. None:
            parts may be any rows.
        of: the encoding that ``query`` reads; None: the source itself.
        part: the name that ``query`` reads one part of the source by (``SourceEngine.part_of``).
        width: bytes of a row.
    """

    table: Fragment
    query: Fragment
    unit: str | None = None
    of: Encoding | None = None
    part: Fragment | None = None
    width: int = 16


# -- engines -----------------------------------------------------------------------------------------

# A database session, and the one that holds the rows of a source: what ``engines`` has for each database.


class Engine(Protocol):
    """A database session. Every failure is an ``EngineFailure`` without the engine's text."""

    @property
    def private(self) -> bool:
        """Whether it is an instance of ours, which nobody else can look into."""

    def execute(self, sql: str, *, step: str) -> None:
        """Run a statement and drain its result; ``step`` names the work for messages."""

    def fetch(self, sql: str, *, step: str) -> dict[str, NDArray[Any]]:
        """Run a query; columns as numpy arrays by name."""

    def load(self, table: str, columns: Mapping[str, NDArray[Any]], *, step: str) -> None:
        """Append equally long numpy columns to an existing table (``table`` is quoted SQL)."""

    def transaction(self) -> AbstractContextManager[None]:
        """One transaction: committed at the end, rolled back on any error."""

    def drop_temporary(self) -> None:
        """Drop every temporary table and view of this session: all of them are ours."""

    def forbid(self, fragments: Iterable[str]) -> None:
        """From now on refuse every statement that names one of ``fragments``, in any letter case."""

    def close(self) -> None:
        """Drop what this session made for itself and let the database go; harmless when repeated."""


class SourceEngine(Engine, Protocol):
    """PRIVATE: an engine that holds the rows of a source, in one part or in many parts on many machines.

    Statements about rows are DuckDB's everywhere. What ``execute``, ``fetch`` and ``load`` see is the one
    database beside the pipeline, which need not hold the rows: only these methods read them.
    """

    plain_files: bool
    """Whether tables of codes in files are not encrypted."""

    def watch(self, paths: Iterable[str]) -> None:
        """From now on these files stay as they are: else the next count is an error."""

    @property
    def in_parts(self) -> bool:
        """Whether the rows lie in parts: then a pass over them costs more than many statements in one."""

    def sums(
        self, tallies: Sequence[Tally], *, step: str, over: Encoding | None = None, unit: str | None = None
    ) -> Iterator[dict[str, NDArray[Any]]]:
        """Each tally's keys with their sums over all rows, in the order of the tallies, groups in any order.

        ``over``: the encoding that they read, of which all rows of a unit are in one part; None: the source.
        ``unit``: a column of the source whose rows of one value must be in one part; for tallies of the
        source only. Keys are integers. Columns are numpy arrays by name, ``n`` int64.
        """

    def part_of(self, relation: Fragment, unit: str | None) -> Fragment | None:
        """A name under which the query of an encoding reads the rows of ``relation`` part by part, those of
        one value of the column ``unit`` in one part; None if they cannot be read so: they are kept first."""

    def parts(self, over: Encoding) -> int:
        """How many parts a pass over codes has; for progress alone."""

    def part_sums(
        self, tallies: Sequence[Tally], *, over: Encoding, step: str, keep: bool = False
    ) -> Iterator[tuple[int, dict[str, NDArray[Any]]]]:
        """The numbers of tallies over codes, with their keys and counts in one part of the rows: what a tally
        has in all parts adds up. One pass over the rows for all tallies.

        ``over``: kept, of kept ones, or of a source that can be read in parts. ``keep``: they are kept as
        well. Columns are as ``sums`` gives them.
        """

    def chunks(
        self, columns: Sequence[Fragment], *, over: Encoding, step: str, keep: bool = False
    ) -> Iterator[tuple[int, dict[str, NDArray[Any]]]]:
        """The number of a part and some of its rows: every row of the codes once. Not where ``in_parts``."""

    def gather(self, table: Fragment, tally: Tally, *, step: str, unit: str | None = None) -> None:
        """Make a temporary table of the sums of a tally over the source: its keys (integers or bytes)
        and ``n`` BIGINT. It is beside the pipeline, where ``execute`` and ``fetch`` read it."""

    def keep(self, encoding: Encoding, *, step: str) -> None:
        """Make the codes once, for statements to come: every later count sees the same rows."""

    def drop(self, table: Fragment, *, step: str) -> None:
        """Let what ``keep`` or ``gather`` made go; harmless where there is nothing."""
