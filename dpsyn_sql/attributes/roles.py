"""Columns that are written, and not measured: what each is called, its SQL, and what its type must hold.

A role is one of three. It is stated: a constant, or computed from what is written beside it. It is fresh:
each number of a row, of a unit, or of a row within its parent has a value of its own. Or it names another
row: it repeats the key of that row's number from a table of keys, so no key is without its row.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from itertools import accumulate
from typing import Any, ClassVar, Literal

from dpsyn_sql.attributes.types import SqlType, parse_type, tick_literal
from dpsyn_sql.errors import InternalError, PublishError
from dpsyn_sql.source.names import cut_short
from dpsyn_sql.sqltext.fragments import Fragment, ident, literal, string_literal, text_bytes

ROW = Fragment("dpsyn_row")
"""The column of a table of keys that has the number of the row."""

_DIGITS = 6  # the fewest digits of numbers in text
_EXACT = {"FLOAT": 2**24, "DOUBLE": 2**53}  # whole numbers up to here are exact
_YEAR_2000 = 10_957  # days since 1970-01-01


@dataclass(frozen=True, slots=True)
class Lookup:
    """The rows of a public table, ordered by their group.

    ``table``: quoted name of a table with the column ``ROW`` (BIGINT, from 0) and the columns of the key.
    ``sizes``: how many rows each group 0, 1, ... has.
    """

    table: Fragment
    sizes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Ties:
    """What the keys of a table's rows come from.

    Args:
        keys: by table of the tree, its table of keys: the column ``ROW`` and the columns of its key.
        rows: by table of the tree, how many rows it has.
        most: of a family of this table's rows.
        lookups: by measured attribute of this table, the public rows that it stands for.
    """

    keys: Mapping[str, Fragment]
    rows: Mapping[str, int]
    most: int = 1
    lookups: Mapping[str, Lookup] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sizes:
    """What the types of a table's roles must hold.

    Args:
        rows: by table, how many it has.
        units: whose rows these are; read only of a table with their ids.
        most: of the largest family of the table's rows; read only of one whose key numbers them.
        types: by table and column, the types of keys that are named.
    """

    rows: Mapping[str, int]
    units: int = 0
    most: int = 1
    types: Mapping[str, Mapping[str, SqlType | None]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Role(ABC):
    """A column that is written, and not measured. ``type`` is ``sql_type`` parsed, None for one that only a
    unit id can have. ``last``: it is made when all rows are there, so nothing is computed from it."""

    name: str
    sql_type: str
    type: SqlType | None = field(init=False, repr=False, compare=False)
    last: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "type", parse_type(self.sql_type))

    @property
    @abstractmethod
    def in_plan(self) -> str:
        """What a plan says of it."""

    @property
    @abstractmethod
    def comment(self) -> str:
        """What the table that is written says of it."""

    def facts(self) -> dict[str, Any]:
        """What is public about it, JSON-ready."""
        return {"name": self.name, "type": self.sql_type, "role": type(self).__name__.lower()}

    @abstractmethod
    def check(self, table: str, sizes: Sizes) -> None:
        """Refuse a type that cannot hold as many different values as a ``table`` of these ``sizes`` needs.

        Raises:
            PublishError: it cannot.
        """


# -- stated by the owner --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Stated(Role):
    """A column of which the owner states the value, or how it is computed; that was checked before."""

    last: ClassVar[bool] = False

    @property
    @abstractmethod
    def sql(self) -> Fragment:
        """The value as a SQL expression of exactly its type."""

    def check(self, table: str, sizes: Sizes) -> None:
        """Its type holds whatever it is."""


@dataclass(frozen=True, slots=True)
class Constant(Stated):
    """A column of one public value (None: all NULL), written as the owner states it."""

    value: object

    @property
    def in_plan(self) -> str:
        return "constant, as the owner states"

    @property
    def comment(self) -> str:
        return "Constant, as the owner states it; not measured."

    def facts(self) -> dict[str, Any]:
        return Role.facts(self) | {"value": self.value if self.value is None else str(self.value)}

    @property
    def sql(self) -> Fragment:
        value = self.value
        if value is not None and not isinstance(value, str | int | Decimal | date):
            raise InternalError(f"column {self.name!r} has a constant that is not a single value")
        return Fragment(f"CAST({literal(value)} AS {written_type(self.type)})")


@dataclass(frozen=True, slots=True)
class Derived(Stated):
    """A column computed from other columns of the output by a SQL expression of the owner's."""

    expression: str

    @property
    def in_plan(self) -> str:
        return f"computed, as the owner states: {cut_short(self.expression)}"

    @property
    def comment(self) -> str:
        return f"Computed from other columns of the synthetic row: {self.expression}"

    def facts(self) -> dict[str, Any]:
        return Role.facts(self) | {"expression": self.expression}

    @property
    def sql(self) -> Fragment:
        """A failure to compute it gives NULL."""
        return Fragment(f"TRY_CAST({tried(self.expression)} AS {written_type(self.type)})")


