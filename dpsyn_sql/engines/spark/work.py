"""The statements of a task: how its rows become counts or codes. Pure text; no Spark, and no row."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import duckdb

from dpsyn_sql.engines.spark.tasks import BATCH, Work
from dpsyn_sql.errors import InternalError
from dpsyn_sql.source.parts import Encoding, Tally
from dpsyn_sql.sqltext.dialect import DUCKDB
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
_IN_SPARK = {1: ("SMALLINT",) * 2, 2: ("INTEGER", "INT"), 4: ("BIGINT",) * 2, 8: ("BIGINT",) * 2}
"""By its bytes: the signed type that holds an unsigned one, as DuckDB and as Spark call it."""

_SUMS = ident("dpsyn_sums")
_TOGETHER_ROWS = 2**22
_TOGETHER_BYTES = 2**28
"""Rows of codes, and bytes of them, that a task counts together: each count is a statement over them."""
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Reading:
    """How the Arrow columns c0, c1, ... of a task are read: ``columns`` with their types, as ``name``.

    ``unit``: the place of the column of which all rows of a value are in the task, and are needed together;
    None: the rows of a task are any rows.
    """

    name: Fragment
    columns: tuple[tuple[str, str], ...]
    unit: int | None = None

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

    @property
    def schema(self) -> str:
        """The table in words of Spark."""
        kinds = [f"{key} BIGINT" for key in self.integers] + [f"{key} BINARY" for key in self.bytes]
        return ", ".join(["tally INT", *kinds, "n BIGINT"])

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
    """Codes on their way through Spark, which has no unsigned types: its columns are c0, c1, ..."""

    types: Types

    @property
    def schema(self) -> str:
        """The codes in words of Spark."""
        return ", ".join(f"c{place} {_IN_SPARK[size][1]}" for place, size in enumerate(self._sizes()))

    @property
    def signed(self) -> list[Fragment]:
        """Each code in a type that Spark has."""
        return [
            Fragment(f"CAST({ident(name)} AS {_IN_SPARK[size][0]}) AS c{place}")
            for place, (name, size) in enumerate(zip(self.types, self._sizes(), strict=True))
        ]

    @property
    def together(self) -> int:
        """Rows that a task counts together."""
        return max(1, min(_TOGETHER_ROWS, _TOGETHER_BYTES // max(1, sum(self._sizes()))))

    def _sizes(self) -> list[int]:
        wide = [kind for kind in self.types.values() if kind not in _INTEGERS]
        if wide:
            raise InternalError(f"codes between parts are integers within BIGINT, not {wide[0]}")
        return [_INTEGERS[kind] for kind in self.types.values()]


def counting(
    reading: Reading,
    made: Sequence[tuple[Encoding, Types]],
    sums: Sums,
    settings: Sequence[Fragment],
) -> Work:
    """Count in a task.

    Args:
        reading: the rows of the task.
        made: encodings that are made of them in passing, each of the one before, with their types.
        sums: what is counted of the last of them, or of the rows themselves.
        settings: of the task's DuckDB.
    """
    whole = reading.unit is not None
    prepare, each, late = _filled(reading, [one for one, _ in made], whole=whole)
    codes = Codes(made[-1][1]) if made else None
    clear = [render("spark/clear", table=made[-1][0].table)] if made and not whole else []
    return Work(
        duckdb=duckdb.__version__,
        settings=_plain(settings),
        prepare=_plain([sums.table(_SUMS), *prepare]),
        each=_plain(each),
        count=_plain([*late, *sums.counts()]),
        result=str(render("spark/sums", table=_SUMS, keys=sums.keys)),
        clear=_plain(clear),
        unit=reading.unit,
        limit=None if whole else codes.together if codes else 1,
        streams=False,
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
        result=str(render("spark/codes", query=last.query, columns=Codes(types).signed)),
        clear=(),
        unit=reading.unit,
        limit=None if whole else 1,
        streams=True,
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
            views[-1] = render("count/keep", dialect=DUCKDB, table=made[-1].table, query=made[-1].query)
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
