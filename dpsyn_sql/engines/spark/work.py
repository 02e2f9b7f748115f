"""The statements of a task: how its rows become counts or codes. Pure text; no Spark, and no row."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import duckdb

from dpsyn_sql.engines.spark.tasks import BATCH, Work
from dpsyn_sql.errors import InternalError
from dpsyn_sql.source.engine import Encoding, Tally
from dpsyn_sql.sqltext.fragments import Fragment, ident
from dpsyn_sql.sqltext.render import render

Types = Mapping[str, str]
"""DuckDB types by the names of columns."""

_INTEGERS = {
    "TINYINT": 1,
    "SMALLINT": 2,
    "INTEGER": 4,
    "BIGINT": 8,
    "UTINYINT": 1,
    "USMALLINT": 2,
    "UINTEGER": 4,
}
"""Integer types of keys and codes with their bytes: those whose every value is a BIGINT."""

_SUMS = ident("dpsyn_sums")
_TOGETHER_ROWS = 2**22
_TOGETHER_BYTES = 2**28
"""Rows of codes, and bytes of them, that a task counts together: each count is a statement over them."""
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Reading:
    """How the Arrow columns c0, c1, ... of a task are read: ``columns`` with their types, as ``name``.

    ``unit``: the place of the column of which all rows of a value are in the task, and are needed together;
    None: the rows of a task are any rows. ``packed``: columns come together in values, as tasks give codes.
    """

    name: Fragment
    columns: tuple[tuple[str, str], ...]
    unit: int | None = None
    packed: bool = False

    @property
    def query(self) -> Fragment:
        """The rows of one chunk under their own names and types."""
        columns = [
            Fragment(f"CAST(c{place} AS {kind}) AS {ident(name)}")
            for place, (name, kind) in enumerate(self.columns)
        ]
        rows = render("source/frame", columns=columns or [Fragment("c0 AS dpsyn_row")], frame=ident(BATCH))
        return Fragment(f"FROM {rows}")


@dataclass(frozen=True, slots=True)
class Sums:
    """The table of counts of several tallies: which of its columns holds which key.

    ``tallies`` with the types of their keys; integers are in i0, i1, ..., bytes in b0, b1, ...
    """

    tallies: tuple[tuple[Tally, Types], ...]

    @property
    def integers(self) -> list[Fragment]:
        """Columns of integer keys."""
        return self._columns("i")

    @property
    def bytes(self) -> list[Fragment]:
        """Columns of bytes."""
        return self._columns("b")

    @property
    def keys(self) -> list[Fragment]:
        """All columns of keys, in the order of the table."""
        return self.integers + self.bytes

    def table(self, name: Fragment) -> Fragment:
        """Make the table."""
        return render("spark/sums_table", table=name, integers=self.integers, bytes=self.bytes)

    def counts(self) -> list[Fragment]:
        """The statements that count every tally over the rows at hand."""
        found = []
        for number, (tally, types) in enumerate(self.tallies):
            held = {column: ident(key) for key, column in _homes(tally, types).items()}
            keys = [held.get(column, Fragment("NULL")) for column in self.keys]
            found.append(render("spark/count", table=_SUMS, number=number, keys=keys, query=tally.query))
        return found

    def added(self, buckets: int | None = None) -> Fragment:
        """The query of the sums of all counts at hand, each with its bucket of so many; without buckets they
        are the sums of all parts, and small ones are left out."""
        least = [
            Fragment(f"(tally != {number} OR sum(n) >= {tally.least})")
            for number, (tally, _) in enumerate(self.tallies)
            if tally.least > 1 and buckets is None
        ]
        return render("spark/sums", table=_SUMS, keys=self.keys, buckets=buckets, least=least)

    def of(self, number: int, table: Fragment) -> Fragment:
        """The query of one tally's sums, under its own names and types."""
        tally, types = self.tallies[number]
        keys = [
            Fragment(f"CAST({column} AS {types[key]}) AS {ident(key)}")
            for key, column in _homes(tally, types).items()
        ]
        return render("spark/tally", table=table, number=number, keys=keys)

    def _columns(self, letter: str) -> list[Fragment]:
        homes = [_homes(tally, types).values() for tally, types in self.tallies]
        most = max(sum(column[0] == letter for column in one) for one in homes)
        return [Fragment(f"{letter}{place}") for place in range(most)]


def _homes(tally: Tally, types: Types) -> dict[str, Fragment]:
    """The column of each key.

    Raises:
        InternalError: no keys, or keys that are neither integers within BIGINT nor bytes.
    """
    if not tally.keys:
        raise InternalError("counts of parts are summed by their keys")
    found: dict[str, Fragment] = {}
    integers = blobs = 0
    for key in tally.keys:
        if types[key] == "BLOB":
            found[key] = Fragment(f"b{blobs}")
            blobs += 1
        elif types[key] in _INTEGERS:
            found[key] = Fragment(f"i{integers}")
            integers += 1
        else:
            raise InternalError(f"counts of parts are summed by integers and bytes, not by {types[key]}")
    return found