# -- fresh ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Fresh(Role):
    """A column whose values are made from numbers. ``numbered``: what has a number, a ``row`` of the table,
    its ``parent`` (a person), or its ``rank`` among the rows of its parent. ``prefix``: of text."""

    numbered: ClassVar[Literal["row", "parent", "rank"]]
    prefix: ClassVar[str]

    def of(self, number: Fragment, count: int, seed: int) -> Fragment:
        """The value of a number, a plain BIGINT expression 0..count-1, in exactly its type."""
        return surrogate(self.type, number, count, f"{self.prefix}|{self.name}", seed)

    def check(self, table: str, sizes: Sizes) -> None:
        numbered = self.numbered == "row"
        needed, what = (sizes.rows[table], "rows") if numbered else (sizes.units, "units")
        most = capacity(self.type)
        if most is not None and needed > most:
            raise PublishError(
                f"Column {self.name!r} needs a fresh value for each of {needed} {what}, but its type "
                f"has only {most} values. Nothing was written. The same call with rows={most} or less "
                "costs nothing more."
            )


@dataclass(frozen=True, slots=True)
class Key(Fresh):
    """A column that tells rows apart: the output gets fresh values, unique in it."""

    origin: str = "declared"
    numbered = "row"
    prefix = "key"

    @property
    def in_plan(self) -> str:
        return f"key ({self.origin}): not read, fresh values are written"

    @property
    def comment(self) -> str:
        return "Fresh key, unrelated to the keys of the source."

    def facts(self) -> dict[str, Any]:
        return Role.facts(self) | {"origin": self.origin}


@dataclass(frozen=True, slots=True)
class UnitId(Fresh):
    """The privacy unit's column: fresh values, each repeated as often as its unit has rows."""

    numbered = "parent"
    prefix = "unit"

    @property
    def in_plan(self) -> str:
        return "fresh units are written"

    @property
    def comment(self) -> str:
        return "Fresh unit id, unrelated to the ids of the source."


@dataclass(frozen=True, slots=True)
class PartOfKey(Fresh):
    """A part of a key: the number of the row within its parent, from 1."""

    numbered = "rank"
    prefix = "part"

    @property
    def in_plan(self) -> str:
        return "part of a key: not read, rows are numbered within their parent"

    @property
    def comment(self) -> str:
        return "Part of a key: the number of the row within its parent."

    def check(self, table: str, sizes: Sizes) -> None:
        most = capacity(self.type)
        if most is not None and sizes.most > most:
            raise PublishError(
                f"Column {self.name!r} of table {table!r} numbers up to {sizes.most} rows of one row "
                f"above, but its type has only {most} values. Nothing was written. A release with "
                f"most={{{table!r}: {most}}} has fewer."
            )


# -- keys of other rows ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Reference(Role):
    """Names a row of ``table``: what its column ``key`` has there; NULL where the measured ``attribute`` is
    NULL. Columns of one attribute name one row; without one, it is the row above."""

    table: str
    key: str
    attribute: str = ""

    def keys(self, ties: Ties) -> Fragment:
        """The table of keys."""
        return ties.keys[self.table]

    def number(self, ties: Ties, values: Mapping[str, Fragment], bits: str, *, itself: bool) -> Fragment:
        """The number of the row that is named; NULL for none.

        Args:
            ties: what keys come from.
            values: of measured attributes.
            bits: 32 random bits of the row, as UBIGINT.
            itself: a first row, which has none before it, names itself.
        """
        return Fragment("parent")

    def check(self, table: str, sizes: Sizes) -> None:
        rows = sizes.rows[self.table]
        if not _fits(self.type, sizes.types[self.table][self.key], rows):
            raise PublishError(
                f"Column {self.name!r} of table {table!r} has a type that cannot hold the "
                f"{rows} keys of {self.table!r}. Nothing was written. The same call with "
                "a smaller rows= costs nothing more."
            )