@dataclass(frozen=True, slots=True)
class Codes:
    """Codes on their way through Spark; ``types`` of their columns.

    Raises:
        InternalError: codes that are no integers within BIGINT.
    """

    types: Types

    def __post_init__(self) -> None:
        wide = [kind for kind in self.types.values() if kind not in _INTEGERS]
        if wide:
            raise InternalError(f"codes between parts are integers within BIGINT, not {wide[0]}")

    @property
    def columns(self) -> list[Fragment]:
        """The columns as a task reads them, c0, c1, ..."""
        return [Fragment(f"{ident(name)} AS c{place}") for place, name in enumerate(self.types)]

    @property
    def together(self) -> int:
        """Rows that a task counts together."""
        size = sum(_INTEGERS[kind] for kind in self.types.values())
        return max(1, min(_TOGETHER_ROWS, _TOGETHER_BYTES // max(1, size)))


def counting(
    reading: Reading,
    made: Sequence[tuple[Encoding, Types]],
    sums: Sums,
    settings: Sequence[Fragment],
    buckets: int,
) -> Work:
    """Count in a task.

    Args:
        reading: the rows of the task.
        made: encodings that are made of them in passing, each of the one before, with their types.
        sums: what is counted of the last of them, or of the rows themselves.
        settings: of the task's DuckDB.
        buckets: parts that counts are dealt to, by their keys.
    """
    whole = reading.unit is not None
    prepare, each, late = _filled(reading, [one for one, _ in made], whole=whole)
    codes = Codes(made[-1][1]) if made else Codes(dict(reading.columns)) if reading.packed else None
    clear = [render("spark/clear", table=made[-1][0].table)] if made and not whole else []
    return Work(
        duckdb=duckdb.__version__,
        settings=_plain(settings),
        prepare=_plain([sums.table(_SUMS), *prepare]),
        each=_plain(each),
        count=_plain([*late, *sums.counts()]),
        result=str(sums.added(buckets)),
        clear=_plain(clear),
        unit=reading.unit,
        limit=None if whole else codes.together if codes else 1,
        streams=False,
        packed=reading.packed,
        buckets=True,
    )


def adding(sums: Sums) -> Work:
    """Add up in a task what all tasks of ``counting`` gave of some buckets."""
    return Work(
        duckdb=duckdb.__version__,
        settings=(),
        prepare=_plain([sums.table(_SUMS)]),
        each=_plain([render("spark/insert", table=_SUMS, query=Fragment(f"FROM {ident(BATCH)}"))]),
        count=(),
        result=str(sums.added()),
        clear=(),
        unit=None,
        limit=None,
        streams=False,
        packed=True,
    )


def encoding(
    reading: Reading,
    made: Sequence[tuple[Encoding, Types]],
    settings: Sequence[Fragment],
) -> Work:
    """Give the codes of the last encoding in ``made``; arguments as ``counting``."""
    last, types = made[-1]
    whole = reading.unit is not None
    prepare, each, late = _filled(reading, [one for one, _ in made[:-1]], whole=whole, named_only=True)
    return Work(
        duckdb=duckdb.__version__,
        settings=_plain(settings),
        prepare=_plain(prepare),
        each=_plain(each),
        count=_plain(late),
        result=str(render("spark/codes", query=last.query, columns=Codes(types).columns)),
        clear=(),
        unit=reading.unit,
        limit=None if whole else 1,
        streams=True,
        packed=reading.packed,
    )


def _filled(
    reading: Reading, made: Sequence[Encoding], *, whole: bool, named_only: bool = False
) -> tuple[list[Fragment], list[Fragment], list[Fragment]]:
    """Statements before the first chunk, for each chunk, and once all rows are there.

    Whole: the rows become a table first. Else codes do, chunk by chunk, as they are smaller. Whatever is
    read once is a view, and with ``named_only`` so is all but the rows of a whole part.
    """
    views = [render("spark/view", name=one.table, query=one.query) for one in made]
    if whole:
        if made and not named_only:
            views[-1] = render("count/keep", table=made[-1].table, query=made[-1].query)
        prepare = [render("spark/empty", table=reading.name, query=reading.query)]
        return prepare, [render("spark/insert", table=reading.name, query=reading.query)], views
    each: list[Fragment] = []
    if made and not named_only:
        views[-1] = render("spark/empty", table=made[-1].table, query=made[-1].query)
        each = [render("spark/insert", table=made[-1].table, query=made[-1].query)]
    return [render("spark/view", name=reading.name, query=reading.query), *views], each, []


def _plain(statements: Sequence[str]) -> tuple[str, ...]:
    """As plain text, which a worker without this package can read."""
    return tuple(map(str, statements))


def named_in(statements: Sequence[str], names: Sequence[str]) -> list[int]:
    """Places of the names that occur in any of the statements, in any letter case; perhaps a few more.

    A name of letters, digits and underscores is looked for as a word, any other as text.
    """
    text = "\n".join(statements).lower()
    words = set(_WORD.findall(text))
    quoted = [name.lower().replace('"', '""') for name in names]
    return [
        place
        for place, name in enumerate(quoted)
        if (name in words if _WORD.fullmatch(name) else name in text)
    ]