@dataclass(frozen=True, slots=True)
class ForeignKey(Reference):
    """Names the parent's row."""

    @property
    def in_plan(self) -> str:
        return f"key of the parent's row in {cut_short(self.table)}: not read"

    @property
    def comment(self) -> str:
        return f"Key of the row above in {self.table}, which this row was drawn for."


@dataclass(frozen=True, slots=True)
class RandomKey(Reference):
    """Names a row at random. ``earlier``: ``table`` is its own, and the row is one before it."""

    earlier: bool = False

    @property
    def in_plan(self) -> str:
        row = "an earlier row" if self.earlier else "a random row"
        return f"key of {row} of {cut_short(self.table)}; that there is one is measured"

    @property
    def comment(self) -> str:
        row = "an earlier row" if self.earlier else "a row"
        return f"Key of {row} of {self.table} at random; measured is only whether there is one."

    def number(self, ties: Ties, values: Mapping[str, Fragment], bits: str, *, itself: bool) -> Fragment:
        value = values[self.attribute]
        if not self.earlier:
            rows = ties.rows[self.table]
            return Fragment(
                f"CASE WHEN {rows} > 0 AND {value} IS NOT NULL THEN {_below(bits, str(rows))} END"
            )
        drawn = f'CASE WHEN "row" > 0 AND {value} IS NOT NULL THEN {_below(bits, ident("row"))}'
        return Fragment(f'{drawn} ELSE "row" END' if itself else f"{drawn} END")


@dataclass(frozen=True, slots=True)
class PublicKey(Reference):
    """Names a random row of a public table, within the group that is the value of the ``attribute``."""

    @property
    def in_plan(self) -> str:
        return "key of a random row of the public group that is measured"

    @property
    def comment(self) -> str:
        return "Key of a row of a public table at random, within the group that was drawn."

    def keys(self, ties: Ties) -> Fragment:
        return ties.lookups[self.attribute].table

    def number(self, ties: Ties, values: Mapping[str, Fragment], bits: str, *, itself: bool) -> Fragment:
        value = values[self.attribute]
        sizes = ties.lookups[self.attribute].sizes
        starts = [0, *accumulate(sizes[:-1])]
        size, start = _of_group(sizes, value), _of_group(starts, value)
        return Fragment(f"CASE WHEN {size} > 0 THEN {start} + {_below(bits, size)} END")

    def check(self, table: str, sizes: Sizes) -> None:
        """Its values are the owner's, of a type that the plan compared."""


def _below(bits: str, count: str) -> str:
    """A number below ``count``, which is less than 2^32, from 32 random bits."""
    return f"CAST(({bits} * CAST({count} AS UBIGINT)) >> 32 AS BIGINT)"


def _of_group(numbers: Sequence[int], value: Fragment) -> str:
    return f"(CAST([{', '.join(map(str, numbers))}] AS BIGINT[]))[CAST({value} AS BIGINT) + 1]"


def _fits(kind: SqlType | None, key: SqlType | None, rows: int) -> bool:
    """Whether a column of type ``kind`` can hold the keys of ``rows`` rows that are of type ``key``."""
    if kind is None or key is None:
        return kind is key
    if kind.text == key.text or kind.family == "text":
        return True
    if key.family != "integer" or kind.family not in ("integer", "decimal"):
        return False
    return max(rows, 1) * 10**kind.scale <= kind.high and rows <= key.high


# -- SQL ------------------------------------------------------------------------------------------------


def tried(text: str) -> Fragment:
    """An owner's expression, NULL where it fails. Only text that ``write.expressions`` printed from a checked
    tree may enter a statement.

    Raises:
        InternalError: it is other text.
    """
    if not isinstance(text, Fragment):
        raise InternalError("an owner's expression was not checked before it was used")
    return Fragment(f"TRY({text})")


def written_type(kind: SqlType | None) -> Fragment:
    """The type of a column that is written."""
    if kind is None:
        raise InternalError("a column of an unsupported type is written")
    return kind.sql


def capacity(kind: SqlType | None) -> int | None:
    """The number of different values of the type; None for more than any table has rows.

    ``kind`` is that of a key or unit id: None for a unit's BLOB.
    """
    if kind is None or kind.family in ("text", "uuid"):
        return None
    if kind.family == "enum":
        return len(_labels(kind))
    if kind.family == "boolean":
        return 2
    return _EXACT[kind.text] if kind.family == "float" else kind.high - kind.low + 1


def surrogate(kind: SqlType | None, number: Fragment, count: int, prefix: str, seed: int) -> Fragment:
    """The value of a number as a SQL expression of exactly the type; each number has its own value.

    Args:
        kind: the column's type, None for BLOB; it holds ``count`` values (see ``capacity``).
        number: a BIGINT expression, 0..count-1; plain, because it is repeated.
        count: how many values are made.
        prefix: of text values, such as ``"key"``; also tells the columns of one table apart.
        seed: of the bits in a UUID.
    """
    if kind is None or kind.family == "text":
        width = max(_DIGITS, len(str(count)))
        stem = string_literal(prefix.split("|", maxsplit=1)[0] + "-")
        text = f"{stem} || lpad(CAST({number} + 1 AS VARCHAR), {width}, '0')"
        return text_bytes(text) if kind is None else Fragment(f"({text})")
    if kind.family == "uuid":
        return _uuid(number, prefix, seed)
    if kind.family in ("enum", "boolean"):
        values = _labels(kind) if kind.family == "enum" else ("FALSE", "TRUE")
        listed = ", ".join(string_literal(value) for value in values)
        return Fragment(f"CAST(([{listed}])[{number} + 1] AS {kind.sql})")
    if kind.family == "float":
        return Fragment(f"CAST({number} + 1 AS {kind.sql})")
    start, step = _spacing(kind, count)
    return _value(kind, start, step, number)


def _spacing(kind: SqlType, count: int) -> tuple[int, int]:
    """First tick and step: plain ones (1, 2, 3; whole days from 2000 on) if the type has room."""
    second = 1_000_000 // kind.unit
    plain = {
        "integer": (1, 1),
        "decimal": (10**kind.scale, 10**kind.scale),
        "date": (_YEAR_2000, 1),
        "time": (0, second),
        "timestamp": (_YEAR_2000 * kind.day, second),
    }[kind.family]
    return plain if plain[0] + plain[1] * (count - 1) <= kind.high else (kind.low, 1)


def _value(kind: SqlType, start: int, step: int, number: Fragment) -> Fragment:
    tick = f"{number} * {step} + {start}" if step > 1 else f"{number} + {start}"
    if kind.family == "integer":
        wide = "HUGEINT" if kind.low < 0 else "UHUGEINT"
        first = f"CAST('{start}' AS {wide})"
        return Fragment(f"CAST({first} + CAST({number} AS {wide}) AS {kind.sql})")
    if kind.family == "decimal":
        if step > 1 or kind.scale == 0:
            return Fragment(f"CAST({number} + {1 if kind.low < start else start} AS {kind.sql})")
        first = tick_literal(kind, start)
        unit = tick_literal(kind, 1)
        return Fragment(f"CAST({first} + CAST({number} AS DECIMAL(38,0)) * {unit} AS {kind.sql})")
    if kind.family == "date":
        return Fragment(f"CAST(DATE '1970-01-01' + CAST({tick} AS INTEGER) AS DATE)")
    made = "make_timestamptz" if kind.zoned else "make_timestamp"
    return Fragment(f"CAST({made}(({tick}) * {kind.unit}) AS {kind.sql})")


def _uuid(number: Fragment, prefix: str, seed: int) -> Fragment:
    """122 random bits in the form of version 4 (RFC 9562): 4 bits say the version, 2 the variant."""
    halves = []
    for half, kept, fixed in (("high", 2**64 - 1 - 0xF000, 0x4000), ("low", 2**62 - 1, 2**63)):
        purpose = string_literal(f"{prefix}|{half}|{seed}")
        bits = f"hash(xor(CAST({number} AS UBIGINT), hash({purpose})))"
        whole = f"(({bits}) & CAST('{kept}' AS UBIGINT)) | CAST('{fixed}' AS UBIGINT)"
        halves.append(f"lpad(to_hex({whole}), 16, '0')")
    return Fragment(f"CAST({' || '.join(halves)} AS UUID)")


def _labels(kind: SqlType) -> tuple[str, ...]:
    found = re.findall(r"'((?:[^']|'')*)'", kind.text)
    return tuple(label.replace("''", "'") for label in found)
